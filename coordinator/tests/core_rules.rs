//! The core's rules about leases and jobs, one test each, told as short histories.

use grundy::core::{
    Acceptance, Action, Assignment, ClaimResult, Core, CoreError, Event, JobView, LeaseProgress, Millis,
    Occurrence, Options, Reply, Session, TaskSpec, Token, Verdict,
};
use grundy_games::claim::{Claim, ClaimRules, Expansion, Fact};
use grundy_games::cram::CramClaims;
use grundy_games::problem::Fields;
use grundy_search::engine::Child;
use grundy_search::numbers::Numbers;
use grundy_search::samples::{Sample, Samples};
use grundy_tables::MemoryJobs;
use grundy_tables::jobs::JobStorage;
use grundy_tables::jobs::record::{ClaimRecord, JobId, JobStatus, Task, Write};

/// A core with its storage, driven by hand.
struct Hand {
    core: Core,
    storage: MemoryJobs,
    now: u64,
    token: u64,
    log: Vec<Occurrence>,
}

impl Hand {
    fn new() -> Self {
        let storage = MemoryJobs::new();
        let core = Core::new(storage.epoch(), Options::default(), storage.load().expect("empty"), Millis(0));
        Self {
            core: core.expect("empty storage is no contradiction"),
            storage,
            now: 0,
            token: 0,
            log: Vec::new(),
        }
    }

    /// Dies without warning and comes back with what was durable.
    fn restart(&mut self) {
        self.storage.crash(self.storage.unsynced());
        let epoch = self.storage.reopen();
        let loaded = self.storage.load().expect("what was written can be read");
        self.core = Core::new(epoch, Options::default(), loaded, Millis(self.now)).expect("and makes sense");
    }

    fn step(&mut self, event: Event) -> Vec<(Token, Reply)> {
        let mut replies = Vec::new();
        for action in self.core.step(Millis(self.now), event) {
            match action {
                Action::Commit(writes, durability) => {
                    assert_written_once(&writes);
                    self.storage.commit(&writes, durability).expect("memory is not full");
                }
                Action::Reply(token, reply) => replies.push((token, reply)),
                Action::Log(occurrence) => self.log.push(occurrence),
            }
        }
        self.core.check_invariants().expect("invariants hold between steps");
        replies
    }

    /// Asks, and takes the reply that comes at once.
    fn ask(&mut self, event: impl FnOnce(Token) -> Event) -> Reply {
        self.token += 1;
        let token = Token(self.token);
        let replies = self.step(event(token));
        let own = replies.into_iter().find(|(to, _)| *to == token);
        own.unwrap_or_else(|| panic!("no reply at once")).1
    }

