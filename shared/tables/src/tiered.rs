//! The worker's table: RAM in front, disk behind, and threads in between so that no engine ever waits for a disk.
//!
//! - A probe looks into RAM only.
//! - A store goes to RAM. What was costly to find is also offered to the writer thread, over a bounded queue; when that is full
//!   the offer is dropped and counted.
//! - The writer merges what it is offered into the position table in batches, unsynced: a crash of the machine loses
//!   work that can be repeated, and nothing else.
//! - A probe that misses where a costly entry had to go asks the reader thread, in the same manner, to bring it back: too late
//!   for this probe, in time for the next visit.
//! - At the start the loader thread streams the position table into RAM, where a costlier entry wins its place, while
//!   engines already run.

use crate::error::StorageError;
use crate::options::TierOptions;
use crate::positions::{Contradiction, PositionTable};
use crate::ram::{Admission, Insertion, Lookup, RamTable};
use crate::statistics::{Counters, TableStatistics};
use grundy_search::table::{Entry, Key, Namespace, Table};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use tracing::{error, info, warn};

/// Offers that may wait for the writer: under 4 MiB, and a second's worth of its work or two.
const QUEUE: usize = 1 << 16;
/// Keys that may wait for the reader. Short: a wish that has waited long is stale.
const WISHES: usize = 1 << 12;
/// Entries of a batch: enough to make its costs per batch small, few enough that a flush waits for milliseconds.
const BATCH: usize = 4096;

enum Message {
    Entry(Key, Entry),
    Flush(SyncSender<Result<(), StorageError>>),
}

/// [`RamTable`] with a [`PositionTable`] behind it. Dropping it writes what is queued and joins its threads.
pub struct TieredTable {
    shared: Arc<Shared>,
    /// `None` only while dropping.
    queue: Option<SyncSender<Message>>,
    /// As `queue`.
    wishes: Option<SyncSender<Key>>,
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
    read_back: AtomicU64,
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
    pub fn new(
        mut ram: RamTable,
        positions: PositionTable,
        options: TierOptions,
    ) -> Result<Self, StorageError> {
        ram.mark_evicted(options);
        let shared = Arc::new(Shared {
            ram,
            positions,
            options,
            counters: Counters::new(),
            disk_writes: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            read_back: AtomicU64::new(0),
            corrupt: AtomicU64::new(0),
            failed_writes: AtomicU64::new(0),
            contradiction: OnceLock::new(),
            failure: Mutex::new(None),
            stop: AtomicBool::new(false),
            warm: Mutex::new(false),
            warmed: Condvar::new(),
        });
        let (queue, offers) = sync_channel(QUEUE);
        let (wishes, wished) = sync_channel(WISHES);
        // Built first, so that an early return joins what was started.
        let mut table = Self { shared, queue: Some(queue), wishes: Some(wishes), threads: Vec::new() };
        table.spawn("table-writer", move |shared| shared.write(&offers))?;
        table.spawn("table-loader", |shared| shared.load())?;
        table.spawn("table-reader", move |shared| shared.read_back(&wished))?;
        Ok(table)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce(&Shared) + Send + 'static) -> Result<(), StorageError> {
        let shared = Arc::clone(&self.shared);
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || body(&shared));
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
        queue.send(Message::Flush(reply)).map_err(|_| StorageError::Closed)?;
        done.recv().map_err(|_| StorageError::Closed)?
    }

    /// The counts so far.
    pub fn statistics(&self) -> TableStatistics {
        let Shared { counters, disk_writes, loaded, read_back, corrupt, failed_writes, .. } = &*self.shared;
        TableStatistics {
            hits: counters.sum(|stripe| &stripe.hits),
            misses: counters.sum(|stripe| &stripe.misses),
            stores: counters.sum(|stripe| &stripe.stores),
            dropped: counters.sum(|stripe| &stripe.dropped),
            disk_writes: disk_writes.load(Relaxed),
            loaded: loaded.load(Relaxed),
            read_back: read_back.load(Relaxed),
            corrupt: corrupt.load(Relaxed),
            failed_writes: failed_writes.load(Relaxed),
        }
    }
}

impl Table for TieredTable {
    #[inline]
    fn probe(&self, key: &Key) -> Option<Entry> {
        let stripe = self.shared.counters.stripe();
        let lookup = self.shared.ram.look_up(key);
        if let Lookup::Found(entry) = lookup {
            stripe.hits.fetch_add(1, Relaxed);
            return Some(entry);
        }
        stripe.misses.fetch_add(1, Relaxed);
        if lookup == Lookup::Evicted
            && let Some(wishes) = &self.wishes
        {
            // When the queue is full, the mark stays and the next visit asks again.
            let _ = wishes.try_send(*key);
        }
        None
    }

    #[inline]
    fn prefetch(&self, key: &Key) {
        self.shared.ram.prefetch(key);
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
        // `Kept`: what RAM has is as good, and was offered when it came.
        if shared.options.covers(&entry) && insertion != Insertion::Kept {
            let offered = self.queue.as_ref().map(|queue| queue.try_send(Message::Entry(*key, entry)));
            if !matches!(offered, Some(Ok(()))) {
                shared.counters.stripe().dropped.fetch_add(1, Relaxed);
            }
        }
    }
}

impl Shared {
    fn contradicted(&self, key: Key, kept: Entry, offered: Entry) {
        let namespace = self.positions.namespace_name(key.namespace());
        self.report(Contradiction { key, namespace, kept, offered });
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
                    next = offers.try_recv().ok();
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

    /// The reader: until the queue is closed and empty.
    fn read_back(&self, wished: &Receiver<Key>) {
        while let Ok(key) = wished.recv() {
            // First, since putting it back may evict a key of the same mark. One answer a mark, whatever it is: so the
            // disk is asked no more often than costly entries leave RAM.
            self.ram.unmark(&key);
            match self.positions.get(&key) {
                Ok(Some(entry)) => {
                    if let Insertion::Contradicts(found) = self.ram.insert(&key, &entry) {
                        self.contradicted(key, entry, found);
                    }
                    self.read_back.fetch_add(1, Relaxed);
                }
                Ok(None) => {}
                Err(failure) => self.failed(failure),
            }
        }
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
                    Insertion::Kept | Insertion::Refused | Insertion::Busy => {}
                },
                Err(corrupt) => {
                    self.corrupt.fetch_add(1, Relaxed);
                    self.failed(corrupt);
                }
            }
            if self.stop.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
        self.wishes = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                error!("a table thread panicked");
            }
        }
    }
}
