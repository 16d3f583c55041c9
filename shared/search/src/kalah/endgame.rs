//! Exact gains of all boards with few seeds, in memory, built as the search earns them.
//!
//! A board with n seeds in 2h houses is a way to put n seeds into 2h places, and its index is that of the combinatorial number
//! system: with p(i) the seeds in the first i + 1 houses (mover's from its left, then the other's),
//!
//! ```text
//! index = sum over i = 0 .. 2h-2 of C(p(i) + i, i + 1)         0 <= index < C(n + 2h - 1, 2h - 1)
//! ```
//!
//! A level holds the gains of one n, a byte each. Moves that bank a seed lead to a lower level; the others bring seeds nearer
//! to a store, so within a level the recursion ends, after as many moves as the seeds have houses to go.

use grundy_games::kalah::{Board, HOUSES_MAX, MoveTable, Rules};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most entries of a level, a byte each: 16 seeds with six houses a side (13 million). All levels below it take about 1.3
/// times as much again, so a process stays within 50 MB for each board size and rules variant.
const LEVEL_ENTRIES_MAX: u64 = 20_000_000;

/// The most seeds of any level, so that a gain fits an `i8` beside [`UNKNOWN`].
const LEVEL_SEEDS_MAX: u8 = 120;

/// No gain: fewer than minus [`LEVEL_SEEDS_MAX`].
const UNKNOWN: i8 = i8::MIN;

/// A node of the search earns so many entries of the next level: about the time of a node, so that building takes half of
/// the time at most, however early the search ends.
const ENTRIES_PER_NODE: u64 = 2;

/// The levels of each board size and rules variant, from no seeds on.
type Built = BTreeMap<(u8, Rules), Vec<Arc<[i8]>>>;

/// The levels that this process has built, shared by its engines.
static BUILT: Mutex<Built> = Mutex::new(BTreeMap::new());

/// Gains of the boards of one size and rules variant with up to some number of seeds.
pub struct Endgames {
    /// `choose[i][p]` = C(p + i, i + 1).
    choose: Box<[[u32; LEVEL_SEEDS_MAX as usize + 1]]>,
    /// Indexed by the number of seeds.
    levels: Vec<Arc<[i8]>>,
    houses: u8,
    rules: Rules,
    /// No level of more seeds is of use or allowed.
    seeds_max: u8,
    /// Nodes at which the next level is earned.
    next_at: u64,
}

impl Endgames {
    /// No levels yet; up to `seeds_max` seeds they may be built.
    pub fn new(table: &MoveTable, seeds_max: u8) -> Self {
        let houses = table.houses();
        let places = 2 * u64::from(houses);
        let fits = |&seeds: &u8| boards(u64::from(seeds), places) <= LEVEL_ENTRIES_MAX;
        let seeds_max = (0..=seeds_max.min(LEVEL_SEEDS_MAX)).take_while(fits).last().unwrap_or(0);
        let choose = (0..places - 1)
            .map(|i| {
                std::array::from_fn(|p| {
                    // Prefix sums stay within `seeds_max`; larger ones would overflow and are never looked up.
                    if p > usize::from(seeds_max) { 0 } else { choose(p as u64 + i, i + 1) as u32 }
                })
            })
            .collect();
        let mut endgames =
            Self { choose, levels: Vec::new(), houses, rules: table.rules(), seeds_max, next_at: 0 };
        endgames.next_at = endgames.price();
        endgames
    }

    /// The exact gain of a board, if its level is built.
    pub fn gain(&self, board: Board, seeds: i16) -> Option<i16> {
        let level = self.levels.get(seeds as usize)?;
        Some(i16::from(level[self.index(board)]))
    }

    /// Builds the levels that a search of `nodes` nodes has earned, or takes over what another engine built.
    pub fn earn(&mut self, nodes: u64, table: &MoveTable) {
        while nodes >= self.next_at && self.levels.len() <= usize::from(self.seeds_max) {
            self.grow(table);
            self.next_at = self.next_at.saturating_add(self.price());
        }
    }

    /// The nodes that the next level costs.
    fn price(&self) -> u64 {
        boards(self.levels.len() as u64, 2 * u64::from(self.houses)) / ENTRIES_PER_NODE
    }

