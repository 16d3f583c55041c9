//! What users ask: submissions, views, queries.

use super::api::{CoreError, JobView, Millis, Occurrence, Reply};
use super::job::{Job, Work};
use super::workers::Worker;
use super::{Core, Step};
use grundy_games::plan::Progress;
use grundy_games::problem::{Approach, Fields, Problem};
use grundy_tables::jobs::record::{JobId, JobRecord, JobStatus};

impl Core {
    pub(super) fn submit(
        &mut self,
        fields: Fields,
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
                let record = JobRecord::new(fields.clone(), unix_ms);
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
        step.write_job(id);
        let view = Box::new(self.job_view(id, now)?);
        Ok(Reply::Submitted { job: id, resumed, view })
    }

    pub(super) fn cancel(&mut self, id: JobId, now: Millis, step: &mut Step) -> Result<Reply, CoreError> {
        let job = self.job_mut(id)?;
        if job.is_running() {
            job.record.status = JobStatus::Cancelled;
            step.log.push(Occurrence::JobCancelled { job: id });
            step.synced = true;
            self.end_leases_of(id, "the job was cancelled", step);
            step.write_job(id);
        }
        self.view(Some(id), now)
    }

    pub(super) fn view(&self, job: Option<JobId>, now: Millis) -> Result<Reply, CoreError> {
        let jobs = match job {
            Some(id) => vec![self.job_view(id, now)?],
            None => self.jobs.keys().map(|id| self.job_view(*id, now)).collect::<Result<_, _>>()?,
        };
        let view = |(name, worker): (&String, &Worker)| worker.view(name, self.leases.count_of(name), now);
        let workers = self.workers.iter().map(view).collect();
        Ok(Reply::View { jobs, workers })
    }

    pub(super) fn job_view(&self, id: JobId, now: Millis) -> Result<JobView, CoreError> {
        let job = self.job(id)?;
        let mut statistics = job.statistics();
        let open = self.leases.iter().filter(|(_, lease)| lease.job == id);
        let (count, nodes) = open
            .fold((0, 0_u64), |(count, nodes), (_, lease)| (count + 1, nodes.saturating_add(lease.nodes)));
        statistics.leases_open = count;
        statistics.nodes = statistics.nodes.saturating_add(nodes);
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
            } else if statistics.parked > 0 && count == 0 {
                statistics.phase = "stalled: all that is left was set aside".to_owned();
                statistics.remaining_ms = None;
            }
        }
        let (fields, status) = (job.record.fields.clone(), job.record.status.clone());
        Ok(JobView { job: id, fields, status, answer: job.answer(), statistics })
    }

    pub(super) fn query(&self, id: JobId, position: &str) -> Result<Reply, CoreError> {
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
        let decided = matches!(plan.next(&claims.known()), Progress::Answered(_));
        Ok(Reply::Known { decided, answer })
    }
}
