//! Results on their way to the coordinator: sent until acknowledged, across its restarts and, for costly ones, across ours.

use crate::drain::Drain;
use crate::error::WorkerError;
use crate::leases::{Held, JobId};
use crate::session::{Client, Ended, Patience, Session, reason};
use grundy_proto::convert::open_to_wire;
use grundy_proto::{limits, v1};
use grundy_tables::{Spool, StorageError};
use prost::Message;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Request;
use tracing::{debug, error, info, warn};

/// Results that may wait for their acknowledgement; past that, engines wait too.
const ROOM: u32 = 256;

/// Calls under way at a time, so that a coordinator that comes back is not met by all that has piled up at once.
const CALLS: usize = 16;

/// A result of at least this many nodes is on disk before it is sent: tenths of a second of search, against the milliseconds of a sync.
pub const SPOOL_NODES_MIN: u64 = 1 << 16;

/// Results of earlier runs that are kept for their job; the oldest beyond it are dropped.
const LEFTOVERS_MAX: usize = 4096;

/// A finished search.
#[derive(Clone, PartialEq, Debug)]
pub struct Finished {
    /// The job's problem. A job's number means something in one data directory of a coordinator only, so this is what a result
    /// that outlives our process is recognised by.
    pub problem: v1::Problem,
    /// What is handed in; the session is filled in when it is sent.
    pub request: v1::CompleteRequest,
}

/// Sends results and hands back leases, in the background.
pub struct Outbox {
    session: Arc<Session>,
    client: Client,
    drain: Arc<Drain>,
    spool: Spool,
    runtime: Handle,
    room: Arc<Semaphore>,
    calls: Semaphore,
    next_spool_id: AtomicU64,
    leftovers: Mutex<Vec<(u64, Finished)>>,
    acknowledged: AtomicU64,
}

impl Outbox {
    /// An outbox over a spool, with what earlier runs left in it.
    ///
    /// # Errors
    /// An unreadable spool.
    pub fn new(
        session: Arc<Session>,
        client: Client,
        drain: Arc<Drain>,
        spool: Spool,
        runtime: Handle,
    ) -> Result<Self, StorageError> {
        let mut leftovers = Vec::new();
        let mut last = 0;
        for (id, bytes) in spool.list()? {
            last = last.max(id);
            match decode(&bytes) {
                Ok(finished) => leftovers.push((id, finished)),
                Err(reason) => {
                    warn!(event = "spool", id, %reason, "unreadable result of another version dropped");
                    spool.remove(id)?;
                }
            }
        }
        let excess = leftovers.len().saturating_sub(LEFTOVERS_MAX);
        for (id, _) in leftovers.drain(..excess) {
            spool.remove(id)?;
        }
        if !leftovers.is_empty() {
            let (results, dropped) = (leftovers.len(), excess);
            info!(event = "spool", results, dropped, "results of an earlier run wait for their job");
        }
        Ok(Self {
            session,
            client,
            drain,
            spool,
            runtime,
            room: Arc::new(Semaphore::new(ROOM as usize)),
            calls: Semaphore::new(CALLS),
            next_spool_id: AtomicU64::new(last + 1),
            leftovers: Mutex::new(leftovers),
            acknowledged: AtomicU64::new(0),
        })
    }

    /// How many results were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Hands in a result. Returns once it is on its way (and on disk, if it cost much); the lease is held until it is
    /// acknowledged. Blocks while too many wait. Not to be called from async code.
    pub fn put(self: &Arc<Self>, finished: Finished, held: Held) {
        let id = self.next_spool_id.fetch_add(1, Ordering::Relaxed);
        let spooled = finished.request.nodes >= SPOOL_NODES_MIN && self.keep(id, &finished);
        self.dispatch(id, finished, spooled, Some(held));
    }

    /// Hands a lease back undone. Does not insist: a lease that is not renewed lapses anyway.
    pub fn release(self: &Arc<Self>, held: Held, reason: String, failed: bool) {
        if failed {
            error!(event = "release", lease = held.id.0, job = held.job.0, %reason, "task failed");
        } else {
            debug!(event = "release", lease = held.id.0, job = held.job.0, %reason, "lease handed back");
        }
        let Some(room) = self.enter() else { return };
        let outbox = Arc::clone(self);
        self.runtime.spawn(async move {
            outbox.hand_back(held, reason, failed).await;
            drop(room);
        });
    }

