//! A small cache of what is known of each board's gain, whatever the margin it was asked with.
//!
//! The shared table answers for exactly one margin a key. Most claims of a search meet their board again with another margin, soon;
//! this cache answers those, without a lock or a call through the table.

use super::knowledge::State;

/// Slots are two to the power of the seeds in play, between these: 24 bytes each, so at most 6 MiB an engine.
const SLOT_BITS_MIN: u8 = 8;
const SLOT_BITS_MAX: u8 = 18;

/// At least `low`, at most `high`.
#[derive(Clone, Copy, Default)]
struct Slot {
    mine: u64,
    theirs: u64,
    low: i16,
    high: i16,
}

/// The cache. A board has one slot, and the last board that wants it gets it.
pub struct Bounds {
    slots: Vec<Slot>,
    /// Hash bits that are not part of a slot's number.
    shift: u32,
}

impl Bounds {
    /// Nothing known. `seeds`: of the boards to come, at most.
    pub fn new(seeds: u8) -> Self {
        let bits = seeds.clamp(SLOT_BITS_MIN, SLOT_BITS_MAX);
        // An empty slot is the empty board, which is over and never asked about.
        Self { slots: vec![Slot::default(); 1 << bits], shift: 64 - u32::from(bits) }
    }

    /// Both sides multiplied by odd constants (from the golden ratio and the square root of 3) so that every house reaches
    /// the top bits.
    fn slot_of(&self, state: State) -> usize {
        let mixed = state.board.mine.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ state.board.theirs.wrapping_mul(0xbb67_ae85_84ca_a73b).rotate_left(32);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// The truth of a claim.
    pub fn truth(&self, state: State) -> Option<bool> {
        let slot = &self.slots[self.slot_of(state)];
        if slot.mine != state.board.mine || slot.theirs != state.board.theirs {
            None
        } else if state.margin <= slot.low {
            Some(true)
        } else if state.margin > slot.high {
            Some(false)
        } else {
            None
        }
    }

    /// Takes in a decided claim.
    pub fn learn(&mut self, state: State, truth: bool) {
        let index = self.slot_of(state);
        let slot = &mut self.slots[index];
        if slot.mine != state.board.mine || slot.theirs != state.board.theirs {
            *slot =
                Slot { mine: state.board.mine, theirs: state.board.theirs, low: i16::MIN, high: i16::MAX };
        }
        if truth {
            slot.low = slot.low.max(state.margin);
        } else {
            slot.high = slot.high.min(state.margin - 1);
        }
    }
}
