//! Couples as the search sees them.

use super::small::{SMALL_CELLS_MAX, SmallNimbers};
use crate::dfpn::{Branch, Settled, Tree};
use crate::numbers::Numbers;
use crate::table::{Entry, Key, Known, Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, ClaimRules, Polarity};
use grundy_games::cram::{Component, CramClaims, HEAP_MAX, Sum};

/// A couple: components of which no nimber has been taken yet, and a heap that holds the nimbers of all the others.
/// Settled, it has one component.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Couple {
    /// The component with the most cells.
    main: Option<Component>,
    heap: u8,
    /// The other components, fewest cells last. Almost always empty, which costs no allocation.
    others: Vec<Component>,
    /// The last of `others` has at least this nimber; what [`Tree::settle`] has learned so far.
    last_nimber_min: u8,
}

impl Couple {
    fn new(heap: u8) -> Self {
        Self { main: None, heap, others: Vec::new(), last_nimber_min: 0 }
    }

    /// Adds a component, or cancels an equal one, which with it makes *0.
    fn add(&mut self, component: Component) {
        let Some(main) = self.main else {
            self.main = Some(component);
            return;
        };
        if main == component {
            self.main = if self.others.is_empty() { None } else { Some(self.others.remove(0)) };
            return;
        }
        if let Some(index) = self.others.iter().position(|other| *other == component) {
            self.others.remove(index);
            return;
        }
        let (larger, smaller) =
            if rank(&component) > rank(&main) { (component, main) } else { (main, component) };
        self.main = Some(larger);
        let index = self.others.partition_point(|other| rank(other) > rank(&smaller));
        self.others.insert(index, smaller);
    }
}

/// Orders components by size, ties broken so that equal sums are equal couples.
fn rank(component: &Component) -> (u32, Component) {
    (component.len(), *component)
}

/// Cram for [`DfpnEngine`](crate::dfpn::DfpnEngine).
///
/// Keys are exact. A canonical component is determined by its 128 cells and its width (a cell lies in the last row, so the
/// height follows), and a width is 1 to 128:
///
/// ```text
/// words        the cells
/// rest 0..8    the heap, at most 127; 255 for the entry that holds the component's nimber as a value
/// rest 8..15   width - 1
/// ```
pub struct CramTree {
    namespace: Namespace,
    small: SmallNimbers,
    /// Components of at most this many cells are small.
    small_cells_max: u32,
    /// The couple decided last. A table may forget a component's couples as fast as they are decided; this one is what
    /// [`Tree::settle`] asked for when it is called again, so it always gets ahead.
    latest: Option<(Component, u8, bool)>,
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
        let small_cells_max = cells_max.min(SMALL_CELLS_MAX);
        Self { namespace, small: SmallNimbers::new(), small_cells_max, latest: None }
    }

    fn is_small(&self, component: &Component) -> bool {
        component.len() <= self.small_cells_max
    }

    fn key_of(&self, component: &Component, heap: u8) -> Key {
        let cells = component.cells();
        let rest = u16::from(heap) | u16::from(component.width() - 1) << 8;
        Key::new([cells as u64, (cells >> 64) as u64], rest, self.namespace)
    }

    /// The component's nimber, if it is small or the table has it.
    fn nimber(&mut self, component: &Component, table: &dyn Table) -> Option<u8> {
        if self.is_small(component) {
            return Some(self.small.nimber(component));
        }
        match table.probe(&self.key_of(component, NIMBER_TAG))?.known {
            Known::Value(nimber) => u8::try_from(nimber).ok(),
            Known::Numbers(_) => None,
        }
    }

    /// The truth of a couple of one component, as far as it is at hand.
    fn truth(&self, component: &Component, heap: u8, table: &dyn Table) -> Option<bool> {
        match self.latest {
            Some((latest, latest_heap, truth)) if latest == *component && latest_heap == heap => Some(truth),
            _ => match table.probe(&self.key_of(component, heap))?.known {
                Known::Numbers(numbers) => numbers.truth(),
                Known::Value(_) => None,
            },
        }
    }

    /// Moves the components of known nimber into the heap, except that a last one stays unless it is small.
    fn fold(&mut self, couple: &mut Couple, table: &dyn Table) {
        if couple.main.is_none_or(|main| couple.others.is_empty() && !self.is_small(&main)) {
            return;
        }
        let components: Vec<Component> = couple.others.drain(..).rev().chain(couple.main.take()).collect();
        let last_nimber_min = std::mem::take(&mut couple.last_nimber_min);
        let smallest = components.first().copied();
        for component in components {
            match self.nimber(&component, table) {
                Some(nimber) => couple.heap ^= nimber,
                None => couple.add(component),
            }
        }
        if couple.others.last().copied() == smallest {
            couple.last_nimber_min = last_nimber_min;
        }
    }
}

