//! The shape of a board: which cells are holes, what they are called, and pictures of boards on it.

use super::jumps::Jump;
use super::notation::NotationError;
use super::symmetry::Symmetry;

/// The most holes a board may have: one bit each of a `u64`.
pub const HOLES_MAX: usize = 64;

/// The most rows, and the most columns, of a picture: what a single line of holes can need.
pub const SIDE_MAX: usize = 64;

/// A hole by its number in reading order, below the board's number of holes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hole(u8);

impl Hole {
    /// The hole's number.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The board whose only peg is in this hole.
    pub fn board(self) -> u64 {
        1 << self.0
    }
}

/// The holes of a board in their rectangle. Two geometries are equal when their pictures are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Columns of the picture.
    columns: usize,
    /// Rows of the picture.
    rows: usize,
    /// Column and row, from 0, of each hole in reading order.
    cells: Vec<(usize, usize)>,
}

impl Geometry {
    /// Reads a picture: the holes, and the board of pegs.
    ///
    /// # Errors
    /// [`NotationError`] for a picture that is no rectangle of `o`, `.` and `#`, or is too large, or shows no peg.
    pub fn parse(picture: &str) -> Result<(Self, u64), NotationError> {
        let columns = picture.split('|').next().unwrap_or_default().chars().count();
        let rows = picture.split('|').count();
        if rows > SIDE_MAX || columns > SIDE_MAX {
            return Err(NotationError::TooLong { rows, columns });
        }
        let (mut cells, mut pegs) = (Vec::new(), Vec::new());
        for (y, row) in picture.split('|').enumerate() {
            for (x, found) in row.chars().enumerate() {
                match found {
                    'o' | '.' => {
                        cells.push((x, y));
                        pegs.push(found == 'o');
                    }
                    '#' => {}
                    _ => {
                        return Err(NotationError::UnknownCell { row: y + 1, column: x + 1, found });
                    }
                }
            }
            let length = row.chars().count();
            if length != columns {
                return Err(NotationError::Ragged { row: y + 1, columns: length, expected: columns });
            }
        }
        if cells.len() > HOLES_MAX {
            return Err(NotationError::TooManyHoles { holes: cells.len() });
        }
        let board = pegs.iter().enumerate().fold(0, |board, (hole, &peg)| board | u64::from(peg) << hole);
        if board == 0 {
            return Err(NotationError::NoPeg);
        }
        Ok((Self { columns, rows, cells }, board))
    }

    /// The board as a one-line picture; bits outside the holes are not shown. The inverse of [`Geometry::parse`].
    pub fn picture(&self, board: u64) -> String {
        let row = |y| {
            let cell = |x| match self.hole_at(x, y) {
                Some(hole) if board & hole.board() != 0 => 'o',
                Some(_) => '.',
                None => '#',
            };
            (0..self.columns).map(cell).collect::<String>()
        };
        (0..self.rows).map(row).collect::<Vec<_>>().join("|")
    }

