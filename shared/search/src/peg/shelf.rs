//! Where a count in one process keeps the parts of its levels between the steps: in memory, and what is too much for that
//! wherever its caller says.

use super::accumulate::{Slot, Ways, Wide};
use super::error::CountError;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps what does not fit into memory until it is cleared. Threads put and get at once; a key is put once before it is cleared.
pub trait Spill: Sync {
    /// Keeps a part of a level.
    ///
    /// # Errors
    /// The medium's.
    fn put(&self, level: u32, part: usize, bytes: &[u8]) -> io::Result<()>;

    /// The bytes that were put.
    ///
    /// # Errors
    /// The medium's, or that the bytes are not those that were put.
    fn get(&self, level: u32, part: usize) -> io::Result<Vec<u8>>;

    /// Forgets all parts of a level, if there are any.
    fn clear(&self, level: u32);
}

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

    /// The part as bytes: for each entry the board, u64, and its count, u64 or u128, little-endian; behind them the size of a count.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes() + 1);
        match self {
            Self::Narrow(slots) => slots.iter().for_each(|slot| {
                bytes.extend_from_slice(&slot.board.to_le_bytes());
                bytes.extend_from_slice(&slot.ways.to_le_bytes());
            }),
            Self::Wide(slots) => slots.iter().for_each(|slot| {
                bytes.extend_from_slice(&slot.board.to_le_bytes());
                bytes.extend_from_slice(&slot.ways.wide().to_le_bytes());
            }),
        }
        bytes.push(match self {
            Self::Narrow(_) => size_of::<u64>() as u8,
            Self::Wide(_) => size_of::<u128>() as u8,
        });
        bytes
    }

    /// The inverse of [`Part::to_bytes`].
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (size, entries) = bytes.split_last()?;
        match usize::from(*size) {
            8 => slots(entries, |ways| Some(u64::from_le_bytes(ways.try_into().ok()?))).map(Self::Narrow),
            16 => slots(entries, |ways| Wide::from_wide(u128::from_le_bytes(ways.try_into().ok()?)))
                .map(Self::Wide),
            _ => None,
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

/// Reads entries whose counts take as many bytes in a slot as among the bytes.
fn slots<W: Ways>(bytes: &[u8], ways: impl Fn(&[u8]) -> Option<W>) -> Option<Vec<Slot<W>>> {
    let entries = bytes.chunks_exact(size_of::<Slot<W>>());
    if !entries.remainder().is_empty() {
        return None;
    }
    let slot = |entry: &[u8]| {
        let (board, count) = entry.split_first_chunk()?;
        Some(Slot { board: u64::from_le_bytes(*board), ways: ways(count)? })
    };
    entries.map(slot).collect()
}

/// Counts that a part can be made of.
pub(super) trait Counts: Ways {
    fn part(slots: Vec<Slot<Self>>) -> Part;
}

impl Counts for u64 {
    fn part(slots: Vec<Slot<Self>>) -> Part {
        Part::Narrow(slots)
    }
}

impl Counts for Wide {
    fn part(slots: Vec<Slot<Self>>) -> Part {
        Part::Wide(slots)
    }
}

/// Keeps parts by level and number. Threads put, get and clear at once.
pub(super) struct Shelf<'a> {
    parts: Mutex<Parts>,
    /// What there is for parts beyond the bytes that may stay in memory.
    spill: Option<&'a dyn Spill>,
    bytes_max: usize,
}

#[derive(Default)]
struct Parts {
    kept: BTreeMap<(u32, usize), Kept>,
    /// The bytes of all that are here.
    bytes: usize,
}

/// A part.
struct Kept {
    entries: usize,
    /// The part itself, unless it was spilled.
    here: Option<Arc<Part>>,
}

impl<'a> Shelf<'a> {
    /// A shelf that spills what is put beyond so many bytes, or keeps everything.
    pub(super) fn new(bytes_max: usize, spill: Option<&'a dyn Spill>) -> Self {
        Self { parts: Mutex::default(), spill, bytes_max }
    }

    /// Puts a part that is not there.
    pub(super) fn put(&self, level: u32, part: usize, entries: Part) -> Result<(), CountError> {
        let mut kept = Kept { entries: entries.len(), here: None };
        match self.spill {
            Some(spill) if self.bytes().saturating_add(entries.bytes()) > self.bytes_max => {
                spill.put(level, part, &entries.to_bytes()).map_err(CountError::spill)?;
            }
            _ => kept.here = Some(Arc::new(entries)),
        }
        let mut parts = self.lock();
        parts.bytes += kept.here.as_ref().map_or(0, |part| part.bytes());
        parts.kept.insert((level, part), kept);
        Ok(())
    }

