//! One job: its record, and its claims or its count.

use super::api::{ClaimResult, Statistics, TaskSpec, Verdict};
use super::counting::{Counting, CountingError};
use super::estimate::Estimate;
use super::graph::{Graph, GraphError, Hold, Leaf, NodeId, Remembered};
use super::options::Options;
use grundy_games::claim::{Claim, ClaimRules, Fact};
use grundy_games::plan::{Answer, Plan, Progress};
use grundy_games::problem::{Approach, Problem};
use grundy_search::engine::Leave;
use grundy_search::evaluate::{Facts, Known};
use grundy_search::numbers::Numbers;
use grundy_search::samples::Samples;
use grundy_tables::jobs::record::{
    Children, ClaimRecord, JobId, JobRecord, JobStatus, PartId, PartRecord, Task, Write,
};
use std::collections::BTreeMap;

/// Why a job must stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// Contradicting facts, or a claim the rules refuse.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A part that contradicts another, or an overflow.
    #[error(transparent)]
    Counting(#[from] CountingError),
}

/// A job.
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// What is written down of it.
    pub record: JobRecord,
    /// What it works on.
    pub work: Work,
    /// Claims or parts that were decided when this coordinator started.
    pub decided_before_start: u64,
    /// Facts beside results.
    pub facts_reported: u64,
    /// Since when the running span is not yet in the record, and in nodes a second.
    pub rate: super::rate::Rate,
}

/// How a game's claims are searched, as far as it matters to who hands them out.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// So many of this game's nodes count as so many of the options'.
    scale: (u64, u64),
    /// A leaf is left when another one looks better by one part in so many: what the game's own search goes by.
    switch: u32,
    /// So many times cheaper facts than the options say are reported: where budgets are far larger than most searches.
    report_scale: u64,
    /// Whether claims are split when they turn out to be hard; else only for workers that have nothing to
    /// do. A best-first search is steered by its open children's numbers; a depth-first search orders moves better than such
    /// numbers tell, and does best with whole claims.
    splits: bool,
}

/// Fewer threads than this get larger leases, so that there are about as many in all: each begins with the dearest nodes, those next to its claim, and
/// costs a round trip.
const THREADS_FEW: u64 = 32;

/// Very few threads get far larger ones, this by the third power of their number: what a search remembers of its own way is worth more then than what
/// the others could do with a part of it. One thread has nobody to share with.
const STRETCH_VERY_FEW: u64 = 2048;

/// The most that leases are stretched.
const STRETCH_MAX: u64 = 256;

/// So many threads get leases of the plain size. When there are more, leases grow with their number, or the coordinator would have
/// thousands of results a second to sync.
const THREADS_PLAIN: u64 = 64;

/// A claim's budget doubles with each search so often, if it cannot be split.
const BUDGET_DOUBLINGS_MAX: u32 = 3;

/// A lease is not left for the sake of its numbers before this part of its budget.
const LEAVE_SHARE: u64 = 10;

impl Pace {
    fn of(problem: &Problem) -> Self {
        match problem {
            // A core searches a million of these a second, and its search is best left alone.
            Problem::Kalah(_) => Self { scale: (128, 1), switch: 1, report_scale: 12, splits: false },
            // Many transpositions: the finer the leases, the less is searched that a decision elsewhere makes useless.
            Problem::Konane(_) => Self { scale: (1, 10), switch: 1, report_scale: 1, splits: true },
            // A core searches some ten thousand a second: were its leases not small, most workers would wait while the first ones run.
            Problem::Cram(_) => Self { scale: (1, 100), switch: 4, report_scale: 1, splits: true },
            Problem::Peg(_) => Self { scale: (1, 1), switch: 1, report_scale: 1, splits: true },
        }
    }

    /// How many times as large as plain ones leases are for so many threads in all.
    fn stretch(self, threads: u32) -> u64 {
        let threads = u64::from(threads).max(1);
        if !self.splits {
            return 1;
        }
        let very_few = STRETCH_VERY_FEW / threads.saturating_pow(3);
        very_few.min(STRETCH_MAX).max(THREADS_FEW / threads).max(threads.div_ceil(THREADS_PLAIN))
    }

    /// So many nodes of the options, in the game's own.
    fn nodes(self, nodes: u64) -> u64 {
        let (own, of_options) = self.scale;
        (nodes.saturating_mul(own) / of_options).max(1)
    }
}

