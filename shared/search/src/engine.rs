//! What a worker asks of an engine: decide a claim within a budget.

use crate::cram::CramEngine;
use crate::cram::tables::StripTables;
use crate::kalah::KalahEngine;
use crate::kalah::tables::{KalahTables, KalahWish};
use crate::numbers::{INFINITE, Numbers};
use crate::samples::Samples;
use crate::table::{Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, Edge, Fact};
use grundy_games::problem::Problem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How often, in nodes, an engine looks at its budget and its stop flag and reports progress: a few microseconds to a
/// millisecond, depending on the game.
pub const POLL_NODES: u64 = 256;

/// The budget and the controls of one search, shared with the thread that keeps the lease alive.
pub struct Limits<'a> {
    /// Nodes (expansions) after which an undecided search stops.
    pub nodes: u64,
    /// A search ends before its budget, too, when the claim's numbers have become such that others are to be searched first.
    pub leave: Leave,
    /// Facts that cost at least this many nodes are reported with the outcome.
    pub report_work_min: u64,
    /// Set by another thread to end the search early.
    pub stop: &'a AtomicBool,
    /// Nodes searched so far, for heartbeats; the engine adds to it as it goes.
    pub progress: &'a AtomicU64,
}

impl<'a> Limits<'a> {
    /// No limits but the stop flag, and no facts.
    pub fn endless(stop: &'a AtomicBool, progress: &'a AtomicU64) -> Self {
        Self { nodes: u64::MAX, leave: Leave::NEVER, report_work_min: u64::MAX, stop, progress }
    }

    /// Whether somebody asked the search to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// When a search is to be left though its budget is not spent, as far as the engine's search has numbers: what the thresholds of a node
/// are in depth-first proof-number search, for a claim whose siblings are elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leave {
    /// The claim's proof number, or its disproof number, is at least this. [`INFINITE`]: whatever it is.
    pub thresholds: Numbers,
    /// So many nodes are searched before thresholds count.
    pub nodes_min: u64,
}

impl Leave {
    /// Not before the claim is decided.
    pub const NEVER: Self =
        Self { thresholds: Numbers { proof: INFINITE, disproof: INFINITE }, nodes_min: 0 };

    /// Whether an open search of so many nodes that has come to these numbers is to be left.
    pub fn is_due(&self, numbers: Numbers, nodes: u64) -> bool {
        nodes >= self.nodes_min && numbers.reach(self.thresholds)
    }
}

/// The budget is spent or somebody asked the search to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// Counts the nodes of one search against its limits.
pub(crate) struct Meter<'a> {
    limits: &'a Limits<'a>,
    nodes: u64,
    /// Of these, how many the progress counter has.
    reported: u64,
    /// The budget, or a first part of it.
    budget: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(limits: &'a Limits<'a>) -> Self {
        Self { limits, nodes: 0, reported: 0, budget: limits.nodes }
    }

    /// Nodes so far.
    pub(crate) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Nodes left of the budget.
    pub(crate) fn left(&self) -> u64 {
        self.budget.saturating_sub(self.nodes)
    }

    /// Sets the budget to so many nodes, but to no more than the limits have.
    pub(crate) fn set_budget(&mut self, nodes: u64) {
        self.budget = nodes.min(self.limits.nodes);
    }

    /// Brings the progress counter up to date.
    pub(crate) fn report(&mut self) {
        self.limits.progress.fetch_add(self.nodes - self.reported, Ordering::Relaxed);
        self.reported = self.nodes;
    }

    /// Counts a node. Fails when it is one too many, unless the search may exceed its budget, and when it is told to stop.
    pub(crate) fn count(&mut self, may_exceed: bool) -> Result<(), Stopped> {
        if self.nodes >= self.budget && !may_exceed {
            return Err(Stopped);
        }
        if self.nodes.is_multiple_of(POLL_NODES) {
            self.report();
            if self.limits.stopped() {
                return Err(Stopped);
            }
        }
        self.nodes += 1;
        Ok(())
    }
}

/// What a search came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Decided or still open.
    pub verdict: Verdict,
    /// Nodes (expansions) this search made.
    pub nodes: u64,
    /// Decided claims that cost at least [`Limits::report_work_min`] nodes, the claim itself not included; at most [`FACTS_MAX`].
    pub facts: Vec<Fact>,
    /// How large the searches of the claims decided on the way were, by level; empty for games that have no levels.
    pub samples: Samples,
}

/// The most facts one outcome carries: a bounded message. The costliest are kept.
pub const FACTS_MAX: usize = 256;

/// Decided or open.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// The claim's truth.
    Decided(bool),
    /// The budget ran out or the search was stopped.
    Open {
        /// The claim's numbers now.
        numbers: Numbers,
        /// What it hangs on: it is true exactly when one of these supports it. With their numbers, from the table or estimated. None if
        /// the engine cannot say, as for a sum whose components have to be searched first.
        children: Vec<Child>,
    },
}

/// One of the claims that an open claim hangs on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Child {
    /// The child, and how it bears on the claim. It may be a simpler one of the same truth than what the rules make of the move.
    pub edge: Edge,
    /// Its own numbers.
    pub numbers: Numbers,
}

/// Decides claims of one problem's rules. One engine a thread; threads share the table.
pub trait Engine: Send {
    /// Searches a claim until it is decided, its budget is spent, or it is told to stop.
    ///
    /// # Errors
    /// A malformed claim; never a panic.
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError>;

    /// Takes in a fact that was found elsewhere, so that the search need not find it again.
    ///
    /// # Errors
    /// A malformed claim.
    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError>;

    /// Gives back the memory that it can do without until it is used again.
    fn rest(&mut self) {}
}

/// Where the engines of a process get the tables that they share.
pub trait EngineTables: StripTables {
    /// Kalah's tables; `None` if there is no memory for them. Whoever needs the same tables at the same time waits for them. Engines ask before
    /// each search and hold none meanwhile: what they had is replaced if there is far more memory now, or others need a part of it.
    fn kalah(&self, wish: KalahWish) -> Option<Arc<KalahTables>>;
}

/// From which work on a table's entries are worth telling to other workers, if there is room for all that are: below it, they are
/// found again about as fast. [`u64::MAX`] for games that do not keep what they find in the table.
pub fn tell_work_min(problem: &Problem) -> u64 {
    match problem {
        // A node takes as long as a hundred of Konane's.
        Problem::Cram(_) => 2,
        Problem::Konane(_) => 8,
        Problem::Kalah(_) | Problem::Peg(_) => u64::MAX,
    }
}

/// The engine for a problem that is answered by claims; `None` for one that is counted, or if there is no memory for its tables.
pub fn engine_for(
    problem: &Problem,
    namespace: Namespace,
    table: Arc<dyn Table>,
    tables: &Arc<dyn EngineTables>,
) -> Option<Box<dyn Engine>> {
    match problem {
        Problem::Cram(_) => Some(Box::new(CramEngine::new(namespace, table, tables.clone()))),
        Problem::Kalah(problem) => {
            Some(Box::new(KalahEngine::new(problem, namespace, table, tables.clone())?))
        }
        Problem::Konane(problem) => {
            Some(Box::new(crate::konane::KonaneEngine::new(problem, namespace, table)))
        }
        Problem::Peg(_) => None,
    }
}
