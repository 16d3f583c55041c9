//! The claims of Kalah as a tree for the proof-number search.

use super::knowledge::{Knowledge, State, surplus};
use crate::dfpn::{Branch, Settled, Tree};
use crate::numbers::Numbers;
use crate::table::{Entry, Key, Known, Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, ClaimRules};
use grundy_games::kalah::{KalahClaims, Problem};

/// Expansions that the look-ahead may spend on one new child. It saves nine tenths of the table's entries at little cost in time;
/// longer ones save more and cost time (measured with six houses of three seeds).
const LOOK_AHEAD_NODES: u32 = 12;

/// So many more seeds in play are taken to make a proof twice as large.
const SEEDS_PER_DOUBLING: i16 = 8;

/// Claims of one problem's rules.
pub struct KalahTree {
    claims: KalahClaims,
    knowledge: Knowledge,
    namespace: Namespace,
}

impl KalahTree {
    /// The tree over a problem's positions.
    pub fn new(problem: &Problem, namespace: Namespace) -> Self {
        let claims = KalahClaims::new(problem.position().houses(), problem.rules());
        let seeds_max = problem.position().board().seeds().clamp(0, u8::MAX.into()) as u8;
        let knowledge = Knowledge::new(claims.table().clone(), seeds_max);
        Self { claims, knowledge, namespace }
    }
}

impl Tree for KalahTree {
    type State = State;

    fn rules(&self) -> &dyn ClaimRules {
        &self.claims
    }

    fn state(&self, claim: &Claim) -> Result<State, ClaimError> {
        let (board, margin) = self.claims.decode(claim)?;
        Ok(State { board, margin })
    }

    fn claim(&self, state: &State) -> Claim {
        self.claims.claim(state.board, state.margin)
    }

    /// A byte a house, and the margin's 16 bits beside them.
    fn key(&self, state: &State) -> Option<Key> {
        let State { board, margin } = *state;
        Some(Key::new([board.mine, board.theirs], margin as u16, self.namespace))
    }

    fn settle(&mut self, state: &mut State, _: &dyn Table) -> Settled<State> {
        self.knowledge.truth(*state).map_or(Settled::Ready, Settled::Decided)
    }

    fn expand(
        &mut self,
        state: &State,
        table: &dyn Table,
        branches: &mut Vec<Branch<State>>,
    ) -> Option<bool> {
        self.knowledge.count_node();
        let children = match self.knowledge.expand(*state) {
            Ok(children) => children,
            Err(truth) => return Some(truth),
        };
        for child in children.as_slice() {
            let mut budget = LOOK_AHEAD_NODES;
            // What the table knows need not be looked at again.
            let kept = self.key(&child.state).and_then(|key| table.probe(&key));
            let numbers = match kept {
                Some(Entry { known: Known::Numbers(numbers), .. }) => numbers,
                _ => match self.knowledge.look_ahead(child.state, &mut budget) {
                    Some(truth) => Numbers::decided(truth),
                    None => estimate(child.state),
                },
            };
            match numbers.truth() {
                Some(truth) if child.polarity.supports(truth) => return Some(true),
                Some(_) => {}
                None => branches.push(Branch { polarity: child.polarity, state: child.state, numbers }),
            }
        }
        if branches.is_empty() { Some(false) } else { None }
    }

    fn decided(&mut self, state: &State, truth: bool, _: u64, _: &dyn Table) {
        self.knowledge.learn(*state, truth);
    }
}

/// Numbers of an open claim of which only the board is known: larger with more seeds in play, and the further the margin is
/// from a guess at the gain, the harder the answer on the far side is to prove.
fn estimate(state: State) -> Numbers {
    let ahead = surplus(state);
    let near = 1u32 << (state.board.seeds() / SEEDS_PER_DOUBLING).clamp(0, 10);
    let far = near * (1 + u32::from(ahead.unsigned_abs()));
    if ahead >= 0 { Numbers::open(near, far) } else { Numbers::open(far, near) }
}
