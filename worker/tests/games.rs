//! Whole small jobs with the real engines: a job answered by claims, and one that is counted.

mod support;

use grundy_games::claim::{Claim, ClaimError, Fact};
use grundy_games::plan::Progress;
use grundy_games::problem::{Approach, Fields, Problem};
use grundy_proto::v1;
use grundy_search::cram::tables::BuiltTables;
use grundy_search::engine::{Engine, EngineTables, Limits, Outcome, engine_for};
use grundy_search::evaluate::Facts;
use grundy_search::peg::Counter;
use grundy_worker::EngineFactory;
use grundy_worker::{Cause, Exit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{Check, Coordinator, Worker, assignment, engines};

/// Decided claims with the rules to infer from them.
struct Known<'a>(&'a Facts, &'a dyn grundy_games::claim::ClaimRules);

impl grundy_games::plan::Knowledge for Known<'_> {
    fn truth(&self, claim: &Claim) -> Option<bool> {
        self.0.truth(self.1, claim)
    }
}

#[test]
fn claims_of_a_small_board_are_decided_and_give_its_nimber() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    // A corridor is a row of pins in Dawson's Kayles (octal game 0.07, Guy and Smith 1956).
    let nimbers = [0, 1, 1, 2, 0, 3, 1, 1, 0, 3, 3, 2];
    let worker = Worker::start(&coordinator, data.path(), engines());
    let mut lease = 0;
    for (cells, nimber) in (1..).zip(nimbers) {
        let position = ".".repeat(cells);
        let fields =
            Fields { game: "cram".into(), rules: String::new(), position, question: "nimber".into() };
        let problem = Problem::from_fields(&fields)?;
        let Approach::Claims(plan) = problem.approach() else {
            return Err("cram is answered by claims".into());
        };
        let mut facts = Facts::default();
        let answer = loop {
            let claims = match plan.next(&Known(&facts, plan.rules())) {
                Progress::Ask(claims) => claims,
                Progress::Answered(answer) => break answer,
            };
            lease += 1;
            coordinator.script().assignments.push_back(assignment(lease, &problem.to_fields(), &claims[0]));
            let complete = coordinator.wait("a result", |script| script.completes.pop());
            let Some(v1::complete_request::Verdict::Decided(truth)) = complete.verdict else {
                return Err(format!("{fields}: {complete:?} is not decided").into());
            };
            facts.insert(plan.rules(), &claims[0], truth)?;
        };
        let expected = grundy_games::plan::Answer::Nimber { nimber };
        assert_eq!(answer, expected, "{fields}");
    }
    worker.drain.begin(Cause::Terminated);
    assert_eq!(worker.join(), Ok(Exit::Done));
    Ok(())
}

/// An engine whose first search waits until a second thread has begun one; what each thread searched is kept.
struct Together {
    engine: Box<dyn Engine>,
    searched: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Engine for Together {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        let searched = || self.searched.lock().expect("no test thread panics while it holds the lock");
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        searched().entry(thread.clone()).or_default();
        let start = Instant::now();
        while searched().len() < 2 && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let outcome = self.engine.decide(claim, limits)?;
        *searched().entry(thread).or_default() += outcome.nodes;
        Ok(outcome)
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        self.engine.learn(fact)
    }
}

