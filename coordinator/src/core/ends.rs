//! The ends of leases and of jobs.

use super::api::{LeaseId, Millis, Occurrence};
use super::job::Work;
use super::leases::Lease;
use super::{Core, Step};
use grundy_tables::jobs::record::{JobId, JobStatus, Task, Write};

impl Core {
    /// Lets the plan go on, and ends the job when it has its answer.
    pub(super) fn advance(&mut self, id: JobId, now: Millis, step: &mut Step) {
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
                step.write_job(id);
            }
            Err(error) => self.fail(id, error.to_string(), step),
        }
    }

    pub(super) fn fail(&mut self, id: JobId, reason: String, step: &mut Step) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.record.status = JobStatus::Failed(reason.clone());
            step.log.push(Occurrence::JobFailed { job: id, reason });
            step.synced = true;
            self.end_leases_of(id, "the job has failed", step);
            step.write_job(id);
        }
    }

    pub(super) fn end_leases_of(&mut self, id: JobId, why: &str, step: &mut Step) {
        let leases: Vec<LeaseId> =
            self.leases.iter().filter(|(_, lease)| lease.job == id).map(|(id, _)| id).collect();
        for lease in leases {
            self.end(lease, why, step);
        }
        let orphans: Vec<(JobId, Task)> =
            self.orphans.keys().filter(|(job, _)| *job == id).cloned().collect();
        for key in orphans {
            self.free_orphan(&key, step);
        }
    }

    pub(super) fn free_orphan(&mut self, key: &(JobId, Task), step: &mut Step) {
        self.orphans.remove(key);
        let (id, task) = key;
        if let Some(job) = self.jobs.get_mut(id) {
            job.free(task);
        }
        step.writes.push(Write::LeaseEnd(*id, task.clone()));
    }

    /// A lease ends without harm.
    pub(super) fn end(&mut self, id: LeaseId, why: &str, step: &mut Step) {
        if let Some(lease) = self.take_lease(id, why, step)
            && let Some(job) = self.jobs.get_mut(&lease.job)
        {
            job.free(&lease.task);
        }
    }

    /// A lease ends because its result came in.
    pub(super) fn end_completed(&mut self, id: LeaseId, worker: &str, step: &mut Step) {
        if self.leases.get(id).is_some_and(|lease| lease.worker == worker) {
            self.end(id, "completed", step);
        }
    }

    /// A lease ends because its worker is gone or failed: that counts against the task.
    pub(super) fn lose(&mut self, id: LeaseId, why: &str, step: &mut Step) {
        let Some(lease) = self.take_lease(id, why, step) else {
            return;
        };
        let losses_max = self.options.losses_max;
        if let Some(job) = self.jobs.get_mut(&lease.job)
            && let Some(losses) = job.lost(&lease.task, lease.incarnation, losses_max)
        {
            step.log.push(Occurrence::Parked { job: lease.job, task: job.describe(&lease.task), losses });
        }
    }

    pub(super) fn take_lease(&mut self, id: LeaseId, why: &str, step: &mut Step) -> Option<Lease> {
        let lease = self.leases.remove(id)?;
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
}
