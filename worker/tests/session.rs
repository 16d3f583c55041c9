//! A worker against a coordinator that answers, fails, forgets and comes back, over real connections.

mod support;

use grundy_games::claim::Fact;
use grundy_proto::v1;
use grundy_worker::{Cause, Exit, WorkerError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use support::{Check, Coordinator, OPEN, Worker, actor, assignment, claim, cram, role};
use tempfile::TempDir;

type Decided = v1::complete_request::Verdict;

/// A coordinator, and a data directory for its worker.
fn started() -> Result<(Coordinator, TempDir), Box<dyn std::error::Error>> {
    Ok((Coordinator::start()?, tempfile::tempdir()?))
}

/// A worker whose engines do what the claims say.
fn worker(coordinator: &Coordinator, data: &TempDir) -> Worker {
    Worker::start(coordinator, data.path(), actor(&Arc::default()))
}

/// Has a claim handed out.
fn assign(coordinator: &Coordinator, lease: u64, role: i16) {
    coordinator.script().assignments.push_back(assignment(lease, &cram(), &claim(role)));
}

/// Ends a worker in order.
fn end(worker: Worker) {
    worker.drain.begin(Cause::Terminated);
    assert_eq!(worker.join(), Ok(Exit::Done));
}

#[test]
fn a_result_is_sent_until_acknowledged_across_a_restart() -> Check {
    let (mut coordinator, data) = started()?;
    coordinator.script().complete_failures = u32::MAX;
    assign(&coordinator, 7, role::CHEAP);
    let worker = worker(&coordinator, &data);
    coordinator.wait("two attempts", |script| (script.complete_attempts >= 2).then_some(()));
    // The lease is kept alive while its result waits.
    coordinator.script().heartbeats.clear();
    coordinator.wait("a heartbeat with the lease", |script| {
        script.heartbeats.iter().find(|h| !h.leases.is_empty()).cloned()
    });
    coordinator.restart()?;
    coordinator.script().complete_failures = 1;
    let complete = coordinator.wait("the result", |script| script.completes.pop());
    assert_eq!((complete.lease, complete.lease_epoch, complete.job, complete.nodes), (7, 1, 1, 10));
    assert_eq!(complete.verdict, Some(Decided::Decided(true)));
    assert_eq!(complete.session.map(|session| session.epoch), Some(2));
    let registers = coordinator.script().registers.clone();
    assert_eq!(registers.len(), 2);
    assert!(registers[0].incarnation != 0 && registers[0].incarnation == registers[1].incarnation);

    // Acknowledged once, it is not sent again, and the lease is no longer renewed.
    coordinator.script().heartbeats.clear();
    let last = coordinator.wait("three heartbeats", |script| script.heartbeats.get(2).cloned());
    assert_eq!((last.leases, coordinator.script().completes.len()), (vec![], 0));
    end(worker);
    Ok(())
}

#[test]
fn a_restarted_coordinator_takes_over_a_lease_and_ends_it() -> Check {
    let (mut coordinator, data) = started()?;
    assign(&coordinator, 9, role::ENDLESS);
    let worker = worker(&coordinator, &data);
    let renewed = |script: &mut support::Script, epoch| {
        let heartbeat = script.heartbeats.pop()?;
        heartbeat.leases.into_iter().find(|lease| lease.lease == 9 && lease.epoch == epoch && lease.nodes > 0)
    };
    let progress = coordinator.wait("progress", |script| renewed(script, 1));
    let named = v1::lease_progress::Task::Claim((&claim(role::ENDLESS)).into());
    assert_eq!((progress.job, progress.task), (1, Some(named)));

    coordinator.restart()?;
    coordinator.script().heartbeats.clear();
    let still_old = coordinator.wait("the old lease in the new epoch", |script| renewed(script, 1));
    assert_eq!(still_old.lease, 9);
    coordinator.script().heartbeat = Some(v1::HeartbeatResponse { adopted: vec![9], ..Default::default() });
    coordinator.wait("the lease under its new epoch", |script| renewed(script, 2));

    let lapsed = vec![v1::LapsedLease { lease: 9, epoch: 2 }];
    coordinator.script().heartbeat = Some(v1::HeartbeatResponse { lapsed, ..Default::default() });
    assign(&coordinator, 10, role::CHEAP);
    let next = coordinator.wait("the next result", |script| script.completes.pop());
    assert_eq!((next.lease, next.lease_epoch), (10, 2));
    // Of the lapsed one nothing was handed in, nor was it handed back.
    let script = coordinator.script();
    assert!(script.completes.is_empty() && script.releases.is_empty(), "{:?}", script.completes);
    drop(script);
    end(worker);
    Ok(())
}

#[test]
fn a_drain_hands_in_open_numbers() -> Check {
    let (coordinator, data) = started()?;
    assign(&coordinator, 3, role::ENDLESS);
    let worker = worker(&coordinator, &data);
    coordinator.wait("progress", |script| {
        script.heartbeats.iter().any(|h| h.leases.iter().any(|lease| lease.nodes > 0)).then_some(())
    });
    worker.drain.begin(Cause::Interrupted);
    assert_eq!(worker.join(), Ok(Exit::Interrupted));
    let script = coordinator.script();
    let numbers = Some(v1::Numbers { proof: OPEN.proof, disproof: OPEN.disproof });
    let children = vec![v1::Child { claim: Some((&claim(role::ENDLESS)).into()), numbers, same: true }];
    let open = Some(Decided::Open(v1::Open { numbers, children }));
    assert_eq!(script.completes.len(), 1);
    assert!(script.completes[0].nodes > 0);
    assert_eq!((script.completes[0].lease, &script.completes[0].verdict), (3, &open));
    // It says goodbye, and nothing after that.
    assert_eq!(script.unregisters.len(), 1);
    let (heartbeats, unregister) = &script.unregisters[0];
    assert_eq!((*heartbeats, &unregister.session), (script.heartbeats.len(), &script.completes[0].session));
    Ok(())
}

#[test]
fn a_panic_or_a_refusal_costs_only_its_lease() -> Check {
    let (coordinator, data) = started()?;
    for (lease, role) in [(1, role::PANIC), (2, role::MALFORMED), (3, role::CHEAP)] {
        assign(&coordinator, lease, role);
    }
    let unknown = grundy_games::problem::Fields { game: "chess".into(), ..cram() };
    coordinator.script().assignments.push_back(assignment(4, &unknown, &claim(role::CHEAP)));
    let worker = worker(&coordinator, &data);
    let mut releases = coordinator.wait("three releases", |script| {
        (script.releases.len() == 3).then(|| std::mem::take(&mut script.releases))
    });
    releases.sort_by_key(|release| release.lease);
    let reasons =
        ["panic: as the claim asks", "not a claim of actor: as the claim asks", "unknown game 'chess'"];
    for (release, (lease, reason)) in releases.iter().zip([1, 2, 4].into_iter().zip(reasons)) {
        assert!(release.failed && release.lease == lease && release.reason.contains(reason), "{release:?}");
        assert_eq!((release.job, release.lease_epoch), (1, 1));
    }
    let complete = coordinator.wait("the result in between", |script| script.completes.pop());
    assert_eq!(complete.lease, 3);
    end(worker);
    Ok(())
}

#[test]
fn facts_are_learned_once_and_the_cursor_moves_on() -> Check {
    let (coordinator, data) = started()?;
    let fact = |parameter| Fact { claim: claim(parameter), truth: false, work: 99 };
    let batch = |parameter, next| v1::FactBatch { job: 1, facts: vec![(&fact(parameter)).into()], next };
    let with_facts =
        v1::Assignment { facts: Some(batch(5, 1)), ..assignment(1, &cram(), &claim(role::CHEAP)) };
    coordinator.script().assignments.push_back(with_facts.clone());
    coordinator.script().assignments.push_back(v1::Assignment { lease: 2, ..with_facts });
    let learned = Arc::new(Mutex::default());
    let worker = Worker::start(&coordinator, data.path(), actor(&learned));
    coordinator.wait("both results", |script| (script.completes.len() == 2).then_some(()));
    coordinator.script().heartbeat =
        Some(v1::HeartbeatResponse { facts: vec![batch(6, 2)], ..Default::default() });
    let cursor = vec![v1::FactCursor { job: 1, next: 2 }];
    coordinator
        .wait("the cursor", |script| script.leases.iter().any(|lease| lease.cursors == cursor).then_some(()));
    let learned = learned.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(learned, [fact(5), fact(6)]);
    end(worker);
    Ok(())
}

#[test]
fn a_costly_result_outlives_the_process_and_finds_its_job() -> Check {
    let (coordinator, data) = started()?;
    coordinator.script().complete_failures = u32::MAX;
    assign(&coordinator, 1, role::COSTLY);
    let first = worker(&coordinator, &data);
    coordinator.wait("an attempt", |script| (script.complete_attempts > 0).then_some(()));
    first.drain.begin(Cause::ParentGone);
    assert_eq!(first.join(), Ok(Exit::Done));

    // The next process has it, but keeps it while the coordinator means another problem by job 1.
    coordinator.script().complete_failures = 0;
    let second = worker(&coordinator, &data);
    let mut other_job = assignment(2, &cram(), &claim(role::CHEAP));
    other_job.job = 2;
    coordinator.script().assignments.push_back(other_job);
    let complete = coordinator.wait("a result of job 2", |script| script.completes.pop());
    assert_eq!((complete.lease, complete.job), (2, 2));
    assign(&coordinator, 3, role::CHEAP);
    let of_job = coordinator.wait("both results of job 1", |script| {
        (script.completes.len() == 2).then(|| script.completes.clone())
    });
    let mut leases: Vec<_> = of_job.iter().map(|complete| complete.lease).collect();
    leases.sort_unstable();
    assert_eq!(leases, [1, 3]);
    let costly = of_job.iter().find(|complete| complete.lease == 1).ok_or("the costly result")?;
    assert_eq!((costly.nodes, &costly.verdict), (1 << 30, &Some(Decided::Decided(false))));
    end(second);

    // Acknowledged, it is gone from the spool.
    coordinator.script().completes.clear();
    let third = worker(&coordinator, &data);
    assign(&coordinator, 4, role::CHEAP);
    coordinator.wait("the result of lease 4", |script| script.completes.pop());
    end(third);
    assert_eq!(coordinator.script().completes, []);
    Ok(())
}

#[test]
fn a_result_left_for_another_problem_is_not_sent() -> Check {
    let (coordinator, data) = started()?;
    coordinator.script().complete_failures = u32::MAX;
    assign(&coordinator, 1, role::COSTLY);
    let first = worker(&coordinator, &data);
    coordinator.wait("an attempt", |script| (script.complete_attempts > 0).then_some(()));
    first.drain.begin(Cause::ParentGone);
    assert_eq!(first.join(), Ok(Exit::Done));

    coordinator.script().complete_failures = 0;
    let other = grundy_games::problem::Fields { position: "....".into(), ..cram() };
    coordinator.script().assignments.push_back(assignment(2, &other, &claim(role::CHEAP)));
    assign(&coordinator, 3, role::CHEAP);
    let second = worker(&coordinator, &data);
    coordinator.wait("two results", |script| (script.completes.len() >= 2).then_some(()));
    end(second);
    let leases: Vec<_> = coordinator.script().completes.iter().map(|complete| complete.lease).collect();
    assert_eq!(leases, [2, 3]);
    Ok(())
}

#[test]
fn a_contradiction_ends_the_worker_and_hands_nothing_in() -> Check {
    let (coordinator, data) = started()?;
    assign(&coordinator, 1, role::CONTRADICT);
    let worker = worker(&coordinator, &data);
    let error = worker.join().expect_err("both truths were stored");
    assert_eq!(error.exit(), Exit::Corruption);
    let text = error.to_string();
    // Both values, and where.
    for part in ["table cram", "proof: 0,", "disproof: 0 "] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(coordinator.script().completes, []);
    Ok(())
}

#[test]
fn a_superseded_worker_ends_with_the_reason() -> Check {
    let (coordinator, data) = started()?;
    let worker = worker(&coordinator, &data);
    coordinator.wait("a registration", |script| (!script.registers.is_empty()).then_some(()));
    coordinator.script().superseded = true;
    let error = worker.join().expect_err("superseded");
    assert!(matches!(&error, WorkerError::Superseded { worker, .. } if worker == "tested"), "{error}");
    assert_eq!(error.exit(), Exit::Failed);
    Ok(())
}

#[test]
fn a_worker_outlives_a_coordinator_it_knows() -> Check {
    let (mut coordinator, data) = started()?;
    let worker = worker(&coordinator, &data);
    coordinator.wait("a registration", |script| (!script.registers.is_empty()).then_some(()));
    coordinator.stop();
    std::thread::sleep(Duration::from_millis(500));
    assert!(!worker.finished());
    assign(&coordinator, 1, role::CHEAP);
    coordinator.restart()?;
    let complete = coordinator.wait("the result", |script| script.completes.pop());
    assert_eq!(complete.lease_epoch, 2);
    end(worker);
    Ok(())
}
