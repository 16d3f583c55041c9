//! One virtual worker: its tables, its lease, and what it has searched of it.

use super::{OwnTable, Setting, SimulationError, engine_of};
use crate::core::{Assignment, ClaimResult, LeaseId, LeaseProgress, PartSpec, Session, TaskSpec, Verdict};
use grundy_games::claim::Fact;
use grundy_games::problem::{Approach, Problem};
use grundy_search::engine::tell_work_min;
use grundy_search::engine::{self, Engine, FACTS_MAX, Leave, Limits};
use grundy_search::peg::{Counter, encode_run, merge};
use grundy_search::samples::Samples;
use grundy_search::table::{Entry, Key};
use grundy_tables::jobs::record::{PartId, PartRecord, Task};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

/// The runs that parts of a count have put out, by that part and the part of the next stage that reads it.
pub(super) type Runs = BTreeMap<(PartId, u32), Vec<u8>>;

/// One virtual worker.
pub(super) struct VirtualWorker {
    /// How it names itself.
    pub session: Session,
    /// Up to where it has read facts.
    pub cursor: u64,
    /// What it works on.
    pub search: Option<Search>,
    solver: Option<Solver>,
    /// Its table, once it has an engine.
    table: Option<OwnTable>,
    /// The least work of what its engine finds worth telling.
    tell_work_min: u64,
}

enum Solver {
    Claims(Box<dyn Engine>),
    Parts(Box<Counter>),
}

/// A lease that is worked on, slice by slice.
pub(super) struct Search {
    /// The lease with its task.
    assignment: Assignment,
    /// Nodes of the slices before this one.
    spent: u64,
    /// When this slice began, in microseconds.
    pub slice_start: u64,
    /// Nodes of this slice.
    pub slice_nodes: u64,
    /// What will be handed in at this slice's end, if it is the last.
    pub end: Option<HandIn>,
    facts: Vec<Fact>,
    samples: Samples,
}

/// What a worker hands in.
pub(super) enum HandIn {
    /// Of a claim.
    Claim(ClaimResult),
    /// Of a part, with its runs and how many bytes it has read.
    Part(PartRecord, Vec<Vec<u8>>, u64),
}

impl Search {
    /// Its lease.
    pub fn lease(&self) -> LeaseId {
        self.assignment.lease
    }

    /// What a heartbeat says of it, after so many nodes of its slice.
    pub fn progress(&self, of_slice: u64) -> LeaseProgress {
        let task = match &self.assignment.task {
            TaskSpec::Claim { claim, .. } => Task::Claim(claim.clone()),
            TaskSpec::Part(spec) => Task::Part(spec.part),
        };
        let Assignment { lease, job, .. } = self.assignment;
        LeaseProgress { lease, job, task, nodes: self.spent + of_slice.min(self.slice_nodes) }
    }

    /// The part that it works on.
    pub fn part(&self) -> Option<PartId> {
        match &self.assignment.task {
            TaskSpec::Claim { .. } => None,
            TaskSpec::Part(spec) => Some(spec.part),
        }
    }

    /// All nodes up to the end of its slice.
    pub fn nodes(&self) -> u64 {
        self.spent + self.slice_nodes
    }
}

impl VirtualWorker {
    /// A worker that has not registered yet.
    pub fn new(session: Session) -> Self {
        Self { session, cursor: 0, search: None, solver: None, table: None, tell_work_min: u64::MAX }
    }

    /// Whether it follows the job's facts: from its first lease on, as real ones do.
    pub fn follows(&self) -> bool {
        self.solver.is_some()
    }

    /// Learns facts up to a cursor. Gives how many there were.
    pub fn learn(&mut self, facts: &[Fact], next: u64) -> Result<u64, SimulationError> {
        let Some(Solver::Claims(engine)) = self.solver.as_mut().filter(|_| next > self.cursor) else {
            return Ok(0);
        };
        self.cursor = next;
        facts.iter().try_for_each(|fact| engine.learn(fact))?;
        Ok(facts.len() as u64)
    }

    /// Takes a lease on. The first slice is still to be searched.
    pub fn take(
        &mut self,
        assignment: Assignment,
        setting: &Setting<'_>,
        workers: u32,
    ) -> Result<u64, SimulationError> {
        if self.solver.is_none() {
            let problem = Problem::from_fields(&assignment.fields)?;
            self.solver = Some(match problem.approach() {
                Approach::Claims(_) => {
                    let (engine, table) = engine_of(setting, &problem, workers)?;
                    self.table = Some(table);
                    self.tell_work_min = tell_work_min(&problem);
                    Solver::Claims(engine)
                }
                Approach::Counting(problem) => Solver::Parts(Box::new(Counter::new(problem))),
            });
        }
        let facts = &assignment.facts;
        let learned = self.learn(&facts.facts, facts.next)?;
        self.search = Some(Search {
            assignment,
            spent: 0,
            slice_start: 0,
            slice_nodes: 0,
            end: None,
            facts: Vec::new(),
            samples: Samples::default(),
        });
        Ok(learned)
    }

    /// What its table has to tell of since the last call.
    pub fn told(&self) -> Vec<(Key, Entry)> {
        self.table.as_ref().map(|table| table.take()).unwrap_or_default()
    }

