//! Sets of cells: one, or several side by side.

use std::ops::{BitAnd, BitOr, Not, Shl, Shr};

/// What the board's arithmetic is done on: a set of cells, or several of one board side by side, each in a lane of its own.
///
/// Shifts and masks are the same for every position of a board. Done for several at once they are one instruction of a
/// processor that has vectors, and where one position would wait for the step before, several wait together.
///
/// Everything here happens to each lane by itself unless it says otherwise.
pub trait CellSet:
    Copy
    + Not<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// How many sets.
    const LANES: usize;

    /// The same set in every lane.
    fn splat(set: u64) -> Self;

    /// Reads as many sets as there are lanes, the empty set where there are not enough.
    fn load(sets: &[u64]) -> Self;

    /// Writes the sets; there must be room for all lanes.
    fn store(self, sets: &mut [u64]);

    /// Whether the sets are equal in all lanes.
    fn same(self, other: Self) -> bool;

    /// The bits in reverse order.
    fn reversed(self) -> Self;

    /// All bits where this set is less than the other as a number, none elsewhere.
    fn less(self, other: Self) -> Self;

    /// All bits where this set equals the other, none elsewhere.
    fn equal(self, other: Self) -> Self;

    /// This set where the mask has all bits, the other where it has none.
    #[inline(always)]
    fn or_else(self, mask: Self, other: Self) -> Self {
        self & mask | other & !mask
    }
}

impl CellSet for u64 {
    const LANES: usize = 1;

    #[inline(always)]
    fn splat(set: u64) -> Self {
        set
    }

    #[inline(always)]
    fn load(sets: &[u64]) -> Self {
        sets.first().copied().unwrap_or_default()
    }

    #[inline(always)]
    fn store(self, sets: &mut [u64]) {
        sets[0] = self;
    }

    #[inline(always)]
    fn same(self, other: Self) -> bool {
        self == other
    }

    #[inline(always)]
    fn reversed(self) -> Self {
        self.reverse_bits()
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        u64::from(self < other).wrapping_neg()
    }

    #[inline(always)]
    fn equal(self, other: Self) -> Self {
        u64::from(self == other).wrapping_neg()
    }
}
