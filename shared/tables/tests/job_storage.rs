//! One suite for every implementation of job storage, and what each has of its own.

use grundy_games::claim::{Claim, Edge, Polarity, Subject};
use grundy_games::problem::Fields;
use grundy_search::engine::Child;
use grundy_search::numbers::Numbers;
use grundy_tables::jobs::record::{
    Children, ClaimRecord, Epoch, JobId, JobRecord, JobStatus, LeaseRecord, Loaded, PartId, PartRecord, Task,
    Write,
};
use grundy_tables::{Durability, JobStorage, MemoryJobs, RocksJobs, StorageError, StorageMemory};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Storage that can be stopped cleanly and started again.
trait Fixture {
    fn new() -> Self;
    fn jobs(&self) -> &dyn JobStorage;
    fn restarted(self) -> Self;
}

impl Fixture for MemoryJobs {
    fn new() -> Self {
        Self::new()
    }

    fn jobs(&self) -> &dyn JobStorage {
        self
    }

    fn restarted(self) -> Self {
        self.reopen();
        self
    }
}

const MEMORY: StorageMemory = StorageMemory { cache: 1 << 20, write_buffers: 1 << 20 };

struct OnDisk {
    jobs: RocksJobs,
    directory: TempDir,
}

impl Fixture for OnDisk {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        Self {
            jobs: RocksJobs::open(directory.path(), &MEMORY).expect("an empty directory opens"),
            directory,
        }
    }

    fn jobs(&self) -> &dyn JobStorage {
        &self.jobs
    }

    fn restarted(self) -> Self {
        let Self { jobs, directory } = self;
        drop(jobs);
        Self { jobs: RocksJobs::open(directory.path(), &MEMORY).expect("it reopens"), directory }
    }
}

fn claim(number: u8) -> Claim {
    let subject = Subject::new(vec![number; usize::from(number)]).expect("short");
    Claim { subject, parameter: i16::from(number) - 2 }
}

fn task(number: u8) -> Task {
    if number.is_multiple_of(2) { Task::Claim(claim(number)) } else { Task::Part(part(number)) }
}

fn part(number: u8) -> PartId {
    PartId { stage: u32::from(number / 2), part: u32::from(number % 2) }
}

/// One of few things, changed in one of many ways.
fn writes() -> impl Strategy<Value = Write> {
    (0..6u8, 1..3u64, 0..5u8, any::<u64>()).prop_map(|(kind, job, number, value)| {
        let (job, source) = (JobId(job), format!("worker {value}"));
        match kind {
            0 => {
                let fields = Fields {
                    game: "cram".into(),
                    rules: String::new(),
                    position: "3x4".into(),
                    question: source,
                };
                let status = match value % 3 {
                    0 => JobStatus::Running,
                    1 => JobStatus::Solved,
                    _ => JobStatus::Failed("a contradiction".into()),
                };
                let (nodes, results, leases, leases_lost, active_ms) = (value, 2, 3, 4, 5);
                let submitted_unix_ms = 1;
                let record = JobRecord {
                    fields,
                    submitted_unix_ms,
                    status,
                    nodes,
                    results,
                    leases,
                    leases_lost,
                    active_ms,
                };
                Write::Job(job, record)
            }
            1 | 2 => {
                let truth = [None, Some(false), Some(true)][(value % 3) as usize];
                let numbers = truth.map_or(Numbers::open(value as u32, 7), Numbers::decided);
                let children = match value % 4 {
                    0 => Children::OfRules,
                    1 => {
                        let edge = Edge { polarity: Polarity::Opposite, claim: claim(number) };
                        Children::Found(vec![Child { edge, numbers }; 3])
                    }
                    _ => Children::None,
                };
                let (work, searches) = (value, 3);
                Write::Claim(
                    job,
                    claim(number),
                    ClaimRecord { truth, children, numbers, work, searches, source },
                )
            }
            3 => {
                let (epoch, lease, incarnation) = (Epoch(value), value / 2, value / 3);
                Write::Lease(job, task(number), LeaseRecord { epoch, lease, worker: source, incarnation })
            }
            4 => Write::LeaseEnd(job, task(number)),
            _ => {
                let shares = vec![(number, u128::from(value) << 64); usize::from(value.is_multiple_of(2))];
                let (boards, boards_with_images, outputs) =
                    (value, value / 2, vec![value; usize::from(number)]);
                Write::Part(
                    job,
                    part(number),
                    PartRecord {
                        boards,
                        boards_with_images,
                        shares,
                        outputs,
                        checksums: vec![u32::from(number); usize::from(number)],
                        source,
                    },
                )
            }
        }
    })
}

/// What should be loaded: the plainest model there is.
#[derive(Default, Clone)]
struct Model {
    jobs: BTreeMap<JobId, JobRecord>,
    claims: BTreeMap<(JobId, usize, Claim), ClaimRecord>,
    leases: BTreeMap<(JobId, Task), LeaseRecord>,
    parts: BTreeMap<(JobId, PartId), PartRecord>,
}

