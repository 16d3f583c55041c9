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
    /// What the engines of the process may share of its own memory: tables of small positions.
    pub engines: usize,
    /// Endgame databases that are mapped. Several workers of a machine have them in memory once.
    pub endgame: usize,
    /// The RAM table.
    pub ram_table: usize,
    /// RocksDB's share.
    pub storage: StorageMemory,
}

/// What a process needs besides tables: code, stacks, connections, the allocator's slack. Measured at some 20 MiB.
pub const PROCESS_BYTES: usize = 24 << 20;

/// What the engines of one process share at least: Kalah's small endgames.
pub const ENGINES_BYTES: usize = 32 << 20;

/// What each engine thread keeps for itself: Cram's caches are the largest, of small regions of strips and of other boards (8 MiB each) and
/// of outlooks (4 MiB).
pub const ENGINE_BYTES: usize = 20 << 20;

/// The least memory with which the tables are of any use.
pub const TABLES_BYTES_MIN: usize = 16 << 20;

/// The least that a worker of so many threads can do with.
pub fn worker_memory_min(threads: usize) -> usize {
    PROCESS_BYTES + ENGINES_BYTES + threads.saturating_mul(ENGINE_BYTES) + TABLES_BYTES_MIN
}

/// How much of a worker's budget mapped endgame databases may take at most.
pub fn endgame_memory_max(total: usize, threads: usize) -> usize {
    total.saturating_sub(worker_memory_min(threads))
}

/// Shares out the budget of a worker process of so many threads. What process and engines need is set aside, and `endgame` bytes for
/// mapped databases (five eighths of what is left unless told otherwise, at most [`endgame_memory_max`]); of the rest
/// `engines` bytes (a quarter unless told otherwise, at most three) go to the engines' shared tables, an eighth (at most 512 MiB) to RocksDB's
/// cache, a sixteenth (at most 256 MiB) to its write buffers, and all that is left to the RAM table.
/// Kalah keeps what it finds in its engines' tables, the other games nearly all in the RAM table.
/// Probes never go to disk, so RocksDB needs memory only to take in batches and to check them against what it holds; past its
/// maxima, memory does more good in the RAM table. Less than [`worker_memory_min`] counts as that.
pub fn split_memory(
    total: usize,
    threads: usize,
    endgame: Option<usize>,
    engines: Option<usize>,
) -> WorkerMemory {
    let most = endgame_memory_max(total, threads);
    let endgame = endgame.map_or(most / 8 * 5, |endgame| endgame.min(most));
    let tables = TABLES_BYTES_MIN + most - endgame;
    let engines = engines.map_or(tables / 4, |engines| engines.min(tables / 4 * 3));
    let cache = (tables / 8).min(512 << 20);
    let write_buffers = (tables / 16).min(256 << 20);
    WorkerMemory {
        engines: ENGINES_BYTES + engines,
        endgame,
        ram_table: tables - engines - cache - write_buffers,
        storage: StorageMemory { cache, write_buffers },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_whole() {
        for threads in [1, 2, 64] {
            for more in [0, 5, 64 << 20, 7 << 30] {
                let total = worker_memory_min(threads) + more;
                let told = [None, Some(0), Some(1 << 20), Some(usize::MAX)];
                for (endgame, engines) in
                    told.into_iter().flat_map(|endgame| told.map(|engines| (endgame, engines)))
                {
                    let split = split_memory(total, threads, endgame, engines);
                    let fixed = PROCESS_BYTES + threads * ENGINE_BYTES;
                    let storage = split.storage.cache + split.storage.write_buffers;
                    let parts = fixed + split.engines + split.endgame + split.ram_table + storage;
                    assert_eq!(parts, total, "{threads} threads, {more} more, {endgame:?}: {split:?}");
                    assert!(split.ram_table >= TABLES_BYTES_MIN / 16, "{split:?}");
                    assert_eq!(split.endgame, endgame.map_or(more / 8 * 5, |endgame| endgame.min(more)));
                }
            }
        }
    }
}
