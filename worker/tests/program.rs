//! The `grundy-worker` program as its users meet it: configuration, exit codes, signals.

mod support;

use grundy_games::claim::Claim;
use grundy_games::plan::{Knowledge, Progress};
use grundy_games::problem::{Approach, Fields, Problem};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Check, Coordinator, PATIENCE, assignment, cram};

fn program(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grundy-worker"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GRUNDY_") || name == "RUST_LOG") {
        command.env_remove(name);
    }
    command.arg("--data").arg(data).env("GRUNDY_MEMORY", "128MiB").stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    assert!(output.stdout.is_empty(), "data belongs to stdout, and a worker has none");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() -> Check {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("worker.toml");
    std::fs::write(&file, "coordinator = \"127.0.0.1:1\"\ngive-up-after = 0\n")?;
    // Nothing listens on these ports; the address that was tried is in the message.
    let sources: [(Option<&str>, Option<&str>, u16); 3] =
        [(None, None, 1), (Some("127.0.0.1:2"), None, 2), (Some("127.0.0.1:2"), Some("127.0.0.1:3"), 3)];
    for (environment, flag, port) in sources {
        let mut command = program(&directory.path().join("data"));
        command.env("GRUNDY_CONFIG", &file);
        command.envs(environment.map(|address| ("GRUNDY_COORDINATOR", address)));
        command.args(flag.into_iter().flat_map(|address| ["--coordinator", address]));
        let output = command.output()?;
        let text = said(&output);
        let named = format!("coordinator http://127.0.0.1:{port} unreachable");
        assert!(text.contains(&named), "{named} is not in:\n{text}");
        assert_eq!(output.status.code(), Some(4), "{text}");
    }
    Ok(())
}

#[test]
fn what_is_wrong_with_the_configuration_is_named() -> Check {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("worker.toml");
    std::fs::write(&file, "memroy = \"1GiB\"\n")?;
    let file = file.to_str().ok_or("a path in UTF-8")?;
    let with = |flags: &[&str], environment: &[(&str, &str)]| {
        program(&directory.path().join("data")).args(flags).envs(environment.iter().copied()).output()
    };
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 6] = [
        (&[], &[], "--coordinator"),
        (&["--config", file], &[], "memroy"),
        (&["--coordinator", "https://a:1"], &[], "scheme 'https'"),
        (&["--coordinator", "a:1"], &[("GRUNDY_THREADS", "0")], "0 is no number of threads"),
        (&["--coordinator", "a:1", "--frobnicate"], &[], "--frobnicate"),
        (&["--coordinator", "a:1"], &[("GRUNDY_MEMORY", "1KiB")], "memory"),
    ];
    for (flags, environment, named) in cases {
        let output = with(flags, environment)?;
        let text = said(&output);
        assert!(named.split('|').any(|named| text.contains(named)), "{named} is not in:\n{text}");
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {text}");
    }
    Ok(())
}

/// A running program that is killed when the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(mut command: Command, coordinator: &Coordinator) -> Result<Self, std::io::Error> {
        command.args([
            "--coordinator",
            &coordinator.address.to_string(),
            "--threads",
            "2",
            "--name",
            "child",
        ]);
        Ok(Self(command.stderr(Stdio::piped()).spawn()?))
    }

    fn signal(&self, name: &str) -> Check {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status()?;
        if sent.success() { Ok(()) } else { Err(format!("kill -{name}: {sent}").into()) }
    }

    fn exit(mut self) -> Result<(Option<i32>, String), Box<dyn std::error::Error>> {
        let deadline = Instant::now() + PATIENCE;
        while self.0.try_wait()?.is_none() {
            assert!(Instant::now() < deadline, "the worker does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut log = String::new();
        if let Some(stderr) = &mut self.0.stderr {
            stderr.read_to_string(&mut log)?;
        }
        Ok((self.0.wait()?.code(), log))
    }
}

fn registered(coordinator: &Coordinator) {
    coordinator.wait("a registration", |script| (!script.registers.is_empty()).then_some(()));
}

#[test]
fn the_first_signal_drains() -> Check {
    for (signal, code) in [("TERM", 0), ("INT", 130)] {
        let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
        let mut command = program(data.path());
        command.args(["--log-format", "json"]);
        let worker = Running::start(command, &coordinator)?;
        registered(&coordinator);
        let register = coordinator.script().registers[0].clone();
        assert_eq!((register.worker.as_str(), register.threads), ("child", 2));
        worker.signal(signal)?;
        let (exit, log) = worker.exit()?;
        assert_eq!(exit, Some(code), "{log}");
        assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{log}");
        for event in ["\"event\":\"table\"", "\"entries\":0", "\"event\":\"drain\"", "\"event\":\"end\""] {
            assert!(log.contains(event), "{event} is not in:\n{log}");
        }
    }
    Ok(())
}

#[test]
fn the_second_signal_ends_at_once() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    // Its result is never acknowledged, so the drain takes as long as it may.
    coordinator.script().complete_failures = u32::MAX;
    let (fields, claim) = first_claim("....")?;
    coordinator.script().assignments.push_back(assignment(1, &fields, &claim));
    let worker = Running::start(program(data.path()), &coordinator)?;
    coordinator.wait("an attempt", |script| (script.complete_attempts > 0).then_some(()));
    let started = Instant::now();
    worker.signal("INT")?;
    std::thread::sleep(Duration::from_millis(300));
    worker.signal("INT")?;
    let (exit, log) = worker.exit()?;
    assert!(started.elapsed() < Duration::from_secs(10), "{log}");
    assert_eq!(exit, Some(130), "{log}");
    assert!(log.contains("second signal"), "{log}");
    Ok(())
}

