//! What the core remembers of each worker.

use super::api::{Millis, WorkerView};

/// A worker, by its current run.
#[derive(Debug)]
pub struct Worker {
    /// Its run.
    pub incarnation: u64,
    /// How many leases it works on at a time.
    pub threads: u32,
    /// Its last call.
    pub seen: Millis,
    /// Whether it has been silent for too long.
    pub lost: bool,
    /// Nodes of its accepted results.
    pub nodes: u64,
    /// Its accepted results.
    pub results: u64,
}

impl Worker {
    /// A worker that has just registered.
    pub fn new(incarnation: u64, threads: u32, now: Millis) -> Self {
        Self { incarnation, threads, seen: now, lost: false, nodes: 0, results: 0 }
    }

    /// As users see it.
    pub fn view(&self, name: &str, leases_open: u32, now: Millis) -> WorkerView {
        WorkerView {
            worker: name.to_owned(),
            incarnation: self.incarnation,
            threads: self.threads,
            leases_open,
            silent_ms: now.since(self.seen),
            nodes: self.nodes,
            results: self.results,
            lost: self.lost,
        }
    }
}
