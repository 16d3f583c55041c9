//! Where a count in one process keeps the parts of its levels between the steps.

use super::accumulate::{Slot, Ways, Wide};
use super::error::CountError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A level's part: boards of some buckets with their counts, each board once, in no order.
#[derive(Debug)]
pub(super) enum Part {
    Narrow(Vec<Slot<u64>>),
    Wide(Vec<Slot<Wide>>),
}

impl Part {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Narrow(slots) => slots.len(),
            Self::Wide(slots) => slots.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Narrow(slots) => size_of_val(&slots[..]),
            Self::Wide(slots) => size_of_val(&slots[..]),
        }
    }

    /// The entry of this index, with its count in another type: `None` if that is too narrow.
    #[inline]
    pub(super) fn get<W: Ways>(&self, index: usize) -> Option<Slot<W>> {
        let (board, ways) = match self {
            Self::Narrow(slots) => (slots[index].board, slots[index].ways.wide()),
            Self::Wide(slots) => (slots[index].board, slots[index].ways.wide()),
        };
        W::from_wide(ways).map(|ways| Slot { board, ways })
    }
}

/// Counts that a part can be made of.
pub(super) trait Kept: Ways {
    fn part(slots: Vec<Slot<Self>>) -> Part;
}

impl Kept for u64 {
    fn part(slots: Vec<Slot<Self>>) -> Part {
        Part::Narrow(slots)
    }
}

impl Kept for Wide {
    fn part(slots: Vec<Slot<Self>>) -> Part {
        Part::Wide(slots)
    }
}

/// Keeps parts by level and number. Threads put, get and clear at once; a shelf that writes to a disk fits in here.
pub(super) trait Shelf: Sync {
    fn put(&self, level: u32, part: usize, entries: Part) -> Result<(), CountError>;
    /// A part that was put and not cleared.
    fn get(&self, level: u32, part: usize) -> Result<Arc<Part>, CountError>;
    fn clear(&self, level: u32);
    /// The bytes that the shelf holds in memory.
    fn bytes(&self) -> usize;
}

/// Keeps everything in memory.
#[derive(Default)]
pub(super) struct MemoryShelf(Mutex<Parts>);

/// The parts, and their bytes.
type Parts = (BTreeMap<(u32, usize), Arc<Part>>, usize);

impl MemoryShelf {
    fn lock(&self) -> MutexGuard<'_, Parts> {
        // What it protects is changed in single steps.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf for MemoryShelf {
    fn put(&self, level: u32, part: usize, entries: Part) -> Result<(), CountError> {
        let mut kept = self.lock();
        kept.1 += entries.bytes();
        if let Some(before) = kept.0.insert((level, part), Arc::new(entries)) {
            kept.1 -= before.bytes();
        }
        Ok(())
    }

    fn get(&self, level: u32, part: usize) -> Result<Arc<Part>, CountError> {
        let kept = self.lock();
        Ok(kept.0.get(&(level, part)).map_or_else(|| Arc::new(Part::Narrow(Vec::new())), Arc::clone))
    }

    fn clear(&self, level: u32) {
        let mut kept = self.lock();
        let later = kept.0.split_off(&(level, 0));
        for ((number, part), entries) in later {
            if number == level {
                kept.1 -= entries.bytes();
            } else {
                kept.0.insert((number, part), entries);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.lock().1
    }
}
