//! What workers hand in: results of claims and of parts.

use super::api::{Acceptance, ClaimResult, CoreError, LeaseId, Millis, Occurrence, Reply, Session, Verdict};
use super::counting::CountingError;
use super::job::Work;
use super::{Core, Step};
use grundy_games::claim::{Claim, ClaimRules};
use grundy_tables::jobs::record::{JobId, PartId, PartRecord, Task, Write};

impl Core {
    #[allow(clippy::too_many_arguments, reason = "one call site; they are the fields of one event")]
    pub(super) fn complete_part(
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
        job.record.nodes = job.record.nodes.saturating_add(nodes);
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
        step.write_job(id);
        Ok(Acceptance::Accepted)
    }

    pub(super) fn complete(
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
            .get(lease)
            .is_some_and(|lease| lease.worker == session.worker && lease.job == id && lease.task == task);
        let orphan = self.take_orphan(&(id, task.clone()), lease, session);
        if orphan && let Some(job) = self.jobs.get_mut(&id) {
            job.free(&task);
            step.writes.push(Write::LeaseEnd(id, task.clone()));
        }
        let current = current || orphan;
        let (options, threads) = (self.options.clone(), self.threads);
        let idle = self.is_anyone_idle(&session.worker, now);
        let job = self.job_mut(id)?;
        let running = job.is_running();
        let Work::Claims(claims) = &mut job.work else {
            return Err(CoreError::Malformed("the job is answered by counting, not by claims".to_owned()));
        };
        check_result(claims.rules(), result).map_err(CoreError::Malformed)?;
        let mut facts = 0;
        let taken = (|| {
            for fact in &result.facts {
                facts += u64::from(claims.learn(fact, &session.worker)?);
            }
            claims.take_in(result, &session.worker, current, idle, threads, &options)
        })();
        // Even if the rest is refused: what was new is true and worth keeping.
        claims.write_decided(id, &mut step.writes);
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
        job.record.nodes = job.record.nodes.saturating_add(result.nodes);
        job.facts_reported += facts;
        job.sampled(&result.claim, &result.samples);
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
        if current && matches!(result.verdict, Verdict::Open { .. }) {
            self.expect(&session.worker, now);
        }
        if running {
            self.advance(id, now, step);
        }
        if let Work::Claims(claims) = &self.job(id)?.work {
            claims.write_open(id, &result.claim, &mut step.writes);
        }
        step.write_job(id);
        Ok(Acceptance::Accepted)
    }

    /// Whether a worker has nothing to do, when a result of `worker` comes in. Its request for the next task may have come before.
    fn is_anyone_idle(&self, worker: &str, now: Millis) -> bool {
        let own_gone = self.gone.iter().filter(|name| *name == worker).count();
        let (mut own, mut others) = (own_gone, self.gone.len() > own_gone);
        if self.dry {
            let may_work = |worker| self.may_work(worker, now);
            own += if may_work(worker) { self.waiting.count_of(worker) } else { 0 };
            // The first is one of them, as a rule.
            others |=
                self.waiting.iter().map(|w| &w.session.worker).any(|name| name != worker && may_work(name));
        }
        let threads = self.workers.get(worker).map_or(0, |worker| worker.threads as usize);
        // The thread that hands in is not idle, though it may wait already.
        let other_threads = threads.saturating_sub(self.leases.count_of(worker) as usize);
        others || own.min(other_threads) > 0
    }

    /// A worker is about to ask for its next task, unless it waits already.
    fn expect(&mut self, worker: &str, now: Millis) {
        let busy = self.leases.count_of(worker) as usize + self.waiting.count_of(worker);
        if let Some(worker) = self.workers.get_mut(worker).filter(|worker| busy < worker.threads as usize) {
            worker.has_returned(now);
        }
    }

    pub(super) fn describe_part(&self, id: JobId, part: PartId) -> Result<Reply, CoreError> {
        let Work::Counting(counting) = &self.job(id)?.work else {
            return Err(CoreError::Malformed("the job is answered by claims, not by counting".to_owned()));
        };
        let mut description =
            counting.describe(part).map_err(|error| CoreError::Malformed(error.to_string()))?;
        description.wanted &= self.job(id)?.is_running();
        Ok(Reply::Part(description))
    }

    pub(super) fn credit(&mut self, worker: &str, nodes: u64) {
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.nodes = worker.nodes.saturating_add(nodes);
            worker.results += 1;
            worker.failures = 0;
        }
    }

    #[allow(clippy::too_many_arguments, reason = "they are the fields of one log event")]
    pub(super) fn log_result(
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
}

/// Checks that everything in a result is a claim of the job's rules and nothing that they refute, and that open means open.
fn check_result(rules: &dyn ClaimRules, result: &ClaimResult) -> Result<(), String> {
    let check = |claim: &Claim, truth: Option<bool>| {
        let decided = rules.decided(claim).map_err(|error| error.to_string())?;
        match (decided, truth) {
            (Some(rule), Some(truth)) if rule != truth => {
                Err(format!("{} is said to be {truth}, but the rules make it {rule}", rules.describe(claim)))
            }
            _ => Ok(()),
        }
    };
    let truth = match result.verdict {
        Verdict::Decided(truth) => Some(truth),
        Verdict::Open { .. } => None,
    };
    check(&result.claim, truth)?;
    result.facts.iter().try_for_each(|fact| check(&fact.claim, Some(fact.truth)))?;
    if let Verdict::Open { numbers, children } = &result.verdict {
        if numbers.truth().is_some() {
            return Err("an open result with the numbers of a decided claim".to_owned());
        }
        children.iter().try_for_each(|child| check(&child.edge.claim, child.numbers.truth()))?;
    }
    Ok(())
}
