//! What goes into the core and what comes out: events, actions, replies. Plain data.

pub use super::estimate::Estimate;
use grundy_games::claim::{Claim, Fact};
use grundy_games::plan::Answer;
use grundy_games::problem::Fields;
use grundy_search::engine::{Child, Leave};
use grundy_search::numbers::Numbers;
use grundy_search::samples::Samples;
use grundy_tables::jobs::Durability;
use grundy_tables::jobs::record::{Epoch, JobId, JobStatus, PartId, PartRecord, Task, Write};

/// A moment, in milliseconds of a clock that never goes back. Its zero means nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// The moment this many milliseconds later.
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds since an earlier moment; 0 if it is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Names a caller that waits for a [`Reply`]. The shell draws it; the core only hands it back, exactly once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Token(pub u64);

/// A lease's number: the granting epoch in the high 32 bits, a counter in the low, so that it is unique in a data directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct LeaseId(pub u64);

/// Who speaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// The epoch in which it registered.
    pub epoch: Epoch,
    /// The worker's name.
    pub worker: String,
    /// The worker's run.
    pub incarnation: u64,
}

/// Something that happened. Each with a token is answered by one [`Action::Reply`], at once or (only [`Event::Lease`]) later.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A user wants a problem solved.
    Submit {
        /// Who waits.
        token: Token,
        /// The problem.
        fields: Fields,
        /// The wall clock, for the record.
        unix_ms: u64,
    },
    /// A user stops a job.
    Cancel {
        /// Who waits.
        token: Token,
        /// The job.
        job: JobId,
    },
    /// A user asks how things stand; `None`: all jobs.
    View {
        /// Who waits.
        token: Token,
        /// The job.
        job: Option<JobId>,
    },
    /// A user asks what a job knows of a position.
    Query {
        /// Who waits.
        token: Token,
        /// The job.
        job: JobId,
        /// A position in the game's notation; empty for the job's own.
        position: String,
    },
    /// The coordinator is to hand out nothing more. Answered at once; [`Core::drained`](super::Core::drained) tells when no lease is left.
    Drain {
        /// Who waits.
        token: Token,
    },
    /// A worker process has started, or has noticed a new epoch.
    Register {
        /// Who waits.
        token: Token,
        /// Its name.
        worker: String,
        /// Its run.
        incarnation: u64,
        /// How many leases it works on at a time.
        threads: u32,
    },
    /// A worker wants a task, and waits for one.
    Lease {
        /// Who waits.
        token: Token,
        /// Who asks.
        session: Session,
        /// How long it waits.
        wait_ms: u64,
        /// Up to where it has read each job's facts.
        cursors: Vec<(JobId, u64)>,
    },
    /// The caller of a waiting [`Event::Lease`] has gone away; its token gets no reply.
    Abandon {
        /// The token that waited.
        token: Token,
    },
    /// A task could not be handed over: the caller of its [`Event::Lease`] was gone.
    Undelivered {
        /// The lease.
        lease: LeaseId,
    },
    /// A worker is alive and works on these leases.
    Heartbeat {
        /// Who waits.
        token: Token,
        /// Who speaks.
        session: Session,
        /// What it works on.
        leases: Vec<LeaseProgress>,
        /// Up to where it has read each job's facts.
        cursors: Vec<(JobId, u64)>,
    },
    /// A worker hands in the result of a claim.
    Complete {
        /// Who waits.
        token: Token,
        /// Who speaks. Any epoch.
        session: Session,
        /// The lease, possibly an old one.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// The result.
        result: ClaimResult,
    },
    /// A worker hands in a part of a count. The shell stores its runs if the reply is [`Acceptance::Accepted`].
    CompletePart {
        /// Who waits.
        token: Token,
        /// Who speaks. Any epoch.
        session: Session,
        /// The lease, possibly an old one.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// The part.
        part: PartId,
        /// The result; its `source` is filled in by the core.
        record: PartRecord,
        /// Boards expanded.
        nodes: u64,
    },
    /// The shell wants to know which runs a part reads and how many it puts out.
    DescribePart {
        /// Who waits.
        token: Token,
        /// The job.
        job: JobId,
        /// The part.
        part: PartId,
    },
    /// A worker hands a lease back undone.
    Release {
        /// Who waits.
        token: Token,
        /// Who speaks.
        session: Session,
        /// The lease.
        lease: LeaseId,
        /// The job.
        job: JobId,
        /// Whether the task itself failed, which counts against it.
        failed: bool,
        /// Why, in words.
        reason: String,
    },
    /// A run of a worker ends in order.
    Unregister {
        /// Who waits.
        token: Token,
        /// Who goes. Any epoch.
        session: Session,
    },
    /// Time has passed. Sent every few hundred milliseconds.
    Tick,
}

