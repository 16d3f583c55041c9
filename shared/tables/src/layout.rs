//! What data directories hold: their kinds, column families, and changes to them.

/// Whose data directory it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The coordinator's jobs.
    Coordinator,
    /// A worker's position table and spool.
    WorkerTable,
}

impl Kind {
    /// The word in the marker file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::WorkerTable => "worker-table",
        }
    }

    /// The format that this version reads and writes. Raise it with every change that an older program would misread.
    pub fn format(self) -> u32 {
        1
    }

    /// Its column families.
    pub(crate) fn families(self) -> &'static [Family] {
        match self {
            Self::Coordinator => {
                &[Family::Meta, Family::Jobs, Family::Claims, Family::Leases, Family::Parts, Family::Runs]
            }
            Self::WorkerTable => &[Family::Positions, Family::Namespaces, Family::Spool],
        }
    }
}

/// A column family: one kind of record under one kind of key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Family {
    /// The epoch.
    Meta,
    /// Jobs by number.
    Jobs,
    /// What is known of claims, by job and claim.
    Claims,
    /// Open leases, by job and task.
    Leases,
    /// Finished parts, by job and part.
    Parts,
    /// Runs of boards, by job, part and target.
    Runs,
    /// Table entries by key.
    Positions,
    /// Namespace numbers by name.
    Namespaces,
    /// Unacknowledged results by number.
    Spool,
}

impl Family {
    /// The column family's name on disk.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Jobs => "jobs",
            Self::Claims => "claims",
            Self::Leases => "leases",
            Self::Parts => "parts",
            Self::Runs => "runs",
            Self::Positions => "positions",
            Self::Namespaces => "namespaces",
            Self::Spool => "spool",
        }
    }
}

/// One change of one family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Create or replace a value.
    Put(Family, Vec<u8>, Vec<u8>),
    /// Remove a value if it is there.
    Delete(Family, Vec<u8>),
    /// Remove all from the first key up to, not including, the second.
    DeleteRange(Family, Vec<u8>, Vec<u8>),
}
