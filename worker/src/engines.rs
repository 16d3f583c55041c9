//! The engine threads: lease, search, hand in, over and over.

use crate::backoff::{delay, jitter};
use crate::counting::{self, PartError};
use crate::drain::Drain;
use crate::error::WorkerError;
use crate::exchange::Exchange;
use crate::facts::FactBook;
use crate::helping::{Helping, TURN_NODES};
use crate::leases::{Epoch, Held, JobId, LeaseId, Leases};
use crate::outbox::{Finished, Outbox, complete_request};
use crate::session::{Client, Ended, Patience, Registration, Session};
use grundy_games::claim::Claim;
use grundy_games::problem::{Approach, Fields, Problem};
use grundy_proto::{convert, limits, v1};
use grundy_search::engine::{
    Engine, EngineTables, FACTS_MAX, Leave, Limits, Outcome, Verdict, engine_for, tell_work_min,
};
use grundy_search::numbers::Numbers;
use grundy_search::peg::{CountError, Counter};
use grundy_search::table::{Namespace, Table};
use grundy_tables::TieredTable;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tonic::Request;
use tracing::{debug, info};

/// The stack of an engine thread. The search recurses once a ply, with a few hundred bytes each; this is enough for the longest
/// game many times over, and costs only what is touched.
pub const STACK_BYTES: usize = 64 << 20;

/// How long a Lease call may be held open: well below the coordinator's limit, so that proxies do not cut it.
const LEASE_WAIT: Duration = Duration::from_secs(20);

/// The same for a thread that has others beside it, which may need its help before there is a lease.
const LEASE_WAIT_AMONG_THREADS: Duration = Duration::from_secs(2);

/// A draining coordinator is asked again as if it had failed this often already: its successor may come up soon, but not at once.
const DRAIN_FAILURES: u32 = 3;

/// The bounds of the wait that an idle coordinator asks for: no busy loop, no oversleeping.
const IDLE_WAIT_MS: std::ops::RangeInclusive<u64> = 10..=30_000;

/// Makes the engine for a problem. What is given to [`run`](crate::run) is [`engine_for`]; tests give others.
pub type EngineFactory = dyn Fn(&Problem, Namespace, Arc<dyn Table>) -> Option<Box<dyn Engine>> + Send + Sync;

/// What all threads of a worker share.
pub struct Shared {
    /// The session with the coordinator.
    pub session: Arc<Session>,
    /// The connection of the engine threads and the outbox.
    pub client: Client,
    /// Drives the connection.
    pub runtime: Handle,
    /// Whether to end.
    pub drain: Arc<Drain>,
    /// The leases held.
    pub leases: Arc<Leases>,
    /// What others found.
    pub facts: FactBook,
    /// The claims that idle threads may help with.
    pub helping: Helping,
    /// Engine threads.
    pub threads: u32,
    /// Results on their way.
    pub outbox: Arc<Outbox>,
    /// The table.
    pub table: Arc<TieredTable>,
    /// The table as engines see it, and what is told of it.
    pub exchange: Exchange,
    /// Makes engines.
    pub engines: Arc<EngineFactory>,
}

impl Shared {
    /// Ends the worker if the table has met a contradiction. True if so.
    pub fn contradicted(&self) -> bool {
        let Some(contradiction) = self.table.contradiction() else {
            return false;
        };
        self.drain.fail(WorkerError::Contradiction(Box::new(contradiction)));
        true
    }

    /// An engine for a problem. A table that cannot even take a name is the worker's own trouble, not the task's: it ends the worker.
    fn engine(&self, problem: &Problem) -> Result<Option<Box<dyn Engine>>, TaskError> {
        let Approach::Claims(plan) = problem.approach() else {
            return Ok(None);
        };
        let namespace = self.table.namespace(&plan.rules().namespace()).map_err(|error| {
            self.drain.fail(error.into());
            TaskError::Stopped
        })?;
        self.exchange.follow(plan.rules().namespace(), namespace, tell_work_min(problem));
        Ok((self.engines)(problem, namespace, self.exchange.table()))
    }
}

/// What a thread needs to work on one problem.
enum Solver {
    Claims(Box<dyn Engine>),
    Counting(Arc<Counter>),
}

