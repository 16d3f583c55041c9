//! Counting problems: a board to start from and where the last peg must end.

use super::geometry::{Geometry, Hole};
use super::notation::NotationError;
use super::symmetry::Orbits;
use crate::problem::Fields;

/// Boards that have a name: the name, and the shape with all holes filled but the centre, d4.
pub const NAMED_BOARDS: [(&str, &str); 2] = [
    ("english", "##ooo##|##ooo##|ooooooo|ooo.ooo|ooooooo|##ooo##|##ooo##"),
    ("european", "##ooo##|#ooooo#|ooooooo|ooo.ooo|ooooooo|#ooooo#|##ooo##"),
];

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
    /// Reads a problem from the fields of a job: no rules, a picture of the start, and `finish d4`, `finish any` or
    /// nothing, which means any.
    ///
    /// # Errors
    /// [`NotationError`] names the place and what would be right.
    pub fn from_text(rules: &str, position: &str, question: &str) -> Result<Self, NotationError> {
        if !rules.is_empty() {
            return Err(NotationError::Rules { rules: rules.to_owned() });
        }
        let (geometry, start) = Geometry::parse(position)?;
        let finish = match question.strip_prefix("finish ") {
            None if question.is_empty() => Finish::Any,
            None => {
                return Err(NotationError::Question { question: question.to_owned() });
            }
            Some(finish) => read_finish(&geometry, finish)?,
        };
        Ok(Self { geometry, start, finish })
    }

    /// The problem of a named board (one of [`NAMED_BOARDS`]): all pegs but `start`, the centre d4 unless told otherwise;
    /// `finish` is a cell or `any`, the start hole unless told otherwise.
    ///
    /// # Errors
    /// [`NotationError::BoardName`] for another board, and what is wrong with a cell.
    pub fn named(name: &str, start: Option<&str>, finish: Option<&str>) -> Result<Self, NotationError> {
        let picture = NAMED_BOARDS.iter().find(|(known, _)| *known == name).map(|(_, picture)| picture);
        let Some(picture) = picture else {
            return Err(NotationError::BoardName { name: name.to_owned() });
        };
        let (geometry, _) = Geometry::parse(picture)?;
        let hole = geometry.hole_named(start.unwrap_or("d4"))?;
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
            rules: String::new(),
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

/// Reads `any` or a cell.
fn read_finish(geometry: &Geometry, finish: &str) -> Result<Finish, NotationError> {
    match finish {
        "any" => Ok(Finish::Any),
        cell => geometry.hole_named(cell).map(Finish::Hole),
    }
}
