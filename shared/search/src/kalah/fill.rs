//! Filling a layer of the endgame database from those of fewer seeds.
//!
//! The boards of a layer fall into *splits*: one side has s seeds and the other t <= s, either may be to move. A move either takes
//! seeds out of play, to a layer that is there, or moves seeds along the mover's own side, which stays in the split, passes the turn
//! and makes the number of the mover's side smaller. So splits need none of each other, and within one the rows go in order:
//! row a, the side of s seeds, first with a to move against every other side b, then with each b to move against a. What a
//! moves to in the split is in rows before a; what b moves to is in row a with a to move, just found.
//!
//! Along a row one side is fixed, so the entries that a move leads to lie on a line with a start and a stride, by the number of the
//! side that varies. For the moves of a the lines are the same for all b; those of each b are found beforehand, once for all rows: a
//! code for the line and the number on it.

use super::layers::{BIAS, Fixed, Index, Layers};
use super::sides::{Sides, choose};
use grundy_games::kalah::{Board, MoveTable, Rules};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What does not depend on the layer: how sides change when seeds are sown into them or taken from them, and by their own moves.
pub struct Filler {
    moves: MoveTable,
    rules: Rules,
    sides: Vec<SidesOf>,
}

/// All sides of so many seeds.
struct SidesOf {
    sides: Vec<u64>,
    /// The number of the side with a seed more in each of the first k houses, at `[k - 1][number]`, as far as sides are numbered.
    sown: Vec<Vec<u32>>,
    /// The number of the side with house j emptied, at `[j][number]`.
    robbed: Vec<Vec<u32>>,
    /// Where the moves of a side end in `moves`.
    ends: Vec<u32>,
    moves: Vec<Move>,
}

/// A move of a side as far as it does not depend on the other side: the code of a line and a number on it.
///
/// ```text
/// bits  0..27   the number of the mover's side after the move, or for `LAP` the house
/// bits 27..32   the code
/// ```
#[derive(Clone, Copy)]
struct Move(u32);

const CODE_SHIFT: u32 = 27;

/// Codes. The seeds stay on the mover's side.
const INSIDE: usize = 0;
/// The last seed goes to the store.
const AGAIN: usize = 1;
/// The last seed captures from house j of the other, if that has something to capture: `CAPTURE + j`.
const CAPTURE: usize = 2;
/// The same move if it has not, so that the seed stays: `STAY + j`.
const STAY: usize = 10;
/// A seed each goes to the first k houses of the other: `BEYOND + k - 1`.
const BEYOND: usize = 18;
/// All around the board: worked out anew for each board.
const LAP: usize = 26;
const CODES: usize = 27;

impl Move {
    fn new(code: usize, number: usize) -> Self {
        Self(number as u32 | (code as u32) << CODE_SHIFT)
    }

    fn code(self) -> usize {
        (self.0 >> CODE_SHIFT) as usize
    }

    fn number(self) -> usize {
        (self.0 & ((1 << CODE_SHIFT) - 1)) as usize
    }
}

/// Where the gains of a move's successors are, and what the mover's own is then: `add` plus or minus the entry.
#[derive(Clone, Copy)]
struct Line<'a> {
    entries: &'a [u8],
    start: usize,
    stride: usize,
    /// All ones if the other side moves next.
    negate: u8,
    add: u8,
}

impl Line<'_> {
    /// No such move: less than any gain.
    const NONE: Line<'static> = Line { entries: &[0], start: 0, stride: 0, negate: 0, add: 0 };

    /// The same gain whatever the number: the game is over.
    fn over(gain: i32) -> Line<'static> {
        Line { entries: &[BIAS as u8], start: 0, stride: 0, negate: 0, add: gain as u8 }
    }

    fn at(&self, number: usize) -> u8 {
        let entry = self.entries[self.start + number * self.stride];
        // Biased by half of the range, an entry is negated like any other byte.
        self.add.wrapping_add((entry ^ self.negate).wrapping_sub(self.negate))
    }
}

