//! Many workers on a virtual clock: what a job would gain by more machines, measured on one.
//!
//! The job core and the engines are the real ones, and so is every node that is searched; only time is not. A worker searches a fixed
//! number of nodes in a virtual second and a message takes a fixed time, so that the same seed gives the same numbers on every machine,
//! with tables of the same size. No other search may run in the process: engines of one process look after each other.
//!
//! ```text
//!   world   the clock, the messages under way, the core
//!   worker  one virtual worker: its tables, its lease, what it has searched
//!   wire    how large messages are
//!   tables  what virtual workers search with
//!   plot    speed-up and efficiency as a picture
//! ```
//!
//! A search is done in slices of a quarter of a second, each at the moment at which it begins. A worker tells what it found, and hears what
//! others did, between slices: later than real ones do. Facts, and that its lease has lapsed, it learns with the replies to its heartbeats. What its
//! tables know of the rest of a slice when its lease lapses, it knows too early; the simulation flatters in that, and in what takes no time
//! in it: building endgame databases, reading and merging a count's runs, and writing and reading what is told.
//!
//! No thread, socket, disk or real clock may enter here.

pub mod plot;
pub mod tables;
mod wire;
mod worker;
mod world;

use crate::core::Options;
use grundy_games::claim::ClaimError;
use grundy_games::problem::{Approach, Fields, Problem, ProblemError};
use grundy_search::engine::{Engine, EngineTables, Limits, engine_for};
use grundy_search::evaluate::{EvaluateError, evaluate};
use grundy_search::peg::{CountError, Counter, Means, count_within};
use grundy_search::table::{Namespace, Table};
use grundy_tables::{RamTable, Telling};
use serde::Serialize;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// All virtual tables know the job's claims by this number.
const NAMESPACE: Namespace = Namespace(0);

/// What does not change with the number of workers.
pub struct Setting<'a> {
    /// The job's problem.
    pub fields: Fields,
    /// Nodes that a worker searches in a second.
    pub nodes_per_second: NonZeroU64,
    /// How long a message is under way, in microseconds.
    pub latency_us: u64,
    /// Where the heartbeats of each worker begin, and nothing else, is drawn from this.
    pub seed: u64,
    /// The core's settings.
    pub options: Options,
    /// Tables for an engine of one worker among so many; of one alone for the sequential search.
    pub tables: &'a dyn Fn(u32) -> Result<WorkerTables, SimulationError>,
    /// Ends the simulation.
    pub stop: &'a AtomicBool,
}

/// A virtual worker's table.
type OwnTable = Arc<Telling<RamTable>>;

/// What an engine searches with.
pub struct WorkerTables {
    /// Its transposition table.
    pub table: OwnTable,
    /// Endgame databases, and the tables that a game's engines share within a process.
    pub shared: Arc<dyn EngineTables>,
}

/// What came of one number of workers. Times are virtual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Measurement {
    /// Virtual workers.
    pub workers: u32,
    /// From the job's submission to its answer, in microseconds.
    pub makespan_us: u64,
    /// All workers' time with a lease, in microseconds.
    pub busy_us: u64,
    /// Nodes searched, of lapsed leases too.
    pub nodes: u64,
    /// Of these, those of leases that lapsed or were not done at the end.
    pub nodes_lost: u64,
    /// Leases granted.
    pub leases: u64,
    /// Messages to and from the coordinator.
    pub messages: u64,
    /// Their bytes, without the transport's.
    pub bytes: u64,
    /// Facts told to workers that did not find them, each time.
    pub facts: u64,
    /// Table entries told to workers that did not find them, each time.
    pub told: u64,
    /// Steps of the coordinator's core.
    pub steps: u64,
}

impl Measurement {
    /// How many times faster than a search of so many nodes by the plain engine.
    pub fn speedup(&self, sequential_nodes: u64, nodes_per_second: NonZeroU64) -> f64 {
        let sequential_us = sequential_nodes as f64 * 1e6 / nodes_per_second.get() as f64;
        sequential_us / self.makespan_us.max(1) as f64
    }

    /// The part of all workers' time in which they had no lease.
    pub fn idle(&self) -> f64 {
        1.0 - self.busy_us as f64 / (self.makespan_us.max(1) as f64 * f64::from(self.workers))
    }

    /// Nodes searched beyond those of the plain engine, as a part of these; 0 if these are none.
    pub fn overhead(&self, sequential_nodes: u64) -> f64 {
        if sequential_nodes == 0 { 0.0 } else { self.nodes as f64 / sequential_nodes as f64 - 1.0 }
    }
}

/// Why a simulation has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// Not a problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// An engine refuses a claim of the job.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The plain engine failed.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// A count failed.
    #[error(transparent)]
    Count(CountError),
    /// The coordinator's core refused something, or the job failed.
    #[error("{0}")]
    Core(String),
    /// No memory for the workers' tables.
    #[error(
        "no memory for the tables of {workers} virtual workers: give them less with --memory, or simulate fewer"
    )]
    Memory {
        /// How many.
        workers: u32,
    },
    /// Somebody asked for it.
    #[error("stopped")]
    Stopped,
}

impl From<CountError> for SimulationError {
    fn from(error: CountError) -> Self {
        match error {
            CountError::Stopped => Self::Stopped,
            error => Self::Count(error),
        }
    }
}

/// The nodes of the plain engine: one thread, no coordinator, no budgets.
///
/// # Errors
/// [`SimulationError`].
pub fn sequential(setting: &Setting<'_>) -> Result<u64, SimulationError> {
    let problem = Problem::from_fields(&setting.fields)?;
    let progress = AtomicU64::new(0);
    let limits = Limits::endless(setting.stop, &progress);
    match problem.approach() {
        Approach::Claims(plan) => {
            let (mut engine, _) = engine_of(setting, &problem, 1)?;
            match evaluate(&*plan, &mut *engine, &limits) {
                // The budget has no end.
                Err(EvaluateError::Undecided { .. }) => return Err(SimulationError::Stopped),
                done => done?,
            };
        }
        Approach::Counting(problem) => {
            count_within(&Counter::new(problem), Means::threads(1), &limits)?;
        }
    }
    Ok(progress.into_inner())
}

/// Runs the job with so many virtual workers.
///
/// # Errors
/// [`SimulationError`].
pub fn simulate(setting: &Setting<'_>, workers: NonZeroU32) -> Result<Measurement, SimulationError> {
    world::World::new(setting, workers.get())?.run()
}

/// An engine of one worker among so many, and its table.
fn engine_of(
    setting: &Setting<'_>,
    problem: &Problem,
    workers: u32,
) -> Result<(Box<dyn Engine>, OwnTable), SimulationError> {
    let WorkerTables { table, shared } = (setting.tables)(workers)?;
    let engine = engine_for(problem, NAMESPACE, Arc::clone(&table) as Arc<dyn Table>, &shared);
    Ok((engine.ok_or(SimulationError::Memory { workers })?, table))
}
