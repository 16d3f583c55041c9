//! What the pair table says of all moves in a region, by the classes of the ends that the moves leave as they are.
//!
//! A domino changes one or two columns, the *middle*. What lies before them is the *front*, what lies behind the *back*. If front
//! and back each hang together, a domino cuts them from each other unless a cell of the middle reaches both; then the pieces
//! are the front with what reaches it, the back with what reaches it, and what is left of the middle. Each is a word over
//! the columns whose class is a step or two from one that is known, so no cell is looked at twice.

use super::classes::{End, HEIGHT_MAX};
use super::outlook::Outlook;
use super::strip::Strip;
use super::tables::StripTable;

/// The most columns of a strip: 128 cells in a row.
const COLUMNS_MAX: usize = 128;

/// A region, read once from both sides.
pub(super) struct Look<'a> {
    table: &'a StripTable,
    columns: usize,
    cells: [u8; COLUMNS_MAX],
    /// The class of the first `k` columns, as far as ends are classified.
    fronts: [End; COLUMNS_MAX + 1],
    /// The class of the columns from `k` on, read inward.
    backs: [End; COLUMNS_MAX + 1],
    /// Bit `k`: the first `k` columns hang together.
    front_connected: u128,
    /// Bit `k`: the columns from `k` on hang together.
    back_connected: u128,
}

/// The columns that a domino changes, after it: one or two from `first` to before `end`.
struct Middle {
    first: usize,
    end: usize,
    here: u8,
    next: u8,
}

impl<'a> Look<'a> {
    pub(super) fn new(table: &'a StripTable, region: Strip) -> Self {
        let height = table.classes.height();
        let columns = region.columns() as usize;
        let mut cells = [0; COLUMNS_MAX];
        let mask = ((1u32 << height) - 1) as u8;
        let mut rest = region.cells;
        for cells in &mut cells[..columns] {
            *cells = rest as u8 & mask;
            rest >>= height;
        }
        let mut fronts = [End::EMPTY; COLUMNS_MAX + 1];
        let mut backs = [End::EMPTY; COLUMNS_MAX + 1];
        for column in 0..columns.min(table.classes.columns()) {
            fronts[column + 1] = table.classes.after(fronts[column], cells[column].into());
            let column = columns - 1 - column;
            backs[column] = table.classes.after(backs[column + 1], cells[column].into());
        }
        let (mut front_connected, mut back_connected) = (0, 0);
        let (mut front, mut back) = (Pieces::default(), Pieces::default());
        for column in 0..columns {
            front_connected |= u128::from(front.is_one()) << column;
            front.read(cells[column]);
            let column = columns - 1 - column;
            back.read(cells[column]);
            back_connected |= u128::from(back.is_one()) << column;
        }
        Self { table, columns, cells, fronts, backs, front_connected, back_connected }
    }

    /// What the table says of all moves.
    pub(super) fn outlook(&self) -> Outlook {
        let mut outlook = Outlook { reached: 0, open: 0 };
        let mut add = |nimber: Option<u8>| match nimber {
            Some(nimber) => outlook.reached |= 1 << nimber,
            None => outlook.open += 1,
        };
        for first in 0..self.columns {
            let here = self.cells[first];
            for row in rows(here & here >> 1) {
                add(self.nimber(Middle { first, end: first + 1, here: here & !(3 << row), next: 0 }));
            }
            let next = self.cells.get(first + 1).copied().unwrap_or_default();
            for row in rows(here & next) {
                let (here, next) = (here & !(1 << row), next & !(1 << row));
                add(self.nimber(Middle { first, end: first + 2, here, next }));
            }
        }
        outlook
    }

