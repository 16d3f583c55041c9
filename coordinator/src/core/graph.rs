//! The proof graph of one job: claims with transpositions merged, and what is decided about them.
//!
//! Numbers back up as in proof-number search (the least proof, the sum of disproofs, across each edge's polarity). On top
//! of them the graph keeps two things for every node, so that choosing work is a walk down and not a search:
//!
//! - *needs*: how many undecided, needed parents (and root requests) it has. An undecided node with needs is *active*; a node
//!   without is of no use any more, and its worker is told at the next heartbeat.
//! - *free*: whether work can be handed out in it: a leaf that nobody holds, or an inner node with a free child.

mod choose;
mod names;

pub use choose::Leaf;

use grundy_games::claim::{Claim, ClaimError, ClaimRules, Edge, Expansion, Polarity, Subject};
use grundy_search::engine::Child;
use grundy_search::evaluate::{Contradiction, Facts};
use grundy_search::numbers::Numbers;
use grundy_tables::jobs::record::Children;
use names::{Name, Names};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A node's index in its graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

/// Who may work on a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Anybody may lease it.
    Free,
    /// Somebody has it, or may still have it from before a restart.
    Held,
    /// It cost too many workers their lives, and is set aside.
    Parked,
}

/// One claim of the graph.
#[derive(Debug)]
pub struct Node {
    /// The claim.
    pub claim: Claim,
    /// Its numbers: backed up, or as its last search left them.
    pub numbers: Numbers,
    /// Its edges, once expanded. Empty edges with `expanded` false make it a leaf.
    edges: Box<[(Polarity, NodeId)]>,
    /// Whether its children are part of the graph.
    pub expanded: bool,
    /// Whether its edges are those of the rules, and not what a search went on with.
    by_rules: bool,
    parents: Vec<NodeId>,
    needs: u32,
    free: bool,
    /// Who may work on it.
    pub hold: Hold,
    /// Nodes that leases of this claim have searched.
    pub work: u64,
    /// Leases of this claim that came back.
    pub searches: u32,
    /// The worker that searched it last, or what it is a part of: its table has it warm.
    last_worker: Option<Name>,
}

impl Node {
    /// Whether deciding it would still help.
    pub fn is_active(&self) -> bool {
        self.needs > 0 && self.numbers.truth().is_none()
    }

    /// Whether it is active, without children and nobody's.
    fn is_free_leaf(&self) -> bool {
        self.is_active() && !self.expanded && self.hold == Hold::Free
    }
}

/// What a node was before a restart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// What it hung on.
    pub children: Children,
    /// Its numbers.
    pub numbers: Numbers,
    /// Nodes searched under it.
    pub work: u64,
    /// Leases that came back.
    pub searches: u32,
}

/// Two facts that cannot both hold: the job must stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A new fact against a known one.
    #[error("contradicting facts about {claim}: {contradiction}")]
    Contradiction {
        /// The new claim in words.
        claim: String,
        /// Both sides.
        contradiction: Contradiction,
    },
    /// The rules refuse a claim that the graph was given.
    #[error(transparent)]
    Claim(#[from] ClaimError),
}

/// The proof graph.
#[derive(Default, Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    index: BTreeMap<Claim, NodeId>,
    facts: Facts,
    remembered: BTreeMap<Claim, Remembered>,
    roots: Vec<NodeId>,
    parked: BTreeSet<NodeId>,
    /// Runs of workers that were lost with a node or failed on it, since this coordinator started. Few nodes have any.
    losses: BTreeMap<NodeId, BTreeSet<u64>>,
    /// Those who searched.
    names: Names,
    /// Nodes that became decided since somebody asked, in order.
    newly_decided: Vec<NodeId>,
    decided: u64,
    active: u64,
    inserted: u64,
}