    /// Time passes, with the ticks of a healthy coordinator.
    fn wait(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.now = end.min(self.now + 200);
            self.step(Event::Tick);
        }
    }

    /// The coordinator is suspended: no tick for a long time.
    fn sleep(&mut self, ms: u64) {
        self.now += ms;
        self.step(Event::Tick);
    }

    fn fail(&mut self, session: &Session, assignment: &Assignment) {
        let (session, lease, job) = (session.clone(), assignment.lease, assignment.job);
        let reason = "no space left".to_owned();
        self.ask(|token| Event::Release { token, session, lease, job, failed: true, reason });
    }

    fn submit(&mut self, game: &str, position: &str) -> JobId {
        let fields = Fields {
            game: game.to_owned(),
            rules: String::new(),
            position: position.to_owned(),
            question: String::new(),
        };
        match self.ask(|token| Event::Submit { token, fields, unix_ms: 7 }) {
            Reply::Submitted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    /// Submits a job, and lets a worker that goes again find out that its claim is hard: then there are as many leaves as it has moves.
    fn submit_split(&mut self, game: &str, position: &str) -> JobId {
        let job = self.submit(game, position);
        let session = self.register("splitter", 1);
        let root = self.lease(&session).expect("there is work");
        let (claim, verdict) = (claim(&root), open(&claim(&root)));
        let samples = Samples::default();
        let result = ClaimResult { claim, verdict, nodes: 1 << 40, facts: Vec::new(), samples };
        let (of, lease) = (session.clone(), root.lease);
        self.ask(|token| Event::Complete { token, session: of, lease, job, result });
        self.ask(|token| Event::Unregister { token, session });
        self.log.clear();
        job
    }

    fn register(&mut self, worker: &str, incarnation: u64) -> Session {
        self.register_with(worker, incarnation, 1)
    }

    fn register_with(&mut self, worker: &str, incarnation: u64, threads: u32) -> Session {
        let name = worker.to_owned();
        match self.ask(|token| Event::Register { token, worker: name, incarnation, threads }) {
            Reply::Registered { epoch, .. } => Session { epoch, worker: worker.to_owned(), incarnation },
            other => panic!("{other:?}"),
        }
    }

    fn lease(&mut self, session: &Session) -> Result<Assignment, Reply> {
        let session = session.clone();
        match self.ask(|token| Event::Lease { token, session, wait_ms: 0, cursors: Vec::new() }) {
            Reply::Leased(assignment) => Ok(*assignment),
            other => Err(other),
        }
    }

    fn heartbeat(&mut self, session: &Session, assignments: &[&Assignment]) -> Reply {
        let session = session.clone();
        let leases = assignments.iter().map(|assignment| LeaseProgress {
            lease: assignment.lease,
            job: assignment.job,
            task: Task::Claim(claim(assignment)),
            nodes: 10,
        });
        let leases = leases.collect();
        self.ask(|token| Event::Heartbeat { token, session, leases, cursors: Vec::new() })
    }

    fn complete(
        &mut self,
        session: &Session,
        assignment: &Assignment,
        verdict: Verdict,
        facts: Vec<Fact>,
    ) -> Reply {
        let (session, lease, job) = (session.clone(), assignment.lease, assignment.job);
        let result =
            ClaimResult { claim: claim(assignment), verdict, nodes: 100, facts, samples: Samples::default() };
        self.ask(|token| Event::Complete { token, session, lease, job, result })
    }

    fn view(&mut self, job: JobId) -> JobView {
        match self.ask(|token| Event::View { token, job: Some(job) }) {
            Reply::View { jobs, .. } => jobs[0].clone(),
            other => panic!("{other:?}"),
        }
    }

    fn status(&mut self, job: JobId) -> JobStatus {
        self.view(job).status
    }
}

/// One step has one thing to say about a claim, a job or a part.
fn assert_written_once(writes: &[Write]) {
    for (index, write) in writes.iter().enumerate() {
        let same = |other: &Write| match (write, other) {
            (Write::Claim(a, claim, _), Write::Claim(b, other, _)) => (a, claim) == (b, other),
            (Write::Part(a, part, _), Write::Part(b, other, _)) => (a, part) == (b, other),
            (Write::Job(a, _), Write::Job(b, _)) => a == b,
            _ => false,
        };
        let again = writes[index + 1..].iter().find(|other| same(other));
        assert_eq!(again, None, "written twice in one batch, first as {write:?}");
    }
}

fn claim(assignment: &Assignment) -> Claim {
    match &assignment.task {
        TaskSpec::Claim { claim, .. } => claim.clone(),
        TaskSpec::Part(_) => panic!("a claim was expected"),
    }
}

const OPEN: Verdict = Verdict::Open { numbers: Numbers { proof: 3, disproof: 4 }, children: Vec::new() };

/// An open result for a claim of Cram, with what the rules say that it hangs on.
fn open(claim: &Claim) -> Verdict {
    let edges = match CramClaims.expand(claim).expect("a claim of Cram") {
        Expansion::Open(edges) => edges,
        Expansion::Decided(_) => Vec::new(),
    };
    let children = edges.into_iter().map(|edge| Child { edge, numbers: Numbers::UNKNOWN }).collect();
    Verdict::Open { numbers: Numbers { proof: 3, disproof: 4 }, children }
}

#[test]
fn a_lease_lapses_without_heartbeats_and_is_given_to_another() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let (a, b) = (hand.register("a", 1), hand.register("b", 1));
    let lost = hand.lease(&a).expect("there is work");
    hand.wait(9_999);
    let Reply::Heartbeat { lapsed, .. } = hand.heartbeat(&a, &[&lost]) else { panic!("no heartbeat") };
    assert_eq!(lapsed, [], "a heartbeat in time renews");
    hand.wait(10_000);
    let mut again = Vec::new();
    while let Ok(assignment) = hand.lease(&b) {
        again.push(claim(&assignment));
    }
    assert!(again.contains(&claim(&lost)), "the lapsed leaf is handed out again");
    let Reply::Heartbeat { lapsed, .. } = hand.heartbeat(&a, &[&lost]) else { panic!("no heartbeat") };
    assert_eq!(lapsed, [lost.lease], "and its first worker is told");
}

