//! Virtual workers, the real core and the real engines.

use grundy::core::Options;
use grundy::simulate::{Measurement, Setting, SimulationError, sequential, simulate, tables};
use grundy_games::problem::{Fields, Problem};
use grundy_search::cram::tables::BuiltTables;
use grundy_search::engine::EngineTables;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

const NODES_PER_SECOND: NonZeroU64 = NonZeroU64::new(100_000).expect("not zero");

/// Small budgets, so that small boards make many leases.
fn options() -> Options {
    Options { budget_nodes: 600, split_nodes: 600, part_entries: 20, ..Options::default() }
}

fn fields(game: &str, rules: &str, position: &str, question: &str) -> Fields {
    let fields = Fields {
        game: game.to_owned(),
        rules: rules.to_owned(),
        position: position.to_owned(),
        question: question.to_owned(),
    };
    Problem::from_fields(&fields).expect("a problem").to_fields()
}

fn with_setting<T>(fields: Fields, seed: u64, stop: bool, run: impl FnOnce(&Setting<'_>) -> T) -> T {
    // Engines of one process look after each other, so that tests side by side would change each other's numbers.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let databases: Arc<dyn EngineTables> = Arc::new(BuiltTables::new(1 << 16));
    let is_kalah = fields.game == "kalah";
    let for_workers = |workers| tables::worker_tables(&databases, 1 << 24, workers, is_kalah);
    let stop = AtomicBool::new(stop);
    run(&Setting {
        fields,
        nodes_per_second: NODES_PER_SECOND,
        latency_us: 500,
        seed,
        options: options(),
        tables: &for_workers,
        stop: &stop,
    })
}

fn measure(setting: &Setting<'_>, workers: u32) -> Measurement {
    let workers = NonZeroU32::new(workers).expect("not zero");
    simulate(setting, workers).expect("the job is solved")
}

/// One job of each game.
fn jobs() -> [Fields; 4] {
    [
        fields("cram", "", "4x5", ""),
        fields("kalah", "standard", "3,3", "gain"),
        fields("konane", "", "xoxox|oxoxo|xo..x|oxoxo|xoxox x", "winner"),
        fields("peg", "", ".ooo|oooo|oooo|oooo", "finish a1"),
    ]
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    for job in jobs() {
        let run = |seed| with_setting(job.clone(), seed, false, |setting| measure(setting, 3));
        assert_eq!(run(5), run(5), "{job}");
    }
}

#[test]
fn virtual_time_is_accounted_for() {
    for job in jobs() {
        with_setting(job.clone(), 1, false, |setting| {
            let plain = sequential(setting).expect("the plain engine answers");
            for workers in [1, 2, 5] {
                let m = measure(setting, workers);
                let searching = m.nodes * 1_000_000 / NODES_PER_SECOND;
                assert!(m.busy_us >= searching && m.busy_us <= searching + m.leases * 1000, "{job}: {m:?}");
                assert!(m.busy_us <= m.makespan_us * u64::from(workers), "{job}: {m:?}");
                assert!(m.nodes_lost <= m.nodes && m.bytes > m.messages, "{job}: {m:?}");
                assert!(m.leases > 1 || workers == 1, "{job}: {m:?}");
                assert!((0.0..1.0).contains(&m.idle()), "{job}: {m:?}");
                if job.game == "peg" {
                    assert_eq!((m.nodes, m.nodes_lost), (plain, 0), "a count has nothing to search twice");
                }
            }
        });
    }
}

#[test]
fn two_workers_are_faster_than_one_where_there_is_work_for_two() {
    with_setting(fields("cram", "", "3x13", ""), 1, false, |setting| {
        // Leases of the usual size at the usual speed: otherwise most of the time goes by on the way.
        let (fields, options) = (setting.fields.clone(), Options::default());
        let nodes_per_second = NonZeroU64::MIN.saturating_add(9_999);
        let setting = Setting { fields, options, nodes_per_second, ..*setting };
        let (one, two) = (measure(&setting, 1), measure(&setting, 2));
        assert!(two.makespan_us < one.makespan_us, "{one:?} {two:?}");
        assert!(two.facts > 0 && one.facts == 0, "only what others found is told: {one:?} {two:?}");
    });
}

#[test]
fn slow_messages_cost_time_and_nothing_else_when_there_is_one_worker() {
    let job = fields("cram", "", "4x5", "");
    let (quick, slow) = with_setting(job, 1, false, |setting| {
        let quick = measure(setting, 1);
        let slow =
            Setting { latency_us: 50_000, fields: setting.fields.clone(), options: options(), ..*setting };
        (quick, measure(&slow, 1))
    });
    assert_eq!((quick.nodes, quick.leases), (slow.nodes, slow.leases));
    assert!(slow.makespan_us > quick.makespan_us + slow.leases * 90_000, "{quick:?} {slow:?}");
}

#[test]
fn a_simulation_can_be_stopped() {
    with_setting(fields("cram", "", "5x5", ""), 1, true, |setting| {
        let workers = NonZeroU32::MIN;
        assert!(matches!(sequential(setting), Err(SimulationError::Stopped)));
        assert!(matches!(simulate(setting, workers), Err(SimulationError::Stopped)));
    });
}

#[test]
fn too_little_memory_for_so_many_is_refused() {
    let databases: Arc<dyn EngineTables> = Arc::new(BuiltTables::new(1 << 16));
    let of = |workers| tables::worker_tables(&databases, 8 << 20, workers, false);
    assert!(of(8).is_ok());
    assert!(matches!(of(9), Err(SimulationError::Memory { workers: 9 })));
}