/// One lease in a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseProgress {
    /// The lease.
    pub lease: LeaseId,
    /// Its job.
    pub job: JobId,
    /// What it is for, so that a core that has forgotten the lease can take it over.
    pub task: Task,
    /// Nodes so far.
    pub nodes: u64,
}

/// The result of a claim's search.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimResult {
    /// The claim.
    pub claim: Claim,
    /// Decided or open.
    pub verdict: Verdict,
    /// Nodes this search made.
    pub nodes: u64,
    /// Other claims decided on the way.
    pub facts: Vec<Fact>,
    /// How large searches on the way were.
    pub samples: Samples,
}

/// Decided or open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The claim's truth.
    Decided(bool),
    /// The budget is spent.
    Open {
        /// The claim's numbers.
        numbers: Numbers,
        /// What it hangs on; nothing if the engine cannot say.
        children: Vec<Child>,
    },
}

/// Something to do, in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Write these atomically, in order, before any later action of this or a later step.
    Commit(Vec<Write>, Durability),
    /// Answer a caller.
    Reply(Token, Reply),
    /// Something worth a log line.
    Log(Occurrence),
}

/// An answer to a caller.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// To [`Event::Submit`].
    Submitted {
        /// The job.
        job: JobId,
        /// Whether it was known before.
        resumed: bool,
        /// The job as it stands.
        view: Box<JobView>,
    },
    /// To [`Event::View`] and [`Event::Cancel`].
    View {
        /// The job asked for, or all.
        jobs: Vec<JobView>,
        /// All workers.
        workers: Vec<WorkerView>,
    },
    /// To [`Event::Query`].
    Known {
        /// Whether the answer is complete.
        decided: bool,
        /// The answer or the bounds.
        answer: Answer,
    },
    /// To [`Event::Drain`].
    Draining,
    /// To [`Event::Register`].
    Registered {
        /// The epoch to name from now on.
        epoch: Epoch,
        /// A lease lapses this long after its last heartbeat.
        lease_ms: u64,
        /// How often to send heartbeats.
        heartbeat_ms: u64,
    },
    /// To [`Event::Lease`]: a task.
    Leased(Box<Assignment>),
    /// To [`Event::Lease`]: nothing came up within the wait.
    Idle {
        /// Ask again after this long.
        retry_after_ms: u64,
    },
    /// To [`Event::Lease`]: nothing more will be handed out.
    Drained,
    /// To [`Event::Heartbeat`].
    Heartbeat {
        /// Leases to stop.
        lapsed: Vec<LeaseId>,
        /// Leases of an earlier epoch that were taken over.
        adopted: Vec<LeaseId>,
        /// New facts.
        facts: Vec<FactBatch>,
        /// Whether the coordinator is draining.
        draining: bool,
    },
    /// To [`Event::Complete`] and [`Event::CompletePart`].
    Completed(Acceptance),
    /// To [`Event::DescribePart`].
    Part(PartDescription),
    /// To [`Event::Release`].
    Released,
    /// To [`Event::Unregister`].
    Unregistered,
    /// To any of them.
    Error(CoreError),
}

/// What became of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acceptance {
    /// New, and durable once the reply is out.
    Accepted,
    /// Known already, or of no use any more.
    Known,
    /// The job has ended.
    JobEnded,
}

/// A task with its lease.
#[derive(Clone, PartialEq, Debug)]
pub struct Assignment {
    /// The lease.
    pub lease: LeaseId,
    /// The job.
    pub job: JobId,
    /// Its problem.
    pub fields: Fields,
    /// The task.
    pub task: TaskSpec,
    /// Facts of the job that the worker has not read.
    pub facts: FactBatch,
}

/// A task with all a worker needs to do it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskSpec {
    /// Decide a claim.
    Claim {
        /// The claim.
        claim: Claim,
        /// Nodes at most.
        budget_nodes: u64,
        /// When to come back before that.
        leave: Leave,
        /// Report facts that cost at least this.
        report_work_min: u64,
    },
    /// Work on a part of a count.
    Part(PartSpec),
}

/// One part of a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartSpec {
    /// The part.
    pub part: PartId,
    /// Parts of the next stage; 0 in the last.
    pub parts_next: u32,
    /// Input runs.
    pub inputs: u32,
    /// Runs of the other side of a join of two levels; 0 where there is none.
    pub join_inputs: u32,
}

