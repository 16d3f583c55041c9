//! A coordinator that does what a test tells it, on a real port, and writes down what it is told.

#![allow(dead_code, reason = "each test file uses a part of it")]

use grundy_games::claim::{Claim, ClaimError, Edge, Fact, Polarity, Subject};
use grundy_games::problem::Fields;
use grundy_proto::v1;
use grundy_proto::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use grundy_search::cram::tables::BuiltTables;
use grundy_search::engine::{Child, Engine, EngineTables, Limits, Outcome, Verdict, engine_for};
use grundy_search::numbers::Numbers;
use grundy_search::samples::Samples;
use grundy_search::table::{Entry, Key, Known, Namespace, Table};
use grundy_worker::{Drain, EngineFactory, Exit, Options, WorkerError, run_with};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

pub type Check = Result<(), Box<dyn std::error::Error>>;

/// The longest a test waits for something that should take milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What the coordinator is to do, and what it was told.
#[derive(Default)]
pub struct Script {
    pub epoch: u64,
    pub registered: bool,
    pub superseded: bool,
    /// Handed out, one a Lease call.
    pub assignments: VecDeque<v1::Assignment>,
    /// Sent with the next heartbeat.
    pub heartbeat: Option<v1::HeartbeatResponse>,
    /// Results to refuse with UNAVAILABLE before one is taken.
    pub complete_failures: u32,
    /// Sent, one after the other, to whoever calls Exchange.
    pub hear: VecDeque<v1::ExchangeResponse>,
    /// What came with such calls.
    pub told: Vec<v1::Told>,
    /// Runs for FetchRuns.
    pub runs: Vec<Vec<u8>>,
    pub registers: Vec<v1::RegisterRequest>,
    pub leases: Vec<v1::LeaseRequest>,
    pub heartbeats: Vec<v1::HeartbeatRequest>,
    pub completes: Vec<v1::CompleteRequest>,
    pub complete_attempts: u32,
    pub releases: Vec<v1::ReleaseRequest>,
    /// With how many heartbeats came before each.
    pub unregisters: Vec<(usize, v1::UnregisterRequest)>,
    pub parts: Vec<(v1::PartResult, Vec<Vec<u8>>)>,
}

#[derive(Clone)]
struct Service(Arc<Mutex<Script>>);

impl Service {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, session: Option<&v1::Session>) -> Result<MutexGuard<'_, Script>, Status> {
        let session = session.ok_or_else(|| Status::invalid_argument("field session is missing"))?;
        let script = self.script();
        if script.superseded {
            return Err(Status::aborted("a newer run took the name"));
        }
        if !script.registered || session.epoch != script.epoch {
            return Err(Status::failed_precondition("register first"));
        }
        Ok(script)
    }
}

type ExchangeStream = ReceiverStream<Result<v1::ExchangeResponse, Status>>;
type RunStream = tokio_stream::Iter<std::vec::IntoIter<Result<v1::RunChunk, Status>>>;

#[tonic::async_trait]
impl WorkerService for Service {
    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterResponse>, Status> {
        let mut script = self.script();
        script.registered = true;
        script.registers.push(request.into_inner());
        let epoch = script.epoch;
        Ok(Response::new(v1::RegisterResponse { epoch, lease_ms: 2000, heartbeat_ms: 50 }))
    }

    async fn lease(&self, request: Request<v1::LeaseRequest>) -> Result<Response<v1::LeaseResponse>, Status> {
        use v1::lease_response::Outcome;
        let request = request.into_inner();
        let mut script = self.admit(request.session.as_ref())?;
        script.leases.push(request);
        let outcome = match script.assignments.pop_front() {
            Some(assignment) => Outcome::Assignment(assignment),
            None => Outcome::Idle(v1::Idle { retry_after_ms: 20 }),
        };
        Ok(Response::new(v1::LeaseResponse { outcome: Some(outcome) }))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let request = request.into_inner();
        let mut script = self.admit(request.session.as_ref())?;
        script.heartbeats.push(request);
        Ok(Response::new(script.heartbeat.take().unwrap_or_default()))
    }

    async fn complete(
        &self,
        request: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        let mut script = self.script();
        script.complete_attempts += 1;
        if script.complete_failures > 0 {
            script.complete_failures -= 1;
            return Err(Status::unavailable("as told"));
        }
        script.completes.push(request.into_inner());
        Ok(Response::new(v1::CompleteResponse { acceptance: v1::Acceptance::Accepted.into() }))
    }

