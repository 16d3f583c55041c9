//! A cache of what a look at the moves of regions came to.

use super::kind::Kind;
use super::strip::Strip;
use super::strips::Strips;

/// Two to this many slots of 32 bytes: 4 MiB.
const SLOTS_LOG2: u32 = 21;

/// One slot: the key in full, so that a hit is exact.
#[derive(Clone, Copy)]
struct Slot {
    words: [u64; 2],
    /// The region's bits above its words; 0 in an empty slot, since no region has none.
    rest: u8,
    open: u8,
    reached: u32,
}

/// What the tables say of a region's moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outlook {
    /// The nimbers of the moves that the tables answer, as bits.
    pub(super) reached: u32,
    /// How many moves they do not answer.
    pub(super) open: u8,
}

const EMPTY: Slot = Slot { words: [0; 2], rest: 0, open: 0, reached: 0 };

/// Outlooks by region. One that hashes to a taken slot replaces what is there.
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

    pub(super) fn get(&self, region: &Strip) -> Option<Outlook> {
        let (words, rest, slot) = place(region);
        let kept = self.slots.get(slot)?;
        (kept.words == words && kept.rest == rest)
            .then_some(Outlook { reached: kept.reached, open: kept.open })
    }

    pub(super) fn put(&mut self, region: &Strip, outlook: Outlook) {
        if self.slots.is_empty() {
            self.slots.resize(1 << SLOTS_LOG2, EMPTY);
        }
        let (words, rest, slot) = place(region);
        let Outlook { reached, open } = outlook;
        self.slots[slot] = Slot { words, rest, open, reached };
    }
}

/// A region's key and slot.
fn place(region: &Strip) -> ([u64; 2], u8, usize) {
    let (words, rest) = Strips::key(region);
    let mixed = (words[0] ^ words[1].rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(rest);
    (words, rest, (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS_LOG2)) as usize)
}
