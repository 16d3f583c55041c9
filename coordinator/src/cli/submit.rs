//! `grundy submit`: hands a problem to a coordinator.

use super::client::{Client, call, present};
use super::config::{ConfigFile, CoordinatorArgs, PatienceArgs};
use super::output::{self, Job};
use super::problem::ProblemArgs;
use super::watch::{self, Follow};
use crate::exit::{Exit, Failure};
use grundy_proto::v1;

/// Submit a problem to a coordinator; submitting it again resumes it
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    patience: PatienceArgs,
    /// Wait for the answer
    #[arg(long)]
    watch: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let fields = args.problem.fields().map_err(Failure::usage)?;
    let mut client = Client::connect(&args.coordinator, file).await?;
    let request = v1::SubmitRequest { problem: Some((&fields).into()) };
    let response = client.service.submit(call(request)).await.map_err(|status| client.failure(&status))?;
    let v1::SubmitResponse { job, resumed, view } = response.into_inner();
    let view = present(view, "view")?;
    if args.json {
        output::print_json(&Job::new("submitted", &view).with_resumed(resumed))?;
    } else if !args.watch {
        output::print(&format!("job {job}"))?;
    } else {
        output::complain(&format!("job {job}{}", if resumed { ", known before" } else { "" }));
    }
    if args.watch {
        let (interval_ms, give_up_after) = (watch::INTERVAL_MS_DEFAULT, args.patience.give_up_after(file));
        Follow { client, job, interval_ms, json: args.json, give_up_after }.run().await
    } else {
        Ok(Exit::Done)
    }
}