#[test]
fn an_expired_lease_comes_back_while_nobody_else_has_its_leaf() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let a = hand.register("a", 1);
    let slow = hand.lease(&a).expect("there is work");
    hand.wait(60_000);
    let Reply::Heartbeat { lapsed, adopted, .. } = hand.heartbeat(&a, &[&slow]) else {
        panic!("no heartbeat")
    };
    assert_eq!((lapsed, adopted), (vec![], vec![slow.lease]));
}

#[test]
fn a_new_run_of_a_worker_frees_the_leases_of_the_old_and_the_old_is_told() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let old = hand.register("a", 1);
    let lease = hand.lease(&old).expect("there is work");
    let new = hand.register("a", 2);
    let mut claims = Vec::new();
    while let Ok(assignment) = hand.lease(&new) {
        claims.push(claim(&assignment));
    }
    assert!(claims.contains(&claim(&lease)), "at once, not after the lease's time");
    let refused = hand.lease(&old).expect_err("the old run is superseded");
    assert!(matches!(refused, Reply::Error(CoreError::Superseded { .. })), "{refused:?}");
}

#[test]
fn after_a_restart_a_lease_is_kept_for_its_worker_and_taken_over() {
    let mut hand = Hand::new();
    hand.submit_split("cram", "3x4");
    let a = hand.register("a", 1);
    let running = hand.lease(&a).expect("there is work");
    hand.restart();
    let refused = hand.lease(&a).expect_err("another epoch");
    assert!(matches!(refused, Reply::Error(CoreError::Register { .. })), "{refused:?}");
    let b = hand.register("b", 1);
    let mut others = Vec::new();
    while let Ok(assignment) = hand.lease(&b) {
        others.push(claim(&assignment));
    }
    assert!(!others.is_empty() && !others.contains(&claim(&running)), "kept for a during the grace period");
    let a = hand.register("a", 1);
    let Reply::Heartbeat { adopted, .. } = hand.heartbeat(&a, &[&running]) else { panic!("no heartbeat") };
    assert_eq!(adopted, [running.lease]);
    let accepted = hand.complete(&a, &running, OPEN, Vec::new());
    assert_eq!(accepted, Reply::Completed(Acceptance::Accepted), "an open result counts for its lease");
}

#[test]
fn after_a_restart_and_the_grace_period_the_leaf_is_anybodys() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let a = hand.register("a", 1);
    let gone = hand.lease(&a).expect("there is work");
    hand.restart();
    hand.wait(5_000);
    let b = hand.register("b", 1);
    let mut claims = Vec::new();
    while let Ok(assignment) = hand.lease(&b) {
        claims.push(claim(&assignment));
    }
    assert!(claims.contains(&claim(&gone)));
}

#[test]
fn a_decided_claim_of_another_epoch_is_a_fact_and_is_not_handed_out_again() {
    let mut hand = Hand::new();
    let job = hand.submit("konane", "..xo|oxox|xoxo|oxox x");
    let a = hand.register("a", 1);
    let old = hand.lease(&a).expect("there is work");
    hand.restart();
    hand.wait(60_000);
    // The start is lost for black, so after any black move white, the mover, wins.
    let accepted = hand.complete(&a, &old, Verdict::Decided(true), Vec::new());
    assert_eq!(accepted, Reply::Completed(Acceptance::Accepted));
    let again = hand.complete(&a, &old, Verdict::Decided(true), Vec::new());
    assert!(matches!(again, Reply::Completed(Acceptance::Known | Acceptance::JobEnded)), "{again:?}");
    hand.restart();
    let b = hand.register("b", 1);
    while let Ok(assignment) = hand.lease(&b) {
        assert_ne!(claim(&assignment), claim(&old));
    }
    assert_ne!(hand.status(job), JobStatus::Cancelled);
}

