//! The core's settings: every number that steers leases, budgets and patience, with its reason.

/// Settings of the core. They decide how fast an answer comes, never which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A lease lapses this long after its last heartbeat: several missed heartbeats, so that a slow network costs nothing, yet
    /// short against the hours of a solve.
    pub lease_ms: u64,
    /// How often workers send heartbeats.
    pub heartbeat_ms: u64,
    /// After a restart, how long leases of the epoch before keep their tasks without a word from their worker.
    pub grace_ms: u64,
    /// Budget of a leaf's first search; doubles a few times if the leaf cannot be split. A tenth of a second, so that numbers come back to steer by.
    pub budget_nodes: u64,
    /// A leaf that has cost this much is split.
    pub split_nodes: u64,
    /// When a worker has nothing to do, the longest leased leaf is split after this long.
    pub split_idle_ms: u64,
    /// A fact is reported and shared when it cost at least this part of a budget: cheap ones are found again faster than they travel.
    pub report_share: u64,
    /// A leaf's decision is shared when it cost at least this.
    pub share_nodes_min: u64,
    /// A task is set aside after costing this many workers their lives.
    pub losses_max: u32,
    /// Entries that one part of a count's level is meant to hold: some 10 MB in a worker's memory, a second of work.
    pub part_entries: u64,
    /// How long a worker with nothing to do is told to wait.
    pub retry_after_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease_ms: 10_000,
            heartbeat_ms: 1_000,
            grace_ms: 5_000,
            budget_nodes: 50_000,
            split_nodes: 50_000,
            split_idle_ms: 1_000,
            report_share: 16,
            share_nodes_min: 1_000,
            losses_max: 5,
            part_entries: 250_000,
            retry_after_ms: 50,
        }
    }
}

/// The most facts in one reply; the wire's limit for a message.
pub const FACTS_PER_REPLY_MAX: usize = 256;

/// The longest a Lease call is held.
pub const WAIT_MS_MAX: u64 = 30_000;

/// The span over which the node rate is averaged.
pub const RATE_WINDOW_MS: u64 = 10_000;

/// The most workers; those that are lost make room for new ones.
pub const WORKERS_MAX: usize = 10_000;

/// Workers silent for this long are forgotten; until then `status` shows them as lost.
pub const FORGET_WORKER_MS: u64 = 3_600_000;

/// Leases that ended for want of heartbeats and may still come back: more than any number of workers that wake from a pause.
pub const EXPIRED_MAX: usize = 16_384;
