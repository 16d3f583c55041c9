//! Adding up counts by board, in memory the size of the result and at the speed of the cache.

use super::counter::Entry;
use crate::memory::prefetch;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries expected in a bucket: its table then stays in a core's cache.
const ENTRIES_PER_BUCKET: usize = 1 << 13;

/// More buckets than this would make the buffers large and their ends too many for the cache.
const BUCKETS_MAX: usize = 1 << 9;

/// Additions that wait in a bucket's buffer before they go to its table together: enough that a batch visits each page and
/// many a cache line of the table more than once, few enough that all buffers take 4 MiB for a thread.
const BUFFERED: usize = 1 << 9;

/// The first size of a bucket's table, in slots.
const SLOTS_MIN: usize = 1 << 6;

/// A number of jump sequences: 64 bits while they are enough, since a level is then two thirds of the size.
pub(super) trait Ways: Copy + Default + Send + Sync + 'static {
    /// The sum, if it fits.
    fn plus(self, other: Self) -> Option<Self>;
    /// The number, if it fits.
    fn from_wide(ways: u128) -> Option<Self>;
    fn wide(self) -> u128;
}

impl Ways for u64 {
    #[inline]
    fn plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    #[inline]
    fn from_wide(ways: u128) -> Option<Self> {
        Self::try_from(ways).ok()
    }

    #[inline]
    fn wide(self) -> u128 {
        self.into()
    }
}

/// The two halves of a u128, whose alignment would make a slot a third larger.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Wide([u64; 2]);

impl Ways for Wide {
    #[inline]
    fn plus(self, other: Self) -> Option<Self> {
        self.wide().checked_add(other.wide()).and_then(Self::from_wide)
    }

    #[inline]
    fn from_wide(ways: u128) -> Option<Self> {
        Some(Self([ways as u64, (ways >> 64) as u64]))
    }

    #[inline]
    fn wide(self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }
}

/// A board and its count. Board 0 marks an empty slot: no board of a level is without pegs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Slot<W> {
    pub(super) board: u64,
    pub(super) ways: W,
}

/// Why an addition failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// The board's count outgrows its type.
    Count(u64),
    /// The tables outgrow their memory.
    Memory,
}

/// How boards are dealt to buckets: by hash, so that buckets are of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buckets {
    /// The number of buckets is `2^(64 - shift)`.
    shift: u32,
}

impl Buckets {
    /// Buckets for this many entries: 2 to [`BUCKETS_MAX`].
    pub(super) fn for_entries(entries: usize) -> Self {
        let buckets = (entries / ENTRIES_PER_BUCKET).next_power_of_two().clamp(2, BUCKETS_MAX);
        Self::of_count(buckets)
    }

    /// As many buckets as another level's: a power of two from 2.
    pub(super) fn of_count(buckets: usize) -> Self {
        debug_assert!(buckets.is_power_of_two() && buckets > 1);
        Self { shift: 64 - buckets.trailing_zeros() }
    }

    pub(super) fn len(self) -> usize {
        1 << (64 - self.shift)
    }

    #[inline]
    fn of(self, board: u64) -> usize {
        (hash(board) >> self.shift) as usize
    }
}

/// One thread's additions on their way to the buckets.
///
/// A level's table is far larger than the cache, and boards come in no order. So they wait until a bucket, which fits the
/// cache, has a batch of them.
pub(super) struct Dealer<W> {
    buckets: Buckets,
    /// Buckets that are wanted; additions to others are dropped.
    wanted: Range<usize>,
    /// [`BUFFERED`] slots for each bucket that is wanted.
    waiting: Vec<Slot<W>>,
    /// Of these, how many are in use.
    lengths: Vec<usize>,
}

impl<W: Ways> Dealer<W> {
    pub(super) fn new(buckets: Buckets, wanted: Range<usize>) -> Self {
        let waiting = vec![Slot::default(); wanted.len() * BUFFERED];
        Self { buckets, lengths: vec![0; wanted.len()], wanted, waiting }
    }

    /// The bytes of one dealer.
    pub(super) fn bytes(wanted: usize) -> usize {
        wanted * (BUFFERED * size_of::<Slot<W>>() + size_of::<usize>())
    }

    /// Adds to the board's bucket; `flush` takes a bucket's batch when it is whole.
    #[inline]
    pub(super) fn deal<E>(
        &mut self,
        board: u64,
        ways: W,
        flush: &mut impl FnMut(usize, &[Slot<W>]) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert_ne!(board, 0, "a jump leaves a peg");
        let bucket = self.buckets.of(board);
        let Some(length) = self.lengths.get_mut(bucket.wrapping_sub(self.wanted.start)) else {
            return Ok(());
        };
        let start = (bucket - self.wanted.start) * BUFFERED;
        self.waiting[start + *length] = Slot { board, ways };
        *length += 1;
        if *length == BUFFERED {
            *length = 0;
            flush(bucket, &self.waiting[start..start + BUFFERED])?;
        }
        Ok(())
    }

