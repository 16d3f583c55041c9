//! What the coordinator keeps durably: typed records, the unit in which its core speaks to storage.

use grundy_games::claim::Claim;
use grundy_games::problem::Fields;
use grundy_search::engine::Child;
use grundy_search::numbers::Numbers;

/// A job's number within one data directory; numbers start at 1 and are never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobId(pub u64);

/// One run of the coordinator on a data directory. Counts up at every start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(pub u64);

/// Where a job stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobStatus {
    /// Being worked on, or waiting for workers.
    Running,
    /// Answered.
    Solved,
    /// Cancelled by a user; what it decided is kept.
    Cancelled,
    /// Stopped by an error that no retry mends (a contradiction, an overflow), in words.
    Failed(String),
}

/// A job as submitted, and its totals so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobRecord {
    /// The problem: the job's fingerprint.
    pub fields: Fields,
    /// When it was submitted, in milliseconds since the Unix epoch.
    pub submitted_unix_ms: u64,
    /// Where it stands.
    pub status: JobStatus,
    /// Nodes that accepted results reported.
    pub nodes: u64,
    /// Results accepted.
    pub results: u64,
    /// Leases granted.
    pub leases: u64,
    /// Leases that expired or whose worker was lost.
    pub leases_lost: u64,
    /// Time during which the coordinator was up and the job running, in milliseconds.
    pub active_ms: u64,
}

impl JobRecord {
    /// A job that is submitted now, of which nothing is done.
    pub fn new(fields: Fields, submitted_unix_ms: u64) -> Self {
        let (nodes, results, leases, leases_lost, active_ms) = (0, 0, 0, 0, 0);
        let status = JobStatus::Running;
        Self { fields, submitted_unix_ms, status, nodes, results, leases, leases_lost, active_ms }
    }
}

/// What is known of one claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimRecord {
    /// Its truth, when decided.
    pub truth: Option<bool>,
    /// What it hangs on, if it is an inner node of the proof graph.
    pub children: Children,
    /// Its last numbers.
    pub numbers: Numbers,
    /// Nodes searched under leases of this claim, or what a fact was reported to have cost.
    pub work: u64,
    /// Leases of this claim that came back.
    pub searches: u32,
    /// Who decided it: the worker's name; empty while open.
    pub source: String,
}

/// What a claim hangs on in the proof graph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Children {
    /// Nothing: it is a leaf, or decided.
    #[default]
    None,
    /// What the rules say.
    OfRules,
    /// What the search of a worker went on with, with the numbers at that time.
    Found(Vec<Child>),
}

/// A lease that was open when it was written: on restart it gets a grace period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseRecord {
    /// The epoch that granted it.
    pub epoch: Epoch,
    /// Its number: the epoch in the high 32 bits, a counter in the low.
    pub lease: u64,
    /// The worker's name.
    pub worker: String,
    /// The worker's run.
    pub incarnation: u64,
}

/// What a lease is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Task {
    /// Decide this claim.
    Claim(Claim),
    /// Work on this part of a stage of a counting job.
    Part(PartId),
}

/// One part of one stage of a counting job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartId {
    /// The stage, from 0.
    pub stage: u32,
    /// The part within the stage, from 0.
    pub part: u32,
}

/// A finished part: sums, and how big each of its output runs is. The runs themselves are stored beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartRecord {
    /// Distinct boards in the part's merged input, up to symmetry.
    pub boards: u64,
    /// The same, each board counted.
    pub boards_with_images: u64,
    /// The part's share of the final count, as sequences by the hole of the last peg, holes ascending; nothing in a stage that only moves on.
    pub shares: Vec<(u8, u128)>,
    /// Entries in each output run, one a part of the next stage.
    pub outputs: Vec<u64>,
    /// CRC-32C of each output run's bytes, so that doing a part twice with different results is noticed.
    pub checksums: Vec<u32>,
    /// The worker that did it.
    pub source: String,
}

/// A change of one durable thing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Write {
    /// Create or replace a job.
    Job(JobId, JobRecord),
    /// Create or replace what is known of a claim.
    Claim(JobId, Claim, ClaimRecord),
    /// A lease was granted.
    Lease(JobId, Task, LeaseRecord),
    /// A lease ended.
    LeaseEnd(JobId, Task),
    /// A part is finished. Its runs were stored by [`super::JobStorage::put_run`] before.
    Part(JobId, PartId, PartRecord),
    /// All runs that a stage's parts put out are no longer needed.
    DropRuns(JobId, u32),
}

/// Everything read back at start, in key order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// The jobs.
    pub jobs: Vec<(JobId, JobRecord)>,
    /// Their claims.
    pub claims: Vec<(JobId, Claim, ClaimRecord)>,
    /// Leases that were open.
    pub leases: Vec<(JobId, Task, LeaseRecord)>,
    /// Finished parts.
    pub parts: Vec<(JobId, PartId, PartRecord)>,
}
