//! What can go wrong with endgame databases.

use std::io;
use std::path::{Path, PathBuf};

/// Why an endgame database cannot be used or built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndgameError {
    /// The file is not what was sealed.
    #[error("corrupt endgame database {}, {place}: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What is wrong there.
        reason: String,
    },
    /// An intact file, but of something else than is looked for.
    #[error("{} is another endgame database: its {field} is {found}, expected {expected}", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What differs.
        field: &'static str,
        /// What the file says.
        found: String,
        /// What is looked for.
        expected: String,
    },
    /// Its bytes are as they were sealed, but what its entries follow from is not there.
    #[error("{} was not checked against its moves: the layer of {seeds} seeds below it is damaged or missing", .path.display())]
    Unchecked {
        /// The file.
        path: PathBuf,
        /// The seeds of the layer that is missing.
        seeds: u8,
    },
    /// The disk has too little space left.
    #[error("an endgame database of {needed} bytes does not fit into {}, which has {free} bytes left: free some, or give another directory", .directory.display())]
    Space {
        /// The directory.
        directory: PathBuf,
        /// Bytes of the file.
        needed: u64,
        /// Bytes that the file system has for this process.
        free: u64,
    },
    /// It was being built when its process was asked to stop.
    #[error("the endgame database {} was not finished: told to stop", .path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// Any other failure of the disk or the file system.
    #[error("cannot {action} {}: {reason}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's words.
        reason: String,
    },
}

impl EndgameError {
    /// An error of the file system.
    pub(super) fn io(path: &Path, action: &'static str, error: &io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, reason: error.to_string() }
    }

    /// Damage at a place of a file.
    pub(super) fn damaged(path: &Path, place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), place: place.into(), reason: reason.into() }
    }
}
