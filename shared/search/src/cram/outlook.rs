//! A cache of what a look at the moves of regions came to.

use super::kind::Kind;
use super::strip::Strip;
use super::strips::Strips;

/// What the tables say of a region's moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outlook {
    /// The nimbers of the moves that the tables answer, as bits.
    pub(super) reached: u32,
    /// How many moves they do not answer.
    pub(super) open: u8,
}

/// One region and its outlook. The key is there in full, so a hit is exact:
///
/// ```text
/// words 0, 1            the words of the region's key
/// word 2, bits  0..32   reached
///         bits 32..40   open
///         bits 40..48   the rest of the key; no region has 0 there, so 0 is an empty slot
/// ```
type Slot = [u64; 3];

const OPEN_SHIFT: u32 = 32;
const REST_SHIFT: u32 = 40;

/// Outlooks by region. One that hashes to a taken slot replaces what is there.
pub(super) struct Outlooks {
    /// Made when the first one is put there: many engines never search.
    slots: Vec<Slot>,
}

/// Bytes of the cache. Four times as many, or sixteen, make boards from 4x9 to 3x19 no faster, a quarter makes 3x16 slower by a tenth.
const BYTES: usize = 4 << 20;

const SLOTS: usize = BYTES / size_of::<Slot>();

impl Outlooks {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.slots = Vec::new();
    }

    pub(super) fn get(&self, region: &Strip) -> Option<Outlook> {
        let (words, rest) = Strips::key(region);
        let kept = self.slots.get(place(words, rest))?;
        (kept[..2] == words && kept[2] >> REST_SHIFT == u64::from(rest))
            .then_some(Outlook { reached: kept[2] as u32, open: (kept[2] >> OPEN_SHIFT) as u8 })
    }

    pub(super) fn put(&mut self, region: &Strip, outlook: Outlook) {
        if self.slots.is_empty() {
            // All zeros: pages that no region hashes to take no memory.
            self.slots = vec![[0; 3]; SLOTS];
        }
        let (words, rest) = Strips::key(region);
        let Outlook { reached, open } = outlook;
        let known = u64::from(reached) | u64::from(open) << OPEN_SHIFT | u64::from(rest) << REST_SHIFT;
        self.slots[place(words, rest)] = [words[0], words[1], known];
    }
}

/// The slot of a region's key.
fn place(words: [u64; 2], rest: u8) -> usize {
    let mixed = (words[0] ^ words[1].rotate_left(29)).wrapping_mul(MIX) ^ u64::from(rest);
    ((u128::from(mixed.wrapping_mul(MIX)) * SLOTS as u128) >> 64) as usize
}

/// Two to the 64 by the golden ratio: the high bits of a product with it depend on all lower bits of the other factor.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
