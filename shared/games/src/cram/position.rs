//! Positions as users write them.

use super::component::Regions;
use super::grid;
use super::sum::Sum;
use std::fmt;
use std::str::FromStr;

/// The most cells a board may have, filled ones included: one bit each in 128.
pub const CELLS_MAX: u32 = 128;

/// A board with some cells filled.
///
/// The notation is a picture, row by row from the top: `.` empty, `#` filled, rows joined by `|`. `3x12` is read as an
/// empty board of 3 rows and 12 columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    rows: u8,
    columns: u8,
    /// Bit `row * columns + column` of each empty cell.
    empty: u128,
}

impl Position {
    /// An empty board.
    ///
    /// # Errors
    /// [`PositionError::NoCells`] and [`PositionError::TooManyCells`].
    pub fn empty_board(rows: u32, columns: u32) -> Result<Self, PositionError> {
        if rows == 0 || columns == 0 {
            return Err(PositionError::NoCells);
        }
        match rows.checked_mul(columns) {
            // Neither is above their product, so both fit a byte.
            Some(cells @ 1..=CELLS_MAX) => {
                Ok(Self { rows: rows as u8, columns: columns as u8, empty: grid::low_bits(cells) })
            }
            _ => Err(PositionError::TooManyCells { rows: rows as usize, columns: columns as usize }),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> u8 {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> u8 {
        self.columns
    }

    /// Whether the cell is on the board and empty. Rows count from the top, columns from the left, both from 0.
    pub fn is_empty(&self, row: u8, column: u8) -> bool {
        row < self.rows
            && column < self.columns
            && self.empty >> (u32::from(row) * u32::from(self.columns) + u32::from(column)) & 1 == 1
    }

    /// The position as a sum of components, simplified.
    pub fn sum(&self) -> Sum {
        Regions::new(self.empty, u32::from(self.columns)).collect()
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        grid::write_picture(f, self.empty, u32::from(self.columns), u32::from(self.rows))
    }
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        if let Some((rows, columns)) = text.split_once('x') {
            let number = |digits: &str| {
                let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                // A number that does not fit is as much too large as one that does and is.
                is_number.then(|| digits.parse().unwrap_or(u32::MAX))
            };
            let sizes = number(rows).zip(number(columns));
            let (rows, columns) = sizes.ok_or_else(|| PositionError::Size { text: text.to_owned() })?;
            return Self::empty_board(rows, columns);
        }
        let first_row = text.split('|').next().unwrap_or_default();
        let columns = first_row.chars().count();
        let rows = text.split('|').count();
        let mut empty = 0u128;
        let mut cell = 0u32;
        for (row, line) in text.split('|').enumerate() {
            for (column, character) in line.chars().enumerate() {
                let bit = match character {
                    '.' => 1,
                    '#' => 0,
                    _ => {
                        return Err(PositionError::Character { row: row + 1, column: column + 1, character });
                    }
                };
                if cell < CELLS_MAX {
                    empty |= bit << cell;
                }
                cell = cell.saturating_add(1);
            }
            let cells = line.chars().count();
            if cells != columns {
                return Err(PositionError::RowLength { row: row + 1, cells, columns });
            }
        }
        match cell {
            0 => Err(PositionError::NoCells),
            // Neither is above their product, so both fit a byte.
            1..=CELLS_MAX => Ok(Self { rows: rows as u8, columns: columns as u8, empty }),
            _ => Err(PositionError::TooManyCells { rows, columns }),
        }
    }
}

/// Why a text is no position. Rows and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// Something else than a cell.
    #[error(
        "row {row}, column {column}: unexpected '{character}', expected '.' (empty), '#' (filled) or '|' (next row)"
    )]
    Character {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// What stands there.
        character: char,
    },
    /// A row longer or shorter than the first.
    #[error("row {row} has {cells} cells, expected {columns} like row 1")]
    RowLength {
        /// The row.
        row: usize,
        /// Its length.
        cells: usize,
        /// The first row's length.
        columns: usize,
    },
    /// Not a size.
    #[error("'{text}' is no board size, expected ROWSxCOLUMNS such as 3x12")]
    Size {
        /// What was given.
        text: String,
    },
    /// A board without cells.
    #[error("the board has no cells, expected at least one row and one column")]
    NoCells,
    /// A board that does not fit 128 bits.
    #[error(
        "a board of {rows} rows and {columns} columns is too large, at most {CELLS_MAX} cells are possible"
    )]
    TooManyCells {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
}
