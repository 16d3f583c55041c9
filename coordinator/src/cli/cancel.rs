//! `grundy cancel`: stops a job.

use super::client::{Client, call, present};
use super::config::{ConfigFile, CoordinatorArgs};
use super::output::{self, Job};
use crate::exit::{Exit, Failure};
use grundy_proto::v1;

/// Stop a job; what it decided is kept, and submitting it again goes on
#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's number
    job: u64,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let mut client = Client::connect(&args.coordinator, file).await?;
    let request = call(v1::CancelRequest { job: args.job });
    let response = client.service.cancel(request).await.map_err(|status| client.failure(&status))?;
    let view = present(response.into_inner().view, "view")?;
    if args.json {
        output::print_json(&Job::new("job", &view))?;
    } else {
        output::print_job(&view)?;
    }
    Ok(Exit::Done)
}