#[test]
fn contradicting_facts_stop_the_job_and_show_both() {
    let mut hand = Hand::new();
    let job = hand.submit_split("cram", "3x5");
    let (a, b) = (hand.register("a", 1), hand.register("b", 1));
    let (first, second) = (hand.lease(&a).expect("work"), hand.lease(&b).expect("work"));
    hand.complete(&a, &first, Verdict::Decided(true), Vec::new());
    let opposite = Fact { claim: claim(&first), truth: false, work: 9 };
    hand.complete(&b, &second, OPEN, vec![opposite]);
    let JobStatus::Failed(reason) = hand.status(job) else { panic!("the job must stop") };
    assert!(reason.contains("contradict") && reason.contains("'b'"), "{reason}");
    assert!(reason.contains("true") && reason.contains("false"), "both sides: {reason}");
    hand.restart();
    assert!(matches!(hand.status(job), JobStatus::Failed(_)), "and it stays stopped");
}

#[test]
fn a_leaf_that_kills_its_workers_is_parked_and_reported() {
    let mut hand = Hand::new();
    let job = hand.submit("cram", "3x4");
    let first = {
        let session = hand.register("a", 1);
        claim(&hand.lease(&session).expect("work"))
    };
    let mut runs = 1;
    while hand.log.iter().all(|occurrence| !matches!(occurrence, Occurrence::Parked { .. })) {
        runs += 1;
        assert!(runs < 20, "never parked");
        let session = hand.register("a", runs);
        while hand.lease(&session).is_ok_and(|assignment| claim(&assignment) != first) {}
    }
    let session = hand.register("a", 100);
    while let Ok(assignment) = hand.lease(&session) {
        assert_ne!(claim(&assignment), first, "set aside");
    }
    let Reply::View { jobs, .. } = hand.ask(|token| Event::View { token, job: Some(job) }) else {
        panic!("no view")
    };
    assert!(jobs[0].statistics.parked >= 1, "{:?}", jobs[0].statistics);
}

#[test]
fn a_cancelled_job_frees_its_workers_and_goes_on_when_submitted_again() {
    let mut hand = Hand::new();
    let job = hand.submit("cram", "3x4");
    let a = hand.register("a", 1);
    let lease = hand.lease(&a).expect("work");
    hand.ask(|token| Event::Cancel { token, job });
    assert_eq!(hand.status(job), JobStatus::Cancelled);
    let Reply::Heartbeat { lapsed, .. } = hand.heartbeat(&a, &[&lease]) else { panic!("no heartbeat") };
    assert_eq!(lapsed, [lease.lease]);
    assert!(hand.lease(&a).is_err(), "nothing to do");
    assert_eq!(hand.submit("cram", "....|....|...."), job, "the same problem in other words is the same job");
    assert_eq!(hand.status(job), JobStatus::Running);
    assert!(hand.lease(&a).is_ok());
}

#[test]
fn draining_hands_out_nothing_and_is_over_when_the_last_lease_is_in() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let a = hand.register("a", 1);
    let lease = hand.lease(&a).expect("work");
    hand.ask(|token| Event::Drain { token });
    assert!(!hand.core.drained());
    assert_eq!(hand.lease(&a).expect_err("draining"), Reply::Drained);
    hand.complete(&a, &lease, OPEN, Vec::new());
    assert!(hand.core.drained());
}

#[test]
fn what_no_rules_allow_is_refused_and_changes_nothing() {
    let mut hand = Hand::new();
    let job = hand.submit("cram", "3x4");
    let a = hand.register("a", 1);
    let lease = hand.lease(&a).expect("work");
    let nonsense = Claim { parameter: -3, ..claim(&lease) };
    let facts = vec![Fact { claim: nonsense, truth: true, work: 1 }];
    let refused = hand.complete(&a, &lease, Verdict::Decided(true), facts);
    assert!(matches!(refused, Reply::Error(CoreError::Malformed(_))), "{refused:?}");
    let decided = Verdict::Open { numbers: Numbers::decided(true), children: Vec::new() };
    let refused = hand.complete(&a, &lease, decided, Vec::new());
    assert!(matches!(refused, Reply::Error(CoreError::Malformed(_))), "{refused:?}");
    assert_eq!(hand.status(job), JobStatus::Running);
    let unknown = hand.ask(|token| Event::Cancel { token, job: JobId(99) });
    assert_eq!(unknown, Reply::Error(CoreError::NoSuchJob(JobId(99))));
}

