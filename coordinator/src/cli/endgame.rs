//! `grundy endgame`: building and verifying endgame databases ahead of a run, or after one.

use super::config::{ConfigFile, EndgameArgs, MemoryArgs};
use super::memory;
use super::output;
use super::problem::{self, Flags, Game};
use super::signals;
use crate::exit::{Exit, Failure};
use bytesize::ByteSize;
use grundy_games::problem::Problem;
use grundy_search::cram::tables::{StripTables, extent, sizes};
use grundy_tables::endgame::build::Origin;
use grundy_tables::endgame::cram::Extent;
use grundy_tables::endgame::{Condition, EndgameError, Verified, verify};
use grundy_tables::{EndgameMemory, EndgameTables};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Memory for classes and small tables while databases are built.
const PRIVATE_BYTES: usize = 64 << 20;

/// The least that `--memory` may be: less than any table that gets a file.
const MEMORY_MIN: u64 = 1 << 20;

/// Build or verify endgame databases
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Build the databases that a board of this size uses, where they are not there yet
    ///
    /// --memory is what the databases may take together: the --endgame-memory of the runs that will use them. Small tables get no
    /// file: they are built in memory when they are needed.
    Build(BuildArgs),
    /// Check every byte of all databases, and many entries of each against the rules; exit code 5 if any is damaged
    Verify(VerifyArgs),
}

#[derive(clap::Args)]
struct BuildArgs {
    /// The game; only cram has databases
    game: Game,
    /// A position of the board's size: 3x24, or a picture
    position: String,
    #[command(flatten)]
    endgame: EndgameArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print JSON, one object a line: each database, then a summary
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct VerifyArgs {
    #[command(flatten)]
    endgame: EndgameArgs,
    /// Print JSON, one object a line: each database, then a summary
    #[arg(long)]
    json: bool,
}

/// A database as a JSON object.
#[derive(Serialize)]
struct Line<'a> {
    message_type: &'static str,
    file: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<usize>,
    bytes: u64,
    seconds: f64,
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

#[derive(Serialize)]
struct Summary<'a> {
    message_type: &'static str,
    directory: &'a Path,
    databases: usize,
    damaged: usize,
}

impl<'a> Line<'a> {
    fn new(file: &'a Path, extent: Option<Extent>, bytes: u64, seconds: f64, status: &'static str) -> Self {
        let (rows, columns) = (extent.map(|extent| extent.rows), extent.map(|extent| extent.columns()));
        Self { message_type: "database", file, rows, columns, bytes, seconds, status, errors: Vec::new() }
    }

    fn print(&self, json: bool) -> std::io::Result<()> {
        if json {
            return output::print_json(self);
        }
        let number =
            |number: Option<usize>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        output::print(&format!(
            "{}: {} rows, {} columns, {}, {}, {:.1} s",
            self.file.display(),
            number(self.rows.map(|rows| rows as usize)),
            number(self.columns),
            ByteSize(self.bytes),
            self.status,
            self.seconds
        ))
    }
}

pub(super) fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    match args.command {
        Command::Build(args) => build(args, file),
        Command::Verify(args) => verify_all(&args, file),
    }
}

fn directory(args: &EndgameArgs, file: &ConfigFile) -> Result<PathBuf, Failure> {
    args.directory(file).ok_or_else(|| {
        Failure::message(
            Exit::Usage,
            "no directory of endgame databases: give --endgame DIR or GRUNDY_ENDGAME",
        )
    })
}

fn build(args: BuildArgs, file: &ConfigFile) -> Result<Exit, Failure> {
    let directory = directory(&args.endgame, file)?;
    let fields = problem::fields(args.game, &args.position, &Flags::default()).map_err(Failure::usage)?;
    let Problem::Cram(board) = Problem::from_fields(&fields).map_err(Failure::usage)? else {
        let words = format!("{} has no endgame databases: only cram has", args.game.name());
        return Err(Failure::message(Exit::Usage, words));
    };
    let total = memory::check(args.memory.bytes(file, memory::half_of_machine))
        .map_err(|words| Failure::message(Exit::Usage, words))?;
    if total < MEMORY_MIN {
        let words = format!(
            "memory of {} is too little for endgame databases: expected at least {}",
            ByteSize(total),
            ByteSize(MEMORY_MIN)
        );
        return Err(Failure::message(Exit::Usage, words));
    }
    let mapped = usize::try_from(total).unwrap_or(usize::MAX);
    let memory = EndgameMemory { mapped, private: PRIVATE_BYTES.min(mapped / 2) };
    let stop = signals::stop_flag()?;
    let tables =
        EndgameTables::new(directory.clone(), memory).with_go_on(move || !stop.load(Ordering::Relaxed));
    // As the engine takes them: of the components.
    let (rows, columns) = extent(&board.position.sum());
    let mut databases = 0;
    for size in sizes(rows, columns, tables.bytes()) {
        let begun = Instant::now();
        let Some(database) = tables.database(size)? else { continue };
        databases += 1;
        let status = match database.origin {
            Origin::Found => "found",
            Origin::Built => "built",
        };
        let (bytes, seconds) = (database.table.pairs.bytes() as u64, begun.elapsed().as_secs_f64());
        Line::new(&database.path, Some(database.extent), bytes, seconds, status).print(args.json)?;
    }
    if args.json {
        let summary = Summary { message_type: "summary", directory: &directory, databases, damaged: 0 };
        output::print_json(&summary)?;
    } else if databases == 0 {
        output::complain("no database is needed: the tables of this board are built in memory");
    }
    Ok(Exit::Done)
}

fn verify_all(args: &VerifyArgs, file: &ConfigFile) -> Result<Exit, Failure> {
    let directory = directory(&args.endgame, file)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut databases, mut damaged, mut unreadable) = (0, 0, 0);
    let mut printed = Ok(());
    verify(&directory, threads, |verified| {
        databases += 1;
        match verified.condition {
            Condition::Damaged(_) => damaged += 1,
            Condition::Unreadable(_) => unreadable += 1,
            Condition::Intact | Condition::Outdated(_) => {}
        }
        let told = tell(&verified, args.json);
        if printed.is_ok() {
            printed = told;
        }
    })?;
    printed?;
    if args.json {
        output::print_json(&Summary { message_type: "summary", directory: &directory, databases, damaged })?;
    } else if databases == 0 {
        output::complain(&format!("no endgame databases in {}", directory.display()));
    }
    Ok(match (damaged, unreadable) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Failed,
        _ => Exit::Corruption,
    })
}

/// Prints a verified file, and on stderr what is wrong with it.
fn tell(verified: &Verified, json: bool) -> std::io::Result<()> {
    let (status, errors): (_, &[EndgameError]) = match &verified.condition {
        Condition::Intact => ("intact", &[]),
        Condition::Outdated(error) => ("outdated", std::slice::from_ref(error)),
        Condition::Damaged(errors) => ("damaged", errors),
        Condition::Unreadable(error) => ("unreadable", std::slice::from_ref(error)),
    };
    // One that is only outdated does no harm: it is built again when it is needed.
    let word = if matches!(verified.condition, Condition::Outdated(_)) { "note" } else { "error" };
    errors.iter().for_each(|error| output::complain(&format!("{word}: {error}")));
    let seconds = verified.took.as_secs_f64();
    let mut line = Line::new(&verified.path, verified.extent, verified.bytes, seconds, status);
    line.errors = errors.iter().map(ToString::to_string).collect();
    line.print(json)
}