    /// Adds the next level.
    fn grow(&mut self, table: &MoveTable) {
        let seeds = self.levels.len();
        let shared = |built: &Built| {
            built.get(&(self.houses, self.rules)).and_then(|levels| levels.get(seeds)).cloned()
        };
        // A level is complete before it is shared, so a thread that died while holding the lock broke nothing.
        let found = shared(&BUILT.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(level) = found {
            self.levels.push(level);
            return;
        }
        let level = self.build(seeds as u8, table);
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        let levels = built.entry((self.houses, self.rules)).or_default();
        if levels.len() == seeds {
            levels.push(Arc::clone(&level));
        }
        self.levels.push(level);
    }

    /// Works out all gains of one level.
    fn build(&self, seeds: u8, table: &MoveTable) -> Arc<[i8]> {
        let mut level = vec![UNKNOWN; boards(u64::from(seeds), 2 * u64::from(self.houses)) as usize];
        for_each_board(self.houses, seeds, &mut |board| {
            self.solve(board, i16::from(seeds), table, &mut level);
        });
        level.into()
    }

    /// A board's gain, from the level being built or below it.
    fn solve(&self, board: Board, seeds: i16, table: &MoveTable, level: &mut [i8]) -> i8 {
        let index = self.index(board);
        if level[index] != UNKNOWN {
            return level[index];
        }
        let mut best = if board.is_over() { board.swept() as i8 } else { UNKNOWN };
        for (_, played) in table.moves(board) {
            let below = seeds - i16::from(played.banked);
            let gain = match self.levels.get(below as usize) {
                Some(lower) => lower[self.index(played.board)],
                None => self.solve(played.board, below, table, level),
            };
            // At most the seeds in play on either side, so these stay in range.
            best = best.max(played.banked as i8 + if played.again { gain } else { -gain });
        }
        level[index] = best;
        best
    }

    /// The place of a board in its level.
    fn index(&self, board: Board) -> usize {
        let houses = usize::from(self.houses);
        let (mut prefix, mut index) = (0, 0);
        let (mut mine, mut theirs) = (board.mine, board.theirs);
        for row in &self.choose[..houses] {
            prefix += (mine & 0xff) as usize;
            index += row[prefix];
            mine >>= 8;
        }
        for row in &self.choose[houses..] {
            prefix += (theirs & 0xff) as usize;
            index += row[prefix];
            theirs >>= 8;
        }
        index as usize
    }
}

/// Calls `visit` with every board of `seeds` seeds in play.
fn for_each_board(houses: u8, seeds: u8, visit: &mut dyn FnMut(Board)) {
    let houses = houses.min(HOUSES_MAX);
    place(houses, 0, seeds, Board::default(), visit);
}

/// Puts the seeds that are left into the houses from `place` on, in every way.
fn place(houses: u8, at: u8, left: u8, board: Board, visit: &mut dyn FnMut(Board)) {
    let add = |seeds: u8| {
        let mut board = board;
        if at < houses {
            board.mine |= u64::from(seeds) << (8 * u32::from(at));
        } else {
            board.theirs |= u64::from(seeds) << (8 * u32::from(at - houses));
        }
        board
    };
    if at + 1 == 2 * houses {
        return visit(add(left));
    }
    for seeds in 0..=left {
        place(houses, at + 1, left - seeds, add(seeds), visit);
    }
}

/// The number of boards with this many seeds in this many houses.
fn boards(seeds: u64, places: u64) -> u64 {
    choose(seeds + places - 1, places - 1)
}

/// A binomial coefficient, saturating.
fn choose(n: u64, k: u64) -> u64 {
    if k > n {
        return 0;
    }
    (0..k.min(n - k))
        .try_fold(1u64, |product, i| Some(product.checked_mul(n - i)? / (i + 1)))
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(houses: u8, rules: Rules, seeds_max: u8) -> (Endgames, MoveTable) {
        let table = MoveTable::new(houses, rules);
        let mut endgames = Endgames::new(&table, seeds_max);
        endgames.earn(u64::MAX, &table);
        (endgames, table)
    }

    #[test]
    fn indices_are_a_bijection() {
        for houses in 1..=4 {
            let (endgames, _) = full(houses, Rules::Standard, 6);
            for seeds in 0..=6 {
                let mut seen = vec![0; boards(seeds, 2 * u64::from(houses)) as usize];
                for_each_board(houses, seeds as u8, &mut |board| seen[endgames.index(board)] += 1);
                assert!(seen.iter().all(|&times| times == 1), "{houses} houses, {seeds} seeds: {seen:?}");
            }
        }
    }

    #[test]
    fn every_gain_is_the_best_of_its_moves() {
        for rules in [Rules::Standard, Rules::EmptyCapture] {
            let (endgames, table) = full(3, rules, 9);
            for seeds in 0..=9 {
                for_each_board(3, seeds, &mut |board| {
                    let gain =
                        |board: Board| endgames.gain(board, board.seeds()).expect("all levels are built");
                    let best = table
                        .moves(board)
                        .map(|(_, p)| {
                            i16::from(p.banked) + if p.again { gain(p.board) } else { -gain(p.board) }
                        })
                        .max();
                    assert_eq!(gain(board), best.unwrap_or(board.swept()), "{rules} {board:?}");
                });
            }
        }
    }

    #[test]
    fn a_level_is_built_only_when_it_is_earned() {
        let table = MoveTable::new(6, Rules::Standard);
        let mut endgames = Endgames::new(&table, 30);
        endgames.earn(1000, &table);
        let levels = endgames.levels.len();
        assert!((1..10).contains(&levels), "{levels} levels for 1000 nodes");
        assert_eq!(endgames.seeds_max, 16);
    }
}
