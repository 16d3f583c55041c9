//! Keys and values of the coordinator's records.
//!
//! Keys sort as their fields do, one after the other; numbers are big-endian:
//!
//! ```text
//! jobs     job u64
//! claims   job u64, subject length u16, subject, parameter i16 with its sign flipped
//! leases   job u64, 0, claim as above   or   job u64, 1, part as below
//! parts    job u64, stage u32, part u32
//! runs     job u64, stage u32, part u32, target part u32
//! ```

use super::record::{
    Children, ClaimRecord, Epoch, JobId, JobRecord, JobStatus, LeaseRecord, Loaded, PartId, PartRecord, Task,
    Write,
};
use crate::codec::{CodecError, Reader, RecordKind, Writer};
use crate::error::StorageError;
use crate::layout::{Change, Family};
use grundy_games::claim::{Claim, Edge, Polarity, SUBJECT_BYTES_MAX, Subject};
use grundy_games::problem::Fields;
use grundy_search::engine::Child;
use grundy_search::numbers::{INFINITE, Numbers};

/// The layout of all records here but for claims and parts.
const FORMAT: u8 = 1;

/// The layout of claims. The first had no children but those of the rules.
const CLAIM_FORMAT: u8 = 2;

/// The layout of parts. The first had a total in place of shares by finish.
const PART_FORMAT: u8 = 2;

/// The key of the epoch in its family.
pub(crate) const EPOCH_KEY: &[u8] = b"epoch";

/// What is loaded, in this order.
pub(crate) const LOADED: [Family; 4] = [Family::Jobs, Family::Claims, Family::Leases, Family::Parts];

fn job_key(job: JobId) -> Vec<u8> {
    job.0.to_be_bytes().to_vec()
}

fn push_claim(key: &mut Vec<u8>, claim: &Claim) {
    let subject = claim.subject.as_bytes();
    const { assert!(SUBJECT_BYTES_MAX <= u16::MAX as usize) };
    key.extend_from_slice(&(subject.len() as u16).to_be_bytes());
    key.extend_from_slice(subject);
    key.extend_from_slice(&(claim.parameter.cast_unsigned() ^ 0x8000).to_be_bytes());
}

fn claim_key(job: JobId, claim: &Claim) -> Vec<u8> {
    let mut key = job_key(job);
    push_claim(&mut key, claim);
    key
}

fn push_part(key: &mut Vec<u8>, part: PartId) {
    key.extend_from_slice(&part.stage.to_be_bytes());
    key.extend_from_slice(&part.part.to_be_bytes());
}

fn part_key(job: JobId, part: PartId) -> Vec<u8> {
    let mut key = job_key(job);
    push_part(&mut key, part);
    key
}

fn task_key(job: JobId, task: &Task) -> Vec<u8> {
    let mut key = job_key(job);
    match task {
        Task::Claim(claim) => {
            key.push(0);
            push_claim(&mut key, claim);
        }
        Task::Part(part) => {
            key.push(1);
            push_part(&mut key, *part);
        }
    }
    key
}

/// The key of a run.
pub(crate) fn run_key(job: JobId, from: PartId, to_part: u32) -> Vec<u8> {
    let mut key = part_key(job, from);
    key.extend_from_slice(&to_part.to_be_bytes());
    key
}

/// The keys of a stage's runs: from the first up to, not including, the second.
fn stage_range(job: JobId, stage: u32) -> (Vec<u8>, Vec<u8>) {
    let bound = |job: u64, stage: u32| [&job.to_be_bytes()[..], &stage.to_be_bytes()].concat();
    let end = match stage.checked_add(1) {
        Some(next) => bound(job.0, next),
        // Past the last stage of a job: longer than any of its keys with the same start.
        None => [bound(job.0, stage), vec![0xff; 9]].concat(),
    };
    (bound(job.0, stage), end)
}

fn take_job(key: &mut Reader<'_>) -> Result<JobId, CodecError> {
    Ok(JobId(key.big_endian::<8>("job number")?))
}

