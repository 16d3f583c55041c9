//! Sums of components, simplified, and their bytes.

use super::component::Component;
use super::position::CELLS_MAX;
use std::fmt;

/// A sum of components in canonical form: ascending, no two equal (G + G is *0, so equal ones cancel), none that the
/// [half-turn theorem](Component::is_zero_by_half_turn) shows to be *0, at most 128 cells in total.
///
/// Its bytes are those of its components one after the other:
///
/// ```text
/// byte 0   width of the box
/// byte 1   height of the box, at most the width
/// then     ceil(width * height / 8) bytes, little endian: bit row * width + column for each cell
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Sum(Vec<Component>);

impl FromIterator<Component> for Sum {
    /// Simplifies.
    fn from_iter<I: IntoIterator<Item = Component>>(components: I) -> Self {
        let mut sorted: Vec<Component> =
            components.into_iter().filter(|c| !c.is_zero_by_half_turn()).collect();
        sorted.sort_unstable();
        let mut kept: Vec<Component> = Vec::with_capacity(sorted.len());
        for component in sorted {
            if kept.last() == Some(&component) {
                kept.pop();
            } else {
                kept.push(component);
            }
        }
        Self(kept)
    }
}

impl Sum {
    /// The components, ascending.
    pub fn components(&self) -> &[Component] {
        &self.0
    }

    /// Whether nothing is left: the sum is *0.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A bound that the nimber does not exceed: the most dominoes that the cells could hold. From a position of nimber n
    /// play can go through positions of nimbers n - 1, ..., 0, so it can last n moves.
    pub fn nimber_max(&self) -> u8 {
        // At most 128 cells make at most 64 dominoes.
        self.0.iter().map(|component| component.len() / 2).sum::<u32>() as u8
    }

    /// The sums that one domino leads to, simplified, ascending, each once.
    pub fn after_moves(&self) -> Vec<Self> {
        let mut sums: Vec<Self> = self
            .0
            .iter()
            .enumerate()
            .flat_map(|(index, component)| {
                component.dominoes().map(move |domino| (index, component.after(domino)))
            })
            .map(|(index, left)| {
                self.0[..index].iter().chain(&self.0[index + 1..]).copied().chain(left).collect()
            })
            .collect();
        sums.sort_unstable();
        sums.dedup();
        sums
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for component in &self.0 {
            bytes.extend([component.width(), component.height()]);
            bytes.extend_from_slice(
                &component.cells().to_le_bytes()[..cell_bytes(component.width(), component.height())],
            );
        }
        bytes
    }

    /// Reads bytes that [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// Anything else, with the byte at which the wrong component starts.
    pub fn decode(bytes: &[u8]) -> Result<Self, SumError> {
        let mut components: Vec<Component> = Vec::new();
        let mut rest = bytes;
        while let [width, height, tail @ ..] = rest {
            let at = bytes.len() - rest.len();
            if *width == 0 || *height == 0 || u32::from(*width) * u32::from(*height) > CELLS_MAX {
                return Err(SumError::Box { at, width: *width, height: *height });
            }
            let length = cell_bytes(*width, *height);
            let Some((mask, tail)) = tail.split_at_checked(length) else {
                return Err(SumError::Truncated { at, length });
            };
            let mut padded = [0; 16];
            padded[..length].copy_from_slice(mask);
            let component = Component::from_parts(*width, *height, u128::from_le_bytes(padded))
                .filter(|component| !component.is_zero_by_half_turn())
                .ok_or(SumError::Component { at })?;
            if components.last().is_some_and(|last| *last >= component) {
                return Err(SumError::Order { at });
            }
            components.push(component);
            rest = tail;
        }
        if !rest.is_empty() {
            return Err(SumError::Truncated { at: bytes.len() - rest.len(), length: 0 });
        }
        let cells: u32 = components.iter().map(Component::len).sum();
        if cells > CELLS_MAX {
            return Err(SumError::Cells { cells });
        }
        Ok(Self(components))
    }
}

/// How many bytes hold the cells of a box.
fn cell_bytes(width: u8, height: u8) -> usize {
    (usize::from(width) * usize::from(height)).div_ceil(8)
}

impl fmt::Display for Sum {
    /// Pictures joined by ` + `; `*0` when empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("*0");
        }
        for (index, component) in self.0.iter().enumerate() {
            let separator = if index > 0 { " + " } else { "" };
            write!(f, "{separator}{component}")?;
        }
        Ok(())
    }
}

/// Why bytes are no sum. `at` is the byte at which the component starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    /// A box without cells or with too many.
    #[error("the component at byte {at} has a box of {width} by {height}, expected 1 to {CELLS_MAX} cells")]
    Box {
        /// Where it starts.
        at: usize,
        /// Its width.
        width: u8,
        /// Its height.
        height: u8,
    },
    /// The bytes end inside a component.
    #[error("the component at byte {at} is cut off, expected 2 bytes of size and {length} of cells")]
    Truncated {
        /// Where it starts.
        at: usize,
        /// How many bytes its cells take; 0 if not even its size is there.
        length: usize,
    },
    /// Not connected, not canonical, a single cell, or *0 by symmetry.
    #[error(
        "the component at byte {at} is not a connected region in canonical form that symmetry leaves undecided"
    )]
    Component {
        /// Where it starts.
        at: usize,
    },
    /// Not above the component before it.
    #[error("the component at byte {at} is not above the one before it")]
    Order {
        /// Where it starts.
        at: usize,
    },
    /// More cells than any board has.
    #[error("the components have {cells} cells, at most {CELLS_MAX} are possible")]
    Cells {
        /// How many.
        cells: u32,
    },
}
