//! The one-line notation: `xo.o|.xo. x`, and cells like `c2`.

use super::board::{Board, CELLS_MAX};
use super::position::{Position, Side};
use std::fmt;
use std::str::FromStr;

/// A cell: `c2` is the third column of the second row. The columns after `z` are `aa`, `ab`, ...
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell {
    /// The column, from 0 on the left.
    pub x: usize,
    /// The row, from 0 on top.
    pub y: usize,
}

impl Cell {
    /// The side whose colour the cell has.
    pub fn side(self) -> Side {
        if (self.x + self.y).is_multiple_of(2) { Side::Black } else { Side::White }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut letters, mut rest) = (Vec::new(), self.x + 1);
        while rest > 0 {
            letters.push(char::from(b'a' + ((rest - 1) % 26) as u8));
            rest = (rest - 1) / 26;
        }
        letters.iter().rev().try_for_each(|letter| write!(f, "{letter}"))?;
        write!(f, "{}", self.y + 1)
    }
}

impl FromStr for Cell {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let error = || NotationError::Cell { text: text.to_owned() };
        let digits = text.find(|c: char| !c.is_ascii_lowercase()).ok_or_else(error)?;
        let (letters, number) = text.split_at(digits);
        // Two letters and two digits name every column and row of any board; more could overflow.
        if !(1..=2).contains(&letters.len())
            || !(1..=2).contains(&number.len())
            || !number.bytes().all(|c| c.is_ascii_digit())
        {
            return Err(error());
        }
        let column = letters.bytes().fold(0, |column, letter| column * 26 + usize::from(letter - b'a') + 1);
        let row: usize = number.parse().map_err(|_| error())?;
        Ok(Self { x: column - 1, y: row.checked_sub(1).ok_or_else(error)? })
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Black => "black",
            Self::White => "white",
        })
    }
}

/// Reads `black` or `white`.
impl FromStr for Side {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        match text {
            "black" => Ok(Self::Black),
            "white" => Ok(Self::White),
            _ => Err(NotationError::Side { text: text.to_owned() }),
        }
    }
}

impl Side {
    /// The letter of the side's stones and of its turn.
    pub fn letter(self) -> char {
        match self {
            Self::Black => 'x',
            Self::White => 'o',
        }
    }

    fn from_letter(letter: char) -> Option<Self> {
        match letter {
            'x' | '*' => Some(Self::Black),
            'o' => Some(Self::White),
            _ => None,
        }
    }
}

impl Position {
    /// Reads a position: the picture, a space, and the side to move as `x` or `o`.
    ///
    /// # Errors
    /// Names the place and what would be right.
    pub fn from_text(text: &str) -> Result<Self, NotationError> {
        let text = text.trim();
        let Some((picture, mover)) = text.rsplit_once(char::is_whitespace) else {
            // A picture that is wrong anyway is told so first: its mover is the lesser trouble.
            Self::from_picture(text, Side::Black)?;
            return Err(NotationError::MoverMissing);
        };
        let mut letters = mover.chars();
        let side = letters.next().and_then(Side::from_letter).filter(|_| letters.next().is_none());
        let side = side.ok_or_else(|| NotationError::Mover { text: mover.to_owned() })?;
        Self::from_picture(picture.trim_end(), side)
    }

    /// Reads a position from its picture alone, rows joined by `|`.
    ///
    /// # Errors
    /// Names the place and what would be right.
    pub fn from_picture(picture: &str, mover: Side) -> Result<Self, NotationError> {
        let height = picture.split('|').count();
        let width = picture.split('|').next().map_or(0, |row| row.chars().count());
        if width == 0 {
            return Err(NotationError::Empty);
        }
        let area = width.saturating_mul(height);
        if area > CELLS_MAX {
            return Err(NotationError::TooBig { rows: height, columns: width });
        }
        let (mut cells, mut stones) = (0u64, 0u64);
        for (y, row) in picture.split('|').enumerate() {
            let found = row.chars().count();
            if found != width {
                return Err(NotationError::Ragged { row: y + 1, found, expected: width });
            }
            for (x, character) in row.chars().enumerate() {
                let (cell, bit) = (Cell { x, y }, 1 << (y * width + x));
                match character {
                    '#' => continue,
                    '.' => cells |= bit,
                    _ => {
                        let side = Side::from_letter(character).ok_or(NotationError::Character {
                            row: y + 1,
                            column: x + 1,
                            character,
                        })?;
                        if side != cell.side() {
                            return Err(NotationError::Colour { cell, stone: side });
                        }
                        cells |= bit;
                        stones |= bit;
                    }
                }
            }
        }
        let too_big = NotationError::TooBig { rows: height, columns: width };
        let board = Board::new(width, height, cells).ok_or(too_big.clone())?;
        Self::new(board, stones, mover).ok_or(too_big)
    }
}

impl FromStr for Position {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        Self::from_text(text)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let board = self.board();
        for y in 0..board.height() {
            if y > 0 {
                f.write_str("|")?;
            }
            for x in 0..board.width() {
                let bit = 1 << (y * board.width() + x);
                let character = if board.cells() & bit == 0 {
                    '#'
                } else if self.stones() & bit == 0 {
                    '.'
                } else {
                    Cell { x, y }.side().letter()
                };
                write!(f, "{character}")?;
            }
        }
        write!(f, " {}", self.mover().letter())
    }
}

/// Why a text is no position, cell or side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotationError {
    /// Nothing where the board should be.
    #[error("the board is empty: expected rows of x, o, . and # joined by |, like 'xo.o|.xo. x'")]
    Empty,
    /// More cells than a board may have.
    #[error("a board of {rows} rows and {columns} columns is too big: at most {CELLS_MAX} cells are allowed")]
    TooBig {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// A row of another length than the first.
    #[error("row {row} has {found} cells: expected {expected} as in row 1")]
    Ragged {
        /// The row, from 1.
        row: usize,
        /// Its length.
        found: usize,
        /// The length of row 1.
        expected: usize,
    },
    /// A character that means nothing.
    #[error("unexpected '{character}' in row {row}, column {column}: expected x, o, . or #")]
    Character {
        /// The row, from 1.
        row: usize,
        /// The column, from 1.
        column: usize,
        /// What is there.
        character: char,
    },
    /// A stone on the other side's colour.
    #[error("a {stone} stone on {cell}, a cell of {}'s colour (a1 is black's): no {stone} stone can be there", .stone.other())]
    Colour {
        /// The cell.
        cell: Cell,
        /// The stone on it.
        stone: Side,
    },
    /// No side to move.
    #[error("the side to move is missing: expected a space and x or o after the board, like 'xo.o|.xo. x'")]
    MoverMissing,
    /// A side to move that is none.
    #[error("unexpected side to move '{text}': expected x or o after the board")]
    Mover {
        /// What was given.
        text: String,
    },
    /// A side that is none.
    #[error("unknown side '{text}': expected black or white")]
    Side {
        /// What was given.
        text: String,
    },
    /// A cell that is none.
    #[error("'{text}' is not a cell: expected a column letter and a row number, like c2")]
    Cell {
        /// What was given.
        text: String,
    },
}
