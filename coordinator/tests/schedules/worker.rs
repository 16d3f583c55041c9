//! A worker as the protocol knows it: real engines, virtual time.

use grundy::core::{Assignment, ClaimResult, LeaseId, LeaseProgress, PartSpec, Session, TaskSpec, Verdict};
use grundy_games::problem::{Approach, Problem};
use grundy_search::cram::tables::BuiltTables;
use grundy_search::engine::{self, Engine, EngineTables, Limits};
use grundy_search::peg::{Counter, encode_run, merge};
use grundy_search::table::Namespace;
use grundy_tables::jobs::JobStorage;
use grundy_tables::jobs::record::{Epoch, JobId, PartId, PartRecord, Task};
use grundy_tables::{RamTable, StorageError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What a worker hands in.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Of a claim.
    Claim(ClaimResult),
    /// Of a part, with its runs.
    Part(PartId, PartRecord, Vec<Vec<u8>>),
}

/// A result with its lease, until it is acknowledged.
#[derive(Clone, Debug)]
pub struct HandIn {
    /// The lease.
    pub lease: LeaseId,
    /// The job.
    pub job: JobId,
    /// The result.
    pub result: Outcome,
}

/// What it works on.
pub struct Current {
    /// The progress that its heartbeats report.
    pub progress: LeaseProgress,
    /// When it will be done.
    pub done_at: u64,
    /// What will come of it.
    pub hand_in: HandIn,
}

/// One worker. Its table survives its death, as a disk does.
pub struct Worker {
    /// Its name.
    pub name: String,
    /// Its run.
    pub incarnation: u64,
    /// The epoch it is registered in.
    pub epoch: Option<Epoch>,
    /// Whether it is up.
    pub alive: bool,
    /// What it works on.
    pub current: Option<Current>,
    /// What is not acknowledged yet.
    pub outbox: Vec<HandIn>,
    /// Up to where it has read facts.
    pub cursors: BTreeMap<JobId, u64>,
    table: Arc<RamTable>,
    engine: Option<Box<dyn Engine>>,
}

impl Worker {
    /// A worker that is about to register.
    pub fn new(index: usize) -> Self {
        Self {
            name: format!("worker-{index}"),
            incarnation: 1,
            epoch: None,
            alive: true,
            current: None,
            outbox: Vec::new(),
            cursors: BTreeMap::new(),
            table: Arc::new(RamTable::with_bytes(1 << 18).expect("a quarter of a megabyte can be had")),
            engine: None,
        }
    }

    /// Dies: all but the table is lost.
    pub fn die(&mut self) {
        self.alive = false;
        self.epoch = None;
        self.current = None;
        self.outbox.clear();
        self.cursors.clear();
        self.engine = None;
    }

    /// Comes back as another run.
    pub fn revive(&mut self) {
        self.alive = true;
        self.incarnation += 1;
    }

    /// How it names itself.
    pub fn session(&self) -> Session {
        Session {
            epoch: self.epoch.unwrap_or(Epoch(0)),
            worker: self.name.clone(),
            incarnation: self.incarnation,
        }
    }

    /// Does the work of an assignment now, to be handed in at its virtual end.
    ///
    /// # Errors
    /// A run cannot be read: the coordinator is down, or has gone on and dropped it.
    pub fn take(
        &mut self,
        now: u64,
        assignment: &Assignment,
        storage: &dyn JobStorage,
    ) -> Result<(), StorageError> {
        let problem = Problem::from_fields(&assignment.fields).expect("the coordinator sends problems");
        let (task, result, nodes) = match &assignment.task {
            TaskSpec::Claim { claim, budget_nodes, leave, report_work_min } => {
                let engine = self.engine.get_or_insert_with(|| {
                    let strip_tables: Arc<dyn EngineTables> = Arc::new(BuiltTables::new(1 << 16));
                    engine::engine_for(&problem, Namespace(1), self.table.clone(), &strip_tables)
                        .expect("the problem has claims")
                });
                for fact in &assignment.facts.facts {
                    engine.learn(fact).expect("the coordinator sends facts of the job");
                }
                let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
                let limits = Limits {
                    nodes: *budget_nodes,
                    leave: *leave,
                    report_work_min: *report_work_min,
                    stop: &stop,
                    progress: &progress,
                };
                let outcome =
                    engine.decide(claim, &limits).expect("the coordinator leases claims of the job");
                let verdict = match outcome.verdict {
                    engine::Verdict::Decided(truth) => Verdict::Decided(truth),
                    engine::Verdict::Open { numbers, children } => Verdict::Open { numbers, children },
                };
                let result = ClaimResult {
                    claim: claim.clone(),
                    verdict,
                    nodes: outcome.nodes,
                    facts: outcome.facts,
                    samples: outcome.samples,
                };
                (Task::Claim(claim.clone()), Outcome::Claim(result), outcome.nodes)
            }
            TaskSpec::Part(spec) => {
                let (record, runs) = work_on_part(&problem, assignment.job, spec, storage)?;
                let nodes = record.boards;
                (Task::Part(spec.part), Outcome::Part(spec.part, record, runs), nodes)
            }
        };
        self.cursors.insert(assignment.job, assignment.facts.next);
        let (lease, job) = (assignment.lease, assignment.job);
        self.current = Some(Current {
            progress: LeaseProgress { lease, job, task, nodes },
            done_at: now + 1 + nodes,
            hand_in: HandIn { lease, job, result },
        });
        Ok(())
    }
}

/// One part of a count, as a worker does it.
fn work_on_part(
    problem: &Problem,
    job: JobId,
    spec: &PartSpec,
    storage: &dyn JobStorage,
) -> Result<(PartRecord, Vec<Vec<u8>>), StorageError> {
    let Approach::Counting(problem) = problem.approach() else {
        panic!("a part of a problem that is not counted")
    };
    let counter = Counter::new(problem);
    let read = |stage: u32, runs: u32| {
        let runs = (0..runs).map(|part| {
            let bytes = storage.get_run(job, PartId { stage, part }, spec.part.part)?;
            Ok(counter.decode_run(&bytes).expect("the run is well formed"))
        });
        let runs: Vec<_> = runs.collect::<Result<_, StorageError>>()?;
        Ok::<_, StorageError>(merge(runs).expect("small counts do not overflow"))
    };
    let input = match spec.part.stage {
        0 => counter.first(),
        stage => read(stage - 1, spec.inputs)?,
    };
    let size = counter.level_size(&input);
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    let (mut shares, mut runs) = (Vec::new(), Vec::new());
    if spec.parts_next > 0 {
        runs = counter.expand(&input, spec.parts_next, &limits).expect("small counts do not overflow");
    } else {
        let near = match counter.near_level() {
            Some(near) if near > 0 && near < counter.levels() => read(near - 1, spec.join_inputs)?,
            _ => Vec::new(),
        };
        let share = counter.share(&near, &input).expect("small counts do not overflow");
        shares = share.into_iter().map(|(hole, ways)| (hole.number(), ways)).collect();
    }
    let encoded: Vec<Vec<u8>> = runs.iter().map(|run| encode_run(run)).collect();
    let record = PartRecord {
        boards: size.orbits,
        boards_with_images: size.boards,
        shares,
        outputs: runs.iter().map(|run| run.len() as u64).collect(),
        checksums: encoded.iter().map(|run| crc32c::crc32c(run)).collect(),
        source: String::new(),
    };
    Ok((record, encoded))
}
