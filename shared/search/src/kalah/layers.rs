//! Exact gains of all boards with few seeds in play: an endgame database, a layer for each number of seeds.
//!
//! A layer of n seeds holds the boards on which both sides have seeds, the mover m of them and the other n - m, for m = 1 .. n-1, one
//! block after the other. In a block the side with more seeds is the row (the mover's if both have as many), the other side
//! the column, each by its number among the sides of as many seeds ([`Sides`]):
//!
//! ```text
//! entries of a layer    sum over m of C(m + h-1, h-1) C(n-m + h-1, h-1) = C(n + 2h-1, 2h-1) - 2 C(n + h-1, h-1) for n > 0
//! entry                 128 + the mover's gain, a byte
//! ```

use super::sides::Sides;
use bytes::Bytes;
use grundy_games::kalah::{Board, MoveTable};

/// The most seeds of a layer: a gain fits a byte.
pub const LAYER_SEEDS_MAX: u8 = 120;

/// What is added to a gain in an entry.
pub const BIAS: i16 = 128;

/// The gain that an entry tells.
pub fn gain(entry: u8) -> i16 {
    i16::from(entry) - BIAS
}

/// Where a board's entry is.
#[derive(Clone)]
pub struct Index {
    sides: Sides,
    /// Where blocks start, by seeds in play and the mover's.
    starts: Vec<Vec<usize>>,
}

/// Layers from the fewest seeds on. A clone shares their bytes.
#[derive(Clone)]
pub struct Layers {
    index: Index,
    /// Those of 0 and 1 seeds are empty.
    layers: Vec<Bytes>,
}

impl Index {
    /// The index of layers of up to `seeds` seeds, at most [`LAYER_SEEDS_MAX`], with so many houses a side.
    pub fn new(houses: u8, seeds: u8) -> Self {
        let sides = Sides::new(houses, seeds.min(LAYER_SEEDS_MAX));
        let starts = (0..=sides.seeds_max()).map(|seeds| {
            let mut start = 0;
            (0..=seeds)
                .map(|mine| {
                    let here = start;
                    if mine > 0 && mine < seeds {
                        start += sides.count(mine) * sides.count(seeds - mine);
                    }
                    here
                })
                .collect()
        });
        Self { starts: starts.collect(), sides }
    }

    /// The numbering of sides.
    pub fn sides(&self) -> &Sides {
        &self.sides
    }

    /// The most seeds of a layer.
    pub fn seeds_max(&self) -> usize {
        self.starts.len() - 1
    }

    /// Entries of the layer of so many seeds.
    pub fn len(&self, seeds: usize) -> usize {
        self.starts.get(seeds).and_then(|starts| starts.last()).copied().unwrap_or(0)
    }

    /// Where the block starts in which the mover has `mine` of the seeds.
    pub(super) fn start(&self, seeds: usize, mine: usize) -> usize {
        self.starts[seeds][mine]
    }

    /// Where the entries of boards lie of which one side is fixed, the mover's or the other's, by the number of the other side: a start
    /// and a stride. Both sides have seeds.
    pub(super) fn line(&self, fixed: Fixed, vary_seeds: usize) -> (usize, usize) {
        let Fixed { seeds, number, moves } = fixed;
        let total = seeds + vary_seeds;
        let block = self.start(total, if moves { seeds } else { vary_seeds });
        // With as many seeds on both sides the mover's is the row.
        if seeds > vary_seeds || seeds == vary_seeds && moves {
            (block + number * self.sides.count(vary_seeds), 1)
        } else {
            (block + number, self.sides.count(seeds))
        }
    }

    /// The place of a board in its layer. Both sides have seeds, `mine` and `theirs`.
    pub fn place(&self, board: Board, mine: usize, theirs: usize) -> usize {
        let fixed = Fixed { seeds: mine, number: self.sides.number(board.mine), moves: true };
        let (start, stride) = self.line(fixed, theirs);
        start + self.sides.number(board.theirs) * stride
    }

    /// The board at a place of a layer; `None` past its end.
    pub fn board(&self, seeds: usize, place: usize) -> Option<Board> {
        let starts = self.starts.get(seeds).filter(|_| place < self.len(seeds))?;
        let mine = starts.partition_point(|start| *start <= place) - 1;
        // Blocks of no entries share their start with the next one; the last of them has some.
        let theirs = seeds - mine;
        let (rows, columns) = (mine.max(theirs), mine.min(theirs));
        let (row, column) = {
            let place = place - starts[mine];
            (place / self.sides.count(columns), place % self.sides.count(columns))
        };
        let (row, column) = (self.sides.side(rows, row), self.sides.side(columns, column));
        let (mine, theirs) = if mine >= theirs { (row, column) } else { (column, row) };
        Some(Board { mine, theirs })
    }
}

/// A side that stays the same.
#[derive(Clone, Copy)]
pub(super) struct Fixed {
    /// Its seeds.
    pub(super) seeds: usize,
    /// Its number.
    pub(super) number: usize,
    /// Whether it is to move.
    pub(super) moves: bool,
}

