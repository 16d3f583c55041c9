//! Which leaf a worker is given.

use super::{Graph, Name, Node, NodeId};
use grundy_games::claim::Polarity;
use grundy_search::engine::Leave;
use grundy_search::numbers::{INFINITE, Numbers, add};
use std::collections::BTreeMap;

/// What another worker has warm looks so many times as hard: who takes it over begins with an empty table. Two workers of a thread each on
/// Konane's 7x7 search a third less that way.
const COLD_FACTOR: u64 = 2;

/// How many nodes a search for a leaf of certain use may look into.
const LOOKS_MAX: u32 = 1_000;

/// A leaf for a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The leaf.
    pub id: NodeId,
    /// The root that it was chosen under.
    pub root: NodeId,
    /// Numbers from which on another leaf is to be searched first.
    pub thresholds: Numbers,
}

impl Graph {
    /// The leaf to hand out next to this worker, if any is free: in the root with the least work in flight, one that is
    /// of use if the leaves in flight turn out as they promise, or else the free one of least proof number. It is left when a sibling on the way to it
    /// looks better by one part in `switch`.
    pub fn choose(&self, in_flight: &BTreeMap<NodeId, u32>, worker: &str, switch: u32) -> Option<Leaf> {
        let root = self
            .roots
            .iter()
            .copied()
            .filter(|id| self.node(*id).free)
            .min_by_key(|id| in_flight.get(id).copied().unwrap_or(0))?;
        let worker = self.names.find(worker);
        let mut path = Vec::new();
        if !self.useful_leaf(root, worker, &mut LOOKS_MAX.clone(), &mut path) {
            path.clear();
            self.free_leaf(root, worker, &mut path)?;
        }
        Some(Leaf { id: *path.last()?, root, thresholds: self.thresholds(&path, switch) })
    }

    /// Goes down to a free leaf that is needed even if all that is in flight turns out as its numbers promise. Whether there is one;
    /// then it ends the path.
    ///
    /// A node that is likely true needs one child to support it. When that child is in other hands, any other one is searched in vain, most
    /// likely; so the search turns to what is needed besides: to nodes above that are likely false, of which every child has to be decided.
    fn useful_leaf(&self, id: NodeId, worker: Option<Name>, looks: &mut u32, path: &mut Vec<NodeId>) -> bool {
        let node = self.node(id);
        if !node.free || *looks == 0 {
            return false;
        }
        path.push(id);
        if !node.expanded {
            return true;
        }
        *looks -= 1;
        let children = node.edges.iter().filter(|(_, child)| self.node(*child).is_active());
        let mut ranks: Vec<_> = children.map(|edge| self.rank(edge, worker)).collect();
        if node.numbers.proof <= node.numbers.disproof {
            ranks = ranks.into_iter().min().into_iter().collect();
        } else {
            ranks.sort_unstable();
        }
        let found = ranks.into_iter().any(|(.., child)| self.useful_leaf(child, worker, looks, path));
        if !found {
            path.pop();
        }
        found
    }

    /// Goes down the free children of least proof number to a free leaf.
    fn free_leaf(&self, root: NodeId, worker: Option<Name>, path: &mut Vec<NodeId>) -> Option<()> {
        let mut id = root;
        path.push(id);
        while self.node(id).expanded {
            let free = self.node(id).edges.iter().filter(|(_, child)| self.node(*child).free);
            id = free.min_by_key(|edge| self.rank(edge, worker))?.1;
            path.push(id);
        }
        Some(())
    }

    /// The thresholds of the last node of a path, as a depth-first proof-number search would give them on its way down; but its siblings are
    /// only those that are free: what others have in hands is taken care of.
    fn thresholds(&self, path: &[NodeId], switch: u32) -> Numbers {
        let mut limits = Leave::NEVER.thresholds;
        for step in path.windows(2) {
            let (node, chosen) = (self.node(step[0]), step[1]);
            let Some(&(polarity, _)) = node.edges.iter().find(|(_, child)| *child == chosen) else {
                return Leave::NEVER.thresholds;
            };
            let seen = self.node(chosen).numbers.across(polarity);
            let others = node.edges.iter().filter(|(_, child)| *child != chosen && self.node(*child).free);
            let others = others.map(|(polarity, child)| self.node(*child).numbers.across(*polarity).proof);
            // One that is not the best was chosen for other reasons; the better ones say nothing of how long to stay.
            let second = others.filter(|proof| *proof >= seen.proof).min().unwrap_or(INFINITE);
            let leave_at = match second {
                INFINITE => INFINITE,
                second => add(second, 1 + second / switch).max(add(seen.proof, 1)),
            };
            let left = |limit: u32, own: u32, seen: u32| match limit {
                INFINITE => INFINITE,
                limit => add(limit.saturating_sub(own), seen).max(add(seen, 1)),
            };
            limits = Numbers {
                proof: limits.proof.min(leave_at),
                disproof: left(limits.disproof, node.numbers.disproof, seen.disproof),
            }
            .across(polarity);
        }
        limits
    }

