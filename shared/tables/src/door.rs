//! The only module that opens RocksDB. What leaves it are families, changes and sealed records.

use crate::budget::StorageMemory;
use crate::error::StorageError;
use crate::jobs::Durability;
use crate::layout::{Change, Family, Kind};
use crate::marker::{self, DATABASE};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DBPinnableSlice,
    DBRecoveryMode, ErrorKind, IteratorMode, Options, ReadOptions, WriteBatch, WriteBufferManager,
    WriteOptions,
};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open data directory.
pub(crate) struct Store {
    db: DB,
    directory: PathBuf,
    /// Declared after the database: dropped, and so unlocked, when that is closed.
    _lock: Option<File>,
}

/// Options of the whole database.
fn database_options(memory: &StorageMemory) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    // Stop at the first checksum that fails, anywhere, rather than go on with less.
    options.set_paranoid_checks(true);
    // A crash may cut the log's end off, which is what this tolerates; RocksDB's default would take any
    // flipped bit in the log for its end, and silently lose synced commits after it.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_track_and_verify_wals_in_manifest(true);
    // One bound over all families, instead of one each.
    options.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager(
        memory.write_buffers.max(1 << 20),
        false,
    ));
    // The cores belong to the search; compaction is not urgent.
    options.set_max_background_jobs(2);
    // Old logs keep old records of quiet families alive: flush those before the logs fill the disk.
    options.set_max_total_wal_size((4 * memory.write_buffers as u64).clamp(64 << 20, 1 << 30));
    // Dirty pages go to disk as they come, not in one burst that stalls the next sync.
    options.set_bytes_per_sync(1 << 20);
    options.set_wal_bytes_per_sync(1 << 20);
    // RocksDB's own log: for a post-mortem, bounded to a few MiB.
    options.set_keep_log_file_num(4);
    options.set_max_log_file_size(4 << 20);
    options.set_stats_dump_period_sec(0);
    // Many workers may share one machine's limit on open files.
    options.set_max_open_files(512);
    options
}

fn family_options(family: Family, memory: &StorageMemory, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    // Indexes and filters are counted against the cache, so that they cannot outgrow the budget.
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_format_version(6);
    let mut options = Options::default();
    options.set_level_compaction_dynamic_level_bytes(true);
    // LZ4 where data is rewritten often, Zstandard at the bottom, where nine tenths of it lie.
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    // A quarter each: two families can fill two buffers before the common bound flushes one.
    options.set_write_buffer_size((memory.write_buffers / 4).max(256 << 10));
    match family {
        Family::Positions => {
            // Most keys of a batch are new; the filter says so without a read. 10 bits a key: 1 in 100 is asked in vain.
            table.set_bloom_filter(10.0, false);
            table.set_whole_key_filtering(true);
            options.set_optimize_filters_for_hits(false);
            table.set_block_size(8 << 10);
        }
        Family::Runs => {
            // Runs are long, written once, and dropped by the stage: beside the tree, compaction does not copy them.
            options.set_enable_blob_files(true);
            options.set_min_blob_size(16 << 10);
            options.set_blob_compression_type(DBCompressionType::Lz4);
            options.set_enable_blob_gc(true);
        }
        _ => table.set_block_size(16 << 10),
    }
    options.set_block_based_table_factory(&table);
    options
}

/// The families of a kind of directory, with one cache for all.
fn families(kind: Kind, memory: &StorageMemory) -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(memory.cache);
    let descriptor =
        |&family: &Family| ColumnFamilyDescriptor::new(family.name(), family_options(family, memory, &cache));
    kind.families().iter().map(descriptor).collect()
}

impl Store {
    /// Locks, checks or creates a data directory, and opens its database.
    pub(crate) fn open(
        directory: &Path,
        kind: Kind,
        memory: &StorageMemory,
    ) -> Result<Arc<Self>, StorageError> {
        let lock = marker::claim(directory, kind)?;
        let db = DB::open_cf_descriptors(
            &database_options(memory),
            directory.join(DATABASE),
            families(kind, memory),
        );
        Self::opened(directory, db, Some(lock))
    }

    /// Checks a data directory and opens its database without changing a byte of either. What the log holds beyond the tables is
    /// read into memory.
    pub(crate) fn open_read_only(
        directory: &Path,
        kind: Kind,
        memory: &StorageMemory,
    ) -> Result<Arc<Self>, StorageError> {
        let lock = marker::look(directory, kind)?;
        let mut options = database_options(memory);
        // Even opened for reading alone, it would make the folder.
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        let path = directory.join(DATABASE);
        let db = DB::open_cf_descriptors_read_only(&options, path, families(kind, memory), false);
        Self::opened(directory, db, lock)
    }

    fn opened(
        directory: &Path,
        db: Result<DB, rocksdb::Error>,
        lock: Option<File>,
    ) -> Result<Arc<Self>, StorageError> {
        let db = db.map_err(|error| failure(directory, &error))?;
        Ok(Arc::new(Self { db, directory: directory.to_path_buf(), _lock: lock }))
    }