    /// A lease of this job has come, so the coordinator knows the job by this problem: what earlier runs left for it is sent.
    pub fn confirm(self: &Arc<Self>, job: JobId, problem: &v1::Problem) {
        let mut waiting = self.leftovers();
        if waiting.iter().all(|(_, finished)| finished.request.job != job.0) {
            return;
        }
        let (of_job, rest) = std::mem::take(&mut *waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, finished)| finished.request.job == job.0);
        *waiting = rest;
        drop(waiting);
        for (id, finished) in of_job {
            if finished.problem == *problem {
                info!(
                    event = "spool",
                    job = job.0,
                    nodes = finished.request.nodes,
                    "sending a result of an earlier run"
                );
                self.dispatch(id, finished, true, None);
            } else {
                let (then, now) = (&finished.problem, problem);
                warn!(
                    event = "spool",
                    job = job.0,
                    ?then,
                    ?now,
                    "job has another problem now: result of an earlier run dropped"
                );
                self.forget(id);
            }
        }
    }

    /// Waits until everything is acknowledged, or the time to hand in is over and the rest is spooled.
    pub async fn finish(&self) {
        // Never closed, so this cannot fail.
        let _ = self.room.acquire_many(ROOM).await;
    }

    fn leftovers(&self) -> MutexGuard<'_, Vec<(u64, Finished)>> {
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among those who wait.
    fn enter(&self) -> Option<OwnedSemaphorePermit> {
        self.runtime.block_on(Arc::clone(&self.room).acquire_owned()).ok()
    }

    fn dispatch(self: &Arc<Self>, id: u64, finished: Finished, spooled: bool, held: Option<Held>) {
        let Some(room) = self.enter() else { return };
        let outbox = Arc::clone(self);
        self.runtime.spawn(async move {
            outbox.deliver(id, finished, spooled).await;
            drop(held);
            drop(room);
        });
    }

    async fn deliver(self: &Arc<Self>, id: u64, finished: Finished, spooled: bool) {
        let v1::CompleteRequest { lease, job, nodes, .. } = finished.request;
        match self.complete(&finished.request).await {
            Ok(acceptance) => {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
                debug!(
                    event = "result",
                    lease,
                    job,
                    nodes,
                    acceptance = acceptance.as_str_name(),
                    "result acknowledged"
                );
                if spooled {
                    self.blocking(move |outbox| outbox.forget(id)).await;
                }
            }
            Err(Ended::Refused(status)) => {
                let (code, reason) = (status.code(), reason(&status));
                warn!(event = "result", lease, job, nodes, ?code, %reason, "coordinator refuses the result: dropped");
                if spooled {
                    self.blocking(move |outbox| outbox.forget(id)).await;
                }
            }
            Err(Ended::Draining) if spooled || self.distrusted() => {}
            // Cheap, but all the cheaper to keep now that nothing else is to be done.
            Err(Ended::Draining) => {
                self.blocking(move |outbox| {
                    outbox.keep(id, &finished);
                })
                .await;
            }
        }
    }

    /// Whether the worker ends because its own results may be wrong.
    fn distrusted(&self) -> bool {
        matches!(self.drain.failure(), Some(WorkerError::Contradiction(_) | WorkerError::Storage(_)))
    }

    async fn complete(&self, request: &v1::CompleteRequest) -> Result<v1::Acceptance, Ended> {
        let _call = self.calls.acquire().await;
        let call = |mut client: Client, session: v1::Session| {
            let mut request = Request::new(v1::CompleteRequest { session: Some(session), ..request.clone() });
            async move {
                request.set_timeout(limits::CALL_DEADLINE);
                Ok(client.complete(request).await?.into_inner())
            }
        };
        let (response, _) =
            self.session.until_answered(&self.client, "Complete", Patience::UntilHandedIn, call).await?;
        Ok(response.acceptance())
    }

    async fn hand_back(&self, held: Held, reason: String, failed: bool) {
        let (lease, lease_epoch, job) = (held.id.0, held.epoch().0, held.job.0);
        // From here on it is not renewed: if this does not get through, it lapses.
        drop(held);
        let _call = self.calls.acquire().await;
        let call = |mut client: Client, session: v1::Session| {
            let session = Some(session);
            let message =
                v1::ReleaseRequest { session, lease, lease_epoch, job, reason: reason.clone(), failed };
            async move {
                let mut request = Request::new(message);
                request.set_timeout(limits::CALL_DEADLINE);
                Ok(client.release(request).await?.into_inner())
            }
        };
        let answer = self.session.until_answered(&self.client, "Release", Patience::UntilHandedIn, call);
        match tokio::time::timeout(limits::CALL_DEADLINE, answer).await {
            Ok(Err(Ended::Refused(status))) => {
                debug!(event = "release", lease, job, reason = %crate::session::reason(&status), "lease was gone already");
            }
            Ok(Ok(_) | Err(Ended::Draining)) => {}
            Err(_) => debug!(event = "release", lease, job, "not handed back in time: it will lapse"),
        }
    }

    /// Runs something that waits for the disk.
    async fn blocking(self: &Arc<Self>, work: impl FnOnce(&Self) + Send + 'static) {
        let outbox = Arc::clone(self);
        if let Err(panic) = tokio::task::spawn_blocking(move || work(&outbox)).await {
            error!(event = "spool", %panic, "spool task failed");
        }
    }

    /// Puts a result on disk. False if the disk failed: it is still in memory and sent.
    fn keep(&self, id: u64, finished: &Finished) -> bool {
        let kept = self.spool.put(id, &encode(finished));
        if let Err(error) = &kept {
            self.failed(error);
        }
        kept.is_ok()
    }

    fn forget(&self, id: u64) {
        if let Err(error) = self.spool.remove(id) {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &StorageError) {
        match error {
            StorageError::Corrupt { .. } => self.drain.fail(WorkerError::Storage(error.clone())),
            _ => warn!(event = "spool", %error, "spool failed: results are kept in memory only"),
        }
    }
}