impl SidesOf {
    fn new(sides: &Sides, seeds: usize, moves: &MoveTable) -> Self {
        let all = sides.all(seeds);
        let houses = usize::from(sides.houses());
        let map =
            |change: &dyn Fn(u64) -> u64| all.iter().map(|side| sides.number(change(*side)) as u32).collect();
        let ones = |k: usize| 0x0101_0101_0101_0101u64 >> (64 - 8 * k);
        let sown = (1..=houses).take_while(|k| seeds + k <= sides.seeds_max());
        let sown = sown.map(|k| map(&|side| side + ones(k))).collect();
        let robbed = (0..houses).map(|j| map(&|side| side & !(0xff << (8 * j)))).collect();
        let mut of = Self { sown, robbed, ends: Vec::new(), moves: Vec::new(), sides: Vec::new() };
        for side in &all {
            for house in (0..houses).rev() {
                of.add_moves(sides, *side, house, moves.rules());
            }
            of.ends.push(of.moves.len() as u32);
        }
        of.sides = all;
        of
    }

    /// Adds what a house of a side can do.
    fn add_moves(&mut self, sides: &Sides, side: u64, house: usize, rules: Rules) {
        let houses = usize::from(sides.houses());
        let seeds = (side >> (8 * house)) as usize & 0xff;
        let to_store = houses - house;
        let emptied = side & !(0xff << (8 * house));
        let ones = |k: usize| if k == 0 { 0 } else { 0x0101_0101_0101_0101u64 >> (64 - 8 * k) };
        // A seed each in the houses after this one, at most to the end of the side.
        let sown = |k: usize| emptied + (ones(k) << (8 * house) << 8);
        let mut add = |code, side| self.moves.push(Move::new(code, sides.number(side)));
        match seeds {
            0 => {}
            _ if seeds < to_store => {
                let last = house + seeds;
                if side >> (8 * last) & 0xff == 0 {
                    let opposite = houses - 1 - last;
                    add(CAPTURE + opposite, sown(seeds - 1));
                    if rules == Rules::Standard {
                        add(STAY + opposite, sown(seeds));
                    }
                } else {
                    add(INSIDE, sown(seeds));
                }
            }
            _ if seeds == to_store => add(AGAIN, sown(to_store - 1)),
            _ if seeds <= to_store + houses => add(BEYOND + seeds - to_store - 1, sown(to_store - 1)),
            _ => self.moves.push(Move::new(LAP, house)),
        }
    }

    fn moves_of(&self, number: usize) -> &[Move] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.moves[start..self.ends[number] as usize]
    }
}

/// One split while it is filled: its blocks, by rows. With as many seeds on both sides there is only one block.
struct Split<'a> {
    /// Seeds of the rows' side and of the columns'.
    seeds: (usize, usize),
    /// With the rows' side to move.
    row_moves: &'a mut [u8],
    /// With the columns' side to move; empty if both sides have as many seeds.
    column_moves: &'a mut [u8],
}

impl Filler {
    /// For layers of up to so many seeds, as far as the index has them.
    pub fn new(index: &Index, moves: &MoveTable, seeds: u8) -> Self {
        // Of the seeds of an entry the other side has one at least.
        let most = usize::from(seeds).min(index.seeds_max());
        let sides = (0..most.max(1)).map(|seeds| SidesOf::new(index.sides(), seeds, moves));
        Self { moves: moves.clone(), rules: moves.rules(), sides: sides.collect() }
    }

    /// About how many bytes it takes.
    pub fn bytes_for(houses: u8, seeds: u8) -> u64 {
        let (houses, seeds) = (u64::from(houses), u64::from(seeds));
        let sides = choose(seeds.saturating_sub(1) + houses, houses);
        // A side, where its moves end, two numbers a house, and up to two moves a house.
        sides.saturating_mul(8 + 4 + houses * (2 * 4 + 2 * 4))
    }

