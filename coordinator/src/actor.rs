//! The one thread that owns the core and its storage.
//!
//! Callers put events into a bounded queue and wait for replies. The thread takes all events that wait, steps the core
//! through them, commits what came out as one batch (group commit: one sync for many results), and only then lets the
//! batch's replies go. So no reply is ever seen whose cause is not durable. A commit that fails stops the
//! coordinator: what the core believes and what the disk holds have parted, and only a restart joins them again.

use crate::core::api::{Acceptance, Action, CoreError, Event, Millis, Occurrence, Reply, Token};
use crate::core::{Core, Options};
use crate::log;
use grundy_tables::StorageError;
use grundy_tables::jobs::record::{JobId, Loaded, PartId, Write};
use grundy_tables::jobs::{Durability, JobStorage};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// Events that may wait for the thread; more callers than that wait for a place. A thousand is several times the
/// calls of the largest cluster that one coordinator serves, in the time of one sync.
const QUEUE_MAX: usize = 1024;

/// The most events of one batch: bounds the size of a commit.
const BATCH_MAX: usize = 512;

/// How often the core sees time pass.
const TICK: Duration = Duration::from_millis(200);

/// What the coordinator is doing, as its surroundings need to know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// At work.
    Running,
    /// Leasing nothing more; leases are still out.
    Draining,
    /// No lease is left, and everything is on disk.
    Drained,
    /// Storage failed: nothing is answered any more.
    Failed(StorageError),
    /// Stopped as asked.
    Stopped,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The core refused.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The coordinator has stopped, or is about to.
    #[error("the coordinator is stopping")]
    Stopped,
}

/// Why the thread did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The records do not make a state.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The system gave no thread.
    #[error("cannot start the coordinator's thread")]
    Thread(#[from] std::io::Error),
}

enum Message {
    /// An event, with the runs to be stored should the core accept the part that it completes.
    Event(Event, Vec<Vec<u8>>, OwnedSemaphorePermit),
    /// Outside of the queue's bound: at most one a call, and the only event that a dropped call can still send.
    Abandon(Token),
    /// Something outside of the thread found storage broken.
    Fail(StorageError),
    Stop,
}

type Waiting = Mutex<HashMap<Token, oneshot::Sender<Reply>>>;

