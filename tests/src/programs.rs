//! Starting, watching and killing the programs.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for something that takes milliseconds to seconds, before it calls it a hang.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A program of the workspace, as built beside the running test.
///
/// # Panics
/// When it is not there: the tests are run by `tests/run.sh`, which builds it first.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/release/deps/test -> target/release/name
    let path = test.ancestors().nth(2).expect("tests live two folders below the programs").join(name);
    assert!(path.is_file(), "{} is missing: build the workspace first (tests/run.sh does)", path.display());
    path
}

/// What a finished command left behind.
#[derive(Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Output {
    /// Its exit code.
    ///
    /// # Panics
    /// When a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// The `summary` line of `--json`.
    ///
    /// # Panics
    /// When there is none.
    pub fn summary(&self) -> Value {
        let lines = self.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let summary = lines.rev().find(|line| line["message_type"] == "summary");
        summary.unwrap_or_else(|| panic!("no summary: {self:?}"))
    }
}

/// A running program. Killed when dropped, so that a failed test leaves nothing behind.
pub struct Running {
    child: Child,
    stdout: Option<std::thread::JoinHandle<String>>,
    stderr: Option<std::thread::JoinHandle<String>>,
}

/// Starts a program of the workspace, its output collected.
///
/// # Panics
/// When it cannot be started.
pub fn start<S: AsRef<OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = S>,
    directory: &Path,
) -> Running {
    let mut command = Command::new(program(name));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    start_command(command)
}

/// Starts any command, its output collected.
///
/// # Panics
/// When it cannot be started.
pub fn start_command(mut command: Command) -> Running {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    Running { child, stdout, stderr }
}