    /// Fills the next layer's entries, on so many threads. `go_on` is told now and then how many are filled; false as soon as it
    /// answers no.
    pub fn fill(
        &self,
        layers: &Layers,
        entries: &mut [u8],
        threads: usize,
        go_on: &(dyn Fn(usize) -> bool + Sync),
    ) -> bool {
        let seeds = layers.len();
        let splits = Mutex::new(splits(layers.index(), seeds, entries).into_iter());
        let (filled, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            loop {
                // Taken before the loop's body, so that the lock is not held in it.
                let next = splits.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(mut split) = next else { return };
                let mut rows = Rows::new(self, layers, &split);
                for row in 0..rows.count() {
                    rows.fill(row, &mut split);
                    let more = rows.entries(row);
                    if stopped.load(Ordering::Relaxed)
                        || !go_on(filled.fetch_add(more, Ordering::Relaxed) + more)
                    {
                        stopped.store(true, Ordering::Relaxed);
                        return;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        !stopped.into_inner()
    }
}

/// The splits of a layer, the largest first.
fn splits<'a>(index: &Index, seeds: usize, entries: &'a mut [u8]) -> Vec<Split<'a>> {
    let mut blocks = Vec::new();
    let mut rest = entries;
    for mine in 1..seeds {
        let length = index.sides().count(mine) * index.sides().count(seeds - mine);
        let (block, after) = rest.split_at_mut(length);
        blocks.push(block);
        rest = after;
    }
    let mut blocks = blocks.into_iter().map(Some).collect::<Vec<_>>();
    let mut splits = Vec::new();
    for rows in seeds.div_ceil(2)..seeds {
        let columns = seeds - rows;
        let mut take = |mine: usize| blocks[mine - 1].take().unwrap_or_default();
        let row_moves = take(rows);
        let column_moves = if rows == columns { Default::default() } else { take(columns) };
        splits.push(Split { seeds: (rows, columns), row_moves, column_moves });
    }
    splits.sort_by_key(|split| std::cmp::Reverse(split.row_moves.len() + split.column_moves.len()));
    splits
}

/// The rows of one split.
struct Rows<'a> {
    filler: &'a Filler,
    layers: &'a Layers,
    index: &'a Index,
    /// All sides of a row, and of a column.
    rows: &'a SidesOf,
    columns: &'a SidesOf,
    /// Seeds of each.
    seeds: (usize, usize),
    /// A row with its own side to move, and with the columns' side to move.
    row_moves: Vec<u8>,
    column_moves: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn new(filler: &'a Filler, layers: &'a Layers, split: &Split<'_>) -> Self {
        let (rows, columns) = (&filler.sides[split.seeds.0], &filler.sides[split.seeds.1]);
        let width = columns.sides.len();
        Self {
            filler,
            layers,
            index: layers.index(),
            rows,
            columns,
            seeds: split.seeds,
            row_moves: vec![0; width],
            column_moves: vec![0; width],
        }
    }

    fn count(&self) -> usize {
        self.rows.sides.len()
    }

    /// Whether the split has one block: the columns' sides are the rows'.
    fn is_square(&self) -> bool {
        self.seeds.0 == self.seeds.1
    }

    /// How many columns of a row are filled with it: of a square those before the diagonal, on both sides of it.
    fn width(&self, row: usize) -> usize {
        if self.is_square() { row } else { self.columns.sides.len() }
    }

    /// How many entries are filled with a row.
    fn entries(&self, row: usize) -> usize {
        2 * self.width(row) + usize::from(self.is_square())
    }

    /// Fills a row; those before it are filled.
    fn fill(&mut self, row: usize, split: &mut Split<'_>) {
        let (width, stride) = (self.width(row), self.columns.sides.len());
        let mut own = std::mem::take(&mut self.row_moves);
        own[..width].fill(0);
        self.moves_of_the_row(row, split, &mut own[..width]);
        if self.is_square() {
            own[row] = self.diagonal(row, &own[..row]);
        }
        let of_row = row * stride..(row + 1) * stride;
        let known = if self.is_square() { row + 1 } else { stride };
        split.row_moves[of_row.clone()][..known].copy_from_slice(&own[..known]);
        let mut others = std::mem::take(&mut self.column_moves);
        self.moves_of_the_columns(row, &own, &mut others[..width]);
        if self.is_square() {
            for (column, entry) in others[..width].iter().enumerate() {
                split.row_moves[column * stride + row] = *entry;
            }
        } else {
            split.column_moves[of_row].copy_from_slice(&others);
        }
        (self.row_moves, self.column_moves) = (own, others);
    }

    /// The row's side moves against each column.
    fn moves_of_the_row(&self, row: usize, split: &Split<'_>, best: &mut [u8]) {
        let (rows, columns) = self.seeds;
        let stride = self.columns.sides.len();
        let width = best.len();
        for of_row in self.rows.moves_of(row) {
            let (code, number) = (of_row.code(), of_row.number());
            let fixed = |seeds, moves| Fixed { seeds, number, moves };
            match code {
                // The other side is to move. In a square that is the side of the row's number.
                INSIDE if self.is_square() => {
                    best_of(best, split.row_moves[number..].iter().step_by(stride), 0, true);
                }
                INSIDE => best_of(best, &split.column_moves[number * stride..], 0, true),
                AGAIN => {
                    let line = self.of_row(fixed(rows - 1, true), columns, 1);
                    if line.stride == 1 {
                        best_of(best, &line.entries[line.start..], line.add, false);
                    } else {
                        best.iter_mut()
                            .enumerate()
                            .for_each(|(column, best)| *best = (*best).max(line.at(column)));
                    }
                }
                BEYOND..LAP => {
                    let k = code - BEYOND + 1;
                    let line = self.of_row(fixed(rows - 1 - k, false), columns + k, 1);
                    let sown = &self.columns.sown[k - 1][..width];
                    for (best, number) in best.iter_mut().zip(sown) {
                        *best = (*best).max(line.at(*number as usize));
                    }
                }
                CAPTURE..BEYOND => {
                    let (house, captures) =
                        if code < STAY { (code - CAPTURE, true) } else { (code - STAY, false) };
                    // By the number of seeds in the house.
                    let lines: Vec<Line<'_>> = (0..=columns)
                        .map(|seeds| {
                            match (captures, seeds > 0 || self.filler.rules == Rules::EmptyCapture) {
                                (true, true) => {
                                    self.of_row(fixed(rows - 1, false), columns - seeds, 1 + seeds)
                                }
                                _ => Line::NONE,
                            }
                        })
                        .collect();
                    let robbed = &self.columns.robbed[house][..width];
                    let sides = &self.columns.sides[..width];
                    for (column, ((best, emptied), side)) in
                        best.iter_mut().zip(robbed).zip(sides).enumerate()
                    {
                        let seeds = (side >> (8 * house)) as usize & 0xff;
                        let gain = if captures {
                            lines[seeds].at(*emptied as usize)
                        } else if seeds > 0 {
                            0
                        } else if self.is_square() {
                            split.row_moves[column * stride + number].wrapping_neg()
                        } else {
                            split.column_moves[number * stride + column].wrapping_neg()
                        };
                        *best = (*best).max(gain);
                    }
                }
                _ => {
                    for (column, best) in best.iter_mut().enumerate() {
                        let board = Board { mine: self.rows.sides[row], theirs: self.columns.sides[column] };
                        *best = (*best).max(self.lap(board, number));
                    }
                }
            }
        }
    }

    /// The row's side moves against the same side: its moves within the split lead to what was just found for the row.
    fn diagonal(&self, row: usize, own: &[u8]) -> u8 {
        let side = self.rows.sides[row];
        let board = Board { mine: side, theirs: side };
        let gains = self.filler.moves.moves(board).map(|(_, played)| {
            if played.banked == 0 {
                return own[self.index.sides().number(played.board.theirs)].wrapping_neg();
            }
            self.after(played.board, played.banked, played.again)
        });
        gains.max().unwrap_or(0)
    }

    /// Each column's side moves against the row's; `own` is the row with its own side to move.
    fn moves_of_the_columns(&self, row: usize, own: &[u8], best: &mut [u8]) {
        let (rows, columns) = self.seeds;
        let side = self.rows.sides[row];
        let mut lines = [Line::NONE; CODES];
        let fixed = |seeds, number: usize, moves| Fixed { seeds, number, moves };
        let inside = Line { entries: own, start: 0, stride: 1, negate: 0xff, add: 0 };
        lines[INSIDE] = inside;
        lines[AGAIN] = self.of_column(fixed(rows, row, false), columns - 1, 1);
        for (house, robbed) in self.rows.robbed.iter().enumerate() {
            let seeds = (side >> (8 * house)) as usize & 0xff;
            if seeds > 0 || self.filler.rules == Rules::EmptyCapture {
                let emptied = robbed[row] as usize;
                lines[CAPTURE + house] =
                    self.of_column(fixed(rows - seeds, emptied, true), columns - 1, 1 + seeds);
            } else {
                lines[STAY + house] = inside;
            }
        }
        for (k, sown) in (1..=self.rows.sown.len()).zip(&self.rows.sown) {
            if k < columns {
                lines[BEYOND + k - 1] =
                    self.of_column(fixed(rows + k, sown[row] as usize, true), columns - 1 - k, 1);
            }
        }
        for (column, best) in best.iter_mut().enumerate() {
            let mut most = 0;
            for of_column in self.columns.moves_of(column) {
                let gain = match of_column.code() {
                    LAP => {
                        self.lap(Board { mine: self.columns.sides[column], theirs: side }, of_column.number())
                    }
                    code => lines[code].at(of_column.number()),
                };
                most = most.max(gain);
            }
            *best = most;
        }
    }

    /// The line of the successors, all in one lower layer, of a move of the row's side (which is fixed, as the columns vary).
    fn of_row(&self, fixed: Fixed, vary_seeds: usize, banked: usize) -> Line<'a> {
        self.line(fixed, vary_seeds, banked, !fixed.moves, fixed.seeds as i32 - vary_seeds as i32)
    }

