//! Components: connected regions of empty cells in canonical form.

use super::grid;
use std::fmt;

/// A connected region of at least two empty cells, in canonical form.
///
/// The region lies in the corner of its bounding box, which is at least as wide as high; bit `row * width + column` of
/// `cells` is one of its cells. Of the images under the box's symmetries (4, or 8 of a square) it is the one whose
/// `cells` are least as a number. So regions that are equal up to symmetry and shift are equal as values.
///
/// ```text
/// #.      .        ...
/// ..  ->  .#  ->   #.#  (width 3, height 2)
/// #.      .
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Component {
    width: u8,
    height: u8,
    cells: u128,
}

impl Component {
    /// The canonical form of a connected region in a grid that is `width` wide.
    pub(super) fn canonical(region: u128, width: u32) -> Self {
        let (mut cells, mut width, mut height) = grid::to_corner(region, width);
        if height > width {
            cells = grid::transpose(cells, width, height);
            (width, height) = (height, width);
        }
        let mut least = least_of_turns(cells, width, height);
        if width == height {
            least = least.min(least_of_turns(grid::transpose(cells, width, height), width, height));
        }
        // At most 128, so both fit.
        Self { width: width as u8, height: height as u8, cells: least }
    }

    /// The canonical form of a connected region of at least two cells in a grid that is `width` wide, bit
    /// `row * width + column` for each cell; `None` if it is not that, or the grid has no width or more than 128.
    pub fn of_region(region: u128, width: u8) -> Option<Self> {
        if !(1..=128).contains(&width) || region.count_ones() < 2 {
            return None;
        }
        let connected = grid::lowest_region(region, u32::from(width)) == region;
        connected.then(|| Self::canonical(region, u32::from(width)))
    }

    /// A component from its parts, if they are one in canonical form.
    pub fn from_parts(width: u8, height: u8, cells: u128) -> Option<Self> {
        let area = u32::from(width) * u32::from(height);
        if !(1..=128).contains(&area) || cells.count_ones() < 2 || cells & !grid::low_bits(area) != 0 {
            return None;
        }
        let connected = grid::lowest_region(cells, u32::from(width)) == cells;
        let component = Self { width, height, cells };
        (connected && Self::canonical(cells, u32::from(width)) == component).then_some(component)
    }

    /// The width of the bounding box, at least its height.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// The height of the bounding box.
    pub fn height(&self) -> u8 {
        self.height
    }

    /// The cells; (row, column) is bit `row * width + column`.
    pub fn cells(&self) -> u128 {
        self.cells
    }

    /// How many cells there are.
    pub fn len(&self) -> u32 {
        self.cells.count_ones()
    }

    /// Never: a component has at least two cells.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// The dominoes that fit, as two cells each.
    pub fn dominoes(&self) -> impl Iterator<Item = u128> + use<> {
        let width = u32::from(self.width);
        let (mut horizontal, mut vertical) = grid::domino_cells(self.cells, width);
        std::iter::from_fn(move || {
            let (cells, step) = if horizontal != 0 { (&mut horizontal, 1) } else { (&mut vertical, width) };
            if *cells == 0 {
                return None;
            }
            let first = *cells & cells.wrapping_neg();
            *cells ^= first;
            Some(first | first << step)
        })
    }

    /// What a domino leaves of the component.
    pub fn after(&self, domino: u128) -> Regions {
        Regions::new(self.cells & !domino, u32::from(self.width))
    }

    /// Whether the half-turn theorem shows that the component is *0.
    ///
    /// Let the half turn map the region to itself, and no domino meet its own image. Then the second player answers each
    /// domino with its image: before each of the first player's moves the empty region is symmetric, so the image of his
    /// domino was empty, and it is still, since the two do not meet. The second player moves last (Gardner 1974; Berlekamp,
    /// Conway and Guy, *Winning Ways*, "Cram": even x even boards). A domino meets its image only if it covers the centre
    /// cell (odd x odd box) or the two cells beside the centre (odd x even box); in an even x even box none does.
    pub fn is_zero_by_half_turn(&self) -> bool {
        let (width, height) = (u32::from(self.width), u32::from(self.height));
        if grid::half_turn(self.cells, width, height) != self.cells {
            return false;
        }
        // In an odd x odd box this is the centre; in an odd x even box it is one of the two central cells, and by symmetry
        // both are empty or neither.
        let centre = height / 2 * width + width / 2;
        (width % 2 == 0 && height % 2 == 0) || self.cells >> centre & 1 == 0
    }
}

/// The least of a grid's four images that keep its box's orientation.
fn least_of_turns(cells: u128, width: u32, height: u32) -> u128 {
    let flipped = grid::upside_down(cells, width, height);
    let turned = grid::half_turn(cells, width, height);
    let mirrored = grid::half_turn(flipped, width, height);
    cells.min(flipped).min(turned.min(mirrored))
}

impl fmt::Display for Component {
    /// The picture, `#` where the box holds none of the cells.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        grid::write_picture(f, self.cells, u32::from(self.width), u32::from(self.height))
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The components of a set of empty cells, without the dead cells (those with no empty neighbour).
#[derive(Clone, Debug)]
pub struct Regions {
    rest: u128,
    width: u32,
}

impl Regions {
    /// The components of cells in a grid that is `width` wide.
    pub(super) fn new(cells: u128, width: u32) -> Self {
        Self { rest: cells & grid::neighbours(cells, width), width }
    }
}

impl Iterator for Regions {
    type Item = Component;

    fn next(&mut self) -> Option<Component> {
        if self.rest == 0 {
            return None;
        }
        let region = grid::lowest_region(self.rest, self.width);
        self.rest ^= region;
        Some(Component::canonical(region, self.width))
    }
}
