//! Counting problems: a board to start from and where the last peg must end.

use super::geometry::{Geometry, Hole, Lattice};
use super::notation::NotationError;
use super::symmetry::Orbits;
use crate::problem::Fields;

/// Boards that have a name: the name, and the shape with all holes filled but the centre, d4.
pub const NAMED_BOARDS: [(&str, &str); 2] = [
    ("english", "##ooo##|##ooo##|ooooooo|ooo.ooo|ooooooo|##ooo##|##ooo##"),
    ("european", "##ooo##|#ooooo#|ooooooo|ooo.ooo|ooooooo|#ooooo#|##ooo##"),
];

/// The rules of a problem on the triangular lattice; those on the square lattice are empty.
pub const TRIANGULAR: &str = "triangular";

/// The rows of the named triangles: with one there is no peg to start with, eleven have more holes than a board may have.
const TRIANGLE_ROWS: std::ops::RangeInclusive<usize> = 2..=10;

/// Where the last peg must be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Finish {
    /// In this hole.
    Hole(Hole),
    /// In any hole.
    Any,
}

/// How many jump sequences lead from a board to a single peg in the right place?
///
/// Sequences of jumps are counted, not of boards: two jumps that lead to the same board count as two. Nothing is merged by
/// symmetry in the answer. A start that is already such a single peg has one sequence, the empty one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    geometry: Geometry,
    start: u64,
    finish: Finish,
}

impl Problem {
    /// Reads a problem from the fields of a job: the lattice (nothing, or [`TRIANGULAR`]), a picture of the start, and `finish d4`, `finish any` or
    /// nothing, which means any.
    ///
    /// # Errors
    /// [`NotationError`] names the place and what would be right.
    pub fn from_text(rules: &str, position: &str, question: &str) -> Result<Self, NotationError> {
        let lattice = match rules {
            "" => Lattice::Square,
            TRIANGULAR => Lattice::Triangular,
            _ => return Err(NotationError::Rules { rules: rules.to_owned() }),
        };
        let (geometry, start) = Geometry::parse_on(lattice, position)?;
        let finish = match question.strip_prefix("finish ") {
            None if question.is_empty() => Finish::Any,
            None => {
                return Err(NotationError::Question { question: question.to_owned() });
            }
            Some(finish) => read_finish(&geometry, finish)?,
        };
        Ok(Self { geometry, start, finish })
    }

    /// The problem of a named board: all pegs but `start`; `finish` is a cell or `any`, the start hole unless told otherwise.
    /// Names are those of [`NAMED_BOARDS`], with the centre d4 as start unless told otherwise, and `triangle5` for a triangle of
    /// five rows (two to ten) on the triangular lattice, with the corner a1.
    ///
    /// # Errors
    /// [`NotationError::BoardName`] for another board, and what is wrong with a cell.
    pub fn named(name: &str, start: Option<&str>, finish: Option<&str>) -> Result<Self, NotationError> {
        let picture = NAMED_BOARDS.iter().find(|(known, _)| *known == name).map(|(_, picture)| picture);
        let ((geometry, _), usual) = match (picture, triangle(name)) {
            (Some(picture), _) => (Geometry::parse(picture)?, "d4"),
            (None, Some(picture)) => (Geometry::parse_on(Lattice::Triangular, &picture)?, "a1"),
            (None, None) => return Err(NotationError::BoardName { name: name.to_owned() }),
        };
        let hole = geometry.hole_named(start.unwrap_or(usual))?;
        let finish = finish.map_or(Ok(Finish::Hole(hole)), |finish| read_finish(&geometry, finish))?;
        let start = geometry.full() ^ hole.board();
        Ok(Self { geometry, start, finish })
    }

    /// The problem's canonical text.
    pub fn to_fields(&self) -> Fields {
        let finish = match self.finish {
            Finish::Hole(hole) => self.geometry.name(hole),
            Finish::Any => "any".to_owned(),
        };
        Fields {
            game: "peg".to_owned(),
            rules: match self.geometry.lattice() {
                Lattice::Square => String::new(),
                Lattice::Triangular => TRIANGULAR.to_owned(),
            },
            position: self.geometry.picture(self.start),
            question: format!("finish {finish}"),
        }
    }

    /// The board's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The pegs at the start: at least one.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Where the last peg must be.
    pub fn finish(&self) -> Finish {
        self.finish
    }

    /// Orbits under the symmetries that leave the start and the finish as they are: boards of one orbit have equally many
    /// sequences from the start, and equally many to the finish.
    pub fn orbits(&self) -> Orbits {
        match self.finish {
            Finish::Hole(hole) => Orbits::new(&self.geometry, &[self.start, hole.board()]),
            Finish::Any => Orbits::new(&self.geometry, &[self.start]),
        }
    }

    /// Whether the finish is the start with pegs and empty holes exchanged. A solution played backwards is then a solution
    /// of the complement, and the second half of all solutions mirrors the first.
    pub fn is_complement(&self) -> bool {
        matches!(self.finish, Finish::Hole(hole) if self.start ^ hole.board() == self.geometry.full()
            && self.start & hole.board() == 0)
    }

    /// Whether the [position classes](Geometry::class) of the start and of a finish agree. Without that there is no solution.
    pub fn class_allows(&self) -> bool {
        let class = self.geometry.class(self.start);
        let agrees = |hole: Hole| self.geometry.class(hole.board()) == class;
        match self.finish {
            Finish::Hole(hole) => agrees(hole),
            Finish::Any => self.geometry.holes().any(agrees),
        }
    }
}

/// The picture of a board named `triangle5`, or as many rows, all holes filled.
fn triangle(name: &str) -> Option<String> {
    let rows =
        TRIANGLE_ROWS.into_iter().find(|rows| name.strip_prefix("triangle") == Some(&rows.to_string()))?;
    let row = |holes: usize| "o".repeat(holes) + &"#".repeat(rows - holes);
    Some((1..=rows).map(row).collect::<Vec<_>>().join("|"))
}

/// Reads `any` or a cell.
fn read_finish(geometry: &Geometry, finish: &str) -> Result<Finish, NotationError> {
    match finish {
        "any" => Ok(Finish::Any),
        cell => geometry.hole_named(cell).map(Finish::Hole),
    }
}
