//! `grundy watch`: follows a job to its end.

use super::client::{Client, present};
use super::config::{ConfigFile, CoordinatorArgs};
use super::output::{self, Job};
use super::solve::progress::Line;
use crate::exit::{Exit, Failure};
use grundy_proto::v1;

/// How often progress is shown unless told otherwise, in milliseconds.
pub(super) const INTERVAL_MS_DEFAULT: u64 = 1_000;

/// Follow a job until it ends, and print its answer
#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's number
    job: u64,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    /// Milliseconds between progress reports
    #[arg(long, value_name = "MS", default_value_t = INTERVAL_MS_DEFAULT, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    interval: u64,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let mut client = Client::connect(&args.coordinator, file).await?;
    follow(&mut client, args.job, args.interval, args.json).await
}

/// Shows a job's progress until it ends, then its answer.
pub(super) async fn follow(
    client: &mut Client,
    job: u64,
    interval_ms: u64,
    json: bool,
) -> Result<Exit, Failure> {
    let request = v1::WatchRequest { job, interval_ms };
    // No deadline: a job takes as long as it takes. A coordinator that is gone is noticed by the connection's keepalive.
    let stream = client.service.watch(request).await.map_err(|status| client.failure(&status))?;
    let mut stream = stream.into_inner();
    let mut line = Line::new();
    let mut last = None;
    while let Some(response) = stream.message().await.map_err(|status| client.failure(&status))? {
        let view = present(response.view, "view")?;
        if view.state() == v1::JobState::Running {
            line.show(&view);
            if json {
                output::print_json(&Job::new("progress", &view))?;
            }
        }
        last = Some(view);
    }
    drop(line);
    let view = present(last, "view")?;
    if view.state() == v1::JobState::Running {
        return Err(Failure::message(Exit::Unreachable, "the coordinator stopped before the job ended"));
    }
    finish(&view, json.then(|| Job::new("summary", &view)))
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
