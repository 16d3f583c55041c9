//! The runs of counts, between workers and storage. The core sees only their sizes and checksums.

use super::convert;
use super::status::ServiceError;
use crate::actor::Handle;
use crate::core::api::{Event, LeaseId, PartDescription, Reply};
use grundy_proto::convert::{self as wire, required};
use grundy_proto::{limits, v1};
use grundy_search::peg::run_entries;
use grundy_tables::StorageError;
use grundy_tables::jobs::JobStorage;
use grundy_tables::jobs::record::{JobId, PartId, PartRecord};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Chunks that wait for a slow worker: a few MiB, enough to keep the connection busy while the next run is read.
const CHUNKS_AHEAD: usize = 4;

async fn describe(handle: &Handle, job: JobId, part: PartId) -> Result<PartDescription, ServiceError> {
    match handle.ask(|token| Event::DescribePart { token, job, part }).await? {
        Reply::Part(description) => Ok(description),
        _ => Err(ServiceError::Unexpected { call: "FetchRuns" }),
    }
}

/// Does storage's blocking work on a thread that may block. A broken storage stops the coordinator.
async fn with_storage<T: Send + 'static>(
    handle: &Handle,
    work: impl FnOnce(&dyn JobStorage) -> Result<T, StorageError> + Send + 'static,
) -> Result<T, ServiceError> {
    let storage = Arc::clone(handle.storage());
    let done = tokio::task::spawn_blocking(move || work(&*storage)).await;
    let result = done.map_err(|_| ServiceError::Unexpected { call: "storage" })?;
    if let Err(error) = &result
        && !matches!(error, StorageError::Missing { .. })
    {
        handle.fail(error.clone());
    }
    Ok(result?)
}

/// Streams the input of a part.
pub(super) async fn fetch(
    handle: &Handle,
    request: v1::FetchRunsRequest,
) -> Result<ReceiverStream<Result<v1::RunChunk, Status>>, ServiceError> {
    convert::session(request.session)?;
    let v1::FetchRunsRequest { job, stage, part, .. } = request;
    let job = JobId(job);
    let description = describe(handle, job, PartId { stage, part }).await?;
    if !description.wanted {
        return Err(ServiceError::NotWanted { stage, part });
    }
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let handle = handle.clone();
    tokio::spawn(async move {
        for (run, (from, checksum)) in (0u32..).zip(description.runs) {
            let read = move |storage: &dyn JobStorage| {
                let bytes = storage.get_run(job, from, part)?;
                let found = crc32c::crc32c(&bytes);
                if found == checksum {
                    return Ok(bytes);
                }
                let place =
                    format!("run of job {}, stage {} part {} to part {part}", job.0, from.stage, from.part);
                let reason = format!("its checksum is {found:08x}, accepted was {checksum:08x}");
                Err(StorageError::Corrupt { place, reason })
            };
            match with_storage(&handle, read).await {
                Ok(bytes) => {
                    if send_run(&sender, run, &bytes).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    // A worker that has gone away does not need to know.
                    let _ = sender.send(Err(error.into())).await;
                    return;
                }
            }
        }
    });
    Ok(ReceiverStream::new(receiver))
}

/// Sends a run in pieces; fails when the receiver is gone.
async fn send_run(
    sender: &mpsc::Sender<Result<v1::RunChunk, Status>>,
    run: u32,
    bytes: &[u8],
) -> Result<(), mpsc::error::SendError<Result<v1::RunChunk, Status>>> {
    let crc32c = crc32c::crc32c(bytes);
    let pieces = bytes.len().div_ceil(limits::CHUNK_BYTES_MAX).max(1);
    for piece in 0..pieces {
        let start = piece * limits::CHUNK_BYTES_MAX;
        let end = bytes.len().min(start + limits::CHUNK_BYTES_MAX);
        let last = piece + 1 == pieces;
        let data = bytes[start..end].to_vec();
        sender.send(Ok(v1::RunChunk { run, data, last, crc32c: if last { crc32c } else { 0 } })).await?;
    }
    Ok(())
}

/// Parts that may be on their way in at a time: together they bound what unfinished parts take of the coordinator's memory.
static UPLOADS: Semaphore = Semaphore::const_new(4);

/// How long a part may take to come in; then it makes room for others.
const UPLOAD_TIME: Duration = Duration::from_secs(120);

/// Takes in the result of a part, with its runs.
pub(super) async fn complete_part(
    handle: &Handle,
    messages: Streaming<v1::CompletePartRequest>,
) -> Result<v1::CompleteResponse, ServiceError> {
    let _place = UPLOADS.acquire().await.map_err(|_| ServiceError::Unexpected { call: "CompletePart" })?;
    tokio::time::timeout(UPLOAD_TIME, receive_part(handle, messages)).await.unwrap_or_else(|_| {
        let reason = format!("the part took longer than {} s to come in", UPLOAD_TIME.as_secs());
        Err(convert::invalid("message", reason).into())
    })
}

