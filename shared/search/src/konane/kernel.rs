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

use grundy_games::konane::{Board, Side};

/// A position up to what cannot matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The cells of the contested parts.
    pub cells: u64,
    /// The stones on them.
    pub stones: u64,
    /// Black's moves in uncontested parts minus white's.
    pub lead: i32,
}

/// Positions of a part after which it counts as contested though it may not be. Nearly all uncontested parts take a few
/// dozen; a part that both sides could enter can take thousands to say so.
const LINE_STEPS_MAX: u32 = 200;

impl Kernel {
    /// The kernel of a position.
    pub fn of(board: &Board, stones: u64) -> Self {
        let jumps = possible_jumps(board, stones);
        let mut rest = covered(board, &jumps);
        let (mut cells, mut lead) = (0, 0);
        while rest != 0 {
            let part = part(board, &jumps, rest & rest.wrapping_neg());
            rest &= !part;
            match integer_value(board, part, stones & part) {
                Some(moves) => lead += moves,
                None => cells |= part,
            }
        }
        Self { cells, stones: stones & cells, lead }
    }

    /// For each direction the side's stones that can jump that way.
    pub fn jumpers(&self, board: &Board, side: Side) -> [u64; 4] {
        board.jumpers(self.stones & board.colour(side), self.stones, self.cells & !self.stones)
    }

    /// A bound on how often a side can still move in the contested parts if the other side never moves there: how many
    /// stones it could ever jump over.
    pub fn moves_unopposed(&self, board: &Board, side: Side) -> i32 {
        let theirs = self.stones & !board.colour(side);
        let (mut full, mut empty) = (self.stones & board.colour(side), self.cells & !self.stones);
        let mut taken = 0;
        loop {
            let before = (full, empty);
            for direction in 0..4 {
                let from = board.jumpers_to(direction, full, theirs, empty);
                let over = board.ahead(direction, 1, from);
                taken |= over;
                empty |= from | over;
                full |= board.ahead(direction, 2, from);
            }
            if (full, empty) == before {
                return taken.count_ones() as i32;
            }
        }
    }
}

/// For each direction the cells from which a jump may one day be possible.
fn possible_jumps(board: &Board, stones: u64) -> [u64; 4] {
    let (mut full, mut empty) = (stones, board.cells() & !stones);
    let mut jumps = [0; 4];
    loop {
        let before = (full, empty);
        // What one direction adds counts for the next at once: any order leads to the least fixpoint, this one sooner.
        for (direction, jumps) in jumps.iter_mut().enumerate() {
            *jumps = board.jumpers_to(direction, full, full, empty);
            empty |= *jumps | board.ahead(direction, 1, *jumps);
            full |= board.ahead(direction, 2, *jumps);
        }
        if (full, empty) == before {
            return jumps;
        }
    }
}

/// The cells of the possible jumps.
#[inline]
fn covered(board: &Board, jumps: &[u64; 4]) -> u64 {
    jumps.iter().enumerate().fold(0, |cells, (direction, &from)| {
        cells | from | board.ahead(direction, 1, from) | board.ahead(direction, 2, from)
    })
}

/// All cells that possible jumps connect with a covered cell.
fn part(board: &Board, jumps: &[u64; 4], mut cells: u64) -> u64 {
    loop {
        let before = cells;
        for (direction, &from) in jumps.iter().enumerate() {
            let from = from & (cells | board.behind(direction, 1, cells) | board.behind(direction, 2, cells));
            cells |= from | board.ahead(direction, 1, from) | board.ahead(direction, 2, from);
        }
        if cells == before {
            return cells;
        }
    }
}

/// The integer that a part is worth in which one side will never have a move, black's moves counted positive. `None` for a
/// contested part, or if it takes too long to say.
fn integer_value(board: &Board, cells: u64, stones: u64) -> Option<i32> {
    let can = |side: Side| any(board.jumpers(stones & board.colour(side), stones, cells & !stones));
    let (side, sign) = match (can(Side::Black), can(Side::White)) {
        (false, false) => return Some(0),
        (true, false) => (Side::Black, 1),
        (false, true) => (Side::White, -1),
        (true, true) => return None,
    };
    let mut line = Line { board, cells, side, best: 0, steps: LINE_STEPS_MAX };
    line.extend(stones, 0)?;
    Some(sign * line.best)
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
            let kernel = Kernel::of(before.board(), before.stones());
            let expected = Kernel { cells: after.board().cells(), stones: after.stones(), lead: *lead };
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
            let kernel = Kernel { cells: position.board().cells(), stones: position.stones(), lead: 0 };
            let bounds =
                [Side::Black, Side::White].map(|side| kernel.moves_unopposed(position.board(), side));
            assert_eq!(bounds, [black, white], "{text}");
        }
        Ok(())
    }
}