/// How a job is worked on.
pub enum Work {
    /// By claims.
    Claims(Box<Claims>),
    /// By counting.
    Counting(Counting),
}

/// A job that is answered by claims.
pub struct Claims {
    /// The question.
    pub plan: Box<dyn Plan>,
    /// The proof graph.
    pub graph: Graph,
    /// How they are handed out.
    pace: Pace,
    /// Facts to share, oldest first, with who found them.
    pub shared: Vec<(Fact, String)>,
    /// Leases in flight by the root they were chosen under.
    pub in_flight: BTreeMap<NodeId, u32>,
    /// Claims that workers decided and that are not yet written down, with what they cost and who did it.
    reported: BTreeMap<Claim, (u64, String)>,
    answer: Option<Answer>,
    /// How large the searches of claims were, since this coordinator started.
    samples: Samples,
}

impl Job {
    /// A job from its record and what is known of its claims and parts.
    ///
    /// # Errors
    /// In words: the problem is none, or what was stored contradicts itself.
    pub fn new(
        id: JobId,
        record: JobRecord,
        claims: Vec<(Claim, ClaimRecord)>,
        parts: Vec<(PartId, PartRecord)>,
        options: &Options,
    ) -> Result<Self, String> {
        let problem = Problem::from_fields(&record.fields).map_err(|error| error.to_string())?;
        let decided_before_start;
        let work = match problem.approach() {
            Approach::Claims(plan) => {
                let (pace, mut facts) = (Pace::of(&problem), Facts::default());
                let mut remembered = BTreeMap::new();
                let mut shared = Vec::new();
                decided_before_start =
                    claims.iter().filter(|(_, record)| record.truth.is_some()).count() as u64;
                for (claim, record) in claims {
                    match record.truth {
                        Some(truth) => {
                            facts.insert(plan.rules(), &claim, truth).map_err(|error| {
                                format!("what was stored about {}: {error}", plan.rules().describe(&claim))
                            })?;
                            let is_shared = record.work >= pace.nodes(options.share_nodes_min);
                            if !record.source.is_empty() && is_shared {
                                shared.push((Fact { claim, truth, work: record.work }, record.source));
                            }
                        }
                        None => {
                            let ClaimRecord { children, numbers, work, searches, .. } = record;
                            remembered.insert(claim, Remembered { children, numbers, work, searches });
                        }
                    }
                }
                let graph = Graph::new(facts, remembered);
                let (in_flight, reported) = (BTreeMap::new(), BTreeMap::new());
                Work::Claims(Box::new(Claims {
                    plan,
                    graph,
                    pace,
                    shared,
                    in_flight,
                    reported,
                    answer: None,
                    samples: Samples::default(),
                }))
            }
            Approach::Counting(problem) => {
                decided_before_start = parts.len() as u64;
                Work::Counting(
                    Counting::new(problem, parts, options.part_entries).map_err(|error| error.to_string())?,
                )
            }
        };
        Ok(Self { id, record, work, decided_before_start, facts_reported: 0, rate: Default::default() })
    }

    /// Whether it wants workers.
    pub fn is_running(&self) -> bool {
        self.record.status == JobStatus::Running
    }

    /// Asks the plan what it wants next, and writes down what the graph found out by itself. `Ok(true)` when the answer is known.
    ///
    /// # Errors
    /// [`JobError`]: the job must stop.
    pub fn advance(&mut self, writes: &mut Vec<Write>) -> Result<bool, JobError> {
        match &mut self.work {
            Work::Counting(counting) => Ok(counting.is_counted()),
            Work::Claims(claims) => {
                let answered = claims.advance();
                // Whatever came of it: what was decided on the way is true and worth keeping.
                claims.write_decided(self.id, writes);
                answered
            }
        }
    }

    /// What is known of the answer.
    pub fn answer(&self) -> Answer {
        match &self.work {
            Work::Claims(claims) => match &claims.answer {
                Some(answer) => answer.clone(),
                None => claims.plan.partial(&claims.known()),
            },
            Work::Counting(counting) => counting.answer(),
        }
    }

