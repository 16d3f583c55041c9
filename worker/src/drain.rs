//! Ending well: the first signal stops the taking of work and lets what is done be handed in, the second ends at once.

use crate::error::{Exit, WorkerError};
use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

/// Why the worker ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// SIGTERM.
    Terminated,
    /// SIGINT.
    Interrupted,
    /// The process that started this one has gone or let go.
    ParentGone,
    /// An error; see [`Drain::failure`].
    Failed,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminated => "SIGTERM",
            Self::Interrupted => "SIGINT",
            Self::ParentGone => "stdin closed",
            Self::Failed => "failure",
        })
    }
}

impl Cause {
    /// How long results may still be handed in. What is not acknowledged by then stays in the spool.
    fn hand_in(self) -> Duration {
        match self {
            // Service managers wait 90 s, batch systems 30 s before they kill.
            Self::Terminated | Self::Interrupted => Duration::from_secs(15),
            // The coordinator is most likely gone with the parent; if it lives, it is on this machine and answers fast.
            Self::ParentGone => Duration::from_secs(2),
            // Results of a process that has found itself wrong are not to be handed in.
            Self::Failed => Duration::ZERO,
        }
    }
}

/// Whether, since when and why the worker ends. Shared by all threads; goes one way.
#[derive(Debug)]
pub struct Drain {
    begun: watch::Sender<Option<(Cause, Instant)>>,
    failure: Mutex<Option<WorkerError>>,
}

impl Default for Drain {
    fn default() -> Self {
        Self { begun: watch::Sender::new(None), failure: Mutex::default() }
    }
}

impl Drain {
    /// Begins to drain. Only the first cause counts; false if there was one already.
    pub fn begin(&self, cause: Cause) -> bool {
        self.begun.send_if_modified(|begun| {
            let first = begun.is_none();
            if first {
                *begun = Some((cause, Instant::now()));
            }
            first
        })
    }

    /// Ends the worker because of an error: no more results are handed in, even if a drain had begun. The first error counts.
    pub fn fail(&self, error: WorkerError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.begun.send_replace(Some((Cause::Failed, Instant::now())));
    }

    /// Why the worker ends, if it does.
    pub fn cause(&self) -> Option<Cause> {
        self.begun.borrow().map(|(cause, _)| cause)
    }

    /// The error that ends it.
    pub fn failure(&self) -> Option<WorkerError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves once the worker is to take no more work.
    pub async fn begins(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.begun.subscribe().wait_for(Option::is_some).await;
    }

    /// Resolves once results are no longer to be handed in.
    pub async fn out_of_time(&self) {
        let mut begun = self.begun.subscribe();
        loop {
            let now = *begun.borrow_and_update();
            let ends = async {
                match now {
                    Some((cause, at)) => tokio::time::sleep_until(at + cause.hand_in()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = ends => return,
                // A failure cuts the time short.
                changed = begun.changed() => if changed.is_err() { return },
            }
        }
    }

    /// The exit code of a worker that has ended by this drain.
    pub fn exit(&self) -> Exit {
        match self.cause() {
            Some(Cause::Interrupted) => Exit::Interrupted,
            Some(Cause::Failed) => Exit::Failed,
            Some(Cause::Terminated | Cause::ParentGone) | None => Exit::Done,
        }
    }
}

/// Watches SIGINT and SIGTERM on a thread of its own: the first begins the drain, the second ends the process.
///
/// # Errors
/// [`WorkerError::Start`] when the system refuses the thread or the handlers.
pub fn watch_signals(drain: Arc<Drain>) -> Result<(), WorkerError> {
    let failed =
        |e: std::io::Error| WorkerError::Start { what: "the signal handlers".into(), reason: e.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (mut interrupt, mut terminate) = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?)
    };
    let watch = move || {
        runtime.block_on(async {
            loop {
                let cause = tokio::select! {
                    _ = interrupt.recv() => Cause::Interrupted,
                    _ = terminate.recv() => Cause::Terminated,
                };
                if drain.begin(cause) {
                    info!(
                        event = "drain",
                        %cause,
                        "draining: handing in results; a second signal ends at once"
                    );
                } else if matches!(drain.cause(), Some(Cause::Interrupted | Cause::Terminated)) {
                    warn!(event = "abort", %cause, "second signal: ending at once, unfinished work is lost");
                    std::process::exit(Exit::Interrupted as i32);
                }
            }
        });
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).map(drop).map_err(failed)
}

/// Drains when stdin reaches its end: whoever holds the other end of the pipe has gone, or wants the worker to end.
///
/// # Errors
/// [`WorkerError::Start`] when the system gives no thread.
pub fn watch_parent(drain: Arc<Drain>) -> Result<(), WorkerError> {
    let watch = move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = [0; 256];
        // Whatever arrives is of no interest; an error means as much as the end.
        while matches!(stdin.read(&mut buffer), Ok(1..)) {}
        if drain.begin(Cause::ParentGone) {
            info!(event = "drain", cause = %Cause::ParentGone, "draining: handing in results");
        }
    };
    std::thread::Builder::new()
        .name("parent".into())
        .spawn(watch)
        .map(drop)
        .map_err(|e| WorkerError::Start { what: "the watch over stdin".into(), reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_counts_and_a_failure_overrides() {
        let drain = Drain::default();
        assert_eq!((drain.cause(), drain.exit()), (None, Exit::Done));
        assert!(drain.begin(Cause::Interrupted) && !drain.begin(Cause::Terminated));
        assert_eq!(drain.exit(), Exit::Interrupted);
        let error = |reason: &str| WorkerError::Start { what: "x".into(), reason: reason.into() };
        drain.fail(error("first"));
        drain.fail(error("second"));
        assert_eq!((drain.exit(), drain.failure()), (Exit::Failed, Some(error("first"))));
    }

    #[tokio::test]
    async fn a_failure_leaves_no_time() {
        let drain = Arc::new(Drain::default());
        drain.begin(Cause::Terminated);
        let waiting = tokio::spawn({
            let drain = Arc::clone(&drain);
            async move { drain.out_of_time().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drain.fail(WorkerError::Start { what: "x".into(), reason: "y".into() });
        tokio::time::timeout(Duration::from_secs(5), waiting)
            .await
            .expect("no time is left")
            .expect("no panic");
    }
}