#[test]
fn an_idle_thread_helps_with_the_claim_of_another() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    let searched = Arc::new(Mutex::new(BTreeMap::new()));
    let own = Arc::clone(&searched);
    // Without pair tables there is something to search.
    let factory: Arc<EngineFactory> = Arc::new(move |problem, namespace, table| {
        let tables: Arc<dyn EngineTables> = Arc::new(BuiltTables::new(0));
        let engine = engine_for(problem, namespace, table, &tables)?;
        Some(Box::new(Together { engine, searched: Arc::clone(&own) }))
    });
    let worker = Worker::with_threads(2, &coordinator, data.path(), factory);
    let position = "...........|...........|...........".to_owned();
    let fields = Fields { game: "cram".into(), rules: String::new(), position, question: "nimber".into() };
    let problem = Problem::from_fields(&fields)?;
    // The nimber of 3x11 is 0 (Schneider 2009).
    let Approach::Claims(plan) = problem.approach() else { return Err("cram is answered by claims".into()) };
    let Progress::Ask(claims) = plan.next(&Known(&Facts::default(), plan.rules())) else {
        return Err("nothing is known".into());
    };
    coordinator.script().assignments.push_back(assignment(1, &problem.to_fields(), &claims[0]));
    let complete = coordinator.wait("a result", |script| script.completes.pop());
    assert_eq!(complete.verdict, Some(v1::complete_request::Verdict::Decided(false)));
    worker.drain.begin(Cause::Terminated);
    assert_eq!(worker.join(), Ok(Exit::Done));
    let searched = searched.lock().map_err(|_| "a thread panicked")?;
    let nodes: Vec<u64> = searched.values().copied().collect();
    assert!(nodes.len() == 2 && nodes.iter().all(|nodes| *nodes > 0), "{searched:?}");
    // A turn that was under way when the result was sent may come too late to be counted.
    let total: u64 = nodes.iter().sum();
    assert!(
        complete.nodes <= total && complete.nodes >= nodes[0].min(nodes[1]),
        "{} of {nodes:?}",
        complete.nodes
    );
    Ok(())
}

#[test]
fn a_count_is_made_stage_by_stage() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    let fields = Fields {
        game: "peg".into(),
        rules: String::new(),
        position: "oo.oo|ooooo|ooooo".into(),
        question: "finish c1".into(),
    };
    let Problem::Peg(problem) = Problem::from_fields(&fields)? else {
        return Err("peg".into());
    };
    let counter = Counter::new(&problem);
    let levels = counter.levels();
    // The finish is the complement of the start, after an odd number of jumps: the last stage joins two levels.
    assert_eq!(counter.near_level(), Some(levels - 1));

    let worker = Worker::start(&coordinator, data.path(), engines());
    let (mut shares, mut before) = (Vec::new(), Vec::new());
    for stage in 0..=levels {
        let (inputs, parts_next) = (u32::from(stage > 0), u32::from(stage < levels));
        let task =
            v1::PartTask { stage, part: 0, parts_next, inputs, join_inputs: u32::from(stage == levels) };
        let task = Some(v1::assignment::Task::Part(task));
        let problem = Some(v1::Problem::from(&fields));
        let lease = u64::from(stage) + 1;
        coordinator.script().assignments.push_back(v1::Assignment {
            lease,
            job: 1,
            problem,
            task,
            facts: None,
        });
        let (header, runs) = coordinator.wait("a part", |script| script.parts.pop());
        assert_eq!(
            (header.stage, header.lease, header.outputs.len(), runs.len()),
            (stage, lease, runs.len(), parts_next as usize)
        );
        assert!(header.boards_with_images >= header.boards);
        if stage == levels {
            shares = grundy_proto::convert::shares(header.shares)?;
        }
        let joined = if stage + 1 == levels { before } else { Vec::new() };
        coordinator.script().runs = runs.iter().cloned().chain(joined).collect();
        before = runs;
    }
    // Found by a recursion over all jump sequences.
    assert_eq!(shares.iter().map(|(_, ways)| ways).collect::<Vec<_>>(), [&17_424]);

    // A damaged run is not counted with: the lease goes back with the reason.
    coordinator.script().runs = vec![vec![0xff; 9]];
    let task = v1::PartTask { stage: 1, part: 0, parts_next: 1, inputs: 1, join_inputs: 0 };
    let task = Some(v1::assignment::Task::Part(task));
    let problem = Some(v1::Problem::from(&fields));
    coordinator.script().assignments.push_back(v1::Assignment {
        lease: 99,
        job: 1,
        problem,
        task,
        facts: None,
    });
    let release = coordinator.wait("a release", |script| script.releases.pop());
    assert!(release.failed && release.reason.contains("input run 0"), "{release:?}");
    worker.drain.begin(Cause::Terminated);
    assert_eq!(worker.join(), Ok(Exit::Done));
    Ok(())
}
