//! Endgame databases through the programs: built once, used again, killed while they are built, damaged, and nowhere to go.

use grundy_tests::programs::{Output, Running, children_of, grundy, start, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A board of which one table is worth a file, and its answer.
const BOARD: (&str, &str) = ("5x8", r#"{"nimber":1}"#);

/// A database that takes a while to build, within this memory.
const LONG: [&str; 8] = ["endgame", "build", "cram", "3x20", "--endgame", "endgame", "--memory", "1GiB"];

/// The files of this ending among the databases.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("endgame")).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

fn solve(data: &str, endgame: &str, directory: &Path) -> Output {
    let arguments = ["solve", "cram", BOARD.0, "--workers", "2", "--memory", "512MiB", "--json"];
    grundy([&arguments[..], &["--data", data, "--endgame", endgame]].concat(), directory)
}

fn assert_solved(output: &Output) {
    assert_eq!(output.code(), 0, "{output:?}");
    let answer: Value = serde_json::from_str(BOARD.1).expect("an answer is JSON");
    assert_eq!(output.summary()["answer"], answer);
}

fn verify(directory: &Path) -> Output {
    grundy(["endgame", "verify", "--endgame", "endgame", "--json"], directory)
}

/// How many lines of the log say this.
fn said(output: &Output, words: &str) -> usize {
    output.stderr.lines().filter(|line| line.contains(words)).count()
}

/// What `endgame build --json` says that it did to its one database.
fn status(output: &Output) -> String {
    assert_eq!(output.code(), 0, "{output:?}");
    let line = output.stdout.lines().next().unwrap_or_default();
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    line["status"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn workers_build_a_database_once_and_later_runs_use_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = solve("first", "endgame", directory.path());
    assert_solved(&first);
    assert_eq!(said(&first, "built an endgame database"), 1, "{}", first.stderr);
    assert_eq!(files(directory.path(), ".edb").len(), 1);
    assert_eq!(verify(directory.path()).code(), 0);
    let second = solve("second", "endgame", directory.path());
    assert_solved(&second);
    assert_eq!(said(&second, "built an endgame database"), 0, "{}", second.stderr);
    assert!(said(&second, "opened an endgame database") >= 1, "{}", second.stderr);
    // `eval` takes it too, and finds no other answer than without.
    let eval = |endgame: &[&str]| {
        let arguments = [&["eval", "cram", "--memory", "512MiB"], endgame].concat();
        grundy_tests::programs::grundy_with_input(&arguments, "5x7\n4x7\n".to_owned(), directory.path())
    };
    let (with, without) = (eval(&["--endgame", "endgame"]), eval(&[]));
    assert_eq!((with.code(), &with.stdout), (0, &without.stdout), "{with:?}");
    assert_eq!(with.stdout, "5x7\t1\n4x7\t3\n");
}

#[test]
fn processes_that_build_at_once_build_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let arguments =
        ["endgame", "build", "cram", "3x16", "--endgame", "endgame", "--memory", "128MiB", "--json"];
    let all: Vec<Running> = (0..4).map(|_| start("grundy", arguments, directory.path())).collect();
    let outputs: Vec<Output> = all.into_iter().map(Running::wait).collect();
    let built = outputs.iter().filter(|output| status(output) == "built").count();
    assert_eq!(built, 1, "{outputs:?}");
    let begun: usize = outputs.iter().map(|output| said(output, "building an endgame database")).sum();
    assert!(begun >= 1 && outputs.iter().filter(|output| said(output, "building") > 0).count() == 1);
    assert_eq!(verify(directory.path()).code(), 0);
}

/// Starts a build and stops it, as a machine that hangs would, while the file is being filled.
fn stopped_build(directory: &Path) -> Running {
    let running = start("grundy", LONG, directory);
    wait_until("the build has begun", || !files(directory, ".new").is_empty());
    running.signal(Signal::STOP);
    assert!(files(directory, ".edb").is_empty(), "too late to kill anybody");
    running
}

#[test]
fn a_killed_build_is_taken_over_by_whoever_waits_for_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut first = stopped_build(directory.path());
    let waiting = start("grundy", [&LONG[..], &["--json"]].concat(), directory.path());
    // It says that it waits as soon as it does; below it is seen that it did.
    std::thread::sleep(Duration::from_secs(1));
    first.kill();
    let output = waiting.wait();
    assert_eq!((status(&output).as_str(), said(&output, "waiting for another process")), ("built", 1));
    assert!(files(directory.path(), ".new").is_empty());
    assert_eq!(verify(directory.path()).code(), 0);
    let again = grundy([&LONG[..], &["--json"]].concat(), directory.path());
    assert_eq!(status(&again), "found");
}

#[test]
fn what_a_killed_build_left_harms_nobody() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut running = stopped_build(directory.path());
    running.kill();
    assert_eq!(files(directory.path(), ".new").len(), 1);
    assert_eq!(verify(directory.path()).summary()["databases"], 0);
    let output = grundy([&LONG[..], &["--json"]].concat(), directory.path());
    assert_eq!(status(&output), "built");
    assert!(files(directory.path(), ".new").is_empty());
    assert_eq!(verify(directory.path()).code(), 0);
}

