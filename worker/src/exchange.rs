//! What the worker tells other workers of its table, and hears of theirs, for as long as the coordinator passes it on.
//!
//! Nothing depends on it but the time that a search takes: a call that breaks is made again after a while, and what was not told is not missed.

use crate::engines::Shared;
use crate::session::{Client, Registration, reason};
use grundy_proto::{limits, v1};
use grundy_search::table::{Entry, Key, Namespace};
use grundy_tables::TieredTable;
use grundy_tables::telling::{Telling, decode_told, encode_told};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tracing::{debug, warn};

/// How often what was found is told, unless the coordinator says less often. Workers on the same few lines repeat what they have not heard of yet.
const TELL_EVERY: Duration = Duration::from_millis(5);

/// The longest that a coordinator can make it.
const TELL_EVERY_MAX: Duration = Duration::from_secs(5);

/// After how long a call that broke is made again.
const CALL_AGAIN: Duration = Duration::from_secs(2);

/// Messages under way to the coordinator; when it takes no more, what is found meanwhile is not told.
const SENDING_MAX: usize = 8;

/// The table as the engines see it, with what is to be told of it and to whom it would mean something.
pub struct Exchange {
    table: Arc<Telling<Arc<TieredTable>>>,
    followed: Mutex<BTreeMap<String, Followed>>,
    /// The least work that the coordinator wants to hear of.
    wanted: AtomicU64,
    told: AtomicU64,
    heard: AtomicU64,
}

#[derive(Clone, Copy)]
struct Followed {
    namespace: Namespace,
    work_min: u64,
}

impl Exchange {
    /// Nothing is told yet.
    pub fn new(table: Arc<TieredTable>) -> Self {
        Self {
            table: Arc::new(Telling::new(table)),
            followed: Mutex::default(),
            wanted: AtomicU64::new(u64::MAX),
            told: AtomicU64::new(0),
            heard: AtomicU64::new(0),
        }
    }

    /// The table for engines: what they store in it is told.
    pub fn table(&self) -> Arc<Telling<Arc<TieredTable>>> {
        Arc::clone(&self.table)
    }

    /// Tells and hears of a namespace from now on; told are entries of at least this work.
    pub fn follow(&self, name: String, namespace: Namespace, work_min: u64) {
        if work_min < u64::MAX {
            self.followed().insert(name, Followed { namespace, work_min });
            self.turn();
        }
    }

    /// Entries told and heard so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.told.load(Ordering::Relaxed), self.heard.load(Ordering::Relaxed))
    }

    fn followed(&self) -> MutexGuard<'_, BTreeMap<String, Followed>> {
        // Whole values are inserted, so a panic elsewhere cannot leave the map half changed.
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be told now, in messages.
    fn told(&self) -> Vec<v1::Told> {
        let told = self.table.take();
        let followed = self.followed();
        let mut messages = Vec::new();
        for (name, Followed { namespace, work_min }) in followed.iter() {
            let is_worth =
                |(key, entry): &&(Key, Entry)| key.namespace() == *namespace && entry.work >= *work_min;
            let worth: Vec<(Key, Entry)> = told.iter().filter(is_worth).copied().collect();
            for entries in worth.chunks(limits::TOLD_MAX) {
                let entries = encode_told(entries);
                let crc32c = crc32c::crc32c(&entries);
                messages.push(v1::Told { namespace: name.clone(), entries: entries.into(), crc32c });
            }
            self.told.fetch_add(worth.len() as u64, Ordering::Relaxed);
        }
        messages
    }

    /// Takes in what another worker told. What is of no concern here is passed over.
    fn hear(&self, told: &v1::Told) -> Result<(), String> {
        let Some(Followed { namespace, .. }) = self.followed().get(&told.namespace).copied() else {
            return Ok(());
        };
        let found = crc32c::crc32c(&told.entries);
        if found != told.crc32c {
            return Err(format!("their checksum is {found:08x}, the message says {:08x}", told.crc32c));
        }
        let entries = decode_told(&told.entries, namespace).map_err(|error| error.to_string())?;
        entries.iter().for_each(|(key, entry)| self.table.hear(key, *entry));
        self.heard.fetch_add(entries.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Entries of this work and more are wanted from now on.
    fn want(&self, work_min: u64) {
        self.wanted.store(work_min, Ordering::Relaxed);
        self.turn();
    }

    /// Sets the table to what is wanted and worth it in some game.
    fn turn(&self) {
        let least = self.followed().values().map(|followed| followed.work_min).min();
        let wanted = self.wanted.load(Ordering::Relaxed);
        self.table.tell_from(least.map_or(u64::MAX, |least| least.max(wanted)));
    }
}

/// Tells and listens until the worker ends.
pub async fn run(shared: Arc<Shared>) {
    let client = shared.client.clone();
    let mut registrations = shared.session.registrations();
    loop {
        let now = *registrations.borrow_and_update();
        if let Some(registration) = now {
            if let Err(status) = converse(&shared, client.clone(), registration).await {
                // Engines and heartbeats tell of a coordinator that is gone.
                debug!(event = "exchange", reason = %reason(&status), "nothing is told for a while");
            }
            shared.exchange.want(u64::MAX);
            shared.exchange.table.take();
        }
        tokio::select! {
            _ = registrations.changed() => {}
            () = tokio::time::sleep(CALL_AGAIN) => {}
        }
    }
}

/// One call, until it breaks.
async fn converse(shared: &Shared, mut client: Client, registration: Registration) -> Result<(), Status> {
    let exchange = &shared.exchange;
    let (sender, requests) = mpsc::channel(SENDING_MAX);
    let request = |message| v1::ExchangeRequest { message: Some(message) };
    let session = shared.session.header(&registration);
    // There is room for it.
    let _ = sender.try_send(request(v1::exchange_request::Message::Session(session)));
    let mut responses = client.exchange(ReceiverStream::new(requests)).await?.into_inner();
    let mut every = TELL_EVERY;
    let mut next = tokio::time::Instant::now() + every;
    loop {
        tokio::select! {
            response = responses.message() => {
                let Some(v1::ExchangeResponse { work_min, told, every_ms }) = response? else { return Ok(()) };
                exchange.want(work_min);
                every = Duration::from_millis(every_ms).clamp(TELL_EVERY, TELL_EVERY_MAX);
                for reason in told.iter().filter_map(|told| exchange.hear(told).err()) {
                    warn!(event = "exchange", reason, "another worker's table entries cannot be read: passed over");
                }
            }
            () = tokio::time::sleep_until(next) => {
                next = tokio::time::Instant::now() + every;
                for told in exchange.told() {
                    // When it is full, the coordinator is slow, and will want less.
                    let _ = sender.try_send(request(v1::exchange_request::Message::Told(told)));
                }
            }
        }
    }
}