/// One engine thread.
pub struct EngineThread {
    shared: Arc<Shared>,
    /// What it searches with, for the problem it had last: workers seldom switch between jobs, and an engine is made in milliseconds.
    solver: Option<(Fields, Solver)>,
}

impl EngineThread {
    /// A thread that has not met any problem yet.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, solver: None }
    }

    /// Works until the worker drains.
    pub fn run(mut self) {
        let mut failures = DRAIN_FAILURES;
        while self.shared.drain.cause().is_none() {
            let Some((response, registration)) = self.lease() else {
                return;
            };
            match response.outcome {
                Some(v1::lease_response::Outcome::Assignment(assignment)) => {
                    failures = DRAIN_FAILURES;
                    self.take(assignment, registration);
                }
                Some(v1::lease_response::Outcome::Idle(idle)) => {
                    failures = DRAIN_FAILURES;
                    if self.help() {
                        continue;
                    }
                    let wait_ms = idle.retry_after_ms.clamp(*IDLE_WAIT_MS.start(), *IDLE_WAIT_MS.end());
                    self.sleep(Duration::from_millis(wait_ms));
                }
                Some(v1::lease_response::Outcome::Drain(_)) | None => {
                    debug!(event = "lease", "coordinator drains: asking again in a while");
                    failures = failures.saturating_add(1);
                    self.sleep(delay(failures, jitter()));
                }
            }
        }
    }

    /// Sleeps, but not into the drain.
    fn sleep(&self, time: Duration) {
        self.shared.runtime.block_on(async {
            tokio::select! {
                () = self.shared.drain.begins() => {}
                () = tokio::time::sleep(time) => {}
            }
        });
    }

    /// Searches a claim of another thread for a while. False if there is none that this thread can help with.
    fn help(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let Some(turn) = shared.helping.turn() else {
            return false;
        };
        let offer = turn.offer();
        let limits = Limits { nodes: TURN_NODES, ..Limits::endless(turn.stop(), turn.progress()) };
        let outcome = guarded(|| match self.solver(&offer.fields)? {
            Solver::Claims(engine) => engine.decide(&offer.claim, &limits).map_err(TaskError::failed),
            Solver::Counting(_) => Err(TaskError::Failed("a claim of a problem that is counted".to_owned())),
        });
        match outcome {
            Ok(Ok(outcome)) => {
                let decided = matches!(outcome.verdict, Verdict::Decided(_));
                turn.end(outcome.nodes, decided);
                true
            }
            // The holder meets the same trouble and reports it.
            Ok(Err(error)) => {
                debug!(event = "help", ?error, "could not help");
                false
            }
            Err(panic) => {
                debug!(event = "help", panic, "could not help");
                self.solver = None;
                false
            }
        }
    }

    /// Asks for a task until one comes or there is nothing to wait for; `None` when the worker ends.
    fn lease(&self) -> Option<(v1::LeaseResponse, Registration)> {
        let Shared { session, client, facts, runtime, helping, threads, .. } = &*self.shared;
        // Whoever can help meanwhile does not wait for a lease, and whoever may soon be able to does not wait long.
        let wait = match (threads, helping.is_wanted()) {
            (1, _) => LEASE_WAIT,
            (_, false) => LEASE_WAIT_AMONG_THREADS,
            (_, true) => Duration::ZERO,
        };
        let call = |mut client: Client, session: v1::Session| {
            let cursors = facts.cursors(Epoch(session.epoch));
            let wait_ms = wait.as_millis() as u64;
            let mut request = Request::new(v1::LeaseRequest { session: Some(session), wait_ms, cursors });
            request.set_timeout(wait + limits::CALL_DEADLINE);
            async move { Ok(client.lease(request).await?.into_inner()) }
        };
        match runtime.block_on(session.until_answered(client, "Lease", Patience::UntilDrain, call)) {
            Ok(answer) => Some(answer),
            Err(Ended::Draining) => None,
            Err(Ended::Refused(status)) => {
                session.refused("Lease", &status);
                None
            }
        }
    }

    /// Takes a task on, and sees that it ends in a result or is handed back.
    fn take(&mut self, assignment: v1::Assignment, registration: Registration) {
        use v1::assignment::Task;
        let v1::Assignment { lease, job, problem, task, facts } = assignment;
        let (id, job) = (LeaseId(lease), JobId(job));
        let named = match &task {
            Some(Task::Claim(task)) => {
                v1::lease_progress::Task::Claim(task.claim.clone().unwrap_or_default())
            }
            Some(Task::Part(task)) => {
                v1::lease_progress::Task::Part(v1::PartKey { stage: task.stage, part: task.part })
            }
            None => v1::lease_progress::Task::Claim(v1::Claim::default()),
        };
        let held = self.shared.leases.hold(id, registration.epoch, job, named);
        let problem = problem.unwrap_or_default();
        self.shared.outbox.confirm(job, &problem);
        let fields = Fields::from(problem.clone());
        let started = Instant::now();

        // A panic is a bug of one game's engine; the other threads and the leases they hold must not suffer from it.
        let outcome = guarded(|| match task {
            Some(Task::Claim(task)) => self.claim(&held, &fields, task, registration, facts),
            Some(Task::Part(task)) => self.part(&held, &fields, &task),
            None => Err(TaskError::Failed("the assignment has no task".to_owned())),
        });
        let outcome = outcome.unwrap_or_else(|panic| Err(TaskError::Failed(format!("panic: {panic}"))));
        if matches!(outcome, Err(TaskError::Failed(_))) {
            // Whatever state it was left in, it is not searched with again.
            self.solver = None;
        }
        let elapsed_ms = started.elapsed().as_millis() as u64;
        if self.shared.contradicted() {
            return;
        }
        match outcome {
            Ok(Some(request)) => {
                debug!(event = "result", lease, job = job.0, nodes = request.nodes, elapsed_ms, verdict = ?request.verdict.as_ref().map(verdict_name), "searched");
                self.shared.outbox.put(Finished { problem, request }, held);
            }
            Ok(None) => {
                debug!(event = "result", lease, job = job.0, elapsed_ms, "handed in or no longer wanted");
            }
            Err(TaskError::Stopped) if held.lapsed() => {
                debug!(event = "lease", lease, job = job.0, elapsed_ms, "lapsed");
            }
            Err(TaskError::Stopped) => self.shared.outbox.release(held, "the worker drains".into(), false),
            Err(TaskError::Failed(reason)) => self.shared.outbox.release(held, reason, true),
        }
    }

    /// Decides a claim. `None` when nothing is to be handed in.
    fn claim(
        &mut self,
        held: &Held,
        fields: &Fields,
        task: v1::ClaimTask,
        registration: Registration,
        facts: Option<v1::FactBatch>,
    ) -> Result<Option<v1::CompleteRequest>, TaskError> {
        let shared = Arc::clone(&self.shared);
        let claim: Claim = convert::required(task.claim, "claim.claim")?.try_into()?;
        let (budget_nodes, report_work_min) = (task.budget_nodes, task.report_work_min);
        let leave = Leave {
            thresholds: match task.thresholds {
                Some(numbers) => Numbers { proof: numbers.proof, disproof: numbers.disproof },
                None => Leave::NEVER.thresholds,
            },
            nodes_min: task.nodes_min,
        };
        debug!(event = "lease", lease = held.id.0, job = held.job.0, problem = %fields, ?claim, budget_nodes, "leased");
        let Solver::Claims(engine) = self.solver(fields)? else {
            return Err(TaskError::Failed("a claim of a problem that is counted".to_owned()));
        };
        let problem = Problem::from_fields(fields).map_err(TaskError::failed)?;
        shared.facts.follow(registration.epoch, held.job, || shared.engine(&problem).ok().flatten());
        if let Some(batch) = facts {
            shared.facts.learn(registration.epoch, batch);
        }
        let limits =
            Limits { nodes: budget_nodes, leave, report_work_min, stop: &held.stop, progress: &held.nodes };
        let offered = shared.helping.offer(fields, &claim, held);
        let mut outcome = engine.decide(&claim, &limits).map_err(TaskError::failed)?;
        if matches!(outcome.verdict, Verdict::Open { .. }) && offered.is_decided() && held.resume() {
            // A helper was first. The table has what it found, or else the search goes on.
            let rest = Limits { nodes: budget_nodes.saturating_sub(outcome.nodes), ..limits };
            let Outcome { verdict, nodes, facts, samples } =
                engine.decide(&claim, &rest).map_err(TaskError::failed)?;
            outcome.verdict = verdict;
            outcome.nodes += nodes;
            outcome.facts.extend(facts);
            outcome.facts.truncate(FACTS_MAX);
            outcome.samples.merge(&samples);
        }
        outcome.nodes += offered.nodes();
        drop(offered);
        let Outcome { verdict, nodes, .. } = &outcome;
        match verdict {
            Verdict::Decided(_) => {}
            Verdict::Open { .. } if held.lapsed() => return Err(TaskError::Stopped),
            Verdict::Open { .. } if *nodes == 0 && limits.stopped() => return Err(TaskError::Stopped),
            Verdict::Open { .. } => {}
        }
        Ok(Some(complete_request(held, &claim, &outcome)))
    }

    /// Works on a part of a count and hands it in.
    fn part(
        &mut self,
        held: &Held,
        fields: &Fields,
        task: &v1::PartTask,
    ) -> Result<Option<v1::CompleteRequest>, TaskError> {
        let shared = Arc::clone(&self.shared);
        let Shared { session, client, runtime, .. } = &*shared;
        debug!(event = "lease", lease = held.id.0, job = held.job.0, problem = %fields, stage = task.stage, part = task.part, "leased");
        let Solver::Counting(counter) = self.solver(fields)? else {
            return Err(TaskError::Failed("a part of a problem that is answered by claims".to_owned()));
        };
        let fetch = || runtime.block_on(counting::fetch(session, client, held, task));
        let done = counting::work(counter, task, held, fetch)?;
        let acceptance = runtime.block_on(counting::hand_in(session, client, held, &done))?;
        info!(
            event = "result",
            lease = held.id.0,
            job = held.job.0,
            stage = task.stage,
            part = task.part,
            nodes = held.nodes.load(Ordering::Relaxed),
            acceptance = acceptance.as_str_name(),
            "part acknowledged"
        );
        Ok(None)
    }

    /// What this thread uses for the problem, made if need be.
    fn solver(&mut self, fields: &Fields) -> Result<&mut Solver, TaskError> {
        if self.solver.as_ref().is_none_or(|(of, _)| of != fields) {
            // Before the next one is made: a thread has the memory of one engine.
            self.solver = None;
            let problem = Problem::from_fields(fields).map_err(TaskError::failed)?;
            let solver = match &problem {
                Problem::Peg(problem) => Solver::Counting(Arc::new(Counter::new(problem))),
                Problem::Cram(_) | Problem::Kalah(_) | Problem::Konane(_) => {
                    let engine = self.shared.engine(&problem)?;
                    // Whoever builds its tables gives up when the worker drains: that is nobody's failure.
                    let none = || match self.shared.drain.cause() {
                        Some(_) => TaskError::Stopped,
                        None => TaskError::Failed(format!("no engine for {fields}")),
                    };
                    Solver::Claims(engine.ok_or_else(none)?)
                }
            };
            self.solver = Some((fields.clone(), solver));
        }
        match &mut self.solver {
            Some((_, solver)) => Ok(solver),
            None => Err(TaskError::Failed("no solver".to_owned())),
        }
    }
}

/// Why a task ended without a result.
#[derive(Debug, PartialEq, Eq)]
enum TaskError {
    /// It was told to stop.
    Stopped,
    /// It cannot be done, in words.
    Failed(String),
}

impl TaskError {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<convert::WireError> for TaskError {
    fn from(error: convert::WireError) -> Self {
        Self::failed(error)
    }
}

impl From<PartError> for TaskError {
    fn from(error: PartError) -> Self {
        match error {
            PartError::Stopped | PartError::Count(CountError::Stopped) => Self::Stopped,
            error => Self::failed(error),
        }
    }
}

fn verdict_name(verdict: &v1::complete_request::Verdict) -> &'static str {
    match verdict {
        v1::complete_request::Verdict::Decided(true) => "true",
        v1::complete_request::Verdict::Decided(false) => "false",
        v1::complete_request::Verdict::Open(_) => "open",
    }
}

/// Runs something that may panic; the panic's message is the error.
///
/// # Errors
/// The message.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

/// The engines of all games, which share these tables.
pub fn all_games(tables: Arc<dyn EngineTables>) -> Arc<EngineFactory> {
    Arc::new(move |problem, namespace, table| engine_for(problem, namespace, table, &tables))
}
