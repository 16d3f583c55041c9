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
    pub fn number(self) -> u8 {
        self.0
    }

    /// The hole's number, for indexing.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The board whose only peg is in this hole.
    pub fn board(self) -> u64 {
        1 << self.0
    }
}

/// Which holes are neighbours in a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Lattice {
    /// Along rows and columns: four neighbours.
    #[default]
    Square,
    /// Along rows, columns and the diagonal that goes down to the right: six neighbours. It is the triangular lattice with
    /// each row of the picture shifted left by half a cell against the row above.
    Triangular,
}

impl Lattice {
    /// The steps to half of the neighbours; the others lie opposite.
    fn steps(self) -> &'static [(isize, isize)] {
        match self {
            Self::Square => &[(1, 0), (0, 1)],
            Self::Triangular => &[(1, 0), (0, 1), (1, 1)],
        }
    }

    /// The linear maps that take neighbours to neighbours, as rows of matrices over (column, row), the identity first.
    fn maps(self) -> Vec<[[isize; 2]; 2]> {
        // The group is made by a turn (a quarter, or a sixth) and the exchange of columns and rows.
        let (turn, order) = match self {
            Self::Square => ([[0, -1], [1, 0]], 4),
            Self::Triangular => ([[1, -1], [1, 0]], 6),
        };
        let mut map = [[1, 0], [0, 1]];
        let mut maps = Vec::new();
        for _ in 0..order {
            maps.extend([map, [map[1], map[0]]]);
            map = turn.map(|row| [0, 1].map(|column| row[0] * map[0][column] + row[1] * map[1][column]));
        }
        maps
    }
}

/// The holes of a board in their rectangle. Two geometries are equal when their lattices and pictures are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    lattice: Lattice,
    /// Columns of the picture.
    columns: usize,
    /// Rows of the picture.
    rows: usize,
    /// Column and row, from 0, of each hole in reading order.
    cells: Vec<(usize, usize)>,
}

impl Geometry {
    /// Reads a picture on the square lattice: the holes, and the board of pegs.
    ///
    /// # Errors
    /// As [`Geometry::parse_on`].
    pub fn parse(picture: &str) -> Result<(Self, u64), NotationError> {
        Self::parse_on(Lattice::Square, picture)
    }

    /// Reads a picture: the holes, and the board of pegs.
    ///
    /// # Errors
    /// [`NotationError`] for a picture that is no rectangle of `o`, `.` and `#`, or is too large, or shows no peg.
    pub fn parse_on(lattice: Lattice, picture: &str) -> Result<(Self, u64), NotationError> {
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
        Ok((Self { lattice, columns, rows, cells }, board))
    }

    /// Which holes are neighbours.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }

    /// The board as a one-line picture; bits outside the holes are not shown. The inverse of [`Geometry::parse_on`].
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
            for &(dx, dy) in self.lattice.steps() {
                let end = |sign: isize| {
                    self.hole_at(x.checked_add_signed(sign * dx)?, y.checked_add_signed(sign * dy)?)
                };
                if let (Some(first), Some(second)) = (end(-1), end(1)) {
                    jumps.push(Jump { from: first, over, to: second });
                    jumps.push(Jump { from: second, over, to: first });
                }
            }
        }
        jumps
    }

    /// The symmetries of the lattice that map the holes onto the holes, each permutation of the holes once, the
    /// identity first. A group of 1, 2, 4 or 8 elements on the square lattice, of 1, 2, 3, 4, 6 or 12 on the triangular one.
    /// Empty margins of the picture do not matter.
    pub fn symmetries(&self) -> Vec<Symmetry> {
        let mut found: Vec<Symmetry> = Vec::new();
        for [across, down] in self.lattice.maps() {
            let mapped = |&(x, y): &(usize, usize)| {
                let along = |row: [isize; 2]| row[0] * x as isize + row[1] * y as isize;
                (along(across), along(down))
            };
            // A shape that is mapped onto itself, but for a shift, is shifted back by its least column and row.
            let least = |coordinates: &mut dyn Iterator<Item = isize>| coordinates.min().unwrap_or(0);
            let (left, _, top, _) = self.bounds();
            let dx = left as isize - least(&mut self.cells.iter().map(|cell| mapped(cell).0));
            let dy = top as isize - least(&mut self.cells.iter().map(|cell| mapped(cell).1));
            let image = |cell| {
                let (x, y) = mapped(cell);
                self.hole_at(usize::try_from(x + dx).ok()?, usize::try_from(y + dy).ok()?)
            };
            // Maps between cells are one to one, so an image that is a hole for every hole makes a permutation.
            if let Some(images) = self.cells.iter().map(image).collect() {
                let symmetry = Symmetry::new(images, across[0] * down[1] - across[1] * down[0] > 0);
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
    /// parities of the three stay equal, or unequal, to one another. Both directions of diagonals give two bits each; on the
    /// triangular lattice jumps stay on the diagonals of one direction, so only the other counts.
    /// (Reiss 1857; Beasley, The Ins and Outs of Peg Solitaire; Bell, Solving Triangular Peg Solitaire, 2008.)
    pub fn class(&self, board: u64) -> u8 {
        let mut parities = [[0u8; 3]; 2];
        for hole in self.holes().filter(|hole| board & hole.board() != 0) {
            let (x, y) = self.cell(hole);
            parities[0][(x + y) % 3] ^= 1;
            if self.lattice == Lattice::Square {
                parities[1][(x + SIDE_MAX * 3 - y) % 3] ^= 1;
            }
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
