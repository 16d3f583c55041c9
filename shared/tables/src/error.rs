//! What can go wrong with a data directory, each with what to do about it.

use crate::codec::CodecError;
use std::path::PathBuf;

/// Why storage failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The directory belongs to the other program.
    #[error("{} is the data directory of a {found}, not of a {expected}: give this program a directory of its own", .directory.display())]
    WrongKind {
        /// The directory.
        directory: PathBuf,
        /// What its marker says.
        found: String,
        /// What was to be opened.
        expected: &'static str,
    },
    /// The directory was written by another version of the format.
    #[error("{} has format {found}, this program reads format {expected}: use the version that wrote it, or a new directory", .directory.display())]
    WrongVersion {
        /// The directory.
        directory: PathBuf,
        /// What its marker says.
        found: u32,
        /// The format that this program reads and writes.
        expected: u32,
    },
    /// The directory holds a database, but no marker that says whose.
    #[error("{} holds a database but no GRUNDY file: it is not a data directory of this program; give another directory", .directory.display())]
    NotOurs {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory lacks what every data directory has. Said where it is only to be read; elsewhere it is made into one.
    #[error("{} is not a data directory: it has no {lacks}; give the --data of a `grundy serve` or `grundy solve`", .directory.display())]
    NoData {
        /// The directory.
        directory: PathBuf,
        /// What is not there.
        lacks: &'static str,
    },
    /// Another process, or another part of this one, has the directory open.
    #[error("{} is in use by another process: stop that one, or give each process a directory of its own", .directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// The disk or the quota is full.
    #[error("no space left for {}: free some and start again, nothing that was acknowledged is lost ({reason})", .directory.display())]
    Full {
        /// The directory.
        directory: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The directory cannot be written.
    #[error("{} cannot be written: check its owner, its permissions and how the disk is mounted ({reason})", .directory.display())]
    ReadOnly {
        /// The directory.
        directory: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// What was read is not what was written.
    #[error("corrupt data in {place}: {reason}")]
    Corrupt {
        /// The record or file.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A record that should be there is not.
    #[error("{place} is not in storage")]
    Missing {
        /// The record.
        place: String,
    },
    /// Any other failure of the disk or the file system.
    #[error("cannot read or write {}: {reason}", .directory.display())]
    Io {
        /// The directory.
        directory: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The system does not give that much memory.
    #[error("a table of {bytes} bytes does not fit into memory: give a smaller --memory")]
    Memory {
        /// What was asked for.
        bytes: usize,
    },
    /// All 65536 namespace numbers are used.
    #[error("no number left for namespace '{name}', a table holds at most 65536: use a new directory")]
    NamespacesFull {
        /// The name that got none.
        name: String,
    },
    /// The storage was shut down or has crashed; only a simulation or a caller that outlives its table sees it.
    #[error("storage is closed: reopen it")]
    Closed,
}

impl StorageError {
    /// Corruption found by a codec.
    pub(crate) fn corrupt(place: impl Into<String>, reason: &CodecError) -> Self {
        Self::Corrupt { place: place.into(), reason: reason.to_string() }
    }
}
