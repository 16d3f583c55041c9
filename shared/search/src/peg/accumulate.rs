//! Adding up counts by board, in memory the size of the result and at the speed of the cache.

use super::counter::Entry;
use super::error::CountError;

/// Input entries for each bucket: with a level's usual growth its table then stays below a megabyte.
const ENTRIES_PER_BUCKET: usize = 1 << 13;

/// More buckets than this would make the buffers large and their ends too many for the cache.
const BUCKETS_MAX: usize = 1 << 8;

/// Additions that wait in a bucket's buffer before they go to its table together: enough that a batch visits each page and
/// many a cache line of the table more than once. 32 bytes each, so 32 MiB of buffers at most.
const BUFFERED: usize = 1 << 12;

/// The first size of a bucket's table, in slots.
const SLOTS_MIN: usize = 1 << 6;

/// A map from boards to sums of counts.
///
/// A level's map is far larger than the cache, and its keys come in no order. So they are first dealt, by hash, to buckets
/// whose tables fit the cache, and each bucket takes its additions in batches.
pub(super) struct Accumulator {
    buckets: Vec<Bucket>,
    /// The number of buckets is `2^(64 - shift)`.
    shift: u32,
}

/// A board and the two halves of its count: 24 bytes, where a u128's alignment would make 32.
#[derive(Clone, Copy, Default)]
struct Slot {
    board: u64,
    ways: [u64; 2],
}

impl Slot {
    fn ways(self) -> u128 {
        u128::from(self.ways[0]) | u128::from(self.ways[1]) << 64
    }
}

/// One table with linear probing. Board 0 marks an empty slot: no board of a level is without pegs.
#[derive(Default)]
struct Bucket {
    slots: Vec<Slot>,
    /// Slots in use.
    used: usize,
    waiting: Vec<Entry>,
}

impl Accumulator {
    /// An empty map that expects the successors of this many entries.
    pub(super) fn new(entries: usize) -> Self {
        let buckets = (entries / ENTRIES_PER_BUCKET).next_power_of_two().clamp(2, BUCKETS_MAX);
        let mut empty = Vec::new();
        empty.resize_with(buckets, Bucket::default);
        Self { buckets: empty, shift: 64 - buckets.trailing_zeros() }
    }

    /// Adds to a board's count.
    #[inline]
    pub(super) fn add(&mut self, board: u64, ways: u128) -> Result<(), CountError> {
        debug_assert_ne!(board, 0, "a jump leaves a peg");
        let bucket = &mut self.buckets[(hash(board) >> self.shift) as usize];
        bucket.waiting.push(Entry { board, ways });
        if bucket.waiting.len() >= BUFFERED { bucket.flush() } else { Ok(()) }
    }

    /// Hands out every board with its count, in no order.
    pub(super) fn drain(self, mut take: impl FnMut(Entry)) -> Result<(), CountError> {
        for mut bucket in self.buckets {
            bucket.flush()?;
            for slot in bucket.slots.iter().filter(|slot| slot.board != 0) {
                take(Entry { board: slot.board, ways: slot.ways() });
            }
        }
        Ok(())
    }
}

impl Bucket {
    /// Moves the waiting additions into the table.
    fn flush(&mut self) -> Result<(), CountError> {
        // The load stays at most three quarters, even if every waiting board is new.
        while (self.used + self.waiting.len()) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        for entry in &self.waiting {
            let index = slot_of(&self.slots, entry.board);
            let slot = &mut self.slots[index];
            if slot.board == 0 {
                slot.board = entry.board;
                self.used += 1;
            }
            let ways = slot
                .ways()
                .checked_add(entry.ways)
                .ok_or(CountError::BoardOverflow { board: entry.board })?;
            slot.ways = [ways as u64, (ways >> 64) as u64];
        }
        self.waiting.clear();
        Ok(())
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(SLOTS_MIN);
        let smaller = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in smaller.into_iter().filter(|slot| slot.board != 0) {
            let index = slot_of(&self.slots, slot.board);
            self.slots[index] = slot;
        }
    }
}

/// The slot that has the board, or else the empty one where it belongs. There must be an empty slot, and a power of two of them.
#[inline]
fn slot_of(slots: &[Slot], board: u64) -> usize {
    let mask = slots.len() - 1;
    // The top bits of the hash chose the bucket; the middle ones differ within it.
    let mut index = (hash(board) >> 24) as usize & mask;
    while slots[index].board != board && slots[index].board != 0 {
        index = (index + 1) & mask;
    }
    index
}

/// Two rounds of multiplication and folding, so that every hole reaches both the top and the middle bits.
#[inline]
fn hash(board: u64) -> u64 {
    let z = (board ^ board >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
