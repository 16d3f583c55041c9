//! `grundy simulate`: how a job would scale, on a virtual clock.

use super::config::{ConfigFile, EndgameArgs, MemoryArgs};
use super::problem::{Game, ProblemArgs};
use super::{memory, output, signals};
use crate::core::Options;
use crate::exit::{Exit, Failure};
use crate::simulate::{Measurement, Setting, SimulationError, plot, sequential, simulate, tables};
use grundy_games::problem::{Fields, Problem};
use grundy_search::engine::EngineTables;
use grundy_tables::{EndgameMemory, EndgameTables};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The simulation's stack: engines recurse once a move.
const STACK_BYTES: usize = 256 << 20;

/// The most workers: the core keeps track of no more.
const WORKERS_MAX: i64 = 4096;

/// More than any processor's.
const NODES_PER_SECOND_MAX: u64 = 1_000_000_000_000;

/// Two seconds: leases, which a heartbeat each second renews for ten, must not lapse on the way.
const LATENCY_US_MAX: u64 = 2_000_000;

/// Fewer, and the search of a heartbeat's length would come to nothing.
const NODES_PER_SECOND_MIN: u64 = 1_000;

/// Measure how a job would scale: the real scheduler and the real engines with virtual workers, on a virtual clock
///
/// Every node is searched, each number of workers anew, so this takes as long as solving the job as many times. The same seed gives the
/// same numbers on every machine, with the same --memory and the same endgame databases.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,
    /// Numbers of virtual workers, joined by commas
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,4,8,16",
          value_parser = clap::value_parser!(u32).range(1..=WORKERS_MAX))]
    workers: Vec<u32>,
    /// What is random is drawn from this: when each worker's heartbeats begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Nodes that a virtual worker searches in a virtual second [default: about what one core does: 10000 (cram), 1000000 (kalah, peg),
    /// 500000 (konane)]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(NODES_PER_SECOND_MIN..=NODES_PER_SECOND_MAX))]
    nodes_per_second: Option<u64>,
    /// How long a message is under way, in virtual microseconds
    #[arg(long, value_name = "US", default_value_t = 500, value_parser = clap::value_parser!(u64).range(..=LATENCY_US_MAX))]
    latency_us: u64,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    endgame: EndgameArgs,
    /// Write a picture of speed-up and efficiency to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON, one object a line: each measurement, then a summary
    #[arg(long)]
    json: bool,
}

/// One number of workers, as a JSON object.
#[derive(Serialize)]
struct Line<'a> {
    message_type: &'static str,
    #[serde(flatten)]
    measured: &'a Measurement,
    /// Against the first number of workers that was measured, as if that one were perfect.
    speedup_of_first: f64,
    /// Against the plain engine.
    speedup: f64,
    efficiency: f64,
    overhead: f64,
    idle: f64,
}

/// What all measurements have in common, as a JSON object.
#[derive(Serialize)]
struct Summary<'a> {
    message_type: &'static str,
    game: &'a str,
    position: &'a str,
    rules: &'a str,
    question: &'a str,
    sequential_nodes: u64,
    nodes_per_second: NonZeroU64,
    latency_us: u64,
    seed: u64,
}

pub(super) fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("simulation".to_owned()).stack_size(STACK_BYTES);
        let simulating = builder.spawn_scoped(scope, || simulate_all(args, file))?;
        simulating.join().map_err(|_| Failure::message(Exit::Failed, "the simulation panicked"))?
    })
}