    /// Takes in how large searches for a claim were.
    pub fn sampled(&mut self, claim: &Claim, samples: &Samples) {
        if let Work::Claims(claims) = &mut self.work
            && claims.plan.is_typical(&claims.known(), claim)
        {
            claims.samples.merge(samples);
        }
    }

    /// A task that nobody has, for this worker, one of so many `threads` in all.
    pub fn choose(&self, worker: &str, threads: u32, options: &Options) -> Option<Chosen> {
        match &self.work {
            Work::Claims(claims) => {
                let Leaf { id, root, thresholds } =
                    claims.graph.choose(&claims.in_flight, worker, claims.pace.switch)?;
                let node = claims.graph.node(id);
                let plain = claims.pace.nodes(options.budget_nodes);
                // As long as there are not leaves for all, they are to come soon.
                let is_starting = threads > 1 && claims.graph.active() < 2 * u64::from(threads);
                let stretch = if is_starting { 1 } else { claims.pace.stretch(threads) };
                let first = plain.saturating_mul(stretch);
                let budget_nodes = first.saturating_mul(1 << node.searches.min(BUDGET_DOUBLINGS_MAX));
                let leave = Leave { thresholds, nodes_min: first / LEAVE_SHARE };
                let report_share = options.report_share.saturating_mul(claims.pace.report_scale);
                let report_work_min = (plain / report_share.max(1)).max(1);
                let claim = node.claim.clone();
                let spec = TaskSpec::Claim { claim: claim.clone(), budget_nodes, leave, report_work_min };
                let warm_for = claims.graph.last_worker(id).filter(|last| *last != worker).map(str::to_owned);
                Some(Chosen { task: Task::Claim(claim), spec, root: Some(root), warm_for })
            }
            Work::Counting(counting) => {
                let part = counting.choose()?;
                let spec = counting.spec(part).ok()?;
                let spec = TaskSpec::Part(spec);
                Some(Chosen { task: Task::Part(part), spec, root: None, warm_for: None })
            }
        }
    }

    /// Whether a task is wanted and nobody has it.
    pub fn is_free(&self, task: &Task) -> bool {
        match (&self.work, task) {
            (Work::Claims(claims), Task::Claim(claim)) => claims.graph.find(claim).is_some_and(|id| {
                let node = claims.graph.node(id);
                node.is_active() && node.hold == Hold::Free
            }),
            (Work::Counting(counting), Task::Part(part)) => counting.is_free(*part),
            _ => false,
        }
    }

    /// Whether a task's result would still help.
    pub fn is_wanted(&self, task: &Task) -> bool {
        match (&self.work, task) {
            (Work::Claims(claims), Task::Claim(claim)) => {
                claims.graph.find(claim).is_some_and(|id| claims.graph.node(id).is_active())
            }
            (Work::Counting(counting), Task::Part(part)) => counting.is_wanted(*part),
            _ => false,
        }
    }

    /// Gives a task to somebody, or keeps it for somebody who may still have it.
    pub fn hold(&mut self, task: &Task) {
        match (&mut self.work, task) {
            (Work::Claims(claims), Task::Claim(claim)) => claims.set_hold(claim, Hold::Held),
            (Work::Counting(counting), Task::Part(part)) => counting.hold(*part),
            _ => {}
        }
    }

    /// Takes a task back.
    pub fn free(&mut self, task: &Task) {
        match (&mut self.work, task) {
            (Work::Claims(claims), Task::Claim(claim)) => claims.set_hold(claim, Hold::Free),
            (Work::Counting(counting), Task::Part(part)) => counting.free(*part),
            _ => {}
        }
    }

    /// Takes a task back from somebody who was lost with it. Returns the number of losses when it is set aside now.
    pub fn lost(&mut self, task: &Task, incarnation: u64, losses_max: u32) -> Option<u32> {
        self.record.leases_lost += 1;
        match (&mut self.work, task) {
            (Work::Claims(claims), Task::Claim(claim)) => claims.lost(claim, incarnation, losses_max),
            (Work::Counting(counting), Task::Part(part)) => counting.lost(*part, incarnation, losses_max),
            _ => None,
        }
    }

    /// Gives tasks that were set aside another chance.
    pub fn unpark(&mut self) {
        match &mut self.work {
            Work::Claims(claims) => claims.graph.unpark(),
            Work::Counting(counting) => counting.unpark(),
        }
    }

