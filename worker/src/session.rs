//! The session with the coordinator: who we are, which of its runs we speak to, and how a call gets through.

use crate::backoff::{Next, Reconnect, jitter};
use crate::drain::Drain;
use crate::error::WorkerError;
use crate::leases::Epoch;
use crate::retry::{Judgement, judge};
use grundy_proto::v1::worker_service_client::WorkerServiceClient;
use grundy_proto::{PROTOCOL_VERSION, limits, v1};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tracing::{info, warn};

/// A connection. Cheap to clone; clones share it. It connects when first used, and again after it broke.
pub type Client = WorkerServiceClient<Channel>;

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection on which nothing came for this long is probed, so that a coordinator whose machine vanished is noticed.
const PROBE_AFTER: Duration = Duration::from_secs(15);

/// An unanswered probe ends the connection after this long.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);

/// How long the call that ends a session may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// What the coordinator answered to Register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Its run.
    pub epoch: Epoch,
    /// A lease lapses this long after its last heartbeat.
    pub lease: Duration,
    /// How often to send heartbeats.
    pub heartbeat: Duration,
    /// Counts this process's registrations, so that a caller can say which one was refused.
    serial: u64,
}

/// How long a caller waits for its call to get through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Until the worker drains: it would take on work.
    UntilDrain,
    /// Until the time to hand in results is over: it delivers work.
    UntilHandedIn,
}

/// Why a call came to nothing.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The worker drains, or [has failed](Drain::failure).
    Draining,
    /// The coordinator refused it for good.
    Refused(Status),
}

/// Who this worker is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The coordinator, `http://host:port`.
    pub coordinator: String,
    /// The worker's name.
    pub worker: String,
    /// This run of the process.
    pub incarnation: u64,
    /// How many leases it works on at a time.
    pub threads: u32,
}

/// The session. All threads share it, and with it one registration and one policy of reconnecting.
pub struct Session {
    identity: Identity,
    endpoint: Endpoint,
    registering: Mutex<()>,
    registration: watch::Sender<Option<Registration>>,
    reconnect: Reconnect,
    drain: Arc<Drain>,
}

