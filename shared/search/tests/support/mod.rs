//! A table that never forgets, and a way to run a plan without limits.

#![allow(dead_code, reason = "each test file uses its part")]

use grundy_games::plan::{Answer, Plan};
use grundy_search::cram::tables::{BuiltTables, StripTables};
use grundy_search::engine::{Engine, Limits};
use grundy_search::evaluate::{EvaluateError, evaluate};
use grundy_search::table::{Entry, Key, Table};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

/// Every entry ever stored, final ones protected.
#[derive(Default)]
pub struct MapTable(Mutex<HashMap<Key, Entry>>);

impl Table for MapTable {
    fn probe(&self, key: &Key) -> Option<Entry> {
        self.0.lock().expect("no test thread panics while it holds the lock").get(key).copied()
    }

    fn store(&self, key: &Key, entry: Entry) {
        let mut map = self.0.lock().expect("no test thread panics while it holds the lock");
        let kept = map.entry(*key).or_insert(entry);
        if !kept.is_final() || entry.is_final() {
            *kept = entry;
        }
    }
}

/// A table that remembers nothing.
pub struct NoTable;

impl Table for NoTable {
    fn probe(&self, _: &Key) -> Option<Entry> {
        None
    }

    fn store(&self, _: &Key, _: Entry) {}
}

/// Pair tables of at most so many bytes, built in memory.
pub fn built(bytes: usize) -> Arc<dyn StripTables> {
    Arc::new(BuiltTables::new(bytes))
}

/// The plan's answer and the nodes it took, without a budget.
pub fn answer(plan: &dyn Plan, engine: &mut dyn Engine) -> Result<(Answer, u64), EvaluateError> {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let limits = Limits::endless(&stop, &progress);
    let answer = evaluate(plan, engine, &limits)?;
    Ok((answer, progress.into_inner()))
}
