//! Nimbers of small regions, kept in an exact cache.

/// The most cells of a region that is solved by the mex rule. At most 14, so that a slot holds the whole region.
pub const SMALL_CELLS_MAX: u32 = 14;

/// Two to this many slots: 8 MiB, which hold all components of up to 12 cells and leave room for the busy larger ones.
const SLOTS_LOG2: u32 = 20;

/// A cache of small regions' nimbers. One slot of 64 bits holds a region and its nimber whole, so a hit is exact:
///
/// ```text
/// bits  0..56   cells: 14 connected cells lie in a box with width + height <= 15, of at most 7 x 8 cells
/// bits 56..60   the length of the box's lines, at most 14
/// bits 60..64   nimber, at most 7 (14 cells hold 7 dominoes)
/// ```
///
/// A region that hashes to a taken slot replaces what is there. No region has no cells, so 0 is an empty slot.
pub(super) struct SmallNimbers {
    slots: Box<[u64]>,
}

const NIMBER_SHIFT: u32 = 60;
const LINE_SHIFT: u32 = 56;

impl SmallNimbers {
    pub(super) fn new() -> Self {
        Self { slots: vec![0; 1 << SLOTS_LOG2].into_boxed_slice() }
    }

    /// The nimber kept for a region of at most [`SMALL_CELLS_MAX`] cells in lines of this length.
    pub(super) fn get(&self, cells: u128, line: u8) -> Option<u8> {
        let key = key(cells, line);
        let kept = self.slots[slot(key)];
        (kept & ((1 << NIMBER_SHIFT) - 1) == key).then_some((kept >> NIMBER_SHIFT) as u8)
    }

    /// Keeps it.
    pub(super) fn put(&mut self, cells: u128, line: u8, nimber: u8) {
        let key = key(cells, line);
        self.slots[slot(key)] = key | u64::from(nimber) << NIMBER_SHIFT;
    }
}

fn key(cells: u128, line: u8) -> u64 {
    debug_assert!(cells.count_ones() <= SMALL_CELLS_MAX && cells >> LINE_SHIFT == 0 && line < 16);
    cells as u64 | u64::from(line) << LINE_SHIFT
}

/// Fibonacci hashing: the high bits of the product depend on all bits of the key.
fn slot(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS_LOG2)) as usize
}
