//! `grundy eval`: one position a line in, one answer a line out, in this process.

use super::config::{ConfigFile, EndgameArgs, EndgameSeedsArgs, MemoryArgs};
use super::output;
use super::problem::{self, Flags, Game};
use crate::answer::OneWord;
use crate::exit::{Exit, Failure};
use bytesize::ByteSize;
use grundy_games::plan::Answer;
use grundy_games::problem::{Approach, Problem};
use grundy_proto::limits::POSITION_BYTES_MAX;
use grundy_search::engine::{Engine, EngineTables, Limits, engine_for};
use grundy_search::evaluate::evaluate;
use grundy_search::peg;
use grundy_search::table::{Namespace, Table};
use grundy_tables::{EndgameMemory, EndgameTables, RamTable, split_memory, worker_memory_min};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// The table's size unless told otherwise: positions that are answered in one go need no more.
const TABLE_BYTES_DEFAULT: u64 = 256 << 20;

/// The searching thread's stack: the search recurses once a move, with moves and children of a position in each frame.
const STACK_BYTES: usize = 256 << 20;

/// Engines kept at a time. One serves all positions with the same rules; Konane has one for each board.
const ENGINES_MAX: usize = 64;

/// Answer positions from stdin, one a line, each as POSITION TAB ANSWER
#[derive(clap::Args)]
pub(super) struct Args {
    /// The game
    game: Game,
    /// What to find out [default: nimber (cram), outcome (konane), gain (kalah), finish at
    /// the start hole of a named board, finish any of a picture (peg)]
    #[arg(long)]
    question: Option<String>,
    /// Kalah: the rules variant, standard or empty-capture. Peg: triangular for the triangular lattice
    #[arg(long)]
    rules: Option<String>,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    endgame: EndgameArgs,
    #[command(flatten)]
    endgame_seeds: EndgameSeedsArgs,
}

pub(super) fn run(args: Args, file: &ConfigFile) -> Result<Exit, Failure> {
    let bytes = usize::try_from(args.memory.bytes(file, || TABLE_BYTES_DEFAULT)).unwrap_or(usize::MAX);
    let endgame = args.endgame.directory(file).filter(|_| matches!(args.game, Game::Cram | Game::Kalah));
    let endgame_seeds = args.endgame_seeds.seeds(file);
    let default = match args.game {
        Game::Cram | Game::Peg => None,
        Game::Kalah => Some("gain".to_owned()),
        Game::Konane => Some("outcome".to_owned()),
    };
    let flags = Flags { question: args.question.or(default), rules: args.rules, ..Flags::default() };
    flags.check(args.game).map_err(Failure::usage)?;
    let work = move || {
        let evaluator = Evaluator::new(args.game, flags, bytes, endgame, endgame_seeds)?;
        answer_lines(evaluator, io::stdin().lock(), io::stdout().lock(), output::complain)
    };
    let searching =
        std::thread::Builder::new().name("search".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
    searching.join().map_err(|_| Failure::message(Exit::Failed, "the search panicked"))?
}

/// Answers are held back for at most so long while others are worked on: many small ones are written together.
const FLUSH_AFTER: Duration = Duration::from_millis(100);

/// Answers lines until there are no more, or nobody reads the answers. A bad line is complained about and answered by nothing.
fn answer_lines(
    mut evaluator: Evaluator,
    input: impl Read,
    output: impl Write,
    mut complain: impl FnMut(&str),
) -> Result<Exit, Failure> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut output = BufWriter::with_capacity(1 << 16, output);
    let mut line = Vec::new();
    let mut exit = Exit::Done;
    let mut flushed = Instant::now();
    for number in 1u64.. {
        // The next read may wait for somebody who waits for these answers, and the next answer may take long.
        if input.buffer().is_empty() || flushed.elapsed() >= FLUSH_AFTER {
            flushed = Instant::now();
            match output.flush() {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(exit),
                done => done?,
            }
        }
        if !read_line(&mut input, &mut line)? {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let position = text.trim_end_matches(['\n', '\r']);
        let written = match evaluator.answer(position) {
            Ok(answer) => writeln!(output, "{position}\t{}", OneWord(&answer)),
            Err(reason) => {
                exit = Exit::Failed;
                complain(&format!("line {number}: {reason}"));
                writeln!(output, "{position}\t")
            }
        };
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(exit),
            written => written?,
        }
    }
    match output.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(exit),
    }
}

