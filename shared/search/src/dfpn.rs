//! Depth-first proof-number search over claims, with 1 + epsilon thresholds (Nagai 2002; Pawlewicz and Lew 2007).
//!
//! A node is proved by one edge that supports it and disproved when none does, so its proof number is the least
//! over its edges and its disproof number their sum, each child seen across its edge's polarity. The search goes down
//! the edge of least proof until a number passes the threshold its parent gave it, and keeps the numbers in the table.
//!
//! Several threads may search one claim over one table, each with an engine of its own: see `together.rs`.
//!
//! A game may ask for other states to be decided before one of its own can be expanded ([`Settled::First`]): Cram
//! resolves the small components of a sum to their nimbers this way.

use crate::engine::{Child, Engine, FACTS_MAX, Leave, Limits, Meter, Outcome, Stopped, Verdict};
use crate::numbers::{INFINITE, Numbers};
use crate::samples::Samples;
use crate::shelf::Shelf;
use crate::table::{Entry, Key, Known, Table};
use crate::together::CROWD;
use grundy_games::claim::{Claim, ClaimError, ClaimRules, Edge, Fact, Polarity};
use std::collections::HashMap;
use std::sync::Arc;

/// A game as the search sees it. States are engine-side claims: decoded, ready to move on.
pub trait Tree: Send {
    /// A decoded claim.
    type State: Clone + Send;

    /// A branch is left when the second best looks better by one part in so many of its number (epsilon, inverted).
    const SWITCH: u32 = 4;

    /// How many lists of branches an engine keeps of states that it left undecided, a power of two or none: see `shelf.rs`. Only
    /// for a tree whose branches depend on the state's key alone.
    const KEPT: usize = 0;

    /// The rules that read the tree's claims.
    fn rules(&self) -> &dyn ClaimRules;

    /// Decodes a claim.
    ///
    /// # Errors
    /// As [`ClaimRules::check`].
    fn state(&self, claim: &Claim) -> Result<Self::State, ClaimError>;

    /// Encodes a state; the inverse of [`Tree::state`] up to simplifications that keep the truth.
    fn claim(&self, state: &Self::State) -> Claim;

    /// The exact key of a state, or `None` for one that has to be settled first or does not fit: it is not kept in the table.
    fn key(&self, state: &Self::State) -> Option<Key>;

    /// Rewrites a state by what is known (without changing its truth) until it can be expanded, or names a state that has to
    /// be decided first. Called again after that one was decided.
    fn settle(&mut self, state: &mut Self::State, table: &dyn Table) -> Settled<Self::State> {
        let _ = (state, table);
        Settled::Ready
    }

    /// Writes a settled state's edges into `branches` (empty on entry), or gives its truth where rules or knowledge decide it.
    /// The search itself probes the table for each branch's key; the tree need not.
    fn expand(
        &mut self,
        state: &Self::State,
        table: &dyn Table,
        branches: &mut Vec<Branch<Self::State>>,
    ) -> Option<bool>;

    /// Told of each state that the search decided, with the nodes it cost in total; a tree may keep or store what follows.
    fn decided(&mut self, state: &Self::State, truth: bool, work: u64, table: &dyn Table) {
        let _ = (state, truth, work, table);
    }
}

/// Whether a state can be expanded.
pub enum Settled<S> {
    /// It can.
    Ready,
    /// Rules or knowledge decide it.
    Decided(bool),
    /// This one has to be decided first.
    First(S),
}

/// One edge of a state.
pub struct Branch<S> {
    /// How the child bears on its parent.
    pub polarity: Polarity,
    /// The child.
    pub state: S,
    /// The child's numbers from its own point of view: an estimate, or decided.
    pub numbers: Numbers,
}

/// The engine that searches a [`Tree`].
pub struct DfpnEngine<T: Tree> {
    tree: T,
    table: Arc<dyn Table>,
    shelf: Shelf<T::State>,
}