    /// The nimber of what a domino leaves, if the pair tables have it and it is cut as most regions are.
    #[inline]
    fn nimber(&self, middle: Middle) -> Option<u8> {
        let most = self.table.pairs.columns();
        if self.columns <= most {
            return Some(self.whole(&middle));
        }
        let (before, behind) = (middle.first, self.columns - middle.end);
        if before > most || behind > most {
            return None;
        }
        // Wide enough that front and back hang together.
        let first = last_set(self.front_connected, before);
        let end = middle.end + first_set(self.back_connected >> middle.end, behind);
        let width = end - first;
        if width > MIDDLE_MAX.min(self.table.pairs.ends().1) {
            return None;
        }
        let mut all = [0; MIDDLE_MAX];
        for (cells, column) in all.iter_mut().zip(first..end) {
            *cells = self.column(&middle, column);
        }
        let all = &mut all[..width];
        let mut front = [0; MIDDLE_MAX];
        let mut back = [0; MIDDLE_MAX];
        let previous = if first == 0 { 0 } else { self.cells[first - 1] };
        let next = if end == self.columns { 0 } else { self.cells[end] };
        // Most moves leave the region in one piece, which is soon seen.
        if reach(all, previous, next, &mut front) {
            return None;
        }
        all.reverse();
        reach(all, next, previous, &mut back);
        all.reverse();
        back[..width].reverse();
        let mut rest = End::EMPTY;
        for (column, cells) in all.iter().enumerate() {
            rest = self.table.classes.after(rest, (cells & !(front[column] | back[column])).into());
        }
        Some(self.alone(rest) ^ self.front(first, &front[..width])? ^ self.back(end, &back[..width])?)
    }

    fn column(&self, middle: &Middle, column: usize) -> u8 {
        if column == middle.first {
            middle.here
        } else if column + 1 == middle.end {
            middle.next
        } else {
            self.cells[column]
        }
    }

    /// The nimber of the first columns and what reaches them, if they are few enough.
    fn front(&self, first: usize, reached: &[u8]) -> Option<u8> {
        let (left, right) = self.table.pairs.ends();
        let len = first + reached.iter().rposition(|cells| *cells != 0).map_or(0, |last| last + 1);
        if len > left + right {
            return None;
        }
        let classes = &self.table.classes;
        let border = len.min(left);
        let column =
            |column: usize| if column < first { self.cells[column] } else { reached[column - first] };
        let known = border.min(first);
        let front = (known..border).fold(self.fronts[known], |end, k| classes.after(end, column(k).into()));
        if len <= right {
            return Some(self.alone(front));
        }
        let back = (border..len).rev().fold(End::EMPTY, |end, k| classes.after(end, column(k).into()));
        Some(self.table.pairs.of_ends(front, back))
    }

    /// The nimber of the columns from `end` on and what reaches them of the columns before, if they are few enough.
    fn back(&self, end: usize, reached: &[u8]) -> Option<u8> {
        let (left, right) = self.table.pairs.ends();
        let first = end - reached.len();
        let start = first + reached.iter().position(|cells| *cells != 0).unwrap_or(reached.len());
        let len = self.columns - start;
        if len > left + right {
            return None;
        }
        let classes = &self.table.classes;
        let border = self.columns - len.min(right);
        let column = |column: usize| if column >= end { self.cells[column] } else { reached[column - first] };
        let known = border.max(end);
        let back =
            (border..known).rev().fold(self.backs[known], |end, k| classes.after(end, column(k).into()));
        if len <= right {
            return Some(self.alone(back));
        }
        let front = (start..border).fold(End::EMPTY, |end, k| classes.after(end, column(k).into()));
        Some(self.table.pairs.of_ends(front, back))
    }

    /// The nimber of an end by itself, of no more columns than right ends have. The first row of the table has them all, which
    /// stays in the cache, where an entry from the middle of the table is mostly far away.
    fn alone(&self, end: End) -> u8 {
        self.table.pairs.of_ends(End::EMPTY, end)
    }

    /// The nimber of all columns, which are few enough.
    fn whole(&self, middle: &Middle) -> u8 {
        let (left, right) = self.table.pairs.ends();
        let classes = &self.table.classes;
        // The border where the fewest columns have to be read.
        let border = middle.first.clamp(self.columns.saturating_sub(right), self.columns.min(left));
        let column = |column: usize| self.column(middle, column);
        let (from, to) = (border.min(middle.first), border.max(middle.end));
        let front = (from..border).fold(self.fronts[from], |end, k| classes.after(end, column(k).into()));
        let back = (border..to).rev().fold(self.backs[to], |end, k| classes.after(end, column(k).into()));
        self.table.pairs.of_ends(front, back)
    }
}

