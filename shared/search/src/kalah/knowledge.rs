//! What an engine knows of a claim without the shared table, and the short look-ahead that adds to it.

use super::bounds::Bounds;
use super::endgame::Endgames;
use grundy_games::claim::Polarity;
use grundy_games::kalah::{Board, HOUSES_MAX, MoveTable};

/// A board and the margin that its mover has to gain, of the parity of the seeds in play: a claim, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// The houses.
    pub board: Board,
    /// The margin.
    pub margin: i16,
}

/// An edge of a claim.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Where it leads.
    pub state: State,
    /// How its truth bears on the claim.
    pub polarity: Polarity,
}

/// The edges of a claim that are neither supporting nor refuted at sight.
#[derive(Clone, Copy)]
pub struct Children {
    children: [Child; HOUSES_MAX as usize],
    count: usize,
}

impl Children {
    fn none() -> Self {
        let unused = Child { state: State::default(), polarity: Polarity::Same };
        Self { children: [unused; HOUSES_MAX as usize], count: 0 }
    }

    fn push(&mut self, child: Child) {
        self.children[self.count] = child;
        self.count += 1;
    }

    /// The edges.
    pub fn as_slice(&self) -> &[Child] {
        &self.children[..self.count]
    }

    fn as_mut_slice(&mut self) -> &mut [Child] {
        &mut self.children[..self.count]
    }
}

/// The rules, the endgames and the bounds of one engine.
pub struct Knowledge {
    moves: MoveTable,
    endgames: Endgames,
    bounds: Bounds,
    /// Boards expanded, which earn endgames.
    nodes: u64,
}

impl Knowledge {
    /// The rules alone. `seeds_max`: no board has more seeds in play.
    pub fn new(moves: MoveTable, seeds_max: u8) -> Self {
        let endgames = Endgames::new(&moves, seeds_max);
        Self { moves, endgames, bounds: Bounds::new(seeds_max), nodes: 0 }
    }

    /// A claim's truth by the rules, the endgames, or the bounds.
    pub fn truth(&self, State { board, margin }: State) -> Option<bool> {
        if board.is_over() {
            return Some(board.swept() >= margin);
        }
        let seeds = board.seeds();
        if let Some(gain) = self.endgames.gain(board, seeds) {
            return Some(gain >= margin);
        }
        if margin <= -seeds {
            return Some(true);
        }
        if margin > seeds {
            return Some(false);
        }
        self.bounds.truth(State { board, margin })
    }

    /// Takes in a decided claim.
    pub fn learn(&mut self, state: State, truth: bool) {
        self.bounds.learn(state, truth);
    }

    /// Counts an expansion, and builds the endgames that the count has earned.
    pub fn count_node(&mut self) {
        self.nodes += 1;
        self.endgames.earn(self.nodes, &self.moves);
    }

    /// A claim's open edges, or its truth where they decide it at sight.
    pub fn expand(&self, state: State) -> Result<Children, bool> {
        let mut open = Children::none();
        for (_, played) in self.moves.moves(state.board) {
            let left = state.margin - i16::from(played.banked);
            let (polarity, margin) =
                if played.again { (Polarity::Same, left) } else { (Polarity::Opposite, 2 - left) };
            let child = Child { state: State { board: played.board, margin }, polarity };
            match self.truth(child.state) {
                Some(truth) if polarity.supports(truth) => return Err(true),
                Some(_) => {}
                None => open.push(child),
            }
        }
        if open.count == 0 { Err(false) } else { Ok(open) }
    }

    /// Tries to decide a claim by depth-first search, spending from `budget` expansions; `None` when they run out.
    pub fn look_ahead(&mut self, state: State, budget: &mut u32) -> Option<bool> {
        if let Some(truth) = self.truth(state) {
            return Some(truth);
        }
        *budget = budget.checked_sub(1)?;
        self.count_node();
        let truth = match self.expand(state) {
            Err(truth) => truth,
            Ok(mut children) => {
                children.as_mut_slice().sort_by_key(|child| match child.polarity {
                    Polarity::Same => -surplus(child.state) - 1,
                    Polarity::Opposite => surplus(child.state),
                });
                self.any_supports(&children, budget)?
            }
        };
        self.learn(state, truth);
        Some(truth)
    }

    fn any_supports(&mut self, children: &Children, budget: &mut u32) -> Option<bool> {
        for child in children.as_slice() {
            if child.polarity.supports(self.look_ahead(child.state, budget)?) {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// A guess at how much more than the margin the mover gains: half the difference of the seeds.
pub fn surplus(State { board, margin }: State) -> i16 {
    board.guess() - margin
}
