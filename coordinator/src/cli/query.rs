//! `grundy query`: what a job knows of a position.

use super::client::{Client, call};
use super::config::{ConfigFile, CoordinatorArgs, DataArgs};
use super::output;
use crate::actor;
use crate::answer::{self, InWords};
use crate::core::Options;
use crate::core::api::{CoreError, Event, Reply};
use crate::exit::{Exit, Failure};
use crate::server;
use grundy_proto::v1;
use grundy_tables::jobs::record::JobId;
use grundy_tables::{JobStorage, RocksJobs, StorageMemory};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Ask what a job knows of a position, of a running coordinator or of a data directory
#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's number; in the data directory of `solve` it is 1
    job: u64,
    /// The position in the game's notation [default: the job's own]
    position: Option<String>,
    #[command(flatten)]
    coordinator: CoordinatorArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer as JSON.
#[derive(Serialize)]
struct Answered {
    message_type: &'static str,
    job: u64,
    decided: bool,
    answer: Value,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let position = args.position.clone().unwrap_or_default();
    // A directory in the configuration file is there for `serve`; here it takes a flag to go past the coordinator.
    let response = match args.data.named() {
        Some(directory) => from_directory(directory, args.job, position).await?,
        None => {
            let mut client = Client::connect(&args.coordinator, file).await?;
            let request = call(v1::QueryRequest { job: args.job, position });
            client.service.query(request).await.map_err(|status| client.failure(&status))?.into_inner()
        }
    };
    if args.json {
        let answer = serde_json::from_str(&response.answer_json).unwrap_or(Value::Null);
        output::print_json(&Answered {
            message_type: "query",
            job: args.job,
            decided: response.decided,
            answer,
        })?;
    } else {
        output::print(&response.answer_text)?;
    }
    Ok(if response.decided { Exit::Done } else { Exit::NotFound })
}

/// Asks a directory that no coordinator has open.
async fn from_directory(directory: &Path, job: u64, position: String) -> Result<v1::QueryResponse, Failure> {
    if !directory.is_dir() {
        // Opening would create it.
        return Err(Failure::message(
            Exit::NotFound,
            format!("there is no directory {}", directory.display()),
        ));
    }
    let storage: Arc<dyn JobStorage> = Arc::new(RocksJobs::open(directory, &StorageMemory::default())?);
    let loaded = storage.load()?;
    let handle = actor::spawn(storage, loaded, Options::default())?;
    let asked = handle.ask(|token| Event::Query { token, job: JobId(job), position }).await;
    server::stop(&handle).await?;
    match asked {
        Ok(Reply::Known { decided, answer }) => Ok(v1::QueryResponse {
            decided,
            answer_json: answer::json(&answer),
            answer_text: InWords(&answer).to_string(),
        }),
        Ok(_) => Err(Failure::message(Exit::Failed, "the core's reply does not fit the question")),
        Err(error @ actor::AskError::Core(CoreError::NoSuchJob(_))) => {
            Err(Failure::new(Exit::NotFound, error))
        }
        Err(error @ actor::AskError::Core(_)) => Err(Failure::usage(error)),
        Err(error) => Err(Failure::new(Exit::Failed, error)),
    }
}
