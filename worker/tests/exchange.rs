//! What a worker tells others of its table, and hears of theirs.

mod support;

use grundy_games::claim::Claim;
use grundy_games::plan::{Knowledge, Progress};
use grundy_games::problem::{Approach, Fields, Problem};
use grundy_proto::v1;
use grundy_search::numbers::Numbers;
use grundy_search::table::{Entry, Key, Known, Namespace};
use grundy_tables::telling::{decode_told, encode_told};
use grundy_worker::{Cause, Exit};
use support::{Check, Coordinator, Worker, assignment, engines};

struct Nothing;

impl Knowledge for Nothing {
    fn truth(&self, _: &Claim) -> Option<bool> {
        None
    }
}

/// Konane's 5x5 without two neighbours.
const STARTS: [&str; 4] = [
    "xoxox|oxoxo|x..ox|oxoxo|xoxox x",
    "..xox|oxoxo|xoxox|oxoxo|xoxox x",
    "x..ox|oxoxo|xoxox|oxoxo|xoxox x",
    "xoxox|o..xo|xoxox|oxoxo|xoxox x",
];

/// The first claim of who wins Konane from there, and the namespace of such claims.
fn konane(position: &str) -> Result<(v1::Assignment, String), Box<dyn std::error::Error>> {
    let [game, rules, question] = ["konane", "", "winner"].map(str::to_owned);
    let problem = Problem::from_fields(&Fields { game, rules, position: position.to_owned(), question })?;
    let Approach::Claims(plan) = problem.approach() else { return Err("it is answered by claims".into()) };
    let Progress::Ask(claims) = plan.next(&Nothing) else { return Err("nothing is known of it".into()) };
    Ok((assignment(1, &problem.to_fields(), &claims[0]), plan.rules().namespace()))
}

#[test]
fn what_was_costly_is_told_when_somebody_listens() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    let (assignment, namespace) = konane(STARTS[0])?;
    // Nobody listens at first.
    coordinator.script().hear.push_back(v1::ExchangeResponse {
        work_min: u64::MAX,
        told: vec![],
        every_ms: 5,
    });
    let worker = Worker::start(&coordinator, data.path(), engines());
    coordinator.wait("the call", |script| script.hear.is_empty().then_some(()));
    coordinator.script().assignments.push_back(assignment);
    coordinator.wait("a result", |script| script.completes.pop());
    assert_eq!(coordinator.script().told, []);
    worker.drain.begin(Cause::Terminated);
    assert_eq!(worker.join(), Ok(Exit::Done));

    let data = tempfile::tempdir()?;
    coordinator.script().hear.push_back(v1::ExchangeResponse { work_min: 50, told: vec![], every_ms: 5 });
    let worker = Worker::start(&coordinator, data.path(), engines());
    coordinator.wait("the call", |script| script.hear.is_empty().then_some(()));
    let mut told = Vec::new();
    for start in STARTS {
        coordinator.script().assignments.push_back(konane(start)?.0);
        coordinator.wait("a result", |script| script.completes.pop());
        // What was told in time: it may have heard only meanwhile that somebody listens.
        std::thread::sleep(std::time::Duration::from_millis(50));
        told.append(&mut coordinator.script().told);
    }
    assert!(!told.is_empty());
    for message in told {
        assert_eq!(message.namespace, namespace);
        assert_eq!(crc32c::crc32c(&message.entries), message.crc32c);
        let entries = decode_told(&message.entries, Namespace(0))?;
        // Works are told to within a quarter.
        assert!(!entries.is_empty() && entries.iter().all(|(_, entry)| entry.work >= 40), "{entries:?}");
    }
    worker.drain.begin(Cause::Terminated);
    assert_eq!(worker.join(), Ok(Exit::Done));
    Ok(())
}

/// Two workers that have found opposite truths of one claim: one of them is wrong, and whoever hears of both stops.
#[test]
fn what_is_heard_is_checked_against_what_is_known() -> Check {
    let (coordinator, data) = (Coordinator::start()?, tempfile::tempdir()?);
    let (assignment, namespace) = konane(STARTS[0])?;
    let worker = Worker::start(&coordinator, data.path(), engines());
    coordinator.script().assignments.push_back(assignment);
    coordinator.wait("a result", |script| script.completes.pop());
    let told = |truth, namespace: &str| {
        let known = Known::Numbers(Numbers::decided(truth));
        let entries = encode_told(&[(Key::new([1, 2], 0, Namespace(0)), Entry { known, work: 1 })]);
        let crc32c = crc32c::crc32c(&entries);
        let told = v1::Told { namespace: namespace.to_owned(), entries: entries.into(), crc32c };
        v1::ExchangeResponse { work_min: u64::MAX, told: vec![told], every_ms: 5 }
    };
    let damaged = |response: v1::ExchangeResponse| v1::ExchangeResponse {
        told: response.told.into_iter().map(|told| v1::Told { crc32c: !told.crc32c, ..told }).collect(),
        ..response
    };
    // Of another game, damaged on the way, and then twice the same: none of these is anything to stop for.
    let mut hear = vec![told(false, "another"), damaged(told(false, &namespace))];
    hear.extend([true, true, false].map(|truth| told(truth, &namespace)));
    let last = hear.pop();
    coordinator.script().hear.extend(hear);
    coordinator.wait("all to be heard", |script| script.hear.is_empty().then_some(()));
    assert!(!worker.finished());
    coordinator.script().hear.extend(last);
    let error = worker.join().expect_err("both truths were heard");
    assert_eq!(error.exit(), Exit::Corruption);
    assert!(error.to_string().contains(&namespace), "{error}");
    Ok(())
}
