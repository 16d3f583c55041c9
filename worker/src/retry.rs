//! What to do about a failed call: the one place that reads gRPC codes.

use tonic::{Code, Status};

/// What a failed call asks of the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// The coordinator or the network is away or busy: the same call again, later.
    Retry,
    /// The coordinator does not know this worker, because it was restarted: register, then the same call again.
    Register,
    /// A newer process has this worker's name: end.
    Superseded,
    /// The same call would always fail.
    Refused,
}

/// Judges a failed call.
pub fn judge(status: &Status) -> Judgement {
    match status.code() {
        Code::FailedPrecondition => Judgement::Register,
        Code::Aborted => Judgement::Superseded,
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::DataLoss => Judgement::Refused,
        // Transport errors come as Unknown, Internal, Cancelled or Unavailable, depending on where the connection broke. A success
        // code in an error would be the peer's mistake, not a reason to drop a result.
        Code::Ok
        | Code::Unavailable
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Cancelled
        | Code::Unknown
        | Code::Internal => Judgement::Retry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_what_follows() {
        for (code, judgement) in [
            (Code::Unavailable, Judgement::Retry),
            (Code::Unknown, Judgement::Retry),
            (Code::DeadlineExceeded, Judgement::Retry),
            (Code::FailedPrecondition, Judgement::Register),
            (Code::Aborted, Judgement::Superseded),
            (Code::InvalidArgument, Judgement::Refused),
            (Code::NotFound, Judgement::Refused),
            (Code::Unimplemented, Judgement::Refused),
        ] {
            assert_eq!(judge(&Status::new(code, "")), judgement, "{code:?}");
        }
    }
}