impl Graph {
    /// A graph that remembers nodes from before a restart. They come back as roots and expansions reach them.
    pub fn new(facts: Facts, remembered: BTreeMap<Claim, Remembered>) -> Self {
        Self { facts, remembered, ..Self::default() }
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    /// Finds a claim.
    pub fn find(&self, claim: &Claim) -> Option<NodeId> {
        self.index.get(claim).copied()
    }

    /// What is decided.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The claims that are wanted, most urgent first.
    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// Nodes that still matter.
    pub fn active(&self) -> u64 {
        self.active
    }

    /// Claims decided since the graph was made, in it or beside it.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Decided and all children of a node that has them.
    pub fn children_counts(&self, id: NodeId) -> (u64, u64) {
        let edges = &self.node(id).edges;
        let decided = edges.iter().filter(|(_, child)| self.node(*child).numbers.truth().is_some()).count();
        (decided as u64, edges.len() as u64)
    }

    /// Nodes that became decided since the last call, in order.
    pub fn take_decided(&mut self) -> Vec<NodeId> {
        std::mem::take(&mut self.newly_decided)
    }

    /// Makes these claims the wanted ones.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn want(&mut self, rules: &dyn ClaimRules, claims: &[Claim]) -> Result<(), GraphError> {
        let mut roots = Vec::with_capacity(claims.len());
        for claim in claims {
            roots.push(self.ensure(rules, claim)?);
        }
        for &root in &roots {
            self.add_need(root);
        }
        for root in std::mem::replace(&mut self.roots, roots) {
            self.drop_need(root);
        }
        Ok(())
    }

    /// Finds or makes a node. What facts and memory say of it is applied at once; remembered expansions are redone.
    fn ensure(&mut self, rules: &dyn ClaimRules, claim: &Claim) -> Result<NodeId, GraphError> {
        if let Some(id) = self.find(claim) {
            return Ok(id);
        }
        let id = NodeId(u32::try_from(self.nodes.len()).expect("the graph has fewer than 2^32 nodes"));
        let memory = self.remembered.remove(claim);
        let (numbers, work, searches) = memory
            .as_ref()
            .map_or((Numbers::UNKNOWN, 0, 0), |memory| (memory.numbers, memory.work, memory.searches));
        let numbers = self.facts.truth(rules, claim).map_or(numbers, Numbers::decided);
        self.nodes.push(Node {
            claim: claim.clone(),
            numbers,
            edges: Box::default(),
            expanded: false,
            by_rules: false,
            parents: Vec::new(),
            needs: 0,
            free: false,
            hold: Hold::Free,
            work,
            searches,
            last_worker: None,
        });
        self.index.insert(claim.clone(), id);
        if numbers.truth().is_some() {
            self.decided += 1;
            return Ok(id);
        }
        match memory.map(|memory| memory.children) {
            None | Some(Children::None) => {}
            Some(Children::OfRules) => {
                self.expand(rules, id, &[])?;
            }
            Some(Children::Found(children)) => {
                self.expand(rules, id, &children)?;
            }
        }
        Ok(id)
    }