/// Reads a line with its end into `line`; false when there is none. Of a line that is too long for any position the rest is passed
/// over, so that no input takes more memory than a line may have.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let most = POSITION_BYTES_MAX as u64 + 2;
    if input.by_ref().take(most).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

/// Answers positions of one game, with one table for all.
struct Evaluator {
    game: Game,
    flags: Flags,
    table_bytes: usize,
    tables: Arc<dyn EngineTables>,
    table: Arc<RamTable>,
    /// The numbers that namespaces have in the table.
    namespaces: HashMap<String, Namespace>,
    engines: HashMap<String, Box<dyn Engine>>,
}

impl Evaluator {
    /// With a directory of endgame databases, these take their share of the bytes. There is no disk, so its share is the table's.
    fn new(
        game: Game,
        flags: Flags,
        bytes: usize,
        endgame: Option<PathBuf>,
        endgame_seeds: Option<u8>,
    ) -> Result<Self, Failure> {
        let least = worker_memory_min(1);
        if bytes < least {
            let [given, least] = [bytes, least].map(|bytes| ByteSize(bytes as u64));
            let words = format!("memory of {given} is too little: expected at least {least}");
            return Err(Failure::message(Exit::Usage, words));
        }
        // Kalah's engine keeps what it finds in tables of its own.
        let engines = (game == Game::Kalah).then_some(usize::MAX);
        let memory = split_memory(bytes, 1, endgame.is_none().then_some(0), engines);
        let table_bytes = memory.ram_table + memory.storage.cache + memory.storage.write_buffers;
        let memory = EndgameMemory { mapped: memory.endgame, private: memory.engines };
        let tables = EndgameTables::new(endgame.unwrap_or_default(), memory);
        let tables: Arc<dyn EngineTables> = Arc::new(tables.with_kalah_seeds(endgame_seeds));
        let table = Arc::new(RamTable::with_bytes(table_bytes)?);
        Ok(Self {
            game,
            flags,
            table_bytes,
            tables,
            table,
            namespaces: HashMap::new(),
            engines: HashMap::new(),
        })
    }

    fn answer(&mut self, position: &str) -> Result<Answer, String> {
        if position.len() > POSITION_BYTES_MAX {
            return Err(format!(
                "{} bytes are no position: at most {POSITION_BYTES_MAX} are allowed",
                position.len()
            ));
        }
        let fields = problem::fields(self.game, position, &self.flags).map_err(|error| error.to_string())?;
        let problem = Problem::from_fields(&fields).map_err(|error| error.to_string())?;
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let limits = Limits::endless(&stop, &progress);
        match problem.approach() {
            Approach::Claims(plan) => {
                let name = plan.rules().namespace();
                let engine = self.engine(&problem, &name)?;
                evaluate(&*plan, engine, &limits).map_err(|error| error.to_string())
            }
            Approach::Counting(problem) => {
                let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
                let count = peg::count(problem, threads, &limits).map_err(|error| error.to_string())?;
                Ok(Answer::Count { count: Some(count), finishes: Vec::new() })
            }
        }
    }

