//! `grundy serve`: a coordinator.

use super::config::{ConfigFile, DataArgs, ListenArgs, MemoryArgs};
use super::memory;
use super::output;
use super::signals::Signals;
use crate::actor;
use crate::core::Options;
use crate::exit::{Exit, Failure};
use crate::server::{self, Server, ServerError};
use crate::service::user;
use grundy_tables::{JobStorage, RocksJobs};
use std::sync::Arc;
use std::time::Duration;

/// How long a first signal waits for leases in flight: what has not come back by then is handed in to the next run, which
/// takes over leases that are still worked on.
const DRAIN_GRACE: Duration = Duration::from_secs(20);

/// Run a coordinator until it is drained or interrupted
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Storage(error) => error.into(),
            ServerError::Bind { error: ref reason, .. }
                if reason.kind() == std::io::ErrorKind::InvalidInput =>
            {
                Self::usage(error)
            }
            error => Self::new(Exit::Failed, error),
        }
    }
}

impl From<actor::StartError> for Failure {
    fn from(error: actor::StartError) -> Self {
        match error {
            actor::StartError::Storage(error) => error.into(),
            error => Self::new(Exit::Failed, error),
        }
    }
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let directory = args.data.directory(file);
    let directory = directory
        .ok_or_else(|| Failure::message(Exit::Usage, "serve needs --data DIR, where it keeps its jobs"))?;
    let listening = server::listen(&args.listen.address(file)).await?;
    let mut signals = Signals::new()?;
    let total = memory::check(args.memory.bytes(file, memory::half_of_machine))
        .map_err(|words| Failure::message(Exit::Usage, words))?;
    let storage: Arc<dyn JobStorage> = Arc::new(RocksJobs::open(&directory, &memory::storage_share(total))?);
    let loaded = storage.load()?;
    tracing::info!(
        data = %directory.display(), epoch = storage.epoch().0, jobs = loaded.jobs.len(), claims = loaded.claims.len(),
        parts = loaded.parts.len(), "data directory opened"
    );
    let handle = actor::spawn(storage, loaded, Options::default())?;
    let server = Server::start(handle.clone(), listening).await?;
    output::print(&format!("listening on {}", server.address()))?;
    let interrupted = tokio::select! {
        drained = server.drained() => { drained?; false }
        () = signals.next() => true,
    };
    if interrupted {
        output::complain(
            "interrupted: handing out no more work and writing the checkpoint; once more aborts",
        );
        let wait = async {
            // It drains already when a user asked for that before.
            let _ = user::drain(&handle).await;
            tokio::time::timeout(DRAIN_GRACE, server::drained(&handle)).await
        };
        tokio::select! {
            drained = wait => match drained {
                Ok(drained) => drained?,
                Err(_) => tracing::warn!("leases are still out: their results are taken by the next run"),
            },
            () = signals.next() => {
                output::complain("aborted: what was acknowledged is on disk");
                return Ok(Exit::Interrupted);
            }
        }
    }
    server.stop().await?;
    output::complain(&format!("stopped: starting again with --data {} resumes", directory.display()));
    Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
}
