//! The data directory: the warm table and the spool of results.

use crate::error::WorkerError;
use grundy_tables::{RamTable, Spool, TierOptions, TieredTable, WorkerMemory, WorkerStorage};
use std::path::Path;
use std::sync::Arc;
use tracing::info;

/// What an open data directory offers. It stays locked until both are dropped.
pub struct Storage {
    /// RAM in front of RocksDB, shared by all engines.
    pub table: Arc<TieredTable>,
    /// Results that were not acknowledged yet.
    pub spool: Spool,
}

/// Opens or creates a worker's data directory, with this memory.
///
/// # Errors
/// [`WorkerError::Storage`] names the directory and what to do.
pub fn open(directory: &Path, memory: &WorkerMemory) -> Result<Storage, WorkerError> {
    let storage = WorkerStorage::open(directory, &memory.storage)?;
    let ram = RamTable::with_bytes(memory.ram_table)?;
    let table = TieredTable::new(ram, storage.positions()?, TierOptions::default())?;
    let entries = table.entries_on_disk();
    info!(
        event = "table", data = %directory.display(), entries, ram_bytes = memory.ram_table,
        "{} entries found in the table on disk", entries
    );
    Ok(Storage { table: Arc::new(table), spool: storage.spool() })
}