#[test]
fn a_killed_build_of_layers_goes_on_with_the_first_that_is_missing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let build =
        ["endgame", "build", "kalah", "6,4", "--endgame", "endgame", "--endgame-seeds", "20", "--json"];
    let mut running = start("grundy", build, directory.path());
    wait_until("some layers are finished", || files(directory.path(), ".edb").len() >= 3);
    running.kill();
    let left = files(directory.path(), ".edb").len();
    let output = grundy(build, directory.path());
    assert_eq!(output.code(), 0, "{output:?}");
    let lines = output.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    let statuses: Vec<String> =
        lines.filter_map(|line: Value| Some(line["status"].as_str()?.to_owned())).collect();
    let expected = (0..statuses.len()).map(|at| if at < left { "found" } else { "built" });
    assert!((3..statuses.len()).contains(&left), "{left} layers of {} were left", statuses.len());
    assert_eq!(statuses, expected.collect::<Vec<_>>());
    let verified = verify(directory.path());
    assert_eq!(
        (verified.code(), &verified.summary()["databases"]),
        (0, &Value::from(statuses.len())),
        "{verified:?}"
    );
    // A solve takes them, and so does `eval`.
    let endgame = ["--endgame", "endgame", "--endgame-seeds", "20"];
    let solve =
        [&["solve", "kalah", "6,3", "--opening", "1", "--data", "data", "--json"], &endgame[..]].concat();
    let solved = grundy(&solve, directory.path());
    assert_eq!(
        (solved.code(), said(&solved, "opened an endgame database")),
        (0, statuses.len()),
        "{solved:?}"
    );
    assert_eq!(said(&solved, "built an endgame database"), 0, "{solved:?}");
}

#[test]
fn an_interrupted_build_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let running = stopped_build(directory.path());
    running.signal(Signal::INT);
    running.signal(Signal::CONT);
    let output = running.wait();
    assert_eq!(output.code(), 130, "{output:?}");
    assert!(output.stderr.contains("told to stop"), "{}", output.stderr);
    assert_eq!((files(directory.path(), ".edb").len(), files(directory.path(), ".new").len()), (0, 0));
}

