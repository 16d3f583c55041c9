//! Saying how far the building of a database is, and asking whether to go on.

use super::provider::GoOn;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tracing::info;

/// How often a build says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// The progress of one build.
pub(super) struct Progress<'a> {
    path: &'a Path,
    total: usize,
    said: Mutex<Instant>,
    go_on: &'a GoOn,
}

impl<'a> Progress<'a> {
    /// Of a file with so many bytes to fill.
    pub(super) fn new(path: &'a Path, total: usize, go_on: &'a GoOn) -> Self {
        Self { path, total, said: Mutex::new(Instant::now()), go_on }
    }

    /// Takes in how many bytes are filled, and tells whether to go on.
    pub(super) fn report(&self, filled: usize) -> bool {
        // A thread that finds another one talking has nothing to add.
        if let Ok(mut said) = self.said.try_lock()
            && said.elapsed() >= PROGRESS_EVERY
        {
            *said = Instant::now();
            let percent = (filled as f64 / self.total.max(1) as f64 * 100.0).floor();
            info!(event = "endgame", file = %self.path.display(), percent, "building an endgame database");
        }
        (self.go_on)()
    }
}