#[test]
fn a_restarted_worker_starts_warm_and_says_so() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    let (fields, claim) = first_claim(".......|.......|.......|.......|.......")?;
    let mut nodes = Vec::new();
    let mut entries = Vec::new();
    for run in 0..2 {
        let mut command = program(data.path());
        command.args(["--log-format", "json"]);
        let worker = Running::start(command, &coordinator)?;
        let registers = run + 1;
        coordinator.wait("a registration", |script| (script.registers.len() == registers).then_some(()));
        coordinator.script().assignments.push_back(assignment(1, &fields, &claim));
        nodes.push(coordinator.wait("the result", |script| script.completes.pop()).nodes);
        worker.signal("TERM")?;
        let (exit, log) = worker.exit()?;
        assert_eq!(exit, Some(0), "{log}");
        let line =
            log.lines().find(|line| line.contains("\"event\":\"table\"")).ok_or("a line about the table")?;
        let found = line.split_once("\"entries\":").ok_or("a number of entries")?.1;
        let digits: String = found.chars().take_while(char::is_ascii_digit).collect();
        entries.push(digits.parse::<u64>()?);
    }
    // Against each other only: a better engine needs fewer nodes both times.
    assert!(nodes[1] < nodes[0], "{nodes:?} nodes, {entries:?} entries");
    assert!(entries[0] == 0 && entries[1] > 0, "{nodes:?} nodes, {entries:?} entries");
    Ok(())
}

/// The problem of a Cram position's nimber, and the first claim it asks for.
fn first_claim(position: &str) -> Result<(Fields, Claim), Box<dyn std::error::Error>> {
    let fields = Fields { position: position.into(), ..cram() };
    let problem = Problem::from_fields(&fields)?;
    let Approach::Claims(plan) = problem.approach() else {
        return Err("cram is answered by claims".into());
    };
    match plan.next(&Nothing) {
        Progress::Ask(claims) => Ok((problem.to_fields(), claims[0].clone())),
        Progress::Answered(answer) => Err(format!("{fields} needs no search: {answer:?}").into()),
    }
}

/// The state of knowledge at the start.
struct Nothing;

impl Knowledge for Nothing {
    fn truth(&self, _: &Claim) -> Option<bool> {
        None
    }
}

#[test]
fn the_worker_ends_with_its_parent_if_told_to() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    let mut command = program(data.path());
    command.arg("--exit-with-parent").stdin(Stdio::piped());
    let mut worker = Running::start(command, &coordinator)?;
    registered(&coordinator);
    std::thread::sleep(Duration::from_millis(200));
    assert!(worker.0.try_wait()?.is_none(), "stdin is open");
    drop(worker.0.stdin.take());
    let (exit, log) = worker.exit()?;
    assert_eq!(exit, Some(0), "{log}");
    // In words and named fields, not as the program's types print themselves.
    for part in ["stdin closed", "hits=0", "disk_writes=0"] {
        assert!(log.contains(part), "{part} is not in:\n{log}");
    }
    assert!(!log.contains("ParentGone") && !log.contains("TableStatistics"), "{log}");
    Ok(())
}
