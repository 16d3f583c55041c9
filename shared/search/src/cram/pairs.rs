//! The nimber of every left end with every right end of a strip: an endgame database of all its short regions.
//!
//! A right end read from its last column inward is a left end upside down, or mirrored: the nimber does not care. So both
//! ends have the same [classes](super::classes), and the nimber of a region is that of the pair of the classes of its two parts, plus the
//! two offsets. The table has one byte for each pair, a row for each left class:
//!
//! ```text
//! byte left * stride + right     the nimber, at most 31
//! ```
//!
//! A pair's options are those of the left end, those of the right end, and the dominoes across the border, each of which
//! sticks out of both. All are pairs of smaller left class, or of the same one and smaller right class.

use super::classes::{Classes, End};
use super::fill;
use super::strip::{self, Strip};

/// No region of the table has more cells, so that no nimber exceeds 31.
const CELLS_MAX: usize = 62;

/// Nimbers by pairs of classes.
pub struct PairTable {
    left_columns: usize,
    right_columns: usize,
    stride: usize,
    nimbers: Box<dyn AsRef<[u8]> + Send + Sync>,
}

impl PairTable {
    /// How many columns the left and the right ends may have so that the table takes at most `bytes`, and regions have at most
    /// `columns` columns: as many together as possible, and the right ones not more than the left ones.
    pub fn size(classes: &Classes, columns: usize, bytes: usize) -> (usize, usize) {
        let columns = columns.min(CELLS_MAX / classes.height() as usize);
        let deepest = classes.columns();
        let sizes = (0..=deepest).flat_map(|left| (0..=left).map(move |right| (left, right)));
        let fitting = sizes.filter(|(left, right)| {
            let pairs = classes.len(*left) as u128 * classes.len(*right) as u128;
            left + right <= columns && pairs <= bytes as u128
        });
        // Of equal length, the one with the shortest ends.
        fitting.max_by_key(|(left, right)| (left + right, *right)).unwrap_or((0, 0))
    }

    /// The columns of left and right ends as a table takes them: more than `classes` has are taken as what it has, and
    /// regions of more than 62 cells get none.
    fn clamped(classes: &Classes, left_columns: usize, right_columns: usize) -> (usize, usize) {
        let columns = CELLS_MAX / classes.height() as usize;
        let left_columns = left_columns.min(classes.columns()).min(columns);
        (left_columns, right_columns.min(classes.columns()).min(columns - left_columns))
    }

    /// How many bytes a table for left and right ends of up to so many columns takes.
    pub fn bytes_for(classes: &Classes, left_columns: usize, right_columns: usize) -> usize {
        let (left_columns, right_columns) = Self::clamped(classes, left_columns, right_columns);
        classes.len(left_columns).saturating_mul(classes.len(right_columns))
    }

    /// Fills a table in memory for left and right ends of up to so many columns, as far as `classes` and 62 cells go, on so many
    /// threads.
    pub fn build(classes: &Classes, left_columns: usize, right_columns: usize, threads: usize) -> Self {
        let (left_columns, right_columns) = Self::clamped(classes, left_columns, right_columns);
        let mut nimbers = vec![0u8; Self::bytes_for(classes, left_columns, right_columns)];
        Self::fill(classes, left_columns, right_columns, &mut nimbers, threads, &|_| true);
        Self { left_columns, right_columns, stride: classes.len(right_columns), nimbers: Box::new(nimbers) }
    }

    /// A table that was filled for these classes and columns; `None` unless it has [as many bytes](Self::bytes_for).
    pub fn of_bytes(
        classes: &Classes,
        left_columns: usize,
        right_columns: usize,
        nimbers: Box<dyn AsRef<[u8]> + Send + Sync>,
    ) -> Option<Self> {
        let (left_columns, right_columns) = Self::clamped(classes, left_columns, right_columns);
        if (*nimbers).as_ref().len() != Self::bytes_for(classes, left_columns, right_columns) {
            return None;
        }
        Some(Self { left_columns, right_columns, stride: classes.len(right_columns), nimbers })
    }

    /// Fills a table's bytes, as many as [`bytes_for`](Self::bytes_for) says, on so many threads. `go_on` is told now and then how
    /// many are filled. If it ever answers no, the table stays unfinished: false.
    pub fn fill(
        classes: &Classes,
        left_columns: usize,
        right_columns: usize,
        nimbers: &mut [u8],
        threads: usize,
        go_on: &(dyn Fn(usize) -> bool + Sync),
    ) -> bool {
        let (left_columns, right_columns) = Self::clamped(classes, left_columns, right_columns);
        debug_assert_eq!(nimbers.len(), Self::bytes_for(classes, left_columns, right_columns));
        fill::fill(classes, classes.len(right_columns), nimbers, threads, go_on)
    }

    /// Whether an entry is what the rules make of it, if the entries of smaller regions are right: the mex of the options of the
    /// two representatives side by side. `pair` is its index, from 0 to [`bytes`](Self::bytes).
    pub fn is_right(&self, classes: &Classes, pair: usize) -> bool {
        let height = classes.height();
        let (left, right) = ((pair / self.stride) as u32, (pair % self.stride) as u32);
        // Representatives have their last column lowest, which is how a right end follows.
        let (_, left_offset, left_word) = classes.representative(left);
        let (_, right_offset, right_word) = classes.representative(right);
        let columns = self.left_columns as u32;
        let left_cells = strip::mirror(u128::from(left_word), height, columns);
        let cells = left_cells | u128::from(right_word) << (height * columns);
        let mut reached = 0u64;
        for domino in (Strip { height: height as u8, cells }).dominoes() {
            reached |= 1 << self.of_strip(classes, cells & !domino, self.columns());
        }
        let nimber = reached.trailing_ones() as u8 ^ left_offset ^ right_offset;
        self.nimbers()[pair] == nimber
    }

    fn nimbers(&self) -> &[u8] {
        (*self.nimbers).as_ref()
    }

    /// The most columns of a region that the table answers.
    pub fn columns(&self) -> usize {
        self.left_columns + self.right_columns
    }

    /// The most columns of left and of right ends.
    pub fn ends(&self) -> (usize, usize) {
        (self.left_columns, self.right_columns)
    }

    /// How many bytes the table takes.
    pub fn bytes(&self) -> usize {
        self.nimbers().len()
    }

    /// The nimber of two ends side by side, of at most the table's columns each, the right one read inward.
    pub fn of_ends(&self, left: End, right: End) -> u8 {
        let pair = left.class() as usize * self.stride + right.class() as usize;
        self.nimbers()[pair] ^ left.offset() ^ right.offset()
    }

    /// The nimber of the cells of a strip (bit `column * height + row`) of at most [`columns`](Self::columns) columns, connected
    /// or not.
    pub fn of_strip(&self, classes: &Classes, cells: u128, columns: usize) -> u8 {
        let height = classes.height();
        // The first row, of all right ends by themselves, stays in the cache; most other entries are far away.
        let least = if columns <= self.right_columns { columns } else { columns / 2 };
        let right_columns = least.min(self.right_columns).max(columns.saturating_sub(self.left_columns));
        let left_columns = columns - right_columns;
        let left = classes.of_word(cells, left_columns);
        let turned = strip::half_turn(cells, height, columns as u32);
        let right = classes.of_word(turned, right_columns);
        // Turned by half a turn the right end's rows are in reverse order, while the left end's are not.
        let flipped = classes.flip(right.class()).shifted(right.offset());
        self.of_ends(left, flipped)
    }
}
