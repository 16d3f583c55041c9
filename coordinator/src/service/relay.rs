//! What workers tell each other of their tables, passed on from each to all others.
//!
//! Nothing of it is kept, and none of it matters to the core: who listens too slowly misses some, and so does who comes late.

use super::convert::{self, invalid};
use super::status::ServiceError;
use crate::actor::{Handle, State};
use crate::core::api::Event;
use crate::tide::Tide;
use grundy_proto::convert::{WireError, at_most, required};
use grundy_proto::{limits, v1};
use grundy_tables::telling::TOLD_BYTES;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Messages that may wait for a slow listener; what comes when there are more, it misses. They share their entries with all other listeners.
const WAITING_MAX: usize = 16;

/// How long a caller may take to say who it is.
const GREETING: Duration = Duration::from_secs(10);

type Sender = mpsc::Sender<Result<v1::ExchangeResponse, Status>>;

/// All who listen.
pub(super) struct Relay {
    origin: Instant,
    listeners: Mutex<Listeners>,
}

struct Listeners {
    next: u64,
    senders: BTreeMap<u64, Sender>,
    tide: Tide,
}

impl Relay {
    pub fn new() -> Self {
        let listeners = Listeners { next: 0, senders: BTreeMap::new(), tide: Tide::new(0) };
        Self { origin: Instant::now(), listeners: Mutex::new(listeners) }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        // No code that holds this lock can leave a listener half in.
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a worker tell and listen until it ends the call, or the coordinator stops.
    pub async fn exchange(
        self: Arc<Self>,
        handle: &Handle,
        mut messages: Streaming<v1::ExchangeRequest>,
    ) -> Result<ReceiverStream<Result<v1::ExchangeResponse, Status>>, ServiceError> {
        let first = tokio::time::timeout(GREETING, messages.message()).await;
        let first = first.map_err(|_| invalid("message", "nobody said who calls"))?.map_err(unreadable)?;
        let session = match required(first.and_then(|first| first.message), "message")? {
            v1::exchange_request::Message::Session(session) => convert::session(Some(session))?,
            v1::exchange_request::Message::Told(_) => {
                return Err(invalid("message", "entries come first: expected the session").into());
            }
        };
        let worker = session.worker.clone();
        // The core refuses whom it does not know.
        let greeting = |token| Event::Heartbeat { token, session, leases: Vec::new(), cursors: Vec::new() };
        handle.ask(greeting).await?;
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let listener = self.listeners().join(sender.clone());
        let mut state = handle.state();
        tokio::spawn(async move {
            let ended = tokio::select! {
                ended = self.pass_on_all(listener, messages) => ended,
                // Also when the coordinator has ended without a word.
                _ = state.wait_for(|state| !matches!(state, State::Running | State::Draining)) => Ok(()),
                () = sender.closed() => Ok(()),
            };
            self.listeners().leave(listener);
            if let Err(error) = ended {
                tracing::warn!(worker, %error, "what a worker tells of its table cannot be read");
                // Whoever has gone needs no answer.
                let _ = sender.try_send(Err(ServiceError::from(error).into()));
            }
        });
        Ok(ReceiverStream::new(receiver))
    }

    /// Passes on what a worker tells, until it ends the call.
    async fn pass_on_all(
        &self,
        from: u64,
        mut messages: Streaming<v1::ExchangeRequest>,
    ) -> Result<(), WireError> {
        // A connection that breaks is the worker's to mend.
        while let Ok(Some(request)) = messages.message().await {
            match required(request.message, "message")? {
                v1::exchange_request::Message::Told(told) => {
                    check(&told)?;
                    let now_ms = self.origin.elapsed().as_millis() as u64;
                    self.listeners().pass_on(now_ms, from, &told);
                }
                v1::exchange_request::Message::Session(_) => {
                    return Err(invalid("message", "a second session: expected entries"));
                }
            }
        }
        Ok(())
    }
}

impl Listeners {
    fn join(&mut self, sender: Sender) -> u64 {
        self.next += 1;
        self.senders.insert(self.next, sender);
        self.tell_work_min();
        self.next
    }

    fn leave(&mut self, listener: u64) {
        self.senders.remove(&listener);
        self.tell_work_min();
    }

    /// From which work on entries are wanted: none are while nobody else is there to hear them.
    fn work_min(&self) -> u64 {
        if self.senders.len() > 1 { self.tide.work_min() } else { u64::MAX }
    }

    fn tell_work_min(&self) {
        let response = v1::ExchangeResponse { work_min: self.work_min(), told: None };
        for sender in self.senders.values() {
            // The next message says it too.
            let _ = sender.try_send(Ok(response.clone()));
        }
    }

    fn pass_on(&mut self, now_ms: u64, from: u64, told: &v1::Told) {
        let entries = (told.entries.len() / TOLD_BYTES) as u64;
        let listeners = self.senders.len().saturating_sub(1) as u64;
        let has_turned = self.tide.pass_on(now_ms, entries, listeners);
        let response = v1::ExchangeResponse { work_min: self.work_min(), told: Some(told.clone()) };
        for (_, sender) in self.senders.iter().filter(|(listener, _)| **listener != from) {
            // Who is slow misses it.
            let _ = sender.try_send(Ok(response.clone()));
        }
        if has_turned {
            self.tell_work_min();
        }
    }
}

fn unreadable(status: Status) -> WireError {
    invalid("message", status.message().to_owned())
}

/// Checks all of a message but what its entries say: that is for those who hear them.
fn check(told: &v1::Told) -> Result<(), WireError> {
    let v1::Told { namespace, entries, crc32c } = told;
    if namespace.is_empty() || namespace.len() > limits::NAMESPACE_BYTES_MAX {
        let reason =
            format!("{} bytes: a namespace has 1 to {}", namespace.len(), limits::NAMESPACE_BYTES_MAX);
        return Err(invalid("told.namespace", reason));
    }
    if !entries.len().is_multiple_of(TOLD_BYTES) {
        let reason =
            format!("{} bytes are no whole number of entries of {TOLD_BYTES} bytes each", entries.len());
        return Err(invalid("told.entries", reason));
    }
    at_most(entries.len() / TOLD_BYTES, limits::TOLD_MAX, "told.entries")?;
    let found = crc32c::crc32c(entries);
    if found != *crc32c {
        let reason = format!("the entries' checksum is {found:08x}, the message says {crc32c:08x}");
        return Err(invalid("told.crc32c", reason));
    }
    Ok(())
}