fn collect(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    ///
    /// # Panics
    /// When the system does not say.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("one's own child can be asked for").is_some()
    }

    /// Kills it as a power cut would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        signal_process(self.pid(), signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it takes longer than [`PATIENCE`].
    pub fn wait(self) -> Output {
        self.wait_for(PATIENCE)
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it takes longer.
    pub fn wait_for(mut self, patience: Duration) -> Output {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("one's own child can be asked for") {
                break status;
            }
            if start.elapsed() > patience {
                self.kill();
                let stderr = self.stderr.take().map(|reader| reader.join());
                panic!("still running after {patience:?}; stderr: {stderr:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let text = |reader: Option<std::thread::JoinHandle<String>>| {
            reader.map_or_else(String::new, |reader| reader.join().expect("a reader does not panic"))
        };
        Output { status, stdout: text(self.stdout.take()), stderr: text(self.stderr.take()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a process a signal; one that is gone already is fine.
pub fn signal_process(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Runs `grundy` to its end.
pub fn grundy<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, directory: &Path) -> Output {
    start("grundy", arguments, directory).wait()
}

/// Runs `grundy` with lines on stdin.
///
/// # Panics
/// When it cannot be started.
pub fn grundy_with_input(arguments: &[&str], input: String, directory: &Path) -> Output {
    let mut command = Command::new(program("grundy"));
    command.args(arguments).current_dir(directory).stdin(Stdio::piped());
    let mut running = start_command(command);
    let mut stdin = running.child.stdin.take().expect("it was piped");
    let writer = std::thread::spawn(move || {
        // A program that stops reading early is judged by its output.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    });
    let output = running.wait();
    writer.join().expect("a writer does not panic");
    output
}

/// A loopback address whose port was free a moment ago.
///
/// # Panics
/// When loopback has no free port.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address")
}

/// The processes whose parent is this one.
pub fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    // Children of other threads are listed with those; so all threads are asked.
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let files = tasks.map(|task| task.path().join("children"));
    let mut children: Vec<u32> = std::iter::once(PathBuf::from(path))
        .chain(files)
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect();
    children.sort_unstable();
    children.dedup();
    children
}

/// Waits until something holds.
///
/// # Panics
/// When it does not within [`PATIENCE`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A cluster: one coordinator and its workers, each with its data in a folder of its own.
pub struct Cluster {
    directory: PathBuf,
    /// Where the coordinator listens.
    pub address: SocketAddr,
    /// The coordinator, while it runs.
    pub coordinator: Option<Running>,
    /// The workers, while they run.
    pub workers: Vec<Option<Running>>,
    /// More arguments for `grundy serve`.
    pub serve_arguments: Vec<String>,
}

impl Cluster {
    /// Starts a coordinator and workers with their data below a folder.
    pub fn start(directory: &Path, workers: usize) -> Self {
        let mut cluster = Self {
            directory: directory.to_owned(),
            address: free_address(),
            coordinator: None,
            workers: (0..workers).map(|_| None).collect(),
            serve_arguments: Vec::new(),
        };
        cluster.start_coordinator();
        for worker in 0..workers {
            cluster.start_worker(worker);
        }
        cluster
    }

    /// Starts the coordinator on the cluster's address and data.
    pub fn start_coordinator(&mut self) {
        let address = self.address.to_string();
        let mut arguments = vec!["serve", "--listen", &address, "--data", "coordinator"];
        arguments.extend(self.serve_arguments.iter().map(String::as_str));
        self.coordinator = Some(start("grundy", arguments, &self.directory));
    }

    /// Starts a worker on its data.
    pub fn start_worker(&mut self, worker: usize) {
        let (address, name) = (self.address.to_string(), format!("worker-{worker}"));
        let arguments = [
            "--coordinator",
            &address,
            "--data",
            &name,
            "--name",
            &name,
            "--threads",
            "1",
            "--memory",
            "128MiB",
        ];
        self.workers[worker] = Some(start("grundy-worker", arguments, &self.directory));
    }

    /// Kills the coordinator.
    pub fn kill_coordinator(&mut self) {
        if let Some(mut coordinator) = self.coordinator.take() {
            coordinator.kill();
        }
    }

    /// Kills a worker.
    pub fn kill_worker(&mut self, worker: usize) {
        if let Some(mut worker) = self.workers[worker].take() {
            worker.kill();
        }
    }

    /// Kills everything at once.
    pub fn kill_all(&mut self) {
        self.kill_coordinator();
        for worker in 0..self.workers.len() {
            self.kill_worker(worker);
        }
    }

    /// Runs a client command against the coordinator until it is reached.
    ///
    /// # Panics
    /// When the coordinator is not reached within [`PATIENCE`].
    pub fn client(&self, arguments: &[&str]) -> Output {
        const UNREACHABLE: i32 = 4;
        let address = self.address.to_string();
        let start = Instant::now();
        loop {
            let output =
                grundy(arguments.iter().copied().chain(["--coordinator", &address]), &self.directory);
            if output.status.code() != Some(UNREACHABLE) {
                return output;
            }
            assert!(start.elapsed() < PATIENCE, "the coordinator is not reached: {output:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Submits a problem and returns its job's number.
    ///
    /// # Panics
    /// When it is refused.
    pub fn submit(&self, problem: &[&str]) -> u64 {
        let output = self.client(&[&["submit"], problem, &["--json"]].concat());
        let line = output.stdout.lines().last().unwrap_or_else(|| panic!("no job: {output:?}"));
        let job: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        job["job"].as_u64().unwrap_or_else(|| panic!("no job: {output:?}"))
    }

    /// A job as it stands.
    ///
    /// # Panics
    /// When the coordinator does not know it.
    pub fn status(&self, job: u64) -> Value {
        let output = self.client(&["status", &job.to_string(), "--json"]);
        let lines = output.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found = lines.rev().find(|line| line["job"].as_u64() == Some(job));
        found.unwrap_or_else(|| panic!("no job {job}: {output:?}"))
    }

    /// Waits until the job is solved, and returns it.
    ///
    /// # Panics
    /// When it fails, or is not solved within [`PATIENCE`].
    pub fn wait_solved(&self, job: u64) -> Value {
        let start = Instant::now();
        loop {
            let status = self.status(job);
            match status["status"].as_str() {
                Some("solved") => return status,
                Some("failed") => panic!("{status}"),
                _ => assert!(start.elapsed() < PATIENCE, "not solved in time: {status}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
