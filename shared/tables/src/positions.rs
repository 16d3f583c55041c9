//! The position table on disk: costly entries that should outlive the process.
//!
//! ```text
//! key      tag u32 BE (namespace, then the rest of the state), words u64 BE, u64 BE
//! value    a sealed record of one packed entry (see `entry`)
//! ```

use crate::codec::{CodecError, Reader, RecordKind, Writer};
use crate::door::Store;
use crate::entry::{contradict, is_packed, merge, pack, unpack};
use crate::error::StorageError;
use crate::jobs::Durability;
use crate::layout::{Change, Family};
use grundy_search::table::{Entry, Key, Namespace};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const FORMAT: u8 = 1;
const KEY_BYTES: usize = 20;

/// Two final entries of one key that cannot both be true: a wrong program, wrong memory, or one key for two claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contradiction {
    /// The key.
    pub key: Key,
    /// The name of its namespace, if it is registered.
    pub namespace: Option<String>,
    /// The entry that was there and stays.
    pub kept: Entry,
    /// The entry that was offered and is not stored.
    pub offered: Entry,
}

/// What a batch came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Merged {
    /// Entries written.
    pub written: usize,
    /// The first contradiction met; its offered entry was not written.
    pub contradiction: Option<Contradiction>,
    /// The first stored entry that was not what had been written; the offered entry has replaced it.
    pub corrupt: Option<StorageError>,
}

/// The position table in a worker's data directory.
///
/// One writer at a time: [`merge`](Self::merge) reads before it writes.
pub struct PositionTable {
    store: Arc<Store>,
    namespaces: Mutex<BTreeMap<String, Namespace>>,
}

fn encode_key(key: &Key) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    bytes[..4].copy_from_slice(&key.tag.to_be_bytes());
    bytes[4..12].copy_from_slice(&key.words[0].to_be_bytes());
    bytes[12..].copy_from_slice(&key.words[1].to_be_bytes());
    bytes
}

fn decode_key(bytes: &[u8]) -> Result<Key, CodecError> {
    let mut fields = Reader::of_key(bytes);
    let tag = fields.big_endian::<4>("tag")? as u32;
    let words = [fields.big_endian::<8>("first key word")?, fields.big_endian::<8>("second key word")?];
    fields.finish()?;
    Ok(Key { words, tag })
}

fn encode_entry(key: &[u8; KEY_BYTES], entry: &Entry) -> Vec<u8> {
    let mut writer = Writer::with_capacity(FORMAT, 8);
    writer.u64(pack(entry));
    writer.seal(RecordKind::Position, key)
}

fn decode_entry(key: &[u8], value: &[u8]) -> Result<Entry, CodecError> {
    let mut reader = Reader::open(RecordKind::Position, FORMAT, key, value)?;
    let word = reader.u64("entry")?;
    let entry = unpack(word).filter(|_| is_packed(word)).ok_or_else(|| reader.invalid(8, "entry", word))?;
    reader.finish()?;
    Ok(entry)
}

fn corrupt(key: &Key, reason: &CodecError) -> StorageError {
    let [first, second] = key.words;
    StorageError::corrupt(
        format!("the table entry of key {:08x} {first:016x} {second:016x}", key.tag),
        reason,
    )
}

fn decode_namespace(name: &[u8], value: &[u8]) -> Result<(String, Namespace), CodecError> {
    let text = std::str::from_utf8(name)
        .map_err(|_| CodecError::Text { offset: 0, expected: "namespace's name" })?;
    let mut reader = Reader::open(RecordKind::Namespace, FORMAT, name, value)?;
    let namespace = Namespace(reader.u16("namespace number")?);
    reader.finish()?;
    Ok((text.to_owned(), namespace))
}

impl PositionTable {
    pub(crate) fn new(store: Arc<Store>) -> Result<Self, StorageError> {
        let mut namespaces = BTreeMap::new();
        store.for_each(Family::Namespaces, |name, value| {
            let (name, namespace) = decode_namespace(name, value)
                .map_err(|reason| StorageError::corrupt("the namespace register", &reason))?;
            namespaces.insert(name, namespace);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self { store, namespaces: Mutex::new(namespaces) })
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        self.store.directory()
    }

    /// The number of a namespace: the one it has had in this directory before, or the next free one, registered durably.
    ///
    /// # Errors
    /// [`StorageError::NamespacesFull`]; a full or failing disk.
    pub fn namespace(&self, name: &str) -> Result<Namespace, StorageError> {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&namespace) = namespaces.get(name) {
            return Ok(namespace);
        }
        // None is ever removed, so their count is the next free number.
        let next = u16::try_from(namespaces.len());
        let namespace = Namespace(next.map_err(|_| StorageError::NamespacesFull { name: name.to_owned() })?);
        let mut writer = Writer::new(FORMAT);
        writer.u16(namespace.0);
        let value = writer.seal(RecordKind::Namespace, name.as_bytes());
        self.store.write([Change::Put(Family::Namespaces, name.into(), value)], Durability::Synced)?;
        namespaces.insert(name.to_owned(), namespace);
        Ok(namespace)
    }