    /// The engine for a problem, kept for the next one of its kind.
    fn engine(&mut self, problem: &Problem, name: &str) -> Result<&mut dyn Engine, String> {
        // The tables of the others may be all that there is memory for.
        self.engines.iter_mut().filter(|(other, _)| *other != name).for_each(|(_, engine)| engine.rest());
        if !self.engines.contains_key(name) {
            let namespace = self.namespace(name)?;
            let table: Arc<dyn Table> = Arc::clone(&self.table) as Arc<dyn Table>;
            let engine =
                engine_for(problem, namespace, table, &self.tables).ok_or("no engine for this problem")?;
            if self.engines.len() >= ENGINES_MAX {
                self.engines.clear();
            }
            self.engines.insert(name.to_owned(), engine);
        }
        match self.engines.get_mut(name) {
            Some(engine) => Ok(&mut **engine),
            None => Err("no engine for this problem".to_owned()),
        }
    }

    /// The namespace's number. When all are used, everything starts anew: a table may forget.
    fn namespace(&mut self, name: &str) -> Result<Namespace, String> {
        if let Some(&namespace) = self.namespaces.get(name) {
            return Ok(namespace);
        }
        let number = match u16::try_from(self.namespaces.len()) {
            Ok(number) => number,
            Err(_) => {
                self.table =
                    Arc::new(RamTable::with_bytes(self.table_bytes).map_err(|error| error.to_string())?);
                self.engines.clear();
                self.namespaces.clear();
                0
            }
        };
        self.namespaces.insert(name.to_owned(), Namespace(number));
        Ok(Namespace(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(game: Game, question: Option<&str>, input: &str) -> (Exit, String, Vec<String>) {
        let flags = Flags { question: question.map(str::to_owned), ..Flags::default() };
        let evaluator = Evaluator::new(game, flags, 100 << 20, None, None).expect("100 MiB are there");
        let (mut output, mut complaints) = (Vec::new(), Vec::new());
        let exit =
            answer_lines(evaluator, input.as_bytes(), &mut output, |line| complaints.push(line.to_owned()));
        (exit.expect("memory does not fail"), String::from_utf8_lossy(&output).into_owned(), complaints)
    }

    #[test]
    fn each_position_is_answered_on_its_line() {
        let (exit, output, complaints) = eval(Game::Cram, None, "...\n.....\r\n#|.|#\n2x2");
        assert_eq!((exit, output.as_str()), (Exit::Done, "...\t1\n.....\t0\n#|.|#\t0\n2x2\t0\n"));
        assert_eq!(complaints, Vec::<String>::new());
        let (_, output, _) = eval(Game::Cram, Some("outcome"), "...\n.....\n");
        assert_eq!(output, "...\twin\n.....\tloss\n");
        let (_, output, _) = eval(Game::Konane, Some("outcome"), "xo. x\nxo. o\nx.. x\n");
        assert_eq!(output, "xo. x\twin\nxo. o\tloss\nx.. x\tloss\n");
        let (_, output, _) = eval(Game::Peg, None, "oo.\noo.oo\n");
        assert_eq!(output, "oo.\t1\noo.oo\t0\n");
        let (_, output, _) = eval(Game::Kalah, Some("gain"), "0,1,0/0,2,0 S\n");
        assert_eq!(output, "0,1,0/0,2,0 S\t-1\n");
    }

    #[test]
    fn a_bad_line_is_named_and_answered_by_nothing() {
        let (exit, output, complaints) = eval(Game::Cram, None, "...\n.x.\n\n.....\n");
        assert_eq!((exit, output.as_str()), (Exit::Failed, "...\t1\n.x.\t\n\t\n.....\t0\n"));
        assert_eq!(complaints.len(), 2);
        assert!(
            complaints[0].starts_with("line 2: cram: ") && complaints[1].starts_with("line 3: "),
            "{complaints:?}"
        );
    }

    #[test]
    fn a_reader_that_has_enough_is_no_error() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let evaluator =
            Evaluator::new(Game::Cram, Flags::default(), 100 << 20, None, None).expect("100 MiB are there");
        let exit = answer_lines(evaluator, "...\n".as_bytes(), Closed, |_| {});
        assert_eq!(exit.expect("a closed pipe is no error"), Exit::Done);
    }
}