    /// Hands out what still waits.
    pub(super) fn finish<E>(
        self,
        flush: &mut impl FnMut(usize, &[Slot<W>]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (index, (waiting, length)) in self.waiting.chunks(BUFFERED).zip(&self.lengths).enumerate() {
            flush(self.wanted.start + index, &waiting[..*length])?;
        }
        Ok(())
    }
}

/// Sums of counts by board, for threads to add to: a table for each bucket that is wanted.
pub(super) struct Sums<W> {
    wanted: Range<usize>,
    tables: Vec<Mutex<Table<W>>>,
    /// Bytes that the tables may still take.
    room: AtomicUsize,
}

impl<W: Ways> Sums<W> {
    /// Empty sums whose tables may take this many bytes.
    pub(super) fn new(wanted: Range<usize>, room: usize) -> Self {
        let tables = wanted.clone().map(|_| Mutex::default()).collect();
        Self { wanted, tables, room: AtomicUsize::new(room) }
    }

    /// Adds a bucket's batch.
    pub(super) fn add(&self, bucket: usize, batch: &[Slot<W>]) -> Result<(), Full> {
        let mut table = self.lock(bucket);
        while table.is_short_of(batch.len()) {
            let more = table.growth();
            self.room
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(more))
                .map_err(|_| Full::Memory)?;
            table.grow();
        }
        table.add(batch)
    }

    /// The bucket's sums in no order. Its table is gone.
    pub(super) fn take(&self, bucket: usize) -> Vec<Slot<W>> {
        std::mem::take(&mut *self.lock(bucket)).into_slots()
    }

    fn lock(&self, bucket: usize) -> MutexGuard<'_, Table<W>> {
        // A thread that panics ends the count, whatever it has left in the table.
        self.tables[bucket - self.wanted.start].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A map from boards to counts, with linear probing. Its load stays at most three quarters.
pub(super) struct Table<W> {
    slots: Vec<Slot<W>>,
    /// Slots in use.
    used: usize,
}

impl<W> Default for Table<W> {
    fn default() -> Self {
        Self { slots: Vec::new(), used: 0 }
    }
}

impl<W: Ways> Table<W> {
    /// The table of entries with different boards.
    pub(super) fn of(entries: impl ExactSizeIterator<Item = Slot<W>>) -> Self {
        let size = Self::size(entries.len());
        let mut table = Self { slots: vec![Slot::default(); size], used: entries.len() };
        for slot in entries {
            let index = table.index(slot.board);
            table.slots[index] = slot;
        }
        table
    }

    /// The bytes of [`Table::of`] this many entries.
    pub(super) fn bytes(entries: usize) -> usize {
        Self::size(entries) * size_of::<Slot<W>>()
    }

    fn size(entries: usize) -> usize {
        (entries * 4 / 3 + 1).next_power_of_two()
    }

    /// The board's count, if it has one.
    #[inline]
    pub(super) fn get(&self, board: u64) -> Option<W> {
        let slot = self.slots[self.index(board)];
        (slot.board != 0).then_some(slot.ways)
    }

    fn is_short_of(&self, more: usize) -> bool {
        (self.used + more) * 4 > self.slots.len() * 3
    }

    /// The slots after growing.
    fn grown(&self) -> usize {
        (self.slots.len() * 2).max(SLOTS_MIN)
    }

    /// By how many bytes the table grows.
    fn growth(&self) -> usize {
        (self.grown() - self.slots.len()) * size_of::<Slot<W>>()
    }

    fn grow(&mut self) {
        let size = self.grown();
        let smaller = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in smaller.into_iter().filter(|slot| slot.board != 0) {
            let index = self.index(slot.board);
            self.slots[index] = slot;
        }
    }

    /// Asks for the memory of a batch's boards: cores other than ours take the cache too, and it comes all at once.
    pub(super) fn prefetch(&self, batch: &[Slot<W>]) {
        for entry in batch {
            prefetch(&self.slots[self.home(entry.board)]);
        }
    }

    /// Adds a batch, for which there must be room.
    fn add(&mut self, batch: &[Slot<W>]) -> Result<(), Full> {
        self.prefetch(batch);
        for entry in batch {
            let index = self.index(entry.board);
            let slot = &mut self.slots[index];
            self.used += usize::from(slot.board == 0);
            slot.board = entry.board;
            slot.ways = slot.ways.plus(entry.ways).ok_or(Full::Count(entry.board))?;
        }
        Ok(())
    }

    fn into_slots(self) -> Vec<Slot<W>> {
        let mut slots = self.slots;
        slots.retain(|slot| slot.board != 0);
        slots.shrink_to_fit();
        slots
    }

    /// Where the search for a board begins.
    #[inline]
    fn home(&self, board: u64) -> usize {
        // The top bits of the hash chose the bucket; the middle ones differ within it.
        (hash(board) >> 24) as usize & (self.slots.len() - 1)
    }

    /// The slot that has the board, or else the empty one where it belongs. There must be an empty slot.
    #[inline]
    fn index(&self, board: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut index = self.home(board);
        while self.slots[index].board != board && self.slots[index].board != 0 {
            index = (index + 1) & mask;
        }
        index
    }
}

impl<W: Ways> From<Slot<W>> for Entry {
    fn from(slot: Slot<W>) -> Self {
        Self { board: slot.board, ways: slot.ways.wide() }
    }
}

/// Multiplication and folding, so that every hole reaches both the top and the middle bits.
#[inline]
fn hash(board: u64) -> u64 {
    let z = (board ^ board >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z ^ z >> 29
}
