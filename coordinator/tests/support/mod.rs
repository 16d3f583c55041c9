//! A coordinator on loopback over storage in memory, and a worker of a few lines that speaks the protocol.

use grundy::actor::{self, Handle};
use grundy::core::Options;
use grundy::server::{self, Server};
use grundy_games::claim::Claim;
use grundy_games::problem::{Approach, Fields, Problem};
use grundy_proto::v1::grundy_service_client::GrundyServiceClient;
use grundy_proto::v1::worker_service_client::WorkerServiceClient;
use grundy_proto::{PROTOCOL_VERSION, convert, limits, v1};
use grundy_search::cram::tables::BuiltTables;
use grundy_search::engine::{EngineTables, Limits, Verdict, engine_for};
use grundy_search::peg::{self, Counter, encode_run};
use grundy_search::table::Namespace;
use grundy_tables::{JobStorage, RamTable};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tonic::Status;
use tonic::transport::Channel;

pub type TestResult = Result<(), Box<dyn Error>>;

/// A running coordinator.
pub struct Coordinator {
    pub server: Server,
    pub handle: Handle,
}

impl Coordinator {
    pub async fn start(storage: Arc<dyn JobStorage>) -> Result<Self, Box<dyn Error>> {
        let loaded = storage.load()?;
        let handle = actor::spawn(storage, loaded, Options::default())?;
        let server = Server::start(handle.clone(), server::listen("127.0.0.1:0").await?).await?;
        Ok(Self { server, handle })
    }

    pub async fn channel(&self) -> Result<Channel, tonic::transport::Error> {
        Channel::from_shared(format!("http://{}", self.server.address()))
            .expect("an address is a URI")
            .connect()
            .await
    }

    pub async fn user(&self) -> Result<GrundyServiceClient<Channel>, tonic::transport::Error> {
        Ok(GrundyServiceClient::new(self.channel().await?))
    }

    pub async fn worker(&self, name: &str) -> Result<Worker, Box<dyn Error>> {
        let mut client = WorkerServiceClient::new(self.channel().await?);
        let registered = client.register(registration(name)).await?.into_inner();
        let session = v1::Session { epoch: registered.epoch, worker: name.to_owned(), incarnation: 7 };
        Ok(Worker { client, session })
    }
}

pub fn registration(name: &str) -> v1::RegisterRequest {
    v1::RegisterRequest {
        protocol_version: PROTOCOL_VERSION,
        worker: name.to_owned(),
        incarnation: 7,
        threads: 1,
        program_version: "test".to_owned(),
    }
}

pub fn problem(game: &str, position: &str, question: &str) -> Option<v1::Problem> {
    let [game, position, question] = [game, position, question].map(str::to_owned);
    Some(v1::Problem { game, rules: String::new(), position, question })
}

/// A worker without threads, spool or retries.
pub struct Worker {
    pub client: WorkerServiceClient<Channel>,
    pub session: v1::Session,
}

impl Worker {
    pub async fn lease(&mut self, wait_ms: u64) -> Result<Option<v1::lease_response::Outcome>, Status> {
        let request = v1::LeaseRequest { session: Some(self.session.clone()), wait_ms, cursors: vec![] };
        Ok(self.client.lease(request).await?.into_inner().outcome)
    }

    /// Leases and works until there is nothing to do for `wait_ms`; says how many results were accepted.
    pub async fn work(&mut self, wait_ms: u64) -> Result<usize, Box<dyn Error>> {
        let mut accepted = 0;
        while let Some(v1::lease_response::Outcome::Assignment(assignment)) = self.lease(wait_ms).await? {
            let response = match assignment.task.clone().ok_or("an assignment has a task")? {
                v1::assignment::Task::Claim(task) => {
                    let request = self.decide(&assignment, task)?;
                    self.client.complete(request).await?.into_inner()
                }
                v1::assignment::Task::Part(task) => {
                    let messages = self.count(&assignment, task).await?;
                    self.client.complete_part(tokio_stream::iter(messages)).await?.into_inner()
                }
            };
            accepted += usize::from(response.acceptance() == v1::Acceptance::Accepted);
        }
        Ok(accepted)
    }