#[test]
fn idle_workers_get_a_share_of_the_only_leaf_left() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let (a, b) = (hand.register("a", 1), hand.register("b", 1));
    let mut held = Vec::new();
    while let Ok(assignment) = hand.lease(&a) {
        held.push(assignment);
    }
    assert!(hand.lease(&b).is_err(), "all leaves are taken");
    hand.wait(1_000);
    assert!(hand.lease(&b).is_ok(), "one is split after a while");
}

/// A worker holds every leaf there is and hands one in undecided, while another one waits. Gives the first, the token of the second, the
/// replies to the result, and the leaf.
fn handed_in_while_another_waits(hand: &mut Hand) -> (Session, Token, Vec<(Token, Reply)>, Claim) {
    hand.submit_split("cram", "3x4");
    // A thread for each leaf.
    let (a, b) = (hand.register_with("a", 1, 6), hand.register("b", 1));
    let mut held = Vec::new();
    while let Ok(assignment) = hand.lease(&a) {
        held.push(assignment);
    }
    let waits = Token(1_000);
    let wait = Event::Lease { token: waits, session: b, wait_ms: 10_000, cursors: Vec::new() };
    assert_eq!(hand.step(wait), [], "all leaves are taken");
    // The first is of no cells and has no children.
    let leaf = claim(&held[1]);
    let (session, lease, job) = (a.clone(), held[1].lease, held[1].job);
    let samples = Samples::default();
    let result =
        ClaimResult { claim: leaf.clone(), verdict: open(&leaf), nodes: 100, facts: Vec::new(), samples };
    let replies = hand.step(Event::Complete { token: Token(1_001), session, lease, job, result });
    (a, waits, replies, leaf)
}

fn leased(replies: &[(Token, Reply)], to: Token) -> Option<Claim> {
    replies.iter().find_map(|(token, reply)| match reply {
        Reply::Leased(assignment) if *token == to => Some(claim(assignment)),
        _ => None,
    })
}

#[test]
fn what_comes_back_open_is_split_for_a_worker_that_waits_and_its_own_worker_chooses_first() {
    let mut hand = Hand::new();
    let (a, waits, replies, leaf) = handed_in_while_another_waits(&mut hand);
    assert!(hand.log.iter().any(|occurrence| matches!(occurrence, Occurrence::Split { .. })));
    assert_eq!(leased(&replies, waits), None, "the worker that has it warm is about to ask");
    let asks = Token(1_002);
    let replies = hand.step(Event::Lease { token: asks, session: a, wait_ms: 0, cursors: Vec::new() });
    let (own, other) = (leased(&replies, asks), leased(&replies, waits));
    assert!(own.is_some() && other.is_some(), "then both have work at once: {replies:?}");
    assert!(own != other && own.as_ref() != Some(&leaf) && other.as_ref() != Some(&leaf));
}

#[test]
fn nothing_is_split_for_the_worker_itself_if_it_asks_before_its_result_is_in() {
    let mut hand = Hand::new();
    hand.submit_split("cram", "3x4");
    let a = hand.register("a", 1);
    let mut held = Vec::new();
    while let Ok(assignment) = hand.lease(&a) {
        held.push(assignment);
    }
    let last = held.remove(1);
    for other in held {
        let own = claim(&other);
        hand.complete(&a, &other, Verdict::Decided(true), Vec::new());
        assert_ne!(own, claim(&last));
    }
    while hand.lease(&a).is_ok() {}
    let asks = Token(1_000);
    let ask = Event::Lease { token: asks, session: a.clone(), wait_ms: 10_000, cursors: Vec::new() };
    assert_eq!(hand.step(ask), [], "all leaves are taken");
    let (session, lease, job) = (a, last.lease, last.job);
    let (nodes, facts, samples) = (100, Vec::new(), Samples::default());
    let result = ClaimResult { claim: claim(&last), verdict: open(&claim(&last)), nodes, facts, samples };
    let replies = hand.step(Event::Complete { token: Token(1_001), session, lease, job, result });
    assert_eq!(leased(&replies, asks), Some(claim(&last)), "it goes on with what it has warm");
    assert!(!hand.log.iter().any(|occurrence| matches!(occurrence, Occurrence::Split { .. })));
}

