//! The pure job core: one state machine, `step(now, event) -> actions`.
//!
//! No clock, no socket, no disk, no randomness may enter here; ordered maps only. The shell around it ([`crate::actor`]) brings
//! events and carries out actions; a simulator does the same with a virtual clock. An [`Action::Commit`] that is to be synced is
//! durable before any reply of the same step goes out, so whatever was acknowledged survives.

pub mod api;
mod counting;
mod graph;
mod job;
mod options;
mod rate;
mod workers;

pub use api::*;
pub use graph::GraphError;
pub use options::Options;

use counting::CountingError;
use graph::NodeId;
use grundy_games::claim::ClaimRules;
use grundy_games::problem::{Approach, Problem};
use grundy_tables::jobs::Durability;
use grundy_tables::jobs::record::{
    Epoch, JobId, JobRecord, JobStatus, LeaseRecord, Loaded, PartId, PartRecord, Task, Write,
};
use job::{Job, Work};
use options::{EXPIRED_MAX, FACTS_PER_REPLY_MAX, FORGET_WORKER_MS, WAIT_MS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use workers::Worker;

/// A lease in flight.
#[derive(Debug)]
struct Lease {
    job: JobId,
    task: Task,
    /// The root it was chosen under, for spreading workers over roots.
    root: Option<NodeId>,
    worker: String,
    granted: Millis,
    expires: Millis,
    nodes: u64,
}

/// A lease of an earlier epoch: its task is kept for its worker until the grace period ends.
#[derive(Debug)]
struct Orphan {
    lease: LeaseId,
    worker: String,
    incarnation: u64,
    until: Millis,
}

/// A worker that waits for a task.
#[derive(Debug)]
struct Waiting {
    token: Token,
    session: Session,
    cursors: BTreeMap<JobId, u64>,
    until: Millis,
}

/// The state machine.
pub struct Core {
    epoch: Epoch,
    options: Options,
    jobs: BTreeMap<JobId, Job>,
    workers: BTreeMap<String, Worker>,
    leases: BTreeMap<LeaseId, Lease>,
    orphans: BTreeMap<(JobId, Task), Orphan>,
    /// Leases of this epoch that ended for want of heartbeats. Only these, of all that have ended, may come back.
    expired: BTreeSet<LeaseId>,
    waiting: Vec<Waiting>,
    next_lease: u64,
    draining: bool,
    ticked: Millis,
}

/// What one step does, collected and put in order at its end.
#[derive(Default)]
struct Step {
    writes: Vec<Write>,
    synced: bool,
    replies: Vec<(Token, Reply)>,
    log: Vec<Occurrence>,
}

impl Step {
    fn reply(&mut self, token: Token, reply: Reply) {
        self.replies.push((token, reply));
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
            leases: BTreeMap::new(),
            orphans: BTreeMap::new(),
            expired: BTreeSet::new(),
            waiting: Vec::new(),
            next_lease: epoch.0 << 32,
            draining: false,
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
            Event::Abandon { token } => self.waiting.retain(|waiting| waiting.token != token),
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
                self.release(&session, lease, failed, &reason, &mut step);
                step.reply(token, Reply::Released);
            }
            Event::Tick => self.tick(now, &mut step),
        }
        self.serve_waiting(now, &mut step);
        step.into_actions()
    }

    // ---- users ----

    fn submit(
        &mut self,
        fields: grundy_games::problem::Fields,
        unix_ms: u64,
        now: Millis,
        step: &mut Step,
    ) -> Result<Reply, CoreError> {
        let problem = Problem::from_fields(&fields).map_err(|error| CoreError::Problem(error.to_string()))?;
        // In the notation that the game prints, so that equal problems are found equal.
        let fields = problem.to_fields();
        if self.draining {
            return Err(CoreError::Draining);
        }
        let known = self.jobs.values().find(|job| job.record.fields == fields).map(|job| job.id);
        let resumed = known.is_some();
        let id = match known {
            Some(id) => id,
            None => {
                let id = JobId(self.jobs.last_key_value().map_or(1, |(id, _)| id.0 + 1));
                let record = JobRecord {
                    fields: fields.clone(),
                    submitted_unix_ms: unix_ms,
                    status: JobStatus::Running,
                    nodes: 0,
                    results: 0,
                    leases: 0,
                    leases_lost: 0,
                    active_ms: 0,
                };
                let job = Job::new(id, record, Vec::new(), Vec::new(), &self.options)
                    .map_err(CoreError::Problem)?;
                self.jobs.insert(id, job);
                id
            }
        };
        let job = self.job_mut(id)?;
        // A failed job stays failed: what made it fail is in its data, and a retry would only hide it.
        if job.record.status == JobStatus::Cancelled {
            job.record.status = JobStatus::Running;
        }
        job.unpark();
        let decided = job.statistics().decided.max(job.decided_before_start);
        step.log.push(Occurrence::JobSubmitted { job: id, fields, resumed, decided });
        step.synced = true;
        self.advance(id, now, step);
        self.write_job(id, step);
        let view = Box::new(self.job_view(id, now)?);
        Ok(Reply::Submitted { job: id, resumed, view })
    }

    fn cancel(&mut self, id: JobId, now: Millis, step: &mut Step) -> Result<Reply, CoreError> {
        let job = self.job_mut(id)?;
        if job.is_running() {
            job.record.status = JobStatus::Cancelled;
            step.log.push(Occurrence::JobCancelled { job: id });
            step.synced = true;
            self.end_leases_of(id, "the job was cancelled", step);
            self.write_job(id, step);
        }
        self.view(Some(id), now)
    }

    fn view(&self, job: Option<JobId>, now: Millis) -> Result<Reply, CoreError> {
        let jobs = match job {
            Some(id) => vec![self.job_view(id, now)?],
            None => self.jobs.keys().map(|id| self.job_view(*id, now)).collect::<Result<_, _>>()?,
        };
        let workers =
            self.workers.iter().map(|(name, worker)| worker.view(name, self.leases_of(name), now)).collect();
        Ok(Reply::View { jobs, workers })
    }

    fn job_view(&self, id: JobId, now: Millis) -> Result<JobView, CoreError> {
        let job = self.job(id)?;
        let mut statistics = job.statistics();
        let open = self.leases.values().filter(|lease| lease.job == id);
        let (count, nodes) = open.fold((0, 0), |(count, nodes), lease| (count + 1, nodes + lease.nodes));
        statistics.leases_open = count;
        statistics.nodes += nodes;
        statistics.workers = self.workers.values().filter(|worker| !worker.lost).count() as u32;
        statistics.nodes_per_second = if job.is_running() {
            job.rate.per_second()
        } else {
            // Of a job that has ended, over all its time.
            statistics.nodes as f64 * 1000.0 / statistics.active_ms.max(1) as f64
        };
        if job.is_running() {
            statistics.active_ms += now.since(self.ticked);
            if statistics.workers == 0 {
                statistics.phase = "waiting for workers".to_owned();
                statistics.remaining_ms = None;
            }
        }
        let (fields, status) = (job.record.fields.clone(), job.record.status.clone());
        Ok(JobView { job: id, fields, status, answer: job.answer(), statistics })
    }

    fn query(&self, id: JobId, position: &str) -> Result<Reply, CoreError> {
        let job = self.job(id)?;
        let solved = job.record.status == JobStatus::Solved;
        if position.is_empty() {
            return Ok(Reply::Known { decided: solved, answer: job.answer() });
        }
        let mut fields = job.record.fields.clone();
        position.clone_into(&mut fields.position);
        let problem = Problem::from_fields(&fields).map_err(|error| CoreError::Problem(error.to_string()))?;
        if problem.to_fields() == job.record.fields {
            return Ok(Reply::Known { decided: solved, answer: job.answer() });
        }
        let (Work::Claims(claims), Approach::Claims(plan)) = (&job.work, problem.approach()) else {
            let reason = "a count answers for its own position only";
            return Err(CoreError::NotAnswerable(reason.to_owned()));
        };
        if plan.rules().namespace() != claims.rules().namespace() {
            let ours = claims.rules().namespace();
            return Err(CoreError::NotAnswerable(format!(
                "the job's positions are those of {ours}, not of {}",
                plan.rules().namespace()
            )));
        }
        let answer = plan.partial(&claims.known());
        let decided = matches!(plan.next(&claims.known()), grundy_games::plan::Progress::Answered(_));
        Ok(Reply::Known { decided, answer })
    }

    // ---- workers ----

    fn register(
        &mut self,
        token: Token,
        name: String,
        incarnation: u64,
        threads: u32,
        now: Millis,
        step: &mut Step,
    ) {
        let superseded = self.workers.get(&name).is_some_and(|worker| worker.incarnation != incarnation);
        if superseded {
            self.waiting.retain(|waiting| waiting.session.worker != name);
            let old: Vec<LeaseId> =
                self.leases.iter().filter(|(_, lease)| lease.worker == name).map(|(id, _)| *id).collect();
            for id in old {
                self.lose(id, "its worker was started anew", step);
            }
        }
        // From before a restart of this coordinator, likewise: that run of the worker is gone.
        let orphans: Vec<(JobId, Task)> = self
            .orphans
            .iter()
            .filter(|(_, orphan)| orphan.worker == name && orphan.incarnation != incarnation)
            .map(|(key, _)| key.clone())
            .collect();
        for key in orphans {
            self.free_orphan(&key, step);
        }
        let worker =
            self.workers.entry(name.clone()).or_insert_with(|| Worker::new(incarnation, threads, now));
        worker.incarnation = incarnation;
        worker.threads = threads;
        worker.seen = now;
        worker.lost = false;
        step.log.push(Occurrence::WorkerRegistered { worker: name, incarnation, threads, superseded });
        let Options { lease_ms, heartbeat_ms, .. } = self.options;
        step.reply(token, Reply::Registered { epoch: self.epoch, lease_ms, heartbeat_ms });
    }

    /// Checks that a worker is registered in this epoch and that no newer run of it is.
    fn greet(&mut self, session: &Session, now: Millis) -> Result<(), CoreError> {
        let register = CoreError::Register { worker: session.worker.clone(), epoch: self.epoch };
        if session.epoch != self.epoch {
            return Err(register);
        }
        let worker = self.workers.get_mut(&session.worker).ok_or(register)?;
        if worker.incarnation != session.incarnation {
            return Err(CoreError::Superseded { worker: session.worker.clone() });
        }
        worker.seen = now;
        worker.lost = false;
        Ok(())
    }

    fn heartbeat(
        &mut self,
        session: &Session,
        leases: Vec<LeaseProgress>,
        cursors: Vec<(JobId, u64)>,
        now: Millis,
        step: &mut Step,
    ) -> Result<Reply, CoreError> {
        self.greet(session, now)?;
        let (mut lapsed, mut adopted) = (Vec::new(), Vec::new());
        for progress in leases {
            let id = progress.lease;
            if let Some(lease) = self.leases.get_mut(&id).filter(|lease| lease.worker == session.worker) {
                lease.expires = now.plus(self.options.lease_ms);
                lease.nodes = progress.nodes;
                let wanted = self
                    .jobs
                    .get(&lease.job)
                    .is_some_and(|job| job.is_running() && job.is_wanted(&lease.task));
                if !wanted {
                    self.end(id, "its answer is not needed any more", step);
                    lapsed.push(id);
                }
            } else if self.adopt(session, &progress, now, step) {
                adopted.push(id);
            } else {
                lapsed.push(id);
            }
        }
        let mut facts = Vec::new();
        for (job, cursor) in cursors {
            let batch = self.facts_since(job, cursor, &session.worker);
            if batch.next != cursor {
                facts.push(batch);
            }
        }
        Ok(Reply::Heartbeat { lapsed, adopted, facts, draining: self.draining })
    }

    /// Takes over a lease that this epoch does not know, or that has expired, while its task is still nobody else's.
    fn adopt(&mut self, session: &Session, progress: &LeaseProgress, now: Millis, step: &mut Step) -> bool {
        // A lease of this epoch that was completed or handed back has ended for good: its last heartbeat was only late.
        let of_this_epoch = progress.lease.0 >> 32 == self.epoch.0;
        if self.leases.contains_key(&progress.lease)
            || of_this_epoch && !self.expired.contains(&progress.lease)
        {
            return false;
        }
        let key = (progress.job, progress.task.clone());
        let own_orphan = self.take_orphan(&key, progress.lease, session);
        let Some(job) = self.jobs.get_mut(&progress.job).filter(|job| job.is_running()) else {
            return false;
        };
        if !own_orphan && !job.is_free(&progress.task) {
            return false;
        }
        job.hold(&progress.task);
        let lease = Lease {
            job: progress.job,
            task: progress.task.clone(),
            root: None,
            worker: session.worker.clone(),
            granted: now,
            expires: now.plus(self.options.lease_ms),
            nodes: progress.nodes,
        };
        self.leases.insert(progress.lease, lease);
        self.expired.remove(&progress.lease);
        step.writes.push(self.lease_record(progress.lease, progress.job, &progress.task, session));
        let (job, lease, worker) = (progress.job, progress.lease, session.worker.clone());
        step.log.push(Occurrence::LeaseRenewedAcrossEpochs { job, lease, worker });
        true
    }

    /// Ends the wait for a lease of an earlier epoch when its worker speaks of it. The task stays held.
    fn take_orphan(&mut self, key: &(JobId, Task), lease: LeaseId, session: &Session) -> bool {
        let own = self.orphans.get(key).is_some_and(|orphan| {
            orphan.lease == lease
                && orphan.worker == session.worker
                && orphan.incarnation == session.incarnation
        });
        if own {
            self.orphans.remove(key);
        }
        own
    }

    fn facts_since(&self, id: JobId, cursor: u64, worker: &str) -> FactBatch {
        let shared = match self.jobs.get(&id).map(|job| &job.work) {
            Some(Work::Claims(claims)) => claims.shared.as_slice(),
            _ => &[],
        };
        // A cursor past the end is of an epoch with more facts in its list: start over.
        let start = usize::try_from(cursor).ok().filter(|start| *start <= shared.len()).unwrap_or(0);
        let batch: Vec<_> = shared[start..].iter().take(FACTS_PER_REPLY_MAX).collect();
        let next = (start + batch.len()) as u64;
        let facts =
            batch.into_iter().filter(|(_, source)| source != worker).map(|(fact, _)| fact.clone()).collect();
        FactBatch { job: id, facts, next }
    }

    #[allow(clippy::too_many_arguments, reason = "one call site; they are the fields of one event")]
    fn complete_part(
        &mut self,
        session: &Session,
        lease: LeaseId,
        id: JobId,
        part: PartId,
        mut record: PartRecord,
        nodes: u64,
        now: Millis,
        step: &mut Step,
    ) -> Result<Acceptance, CoreError> {
        let job = self.job_mut(id)?;
        let running = job.is_running();
        let Work::Counting(counting) = &mut job.work else {
            return Err(CoreError::Malformed("the job is answered by claims, not by counting".to_owned()));
        };
        record.source.clone_from(&session.worker);
        let was_done = counting.is_done(part);
        let finished = match counting.finish(part, record.clone()) {
            Ok(finished) => finished,
            Err(error @ CountingError::Malformed { .. }) => {
                return Err(CoreError::Malformed(error.to_string()));
            }
            Err(error @ (CountingError::Contradiction { .. } | CountingError::Overflow)) => {
                self.fail(id, error.to_string(), step);
                return Ok(Acceptance::JobEnded);
            }
        };
        self.end_completed(lease, &session.worker, step);
        if was_done {
            return Ok(Acceptance::Known);
        }
        let job = self.job_mut(id)?;
        job.record.results += 1;
        job.record.nodes += nodes;
        step.synced = true;
        step.writes.push(Write::Part(id, part, record.clone()));
        self.credit(&session.worker, nodes);
        let (task, verdict) = (Task::Part(part), format!("{} boards", record.boards));
        self.log_result(id, &session.worker, &task, verdict, nodes, 0, step);
        if let Some(finished) = finished {
            step.writes.extend(finished.drop_runs_of.iter().map(|stage| Write::DropRuns(id, *stage)));
            step.log.push(Occurrence::StageFinished {
                job: id,
                stage: finished.stage,
                boards: finished.boards,
                boards_with_images: finished.boards_with_images,
                parts_next: finished.parts_next,
            });
        }
        if running {
            self.advance(id, now, step);
        }
        self.write_job(id, step);
        Ok(Acceptance::Accepted)
    }

    fn complete(
        &mut self,
        session: &Session,
        lease: LeaseId,
        id: JobId,
        result: &ClaimResult,
        now: Millis,
        step: &mut Step,
    ) -> Result<Acceptance, CoreError> {
        let task = Task::Claim(result.claim.clone());
        let current = self
            .leases
            .get(&lease)
            .is_some_and(|lease| lease.worker == session.worker && lease.job == id && lease.task == task);
        let orphan = self.take_orphan(&(id, task.clone()), lease, session);
        if orphan && let Some(job) = self.jobs.get_mut(&id) {
            job.free(&task);
            step.writes.push(Write::LeaseEnd(id, task.clone()));
        }
        let current = current || orphan;
        let options = self.options.clone();
        let job = self.job_mut(id)?;
        let running = job.is_running();
        let Work::Claims(claims) = &mut job.work else {
            return Err(CoreError::Malformed("the job is answered by counting, not by claims".to_owned()));
        };
        check_result(claims.rules(), result).map_err(CoreError::Malformed)?;
        let mut new_facts = Vec::new();
        let taken = (|| {
            for fact in &result.facts {
                if claims.learn(fact, &session.worker)? {
                    new_facts.push(fact);
                }
            }
            claims.take_in(&result.claim, &result.verdict, result.nodes, &session.worker, current, &options)
        })();
        let facts = new_facts.len() as u64;
        for fact in new_facts {
            let record = claims.record_of(&fact.claim, fact.work, &session.worker);
            step.writes.push(Write::Claim(id, fact.claim.clone(), record));
        }
        step.synced |= !step.writes.is_empty();
        self.end_completed(lease, &session.worker, step);
        let taken = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.fail(id, format!("{error}; the new one is from worker '{}'", session.worker), step);
                return Ok(Acceptance::JobEnded);
            }
        };
        let job = self.job_mut(id)?;
        if !taken.new && facts == 0 {
            return Ok(if running { Acceptance::Known } else { Acceptance::JobEnded });
        }
        job.record.results += 1;
        job.record.nodes += result.nodes;
        job.facts_reported += facts;
        step.synced = true;
        let verdict = match &result.verdict {
            Verdict::Decided(truth) => truth.to_string(),
            Verdict::Open { numbers, .. } => format!("open ({}, {})", numbers.proof, numbers.disproof),
        };
        self.log_result(id, &session.worker, &task, verdict, result.nodes, facts, step);
        if let Some(children) = taken.split {
            self.log_split(id, &task, children, step);
        }
        self.credit(&session.worker, result.nodes);
        if running {
            self.advance(id, now, step);
        }
        // After the graph's own writes: this one names who decided it.
        if let Work::Claims(claims) = &self.job(id)?.work {
            let source =
                if matches!(result.verdict, Verdict::Decided(_)) { session.worker.as_str() } else { "" };
            let record = claims.record_of(&result.claim, result.nodes, source);
            step.writes.push(Write::Claim(id, result.claim.clone(), record));
        }
        self.write_job(id, step);
        Ok(Acceptance::Accepted)
    }

    fn describe_part(&self, id: JobId, part: PartId) -> Result<Reply, CoreError> {
        let Work::Counting(counting) = &self.job(id)?.work else {
            return Err(CoreError::Malformed("the job is answered by claims, not by counting".to_owned()));
        };
        let mut description =
            counting.describe(part).map_err(|error| CoreError::Malformed(error.to_string()))?;
        description.wanted &= self.job(id)?.is_running();
        Ok(Reply::Part(description))
    }

    fn release(&mut self, session: &Session, lease: LeaseId, failed: bool, reason: &str, step: &mut Step) {
        if self.leases.get(&lease).is_none_or(|lease| lease.worker != session.worker) {
            return;
        }
        if failed {
            self.lose(lease, &format!("its worker failed on it: {reason}"), step);
        } else {
            self.end(lease, &format!("handed back: {reason}"), step);
        }
    }

    // ---- time ----

    fn tick(&mut self, now: Millis, step: &mut Step) {
        let passed = now.since(self.ticked);
        self.ticked = now;
        let running: Vec<JobId> =
            self.jobs.values().filter(|job| job.is_running()).map(|job| job.id).collect();
        let mut in_flight: BTreeMap<JobId, u64> = BTreeMap::new();
        for lease in self.leases.values() {
            *in_flight.entry(lease.job).or_default() += lease.nodes;
        }
        for id in running {
            self.advance(id, now, step);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.record.active_ms += passed;
                let total = job.record.nodes + in_flight.get(&id).copied().unwrap_or(0);
                job.rate.sample(now, total);
            }
        }
        let expired: Vec<LeaseId> =
            self.leases.iter().filter(|(_, lease)| lease.expires <= now).map(|(id, _)| *id).collect();
        for id in expired {
            self.lose(id, "no heartbeat", step);
            self.expired.insert(id);
        }
        while self.expired.len() > EXPIRED_MAX {
            self.expired.pop_first();
        }
        let over: Vec<(JobId, Task)> = self
            .orphans
            .iter()
            .filter(|(_, orphan)| orphan.until <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            self.free_orphan(&key, step);
        }
        let lease_ms = self.options.lease_ms;
        // A worker that waits in a Lease call is there, however long it says nothing.
        for waiting in &self.waiting {
            if let Some(worker) = self.workers.get_mut(&waiting.session.worker) {
                worker.seen = now;
            }
        }
        for (name, worker) in &mut self.workers {
            let silent_ms = now.since(worker.seen);
            if !worker.lost && silent_ms > lease_ms {
                worker.lost = true;
                let leases = self.leases.values().filter(|lease| lease.worker == *name).count() as u32;
                let (worker, incarnation) = (name.clone(), worker.incarnation);
                step.log.push(Occurrence::WorkerLost { worker, incarnation, silent_ms, leases });
            }
        }
        self.workers.retain(|_, worker| now.since(worker.seen) < FORGET_WORKER_MS);
    }

    /// Gives waiting workers tasks, first come first served, and ends waits that are over.
    fn serve_waiting(&mut self, now: Millis, step: &mut Step) {
        if self.draining {
            for waiting in std::mem::take(&mut self.waiting) {
                step.reply(waiting.token, Reply::Drained);
            }
            return;
        }
        let mut still = Vec::new();
        let mut dry = false;
        for waiting in std::mem::take(&mut self.waiting) {
            // Once a worker finds nothing, the ones behind it find nothing either.
            let assignment = if dry { None } else { self.assign(&waiting, now, step) };
            dry = assignment.is_none();
            match assignment {
                Some(assignment) => step.reply(waiting.token, Reply::Leased(Box::new(assignment))),
                None if waiting.until <= now => {
                    step.reply(waiting.token, Reply::Idle { retry_after_ms: self.options.retry_after_ms });
                }
                None => still.push(waiting),
            }
        }
        self.waiting = still;
    }

    fn assign(&mut self, waiting: &Waiting, now: Millis, step: &mut Step) -> Option<Assignment> {
        let worker = &waiting.session.worker;
        let choose = |core: &Self| {
            core.jobs
                .values()
                .filter(|job| job.is_running())
                .find_map(|job| Some((job.id, job.choose(worker, &core.options)?)))
        };
        let chosen = choose(self).or_else(|| {
            self.split_for_idle(now, step);
            choose(self)
        });
        let (id, (task, spec, root)) = chosen?;
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        let job = self.jobs.get_mut(&id)?;
        job.hold(&task);
        job.record.leases += 1;
        if let (Work::Claims(claims), Some(root)) = (&mut job.work, root) {
            *claims.in_flight.entry(root).or_default() += 1;
        }
        let budget_nodes = match &spec {
            TaskSpec::Claim { budget_nodes, .. } => *budget_nodes,
            TaskSpec::Part(_) => 0,
        };
        step.log.push(Occurrence::LeaseGranted {
            job: id,
            lease,
            worker: worker.clone(),
            task: job.describe(&task),
            budget_nodes,
        });
        let fields = job.record.fields.clone();
        let worker = worker.clone();
        step.writes.push(self.lease_record(lease, id, &task, &waiting.session));
        let facts = self.facts_since(id, waiting.cursors.get(&id).copied().unwrap_or(0), &worker);
        let expires = now.plus(self.options.lease_ms);
        self.leases.insert(lease, Lease { job: id, task, root, worker, granted: now, expires, nodes: 0 });
        Some(Assignment { lease, job: id, fields, task: spec, facts })
    }

    fn lease_record(&self, lease: LeaseId, job: JobId, task: &Task, session: &Session) -> Write {
        let Session { worker, incarnation, .. } = session.clone();
        Write::Lease(
            job,
            task.clone(),
            LeaseRecord { epoch: self.epoch, lease: lease.0, worker, incarnation },
        )
    }

    /// When all leaves are taken: splits the heaviest that has been worked on for a while, so that its children can be handed out.
    /// Its own lease goes on; whoever is first decides it.
    fn split_for_idle(&mut self, now: Millis, step: &mut Step) {
        let old_enough = |lease: &&Lease| {
            now.since(lease.granted) >= self.options.split_idle_ms && matches!(lease.task, Task::Claim(_))
        };
        let mut held: BTreeMap<JobId, Vec<Task>> = BTreeMap::new();
        for lease in self.leases.values().filter(old_enough) {
            held.entry(lease.job).or_default().push(lease.task.clone());
        }
        for (id, tasks) in held {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_running()) else {
                continue;
            };
            let Work::Claims(claims) = &mut job.work else {
                continue;
            };
            let nodes = tasks.iter().filter_map(|task| match task {
                Task::Claim(claim) => claims.graph.find(claim),
                Task::Part(_) => None,
            });
            let Some(leaf) = claims.graph.heaviest_leaf(nodes) else {
                continue;
            };
            let task = Task::Claim(claims.graph.node(leaf).claim.clone());
            let result = claims.graph.expand(claims.plan.rules(), leaf, &[]);
            match result {
                Ok(children) => {
                    if let (Task::Claim(claim), Work::Claims(claims)) = (&task, &job.work) {
                        let record = claims.record_of(claim, 0, "");
                        step.writes.push(Write::Claim(id, claim.clone(), record));
                    }
                    self.log_split(id, &task, children, step);
                    self.advance(id, now, step);
                }
                Err(error) => self.fail(id, error.to_string(), step),
            }
        }
    }

    // ---- the ends of leases and jobs ----

    /// Lets the plan go on, and ends the job when it has its answer.
    fn advance(&mut self, id: JobId, now: Millis, step: &mut Step) {
        let passed = now.since(self.ticked);
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_running()) else {
            return;
        };
        let written = step.writes.len();
        let advanced = job.advance(&mut step.writes);
        step.synced |= step.writes.len() > written;
        match advanced {
            Ok(false) => {}
            Ok(true) => {
                job.record.status = JobStatus::Solved;
                job.record.active_ms += passed;
                let (nodes, active_ms) = (job.record.nodes, job.record.active_ms);
                step.log.push(Occurrence::JobSolved { job: id, answer: job.answer(), nodes, active_ms });
                step.synced = true;
                self.end_leases_of(id, "the job is solved", step);
                self.write_job(id, step);
            }
            Err(error) => self.fail(id, error.to_string(), step),
        }
    }

    fn fail(&mut self, id: JobId, reason: String, step: &mut Step) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.record.status = JobStatus::Failed(reason.clone());
            step.log.push(Occurrence::JobFailed { job: id, reason });
            step.synced = true;
            self.end_leases_of(id, "the job has failed", step);
            self.write_job(id, step);
        }
    }

    fn end_leases_of(&mut self, id: JobId, why: &str, step: &mut Step) {
        let leases: Vec<LeaseId> =
            self.leases.iter().filter(|(_, lease)| lease.job == id).map(|(id, _)| *id).collect();
        for lease in leases {
            self.end(lease, why, step);
        }
        let orphans: Vec<(JobId, Task)> =
            self.orphans.keys().filter(|(job, _)| *job == id).cloned().collect();
        for key in orphans {
            self.free_orphan(&key, step);
        }
    }

    fn free_orphan(&mut self, key: &(JobId, Task), step: &mut Step) {
        self.orphans.remove(key);
        let (id, task) = key;
        if let Some(job) = self.jobs.get_mut(id) {
            job.free(task);
        }
        step.writes.push(Write::LeaseEnd(*id, task.clone()));
    }

    /// A lease ends without harm.
    fn end(&mut self, id: LeaseId, why: &str, step: &mut Step) {
        if let Some(lease) = self.take_lease(id, why, step)
            && let Some(job) = self.jobs.get_mut(&lease.job)
        {
            job.free(&lease.task);
        }
    }

    /// A lease ends because its result came in.
    fn end_completed(&mut self, id: LeaseId, worker: &str, step: &mut Step) {
        if self.leases.get(&id).is_some_and(|lease| lease.worker == worker) {
            self.end(id, "completed", step);
        }
    }

    /// A lease ends because its worker is gone or failed: that counts against the task.
    fn lose(&mut self, id: LeaseId, why: &str, step: &mut Step) {
        let Some(lease) = self.take_lease(id, why, step) else {
            return;
        };
        let losses_max = self.options.losses_max;
        if let Some(job) = self.jobs.get_mut(&lease.job)
            && let Some(losses) = job.lost(&lease.task, losses_max)
        {
            step.log.push(Occurrence::Parked { job: lease.job, task: job.describe(&lease.task), losses });
        }
    }

    fn take_lease(&mut self, id: LeaseId, why: &str, step: &mut Step) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        if let (Some(root), Some(job)) = (lease.root, self.jobs.get_mut(&lease.job))
            && let Work::Claims(claims) = &mut job.work
            && let Some(count) = claims.in_flight.get_mut(&root)
        {
            *count = count.saturating_sub(1);
        }
        step.writes.push(Write::LeaseEnd(lease.job, lease.task.clone()));
        let (job, worker, nodes) = (lease.job, lease.worker.clone(), lease.nodes);
        step.log.push(Occurrence::LeaseEnded { job, lease: id, worker, why: why.to_owned(), nodes });
        Some(lease)
    }

    // ---- small things ----

    fn job(&self, id: JobId) -> Result<&Job, CoreError> {
        self.jobs.get(&id).ok_or(CoreError::NoSuchJob(id))
    }

    fn job_mut(&mut self, id: JobId) -> Result<&mut Job, CoreError> {
        self.jobs.get_mut(&id).ok_or(CoreError::NoSuchJob(id))
    }

    fn write_job(&self, id: JobId, step: &mut Step) {
        if let Some(job) = self.jobs.get(&id) {
            step.writes.push(Write::Job(id, job.record.clone()));
        }
    }

    fn leases_of(&self, worker: &str) -> u32 {
        self.leases.values().filter(|lease| lease.worker == worker).count() as u32
    }

    fn credit(&mut self, worker: &str, nodes: u64) {
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.nodes += nodes;
            worker.results += 1;
        }
    }

    #[allow(clippy::too_many_arguments, reason = "they are the fields of one log event")]
    fn log_result(
        &self,
        id: JobId,
        worker: &str,
        task: &Task,
        verdict: String,
        nodes: u64,
        facts: u64,
        step: &mut Step,
    ) {
        if let Some(job) = self.jobs.get(&id) {
            let (worker, task) = (worker.to_owned(), job.describe(task));
            step.log.push(Occurrence::ResultAccepted { job: id, worker, task, verdict, nodes, facts });
        }
    }

    fn log_split(&self, id: JobId, task: &Task, children: u32, step: &mut Step) {
        if let Some(job) = self.jobs.get(&id)
            && let (Work::Claims(claims), Task::Claim(claim)) = (&job.work, task)
        {
            let work = claims.graph.find(claim).map_or(0, |id| claims.graph.node(id).work);
            step.log.push(Occurrence::Split { job: id, task: job.describe(task), children, work });
        }
    }

    /// Checks everything that must hold between steps. For tests and the simulation.
    ///
    /// # Errors
    /// The first thing that does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        for (id, lease) in &self.leases {
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

/// Checks that everything in a result is a claim of the job's rules, and that open means open.
fn check_result(rules: &dyn ClaimRules, result: &ClaimResult) -> Result<(), String> {
    let check = |claim| rules.check(claim).map_err(|error| error.to_string());
    check(&result.claim)?;
    result.facts.iter().try_for_each(|fact| check(&fact.claim))?;
    if let Verdict::Open { numbers, children } = &result.verdict {
        if numbers.truth().is_some() {
            return Err("an open result with the numbers of a decided claim".to_owned());
        }
        children.iter().try_for_each(|(claim, _)| check(claim))?;
    }
    Ok(())
}
