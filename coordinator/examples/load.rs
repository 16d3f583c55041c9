//! A coordinator under load: `cargo run --release --example load -- --workers 1024 --cycles-per-second 2000 --seconds 30`.
//!
//! The coordinator is the real one, `grundy serve` with its store on disk, in a process of its own; the load comes over loopback from
//! workers that search nothing. Each has a connection of its own, holds a lease at any time as if it searched, hands in what the rules
//! alone say of its claim (open, with its moves), takes the next one, and sends a heartbeat each second. So the graph grows as
//! it does in a job, and what workers search is all that is missing.
//!
//! Of Linux it needs `/proc`, and of the shell a limit of open files above the number of workers.

use anyhow::{Context, anyhow, bail};
use clap::Parser;
use grundy_games::claim::{Claim, ClaimRules, Expansion};
use grundy_games::konane::{KonaneClaims, Position, Problem, Question, Side, Start};
use grundy_proto::v1::grundy_service_client::GrundyServiceClient;
use grundy_proto::v1::worker_service_client::WorkerServiceClient;
use grundy_proto::{PROTOCOL_VERSION, convert, v1};
use grundy_search::numbers::Numbers;
use hdrhistogram::Histogram;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until};
use tonic::transport::{Channel, Endpoint};

/// How long a Lease call may wait for a task.
const WAIT_MS: u64 = 10_000;

/// How many workers connect at a time.
const CONNECTING: usize = 32;

/// Clock ticks a second in `/proc/PID/stat`: the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Puts a coordinator under load and says what it took
#[derive(Parser)]
struct Args {
    /// Workers, each with a connection of its own
    #[arg(long, default_value_t = 1024)]
    workers: u32,
    /// Results a second, of all workers together
    #[arg(long, default_value_t = 2000)]
    cycles_per_second: u32,
    /// Seconds that are measured
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Seconds before that, in which the graph grows until there is a leaf for everybody
    #[arg(long, default_value_t = 10)]
    warm_up: u64,
    /// Nodes that each result says it took, instead of its task's budget: from 1,600,000 on, every result is split
    #[arg(long)]
    nodes: Option<u64>,
    /// Side of Konane's board
    #[arg(long, default_value_t = 8)]
    side: usize,
    /// The coordinator's data directory: kept, where it is named
    #[arg(long)]
    data: Option<PathBuf>,
}

/// What all workers share.
struct Load {
    rules: KonaneClaims,
    nodes: Option<u64>,
    measuring: AtomicBool,
    stopping: AtomicBool,
    cycles: AtomicU64,
    idle: AtomicU64,
    refused: AtomicU64,
    lease: Latency,
    complete: Latency,
    heartbeat: Latency,
    late: Latency,
}

/// Microseconds, up to a minute.
struct Latency(Mutex<Histogram<u64>>);

impl Latency {
    fn new() -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self(Mutex::new(Histogram::new_with_bounds(1, 60_000_000, 3)?)))
    }

    fn note(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(micros);
    }

    fn print(&self, what: &str) {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = |micros: u64| micros as f64 / 1000.0;
        println!(
            "{what:<22} {:>8} p50 {:>8.2} ms  p99 {:>8.2} ms  max {:>8.2} ms",
            histogram.len(),
            ms(histogram.value_at_quantile(0.5)),
            ms(histogram.value_at_quantile(0.99)),
            ms(histogram.max())
        );
    }
}

/// What the system says of a process.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu_seconds: f64,
    resident: u64,
    resident_max: u64,
    written: u64,
}

impl Usage {
    fn of(process: &str) -> anyhow::Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{process}/{file}");
            std::fs::read_to_string(&path).with_context(|| path)
        };
        let number = |text: &str, name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let stat = read("stat")?;
        // The name, in parentheses, may hold anything.
        let (_, fields) = stat.rsplit_once(')').ok_or_else(|| anyhow!("/proc/{process}/stat has no name"))?;
        let ticks: u64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
        let status = read("status")?;
        Ok(Self {
            cpu_seconds: ticks as f64 / TICKS_PER_SECOND,
            resident: number(&status, "VmRSS:").unwrap_or(0) * 1024,
            resident_max: number(&status, "VmHWM:").unwrap_or(0) * 1024,
            written: number(&read("io")?, "write_bytes:").unwrap_or(0),
        })
    }
}