#[test]
fn damage_is_named_and_mended() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let arguments = ["endgame", "build", "cram", BOARD.0, "--endgame", "endgame", "--memory", "64MiB"];
    assert_eq!(grundy(arguments, directory.path()).code(), 0);
    let path = files(directory.path(), ".edb").pop().expect("a database was built");
    let name = path.file_name().and_then(|name| name.to_str()).expect("its name is ASCII");
    let intact = fs::read(&path).expect("it was built");
    let mut damaged = intact.clone();
    damaged[(5 << 20) + 4096 + 77] ^= 1;
    fs::write(&path, &damaged).expect("it can be written");
    let output = verify(directory.path());
    assert_eq!(output.code(), 5, "{output:?}");
    assert_eq!(output.summary()["damaged"], 1);
    for words in [name, "block 5 "] {
        assert!(output.stderr.contains(words) && output.stdout.contains(words), "{output:?}");
    }
    let output = solve("data", "endgame", directory.path());
    assert_solved(&output);
    assert!(said(&output, "corrupt endgame database") >= 1, "{}", output.stderr);
    assert_eq!(said(&output, "built an endgame database"), 1, "{}", output.stderr);
    assert_eq!(fs::read(&path).expect("it was built again"), intact);
    assert_eq!(verify(directory.path()).code(), 0);
}

#[test]
fn without_a_place_for_databases_it_goes_on_in_memory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("taken"), "a file").expect("it can be written");
    let output = solve("data", "taken", directory.path());
    assert_solved(&output);
    let warnings = said(&output, "going on with smaller tables in memory");
    assert!((1..=2).contains(&warnings), "once a worker: {}", output.stderr);
    let built = grundy(["endgame", "build", "cram", "5x8", "--endgame", "taken"], directory.path());
    assert_eq!(built.code(), 1, "{built:?}");
    assert!(built.stderr.contains("taken"), "{built:?}");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (arguments, code, words) in [
        (&["endgame", "build", "peg", "english", "--endgame", "e"][..], 2, "cram and kalah have"),
        (&["endgame", "build", "kalah", "6,4", "--rules", "other", "--endgame", "e"], 2, "empty-capture"),
        (&["endgame", "build", "cram", "3y9", "--endgame", "e"], 2, "position"),
        (&["endgame", "build", "cram", "3x9"], 2, "--endgame"),
        (&["endgame", "verify"], 2, "--endgame"),
        (&["endgame", "verify", "--endgame", "nowhere"], 1, "nowhere"),
        (&["solve", "cram", "3x4", "--memory", "512MiB", "--endgame-memory", "500MiB"], 2, "endgame memory"),
    ] {
        let output = grundy(arguments, directory.path());
        assert!(output.code() == code && output.stderr.contains(words), "{arguments:?}: {output:?}");
    }
}

/// A number of a process's status, in KiB.
fn kibibytes(pid: u32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

#[test]
fn all_processes_and_the_databases_keep_within_the_memory() {
    for problem in [["cram", "3x16"], ["kalah", "6,3"]] {
        keep_within_the_memory(problem);
    }
}

fn keep_within_the_memory(problem: [&str; 2]) {
    const MEMORY_MIB: u64 = 640;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let arguments = ["--workers", "2", "--memory", "640MiB", "--data", "data", "--json"];
    let arguments = [&["solve"], &problem[..], &arguments[..]].concat();
    let mut running = start("grundy", arguments, directory.path());
    let mut most = 0;
    while !running.has_ended() {
        std::thread::sleep(Duration::from_millis(20));
        let processes = std::iter::once(running.pid()).chain(children_of(running.pid()));
        most = most.max(processes.map(|pid| kibibytes(pid, "RssAnon:")).sum());
    }
    let output = running.wait();
    assert_eq!(output.code(), 0, "{output:?}");
    let files = fs::read_dir(directory.path().join("data/endgame")).expect("databases were built").flatten();
    let files: u64 =
        files.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum::<u64>() >> 10;
    println!("{problem:?}: {most} KiB anonymous and {files} KiB of files");
    assert!(files > 16 << 10, "{problem:?}: {files} KiB of databases");
    assert!(
        most > 0 && most + files <= MEMORY_MIB << 10,
        "{problem:?}: {most} + {files} KiB of {MEMORY_MIB} MiB"
    );
}
