//! What still matters of a position: the cells that both sides contest, and a lead in moves elsewhere.
//!
//! First, all jumps that any sequence of turns could ever make possible are overestimated: a cell may hold a stone (of its
//! colour, the only one it can ever hold) if it has one or a possible jump lands there, it may be empty if it is or
//! a possible jump leaves or captures there, and a jump is possible if its three cells may be full, full and empty. The
//! least fixpoint contains every jump of the rest of the game. It follows that
//!
//! - cells on no possible jump are as good as missing, whatever is on them;
//! - possible jumps that share no cell never meet, so the position is the sum of its *parts*, the classes of
//!   cells that possible jumps connect;
//! - a part in which one side will never have a move is worth an integer, the most moves that the other side can make
//!   there: its canonical form is `{n - 1 | }` (Berlekamp, Conway and Guy, "Winning Ways", chapter 2).
//!
//! So a position is equal in value to its contested parts, with all other cells missing, plus the sum of those integers.

use grundy_games::konane::{Board, CellSet, Side};

/// The most lanes of any [`CellSet`] used here.
pub const LANES_MAX: usize = 4;

/// Something for each lane; what is beyond the lanes means nothing.
pub type Each<T> = [T; LANES_MAX];

/// Positions up to what cannot matter, one in each lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernels<S> {
    /// The cells of the contested parts.
    pub cells: S,
    /// The stones on them.
    pub stones: S,
    /// Black's moves in uncontested parts minus white's.
    pub lead: Each<i32>,
}

/// Positions of a part after which it counts as contested though it may not be. Nearly all uncontested parts take a few
/// dozen; a part that both sides could enter can take thousands to say so.
const LINE_STEPS_MAX: u32 = 200;

impl<S: CellSet> Kernels<S> {
    /// The kernels of positions.
    #[inline(always)]
    pub fn of(board: &Board, stones: S) -> Self {
        let segments = possible_segments(board, stones);
        let [east, west, south, north] = board.jumpers(stones, stones, !stones & S::splat(board.cells()));
        let movers = east | west | south | north;
        // The parts that each side could enter now.
        let black = parts(board, &segments, movers & S::splat(board.colour(Side::Black)));
        let white = parts(board, &segments, movers & S::splat(board.colour(Side::White)));
        let (mut cells, mut lead) = (black & white, [0; LANES_MAX]);
        if !cells.same(black | white) {
            let mut lanes = each(cells);
            let (black, white, stones) = (each(black), each(white), each(stones));
            let segments = [each(segments[0]), each(segments[1])];
            for lane in 0..S::LANES {
                let uncontested = (black[lane] | white[lane]) & !lanes[lane];
                if uncontested != 0 {
                    let segments = [segments[0][lane], segments[1][lane]];
                    let (more, by) = sum_of_lines(board, segments, stones[lane], [black[lane], white[lane]]);
                    lanes[lane] |= more;
                    lead[lane] = by;
                }
            }
            cells = S::load(&lanes);
        }
        Self { cells, stones: stones & cells, lead }
    }

    /// For each direction the stones of both sides that can jump that way.
    #[inline(always)]
    pub fn jumpers(&self, board: &Board) -> [S; 4] {
        board.jumpers(self.stones, self.stones, self.cells & !self.stones)
    }

    /// A bound on how often a side can still move in the contested parts if the other side never moves there: how many
    /// stones it could ever jump over.
    #[inline(always)]
    pub fn moves_unopposed(&self, board: &Board, side: Side) -> Each<i32> {
        let own = S::splat(board.colour(side));
        let theirs = self.stones & !own;
        let (mut full, mut empty) = (self.stones & own, self.cells & !self.stones);
        let mut taken = S::splat(0);
        loop {
            let before = (full, empty);
            for direction in 0..4 {
                let from = board.jumpers_to(direction, full, theirs, empty);
                let over = board.ahead(direction, 1, from);
                taken = taken | over;
                empty = empty | from | over;
                full = full | board.ahead(direction, 2, from);
            }
            if full.same(before.0) && empty.same(before.1) {
                return counts(taken);
            }
        }
    }
}

/// The sets of the lanes.
#[inline(always)]
pub fn each<S: CellSet>(sets: S) -> Each<u64> {
    let mut each = [0; LANES_MAX];
    sets.store(&mut each);
    each
}

/// The number of cells in each lane.
#[inline(always)]
pub fn counts<S: CellSet>(sets: S) -> Each<i32> {
    let mut counts = [0; LANES_MAX];
    for (count, set) in counts.iter_mut().zip(each(sets)) {
        *count = set.count_ones() as i32;
    }
    counts
}

/// For rows and for columns the first cells of the three on which a jump may one day be possible, either way.
#[inline(always)]
fn possible_segments<S: CellSet>(board: &Board, stones: S) -> [S; 2] {
    let (mut full, mut empty) = (stones, !stones & S::splat(board.cells()));
    let mut jumps = [S::splat(0); 4];
    loop {
        let before = (full, empty);
        // What one direction adds counts for the next at once: any order leads to the least fixpoint, this one sooner.
        for (direction, jumps) in jumps.iter_mut().enumerate() {
            *jumps = board.jumpers_to(direction, full, full, empty);
            empty = empty | *jumps | board.ahead(direction, 1, *jumps);
            full = full | board.ahead(direction, 2, *jumps);
        }
        if full.same(before.0) && empty.same(before.1) {
            let [east, west, south, north] = jumps;
            return [east | board.ahead(1, 2, west), south | board.ahead(3, 2, north)];
        }
    }
}

