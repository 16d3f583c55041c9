//! Jumps, and a table that finds the legal ones of a board without trying each.

use super::geometry::{Geometry, HOLES_MAX, Hole};

/// A peg at `from` jumps over the peg at `over` into the empty hole `to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Jump {
    /// Where the peg starts.
    pub from: Hole,
    /// The peg that is removed.
    pub over: Hole,
    /// Where the peg lands.
    pub to: Hole,
}

impl Jump {
    /// The three holes, all of which the jump changes: a board XOR this is the board after the jump, or before it.
    pub fn changes(self) -> u64 {
        self.from.board() | self.over.board() | self.to.board()
    }

    /// Whether the board allows the jump.
    pub fn is_legal(self, board: u64) -> bool {
        board & self.changes() == self.from.board() | self.over.board()
    }
}

/// Words of a set of jumps. Each of 64 holes is jumped over in at most six directions, so 384 bits hold any board's jumps.
pub const JUMP_WORDS: usize = HOLES_MAX * 6 / 64;

/// The legal jumps of boards, eight holes at a time.
///
/// For each byte of a board and each value of it, the table keeps the set of jumps that this byte does not forbid; a jump is
/// legal when no byte forbids it. Bit `j % 64` of word `j / 64` of a set stands for jump `j` of [`Geometry::jumps`].
#[derive(Clone, Debug)]
pub struct JumpTable {
    /// `allowed[byte * 256 + value]`.
    allowed: Vec<[u64; JUMP_WORDS]>,
}

impl JumpTable {
    /// The table of a board shape.
    pub fn new(geometry: &Geometry) -> Self {
        let jumps = geometry.jumps();
        let mut allowed = vec![[0; JUMP_WORDS]; geometry.len().div_ceil(8) * 256];
        for (row, set) in allowed.iter_mut().enumerate() {
            let (shift, value) = (row / 256 * 8, row as u64 % 256);
            for (index, jump) in jumps.iter().enumerate() {
                let seen = 0xff << shift & jump.changes();
                if value << shift & seen == (jump.from.board() | jump.over.board()) & seen {
                    set[index / 64] |= 1 << (index % 64);
                }
            }
        }
        Self { allowed }
    }

    /// The set of the board's legal jumps.
    #[inline]
    pub fn legal(&self, board: u64) -> [u64; JUMP_WORDS] {
        let mut legal = [u64::MAX; JUMP_WORDS];
        for (byte, sets) in self.allowed.chunks_exact(256).enumerate() {
            let set = &sets[(board >> (8 * byte)) as usize & 0xff];
            legal.iter_mut().zip(set).for_each(|(legal, allowed)| *legal &= allowed);
        }
        legal
    }
}
