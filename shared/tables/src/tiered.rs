//! The worker's table: RAM in front, disk behind, and threads in between so that no engine ever waits for a disk.
//!
//! - A probe looks into RAM only.
//! - A store goes to RAM. What was costly to find is also offered to the writer thread, over a bounded queue; when that is full
//!   the offer is dropped and counted.
//! - The writer merges what it is offered into the position table in batches, unsynced: a crash of the machine loses
//!   work that can be repeated, and nothing else.
//! - At the start the loader thread streams the position table into RAM, where a costlier entry wins its place, while
//!   engines already run.

use crate::error::StorageError;
use crate::positions::{Contradiction, PositionTable};
use crate::ram::{Admission, Insertion, RamTable};
use crate::statistics::{Counters, TableStatistics};
use grundy_search::table::{Entry, Key, Namespace, Table};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use tracing::{error, info, warn};

/// Offers that may wait for the writer: 3 MiB, and a second's worth at full speed.
const QUEUE: usize = 1 << 16;
/// Entries of a batch: enough to make its costs per batch small, few enough that a flush waits for milliseconds.
const BATCH: usize = 4096;

/// What goes to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierOptions {
    /// Final entries that cost at least this many nodes go to disk.
    pub final_work_min: u64,
    /// Open entries that cost at least this many nodes go to disk. Higher than the other, since their numbers change with each visit.
    pub open_work_min: u64,
}

impl TierOptions {
    /// Thresholds from one number: open entries must have cost 16 times as much as final ones.
    pub fn with_work_min(final_work_min: u64) -> Self {
        Self {
            final_work_min,
            open_work_min: final_work_min.saturating_mul(16),
        }
    }
}

impl Default for TierOptions {
    /// Final entries from 1024 nodes on: about a millisecond of search, more than it costs to write and read one back, and in a
    /// proof-number search about one node in a thousand.
    fn default() -> Self {
        Self::with_work_min(1024)
    }
}

enum Message {
    Entry(Key, Entry),
    Flush(SyncSender<Result<(), StorageError>>),
}

/// [`RamTable`] with a [`PositionTable`] behind it. Dropping it writes what is queued and joins its threads.
pub struct TieredTable {
    shared: Arc<Shared>,
    /// `None` only while dropping.
    queue: Option<SyncSender<Message>>,
    threads: Vec<JoinHandle<()>>,
}