impl Tree for CramTree {
    type State = Couple;

    fn rules(&self) -> &dyn ClaimRules {
        &CramClaims
    }

    fn state(&self, claim: &Claim) -> Result<Couple, ClaimError> {
        let (sum, heap) = CramClaims::couple(claim)?;
        let mut couple = Couple::new(heap);
        sum.components().iter().for_each(|component| couple.add(*component));
        Ok(couple)
    }

    fn claim(&self, state: &Couple) -> Claim {
        let sum: Sum = state.main.iter().chain(&state.others).copied().collect();
        CramClaims::claim(&sum, state.heap)
    }

    fn key(&self, state: &Couple) -> Option<Key> {
        let main = state.main.as_ref().filter(|_| state.others.is_empty())?;
        Some(self.key_of(main, state.heap))
    }

    fn settle(&mut self, state: &mut Couple, table: &dyn Table) -> Settled<Couple> {
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
        if u32::from(state.heap) > main.len() / 2 {
            return Settled::Decided(true);
        }
        match self.nimber(&main, table) {
            Some(nimber) => Settled::Decided(nimber != state.heap),
            None => Settled::Ready,
        }
    }

    fn expand(
        &mut self,
        state: &Couple,
        table: &dyn Table,
        branches: &mut Vec<Branch<Couple>>,
    ) -> Option<bool> {
        let Some(main) = state.main.filter(|_| state.others.is_empty()) else {
            debug_assert!(false, "only settled couples are expanded");
            return None;
        };
        for domino in main.dominoes() {
            let mut couple = Couple::new(state.heap);
            for region in main.after(domino) {
                if self.is_small(&region) {
                    couple.heap ^= self.small.nimber(&region);
                } else if !region.is_zero_by_half_turn() {
                    couple.add(region);
                }
            }
            self.fold(&mut couple, table);
            let Some(rest) = couple.main else {
                if couple.heap == 0 {
                    return Some(true);
                }
                continue;
            };
            if couple.others.is_empty() {
                if u32::from(couple.heap) > rest.len() / 2 {
                    continue;
                }
                if let Some(nimber) = self.nimber(&rest, table) {
                    if nimber == couple.heap {
                        return Some(true);
                    }
                    continue;
                }
            }
            branches.push(branch(couple));
        }
        branches.sort_unstable_by(|a, b| a.state.cmp(&b.state));
        branches.dedup_by(|a, b| a.state == b.state);
        for heap in 0..state.heap {
            branches.push(branch(Couple { heap, ..state.clone() }));
        }
        if branches.is_empty() { Some(false) } else { None }
    }

    fn decided(&mut self, state: &Couple, truth: bool, work: u64, table: &dyn Table) {
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

/// The edge to a couple, its numbers estimated: one winning move proves it, and all its moves, about one a cell, must be
/// refuted to disprove it. So the search prefers what splits and what is small. Over 3x9 to 3x13, 4x7 and 5x6 this makes
/// 134,118 expansions; the exact number of moves makes 157,650, and no estimate 323,087.
fn branch(state: Couple) -> Branch<Couple> {
    let cells = state.main.iter().chain(&state.others).map(Component::len).sum();
    Branch { polarity: Polarity::Opposite, numbers: Numbers::open(1, cells), state }
}
