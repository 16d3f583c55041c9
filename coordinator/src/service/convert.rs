//! The core's types as messages, and messages as the core's types.

use crate::answer::{self, InWords};
use crate::core::api::{
    Acceptance, Assignment, ClaimResult, Estimate, FactBatch, JobView, LeaseId, LeaseProgress, Session,
    Statistics, TaskSpec, Verdict, WorkerView,
};
use grundy_games::claim::Fact;
use grundy_proto::convert::{WireError, at_most, edge, numbers, required, worker_name};
use grundy_proto::limits;
use grundy_proto::v1;
use grundy_search::engine::Child;
use grundy_search::numbers::Numbers;
use grundy_search::samples::{Range, Sample};
use grundy_tables::jobs::record::{Epoch, JobId, JobStatus, PartId, Task};

/// The most children one result may name: a page of the widest position's moves, several times over.
const CHILDREN_MAX: usize = 4096;

/// Reads who speaks.
pub(super) fn session(session: Option<v1::Session>) -> Result<Session, WireError> {
    let v1::Session { epoch, worker, incarnation } = required(session, "session")?;
    worker_name(&worker)?;
    run_number(incarnation)?;
    Ok(Session { epoch: Epoch(epoch), worker, incarnation })
}

/// Checks a worker's incarnation.
pub(super) fn run_number(incarnation: u64) -> Result<u64, WireError> {
    match incarnation {
        0 => Err(invalid("incarnation", "0 is no incarnation: draw a random number that is not 0")),
        incarnation => Ok(incarnation),
    }
}

/// A complaint about a field.
pub(super) fn invalid(field: &'static str, reason: impl Into<String>) -> WireError {
    WireError::Invalid { field, reason: reason.into() }
}

/// Reads the cursors of a worker.
pub(super) fn cursors(cursors: Vec<v1::FactCursor>) -> Result<Vec<(JobId, u64)>, WireError> {
    at_most(cursors.len(), limits::LEASES_MAX, "cursors")?;
    Ok(cursors.into_iter().map(|cursor| (JobId(cursor.job), cursor.next)).collect())
}

/// Reads one lease of a heartbeat.
pub(super) fn progress(progress: v1::LeaseProgress) -> Result<LeaseProgress, WireError> {
    let task = match required(progress.task, "leases.task")? {
        v1::lease_progress::Task::Claim(claim) => Task::Claim(claim.try_into()?),
        v1::lease_progress::Task::Part(v1::PartKey { stage, part }) => Task::Part(PartId { stage, part }),
    };
    Ok(LeaseProgress {
        lease: LeaseId(progress.lease),
        job: JobId(progress.job),
        task,
        nodes: progress.nodes,
    })
}

fn read_numbers(message: Option<v1::Numbers>, field: &'static str) -> Result<Numbers, WireError> {
    let (proof, disproof) = numbers(required(message, field)?)?;
    Ok(Numbers { proof, disproof })
}

fn child(child: v1::Child) -> Result<Child, WireError> {
    let v1::Child { claim, numbers, same } = child;
    let edge = edge(claim, same, "open.children.claim")?;
    Ok(Child { edge, numbers: read_numbers(numbers, "open.children.numbers")? })
}

/// Reads the sample of a level. What it says adds up for weeks, so what cannot be is refused.
fn sample(sample: &v1::Sample) -> Result<(u16, Sample), WireError> {
    let v1::Sample { level, searches, nodes, squares } = *sample;
    let level = u16::try_from(level).ok().filter(|level| usize::from(*level) < limits::SAMPLES_MAX);
    let level = level.ok_or_else(|| invalid("samples.level", "a level is at most 255"))?;
    if searches == 0 || searches > nodes {
        return Err(invalid(
            "samples.searches",
            "a level has at least one search, and each at least one node",
        ));
    }
    // Rounding is no reason to refuse it.
    let (least, most) = (nodes as f64 * 0.999, (nodes as f64).powi(2) * 1.001);
    if !(least..=most).contains(&squares) {
        return Err(invalid("samples.squares", "the squares' sum lies between the nodes and their square"));
    }
    Ok((level, Sample { searches, nodes, squares }))
}

/// Reads a claim's result.
pub(super) fn result(
    claim: Option<v1::Claim>,
    verdict: Option<v1::complete_request::Verdict>,
    nodes: u64,
    facts: Vec<v1::Fact>,
    samples: &[v1::Sample],
) -> Result<ClaimResult, WireError> {
    at_most(facts.len(), limits::FACTS_MAX, "facts")?;
    at_most(samples.len(), limits::SAMPLES_MAX, "samples")?;
    let claim = required(claim, "claim")?.try_into()?;
    let verdict = match required(verdict, "verdict")? {
        v1::complete_request::Verdict::Decided(truth) => Verdict::Decided(truth),
        v1::complete_request::Verdict::Open(open) => {
            at_most(open.children.len(), CHILDREN_MAX, "open.children")?;
            let children = open.children.into_iter().map(child).collect::<Result<_, _>>()?;
            Verdict::Open { numbers: read_numbers(open.numbers, "open.numbers")?, children }
        }
    };
    let facts = facts.into_iter().map(Fact::try_from).collect::<Result<_, _>>()?;
    let samples = samples.iter().map(sample).collect::<Result<_, _>>()?;
    Ok(ClaimResult { claim, verdict, nodes, facts, samples })
}

