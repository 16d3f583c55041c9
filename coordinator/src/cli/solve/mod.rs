//! `grundy solve`: a whole job on this machine, with the same coordinator, protocol and workers as on many.

mod directory;
pub(super) mod progress;
mod workers;

use super::config::{
    ConfigFile, DataArgs, EndgameArgs, EndgameMemoryArgs, EndgameSeedsArgs, MemoryArgs, WorkerArgs,
};
use super::memory;
use super::output::{self, Job};
use super::problem::{FlagError, Game, ProblemArgs};
use super::signals::Signals;
use super::watch;
use crate::actor::{self, Handle};
use crate::core::Options;
use crate::exit::{Exit, Failure};
use crate::server::{self, Server};
use crate::service::{self, user};
use grundy_games::problem::Fields;
use grundy_proto::v1;
use grundy_tables::jobs::record::JobId;
use grundy_tables::{JobStorage, RocksJobs};
use progress::Progress;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
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
    #[command(flatten)]
    endgame: EndgameArgs,
    #[command(flatten)]
    endgame_memory: EndgameMemoryArgs,
    #[command(flatten)]
    endgame_seeds: EndgameSeedsArgs,
    /// Peg: print how many boards each level has; JSON always tells
    #[arg(long)]
    levels: bool,
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
    if args.levels && args.problem.game != Game::Peg {
        let game = args.problem.game.name();
        return Err(Failure::usage(FlagError::OtherGame { flag: "levels", game }));
    }
    let directory = args.data.directory(file).unwrap_or_else(|| directory::default_for(&fields));
    let program = workers::program(args.workers.program(file))?;
    let (count, threads) = args.workers.processes(file);
    let total = memory::check(args.memory.bytes(file, memory::half_of_machine))
        .map_err(|words| Failure::message(Exit::Usage, words))?;
    let endgame_bytes = match args.problem.game {
        Game::Cram | Game::Kalah => args.endgame_memory.bytes(file),
        // The others have no databases to map.
        Game::Konane | Game::Peg => Some(0),
    };
    // Kalah's engine keeps what it finds in tables of its own: as much as there may be for them.
    let engine_memory = (args.problem.game == Game::Kalah).then_some(total);
    let shares = memory::worker_shares(total, count, threads, endgame_bytes)
        .map_err(|words| Failure::message(Exit::Usage, words))?;
    let endgame = args.endgame.directory(file).unwrap_or_else(|| directory.join("endgame"));
    let endgame_seeds = args.endgame_seeds.seeds(file);
    let signals = Signals::new()?;
    let storage: Arc<dyn JobStorage> = Arc::new(RocksJobs::open(&directory, &memory::storage_share(total))?);
    let loaded = storage.load()?;
    directory::check(&directory, &loaded, &fields).map_err(Failure::usage)?;
    let handle = actor::spawn(storage, loaded, Options::default())?;
    let (levels, json) = (args.levels, args.json);
    let solve = Solve { handle: handle.clone(), directory: directory.clone(), levels, json };
    let plan = |coordinator| WorkersPlan {
        program,
        count,
        threads,
        shares,
        endgame,
        endgame_seeds,
        engine_memory,
        coordinator,
        directory,
    };
    let exit = solve.run(fields, plan, signals).await;
    let stopped = server::stop(&handle).await;
    let exit = exit?;
    stopped?;
    Ok(exit)
}

/// One run of the command, once its coordinator is up.
struct Solve {
    handle: Handle,
    directory: PathBuf,
    levels: bool,
    json: bool,
}

impl Solve {
    async fn run(
        &self,
        fields: Fields,
        plan: impl FnOnce(SocketAddr) -> WorkersPlan,
        mut signals: Signals,
    ) -> Result<Exit, Failure> {
        let (job, resumed, _) = user::submit(&self.handle, fields).await?;
        let view = self.look(job).await?;
        if view.state() != v1::JobState::Running {
            return self.report(&view);
        }
        if resumed {
            tracing::info!(data = %self.directory.display(), "resuming");
        }
        let server = Server::start(self.handle.clone(), server::listen("127.0.0.1:0").await?).await?;
        let mut workers = Workers::start(plan(server.address()));
        let end = self.work(job, &mut workers, &mut signals).await;
        let reported = match end {
            // Its answer is durable: no need to keep anybody waiting for the workers to go home.
            Ok(End::Job) => Some(self.look(job).await.and_then(|view| self.report(&view))),
            Ok(End::Interrupted) => {
                output::complain("interrupted: workers hand in what they have; once more aborts");
                None
            }
            Err(_) => None,
        };
        tokio::select! {
            () = self.wind_up(&mut workers) => {}
            () = signals.next() => {
                output::complain("aborted: what was acknowledged is on disk");
                workers.kill().await;
                return reported.unwrap_or(Ok(Exit::Interrupted));
            }
        }
        end?;
        let exit = match reported {
            Some(reported) => reported,
            None => self.interrupted(&self.look(job).await?),
        };
        server.stop().await?;
        exit
    }

    /// The job as it stands.
    async fn look(&self, job: JobId) -> Result<v1::JobView, Failure> {
        let (view, _) = user::view(&self.handle, job).await?;
        Ok(service::job_view(&view))
    }

    /// Waits for the job to end, or for a reason to stop before.
    async fn work(&self, job: JobId, workers: &mut Workers, signals: &mut Signals) -> Result<End, Failure> {
        let mut progress = Progress::new(self.json);
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = signals.next() => return Ok(End::Interrupted),
                failure = workers.failed() => return Err(failure),
                drained = server::drained(&self.handle) => {
                    // Somebody drained this coordinator by its port, or storage failed.
                    drained?;
                    return Ok(End::Interrupted);
                }
                _ = ticks.tick() => {}
            }
            let view = self.look(job).await?;
            if view.state() != v1::JobState::Running {
                return Ok(End::Job);
            }
            progress.show(&view)?;
        }
    }

    /// Stops the workers and takes in what they have.
    async fn wind_up(&self, workers: &mut Workers) {
        // Workers that wait for a task learn that there is none. A coordinator whose storage failed cannot say so.
        let _ = user::drain(&self.handle).await;
        workers.stop(WORKERS_GRACE).await;
        // Leases of workers that died do not come back: their tasks are open again in the next run. A failure of storage is
        // told by whoever stops the coordinator next.
        let _ = tokio::time::timeout(DRAIN_GRACE, server::drained(&self.handle)).await;
    }

    /// Prints how the job ended.
    fn report(&self, view: &v1::JobView) -> Result<Exit, Failure> {
        let exit =
            watch::finish(view, self.json.then(|| Job::new("summary", view).with_data(&self.directory)))?;
        if let (true, false, Some(statistics)) = (self.levels, self.json, &view.statistics) {
            output::print(&output::level_table(&statistics.levels))?;
        }
        Ok(exit)
    }

    /// Prints how an interrupted job stands.
    fn interrupted(&self, view: &v1::JobView) -> Result<Exit, Failure> {
        if view.state() != v1::JobState::Running {
            // The last result came in while the workers were stopping.
            return self.report(view);
        }
        if self.json {
            output::print_json(&Job::new("summary", view).with_data(&self.directory).interrupted())?;
        }
        output::complain(&format!(
            "stopped, all is in {}: the same command resumes",
            self.directory.display()
        ));
        Ok(Exit::Interrupted)
    }
}
