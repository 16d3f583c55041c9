//! Konane as the search sees it: positions told apart by their kernels, with estimates from mobility.

use super::kernel::{Each, Kernels, LANES_MAX, counts, each};
#[cfg(target_arch = "x86_64")]
use super::quad::Quad;
use crate::dfpn::{Branch, Settled, Tree};
use crate::numbers::{FINITE_MAX, Numbers};
use crate::table::{Key, Namespace, Table};
use grundy_games::claim::{Claim, ClaimError, ClaimRules, Polarity};
use grundy_games::konane::{Board, CellSet, KonaneClaims, Side};

/// The positions on one board.
pub struct KonaneTree {
    claims: KonaneClaims,
    namespace: Namespace,
    /// Positions after each jump; kept for its memory.
    children: Vec<u64>,
    /// Whether four positions can be looked at together.
    #[cfg(target_arch = "x86_64")]
    has_quad: bool,
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

impl State {
    /// What lanes hold before they are filled.
    const EMPTY: Self = Self {
        stones: 0,
        mover: Side::Black,
        key: Key { words: [0; 2], tag: 0 },
        lead: 0,
        numbers: Numbers::UNKNOWN,
    };
}

impl KonaneTree {
    /// The tree of the positions that the claims are about.
    pub fn new(claims: KonaneClaims, namespace: Namespace) -> Self {
        Self {
            claims,
            namespace,
            children: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            has_quad: Quad::is_supported(),
        }
    }

    /// The states of positions with one mover, each in its lane.
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
    #[inline(always)]
    fn states_in<S: CellSet>(&self, stones: &[u64], mover: Side) -> Each<State> {
        let board = self.claims.board();
        let kernels = Kernels::of(board, S::load(stones));
        let sides = [mover, mover.other()];
        let unopposed = [kernels.moves_unopposed(board, sides[0]), kernels.moves_unopposed(board, sides[1])];
        let mobility = mobility(board, &kernels, sides);
        let ([cells, men], canonical_mover) =
            self.claims.symmetries().canonical([kernels.cells, kernels.stones], mover);
        let (cells, men) = (each(cells), each(men));
        let mut states = [State::EMPTY; LANES_MAX];
        for (lane, (state, &stones)) in states.iter_mut().zip(stones).enumerate() {
            let lead = if mover == Side::Black { kernels.lead[lane] } else { -kernels.lead[lane] };
            let unopposed = [unopposed[0][lane], unopposed[1][lane]];
            let numbers = match outcome(unopposed, lead) {
                Some(truth) => Numbers::decided(truth),
                None => estimate([mobility[0][lane], mobility[1][lane]], unopposed, lead),
            };
            let rest = canonical_mover as u16 | ((lead + 128) as u16) << 1;
            let key = Key::new([cells[lane], men[lane]], rest, self.namespace);
            *state = State { stones, mover, key, lead, numbers };
        }
        states
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,lzcnt,popcnt")]
    fn states_in_quad(&self, stones: &[u64], mover: Side) -> Each<State> {
        self.states_in::<Quad>(stones, mover)
    }

    /// Calls `visit` with the state of each position, until it returns true. Whether it did.
    fn any_state(&self, stones: &[u64], mover: Side, mut visit: impl FnMut(&State) -> bool) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.has_quad {
            return stones.chunks(Quad::LANES).any(|stones| {
                // SAFETY: `Quad::is_supported` found these features.
                let states = unsafe { self.states_in_quad(stones, mover) };
                states[..stones.len()].iter().any(&mut visit)
            });
        }
        stones.chunks(1).any(|stones| visit(&self.states_in::<u64>(stones, mover)[0]))
    }

