//! The symmetries of a board, and canonical forms under them.

use super::board::Board;
use super::position::Side;

/// The symmetries that map a board's cells to themselves, as lookup tables.
///
/// A symmetry moves every cell to one of its own colour, or every cell to one of the other (on even boards a mirror or a
/// quarter turn). The first kind keeps the mover, the second swaps the two sides and with them the mover, so both
/// keep the mover's fate.
#[derive(Clone, Debug)]
pub struct Symmetries {
    /// All but the identity.
    maps: Box<[Map]>,
    /// Whether one of them swaps the colours; then black is the mover of every canonical form.
    swapping: bool,
}

#[derive(Clone, Debug)]
struct Map {
    /// `images[i][b]`: where the cells of byte `i` go when that byte is `b`.
    images: Box<[[u64; 256]]>,
    swaps: bool,
}

impl Map {
    #[inline(always)]
    fn image(&self, stones: u64) -> u64 {
        let bytes = stones.to_le_bytes();
        self.images.iter().zip(bytes).fold(0, |image, (table, byte)| image | table[usize::from(byte)])
    }
}

impl Symmetries {
    /// The symmetries of a board, at most seven besides the identity.
    pub fn of(board: &Board) -> Self {
        let (width, height) = (board.width(), board.height());
        let area = width * height;
        let mut maps = Vec::new();
        // Bit 0 mirrors the columns, bit 1 the rows, bit 2 then exchanges rows and columns.
        for kind in 1..8u32 {
            if kind & 4 != 0 && width != height {
                continue;
            }
            let image_of = |bit: usize| {
                let (x, y) = (bit % width, bit / width);
                let x = if kind & 1 != 0 { width - 1 - x } else { x };
                let y = if kind & 2 != 0 { height - 1 - y } else { y };
                if kind & 4 != 0 { x * width + y } else { y * width + x }
            };
            let image_of_set = |set: u64| {
                (0..area)
                    .filter(|&bit| set >> bit & 1 != 0)
                    .fold(0, |image, bit| image | 1u64 << image_of(bit))
            };
            if image_of_set(board.cells()) != board.cells() {
                continue;
            }
            let images = (0..area.div_ceil(8))
                .map(|byte| std::array::from_fn(|value| image_of_set((value as u64) << (8 * byte))))
                .collect();
            let swaps = board.colour(Side::Black) >> image_of(0) & 1 == 0;
            maps.push(Map { images, swaps });
        }
        let swapping = maps.iter().any(|map| map.swaps);
        Self { maps: maps.into(), swapping }
    }

    /// The canonical form of some sets of cells (usually one: the stones) and a mover: of all images the one with the
    /// least (mover, sets), black before white.
    #[inline]
    pub fn canonical<const N: usize>(&self, sets: [u64; N], mover: Side) -> ([u64; N], Side) {
        let becomes_black = self.swapping && mover == Side::White;
        // Where black can be had as the mover only the images that give it are candidates.
        let start = if becomes_black { [u64::MAX; N] } else { sets };
        let candidates = self.maps.iter().filter(|map| map.swaps == becomes_black);
        let least = candidates.fold(start, |least, map| least.min(sets.map(|set| map.image(set))));
        (least, if becomes_black { Side::Black } else { mover })
    }

    /// Every image of a position, itself included, with the mover each has.
    pub fn images(&self, stones: u64, mover: Side) -> impl Iterator<Item = (u64, Side)> {
        let moved = move |map: &Map| (map.image(stones), if map.swaps { mover.other() } else { mover });
        std::iter::once((stones, mover)).chain(self.maps.iter().map(moved))
    }
}