fn take_claim(key: &mut Reader<'_>) -> Result<Claim, CodecError> {
    let length = key.big_endian::<2>("subject length")?;
    let bytes = key.slice(length, "subject")?;
    let subject = Subject::new(bytes).map_err(|_| key.invalid(bytes.len() + 2, "subject length", length))?;
    let parameter = (key.big_endian::<2>("parameter")? as u16 ^ 0x8000).cast_signed();
    Ok(Claim { subject, parameter })
}

fn take_part(key: &mut Reader<'_>) -> Result<PartId, CodecError> {
    let (stage, part) = (key.big_endian::<4>("stage")?, key.big_endian::<4>("part")?);
    Ok(PartId { stage: stage as u32, part: part as u32 })
}

/// The change that a write makes.
pub(crate) fn change(write: &Write) -> Change {
    match write {
        Write::Job(job, record) => {
            let key = job_key(*job);
            let value = encode_job(record).seal(RecordKind::Job, &key);
            Change::Put(Family::Jobs, key, value)
        }
        Write::Claim(job, claim, record) => {
            let key = claim_key(*job, claim);
            let value = encode_claim(record).seal(RecordKind::Claim, &key);
            Change::Put(Family::Claims, key, value)
        }
        Write::Lease(job, task, record) => {
            let key = task_key(*job, task);
            let value = encode_lease(record).seal(RecordKind::Lease, &key);
            Change::Put(Family::Leases, key, value)
        }
        Write::LeaseEnd(job, task) => Change::Delete(Family::Leases, task_key(*job, task)),
        Write::Part(job, part, record) => {
            let key = part_key(*job, *part);
            let value = encode_part(record).seal(RecordKind::Part, &key);
            Change::Put(Family::Parts, key, value)
        }
        Write::DropRuns(job, stage) => {
            let (from, to) = stage_range(*job, *stage);
            Change::DeleteRange(Family::Runs, from, to)
        }
    }
}

/// The change that stores a run.
pub(crate) fn run_change(job: JobId, from: PartId, to_part: u32, bytes: &[u8]) -> Change {
    let key = run_key(job, from, to_part);
    let mut writer = Writer::with_capacity(FORMAT, bytes.len() + 8);
    writer.bytes(bytes);
    let value = writer.seal(RecordKind::Run, &key);
    Change::Put(Family::Runs, key, value)
}

/// What a run is called in errors.
pub(crate) fn run_place(job: JobId, from: PartId, to_part: u32) -> String {
    format!("the run of job {}, stage {}, from part {} to part {to_part}", job.0, from.stage, from.part)
}

/// Reads a stored run.
pub(crate) fn decode_run(
    job: JobId,
    from: PartId,
    to_part: u32,
    value: &[u8],
) -> Result<Vec<u8>, StorageError> {
    let decode = || {
        let mut reader = Reader::open(RecordKind::Run, FORMAT, &run_key(job, from, to_part), value)?;
        let bytes = reader.bytes("boards")?.to_vec();
        reader.finish()?;
        Ok(bytes)
    };
    decode().map_err(|reason| StorageError::corrupt(run_place(job, from, to_part), &reason))
}

/// The change that stores an epoch.
pub(crate) fn epoch_change(epoch: Epoch) -> Change {
    let mut writer = Writer::new(FORMAT);
    writer.u64(epoch.0);
    Change::Put(Family::Meta, EPOCH_KEY.to_vec(), writer.seal(RecordKind::Epoch, EPOCH_KEY))
}

/// Reads a stored epoch.
pub(crate) fn decode_epoch(value: &[u8]) -> Result<Epoch, StorageError> {
    let decode = || {
        let mut reader = Reader::open(RecordKind::Epoch, FORMAT, EPOCH_KEY, value)?;
        let epoch = Epoch(reader.u64("epoch")?);
        reader.finish()?;
        Ok(epoch)
    };
    decode().map_err(|reason| StorageError::corrupt("the epoch", &reason))
}

/// Reads one stored record of one of the [`LOADED`] families into what is loaded.
pub(crate) fn load_into(
    loaded: &mut Loaded,
    family: Family,
    key: &[u8],
    value: &[u8],
) -> Result<(), StorageError> {
    decode_into(loaded, family, key, value).map_err(|reason| {
        let hex = key.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        StorageError::corrupt(format!("record {hex} of {}", family.name()), &reason)
    })
}

