//! The virtual clock, the messages under way, and the core.

use super::wire::{reply_bytes, request_bytes};
use super::worker::{HandIn, Runs, Search, VirtualWorker};
use super::{Measurement, Setting, SimulationError};
use crate::core::{Action, Core, Event, Millis, Occurrence, Reply, Session, Token};
use crate::tide::Tide;
use grundy_search::table::{Entry, Key};
use grundy_tables::jobs::record::{Epoch, JobId, Loaded, Write};
use grundy_tables::telling::TOLD_BYTES;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often the core's clock ticks, as the real one's.
const TICK_US: u64 = 200_000;

/// How long a slice of a search is. Others hear of what it finds at its end, which is late; but each slice begins at the claim again, and many
/// short ones would change the search.
const SLICE_US: u64 = 250_000;

/// How long a Lease call is held, as a real worker of one thread asks for it.
const LEASE_WAIT_MS: u64 = 30_000;

/// What happens at a moment.
enum Happening {
    /// A request reaches the core.
    Request(Box<Event>),
    /// A reply reaches a worker.
    Reply(usize, Box<Reply>),
    /// A worker's slice is over, if it is still at it.
    SliceEnds(usize, u64),
    /// A worker sends a heartbeat.
    Beat(usize),
    /// A worker asks for a task.
    Ask(usize),
    /// The core's clock ticks.
    Tick,
    /// What a worker tells of its table reaches the coordinator.
    Told(usize, Told),
    /// It reaches another worker.
    Heard(usize, Told),
}

/// Entries of a table, on their way to all other workers.
type Told = Arc<Vec<(Key, Entry)>>;

/// One job and its virtual workers.
pub(super) struct World<'a> {
    setting: &'a Setting<'a>,
    core: Core,
    job: JobId,
    workers: Vec<VirtualWorker>,
    runs: Runs,
    now: u64,
    /// In order of time, then of when they were planned.
    agenda: BTreeMap<(u64, u64), Happening>,
    planned: u64,
    /// Who waits for a reply.
    callers: BTreeMap<Token, usize>,
    next_token: u64,
    slices: Vec<u64>,
    heartbeat_us: u64,
    /// How much of their tables workers tell each other.
    tide: Tide,
    solved: bool,
    measured: Measurement,
}

impl<'a> World<'a> {
    /// A coordinator with the job, and workers that are about to register.
    pub fn new(setting: &'a Setting<'a>, workers: u32) -> Result<Self, SimulationError> {
        let core = Core::new(Epoch(1), setting.options.clone(), Loaded::default(), Millis(0))
            .map_err(SimulationError::Core)?;
        let session =
            |worker| Session { epoch: Epoch(1), worker: format!("worker-{worker}"), incarnation: 1 };
        let mut world = Self {
            setting,
            core,
            job: JobId(0),
            workers: (1..=workers).map(|worker| VirtualWorker::new(session(worker))).collect(),
            runs: Runs::new(),
            now: 0,
            agenda: BTreeMap::new(),
            planned: 0,
            callers: BTreeMap::new(),
            next_token: 0,
            slices: vec![0; workers as usize],
            heartbeat_us: setting.options.heartbeat_ms.max(1) * 1000,
            tide: Tide::new(0),
            solved: false,
            measured: Measurement { workers, ..Measurement::default() },
        };
        let token = world.token();
        world.step(Event::Submit { token, fields: setting.fields.clone(), unix_ms: 0 })?;
        let mut random = ChaCha8Rng::seed_from_u64(setting.seed);
        for worker in 0..world.workers.len() {
            let token = world.token();
            let Session { worker: name, incarnation, .. } = world.workers[worker].session.clone();
            world.step(Event::Register { token, worker: name, incarnation, threads: 1 })?;
            world.plan(0, Happening::Ask(worker));
            let first_beat = random.random_range(1..=world.heartbeat_us);
            world.plan(first_beat, Happening::Beat(worker));
        }
        world.plan(TICK_US, Happening::Tick);
        Ok(world)
    }

    /// Lets everything happen until the job is solved.
    pub fn run(mut self) -> Result<Measurement, SimulationError> {
        while !self.solved {
            let ((time, _), happening) = self
                .agenda
                .pop_first()
                .ok_or_else(|| SimulationError::Core("nothing is left to happen".to_owned()))?;
            self.now = time;
            self.happen(happening)?;
        }
        for worker in 0..self.workers.len() {
            self.drop_search(worker);
        }
        self.measured.makespan_us = self.now;
        Ok(self.measured)
    }