#[test]
fn nothing_is_split_for_a_worker_that_is_held_off() {
    let mut hand = Hand::new();
    hand.submit_split("cram", "3x4");
    let (a, b) = (hand.register("a", 1), hand.register("b", 1));
    let failed = hand.lease(&b).expect("there is work");
    hand.fail(&b, &failed);
    let mut held = Vec::new();
    while let Ok(assignment) = hand.lease(&a) {
        held.push(assignment);
    }
    let wait = Event::Lease { token: Token(1_000), session: b, wait_ms: 10_000, cursors: Vec::new() };
    assert_eq!(hand.step(wait), []);
    hand.complete(&a, &held[1], open(&claim(&held[1])), Vec::new());
    assert!(!hand.log.iter().any(|occurrence| matches!(occurrence, Occurrence::Split { .. })));
}

#[test]
fn a_worker_that_does_not_come_back_is_not_waited_for() {
    let mut hand = Hand::new();
    let (_, waits, replies, _) = handed_in_while_another_waits(&mut hand);
    assert_eq!(leased(&replies, waits), None);
    hand.now += 49;
    assert_eq!(leased(&hand.step(Event::Tick), waits), None);
    hand.now += 1;
    assert!(leased(&hand.step(Event::Tick), waits).is_some());
}

#[test]
fn what_a_worker_decides_is_stored_once_with_its_name() {
    let mut hand = Hand::new();
    hand.submit_split("cram", "3x5");
    let a = hand.register("a", 1);
    let (first, second) = (hand.lease(&a).expect("work"), hand.lease(&a).expect("work"));
    // A fact about another node of the graph, beside a result.
    let beside = Fact { claim: claim(&second), truth: true, work: 5_000 };
    hand.complete(&a, &first, Verdict::Decided(true), vec![beside]);
    let loaded = hand.storage.load().expect("what was written can be read");
    for assignment in [&first, &second] {
        let of_claim = loaded.claims.iter().find(|(_, stored, _)| *stored == claim(assignment));
        let (_, _, ClaimRecord { truth, source, .. }) = of_claim.expect("it is stored");
        assert_eq!((*truth, source.as_str()), (Some(true), "a"));
    }
}

