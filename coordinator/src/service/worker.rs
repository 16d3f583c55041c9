//! What workers call.

use super::convert;
use super::relay::Relay;
use super::runs;
use super::status::ServiceError;
use crate::actor::Handle;
use crate::core::api::{Event, LeaseId, Reply};
use grundy_proto::convert::{at_most, worker_name};
use grundy_proto::v1::worker_service_server::WorkerService;
use grundy_proto::{PROTOCOL_VERSION, limits, v1};
use grundy_tables::jobs::record::JobId;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// The longest reason of a release that is kept, in bytes; it is for the log.
const REASON_BYTES_MAX: usize = 1024;

/// The worker service.
pub struct Workers {
    handle: Handle,
    relay: Arc<Relay>,
}

impl Workers {
    /// The service in front of a coordinator.
    pub fn new(handle: Handle) -> Self {
        Self { handle, relay: Arc::new(Relay::new()) }
    }

    async fn register(&self, request: v1::RegisterRequest) -> Result<v1::RegisterResponse, ServiceError> {
        let v1::RegisterRequest { protocol_version, worker, incarnation, threads, program_version } = request;
        if protocol_version != PROTOCOL_VERSION {
            return Err(ServiceError::Version { theirs: protocol_version, ours: PROTOCOL_VERSION });
        }
        worker_name(&worker)?;
        let incarnation = convert::run_number(incarnation)?;
        if !(1..=limits::LEASES_MAX).contains(&(threads as usize)) {
            let reason = format!("{threads} is out of range: expected 1 to {}", limits::LEASES_MAX);
            return Err(convert::invalid("threads", reason).into());
        }
        tracing::debug!(worker, incarnation, program_version, "worker registers");
        let reply = self.handle.ask(|token| Event::Register { token, worker, incarnation, threads }).await?;
        match reply {
            Reply::Registered { epoch, lease_ms, heartbeat_ms } => {
                Ok(v1::RegisterResponse { epoch: epoch.0, lease_ms, heartbeat_ms })
            }
            _ => Err(ServiceError::Unexpected { call: "Register" }),
        }
    }

    async fn lease(&self, request: v1::LeaseRequest) -> Result<v1::LeaseResponse, ServiceError> {
        let session = convert::session(request.session)?;
        let cursors = convert::cursors(request.cursors)?;
        let wait_ms = request.wait_ms;
        let wait_ms_max = limits::LEASE_WAIT_MAX.as_millis();
        if u128::from(wait_ms) > wait_ms_max {
            return Err(
                convert::invalid("wait_ms", format!("{wait_ms} is too long: at most {wait_ms_max}")).into()
            );
        }
        let outcome = match self.handle.ask(|token| Event::Lease { token, session, wait_ms, cursors }).await?
        {
            Reply::Leased(assignment) => {
                v1::lease_response::Outcome::Assignment(convert::assignment(&assignment))
            }
            Reply::Idle { retry_after_ms } => v1::lease_response::Outcome::Idle(v1::Idle { retry_after_ms }),
            Reply::Drained => v1::lease_response::Outcome::Drain(v1::Drain {}),
            _ => return Err(ServiceError::Unexpected { call: "Lease" }),
        };
        Ok(v1::LeaseResponse { outcome: Some(outcome) })
    }

    async fn heartbeat(&self, request: v1::HeartbeatRequest) -> Result<v1::HeartbeatResponse, ServiceError> {
        let session = convert::session(request.session)?;
        let cursors = convert::cursors(request.cursors)?;
        at_most(request.leases.len(), limits::LEASES_MAX, "leases")?;
        // A lease lapses under the name that the worker knows it by.
        let epochs: BTreeMap<u64, u64> =
            request.leases.iter().map(|lease| (lease.lease, lease.epoch)).collect();
        let leases = request.leases.into_iter().map(convert::progress).collect::<Result<_, _>>()?;
        match self.handle.ask(|token| Event::Heartbeat { token, session, leases, cursors }).await? {
            Reply::Heartbeat { lapsed, adopted, facts, draining } => Ok(v1::HeartbeatResponse {
                lapsed: lapsed
                    .into_iter()
                    .map(|LeaseId(lease)| v1::LapsedLease {
                        lease,
                        epoch: epochs.get(&lease).copied().unwrap_or(lease >> 32),
                    })
                    .collect(),
                adopted: adopted.into_iter().map(|LeaseId(lease)| lease).collect(),
                facts: facts.iter().map(convert::fact_batch).collect(),
                draining,
            }),
            _ => Err(ServiceError::Unexpected { call: "Heartbeat" }),
        }
    }