    async fn complete_part(
        &self,
        request: Request<Streaming<v1::CompletePartRequest>>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        use v1::complete_part_request::Message;
        let mut messages = request.into_inner();
        let (mut header, mut runs) = (None, Vec::new());
        let mut run = Vec::new();
        while let Some(message) = messages.next().await {
            match message?.message {
                Some(Message::Result(result)) => header = Some(result),
                Some(Message::Chunk(chunk)) => {
                    run.extend_from_slice(&chunk.data);
                    if chunk.last {
                        if crc32c::crc32c(&run) != chunk.crc32c {
                            return Err(Status::invalid_argument("checksum"));
                        }
                        runs.push(std::mem::take(&mut run));
                    }
                }
                None => return Err(Status::invalid_argument("an empty message")),
            }
        }
        let header = header.ok_or_else(|| Status::invalid_argument("no header"))?;
        self.script().parts.push((header, runs));
        Ok(Response::new(v1::CompleteResponse { acceptance: v1::Acceptance::Accepted.into() }))
    }

    type ExchangeStream = ExchangeStream;
    type FetchRunsStream = RunStream;

    async fn fetch_runs(
        &self,
        request: Request<v1::FetchRunsRequest>,
    ) -> Result<Response<RunStream>, Status> {
        let request = request.into_inner();
        let runs = self.admit(request.session.as_ref())?.runs.clone();
        let chunks: Vec<_> = runs
            .into_iter()
            .enumerate()
            .map(|(run, data)| {
                let crc32c = crc32c::crc32c(&data);
                Ok(v1::RunChunk { run: run as u32, data, last: true, crc32c })
            })
            .collect();
        Ok(Response::new(tokio_stream::iter(chunks)))
    }