/// Writes new facts.
pub(crate) fn fact_batch(batch: &FactBatch) -> v1::FactBatch {
    v1::FactBatch { job: batch.job.0, facts: batch.facts.iter().map(Into::into).collect(), next: batch.next }
}

/// Writes a task.
pub(crate) fn assignment(assignment: &Assignment) -> v1::Assignment {
    let task = match &assignment.task {
        TaskSpec::Claim { claim, budget_nodes, leave, report_work_min } => {
            let Numbers { proof, disproof } = leave.thresholds;
            v1::assignment::Task::Claim(v1::ClaimTask {
                claim: Some(claim.into()),
                budget_nodes: *budget_nodes,
                report_work_min: *report_work_min,
                thresholds: Some(v1::Numbers { proof, disproof }),
                nodes_min: leave.nodes_min,
            })
        }
        TaskSpec::Part(spec) => v1::assignment::Task::Part(v1::PartTask {
            stage: spec.part.stage,
            part: spec.part.part,
            parts_next: spec.parts_next,
            inputs: spec.inputs,
            join_inputs: spec.join_inputs,
        }),
    };
    v1::Assignment {
        lease: assignment.lease.0,
        job: assignment.job.0,
        problem: Some((&assignment.fields).into()),
        facts: Some(fact_batch(&assignment.facts)),
        task: Some(task),
    }
}

/// Writes what became of a result.
pub(super) fn acceptance(acceptance: Acceptance) -> v1::CompleteResponse {
    let acceptance = match acceptance {
        Acceptance::Accepted => v1::Acceptance::Accepted,
        Acceptance::Known => v1::Acceptance::Known,
        Acceptance::JobEnded => v1::Acceptance::JobEnded,
    };
    v1::CompleteResponse { acceptance: acceptance.into() }
}

/// Writes a job.
pub(crate) fn job_view(view: &JobView) -> v1::JobView {
    let (state, failure) = match &view.status {
        JobStatus::Running => (v1::JobState::Running, ""),
        JobStatus::Solved => (v1::JobState::Solved, ""),
        JobStatus::Cancelled => (v1::JobState::Cancelled, ""),
        JobStatus::Failed(reason) => (v1::JobState::Failed, reason.as_str()),
    };
    v1::JobView {
        job: view.job.0,
        problem: Some((&view.fields).into()),
        state: state.into(),
        failure: failure.to_owned(),
        answer_json: answer::json(&view.answer),
        answer_text: InWords(&view.answer).to_string(),
        statistics: Some(statistics(&view.statistics)),
    }
}

fn statistics(statistics: &Statistics) -> v1::Statistics {
    let level = |&(boards, boards_with_images): &(u64, u64)| v1::Level { boards, boards_with_images };
    let Statistics { phase, decided, total, decided_before_start, nodes, nodes_per_second, workers, .. } =
        statistics;
    v1::Statistics {
        phase: phase.clone(),
        decided: *decided,
        total: *total,
        decided_before_start: *decided_before_start,
        nodes: *nodes,
        nodes_per_second: *nodes_per_second,
        workers: *workers,
        leases_open: statistics.leases_open,
        leases_granted: statistics.leases_granted,
        leases_lost: statistics.leases_lost,
        results: statistics.results,
        facts: statistics.facts,
        parked: statistics.parked,
        active_ms: statistics.active_ms,
        remaining_ms: statistics.remaining_ms,
        root: statistics.root.map(|Numbers { proof, disproof }| v1::Numbers { proof, disproof }),
        levels: statistics.levels.iter().map(level).collect(),
        estimate: statistics.estimate.as_ref().map(estimate),
    }
}

fn estimate(estimate: &Estimate) -> v1::Estimate {
    let part = |(part, range): &(String, Range)| v1::PartEstimate {
        part: part.clone(),
        nodes_low: range.low,
        nodes_high: range.high,
    };
    v1::Estimate {
        nodes_low: estimate.nodes.low,
        nodes_high: estimate.nodes.high,
        searches: estimate.searches,
        level_from: estimate.levels.0.into(),
        level_to: estimate.levels.1.into(),
        parts: estimate.parts.iter().map(part).collect(),
    }
}

/// Writes a worker.
pub(super) fn worker_view(view: &WorkerView) -> v1::WorkerView {
    let WorkerView { worker, incarnation, threads, leases_open, silent_ms, nodes, results, lost } =
        view.clone();
    v1::WorkerView { worker, incarnation, threads, leases_open, silent_ms, nodes, results, lost }
}
