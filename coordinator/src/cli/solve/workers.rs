//! The worker processes of `solve`: started, started again when they die, and stopped.
//!
//! A worker lives no longer than this process: it holds the read end of a pipe whose write end is here, and stops in order
//! when that closes, however this process ended.

use crate::cli::logging;
use crate::cli::memory::WorkerShares;
use crate::exit::{Exit, Failure};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The worker program's name, beside this one.
const PROGRAM: &str = "grundy-worker";

/// The wait before a dead worker is started again; doubles with each death in a row.
const RESTART_AFTER: Duration = Duration::from_millis(200);
const RESTART_AFTER_MAX: Duration = Duration::from_secs(30);

/// A worker that lived this long has not died in a row with its deaths before.
const LIFE_LONG: Duration = Duration::from_secs(30);

/// Deaths in a row after which a worker is given up.
const DEATHS_MAX: u32 = 8;

/// Exit codes of the worker that starting it again does not mend.
const CODE_USAGE: i32 = Exit::Usage as i32;
const CODE_CORRUPTION: i32 = Exit::Corruption as i32;

/// What to start.
#[derive(Clone)]
pub(super) struct WorkersPlan {
    /// The program.
    pub program: PathBuf,
    /// How many processes.
    pub count: u32,
    /// Search threads of each.
    pub threads: u32,
    /// Memory of each, and of the databases that they share.
    pub shares: WorkerShares,
    /// The directory of those databases.
    pub endgame: PathBuf,
    /// The most seeds of Kalah's, if it was said.
    pub endgame_seeds: Option<u8>,
    /// How much memory engines' tables may take, if it was said.
    pub engine_memory: Option<u64>,
    /// Where the coordinator listens.
    pub coordinator: SocketAddr,
    /// The job's data directory; each worker's is in it.
    pub directory: PathBuf,
}

/// Finds the worker program: as told, or beside this program.
pub(super) fn program(told: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let path = match told {
        Some(path) => path,
        None => std::env::current_exe()?.with_file_name(PROGRAM),
    };
    if path.is_file() {
        return Ok(path);
    }
    let words = format!(
        "there is no {PROGRAM} at {}: say where it is by --worker-program or GRUNDY_WORKER",
        path.display()
    );
    Err(Failure::message(Exit::Usage, words))
}

/// What the supervisors are to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Work,
    Stop,
    Kill,
}

/// Why a supervisor has ended.
enum Ended {
    /// As asked.
    Stopped,
    /// The worker kept dying.
    GivenUp,
    /// Starting it again would not help.
    Hopeless(Failure),
}

/// The worker processes.
pub(super) struct Workers {
    wanted: watch::Sender<Wanted>,
    supervisors: JoinSet<Ended>,
    count: u32,
    given_up: u32,
}

impl Workers {
    /// Starts them.
    pub fn start(plan: WorkersPlan) -> Self {
        let (wanted, receiver) = watch::channel(Wanted::Work);
        let mut supervisors = JoinSet::new();
        for number in 1..=plan.count {
            supervisors.spawn(supervise(plan.clone(), number, receiver.clone()));
        }
        Self { wanted, supervisors, count: plan.count, given_up: 0 }
    }

    /// Waits for a reason why the workers cannot go on; for ever if there is none.
    pub async fn failed(&mut self) -> Failure {
        loop {
            match self.supervisors.join_next().await {
                Some(Ok(Ended::Hopeless(failure))) => return failure,
                Some(Ok(Ended::GivenUp)) => {
                    self.given_up += 1;
                    if self.given_up == self.count {
                        let words =
                            format!("all {} workers kept dying: their messages are above", self.count);
                        return Failure::message(Exit::Failed, words);
                    }
                }
                Some(Ok(Ended::Stopped)) => {}
                Some(Err(error)) => return Failure::new(Exit::Failed, error),
                None => std::future::pending().await,
            }
        }
    }

    /// Has them stop in order, and kills those that take longer than `grace`.
    pub async fn stop(&mut self, grace: Duration) {
        self.wanted.send_replace(Wanted::Stop);
        let all_gone = async { while self.supervisors.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all_gone).await.is_err() {
            tracing::warn!(grace_ms = grace.as_millis() as u64, "workers do not stop and are killed");
            self.kill().await;
        }
    }

    /// Kills them.
    pub async fn kill(&mut self) {
        self.wanted.send_replace(Wanted::Kill);
        while self.supervisors.join_next().await.is_some() {}
    }
}

