//! How the program ends: the exit codes, and which error leads to which.

use crate::actor::AskError;
use crate::core::api::CoreError;
use crate::service::status::ServiceError;
use grundy_tables::StorageError;
use grundy_tables::endgame::EndgameError;
use std::fmt;
use std::process::ExitCode;

/// The program's exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Solved, or done.
    Done = 0,
    /// Failed: a reason that none of the others names.
    Failed = 1,
    /// The command line, the environment or the configuration file is wrong.
    Usage = 2,
    /// There is no such job, or what is asked is not decided.
    NotFound = 3,
    /// The coordinator cannot be reached.
    Unreachable = 4,
    /// Data on disk is not what was written.
    Corruption = 5,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error on its way to the user, with the exit code it leads to.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The error and what it happened to.
    pub error: anyhow::Error,
}

impl Failure {
    /// A failure with this exit code.
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }

    /// A failure of the command line or configuration.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// A failure said in words.
    pub fn message(exit: Exit, message: impl Into<String>) -> Self {
        Self::new(exit, anyhow::Error::msg(message.into()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Failed, error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Failed, error)
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::new(of_storage(&error), error)
    }
}

impl From<EndgameError> for Failure {
    fn from(error: EndgameError) -> Self {
        let exit = match &error {
            EndgameError::Damaged { .. } => Exit::Corruption,
            EndgameError::Stopped { .. } => Exit::Interrupted,
            EndgameError::Other { .. }
            | EndgameError::Unchecked { .. }
            | EndgameError::Space { .. }
            | EndgameError::Io { .. } => Exit::Failed,
        };
        Self::new(exit, error)
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let exit = match &error {
            ServiceError::Wire(_) => Exit::Usage,
            ServiceError::Ask(AskError::Core(error)) => match error {
                CoreError::Problem(_) | CoreError::NotAnswerable(_) | CoreError::Malformed(_) => Exit::Usage,
                CoreError::NoSuchJob(_) => Exit::NotFound,
                CoreError::Register { .. }
                | CoreError::Superseded { .. }
                | CoreError::TooManyWorkers(_)
                | CoreError::Draining => Exit::Failed,
            },
            ServiceError::Storage(error) => of_storage(error),
            ServiceError::Ask(AskError::Stopped)
            | ServiceError::Version { .. }
            | ServiceError::NotWanted { .. }
            | ServiceError::Unexpected { .. } => Exit::Failed,
        };
        Self::new(exit, error)
    }
}

/// The exit code that a storage error leads to.
pub fn of_storage(error: &StorageError) -> Exit {
    match error {
        StorageError::Corrupt { .. } | StorageError::Missing { .. } => Exit::Corruption,
        StorageError::WrongKind { .. }
        | StorageError::WrongVersion { .. }
        | StorageError::NotOurs { .. }
        | StorageError::NoData { .. }
        | StorageError::Memory { .. } => Exit::Usage,
        StorageError::Locked { .. }
        | StorageError::Full { .. }
        | StorageError::ReadOnly { .. }
        | StorageError::Io { .. }
        | StorageError::NamespacesFull { .. }
        | StorageError::Closed => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_errors_have_their_codes() {
        let corrupt = StorageError::Corrupt { place: "job 1".to_owned(), reason: "checksum".to_owned() };
        assert_eq!(of_storage(&corrupt), Exit::Corruption);
        assert_eq!(of_storage(&StorageError::Locked { directory: "d".into() }), Exit::Failed);
        let kind = StorageError::WrongKind {
            directory: "d".into(),
            found: "worker-table".into(),
            expected: "coordinator",
        };
        assert_eq!(Failure::from(kind).exit, Exit::Usage);
    }
}
