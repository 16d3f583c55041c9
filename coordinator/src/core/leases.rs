//! The leases in flight, by their numbers and by their workers.

use super::api::{LeaseId, Millis};
use super::graph::NodeId;
use grundy_tables::jobs::record::{JobId, Task};
use std::collections::{BTreeMap, BTreeSet};

/// A lease in flight.
#[derive(Debug)]
pub struct Lease {
    /// Its job.
    pub job: JobId,
    /// What it is for.
    pub task: Task,
    /// The root it was chosen under, for spreading workers over roots.
    pub root: Option<NodeId>,
    /// Who has it.
    pub worker: String,
    /// The worker's run.
    pub incarnation: u64,
    /// When it was granted.
    pub granted: Millis,
    /// When it lapses.
    pub expires: Millis,
    /// Nodes so far.
    pub nodes: u64,
}

/// All leases in flight.
#[derive(Default, Debug)]
pub struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    by_worker: BTreeMap<String, BTreeSet<LeaseId>>,
}

impl Leases {
    /// Adds a lease.
    pub fn insert(&mut self, id: LeaseId, lease: Lease) {
        self.by_worker.entry(lease.worker.clone()).or_default().insert(id);
        self.leases.insert(id, lease);
    }

    /// Takes a lease out.
    pub fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        if let Some(ids) = self.by_worker.get_mut(&lease.worker) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_worker.remove(&lease.worker);
            }
        }
        Some(lease)
    }

    /// A lease.
    pub fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// A lease that is this worker's, to be renewed.
    pub fn renew(&mut self, id: LeaseId, worker: &str, expires: Millis, nodes: u64) -> Option<&Lease> {
        let lease = self.leases.get_mut(&id).filter(|lease| lease.worker == worker)?;
        lease.expires = expires;
        lease.nodes = nodes;
        Some(lease)
    }

    /// Puts off when all of them lapse.
    pub fn put_off(&mut self, ms: u64) {
        for lease in self.leases.values_mut() {
            lease.expires = lease.expires.plus(ms);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.leases.iter().map(|(id, lease)| (*id, lease))
    }

    /// How many a worker has.
    pub fn count_of(&self, worker: &str) -> u32 {
        self.by_worker.get(worker).map_or(0, |ids| ids.len() as u32)
    }

    /// Those of a worker.
    pub fn of_worker(&self, worker: &str) -> Vec<LeaseId> {
        self.by_worker.get(worker).into_iter().flatten().copied().collect()
    }

    /// Checks that both ways to find a lease agree.
    ///
    /// # Errors
    /// The first lease that they do not agree on, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        for (id, lease) in &self.leases {
            if !self.by_worker.get(&lease.worker).is_some_and(|ids| ids.contains(id)) {
                return Err(format!("lease {} is not found with worker '{}'", id.0, lease.worker));
            }
        }
        let found: usize = self.by_worker.values().map(BTreeSet::len).sum();
        if found != self.leases.len() {
            return Err(format!("{} leases, but {found} with workers", self.leases.len()));
        }
        Ok(())
    }
}