struct Shared {
    sender: Sender<Message>,
    places: Arc<Semaphore>,
    waiting: Waiting,
    tokens: AtomicU64,
    state: watch::Receiver<State>,
    storage: Arc<dyn JobStorage>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Speaks to the thread. Cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

/// Starts the thread on storage and what was read from it.
///
/// # Errors
/// Records that contradict each other; no thread to be had.
pub fn spawn(storage: Arc<dyn JobStorage>, loaded: Loaded, options: Options) -> Result<Handle, StartError> {
    let origin = Instant::now();
    let core = Core::new(storage.epoch(), options, loaded, Millis(0))
        .map_err(|reason| StorageError::Corrupt { place: "the checkpoint".to_owned(), reason })?;
    let (sender, receiver) = mpsc::channel();
    let (report, state) = watch::channel(State::Running);
    let shared = Arc::new(Shared {
        sender,
        places: Arc::new(Semaphore::new(QUEUE_MAX)),
        waiting: Mutex::default(),
        tokens: AtomicU64::new(1),
        state,
        storage: Arc::clone(&storage),
        thread: Mutex::default(),
    });
    // The thread holds the waiting callers weakly: when the last handle goes, the channel closes and the thread ends.
    let callers = Arc::downgrade(&shared);
    let reply = move |token: Token, reply: Reply| {
        let sender = callers.upgrade().and_then(|shared| lock(&shared.waiting).remove(&token));
        // A caller that has gone away needs no reply.
        sender.map(|sender| sender.send(reply)).is_some_and(|sent| sent.is_ok())
    };
    let actor = Actor { core, storage, receiver, report, origin, reply };
    let thread = std::thread::Builder::new().name("core".to_owned()).spawn(move || actor.run())?;
    *lock(&shared.thread) = Some(thread);
    Ok(Handle(shared))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No code that holds these locks can panic half way; the data is whole either way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    /// Puts an event to the core and waits for its reply. `event` is given the token it must carry.
    ///
    /// Dropping the future of a waiting [`Event::Lease`] tells the core that the caller is gone.
    ///
    /// # Errors
    /// What the core refuses, and [`AskError::Stopped`].
    pub async fn ask(&self, event: impl FnOnce(Token) -> Event) -> Result<Reply, AskError> {
        self.ask_with(Vec::new(), event).await
    }

    /// Puts an [`Event::CompletePart`] to the core with the part's runs. They are stored if, and only if, the core accepts the part,
    /// in one go with it: whoever else may send the same part, what is stored is what was accepted.
    ///
    /// # Errors
    /// As [`Handle::ask`].
    pub async fn ask_with(
        &self,
        runs: Vec<Vec<u8>>,
        event: impl FnOnce(Token) -> Event,
    ) -> Result<Reply, AskError> {
        let token = Token(self.0.tokens.fetch_add(1, Ordering::Relaxed));
        let event = event(token);
        let waits = matches!(event, Event::Lease { .. });
        let place = Arc::clone(&self.0.places).acquire_owned().await.map_err(|_| AskError::Stopped)?;
        let (sender, receiver) = oneshot::channel();
        lock(&self.0.waiting).insert(token, sender);
        let mut call = Call { handle: self, token, waits };
        self.0.sender.send(Message::Event(event, runs, place)).map_err(|_| AskError::Stopped)?;
        let mut state = self.0.state.clone();
        let reply = tokio::select! {
            biased;
            reply = receiver => reply.map_err(|_| AskError::Stopped)?,
            _ = state.wait_for(|state| matches!(state, State::Failed(_) | State::Stopped)) => return Err(AskError::Stopped),
        };
        call.waits = false;
        match reply {
            Reply::Error(error) => Err(error.into()),
            reply => Ok(reply),
        }
    }

    /// What the coordinator is doing, and a way to wait for it to change.
    pub fn state(&self) -> watch::Receiver<State> {
        self.0.state.clone()
    }

    /// The storage, for the runs of counts, which do not pass through the core.
    pub fn storage(&self) -> &Arc<dyn JobStorage> {
        &self.0.storage
    }

    /// Reports that storage was found broken outside of the thread, which stops the coordinator.
    pub fn fail(&self, error: StorageError) {
        // A thread that is gone has stopped already.
        let _ = self.0.sender.send(Message::Fail(error));
    }

    /// Stops the thread after the events that are waiting, syncs storage, and waits for the thread. May be called again.
    /// Blocks: not for async code.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Shared {
    fn stop(&self) {
        // A thread that is gone takes no message and needs none.
        let _ = self.sender.send(Message::Stop);
        let Some(thread) = lock(&self.thread).take() else { return };
        // The last handle may be one that the thread itself held for a moment, to reply.
        let itself = thread.thread().id() == std::thread::current().id();
        if !itself && thread.join().is_err() {
            tracing::error!("the coordinator's thread panicked");
        }
    }
}

impl Drop for Shared {
    /// However a command ends, storage is closed before the process is.
    fn drop(&mut self) {
        self.stop();
    }
}

/// One waiting call: cleans up after itself however it ends.
struct Call<'a> {
    handle: &'a Handle,
    token: Token,
    waits: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let forgotten = lock(&self.handle.0.waiting).remove(&self.token).is_some();
        if self.waits && forgotten {
            let _ = self.handle.0.sender.send(Message::Abandon(self.token));
        }
    }
}

struct Actor<R> {
    core: Core,
    storage: Arc<dyn JobStorage>,
    receiver: Receiver<Message>,
    report: watch::Sender<State>,
    origin: Instant,
    reply: R,
}

/// The part that an event completes.
struct Stored {
    token: Token,
    job: JobId,
    part: PartId,
}

impl Stored {
    fn of(event: &Event) -> Option<Self> {
        match event {
            Event::CompletePart { token, job, part, .. } => {
                Some(Self { token: *token, job: *job, part: *part })
            }
            _ => None,
        }
    }
}

/// What one batch of events came to.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    synced: bool,
    replies: Vec<(Token, Reply)>,
    occurrences: Vec<Occurrence>,
    draining: bool,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.replies.is_empty() && self.occurrences.is_empty()
    }
}

/// Drops records of jobs that a later one in the same batch replaces: every result changes its job's, and it is the largest of its writes.
fn drop_replaced(writes: &mut Vec<Write>) {
    let mut last: HashMap<JobId, usize> = HashMap::new();
    for (index, write) in writes.iter().enumerate() {
        if let Write::Job(id, _) = write {
            last.insert(*id, index);
        }
    }
    let mut index = 0;
    writes.retain(|write| {
        let replaced = matches!(write, Write::Job(id, _) if last.get(id) != Some(&index));
        index += 1;
        !replaced
    });
}

impl<R: Fn(Token, Reply) -> bool> Actor<R> {
    fn run(mut self) {
        let end = match self.work() {
            Ok(()) => State::Stopped,
            Err(error) => {
                tracing::error!(%error, "storage failed, the coordinator stops");
                State::Failed(error)
            }
        };
        self.report.send_replace(end);
    }