    /// A part; one that was never put has no entries.
    pub(super) fn get(&self, level: u32, part: usize) -> Result<Arc<Part>, CountError> {
        let spill = match self.lock().kept.get(&(level, part)) {
            None => return Ok(Arc::new(Part::Narrow(Vec::new()))),
            Some(Kept { here: Some(part), .. }) => return Ok(Arc::clone(part)),
            Some(Kept { here: None, .. }) => self.spill,
        };
        let bytes = spill
            .map_or_else(|| Err(io::Error::from(io::ErrorKind::NotFound)), |spill| spill.get(level, part));
        let bytes = bytes.map_err(CountError::spill)?;
        let damaged = || CountError::spill(io::Error::from(io::ErrorKind::InvalidData));
        Part::from_bytes(&bytes).map(Arc::new).ok_or_else(damaged)
    }

    /// How many entries a part has.
    pub(super) fn entries(&self, level: u32, part: usize) -> usize {
        self.lock().kept.get(&(level, part)).map_or(0, |kept| kept.entries)
    }

    /// Forgets a level's parts.
    pub(super) fn clear(&self, level: u32) {
        let mut parts = self.lock();
        let mut cleared = parts.kept.split_off(&(level, 0));
        parts.kept.append(&mut cleared.split_off(&(level + 1, 0)));
        parts.bytes -=
            cleared.values().filter_map(|kept| kept.here.as_ref()).map(|part| part.bytes()).sum::<usize>();
        if let Some(spill) = self.spill {
            spill.clear(level);
        }
    }

    /// The bytes that the shelf holds in memory.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        // What it protects is changed in single steps.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spills into a map, and may damage what it gives back.
    #[derive(Default)]
    struct Map(Mutex<BTreeMap<(u32, usize), Vec<u8>>>, bool);

    impl Spill for Map {
        fn put(&self, level: u32, part: usize, bytes: &[u8]) -> io::Result<()> {
            let before = self.0.lock().expect("no panic").insert((level, part), bytes.to_vec());
            assert_eq!(before, None, "put once");
            Ok(())
        }

        fn get(&self, level: u32, part: usize) -> io::Result<Vec<u8>> {
            let map = self.0.lock().expect("no panic");
            let bytes = map.get(&(level, part)).ok_or(io::ErrorKind::NotFound)?;
            Ok(bytes[..bytes.len() - usize::from(self.1)].to_vec())
        }

        fn clear(&self, level: u32) {
            self.0.lock().expect("no panic").retain(|(number, _), _| *number != level);
        }
    }

    fn parts() -> [Part; 3] {
        let narrow = (1..100).map(|board| Slot { board, ways: board * board }).collect();
        let wide = (1..100).map(|board| Slot {
            board,
            ways: Wide::from_wide(u128::from(board) << 100).expect("any number"),
        });
        [Part::Narrow(narrow), Part::Wide(wide.collect()), Part::Narrow(Vec::new())]
    }

    fn entries(part: &Part) -> Vec<(u64, u128)> {
        let slots = (0..part.len()).filter_map(|index| part.get::<Wide>(index));
        slots.map(|slot| (slot.board, slot.ways.wide())).collect()
    }

    #[test]
    fn parts_come_back_from_memory_and_from_elsewhere() -> Result<(), CountError> {
        let map = Map::default();
        for (bytes_max, spilled) in [(usize::MAX, 0), (3000, 3), (0, 4)] {
            let shelf = Shelf::new(bytes_max, Some(&map));
            for level in [3, 4] {
                for (number, part) in parts().into_iter().enumerate() {
                    shelf.put(level, number, part)?;
                }
            }
            assert_eq!(map.0.lock().expect("no panic").len(), spilled, "{bytes_max}");
            for (number, part) in parts().iter().enumerate() {
                assert_eq!(entries(&*shelf.get(4, number)?), entries(part));
                assert_eq!(shelf.entries(4, number), part.len());
            }
            shelf.clear(3);
            assert_eq!((shelf.entries(3, 0), shelf.get(3, 0)?.len()), (0, 0));
            assert_eq!(entries(&*shelf.get(4, 1)?), entries(&parts()[1]));
            shelf.clear(4);
            assert_eq!((shelf.bytes(), map.0.lock().expect("no panic").len()), (0, 0));
        }
        Ok(())
    }

    #[test]
    fn a_part_that_comes_back_short_is_an_error() -> Result<(), CountError> {
        let map = Map(Mutex::default(), true);
        let shelf = Shelf::new(0, Some(&map));
        let [part, ..] = parts();
        shelf.put(0, 0, part)?;
        assert!(matches!(shelf.get(0, 0), Err(CountError::Spill { .. })));
        Ok(())
    }
}