    /// The same of a move of the columns' side.
    fn of_column(&self, fixed: Fixed, vary_seeds: usize, banked: usize) -> Line<'a> {
        self.line(fixed, vary_seeds, banked, fixed.moves, vary_seeds as i32 - fixed.seeds as i32)
    }

    /// A line; `swept` is what the mover gets when either side has no seeds left.
    fn line(&self, fixed: Fixed, vary_seeds: usize, banked: usize, passes: bool, swept: i32) -> Line<'a> {
        if fixed.seeds == 0 || vary_seeds == 0 {
            return Line::over(banked as i32 + swept);
        }
        let (start, stride) = self.index.line(fixed, vary_seeds);
        let entries = self.layers.layer(fixed.seeds + vary_seeds);
        Line { entries, start, stride, negate: if passes { 0xff } else { 0 }, add: banked as u8 }
    }

    /// A move all around the board.
    fn lap(&self, board: Board, house: usize) -> u8 {
        match self.filler.moves.play(board, house as u8) {
            Some(played) => self.after(played.board, played.banked, played.again),
            None => 0,
        }
    }

    /// The gain, biased, of a move that banked some seeds.
    fn after(&self, board: Board, banked: u8, again: bool) -> u8 {
        let gain = self.layers.gain(board).unwrap_or(-BIAS);
        let banked = i16::from(banked);
        (BIAS + if again { banked + gain } else { banked - gain }) as u8
    }
}

/// Takes the better of what is there and of a move's entries plus `add`, or minus them.
fn best_of<'a>(best: &mut [u8], entries: impl IntoIterator<Item = &'a u8>, add: u8, negate: bool) {
    for (best, entry) in best.iter_mut().zip(entries) {
        let gain = if negate { add.wrapping_sub(*entry) } else { add.wrapping_add(*entry) };
        *best = (*best).max(gain);
    }
}