/// Which runs a part reads, and what it is to put out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartDescription {
    /// The part.
    pub spec: PartSpec,
    /// The runs to read, inputs first, then join inputs: the part that put each out (its run for [`PartSpec::part`]'s number), and the
    /// checksum that was accepted with it.
    pub runs: Vec<(PartId, u32)>,
    /// Whether the part is still to be done.
    pub wanted: bool,
    /// Whether it is done already.
    pub done: bool,
}

/// Facts of one job from a cursor on.
#[derive(Clone, PartialEq, Debug)]
pub struct FactBatch {
    /// The job.
    pub job: JobId,
    /// The facts, oldest first.
    pub facts: Vec<Fact>,
    /// The cursor from now on.
    pub next: u64,
}

/// Why the core refuses an event. Mapped to gRPC codes in one place, `service::status`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CoreError {
    /// Not a problem.
    #[error("{0}")]
    Problem(String),
    /// No such job.
    #[error("no job {}", .0.0)]
    NoSuchJob(JobId),
    /// The job does not answer such questions.
    #[error("{0}")]
    NotAnswerable(String),
    /// The worker must register (again): the epoch has changed, or it is unknown.
    #[error("worker '{worker}' is not registered in epoch {}: register again", .epoch.0)]
    Register {
        /// The worker's name.
        worker: String,
        /// The epoch now.
        epoch: Epoch,
    },
    /// Another run of the worker has taken its place.
    #[error(
        "worker '{worker}' was superseded by a newer run of the same name; give each worker process a name of its own"
    )]
    Superseded {
        /// The worker's name.
        worker: String,
    },
    /// More workers than a coordinator keeps track of.
    #[error("{0} workers are registered, more are not taken")]
    TooManyWorkers(usize),
    /// A claim or part that the job's rules refuse.
    #[error("{0}")]
    Malformed(String),
    /// The coordinator is draining.
    #[error("the coordinator is draining and takes no new jobs")]
    Draining,
}

/// Something worth a log line: one structured event each.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are those of the log event of the same name")]
pub enum Occurrence {
    JobSubmitted { job: JobId, fields: Fields, resumed: bool, decided: u64 },
    JobSolved { job: JobId, answer: Answer, nodes: u64, active_ms: u64 },
    JobCancelled { job: JobId },
    JobFailed { job: JobId, reason: String },
    WorkerRegistered { worker: String, incarnation: u64, threads: u32, superseded: bool },
    WorkerLost { worker: String, incarnation: u64, silent_ms: u64, leases: u32 },
    WorkerLeft { worker: String, incarnation: u64, leases: u32, results: u64, nodes: u64 },
    LeaseGranted { job: JobId, lease: LeaseId, worker: String, task: String, budget_nodes: u64 },
    LeaseRenewedAcrossEpochs { job: JobId, lease: LeaseId, worker: String },
    LeaseEnded { job: JobId, lease: LeaseId, worker: String, why: String, nodes: u64 },
    ResultAccepted { job: JobId, worker: String, task: String, verdict: String, nodes: u64, facts: u64 },
    Split { job: JobId, task: String, children: u32, work: u64 },
    Parked { job: JobId, task: String, losses: u32 },
    StageFinished { job: JobId, stage: u32, boards: u64, boards_with_images: u64, parts_next: u32 },
    Draining,
}

/// A job as it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct JobView {
    /// The job.
    pub job: JobId,
    /// Its problem.
    pub fields: Fields,
    /// Where it stands.
    pub status: JobStatus,
    /// The answer, or what is known of it.
    pub answer: Answer,
    /// Its numbers.
    pub statistics: Statistics,
}

/// A job's numbers; `grundy/v1/grundy.proto` says what each means.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs, reason = "documented once, in the protocol's reference")]
pub struct Statistics {
    pub phase: String,
    pub decided: u64,
    pub total: u64,
    pub decided_before_start: u64,
    pub nodes: u64,
    pub nodes_per_second: f64,
    pub workers: u32,
    pub leases_open: u32,
    pub leases_granted: u64,
    pub leases_lost: u64,
    pub results: u64,
    pub facts: u64,
    pub parked: u32,
    pub active_ms: u64,
    pub remaining_ms: Option<u64>,
    pub root: Option<Numbers>,
    /// `(boards up to symmetry, boards)` of each finished level of a count.
    pub levels: Vec<(u64, u64)>,
    pub estimate: Option<Estimate>,
}

/// A worker as the coordinator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "documented once, in the protocol's reference")]
pub struct WorkerView {
    pub worker: String,
    pub incarnation: u64,
    pub threads: u32,
    pub leases_open: u32,
    pub silent_ms: u64,
    pub nodes: u64,
    pub results: u64,
    pub lost: bool,
}