impl Layers {
    /// No layers yet.
    pub fn new(index: Index) -> Self {
        Self { index, layers: Vec::new() }
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Adds the next layer, built or mapped from a file. False if it has another number of bytes than [`Index::len`] says, or is past the
    /// index.
    pub fn push(&mut self, layer: Bytes) -> bool {
        let seeds = self.layers.len();
        let fits = seeds <= self.index.seeds_max() && layer.len() == self.index.len(seeds);
        if fits {
            self.layers.push(layer);
        }
        fits
    }

    /// How many layers there are: those of fewer seeds than this.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// A layer's entries.
    pub fn layer(&self, seeds: usize) -> &[u8] {
        &self.layers[seeds]
    }

    /// The same, shared.
    pub fn layer_bytes(&self, seeds: usize) -> Bytes {
        self.layers[seeds].clone()
    }

    /// The entry of a board on which both sides have seeds, if the layer is there.
    pub fn entry(&self, board: Board) -> Option<&u8> {
        let (mine, theirs) = (board.my_seeds() as usize, board.their_seeds() as usize);
        self.layers.get(mine + theirs)?.get(self.index.place(board, mine, theirs))
    }

    /// The mover's gain, if the layer is there.
    pub fn gain(&self, board: Board) -> Option<i16> {
        if board.is_over() {
            return Some(board.swept());
        }
        self.entry(board).map(|entry| gain(*entry))
    }

    /// Whether the entry at a place of a layer is what the rules make of it, if those of its successors are right. `None` past the end.
    pub fn is_right(&self, moves: &MoveTable, seeds: usize, place: usize) -> Option<bool> {
        let board = self.index.board(seeds, place)?;
        let of_moves = moves.moves(board).map(|(_, played)| {
            let gain = self.gain(played.board)?;
            Some(i16::from(played.banked) + if played.again { gain } else { -gain })
        });
        let best = of_moves.collect::<Option<Vec<i16>>>()?.into_iter().max();
        Some(best == self.gain(board))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fill::Filler;
    use super::*;
    use grundy_games::kalah::Rules;

    fn build(houses: u8, rules: Rules, seeds: u8) -> (Layers, MoveTable) {
        let moves = MoveTable::new(houses, rules);
        let index = Index::new(houses, seeds);
        let filler = Filler::new(&index, &moves, seeds);
        let mut layers = Layers::new(index);
        for seeds in 0..=usize::from(seeds) {
            let mut entries = vec![0; layers.index().len(seeds)];
            assert!(filler.fill(&layers, &mut entries, 2, &|_| true));
            assert!(layers.push(entries.into()));
        }
        (layers, moves)
    }

    #[test]
    fn places_are_a_bijection() {
        for houses in 1..=4 {
            let index = Index::new(houses, 9);
            for seeds in 0..=9 {
                for place in 0..index.len(seeds) {
                    let board = index.board(seeds, place).expect("a place of the layer");
                    let (mine, theirs) = (board.my_seeds() as usize, board.their_seeds() as usize);
                    assert!(mine > 0 && theirs > 0 && mine + theirs == seeds, "{board:?}");
                    assert_eq!(index.place(board, mine, theirs), place, "{board:?}");
                }
                assert_eq!(index.board(seeds, index.len(seeds)), None);
            }
        }
    }

    /// The example of docs/formats.md: South's 0,1,0,2,0,1 to move against North's 3,0,0,0,1,0.
    #[test]
    fn the_documented_board_is_where_the_documents_say() {
        let side = |seeds: [u64; 6]| seeds.iter().rev().fold(0, |side, seeds| side << 8 | seeds);
        let board = Board { mine: side([0, 1, 0, 2, 0, 1]), theirs: side([3, 0, 0, 0, 1, 0]) };
        let (layers, _) = build(6, Rules::Standard, 8);
        let sides = layers.index().sides();
        assert_eq!((sides.number(board.mine), sides.number(board.theirs), sides.count(4)), (38, 90, 126));
        assert_eq!(layers.index().start(8, 4), 28_566);
        assert_eq!(layers.index().place(board, 4, 4), 33_444);
        assert_eq!((layers.layer(8)[33_444], layers.gain(board)), (134, Some(6)));
    }

    #[test]
    fn every_gain_is_the_best_of_its_moves() {
        for rules in [Rules::Standard, Rules::EmptyCapture] {
            for (houses, seeds) in [(1, 20), (2, 20), (3, 16), (4, 10), (5, 8), (6, 8), (8, 5)] {
                let (layers, moves) = build(houses, rules, seeds);
                for seeds in 0..layers.len() {
                    for place in 0..layers.index().len(seeds) {
                        let right = layers.is_right(&moves, seeds, place);
                        let board = layers.index().board(seeds, place);
                        assert_eq!(right, Some(true), "{houses} {rules}: {place} of {seeds}, {board:?}");
                    }
                }
            }
        }
    }
}