/// The rows of a column's cells.
fn rows(mut cells: u8) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let row = cells.trailing_zeros();
        cells &= cells.wrapping_sub(1);
        (row < u8::BITS).then_some(row)
    })
}

/// The most columns between a front and a back that hang together.
const MIDDLE_MAX: usize = 8;

/// The greatest bit that is set among bits `1..=most`; 0 if there is none.
fn last_set(bits: u128, most: usize) -> usize {
    let below = bits & (u128::MAX >> (127 - most)) & !1;
    if below == 0 { 0 } else { 127 - below.leading_zeros() as usize }
}

/// The least bit that is set below `most`; `most` if there is none.
fn first_set(bits: u128, most: usize) -> usize {
    (bits.trailing_zeros() as usize).min(most)
}

/// The cells of some columns that hang together with those of the column before them. True, and not all of them, as soon as they
/// reach the column behind.
fn reach(cells: &[u8], previous: u8, next: u8, reached: &mut [u8; MIDDLE_MAX]) -> bool {
    let last = cells.len() - 1;
    loop {
        let mut beside = previous;
        for (cells, reached) in cells.iter().zip(&mut *reached) {
            *reached = fill(*cells, *reached | beside);
            beside = *reached;
        }
        if beside & next != 0 {
            return true;
        }
        let mut changed = false;
        for column in (0..last).rev() {
            let grown = fill(cells[column], reached[column] | beside);
            changed |= grown != reached[column];
            reached[column] = grown;
            beside = grown;
        }
        if !changed {
            return false;
        }
    }
}

const COLUMNS: usize = 1 << HEIGHT_MAX;

/// The cells of a column that hang together with those that lie in `seed`.
fn fill(cells: u8, seed: u8) -> u8 {
    /// By seed and cells.
    static FILLED: [[u8; COLUMNS]; COLUMNS] = {
        let mut filled = [[0; COLUMNS]; COLUMNS];
        let mut seed = 0;
        while seed < COLUMNS {
            let mut cells = 0;
            while cells < COLUMNS {
                let mut reached = seed & cells;
                let mut step = 0;
                while step < HEIGHT_MAX {
                    reached |= (reached << 1 | reached >> 1) & cells;
                    step += 1;
                }
                filled[seed][cells] = reached as u8;
                cells += 1;
            }
            seed += 1;
        }
        filled
    };
    FILLED[usize::from(seed)][usize::from(cells)]
}

/// How the cells of some columns hang together, as far as the last of them tells.
#[derive(Default)]
struct Pieces {
    /// The cells of each piece in the last column; at most every other row has another piece.
    pieces: [u8; HEIGHT_MAX as usize / 2 + 1],
    count: usize,
    /// A piece ended before the last column.
    closed: bool,
}

impl Pieces {
    fn is_one(&self) -> bool {
        self.count == 1 && !self.closed
    }

    /// Adds a column.
    fn read(&mut self, cells: u8) {
        if self.count == 1 && cells != 0 && fill(cells, self.pieces[0]) == cells {
            self.pieces[0] = cells;
            return;
        }
        let before = std::mem::take(&mut self.pieces);
        let before = &before[..std::mem::take(&mut self.count)];
        let mut rest = cells;
        while rest != 0 {
            // All that hangs together with the lowest run, by what lies before.
            let mut piece = fill(cells, rest & rest.wrapping_neg());
            loop {
                let touching = before.iter().filter(|before| **before & piece != 0);
                let grown = fill(cells, touching.fold(piece, |piece, before| piece | before));
                if grown == piece {
                    break;
                }
                piece = grown;
            }
            self.pieces[self.count] = piece;
            self.count += 1;
            rest &= !piece;
        }
        self.closed |= before.iter().any(|before| before & cells == 0);
    }
}
