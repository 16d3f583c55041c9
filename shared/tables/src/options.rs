//! Which entries are worth a place on disk.

use grundy_search::table::Entry;

/// What is worth a place on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierOptions {
    /// Final entries that cost at least this many nodes go to disk.
    pub final_work_min: u64,
    /// Open entries that cost at least this many nodes go to disk. Higher than the other, since their numbers change with each visit.
    pub open_work_min: u64,
}

impl TierOptions {
    /// Thresholds from one number: open entries must have cost 16 times as much as final ones.
    pub fn with_work_min(final_work_min: u64) -> Self {
        Self { final_work_min, open_work_min: final_work_min.saturating_mul(16) }
    }

    /// Whether the entry is worth it.
    #[inline]
    pub fn covers(&self, entry: &Entry) -> bool {
        entry.work >= if entry.is_final() { self.final_work_min } else { self.open_work_min }
    }
}

impl Default for TierOptions {
    /// Final entries from 1024 nodes on: about a millisecond of search, more than it costs to write and read one back, and in a
    /// proof-number search about one node in a thousand.
    fn default() -> Self {
        Self::with_work_min(1024)
    }
}
