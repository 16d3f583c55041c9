//! What workers say of themselves: registration, heartbeats, leases that come back, leases handed back.

use super::api::{CoreError, FactBatch, LeaseId, LeaseProgress, Millis, Occurrence, Reply, Session, Token};
use super::job::Work;
use super::leases::Lease;
use super::options::{FACTS_PER_REPLY_MAX, Options, WORKERS_MAX};
use super::workers::Worker;
use super::{Core, Orphan, Step};
use grundy_tables::jobs::record::{JobId, Task};

impl Core {
    pub(super) fn register(
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
            self.end_waits(&name, &CoreError::Superseded { worker: name.clone() }, step);
            for id in self.leases.of_worker(&name) {
                self.lose(id, "its worker was started anew", step);
            }
        }
        // From before a restart of this coordinator, likewise: that run of the worker is gone.
        self.free_orphans(|orphan| orphan.worker == name && orphan.incarnation != incarnation, step);
        if self.workers.len() >= WORKERS_MAX && !self.workers.contains_key(&name) {
            self.workers.retain(|_, worker| !worker.lost);
            if self.workers.len() >= WORKERS_MAX {
                step.reply(token, Reply::Error(CoreError::TooManyWorkers(self.workers.len())));
                return;
            }
        }
        let worker =
            self.workers.entry(name.clone()).or_insert_with(|| Worker::new(incarnation, threads, now));
        worker.incarnation = incarnation;
        worker.threads = threads;
        worker.has_called(now);
        self.count_threads();
        step.log.push(Occurrence::WorkerRegistered { worker: name, incarnation, threads, superseded });
        let Options { lease_ms, heartbeat_ms, .. } = self.options;
        step.reply(token, Reply::Registered { epoch: self.epoch, lease_ms, heartbeat_ms });
    }

    /// Checks that a worker is registered in this epoch and that no newer run of it is.
    pub(super) fn greet(&mut self, session: &Session, now: Millis) -> Result<(), CoreError> {
        let register = CoreError::Register { worker: session.worker.clone(), epoch: self.epoch };
        if session.epoch != self.epoch {
            return Err(register);
        }
        let worker = self.workers.get_mut(&session.worker).ok_or(register)?;
        if worker.incarnation != session.incarnation {
            return Err(CoreError::Superseded { worker: session.worker.clone() });
        }
        worker.has_called(now);
        Ok(())
    }

    /// A run of a worker ends in order: its waits are over and what it still holds is free at once, without a loss. Of a run that
    /// is not known, as after a restart or a first Unregister, only what is kept for it is freed.
    ///
    /// # Errors
    /// [`CoreError::Superseded`] when another run has the worker's name.
    pub(super) fn unregister(&mut self, session: &Session, step: &mut Step) -> Result<(), CoreError> {
        let Session { worker: name, incarnation, .. } = session;
        if self.workers.get(name).is_some_and(|worker| worker.incarnation != *incarnation) {
            return Err(CoreError::Superseded { worker: name.clone() });
        }
        let held = self.leases.of_worker(name);
        let leases = held.len() as u32;
        for id in held {
            self.end(id, "its worker has left", step);
        }
        self.free_orphans(|orphan| orphan.worker == *name && orphan.incarnation == *incarnation, step);
        let register = CoreError::Register { worker: name.clone(), epoch: self.epoch };
        self.end_waits(name, &register, step);
        if let Some(Worker { results, nodes, .. }) = self.workers.remove(name) {
            let (worker, incarnation) = (name.clone(), *incarnation);
            step.log.push(Occurrence::WorkerLeft { worker, incarnation, leases, results, nodes });
        }
        Ok(())
    }

    /// Ends all waits of a worker's Lease calls.
    fn end_waits(&mut self, name: &str, error: &CoreError, step: &mut Step) {
        for waiting in self.waiting.remove_worker(name) {
            step.reply(waiting.token, Reply::Error(error.clone()));
        }
    }

    /// Frees what is kept from before a restart of this coordinator, where a test says so.
    pub(super) fn free_orphans(&mut self, test: impl Fn(&Orphan) -> bool, step: &mut Step) {
        let orphans = self.orphans.iter().filter(|(_, orphan)| test(orphan));
        let orphans: Vec<(JobId, Task)> = orphans.map(|(key, _)| key.clone()).collect();
        for key in orphans {
            self.free_orphan(&key, step);
        }
    }

    pub(super) fn heartbeat(
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
            let expires = now.plus(self.options.lease_ms);
            if let Some(lease) = self.leases.renew(id, &session.worker, expires, progress.nodes) {
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
    pub(super) fn adopt(
        &mut self,
        session: &Session,
        progress: &LeaseProgress,
        now: Millis,
        step: &mut Step,
    ) -> bool {
        // A lease of this epoch that was completed or handed back has ended for good: its last heartbeat was only late.
        // Of a later epoch there are none.
        let epoch = progress.lease.0 >> 32;
        let ended = epoch == self.epoch.0 && !self.expired.contains(&progress.lease);
        if self.leases.get(progress.lease).is_some() || ended || epoch > self.epoch.0 {
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
            incarnation: session.incarnation,
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
    pub(super) fn take_orphan(&mut self, key: &(JobId, Task), lease: LeaseId, session: &Session) -> bool {
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

    pub(super) fn facts_since(&self, id: JobId, cursor: u64, worker: &str) -> FactBatch {
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

    pub(super) fn release(
        &mut self,
        session: &Session,
        lease: LeaseId,
        failed: bool,
        reason: &str,
        now: Millis,
        step: &mut Step,
    ) {
        if self.leases.get(lease).is_none_or(|lease| lease.worker != session.worker) {
            return;
        }
        if failed {
            self.lose(lease, &format!("its worker failed on it: {reason}"), step);
            if let Some(worker) = self.workers.get_mut(&session.worker) {
                worker.has_failed(now);
            }
        } else {
            self.end(lease, &format!("handed back: {reason}"), step);
        }
    }
}
