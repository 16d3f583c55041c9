//! Job storage in memory, with the crash semantics of a disk, for simulations.

use super::encoding::{change, decode_run, load_into, run_change, run_key, run_place};
use super::record::{Epoch, JobId, Loaded, PartId, Write};
use super::{Durability, JobStorage};
use crate::error::StorageError;
use crate::layout::{Change, Family};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Image = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// [`JobStorage`] in memory: what was synced survives a [`crash`](Self::crash); of what came later, a prefix of the caller's choice.
pub struct MemoryJobs(Mutex<State>);

struct State {
    /// What has reached the disk.
    durable: Image,
    /// What is read: the durable image with all batches of the tail applied.
    current: Image,
    /// Batches since the last sync, in order.
    tail: Vec<Vec<Change>>,
    epoch: u64,
    crashed: bool,
    full: bool,
}

fn apply(image: &mut Image, batch: &[Change]) {
    for change in batch {
        match change {
            Change::Put(family, key, value) => {
                image.insert((*family, key.clone()), value.clone());
            }
            Change::Delete(family, key) => {
                image.remove(&(*family, key.clone()));
            }
            Change::DeleteRange(family, from, to) => {
                let range = (*family, from.clone())..(*family, to.clone());
                let keys: Vec<_> = image.range(range).map(|(key, _)| key.clone()).collect();
                for key in keys {
                    image.remove(&key);
                }
            }
        }
    }
}

impl State {
    fn commit(&mut self, batch: Vec<Change>, durability: Durability) -> Result<(), StorageError> {
        self.open()?;
        if self.full {
            return Err(StorageError::Full {
                directory: PathBuf::from("memory"),
                reason: "as the test asked".to_owned(),
            });
        }
        apply(&mut self.current, &batch);
        self.tail.push(batch);
        if durability == Durability::Synced {
            for batch in self.tail.drain(..) {
                apply(&mut self.durable, &batch);
            }
        }
        Ok(())
    }

    fn open(&self) -> Result<(), StorageError> {
        if self.crashed { Err(StorageError::Closed) } else { Ok(()) }
    }
}

impl Default for MemoryJobs {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryJobs {
    /// Empty storage, at its first epoch.
    pub fn new() -> Self {
        let (durable, current) = Default::default();
        Self(Mutex::new(State { durable, current, tail: Vec::new(), epoch: 1, crashed: false, full: false }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is whole before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many commits and runs a crash could lose now.
    pub fn unsynced(&self) -> usize {
        self.state().tail.len()
    }

    /// Loses all unsynced commits but the first `keep`. Every call fails with [`StorageError::Closed`] until [`reopen`](Self::reopen).
    pub fn crash(&self, keep: usize) {
        let mut state = self.state();
        let kept = keep.min(state.tail.len());
        let tail = std::mem::take(&mut state.tail);
        for batch in &tail[..kept] {
            apply(&mut state.durable, batch);
        }
        state.current = state.durable.clone();
        state.crashed = true;
    }

    /// Starts the next epoch on what is there: after a crash what survived it, otherwise everything, as a clean stop would leave it.
    pub fn reopen(&self) -> Epoch {
        let mut state = self.state();
        state.durable = state.current.clone();
        state.tail.clear();
        state.crashed = false;
        state.epoch += 1;
        Epoch(state.epoch)
    }

    /// Makes every commit fail as on a full disk, or succeed again.
    pub fn set_full(&self, full: bool) {
        self.state().full = full;
    }

    /// Flips one bit of one stored value, both chosen by number: what a bad disk does. Nothing happens to empty storage.
    pub fn flip_bit(&self, value: usize, bit: usize) {
        let mut state = self.state();
        let count = state.current.len().max(1);
        if let Some(bytes) = state.current.values_mut().nth(value % count) {
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

impl JobStorage for MemoryJobs {
    fn epoch(&self) -> Epoch {
        Epoch(self.state().epoch)
    }

    fn load(&self) -> Result<Loaded, StorageError> {
        let state = self.state();
        state.open()?;
        let mut loaded = Loaded::default();
        for ((family, key), value) in &state.current {
            load_into(&mut loaded, *family, key, value)?;
        }
        Ok(loaded)
    }

    fn commit(&self, writes: &[Write], durability: Durability) -> Result<(), StorageError> {
        let batch = writes.iter().map(change).collect();
        self.state().commit(batch, durability)
    }

    fn put_run(&self, job: JobId, from: PartId, to_part: u32, bytes: &[u8]) -> Result<(), StorageError> {
        let batch = vec![run_change(job, from, to_part, bytes)];
        self.state().commit(batch, Durability::Buffered)
    }

    fn get_run(&self, job: JobId, from: PartId, to_part: u32) -> Result<Vec<u8>, StorageError> {
        let state = self.state();
        state.open()?;
        match state.current.get(&(Family::Runs, run_key(job, from, to_part))) {
            Some(value) => decode_run(job, from, to_part, value),
            None => Err(StorageError::Missing { place: run_place(job, from, to_part) }),
        }
    }
}