/// All cells that possible jumps connect with some cells of theirs.
#[inline(always)]
fn parts<S: CellSet>(board: &Board, segments: &[S; 2], mut cells: S) -> S {
    loop {
        let before = cells;
        for (direction, &first) in [0, 2].into_iter().zip(segments) {
            let first =
                first & (cells | board.behind(direction, 1, cells) | board.behind(direction, 2, cells));
            cells = cells | first | board.ahead(direction, 1, first) | board.ahead(direction, 2, first);
        }
        if cells.same(before) {
            return cells;
        }
    }
}

/// Of the parts that only one side could enter now (`entered`, black's first): the cells of those that count as contested all the same, and
/// what the others are worth together, black's moves counted positive.
fn sum_of_lines(board: &Board, segments: [u64; 2], stones: u64, entered: [u64; 2]) -> (u64, i32) {
    let (mut contested, mut sum) = (0, 0);
    for (side, sign, entered, other) in
        [(Side::Black, 1, entered[0], entered[1]), (Side::White, -1, entered[1], entered[0])]
    {
        let mut rest = entered & !other;
        while rest != 0 {
            let part = parts(board, &segments, rest & rest.wrapping_neg());
            rest &= !part;
            match longest_line(board, part, stones & part, side) {
                Some(moves) => sum += sign * moves,
                None => contested |= part,
            }
        }
    }
    (contested, sum)
}

/// The most moves that a side can make in a part in which the other has none now. `None` if the other would get one, or if it takes
/// too long to say.
fn longest_line(board: &Board, cells: u64, stones: u64, side: Side) -> Option<i32> {
    let mut line = Line { board, cells, side, best: 0, steps: LINE_STEPS_MAX };
    line.extend(stones, 0)?;
    Some(line.best)
}

fn any(jumpers: [u64; 4]) -> bool {
    jumpers.iter().fold(0, |all, jumpers| all | jumpers) != 0
}

/// The longest line of moves that one side can make within some cells.
struct Line<'a> {
    board: &'a Board,
    cells: u64,
    side: Side,
    best: i32,
    steps: u32,
}

impl Line<'_> {
    /// Tries all lines from here; `None` as soon as one gives the other side a move, or if there are too many.
    fn extend(&mut self, stones: u64, made: i32) -> Option<()> {
        let Self { board, cells, side, .. } = *self;
        let (own, empty) = (board.colour(side), cells & !stones);
        if made > 0 && any(board.jumpers(stones & !own, stones, empty)) {
            return None;
        }
        self.steps = self.steps.checked_sub(1)?;
        self.best = self.best.max(made);
        for (direction, mut starts) in board.jumpers(stones & own, stones, empty).into_iter().enumerate() {
            while starts != 0 {
                let start = starts & starts.wrapping_neg();
                starts ^= start;
                // A multiple jump gets nowhere that its single jumps, a move each, do not.
                let after =
                    stones ^ start ^ board.ahead(direction, 1, start) | board.ahead(direction, 2, start);
                self.extend(after, made + 1)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grundy_games::konane::{NotationError, Position};

    /// (position, its contested cells as a position, black's lead)
    const KERNELS: &[(&str, &str, i32)] = &[
        ("xo.. x", "#### x", 1),
        ("xo.|##o|##. x", "###|###|### x", 2),
        ("..xo o", "#### o", -1),
        // Nobody ever moves.
        ("xoxo|oxox x", "####|#### x", 0),
        // Each may take the other; alone, beside stones that never move, beside one move of black's and two of white's.
        (".ox. x", ".ox. x", 0),
        (".ox.|####|xoxo x", ".ox.|####|#### x", 0),
        (".ox.|####|xo.#|####|#ox.|###x|###. x", ".ox.|####|####|####|####|####|#### x", -1),
        // White has no move yet, but black's jump brings a stone within reach.
        ("xo.o. x", "xo.o. x", 0),
    ];

    #[test]
    fn kernels_keep_what_is_contested() -> Result<(), NotationError> {
        for (before, after, lead) in KERNELS {
            let (before, after): (Position, Position) = (before.parse()?, after.parse()?);
            let kernel = Kernels::of(before.board(), before.stones());
            let expected =
                Kernels { cells: after.board().cells(), stones: after.stones(), lead: [*lead, 0, 0, 0] };
            assert_eq!(kernel, expected, "{before}");
        }
        Ok(())
    }

    #[test]
    fn unopposed_moves_are_bounded_by_what_can_be_taken() -> Result<(), NotationError> {
        for (text, black, white) in
            [(".ox. x", 1, 1), ("xo..xo x", 1, 1), ("xoxo|ox.x x", 0, 1), ("xo.o. x", 2, 0)]
        {
            let position: Position = text.parse()?;
            let kernel =
                Kernels { cells: position.board().cells(), stones: position.stones(), lead: [0; LANES_MAX] };
            let bounds =
                [Side::Black, Side::White].map(|side| kernel.moves_unopposed(position.board(), side)[0]);
            assert_eq!(bounds, [black, white], "{text}");
        }
        Ok(())
    }
}
