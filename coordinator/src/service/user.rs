//! What users call.

use super::convert;
use super::status::ServiceError;
use crate::actor::Handle;
use crate::answer::{self, InWords};
use crate::core::api::{Event, JobView, Reply, WorkerView};
use grundy_games::problem::Fields;
use grundy_proto::convert::required;
use grundy_proto::v1::grundy_service_server::GrundyService;
use grundy_proto::{limits, v1};
use grundy_tables::jobs::record::{JobId, JobStatus};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The bounds of a watch's interval, in milliseconds, and what 0 stands for.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 100..=60_000;
const INTERVAL_MS_DEFAULT: u64 = 1_000;

/// How often a watch looks whether its job has ended, so that the last view is not an interval late.
const WATCH_POLL: Duration = Duration::from_millis(100);

/// The longest game name, rules or question in bytes: `at-least -255` and the longest opening take some hundred.
const WORD_BYTES_MAX: usize = 1024;

/// The user service.
pub struct Users {
    handle: Handle,
}

/// Submits a problem.
pub(crate) async fn submit(
    handle: &Handle,
    fields: Fields,
) -> Result<(JobId, bool, Box<JobView>), ServiceError> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    match handle.ask(|token| Event::Submit { token, fields, unix_ms }).await? {
        Reply::Submitted { job, resumed, view } => Ok((job, resumed, view)),
        _ => Err(ServiceError::Unexpected { call: "Submit" }),
    }
}

/// All jobs, and all workers.
pub(crate) async fn views(
    handle: &Handle,
    job: Option<JobId>,
) -> Result<(Vec<JobView>, Vec<WorkerView>), ServiceError> {
    match handle.ask(|token| Event::View { token, job }).await? {
        Reply::View { jobs, workers } => Ok((jobs, workers)),
        _ => Err(ServiceError::Unexpected { call: "View" }),
    }
}

/// One job, and all workers.
pub(crate) async fn view(handle: &Handle, job: JobId) -> Result<(JobView, Vec<WorkerView>), ServiceError> {
    let (jobs, workers) = views(handle, Some(job)).await?;
    match jobs.into_iter().next() {
        Some(view) => Ok((view, workers)),
        None => Err(ServiceError::Unexpected { call: "View" }),
    }
}

/// Stops leasing.
pub(crate) async fn drain(handle: &Handle) -> Result<(), ServiceError> {
    match handle.ask(|token| Event::Drain { token }).await? {
        Reply::Draining => Ok(()),
        _ => Err(ServiceError::Unexpected { call: "DrainCoordinator" }),
    }
}

impl Users {
    /// The service in front of a coordinator.
    pub fn new(handle: Handle) -> Self {
        Self { handle }
    }

    async fn cancel(&self, job: JobId) -> Result<JobView, ServiceError> {
        let reply = self.handle.ask(|token| Event::Cancel { token, job }).await?;
        let Reply::View { jobs, .. } = reply else {
            return Err(ServiceError::Unexpected { call: "Cancel" });
        };
        jobs.into_iter().next().ok_or(ServiceError::Unexpected { call: "Cancel" })
    }

    async fn query(&self, job: JobId, position: String) -> Result<v1::QueryResponse, ServiceError> {
        short(&position, limits::POSITION_BYTES_MAX, "position")?;
        match self.handle.ask(|token| Event::Query { token, job, position }).await? {
            Reply::Known { decided, answer } => Ok(v1::QueryResponse {
                decided,
                answer_json: answer::json(&answer),
                answer_text: InWords(&answer).to_string(),
            }),
            _ => Err(ServiceError::Unexpected { call: "Query" }),
        }
    }
}

/// Checks the length of a text.
fn short(text: &str, max: usize, field: &'static str) -> Result<(), ServiceError> {
    if text.len() > max {
        return Err(
            convert::invalid(field, format!("{} bytes: at most {max} are allowed", text.len())).into()
        );
    }
    Ok(())
}