impl Model {
    fn apply(&mut self, write: &Write) {
        match write.clone() {
            Write::Job(job, record) => drop(self.jobs.insert(job, record)),
            Write::Claim(job, claim, record) => {
                drop(self.claims.insert((job, claim.subject.as_bytes().len(), claim), record));
            }
            Write::Lease(job, task, record) => drop(self.leases.insert((job, task), record)),
            Write::LeaseEnd(job, task) => drop(self.leases.remove(&(job, task))),
            Write::Part(job, part, record) => drop(self.parts.insert((job, part), record)),
            Write::DropRuns(..) => {}
        }
    }

    fn loaded(&self) -> Loaded {
        let model = self.clone();
        Loaded {
            jobs: model.jobs.into_iter().collect(),
            claims: model.claims.into_iter().map(|((job, _, claim), record)| (job, claim, record)).collect(),
            leases: model.leases.into_iter().map(|((job, task), record)| (job, task, record)).collect(),
            parts: model.parts.into_iter().map(|((job, part), record)| (job, part, record)).collect(),
        }
    }
}

fn batches() -> impl Strategy<Value = Vec<(Vec<Write>, bool)>> {
    prop::collection::vec((prop::collection::vec(writes(), 0..6), any::<bool>()), 0..12)
}

fn durability(synced: bool) -> Durability {
    if synced { Durability::Synced } else { Durability::Buffered }
}

/// What is committed is loaded, at once and after a restart, whatever the order and the batches.
fn commits_are_loaded<F: Fixture>(cases: u32) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(batches in batches())| {
        let (fixture, mut model) = (F::new(), Model::default());
        for (batch, synced) in &batches {
            fixture.jobs().commit(batch, durability(*synced)).expect("there is space");
            batch.iter().for_each(|write| model.apply(write));
        }
        prop_assert_eq!(fixture.jobs().load(), Ok(model.loaded()));
        let fixture = fixture.restarted();
        prop_assert_eq!(fixture.jobs().load(), Ok(model.loaded()));
    });
}

fn epochs_count_the_starts<F: Fixture>() {
    let fixture = F::new();
    assert_eq!(fixture.jobs().epoch(), Epoch(1));
    let fixture = fixture.restarted();
    assert_eq!(fixture.jobs().epoch(), Epoch(2));
    assert_eq!(fixture.restarted().jobs().epoch(), Epoch(3));
}

fn runs_are_kept_until_their_stage_is_dropped<F: Fixture>() {
    let fixture = F::new();
    // From empty to longer than what RocksDB keeps in line.
    let run =
        |stage: u32, to: u32| vec![(stage.wrapping_mul(16) + to) as u8; [0, 5, 100_000][to as usize % 3]];
    let from = |stage| PartId { stage, part: 9 };
    for (job, stage, to) in every() {
        let put = || fixture.jobs().put_run(JobId(job), from(stage), to, &run(stage, to));
        put().expect("there is space");
        put().expect("again is harmless");
    }
    let drop = Write::DropRuns(JobId(1), 1);
    fixture.jobs().commit(&[drop], Durability::Buffered).expect("there is space");
    let check = |jobs: &dyn JobStorage| {
        for (job, stage, to) in every() {
            let found = jobs.get_run(JobId(job), from(stage), to);
            if (job, stage) == (1, 1) {
                let place = format!("the run of job 1, stage 1, from part 9 to part {to}");
                assert_eq!(found, Err(StorageError::Missing { place }));
            } else {
                assert_eq!(found, Ok(run(stage, to)), "job {job}, stage {stage}, to {to}");
            }
        }
    };
    check(fixture.jobs());
    check(fixture.restarted().jobs());
}

fn every() -> impl Iterator<Item = (u64, u32, u32)> {
    (1..3).flat_map(|job| {
        [0, 1, 2, u32::MAX].into_iter().flat_map(move |stage| (0..3).map(move |to| (job, stage, to)))
    })
}

macro_rules! suite {
    ($name:ident, $fixture:ty, $cases:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn commits_are_loaded() {
                super::commits_are_loaded::<$fixture>($cases);
            }

            #[test]
            fn epochs_count_the_starts() {
                super::epochs_count_the_starts::<$fixture>();
            }

            #[test]
            fn runs_are_kept_until_their_stage_is_dropped() {
                super::runs_are_kept_until_their_stage_is_dropped::<$fixture>();
            }
        }
    };
}

suite!(in_memory, MemoryJobs, 256);
suite!(on_disk, OnDisk, 16);

