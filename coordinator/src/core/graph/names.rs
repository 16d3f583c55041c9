//! The names of workers, as numbers: a node has room for one, and choosing work compares thousands.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A worker's number in a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name(u32);

/// The workers that searched in a graph.
#[derive(Default, Debug)]
pub(super) struct Names {
    numbers: BTreeMap<Arc<str>, Name>,
    names: Vec<Arc<str>>,
}

impl Names {
    /// The number of a worker that has one.
    pub fn find(&self, worker: &str) -> Option<Name> {
        self.numbers.get(worker).copied()
    }

    /// The number of a worker, which gets one now if it has none.
    pub fn number(&mut self, worker: &str) -> Name {
        self.find(worker).unwrap_or_else(|| {
            let number = u32::try_from(self.names.len()).expect("there are fewer than 2^32 workers");
            let (number, name) = (Name(number), Arc::<str>::from(worker));
            self.names.push(Arc::clone(&name));
            self.numbers.insert(name, number);
            number
        })
    }

    /// The worker of a number.
    pub fn name(&self, Name(number): Name) -> &str {
        &self.names[number as usize]
    }
}
