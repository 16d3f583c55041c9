//! `grundy count`: peg solitaire's solutions, counted in this process.

use super::config::{ConfigFile, MemoryArgs};
use super::output::Level;
use super::problem::{Game, ProblemArgs};
use super::{memory, output, signals};
use crate::answer::{self, InWords};
use crate::exit::{Exit, Failure};
use bytesize::ByteSize;
use grundy_games::peg::{Finish, Problem as PegProblem};
use grundy_games::plan::{Answer, FinishCount};
use grundy_games::problem::{Approach, Fields, Problem};
use grundy_search::engine::Limits;
use grundy_search::peg::{CountError, Counted, Counter, Means, count_within};
use grundy_tables::FileSpill;
use serde::Serialize;
use serde_json::Value;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// What the process takes besides levels and their tables.
const PROCESS_BYTES: u64 = 8 << 20;

/// Of what is left, levels and tables are told to take this part: pages that were freed go back to the system late.
const USABLE: (u64, u64) = (5, 8);

/// The least memory that makes sense: buffers of a thread, and tables of a level's smallest share.
const MEMORY_MIN: u64 = 48 << 20;

/// Levels that are made sooner than this after the last one told are not told of.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Count peg solitaire's solutions in this process, by levels that spill to a disk if they must
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Threads [default: the machine's cores]
    #[arg(long, env = "GRUNDY_THREADS", value_name = "N")]
    threads: Option<NonZeroU32>,
    /// Directory for levels that do not fit into the memory; what is put there has no name and is gone when the count ends
    /// [default: the system's directory for temporary files]
    #[arg(long, env = "GRUNDY_SPILL", value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Print how many boards each level has: after how many jumps, boards, and boards up to symmetry
    #[arg(long)]
    levels: bool,
    /// Go through every level down to the last peg, even where half of them are enough
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer as JSON.
#[derive(Serialize)]
struct Summary<'a> {
    message_type: &'static str,
    game: &'a str,
    position: &'a str,
    rules: &'a str,
    question: &'a str,
    answer: Value,
    levels: Vec<Level>,
}

pub(super) fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    if args.problem.game != Game::Peg {
        let words = format!("count is for peg; for {} use solve", args.problem.game.name());
        return Err(Failure::message(Exit::Usage, words));
    }
    let fields = args.problem.fields().map_err(Failure::usage)?;
    let problem = Problem::from_fields(&fields).map_err(Failure::usage)?;
    let Approach::Counting(problem) = problem.approach() else {
        return Err(Failure::message(Exit::Usage, "this is not counted"));
    };
    let total = memory::check(args.memory.bytes(file, memory::half_of_machine))
        .map_err(|words| Failure::message(Exit::Usage, words))?;
    if total < MEMORY_MIN {
        let [given, least] = [total, MEMORY_MIN].map(ByteSize);
        let words = format!("memory of {given} is too little: expected at least {least}");
        return Err(Failure::message(Exit::Usage, words));
    }
    let threads = args.threads.or(file.threads).map_or_else(
        || std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        |threads| threads.get() as usize,
    );
    let counter = if args.full { Counter::full(problem) } else { Counter::new(problem) };
    let spill = FileSpill::new(args.spill.unwrap_or_else(std::env::temp_dir));
    let (usable, all) = USABLE;
    let told = Mutex::new(Instant::now());
    let made = |level: u32, boards: u64| {
        let Ok(mut told) = told.lock() else { return };
        if told.elapsed() >= TELL_AFTER {
            *told = Instant::now();
            tracing::info!(level, boards, spilled = spill.bytes(), "level made");
        }
    };
    let means = Means {
        threads,
        memory: usize::try_from((total - PROCESS_BYTES) / all * usable).unwrap_or(usize::MAX),
        spill: Some(&spill),
        made: &made,
    };
    let (stop, progress) = (signals::stop_flag()?, AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    let counted = match count_within(&counter, means, &limits) {
        Ok(counted) => counted,
        Err(CountError::Stopped) => return Ok(Exit::Interrupted),
        Err(error) => return Err(Failure::new(Exit::Failed, error)),
    };
    let answer = answer_of(problem, &counted);
    if args.json {
        let levels = counted.levels.iter().map(Level::from).collect();
        let answer = answer::value(&answer);
        let Fields { game, rules, position, question } = &fields;
        output::print_json(&Summary {
            message_type: "summary",
            game,
            position,
            rules,
            question,
            answer,
            levels,
        })?;
        return Ok(Exit::Done);
    }
    let mut text = InWords(&answer).to_string();
    if args.levels {
        text.push('\n');
        if counted.levels.iter().all(|level| level.boards == 0) {
            text.push_str("no level was made: the position class rules the finish out");
        } else {
            text.push_str(&output::level_table(&counted.levels));
        }
    }
    output::print(&text)?;
    Ok(Exit::Done)
}

/// The count, by finish where more than one was asked for.
fn answer_of(problem: &PegProblem, counted: &Counted) -> Answer {
    let finishes = match problem.finish() {
        Finish::Hole(_) => Vec::new(),
        Finish::Any => {
            let name = |hole| problem.geometry().name(hole);
            counted.finishes.iter().map(|&(hole, count)| FinishCount { finish: name(hole), count }).collect()
        }
    };
    Answer::Count { count: Some(counted.total), finishes }
}