/// Reads a problem, its texts no longer than any game needs.
fn problem(problem: Option<v1::Problem>) -> Result<Fields, ServiceError> {
    let fields = Fields::from(required(problem, "problem")?);
    short(&fields.game, WORD_BYTES_MAX, "problem.game")?;
    short(&fields.rules, WORD_BYTES_MAX, "problem.rules")?;
    short(&fields.question, WORD_BYTES_MAX, "problem.question")?;
    short(&fields.position, limits::POSITION_BYTES_MAX, "problem.position")?;
    Ok(fields)
}

/// Sends a job's views until it ends or the watcher leaves.
async fn watch(
    handle: Handle,
    job: JobId,
    interval: Duration,
    sender: mpsc::Sender<Result<v1::WatchResponse, Status>>,
) {
    let mut sent_at: Option<Instant> = None;
    loop {
        let message = match view(&handle, job).await {
            Ok((view, _)) => {
                let ended = view.status != JobStatus::Running;
                let due = sent_at.is_none_or(|sent_at| sent_at.elapsed() >= interval);
                if due || ended {
                    sent_at = Some(Instant::now());
                    let response = v1::WatchResponse { view: Some(convert::job_view(&view)) };
                    if sender.send(Ok(response)).await.is_err() || ended {
                        return;
                    }
                }
                None
            }
            Err(error) => Some(Err(error.into())),
        };
        if let Some(error) = message {
            // A watcher that has gone away does not need to know.
            let _ = sender.send(error).await;
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(WATCH_POLL.min(interval)) => {}
            () = sender.closed() => return,
        }
    }
}

#[tonic::async_trait]
impl GrundyService for Users {
    type WatchStream = ReceiverStream<Result<v1::WatchResponse, Status>>;

    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let fields = problem(request.into_inner().problem)?;
        let (job, resumed, view) = submit(&self.handle, fields).await?;
        Ok(Response::new(v1::SubmitResponse { job: job.0, resumed, view: Some(convert::job_view(&view)) }))
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Status> {
        let (view, workers) = view(&self.handle, JobId(request.into_inner().job)).await?;
        let workers = workers.iter().map(convert::worker_view).collect();
        Ok(Response::new(v1::GetResponse { view: Some(convert::job_view(&view)), workers }))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        let (jobs, workers) = views(&self.handle, None).await?;
        let workers = workers.iter().map(convert::worker_view).collect();
        Ok(Response::new(v1::ListResponse { jobs: jobs.iter().map(convert::job_view).collect(), workers }))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let v1::WatchRequest { job, interval_ms } = request.into_inner();
        let interval_ms = if interval_ms == 0 { INTERVAL_MS_DEFAULT } else { interval_ms };
        if !INTERVAL_MS.contains(&interval_ms) {
            let (low, high) = INTERVAL_MS.into_inner();
            let reason = format!("{interval_ms} is out of range: expected {low} to {high}");
            return Err(ServiceError::from(convert::invalid("interval_ms", reason)).into());
        }
        let job = JobId(job);
        // An unknown job is this call's error, not the stream's.
        view(&self.handle, job).await?;
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(watch(self.handle.clone(), job, Duration::from_millis(interval_ms), sender));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        let view = self.cancel(JobId(request.into_inner().job)).await?;
        Ok(Response::new(v1::CancelResponse { view: Some(convert::job_view(&view)) }))
    }

    async fn query(&self, request: Request<v1::QueryRequest>) -> Result<Response<v1::QueryResponse>, Status> {
        let v1::QueryRequest { job, position } = request.into_inner();
        Ok(Response::new(self.query(JobId(job), position).await?))
    }

    async fn drain_coordinator(
        &self,
        _: Request<v1::DrainCoordinatorRequest>,
    ) -> Result<Response<v1::DrainCoordinatorResponse>, Status> {
        drain(&self.handle).await?;
        Ok(Response::new(v1::DrainCoordinatorResponse {}))
    }
}