    /// The name of a namespace.
    pub fn namespace_name(&self, namespace: Namespace) -> Option<String> {
        let namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        namespaces.iter().find(|(_, number)| **number == namespace).map(|(name, _)| name.clone())
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it is not what was written; a failing disk.
    pub fn get(&self, key: &Key) -> Result<Option<Entry>, StorageError> {
        let bytes = encode_key(key);
        let value = self.store.get(Family::Positions, &bytes)?;
        value.map(|value| decode_entry(&bytes, &value)).transpose().map_err(|reason| corrupt(key, &reason))
    }

    /// Merges entries into the table, unsynced: each key keeps its final or costlier entry. Contradictions are
    /// reported and leave what is there. `entries` may hold a key more than once.
    ///
    /// # Errors
    /// A full or failing disk; nothing of the batch is stored then.
    pub fn merge(&self, entries: &[(Key, Entry)]) -> Result<Merged, StorageError> {
        let mut merged = Merged::default();
        // Keys on disk sort as `Key` does not (the tag comes first), so sort what is asked for.
        let mut batch: BTreeMap<[u8; KEY_BYTES], (Key, Entry)> = BTreeMap::new();
        for (key, entry) in entries {
            let slot = batch.entry(encode_key(key)).or_insert((*key, *entry));
            match self.joined(key, &slot.1, entry) {
                Ok(joined) => slot.1 = joined,
                Err(contradiction) => merged.contradiction = merged.contradiction.or(Some(contradiction)),
            }
        }
        let stored = self.store.get_sorted(Family::Positions, batch.keys())?;
        let mut changes = Vec::with_capacity(batch.len());
        for ((bytes, (key, entry)), value) in batch.iter().zip(stored) {
            let old = value.map(|value| decode_entry(bytes, &value)).transpose();
            let new = match old {
                Ok(None) => *entry,
                Ok(Some(old)) => match self.joined(key, &old, entry) {
                    Ok(joined) if pack(&joined) == pack(&old) => continue,
                    Ok(joined) => joined,
                    Err(contradiction) => {
                        merged.contradiction = merged.contradiction.or(Some(contradiction));
                        continue;
                    }
                },
                Err(reason) => {
                    merged.corrupt = merged.corrupt.or_else(|| Some(corrupt(key, &reason)));
                    *entry
                }
            };
            changes.push(Change::Put(Family::Positions, bytes.to_vec(), encode_entry(bytes, &new)));
        }
        merged.written = changes.len();
        self.store.write(changes, Durability::Buffered)?;
        Ok(merged)
    }

    fn joined(&self, key: &Key, old: &Entry, new: &Entry) -> Result<Entry, Contradiction> {
        if !contradict(old, new) {
            return Ok(merge(old, new));
        }
        let namespace = self.namespace_name(Namespace((key.tag >> 16) as u16));
        Err(Contradiction { key: *key, namespace, kept: *old, offered: *new })
    }

    /// Hands over all entries in key order until told to break; entries that are not what was written come as errors.
    ///
    /// # Errors
    /// A failing disk, or corruption of more than one entry.
    pub fn for_each(
        &self,
        mut visit: impl FnMut(Result<(Key, Entry), StorageError>) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        self.store.for_each(Family::Positions, |bytes, value| {
            let key = decode_key(bytes).map_err(|reason| StorageError::corrupt("a table key", &reason));
            let item = key.and_then(|key| match decode_entry(bytes, value) {
                Ok(entry) => Ok((key, entry)),
                Err(reason) => Err(corrupt(&key, &reason)),
            });
            Ok(visit(item))
        })
    }

    /// About how many entries it holds.
    pub fn len(&self) -> u64 {
        self.store.estimated_keys(Family::Positions)
    }

    /// Whether it holds nothing, as far as [`len`](Self::len) knows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes everything merged so far durable.
    ///
    /// # Errors
    /// A failing disk.
    pub fn sync(&self) -> Result<(), StorageError> {
        self.store.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::tests::entries;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Key> {
        (any::<[u64; 2]>(), any::<u32>()).prop_map(|(words, tag)| Key { words, tag })
    }

    /// The example of `docs/formats.md` is what is written.
    #[test]
    fn the_documented_example_is_right() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let key = encode_key(&Key::new([0x7fff, 0], 0x8300, Namespace(0)));
        let known = grundy_search::table::Known::Numbers(grundy_search::numbers::Numbers::decided(true));
        let value = encode_entry(&key, &Entry { known, work: 1_500 });
        let documented = words(include_str!("../../../docs/formats.md"));
        let example = format!("key {} value {}", hex(&key), hex(&value));
        assert!(documented.contains(&example), "{example}");
    }

    proptest! {
        #[test]
        fn entries_come_back_and_damage_is_detected(key in keys(), entry in entries(), flip in 1..=255u8) {
            let bytes = encode_key(&key);
            let value = encode_entry(&bytes, &entry);
            prop_assert_eq!(decode_key(&bytes), Ok(key));
            let back = decode_entry(&bytes, &value).expect("it is intact");
            prop_assert_eq!(pack(&back), pack(&entry));
            for place in 0..value.len() {
                let mut damaged = value.clone();
                damaged[place] ^= flip;
                prop_assert!(decode_entry(&bytes, &damaged).is_err(), "byte {}", place);
                prop_assert!(decode_entry(&bytes, &value[..place]).is_err(), "{} bytes", place);
            }
            for place in 0..bytes.len() {
                let mut other = bytes;
                other[place] ^= flip;
                prop_assert!(decode_entry(&other, &value).is_err(), "byte {} of the key", place);
            }
        }

        #[test]
        fn keys_sort_by_tag_and_words(a in keys(), b in keys(), same_tag: bool) {
            let b = if same_tag { Key { tag: a.tag, ..b } } else { b };
            let order = |key: &Key| (key.tag, key.words);
            prop_assert_eq!(encode_key(&a).cmp(&encode_key(&b)), order(&a).cmp(&order(&b)));
        }

        #[test]
        fn any_bytes_are_refused_without_a_panic(key in prop::collection::vec(any::<u8>(), 0..24), value in prop::collection::vec(any::<u8>(), 0..24)) {
            prop_assert!(decode_key(&key).is_ok() == (key.len() == KEY_BYTES));
            prop_assert!(decode_entry(&key, &value).is_err());
        }
    }
}