impl<T: Tree> DfpnEngine<T> {
    /// An engine over a table that other engines may share.
    pub fn new(tree: T, table: Arc<dyn Table>) -> Self {
        Self { tree, table, shelf: Shelf::new(T::KEPT) }
    }

    /// The tree, for its statistics.
    pub fn tree(&self) -> &T {
        &self.tree
    }

    /// The tree, to give it more to know. What the table holds has to stay true.
    pub fn tree_mut(&mut self) -> &mut T {
        &mut self.tree
    }

    /// The numbers that the table has for a claim, as it stands.
    fn numbers_of(&mut self, claim: &Claim) -> Result<Option<Numbers>, ClaimError> {
        let mut state = self.tree.state(claim)?;
        if let Settled::Decided(truth) = self.tree.settle(&mut state, &*self.table) {
            return Ok(Some(Numbers::decided(truth)));
        }
        Ok(self.tree.key(&state).and_then(|key| probe(&*self.table, &key)).map(|(numbers, _)| numbers))
    }

    /// What a claim hangs on, as the search would go on from it. Nothing if it cannot be expanded yet.
    fn children_of(&mut self, claim: &Claim) -> Result<Vec<Child>, ClaimError> {
        let (table, mut state) = (&*self.table, self.tree.state(claim)?);
        let mut branches = Vec::new();
        if !matches!(self.tree.settle(&mut state, table), Settled::Ready)
            || self.tree.expand(&state, table, &mut branches).is_some()
        {
            return Ok(Vec::new());
        }
        let child = |Branch { polarity, state, numbers }: Branch<T::State>| {
            let known = self.tree.key(&state).and_then(|key| probe(table, &key));
            let numbers = known.map_or(numbers, |(numbers, _)| numbers);
            Child { edge: Edge { polarity, claim: self.tree.claim(&state) }, numbers }
        };
        let mut children: Vec<Child> = branches.into_iter().map(child).collect();
        // Different states may be written as one claim.
        children.sort_by(|a, b| a.edge.claim.cmp(&b.edge.claim));
        children.dedup_by(|a, b| a.edge == b.edge);
        Ok(children)
    }
}

impl<T: Tree> Engine for DfpnEngine<T> {
    fn decide(&mut self, claim: &Claim, limits: &Limits<'_>) -> Result<Outcome, ClaimError> {
        let mut state = self.tree.state(claim)?;
        let _presence = CROWD.join();
        let mut search = Search {
            tree: &mut self.tree,
            table: &*self.table,
            limits,
            meter: Meter::new(limits),
            facts: HashMap::new(),
            pool: Vec::new(),
            shelf: &mut self.shelf,
        };
        let Leave { thresholds, nodes_min } = limits.leave;
        let mut result = Err(Stopped);
        if nodes_min > 0 {
            // Whatever the numbers: where two tables do not agree on them, a claim would go from one to the other, and nothing be done.
            search.meter.set_budget(nodes_min);
            result = search.decide(&mut state.clone(), INFINITE, INFINITE);
        }
        if result.is_err() {
            search.meter.set_budget(limits.nodes);
            result = search.decide(&mut state, thresholds.proof, thresholds.disproof);
        }
        search.meter.report();
        let nodes = search.meter.nodes();
        let mut facts = std::mem::take(&mut search.facts);
        facts.remove(claim);
        let mut facts: Vec<Fact> =
            facts.into_iter().map(|(claim, (truth, work))| Fact { claim, truth, work }).collect();
        facts.sort_by(|a, b| b.work.cmp(&a.work).then_with(|| a.claim.cmp(&b.claim)));
        facts.truncate(FACTS_MAX);
        let numbers = match result {
            Ok(numbers) => numbers,
            Err(Stopped) => self.numbers_of(claim)?.unwrap_or(Numbers::UNKNOWN),
        };
        let verdict = match numbers.truth() {
            Some(truth) => Verdict::Decided(truth),
            None => Verdict::Open { numbers, children: self.children_of(claim)? },
        };
        Ok(Outcome { verdict, nodes, facts, samples: Samples::default() })
    }

