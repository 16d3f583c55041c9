//! The worker: a process that leases tasks from a coordinator, does them, and hands in the results.
//!
//! ```text
//!   engine threads   lease -> search -> outbox          one lease a thread, one table for all
//!   heartbeat        renews all leases, brings facts    a thread, a runtime and a connection of its own
//!   outbox           sends results until acknowledged   tasks of the runtime; costly results are on disk first
//!   signals          begin the drain
//! ```
//!
//! The threads share a [`Session`] (one registration, one policy of reconnecting), the
//! [`Leases`] held, and a [`Drain`], which ends them all.
//!
//! Rules of games, searches and table formats are not for this crate, and it knows nothing of how the coordinator chooses tasks.

pub mod backoff;
pub mod cli;
pub mod counting;
pub mod drain;
pub mod engines;
pub mod error;
pub mod exchange;
pub mod facts;
pub mod heartbeat;
mod helping;
pub mod leases;
pub mod machine;
pub mod outbox;
pub mod retry;
pub mod session;
pub mod storage;

pub use drain::{Cause, Drain};
pub use engines::EngineFactory;
pub use error::{Exit, WorkerError};

use engines::{EngineThread, Shared, guarded};
use exchange::Exchange;
use facts::FactBook;
use grundy_tables::{EndgameMemory, EndgameTables, TableStatistics, WorkerMemory, split_memory};
use helping::Helping;
use leases::Leases;
use outbox::Outbox;
use session::{Identity, Session};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tracing::{debug, error, info, warn};

/// Threads that drive connections: their work is small, and two keep one slow spool write from delaying all calls.
const RUNTIME_THREADS: usize = 2;

/// How a worker is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The coordinator, `http://host:port`.
    pub coordinator: String,
    /// The data directory; created if need be.
    pub data: PathBuf,
    /// The worker's name.
    pub name: String,
    /// Engine threads.
    pub threads: u32,
    /// Bytes for the whole process.
    pub memory: usize,
    /// The directory of the endgame databases, which workers of one machine may share.
    pub endgame: PathBuf,
    /// How many of the bytes are for mapped endgame databases; `None`: five eighths of what is not needed otherwise.
    pub endgame_memory: Option<usize>,
    /// How many of the bytes are for tables that the engines share; `None`: a quarter of what is left then.
    pub engine_memory: Option<usize>,
    /// The most seeds of Kalah's endgame databases; `None`: as many as pay.
    pub endgame_seeds: Option<u8>,
    /// How long the coordinator may be unreachable; `None`: a minute before the first contact, for ever after it.
    pub give_up_after: Option<Duration>,
}

/// Runs a worker until it is drained.
///
/// # Errors
/// [`WorkerError`] when it cannot go on.
pub fn run(options: &Options, drain: &Arc<Drain>) -> Result<Exit, WorkerError> {
    run_with(options, drain, |memory| {
        let memory = EndgameMemory { mapped: memory.endgame, private: memory.engines };
        let draining = Arc::clone(drain);
        let tables = EndgameTables::new(options.endgame.clone(), memory);
        let tables = tables.with_kalah_seeds(options.endgame_seeds);
        engines::all_games(Arc::new(tables.with_go_on(move || draining.cause().is_none())))
    })
}

/// [`run`] with engines of the caller's choice, made for the memory they are given.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    options: &Options,
    drain: &Arc<Drain>,
    engines: impl FnOnce(&WorkerMemory) -> Arc<EngineFactory>,
) -> Result<Exit, WorkerError> {
    let Options { memory, endgame_memory, engine_memory, .. } = *options;
    let memory = split_memory(memory, options.threads as usize, endgame_memory, engine_memory);
    let identity = Identity {
        coordinator: options.coordinator.clone(),
        worker: options.name.clone(),
        incarnation: incarnation()?,
        threads: options.threads,
    };
    let session = Arc::new(Session::new(identity, options.give_up_after, Arc::clone(drain))?);
    let storage = storage::open(&options.data, &memory)?;
    let runtime = runtime()?;
    let client = {
        let _context = runtime.enter();
        session.client()
    };
    let outbox = Outbox::new(
        Arc::clone(&session),
        client.clone(),
        Arc::clone(drain),
        storage.spool,
        runtime.handle().clone(),
    )?;
    let shared = Arc::new(Shared {
        session,
        client,
        runtime: runtime.handle().clone(),
        drain: Arc::clone(drain),
        leases: Arc::new(Leases::default()),
        facts: FactBook::default(),
        helping: Helping::default(),
        threads: options.threads,
        outbox: Arc::new(outbox),
        table: Arc::clone(&storage.table),
        exchange: Exchange::new(Arc::clone(&storage.table)),
        engines: engines(&memory),
    });
    let worked = work(&shared, &runtime, options.threads);
    // Whatever still waits for an answer has been spooled or given up.
    runtime.shutdown_timeout(Duration::from_secs(1));
    worked?;
    // Read before the error is returned: what the table learned was right even if the coordinator has gone.
    let flushed = storage.table.flush();
    let statistics = storage.table.statistics();
    let (results, nodes) = (shared.outbox.acknowledged(), shared.leases.nodes());
    let TableStatistics {
        hits,
        misses,
        stores,
        dropped,
        disk_writes,
        loaded,
        read_back,
        corrupt,
        failed_writes,
    } = statistics;
    let entries = storage.table.entries_on_disk();
    let (told, heard) = shared.exchange.counts();
    info!(
        event = "end",
        results,
        nodes,
        entries,
        hits,
        misses,
        stores,
        dropped,
        disk_writes,
        loaded,
        read_back,
        corrupt,
        failed_writes,
        told,
        heard,
        "ended"
    );
    shared.contradicted();
    if let Some(failure) = drain.failure() {
        return Err(failure);
    }
    flushed?;
    if corrupt > 0 {
        error!(event = "corruption", found = corrupt, data = %options.data.display(), "corrupt table entries were found and passed over: check the disk");
        return Ok(Exit::Corruption);
    }
    Ok(drain.exit())
}

