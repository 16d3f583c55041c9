//! Errors as gRPC statuses: the one place that decides code, retry and log level.

use crate::actor::AskError;
use crate::core::api::CoreError;
use grundy_proto::convert::WireError;
use grundy_tables::StorageError;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tracing::Level;

/// The metadata key that tells a client whether repeating the same call may succeed: `true` or `false`.
pub const RETRYABLE_KEY: &str = "grundy-retryable";

/// Why a call fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The message is not what the protocol says.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The core refused, or has stopped.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The runs of a count could not be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A worker that speaks another version of the protocol.
    #[error(
        "the worker speaks protocol version {theirs}, this coordinator version {ours}: use programs of one release"
    )]
    Version {
        /// The worker's.
        theirs: u32,
        /// This program's.
        ours: u32,
    },
    /// The part is done or its job has ended: its input may be gone.
    #[error("part {part} of stage {stage} is not wanted any more")]
    NotWanted {
        /// The stage.
        stage: u32,
        /// The part.
        part: u32,
    },
    /// The core answered another question than was asked.
    #[error("internal error: the core's reply does not fit the call {call}")]
    Unexpected {
        /// The call.
        call: &'static str,
    },
}

impl From<CoreError> for ServiceError {
    fn from(error: CoreError) -> Self {
        Self::Ask(AskError::Core(error))
    }
}

/// How an error is presented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Treatment {
    /// The gRPC code.
    pub code: Code,
    /// Whether repeating the same call may succeed.
    pub retryable: bool,
    /// The level of its log line.
    pub level: Level,
}

/// How an error is presented.
pub fn treatment(error: &ServiceError) -> Treatment {
    let (code, retryable, level) = match error {
        ServiceError::Wire(_) => (Code::InvalidArgument, false, Level::WARN),
        ServiceError::Version { .. } => (Code::FailedPrecondition, false, Level::WARN),
        ServiceError::NotWanted { .. } => (Code::NotFound, false, Level::DEBUG),
        ServiceError::Unexpected { .. } => (Code::Internal, false, Level::ERROR),
        ServiceError::Ask(AskError::Stopped) => (Code::Unavailable, true, Level::DEBUG),
        ServiceError::Ask(AskError::Core(error)) => match error {
            CoreError::Problem(_) | CoreError::NotAnswerable(_) => {
                (Code::InvalidArgument, false, Level::DEBUG)
            }
            // A worker of this release sends none, so somebody should look at the one that did.
            CoreError::Malformed(_) => (Code::InvalidArgument, false, Level::WARN),
            CoreError::NoSuchJob(_) => (Code::NotFound, false, Level::DEBUG),
            CoreError::Register { .. } => (Code::FailedPrecondition, false, Level::DEBUG),
            CoreError::Superseded { .. } => (Code::Aborted, false, Level::WARN),
            CoreError::TooManyWorkers(_) => (Code::ResourceExhausted, true, Level::WARN),
            CoreError::Draining => (Code::Unavailable, true, Level::DEBUG),
        },
        ServiceError::Storage(error) => match error {
            StorageError::Full { .. } => (Code::ResourceExhausted, true, Level::ERROR),
            StorageError::Corrupt { .. } => (Code::DataLoss, false, Level::ERROR),
            StorageError::Missing { .. } => (Code::NotFound, false, Level::WARN),
            StorageError::Closed => (Code::Unavailable, true, Level::DEBUG),
            _ => (Code::Internal, false, Level::ERROR),
        },
    };
    Treatment { code, retryable, level }
}

impl From<ServiceError> for Status {
    fn from(error: ServiceError) -> Self {
        let Treatment { code, retryable, level } = treatment(&error);
        match level {
            Level::ERROR => tracing::error!(%error, ?code, "call failed"),
            Level::WARN => tracing::warn!(%error, ?code, "call refused"),
            _ => tracing::debug!(%error, ?code, "call refused"),
        }
        let mut status = Self::new(code, error.to_string());
        status
            .metadata_mut()
            .insert(RETRYABLE_KEY, MetadataValue::from_static(if retryable { "true" } else { "false" }));
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_tables::jobs::record::{Epoch, JobId};

    #[test]
    fn every_refusal_has_its_code() {
        let register = CoreError::Register { worker: "w".to_owned(), epoch: Epoch(2) };
        let table: [(ServiceError, Code, bool); 11] = [
            (register.into(), Code::FailedPrecondition, false),
            (CoreError::Superseded { worker: "w".to_owned() }.into(), Code::Aborted, false),
            (CoreError::NoSuchJob(JobId(7)).into(), Code::NotFound, false),
            (CoreError::Problem("cram: no".to_owned()).into(), Code::InvalidArgument, false),
            (CoreError::Malformed("no".to_owned()).into(), Code::InvalidArgument, false),
            (CoreError::NotAnswerable("no".to_owned()).into(), Code::InvalidArgument, false),
            (CoreError::TooManyWorkers(9).into(), Code::ResourceExhausted, true),
            (CoreError::Draining.into(), Code::Unavailable, true),
            (AskError::Stopped.into(), Code::Unavailable, true),
            (WireError::Missing { field: "session" }.into(), Code::InvalidArgument, false),
            (
                StorageError::Corrupt { place: "run 3".to_owned(), reason: "checksum".to_owned() }.into(),
                Code::DataLoss,
                false,
            ),
        ];
        for (error, code, retryable) in table {
            let words = error.to_string();
            let status = Status::from(error);
            assert_eq!(status.code(), code, "{words}");
            let flag = status.metadata().get(RETRYABLE_KEY).expect("every status says whether to retry");
            assert_eq!(flag, if retryable { "true" } else { "false" }, "{words}");
            assert_eq!(status.message(), words);
        }
    }
}