    /// Gives an undecided leaf its children: those that a search found, with their numbers, or else those of the rules. Decided or
    /// expanded nodes stay as they are. Returns the number of children.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn expand(
        &mut self,
        rules: &dyn ClaimRules,
        id: NodeId,
        children: &[Child],
    ) -> Result<u32, GraphError> {
        let node = self.node(id);
        if node.expanded || node.numbers.truth().is_some() {
            return Ok(0);
        }
        let claim = node.claim.clone();
        let found = !children.is_empty() && !self.would_close_a_cycle(id, children);
        let of_rules;
        let children = if found {
            children
        } else {
            of_rules = match rules.expand(&claim)? {
                Expansion::Decided(truth) => {
                    self.decide(rules, &claim, truth)?;
                    return Ok(0);
                }
                Expansion::Open(edges) => edges
                    .into_iter()
                    .map(|edge| Child { edge, numbers: Numbers::UNKNOWN })
                    .collect::<Vec<_>>(),
            };
            &of_rules
        };
        let mut list = Vec::with_capacity(children.len());
        for Child { edge, numbers } in children {
            let child = self.ensure(rules, &edge.claim)?;
            self.inform(rules, child, *numbers)?;
            self.node_mut(child).parents.push(id);
            let last_worker = self.node(id).last_worker;
            let of_child = &mut self.node_mut(child).last_worker;
            *of_child = of_child.or(last_worker);
            list.push((edge.polarity, child));
        }
        let count = list.len() as u32;
        let active = self.node(id).is_active();
        let node = self.node_mut(id);
        node.edges = list.into();
        node.expanded = true;
        node.by_rules = !found;
        if active {
            for index in 0..count as usize {
                let child = self.node(id).edges[index].1;
                self.add_need(child);
            }
        }
        self.back_up(rules, id)?;
        Ok(count)
    }

    /// Whether a node is, or hangs under, one of these. That is only so if a worker is wrong, and would never come to an end.
    fn would_close_a_cycle(&self, id: NodeId, children: &[Child]) -> bool {
        let inner = children.iter().filter_map(|child| self.find(&child.edge.claim));
        let inner: BTreeSet<NodeId> =
            inner.filter(|child| *child == id || self.node(*child).expanded).collect();
        let (mut seen, mut pending) = (BTreeSet::from([id]), vec![id]);
        while let Some(id) = pending.pop().filter(|_| !inner.is_empty()) {
            if inner.contains(&id) {
                return true;
            }
            pending.extend(self.node(id).parents.iter().copied().filter(|parent| seen.insert(*parent)));
        }
        false
    }

    /// What a node hangs on, to be stored.
    pub fn children(&self, id: NodeId) -> Children {
        let node = self.node(id);
        match (node.expanded && node.numbers.truth().is_none(), node.by_rules) {
            (false, _) => Children::None,
            (true, true) => Children::OfRules,
            (true, false) => {
                let child = |&(polarity, id): &(Polarity, NodeId)| {
                    let Node { claim, numbers, .. } = self.node(id);
                    Child { edge: Edge { polarity, claim: claim.clone() }, numbers: *numbers }
                };
                Children::Found(node.edges.iter().map(child).collect())
            }
        }
    }

    /// Gives a leaf that was never searched the numbers that its parent's search had for it.
    fn inform(&mut self, rules: &dyn ClaimRules, id: NodeId, numbers: Numbers) -> Result<(), GraphError> {
        let node = self.node_mut(id);
        if node.expanded || node.searches > 0 || node.numbers.truth().is_some() || numbers.truth().is_some() {
            return Ok(());
        }
        node.numbers = numbers;
        self.back_up_parents(rules, id)
    }

    /// Takes in a decided claim, in the graph or not, and all that follows. `Ok(false)` when it was known.
    ///
    /// # Errors
    /// [`GraphError::Contradiction`]; the graph is then of no further use.
    pub fn decide(&mut self, rules: &dyn ClaimRules, claim: &Claim, truth: bool) -> Result<bool, GraphError> {
        let new = self.facts.insert(rules, claim, truth).map_err(|contradiction| {
            GraphError::Contradiction { claim: rules.describe(claim), contradiction }
        })?;
        if !new {
            return Ok(false);
        }
        self.inserted += 1;
        for id in self.about(&claim.subject) {
            let node = self.node(id);
            if node.numbers.truth().is_some() {
                continue;
            }
            if let Some(truth) = rules.infer(claim.parameter, truth, node.claim.parameter) {
                self.set_decided(id, truth);
                self.back_up_parents(rules, id)?;
            }
        }
        Ok(true)
    }

    /// All nodes about one subject.
    fn about(&self, subject: &Subject) -> Vec<NodeId> {
        let low = Claim { subject: subject.clone(), parameter: i16::MIN };
        let high = Claim { subject: subject.clone(), parameter: i16::MAX };
        self.index.range((Bound::Included(low), Bound::Included(high))).map(|(_, id)| *id).collect()
    }

    /// A search of a leaf came back undecided.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn searched(
        &mut self,
        rules: &dyn ClaimRules,
        id: NodeId,
        numbers: Numbers,
    ) -> Result<(), GraphError> {
        let node = self.node_mut(id);
        if !node.expanded && node.numbers.truth().is_none() {
            node.numbers = numbers;
            self.refresh_free(id);
            self.back_up_parents(rules, id)?;
        }
        Ok(())
    }

    /// Notes what a search of a node cost, and who has it warm now.
    pub fn add_work(&mut self, id: NodeId, nodes: u64, worker: &str) {
        let worker = self.names.number(worker);
        let node = self.node_mut(id);
        node.work = node.work.saturating_add(nodes);
        node.searches = node.searches.saturating_add(1);
        node.last_worker = Some(worker);
    }

    /// Who has a node warm.
    pub fn last_worker(&self, id: NodeId) -> Option<&str> {
        self.node(id).last_worker.map(|worker| self.names.name(worker))
    }

    /// Notes that this run of a worker was lost with a node or failed on it, and says how many different ones did. One sick worker
    /// counts once, however often it fails; a task that kills its workers meets a new run each time.
    pub fn count_loss(&mut self, id: NodeId, incarnation: u64) -> u32 {
        let losses = self.losses.entry(id).or_default();
        losses.insert(incarnation);
        losses.len() as u32
    }

    /// Changes who may work on a node.
    pub fn hold(&mut self, id: NodeId, hold: Hold) {
        self.node_mut(id).hold = hold;
        if hold == Hold::Parked {
            self.parked.insert(id);
        } else {
            self.parked.remove(&id);
        }
        self.refresh_free(id);
    }

    /// Of these nodes, the active leaf searched longest: the one to split when others have nothing to do.
    pub fn heaviest_leaf(&self, held: impl Iterator<Item = NodeId>) -> Option<NodeId> {
        held.filter(|id| self.node(*id).is_active() && !self.node(*id).expanded)
            .max_by_key(|id| (self.node(*id).work, *id))
    }

    /// Nodes set aside that would still help.
    pub fn parked(&self) -> u32 {
        self.parked.iter().filter(|id| self.node(**id).is_active()).count() as u32
    }

    /// Gives nodes that were set aside another chance.
    pub fn unpark(&mut self) {
        for id in std::mem::take(&mut self.parked) {
            self.losses.remove(&id);
            self.hold(id, Hold::Free);
        }
    }

    fn set_decided(&mut self, id: NodeId, truth: bool) {
        let was_active = self.node(id).is_active();
        self.node_mut(id).numbers = Numbers::decided(truth);
        self.decided += 1;
        self.newly_decided.push(id);
        self.node_mut(id).free = false;
        if was_active {
            self.deactivated(id);
        }
    }

    /// Recomputes an expanded node's numbers, decides it if they say so, and goes on upwards while something changes.
    fn back_up(&mut self, rules: &dyn ClaimRules, start: NodeId) -> Result<(), GraphError> {
        let mut pending = BTreeSet::from([start]);
        while let Some(id) = pending.pop_last() {
            let node = self.node(id);
            if node.numbers.truth().is_some() || !node.expanded {
                continue;
            }
            let numbers = Numbers::backed_up(
                node.edges.iter().map(|&(polarity, child)| self.node(child).numbers.across(polarity)),
            );
            let free = node.needs > 0 && node.edges.iter().any(|(_, child)| self.node(*child).free);
            let changed = numbers != node.numbers || free != node.free;
            if let Some(truth) = numbers.truth() {
                let claim = node.claim.clone();
                // Through the facts, so that a contradiction with what workers report is seen here too.
                self.decide(rules, &claim, truth)?;
                if self.node(id).numbers.truth().is_none() {
                    self.set_decided(id, truth);
                    pending.extend(self.node(id).parents.iter().copied());
                }
                continue;
            }
            if changed {
                let node = self.node_mut(id);
                node.numbers = numbers;
                node.free = free;
                pending.extend(self.node(id).parents.iter().copied());
            }
        }
        Ok(())
    }

    fn back_up_parents(&mut self, rules: &dyn ClaimRules, id: NodeId) -> Result<(), GraphError> {
        for parent in self.node(id).parents.clone() {
            self.back_up(rules, parent)?;
        }
        Ok(())
    }

    /// Recomputes whether work can be handed out in a node, and upwards.
    fn refresh_free(&mut self, start: NodeId) {
        let mut pending = vec![start];
        while let Some(id) = pending.pop() {
            let node = self.node(id);
            let free = if node.expanded {
                node.is_active() && node.edges.iter().any(|(_, child)| self.node(*child).free)
            } else {
                node.is_free_leaf()
            };
            if free != self.node(id).free {
                self.node_mut(id).free = free;
                pending.extend(self.node(id).parents.iter().copied());
            }
        }
    }

    fn add_need(&mut self, start: NodeId) {
        let mut pending = vec![start];
        while let Some(id) = pending.pop() {
            let node = self.node_mut(id);
            node.needs += 1;
            if node.needs == 1 && node.is_active() {
                self.active += 1;
                pending.extend(self.node(id).edges.iter().map(|(_, child)| *child));
                self.refresh_free(id);
            }
        }
    }

    fn drop_need(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        node.needs = node.needs.checked_sub(1).expect("every need that is dropped was added");
        if node.needs == 0 && node.numbers.truth().is_none() {
            self.deactivated(id);
        }
    }

    /// An active node has become decided or useless: its children lose a need.
    fn deactivated(&mut self, start: NodeId) {
        let mut pending = vec![start];
        while let Some(id) = pending.pop() {
            self.active -= 1;
            self.refresh_free(id);
            for index in 0..self.node(id).edges.len() {
                let child = self.node(id).edges[index].1;
                let node = self.node_mut(child);
                node.needs = node.needs.checked_sub(1).expect("every need that is dropped was added");
                if node.needs == 0 && node.numbers.truth().is_none() {
                    pending.push(child);
                }
            }
        }
    }

    /// Checks everything the graph keeps against a recomputation from scratch. For tests and the simulation.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check_invariants(&self, rules: &dyn ClaimRules) -> Result<(), String> {
        let mut needs = vec![0_u32; self.nodes.len()];
        for root in &self.roots {
            needs[root.0 as usize] += 1;
        }
        for node in &self.nodes {
            if node.is_active() {
                for (_, child) in &node.edges {
                    needs[child.0 as usize] += 1;
                }
            }
        }
        let (mut active, mut decided) = (0, 0);
        for (index, node) in self.nodes.iter().enumerate() {
            let name = || rules.describe(&node.claim);
            if node.needs != needs[index] {
                return Err(format!("{}: needs {} but {} parents need it", name(), node.needs, needs[index]));
            }
            active += u64::from(node.is_active());
            decided += u64::from(node.numbers.truth().is_some());
            if self.facts.truth(rules, &node.claim) != node.numbers.truth() {
                return Err(format!("{}: numbers {:?} do not agree with the facts", name(), node.numbers));
            }
            if node.expanded && node.numbers.truth().is_none() {
                let backed_up = Numbers::backed_up(
                    node.edges.iter().map(|&(polarity, child)| self.node(child).numbers.across(polarity)),
                );
                if backed_up != node.numbers {
                    return Err(format!(
                        "{}: numbers {:?}, children say {backed_up:?}",
                        name(),
                        node.numbers
                    ));
                }
            }
            let free = if node.expanded {
                node.is_active() && node.edges.iter().any(|(_, child)| self.node(*child).free)
            } else {
                node.is_free_leaf()
            };
            if free != node.free {
                return Err(format!("{}: free is {}, should be {free}", name(), node.free));
            }
        }
        if (active, decided) != (self.active, self.decided) {
            let counted = (self.active, self.decided);
            return Err(format!("counted (active, decided) {counted:?}, there are {:?}", (active, decided)));
        }
        Ok(())
    }
}