fn decode_into(loaded: &mut Loaded, family: Family, key: &[u8], value: &[u8]) -> Result<(), CodecError> {
    let mut fields = Reader::of_key(key);
    let job = take_job(&mut fields)?;
    match family {
        Family::Jobs => {
            fields.finish()?;
            loaded.jobs.push((job, decode(RecordKind::Job, key, value, decode_job)?));
        }
        Family::Claims => {
            let claim = take_claim(&mut fields)?;
            fields.finish()?;
            loaded.claims.push((job, claim, decode(RecordKind::Claim, key, value, decode_claim)?));
        }
        Family::Leases => {
            let task = match fields.big_endian::<1>("kind of task")? {
                0 => Task::Claim(take_claim(&mut fields)?),
                1 => Task::Part(take_part(&mut fields)?),
                found => return Err(fields.invalid(1, "kind of task", found)),
            };
            fields.finish()?;
            loaded.leases.push((job, task, decode(RecordKind::Lease, key, value, decode_lease)?));
        }
        Family::Parts => {
            let part = take_part(&mut fields)?;
            fields.finish()?;
            loaded.parts.push((job, part, decode(RecordKind::Part, key, value, decode_part)?));
        }
        Family::Meta | Family::Runs | Family::Positions | Family::Namespaces | Family::Spool => {}
    }
    Ok(())
}