    /// The task in words, for logs.
    pub fn describe(&self, task: &Task) -> String {
        match (&self.work, task) {
            (Work::Claims(claims), Task::Claim(claim)) => claims.plan.rules().describe(claim),
            (_, Task::Part(part)) => format!("stage {} part {}", part.stage, part.part),
            (_, Task::Claim(claim)) => format!("{claim:?}"),
        }
    }

    /// The job's numbers, leases and workers left for the caller to fill in.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics {
            decided_before_start: self.decided_before_start,
            nodes: self.record.nodes,
            leases_granted: self.record.leases,
            leases_lost: self.record.leases_lost,
            results: self.record.results,
            facts: self.facts_reported,
            active_ms: self.record.active_ms,
            ..Statistics::default()
        };
        match &self.work {
            Work::Claims(claims) => {
                statistics.decided = self.decided_before_start + claims.graph.inserted();
                statistics.total = statistics.decided + claims.graph.active();
                statistics.parked = claims.graph.parked();
                statistics.phase = "best-first".to_owned();
                if let Some(&root) = claims.graph.roots().first() {
                    statistics.root = Some(claims.graph.node(root).numbers);
                    if claims.pace.splits {
                        // As if the root's children cost alike: the only basis there is before they are done.
                        let (decided, all) = claims.graph.children_counts(root);
                        let left = all - decided;
                        statistics.remaining_ms =
                            (decided > 0).then(|| self.record.active_ms.saturating_mul(left) / decided);
                    }
                }
                if self.is_running() {
                    statistics.estimate = claims.estimate();
                }
            }
            Work::Counting(counting) => {
                let (stage, last) = counting.stage();
                (statistics.decided, statistics.total) = counting.counts();
                statistics.parked = counting.parked();
                statistics.phase = format!("counting stage {} of {}", stage + 1, last + 1);
                statistics.levels = counting.level_sizes();
            }
        }
        if !self.is_running() {
            statistics.remaining_ms = None;
            statistics.phase = match self.record.status {
                JobStatus::Running | JobStatus::Solved => "done",
                JobStatus::Cancelled => "cancelled",
                JobStatus::Failed(_) => "failed",
            }
            .to_owned();
        }
        statistics
    }
}

