//! The gRPC server: binds, serves the services beside health and reflection, and stops in order.

use crate::actor::{Handle, State};
use crate::service::{user::Users, worker::Workers};
use grundy_proto::v1::grundy_service_server::GrundyServiceServer;
use grundy_proto::v1::worker_service_server::WorkerServiceServer;
use grundy_proto::{DESCRIPTOR_SET, limits};
use grundy_tables::StorageError;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Server as Transport;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;

/// How often an idle connection is asked whether its other end is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// How long calls in flight may take to finish once the server stops. They have their replies already, or get an error at once.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// The services whose health is reported; the empty name stands for the whole server.
const SERVICES: [&str; 3] = ["", "grundy.v1.WorkerService", "grundy.v1.GrundyService"];

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}{}", advice(.error))]
    Bind {
        /// The address as given.
        address: String,
        /// The system's words; part of the message, and so not named as its source once more.
        error: std::io::Error,
    },
    /// The protocol's own description does not load.
    #[error("cannot describe the protocol")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The server ended with an error.
    #[error("the server failed")]
    Transport(#[from] tonic::transport::Error),
    /// Storage failed while serving.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The coordinator's thread is gone without a reason.
    #[error("the coordinator's thread ended unexpectedly: its log says why, and starting again resumes")]
    Thread,
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => ": another program listens there, give another --listen",
        std::io::ErrorKind::InvalidInput => ": expected HOST:PORT, like 0.0.0.0:4848",
        _ => "",
    }
}

/// A coordinator that serves.
pub struct Server {
    handle: Handle,
    address: SocketAddr,
    shutdown: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// A socket that listens. Made before anything is written, so that a wrong address leaves nothing behind.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

/// Listens on `HOST:PORT` (port 0: any that is free). Who connects waits until [`Server::start`].
///
/// # Errors
/// An address that is taken or is none.
pub async fn listen(address: &str) -> Result<Listening, ServerError> {
    let bind = |error| ServerError::Bind { address: address.to_owned(), error };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    Ok(Listening { listener, address })
}

impl Server {
    /// Serves.
    ///
    /// # Errors
    /// A descriptor set that reflection refuses: a build gone wrong.
    pub async fn start(handle: Handle, listening: Listening) -> Result<Self, ServerError> {
        let Listening { listener, address } = listening;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(KEEPALIVE));
        let (health, health_service) = tonic_health::server::health_reporter();
        for service in SERVICES {
            health.set_service_status(service, ServingStatus::Serving).await;
        }
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()?;
        let workers = WorkerServiceServer::new(Workers::new(handle.clone()))
            .max_decoding_message_size(limits::MESSAGE_BYTES_MAX)
            .max_encoding_message_size(limits::MESSAGE_BYTES_MAX);
        let users = GrundyServiceServer::new(Users::new(handle.clone()))
            .max_decoding_message_size(limits::MESSAGE_BYTES_MAX);
        let (shutdown, stopped) = oneshot::channel::<()>();
        let serve = Transport::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .add_service(health_service)
            .add_service(reflection)
            .add_service(workers)
            .add_service(users)
            .serve_with_incoming_shutdown(incoming, async {
                // A dropped sender means the same as a message: stop.
                let _ = stopped.await;
            });
        let mut state = handle.state();
        tokio::spawn(async move {
            // Also when the coordinator has ended without a word.
            let _ = state.wait_for(|state| *state != State::Running).await;
            for service in SERVICES {
                health.set_service_status(service, ServingStatus::NotServing).await;
            }
        });
        let serving = tokio::spawn(serve);
        tracing::info!(%address, "serving");
        Ok(Self { handle, address, shutdown, serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the coordinator has drained.
    ///
    /// # Errors
    /// The failure that stopped it instead.
    pub async fn drained(&self) -> Result<(), ServerError> {
        drained(&self.handle).await
    }

    /// Stops: no new calls, the core's thread ended, storage synced, calls in flight finished or cut off.
    ///
    /// # Errors
    /// A failure of storage or of the server.
    pub async fn stop(self) -> Result<(), ServerError> {
        let Self { handle, shutdown, mut serving, .. } = self;
        // A server that has ended by itself says why below.
        let _ = shutdown.send(());
        stop(&handle).await?;
        match tokio::time::timeout(STOP_GRACE, &mut serving).await {
            Ok(Ok(result)) => Ok(result?),
            Ok(Err(_)) => Err(ServerError::Thread),
            Err(_) => {
                serving.abort();
                Ok(())
            }
        }
    }
}

/// Waits until a coordinator has drained.
///
/// # Errors
/// The failure that stopped it instead.
pub async fn drained(handle: &Handle) -> Result<(), ServerError> {
    let mut state = handle.state();
    let ended = state.wait_for(|state| !matches!(state, State::Running | State::Draining)).await;
    match ended.map(|state| state.clone()) {
        Ok(State::Failed(error)) => Err(error.into()),
        Ok(_) => Ok(()),
        Err(_) => Err(ServerError::Thread),
    }
}

/// Ends a coordinator's thread.
///
/// # Errors
/// The failure that ended it before.
pub async fn stop(handle: &Handle) -> Result<(), ServerError> {
    let stopping = handle.clone();
    tokio::task::spawn_blocking(move || stopping.stop()).await.map_err(|_| ServerError::Thread)?;
    let state = handle.state().borrow().clone();
    match state {
        State::Failed(error) => Err(error.into()),
        State::Stopped => Ok(()),
        State::Running | State::Draining | State::Drained => Err(ServerError::Thread),
    }
}
