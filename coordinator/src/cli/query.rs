//! `grundy query`: what a job knows of a position.

use super::client::{Client, call};
use super::config::{ConfigFile, CoordinatorArgs};
use super::output;
use crate::answer::{self, InWords};
use crate::core::api::{Action, CoreError, Event, Millis, Reply, Token};
use crate::core::{Core, Options};
use crate::exit::{Exit, Failure};
use grundy_proto::v1;
use grundy_tables::jobs::record::JobId;
use grundy_tables::{RocksJobs, StorageError, StorageMemory};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Ask what a job knows of a position, of a running coordinator or of a data directory
#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's number; in the data directory of `solve` it is 1
    job: u64,
    /// The position in the game's notation [default: the job's own]
    position: Option<String>,
    // Without their variables: of those the parser cannot tell that a flag beside them is meant to win.
    /// Address of the coordinator [env: GRUNDY_COORDINATOR] [default: 127.0.0.1:4848]
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "data")]
    coordinator: Option<String>,
    /// Ask this data directory, which no coordinator may have open, and only read it [env: GRUNDY_DATA, unless
    /// GRUNDY_COORDINATOR is set]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
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

/// Who is asked.
#[derive(PartialEq, Eq, Debug)]
enum Source {
    /// A coordinator, by this address or else the configuration file's.
    Coordinator(Option<String>),
    /// A directory.
    Directory(PathBuf),
}

/// Flags first, then the environment. There a coordinator goes before a directory, which is likely set for `serve`; and so it is
/// in the configuration file, whose directory is not asked at all.
fn source(args: &Args, variable: impl Fn(&str) -> Option<OsString>) -> Source {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    match (&args.coordinator, &args.data) {
        (Some(address), _) => return Source::Coordinator(Some(address.clone())),
        (None, Some(directory)) => return Source::Directory(directory.clone()),
        (None, None) => {}
    }
    match (variable("GRUNDY_COORDINATOR"), variable("GRUNDY_DATA")) {
        (Some(address), _) => Source::Coordinator(Some(address.to_string_lossy().into_owned())),
        (None, Some(directory)) => Source::Directory(directory.into()),
        (None, None) => Source::Coordinator(None),
    }
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let position = args.position.clone().unwrap_or_default();
    let response = match source(&args, |name| std::env::var_os(name)) {
        Source::Directory(directory) => from_directory(&directory, args.job, position)?,
        Source::Coordinator(address) => {
            let mut client = Client::connect(&CoordinatorArgs::given(address), file).await?;
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
fn from_directory(directory: &Path, job: u64, position: String) -> Result<v1::QueryResponse, Failure> {
    if !directory.is_dir() {
        let words = format!("there is no directory {}", directory.display());
        return Err(Failure::message(Exit::NotFound, words));
    }
    let (epoch, loaded) = RocksJobs::read(directory, &StorageMemory::default())?;
    let mut core = Core::new(epoch, Options::default(), loaded, Millis(0)).map_err(|reason| {
        StorageError::Corrupt { place: format!("the checkpoint in {}", directory.display()), reason }
    })?;
    // A job whose last result is there but not yet its answer is finished by a tick. Nothing of this is written.
    core.step(Millis(0), Event::Tick);
    let asked = core.step(Millis(0), Event::Query { token: Token(0), job: JobId(job), position });
    let reply = asked.into_iter().find_map(|action| match action {
        Action::Reply(_, reply) => Some(reply),
        Action::Commit(..) | Action::Log(_) => None,
    });
    match reply {
        Some(Reply::Known { decided, answer }) => Ok(v1::QueryResponse {
            decided,
            answer_json: answer::json(&answer),
            answer_text: InWords(&answer).to_string(),
        }),
        Some(Reply::Error(error @ CoreError::NoSuchJob(_))) => Err(Failure::new(Exit::NotFound, error)),
        Some(Reply::Error(error)) => Err(Failure::usage(error)),
        _ => Err(Failure::message(Exit::Failed, "the core's reply does not fit the question")),
    }
}
