//! Couples for proof-number search.

use super::couple::Couple;
use super::kind::Kind;
use super::plain::Plain;
use super::small::SMALL_CELLS_MAX;
use super::strips::Strips;
use super::tables::{Size, StripTable, StripTables};
use crate::dfpn::{Branch, Settled, Tree};
use crate::numbers::Numbers;
use crate::table::{Entry, Key, Known, Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, ClaimRules, Polarity};
use grundy_games::cram::{CramClaims, HEAP_MAX, Sum};
use std::sync::Arc;

/// Cram for [`DfpnEngine`](crate::dfpn::DfpnEngine).
///
/// Keys are exact:
///
/// ```text
/// words        the region, as its kind writes it
/// rest 0..8    the heap, at most 127; 255 for the entry that holds the region's nimber as a value
/// rest 8..16   the region, as its kind writes it
/// ```
pub struct CramTree<K: Kind = Plain> {
    namespace: Namespace,
    kind: K,
    /// The couple decided last. A table may forget a region's couples as fast as they are decided; this one is what
    /// [`Tree::settle`] asked for when it is called again, so it always gets ahead.
    latest: Option<(K::Region, u8, bool)>,
}

/// In place of a heap in a key: the entry is a nimber.
const NIMBER_TAG: u8 = 255;
const _: () = assert!(NIMBER_TAG > HEAP_MAX);

impl CramTree {
    /// A tree whose keys bear the table's number for `cram`.
    pub fn new(namespace: Namespace) -> Self {
        Self::with_small_cells(namespace, SMALL_CELLS_MAX)
    }

    /// A tree that solves components of at most `cells_max` cells by the mex rule and searches the larger ones. More than
    /// [`SMALL_CELLS_MAX`] is taken as that.
    pub fn with_small_cells(namespace: Namespace, cells_max: u32) -> Self {
        Self { namespace, kind: Plain::new(cells_max), latest: None }
    }
}

impl CramTree<Strips> {
    /// A tree for sums of components of at most seven rows. Without tables it knows small ones only.
    pub fn with_strips(namespace: Namespace) -> Self {
        Self { namespace, kind: Strips::new(), latest: None }
    }

    /// Uses a table from now on. What the search has found with others stays true.
    pub fn set_table(&mut self, table: Arc<StripTable>) {
        self.kind.set(table);
    }

    /// Uses a table of this size from now on, unless it has one that answers regions of as many columns.
    pub fn prepare(&mut self, size: Size, tables: &dyn StripTables) {
        let at_hand = self.kind.table(size.height).map_or(0, |table| table.pairs.columns());
        if at_hand < size.pair_columns.max(1)
            && let Some(table) = tables.strip_table(size)
            && table.pairs.columns() >= at_hand
        {
            self.kind.set(table);
        }
    }

    /// Lets go of all tables and caches.
    pub fn rest(&mut self) {
        self.kind = Strips::new();
    }
}

impl<K: Kind> CramTree<K> {
    fn key_of(&self, region: &K::Region, heap: u8) -> Key {
        let (words, high) = K::key(region);
        Key::new(words, u16::from(heap) | u16::from(high) << 8, self.namespace)
    }

    /// The region's nimber, if its kind or the table has it.
    fn nimber(&mut self, region: &K::Region, table: &dyn Table) -> Option<u8> {
        if let Some(nimber) = self.kind.nimber(region) {
            return Some(nimber);
        }
        match table.probe(&self.key_of(region, NIMBER_TAG))?.known {
            Known::Value(nimber) => u8::try_from(nimber).ok(),
            Known::Numbers(_) => None,
        }
    }

    /// The truth of a couple of one region, as far as it is at hand.
    fn truth(&self, region: &K::Region, heap: u8, table: &dyn Table) -> Option<bool> {
        match self.latest {
            Some((latest, latest_heap, truth)) if latest == *region && latest_heap == heap => Some(truth),
            _ => match table.probe(&self.key_of(region, heap))?.known {
                Known::Numbers(numbers) => numbers.truth(),
                Known::Value(_) => None,
            },
        }
    }

    /// A couple's numbers: the table's, or else an estimate.
    fn outlook(&mut self, couple: &Couple<K::Region>, table: &dyn Table) -> Numbers {
        let Some(main) = couple.main.filter(|_| couple.others.is_empty()) else {
            return Numbers::open(1, couple.regions().map(K::cells).sum());
        };
        match table.probe(&self.key_of(&main, couple.heap)) {
            Some(Entry { known: Known::Numbers(numbers), .. }) => numbers,
            _ => self.kind.outlook(&main, couple.heap),
        }
    }

