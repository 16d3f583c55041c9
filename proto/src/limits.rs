//! Limits of the protocol, each with its reason.

use std::time::Duration;

/// The largest message either side decodes: a Complete with 256 facts and the children of the widest position (some 200 claims of at most 1 KiB) stays below half of it.
pub const MESSAGE_BYTES_MAX: usize = 2 << 20;

/// The most bytes in one piece of a run, well inside a message.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;

/// The most bytes in all runs that a part puts out. Levels are cut so that a part is some 10 MB; a count whose parts outgrow this has
/// outgrown the machines.
pub const PART_BYTES_MAX: usize = 128 << 20;

/// The most entries of a table in one message: some 100 KB.
pub const TOLD_MAX: usize = 1 << 12;

/// The most bytes of entries that one worker hears at a time.
pub const HEARD_BYTES_MAX: usize = 1 << 20;

/// The longest name of a table's namespace, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 256;

/// The most facts in one message.
pub const FACTS_MAX: usize = 256;

/// The most levels that one message samples, and the first that is none: more than any board has seeds.
pub const SAMPLES_MAX: usize = 256;

/// The longest worker name, in bytes.
pub const WORKER_NAME_BYTES_MAX: usize = 128;

/// The longest position notation a user may send, in bytes.
pub const POSITION_BYTES_MAX: usize = 4096;

/// The most leases one heartbeat may name: more threads than any machine has.
pub const LEASES_MAX: usize = 4096;

/// The longest a coordinator holds a Lease call open.
pub const LEASE_WAIT_MAX: Duration = Duration::from_secs(30);

/// The deadline a client sets on a call that does no waiting: long enough for a synced write on a slow disk behind a queue.
pub const CALL_DEADLINE: Duration = Duration::from_secs(20);