proptest! {
    /// After a crash there is what was synced, the part of the rest that the crash let through, and nothing else.
    #[test]
    fn a_crash_loses_a_suffix_of_what_was_not_synced(batches in batches(), keep in 0..12usize) {
        let jobs = MemoryJobs::new();
        for (batch, synced) in &batches {
            jobs.commit(batch, durability(*synced)).expect("there is space");
        }
        let synced = batches.iter().rposition(|(_, synced)| *synced).map_or(0, |last| last + 1);
        prop_assert_eq!(jobs.unsynced(), batches.len() - synced);
        jobs.crash(keep);
        prop_assert_eq!(jobs.load(), Err(StorageError::Closed));
        prop_assert_eq!(jobs.commit(&[], Durability::Synced), Err(StorageError::Closed));
        prop_assert_eq!(jobs.reopen(), Epoch(2));
        let mut model = Model::default();
        batches.iter().take(synced + keep).flat_map(|(batch, _)| batch).for_each(|write| model.apply(write));
        prop_assert_eq!(jobs.load(), Ok(model.loaded()));
        // A second crash finds nothing more to lose.
        jobs.crash(0);
        jobs.reopen();
        prop_assert_eq!(jobs.load(), Ok(model.loaded()));
    }

    #[test]
    fn a_full_disk_refuses_whole_commits(before in writes(), refused in prop::collection::vec(writes(), 1..6)) {
        let jobs = MemoryJobs::new();
        jobs.commit(std::slice::from_ref(&before), Durability::Synced).expect("there is space");
        let loaded = jobs.load();
        jobs.set_full(true);
        let full = matches!(jobs.commit(&refused, Durability::Synced), Err(StorageError::Full { .. }));
        prop_assert!(full);
        prop_assert_eq!(jobs.load(), loaded);
        jobs.set_full(false);
        jobs.commit(&refused, Durability::Synced).expect("there is space again");
    }

    #[test]
    fn a_flipped_bit_is_found(batch in prop::collection::vec(writes(), 1..6), value: usize, bit: usize) {
        let jobs = MemoryJobs::new();
        jobs.commit(&batch, Durability::Synced).expect("there is space");
        let empty = jobs.load() == Ok(Loaded::default());
        jobs.flip_bit(value, bit);
        let found = matches!(jobs.load(), Err(StorageError::Corrupt { .. }));
        prop_assert!(found || empty);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("it is a directory") {
        let path = entry.expect("it can be read").path();
        let target = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("it can be copied");
        }
    }
}

/// A write of one claim whose record is long and does not compress, so that it lies in the middle of its file.
fn long_claim(number: u8) -> Write {
    let source = (0..3000u32)
        .map(|i| char::from(b'a' + ((i * i * 7 + i * u32::from(number)) >> 5) as u8 % 26))
        .collect();
    let (truth, numbers) = (Some(true), Numbers::decided(true));
    let record = ClaimRecord { truth, children: Children::None, numbers, work: 1, searches: 1, source };
    Write::Claim(JobId(1), claim(number), record)
}

/// What is on disk at any moment, as a crash of the process would leave it.
fn image_of(fixture: &OnDisk) -> TempDir {
    let image = TempDir::new().expect("a temporary directory");
    copy(fixture.directory.path(), image.path());
    image
}

#[test]
fn a_process_killed_at_any_commit_loses_none() {
    let fixture = OnDisk::new();
    for number in 0..6 {
        fixture.jobs.commit(&[long_claim(number)], durability(number % 2 == 0)).expect("there is space");
        let image = image_of(&fixture);
        let jobs = RocksJobs::open(image.path(), &MEMORY).expect("the image opens");
        assert_eq!(jobs.load(), fixture.jobs.load());
    }
}

fn files(image: &Path, extension: &str) -> Vec<PathBuf> {
    let files =
        fs::read_dir(image.join("db")).expect("there is a database").map(|entry| entry.expect("read").path());
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Flips a byte in the middle of the largest file of this kind, and says what reading everything then gives.
fn after_damage(image: &Path, extension: &str) -> Result<Loaded, StorageError> {
    let size = |path: &PathBuf| fs::metadata(path).expect("it is there").len();
    let path = files(image, extension).into_iter().max_by_key(size).expect("there is such a file");
    let mut bytes = fs::read(&path).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, bytes).expect("it can be written");
    RocksJobs::open(image, &MEMORY)?.load()
}

#[test]
fn damage_to_a_log_and_to_a_table_is_found_and_named() {
    let fixture = OnDisk::new();
    for number in 0..6 {
        fixture.jobs.commit(&[long_claim(number)], Durability::Synced).expect("there is space");
    }
    let log = after_damage(image_of(&fixture).path(), "log");
    assert!(matches!(&log, Err(StorageError::Corrupt { .. })), "{log:?}");
    // Reopening moves the log's commits into tables.
    let table = after_damage(image_of(&fixture.restarted()).path(), "sst");
    assert!(matches!(&table, Err(StorageError::Corrupt { .. })), "{table:?}");
}