/// Bytes of all files in a directory and below.
fn size(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // A file that is gone in the meantime has no size.
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path())?,
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
    }
    Ok(bytes)
}

type Held = Arc<Mutex<Option<(v1::LeaseProgress, Vec<v1::FactCursor>)>>>;

/// A worker that searches nothing.
struct Worker {
    load: Arc<Load>,
    client: WorkerServiceClient<Channel>,
    session: v1::Session,
    held: Held,
    cursors: Vec<v1::FactCursor>,
}

impl Worker {
    async fn register(load: Arc<Load>, endpoint: Endpoint, index: u32) -> anyhow::Result<(Self, Duration)> {
        let mut client = WorkerServiceClient::new(endpoint.connect().await?);
        let (worker, incarnation) = (format!("host-{:03}/{}", index / 8, index % 8), u64::from(index) + 1);
        let registered = client
            .register(v1::RegisterRequest {
                protocol_version: PROTOCOL_VERSION,
                worker: worker.clone(),
                incarnation,
                threads: 1,
                program_version: env!("CARGO_PKG_VERSION").to_owned(),
            })
            .await?
            .into_inner();
        let session = v1::Session { epoch: registered.epoch, worker, incarnation };
        let worker = Self { load, client, session, held: Held::default(), cursors: Vec::new() };
        Ok((worker, Duration::from_millis(registered.heartbeat_ms)))
    }

    fn measures(&self, latency: &Latency, start: Instant) {
        if self.load.measuring.load(Ordering::Relaxed) {
            latency.note(start.elapsed());
        }
    }

    /// Takes a task, waiting for one.
    async fn lease(&mut self) -> anyhow::Result<Option<v1::Assignment>> {
        let request = v1::LeaseRequest {
            session: Some(self.session.clone()),
            wait_ms: WAIT_MS,
            cursors: self.cursors.clone(),
        };
        let start = Instant::now();
        let outcome = self.client.lease(request).await?.into_inner().outcome;
        let Some(v1::lease_response::Outcome::Assignment(assignment)) = outcome else {
            self.load.idle.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        };
        self.measures(&self.load.lease, start);
        let Some(v1::assignment::Task::Claim(task)) = &assignment.task else { bail!("a task of a count") };
        let progress = v1::LeaseProgress {
            lease: assignment.lease,
            epoch: self.session.epoch,
            job: assignment.job,
            task: task.claim.clone().map(v1::lease_progress::Task::Claim),
            nodes: task.budget_nodes / 2,
        };
        let next = assignment.facts.as_ref().map_or(0, |facts| facts.next);
        self.cursors = vec![v1::FactCursor { job: assignment.job, next }];
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some((progress, self.cursors.clone()));
        Ok(Some(assignment))
    }

    /// What the rules alone say of a claim: decided where the game is over at most a move on, or else open.
    fn verdict(&self, claim: &Claim) -> anyhow::Result<v1::complete_request::Verdict> {
        let rules = &self.load.rules;
        let edges = match rules.expand(claim)? {
            Expansion::Decided(truth) => return Ok(v1::complete_request::Verdict::Decided(truth)),
            Expansion::Open(edges) => edges,
        };
        let mut children = Vec::with_capacity(edges.len());
        for edge in &edges {
            match rules.decided(&edge.claim)? {
                Some(truth) if edge.polarity.supports(truth) => {
                    return Ok(v1::complete_request::Verdict::Decided(true));
                }
                Some(_) => {}
                None => children.push((edge, (Numbers::UNKNOWN.proof, Numbers::UNKNOWN.disproof))),
            }
        }
        if children.is_empty() {
            return Ok(v1::complete_request::Verdict::Decided(false));
        }
        let own = (1, u32::try_from(children.len())?);
        Ok(v1::complete_request::Verdict::Open(convert::open_to_wire(own, children)))
    }

