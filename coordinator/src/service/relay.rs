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

/// How often what was told is passed on, and workers tell, if there are few. Half a millisecond more for each listener: a message to each costs
/// the same however much is in it.
const EVERY_MS_MIN: u64 = 5;

/// After so long without a word from a worker, what is wanted is thought over: workers that find it too much to ask for say nothing.
const QUIET: Duration = Duration::from_secs(1);

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
    /// What was told since it was last passed on, with who told it.
    pending: Vec<(u64, v1::Told)>,
    /// The bytes of these entries.
    pending_bytes: usize,
}

impl Relay {
    pub fn new() -> Self {
        let listeners = Listeners {
            next: 0,
            senders: BTreeMap::new(),
            tide: Tide::new(0),
            pending: Vec::new(),
            pending_bytes: 0,
        };
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
                ended = self.take_in_all(listener, messages) => ended,
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

    /// Takes in what a worker tells, until it ends the call.
    async fn take_in_all(
        self: &Arc<Self>,
        from: u64,
        mut messages: Streaming<v1::ExchangeRequest>,
    ) -> Result<(), WireError> {
        loop {
            let message = tokio::select! {
                message = messages.message() => message,
                () = tokio::time::sleep(QUIET) => {
                    self.pass_on();
                    continue;
                }
            };
            // A connection that breaks is the worker's to mend.
            let Ok(Some(request)) = message else { return Ok(()) };
            match required(request.message, "message")? {
                v1::exchange_request::Message::Told(told) => {
                    check(&told)?;
                    self.take_in(from, told);
                }
                v1::exchange_request::Message::Session(_) => {
                    return Err(invalid("message", "a second session: expected entries"));
                }
            }
        }
    }

    fn pass_on(&self) {
        let now_ms = self.origin.elapsed().as_millis() as u64;
        self.listeners().pass_on(now_ms);
    }

    /// Takes in what a worker tells. The first after a while sees to it that all is passed on together a little later.
    fn take_in(self: &Arc<Self>, from: u64, told: v1::Told) {
        let (is_first, every_ms) = {
            let mut listeners = self.listeners();
            (listeners.take_in(from, told), listeners.every_ms())
        };
        if is_first {
            let relay = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(every_ms)).await;
                relay.pass_on();
            });
        }
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

    /// How often to tell, and to pass on.
    fn every_ms(&self) -> u64 {
        EVERY_MS_MIN.max(self.senders.len() as u64 / 2)
    }

    fn response(&self, told: Vec<v1::Told>) -> v1::ExchangeResponse {
        v1::ExchangeResponse { work_min: self.work_min(), told, every_ms: self.every_ms() }
    }

    fn tell_work_min(&self) {
        let response = self.response(Vec::new());
        for sender in self.senders.values() {
            // The next message says it too.
            let _ = sender.try_send(Ok(response.clone()));
        }
    }

    /// Keeps it until it is passed on. Whether it is the first.
    fn take_in(&mut self, from: u64, told: v1::Told) -> bool {
        let bytes = self.pending_bytes + told.entries.len();
        if bytes > limits::HEARD_BYTES_MAX {
            // Nobody could hear so much; the tide has yet to turn.
            return false;
        }
        self.pending_bytes = bytes;
        self.pending.push((from, told));
        self.pending.len() == 1
    }

    fn pass_on(&mut self, now_ms: u64) {
        let pending = std::mem::take(&mut self.pending);
        let entries = std::mem::take(&mut self.pending_bytes) / TOLD_BYTES;
        let others = self.senders.len().saturating_sub(1) as u64;
        let has_turned = self.tide.pass_on(now_ms, entries as u64, others);
        for (listener, sender) in &self.senders {
            let told: Vec<v1::Told> =
                pending.iter().filter(|(from, _)| from != listener).map(|(_, told)| told.clone()).collect();
            if has_turned || !told.is_empty() {
                // Who is slow misses it.
                let _ = sender.try_send(Ok(self.response(told)));
            }
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