    async fn exchange(
        &self,
        request: Request<Streaming<v1::ExchangeRequest>>,
    ) -> Result<Response<ExchangeStream>, Status> {
        use v1::exchange_request::Message;
        let mut messages = request.into_inner();
        let first = messages.message().await?.and_then(|request| request.message);
        let Some(Message::Session(session)) = first else {
            return Err(Status::invalid_argument("the session comes first"));
        };
        drop(self.admit(Some(&session))?);
        let service = self.clone();
        tokio::spawn(async move {
            while let Ok(Some(request)) = messages.message().await {
                if let Some(Message::Told(told)) = request.message {
                    service.script().told.push(told);
                }
            }
        });
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            while !sender.is_closed() {
                let next = service.script().hear.pop_front();
                match next {
                    Some(response) => drop(sender.send(Ok(response)).await),
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseResponse>, Status> {
        let request = request.into_inner();
        self.admit(request.session.as_ref())?.releases.push(request);
        Ok(Response::new(v1::ReleaseResponse {}))
    }

    async fn unregister(
        &self,
        request: Request<v1::UnregisterRequest>,
    ) -> Result<Response<v1::UnregisterResponse>, Status> {
        let request = request.into_inner();
        let mut script = self.admit(request.session.as_ref())?;
        let heartbeats = script.heartbeats.len();
        script.unregisters.push((heartbeats, request));
        Ok(Response::new(v1::UnregisterResponse {}))
    }
}

/// A coordinator that can be stopped and started again on its port.
pub struct Coordinator {
    service: Service,
    runtime: Option<Runtime>,
    pub address: SocketAddr,
}

impl Coordinator {
    pub fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let service = Service(Arc::default());
        let mut coordinator = Self { service, runtime: None, address };
        coordinator.restart()?;
        Ok(coordinator)
    }

    /// Cuts all connections.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }

    /// Begins the next epoch.
    pub fn restart(&mut self) -> Check {
        self.stop();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(self.address))?;
        {
            let mut script = self.service.script();
            script.epoch += 1;
            script.registered = false;
        }
        let server = tonic::transport::Server::builder()
            .add_service(WorkerServiceServer::new(self.service.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(server);
        self.runtime = Some(runtime);
        Ok(())
    }

    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.service.script()
    }

    /// Waits until the script holds what `found` looks for.
    pub fn wait<T>(&self, what: &str, mut found: impl FnMut(&mut Script) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(&mut self.script()) {
                return found;
            }
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A worker on threads of this process.
pub struct Worker {
    pub drain: Arc<Drain>,
    thread: JoinHandle<Result<Exit, WorkerError>>,
}

impl Worker {
    pub fn start(coordinator: &Coordinator, data: &Path, engines: Arc<EngineFactory>) -> Self {
        Self::with_threads(1, coordinator, data, engines)
    }

    pub fn with_threads(
        threads: u32,
        coordinator: &Coordinator,
        data: &Path,
        engines: Arc<EngineFactory>,
    ) -> Self {
        let options = Options {
            coordinator: format!("http://{}", coordinator.address),
            data: data.to_owned(),
            name: "tested".to_owned(),
            threads,
            memory: 16 << 20,
            endgame: data.join("endgame"),
            endgame_memory: None,
            engine_memory: None,
            endgame_seeds: None,
            give_up_after: None,
        };
        let drain = Arc::new(Drain::default());
        let own = Arc::clone(&drain);
        Self { drain, thread: std::thread::spawn(move || run_with(&options, &own, |_| engines)) }
    }

    pub fn join(self) -> Result<Exit, WorkerError> {
        self.thread.join().expect("the worker's thread does not panic")
    }

    pub fn finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// The engines as the program has them, with small shared tables.
pub fn engines() -> Arc<EngineFactory> {
    let strip_tables: Arc<dyn EngineTables> = Arc::new(BuiltTables::new(1 << 20));
    Arc::new(move |problem, namespace, table| engine_for(problem, namespace, table, &strip_tables))
}

/// What [`actor`] does with a claim, by its parameter.
pub mod role {
    /// Decides it true with few nodes.
    pub const CHEAP: i16 = 0;
    /// Searches until it is stopped.
    pub const ENDLESS: i16 = 1;
    /// Panics.
    pub const PANIC: i16 = 2;
    /// Decides it false with very many nodes.
    pub const COSTLY: i16 = 3;
    /// Refuses it.
    pub const MALFORMED: i16 = 4;
    /// Decides it true, after storing both truths of one key in the table.
    pub const CONTRADICT: i16 = 5;
}

/// The numbers an endless search has come to.
pub const OPEN: Numbers = Numbers { proof: 5, disproof: 7 };

struct Actor {
    namespace: Namespace,
    table: Arc<dyn Table>,
    learned: Arc<Mutex<Vec<Fact>>>,
}

impl Engine for Actor {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        let outcome =
            |verdict, nodes| Ok(Outcome { verdict, nodes, facts: Vec::new(), samples: Samples::default() });
        match claim.parameter {
            role::CHEAP => outcome(Verdict::Decided(true), 10),
            role::ENDLESS => {
                let mut nodes = 0;
                while !limits.stopped() {
                    nodes += 1;
                    limits.progress.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(1));
                }
                let edge = Edge { polarity: Polarity::Same, claim: claim.clone() };
                outcome(Verdict::Open { numbers: OPEN, children: vec![Child { edge, numbers: OPEN }] }, nodes)
            }
            role::PANIC => panic!("as the claim asks"),
            role::COSTLY => outcome(Verdict::Decided(false), 1 << 30),
            role::CONTRADICT => {
                let key = Key::new([1, 2], 3, self.namespace);
                for truth in [true, false] {
                    let known = Known::Numbers(Numbers::decided(truth));
                    self.table.store(&key, Entry { known, work: 1 << 20 });
                }
                outcome(Verdict::Decided(true), 10)
            }
            _ => Err(ClaimError::Malformed { game: "actor", reason: "as the claim asks".into() }),
        }
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).push(fact.clone());
        Ok(())
    }
}

/// Engines that play the [`role`] a claim names, and write down the facts they learn.
pub fn actor(learned: &Arc<Mutex<Vec<Fact>>>) -> Arc<EngineFactory> {
    let learned = Arc::clone(learned);
    Arc::new(move |_, namespace, table| {
        let learned = Arc::clone(&learned);
        Some(Box::new(Actor { namespace, table, learned }))
    })
}

pub fn cram() -> Fields {
    let text = |text: &str| text.to_owned();
    Fields { game: text("cram"), rules: text(""), position: text("...|..."), question: text("nimber") }
}

pub fn claim(parameter: i16) -> Claim {
    Claim { subject: Subject::new(vec![1, 2, 3]).expect("three bytes"), parameter }
}

pub fn assignment(lease: u64, fields: &Fields, claim: &Claim) -> v1::Assignment {
    let (budget_nodes, report_work_min) = (1 << 40, 1 << 40);
    let task =
        v1::ClaimTask { claim: Some(claim.into()), budget_nodes, report_work_min, ..Default::default() };
    v1::Assignment {
        lease,
        job: 1,
        problem: Some(fields.into()),
        facts: None,
        task: Some(v1::assignment::Task::Claim(task)),
    }
}
