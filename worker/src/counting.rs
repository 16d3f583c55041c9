//! One part of one stage of a counting job: fetch the input runs, merge, expand or share out, hand the output in.

use crate::leases::Held;
use crate::session::{Client, Ended, Patience, Session};
use grundy_proto::convert::shares_to_wire;
use grundy_proto::{limits, v1};
use grundy_search::engine::Limits;
use grundy_search::peg::{CountError, Counter, RunError, encode_run, merge};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tonic::{Request, Status};

/// A run travels at least this fast, or the call is given up: slower than any network worth using.
const BYTES_PER_SECOND_MIN: u64 = 256 << 10;

/// Why a part has no result.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// The task contradicts the problem's stages.
    #[error(
        "stage {stage} with {inputs} + {join_inputs} inputs and {parts_next} next parts does not fit a count of {levels} levels"
    )]
    Task {
        /// The task's stage.
        stage: u32,
        /// Its input runs.
        inputs: u32,
        /// Its join inputs.
        join_inputs: u32,
        /// The parts its output is cut into.
        parts_next: u32,
        /// Levels that the count needs.
        levels: u32,
    },
    /// A run from the coordinator is none of this problem.
    #[error("input run {run}: {source}")]
    Run {
        /// Its number.
        run: usize,
        /// What is wrong.
        source: RunError,
    },
    /// The count itself failed.
    #[error(transparent)]
    Count(#[from] CountError),
    /// The coordinator refused a call.
    #[error("{call}: {reason}")]
    Refused {
        /// The call.
        call: &'static str,
        /// Its words.
        reason: String,
    },
    /// The worker drains, or the lease lapsed.
    #[error("stopped before the part was done")]
    Stopped,
}

impl PartError {
    fn ended(call: &'static str, ended: Ended) -> Self {
        match ended {
            Ended::Draining => Self::Stopped,
            Ended::Refused(status) => Self::Refused { call, reason: crate::session::reason(&status) },
        }
    }
}

/// A part's result, ready to be sent.
#[derive(Debug)]
pub struct PartDone {
    header: v1::PartResult,
    runs: Arc<Vec<Vec<u8>>>,
}

/// Does the part: input, merge, and the next level's runs or the answer's share.
///
/// # Errors
/// [`PartError`].
pub fn work(
    counter: &Counter,
    task: &v1::PartTask,
    held: &Held,
    fetch: impl FnOnce() -> Result<Vec<Vec<u8>>, PartError>,
) -> Result<PartDone, PartError> {
    let v1::PartTask { stage, part, parts_next, inputs, join_inputs } = *task;
    let levels = counter.levels();
    let last = stage == levels;
    let first = stage == 0;
    let joins = last && counter.near_level().is_some_and(|near| near > 0 && near < levels);
    let fits =
        stage <= levels && last == (parts_next == 0) && first == (inputs == 0) && joins == (join_inputs > 0);
    if !fits {
        return Err(PartError::Task { stage, inputs, join_inputs, parts_next, levels });
    }
    let stopped = || held.stop.load(Ordering::Relaxed);
    let (mut own, mut near) = (Vec::new(), Vec::new());
    if inputs + join_inputs > 0 {
        for (run, bytes) in fetch()?.into_iter().enumerate() {
            if stopped() {
                return Err(PartError::Stopped);
            }
            let entries = counter.decode_run(&bytes).map_err(|source| PartError::Run { run, source })?;
            if run < inputs as usize {
                own.push(entries);
            } else {
                near.push(entries);
            }
        }
    }
    let level = if first { counter.first() } else { merge(own)? };
    let size = counter.level_size(&level);
    let (shares, next) = if last {
        (counter.share(&merge(near)?, &level)?, Vec::new())
    } else {
        let limits = Limits::endless(&held.stop, &held.nodes);
        (Vec::new(), counter.expand(&level, parts_next, &limits)?)
    };
    if stopped() {
        return Err(PartError::Stopped);
    }
    let header = v1::PartResult {
        session: None,
        lease: held.id.0,
        lease_epoch: held.epoch().0,
        job: held.job.0,
        stage,
        part,
        boards: size.orbits,
        boards_with_images: size.boards,
        outputs: next.iter().map(|run| run.len() as u64).collect(),
        nodes: held.nodes.load(Ordering::Relaxed),
        shares: shares_to_wire(shares.into_iter().map(|(hole, ways)| (hole.number(), ways))),
    };
    let runs = Arc::new(next.iter().map(|run| encode_run(run)).collect());
    Ok(PartDone { header, runs })
}

