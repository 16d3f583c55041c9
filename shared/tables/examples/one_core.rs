//! Solves boards of Cram on one core, without a coordinator, over tables that are built beforehand, and says what each costs.
//!
//! ```text
//! cargo build --release --workspace --examples
//! target/release/examples/one_core 6GiB /tmp/endgame 3x16 3x19
//! board  nimber  expansions  CPU seconds of the tables  CPU seconds of the search
//! ```
//!
//! A table that is already in the directory costs nothing to build.

use grundy_games::cram::{CramPlan, Problem};
use grundy_games::plan::{Answer, Plan};
use grundy_search::cram::CramEngine;
use grundy_search::cram::tables::{StripTable, StripTables, extent, sizes};
use grundy_search::engine::Limits;
use grundy_search::evaluate::evaluate;
use grundy_search::table::{Namespace, Table};
use grundy_tables::{EndgameMemory, EndgameTables, RamTable};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// For the table of couples: enough for all that is worth measuring on one core.
const TABLE_BYTES: usize = 2 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "expected: BYTES DIRECTORY BOARD...";
    let bytes: bytesize::ByteSize = arguments.next().ok_or(usage)?.parse()?;
    let directory = PathBuf::from(arguments.next().ok_or(usage)?);
    let memory = EndgameMemory { mapped: usize::try_from(bytes.as_u64())?, private: 512 << 20 };
    let tables: Arc<dyn StripTables> = Arc::new(EndgameTables::new(directory, memory));
    println!("board\tnimber\texpansions\ttables\tsearch");
    for board in arguments {
        let problem = Problem::from_text("", &board, "nimber")?;
        let before = cpu_seconds()?;
        // Held until the search is over, so that the engine finds them.
        let _tables = open(&problem, &*tables);
        let opened = cpu_seconds()?;
        let table: Arc<dyn Table> = Arc::new(RamTable::with_bytes(TABLE_BYTES)?);
        let mut engine = CramEngine::new(Namespace(0), table, Arc::clone(&tables));
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let limits = Limits::endless(&stop, &progress);
        let start = cpu_seconds()?;
        let plan: &dyn Plan = &CramPlan::new(&problem);
        let Answer::Nimber { nimber } = evaluate(plan, &mut engine, &limits)? else {
            return Err(format!("{board} has no nimber").into());
        };
        let searched = cpu_seconds()? - start;
        let expansions = progress.into_inner();
        println!("{board}\t{nimber}\t{expansions}\t{:.2}\t{searched:.2}", opened - before);
    }
    Ok(())
}

/// The tables that the engine will ask for.
fn open(problem: &Problem, tables: &dyn StripTables) -> Vec<Option<Arc<StripTable>>> {
    let (rows, columns) = extent(&problem.position.sum());
    sizes(rows, columns, tables.bytes()).map(|size| tables.strip_table(size)).collect()
}

/// The time that this process has had on a processor.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let mut nanoseconds = 0u64;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += text.split_whitespace().next().ok_or("an empty schedstat")?.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 / 1e9)
}
