//! How large the messages would be on the wire.

use crate::core::{ClaimResult, Event, LeaseProgress, Reply, Session, Verdict};
use crate::service::convert;
use grundy_proto::convert::{open_to_wire, shares_to_wire};
use grundy_proto::v1;
use grundy_search::numbers::Numbers;
use grundy_search::samples::Sample;
use grundy_tables::jobs::record::{JobId, Task};
use prost::Message;

/// The bytes of a worker's request; 0 for what is none.
pub(super) fn request_bytes(event: &Event) -> u64 {
    let bytes = match event {
        Event::Lease { session: of, wait_ms, cursors: read, .. } => {
            v1::LeaseRequest { session: Some(session(of)), wait_ms: *wait_ms, cursors: cursors(read) }
                .encoded_len()
        }
        Event::Heartbeat { session: of, leases, cursors: read, .. } => v1::HeartbeatRequest {
            session: Some(session(of)),
            leases: leases.iter().map(|lease| progress(lease, of)).collect(),
            cursors: cursors(read),
        }
        .encoded_len(),
        Event::Complete { session: of, lease, job, result, .. } => {
            complete(of, lease.0, job.0, result).encoded_len()
        }
        Event::CompletePart { session: of, lease, job, part, record, nodes, .. } => v1::PartResult {
            session: Some(session(of)),
            lease: lease.0,
            lease_epoch: of.epoch.0,
            job: job.0,
            stage: part.stage,
            part: part.part,
            boards: record.boards,
            boards_with_images: record.boards_with_images,
            outputs: record.outputs.clone(),
            nodes: *nodes,
            shares: shares_to_wire(record.shares.iter().copied()),
        }
        .encoded_len(),
        _ => 0,
    };
    bytes as u64
}

/// The bytes of a reply to a worker.
pub(super) fn reply_bytes(reply: &Reply) -> u64 {
    let bytes = match reply {
        Reply::Leased(assignment) => convert::assignment(assignment).encoded_len(),
        Reply::Heartbeat { lapsed, facts, .. } => v1::HeartbeatResponse {
            lapsed: lapsed.iter().map(|lease| v1::LapsedLease { lease: lease.0, epoch: 1 }).collect(),
            adopted: Vec::new(),
            facts: facts.iter().map(convert::fact_batch).collect(),
            draining: false,
        }
        .encoded_len(),
        // A number or two.
        _ => 2,
    };
    bytes as u64
}

fn session(session: &Session) -> v1::Session {
    let Session { epoch, worker, incarnation } = session;
    v1::Session { epoch: epoch.0, worker: worker.clone(), incarnation: *incarnation }
}

fn cursors(cursors: &[(JobId, u64)]) -> Vec<v1::FactCursor> {
    cursors.iter().map(|(job, next)| v1::FactCursor { job: job.0, next: *next }).collect()
}

fn progress(progress: &LeaseProgress, session: &Session) -> v1::LeaseProgress {
    let task = match &progress.task {
        Task::Claim(claim) => v1::lease_progress::Task::Claim(claim.into()),
        Task::Part(part) => {
            v1::lease_progress::Task::Part(v1::PartKey { stage: part.stage, part: part.part })
        }
    };
    v1::LeaseProgress {
        lease: progress.lease.0,
        epoch: session.epoch.0,
        job: progress.job.0,
        task: Some(task),
        nodes: progress.nodes,
    }
}

fn sample((level, sample): (u16, Sample)) -> v1::Sample {
    let Sample { searches, nodes, squares } = sample;
    v1::Sample { level: level.into(), searches, nodes, squares }
}

fn complete(of: &Session, lease: u64, job: u64, result: &ClaimResult) -> v1::CompleteRequest {
    let numbers = |n: &Numbers| (n.proof, n.disproof);
    let verdict = match &result.verdict {
        Verdict::Decided(truth) => v1::complete_request::Verdict::Decided(*truth),
        Verdict::Open { numbers: own, children } => {
            let children = children.iter().map(|child| (&child.edge, numbers(&child.numbers)));
            v1::complete_request::Verdict::Open(open_to_wire(numbers(own), children))
        }
    };
    v1::CompleteRequest {
        session: Some(session(of)),
        lease,
        lease_epoch: of.epoch.0,
        job,
        claim: Some((&result.claim).into()),
        verdict: Some(verdict),
        nodes: result.nodes,
        facts: result.facts.iter().map(Into::into).collect(),
        samples: result.samples.levels().map(sample).collect(),
    }
}