/// Reads the input of a part: its runs, then its join runs, each checked against its checksum.
///
/// # Errors
/// [`PartError::Refused`], [`PartError::Stopped`].
pub async fn fetch(
    session: &Session,
    client: &Client,
    held: &Held,
    task: &v1::PartTask,
) -> Result<Vec<Vec<u8>>, PartError> {
    let runs = task.inputs as usize + task.join_inputs as usize;
    let (job, stage, part) = (held.job.0, task.stage, task.part);
    let call = |client: Client, session: v1::Session| {
        let request = v1::FetchRunsRequest { session: Some(session), job, stage, part };
        read_runs(client, request, runs)
    };
    let answer = session.until_answered(client, "FetchRuns", Patience::UntilDrain, call).await;
    answer.map(|(runs, _)| runs).map_err(|ended| PartError::ended("FetchRuns", ended))
}

async fn read_runs(
    mut client: Client,
    request: v1::FetchRunsRequest,
    runs: usize,
) -> Result<Vec<Vec<u8>>, Status> {
    let mut request = Request::new(request);
    request.set_timeout(limits::CALL_DEADLINE);
    let mut pieces = client.fetch_runs(request).await?.into_inner();
    let mut gathered = Gathered::new(runs);
    loop {
        // The deadline of the call covers its beginning only; each piece has one of its own.
        let piece = tokio::time::timeout(limits::CALL_DEADLINE, pieces.message())
            .await
            .map_err(|_| Status::deadline_exceeded("no piece of a run came in time"))??;
        match piece {
            Some(piece) => gathered.add(piece)?,
            None => return gathered.finish(),
        }
    }
}

/// Runs being put together from their pieces.
struct Gathered {
    expected: usize,
    whole: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl Gathered {
    fn new(expected: usize) -> Self {
        Self { expected, whole: Vec::new(), open: Vec::new() }
    }

    fn add(&mut self, piece: v1::RunChunk) -> Result<(), Status> {
        let run = self.whole.len();
        if piece.run as usize != run || run >= self.expected {
            let expected = self.expected;
            return Err(Status::data_loss(format!(
                "a piece of run {} came where run {run} of {expected} goes on",
                piece.run
            )));
        }
        if self.open.len() + piece.data.len() > limits::PART_BYTES_MAX {
            let max = limits::PART_BYTES_MAX;
            return Err(Status::data_loss(format!("run {run} has more than {max} bytes")));
        }
        self.open.extend_from_slice(&piece.data);
        if piece.last {
            let whole = std::mem::take(&mut self.open);
            let checksum = crc32c::crc32c(&whole);
            if checksum != piece.crc32c {
                return Err(Status::data_loss(format!(
                    "run {run} has checksum {checksum:08x}, announced was {:08x}",
                    piece.crc32c
                )));
            }
            self.whole.push(whole);
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Vec<u8>>, Status> {
        if self.whole.len() == self.expected && self.open.is_empty() {
            return Ok(self.whole);
        }
        // Cut short by a broken connection, most likely: worth another try.
        Err(Status::unavailable(format!("{} of {} runs came", self.whole.len(), self.expected)))
    }
}

/// Hands a part in, again and again until it is acknowledged.
///
/// # Errors
/// [`PartError::Refused`], [`PartError::Stopped`].
pub async fn hand_in(
    session: &Session,
    client: &Client,
    held: &Held,
    done: &PartDone,
) -> Result<v1::Acceptance, PartError> {
    let bytes: u64 = done.runs.iter().map(|run| run.len() as u64).sum();
    let deadline = limits::CALL_DEADLINE + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
    let call = |mut client: Client, session: v1::Session| {
        let header =
            v1::PartResult { session: Some(session), lease_epoch: held.epoch().0, ..done.header.clone() };
        let mut request = Request::new(tokio_stream::iter(messages(header, Arc::clone(&done.runs))));
        request.set_timeout(deadline);
        async move { Ok(client.complete_part(request).await?.into_inner()) }
    };
    let answer = session.until_answered(client, "CompletePart", Patience::UntilHandedIn, call).await;
    answer.map(|(response, _)| response.acceptance()).map_err(|ended| PartError::ended("CompletePart", ended))
}

/// The header, then each run in pieces, made one at a time as the stream takes them.
fn messages(
    header: v1::PartResult,
    runs: Arc<Vec<Vec<u8>>>,
) -> impl Iterator<Item = v1::CompletePartRequest> {
    use v1::complete_part_request::Message;
    let chunk = limits::CHUNK_BYTES_MAX;
    // An empty piece still carries the end of its run.
    let pieces: Vec<(usize, usize)> = runs
        .iter()
        .enumerate()
        .flat_map(|(run, bytes)| (0..bytes.len().max(1)).step_by(chunk).map(move |start| (run, start)))
        .collect();
    let pieces = pieces.into_iter().map(move |(run, start)| {
        let bytes = &runs[run];
        let end = bytes.len().min(start + chunk);
        let last = end == bytes.len();
        let crc32c = if last { crc32c::crc32c(bytes) } else { 0 };
        Message::Chunk(v1::RunChunk { run: run as u32, data: bytes[start..end].to_vec(), last, crc32c })
    });
    std::iter::once(Message::Result(header))
        .chain(pieces)
        .map(|message| v1::CompletePartRequest { message: Some(message) })
}

#[cfg(test)]
mod tests;