    /// The number of holes, 1 to [`HOLES_MAX`].
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no hole; no picture gives such a geometry.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// All holes, in reading order.
    pub fn holes(&self) -> impl Iterator<Item = Hole> + '_ {
        (0..self.cells.len()).map(hole)
    }

    /// The board with a peg in every hole.
    pub fn full(&self) -> u64 {
        self.holes().fold(0, |board, hole| board | hole.board())
    }

    /// The hole in a column and row, from 0, if there is one.
    pub fn hole_at(&self, x: usize, y: usize) -> Option<Hole> {
        // Reading order is the order of (row, column).
        self.cells.binary_search_by_key(&(y, x), |&(x, y)| (y, x)).ok().map(hole)
    }

    /// The hole's column and row, from 0.
    pub fn cell(&self, hole: Hole) -> (usize, usize) {
        self.cells[hole.index()]
    }

    /// The hole's name: `d4`. Columns past `z` go on `aa`, `ab`, as in spreadsheets.
    pub fn name(&self, hole: Hole) -> String {
        let (x, y) = self.cell(hole);
        format!("{}{}", column_name(x), y + 1)
    }

    /// The hole of this name.
    ///
    /// # Errors
    /// [`NotationError::CellName`] for a text that names no cell, [`NotationError::NoHole`] for a cell without a hole.
    pub fn hole_named(&self, name: &str) -> Result<Hole, NotationError> {
        let not_a_cell = || NotationError::CellName { name: name.to_owned() };
        let digits = name.find(|c: char| !c.is_ascii_lowercase()).ok_or_else(not_a_cell)?;
        let (letters, number) = name.split_at(digits);
        if letters.is_empty() || number.starts_with('0') || !number.bytes().all(|c| c.is_ascii_digit()) {
            return Err(not_a_cell());
        }
        // Names too long for a picture fall outside of it, whatever they say.
        let x = letters
            .bytes()
            .fold(0usize, |x, letter| x.saturating_mul(26).saturating_add(usize::from(letter - b'a') + 1));
        let y = number.parse::<usize>().unwrap_or(usize::MAX);
        self.hole_at(x - 1, y - 1).ok_or_else(|| {
            let (left, right, top, bottom) = self.bounds();
            NotationError::NoHole {
                name: name.to_owned(),
                columns: format!("{} to {}", column_name(left), column_name(right)),
                rows: format!("{} to {}", top + 1, bottom + 1),
            }
        })
    }

    /// Every jump, legal or not for want of pegs, ordered by the hole jumped over.
    pub fn jumps(&self) -> Vec<Jump> {
        let mut jumps = Vec::new();
        for over in self.holes() {
            let (x, y) = self.cell(over);
            let ends = [
                (x.checked_sub(1).map(|left| (left, y)), (x + 1, y)),
                (y.checked_sub(1).map(|above| (x, above)), (x, y + 1)),
            ];
            for (first, second) in ends {
                let first = first.and_then(|(x, y)| self.hole_at(x, y));
                let second = self.hole_at(second.0, second.1);
                if let (Some(first), Some(second)) = (first, second) {
                    jumps.push(Jump { from: first, over, to: second });
                    jumps.push(Jump { from: second, over, to: first });
                }
            }
        }
        jumps
    }

    /// The symmetries of the square that map the holes onto the holes, each permutation of the holes once, the
    /// identity first. A group of 1, 2, 4 or 8 elements. Empty margins of the picture do not matter.
    pub fn symmetries(&self) -> Vec<Symmetry> {
        let (left, right, top, bottom) = self.bounds();
        let (width, height) = (right - left, bottom - top);
        let mut found: Vec<Symmetry> = Vec::new();
        for (transpose, mirror_x, mirror_y) in
            (0..8).map(|bits| (bits & 4 != 0, bits & 1 != 0, bits & 2 != 0))
        {
            let image = |&(x, y): &(usize, usize)| {
                let (x, y) = (x - left, y - top);
                let x = if mirror_x { width - x } else { x };
                let y = if mirror_y { height - y } else { y };
                let (x, y) = if transpose { (y, x) } else { (x, y) };
                self.hole_at(x + left, y + top)
            };
            // Maps between cells are one to one, so an image that is a hole for every hole makes a permutation.
            if let Some(images) = self.cells.iter().map(image).collect() {
                let symmetry = Symmetry::new(images);
                if !found.contains(&symmetry) {
                    found.push(symmetry);
                }
            }
        }
        found
    }

    /// The position class of a board: no jump changes it, so no board is reached from one of another class.
    ///
    /// Colour the diagonals in turn with three colours. A jump changes the pegs on each colour by one, so the
    /// parities of the three stay equal, or unequal, to one another. Both directions of diagonals give two bits each.
    /// (Reiss 1857; Beasley, The Ins and Outs of Peg Solitaire.)
    pub fn class(&self, board: u64) -> u8 {
        let mut parities = [[0u8; 3]; 2];
        for hole in self.holes().filter(|hole| board & hole.board() != 0) {
            let (x, y) = self.cell(hole);
            parities[0][(x + y) % 3] ^= 1;
            parities[1][(x + SIDE_MAX * 3 - y) % 3] ^= 1;
        }
        parities.iter().fold(0, |class, [a, b, c]| class << 2 | (a ^ b) << 1 | (b ^ c))
    }

    /// First and last column, first and last row that have a hole, from 0.
    fn bounds(&self) -> (usize, usize, usize, usize) {
        let (mut left, mut right, mut top, mut bottom) = (usize::MAX, 0, usize::MAX, 0);
        for &(x, y) in &self.cells {
            (left, right) = (left.min(x), right.max(x));
            (top, bottom) = (top.min(y), bottom.max(y));
        }
        (left, right, top, bottom)
    }
}

/// The hole of a number below [`HOLES_MAX`].
fn hole(index: usize) -> Hole {
    debug_assert!(index < HOLES_MAX);
    Hole(index as u8)
}

/// `a` to `z`, then `aa`, `ab` and on: numbers from 0 in the bijective base 26.
fn column_name(x: usize) -> String {
    let letter = char::from(b'a' + (x % 26) as u8);
    match x / 26 {
        0 => letter.to_string(),
        more => column_name(more - 1) + &letter.to_string(),
    }
}