    /// Moves the regions of known nimber into the heap, except that a last one stays unless its kind knows it.
    fn fold(&mut self, couple: &mut Couple<K::Region>, table: &dyn Table) {
        let Some(main) = couple.main else { return };
        if couple.others.is_empty() {
            if let Some(nimber) = self.kind.nimber(&main) {
                couple.heap ^= nimber;
                couple.main = None;
            }
            return;
        }
        let regions: Vec<K::Region> = couple.others.drain(..).rev().chain(couple.main.take()).collect();
        let last_nimber_min = std::mem::take(&mut couple.last_nimber_min);
        let smallest = regions.first().copied();
        for region in regions {
            match self.nimber(&region, table) {
                Some(nimber) => couple.heap ^= nimber,
                None => couple.add::<K>(region),
            }
        }
        if couple.others.last().copied() == smallest {
            couple.last_nimber_min = last_nimber_min;
        }
    }
}

impl<K: Kind> Tree for CramTree<K> {
    type State = Couple<K::Region>;

    fn rules(&self) -> &dyn ClaimRules {
        &CramClaims
    }

    fn state(&self, claim: &Claim) -> Result<Couple<K::Region>, ClaimError> {
        let (sum, heap) = CramClaims::couple(claim)?;
        let mut couple = Couple::new(heap);
        sum.components().iter().for_each(|component| self.kind.read(component, &mut couple));
        Ok(couple)
    }

    fn claim(&self, state: &Couple<K::Region>) -> Claim {
        let sum: Sum = state.regions().filter_map(|region| self.kind.component(region)).collect();
        CramClaims::claim(&sum, state.heap)
    }

    fn key(&self, state: &Couple<K::Region>) -> Option<Key> {
        let main = state.main.as_ref().filter(|_| state.others.is_empty())?;
        Some(self.key_of(main, state.heap))
    }

    fn settle(&mut self, state: &mut Couple<K::Region>, table: &dyn Table) -> Settled<Couple<K::Region>> {
        self.fold(state, table);
        while let Some(smallest) = state.others.last().copied() {
            match self.truth(&smallest, state.last_nimber_min, table) {
                Some(true) => state.last_nimber_min += 1,
                Some(false) => {
                    state.heap ^= std::mem::take(&mut state.last_nimber_min);
                    state.others.pop();
                }
                None => {
                    let mut first = Couple::new(state.last_nimber_min);
                    first.main = Some(smallest);
                    return Settled::First(first);
                }
            }
        }
        let Some(main) = state.main else {
            return Settled::Decided(state.heap > 0);
        };
        // No nimber exceeds the number of dominoes that could be placed.
        if u32::from(state.heap) > K::cells(&main) / 2 {
            return Settled::Decided(true);
        }
        match self.nimber(&main, table) {
            Some(nimber) => Settled::Decided(nimber != state.heap),
            None => Settled::Ready,
        }
    }

    fn expand(
        &mut self,
        state: &Couple<K::Region>,
        table: &dyn Table,
        branches: &mut Vec<Branch<Couple<K::Region>>>,
    ) -> Option<bool> {
        let Some(main) = state.main.filter(|_| state.others.is_empty()) else {
            debug_assert!(false, "only settled couples are expanded");
            return None;
        };
        for domino in K::dominoes(&main) {
            let mut couple = Couple::new(state.heap);
            self.kind.place(&main, domino, &mut couple);
            self.fold(&mut couple, table);
            let Some(rest) = couple.main else {
                if couple.heap == 0 {
                    return Some(true);
                }
                continue;
            };
            if couple.others.is_empty() {
                if u32::from(couple.heap) > K::cells(&rest) / 2 {
                    continue;
                }
                if let Some(nimber) = self.nimber(&rest, table) {
                    if nimber == couple.heap {
                        return Some(true);
                    }
                    continue;
                }
            }
            branches.push(unseen(couple));
        }
        branches.sort_unstable_by(|a, b| a.state.cmp(&b.state));
        branches.dedup_by(|a, b| a.state == b.state);
        branches.extend((0..state.heap).map(|heap| unseen(Couple { heap, ..state.clone() })));
        for branch in branches.iter_mut() {
            branch.numbers = self.outlook(&branch.state, table);
            if branch.numbers.truth() == Some(false) {
                return Some(true);
            }
        }
        branches.retain(|branch| branch.numbers.truth().is_none());
        if branches.is_empty() { Some(false) } else { None }
    }

    fn decided(&mut self, state: &Couple<K::Region>, truth: bool, work: u64, table: &dyn Table) {
        let mut couple = state.clone();
        // The search decides settled couples; a couple learned from elsewhere may be a sum.
        self.fold(&mut couple, table);
        let Some(main) = couple.main.filter(|_| couple.others.is_empty()) else {
            return;
        };
        self.latest = Some((main, couple.heap, truth));
        if !truth {
            let known = Known::Value(i16::from(couple.heap));
            table.store(&self.key_of(&main, NIMBER_TAG), Entry { known, work });
        }
    }
}

/// The edge to a couple that has not been looked at.
fn unseen<R>(state: Couple<R>) -> Branch<Couple<R>> {
    Branch { polarity: Polarity::Opposite, numbers: Numbers::UNKNOWN, state }
}
