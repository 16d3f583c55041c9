//! What a step of the core costs, on graphs of two sizes and with 1,024 workers.
//!
//! `cargo bench -p grundy --bench step`. Nodes and bytes a node, which do not depend on the machine, are printed before the times.
//! Only steps are timed: what a worker does in between, making up a result, is not.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use grundy::core::{
    Acceptance, Action, Assignment, ClaimResult, Core, Event, LeaseId, LeaseProgress, Millis, Options, Reply,
    Session, TaskSpec, Token, Verdict,
};
use grundy_games::claim::{Claim, ClaimRules, Edge, Expansion, Fact, Polarity};
use grundy_games::konane::{KonaneClaims, Position, Problem, Question, Side, Start};
use grundy_games::problem::Fields;
use grundy_search::engine::Child;
use grundy_search::numbers::Numbers;
use grundy_search::samples::Samples;
use grundy_tables::jobs::record::{Epoch, JobId, Loaded, Task};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeSet, VecDeque};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Workers, and so leases in flight.
const WORKERS: usize = 1_024;

/// Facts that a decided result brings with it.
const FACTS: usize = 16;

/// Nodes of a search after which Konane's leaves are split.
const HARD: u64 = 2_000_000;

/// Counts the bytes that are asked for and not given back.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all work is the system allocator's; the counter beside it has no part in it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from the system allocator, by `alloc` or `realloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add(size, Ordering::Relaxed);
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for `dealloc` and `alloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A core with workers, driven by hand.
struct Cluster {
    core: Core,
    rules: KonaneClaims,
    job: JobId,
    sessions: Vec<Session>,
    /// Leases in flight, oldest first, by the index of their worker.
    held: VecDeque<(usize, LeaseId, Claim)>,
    cursors: Vec<u64>,
    now: Millis,
    token: u64,
}

impl Cluster {
    /// A cluster on a job, with everybody registered and nobody at work.
    fn new(fields: Fields, rules: KonaneClaims) -> Self {
        let epoch = Epoch(1);
        let core = Core::new(epoch, Options::default(), Loaded::default(), Millis(0));
        let core = core.expect("nothing stored is no contradiction");
        let mut cluster = Self {
            core,
            rules,
            job: JobId(1),
            sessions: Vec::new(),
            held: VecDeque::new(),
            cursors: vec![0; WORKERS],
            now: Millis(0),
            token: 0,
        };
        cluster.step(|token| Event::Submit { token, fields, unix_ms: 0 });
        for index in 0..WORKERS {
            let (worker, incarnation) = (format!("host-{:03}/{}", index / 8, index % 8), index as u64 + 1);
            let name = worker.clone();
            cluster.step(|token| Event::Register { token, worker: name, incarnation, threads: 1 });
            cluster.sessions.push(Session { epoch, worker, incarnation });
        }
        cluster
    }

    /// A cluster whose graph of Konane's 7x9 has at least so many nodes, and whose workers all hold a lease.
    ///
    /// On a board of odd sides no symmetry swaps the colours, so that who moves is told from a claim, whatever was made of it: that is
    /// what truths are made up from.
    fn of_nodes(nodes: u64) -> Self {
        let position = Position::start(7, 9, Start::Center, Side::Black).expect("a board of 7x9");
        let problem = Problem { position, question: Question::Winner };
        let mut cluster = Self::new(problem.to_fields(), problem.claims());
        cluster.employ();
        while cluster.nodes() < nodes {
            for _ in 0..WORKERS {
                cluster.complete(HARD);
            }
        }
        cluster.employ();
        cluster
    }

    /// Splits until everybody holds a lease.
    fn employ(&mut self) {
        loop {
            let busy: BTreeSet<usize> = self.held.iter().map(|(worker, ..)| *worker).collect();
            let mut idle = (0..WORKERS).filter(|worker| !busy.contains(worker)).peekable();
            if idle.peek().is_none() {
                return;
            }
            while idle.next_if(|worker| self.try_lease(*worker)).is_some() {}
            self.complete(HARD);
        }
    }

    /// Claims in the graph.
    fn nodes(&mut self) -> u64 {
        match self.step(|token| Event::View { token, job: None }) {
            Some(Reply::View { jobs, .. }) => jobs[0].statistics.total,
            other => panic!("no view: {other:?}"),
        }
    }

    /// One step: the reply to its own caller, and what it took.
    fn timed(&mut self, event: impl FnOnce(Token) -> Event) -> (Option<Reply>, Duration) {
        self.token += 1;
        let token = Token(self.token);
        let event = event(token);
        let start = Instant::now();
        let actions = black_box(self.core.step(self.now, event));
        let took = start.elapsed();
        let reply = actions.into_iter().find_map(|action| match action {
            Action::Reply(to, reply) if to == token => Some(reply),
            _ => None,
        });
        (reply, took)
    }

    fn step(&mut self, event: impl FnOnce(Token) -> Event) -> Option<Reply> {
        self.timed(event).0
    }

    /// A worker asks for a task.
    fn lease(&mut self, worker: usize) -> (Option<Box<Assignment>>, Duration) {
        let session = self.sessions[worker].clone();
        let cursors = vec![(self.job, self.cursors[worker])];
        let (reply, took) = self.timed(|token| Event::Lease { token, session, wait_ms: 0, cursors });
        match reply {
            Some(Reply::Leased(assignment)) => (Some(assignment), took),
            Some(Reply::Idle { .. }) => (None, took),
            other => panic!("no lease: {other:?}"),
        }
    }

    fn keep(&mut self, worker: usize, assignment: &Assignment) {
        let TaskSpec::Claim { claim, .. } = &assignment.task else { panic!("a task of a count") };
        self.cursors[worker] = assignment.facts.next;
        self.held.push_back((worker, assignment.lease, claim.clone()));
    }

    fn try_lease(&mut self, worker: usize) -> bool {
        let (assignment, _) = self.lease(worker);
        if let Some(assignment) = &assignment {
            self.keep(worker, assignment);
        }
        assignment.is_some()
    }

    fn children(&self, claim: &Claim) -> Vec<Claim> {
        match self.rules.expand(claim).expect("the core leases claims of its rules") {
            Expansion::Open(edges) => edges.into_iter().map(|edge| edge.claim).collect(),
            Expansion::Decided(_) => Vec::new(),
        }
    }

    /// The worker of the oldest lease hands in what came of it, and takes the next task. What the two steps took.
    fn cycle(
        &mut self,
        nodes: u64,
        result: impl FnOnce(&Self, &Claim) -> (Verdict, Vec<Fact>),
    ) -> [Duration; 2] {
        let (worker, lease, claim) = self.held.pop_front().expect("all workers hold leases");
        let (verdict, facts) = result(self, &claim);
        let result = ClaimResult { claim, verdict, nodes, facts, samples: Samples::default() };
        let (session, job) = (self.sessions[worker].clone(), self.job);
        let (reply, completed) = self.timed(|token| Event::Complete { token, session, lease, job, result });
        assert_eq!(reply, Some(Reply::Completed(Acceptance::Accepted)));
        let (assignment, leased) = self.lease(worker);
        if let Some(assignment) = assignment {
            self.keep(worker, &assignment);
        }
        [completed, leased]
    }

    /// A cycle whose result is open, with the children that the rules give.
    fn complete(&mut self, nodes: u64) -> [Duration; 2] {
        self.cycle(nodes, |cluster, claim| {
            let children = cluster.children(claim);
            let numbers = Numbers::open(1, children.len() as u32);
            let unknown = |claim| {
                let edge = Edge { polarity: Polarity::Opposite, claim };
                Child { edge, numbers: Numbers::UNKNOWN }
            };
            (Verdict::Open { numbers, children: children.into_iter().map(unknown).collect() }, Vec::new())
        })
    }

    /// A cycle whose result is decided, and with it positions further on. Black wins, so that no two results contradict each other.
    fn decide(&mut self) -> [Duration; 2] {
        self.cycle(HARD, |cluster, claim| {
            let truth = |claim: &Claim| {
                cluster.rules.position(claim).is_ok_and(|position| position.mover() == Side::Black)
            };
            let children = cluster.children(claim);
            let grandchildren = children.iter().flat_map(|child| cluster.children(child));
            let open = |claim: &Claim| matches!(cluster.rules.decided(claim), Ok(None));
            let fact = |claim: Claim| Fact { truth: truth(&claim), claim, work: HARD };
            (Verdict::Decided(truth(claim)), grandchildren.filter(open).take(FACTS).map(fact).collect())
        })
    }

    /// The heartbeat of the worker of the oldest lease.
    fn heartbeat(&mut self) -> Duration {
        let (worker, lease, claim) = self.held.pop_front().expect("all workers hold leases");
        let (session, job) = (self.sessions[worker].clone(), self.job);
        let leases = vec![LeaseProgress { lease, job, task: Task::Claim(claim.clone()), nodes: 1_000 }];
        let cursors = vec![(job, self.cursors[worker])];
        let (reply, took) = self.timed(|token| Event::Heartbeat { token, session, leases, cursors });
        match reply {
            Some(Reply::Heartbeat { facts, .. }) => {
                if let Some(batch) = facts.first() {
                    self.cursors[worker] = batch.next;
                }
            }
            other => panic!("no heartbeat: {other:?}"),
        }
        self.held.push_back((worker, lease, claim));
        took
    }
}

/// Runs a step so often, and adds up what it took.
fn times(iterations: u64, mut step: impl FnMut() -> Duration) -> Duration {
    (0..iterations).map(|_| step()).sum()
}

/// Everybody holds a lease, on graphs of two sizes.
fn at_work(criterion: &mut Criterion) {
    for nodes in [100_000, 1_000_000] {
        let before = BYTES.load(Ordering::Relaxed);
        let mut cluster = Cluster::of_nodes(nodes);
        let bytes = BYTES.load(Ordering::Relaxed) - before;
        let found = cluster.nodes();
        println!("{found} nodes, {} bytes, {:.0} bytes a node", bytes, bytes as f64 / found as f64);
        let mut group = criterion.benchmark_group("at work");
        // Few and short: results that split make the graph grow.
        group
            .sample_size(20)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_secs(1));
        let name = |what: &str| BenchmarkId::new(what, nodes);
        // A search of one node makes nothing hard, and so nothing is split.
        group.bench_function(name("complete open"), |b| {
            b.iter_custom(|iterations| times(iterations, || cluster.complete(1)[0]));
        });
        group.bench_function(name("lease"), |b| {
            b.iter_custom(|iterations| times(iterations, || cluster.complete(1)[1]));
        });
        group.bench_function(name("heartbeat"), |b| {
            b.iter_custom(|iterations| times(iterations, || cluster.heartbeat()));
        });
        group.bench_function(name("tick"), |b| {
            b.iter_custom(|iterations| times(iterations, || cluster.timed(|_| Event::Tick).1));
        });
        group.bench_function(name("view"), |b| {
            b.iter_custom(|iterations| {
                times(iterations, || cluster.timed(|token| Event::View { token, job: None }).1)
            });
        });
        group.bench_function(name("complete open and split"), |b| {
            b.iter_custom(|iterations| times(iterations, || cluster.complete(HARD)[0]));
        });
        group.bench_function(name("lease after a split"), |b| {
            b.iter_custom(|iterations| times(iterations, || cluster.complete(HARD)[1]));
        });
        // Very few: best-first search as it is, it soon has what decides the job.
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(5))
            .measurement_time(Duration::from_millis(20));
        group.bench_function(name("complete decided with facts"), |b| {
            b.iter_custom(|iterations| times(iterations, || cluster.decide()[0]));
        });
        group.bench_function(name("heartbeat with facts"), |b| {
            b.iter_custom(|iterations| {
                cluster.cursors.fill(0);
                times(iterations, || cluster.heartbeat())
            });
        });
        group.finish();
        println!("{} nodes in the end", cluster.nodes());
    }
}

/// One worker holds the only task there is, and all others wait.
fn waiting(criterion: &mut Criterion) {
    let position = Position::start(8, 8, Start::Center, Side::Black).expect("a board of 8x8");
    let rules = Problem { position, question: Question::Winner }.claims();
    let [game, rules_variant, position, question] = ["kalah", "", "6,6", "values"].map(str::to_owned);
    let mut cluster = Cluster::new(Fields { game, rules: rules_variant, position, question }, rules);
    let mut waiting = 0;
    for worker in 0..WORKERS {
        let session = cluster.sessions[worker].clone();
        let reply =
            cluster.step(|token| Event::Lease { token, session, wait_ms: 30_000, cursors: Vec::new() });
        match reply {
            Some(Reply::Leased(assignment)) => cluster.keep(worker, &assignment),
            None => waiting += 1,
            other => panic!("no lease: {other:?}"),
        }
    }
    println!("{} leases, {waiting} workers wait", cluster.held.len());
    let mut group = criterion.benchmark_group("waiting");
    group.sample_size(20).measurement_time(Duration::from_secs(1));
    group.bench_function("heartbeat", |b| {
        b.iter_custom(|iterations| times(iterations, || cluster.heartbeat()));
    });
    group.bench_function("tick", |b| {
        b.iter_custom(|iterations| times(iterations, || cluster.timed(|_| Event::Tick).1));
    });
    group.finish();
}

criterion_group!(benches, waiting, at_work);
criterion_main!(benches);
