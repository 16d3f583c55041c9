//! Calling a coordinator.

use super::config::{ConfigFile, CoordinatorArgs};
use crate::exit::{Exit, Failure};
use crate::service::status::RETRYABLE_KEY;
use anyhow::anyhow;
use grundy_proto::limits;
use grundy_proto::v1::grundy_service_client::GrundyServiceClient;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a quiet connection is asked whether its other end is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A coordinator that can be called.
pub(super) struct Client {
    /// The generated client. It connects again after its connection broke.
    pub service: GrundyServiceClient<Channel>,
    /// Where the coordinator is, as it was given.
    pub address: String,
}

impl Client {
    /// Connects to the coordinator that the settings name.
    pub async fn connect(args: &CoordinatorArgs, file: &ConfigFile) -> Result<Self, Failure> {
        let address = args.address(file);
        let uri = if address.contains("://") { address.clone() } else { format!("http://{address}") };
        let endpoint = Endpoint::from_shared(uri)
            .map_err(|error| {
                Failure::usage(anyhow!(
                    "'{address}' is no address of a coordinator ({error}): expected HOST:PORT"
                ))
            })?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_while_idle(true);
        let channel = endpoint.connect().await.map_err(|error| unreachable(&address, &innermost(&error)))?;
        let service = GrundyServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        Ok(Self { service, address })
    }

    /// A failed call as a failure of the program.
    pub fn failure(&self, status: &Status) -> Failure {
        match status.code() {
            Code::Unavailable | Code::DeadlineExceeded => unreachable(&self.address, &reason(status)),
            Code::InvalidArgument => Failure::message(Exit::Usage, status.message()),
            Code::NotFound => Failure::message(Exit::NotFound, status.message()),
            Code::DataLoss => Failure::message(Exit::Corruption, status.message()),
            code => Failure::message(Exit::Failed, format!("{}: {}", code.description(), status.message())),
        }
    }
}

/// The coordinator does not answer.
pub(super) fn unreachable(address: &str, reason: &str) -> Failure {
    Failure::message(Exit::Unreachable, format!("no coordinator answers at {address}: {reason}"))
}

/// Whether a failed call may succeed when it is repeated. The coordinator says so itself; a failure without its word is the
/// connection's, unless the code says that something else answers there.
pub(super) fn may_pass(status: &Status) -> bool {
    match status.metadata().get(RETRYABLE_KEY) {
        Some(retryable) => retryable == "true",
        None => matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled | Code::DeadlineExceeded
        ),
    }
}

/// A status in words: those of the coordinator, or the cause at the bottom of what happened to the connection.
pub(super) fn reason(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => innermost(source),
        None => status.message().to_owned(),
    }
}

/// The cause at the bottom: the outer ones say only that a connection failed.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// A call with a deadline.
pub(super) fn call<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limits::CALL_DEADLINE);
    request
}

/// A field that this release's coordinators always send.
pub(super) fn present<T>(field: Option<T>, name: &str) -> Result<T, Failure> {
    field.ok_or_else(|| {
        Failure::message(
            Exit::Failed,
            format!("the coordinator's answer lacks '{name}': is it of another release?"),
        )
    })
}