#[test]
fn a_lost_worker_is_reported_with_the_leases_it_held() {
    let mut hand = Hand::new();
    hand.submit_split("cram", "3x4");
    let a = hand.register("a", 1);
    let held = [hand.lease(&a).expect("work"), hand.lease(&a).expect("work")];
    hand.wait(5_000);
    hand.heartbeat(&a, &[&held[0], &held[1]]);
    hand.wait(30_000);
    let lost: Vec<u32> = hand
        .log
        .iter()
        .filter_map(|occurrence| match occurrence {
            Occurrence::WorkerLost { leases, .. } => Some(*leases),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [2]);
}

#[test]
fn a_worker_that_leaves_is_gone_at_once() {
    let mut hand = Hand::new();
    let (a, _b) = (hand.register("a", 1), hand.register("b", 1));
    hand.token += 1;
    let waits = Token(hand.token);
    let lease = Event::Lease { token: waits, session: a.clone(), wait_ms: 5_000, cursors: Vec::new() };
    assert_eq!(hand.step(lease), [], "there is nothing to do");
    let replies = hand.step(Event::Unregister { token: Token(99), session: a.clone() });
    assert!(replies.contains(&(Token(99), Reply::Unregistered)), "{replies:?}");
    assert!(replies.iter().any(|(to, _)| *to == waits), "nobody waits any more: {replies:?}");
    // Saying it again, as after a lost answer, is no mistake.
    let session = a.clone();
    assert_eq!(hand.ask(|token| Event::Unregister { token, session }), Reply::Unregistered);
    let Reply::View { workers, .. } = hand.ask(|token| Event::View { token, job: None }) else {
        panic!("no view")
    };
    assert_eq!(workers.iter().map(|view| view.worker.as_str()).collect::<Vec<_>>(), ["b"]);
    hand.wait(60_000);
    let of_a = |occurrence: &&Occurrence| match occurrence {
        Occurrence::WorkerLost { worker, .. } | Occurrence::WorkerLeft { worker, .. } => worker == "a",
        _ => false,
    };
    assert_eq!(hand.log.iter().filter(of_a).count(), 1, "one line: {:?}", hand.log);
    let refused = hand.lease(&a).expect_err("it would have to register again");
    assert!(matches!(refused, Reply::Error(CoreError::Register { .. })), "{refused:?}");
}

#[test]
fn a_worker_that_leaves_frees_its_leases_without_a_loss() {
    let mut hand = Hand::new();
    let job = hand.submit("cram", "3x4");
    let (a, b) = (hand.register("a", 1), hand.register("b", 1));
    let held = hand.lease(&a).expect("work");
    let other = Session { incarnation: 2, ..a.clone() };
    let refused = hand.ask(|token| Event::Unregister { token, session: other });
    assert!(matches!(refused, Reply::Error(CoreError::Superseded { .. })), "{refused:?}");
    let session = a.clone();
    hand.ask(|token| Event::Unregister { token, session });
    let mut claims = Vec::new();
    while let Ok(assignment) = hand.lease(&b) {
        claims.push(claim(&assignment));
    }
    assert!(claims.contains(&claim(&held)), "at once");
    let Reply::View { jobs, .. } = hand.ask(|token| Event::View { token, job: Some(job) }) else {
        panic!("no view")
    };
    assert_eq!(jobs[0].statistics.leases_lost, 0);
}

#[test]
fn after_a_restart_a_worker_that_leaves_frees_what_was_kept_for_it() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let a = hand.register("a", 1);
    let held = hand.lease(&a).expect("work");
    hand.restart();
    // It names the epoch before: there is no need to register only to leave.
    assert_eq!(hand.ask(|token| Event::Unregister { token, session: a }), Reply::Unregistered);
    let b = hand.register("b", 1);
    let mut claims = Vec::new();
    while let Ok(assignment) = hand.lease(&b) {
        claims.push(claim(&assignment));
    }
    assert!(claims.contains(&claim(&held)), "without the grace period");
}

#[test]
fn a_sick_worker_does_not_park_the_job() {
    let mut hand = Hand::new();
    let job = hand.submit("cram", "3x4");
    let (sick, well) = (hand.register("sick", 1), hand.register("well", 1));
    for _ in 0..600 {
        if let Ok(assignment) = hand.lease(&sick) {
            hand.fail(&sick, &assignment);
        }
        hand.wait(200);
        // It is alive, only useless.
        hand.heartbeat(&well, &[]);
    }
    let failures =
        hand.log.iter().filter(|o| matches!(o, Occurrence::LeaseEnded { why, .. } if why.contains("failed")));
    assert!((3..20).contains(&failures.count()), "it is held off, longer each time");
    assert!(
        hand.log.iter().all(|o| !matches!(o, Occurrence::Parked { .. })),
        "one worker's word parks nothing"
    );
    assert!(hand.lease(&well).is_ok());
    assert_eq!(hand.status(job), JobStatus::Running);
}

#[test]
fn a_coordinator_that_was_suspended_blames_nobody() {
    let mut hand = Hand::new();
    hand.submit("cram", "3x4");
    let a = hand.register("a", 1);
    let lease = hand.lease(&a).expect("work");
    hand.sleep(3_600_000);
    assert!(
        hand.log.iter().all(|o| !matches!(o, Occurrence::WorkerLost { .. } | Occurrence::LeaseEnded { .. }))
    );
    let Reply::Heartbeat { lapsed, .. } = hand.heartbeat(&a, &[&lease]) else { panic!("no heartbeat") };
    assert_eq!(lapsed, []);
}

