//! One coordinator core, some workers, and everything that can happen to them. One seed, one history.

use crate::network::{Network, Weather};
use crate::worker::{HandIn, Outcome, Worker};
use grundy::core::{
    Acceptance, Action, Core, CoreError, Event, JobView, Millis, Options, Reply, TaskSpec, Token, Verdict,
};
use grundy_games::claim::Claim;
use grundy_games::problem::Fields;
use grundy_tables::jobs::memory::MemoryJobs;
use grundy_tables::jobs::record::{JobId, JobStatus, PartId};
use grundy_tables::jobs::{Durability, JobStorage};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

/// What goes through the network or happens by the clock.
#[derive(Clone)]
enum Message {
    /// From a run of a worker to the coordinator.
    Request {
        worker: usize,
        incarnation: u64,
        request: Request,
    },
    /// From the coordinator to a run of a worker.
    Response {
        worker: usize,
        incarnation: u64,
        request: Request,
        reply: Reply,
    },
    /// A worker looks after itself.
    Wake {
        worker: usize,
    },
    /// The coordinator's clock.
    Tick,
    /// The user looks.
    User,
    /// The coordinator dies and comes back.
    CoordinatorDies,
    CoordinatorStarts,
    /// A worker dies and comes back.
    WorkerDies {
        worker: usize,
    },
    WorkerStarts {
        worker: usize,
    },
}

/// What a worker asks.
#[derive(Clone)]
enum Request {
    Register,
    Lease,
    Heartbeat,
    HandIn(Box<HandIn>),
    Unregister,
}

/// A schedule's settings.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The problem.
    pub fields: Fields,
    /// The answer, as JSON.
    pub answer: String,
    /// Workers.
    pub workers: usize,
    /// How often something dies.
    pub deaths: u32,
    /// An injected bug: acknowledge before the write is durable.
    pub acknowledge_unsynced: bool,
}

/// Calm begins here, so that every schedule can end.
const STORM_MS: u64 = 3_000;

/// A schedule that is not done by then hangs.
const END_MS: u64 = 600_000;

/// Small budgets, so that small boards make many leases.
fn options() -> Options {
    Options {
        lease_ms: 400,
        heartbeat_ms: 50,
        grace_ms: 200,
        budget_nodes: 10,
        split_nodes: 25,
        split_idle_ms: 30,
        report_share: 4,
        // The storm may kill the same leaf's workers many times; parking has a test of its own.
        losses_max: u32::MAX,
        share_nodes_min: 4,
        part_entries: 5,
        retry_after_ms: 10,
    }
}

/// The world.
pub struct World {
    plan: Plan,
    rng: ChaCha8Rng,
    now: u64,
    network: Network<Message>,
    storage: MemoryJobs,
    core: Option<Core>,
    workers: Vec<Worker>,
    waiting: BTreeMap<Token, (usize, u64, Request)>,
    next_token: u64,
    job: Option<JobId>,
    /// Claims whose decision was acknowledged to somebody: they may never be lost, nor handed out again.
    acknowledged: BTreeSet<Claim>,
    /// Leases granted in all.
    pub leases: u64,
    solved: Option<JobView>,
}