    pub fn decide(
        &self,
        assignment: &v1::Assignment,
        task: v1::ClaimTask,
    ) -> Result<v1::CompleteRequest, Box<dyn Error>> {
        let problem = problem_of(assignment)?;
        let strip_tables: Arc<dyn EngineTables> = Arc::new(BuiltTables::new(1 << 16));
        let mut engine =
            engine_for(&problem, Namespace(0), Arc::new(RamTable::with_bytes(1 << 20)?), &strip_tables)
                .ok_or("an engine")?;
        let claim: Claim = task.claim.clone().ok_or("a task has a claim")?.try_into()?;
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let limits = Limits::endless(&stop, &progress);
        let outcome = engine.decide(&claim, &limits)?;
        let Verdict::Decided(truth) = outcome.verdict else {
            return Err("not decided without a budget".into());
        };
        Ok(v1::CompleteRequest {
            session: Some(self.session.clone()),
            lease: assignment.lease,
            lease_epoch: self.session.epoch,
            job: assignment.job,
            claim: task.claim,
            verdict: Some(v1::complete_request::Verdict::Decided(truth)),
            nodes: outcome.nodes,
            facts: vec![],
            samples: vec![],
        })
    }

    /// Works on a part of a count, and says what to send.
    pub async fn count(
        &mut self,
        assignment: &v1::Assignment,
        task: v1::PartTask,
    ) -> Result<Vec<v1::CompletePartRequest>, Box<dyn Error>> {
        let problem = problem_of(assignment)?;
        let Approach::Counting(problem) = problem.approach() else {
            return Err("a part of what is not counted".into());
        };
        let counter = Counter::new(problem);
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let limits = Limits::endless(&stop, &progress);
        let mut runs = self.fetch(assignment.job, task.stage, task.part).await?;
        let join = runs.split_off(task.inputs as usize);
        assert_eq!(join.len(), task.join_inputs as usize);
        let decode = |runs: Vec<Vec<u8>>| {
            runs.iter().map(|bytes| counter.decode_run(bytes)).collect::<Result<Vec<_>, _>>()
        };
        let entries = if task.stage == 0 { counter.first() } else { peg::merge(decode(runs)?)? };
        let (mut outputs, mut shares) = (Vec::new(), Vec::new());
        if task.parts_next > 0 {
            outputs = counter.expand(&entries, task.parts_next, &limits)?;
        } else {
            let share = counter.share(&peg::merge(decode(join)?)?, &entries)?;
            shares = convert::shares_to_wire(share.into_iter().map(|(hole, ways)| (hole.number(), ways)));
        }
        let size = counter.level_size(&entries);
        let result = v1::PartResult {
            session: Some(self.session.clone()),
            lease: assignment.lease,
            lease_epoch: self.session.epoch,
            job: assignment.job,
            stage: task.stage,
            part: task.part,
            boards: size.orbits,
            boards_with_images: size.boards,
            shares,
            outputs: outputs.iter().map(|run| run.len() as u64).collect(),
            nodes: entries.len() as u64,
        };
        let mut messages = vec![message(v1::complete_part_request::Message::Result(result))];
        for (run, entries) in (0u32..).zip(&outputs) {
            // Two pieces a run, so that pieces are put together.
            let bytes = encode_run(entries);
            let (head, tail) = bytes.split_at(bytes.len() / 2);
            let crc32c = crc32c::crc32c(&bytes);
            for (data, last) in [(head, false), (tail, true)] {
                let chunk =
                    v1::RunChunk { run, data: data.to_vec(), last, crc32c: if last { crc32c } else { 0 } };
                messages.push(message(v1::complete_part_request::Message::Chunk(chunk)));
            }
        }
        Ok(messages)
    }

    async fn fetch(&mut self, job: u64, stage: u32, part: u32) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        let request = v1::FetchRunsRequest { session: Some(self.session.clone()), job, stage, part };
        let mut stream = self.client.fetch_runs(request).await?.into_inner();
        let mut runs: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        while let Some(chunk) = stream.message().await? {
            assert!(chunk.data.len() <= limits::CHUNK_BYTES_MAX);
            let run = runs.entry(chunk.run).or_default();
            run.extend(chunk.data);
            assert!(!chunk.last || crc32c::crc32c(run) == chunk.crc32c, "run {} is damaged", chunk.run);
        }
        Ok(runs.into_values().collect())
    }
}

pub fn message(message: v1::complete_part_request::Message) -> v1::CompletePartRequest {
    v1::CompletePartRequest { message: Some(message) }
}

fn problem_of(assignment: &v1::Assignment) -> Result<Problem, Box<dyn Error>> {
    let fields = Fields::from(assignment.problem.clone().ok_or("an assignment has a problem")?);
    Ok(Problem::from_fields(&fields)?)
}