impl Claims {
    /// The facts, read under the plan's rules.
    pub fn known(&self) -> Known<'_> {
        Known { rules: self.plan.rules(), facts: self.graph.facts() }
    }

    /// The rules of the claims.
    pub fn rules(&self) -> &dyn ClaimRules {
        self.plan.rules()
    }

    fn advance(&mut self) -> Result<bool, JobError> {
        // Making a claim wanted may decide it at once, so that the plan wants another.
        while self.answer.is_none() {
            match self.plan.next(&self.known()) {
                Progress::Answered(answer) => self.answer = Some(answer),
                Progress::Ask(wanted) => {
                    self.graph.want(self.plan.rules(), &wanted)?;
                    if wanted.iter().all(|claim| self.graph.facts().truth(self.plan.rules(), claim).is_none())
                    {
                        return Ok(false);
                    }
                }
            }
        }
        self.graph.want(self.plan.rules(), &[])?;
        Ok(true)
    }

    /// How much work the open parts of the answer are, as far as samples tell.
    fn estimate(&self) -> Option<Estimate> {
        Estimate::new(&self.samples, || self.plan.open_parts(&self.known()))
    }

    fn set_hold(&mut self, claim: &Claim, hold: Hold) {
        if let Some(id) = self.graph.find(claim) {
            self.graph.hold(id, hold);
        }
    }

    fn lost(&mut self, claim: &Claim, incarnation: u64, losses_max: u32) -> Option<u32> {
        let id = self.graph.find(claim)?;
        let losses = self.graph.count_loss(id, incarnation);
        let node = self.graph.node(id);
        let park = losses >= losses_max && node.is_active() && !node.expanded;
        self.graph.hold(id, if park { Hold::Parked } else { Hold::Free });
        park.then_some(losses)
    }

    /// A fact that a worker reported beside its result. Kept and shared when new.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn learn(&mut self, fact: &Fact, worker: &str) -> Result<bool, GraphError> {
        let new = self.graph.decide(self.plan.rules(), &fact.claim, fact.truth)?;
        if new {
            self.reported.insert(fact.claim.clone(), (fact.work, worker.to_owned()));
            self.shared.push((fact.clone(), worker.to_owned()));
        }
        Ok(new)
    }

    /// A result of a claim that was leased now or earlier. Returns whether it told anything new. What is left open is split if it
    /// is hard for one of so many `threads`, or if there are `idle` workers; in a game that `splits` at all.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn take_in(
        &mut self,
        result: &ClaimResult,
        worker: &str,
        current: bool,
        idle: bool,
        threads: u32,
        options: &Options,
    ) -> Result<TakenIn, GraphError> {
        let rules = self.plan.rules();
        let ClaimResult { claim, verdict, nodes, .. } = result;
        let nodes = *nodes;
        match verdict {
            Verdict::Decided(truth) => {
                if let Some(id) = self.graph.find(claim) {
                    self.graph.add_work(id, nodes, worker);
                }
                let fact = Fact { claim: claim.clone(), truth: *truth, work: nodes };
                let new = self.graph.decide(rules, claim, *truth)?;
                if new {
                    self.reported.insert(claim.clone(), (nodes, worker.to_owned()));
                    if nodes >= self.pace.nodes(options.share_nodes_min) {
                        self.shared.push((fact, worker.to_owned()));
                    }
                }
                Ok(TakenIn { new, split: None })
            }
            Verdict::Open { numbers, children } => {
                let Some(id) = self.graph.find(claim).filter(|_| current) else {
                    return Ok(TakenIn { new: false, split: None });
                };
                self.graph.add_work(id, nodes, worker);
                self.graph.searched(rules, id, *numbers)?;
                let node = self.graph.node(id);
                let mut split = None;
                let hard = self.pace.nodes(options.split_nodes).saturating_mul(self.pace.stretch(threads));
                let is_hard = node.work >= hard;
                let splits = self.pace.splits && (is_hard || idle) && !children.is_empty();
                if splits && node.is_active() && !node.expanded {
                    let count = self.graph.expand(rules, id, children)?;
                    split = (count > 0).then_some(count);
                }
                Ok(TakenIn { new: true, split })
            }
        }
    }

    /// The record of a node or a fact as it stands.
    fn record_of(&self, claim: &Claim, work: u64, source: &str) -> ClaimRecord {
        let truth = self.graph.facts().truth(self.plan.rules(), claim);
        match self.graph.find(claim).map(|id| (id, self.graph.node(id))) {
            Some((id, node)) => ClaimRecord {
                truth,
                children: self.graph.children(id),
                numbers: node.numbers,
                work: node.work.max(work),
                searches: node.searches,
                source: source.to_owned(),
            },
            None => ClaimRecord {
                truth,
                children: Children::None,
                numbers: truth.map_or(Numbers::UNKNOWN, Numbers::decided),
                work,
                searches: 0,
                source: source.to_owned(),
            },
        }
    }

    /// Writes down what became decided since the last call, each claim once: what workers decided with their names, what the
    /// graph inferred without one.
    pub fn write_decided(&mut self, job: JobId, writes: &mut Vec<Write>) {
        for id in self.graph.take_decided() {
            let inferred = (0, String::new());
            self.reported.entry(self.graph.node(id).claim.clone()).or_insert(inferred);
        }
        for (claim, (work, source)) in std::mem::take(&mut self.reported) {
            let record = self.record_of(&claim, work, &source);
            writes.push(Write::Claim(job, claim, record));
        }
    }

    /// Writes down a claim that is still open. Decided ones are [`Claims::write_decided`]'s.
    pub fn write_open(&self, job: JobId, claim: &Claim, writes: &mut Vec<Write>) {
        let record = self.record_of(claim, 0, "");
        if record.truth.is_none() {
            writes.push(Write::Claim(job, claim.clone(), record));
        }
    }
}

/// A task for a worker.
pub struct Chosen {
    /// The task.
    pub task: Task,
    /// What the worker is told of it.
    pub spec: TaskSpec,
    /// The root that it was chosen under.
    pub root: Option<NodeId>,
    /// Another worker that has it warm.
    pub warm_for: Option<String>,
}

/// What a result came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenIn {
    /// Whether it told anything new.
    pub new: bool,
    /// The number of children, when the leaf was split.
    pub split: Option<u32>,
}