    async fn complete(&self, request: v1::CompleteRequest) -> Result<v1::CompleteResponse, ServiceError> {
        let session = convert::session(request.session)?;
        let (lease, job) = (LeaseId(request.lease), JobId(request.job));
        let result =
            convert::result(request.claim, request.verdict, request.nodes, request.facts, &request.samples)?;
        match self.handle.ask(|token| Event::Complete { token, session, lease, job, result }).await? {
            Reply::Completed(acceptance) => Ok(convert::acceptance(acceptance)),
            _ => Err(ServiceError::Unexpected { call: "Complete" }),
        }
    }

    async fn release(&self, request: v1::ReleaseRequest) -> Result<v1::ReleaseResponse, ServiceError> {
        let session = convert::session(request.session)?;
        at_most(request.reason.len(), REASON_BYTES_MAX, "reason")?;
        let v1::ReleaseRequest { lease, job, reason, failed, .. } = request;
        let (lease, job) = (LeaseId(lease), JobId(job));
        match self.handle.ask(|token| Event::Release { token, session, lease, job, failed, reason }).await? {
            Reply::Released => Ok(v1::ReleaseResponse {}),
            _ => Err(ServiceError::Unexpected { call: "Release" }),
        }
    }

    async fn unregister(
        &self,
        request: v1::UnregisterRequest,
    ) -> Result<v1::UnregisterResponse, ServiceError> {
        let session = convert::session(request.session)?;
        match self.handle.ask(|token| Event::Unregister { token, session }).await? {
            Reply::Unregistered => Ok(v1::UnregisterResponse {}),
            _ => Err(ServiceError::Unexpected { call: "Unregister" }),
        }
    }
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type ExchangeStream = ReceiverStream<Result<v1::ExchangeResponse, Status>>;
    type FetchRunsStream = ReceiverStream<Result<v1::RunChunk, Status>>;

    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterResponse>, Status> {
        Ok(Response::new(self.register(request.into_inner()).await?))
    }

    async fn lease(&self, request: Request<v1::LeaseRequest>) -> Result<Response<v1::LeaseResponse>, Status> {
        Ok(Response::new(self.lease(request.into_inner()).await?))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        Ok(Response::new(self.heartbeat(request.into_inner()).await?))
    }

    async fn complete(
        &self,
        request: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        Ok(Response::new(self.complete(request.into_inner()).await?))
    }

    async fn complete_part(
        &self,
        request: Request<Streaming<v1::CompletePartRequest>>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        Ok(Response::new(runs::complete_part(&self.handle, request.into_inner()).await?))
    }

    async fn fetch_runs(
        &self,
        request: Request<v1::FetchRunsRequest>,
    ) -> Result<Response<Self::FetchRunsStream>, Status> {
        Ok(Response::new(runs::fetch(&self.handle, request.into_inner()).await?))
    }

    async fn exchange(
        &self,
        request: Request<Streaming<v1::ExchangeRequest>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        let relay = Arc::clone(&self.relay);
        Ok(Response::new(relay.exchange(&self.handle, request.into_inner()).await?))
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseResponse>, Status> {
        Ok(Response::new(self.release(request.into_inner()).await?))
    }

    async fn unregister(
        &self,
        request: Request<v1::UnregisterRequest>,
    ) -> Result<Response<v1::UnregisterResponse>, Status> {
        Ok(Response::new(self.unregister(request.into_inner()).await?))
    }
}