    /// The data directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn family(&self, family: Family) -> Result<&ColumnFamily, StorageError> {
        // Open creates all families of the kind, so only a mix-up of kinds in this crate comes here.
        self.db.cf_handle(family.name()).ok_or_else(|| StorageError::Missing {
            place: format!("column family {} of {}", family.name(), self.directory.display()),
        })
    }

    fn failed(&self, error: &rocksdb::Error) -> StorageError {
        failure(&self.directory, error)
    }

    /// Applies changes in order, all or nothing. After a failed write RocksDB takes no more until it is reopened; whether a
    /// batch whose sync failed is there then is all or nothing too.
    pub(crate) fn write(
        &self,
        changes: impl IntoIterator<Item = Change>,
        durability: Durability,
    ) -> Result<(), StorageError> {
        let mut batch = WriteBatch::default();
        for change in changes {
            match change {
                Change::Put(family, key, value) => batch.put_cf(self.family(family)?, key, value),
                Change::Delete(family, key) => batch.delete_cf(self.family(family)?, key),
                Change::DeleteRange(family, from, to) => {
                    batch.delete_range_cf(self.family(family)?, from, to);
                }
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Synced);
        self.db.write_opt(batch, &options).map_err(|error| self.failed(&error))
    }

    /// The value of a key.
    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.db.get_cf(self.family(family)?, key).map_err(|error| self.failed(&error))
    }

    /// The values of keys that come in ascending order.
    pub(crate) fn get_sorted<'a, const N: usize>(
        &self,
        family: Family,
        keys: impl IntoIterator<Item = &'a [u8; N]>,
    ) -> Result<Vec<Option<DBPinnableSlice<'_>>>, StorageError> {
        let found = self.db.batched_multi_get_cf(self.family(family)?, keys, true);
        found.into_iter().map(|value| value.map_err(|error| self.failed(&error))).collect()
    }

    /// Hands over all keys and values of a family in key order, until told to break.
    pub(crate) fn for_each(
        &self,
        family: Family,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StorageError>,
    ) -> Result<(), StorageError> {
        let mut options = ReadOptions::default();
        // Read once: the cache is for what is read again.
        options.fill_cache(false);
        options.set_readahead_size(2 << 20);
        for item in self.db.iterator_cf_opt(self.family(family)?, options, IteratorMode::Start) {
            let (key, value) = item.map_err(|error| self.failed(&error))?;
            if visit(&key, &value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// About how many keys a family holds.
    pub(crate) fn estimated_keys(&self, family: Family) -> u64 {
        let property = rocksdb::properties::ESTIMATE_NUM_KEYS;
        let keys = self.family(family).ok().and_then(|cf| self.db.property_int_value_cf(cf, property).ok());
        keys.flatten().unwrap_or(0)
    }

    /// Deletes files that hold nothing but a range, without waiting for compaction. For ranges whose deletion is already synced.
    pub(crate) fn delete_files(&self, family: Family, from: &[u8], to: &[u8]) -> Result<(), StorageError> {
        self.db.delete_file_in_range_cf(self.family(family)?, from, to).map_err(|error| self.failed(&error))
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        self.db.flush_wal(true).map_err(|error| self.failed(&error))
    }
}

/// Sorts RocksDB's errors.
fn failure(directory: &Path, error: &rocksdb::Error) -> StorageError {
    sort(directory, error.kind(), error.to_string())
}

/// RocksDB gives the system's error in words only; the words are those of `strerror` in the C locale, which programs have
/// unless they ask for another.
fn sort(directory: &Path, kind: ErrorKind, reason: String) -> StorageError {
    let says = |words: &[&str]| words.iter().any(|words| reason.contains(words));
    let directory = directory.to_path_buf();
    if says(&["No space left on device", "Disk quota exceeded", "NoSpace"]) {
        StorageError::Full { directory, reason }
    } else if says(&["Read-only file system", "Permission denied", "Operation not permitted"]) {
        StorageError::ReadOnly { directory, reason }
    } else if says(&["While lock file", "lock hold by current process"]) {
        StorageError::Locked { directory }
    } else if kind == ErrorKind::Corruption || says(&["No such file or directory"]) {
        // A database that lacks one of its files is as damaged as one with a wrong byte.
        StorageError::Corrupt { place: directory.join(DATABASE).display().to_string(), reason }
    } else {
        StorageError::Io { directory, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::io_error;
    use std::io;

    /// Messages as RocksDB 11.8 gives them.
    #[test]
    fn messages_of_rocksdb_are_sorted() {
        let directory = PathBuf::from("/data");
        let sorted = |kind, reason: &str| sort(&directory, kind, reason.to_owned());
        let io = |reason| sorted(ErrorKind::IOError, reason);
        let full = io(
            "IO error: No space left on device: While appending to file: /data/db/000012.log: No space left on device",
        );
        assert!(matches!(full, StorageError::Full { .. }), "{full:?}");
        let locked = io("IO error: While lock file: /data/db/LOCK: Resource temporarily unavailable");
        assert_eq!(locked, StorageError::Locked { directory: directory.clone() });
        let read_only =
            io("IO error: While open a file for appending: /data/db/MANIFEST-000004: Read-only file system");
        assert!(matches!(read_only, StorageError::ReadOnly { .. }), "{read_only:?}");
        let corrupt =
            sorted(ErrorKind::Corruption, "Corruption: block checksum mismatch: stored = 1, computed = 2");
        assert!(matches!(corrupt, StorageError::Corrupt { .. }), "{corrupt:?}");
        let lacking = io(
            "IO error: No such file or directory: While open a file for random read: db/000012.blob: No such file or directory",
        );
        assert!(matches!(lacking, StorageError::Corrupt { .. }), "{lacking:?}");
        let other = io("IO error: While fsync: /data/db/000012.log: Input/output error");
        assert!(matches!(other, StorageError::Io { .. }), "{other:?}");
    }

    #[test]
    fn errors_of_the_system_are_sorted() {
        let sorted = |errno| io_error(Path::new("/data"), &io::Error::from_raw_os_error(errno));
        // Linux's numbers of ENOSPC, EDQUOT, EROFS, EACCES and EIO.
        assert!([28, 122].iter().all(|&errno| matches!(sorted(errno), StorageError::Full { .. })));
        assert!([30, 13].iter().all(|&errno| matches!(sorted(errno), StorageError::ReadOnly { .. })));
        assert!(matches!(sorted(5), StorageError::Io { .. }));
    }
}
