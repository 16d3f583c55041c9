//! What workers tell each other of their tables: entries from some work on, open ones too.
//!
//! Tables that know nothing of each other are what most of a distributed search's extra work comes from: whoever takes over
//! a part of the search begins with an empty table, and transpositions lead everywhere. So an entry that was costly is told to the others as soon
//! as it is found, and again each time that its work has doubled. What is lost on the way costs time only.
//!
//! The number of a namespace is a table's own, so a batch of entries names it once, in words, and its entries carry the rest of the key:
//!
//! ```text
//! words[0] words[1]   8 bytes each    the key's words
//! rest                2 bytes         Key::rest
//! entry               8 bytes         a packed entry (see `entry`), of age 0
//! ```
//!
//! All little endian; checksums are the message's.

use crate::entry::{is_packed, pack, unpack};
use grundy_search::table::{Entry, Key, Namespace, Table};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of an entry that is told.
pub const TOLD_BYTES: usize = 26;

/// The most entries that wait to be told: under 2 MiB, and what a fast search finds worth telling in a second. More are not told.
const WAITING_MAX: usize = 1 << 15;

/// A table that keeps what is worth telling of what is stored in it.
#[derive(Debug)]
pub struct Telling<T> {
    table: T,
    /// Entries of this work and more are told.
    work_min: AtomicU64,
    waiting: Mutex<Vec<(Key, Entry)>>,
}

impl<T: Table> Telling<T> {
    /// Tells nothing until it is told from which work on.
    pub fn new(table: T) -> Self {
        Self { table, work_min: AtomicU64::new(u64::MAX), waiting: Mutex::default() }
    }

    /// Entries of this work and more are told from now on; [`u64::MAX`]: none.
    pub fn tell_from(&self, work_min: u64) {
        self.work_min.store(work_min, Relaxed);
    }

    /// What is to be told of what was stored since the last call.
    pub fn take(&self) -> Vec<(Key, Entry)> {
        std::mem::take(&mut *self.waiting())
    }

    /// Stores what another worker told. It is not told again.
    pub fn hear(&self, key: &Key, entry: Entry) {
        self.table.store(key, entry);
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Key, Entry)>> {
        // Whole entries are pushed, so a panic elsewhere cannot leave the list half changed.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Table> Table for Telling<T> {
    #[inline]
    fn probe(&self, key: &Key) -> Option<Entry> {
        self.table.probe(key)
    }

    #[inline]
    fn prefetch(&self, key: &Key) {
        self.table.prefetch(key);
    }

    #[inline]
    fn store(&self, key: &Key, entry: Entry) {
        if entry.work >= self.work_min.load(Relaxed) && is_news(self.table.probe(key), &entry) {
            let mut waiting = self.waiting();
            if waiting.len() < WAITING_MAX {
                waiting.push((*key, entry));
            }
        }
        self.table.store(key, entry);
    }
}

/// Whether an entry is worth telling to those who know what was known before: it is final now, or its work has passed a power of two.
fn is_news(known: Option<Entry>, entry: &Entry) -> bool {
    match known {
        None => true,
        Some(known) if known.is_final() => false,
        Some(known) => entry.is_final() || known.work.checked_ilog2() < entry.work.checked_ilog2(),
    }
}

/// Writes entries of one namespace.
pub fn encode_told<'a>(entries: impl IntoIterator<Item = &'a (Key, Entry)>) -> Vec<u8> {
    let entries = entries.into_iter();
    let mut bytes = Vec::with_capacity(entries.size_hint().0 * TOLD_BYTES);
    for (key, entry) in entries {
        bytes.extend_from_slice(&key.words[0].to_le_bytes());
        bytes.extend_from_slice(&key.words[1].to_le_bytes());
        bytes.extend_from_slice(&key.rest().to_le_bytes());
        bytes.extend_from_slice(&pack(entry).to_le_bytes());
    }
    bytes
}

/// Why bytes are no entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ToldError {
    /// They are not whole entries.
    #[error("{0} bytes are no whole number of entries: expected a multiple of {TOLD_BYTES}")]
    Length(usize),
    /// An entry's last eight bytes say nothing.
    #[error("entry {0} holds neither numbers nor a value")]
    Entry(usize),
}

