//! A cache of what a look at the moves of couples came to.

use super::kind::Kind;
use super::strip::Strip;
use super::strips::Strips;
use crate::numbers::Numbers;

/// Two to this many slots of 32 bytes: 4 MiB.
const SLOTS_LOG2: u32 = 17;

/// One slot: the key in full, so that a hit is exact.
#[derive(Clone, Copy)]
struct Slot {
    words: [u64; 2],
    /// The heap, and the region's bits above it; 0 in an empty slot, since no region has none.
    rest: u16,
    numbers: Numbers,
}

const EMPTY: Slot = Slot { words: [0; 2], rest: 0, numbers: Numbers::UNKNOWN };

/// Numbers by region and heap. A couple that hashes to a taken slot replaces what is there.
pub(super) struct Outlooks {
    slots: Vec<Slot>,
}

impl Outlooks {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    pub(super) fn get(&self, region: &Strip, heap: u8) -> Option<Numbers> {
        let (words, rest, slot) = place(region, heap);
        let kept = self.slots.get(slot)?;
        (kept.words == words && kept.rest == rest).then_some(kept.numbers)
    }

    pub(super) fn put(&mut self, region: &Strip, heap: u8, numbers: Numbers) {
        if self.slots.is_empty() {
            self.slots.resize(1 << SLOTS_LOG2, EMPTY);
        }
        let (words, rest, slot) = place(region, heap);
        self.slots[slot] = Slot { words, rest, numbers };
    }
}

/// A couple's key and slot.
fn place(region: &Strip, heap: u8) -> ([u64; 2], u16, usize) {
    let (words, high) = Strips::key(region);
    let rest = u16::from(heap) | u16::from(high) << 8;
    let mixed = (words[0] ^ words[1].rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(rest);
    (words, rest, (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS_LOG2)) as usize)
}
