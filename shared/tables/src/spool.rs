//! Finished results that the coordinator has not acknowledged yet. They outlive the worker's process.

use crate::codec::{CodecError, Reader, RecordKind, Writer};
use crate::door::Store;
use crate::error::StorageError;
use crate::jobs::Durability;
use crate::layout::{Change, Family};
use std::ops::ControlFlow;
use std::sync::Arc;

const FORMAT: u8 = 1;

/// Encoded results by number, durable once put.
#[derive(Clone)]
pub struct Spool {
    store: Arc<Store>,
}

impl Spool {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// Stores a result. Synced: it survives any crash once this has returned.
    ///
    /// # Errors
    /// A full or failing disk.
    pub fn put(&self, id: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let key = id.to_be_bytes();
        let mut writer = Writer::with_capacity(FORMAT, bytes.len() + 8);
        writer.bytes(bytes);
        let value = writer.seal(RecordKind::Spooled, &key);
        self.store.write([Change::Put(Family::Spool, key.to_vec(), value)], Durability::Synced)
    }

    /// All results, by ascending number.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] names a result that is not what was put.
    pub fn list(&self) -> Result<Vec<(u64, Vec<u8>)>, StorageError> {
        let mut results = Vec::new();
        self.store.for_each(Family::Spool, |key, value| {
            let result =
                decode(key, value).map_err(|reason| StorageError::corrupt("a spooled result", &reason))?;
            results.push(result);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(results)
    }

    /// Removes a result, if it is there. Not synced: after a crash it may be back, and is then sent and acknowledged once more.
    ///
    /// # Errors
    /// A full or failing disk.
    pub fn remove(&self, id: u64) -> Result<(), StorageError> {
        self.store.write([Change::Delete(Family::Spool, id.to_be_bytes().to_vec())], Durability::Buffered)
    }
}

fn decode(key: &[u8], value: &[u8]) -> Result<(u64, Vec<u8>), CodecError> {
    let mut fields = Reader::of_key(key);
    let id = fields.big_endian::<8>("result number")?;
    fields.finish()?;
    let mut reader = Reader::open(RecordKind::Spooled, FORMAT, key, value)?;
    let bytes = reader.bytes("result")?.to_vec();
    reader.finish()?;
    Ok((id, bytes))
}
