//! The services over real loopback gRPC, with storage in memory.

mod support;

use grundy::actor::State;
use grundy::server::ServerError;
use grundy::service::status::RETRYABLE_KEY;
use grundy_proto::v1;
use grundy_tables::jobs::record::{Epoch, JobId, Loaded, PartId, Write};
use grundy_tables::{Durability, JobStorage, MemoryJobs, StorageError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{Coordinator, TestResult, Worker, message, problem, registration};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

async fn coordinator() -> Result<Coordinator, Box<dyn std::error::Error>> {
    Coordinator::start(Arc::new(MemoryJobs::new())).await
}

fn submit(game: &str, position: &str, question: &str) -> v1::SubmitRequest {
    v1::SubmitRequest { problem: problem(game, position, question) }
}

#[tokio::test]
async fn a_job_is_submitted_listed_and_cancelled() -> TestResult {
    let coordinator = coordinator().await?;
    let mut user = coordinator.user().await?;
    let first = user.submit(submit("cram", "3x4", "nimber")).await?.into_inner();
    assert_eq!((first.job, first.resumed), (1, false));
    // The same problem in other words is the same job.
    let again = user.submit(submit("cram", "....|....|....", "")).await?.into_inner();
    assert_eq!((again.job, again.resumed), (1, true));
    let listed = user.list(v1::ListRequest {}).await?.into_inner();
    let states: Vec<_> = listed.jobs.iter().map(|view| (view.job, view.state())).collect();
    assert_eq!(states, [(1, v1::JobState::Running)]);
    let known = user.query(v1::QueryRequest { job: 1, position: String::new() }).await?.into_inner();
    assert!(!known.decided);
    let mut watched = user.watch(v1::WatchRequest { job: 1, interval_ms: 100 }).await?.into_inner();
    let view = watched.message().await?.and_then(|response| response.view).ok_or("a watch starts at once")?;
    assert_eq!(view.state(), v1::JobState::Running);
    let cancelled = user.cancel(v1::CancelRequest { job: 1 }).await?.into_inner().view.ok_or("a view")?;
    assert_eq!(cancelled.state(), v1::JobState::Cancelled);
    let mut last = view;
    while let Some(response) = watched.message().await? {
        last = response.view.ok_or("a view")?;
    }
    assert_eq!(last.state(), v1::JobState::Cancelled, "a watch ends with the job");
    Ok(coordinator.server.stop().await?)
}

#[tokio::test]
async fn refusals_have_their_codes() -> TestResult {
    let coordinator = coordinator().await?;
    let mut user = coordinator.user().await?;
    let refused = |status: tonic::Status| (status.code(), status.message().to_owned());
    let long = "#".repeat(5000);
    for (request, expected) in [
        (submit("chess", "8x8", ""), "unknown game 'chess'"),
        (submit("cram", "x", ""), "cram: "),
        (submit("cram", &long, ""), "field problem.position: 5000 bytes"),
        (v1::SubmitRequest { problem: None }, "field problem is missing"),
    ] {
        let status = user.submit(request).await.expect_err("this is no problem");
        assert_eq!(status.metadata().get(RETRYABLE_KEY).map(|value| value.as_bytes()), Some(&b"false"[..]));
        let (code, words) = refused(status);
        assert_eq!(code, Code::InvalidArgument, "{words}");
        assert!(words.starts_with(expected), "{words}");
    }
    let status = user.get(v1::GetRequest { job: 9 }).await.expect_err("there is no job 9");
    assert_eq!(refused(status), (Code::NotFound, "no job 9".to_owned()));
    let status =
        user.watch(v1::WatchRequest { job: 9, interval_ms: 0 }).await.expect_err("there is no job 9");
    assert_eq!(status.code(), Code::NotFound);
    user.submit(submit("cram", "3x4", "")).await?;
    let status =
        user.watch(v1::WatchRequest { job: 1, interval_ms: 5 }).await.expect_err("5 ms is too often");
    assert_eq!(status.code(), Code::InvalidArgument);

    let mut worker = coordinator.worker("w").await?;
    let mut old = registration("v");
    old.protocol_version += 1;
    let status = worker.client.register(old).await.expect_err("another protocol");
    assert_eq!(status.code(), Code::FailedPrecondition);
    let nameless = v1::RegisterRequest { worker: String::new(), ..registration("v") };
    assert_eq!(worker.client.register(nameless).await.expect_err("no name").code(), Code::InvalidArgument);
    worker.session.epoch += 1;
    assert_eq!(worker.lease(0).await.expect_err("another epoch").code(), Code::FailedPrecondition);
    worker.session.epoch -= 1;
    assert_eq!(worker.lease(40_000).await.expect_err("too long a wait").code(), Code::InvalidArgument);
    let newer = v1::RegisterRequest { incarnation: 8, ..registration("w") };
    worker.client.register(newer).await?;
    assert_eq!(worker.lease(0).await.expect_err("superseded").code(), Code::Aborted);
    Ok(coordinator.server.stop().await?)
}

#[tokio::test]
async fn a_worker_solves_what_is_decided_by_claims() -> TestResult {
    let coordinator = coordinator().await?;
    let mut user = coordinator.user().await?;
    user.submit(submit("cram", "3x4", "nimber")).await?;
    user.submit(submit("konane", "..xo|oxox|xoxo|oxox x", "winner")).await?;
    let mut worker = coordinator.worker("w").await?;
    assert!(worker.work(300).await? > 0);
    let jobs = user.list(v1::ListRequest {}).await?.into_inner().jobs;
    let answers: Vec<_> = jobs.iter().map(|view| (view.state(), view.answer_text.as_str())).collect();
    assert_eq!(answers[0], (v1::JobState::Solved, "nimber 1"), "published: 3x4 is *1");
    assert_eq!(answers[1].0, v1::JobState::Solved);
    let known = user.query(v1::QueryRequest { job: 1, position: String::new() }).await?.into_inner();
    assert_eq!((known.decided, known.answer_json.as_str()), (true, r#"{"nimber":1}"#));
    Ok(coordinator.server.stop().await?)
}

/// A cross of 3x3 with arms of one: small, with a centre-to-centre question that is joined from two halves, and one that is not.
const CROSS: &str = "##o##|#ooo#|oo.oo|#ooo#|##o##";

/// The answer to a counting job, counted in this process.
fn counted_here(view: &v1::JobView) -> Result<u128, Box<dyn std::error::Error>> {
    let problem = view.problem.clone().ok_or("a problem")?;
    let problem = grundy_games::peg::Problem::from_text("", &problem.position, &problem.question)?;
    let (stop, progress) = Default::default();
    let limits = grundy_search::engine::Limits::endless(&stop, &progress);
    Ok(grundy_search::peg::count(&problem, 1, &limits)?)
}

#[tokio::test]
async fn a_worker_counts_part_by_part() -> TestResult {
    let coordinator = coordinator().await?;
    let mut user = coordinator.user().await?;
    user.submit(submit("peg", CROSS, "finish c3")).await?;
    user.submit(submit("peg", CROSS, "finish any")).await?;
    user.submit(submit("peg", "oo.|.o.|...", "finish any")).await?;
    let mut worker = coordinator.worker("w").await?;
    assert!(worker.work(300).await? > 3);
    for view in user.list(v1::ListRequest {}).await?.into_inner().jobs {
        let (count, problem) = (counted_here(&view)?, view.problem.clone());
        assert_eq!(
            (view.state(), view.answer_text.lines().next()),
            (v1::JobState::Solved, Some(&*count.to_string())),
            "{problem:?}"
        );
    }
    Ok(coordinator.server.stop().await?)
}

#[tokio::test]
async fn a_damaged_part_is_refused_and_a_repeated_one_is_known() -> TestResult {
    use v1::complete_part_request::Message;
    let coordinator = coordinator().await?;
    let mut user = coordinator.user().await?;
    user.submit(submit("peg", CROSS, "finish any")).await?;
    let mut worker = coordinator.worker("w").await?;
    let Some(v1::lease_response::Outcome::Assignment(assignment)) = worker.lease(1000).await? else {
        return Err("there is a part to do".into());
    };
    let Some(v1::assignment::Task::Part(task)) = assignment.task else { return Err("a part".into()) };
    let good = worker.count(&assignment, task).await?;
    type Damage = fn(&mut Vec<v1::CompletePartRequest>);
    let damages: [(&str, Damage); 7] = [
        ("field chunk.crc32c", |messages| {
            if let Some(Message::Chunk(chunk)) = &mut messages[2].message {
                chunk.data[0] ^= 1;
            }
        }),
        ("field chunk: the stream ends", |messages| drop(messages.pop())),
        ("field message: more than", |messages| messages.extend(messages.last().cloned())),
        ("field message: a chunk comes first", |messages| drop(messages.remove(0))),
        ("field result.outputs", |messages| {
            if let Some(Message::Result(result)) = &mut messages[0].message {
                result.outputs.push(1);
            }
        }),
        ("field result.shares: shares of the answer before", |messages| {
            if let Some(Message::Result(result)) = &mut messages[0].message {
                result.shares = vec![v1::FinishShare { hole: 0, ways: vec![1; 16] }];
            }
        }),
        ("field result.shares: hole 0: a count has 16 bytes", |messages| {
            if let Some(Message::Result(result)) = &mut messages[0].message {
                result.shares = vec![v1::FinishShare { hole: 0, ways: vec![1; 15] }];
            }
        }),
    ];
    for (expected, damage) in damages {
        let mut messages = good.clone();
        damage(&mut messages);
        let status = worker.client.complete_part(tokio_stream::iter(messages)).await.expect_err(expected);
        assert_eq!(status.code(), Code::InvalidArgument, "{expected}: {status}");
        assert!(status.message().starts_with(expected), "{expected}: {}", status.message());
    }
    let nothing = worker
        .client
        .complete_part(tokio_stream::iter([message(Message::Chunk(v1::RunChunk::default()))]))
        .await;
    assert_eq!(nothing.expect_err("no result").code(), Code::InvalidArgument);
    let first = worker.client.complete_part(tokio_stream::iter(good.clone())).await?.into_inner();
    assert_eq!(first.acceptance(), v1::Acceptance::Accepted);
    let second = worker.client.complete_part(tokio_stream::iter(good)).await?.into_inner();
    assert_eq!(second.acceptance(), v1::Acceptance::Known);
    Ok(coordinator.server.stop().await?)
}

/// Somebody begins to hand in a part while it is wanted, goes on once it is done, with other runs, and never ends. Storing runs as they
/// came in once turned that into a wrong count.
#[tokio::test]
async fn what_is_stored_of_a_part_is_what_was_accepted() -> TestResult {
    use v1::complete_part_request::Message;
    let coordinator = coordinator().await?;
    let mut user = coordinator.user().await?;
    let submitted = user.submit(submit("peg", CROSS, "finish any")).await?.into_inner();
    let mut worker = coordinator.worker("w").await?;
    let Some(v1::lease_response::Outcome::Assignment(assignment)) = worker.lease(1000).await? else {
        return Err("there is a part to do".into());
    };
    let Some(v1::assignment::Task::Part(task)) = assignment.task else { return Err("a part".into()) };
    let good = worker.count(&assignment, task).await?;
    let mut header = good[0].clone();
    if let Some(Message::Result(result)) = &mut header.message {
        result.outputs = vec![0];
    }
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let mut rogue = coordinator.worker("rogue").await?;
    let stream = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let late = tokio::spawn(async move { rogue.client.complete_part(stream).await });
    sender.send(header).await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let accepted = worker.client.complete_part(tokio_stream::iter(good)).await?.into_inner();
    assert_eq!(accepted.acceptance(), v1::Acceptance::Accepted);
    let empty = vec![0];
    let chunk = v1::RunChunk { run: 0, crc32c: crc32c::crc32c(&empty), data: empty, last: true };
    sender.send(message(Message::Chunk(chunk))).await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    worker.work(1000).await?;
    let view = user.get(v1::GetRequest { job: submitted.job }).await?.into_inner().view.ok_or("a view")?;
    let count = counted_here(&view)?;
    assert_eq!((view.state(), view.answer_text), (v1::JobState::Solved, count.to_string()));
    late.abort();
    Ok(coordinator.server.stop().await?)
}

#[tokio::test]
async fn a_task_does_not_go_to_a_caller_that_has_left() -> TestResult {
    let coordinator = coordinator().await?;
    let mut user = coordinator.user().await?;
    let mut gone = coordinator.worker("gone").await?;
    // Nothing to do yet: the call is held. Its client gives up.
    assert!(tokio::time::timeout(Duration::from_millis(200), gone.lease(30_000)).await.is_err());
    tokio::time::sleep(Duration::from_millis(200)).await;
    // One part is all there is to do in the first stage.
    user.submit(submit("peg", CROSS, "finish any")).await?;
    let mut here = coordinator.worker("here").await?;
    let outcome = here.lease(2_000).await?;
    assert!(matches!(outcome, Some(v1::lease_response::Outcome::Assignment(_))), "{outcome:?}");
    Ok(coordinator.server.stop().await?)
}

#[tokio::test]
async fn health_and_reflection_tell_of_the_services() -> TestResult {
    let coordinator = coordinator().await?;
    let mut health = HealthClient::new(coordinator.channel().await?);
    let check = |service: &str| HealthCheckRequest { service: service.to_owned() };
    for service in ["", "grundy.v1.WorkerService", "grundy.v1.GrundyService"] {
        assert_eq!(
            health.check(check(service)).await?.into_inner().status(),
            ServingStatus::Serving,
            "{service:?}"
        );
    }
    let mut reflection = ServerReflectionClient::new(coordinator.channel().await?);
    let list = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = reflection.server_reflection_info(tokio_stream::iter([list])).await?.into_inner();
    let answer = answers.message().await?.and_then(|answer| answer.message_response);
    let Some(MessageResponse::ListServicesResponse(services)) = answer else {
        return Err("a list of services".into());
    };
    let names: Vec<_> = services.service.into_iter().map(|service| service.name).collect();
    for name in ["grundy.v1.WorkerService", "grundy.v1.GrundyService", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }

    let mut user = coordinator.user().await?;
    user.drain_coordinator(v1::DrainCoordinatorRequest {}).await?;
    coordinator.server.drained().await?;
    let status = user.submit(submit("cram", "3x4", "")).await.expect_err("it takes no new jobs");
    assert_eq!(status.code(), Code::Unavailable);
    let mut still = true;
    for _ in 0..50 {
        still = health.check(check("")).await?.into_inner().status() == ServingStatus::Serving;
        if !still {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!still, "a draining coordinator does not report to be serving");
    Ok(coordinator.server.stop().await?)
}

#[tokio::test]
async fn nothing_is_acknowledged_once_storage_fails() -> TestResult {
    let storage = Arc::new(MemoryJobs::new());
    let coordinator = Coordinator::start(storage.clone()).await?;
    let mut user = coordinator.user().await?;
    user.submit(submit("cram", "3x4", "")).await?;
    storage.set_full(true);
    let status = user.submit(submit("cram", "3x5", "")).await.expect_err("it cannot be written");
    assert_eq!(status.code(), Code::Unavailable);
    let failure = coordinator.server.drained().await.expect_err("the coordinator stops");
    assert!(matches!(failure, ServerError::Storage(StorageError::Full { .. })), "{failure}");
    assert!(matches!(*coordinator.handle.state().borrow(), State::Failed(_)));
    let status = user.list(v1::ListRequest {}).await.expect_err("nobody answers any more");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(coordinator.server.stop().await.is_err());
    // What was acknowledged before is there.
    storage.set_full(false);
    storage.reopen();
    assert_eq!(storage.load()?.jobs.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_damaged_run_on_disk_stops_the_coordinator() -> TestResult {
    let storage = Arc::new(MemoryJobs::new());
    let coordinator = Coordinator::start(storage.clone()).await?;
    let mut user = coordinator.user().await?;
    user.submit(submit("peg", CROSS, "finish any")).await?;
    let mut worker = coordinator.worker("w").await?;
    let first = worker.lease(1000).await?;
    let Some(v1::lease_response::Outcome::Assignment(assignment)) = first else {
        return Err("a part".into());
    };
    let Some(v1::assignment::Task::Part(task)) = assignment.task else { return Err("a part".into()) };
    let messages = worker.count(&assignment, task).await?;
    worker.client.complete_part(tokio_stream::iter(messages)).await?;
    // Of all that is stored only runs are read again before a restart. Each value may come up several times, never the same bit.
    (0..16).for_each(|value| storage.flip_bit(value, value));
    let failure = worker.work(1000).await.expect_err("the run is damaged");
    let status = failure.downcast_ref::<tonic::Status>().ok_or("a status")?;
    assert_eq!(status.code(), Code::DataLoss, "{status}");
    let failure = coordinator.server.drained().await.expect_err("the coordinator stops");
    assert!(matches!(failure, ServerError::Storage(StorageError::Corrupt { .. })), "{failure}");
    Ok(())
}

/// Storage on a slow disk, which counts its commits.
struct Slow(MemoryJobs, AtomicUsize);

impl JobStorage for Slow {
    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    fn load(&self) -> Result<Loaded, StorageError> {
        self.0.load()
    }

    fn commit(&self, writes: &[Write], durability: Durability) -> Result<(), StorageError> {
        std::thread::sleep(Duration::from_millis(30));
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.commit(writes, durability)
    }

    fn put_run(&self, job: JobId, from: PartId, to_part: u32, bytes: &[u8]) -> Result<(), StorageError> {
        self.0.put_run(job, from, to_part, bytes)
    }

    fn get_run(&self, job: JobId, from: PartId, to_part: u32) -> Result<Vec<u8>, StorageError> {
        self.0.get_run(job, from, to_part)
    }
}

#[tokio::test]
async fn one_sync_serves_many_callers() -> TestResult {
    const CALLERS: usize = 40;
    let storage = Arc::new(Slow(MemoryJobs::new(), AtomicUsize::new(0)));
    let coordinator = Coordinator::start(storage.clone()).await?;
    let mut calls = tokio::task::JoinSet::new();
    for columns in 1..=CALLERS {
        let mut user = coordinator.user().await?;
        calls.spawn(async move { user.submit(submit("cram", &format!("1x{columns}"), "")).await });
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    let commits = storage.1.load(Ordering::Relaxed);
    assert!(commits < CALLERS / 2, "{commits} commits for {CALLERS} callers");
    assert_eq!(storage.load()?.jobs.len(), CALLERS);
    Ok(coordinator.server.stop().await?)
}

/// A call to Exchange: what it says goes into the sender, and it hears what comes out of the stream.
type Exchange = (tokio::sync::mpsc::Sender<v1::ExchangeRequest>, tonic::Streaming<v1::ExchangeResponse>);

async fn exchange(worker: &mut Worker) -> Result<Exchange, tonic::Status> {
    let (sender, requests) = tokio::sync::mpsc::channel(8);
    let hello = v1::exchange_request::Message::Session(worker.session.clone());
    sender.try_send(v1::ExchangeRequest { message: Some(hello) }).expect("there is room");
    let responses = worker.client.exchange(tokio_stream::wrappers::ReceiverStream::new(requests)).await?;
    Ok((sender, responses.into_inner()))
}

fn told(entries: Vec<u8>) -> v1::Told {
    v1::Told { namespace: "cram".to_owned(), crc32c: crc32c::crc32c(&entries), entries: entries.into() }
}

fn says(told: v1::Told) -> v1::ExchangeRequest {
    v1::ExchangeRequest { message: Some(v1::exchange_request::Message::Told(told)) }
}

#[tokio::test]
async fn what_one_worker_tells_all_others_hear() -> TestResult {
    let coordinator = coordinator().await?;
    let mut workers = Vec::new();
    for name in ["a", "b", "c"] {
        workers.push(coordinator.worker(name).await?);
    }
    let (tell, mut hear) = exchange(&mut workers[0]).await?;
    let alone = hear.message().await?.ok_or("an answer at once")?;
    assert_eq!((alone.work_min, alone.told), (u64::MAX, vec![]), "nobody else is there");
    let (_tell_b, mut hear_b) = exchange(&mut workers[1]).await?;
    let (tell_c, mut hear_c) = exchange(&mut workers[2]).await?;
    // It is told when the second comes, and again when the third does.
    for _ in 0..2 {
        assert_eq!(hear.message().await?.map(|response| response.work_min), Some(1));
    }
    let entries = told(vec![7; 2 * 26]);
    tell.send(says(entries.clone())).await?;
    for hear in [&mut hear_b, &mut hear_c] {
        let heard = loop {
            let response = hear.message().await?.ok_or("the call goes on")?;
            if !response.told.is_empty() {
                break response.told;
            }
        };
        assert_eq!(heard, std::slice::from_ref(&entries));
    }
    // Who tells does not hear it; what it hears next is another's.
    tell_c.send(says(told(vec![9; 26]))).await?;
    assert_eq!(hear.message().await?.map(|response| response.told), Some(vec![told(vec![9; 26])]));
    drop((tell_c, hear_c));
    drop((_tell_b, hear_b));
    loop {
        if hear.message().await?.ok_or("the call goes on")?.work_min == u64::MAX {
            break;
        }
    }
    // An open call does not keep the coordinator from stopping.
    let stopped = tokio::time::Instant::now();
    coordinator.server.stop().await?;
    assert!(stopped.elapsed() < Duration::from_secs(2), "{:?}", stopped.elapsed());
    Ok(())
}

#[tokio::test]
async fn entries_that_cannot_be_are_refused() -> TestResult {
    let coordinator = coordinator().await?;
    let mut worker = coordinator.worker("a").await?;
    let sum = |entries: Vec<u8>| v1::Told { crc32c: 1, ..told(entries) };
    let named = |bytes: usize| v1::Told { namespace: "n".repeat(bytes), ..told(vec![0; 26]) };
    for (message, words) in [
        (says(told(vec![0; 25])), "field told.entries: 25 bytes"),
        (says(told(vec![0; 26 * 4097])), "field told.entries: 4097 entries, at most 4096"),
        (says(sum(vec![0; 26])), "field told.crc32c: "),
        (says(named(0)), "field told.namespace: 0 bytes"),
        (says(named(257)), "field told.namespace: 257 bytes"),
        (v1::ExchangeRequest { message: None }, "field message is missing"),
    ] {
        let (tell, mut hear) = exchange(&mut worker).await?;
        tell.send(message).await?;
        let status = loop {
            match hear.message().await {
                Ok(response) => drop(response.ok_or("an error, not the end")?),
                Err(status) => break status,
            }
        };
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with(words), "{}", status.message());
    }
    // Who did not register, and who does not say who it is.
    worker.session.incarnation += 1;
    let refused = exchange(&mut worker).await.expect_err("another run has the name");
    assert_eq!(refused.code(), Code::Aborted, "{refused}");
    worker.session.worker = "stranger".to_owned();
    let refused = exchange(&mut worker).await.expect_err("nobody registered under that name");
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let refused = worker.client.exchange(tokio_stream::iter([says(told(vec![0; 26]))])).await;
    let refused = refused.expect_err("who calls is not said");
    assert!(refused.message().contains("expected the session"), "{refused}");
    Ok(coordinator.server.stop().await?)
}
