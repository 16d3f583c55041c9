//! Konane as the search sees it: positions told apart by their kernels, with estimates from mobility.

use super::kernel::Kernel;
use crate::dfpn::{Branch, Settled, Tree};
use crate::numbers::{FINITE_MAX, Numbers};
use crate::table::{Key, Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, ClaimRules, Polarity};
use grundy_games::konane::{Board, KonaneClaims, Side};

/// The positions on one board.
pub struct KonaneTree {
    claims: KonaneClaims,
    namespace: Namespace,
}

/// A position with what the search wants to know of it, computed once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    stones: u64,
    mover: Side,
    /// The kernel in canonical form; see [`KonaneTree::state_of`].
    key: Key,
    /// The mover's lead in moves outside the kernel's cells.
    lead: i32,
    /// Decided, or an estimate.
    numbers: Numbers,
}

impl KonaneTree {
    /// The tree of the positions that the claims are about.
    pub fn new(claims: KonaneClaims, namespace: Namespace) -> Self {
        Self { claims, namespace }
    }

    /// The state of a position.
    ///
    /// Positions with one kernel have one key, and so have their images under the board's symmetries. That is exact: a
    /// kernel decides the value.
    ///
    /// ```text
    /// words[0]         contested cells
    /// words[1]         stones on them; their colours follow from the cells
    /// rest, bit 0      mover: 0 black, 1 white
    /// rest, bits 1-8   the mover's lead + 128; no side has 64 moves
    /// ```
    fn state_of(&self, stones: u64, mover: Side) -> State {
        let board = self.claims.board();
        let kernel = Kernel::of(board, stones);
        let lead = if mover == Side::Black { kernel.lead } else { -kernel.lead };
        let unopposed = [mover, mover.other()].map(|side| kernel.moves_unopposed(board, side));
        let numbers = match outcome(unopposed, lead) {
            Some(truth) => Numbers::decided(truth),
            None => estimate(board, &kernel, mover, unopposed, lead),
        };
        let (words, canonical_mover) =
            self.claims.symmetries().canonical([kernel.cells, kernel.stones], mover);
        let rest = canonical_mover as u16 | ((lead + 128) as u16) << 1;
        State { stones, mover, key: Key::new(words, rest, self.namespace), lead, numbers }
    }
}

/// Whether the mover wins, where counting moves tells: a side that is ahead outside the kernel by what the other
/// could ever do inside it (`unopposed`, the mover's first), left alone there, need not enter it at all.
fn outcome(unopposed: [i32; 2], lead: i32) -> Option<bool> {
    if lead > 0 { (lead > unopposed[1]).then_some(true) } else { (-lead >= unopposed[0]).then_some(false) }
}

/// Numbers of an open position.
///
/// A side with many moves takes many refutations to beat, now (mobility) or later (moves unopposed), and fewer if there are
/// many against it. The weights and the power were found by climbing in expansions on boards of 5x6 to 6x6: see
/// docs/konane.md.
fn estimate(board: &Board, kernel: &Kernel, mover: Side, unopposed: [i32; 2], lead: i32) -> Numbers {
    let mobility = [mover, mover.other()].map(|side| mobility(board, kernel, side) as i32);
    // By how many moves each is behind the rule of `outcome` that lets it win.
    let behind = [unopposed[1] - lead + 1, unopposed[0] + lead];
    let against = |side: usize, lead: i32| {
        let other = 1 - side;
        let hard = 8 * mobility[other] + 6 * behind[side];
        let easy = 3 * mobility[side] + 2 * behind[other];
        let effort = (hard - easy + 24 * lead.max(0) + 8).max(1) as u64;
        (effort.pow(4) * 3 / (8 * 8u64.pow(4))).min(FINITE_MAX.into()) as u32
    };
    Numbers::open(against(0, -lead), against(1, lead))
}

/// A side's single jumps, plus its stones that have one: two jumps of one stone are worth less than jumps of two.
fn mobility(board: &Board, kernel: &Kernel, side: Side) -> u32 {
    let jumpers = kernel.jumpers(board, side);
    let movers = jumpers.iter().fold(0, |movers, jumpers| movers | jumpers);
    jumpers.iter().map(|jumpers| jumpers.count_ones()).sum::<u32>() + movers.count_ones()
}

impl Tree for KonaneTree {
    type State = State;

    // A half: fewer returns to the same positions; see docs/konane.md.
    const SWITCH: u32 = 2;

    fn rules(&self) -> &dyn ClaimRules {
        &self.claims
    }

    fn state(&self, claim: &Claim) -> Result<State, ClaimError> {
        let position = self.claims.position(claim)?;
        Ok(self.state_of(position.stones(), position.mover()))
    }

    fn claim(&self, state: &State) -> Claim {
        self.claims.claim(state.stones, state.mover)
    }

    fn key(&self, state: &State) -> Option<Key> {
        Some(state.key)
    }

    fn settle(&mut self, state: &mut State, _: &dyn Table) -> Settled<State> {
        state.numbers.truth().map_or(Settled::Ready, Settled::Decided)
    }

    fn expand(&mut self, state: &State, _: &dyn Table, branches: &mut Vec<Branch<State>>) -> Option<bool> {
        let mut wins = false;
        self.claims.board().for_each_jump(state.stones, state.mover, |jump| {
            if wins {
                return;
            }
            let state = self.state_of(jump.stones, state.mover.other());
            match state.numbers.truth() {
                Some(true) => return,
                Some(false) => wins = true,
                None => {}
            }
            let same_kernel = |other: &State| {
                other.key.words == state.key.words && (other.key.rest() ^ state.key.rest()) & 1 == 0
            };
            // Of two ways to the same kernel the one that leaves the opponent less elsewhere is at least as good.
            match branches.iter_mut().find(|branch| same_kernel(&branch.state)) {
                Some(twin) if twin.state.lead <= state.lead => {}
                Some(twin) => (twin.state, twin.numbers) = (state, state.numbers),
                None => branches.push(Branch { polarity: Polarity::Opposite, state, numbers: state.numbers }),
            }
        });
        if wins {
            return Some(true);
        }
        branches.is_empty().then_some(false)
    }
}
