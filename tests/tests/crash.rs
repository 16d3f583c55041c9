//! Sudden death: SIGKILL of a worker, of the coordinator, of everything, at chosen and at random moments. The answer must be
//! right and what was acknowledged must not be done again.
//!
//! `GRUNDY_KILL_ROUNDS=N` sets the rounds of the random test (a few by default; 100 is the full measure), `GRUNDY_SEED=S`
//! repeats one round.

use grundy_tests::data::rows;
use grundy_tests::programs::{Cluster, Running, children_of, signal_process, start, wait_until};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Solves that take about a second, with their answers.
const PROBLEMS: [(&[&str], &str); 2] = [
    (&["cram", "3x11"], r#"{"nimber":0}"#),
    (&["konane", "6x6", "--start", "corner"], r#"{"winner":"white"}"#),
];

/// These tests have the machine to themselves, one at a time: what they hit in the middle must have one.
static MACHINE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A longer one, to be hit in the middle.
const LONG: (&[&str], &str) = (&["cram", "3x16"], r#"{"nimber":4}"#);

fn parsed(answer: &str) -> Value {
    serde_json::from_str(answer).expect("an answer is JSON")
}

fn number(status: &Value, key: &str) -> u64 {
    status["statistics"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {status}"))
}

/// Waits until the job has this many results more than before.
fn wait_for_results(cluster: &Cluster, job: u64, more: u64) -> Value {
    let before = number(&cluster.status(job), "results");
    let mut status = Value::Null;
    wait_until("some results are in", || {
        status = cluster.status(job);
        number(&status, "results") >= before + more || status["status"] == "solved"
    });
    status
}

#[test]
fn a_worker_is_killed_in_mid_solve() {
    let _machine = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut cluster = Cluster::start(directory.path(), 2);
    let job = cluster.submit(LONG.0);
    let status = wait_for_results(&cluster, job, 5);
    assert_ne!(status["status"], "solved", "too late to kill anybody");
    cluster.kill_worker(0);
    // The other one alone finishes the job, the lost lease included.
    let solved = cluster.wait_solved(job);
    assert_eq!(solved["answer"], parsed(LONG.1), "{solved}");
}

#[test]
fn the_coordinator_is_killed_in_mid_solve_and_started_again() {
    let _machine = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut cluster = Cluster::start(directory.path(), 2);
    let job = cluster.submit(LONG.0);
    let before = wait_for_results(&cluster, job, 5);
    assert_ne!(before["status"], "solved", "too late to kill it");
    cluster.kill_coordinator();
    cluster.start_coordinator();
    let after = cluster.status(job);
    let decided = number(&after, "decided_before_start");
    assert!(decided >= number(&before, "decided"), "decided claims were lost: {before} then {after}");
    assert!(
        number(&after, "results") >= number(&before, "results"),
        "results were lost: {before} then {after}"
    );
    let solved = cluster.wait_solved(job);
    assert_eq!(solved["answer"], parsed(LONG.1), "{solved}");
}

#[test]
fn everything_is_killed_and_resumed() {
    let _machine = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut cluster = Cluster::start(directory.path(), 2);
    let job = cluster.submit(LONG.0);
    let before = wait_for_results(&cluster, job, 5);
    assert_ne!(before["status"], "solved", "too late to kill anything");
    cluster.kill_all();
    cluster.start_coordinator();
    cluster.start_worker(0);
    cluster.start_worker(1);
    assert_eq!(cluster.submit(LONG.0), job, "the same problem is the same job");
    let solved = cluster.wait_solved(job);
    assert_eq!(solved["answer"], parsed(LONG.1), "{solved}");
    assert!(number(&solved, "decided_before_start") >= number(&before, "decided"), "{before} then {solved}");
}

/// Boards and boards up to symmetry of the English board's levels, as published.
fn english_levels() -> Vec<(u64, u64)> {
    let number = |text: &str| text.parse::<u64>().expect("the file has numbers");
    let rows = rows(include_str!("../../shared/search/tests/data/peg-english.tsv"));
    rows.iter().map(|row| (number(row[1]), number(row[2]))).collect()
}

#[test]
fn a_count_is_killed_twice_and_adds_no_part_twice() {
    let _machine = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut cluster = Cluster::start(directory.path(), 2);
    let job = cluster.submit(&["peg", "english"]);
    let levels = |status: &Value| -> Vec<(u64, u64)> {
        let levels = status["statistics"]["levels"].as_array().into_iter().flatten();
        let number = |level: &Value, key: &str| level[key].as_u64().expect("a number");
        levels.map(|level| (number(level, "boards_with_images"), number(level, "boards"))).collect()
    };
    let mut before = Value::Null;
    wait_until("some levels are made", || {
        before = cluster.status(job);
        levels(&before).len() > 13
    });
    assert_ne!(before["status"], "solved", "too late to kill anything");
    cluster.kill_all();
    cluster.start_coordinator();
    assert!(levels(&cluster.status(job)).len() >= levels(&before).len(), "levels were lost: {before}");
    cluster.start_worker(0);
    cluster.start_worker(1);
    wait_for_results(&cluster, job, 1);
    cluster.kill_worker(1);
    let solved = cluster.wait_solved(job);
    assert_eq!(solved["answer"], parsed(r#"{"count":"40861647040079968"}"#), "{solved}");
    // A part that was added twice would show in the level after it.
    assert_eq!(levels(&solved), english_levels()[..17], "{solved}");
}

#[test]
fn a_solve_that_is_killed_goes_on_where_it_was() {
    let _machine = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let solve = || {
        let arguments =
            [&["solve"], LONG.0, &["--data", "solve", "--workers", "2", "--memory", "512MiB", "--json"]];
        start("grundy", arguments.concat(), directory.path())
    };
    let mut first = solve();
    std::thread::sleep(Duration::from_millis(1500));
    let workers = children_of(first.pid());
    first.kill();
    wait_until("the workers have noticed", || workers.iter().all(|pid| !is_running(*pid)));
    let output = solve().wait();
    assert_eq!(output.code(), 0, "{output:?}");
    assert_eq!(output.summary()["answer"], parsed(LONG.1));
}

/// Whether a process is there and not only its entry in the table.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn ctrl_c_checkpoints_and_says_how_to_go_on() {
    let _machine = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let solve = || solve(LONG.0, "data", directory.path());
    let first = solve();
    std::thread::sleep(Duration::from_millis(1500));
    first.signal(Signal::INT);
    let output = first.wait();
    assert_eq!(output.code(), 130, "{output:?}");
    assert!(output.stderr.contains("resume"), "{}", output.stderr);
    let again = solve().wait();
    assert_eq!(again.summary()["answer"], parsed(LONG.1));
    assert!(number(&again.summary(), "results") > 0);
}

/// A solve in a process of its own, with its data in a folder of this name.
fn solve(problem: &[&str], data: &str, directory: &Path) -> Running {
    let arguments =
        [&["solve"], problem, &["--data", data, "--workers", "2", "--memory", "512MiB", "--json"]];
    start("grundy", arguments.concat(), directory)
}

/// One round: a solve, and one random process of it killed at a random moment of the time that it takes undisturbed. If that was
/// the solve itself, it is started again. Returns who was killed, in words; `None` if the solve was faster than its killer.
fn round(rng: &mut ChaCha8Rng, undisturbed: &[Duration], data: &str, directory: &Path) -> Option<String> {
    let chosen = rng.random_range(0..PROBLEMS.len());
    let (problem, answer) = PROBLEMS[chosen];
    let moment = undisturbed[chosen].mul_f64(rng.random_range(0.0..1.0));
    let begun = Instant::now();
    let mut running = solve(problem, data, directory);
    while begun.elapsed() < moment && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut victims = children_of(running.pid());
    victims.push(running.pid());
    let victim = victims[rng.random_range(0..victims.len())];
    if running.has_ended() {
        return None;
    }
    let what = if victim == running.pid() {
        running.kill();
        // At once: the workers of the killed one may still be there.
        running = solve(problem, data, directory);
        "the coordinator"
    } else {
        signal_process(victim, Signal::KILL);
        "a worker"
    };
    let output = running.wait();
    let story = format!("{} with {what} killed after {moment:?}", problem.join(" "));
    assert_eq!(output.code(), 0, "{story}: {output:?}");
    assert_eq!(output.summary()["answer"], parsed(answer), "{story}");
    let counts = |summary: &Value| (number(summary, "results"), number(summary, "leases_granted"));
    let done = counts(&output.summary());
    // Solved once more: from the checkpoint alone, with nothing searched.
    let again = solve(problem, data, directory).wait();
    assert_eq!(again.summary()["answer"], parsed(answer), "{story}");
    // A result that was on its way when the job was solved may have come in after the summary.
    let (results, leases) = counts(&again.summary());
    assert!(
        results >= done.0 && leases == done.1,
        "{story}: acknowledged work was lost: {done:?}, then {results} and {leases}"
    );
    Some(story)
}

#[test]
fn random_processes_are_killed_at_random_moments() {
    let number = |variable: &str| -> Option<u64> {
        let text = std::env::var(variable).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
    };
    let rounds = number("GRUNDY_KILL_ROUNDS").unwrap_or(6);
    // Other seeds every time: the seed is printed, so that a failure can be repeated as far as the machine's timing allows.
    let first = number("GRUNDY_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        now.as_secs()
    });
    let rounds = if number("GRUNDY_SEED").is_some() { 1 } else { rounds };
    let _machine = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let undisturbed: Vec<Duration> = PROBLEMS
        .iter()
        .map(|(problem, answer)| {
            let begun = Instant::now();
            let output = solve(problem, &problem.join("-"), directory.path()).wait();
            assert_eq!(output.summary()["answer"], parsed(answer));
            begun.elapsed()
        })
        .collect();
    for seed in first..first + rounds {
        println!("seed {seed}; repeat with GRUNDY_SEED={seed} ./tests/run.sh random_processes_are_killed");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // A round in which nobody was killed is no round.
        let story = (0..).find_map(|attempt| {
            round(&mut rng, &undisturbed, &format!("round-{seed}-{attempt}"), directory.path())
        });
        println!("{}: right", story.unwrap_or_default());
    }
}