    fn learn(&mut self, fact: &Fact) -> Result<(), ClaimError> {
        let state = self.tree.state(&fact.claim)?;
        if let Some(key) = self.tree.key(&state) {
            let known = Known::Numbers(Numbers::decided(fact.truth));
            self.table.store(&key, Entry { known, work: fact.work });
        }
        self.tree.decided(&state, fact.truth, fact.work, &*self.table);
        Ok(())
    }

    fn rest(&mut self) {
        self.shelf = Shelf::new(T::KEPT);
    }
}

/// One call of [`Engine::decide`].
struct Search<'a, T: Tree> {
    tree: &'a mut T,
    table: &'a dyn Table,
    limits: &'a Limits<'a>,
    /// Counts expansions.
    meter: Meter<'a>,
    /// Costly decided claims.
    facts: HashMap<Claim, (bool, u64)>,
    /// Branch lists of finished frames, to be used again.
    pool: Vec<Vec<Branch<T::State>>>,
    shelf: &'a mut Shelf<T::State>,
}

impl<T: Tree> Search<'_, T> {
    /// Searches until the state's proof number reaches `proof_max` or its disproof number `disproof_max`
    /// ([`INFINITE`]: until it is decided). Leaves the state settled.
    fn decide(
        &mut self,
        state: &mut T::State,
        proof_max: u32,
        disproof_max: u32,
    ) -> Result<Numbers, Stopped> {
        loop {
            match self.tree.settle(state, self.table) {
                Settled::Ready => break,
                Settled::Decided(truth) => return Ok(Numbers::decided(truth)),
                Settled::First(mut other) => {
                    self.decide(&mut other, INFINITE, INFINITE)?;
                }
            }
        }
        let key = self.tree.key(state);
        let mut work_before = 0;
        if let Some((numbers, work)) = key.as_ref().and_then(|key| probe(self.table, key)) {
            if numbers.truth().is_some() || numbers.proof >= proof_max || numbers.disproof >= disproof_max {
                return Ok(numbers);
            }
            work_before = work;
        }
        let _mark = key.as_ref().map(|key| CROWD.enter(key));
        let start = self.meter.nodes();
        let kept = key.as_ref().and_then(|key| self.shelf.take(key));
        let (mut branches, truth) = match kept {
            Some(branches) => (branches, None),
            None => {
                self.meter.count(false)?;
                let mut branches = self.pool.pop().unwrap_or_default();
                let truth = self.tree.expand(state, self.table, &mut branches);
                (branches, truth)
            }
        };
        let numbers = match truth {
            Some(truth) => Ok(Numbers::decided(truth)),
            None => self.search_branches(key.as_ref(), &mut branches, proof_max, disproof_max),
        };
        let work = work_before + (self.meter.nodes() - start);
        let (stored, result) = match numbers {
            Ok(numbers) => (numbers, Ok(numbers)),
            // What was learned below is kept for whoever comes back to it.
            Err(Stopped) => {
                (Numbers::backed_up(branches.iter().map(|b| b.numbers.across(b.polarity))), Err(Stopped))
            }
        };
        let finished = match key {
            Some(key) if stored.truth().is_none() => self.shelf.put(key, branches),
            _ => Some(branches),
        };
        if let Some(mut branches) = finished {
            branches.clear();
            self.pool.push(branches);
        }
        if let Some(key) = key {
            self.table.store(&key, Entry { known: Known::Numbers(stored), work });
        }
        if let Some(truth) = stored.truth() {
            self.tree.decided(state, truth, work, self.table);
            if work >= self.limits.report_work_min {
                self.keep_fact(state, truth, work);
            }
        }
        result
    }

    /// The loop of a node over its edges.
    fn search_branches(
        &mut self,
        key: Option<&Key>,
        branches: &mut [Branch<T::State>],
        proof_max: u32,
        disproof_max: u32,
    ) -> Result<Numbers, Stopped> {
        for branch in branches.iter_mut() {
            if branch.numbers.truth().is_none()
                && let Some(key) = self.tree.key(&branch.state)
                && let Some((numbers, _)) = probe(self.table, &key)
            {
                branch.numbers = numbers;
            }
        }
        loop {
            let numbers = Numbers::backed_up(branches.iter().map(|b| b.numbers.across(b.polarity)));
            if numbers.truth().is_some() || numbers.proof >= proof_max || numbers.disproof >= disproof_max {
                return Ok(numbers);
            }
            let (mut best, mut second) = two_least(branches, |_, proof| proof);
            if CROWD.is_many() {
                // Another thread may have decided this very state meanwhile.
                if let Some((numbers, _)) = key.and_then(|key| probe(self.table, key))
                    && numbers.truth().is_some()
                {
                    return Ok(numbers);
                }
                let (other, its_second) = two_least(branches, |branch, proof| {
                    CROWD.virtual_proof(self.tree.key(&branch.state).as_ref(), proof)
                });
                let branch = &branches[other];
                // A branch that is past the threshold already would be left as it is found.
                if branch.numbers.across(branch.polarity).proof < proof_max {
                    (best, second) = (other, its_second);
                }
            }
            let branch = &mut branches[best];
            let seen = branch.numbers.across(branch.polarity);
            // 1 + epsilon: stay until the second best looks better by a fraction, instead of thrashing between equals.
            let switch =
                if second >= INFINITE { INFINITE } else { second.saturating_add(1 + second / T::SWITCH) };
            let below = Numbers {
                // More than it has, lest nothing is done.
                proof: proof_max.min(switch.max(seen.proof.saturating_add(1))),
                disproof: if disproof_max >= INFINITE {
                    INFINITE
                } else {
                    disproof_max - numbers.disproof + seen.disproof
                },
            }
            .across(branch.polarity);
            let mut state = branch.state.clone();
            let result = self.decide(&mut state, below.proof, below.disproof);
            branch.state = state;
            branch.numbers = result?;
        }
    }

    /// Remembers a costly fact; when there are too many, only the costlier half stays.
    fn keep_fact(&mut self, state: &T::State, truth: bool, work: u64) {
        if self.facts.len() >= 4 * FACTS_MAX {
            let mut works: Vec<u64> = self.facts.values().map(|(_, work)| *work).collect();
            works.sort_unstable_by(|a, b| b.cmp(a));
            let least = works[FACTS_MAX];
            self.facts.retain(|_, (_, work)| *work >= least);
        }
        self.facts.insert(self.tree.claim(state), (truth, work));
    }
}

/// The branch of least proof number as its parent sees it and `counted` counts it, and the proof number of the next best.
fn two_least<S>(branches: &[Branch<S>], counted: impl Fn(&Branch<S>, u32) -> u32) -> (usize, u32) {
    let (mut best, mut least, mut least_disproof, mut second) = (0, u32::MAX, u32::MAX, INFINITE);
    for (index, branch) in branches.iter().enumerate() {
        let seen = branch.numbers.across(branch.polarity);
        let proof = counted(branch, seen.proof);
        if proof < least || (proof == least && seen.disproof < least_disproof) {
            if least != u32::MAX {
                second = least;
            }
            (best, least, least_disproof) = (index, proof, seen.disproof);
        } else if proof < second {
            second = proof;
        }
    }
    (best, second)
}

/// The claim's numbers and work in the table; values are the game's own business.
fn probe(table: &dyn Table, key: &Key) -> Option<(Numbers, u64)> {
    match table.probe(key)? {
        Entry { known: Known::Numbers(numbers), work } => Some((numbers, work)),
        Entry { known: Known::Value(_), .. } => None,
    }
}
