//! The pure job core: one state machine, `step(now, event) -> actions`.
//!
//! No clock, no socket, no disk, no randomness may enter here; ordered maps only. The shell around it ([`crate::actor`]) brings
//! events and carries out actions; a simulator does the same with a virtual clock. An [`Action::Commit`] that is to be synced is
//! durable before any reply of the same step goes out, so whatever was acknowledged survives.

pub mod api;
mod counting;
mod dispatch;
mod ends;
mod estimate;
mod graph;
mod job;
mod leases;
mod options;
mod rate;
mod results;
mod sessions;
mod users;
mod waiting;
mod workers;

pub use api::*;
pub use graph::GraphError;
pub use options::Options;

use grundy_tables::jobs::Durability;
use grundy_tables::jobs::record::{Epoch, JobId, LeaseRecord, Loaded, Task, Write};
use job::{Job, Work};
use leases::Leases;
use options::{EXPIRED_MAX, FORGET_WORKER_MS, WAIT_MS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use waiting::{Queue, Waiting};
use workers::Worker;

/// A lease of an earlier epoch: its task is kept for its worker until the grace period ends.
#[derive(Debug)]
struct Orphan {
    lease: LeaseId,
    worker: String,
    incarnation: u64,
    until: Millis,
}

/// The state machine.
pub struct Core {
    epoch: Epoch,
    options: Options,
    jobs: BTreeMap<JobId, Job>,
    workers: BTreeMap<String, Worker>,
    leases: Leases,
    orphans: BTreeMap<(JobId, Task), Orphan>,
    /// Leases of this epoch that ended for want of heartbeats. Only these, of all that have ended, may come back.
    expired: BTreeSet<LeaseId>,
    waiting: Queue,
    /// Whether those that wait do so because nothing was there for them after the last event.
    dry: bool,
    /// The workers of those that found nothing after the last event, and then had waited for long enough.
    gone: Vec<String>,
    next_lease: u64,
    /// Splitting for idle workers is in vain before this: no lease has been worked on for long enough.
    split_from: Millis,
    draining: bool,
    /// Threads of all workers that are not lost, as of the last tick or registration.
    threads: u32,
    ticked: Millis,
}

/// What one step does, collected and put in order at its end.
#[derive(Default)]
struct Step {
    writes: Vec<Write>,
    /// Jobs whose records have changed: each is written once, at the end.
    jobs: BTreeSet<JobId>,
    synced: bool,
    replies: Vec<(Token, Reply)>,
    log: Vec<Occurrence>,
}

impl Step {
    fn reply(&mut self, token: Token, reply: Reply) {
        self.replies.push((token, reply));
    }

    fn write_job(&mut self, id: JobId) {
        self.jobs.insert(id);
    }

    fn into_actions(self) -> Vec<Action> {
        let durability = if self.synced { Durability::Synced } else { Durability::Buffered };
        let commit = (!self.writes.is_empty()).then_some(Action::Commit(self.writes, durability));
        let replies = self.replies.into_iter().map(|(token, reply)| Action::Reply(token, reply));
        commit.into_iter().chain(self.log.into_iter().map(Action::Log)).chain(replies).collect()
    }
}

impl Core {
    /// A core from what was stored. Open leases get a grace period; nothing decided is done again.
    ///
    /// # Errors
    /// In words, when what was stored contradicts itself or is no problem.
    pub fn new(epoch: Epoch, options: Options, loaded: Loaded, now: Millis) -> Result<Self, String> {
        let mut claims: BTreeMap<JobId, Vec<_>> = BTreeMap::new();
        for (job, claim, record) in loaded.claims {
            claims.entry(job).or_default().push((claim, record));
        }
        let mut parts: BTreeMap<JobId, Vec<_>> = BTreeMap::new();
        for (job, part, record) in loaded.parts {
            parts.entry(job).or_default().push((part, record));
        }
        let mut core = Self {
            epoch,
            options,
            jobs: BTreeMap::new(),
            workers: BTreeMap::new(),
            leases: Leases::default(),
            orphans: BTreeMap::new(),
            expired: BTreeSet::new(),
            waiting: Queue::default(),
            dry: false,
            gone: Vec::new(),
            next_lease: epoch.0 << 32,
            split_from: now,
            draining: false,
            threads: 0,
            ticked: now,
        };
        for (id, record) in loaded.jobs {
            let claims = claims.remove(&id).unwrap_or_default();
            let parts = parts.remove(&id).unwrap_or_default();
            let job = Job::new(id, record, claims, parts, &core.options)
                .map_err(|reason| format!("job {}: {reason}", id.0))?;
            core.jobs.insert(id, job);
        }
        // A job whose last result was durable, but not yet its answer, is finished by the first tick.
        for (id, task, record) in loaded.leases {
            let Some(job) = core.jobs.get_mut(&id).filter(|job| job.is_running()) else {
                continue;
            };
            if let Work::Claims(_) = job.work {
                // The node comes to life when the plan asks; until then there is nothing to hold.
                job.advance(&mut Vec::new()).map_err(|error| format!("job {}: {error}", id.0))?;
            }
            if job.is_free(&task) {
                job.hold(&task);
                let LeaseRecord { lease, worker, incarnation, .. } = record;
                let until = now.plus(core.options.grace_ms);
                core.orphans.insert((id, task), Orphan { lease: LeaseId(lease), worker, incarnation, until });
            }
        }
        Ok(core)
    }

    /// Whether it was told to drain and no lease is left.
    pub fn drained(&self) -> bool {
        self.draining && self.leases.is_empty()
    }

    /// Takes one event, and says what to do.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Action> {
        let mut step = Step::default();
        match event {
            Event::Submit { token, fields, unix_ms } => {
                let reply = self.submit(fields, unix_ms, now, &mut step).unwrap_or_else(Reply::Error);
                step.reply(token, reply);
            }
            Event::Cancel { token, job } => {
                let reply = self.cancel(job, now, &mut step).unwrap_or_else(Reply::Error);
                step.reply(token, reply);
            }
            Event::View { token, job } => {
                let reply = self.view(job, now).unwrap_or_else(Reply::Error);
                step.reply(token, reply);
            }
            Event::Query { token, job, position } => {
                let reply = self.query(job, &position).unwrap_or_else(Reply::Error);
                step.reply(token, reply);
            }
            Event::Drain { token } => {
                if !std::mem::replace(&mut self.draining, true) {
                    step.log.push(Occurrence::Draining);
                }
                step.reply(token, Reply::Draining);
            }
            Event::Register { token, worker, incarnation, threads } => {
                self.register(token, worker, incarnation, threads, now, &mut step);
            }
            Event::Lease { token, session, wait_ms, cursors } => match self.greet(&session, now) {
                Err(error) => step.reply(token, Reply::Error(error)),
                Ok(()) => {
                    if let Some(worker) = self.workers.get_mut(&session.worker) {
                        worker.has_asked(now);
                    }
                    let until = now.plus(wait_ms.min(WAIT_MS_MAX));
                    self.waiting.push(Waiting {
                        token,
                        session,
                        cursors: cursors.into_iter().collect(),
                        until,
                    });
                }
            },
            Event::Undelivered { lease } => self.end(lease, "not delivered", &mut step),
            Event::Abandon { token } => {
                self.waiting.remove_token(token);
            }
            Event::Heartbeat { token, session, leases, cursors } => {
                let reply =
                    self.heartbeat(&session, leases, cursors, now, &mut step).unwrap_or_else(Reply::Error);
                step.reply(token, reply);
            }
            Event::Complete { token, session, lease, job, result } => {
                let reply = self.complete(&session, lease, job, &result, now, &mut step);
                step.reply(token, reply.map_or_else(Reply::Error, Reply::Completed));
            }
            Event::CompletePart { token, session, lease, job, part, record, nodes } => {
                let reply = self.complete_part(&session, lease, job, part, record, nodes, now, &mut step);
                step.reply(token, reply.map_or_else(Reply::Error, Reply::Completed));
            }
            Event::DescribePart { token, job, part } => {
                let reply = self.describe_part(job, part).unwrap_or_else(Reply::Error);
                step.reply(token, reply);
            }
            Event::Release { token, session, lease, failed, reason, .. } => {
                self.release(&session, lease, failed, &reason, now, &mut step);
                step.reply(token, Reply::Released);
            }
            Event::Unregister { token, session } => {
                let reply = self.unregister(&session, &mut step);
                step.reply(token, reply.map_or_else(Reply::Error, |()| Reply::Unregistered));
            }
            Event::Tick => self.tick(now, &mut step),
        }
        self.serve_waiting(now, &mut step);
        for id in std::mem::take(&mut step.jobs) {
            if let Some(job) = self.jobs.get(&id) {
                step.writes.push(Write::Job(id, job.record.clone()));
            }
        }
        step.into_actions()
    }

    /// The coordinator itself was away (suspended, starved): nobody else's silence in that time means anything.
    fn wake_late(&mut self, away_ms: u64) {
        self.leases.put_off(away_ms);
        for orphan in self.orphans.values_mut() {
            orphan.until = orphan.until.plus(away_ms);
        }
        for worker in self.workers.values_mut() {
            worker.seen = worker.seen.plus(away_ms);
        }
    }

    fn tick(&mut self, now: Millis, step: &mut Step) {
        let passed = now.since(self.ticked);
        self.ticked = now;
        if passed > self.options.lease_ms / 2 {
            self.wake_late(passed);
        }
        let running: Vec<JobId> =
            self.jobs.values().filter(|job| job.is_running()).map(|job| job.id).collect();
        let mut in_flight: BTreeMap<JobId, u64> = BTreeMap::new();
        for (_, lease) in self.leases.iter() {
            let nodes = in_flight.entry(lease.job).or_default();
            *nodes = nodes.saturating_add(lease.nodes);
        }
        for id in running {
            self.advance(id, now, step);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.record.active_ms += passed;
                let total = job.record.nodes.saturating_add(in_flight.get(&id).copied().unwrap_or(0));
                job.rate.sample(now, total);
            }
        }
        let expired: Vec<LeaseId> =
            self.leases.iter().filter(|(_, lease)| lease.expires <= now).map(|(id, _)| id).collect();
        for id in expired {
            self.note_lapse(id);
            self.lose(id, "no heartbeat", step);
            self.expired.insert(id);
        }
        while self.expired.len() > EXPIRED_MAX {
            self.expired.pop_first();
        }
        self.free_orphans(|orphan| orphan.until <= now, step);
        let lease_ms = self.options.lease_ms;
        // A worker that waits in a Lease call is there, however long it says nothing.
        for waiting in self.waiting.iter() {
            if let Some(worker) = self.workers.get_mut(&waiting.session.worker) {
                worker.seen = now;
            }
        }
        for (name, worker) in &mut self.workers {
            let silent_ms = now.since(worker.seen);
            if !worker.lost && silent_ms > lease_ms {
                worker.lost = true;
                // Its leases lapse no later than it is given up: those that did were lost with it.
                let leases = worker.lapsed + self.leases.count_of(name);
                let (worker, incarnation) = (name.clone(), worker.incarnation);
                step.log.push(Occurrence::WorkerLost { worker, incarnation, silent_ms, leases });
            }
        }
        self.workers.retain(|_, worker| now.since(worker.seen) < FORGET_WORKER_MS);
        self.count_threads();
    }

    /// Counts the threads of all workers.
    fn count_threads(&mut self) {
        let live = self.workers.values().filter(|worker| !worker.lost);
        self.threads = live.fold(0, |threads, worker| threads.saturating_add(worker.threads));
    }

    /// Counts a lease that lapses against the silence of its worker.
    fn note_lapse(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.get(id)
            && let Some(worker) = self.workers.get_mut(&lease.worker)
        {
            worker.lapsed += 1;
        }
    }

    fn job(&self, id: JobId) -> Result<&Job, CoreError> {
        self.jobs.get(&id).ok_or(CoreError::NoSuchJob(id))
    }

    fn job_mut(&mut self, id: JobId) -> Result<&mut Job, CoreError> {
        self.jobs.get_mut(&id).ok_or(CoreError::NoSuchJob(id))
    }

    /// Checks everything that must hold between steps. For tests and the simulation.
    ///
    /// # Errors
    /// The first thing that does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.leases.check_invariants()?;
        self.waiting.check_invariants()?;
        for (id, lease) in self.leases.iter() {
            let job = self.jobs.get(&lease.job).ok_or_else(|| format!("lease {} is of no job", id.0))?;
            if !job.is_running() {
                return Err(format!("lease {} outlives job {}", id.0, lease.job.0));
            }
            if job.is_free(&lease.task) {
                return Err(format!("lease {}: {} is free for others", id.0, job.describe(&lease.task)));
            }
        }
        for job in self.jobs.values() {
            if let Work::Claims(claims) = &job.work {
                claims.graph.check_invariants(claims.rules())?;
            }
        }
        Ok(())
    }
}
