//! `grundy drain`: ends a coordinator in order.

use super::client::{Client, call};
use super::config::{ConfigFile, CoordinatorArgs};
use super::output;
use crate::exit::{Exit, Failure};
use grundy_proto::v1;

/// Have a coordinator hand out nothing more, and end once what is in flight is handed in; returns at once
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    coordinator: CoordinatorArgs,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let mut client = Client::connect(&args.coordinator, file).await?;
    let request = call(v1::DrainCoordinatorRequest {});
    client.service.drain_coordinator(request).await.map_err(|status| client.failure(&status))?;
    output::complain("the coordinator is draining");
    Ok(Exit::Done)
}