impl World {
    /// A world from a seed.
    pub fn new(plan: Plan, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let weather = Weather {
            delay_ms_max: rng.random_range(1..80),
            lost_permille: rng.random_range(0..200),
            doubled_permille: rng.random_range(0..200),
        };
        let mut network = Network::new(weather);
        network.at(0, Message::CoordinatorStarts);
        network.at(1, Message::Tick);
        network.at(2, Message::User);
        for worker in 0..plan.workers {
            network.at(rng.random_range(1..100), Message::Wake { worker });
        }
        for _ in 0..plan.deaths {
            let time = rng.random_range(10..STORM_MS);
            let message = match rng.random_ratio(1, 3) {
                true => Message::CoordinatorDies,
                false => Message::WorkerDies { worker: rng.random_range(0..plan.workers) },
            };
            network.at(time, message);
        }
        Self {
            workers: (0..plan.workers).map(Worker::new).collect(),
            plan,
            rng,
            now: 0,
            network,
            storage: MemoryJobs::new(),
            core: None,
            waiting: BTreeMap::new(),
            next_token: 0,
            job: None,
            acknowledged: BTreeSet::new(),
            leases: 0,
            solved: None,
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn run(&mut self) -> Result<(), String> {
        while self.solved.is_none() {
            let (time, message) = self.network.next().ok_or("nothing is left to happen")?;
            if time > END_MS {
                return Err("not solved within ten virtual minutes".to_owned());
            }
            self.now = time;
            if time > STORM_MS {
                self.network.weather = Weather::CALM;
            }
            self.happen(message)?;
            if let Some(core) = &self.core {
                core.check_invariants()?;
            }
        }
        self.check_end()
    }

    /// After the answer: it is right, and still there after the worst crash.
    fn check_end(&mut self) -> Result<(), String> {
        let answer = |view: &JobView| serde_json::to_string(&view.answer).map_err(|error| error.to_string());
        let view = self.solved.take().ok_or("not solved")?;
        let expected = self.plan.answer.clone();
        if answer(&view)? != expected {
            return Err(format!("answered {}, right is {expected}", answer(&view)?));
        }
        self.kill_coordinator();
        self.start_coordinator()?;
        let job = self.job.ok_or("the user has no job")?;
        let view = self.look(job)?.ok_or("the solved job is gone after a crash")?;
        if view.status != JobStatus::Solved || answer(&view)? != expected {
            return Err(format!("after a crash the job is {:?} with {}", view.status, answer(&view)?));
        }
        Ok(())
    }

    fn happen(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Request { worker, incarnation, request } => {
                return self.request(worker, incarnation, request);
            }
            Message::Response { worker, incarnation, request, reply } => {
                if self.workers[worker].alive && self.workers[worker].incarnation == incarnation {
                    return self.response(worker, request, reply);
                }
            }
            Message::Wake { worker } => self.wake(worker),
            Message::Tick => {
                self.network.at(self.now + 20, Message::Tick);
                return self.step(Event::Tick);
            }
            Message::User => {
                self.network.at(self.now + 50, Message::User);
                return self.user();
            }
            Message::CoordinatorDies => {
                if self.core.is_some() {
                    self.kill_coordinator();
                    let delay = self.rng.random_range(1..500);
                    self.network.at(self.now + delay, Message::CoordinatorStarts);
                }
            }
            Message::CoordinatorStarts => return self.start_coordinator(),
            Message::WorkerDies { worker } => {
                if self.workers[worker].alive {
                    // Some are stopped in order, whatever they were at, and say so.
                    if self.workers[worker].epoch.is_some() && self.rng.random_ratio(1, 3) {
                        self.ask(worker, Request::Unregister);
                    }
                    self.workers[worker].die();
                    let delay = self.rng.random_range(1..800);
                    self.network.at(self.now + delay, Message::WorkerStarts { worker });
                }
            }
            Message::WorkerStarts { worker } => {
                self.workers[worker].revive();
                self.network.at(self.now + 1, Message::Wake { worker });
            }
        }
        Ok(())
    }

    // ---- the coordinator ----

    fn kill_coordinator(&mut self) {
        self.core = None;
        self.waiting.clear();
        // Of what was not synced, any beginning may have reached the disk.
        let keep = self.rng.random_range(0..=self.storage.unsynced());
        self.storage.crash(keep);
    }

    fn start_coordinator(&mut self) -> Result<(), String> {
        if self.core.is_none() {
            let epoch = self.storage.reopen();
            let loaded = self.storage.load().map_err(|error| error.to_string())?;
            self.core = Some(Core::new(epoch, options(), loaded, Millis(self.now))?);
        }
        Ok(())
    }

    /// One step of the core, its actions carried out in order. The coordinator may die between the write and the replies.
    fn step(&mut self, event: Event) -> Result<(), String> {
        let Some(core) = &mut self.core else { return Ok(()) };
        for action in core.step(Millis(self.now), event) {
            match action {
                Action::Commit(writes, durability) => {
                    let durability =
                        if self.plan.acknowledge_unsynced { Durability::Buffered } else { durability };
                    self.storage.commit(&writes, durability).map_err(|error| error.to_string())?;
                    if self.now < STORM_MS && self.rng.random_ratio(1, 500) {
                        return self.happen(Message::CoordinatorDies);
                    }
                }
                Action::Reply(token, reply) => self.reply(token, reply)?,
                Action::Log(_) => {}
            }
        }
        Ok(())
    }

    fn reply(&mut self, token: Token, reply: Reply) -> Result<(), String> {
        let Some((worker, incarnation, request)) = self.waiting.remove(&token) else {
            return Ok(());
        };
        match (&reply, &request) {
            (Reply::Leased(assignment), _) => {
                self.leases += 1;
                if let TaskSpec::Claim { claim, .. } = &assignment.task
                    && self.acknowledged.contains(claim)
                {
                    return Err(format!("handed out again after its decision was acknowledged: {claim:?}"));
                }
            }
            (Reply::Completed(Acceptance::Accepted | Acceptance::Known), Request::HandIn(hand_in)) => {
                if let Outcome::Claim(result) = &hand_in.result
                    && matches!(result.verdict, Verdict::Decided(_))
                {
                    self.acknowledged.insert(result.claim.clone());
                }
            }
            (
                Reply::Error(
                    CoreError::Register { .. } | CoreError::Superseded { .. } | CoreError::NoSuchJob(_),
                ),
                _,
            ) => {}
            (Reply::Error(error), _) => return Err(format!("the core refuses an honest worker: {error}")),
            _ => {}
        }
        let message = Message::Response { worker, incarnation, request, reply };
        self.network.send(self.now, message, &mut self.rng);
        Ok(())
    }

    /// Asks the core something on nobody's behalf and takes the reply, without network or sudden death.
    fn ask_core(&mut self, event: impl FnOnce(Token) -> Event) -> Result<Option<Reply>, String> {
        self.next_token += 1;
        let token = Token(self.next_token);
        let Some(core) = &mut self.core else {
            return Ok(None);
        };
        let mut answer = None;
        for action in core.step(Millis(self.now), event(token)) {
            match action {
                Action::Commit(writes, durability) => {
                    self.storage.commit(&writes, durability).map_err(|error| error.to_string())?;
                }
                Action::Reply(to, reply) if to == token => answer = Some(reply),
                Action::Reply(to, reply) => self.reply(to, reply)?,
                Action::Log(_) => {}
            }
        }
        Ok(answer)
    }

    // ---- the user ----

    /// Submits until it is acknowledged, then looks until it is solved.
    fn user(&mut self) -> Result<(), String> {
        let Some(job) = self.job else {
            let fields = self.plan.fields.clone();
            let reply = self.ask_core(|token| Event::Submit { token, fields, unix_ms: 0 })?;
            if let Some(Reply::Submitted { job, .. }) = reply {
                self.job = Some(job);
            }
            return Ok(());
        };
        if self.core.is_none() {
            return Ok(());
        }
        let view = self.look(job)?.ok_or("the job is gone")?;
        match &view.status {
            JobStatus::Solved => self.solved = Some(view),
            JobStatus::Failed(reason) => return Err(format!("the job failed: {reason}")),
            _ => {}
        }
        Ok(())
    }

    fn look(&mut self, job: JobId) -> Result<Option<JobView>, String> {
        match self.ask_core(|token| Event::View { token, job: Some(job) })? {
            Some(Reply::View { jobs, .. }) => Ok(jobs.into_iter().next()),
            _ => Ok(None),
        }
    }

    /// Whether the coordinator is up and wants the part.
    fn is_wanted(&mut self, job: JobId, part: PartId) -> Result<bool, String> {
        let reply = self.ask_core(|token| Event::DescribePart { token, job, part })?;
        Ok(matches!(reply, Some(Reply::Part(description)) if description.wanted))
    }

    // ---- the workers ----

    fn ask(&mut self, worker: usize, request: Request) {
        let incarnation = self.workers[worker].incarnation;
        let message = Message::Request { worker, incarnation, request };
        self.network.send(self.now, message, &mut self.rng);
    }

    /// A worker finishes what is due, and asks for what it lacks.
    fn wake(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        if !worker.alive {
            return;
        }
        if worker.current.as_ref().is_some_and(|current| current.done_at <= self.now)
            && let Some(current) = worker.current.take()
        {
            worker.outbox.push(current.hand_in);
        }
        let (registered, idle, outbox) =
            (worker.epoch.is_some(), worker.current.is_none(), worker.outbox.clone());
        if registered {
            self.ask(index, Request::Heartbeat);
            for hand_in in outbox {
                self.ask(index, Request::HandIn(Box::new(hand_in)));
            }
            if idle {
                self.ask(index, Request::Lease);
            }
        } else {
            self.ask(index, Request::Register);
        }
        let nap = self.rng.random_range(10..60);
        self.network.at(self.now + nap, Message::Wake { worker: index });
    }

    /// A worker's request reaches the coordinator.
    fn request(&mut self, index: usize, incarnation: u64, request: Request) -> Result<(), String> {
        if self.core.is_none() {
            return Ok(());
        }
        self.next_token += 1;
        let token = Token(self.next_token);
        let worker = &self.workers[index];
        let mut session = worker.session();
        session.incarnation = incarnation;
        let cursors: Vec<_> = worker.cursors.iter().map(|(job, next)| (*job, *next)).collect();
        let event = match &request {
            Request::Register => {
                // A late message of an earlier run of the process would not get through: its connection is gone.
                if worker.incarnation != incarnation {
                    return Ok(());
                }
                Event::Register { token, worker: session.worker, incarnation, threads: 1 }
            }
            Request::Unregister => Event::Unregister { token, session },
            Request::Lease => Event::Lease { token, session, wait_ms: 40, cursors },
            Request::Heartbeat => {
                let current = worker.current.iter().filter(|_| worker.incarnation == incarnation);
                Event::Heartbeat {
                    token,
                    session,
                    leases: current.map(|c| c.progress.clone()).collect(),
                    cursors,
                }
            }
            Request::HandIn(hand_in) => {
                let HandIn { lease, job, result } = (**hand_in).clone();
                match result {
                    Outcome::Claim(result) => Event::Complete { token, session, lease, job, result },
                    Outcome::Part(part, record, runs) => {
                        for (to_part, run) in runs.iter().enumerate() {
                            self.storage
                                .put_run(job, part, to_part as u32, run)
                                .map_err(|error| error.to_string())?;
                        }
                        let nodes = record.boards;
                        Event::CompletePart { token, session, lease, job, part, record, nodes }
                    }
                }
            }
        };
        self.waiting.insert(token, (index, incarnation, request));
        self.step(event)
    }

    /// A reply reaches a worker.
    fn response(&mut self, index: usize, request: Request, reply: Reply) -> Result<(), String> {
        let worker = &mut self.workers[index];
        match reply {
            // A late answer of an earlier epoch must not undo a newer one.
            Reply::Registered { epoch, .. } if worker.epoch.is_none_or(|known| known < epoch) => {
                worker.epoch = Some(epoch);
                worker.cursors.clear();
            }
            Reply::Error(CoreError::Register { .. }) => worker.epoch = None,
            Reply::Leased(assignment) => {
                if worker.current.is_none()
                    && let Err(error) = worker.take(self.now, &assignment, &self.storage)
                    && let TaskSpec::Part(spec) = assignment.task
                    && self.is_wanted(assignment.job, spec.part)?
                {
                    return Err(format!("{:?} is wanted but cannot be done: {error}", spec.part));
                }
            }
            Reply::Heartbeat { lapsed, .. }
                if worker
                    .current
                    .as_ref()
                    .is_some_and(|current| lapsed.contains(&current.progress.lease)) =>
            {
                worker.current = None;
            }
            Reply::Completed(_) => {
                if let Request::HandIn(done) = request {
                    worker.outbox.retain(|hand_in| hand_in.lease != done.lease);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