async fn receive_part(
    handle: &Handle,
    mut messages: Streaming<v1::CompletePartRequest>,
) -> Result<v1::CompleteResponse, ServiceError> {
    let first = next(&mut messages).await?.and_then(|message| message.message);
    let result = match required(first, "message")? {
        v1::complete_part_request::Message::Result(result) => result,
        v1::complete_part_request::Message::Chunk(_) => {
            return Err(convert::invalid("message", "a chunk comes first: expected the result").into());
        }
    };
    let session = convert::session(result.session)?;
    let (job, lease) = (JobId(result.job), LeaseId(result.lease));
    let part = PartId { stage: result.stage, part: result.part };
    let shares = wire::shares(result.shares)?;
    let description = describe(handle, job, part).await?;
    let expected = description.spec.parts_next as usize;
    if result.outputs.len() != expected {
        let reason = format!("{} runs, but the next stage has {expected} parts", result.outputs.len());
        return Err(convert::invalid("result.outputs", reason).into());
    }
    if expected > 0 && !shares.is_empty() {
        return Err(convert::invalid("result.shares", "shares of the answer before the last stage").into());
    }
    let (mut runs, mut checksums, mut room) = (Vec::new(), Vec::new(), limits::PART_BYTES_MAX);
    for (to_part, &entries) in (0u32..).zip(&result.outputs) {
        let bytes = receive_run(&mut messages, to_part, entries, room).await?;
        room -= bytes.len();
        checksums.push(crc32c::crc32c(&bytes));
        // A part that is not wanted is still read to its end: a client that is cut off in the middle of its stream may
        // take the answer for a broken connection and send everything again.
        if description.wanted {
            runs.push(bytes);
        }
    }
    if next(&mut messages).await?.is_some() {
        return Err(convert::invalid("message", format!("more than the {expected} runs announced")).into());
    }
    // Of a part that is done the core compares the results; of any other that is not wanted nothing was stored.
    if !description.wanted && !description.done {
        return Ok(convert::acceptance(crate::core::api::Acceptance::Known));
    }
    let record = PartRecord {
        boards: result.boards,
        boards_with_images: result.boards_with_images,
        shares,
        outputs: result.outputs,
        checksums,
        source: String::new(),
    };
    let nodes = result.nodes;
    match handle
        .ask_with(runs, |token| Event::CompletePart { token, session, lease, job, part, record, nodes })
        .await?
    {
        Reply::Completed(acceptance) => Ok(convert::acceptance(acceptance)),
        _ => Err(ServiceError::Unexpected { call: "CompletePart" }),
    }
}

async fn next(
    messages: &mut Streaming<v1::CompletePartRequest>,
) -> Result<Option<v1::CompletePartRequest>, ServiceError> {
    // The stream's own error is the client's end of the call: it gave up, or its connection broke. Nobody reads the answer.
    messages
        .message()
        .await
        .map_err(|status| convert::invalid("message", format!("stream broken: {status}")).into())
}

/// Receives the pieces of one run and checks them.
async fn receive_run(
    messages: &mut Streaming<v1::CompletePartRequest>,
    expected: u32,
    entries: u64,
    room: usize,
) -> Result<Vec<u8>, ServiceError> {
    let mut bytes = Vec::new();
    loop {
        let Some(message) = next(messages).await? else {
            return Err(convert::invalid("chunk", format!("the stream ends within run {expected}")).into());
        };
        let chunk = match required(message.message, "message")? {
            v1::complete_part_request::Message::Chunk(chunk) => chunk,
            v1::complete_part_request::Message::Result(_) => {
                return Err(convert::invalid("message", "a second result: expected a chunk").into());
            }
        };
        if chunk.run != expected {
            let reason = format!("a piece of run {}: expected one of run {expected}", chunk.run);
            return Err(convert::invalid("chunk.run", reason).into());
        }
        if chunk.data.len() > limits::CHUNK_BYTES_MAX || bytes.len() + chunk.data.len() > room {
            let reason = format!(
                "run {expected} is too big: at most {} bytes a piece and {} a part",
                limits::CHUNK_BYTES_MAX,
                limits::PART_BYTES_MAX
            );
            return Err(convert::invalid("chunk.data", reason).into());
        }
        bytes.extend_from_slice(&chunk.data);
        if chunk.last {
            check_run(&bytes, expected, entries, chunk.crc32c)?;
            return Ok(bytes);
        }
    }
}

/// Checks a whole run: its checksum, and that it holds as many entries as its part announced. What the entries say is
/// checked by the worker that reads them, which has the problem at hand.
fn check_run(bytes: &[u8], run: u32, entries: u64, crc32c: u32) -> Result<(), ServiceError> {
    let found = crc32c::crc32c(bytes);
    if found != crc32c {
        let reason = format!("run {run} arrived with checksum {found:08x}: expected {crc32c:08x}");
        return Err(convert::invalid("chunk.crc32c", reason).into());
    }
    let held = match run_entries(bytes) {
        Ok(held) if held == entries => return Ok(()),
        Ok(held) => format!("{held} entries"),
        Err(error) => format!("no count ({error})"),
    };
    Err(convert::invalid("chunk.data", format!("run {run} holds {held}: expected {entries} entries")).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_search::peg::{Entry, encode_run};

    #[test]
    fn a_run_is_checked_by_checksum_and_count() {
        let entries: Vec<Entry> = (1..=300).map(|board| Entry { board, ways: 2 }).collect();
        let bytes = encode_run(&entries);
        let crc = crc32c::crc32c(&bytes);
        assert_eq!(run_entries(&bytes), Ok(300));
        check_run(&bytes, 0, 300, crc).expect("the run is whole");
        let error = check_run(&bytes, 0, 299, crc).expect_err("one entry more than announced");
        assert_eq!(error.to_string(), "field chunk.data: run 0 holds 300 entries: expected 299 entries");
        let error = check_run(&bytes, 2, 300, crc ^ 1).expect_err("the checksum is wrong");
        assert!(error.to_string().starts_with("field chunk.crc32c: run 2 arrived"), "{error}");
        assert!(run_entries(&[]).is_err());
        assert!(run_entries(&[0xff; 12]).is_err());
        assert!(run_entries(&[0x80]).is_err());
    }
}