    fn now(&self) -> Millis {
        Millis(u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Works until asked to stop, or until nobody is left who could ask.
    fn work(&mut self) -> Result<(), StorageError> {
        let mut tick_at = Instant::now() + TICK;
        loop {
            let mut waiting =
                match self.receiver.recv_timeout(tick_at.saturating_duration_since(Instant::now())) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return self.sync(),
                };
            let mut batch = Batch::default();
            let mut stop = false;
            let mut events = 0;
            while let Some(message) = waiting.take() {
                events += 1;
                match message {
                    Message::Event(event, runs, _place) => {
                        let stored = Stored::of(&event);
                        self.step(event, &mut batch);
                        self.store(stored, &runs, &batch)?;
                    }
                    Message::Abandon(token) => self.step(Event::Abandon { token }, &mut batch),
                    Message::Fail(error) => return Err(error),
                    Message::Stop => stop = true,
                }
                if events < BATCH_MAX && !stop {
                    waiting = self.receiver.try_recv().ok();
                }
            }
            if Instant::now() >= tick_at {
                self.step(Event::Tick, &mut batch);
                tick_at = Instant::now() + TICK;
            }
            self.finish(batch)?;
            if stop {
                return self.sync();
            }
        }
    }

    /// Stores the runs of a part that was just accepted; the batch's commit, which comes after, makes them durable.
    fn store(&self, stored: Option<Stored>, runs: &[Vec<u8>], batch: &Batch) -> Result<(), StorageError> {
        let Some(Stored { token, job, part }) = stored else { return Ok(()) };
        let accepted = Reply::Completed(Acceptance::Accepted);
        if batch.replies.iter().any(|(to, reply)| *to == token && *reply == accepted) {
            for (to_part, run) in (0u32..).zip(runs) {
                self.storage.put_run(job, part, to_part, run)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, event: Event, batch: &mut Batch) {
        batch.draining |= matches!(event, Event::Drain { .. });
        for action in self.core.step(self.now(), event) {
            match action {
                Action::Commit(writes, durability) => {
                    batch.writes.extend(writes);
                    batch.synced |= durability == Durability::Synced;
                }
                Action::Reply(token, reply) => batch.replies.push((token, reply)),
                Action::Log(occurrence) => batch.occurrences.push(occurrence),
            }
        }
    }

    /// Makes a batch durable, then visible, and reports when the coordinator has drained.
    fn finish(&mut self, mut batch: Batch) -> Result<(), StorageError> {
        // What could not be delivered makes another batch, until there is none.
        while !batch.is_empty() {
            batch = self.publish(batch)?;
        }
        let drained = self.core.drained();
        if drained && !matches!(*self.report.borrow(), State::Drained) {
            self.sync()?;
            self.report.send_replace(State::Drained);
        }
        Ok(())
    }

    /// Makes a batch durable, then visible. Returns what comes of replies that nobody took.
    fn publish(&mut self, mut batch: Batch) -> Result<Batch, StorageError> {
        if !batch.writes.is_empty() {
            drop_replaced(&mut batch.writes);
            let durability = if batch.synced { Durability::Synced } else { Durability::Buffered };
            self.storage.commit(&batch.writes, durability)?;
        }
        for occurrence in &batch.occurrences {
            log::occurrence(occurrence);
        }
        if batch.draining && !self.core.drained() {
            self.report.send_replace(State::Draining);
        }
        let mut after = Batch::default();
        for (token, reply) in batch.replies {
            let leased = match &reply {
                Reply::Leased(assignment) => Some(assignment.lease),
                _ => None,
            };
            // A task whose worker went away in the same moment is free again, and need not lapse.
            if !(self.reply)(token, reply)
                && let Some(lease) = leased
            {
                self.step(Event::Undelivered { lease }, &mut after);
            }
        }
        Ok(after)
    }

    /// Makes all that was only buffered durable.
    fn sync(&self) -> Result<(), StorageError> {
        self.storage.commit(&[], Durability::Synced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_games::problem::Fields;
    use grundy_tables::jobs::record::{JobRecord, Task};

    #[test]
    fn of_a_batch_s_records_of_a_job_the_last_one_is_written() {
        let [game, rules, position, question] = ["cram", "", "..", "nimber"].map(str::to_owned);
        let record = JobRecord::new(Fields { game, rules, position, question }, 0);
        let job = |id, nodes| Write::Job(JobId(id), JobRecord { nodes, ..record.clone() });
        let other = Write::LeaseEnd(JobId(1), Task::Part(PartId { stage: 0, part: 0 }));
        let mut writes = vec![job(1, 1), job(2, 1), other.clone(), job(1, 2), other.clone(), job(1, 3)];
        drop_replaced(&mut writes);
        assert_eq!(writes, [job(2, 1), other.clone(), other, job(1, 3)]);
    }
}