/// What engines, writer and loader share.
struct Shared {
    ram: RamTable,
    positions: PositionTable,
    options: TierOptions,
    counters: Counters,
    disk_writes: AtomicU64,
    loaded: AtomicU64,
    corrupt: AtomicU64,
    failed_writes: AtomicU64,
    contradiction: OnceLock<Contradiction>,
    /// The last failure of the disk.
    failure: Mutex<Option<StorageError>>,
    /// Set when the table is dropped, to stop the loader.
    stop: AtomicBool,
    warm: Mutex<bool>,
    warmed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values behind these locks are replaced whole, so a panic elsewhere cannot leave them half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TieredTable {
    /// Puts a RAM table in front of a position table and starts filling it from disk.
    ///
    /// # Errors
    /// [`StorageError::Io`] when the system gives no thread.
    pub fn new(ram: RamTable, positions: PositionTable, options: TierOptions) -> Result<Self, StorageError> {
        let shared = Arc::new(Shared {
            ram,
            positions,
            options,
            counters: Counters::new(),
            disk_writes: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            corrupt: AtomicU64::new(0),
            failed_writes: AtomicU64::new(0),
            contradiction: OnceLock::new(),
            failure: Mutex::new(None),
            stop: AtomicBool::new(false),
            warm: Mutex::new(false),
            warmed: Condvar::new(),
        });
        let (queue, offers) = sync_channel(QUEUE);
        // Built first, so that an early return joins what was started.
        let mut table = Self {
            shared,
            queue: Some(queue),
            threads: Vec::new(),
        };
        table.spawn("table-writer", move |shared| shared.write(&offers))?;
        table.spawn("table-loader", |shared| shared.load())?;
        Ok(table)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce(&Shared) + Send + 'static) -> Result<(), StorageError> {
        let shared = Arc::clone(&self.shared);
        let spawned = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || body(&shared));
        let thread = spawned.map_err(|error| StorageError::Io {
            directory: self.shared.positions.directory().to_path_buf(),
            reason: format!("no thread for {name}: {error}"),
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// The number of a namespace in this directory, for keys.
    ///
    /// # Errors
    /// See [`PositionTable::namespace`].
    pub fn namespace(&self, name: &str) -> Result<Namespace, StorageError> {
        self.shared.positions.namespace(name)
    }

    /// The table in front.
    pub fn ram(&self) -> &RamTable {
        &self.shared.ram
    }

    /// About how many entries are on disk.
    pub fn entries_on_disk(&self) -> u64 {
        self.shared.positions.len()
    }

    /// Two final entries that contradict each other, if any such were met: a reason to stop and report.
    pub fn contradiction(&self) -> Option<Contradiction> {
        self.shared.contradiction.get().cloned()
    }

    /// The last failure of the disk, if any. The table goes on without it; what a failed write held is lost and may be found again.
    pub fn failure(&self) -> Option<StorageError> {
        lock(&self.shared.failure).clone()
    }

    /// Blocks until the position table is in RAM as far as it fits.
    pub fn wait_until_warm(&self) {
        let warm = lock(&self.shared.warm);
        let waited = self.shared.warmed.wait_while(warm, |warm| !*warm);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes all that was offered before this call, and makes it durable. For engines' pauses and the end: it waits for the disk.
    ///
    /// # Errors
    /// The failure of the write or the sync.
    pub fn flush(&self) -> Result<(), StorageError> {
        let (reply, done) = sync_channel(1);
        let queue = self.queue.as_ref().ok_or(StorageError::Closed)?;
        queue
            .send(Message::Flush(reply))
            .map_err(|_| StorageError::Closed)?;
        done.recv().map_err(|_| StorageError::Closed)?
    }

    /// The counts so far.
    pub fn statistics(&self) -> TableStatistics {
        let Shared {
            counters,
            disk_writes,
            loaded,
            corrupt,
            failed_writes,
            ..
        } = &*self.shared;
        TableStatistics {
            hits: counters.sum(|stripe| &stripe.hits),
            misses: counters.sum(|stripe| &stripe.misses),
            stores: counters.sum(|stripe| &stripe.stores),
            dropped: counters.sum(|stripe| &stripe.dropped),
            disk_writes: disk_writes.load(Relaxed),
            loaded: loaded.load(Relaxed),
            read_back: 0,
            corrupt: corrupt.load(Relaxed),
            failed_writes: failed_writes.load(Relaxed),
        }
    }
}

impl Table for TieredTable {
    #[inline]
    fn probe(&self, key: &Key) -> Option<Entry> {
        let found = self.shared.ram.probe(key);
        let stripe = self.shared.counters.stripe();
        let count = if found.is_some() {
            &stripe.hits
        } else {
            &stripe.misses
        };
        count.fetch_add(1, Relaxed);
        found
    }

    #[inline]
    fn store(&self, key: &Key, entry: Entry) {
        let shared = &*self.shared;
        shared.counters.stripe().stores.fetch_add(1, Relaxed);
        let insertion = shared.ram.insert(key, &entry);
        if let Insertion::Contradicts(kept) = insertion {
            shared.contradicted(*key, kept, entry);
            return;
        }
        let least = if entry.is_final() {
            shared.options.final_work_min
        } else {
            shared.options.open_work_min
        };
        // `Kept`: what RAM has is as good, and was offered when it came.
        if entry.work >= least && insertion != Insertion::Kept {
            let offered = self
                .queue
                .as_ref()
                .map(|queue| queue.try_send(Message::Entry(*key, entry)));
            if !matches!(offered, Some(Ok(()))) {
                shared.counters.stripe().dropped.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Shared {
    fn contradicted(&self, key: Key, kept: Entry, offered: Entry) {
        let namespace = self.positions.namespace_name(Namespace((key.tag >> 16) as u16));
        self.report(Contradiction {
            key,
            namespace,
            kept,
            offered,
        });
    }

    fn report(&self, contradiction: Contradiction) {
        if self.contradiction.set(contradiction.clone()).is_ok() {
            error!(?contradiction, "two final table entries contradict each other");
        }
    }

    fn failed(&self, failure: StorageError) {
        let mut last = lock(&self.failure);
        if last.as_ref() != Some(&failure) {
            warn!(%failure, "the position table on disk failed");
            *last = Some(failure);
        }
    }

    /// The writer: until the queue is closed and empty.
    fn write(&self, offers: &Receiver<Message>) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Ok(message) = offers.recv() {
            let mut next = Some(message);
            let mut flush = None;
            while let Some(message) = next.take() {
                match message {
                    Message::Entry(key, entry) => batch.push((key, entry)),
                    Message::Flush(reply) => flush = Some(reply),
                }
                if batch.len() < BATCH && flush.is_none() {
                    next = match offers.try_recv() {
                        Ok(message) => Some(message),
                        Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
                    };
                }
            }
            let written = self.write_batch(&batch);
            batch.clear();
            if let Some(reply) = flush {
                // The one who asked may have gone; then nobody needs the answer.
                let _ = reply.send(written.and_then(|()| self.positions.sync()));
            }
        }
        if let Err(failure) = self.positions.sync() {
            self.failed(failure);
        }
    }

    fn write_batch(&self, batch: &[(Key, Entry)]) -> Result<(), StorageError> {
        let merged = self.positions.merge(batch).inspect_err(|failure| {
            self.failed_writes.fetch_add(1, Relaxed);
            self.failed(failure.clone());
        })?;
        self.disk_writes.fetch_add(merged.written as u64, Relaxed);
        if let Some(contradiction) = merged.contradiction {
            self.report(contradiction);
        }
        if let Some(corrupt) = merged.corrupt {
            self.corrupt.fetch_add(1, Relaxed);
            self.failed(corrupt);
        }
        Ok(())
    }

    /// The loader: all of the position table into RAM, a costlier entry over a cheaper.
    fn load(&self) {
        let streamed = self.positions.for_each(|item| {
            match item {
                Ok((key, entry)) => match self.ram.offer(&key, &entry, Admission::IfWorthMore) {
                    Insertion::Contradicts(found) => self.contradicted(key, entry, found),
                    Insertion::Stored | Insertion::Evicted(..) => {
                        self.loaded.fetch_add(1, Relaxed);
                    }
                    Insertion::Kept | Insertion::Busy => {}
                },
                Err(corrupt) => {
                    self.corrupt.fetch_add(1, Relaxed);
                    self.failed(corrupt);
                }
            }
            if self.stop.load(Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if let Err(failure) = streamed {
            self.failed(failure);
        }
        let loaded = self.loaded.load(Relaxed);
        if loaded > 0 {
            info!(entries = loaded, "table filled from disk");
        }
        *lock(&self.warm) = true;
        self.warmed.notify_all();
    }
}

impl Drop for TieredTable {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        // Closes the queue: the writer takes what is in it, and ends.
        self.queue = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                error!("a table thread panicked");
            }
        }
    }
}