    /// Adds a child to the branches. Whether it is lost for the opponent.
    fn add_branch(state: &State, table: &dyn Table, branches: &mut Vec<Branch<State>>) -> bool {
        match state.numbers.truth() {
            Some(true) => return false,
            Some(false) => return true,
            None => {}
        }
        let same_kernel = |other: &State| {
            other.key.words == state.key.words && (other.key.rest() ^ state.key.rest()) & 1 == 0
        };
        // Of two ways to the same kernel the one that leaves the opponent less elsewhere is at least as good.
        match branches.iter_mut().find(|branch| same_kernel(&branch.state)) {
            Some(twin) if twin.state.lead <= state.lead => return false,
            Some(twin) => (twin.state, twin.numbers) = (*state, state.numbers),
            None => {
                branches.push(Branch { polarity: Polarity::Opposite, state: *state, numbers: state.numbers });
            }
        }
        // The search asks for it soon.
        table.prefetch(&state.key);
        false
    }
}

/// Whether the mover wins, where counting moves tells: a side that is ahead outside the kernel by what the other
/// could ever do inside it (`unopposed`, the mover's first), left alone there, need not enter it at all.
#[inline(always)]
fn outcome(unopposed: [i32; 2], lead: i32) -> Option<bool> {
    if lead > 0 { (lead > unopposed[1]).then_some(true) } else { (-lead >= unopposed[0]).then_some(false) }
}

/// Numbers of an open position, from both sides' mobility and moves unopposed, the mover's first.
///
/// A side with many moves takes many refutations to beat, now (mobility) or later (moves unopposed), and fewer if there are
/// many against it. The weights and the power were found by climbing in expansions on boards of 5x6 to 6x6: see
/// docs/konane.md.
#[inline(always)]
fn estimate(mobility: [i32; 2], unopposed: [i32; 2], lead: i32) -> Numbers {
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

/// The sides' single jumps, plus their stones that have one: two jumps of one stone are worth less than jumps of two.
#[inline(always)]
fn mobility<S: CellSet>(board: &Board, kernels: &Kernels<S>, sides: [Side; 2]) -> [Each<i32>; 2] {
    let [east, west, south, north] = kernels.jumpers(board);
    let mut mobility = [[0; LANES_MAX]; 2];
    for (mobility, side) in mobility.iter_mut().zip(sides) {
        for stones in [east, west, south, north, east | west | south | north] {
            let counts = counts(stones & S::splat(board.colour(side)));
            for (mobility, count) in mobility.iter_mut().zip(counts) {
                *mobility += count;
            }
        }
    }
    mobility
}

impl Tree for KonaneTree {
    type State = State;

    // A half: fewer returns to the same positions; see docs/konane.md.
    const SWITCH: u32 = 2;

    // A megabyte or two a thread. Four times as many spare 5% of the expansions, and cost more time than that in the processor's caches.
    const KEPT: usize = 1 << 12;

    fn rules(&self) -> &dyn ClaimRules {
        &self.claims
    }

    fn state(&self, claim: &Claim) -> Result<State, ClaimError> {
        let position = self.claims.position(claim)?;
        Ok(self.states_in::<u64>(&[position.stones()], position.mover())[0])
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

    fn expand(
        &mut self,
        state: &State,
        table: &dyn Table,
        branches: &mut Vec<Branch<State>>,
    ) -> Option<bool> {
        let (board, opponent) = (self.claims.board(), state.mover.other());
        let mut children = std::mem::take(&mut self.children);
        children.clear();
        let mut wins = false;
        board.for_each_jump(state.stones, state.mover, |jump| {
            wins |= !board.can_jump(jump.stones, opponent);
            children.push(jump.stones);
        });
        wins = wins || self.any_state(&children, opponent, |state| Self::add_branch(state, table, branches));
        self.children = children;
        if wins {
            return Some(true);
        }
        branches.is_empty().then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stones of all densities on boards of all shapes.
    #[test]
    fn positions_together_are_seen_as_each_alone() {
        for (width, height) in [(1, 9), (2, 32), (5, 3), (6, 6), (7, 7), (8, 8), (21, 3)] {
            let board = Board::full(width, height).expect("at most 64 cells");
            let tree = KonaneTree::new(KonaneClaims::new(board), Namespace(1));
            let mut random = 1u64;
            // A number of them that no number of lanes divides.
            let stones: Vec<u64> = (0..997)
                .map(|_| {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    let sparse = random.rotate_left(20) & random.rotate_left(41);
                    [!sparse, random, sparse][(random >> 60) as usize % 3] & board.cells()
                })
                .collect();
            for mover in [Side::Black, Side::White] {
                let mut together = Vec::new();
                tree.any_state(&stones, mover, |state| {
                    together.push(*state);
                    false
                });
                let alone: Vec<State> =
                    stones.iter().map(|&stones| tree.states_in::<u64>(&[stones], mover)[0]).collect();
                assert_eq!(together, alone, "{width} x {height}");
            }
        }
    }
}
