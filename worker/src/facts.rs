//! Facts that other workers found: read once, put into the table that all engines share.

use crate::leases::{Epoch, JobId};
use grundy_games::claim::Fact;
use grundy_proto::v1;
use grundy_search::engine::Engine;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::{debug, warn};

/// Jobs whose facts are followed: workers seldom have more than one at a time, and a job that is met again after it
/// was dropped is read from the start.
const JOBS_MAX: usize = 16;

/// What has been read of each job's facts.
#[derive(Default)]
pub struct FactBook {
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    /// Cursors belong to one run of the coordinator.
    epoch: Option<Epoch>,
    jobs: BTreeMap<JobId, Page>,
    clock: u64,
}

struct Page {
    next: u64,
    /// Learns for all: what it learns is in the shared table.
    engine: Box<dyn Engine>,
    used: u64,
}

impl FactBook {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        // A panicking engine leaves a page behind that is at worst read again.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to where each job has been read, for the coordinator of this epoch.
    pub fn cursors(&self, epoch: Epoch) -> Vec<v1::FactCursor> {
        let mut pages = self.pages();
        pages.turn_to(epoch);
        pages.jobs.iter().map(|(job, page)| v1::FactCursor { job: job.0, next: page.next }).collect()
    }

    /// Follows a job from now on, with an engine that learns.
    pub fn follow(&self, epoch: Epoch, job: JobId, engine: impl FnOnce() -> Option<Box<dyn Engine>>) {
        let mut pages = self.pages();
        pages.turn_to(epoch);
        pages.clock += 1;
        let used = pages.clock;
        if let Some(page) = pages.jobs.get_mut(&job) {
            page.used = used;
            return;
        }
        let Some(engine) = engine() else { return };
        if pages.jobs.len() >= JOBS_MAX
            && let Some(oldest) = pages.jobs.iter().min_by_key(|(_, page)| page.used).map(|(job, _)| *job)
        {
            pages.jobs.remove(&oldest);
        }
        pages.jobs.insert(job, Page { next: 0, engine, used });
    }

    /// Learns a batch that came from the coordinator of this epoch. A batch read before is passed over, and so is one of a job
    /// that is not followed. Gives how many facts were new.
    pub fn learn(&self, epoch: Epoch, batch: v1::FactBatch) -> usize {
        let mut pages = self.pages();
        pages.turn_to(epoch);
        let Some(page) = pages.jobs.get_mut(&JobId(batch.job)) else {
            return 0;
        };
        if batch.next <= page.next {
            return 0;
        }
        let mut learned = 0;
        for fact in batch.facts {
            let taken = Fact::try_from(fact)
                .map_err(|e| e.to_string())
                .and_then(|fact| page.engine.learn(&fact).map_err(|e| e.to_string()));
            match taken {
                Ok(()) => learned += 1,
                // Facts may be lost without harm; a search finds them again.
                Err(reason) => warn!(event = "facts", job = batch.job, reason, "unreadable fact"),
            }
        }
        page.next = batch.next;
        page.engine.rest();
        if learned > 0 {
            debug!(
                event = "facts",
                job = batch.job,
                learned,
                next = batch.next,
                "learned facts found elsewhere"
            );
        }
        learned
    }
}

impl Pages {
    fn turn_to(&mut self, epoch: Epoch) {
        if self.epoch != Some(epoch) {
            self.epoch = Some(epoch);
            self.jobs.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_games::claim::{Claim, ClaimError};
    use grundy_search::engine::{Limits, Outcome};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Pupil(Arc<AtomicUsize>);

    impl Engine for Pupil {
        fn decide(&mut self, _: &Claim, _: &Limits<'_>) -> Result<Outcome, ClaimError> {
            Err(ClaimError::Malformed { game: "none", reason: "a pupil decides nothing".into() })
        }

        fn learn(&mut self, _: &Fact) -> Result<(), ClaimError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    fn batch(job: u64, next: u64) -> v1::FactBatch {
        let fact = v1::Fact { claim: Some(v1::Claim::default()), truth: true, work: 9 };
        v1::FactBatch { job, facts: vec![fact, v1::Fact::default()], next }
    }

    #[test]
    fn each_fact_is_learned_once_an_epoch() {
        let (book, learned) = (FactBook::default(), Arc::new(AtomicUsize::new(0)));
        let pupil = || Some(Box::new(Pupil(Arc::clone(&learned))) as Box<dyn Engine>);
        book.follow(Epoch(1), JobId(4), pupil);
        assert_eq!(book.learn(Epoch(1), batch(5, 2)), 0, "not followed");
        assert_eq!(book.learn(Epoch(1), batch(4, 2)), 1, "the second fact has no claim");
        assert_eq!(book.learn(Epoch(1), batch(4, 2)), 0, "read before");
        assert_eq!(book.cursors(Epoch(1)), [v1::FactCursor { job: 4, next: 2 }]);
        assert_eq!(book.cursors(Epoch(2)), []);
        book.follow(Epoch(2), JobId(4), pupil);
        assert_eq!(book.learn(Epoch(2), batch(4, 2)), 1);
        assert_eq!(learned.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_job_longest_unused_is_forgotten() {
        let book = FactBook::default();
        let pupil = || Some(Box::new(Pupil(Arc::default())) as Box<dyn Engine>);
        for job in 0..JOBS_MAX as u64 {
            book.follow(Epoch(1), JobId(job), pupil);
        }
        book.follow(Epoch(1), JobId(0), pupil);
        book.follow(Epoch(1), JobId(99), pupil);
        let jobs: Vec<u64> = book.cursors(Epoch(1)).iter().map(|cursor| cursor.job).collect();
        assert!(jobs.len() == JOBS_MAX && jobs.contains(&0) && !jobs.contains(&1) && jobs.contains(&99));
    }
}