    /// Takes in what others told.
    pub fn hear(&self, told: &[(Key, Entry)]) {
        if let Some(table) = &self.table {
            told.iter().for_each(|(key, entry)| table.hear(key, *entry));
        }
    }

    /// Tells entries of this work and more from now on, if its game has such.
    pub fn tell_from(&self, work_min: u64) {
        if let Some(table) = &self.table {
            table.tell_from(work_min.max(self.tell_work_min));
        }
    }

    /// Searches the next slice, of at most so many nodes.
    pub fn search_slice(
        &mut self,
        now: u64,
        most: u64,
        setting: &Setting<'_>,
        runs: &Runs,
    ) -> Result<(), SimulationError> {
        let (Some(search), Some(solver)) = (&mut self.search, &mut self.solver) else { return Ok(()) };
        search.spent += search.slice_nodes;
        search.slice_start = now;
        let progress = AtomicU64::new(0);
        match (&search.assignment.task, solver) {
            (TaskSpec::Claim { claim, budget_nodes, leave, report_work_min }, Solver::Claims(engine)) => {
                let nodes = most.min(budget_nodes - search.spent.min(*budget_nodes));
                let report_work_min = *report_work_min;
                let leave = Leave { nodes_min: leave.nodes_min.saturating_sub(search.spent), ..*leave };
                let limits =
                    Limits { nodes, leave, report_work_min, stop: setting.stop, progress: &progress };
                let outcome = engine.decide(claim, &limits)?;
                search.slice_nodes = outcome.nodes;
                search.facts.extend(outcome.facts);
                search.samples.merge(&outcome.samples);
                let verdict = match outcome.verdict {
                    engine::Verdict::Decided(truth) => Verdict::Decided(truth),
                    engine::Verdict::Open { numbers, children } => Verdict::Open { numbers, children },
                };
                let spent = search.nodes();
                let is_left = match &verdict {
                    Verdict::Decided(_) => true,
                    Verdict::Open { numbers, .. } => leave.is_due(*numbers, outcome.nodes),
                };
                let is_last = is_left || spent >= *budget_nodes;
                if is_last || outcome.nodes == 0 {
                    let mut facts = std::mem::take(&mut search.facts);
                    facts.sort_by(|a, b| a.claim.cmp(&b.claim).then(b.work.cmp(&a.work)));
                    facts.dedup_by(|a, b| a.claim == b.claim);
                    facts.sort_by_key(|fact| std::cmp::Reverse(fact.work));
                    facts.truncate(FACTS_MAX);
                    search.end = Some(HandIn::Claim(ClaimResult {
                        claim: claim.clone(),
                        verdict,
                        nodes: spent,
                        facts,
                        samples: std::mem::take(&mut search.samples),
                    }));
                }
            }
            (TaskSpec::Part(spec), Solver::Parts(counter)) => {
                let limits = Limits::endless(setting.stop, &progress);
                search.end = Some(work_on_part(counter, spec, runs, &limits)?);
                search.slice_nodes = progress.into_inner();
            }
            _ => return Err(SimulationError::Core("a task of another kind than the job's".to_owned())),
        }
        if setting.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(SimulationError::Stopped);
        }
        Ok(())
    }
}

/// One part of a count, as a worker does it.
fn work_on_part(
    counter: &Counter,
    spec: &PartSpec,
    runs: &Runs,
    limits: &Limits<'_>,
) -> Result<HandIn, SimulationError> {
    let mut bytes_read = 0;
    let mut read = |stage: u32, parts: u32| {
        let decoded = (0..parts).map(|part| {
            let key = (PartId { stage, part }, spec.part.part);
            let bytes = runs.get(&key).ok_or_else(|| {
                SimulationError::Core(format!("stage {stage} part {part} put out nothing to go on with"))
            })?;
            bytes_read += bytes.len() as u64;
            counter.decode_run(bytes).map_err(|error| SimulationError::Core(error.to_string()))
        });
        let decoded = decoded.collect::<Result<Vec<_>, _>>()?;
        merge(decoded).map_err(SimulationError::from)
    };
    let input = match spec.part.stage {
        0 => counter.first(),
        stage => read(stage - 1, spec.inputs)?,
    };
    let near = match counter.near_level() {
        Some(near) if spec.join_inputs > 0 && near > 0 => read(near - 1, spec.join_inputs)?,
        _ => Vec::new(),
    };
    let size = counter.level_size(&input);
    let (mut shares, mut next) = (Vec::new(), Vec::new());
    if spec.parts_next > 0 {
        next = counter.expand(&input, spec.parts_next, limits)?;
    } else {
        shares =
            counter.share(&near, &input)?.into_iter().map(|(hole, ways)| (hole.number(), ways)).collect();
    }
    let encoded: Vec<Vec<u8>> = next.iter().map(|run| encode_run(run)).collect();
    let record = PartRecord {
        boards: size.orbits,
        boards_with_images: size.boards,
        shares,
        outputs: next.iter().map(|run| run.len() as u64).collect(),
        checksums: encoded.iter().map(|run| crc32c::crc32c(run)).collect(),
        source: String::new(),
    };
    Ok(HandIn::Part(record, encoded, bytes_read))
}
