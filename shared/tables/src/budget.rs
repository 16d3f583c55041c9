//! How a program's memory budget is shared out.

/// Memory for RocksDB, in bytes. Soft bounds: RocksDB counts blocks and write buffers, not every small allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StorageMemory {
    /// Blocks, indexes and filters read from disk.
    pub cache: usize,
    /// Writes on their way to disk, over all column families.
    pub write_buffers: usize,
}

impl Default for StorageMemory {
    /// 64 MiB each: enough for a coordinator of any size, whose records are read once, at start.
    fn default() -> Self {
        Self { cache: 64 << 20, write_buffers: 64 << 20 }
    }
}

/// A worker's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkerMemory {
    /// What the engines of the process may share: tables of small positions.
    pub engines: usize,
    /// The RAM table.
    pub ram_table: usize,
    /// RocksDB's share.
    pub storage: StorageMemory,
}

/// What a process needs besides tables: code, stacks, connections, the allocator's slack. Measured at some 20 MiB.
pub const PROCESS_BYTES: usize = 24 << 20;

/// What the engines of one process share at least: Kalah's small endgames.
pub const ENGINES_BYTES: usize = 32 << 20;

/// What each engine thread keeps for itself: Cram's cache of small components, the largest of its kind.
pub const ENGINE_BYTES: usize = 8 << 20;

/// The least memory with which the tables are of any use.
pub const TABLES_BYTES_MIN: usize = 16 << 20;

/// The least that a worker of so many threads can do with.
pub fn worker_memory_min(threads: usize) -> usize {
    PROCESS_BYTES + ENGINES_BYTES + threads.saturating_mul(ENGINE_BYTES) + TABLES_BYTES_MIN
}

/// Shares out the budget of a worker process of so many threads. What process and engines need is set aside; of the rest an eighth
/// (at most 512 MiB) goes to the engines' shared tables, an eighth (at most 512 MiB) to RocksDB's cache, a sixteenth (at most 256 MiB) to
/// its write buffers, and all that is left to the RAM table.
/// Probes never go to disk, so RocksDB needs memory only to take in batches and to check them against what it holds; past its
/// maxima, memory does more good in the RAM table. Less than [`worker_memory_min`] counts as that.
pub fn split_memory(total: usize, threads: usize) -> WorkerMemory {
    let tables = TABLES_BYTES_MIN + total.saturating_sub(worker_memory_min(threads));
    let (engines, cache) = ((tables / 8).min(512 << 20), (tables / 8).min(512 << 20));
    let write_buffers = (tables / 16).min(256 << 20);
    WorkerMemory {
        engines: ENGINES_BYTES + engines,
        ram_table: tables - engines - cache - write_buffers,
        storage: StorageMemory { cache, write_buffers },
    }
}