/// ```text
/// u32 LE            length of the problem
/// Problem           a message of grundy.v1
/// CompleteRequest   a message of grundy.v1, without session, to the end
/// ```
fn encode(finished: &Finished) -> Vec<u8> {
    let problem = finished.problem.encode_to_vec();
    let mut bytes = Vec::with_capacity(4 + problem.len() + finished.request.encoded_len());
    // A problem is some hundred bytes long: it came in one message.
    bytes.extend_from_slice(&u32::try_from(problem.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&problem);
    bytes.extend_from_slice(&finished.request.encode_to_vec());
    bytes
}

fn decode(bytes: &[u8]) -> Result<Finished, String> {
    let short = || format!("{} bytes are no spooled result", bytes.len());
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
    let (problem, request) = rest.split_at_checked(length).ok_or_else(short)?;
    let problem = v1::Problem::decode(problem).map_err(|e| e.to_string())?;
    let request = v1::CompleteRequest::decode(request).map_err(|e| e.to_string())?;
    Ok(Finished { problem, request })
}

/// What the coordinator is told of a search.
pub fn complete_request(
    held: &Held,
    claim: &grundy_games::claim::Claim,
    outcome: &grundy_search::engine::Outcome,
) -> v1::CompleteRequest {
    use grundy_search::engine::Verdict;
    use grundy_search::samples::Sample;
    let numbers = |n: &grundy_search::numbers::Numbers| (n.proof, n.disproof);
    let verdict = match &outcome.verdict {
        Verdict::Decided(truth) => v1::complete_request::Verdict::Decided(*truth),
        Verdict::Open { numbers: own, children } => {
            let children = children.iter().map(|child| (&child.edge, numbers(&child.numbers)));
            v1::complete_request::Verdict::Open(open_to_wire(numbers(own), children))
        }
    };
    let sample = |(level, sample): (u16, Sample)| v1::Sample {
        level: level.into(),
        searches: sample.searches,
        nodes: sample.nodes,
        squares: sample.squares,
    };
    v1::CompleteRequest {
        session: None,
        lease: held.id.0,
        lease_epoch: held.epoch().0,
        job: held.job.0,
        claim: Some(claim.into()),
        nodes: outcome.nodes,
        facts: outcome.facts.iter().take(limits::FACTS_MAX).map(v1::Fact::from).collect(),
        verdict: Some(verdict),
        samples: outcome.samples.levels().take(limits::SAMPLES_MAX).map(sample).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spooled_results_come_back_or_are_refused() {
        let problem = v1::Problem { game: "cram".into(), position: "....".into(), ..Default::default() };
        let verdict = Some(v1::complete_request::Verdict::Decided(false));
        let request = v1::CompleteRequest { lease: 7, job: 1, nodes: 99, verdict, ..Default::default() };
        let finished = Finished { problem, request };
        let bytes = encode(&finished);
        assert_eq!(decode(&bytes), Ok(finished));
        for length in [0, 3, 4, 9] {
            assert!(decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert!(decode(&[0xff; 40]).is_err());
    }
}
