//! Log lines of the core's occurrences: one structured event each, named by its message.

use crate::answer;
use crate::core::api::Occurrence;
use tracing::{debug, error, info, warn};

/// Writes one occurrence to the log.
pub(crate) fn occurrence(occurrence: &Occurrence) {
    match occurrence {
        Occurrence::JobSubmitted { job, fields, resumed, decided } => {
            info!(job = job.0, problem = %fields, resumed, decided, "job submitted");
        }
        Occurrence::JobSolved { job, answer, nodes, active_ms } => {
            info!(job = job.0, answer = answer::json(answer), nodes, active_ms, "job solved");
        }
        Occurrence::JobCancelled { job } => info!(job = job.0, "job cancelled"),
        Occurrence::JobFailed { job, reason } => error!(job = job.0, reason, "job failed"),
        Occurrence::WorkerRegistered { worker, incarnation, threads, superseded } => {
            info!(worker, incarnation, threads, superseded, "worker registered");
        }
        Occurrence::WorkerLost { worker, incarnation, silent_ms, leases } => {
            warn!(worker, incarnation, silent_ms, leases, "worker lost");
        }
        Occurrence::WorkerLeft { worker, incarnation, leases, results, nodes } => {
            info!(worker, incarnation, leases, results, nodes, "worker left");
        }
        Occurrence::LeaseGranted { job, lease, worker, task, budget_nodes } => {
            debug!(job = job.0, lease = lease.0, worker, task, budget_nodes, "lease granted");
        }
        Occurrence::LeaseRenewedAcrossEpochs { job, lease, worker } => {
            info!(job = job.0, lease = lease.0, worker, "lease renewed across epochs");
        }
        Occurrence::LeaseEnded { job, lease, worker, why, nodes } => {
            debug!(job = job.0, lease = lease.0, worker, why, nodes, "lease ended");
        }
        Occurrence::ResultAccepted { job, worker, task, verdict, nodes, facts } => {
            debug!(job = job.0, worker, task, verdict, nodes, facts, "result accepted");
        }
        Occurrence::Split { job, task, children, work } => {
            debug!(job = job.0, task, children, work, "task split");
        }
        Occurrence::Parked { job, task, losses } => warn!(job = job.0, task, losses, "task parked"),
        Occurrence::StageFinished { job, stage, boards, boards_with_images, parts_next } => {
            info!(job = job.0, stage, boards, boards_with_images, parts_next, "stage finished");
        }
        Occurrence::Draining => info!("draining"),
    }
}
