//! `grundy solve`: a whole job on this machine, with the same coordinator, protocol and workers as on many.

mod directory;
pub(super) mod progress;
mod workers;

use super::config::{ConfigFile, DataArgs, MemoryArgs, WorkerArgs};
use super::memory;
use super::output::{self, Job};
use super::problem::ProblemArgs;
use super::signals::Signals;
use super::watch;
use crate::actor::{self, Handle};
use crate::core::Options;
use crate::exit::{Exit, Failure};
use crate::server::{self, Server};
use crate::service::{self, user};
use grundy_proto::v1;
use grundy_tables::jobs::record::JobId;
use grundy_tables::{JobStorage, RocksJobs};
use progress::Progress;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use workers::{Workers, WorkersPlan};

/// How often the job is looked at: a finished one is answered this soon.
const POLL: Duration = Duration::from_millis(50);

/// How long workers that were asked to stop may take: to finish a poll, hand in results and write their tables.
const WORKERS_GRACE: Duration = Duration::from_secs(30);

/// How long the core waits for leases that come back no more, once the workers are gone.
const DRAIN_GRACE: Duration = Duration::from_secs(1);

/// Solve a problem on this machine; the same command again resumes
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    workers: WorkerArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print JSON, one object a line: progress, then a summary
    #[arg(long)]
    json: bool,
}

/// How the work ended.
enum End {
    /// The job did.
    Job,
    /// A signal.
    Interrupted,
}

pub(super) async fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let fields = args.problem.fields().map_err(Failure::usage)?;
    let directory = args.data.directory(file).unwrap_or_else(|| directory::default_for(&fields));
    let total = args.memory.bytes(file, memory::half_of_machine);
    let mut signals = Signals::new()?;
    let storage: Arc<dyn JobStorage> = Arc::new(RocksJobs::open(&directory, &memory::storage_share(total))?);
    let loaded = storage.load()?;
    directory::check(&directory, &loaded, &fields).map_err(Failure::usage)?;
    let handle = actor::spawn(storage, loaded, Options::default())?;
    let (job, resumed, _) = user::submit(&handle, fields).await?;
    let first = look(&handle, job).await?;
    if first.state() != v1::JobState::Running {
        server::stop(&handle).await?;
        return report(&first, &directory, args.json);
    }
    if resumed {
        tracing::info!(data = %directory.display(), "resuming");
    }

    let (count, threads) = args.workers.processes(file);
    let program = workers::program(args.workers.program(file))?;
    let server = Server::start(handle.clone(), "127.0.0.1:0").await?;
    let mut workers = Workers::start(WorkersPlan {
        program,
        count,
        threads,
        memory_bytes: memory::worker_share(total, count),
        coordinator: server.address(),
        directory: directory.clone(),
    });
    let mut progress = Progress::new(args.json);
    let end = work(&handle, job, &mut workers, &mut signals, &mut progress).await;
    progress.finish();
    let mut result = None;
    match end {
        Ok(End::Job) => {
            // Its answer is durable: no need to keep anybody waiting for the workers to go home.
            result = Some(report(&look(&handle, job).await?, &directory, args.json));
        }
        Ok(End::Interrupted) => {
            output::complain("interrupted: workers hand in what they have; once more aborts");
        }
        Err(_) => {}
    }
    let stopped = tokio::select! {
        stopped = wind_up(&handle, &mut workers) => stopped,
        () = signals.next() => {
            output::complain("aborted: what was acknowledged is on disk");
            workers.kill().await;
            return Ok(Exit::Interrupted);
        }
    };
    end?;
    stopped?;
    if let Some(result) = result {
        server.stop().await?;
        return result;
    }
    let view = look(&handle, job).await?;
    server.stop().await?;
    if view.state() != v1::JobState::Running {
        // The last result came in while the workers were stopping.
        return report(&view, &directory, args.json);
    }
    if args.json {
        output::print_json(&Job::new("summary", &view).with_data(&directory).interrupted())?;
    }
    output::complain(&format!("stopped, all is in {}: the same command resumes", directory.display()));
    Ok(Exit::Interrupted)
}

/// The job as it stands.
async fn look(handle: &Handle, job: JobId) -> Result<v1::JobView, Failure> {
    let (view, _) = user::view(handle, job).await?;
    Ok(service::job_view(&view))
}

/// Waits for the job to end, or for a reason to stop before.
async fn work(
    handle: &Handle,
    job: JobId,
    workers: &mut Workers,
    signals: &mut Signals,
    progress: &mut Progress,
) -> Result<End, Failure> {
    let mut ticks = tokio::time::interval(POLL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = signals.next() => return Ok(End::Interrupted),
            failure = workers.failed() => return Err(failure),
            drained = server::drained(handle) => {
                // Somebody drained this coordinator by its port, or storage failed.
                drained?;
                return Ok(End::Interrupted);
            }
            _ = ticks.tick() => {}
        }
        let view = look(handle, job).await?;
        if view.state() != v1::JobState::Running {
            return Ok(End::Job);
        }
        progress.show(&view)?;
    }
}

/// Stops the workers, takes in what they have, and writes it.
async fn wind_up(handle: &Handle, workers: &mut Workers) -> Result<(), Failure> {
    // Workers that wait for a task learn that there is none. A coordinator whose storage failed cannot say so.
    let _ = user::drain(handle).await;
    workers.stop(WORKERS_GRACE).await;
    match tokio::time::timeout(DRAIN_GRACE, server::drained(handle)).await {
        Ok(drained) => Ok(drained?),
        // Leases of workers that died: their tasks are open again in the next run.
        Err(_) => Ok(()),
    }
}

/// Prints how the job ended.
fn report(view: &v1::JobView, directory: &Path, json: bool) -> Result<Exit, Failure> {
    let directory: PathBuf = directory.to_path_buf();
    watch::finish(view, json.then(|| Job::new("summary", view).with_data(&directory)))
}