fn decode<T>(
    kind: RecordKind,
    key: &[u8],
    value: &[u8],
    fields: impl FnOnce(&mut Reader<'_>) -> Result<T, CodecError>,
) -> Result<T, CodecError> {
    let format = match kind {
        RecordKind::Claim => CLAIM_FORMAT,
        RecordKind::Part => PART_FORMAT,
        _ => FORMAT,
    };
    let mut reader = Reader::open(kind, format, key, value)?;
    let record = fields(&mut reader)?;
    reader.finish()?;
    Ok(record)
}

fn encode_job(record: &JobRecord) -> Writer {
    let JobRecord { fields, submitted_unix_ms, status, nodes, results, leases, leases_lost, active_ms } =
        record;
    let mut writer = Writer::new(FORMAT);
    writer.text(&fields.game).text(&fields.rules).text(&fields.position).text(&fields.question);
    writer.u64(*submitted_unix_ms);
    match status {
        JobStatus::Running => writer.u8(0),
        JobStatus::Solved => writer.u8(1),
        JobStatus::Cancelled => writer.u8(2),
        JobStatus::Failed(reason) => writer.u8(3).text(reason),
    };
    writer.u64(*nodes).u64(*results).u64(*leases).u64(*leases_lost).u64(*active_ms);
    writer
}

fn decode_job(reader: &mut Reader<'_>) -> Result<JobRecord, CodecError> {
    let fields = Fields {
        game: reader.text("game")?,
        rules: reader.text("rules")?,
        position: reader.text("position")?,
        question: reader.text("question")?,
    };
    let submitted_unix_ms = reader.u64("time of submission")?;
    let status = match reader.u8("status")? {
        0 => JobStatus::Running,
        1 => JobStatus::Solved,
        2 => JobStatus::Cancelled,
        3 => JobStatus::Failed(reader.text("reason of failure")?),
        found => return Err(reader.invalid(1, "status", found.into())),
    };
    Ok(JobRecord {
        fields,
        submitted_unix_ms,
        status,
        nodes: reader.u64("nodes")?,
        results: reader.u64("results")?,
        leases: reader.u64("leases")?,
        leases_lost: reader.u64("leases lost")?,
        active_ms: reader.u64("active time")?,
    })
}

fn encode_claim(record: &ClaimRecord) -> Writer {
    let ClaimRecord { truth, children, numbers, work, searches, source } = record;
    let mut writer = Writer::new(CLAIM_FORMAT);
    writer.u8(match truth {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    });
    match children {
        Children::None => writer.u8(0),
        Children::OfRules => writer.u8(1),
        Children::Found(children) => {
            writer.u8(2).u64(children.len() as u64);
            for Child { edge, numbers } in children {
                let Edge { polarity, claim } = edge;
                writer.bool(*polarity == Polarity::Opposite).bytes(claim.subject.as_bytes());
                writer.i16(claim.parameter).u32(numbers.proof).u32(numbers.disproof);
            }
            &mut writer
        }
    };
    writer.u32(numbers.proof).u32(numbers.disproof).u64(*work).u32(*searches).text(source);
    writer
}

fn decode_claim(reader: &mut Reader<'_>) -> Result<ClaimRecord, CodecError> {
    let truth = match reader.u8("truth")? {
        0 => None,
        1 => Some(false),
        2 => Some(true),
        found => return Err(reader.invalid(1, "truth", found.into())),
    };
    let children = match reader.u8("kind of children")? {
        0 => Children::None,
        1 => Children::OfRules,
        2 => {
            // Not reserved ahead: the count may be anything, the bytes behind it may not.
            let count = reader.u64("number of children")?;
            Children::Found((0..count).map(|_| decode_child(reader)).collect::<Result<_, _>>()?)
        }
        found => return Err(reader.invalid(1, "kind of children", found.into())),
    };
    let numbers = decode_numbers(reader)?;
    let (work, searches) = (reader.u64("work")?, reader.u32("searches")?);
    Ok(ClaimRecord { truth, children, numbers, work, searches, source: reader.text("source")? })
}

fn decode_child(reader: &mut Reader<'_>) -> Result<Child, CodecError> {
    let polarity = if reader.bool("polarity")? { Polarity::Opposite } else { Polarity::Same };
    let subject = reader.bytes("subject")?;
    let length = subject.len();
    let subject = Subject::new(subject).map_err(|_| reader.invalid(length, "subject", length as u64))?;
    let parameter = reader.i16("parameter")?;
    let edge = Edge { polarity, claim: Claim { subject, parameter } };
    Ok(Child { edge, numbers: decode_numbers(reader)? })
}

fn decode_numbers(reader: &mut Reader<'_>) -> Result<Numbers, CodecError> {
    let mut number = |expected| match reader.u32(expected)? {
        number if number <= INFINITE => Ok(number),
        found => Err(reader.invalid(4, expected, found.into())),
    };
    Ok(Numbers { proof: number("proof number")?, disproof: number("disproof number")? })
}

fn encode_lease(record: &LeaseRecord) -> Writer {
    let LeaseRecord { epoch, lease, worker, incarnation } = record;
    let mut writer = Writer::new(FORMAT);
    writer.u64(epoch.0).u64(*lease).text(worker).u64(*incarnation);
    writer
}

fn decode_lease(reader: &mut Reader<'_>) -> Result<LeaseRecord, CodecError> {
    Ok(LeaseRecord {
        epoch: Epoch(reader.u64("epoch")?),
        lease: reader.u64("lease number")?,
        worker: reader.text("worker")?,
        incarnation: reader.u64("incarnation")?,
    })
}

fn encode_part(record: &PartRecord) -> Writer {
    let PartRecord { boards, boards_with_images, shares, outputs, checksums, source } = record;
    let mut writer = Writer::new(PART_FORMAT);
    writer.u64(*boards).u64(*boards_with_images).u64(shares.len() as u64);
    for (hole, ways) in shares {
        writer.u8(*hole).u128(*ways);
    }
    writer.u64(outputs.len() as u64);
    for entries in outputs {
        writer.u64(*entries);
    }
    writer.u64(checksums.len() as u64);
    for checksum in checksums {
        writer.u32(*checksum);
    }
    writer.text(source);
    writer
}

fn decode_part(reader: &mut Reader<'_>) -> Result<PartRecord, CodecError> {
    let (boards, boards_with_images) = (reader.u64("boards")?, reader.u64("boards with images")?);
    // Not reserved ahead: the count may be anything, the bytes behind it may not.
    let shares = (0..reader.u64("number of shares")?)
        .map(|_| Ok((reader.u8("hole")?, reader.u128("share")?)))
        .collect::<Result<_, CodecError>>()?;
    let outputs =
        (0..reader.u64("number of outputs")?).map(|_| reader.u64("output")).collect::<Result<_, _>>()?;
    let checksums =
        (0..reader.u64("number of checksums")?).map(|_| reader.u32("checksum")).collect::<Result<_, _>>()?;
    Ok(PartRecord { boards, boards_with_images, shares, outputs, checksums, source: reader.text("source")? })
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
