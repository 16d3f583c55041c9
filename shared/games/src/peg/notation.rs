//! What can be wrong with a board, a cell or a question in text.

use super::geometry::{HOLES_MAX, SIDE_MAX};

/// Why a text is no peg solitaire problem. Rows and columns count from 1, from the top left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotationError {
    /// A character that is no cell.
    #[error(
        "row {row}, column {column} of the board is '{found}': expected 'o' (peg), '.' (empty hole) or '#' (no hole)"
    )]
    UnknownCell {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// What stands there.
        found: char,
    },
    /// A row of another length than the first.
    #[error("row {row} of the board has {columns} columns: expected {expected}, as in row 1")]
    Ragged {
        /// The row.
        row: usize,
        /// Its length.
        columns: usize,
        /// The length of the first row.
        expected: usize,
    },
    /// More rows or columns than allowed.
    #[error("the board has {rows} rows and {columns} columns: expected at most {SIDE_MAX} of each")]
    TooLong {
        /// The rows.
        rows: usize,
        /// The columns of the first row.
        columns: usize,
    },
    /// More holes than a 64-bit board has.
    #[error("the board has {holes} holes: expected at most {HOLES_MAX}")]
    TooManyHoles {
        /// The holes.
        holes: usize,
    },
    /// No peg to jump with, or no hole at all.
    #[error("the board has no peg: expected at least one 'o'")]
    NoPeg,
    /// A cell name that is no column letter and row number.
    #[error(
        "'{name}' is no cell: expected a column letter and a row number counted from the top, such as 'd4'"
    )]
    CellName {
        /// What was given.
        name: String,
    },
    /// A well formed cell name with no hole there.
    #[error("the board has no hole at '{name}': its holes lie in columns {columns} and rows {rows}")]
    NoHole {
        /// The cell.
        name: String,
        /// The first and last column, as `a to g`.
        columns: String,
        /// The first and last row, as `1 to 7`.
        rows: String,
    },
    /// A question in other words.
    #[error(
        "unknown question '{question}': expected 'finish any' or 'finish' and a cell, such as 'finish d4'"
    )]
    Question {
        /// What was given.
        question: String,
    },
    /// The rules name the lattice.
    #[error(
        "unknown rules '{rules}': expected nothing, or 'triangular' for jumps along one diagonal as well"
    )]
    Rules {
        /// What was given.
        rules: String,
    },
    /// A board name that is not known.
    #[error(
        "unknown board '{name}': expected english, european, triangle2 to triangle10 or a picture such as 'oo.|ooo'"
    )]
    BoardName {
        /// What was given.
        name: String,
    },
}