/// Reads entries, in a namespace of the reader's.
///
/// # Errors
/// [`ToldError`] for bytes that [`encode_told`] does not write.
pub fn decode_told(bytes: &[u8], namespace: Namespace) -> Result<Vec<(Key, Entry)>, ToldError> {
    let (entries, []) = bytes.as_chunks::<TOLD_BYTES>() else {
        return Err(ToldError::Length(bytes.len()));
    };
    let read = |(index, bytes): (usize, &[u8; TOLD_BYTES])| {
        let word = |from: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[from..from + 8]);
            u64::from_le_bytes(word)
        };
        let key = Key::new([word(0), word(8)], u16::from_le_bytes([bytes[16], bytes[17]]), namespace);
        match unpack(word(18)).filter(|_| is_packed(word(18))) {
            Some(entry) => Ok((key, entry)),
            None => Err(ToldError::Entry(index)),
        }
    };
    entries.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::tests::entries;
    use crate::ram::RamTable;
    use grundy_search::numbers::Numbers;
    use grundy_search::table::Known;
    use proptest::prelude::*;

    const HERE: Namespace = Namespace(3);

    fn open(work: u64) -> Entry {
        Entry { known: Known::Numbers(Numbers::open(5, 7)), work }
    }

    fn table() -> Telling<RamTable> {
        let table = Telling::new(RamTable::with_bytes(1 << 16).expect("64 KiB are free"));
        table.tell_from(100);
        table
    }

    #[test]
    fn what_was_costly_is_told_once_for_each_doubling() {
        let (table, key) = (table(), Key::new([1, 2], 3, HERE));
        let mut told = Vec::new();
        for work in [50, 99, 100, 120, 127, 128, 200, 256, 1000] {
            table.store(&key, open(work));
            told.extend(table.take().into_iter().map(|(_, entry)| entry.work));
        }
        assert_eq!(told, [128, 256, 1000], "from a table that knew it at 99");
        let decided = Entry { known: Known::Numbers(Numbers::decided(true)), work: 1001 };
        table.store(&key, decided);
        assert_eq!(table.take(), [(key, decided)]);
        table.store(&key, decided);
        assert_eq!(table.take(), []);
    }

    #[test]
    fn what_was_heard_is_known_and_not_told() {
        let (table, key) = (table(), Key::new([1, 2], 3, HERE));
        table.hear(&key, open(512));
        assert_eq!(table.take(), []);
        assert_eq!(table.probe(&key), Some(open(512)));
        table.store(&key, open(640));
        assert_eq!(table.take(), [], "its work has not doubled since");
        table.store(&key, open(1024));
        assert_eq!(table.take(), [(key, open(1024))]);
    }

    #[test]
    fn nothing_is_told_before_somebody_listens() {
        let table = Telling::new(RamTable::with_bytes(1 << 16).expect("64 KiB are free"));
        table.store(&Key::new([1, 2], 3, HERE), open(1 << 40));
        assert_eq!(table.take(), []);
    }

    #[test]
    fn more_than_can_wait_is_not_told() {
        let table = Telling::new(RamTable::with_bytes(1 << 10).expect("a KiB is free"));
        table.tell_from(1);
        (0..WAITING_MAX as u64 + 10).for_each(|word| table.store(&Key::new([word, 0], 0, HERE), open(4)));
        assert_eq!(table.take().len(), WAITING_MAX);
        table.store(&Key::new([u64::MAX, 0], 0, HERE), open(4));
        assert_eq!(table.take().len(), 1);
    }

    proptest! {
        #[test]
        fn what_is_told_is_heard(
            told in prop::collection::vec(((any::<[u64; 2]>(), any::<u16>()), entries()), 0..20),
        ) {
            // Work is rounded in a word, so entries that went through one.
            let told: Vec<(Key, Entry)> = told
                .into_iter()
                .filter_map(|((words, rest), entry)| Some((Key::new(words, rest, HERE), unpack(pack(&entry))?)))
                .collect();
            let bytes = encode_told(&told);
            if !bytes.is_empty() {
                prop_assert_eq!(decode_told(&bytes[1..], HERE), Err(ToldError::Length(bytes.len() - 1)));
            }
            prop_assert_eq!(decode_told(&bytes, HERE), Ok(told));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(told) = decode_told(&bytes, HERE) {
                prop_assert_eq!(encode_told(&told), bytes);
            }
        }
    }
}
