//! Counters of a table that every probe touches, and what they add up to.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// A table's counts since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableStatistics {
    /// Probes that found an entry.
    pub hits: u64,
    /// Probes that found none.
    pub misses: u64,
    /// Entries offered by engines.
    pub stores: u64,
    /// Entries worth keeping that were not offered to the disk because its queue was full.
    pub dropped: u64,
    /// Entries written to disk.
    pub disk_writes: u64,
    /// Entries read from disk into RAM when the table was opened.
    pub loaded: u64,
    /// Entries that had left RAM and were read back from disk.
    pub read_back: u64,
    /// Entries on disk that were not what had been written; they are skipped and overwritten.
    pub corrupt: u64,
    /// Batches that could not be written.
    pub failed_writes: u64,
}

/// Counts of one stripe of threads, on cache lines of their own: threads that count must not wait for each other.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Stripe {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) stores: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// A power of two; threads beyond it share stripes.
const STRIPES: usize = 64;

/// Striped counters.
pub(crate) struct Counters(Box<[Stripe]>);

static NEXT_STRIPE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }

    /// This thread's stripe.
    #[inline]
    pub(crate) fn stripe(&self) -> &Stripe {
        let index = STRIPE.with(|stripe| {
            if stripe.get() == usize::MAX {
                stripe.set(NEXT_STRIPE.fetch_add(1, Relaxed) % STRIPES);
            }
            stripe.get()
        });
        &self.0[index]
    }

    /// The sum of one count.
    pub(crate) fn sum(&self, count: impl Fn(&Stripe) -> &AtomicU64) -> u64 {
        self.0.iter().map(|stripe| count(stripe).load(Relaxed)).sum()
    }
}
