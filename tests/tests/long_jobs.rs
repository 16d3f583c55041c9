//! A job of weeks, for some seconds: it starts, splits into its openings, makes progress, keeps within its memory, and goes on
//! where it was after an interruption.

use grundy_tests::programs::{Output, Running, children_of, start};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const MEMORY_MIB: u64 = 384;

fn solve(directory: &Path) -> Running {
    let arguments =
        ["solve", "kalah", "6,6", "--workers", "2", "--memory", "384MiB", "--data", "data", "--json"];
    start("grundy", arguments, directory)
}

/// The most memory a process ever had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// Lets it run for a while, interrupts it, and returns what it wrote with the peak of all its processes together.
fn run_for(time: Duration, directory: &Path) -> (Output, u64) {
    let running = solve(directory);
    let (begun, mut most) = (Instant::now(), 0);
    while begun.elapsed() < time {
        std::thread::sleep(Duration::from_millis(100));
        let processes = std::iter::once(running.pid()).chain(children_of(running.pid()));
        most = most.max(processes.map(peak).sum());
    }
    running.signal(Signal::INT);
    (running.wait(), most)
}

fn number(summary: &Value, key: &str) -> u64 {
    summary["statistics"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {summary}"))
}

#[test]
fn kalah_6_6_starts_keeps_within_its_memory_and_goes_on() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (first, peak) = run_for(Duration::from_secs(15), directory.path());
    assert_eq!(first.code(), 130, "{}", first.stderr);
    let before = first.summary();
    let openings: Vec<&str> = before["answer"]["openings"]
        .as_array()
        .expect("openings")
        .iter()
        .filter_map(|opening| opening["opening"].as_str())
        .collect();
    assert_eq!(openings, ["1-2", "1-3", "1-4", "1-5", "1-6", "2", "3", "4", "5", "6"]);
    assert!(number(&before, "results") > 0 && number(&before, "nodes") > 0, "no progress: {before}");
    assert!(peak <= MEMORY_MIB << 10, "{peak} KiB of {MEMORY_MIB} MiB");
    let (second, _) = run_for(Duration::from_secs(5), directory.path());
    let after = second.summary();
    assert!(number(&after, "results") > number(&before, "results"), "{before} then {after}");
    assert!(number(&after, "decided") >= number(&before, "decided"), "{before} then {after}");
    assert!(number(&after, "decided_before_start") >= number(&before, "decided"), "{before} then {after}");
}
