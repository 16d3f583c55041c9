//! The leases this process holds: what the heartbeat renews, and how a search learns that it is no longer wanted.

use grundy_proto::v1;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A lease's number, unique in the coordinator's data directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct LeaseId(pub u64);

/// A job's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct JobId(pub u64);

/// One run of the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Epoch(pub u64);

/// One lease.
#[derive(Debug)]
pub struct Lease {
    /// Its number.
    pub id: LeaseId,
    /// Its job.
    pub job: JobId,
    task: v1::lease_progress::Task,
    epoch: AtomicU64,
    lapsed: AtomicBool,
    /// Set when its search is to end.
    pub stop: AtomicBool,
    /// Nodes searched so far.
    pub nodes: AtomicU64,
}

impl Lease {
    /// The epoch under which the coordinator knows the lease: that which granted it, or the one that took it over.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Relaxed))
    }

    /// Whether the coordinator no longer wants it.
    pub fn lapsed(&self) -> bool {
        self.lapsed.load(Ordering::Relaxed)
    }
}

/// All leases of the process.
#[derive(Debug, Default)]
pub struct Leases {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    leases: BTreeMap<LeaseId, Arc<Lease>>,
    stopped: bool,
    /// Nodes of leases no longer held.
    nodes: u64,
}

/// A lease that is renewed for as long as this lives.
#[derive(Debug)]
pub struct Held {
    leases: Arc<Leases>,
    lease: Arc<Lease>,
}

impl Held {
    /// The lease, for others who work on it.
    pub fn lease(&self) -> Arc<Lease> {
        Arc::clone(&self.lease)
    }

    /// Lets the search go on after a stop that did not mean to end it. True if nobody else wants it ended.
    pub fn resume(&self) -> bool {
        let open = self.leases.open();
        let wanted = !open.stopped && !self.lease.lapsed();
        if wanted {
            self.lease.stop.store(false, Ordering::Relaxed);
        }
        wanted
    }
}

impl Deref for Held {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut open = self.leases.open();
        open.nodes = open.nodes.saturating_add(self.lease.nodes.load(Ordering::Relaxed));
        // The number may have been granted again, to another thread of this worker.
        if open.leases.get(&self.lease.id).is_some_and(|lease| Arc::ptr_eq(lease, &self.lease)) {
            open.leases.remove(&self.lease.id);
        }
    }
}

impl Leases {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to hold a lease. After [`stop_all`](Self::stop_all) it is stopped from the start.
    pub fn hold(
        self: &Arc<Self>,
        id: LeaseId,
        epoch: Epoch,
        job: JobId,
        task: v1::lease_progress::Task,
    ) -> Held {
        let mut open = self.open();
        let lease = Arc::new(Lease {
            id,
            job,
            task,
            epoch: AtomicU64::new(epoch.0),
            lapsed: AtomicBool::new(false),
            stop: AtomicBool::new(open.stopped),
            nodes: AtomicU64::new(0),
        });
        open.leases.insert(id, Arc::clone(&lease));
        drop(open);
        Held { leases: Arc::clone(self), lease }
    }

    /// Ends all searches, those to come included.
    pub fn stop_all(&self) {
        let mut open = self.open();
        open.stopped = true;
        open.leases.values().for_each(|lease| lease.stop.store(true, Ordering::Relaxed));
    }

    /// What a heartbeat says of them, at most `max`.
    pub fn progress(&self, max: usize) -> Vec<v1::LeaseProgress> {
        let open = self.open();
        let held = open.leases.values().take(max).map(|lease| v1::LeaseProgress {
            lease: lease.id.0,
            epoch: lease.epoch().0,
            job: lease.job.0,
            nodes: lease.nodes.load(Ordering::Relaxed),
            task: Some(lease.task.clone()),
        });
        held.collect()
    }

    /// The coordinator no longer wants this lease: its search is stopped. False if it is not held under that epoch.
    pub fn lapse(&self, id: LeaseId, epoch: Epoch) -> bool {
        let open = self.open();
        let Some(lease) = open.leases.get(&id).filter(|lease| lease.epoch() == epoch) else {
            return false;
        };
        lease.lapsed.store(true, Ordering::Relaxed);
        lease.stop.store(true, Ordering::Relaxed);
        true
    }

    /// A restarted coordinator took this lease over: it belongs to the new epoch from now on. False if it is not held.
    pub fn adopt(&self, id: LeaseId, epoch: Epoch) -> bool {
        let open = self.open();
        let Some(lease) = open.leases.get(&id) else {
            return false;
        };
        lease.epoch.store(epoch.0, Ordering::Relaxed);
        true
    }

    /// Nodes searched so far under all leases, past and present.
    pub fn nodes(&self) -> u64 {
        let open = self.open();
        let held = open.leases.values().map(|lease| lease.nodes.load(Ordering::Relaxed));
        held.fold(open.nodes, u64::saturating_add)
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.open().leases.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(part: u32) -> v1::lease_progress::Task {
        v1::lease_progress::Task::Part(v1::PartKey { stage: 1, part })
    }

    #[test]
    fn held_leases_are_renewed_lapse_and_change_their_epoch() {
        let leases = Arc::new(Leases::default());
        let a = leases.hold(LeaseId(7), Epoch(1), JobId(3), part(0));
        let b = leases.hold(LeaseId(8), Epoch(1), JobId(3), part(1));
        a.nodes.store(500, Ordering::Relaxed);
        let progress = leases.progress(10);
        assert_eq!((progress[0].lease, progress[0].epoch, progress[0].nodes), (7, 1, 500));
        assert_eq!((progress.len(), leases.progress(1).len()), (2, 1));

        assert!(leases.adopt(LeaseId(7), Epoch(2)) && !leases.adopt(LeaseId(9), Epoch(2)));
        // News of the old epoch do not touch the lease that was taken over.
        assert!(!leases.lapse(LeaseId(7), Epoch(1)));
        assert!(!a.lapsed() && !a.stop.load(Ordering::Relaxed));
        assert!(leases.lapse(LeaseId(8), Epoch(1)));
        assert!(b.lapsed() && b.stop.load(Ordering::Relaxed));

        b.nodes.store(30, Ordering::Relaxed);
        drop(b);
        assert_eq!((leases.len(), leases.nodes()), (1, 530));
        leases.stop_all();
        assert!(a.stop.load(Ordering::Relaxed) && !a.lapsed());
        let late = leases.hold(LeaseId(10), Epoch(2), JobId(3), part(2));
        assert!(late.stop.load(Ordering::Relaxed));
    }

    #[test]
    fn a_number_granted_again_stays_held() {
        let leases = Arc::new(Leases::default());
        let first = leases.hold(LeaseId(7), Epoch(1), JobId(3), part(0));
        let _second = leases.hold(LeaseId(7), Epoch(2), JobId(3), part(0));
        drop(first);
        assert_eq!(leases.progress(10)[0].epoch, 2);
    }
}
