//! Job storage on disk.

use super::encoding::{
    EPOCH_KEY, LOADED, change, decode_epoch, decode_run, epoch_change, load_into, run_change, run_key,
    run_place,
};
use super::record::{Epoch, JobId, Loaded, PartId, Write};
use super::{Durability, JobStorage};
use crate::budget::StorageMemory;
use crate::door::Store;
use crate::error::StorageError;
use crate::layout::{Change, Family, Kind};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// [`JobStorage`] in a data directory.
///
/// All families share one write-ahead log, so commits keep their order across them. Once a commit has failed, all later
/// ones fail too until the directory is reopened; of a commit whose sync failed, all or nothing is there then.
pub struct RocksJobs {
    store: Arc<Store>,
    epoch: Epoch,
}

impl RocksJobs {
    /// Opens or creates a coordinator's data directory and starts the next epoch.
    ///
    /// # Errors
    /// [`StorageError`] names the directory, what is wrong with it, and what to do.
    pub fn open(directory: &Path, memory: &StorageMemory) -> Result<Self, StorageError> {
        let store = Store::open(directory, Kind::Coordinator, memory)?;
        let epoch = Epoch(last_epoch(&store)?.0.saturating_add(1));
        store.write([epoch_change(epoch)], Durability::Synced)?;
        Ok(Self { store, epoch })
    }

    /// Reads everything in a coordinator's data directory that no coordinator has open, with the epoch of its last run. Not a byte
    /// of the directory is changed, so it may lie on a disk that cannot be written.
    ///
    /// # Errors
    /// [`StorageError`] names the directory, what is wrong with it, and what to do.
    pub fn read(directory: &Path, memory: &StorageMemory) -> Result<(Epoch, Loaded), StorageError> {
        let store = Store::open_read_only(directory, Kind::Coordinator, memory)?;
        Ok((last_epoch(&store)?, load(&store)?))
    }
}

/// The epoch of the last run; 0 before the first.
fn last_epoch(store: &Store) -> Result<Epoch, StorageError> {
    store.get(Family::Meta, EPOCH_KEY)?.map_or(Ok(Epoch(0)), |value| decode_epoch(&value))
}

fn load(store: &Store) -> Result<Loaded, StorageError> {
    let mut loaded = Loaded::default();
    for family in LOADED {
        store.for_each(family, |key, value| {
            load_into(&mut loaded, family, key, value)?;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(loaded)
}

impl JobStorage for RocksJobs {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn load(&self) -> Result<Loaded, StorageError> {
        load(&self.store)
    }

    fn commit(&self, writes: &[Write], durability: Durability) -> Result<(), StorageError> {
        let changes: Vec<Change> = writes.iter().map(change).collect();
        let dropped: Vec<_> = changes
            .iter()
            .filter_map(|change| match change {
                Change::DeleteRange(family, from, to) => Some((*family, from.clone(), to.clone())),
                Change::Put(..) | Change::Delete(..) => None,
            })
            .collect();
        // Files go at once, so the deletion must not be one that a crash could still undo.
        let durability = if dropped.is_empty() { durability } else { Durability::Synced };
        self.store.write(changes, durability)?;
        for (family, from, to) in dropped {
            self.store.delete_files(family, &from, &to)?;
        }
        Ok(())
    }

    fn put_run(&self, job: JobId, from: PartId, to_part: u32, bytes: &[u8]) -> Result<(), StorageError> {
        self.store.write([run_change(job, from, to_part, bytes)], Durability::Buffered)
    }

    fn get_run(&self, job: JobId, from: PartId, to_part: u32) -> Result<Vec<u8>, StorageError> {
        match self.store.get(Family::Runs, &run_key(job, from, to_part))? {
            Some(value) => decode_run(job, from, to_part, &value),
            None => Err(StorageError::Missing { place: run_place(job, from, to_part) }),
        }
    }
}
