//! What the core remembers of each worker.

use super::api::{Millis, WorkerView};

/// How long a worker that has failed on a task waits for the next; doubled with each failure in a row.
const HOLD_OFF_MS: u64 = 500;

/// Up to about a minute.
const HOLD_OFF_DOUBLINGS_MAX: u32 = 7;

/// How long after a result its worker is expected to ask for the next task: many round trips.
const RETURN_MS: u64 = 50;

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
    /// Its leases that lapsed since its last call.
    pub lapsed: u32,
    /// Nodes of its accepted results.
    pub nodes: u64,
    /// Its accepted results.
    pub results: u64,
    /// Tasks in a row on which it failed.
    pub failures: u32,
    /// It gets no task before this: it has just failed.
    pub held_off_until: Millis,
    /// Until then it is about to ask for its next task.
    pub returns_until: Millis,
}

impl Worker {
    /// A worker that has just registered.
    pub fn new(incarnation: u64, threads: u32, now: Millis) -> Self {
        Self {
            incarnation,
            threads,
            seen: now,
            lost: false,
            lapsed: 0,
            nodes: 0,
            results: 0,
            failures: 0,
            held_off_until: now,
            returns_until: now,
        }
    }

    /// It has made a call.
    pub fn has_called(&mut self, now: Millis) {
        self.seen = now;
        self.lost = false;
        self.lapsed = 0;
    }

    /// Whether it gets no task for now.
    pub fn is_held_off(&self, now: Millis) -> bool {
        now < self.held_off_until
    }

    /// It has handed in a result that leaves something to search.
    pub fn has_returned(&mut self, now: Millis) {
        self.returns_until = now.plus(RETURN_MS);
    }

    /// It asks for its next task.
    pub fn has_asked(&mut self, now: Millis) {
        self.returns_until = now;
    }

    /// It could not do a task. Should the worker be sick and not the task, it must not go through all tasks of a job in a second.
    pub fn has_failed(&mut self, now: Millis) {
        self.held_off_until = now.plus(HOLD_OFF_MS << self.failures.min(HOLD_OFF_DOUBLINGS_MAX));
        self.failures = self.failures.saturating_add(1);
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
