//! Tables for virtual workers: each has its own, and all read the same endgame databases.

use super::{SimulationError, WorkerTables};
use grundy_search::cram::tables::{Size, StripTable, StripTables};
use grundy_search::engine::EngineTables;
use grundy_search::kalah::tables::{KalahTables, KalahWish};
use grundy_tables::{RamTable, Telling};
use std::sync::{Arc, Mutex, PoisonError};

/// The least of a worker's tables: for some thousand entries.
const WORKER_BYTES_MIN: usize = 1 << 20;

/// Shares `bytes` out among the tables of so many workers. Kalah keeps what it finds in its engines' tables, the other games in the table.
///
/// # Errors
/// [`SimulationError::Memory`].
pub fn worker_tables(
    databases: &Arc<dyn EngineTables>,
    bytes: usize,
    workers: u32,
    is_kalah: bool,
) -> Result<WorkerTables, SimulationError> {
    let own = bytes / workers.max(1) as usize;
    if own < WORKER_BYTES_MIN {
        return Err(SimulationError::Memory { workers });
    }
    let table = RamTable::with_bytes(if is_kalah { WORKER_BYTES_MIN } else { own });
    let table = Arc::new(Telling::new(table.map_err(|_| SimulationError::Memory { workers })?));
    let shared =
        Arc::new(OwnTables { databases: Arc::clone(databases), bytes: own, kalah: Mutex::default() });
    Ok(WorkerTables { table, shared })
}

/// What one worker's engines share.
struct OwnTables {
    databases: Arc<dyn EngineTables>,
    bytes: usize,
    kalah: Mutex<Option<(KalahWish, Arc<KalahTables>)>>,
}

impl StripTables for OwnTables {
    fn bytes(&self) -> usize {
        self.databases.bytes()
    }

    fn strip_table(&self, size: Size) -> Option<Arc<StripTable>> {
        self.databases.strip_table(size)
    }
}

impl EngineTables for OwnTables {
    fn kalah(&self, wish: KalahWish) -> Option<Arc<KalahTables>> {
        let mut kalah = self.kalah.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, tables)) = &*kalah
            && of.serves(wish)
        {
            return Some(Arc::clone(tables));
        }
        let layers = self.databases.kalah(wish)?.layers.clone();
        let tables = Arc::new(KalahTables::new(layers, self.bytes)?);
        *kalah = Some((wish, Arc::clone(&tables)));
        Some(tables)
    }
}
