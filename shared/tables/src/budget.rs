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
    /// The RAM table.
    pub ram_table: usize,
    /// RocksDB's share.
    pub storage: StorageMemory,
}

/// Shares out a worker's budget: an eighth (at most 512 MiB) to RocksDB's cache, a sixteenth (at most 256 MiB) to its write
/// buffers, and all the rest to the RAM table. Probes never go to disk, so RocksDB needs memory only to take in batches and to
/// check them against what it holds; past its maxima, memory does more good in the RAM table.
pub fn split_memory(total: usize) -> WorkerMemory {
    let cache = (total / 8).min(512 << 20);
    let write_buffers = (total / 16).min(256 << 20);
    WorkerMemory { ram_table: total - cache - write_buffers, storage: StorageMemory { cache, write_buffers } }
}