    fn happen(&mut self, happening: Happening) -> Result<(), SimulationError> {
        match happening {
            Happening::Request(event) => self.step(*event),
            Happening::Reply(worker, reply) => self.replied(worker, *reply),
            Happening::SliceEnds(worker, slice) if self.slices[worker] == slice => self.slice_ended(worker),
            Happening::SliceEnds(..) => Ok(()),
            Happening::Ask(worker) => {
                self.ask(worker);
                Ok(())
            }
            Happening::Beat(worker) => {
                self.beat(worker);
                Ok(())
            }
            Happening::Told(worker, told) => {
                self.pass_on(worker, &told);
                Ok(())
            }
            Happening::Heard(worker, told) => {
                self.workers[worker].hear(&told);
                Ok(())
            }
            Happening::Tick => {
                self.plan(self.now + TICK_US, Happening::Tick);
                self.step(Event::Tick)
            }
        }
    }

    fn plan(&mut self, time: u64, happening: Happening) {
        self.planned += 1;
        self.agenda.insert((time, self.planned), happening);
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    /// Sends a worker's request on its way.
    fn send(&mut self, worker: usize, token: Token, event: Event) {
        self.callers.insert(token, worker);
        self.measured.messages += 1;
        self.measured.bytes += request_bytes(&event);
        self.plan(self.now + self.setting.latency_us, Happening::Request(Box::new(event)));
    }

    // ---- the coordinator ----

    fn step(&mut self, event: Event) -> Result<(), SimulationError> {
        self.measured.steps += 1;
        for action in self.core.step(Millis(self.now / 1000), event) {
            match action {
                Action::Commit(writes, _) => {
                    for write in writes {
                        if let Write::DropRuns(_, stage) = write {
                            self.runs.retain(|(part, _), _| part.stage != stage);
                        }
                    }
                }
                Action::Reply(_, Reply::Submitted { job, .. }) => self.job = job,
                Action::Reply(_, Reply::Error(error)) => {
                    return Err(SimulationError::Core(error.to_string()));
                }
                Action::Reply(token, reply) => {
                    if let Some(worker) = self.callers.remove(&token) {
                        self.measured.messages += 1;
                        self.measured.bytes += reply_bytes(&reply);
                        self.plan(
                            self.now + self.setting.latency_us,
                            Happening::Reply(worker, Box::new(reply)),
                        );
                    }
                }
                Action::Log(Occurrence::JobSolved { .. }) => self.solved = true,
                Action::Log(Occurrence::JobFailed { reason, .. }) => {
                    return Err(SimulationError::Core(reason));
                }
                Action::Log(Occurrence::LeaseGranted { .. }) => self.measured.leases += 1,
                Action::Log(_) => {}
            }
        }
        Ok(())
    }

    // ---- the workers ----

    fn cursors(&self, worker: usize) -> Vec<(JobId, u64)> {
        let worker = &self.workers[worker];
        if worker.follows() { vec![(self.job, worker.cursor)] } else { Vec::new() }
    }

    fn ask(&mut self, worker: usize) {
        let token = self.token();
        let (session, cursors) = (self.workers[worker].session.clone(), self.cursors(worker));
        self.send(worker, token, Event::Lease { token, session, wait_ms: LEASE_WAIT_MS, cursors });
    }

    fn beat(&mut self, worker: usize) {
        self.plan(self.now + self.heartbeat_us, Happening::Beat(worker));
        let token = self.token();
        let leases = self.workers[worker].search.iter();
        let leases = leases.map(|search| search.progress(self.nodes_since(search.slice_start))).collect();
        let (session, cursors) = (self.workers[worker].session.clone(), self.cursors(worker));
        self.send(worker, token, Event::Heartbeat { token, session, leases, cursors });
    }

    fn replied(&mut self, worker: usize, reply: Reply) -> Result<(), SimulationError> {
        match reply {
            Reply::Leased(assignment) => {
                let workers = self.measured.workers;
                self.measured.facts += self.workers[worker].take(*assignment, self.setting, workers)?;
                self.next_slice(worker)
            }
            Reply::Idle { retry_after_ms } => {
                self.plan(self.now + retry_after_ms * 1000, Happening::Ask(worker));
                Ok(())
            }
            Reply::Heartbeat { lapsed, facts, .. } => {
                for batch in facts {
                    self.measured.facts += self.workers[worker].learn(&batch.facts, batch.next)?;
                }
                let search = self.workers[worker].search.as_ref();
                if search.is_some_and(|search| lapsed.contains(&search.lease())) {
                    self.drop_search(worker);
                    self.ask(worker);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Nodes that a worker searches from then until now.
    fn nodes_since(&self, then: u64) -> u64 {
        let nodes = u128::from(self.now - then) * u128::from(self.setting.nodes_per_second.get());
        (nodes / 1_000_000) as u64
    }

    /// How long a worker takes for so many nodes, in microseconds.
    fn time_of(&self, nodes: u64) -> u64 {
        (u128::from(nodes) * 1_000_000).div_ceil(u128::from(self.setting.nodes_per_second.get())) as u64
    }

    fn next_slice(&mut self, worker: usize) -> Result<(), SimulationError> {
        let nodes = |us| us * self.setting.nodes_per_second.get() / 1_000_000;
        let most = nodes(SLICE_US.min(self.heartbeat_us)).max(1);
        if self.workers.len() > 1 {
            self.workers[worker].tell_from(self.tide.work_min());
        }
        self.workers[worker].search_slice(self.now, most, self.setting, &self.runs)?;
        let nodes = self.workers[worker].search.as_ref().map_or(0, |search| search.slice_nodes);
        self.slices[worker] += 1;
        let end = self.now + self.time_of(nodes).max(1);
        self.plan(end, Happening::SliceEnds(worker, self.slices[worker]));
        Ok(())
    }

    fn slice_ended(&mut self, worker: usize) -> Result<(), SimulationError> {
        let Some(search) = &self.workers[worker].search else { return Ok(()) };
        self.measured.nodes += search.slice_nodes;
        self.measured.busy_us += self.now - search.slice_start;
        let ended = search.end.is_some();
        self.tell(worker);
        if !ended {
            return self.next_slice(worker);
        }
        if let Some(search) = self.workers[worker].search.take() {
            self.hand_in(worker, search);
        }
        self.ask(worker);
        Ok(())
    }

    /// A worker tells of its table.
    fn tell(&mut self, worker: usize) {
        let told = self.workers[worker].told();
        if !told.is_empty() {
            self.count_told(&told);
            self.plan(self.now + self.setting.latency_us, Happening::Told(worker, Arc::new(told)));
        }
    }

    /// The coordinator passes on what a worker told.
    fn pass_on(&mut self, from: usize, told: &Told) {
        let listeners = self.workers.len() as u64 - 1;
        self.tide.pass_on(self.now / 1000, told.len() as u64, listeners);
        for worker in (0..self.workers.len()).filter(|worker| *worker != from) {
            self.count_told(told);
            self.measured.told += told.len() as u64;
            self.plan(self.now + self.setting.latency_us, Happening::Heard(worker, Arc::clone(told)));
        }
    }

    fn count_told(&mut self, told: &[(Key, Entry)]) {
        self.measured.messages += 1;
        self.measured.bytes += (told.len() * TOLD_BYTES) as u64;
    }

    fn hand_in(&mut self, worker: usize, mut search: Search) {
        let (token, session) = (self.token(), self.workers[worker].session.clone());
        let (lease, job, nodes) = (search.lease(), self.job, search.nodes());
        let event = match search.end.take() {
            Some(HandIn::Claim(result)) => Event::Complete { token, session, lease, job, result },
            Some(HandIn::Part(record, runs, bytes_read)) => {
                let Some(part) = search.part() else { return };
                self.measured.bytes += bytes_read;
                for (to_part, run) in runs.into_iter().enumerate() {
                    self.measured.bytes += run.len() as u64;
                    self.runs.insert((part, to_part as u32), run);
                }
                Event::CompletePart { token, session, lease, job, part, record, nodes }
            }
            None => return,
        };
        self.send(worker, token, event);
    }

    /// A lease is of no use any more: what was done of it is counted as lost.
    fn drop_search(&mut self, worker: usize) {
        if let Some(search) = self.workers[worker].search.take() {
            let of_slice = self.nodes_since(search.slice_start).min(search.slice_nodes);
            self.measured.nodes += of_slice;
            self.measured.nodes_lost += search.nodes() - search.slice_nodes + of_slice;
            self.measured.busy_us += self.now - search.slice_start;
            // The slice's end is of no concern now.
            self.slices[worker] += 1;
        }
    }
}
