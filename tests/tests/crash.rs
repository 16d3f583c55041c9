//! Sudden death: SIGKILL of a worker, of the coordinator, of everything, at chosen and at random moments. The answer must be
//! right and what was acknowledged must not be done again.
//!
//! `GRUNDY_KILL_ROUNDS=N` sets the rounds of the random test (a few by default; 100 is the full measure), `GRUNDY_SEED=S`
//! repeats one round.

use grundy_tests::programs::{Cluster, Running, children_of, signal_process, start, wait_until};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Solves that take some seconds, with their answers.
const PROBLEMS: [(&[&str], &str); 2] = [
    (&["cram", "3x11"], r#"{"nimber":0}"#),
    (&["konane", "6x6", "--start", "corner"], r#"{"winner":"white"}"#),
];

/// A longer one, to be hit in the middle.
const LONG: (&[&str], &str) = (&["cram", "3x13"], r#"{"nimber":2}"#);

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

#[test]
fn a_solve_that_is_killed_goes_on_where_it_was() {
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
    let directory = tempfile::tempdir().expect("a temporary directory");
    let arguments =
        [&["solve"], LONG.0, &["--data", "solve", "--workers", "2", "--memory", "512MiB", "--json"]].concat();
    let first = start("grundy", &arguments, directory.path());
    std::thread::sleep(Duration::from_millis(1500));
    first.signal(Signal::INT);
    let output = first.wait();
    assert_eq!(output.code(), 130, "{output:?}");
    assert!(output.stderr.contains("resume"), "{}", output.stderr);
    let again = start("grundy", &arguments, directory.path()).wait();
    assert_eq!(again.summary()["answer"], parsed(LONG.1));
    assert!(number(&again.summary(), "results") > 0);
}

/// One round: a solve in a process of its own, and one random process of it killed at a random moment; if that was the solve
/// itself, it is started again.
fn round(seed: u64, directory: &Path) -> (String, u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (problem, answer) = PROBLEMS[rng.random_range(0..PROBLEMS.len())];
    let data = format!("round-{seed}");
    let solve = || -> Running {
        let arguments =
            [&["solve"], problem, &["--data", &data, "--workers", "2", "--memory", "512MiB", "--json"]];
        start("grundy", arguments.concat(), directory)
    };
    let mut running = solve();
    let moment = Duration::from_millis(rng.random_range(0..2500));
    let begun = Instant::now();
    while begun.elapsed() < moment && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut victims = children_of(running.pid());
    victims.push(running.pid());
    let victim = victims[rng.random_range(0..victims.len())];
    let late = running.has_ended();
    let what = match (late, victim == running.pid()) {
        (true, _) => "nobody, it was done",
        (false, true) => "the coordinator",
        (false, false) => "a worker",
    };
    if !late {
        signal_process(victim, Signal::KILL);
    }
    if !late && victim == running.pid() {
        running.kill();
        // At once: the workers of the killed one may still be there.
        running = solve();
    }
    let mut output = running.wait();
    // The data directory may still be locked by the death throes of the one before.
    for _ in 0..100 {
        if output.status.success() || !output.stderr.contains("locked") {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        output = solve().wait();
    }
    assert_eq!(output.code(), 0, "seed {seed}, killed {what} after {moment:?}: {output:?}");
    assert_eq!(output.summary()["answer"], parsed(answer), "seed {seed}, killed {what} after {moment:?}");
    let results = output.summary()["statistics"]["results"].as_u64().expect("results");
    // Solved once more: from the checkpoint alone, with nothing searched.
    let again = solve().wait();
    assert_eq!(again.summary()["answer"], parsed(answer), "seed {seed}");
    assert_eq!(again.summary()["statistics"]["results"], json!(results), "seed {seed}: work was lost");
    (format!("{} of {}", what, problem.join(" ")), results)
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
    let directory = tempfile::tempdir().expect("a temporary directory");
    for seed in first..first + rounds {
        println!("seed {seed}; repeat with GRUNDY_SEED={seed} ./tests/run.sh random_processes_are_killed");
        let (what, results) = round(seed, directory.path());
        println!("seed {seed}: killed {what}; right, with {results} results");
    }
}