#[test]
fn a_superseded_run_that_waits_is_answered() {
    let mut hand = Hand::new();
    let old = hand.register("a", 1);
    hand.token += 1;
    let token = Token(hand.token);
    assert_eq!(hand.step(Event::Lease { token, session: old, wait_ms: 5_000, cursors: Vec::new() }), []);
    let new = Event::Register { token: Token(99), worker: "a".to_owned(), incarnation: 2, threads: 1 };
    let replies = hand.step(new);
    let superseded = |reply: &Reply| matches!(reply, Reply::Error(CoreError::Superseded { .. }));
    assert!(replies.iter().any(|(to, reply)| *to == token && superseded(reply)), "{replies:?}");
}

#[test]
fn what_the_rules_refute_is_refused() {
    let mut hand = Hand::new();
    let job = hand.submit("cram", "3x9");
    let a = hand.register("a", 1);
    let lease = hand.lease(&a).expect("work");
    // No position of 27 cells has the nimber 27: it lasts 13 moves at most.
    let absurd = Claim { parameter: 27, ..claim(&lease) };
    let facts = vec![Fact { claim: absurd, truth: false, work: 1 }];
    let refused = hand.complete(&a, &lease, OPEN, facts);
    assert!(
        matches!(&refused, Reply::Error(CoreError::Malformed(why)) if why.contains("rules")),
        "{refused:?}"
    );
    assert_eq!(hand.status(job), JobStatus::Running);
}

#[test]
fn samples_become_an_estimate() {
    let mut hand = Hand::new();
    let job = hand.submit("kalah", "6,4");
    let a = hand.register("a", 1);
    let lease = hand.lease(&a).expect("work");
    assert_eq!(hand.view(job).statistics.estimate, None);
    let samples: Samples = (20..40)
        .map(|level| {
            let size = 1.5_f64.powi(level.into());
            (level, Sample { searches: 1 << 20, nodes: (1e6 * size) as u64, squares: 1e6 * size * size })
        })
        .collect();
    let (session, id) = (a.clone(), lease.lease);
    let result = ClaimResult { claim: claim(&lease), verdict: OPEN, nodes: 9, facts: Vec::new(), samples };
    hand.ask(|token| Event::Complete { token, session, lease: id, job, result });
    let estimate = hand.view(job).statistics.estimate.expect("twenty levels");
    assert_eq!((estimate.searches, estimate.levels, estimate.parts.len()), (20 << 20, (20, 39), 10));
    // Opening 1 keeps all 48 seeds in play; its value takes two claims.
    let (opening, range) = &estimate.parts[0];
    let expected = 2.0 * 1.5_f64.powi(48);
    assert!(opening == "1" && (range.high / expected - 1.0).abs() < 0.01, "{opening} {range:?} {expected}");
    hand.ask(|token| Event::Cancel { token, job });
    assert_eq!(hand.view(job).statistics.estimate, None, "nothing is left of what nobody works on");
}

#[test]
fn counts_from_the_wire_cannot_overflow() {
    let mut hand = Hand::new();
    let job = hand.submit_split("cram", "3x4");
    let a = hand.register("a", 1);
    for _ in 0..2 {
        let lease = hand.lease(&a).expect("work");
        let (session, id) = (a.clone(), lease.lease);
        let result = ClaimResult {
            claim: claim(&lease),
            verdict: OPEN,
            nodes: u64::MAX,
            facts: Vec::new(),
            samples: Samples::default(),
        };
        hand.ask(|token| Event::Complete { token, session, lease: id, job, result });
    }
    let held = [hand.lease(&a).expect("work"), hand.lease(&a).expect("work")];
    let session = a.clone();
    let leases = held.iter().map(|lease| LeaseProgress {
        lease: lease.lease,
        job,
        task: Task::Claim(claim(lease)),
        nodes: u64::MAX,
    });
    let leases = leases.collect();
    hand.ask(|token| Event::Heartbeat { token, session, leases, cursors: Vec::new() });
    hand.wait(1_000);
    hand.restart();
    assert_eq!(hand.status(job), JobStatus::Running);
}
