//! The job core under random schedules: deaths of anybody, delays, losses, doubled and reordered messages, restarts that
//! lose what was not synced. Every schedule must end with the right answer and break no invariant.
//!
//! `GRUNDY_SCHEDULES=N` sets how many seeds each problem gets; `GRUNDY_SEED=S` repeats one.

#[path = "schedules/network.rs"]
mod network;
#[path = "schedules/worker.rs"]
mod worker;
#[path = "schedules/world.rs"]
mod world;

use grundy_games::problem::Fields;
use world::{Plan, World};

/// Small problems of all four games with their answers.
const PROBLEMS: [(&str, &str, &str, &str, &str); 7] = [
    ("cram", "", "3x4", "nimber", r#"{"nimber":1}"#),
    ("cram", "", ".........|##.######", "nimber", r#"{"nimber":4}"#),
    ("cram", "", "3x5", "outcome", r#"{"outcome":"win"}"#),
    ("konane", "", "..xo|oxox|xoxo|oxox x", "winner", r#"{"winner":"white"}"#),
    ("kalah", "standard", "1,3", "gain", r#"{"gain":6}"#),
    ("peg", "", ".ooo|oooo|oooo", "finish a1", r#"{"count":"420"}"#),
    (
        "peg",
        "",
        ".ooo|oooo|oooo",
        "finish any",
        r#"{"count":"852","finishes":[{"finish":"a1","count":"420"},{"finish":"d1","count":"432"}]}"#,
    ),
];

fn plan(problem: usize, seed: u64) -> Plan {
    let (game, rules, position, question, answer) = PROBLEMS[problem];
    let fields = Fields {
        game: game.to_owned(),
        rules: rules.to_owned(),
        position: position.to_owned(),
        question: question.to_owned(),
    };
    Plan {
        fields,
        answer: answer.to_owned(),
        workers: 1 + (seed % 4) as usize,
        deaths: (seed % 17) as u32,
        acknowledge_unsynced: false,
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Runs the seeds of one problem; a failure names the seed and how to repeat it.
fn run(test: &str, problem: usize) {
    let count = number("GRUNDY_SCHEDULES").unwrap_or(400);
    let seeds = match number("GRUNDY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    };
    let mut leases = 0;
    for seed in seeds {
        let mut world = World::new(plan(problem, seed), seed);
        if let Err(reason) = world.run() {
            let repeat =
                format!("GRUNDY_SEED={seed} cargo test --release -p grundy --test core_schedules {test}");
            panic!("seed {seed}: {reason}\nrepeat with: {repeat}");
        }
        leases += world.leases;
    }
    assert!(leases > count, "schedules with so few leases ({leases}) test nothing");
}

#[test]
fn cram_3x4() {
    run("cram_3x4", 0);
}

#[test]
fn cram_with_a_picture() {
    run("cram_with_a_picture", 1);
}

#[test]
fn cram_outcome() {
    run("cram_outcome", 2);
}

#[test]
fn konane_4x4() {
    run("konane_4x4", 3);
}

#[test]
fn kalah_1_3() {
    run("kalah_1_3", 4);
}

#[test]
fn peg_to_the_middle() {
    run("peg_to_the_middle", 5);
}

#[test]
fn peg_to_the_end() {
    run("peg_to_the_end", 6);
}

/// The same seed is the same history.
#[test]
fn a_seed_repeats_its_history() {
    let history = |seed| {
        let mut world = World::new(plan(0, seed), seed);
        world.run().map(|()| world.leases)
    };
    for seed in 0..20 {
        assert_eq!(history(seed), history(seed), "seed {seed}");
    }
}

/// The simulation sees what it is there to see: acknowledging before the disk has it is caught by some seed.
#[test]
fn acknowledging_too_early_is_caught() {
    let caught = (0..400).any(|seed| {
        let broken = Plan { acknowledge_unsynced: true, deaths: 16, ..plan(0, seed) };
        World::new(broken, seed).run().is_err()
    });
    assert!(caught, "no seed noticed that acknowledged results were lost");
}
