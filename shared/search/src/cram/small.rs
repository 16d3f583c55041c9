//! Nimbers of small components by the mex rule, kept in an exact cache.

use grundy_games::cram::Component;

/// The most cells of a component that is solved by the mex rule. At most 14, so that a slot holds the whole component.
pub const SMALL_CELLS_MAX: u32 = 14;

/// Two to this many slots: 8 MiB, which hold all components of up to 12 cells and leave room for the busy larger ones.
const SLOTS_LOG2: u32 = 20;

/// A cache of small components' nimbers. One slot of 64 bits holds a component and its nimber whole, so a hit is exact:
///
/// ```text
/// bits  0..56   cells: 14 connected cells lie in a box with width + height <= 15, of at most 7 x 8 cells
/// bits 56..60   width, at most 14
/// bits 60..64   nimber, at most 7 (14 cells hold 7 dominoes)
/// ```
///
/// A component that hashes to a taken slot replaces what is there. No component has no cells, so 0 is an empty slot.
pub(super) struct SmallNimbers {
    slots: Box<[u64]>,
}

const NIMBER_SHIFT: u32 = 60;
const WIDTH_SHIFT: u32 = 56;

impl SmallNimbers {
    pub(super) fn new() -> Self {
        Self { slots: vec![0; 1 << SLOTS_LOG2].into_boxed_slice() }
    }

    /// The nimber of a component of at most [`SMALL_CELLS_MAX`] cells.
    pub(super) fn nimber(&mut self, component: &Component) -> u8 {
        debug_assert!(component.len() <= SMALL_CELLS_MAX);
        let key = component.cells() as u64 | u64::from(component.width()) << WIDTH_SHIFT;
        // Fibonacci hashing: the high bits of the product depend on all bits of the key.
        let slot = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS_LOG2)) as usize;
        let kept = self.slots[slot];
        if kept & ((1 << NIMBER_SHIFT) - 1) == key {
            return (kept >> NIMBER_SHIFT) as u8;
        }
        let mut reached = 0u32;
        for domino in component.dominoes() {
            let left = component.after(domino);
            reached |= 1 << left.fold(0, |sum, region| sum ^ self.nimber(&region));
        }
        let nimber = reached.trailing_ones();
        self.slots[slot] = key | u64::from(nimber) << NIMBER_SHIFT;
        nimber as u8
    }
}
