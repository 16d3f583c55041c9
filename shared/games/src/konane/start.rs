//! Starts: a full board from which one stone of each side was removed.

use super::board::{Board, CELLS_MAX};
use super::notation::{Cell, NotationError};
use super::position::{Position, Side};
use std::fmt;
use std::str::FromStr;

/// Which two stones are removed from the full board before the first jump.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Start {
    /// a1 and b1.
    Corner,
    /// With 0-based `m = (columns / 2, rows / 2)`, rounded down: m and the cell to its left. For square boards this is the
    /// convention of Norvig, "Konane" (2021).
    Center,
    /// These two, which must share a side.
    Cells(Cell, Cell),
}

impl FromStr for Start {
    type Err = StartError;

    fn from_str(text: &str) -> Result<Self, StartError> {
        match text {
            "corner" => return Ok(Self::Corner),
            "center" => return Ok(Self::Center),
            _ => {}
        }
        let (first, second) =
            text.split_once(',').ok_or_else(|| StartError::Unknown { text: text.to_owned() })?;
        Ok(Self::Cells(first.trim().parse()?, second.trim().parse()?))
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corner => f.write_str("corner"),
            Self::Center => f.write_str("center"),
            Self::Cells(first, second) => write!(f, "{first},{second}"),
        }
    }
}

impl Position {
    /// The start position on a full board: `first` is to move.
    ///
    /// # Errors
    /// A board that is empty or too big, cells that are not on it or not neighbours.
    pub fn start(rows: usize, columns: usize, start: Start, first: Side) -> Result<Self, StartError> {
        let board = Board::full(columns, rows).ok_or(StartError::Size { rows, columns })?;
        // A board of one column has no cell to the left of its centre, nor a b1.
        let narrow = || StartError::Narrow { start, rows };
        let (a, b) = match start {
            Start::Corner if columns < 2 => return Err(narrow()),
            Start::Corner => (Cell { x: 0, y: 0 }, Cell { x: 1, y: 0 }),
            Start::Center => {
                let (x, y) = (columns / 2, rows / 2);
                (Cell { x, y }, Cell { x: x.checked_sub(1).ok_or_else(narrow)?, y })
            }
            Start::Cells(a, b) => (a, b),
        };
        for cell in [a, b] {
            if cell.x >= columns || cell.y >= rows {
                let last = Cell { x: columns - 1, y: rows - 1 };
                return Err(StartError::Outside { cell, rows, columns, last });
            }
        }
        if a.x.abs_diff(b.x) + a.y.abs_diff(b.y) != 1 {
            return Err(StartError::Apart { first: a, second: b });
        }
        let bit = |cell: Cell| 1u64 << (cell.y * columns + cell.x);
        Self::new(board, board.cells() & !bit(a) & !bit(b), first).ok_or(StartError::Size { rows, columns })
    }
}

/// Reads a board size, `6x6`: rows, then columns.
///
/// # Errors
/// [`StartError::SizeText`] for another form, [`StartError::Size`] for an empty board or one that is too big.
pub fn size_from_text(text: &str) -> Result<(usize, usize), StartError> {
    let number = |digits: &str| {
        // `parse` alone would take a sign.
        digits.bytes().all(|c| c.is_ascii_digit()).then(|| digits.parse::<usize>().ok()).flatten()
    };
    let sides = text.split_once('x').and_then(|(rows, columns)| Some((number(rows)?, number(columns)?)));
    let (rows, columns) = sides.ok_or_else(|| StartError::SizeText { text: text.to_owned() })?;
    Board::full(columns, rows).ok_or(StartError::Size { rows, columns })?;
    Ok((rows, columns))
}

/// Why there is no such start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// No known start.
    #[error("unknown start '{text}': expected corner, center or two neighbouring cells like b2,c2")]
    Unknown {
        /// What was given.
        text: String,
    },
    /// Something is no cell.
    #[error(transparent)]
    Notation(#[from] NotationError),
    /// No size.
    #[error("'{text}' is not a board size: expected rows and columns like 6x6")]
    SizeText {
        /// What was given.
        text: String,
    },
    /// A size no board has.
    #[error("a board of {rows} rows and {columns} columns: expected 1 to {CELLS_MAX} cells")]
    Size {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// A start that needs two columns.
    #[error(
        "the {start} start needs two columns, a board of {rows} rows and 1 column has no such neighbours: name two cells like a1,a2"
    )]
    Narrow {
        /// The start.
        start: Start,
        /// The board's rows.
        rows: usize,
    },
    /// A cell that is not on the board.
    #[error("{cell} is not on a board of {rows} rows and {columns} columns: its last cell is {last}")]
    Outside {
        /// The cell.
        cell: Cell,
        /// The board's rows.
        rows: usize,
        /// The board's columns.
        columns: usize,
        /// The cell in the last row and column.
        last: Cell,
    },
    /// Two cells that do not share a side.
    #[error("{first} and {second} are not neighbours: the two stones removed must share a side, like b2,c2")]
    Apart {
        /// One cell.
        first: Cell,
        /// The other.
        second: Cell,
    },
}