fn simulate_all(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let fields = args.problem.fields().map_err(Failure::usage)?;
    Problem::from_fields(&fields).map_err(Failure::usage)?;
    let game = args.problem.game;
    let total = memory::check(args.memory.bytes(file, memory::half_of_machine))
        .map_err(|words| Failure::message(Exit::Usage, words))?;
    let quarter = usize::try_from(total / 4).unwrap_or(usize::MAX);
    let directory = args.endgame.directory(file);
    let databases = EndgameMemory { mapped: if directory.is_some() { quarter } else { 0 }, private: quarter };
    let databases: Arc<dyn EngineTables> =
        Arc::new(EndgameTables::new(directory.unwrap_or_default(), databases));
    let for_workers =
        |workers| tables::worker_tables(&databases, quarter.saturating_mul(2), workers, game == Game::Kalah);
    let nodes_per_second = args.nodes_per_second.and_then(NonZeroU64::new).unwrap_or(usual_speed(game));
    // Now, and not after hours.
    let picture = args.svg.map(Picture::create).transpose()?;
    let stop = signals::stop_flag()?;
    let setting = Setting {
        fields,
        nodes_per_second,
        latency_us: args.latency_us,
        seed: args.seed,
        options: Options::default(),
        tables: &for_workers,
        stop: &stop,
    };
    let Fields { game: name, position, rules, question } = &setting.fields;
    let sequential_nodes = match sequential(&setting) {
        Err(error) => return failed(error),
        Ok(nodes) => nodes,
    };
    if !args.json {
        output::print(&format!(
            "{name} {position}: {sequential_nodes} nodes by the plain engine; {nodes_per_second} nodes a second, {} us a message, seed {}\n{}",
            args.latency_us,
            args.seed,
            Row::heading()
        ))?;
    }
    let mut measured: Vec<Measurement> = Vec::new();
    for workers in args.workers.iter().filter_map(|workers| NonZeroU32::new(*workers)) {
        let now = match simulate(&setting, workers) {
            Err(error) => return failed(error),
            Ok(now) => now,
        };
        measured.push(now);
        let first = &measured[0];
        let speedup = now.speedup(sequential_nodes, nodes_per_second);
        let line = Line {
            message_type: "measurement",
            measured: &now,
            speedup_of_first: first.makespan_us.max(1) as f64 * f64::from(first.workers)
                / now.makespan_us.max(1) as f64,
            speedup,
            efficiency: speedup / f64::from(now.workers),
            overhead: now.overhead(sequential_nodes),
            idle: now.idle(),
        };
        if args.json {
            output::print_json(&line)?;
        } else {
            output::print(&Row::of(&line).to_string())?;
        }
    }
    if args.json {
        let summary = Summary {
            message_type: "summary",
            game: name,
            position,
            rules,
            question,
            sequential_nodes,
            nodes_per_second,
            latency_us: args.latency_us,
            seed: args.seed,
        };
        output::print_json(&summary)?;
    }
    if let Some(picture) = picture {
        let title = format!("{name} {}", args.problem.position);
        picture.draw(&title, &measured, sequential_nodes, nodes_per_second)?;
    }
    Ok(Exit::Done)
}

/// The file that the picture goes to.
struct Picture {
    path: PathBuf,
    file: File,
}

impl Picture {
    fn create(path: PathBuf) -> Result<Self, Failure> {
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(Self::refused(&path, &error)),
        }
    }

    fn draw(
        mut self,
        title: &str,
        measured: &[Measurement],
        sequential_nodes: u64,
        nodes_per_second: NonZeroU64,
    ) -> Result<(), Failure> {
        let picture = plot::svg(title, measured, sequential_nodes, nodes_per_second)
            .map_err(|words| Failure::message(Exit::Failed, words))?;
        self.file.write_all(picture.as_bytes()).map_err(|error| Self::refused(&self.path, &error))
    }

    fn refused(path: &Path, error: &io::Error) -> Failure {
        Failure::message(Exit::Failed, format!("cannot write {}: {error}", path.display()))
    }
}

fn failed(error: SimulationError) -> Result<Exit, Failure> {
    match error {
        SimulationError::Stopped => Ok(Exit::Interrupted),
        error => Err(Failure::new(Exit::Failed, error)),
    }
}

/// About what one core searches in a second.
fn usual_speed(game: Game) -> NonZeroU64 {
    let nodes = match game {
        Game::Cram => 10_000,
        Game::Konane => 500_000,
        Game::Kalah | Game::Peg => 1_000_000,
    };
    NonZeroU64::MIN.saturating_add(nodes - 1)
}

/// One row of the table.
struct Row([String; 13]);

impl Row {
    const WIDTHS: [usize; 13] = [7, 11, 9, 9, 6, 9, 6, 6, 9, 10, 10, 9, 11];

    fn heading() -> Self {
        let names = [
            "workers", "seconds", "speed-up", "of first", "effic.", "overhead", "lost", "idle", "leases",
            "messages", "KiB", "facts", "told",
        ];
        Self(names.map(str::to_owned))
    }

    fn of(line: &Line<'_>) -> Self {
        let m = line.measured;
        let percent = |part: f64| format!("{:.1}%", 100.0 * part);
        Self([
            m.workers.to_string(),
            format!("{:.2}", m.makespan_us as f64 / 1e6),
            format!("{:.2}", line.speedup),
            format!("{:.2}", line.speedup_of_first),
            format!("{:.3}", line.efficiency),
            percent(line.overhead),
            percent(m.nodes_lost as f64 / m.nodes.max(1) as f64),
            percent(line.idle),
            m.leases.to_string(),
            m.messages.to_string(),
            (m.bytes / 1024).to_string(),
            m.facts.to_string(),
            m.told.to_string(),
        ])
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (cell, width) in self.0.iter().zip(Self::WIDTHS) {
            write!(f, "{cell:>width$} ")?;
        }
        Ok(())
    }
}
