//! Adding up counts by board, in memory the size of the result and at the speed of the cache.

use super::counter::Entry;
use super::error::CountError;

/// Input entries for which one bucket's table still fits the second level cache, with a level's usual growth.
const ENTRIES_PER_BUCKET: usize = 1 << 13;

/// More buckets than this would push the buffers themselves out of the cache.
const BUCKETS_MAX: usize = 1 << 8;

/// Additions that wait in a bucket's buffer before they go to its table together.
const BUFFERED: usize = 128;

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

/// One table with linear probing. Board 0 marks an empty slot: no board of a level is without pegs.
#[derive(Default)]
struct Bucket {
    boards: Vec<u64>,
    ways: Vec<u128>,
    /// Slots in use.
    used: usize,
    waiting: Vec<Entry>,
}

impl Accumulator {
    /// An empty map that expects the successors of this many entries.
    pub(super) fn new(entries: usize) -> Self {
        let buckets = (entries / ENTRIES_PER_BUCKET)
            .next_power_of_two()
            .clamp(2, BUCKETS_MAX);
        let mut empty = Vec::new();
        empty.resize_with(buckets, Bucket::default);
        Self {
            buckets: empty,
            shift: 64 - buckets.trailing_zeros(),
        }
    }

    /// Adds to a board's count.
    #[inline]
    pub(super) fn add(&mut self, board: u64, ways: u128) -> Result<(), CountError> {
        debug_assert_ne!(board, 0, "a jump leaves a peg");
        let bucket = &mut self.buckets[(hash(board) >> self.shift) as usize];
        bucket.waiting.push(Entry { board, ways });
        if bucket.waiting.len() >= BUFFERED {
            bucket.flush()
        } else {
            Ok(())
        }
    }

    /// Hands out every board with its count, in no order.
    pub(super) fn drain(self, mut take: impl FnMut(Entry)) -> Result<(), CountError> {
        for mut bucket in self.buckets {
            bucket.flush()?;
            let entries = bucket
                .boards
                .iter()
                .zip(&bucket.ways)
                .filter(|(board, _)| **board != 0);
            entries.for_each(|(&board, &ways)| take(Entry { board, ways }));
        }
        Ok(())
    }
}

impl Bucket {
    /// Moves the waiting additions into the table.
    fn flush(&mut self) -> Result<(), CountError> {
        // The load stays at most three quarters, even if every waiting board is new.
        while (self.used + self.waiting.len()) * 4 > self.boards.len() * 3 {
            self.grow();
        }
        for entry in &self.waiting {
            let slot = slot_of(&self.boards, entry.board);
            if self.boards[slot] == 0 {
                self.boards[slot] = entry.board;
                self.used += 1;
            }
            self.ways[slot] = self.ways[slot]
                .checked_add(entry.ways)
                .ok_or(CountError::BoardOverflow { board: entry.board })?;
        }
        self.waiting.clear();
        Ok(())
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let slots = (self.boards.len() * 2).max(SLOTS_MIN);
        let (mut boards, mut ways) = (vec![0; slots], vec![0; slots]);
        for (&board, &count) in self
            .boards
            .iter()
            .zip(&self.ways)
            .filter(|(board, _)| **board != 0)
        {
            let slot = slot_of(&boards, board);
            (boards[slot], ways[slot]) = (board, count);
        }
        (self.boards, self.ways) = (boards, ways);
    }
}

/// The slot that has the board, or else the empty one where it belongs. There must be an empty slot, and a power of two of them.
#[inline]
fn slot_of(boards: &[u64], board: u64) -> usize {
    let mask = boards.len() - 1;
    // The top bits of the hash chose the bucket; the middle ones are as good and different.
    let mut slot = (hash(board) >> 24) as usize & mask;
    while boards[slot] != board && boards[slot] != 0 {
        slot = (slot + 1) & mask;
    }
    slot
}

/// Fibonacci hashing, with the high half folded in first so that every hole reaches the bits in use.
#[inline]
fn hash(board: u64) -> u64 {
    (board ^ board >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
