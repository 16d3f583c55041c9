//! `grundy status`: how things stand.

use super::client::{Client, call, present};
use super::config::{ConfigFile, CoordinatorArgs};
use super::output::{self, Job, Worker};
use crate::exit::{Exit, Failure};
use grundy_proto::v1;

/// Show all jobs and workers, or one job
#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's number
    job: Option<u64>,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let mut client = Client::connect(&args.coordinator, file).await?;
    let (jobs, workers) = match args.job {
        Some(job) => {
            let got = client
                .service
                .get(call(v1::GetRequest { job }))
                .await
                .map_err(|status| client.failure(&status))?;
            (vec![present(got.into_inner().view, "view")?], Vec::new())
        }
        None => {
            let got = client
                .service
                .list(call(v1::ListRequest {}))
                .await
                .map_err(|status| client.failure(&status))?;
            let v1::ListResponse { jobs, workers } = got.into_inner();
            (jobs, workers)
        }
    };
    for view in &jobs {
        if args.json { output::print_json(&Job::new("job", view))? } else { output::print_job(view)? }
    }
    for view in &workers {
        if args.json { output::print_json(&Worker::from(view))? } else { output::print_worker(view)? }
    }
    Ok(Exit::Done)
}