    /// The lower, the sooner a child is searched; its numbers are seen across its edge.
    fn rank(&self, &(polarity, id): &(Polarity, NodeId), worker: Option<Name>) -> (u64, u32, bool, NodeId) {
        let node = self.node(id);
        let seen = node.numbers.across(polarity);
        let is_cold = node.is_warm_elsewhere(worker);
        let factor = if is_cold && node.free { COLD_FACTOR } else { 1 };
        (u64::from(seen.proof) * factor, seen.disproof, is_cold, id)
    }
}

impl Node {
    fn is_warm_elsewhere(&self, worker: Option<Name>) -> bool {
        self.last_worker.is_some() && self.last_worker != worker
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GraphError, Hold};
    use super::*;
    use grundy_games::claim::{Claim, ClaimError, ClaimRules, Edge, Expansion, Subject};

    /// A tree of two moves each, whose claims are the moves so far.
    struct Twos;

    fn claim(path: &[u8]) -> Claim {
        Claim { subject: Subject::new(path.to_vec()).expect("a short path"), parameter: 0 }
    }

    impl ClaimRules for Twos {
        fn namespace(&self) -> String {
            "twos".to_owned()
        }

        fn check(&self, _: &Claim) -> Result<(), ClaimError> {
            Ok(())
        }

        fn decided(&self, _: &Claim) -> Result<Option<bool>, ClaimError> {
            Ok(None)
        }

        fn expand(&self, parent: &Claim) -> Result<Expansion, ClaimError> {
            let edge = |step| {
                let path = [parent.subject.as_bytes(), &[step]].concat();
                Edge { polarity: Polarity::Opposite, claim: claim(&path) }
            };
            Ok(Expansion::Open(vec![edge(0), edge(1)]))
        }

        fn infer(&self, _: i16, _: bool, _: i16) -> Option<bool> {
            None
        }

        fn describe(&self, claim: &Claim) -> String {
            format!("{claim:?}")
        }
    }

    /// Two levels below the root, with the leaves' disproof numbers; all their proof numbers are 10.
    fn graph(disproofs: [u32; 4]) -> Result<Graph, GraphError> {
        let mut graph = Graph::default();
        graph.want(&Twos, &[claim(&[])])?;
        let root = graph.find(&claim(&[])).expect("it is wanted");
        graph.expand(&Twos, root, &[])?;
        for first in 0..2 {
            let id = graph.find(&claim(&[first])).expect("the root is split");
            graph.expand(&Twos, id, &[])?;
            for second in 0..2 {
                let id = leaf(&graph, first, second);
                let disproof = disproofs[usize::from(2 * first + second)];
                graph.searched(&Twos, id, Numbers { proof: 10, disproof })?;
            }
        }
        Ok(graph)
    }

    fn leaf(graph: &Graph, first: u8, second: u8) -> NodeId {
        graph.find(&claim(&[first, second])).expect("it was expanded")
    }

    fn chosen(graph: &Graph, worker: &str) -> Option<NodeId> {
        graph.choose(&BTreeMap::new(), worker, 4).map(|leaf| leaf.id)
    }

    #[test]
    fn a_second_worker_gets_what_is_needed_besides() -> Result<(), GraphError> {
        // The root is likely false, so both moves have to be answered; the first move's likely answer is the first one.
        let mut graph = graph([1, 5, 2, 5])?;
        let first = leaf(&graph, 0, 0);
        assert_eq!(chosen(&graph, "a"), Some(first));
        graph.hold(first, Hold::Held);
        let other = leaf(&graph, 1, 0);
        assert_eq!(chosen(&graph, "b"), Some(other));
        // When the likely answers to both are in hands, the others are better than nothing.
        graph.hold(other, Hold::Held);
        assert_eq!(chosen(&graph, "c"), Some(leaf(&graph, 0, 1)));
        Ok(())
    }

    #[test]
    fn a_worker_keeps_what_it_has_warm() -> Result<(), GraphError> {
        let mut graph = graph([2, 3, 9, 9])?;
        let warm = leaf(&graph, 0, 0);
        graph.add_work(warm, 100, "a");
        assert_eq!(chosen(&graph, "a"), Some(warm));
        assert_eq!(chosen(&graph, "b"), Some(leaf(&graph, 0, 1)));
        // What comes of it is warm in the same place.
        graph.expand(&Twos, warm, &[])?;
        let below = graph.find(&claim(&[0, 0, 0])).expect("it was expanded");
        assert_eq!(graph.last_worker(below), Some("a"));
        Ok(())
    }
}