/// Starts the threads, and waits for their end.
fn work(shared: &Arc<Shared>, runtime: &Runtime, threads: u32) -> Result<(), WorkerError> {
    let (end_heartbeat, heartbeat_ended) = watch::channel(false);
    let heartbeat = start_heartbeat(Arc::clone(shared), heartbeat_ended)?;
    runtime.spawn(exchange::run(Arc::clone(shared)));
    let stopper = Arc::clone(shared);
    runtime.spawn(async move {
        stopper.drain.begins().await;
        stopper.leases.stop_all();
    });
    let mut engines = Vec::new();
    for index in 0..threads {
        match start_engine(Arc::clone(shared), index) {
            Ok(thread) => engines.push(thread),
            Err(error) => {
                shared.drain.fail(error);
                break;
            }
        }
    }
    for engine in engines {
        join(engine);
    }
    runtime.block_on(shared.outbox.finish());
    end_heartbeat.send_replace(true);
    join(heartbeat);
    // After the last heartbeat, which would only register again. A worker that has failed is for the coordinator to miss.
    if shared.drain.failure().is_none()
        && let Err(status) = runtime.block_on(shared.session.unregister(&shared.client))
    {
        debug!(event = "unregister", reason = %session::reason(&status), "not unregistered: the coordinator will miss this worker");
    }
    Ok(())
}

fn start_engine(shared: Arc<Shared>, index: u32) -> Result<JoinHandle<()>, WorkerError> {
    let name = format!("engine-{index}");
    let thread = name.clone();
    let body = move || {
        let drain = Arc::clone(&shared.drain);
        // A search's panic is caught with its lease; whatever comes up to here is a bug of this crate.
        if let Err(reason) = guarded(|| EngineThread::new(shared).run()) {
            drain.fail(WorkerError::Panicked { thread, reason });
        }
    };
    let builder = thread::Builder::new().name(name.clone()).stack_size(engines::STACK_BYTES);
    builder
        .spawn(body)
        .map_err(|e| WorkerError::Start { what: format!("thread {name}"), reason: e.to_string() })
}

fn start_heartbeat(shared: Arc<Shared>, ended: watch::Receiver<bool>) -> Result<JoinHandle<()>, WorkerError> {
    let failed =
        |e: std::io::Error| WorkerError::Start { what: "the heartbeat".into(), reason: e.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let body = move || {
        let drain = Arc::clone(&shared.drain);
        if let Err(reason) = guarded(|| runtime.block_on(heartbeat::run(shared, ended))) {
            drain.fail(WorkerError::Panicked { thread: "heartbeat".into(), reason });
        }
    };
    thread::Builder::new().name("heartbeat".into()).spawn(body).map_err(failed)
}

/// Waits for a thread. Its panics were caught inside.
fn join(thread: JoinHandle<()>) {
    let name = thread.thread().name().unwrap_or("a thread").to_owned();
    if thread.join().is_err() {
        warn!(event = "panic", thread = %name, "thread ended by a panic");
    }
}

fn runtime() -> Result<Runtime, WorkerError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .thread_name("connection")
        .enable_all()
        .build()
        .map_err(|e| WorkerError::Start { what: "the network runtime".into(), reason: e.to_string() })
}

/// A number for this run of the process: random, not 0.
fn incarnation() -> Result<u64, WorkerError> {
    let drawn = getrandom::u64()
        .map_err(|e| WorkerError::Start { what: "the random generator".into(), reason: e.to_string() })?;
    Ok(drawn.max(1))
}
