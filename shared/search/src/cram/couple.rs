//! Couples as the search holds them.

use super::kind::Kind;

/// A couple: regions of which no nimber has been taken yet, and a heap that holds the nimbers of all the others.
/// Settled, it has one region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Couple<R> {
    /// The region with the most cells.
    pub(super) main: Option<R>,
    pub(super) heap: u8,
    /// The other regions, fewest cells last. Almost always empty, which costs no allocation.
    pub(super) others: Vec<R>,
    /// The last of `others` has at least this nimber; what settling has learned so far.
    pub(super) last_nimber_min: u8,
}

impl<R: Copy + Ord> Couple<R> {
    pub(super) fn new(heap: u8) -> Self {
        Self { main: None, heap, others: Vec::new(), last_nimber_min: 0 }
    }

    /// Adds a region, or cancels an equal one, which with it makes *0.
    pub(super) fn add<K: Kind<Region = R>>(&mut self, region: R) {
        let Some(main) = self.main else {
            self.main = Some(region);
            return;
        };
        if main == region {
            self.main = if self.others.is_empty() { None } else { Some(self.others.remove(0)) };
            return;
        }
        if let Some(index) = self.others.iter().position(|other| *other == region) {
            self.others.remove(index);
            return;
        }
        // By size, ties broken so that equal sums are equal couples.
        let rank = |region: &R| (K::cells(region), *region);
        let (larger, smaller) = if rank(&region) > rank(&main) { (region, main) } else { (main, region) };
        self.main = Some(larger);
        let index = self.others.partition_point(|other| rank(other) > rank(&smaller));
        self.others.insert(index, smaller);
    }

    /// All regions, the largest first.
    pub(super) fn regions(&self) -> impl Iterator<Item = &R> {
        self.main.iter().chain(&self.others)
    }
}
