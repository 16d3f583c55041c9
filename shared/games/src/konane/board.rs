//! The board: which cells there are, and all jumps at once by shifts of 64-bit sets.

use super::cellset::CellSet;
use super::position::Side;

/// The most cells of a board's bounding rectangle: one bit each in a `u64`.
pub const CELLS_MAX: usize = 64;

/// A rectangle of cells, some of which may be missing. Bit `y * width + x` is the cell in column `x`, row `y`, both from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Board {
    width: u8,
    height: u8,
    cells: u64,
    /// Cells of even `x + y`.
    black: u64,
    /// How far apart neighbours in a column are in bits; those in a row are 1 apart. 1 on a board too flat for a jump along a
    /// column, because twice its width overflows a shift; there is no `room` for such a jump.
    stride: u32,
    /// For each direction (east, west, south, north) the places from which two steps stay on the rectangle.
    room: [u64; 4],
}

/// One jump, of one or more captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jump {
    /// The bit number the stone leaves.
    pub from: u8,
    /// The bit number it lands on.
    pub to: u8,
    /// All stones afterwards.
    pub stones: u64,
}

impl Board {
    /// The board with these cells; bits outside the rectangle are ignored. `None` for an empty rectangle or one of more
    /// than [`CELLS_MAX`] cells.
    pub fn new(width: usize, height: usize, cells: u64) -> Option<Self> {
        let area = width.checked_mul(height).filter(|area| (1..=CELLS_MAX).contains(area))?;
        let (mut black, mut room) = (0, [0u64; 4]);
        for bit in 0..area {
            let (x, y) = (bit % width, bit / width);
            black |= u64::from((x + y) % 2 == 0) << bit;
            let fits = [x + 2 < width, x >= 2, y + 2 < height, y >= 2];
            for (room, fits) in room.iter_mut().zip(fits) {
                *room |= u64::from(fits) << bit;
            }
        }
        Some(Self {
            width: width as u8,
            height: height as u8,
            cells: cells & (u64::MAX >> (CELLS_MAX - area)),
            black,
            stride: if height < 3 { 1 } else { width as u32 },
            room,
        })
    }

    /// The whole rectangle as a board.
    pub fn full(width: usize, height: usize) -> Option<Self> {
        Self::new(width, height, u64::MAX)
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }

    /// The cells there are.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// The places of a side's colour, missing cells included.
    pub fn colour(&self, side: Side) -> u64 {
        match side {
            Side::Black => self.black,
            Side::White => !self.black,
        }
    }

    /// The places from which two steps in this direction (0 to 3: east, west, south, north) stay on the rectangle.
    #[inline(always)]
    pub fn room(&self, direction: usize) -> u64 {
        self.room[direction]
    }

    /// A set moved by `steps` cells in a direction. What leaves its row is not masked: combine with [`Board::room`].
    #[inline(always)]
    pub fn ahead<S: CellSet>(&self, direction: usize, steps: u32, set: S) -> S {
        let by = steps * if direction < 2 { 1 } else { self.stride };
        if direction.is_multiple_of(2) { set << by } else { set >> by }
    }

    /// The opposite of [`Board::ahead`]: bit `i` says whether the set has the cell `steps` ahead of `i`.
    #[inline(always)]
    pub fn behind<S: CellSet>(&self, direction: usize, steps: u32, set: S) -> S {
        self.ahead(direction ^ 1, steps, set)
    }

    /// For each direction the stones of `movers` that can jump that way, over `enemies` into `empty`.
    #[inline(always)]
    pub fn jumpers<S: CellSet>(&self, movers: S, enemies: S, empty: S) -> [S; 4] {
        let mut jumpers = [movers; 4];
        for (direction, jumpers) in jumpers.iter_mut().enumerate() {
            *jumpers = self.jumpers_to(direction, movers, enemies, empty);
        }
        jumpers
    }

    /// The stones of `movers` that can jump in this direction, over `enemies` into `empty`.
    #[inline(always)]
    pub fn jumpers_to<S: CellSet>(&self, direction: usize, movers: S, enemies: S, empty: S) -> S {
        movers
            & S::splat(self.room[direction])
            & self.behind(direction, 1, enemies)
            & self.behind(direction, 2, empty)
    }

    /// For each direction the side's stones that can jump that way.
    #[inline(always)]
    pub fn jumpers_of(&self, stones: u64, side: Side) -> [u64; 4] {
        // No mask by colour is needed for the enemy: a mover's neighbours are of the other colour.
        self.jumpers(stones & self.colour(side), stones, self.cells & !stones)
    }

    /// Whether the side has a jump.
    #[inline]
    pub fn can_jump(&self, stones: u64, side: Side) -> bool {
        self.jumpers_of(stones, side).iter().any(|&jumpers| jumpers != 0)
    }

    /// Calls `visit` with every jump of the side, multiple jumps once for each stop. No two leave the same stones.
    #[inline]
    pub fn for_each_jump(&self, stones: u64, side: Side, mut visit: impl FnMut(Jump)) {
        let jumpers = self.jumpers_of(stones, side);
        let empty = self.cells & !stones;
        for (direction, mut starts) in jumpers.into_iter().enumerate() {
            while starts != 0 {
                let start = starts & starts.wrapping_neg();
                starts ^= start;
                let (mut at, mut left) = (start, stones ^ start);
                loop {
                    left ^= self.ahead(direction, 1, at);
                    at = self.ahead(direction, 2, at);
                    visit(Jump {
                        from: start.trailing_zeros() as u8,
                        to: at.trailing_zeros() as u8,
                        stones: left | at,
                    });
                    let again = self.jumpers(at, stones, empty)[direction];
                    if again == 0 {
                        break;
                    }
                }
            }
        }
    }
}
