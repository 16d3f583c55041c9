//! `grundy watch`: follows a job to its end.

use super::client::{self, Client, present};
use super::config::{ConfigFile, CoordinatorArgs, PatienceArgs};
use super::output::{self, Job};
use super::solve::progress::{Elsewhere, Line};
use crate::exit::{Exit, Failure};
use grundy_proto::v1;
use std::time::{Duration, Instant};
use tonic::Status;

/// How often progress is shown unless told otherwise, in milliseconds.
pub(super) const INTERVAL_MS_DEFAULT: u64 = 1_000;

/// Follow a job until it ends, and print its answer
#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's number
    job: u64,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    patience: PatienceArgs,
    /// Milliseconds between progress reports
    #[arg(long, value_name = "MS", default_value_t = INTERVAL_MS_DEFAULT, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    interval: u64,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let client = Client::connect(&args.coordinator, file).await?;
    let give_up_after = args.patience.give_up_after(file);
    Follow { client, job: args.job, interval_ms: args.interval, json: args.json, give_up_after }.run().await
}

/// The wait after a first failure, doubled with each in a row.
const RETRY_AFTER: Duration = Duration::from_millis(200);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// Follows a job to its end, over restarts of its coordinator.
pub(super) struct Follow {
    /// The coordinator.
    pub client: Client,
    /// The job.
    pub job: u64,
    /// Milliseconds between progress reports.
    pub interval_ms: u64,
    /// Whether progress goes to stdout as JSON.
    pub json: bool,
    /// How long a coordinator that went away is waited for.
    pub give_up_after: Duration,
}

/// Since when, and how often in vain, the coordinator was tried.
struct Away {
    since: Instant,
    wait: Duration,
}

impl Follow {
    /// Shows the job's progress until it ends, then its answer.
    pub async fn run(mut self) -> Result<Exit, Failure> {
        let elsewhere = if self.json { Elsewhere::Silent } else { Elsewhere::Plain };
        let mut line = Line::new(elsewhere);
        let mut problem = None;
        let mut away = None;
        loop {
            let reason = match self.watch(&mut line, &mut problem, &mut away).await {
                Ok(Some(view)) => {
                    drop(line);
                    return finish(&view, self.json.then(|| Job::new("summary", &view)));
                }
                Ok(None) => "it ended before the job did".to_owned(),
                Err(Broken::Gone(status)) => client::reason(&status),
                Err(Broken::Failed(failure)) => return Err(failure),
            };
            self.pause(&line, &mut away, &reason).await?;
        }
    }

    /// Follows the job as far as one call goes. `None`: the call ended before the job.
    async fn watch(
        &mut self,
        line: &mut Line,
        problem: &mut Option<v1::Problem>,
        away: &mut Option<Away>,
    ) -> Result<Option<v1::JobView>, Broken> {
        let broken = |client: &Client, status: Status| {
            if client::may_pass(&status) { Broken::Gone(status) } else { client.failure(&status).into() }
        };
        let request = v1::WatchRequest { job: self.job, interval_ms: self.interval_ms };
        // No deadline: a job takes as long as it takes. A coordinator that is gone is noticed by the connection's keepalive.
        let called = self.client.service.watch(request).await;
        let mut stream = called.map_err(|status| broken(&self.client, status))?.into_inner();
        while let Some(response) = stream.message().await.map_err(|status| broken(&self.client, status))? {
            let view = present(response.view, "view")?;
            if let Some(Away { since, .. }) = away.take() {
                let Client { address, .. } = &self.client;
                line.say(&format!("{address} answers again after {} s", since.elapsed().as_secs()));
            }
            // Another data directory has other jobs by the same numbers.
            if problem.get_or_insert_with(|| view.problem.clone().unwrap_or_default())
                != &view.problem.clone().unwrap_or_default()
            {
                let words =
                    format!("job {} is another problem since the coordinator was restarted", self.job);
                return Err(Failure::message(Exit::Failed, words).into());
            }
            if view.state() != v1::JobState::Running {
                return Ok(Some(view));
            }
            line.show(&view);
            if self.json {
                output::print_json(&Job::new("progress", &view)).map_err(Failure::from)?;
            }
        }
        Ok(None)
    }

    /// Waits before the next attempt, longer each time.
    async fn pause(&self, line: &Line, away: &mut Option<Away>, reason: &str) -> Result<(), Failure> {
        let Client { address, .. } = &self.client;
        let left =
            self.give_up_after.saturating_sub(away.as_ref().map_or(Duration::ZERO, |a| a.since.elapsed()));
        if left.is_zero() {
            return Err(client::unreachable(address, reason));
        }
        let away = away.get_or_insert_with(|| {
            let limit = self.give_up_after.as_secs();
            line.say(&format!("no answer from {address} ({reason}): trying again for {limit} s"));
            Away { since: Instant::now(), wait: RETRY_AFTER }
        });
        tokio::time::sleep(away.wait.min(left)).await;
        away.wait = (away.wait * 2).min(RETRY_AFTER_MAX);
        Ok(())
    }
}

/// Why following stopped before the job's end.
enum Broken {
    /// The coordinator is away, for now.
    Gone(Status),
    /// There is no sense in trying again.
    Failed(Failure),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Prints how a job ended: its summary, or its answer in words.
pub(super) fn finish(view: &v1::JobView, summary: Option<Job<'_>>) -> Result<Exit, Failure> {
    match &summary {
        Some(summary) => output::print_json(summary)?,
        None if view.state() == v1::JobState::Solved => output::print(&view.answer_text)?,
        None => {}
    }
    match view.state() {
        v1::JobState::Solved => Ok(Exit::Done),
        v1::JobState::Failed => {
            Err(Failure::message(Exit::Failed, format!("job {} failed: {}", view.job, view.failure)))
        }
        state => Err(Failure::message(
            Exit::NotFound,
            format!("job {} is {}", view.job, output::state_word(state)),
        )),
    }
}
