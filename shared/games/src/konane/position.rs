//! Positions: a board, its stones and the side to move.

use super::board::{Board, Jump};
use crate::plan::Winner;

/// One of the two players.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Black, `x`, on the cells of even `x + y`. Moves first unless told otherwise.
    Black,
    /// White, `o`.
    White,
}

impl Side {
    /// The opponent.
    #[inline(always)]
    pub fn other(self) -> Self {
        match self {
            Self::Black => Self::White,
            Self::White => Self::Black,
        }
    }
}

impl From<Side> for Winner {
    fn from(side: Side) -> Self {
        match side {
            Side::Black => Self::Black,
            Side::White => Self::White,
        }
    }
}

/// A board with stones on some of its cells, and whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    board: Board,
    stones: u64,
    mover: Side,
}

impl Position {
    /// The position with a stone on each cell of `stones`, of the cell's colour. `None` if one is where no cell is.
    pub fn new(board: Board, stones: u64, mover: Side) -> Option<Self> {
        (stones & !board.cells() == 0).then_some(Self { board, stones, mover })
    }

    /// The board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The stones of both sides.
    pub fn stones(&self) -> u64 {
        self.stones
    }

    /// A side's stones.
    pub fn stones_of(&self, side: Side) -> u64 {
        self.stones & self.board.colour(side)
    }

    /// The side to move.
    pub fn mover(&self) -> Side {
        self.mover
    }

    /// Whether the mover has lost: it has no jump.
    pub fn is_lost(&self) -> bool {
        !self.board.can_jump(self.stones, self.mover)
    }

    /// All jumps of the mover.
    pub fn jumps(&self) -> Vec<Jump> {
        let mut jumps = Vec::new();
        self.board.for_each_jump(self.stones, self.mover, |jump| jumps.push(jump));
        jumps
    }

    /// The position after each jump of the mover.
    pub fn successors(&self) -> impl Iterator<Item = Self> {
        let (board, mover) = (self.board, self.mover.other());
        self.jumps().into_iter().map(move |jump| Self { board, stones: jump.stones, mover })
    }
}
