//! A worker's data directory: position table and spool in one database.

use crate::budget::StorageMemory;
use crate::door::Store;
use crate::error::StorageError;
use crate::layout::Kind;
use crate::positions::PositionTable;
use crate::spool::Spool;
use std::path::Path;
use std::sync::Arc;

/// An open data directory of a worker. The directory stays locked until this and everything made from it is dropped.
pub struct WorkerStorage {
    store: Arc<Store>,
}

impl WorkerStorage {
    /// Opens or creates a worker's data directory.
    ///
    /// # Errors
    /// [`StorageError`] names the directory, what is wrong with it, and what to do.
    pub fn open(directory: &Path, memory: &StorageMemory) -> Result<Self, StorageError> {
        Ok(Self { store: Store::open(directory, Kind::WorkerTable, memory)? })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.store.directory()
    }

    /// Its position table.
    ///
    /// # Errors
    /// An unreadable namespace register.
    pub fn positions(&self) -> Result<PositionTable, StorageError> {
        PositionTable::new(Arc::clone(&self.store))
    }

    /// Its spool of unacknowledged results.
    pub fn spool(&self) -> Spool {
        Spool::new(Arc::clone(&self.store))
    }
}