impl Session {
    /// A session that has not been in contact yet.
    ///
    /// # Errors
    /// [`WorkerError::Start`] for an address that is none.
    pub fn new(
        identity: Identity,
        give_up_after: Option<Duration>,
        drain: Arc<Drain>,
    ) -> Result<Self, WorkerError> {
        let endpoint = Endpoint::from_shared(identity.coordinator.clone())
            .map_err(|e| WorkerError::Start {
                what: format!("a connection to '{}'", identity.coordinator),
                reason: e.to_string(),
            })?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(PROBE_AFTER))
            .http2_keep_alive_interval(PROBE_AFTER)
            .keep_alive_timeout(PROBE_DEADLINE)
            .keep_alive_while_idle(true);
        let registration = watch::Sender::new(None);
        let reconnect = Reconnect::new(give_up_after);
        Ok(Self { identity, endpoint, registering: Mutex::new(()), registration, reconnect, drain })
    }

    /// A connection of its own. Must be called within a tokio runtime, which then drives it.
    pub fn client(&self) -> Client {
        Client::new(self.endpoint.connect_lazy())
            .max_decoding_message_size(limits::MESSAGE_BYTES_MAX)
            .max_encoding_message_size(limits::MESSAGE_BYTES_MAX)
    }

    /// Who this worker is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Follows the registration: `None` before the first.
    pub fn registrations(&self) -> watch::Receiver<Option<Registration>> {
        self.registration.subscribe()
    }

    /// What a call under this registration names.
    pub fn header(&self, registration: &Registration) -> v1::Session {
        let Identity { worker, incarnation, .. } = &self.identity;
        v1::Session { epoch: registration.epoch.0, worker: worker.clone(), incarnation: *incarnation }
    }

    /// Makes a call until it is answered, registering and reconnecting as needed. `call` is given a client and the session to
    /// name, and sets its own deadline. Gives the answer and the registration under which it came.
    ///
    /// # Errors
    /// [`Ended`] when patience ends or the coordinator refuses for good.
    pub async fn until_answered<T, F, Fut>(
        &self,
        client: &Client,
        what: &'static str,
        patience: Patience,
        mut call: F,
    ) -> Result<(T, Registration), Ended>
    where
        F: FnMut(Client, v1::Session) -> Fut + Send,
        Fut: Future<Output = Result<T, Status>> + Send,
        T: Send,
    {
        let attempts = async {
            let mut stale = None;
            loop {
                let registration = self.registered(client, stale).await?;
                let status = match call(client.clone(), self.header(&registration)).await {
                    Ok(answer) => {
                        self.answered();
                        return Ok((answer, registration));
                    }
                    Err(status) => status,
                };
                match judge(&status) {
                    Judgement::Register => {
                        // A coordinator that sends us to register again and again must not be asked in a tight loop.
                        if stale.is_some() {
                            self.pause(what, &status).await?;
                        }
                        stale = Some(registration.serial);
                    }
                    Judgement::Retry => self.pause(what, &status).await?,
                    Judgement::Superseded => return Err(self.superseded(&status)),
                    Judgement::Refused => return Err(Ended::Refused(status)),
                }
            }
        };
        let over = async {
            match patience {
                Patience::UntilDrain => self.drain.begins().await,
                Patience::UntilHandedIn => self.drain.out_of_time().await,
            }
        };
        tokio::select! {
            biased;
            () = over => Err(Ended::Draining),
            answer = attempts => answer,
        }
    }

    /// Registers again after the coordinator refused a call under `stale`, unless another thread has done so already.
    ///
    /// # Errors
    /// [`Ended::Draining`] when the time to hand in is over.
    pub async fn renew(&self, client: &Client, stale: Registration) -> Result<Registration, Ended> {
        tokio::select! {
            biased;
            () = self.drain.out_of_time() => Err(Ended::Draining),
            registration = self.registered(client, Some(stale.serial)) => registration,
        }
    }

    /// The registration, made anew if there is none or the one of that serial number was refused.
    async fn registered(&self, client: &Client, stale: Option<u64>) -> Result<Registration, Ended> {
        let _one_at_a_time = self.registering.lock().await;
        let current = *self.registration.borrow();
        if let Some(registration) = current.filter(|r| Some(r.serial) != stale) {
            return Ok(registration);
        }
        let serial = current.map_or(0, |r| r.serial) + 1;
        loop {
            let status = match self.register(client).await {
                Ok(response) => return Ok(self.accept(response, current, serial)),
                Err(status) => status,
            };
            match judge(&status) {
                Judgement::Retry => self.pause("Register", &status).await?,
                Judgement::Superseded => return Err(self.superseded(&status)),
                // Register has no precondition but the protocol's version.
                Judgement::Register | Judgement::Refused => {
                    return Err(self.refused("Register", &status));
                }
            }
        }
    }

    /// Tells the coordinator that this run ends in order. Tried once and for a moment only: a coordinator that does not hear of it
    /// finds the worker silent soon enough.
    ///
    /// # Errors
    /// The coordinator's or the connection's words.
    pub async fn unregister(&self, client: &Client) -> Result<(), Status> {
        // Who never registered has nothing to take back.
        let Some(registration) = *self.registration.borrow() else { return Ok(()) };
        let mut request = Request::new(v1::UnregisterRequest { session: Some(self.header(&registration)) });
        request.set_timeout(GOODBYE);
        client.clone().unregister(request).await?;
        Ok(())
    }

    async fn register(&self, client: &Client) -> Result<v1::RegisterResponse, Status> {
        let Identity { worker, incarnation, threads, .. } = &self.identity;
        let mut request = Request::new(v1::RegisterRequest {
            protocol_version: PROTOCOL_VERSION,
            worker: worker.clone(),
            incarnation: *incarnation,
            threads: *threads,
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        request.set_timeout(limits::CALL_DEADLINE);
        Ok(client.clone().register(request).await?.into_inner())
    }

    fn accept(
        &self,
        response: v1::RegisterResponse,
        before: Option<Registration>,
        serial: u64,
    ) -> Registration {
        self.answered();
        let v1::RegisterResponse { epoch, lease_ms, heartbeat_ms } = response;
        // A peer's zero must not make a busy loop, nor a huge number an overflow.
        let bounded = |ms: u64| Duration::from_millis(ms.clamp(10, 3_600_000));
        let (lease, heartbeat) = (bounded(lease_ms), bounded(heartbeat_ms));
        let registration = Registration { epoch: Epoch(epoch), lease, heartbeat, serial };
        let Identity { coordinator, worker, incarnation, threads } = &self.identity;
        info!(
            event = "register", %coordinator, %worker, incarnation, threads, epoch,
            epoch_before = before.map(|r| r.epoch.0), lease_ms, heartbeat_ms, "registered"
        );
        self.registration.send_replace(Some(registration));
        registration
    }

    /// A call came through.
    fn answered(&self) {
        if let Some(away) = self.reconnect.succeeded(Instant::now()) {
            let away_ms = away.as_millis() as u64;
            info!(event = "reconnect", coordinator = %self.identity.coordinator, away_ms, "coordinator answers again");
        }
    }

    /// Waits before the next attempt, by the one policy of the process.
    ///
    /// # Errors
    /// [`Ended::Draining`] when it was tried for long enough: the worker has failed then.
    pub async fn pause(&self, call: &'static str, status: &Status) -> Result<(), Ended> {
        let coordinator = &self.identity.coordinator;
        match self.reconnect.failed(Instant::now(), jitter()) {
            Next::Wait { wait, failures, first_of_round } => {
                if first_of_round {
                    let (wait_ms, code) = (wait.as_millis() as u64, status.code());
                    warn!(event = "reconnect", %coordinator, call, failures, wait_ms, ?code, reason = %reason(status), "no answer, trying again");
                }
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Next::GiveUp { waited } => {
                let (coordinator, last) = (coordinator.clone(), reason(status));
                self.drain.fail(WorkerError::Unreachable { coordinator, waited, last });
                Err(Ended::Draining)
            }
        }
    }

    /// Ends the worker: another process has its name.
    pub fn superseded(&self, status: &Status) -> Ended {
        let (worker, reason) = (self.identity.worker.clone(), status.message().to_owned());
        self.drain.fail(WorkerError::Superseded { worker, reason });
        Ended::Draining
    }

    /// Ends the worker: without this call it cannot work.
    pub fn refused(&self, call: &'static str, status: &Status) -> Ended {
        let (coordinator, reason) = (self.identity.coordinator.clone(), reason(status));
        self.drain.fail(WorkerError::Refused { coordinator, call, reason });
        Ended::Draining
    }
}

/// A status in words, with the causes below it: "transport error" alone helps nobody.
pub fn reason(status: &Status) -> String {
    let mut words = if status.message().is_empty() {
        status.code().description().to_owned()
    } else {
        status.message().to_owned()
    };
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let text = error.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    words
}