    /// Hands in what came of a task.
    async fn complete(&mut self, assignment: v1::Assignment) -> anyhow::Result<()> {
        let Some(v1::assignment::Task::Claim(task)) = assignment.task else { bail!("a task of a count") };
        let claim: Claim = convert::required(task.claim, "claim")?.try_into()?;
        let request = v1::CompleteRequest {
            session: Some(self.session.clone()),
            lease: assignment.lease,
            lease_epoch: self.session.epoch,
            job: assignment.job,
            verdict: Some(self.verdict(&claim)?),
            claim: Some((&claim).into()),
            nodes: self.load.nodes.unwrap_or(task.budget_nodes),
            facts: Vec::new(),
            samples: Vec::new(),
        };
        let start = Instant::now();
        let response = self.client.complete(request).await?.into_inner();
        self.measures(&self.load.complete, start);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if response.acceptance() != v1::Acceptance::Accepted {
            self.load.refused.fetch_add(1, Ordering::Relaxed);
        }
        if self.load.measuring.load(Ordering::Relaxed) {
            self.load.cycles.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Cycles: holds each task until the next is due, and takes up what it is late with.
    async fn work(mut self, first: Instant, period: Duration) -> anyhow::Result<()> {
        let mut due = interval_at(first, period);
        // The wait while there were too few leaves is nothing to make up for, and moves nobody out of its place among the others.
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut assignment = None;
        while !self.load.stopping.load(Ordering::Relaxed) {
            let at = due.tick().await;
            if self.load.measuring.load(Ordering::Relaxed) {
                due.set_missed_tick_behavior(MissedTickBehavior::Burst);
            }
            self.measures(&self.load.late, at);
            if let Some(assignment) = assignment.take() {
                self.complete(assignment).await?;
            }
            assignment = self.lease().await?;
        }
        Ok(())
    }

    /// Heartbeats on the same connection.
    async fn beat(
        load: Arc<Load>,
        mut client: WorkerServiceClient<Channel>,
        session: v1::Session,
        held: Held,
        first: Instant,
        period: Duration,
    ) -> anyhow::Result<()> {
        let mut due = interval_at(first, period);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !load.stopping.load(Ordering::Relaxed) {
            due.tick().await;
            let now = held.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (leases, cursors) =
                now.map_or_else(Default::default, |(lease, cursors)| (vec![lease], cursors));
            let request = v1::HeartbeatRequest { session: Some(session.clone()), leases, cursors };
            let start = Instant::now();
            client.heartbeat(request).await?;
            if load.measuring.load(Ordering::Relaxed) {
                load.heartbeat.note(start.elapsed());
            }
        }
        Ok(())
    }
}

/// The coordinator in a process of its own, and where it listens.
async fn coordinator(data: &Path) -> anyhow::Result<(Child, String)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        // A thousand registrations are nothing to read.
        .env("GRUNDY_LOG", std::env::var_os("GRUNDY_LOG").unwrap_or_else(|| "warn".into()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().context("the coordinator has no output")?;
    let line = BufReader::new(stdout).lines().next_line().await?.unwrap_or_default();
    let address = line.strip_prefix("listening on ").context("the coordinator does not listen")?;
    Ok((child, format!("http://{address}")))
}

async fn run(args: Args) -> anyhow::Result<()> {
    let position = Position::start(args.side, args.side, Start::Center, Side::Black)?;
    let problem = Problem { position, question: Question::Winner };
    let load = Arc::new(Load {
        rules: problem.claims(),
        nodes: args.nodes,
        measuring: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        cycles: AtomicU64::new(0),
        idle: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        lease: Latency::new()?,
        complete: Latency::new()?,
        heartbeat: Latency::new()?,
        late: Latency::new()?,
    });
    let scratch = tempfile::tempdir()?;
    let data = args.data.unwrap_or_else(|| scratch.path().join("data"));
    let (mut child, address) = coordinator(&data).await?;
    let process = child.id().context("the coordinator has ended")?.to_string();
    let endpoint = Endpoint::from_shared(address)?.tcp_nodelay(true);
    let mut user = GrundyServiceClient::new(endpoint.connect().await?);
    let submit = v1::SubmitRequest { problem: Some((&problem.to_fields()).into()) };
    let job = user.submit(submit).await?.into_inner().job;

    let mut workers = Vec::new();
    let indices: Vec<u32> = (0..args.workers).collect();
    for indices in indices.chunks(CONNECTING) {
        let connecting: Vec<_> = indices
            .iter()
            .map(|&index| tokio::spawn(Worker::register(Arc::clone(&load), endpoint.clone(), index)))
            .collect();
        for worker in connecting {
            workers.push(worker.await??);
        }
    }
    let start = Instant::now();
    let period = Duration::from_secs(1) * args.workers / args.cycles_per_second.max(1);
    let mut tasks = Vec::new();
    for (index, (worker, heartbeat)) in (0u32..).zip(workers) {
        // Evenly spread, as machines that know nothing of each other are.
        let spread = |period: Duration| start + period * index / args.workers;
        let (client, session) = (worker.client.clone(), worker.session.clone());
        let (load, held) = (Arc::clone(&load), Arc::clone(&worker.held));
        let beat = Worker::beat(load, client, session, held, spread(heartbeat), heartbeat);
        tasks.push(tokio::spawn(beat));
        tasks.push(tokio::spawn(worker.work(spread(period), period)));
    }

    sleep_until(start + Duration::from_secs(args.warm_up)).await;
    let (before, own_before, store_before) = (Usage::of(&process)?, Usage::of("self")?, size(&data)?);
    load.idle.store(0, Ordering::Relaxed);
    load.measuring.store(true, Ordering::Relaxed);
    let measured = Instant::now();
    sleep(Duration::from_secs(args.seconds)).await;
    load.measuring.store(false, Ordering::Relaxed);
    let seconds = measured.elapsed().as_secs_f64();
    let (after, own_after, store_after) = (Usage::of(&process)?, Usage::of("self")?, size(&data)?);
    let view = user.get(v1::GetRequest { job }).await?.into_inner().view.context("no view of the job")?;
    load.stopping.store(true, Ordering::Relaxed);
    for task in tasks {
        // A worker that failed says why; those that still wait for a task need not be waited for.
        if task.is_finished() {
            task.await??;
        } else {
            task.abort();
        }
    }
    child.kill().await?;

    let statistics = view.statistics.unwrap_or_default();
    let cycles = load.cycles.load(Ordering::Relaxed);
    let count = cycles.max(1) as f64;
    println!(
        "{:<22} {:>8.1} of {} a second, {} workers, {seconds:.1} s",
        "cycles",
        cycles as f64 / seconds,
        args.cycles_per_second,
        args.workers
    );
    load.lease.print("lease");
    load.complete.print("complete");
    load.heartbeat.print("heartbeat");
    load.late.print("begun late");
    println!(
        "{:<22} {:>8} idle, {} not accepted",
        "answers",
        load.idle.load(Ordering::Relaxed),
        load.refused.load(Ordering::Relaxed)
    );
    println!(
        "{:<22} {:>8} open or decided, {} leases in flight",
        "claims", statistics.total, statistics.leases_open
    );
    println!(
        "{:<22} {:>8.1} MiB resident in the end, {:.1} at most",
        "coordinator's memory",
        after.resident as f64 / f64::from(1 << 20),
        after.resident_max as f64 / f64::from(1 << 20)
    );
    let cpu = |after: Usage, before: Usage| (after.cpu_seconds - before.cpu_seconds) / seconds;
    println!(
        "{:<22} {:>8.2} cores the coordinator, {:.2} the workers",
        "CPU",
        cpu(after, before),
        cpu(own_after, own_before)
    );
    println!(
        "{:<22} {:>8.0} bytes a result on disk, {:.0} written",
        "store",
        store_after.saturating_sub(store_before) as f64 / count,
        after.written.saturating_sub(before.written) as f64 / count
    );
    Ok(())
}

fn main() -> ExitCode {
    // The coordinator's process is this program too: nothing else has to be built and found.
    if std::env::args_os().nth(1).is_some_and(|command| command == "serve") {
        return grundy::cli::run(std::env::args_os());
    }
    let run = || tokio::runtime::Runtime::new()?.block_on(run(Args::parse()));
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
