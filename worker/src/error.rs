//! Why a worker ends, and the exit code that says so.

use grundy_tables::{Contradiction, StorageError};
use std::time::Duration;

/// What the process reports to whoever started it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Drained.
    Done = 0,
    /// Something failed that no retry mends.
    Failed = 1,
    /// Flags, environment or configuration file.
    Usage = 2,
    /// The coordinator could not be reached for too long.
    Unreachable = 4,
    /// Stored data are damaged, or contradict each other.
    Corruption = 5,
    /// Drained after Ctrl-C, or aborted by a second signal.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a worker cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// The coordinator was away for longer than the user wants to wait.
    #[error("coordinator {coordinator} unreachable for {} s: check the address and that `grundy serve` runs there; the last attempt said: {last}", .waited.as_secs())]
    Unreachable {
        /// Its address.
        coordinator: String,
        /// How long it was tried.
        waited: Duration,
        /// What the last attempt came to.
        last: String,
    },
    /// The coordinator answers, but not to this worker.
    #[error("coordinator {coordinator} refused {call}: {reason}")]
    Refused {
        /// Its address.
        coordinator: String,
        /// The call.
        call: &'static str,
        /// Its words.
        reason: String,
    },
    /// Another process of this name has registered.
    #[error(
        "another worker took the name '{worker}': give each worker process a --name of its own ({reason})"
    )]
    Superseded {
        /// The name.
        worker: String,
        /// The coordinator's words.
        reason: String,
    },
    /// The data directory.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Two decided entries of one table key that cannot both hold.
    #[error("contradiction in table {}, key {:016x}{:016x}/{:08x}: {:?} is stored, {:?} was found; one of them is wrong, so nothing more is handed in. Keep the data directory for a report, and test the machine's memory", .0.namespace.as_deref().unwrap_or("(unnamed)"), .0.key.words[0], .0.key.words[1], .0.key.tag, .0.kept, .0.offered)]
    Contradiction(Box<Contradiction>),
    /// The operating system gave no thread, runtime or randomness.
    #[error("cannot start {what}: {reason}")]
    Start {
        /// What was to be started.
        what: String,
        /// The system's words.
        reason: String,
    },
    /// A thread ended by a panic outside of a search.
    #[error("{thread} panicked: {reason}")]
    Panicked {
        /// Its name.
        thread: String,
        /// The panic's message.
        reason: String,
    },
}

impl WorkerError {
    /// The exit code for this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::Contradiction(_) | Self::Storage(StorageError::Corrupt { .. }) => Exit::Corruption,
            Self::Refused { .. }
            | Self::Superseded { .. }
            | Self::Storage(_)
            | Self::Start { .. }
            | Self::Panicked { .. } => Exit::Failed,
        }
    }
}
