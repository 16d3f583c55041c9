//! Tables and storage: the transposition table in memory, the position table on disk behind it, endgame databases, the
//! coordinator's durable jobs, and a worker's spool of results.
//!
//! This is the only crate that compiles C++ (RocksDB), and one module of it opens RocksDB. What enters it are keys,
//! entries, typed records and tables that `grundy-search` fills; no rules of a game, no network, and no decision about a
//! job belongs here.
//!
//! | directory of | opened by | holds |
//! | --- | --- | --- |
//! | a coordinator | [`RocksJobs`] | jobs, claims, leases, finished parts, runs |
//! | a worker | [`WorkerStorage`] | [`PositionTable`], [`Spool`] |
//! | all workers of a machine | [`EndgameTables`] | sealed files, see [`endgame`] |

pub mod budget;
pub mod codec;
mod door;
pub mod endgame;
pub mod entry;
pub mod error;
pub mod jobs;
pub mod layout;
pub mod machine;
mod marker;
pub mod options;
pub mod positions;
pub mod ram;
pub mod spill;
pub mod spool;
pub mod statistics;
pub mod telling;
pub mod tiered;
pub mod worker;

pub use budget::{
    PROCESS_BYTES, StorageMemory, WorkerMemory, endgame_memory_max, split_memory, worker_memory_min,
};
pub use endgame::{EndgameMemory, EndgameTables};
pub use error::StorageError;
pub use jobs::memory::MemoryJobs;
pub use jobs::rocks::RocksJobs;
pub use jobs::{Durability, JobStorage};
pub use options::TierOptions;
pub use positions::{Contradiction, PositionTable};
pub use ram::RamTable;
pub use spill::FileSpill;
pub use spool::Spool;
pub use statistics::TableStatistics;
pub use telling::Telling;
pub use tiered::TieredTable;
pub use worker::WorkerStorage;