/// Keeps one worker running.
async fn supervise(plan: WorkersPlan, number: u32, mut wanted: watch::Receiver<Wanted>) -> Ended {
    let name = format!("worker-{number}");
    let (mut deaths, mut restart_after) = (0, RESTART_AFTER);
    loop {
        let mut child = match spawn(&plan, &name) {
            Ok(child) => child,
            Err(error) => {
                let words = format!("cannot start {}: {error}", plan.program.display());
                return Ended::Hopeless(Failure::message(Exit::Failed, words));
            }
        };
        let started = Instant::now();
        // Waiting for a child closes the stdin that it still has; this one is the pipe that keeps the worker going.
        let pipe = child.stdin.take();
        let status = tokio::select! {
            status = child.wait() => status,
            () = changed(&mut wanted) => {
                drop(pipe);
                end(child, &mut wanted).await;
                return Ended::Stopped;
            }
        };
        let how = match &status {
            Ok(status) => describe(*status),
            Err(error) => format!("status unknown: {error}"),
        };
        match status.ok().and_then(|status| status.code()) {
            Some(CODE_USAGE) => {
                let words = format!("{name} refuses to start ({how}): its message is above");
                return Ended::Hopeless(Failure::message(Exit::Failed, words));
            }
            Some(CODE_CORRUPTION) => {
                let directory = plan.directory.join(&name);
                let words = format!(
                    "{name} found corrupt data ({how}): its message is above. {} is a cache; without it the job goes on",
                    directory.display()
                );
                return Ended::Hopeless(Failure::message(Exit::Corruption, words));
            }
            _ => {}
        }
        if started.elapsed() >= LIFE_LONG {
            (deaths, restart_after) = (0, RESTART_AFTER);
        }
        deaths += 1;
        if deaths >= DEATHS_MAX {
            tracing::error!(worker = name, how, deaths, "worker keeps dying and is given up");
            return Ended::GivenUp;
        }
        tracing::warn!(
            worker = name,
            how,
            restart_after_ms = restart_after.as_millis() as u64,
            "worker died"
        );
        tokio::select! {
            () = tokio::time::sleep(restart_after) => {}
            () = changed(&mut wanted) => return Ended::Stopped,
        }
        restart_after = (restart_after * 2).min(RESTART_AFTER_MAX);
    }
}

/// Waits until something else than work is wanted.
async fn changed(wanted: &mut watch::Receiver<Wanted>) {
    // A sender that is gone means that nobody wants the worker any more.
    drop(wanted.wait_for(|wanted| *wanted != Wanted::Work).await);
}

/// Waits until the worker's end is wanted at any price.
async fn killed(wanted: &mut watch::Receiver<Wanted>) {
    drop(wanted.wait_for(|wanted| *wanted == Wanted::Kill).await);
}

fn spawn(plan: &WorkersPlan, name: &str) -> std::io::Result<Child> {
    let mut command = Command::new(&plan.program);
    command
        .arg("--coordinator")
        .arg(plan.coordinator.to_string())
        .arg("--data")
        .arg(plan.directory.join(name))
        .args(["--name", name])
        .args(["--threads", &plan.threads.to_string()])
        .args(["--memory", &plan.shares.memory().to_string()])
        .args(["--endgame-memory", &plan.shares.endgame.to_string()])
        .arg("--endgame")
        .arg(&plan.endgame)
        .arg("--exit-with-parent")
        .stdin(Stdio::piped())
        // Stdout carries the answer, and nothing else.
        .stdout(Stdio::null())
        // A configuration file of this program is none of the worker's.
        .env_remove("GRUNDY_CONFIG")
        // Ctrl-C on the terminal is for this process, which tells the workers.
        .process_group(0)
        .kill_on_drop(true);
    if let Some(bytes) = plan.engine_memory {
        command.args(["--engine-memory", &bytes.to_string()]);
    }
    if let Some(seeds) = plan.endgame_seeds {
        command.args(["--endgame-seeds", &seeds.to_string()]);
    }
    if logging::is_terminal() && !logging::filter_is_set() {
        command.env("GRUNDY_LOG", "warn");
    }
    command.spawn()
}

/// Waits for the end of a worker whose pipe was closed, which it takes for the order to stop; kills it when that is wanted.
async fn end(mut child: Child, wanted: &mut watch::Receiver<Wanted>) {
    tokio::select! {
        _ = child.wait() => {}
        () = killed(wanted) => {
            // It may have gone by itself meanwhile.
            let _ = child.kill().await;
        }
    }
}

/// A status in words.
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "status unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(program: &str, count: u32) -> WorkersPlan {
        WorkersPlan {
            program: program.into(),
            count,
            threads: 1,
            shares: WorkerShares { own: 1 << 24, endgame: 0 },
            endgame: "nowhere".into(),
            endgame_seeds: None,
            engine_memory: None,
            coordinator: ([127, 0, 0, 1], 1).into(),
            directory: "nowhere".into(),
        }
    }

    #[test]
    fn statuses_are_told_apart() {
        assert_eq!(describe(ExitStatus::from_raw(3 << 8)), "exit code 3");
        assert_eq!(describe(ExitStatus::from_raw(9)), "signal 9");
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = program(Some("/nowhere/grundy-worker".into())).expect_err("there is none");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.to_string().contains("/nowhere/grundy-worker"), "{failure}");
    }

    #[tokio::test]
    async fn a_program_that_cannot_start_ends_the_work() {
        let mut workers = Workers::start(plan("/nowhere/grundy-worker", 2));
        let failure = workers.failed().await;
        assert!(failure.to_string().starts_with("cannot start /nowhere/grundy-worker"), "{failure}");
        workers.stop(Duration::from_secs(1)).await;
    }

    #[tokio::test]
    async fn a_program_that_refuses_its_flags_is_not_started_again() {
        // `ls` exits with 2 when it does not know an option.
        let mut workers = Workers::start(plan("/bin/ls", 1));
        let failure = workers.failed().await;
        assert_eq!(failure.exit, Exit::Failed);
        assert_eq!(failure.to_string(), "worker-1 refuses to start (exit code 2): its message is above");
    }
}
