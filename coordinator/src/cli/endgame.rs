//! `grundy endgame`: building and verifying endgame databases ahead of a run, or after one.

use super::config::{ConfigFile, EndgameArgs, EndgameSeedsArgs, MemoryArgs};
use super::memory;
use super::output;
use super::problem::{self, Flags, Game};
use super::signals;
use crate::exit::{Exit, Failure};
use bytesize::ByteSize;
use grundy_games::problem::Problem;
use grundy_games::{cram, kalah};
use grundy_search::cram::tables::{StripTables, extent, sizes};
use grundy_search::kalah::KalahEngine;
use grundy_tables::endgame::build::Origin;
use grundy_tables::endgame::kalah::{Layer, LayerFile};
use grundy_tables::endgame::{Condition, Contents, EndgameError, Verified, verify};
use grundy_tables::{EndgameMemory, EndgameTables};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Memory for what is needed besides while databases are built, such as classes and small tables: an eighth of theirs, within these bounds.
const PRIVATE_BYTES: std::ops::RangeInclusive<usize> = 64 << 20..=512 << 20;

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
    /// The game: cram or kalah
    game: Game,
    /// A position of the board's size: 3x24 or 6,4, or a picture
    position: String,
    /// Kalah: the rules variant, standard or empty-capture
    #[arg(long)]
    rules: Option<String>,
    #[command(flatten)]
    endgame_seeds: EndgameSeedsArgs,
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
    #[serde(flatten)]
    size: Option<Size>,
    bytes: u64,
    seconds: f64,
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

/// What a database holds.
#[derive(Serialize)]
#[serde(untagged)]
enum Size {
    Cram { rows: u32, columns: usize },
    Kalah { houses: u8, rules: String, seeds: u8 },
}

impl From<Contents> for Size {
    fn from(contents: Contents) -> Self {
        match contents {
            Contents::Cram(extent) => Self::Cram { rows: extent.rows, columns: extent.columns() },
            Contents::Kalah(Layer { houses, rules, seeds }) => {
                Self::Kalah { houses, rules: rules.to_string(), seeds }
            }
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cram { rows, columns } => write!(f, "{rows} rows, {columns} columns"),
            Self::Kalah { houses, rules, seeds } => write!(f, "{houses} houses, {rules}, {seeds} seeds"),
        }
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    message_type: &'static str,
    directory: &'a Path,
    databases: usize,
    damaged: usize,
}

impl<'a> Line<'a> {
    fn new(
        file: &'a Path,
        contents: Option<Contents>,
        bytes: u64,
        took: Duration,
        status: &'static str,
    ) -> Self {
        let (size, seconds) = (contents.map(Size::from), took.as_secs_f64());
        Self { message_type: "database", file, size, bytes, seconds, status, errors: Vec::new() }
    }

    fn print(&self, json: bool) -> std::io::Result<()> {
        if json {
            return output::print_json(self);
        }
        let (file, bytes) = (self.file.display(), ByteSize(self.bytes));
        let size = self.size.as_ref().map_or_else(|| "unknown".to_owned(), Size::to_string);
        output::print(&format!("{file}: {size}, {bytes}, {}, {:.1} s", self.status, self.seconds))
    }
}

fn status(origin: Origin) -> &'static str {
    match origin {
        Origin::Found => "found",
        Origin::Built => "built",
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
    if !matches!(args.game, Game::Cram | Game::Kalah) {
        let words = format!("{} has no endgame databases: cram and kalah have", args.game.name());
        return Err(Failure::message(Exit::Usage, words));
    }
    let flags = Flags { rules: args.rules, ..Flags::default() };
    let fields = problem::fields(args.game, &args.position, &flags).map_err(Failure::usage)?;
    let problem = Problem::from_fields(&fields).map_err(Failure::usage)?;
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
    let private = (mapped / 8).clamp(*PRIVATE_BYTES.start(), *PRIVATE_BYTES.end()).min(mapped / 2);
    let memory = EndgameMemory { mapped, private };
    let stop = signals::stop_flag()?;
    let tables = EndgameTables::new(directory.clone(), memory)
        .with_kalah_seeds(args.endgame_seeds.seeds(file))
        .with_go_on(move || !stop.load(Ordering::Relaxed));
    let databases = match problem {
        Problem::Cram(board) => build_cram(&board, &tables, args.json)?,
        Problem::Kalah(board) => build_kalah(&board, &tables, args.json)?,
        Problem::Konane(_) | Problem::Peg(_) => 0,
    };
    if args.json {
        let summary = Summary { message_type: "summary", directory: &directory, databases, damaged: 0 };
        output::print_json(&summary)?;
    } else if databases == 0 {
        output::complain("no database is needed: the tables of this board are built in memory");
    }
    Ok(Exit::Done)
}

/// Builds the pair tables of a board; how many there are.
fn build_cram(board: &cram::Problem, tables: &EndgameTables, json: bool) -> Result<usize, Failure> {
    // As the engine takes them: of the components.
    let (rows, columns) = extent(&board.position.sum());
    let mut databases = 0;
    for size in sizes(rows, columns, tables.bytes()) {
        let begun = Instant::now();
        let Some(database) = tables.database(size)? else { continue };
        databases += 1;
        let contents = Some(Contents::Cram(database.extent));
        let bytes = database.table.pairs.bytes() as u64;
        Line::new(&database.path, contents, bytes, begun.elapsed(), status(database.origin)).print(json)?;
    }
    Ok(databases)
}

/// Builds the layers of a board; how many have a file.
fn build_kalah(board: &kalah::Problem, tables: &EndgameTables, json: bool) -> Result<usize, Failure> {
    let (mut databases, mut printed) = (0, Ok(()));
    tables.kalah_databases(KalahEngine::wish(board), |LayerFile { layer, file, origin, took }| {
        databases += 1;
        let bytes = file.payload().len() as u64;
        let line = Line::new(file.path(), Some(Contents::Kalah(layer)), bytes, took, status(origin));
        if printed.is_ok() {
            printed = line.print(json);
        }
    })?;
    printed?;
    Ok(databases)
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
            Condition::Intact | Condition::Outdated(_) | Condition::Unchecked(_) => {}
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
        Condition::Unchecked(error) => ("unchecked", std::slice::from_ref(error)),
        Condition::Damaged(errors) => ("damaged", errors),
        Condition::Unreadable(error) => ("unreadable", std::slice::from_ref(error)),
    };
    // One that is only outdated does no harm: it is built again when it is needed. Nor is there anything wrong with one of which not
    // all could be checked.
    let harmless = matches!(verified.condition, Condition::Outdated(_) | Condition::Unchecked(_));
    let word = if harmless { "note" } else { "error" };
    errors.iter().for_each(|error| output::complain(&format!("{word}: {error}")));
    let mut line = Line::new(&verified.path, verified.contents, verified.bytes, verified.took, status);
    line.errors = errors.iter().map(ToString::to_string).collect();
    line.print(json)
}
