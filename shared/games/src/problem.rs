//! Problems: a game, a position and a question, as a user states them and as a job is fingerprinted.

use crate::plan::Plan;
use crate::{cram, kalah, konane, peg};
use std::fmt;

/// A problem as canonical text: what a job's fingerprint is, and what crosses the wire.
///
/// Two problems are the same job exactly when all their fields are equal. Every field is in the notation that
/// its game prints, so equal problems have equal text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fields {
    /// `cram`, `kalah`, `konane` or `peg`.
    pub game: String,
    /// The rules variant, empty where a game has one only.
    pub rules: String,
    /// The position in the game's notation.
    pub position: String,
    /// The question in the game's words.
    pub question: String,
}

impl Fields {
    /// The fields that differ, as `(name, ours, theirs)`.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Vec<(&'static str, &'a str, &'a str)> {
        [
            ("game", &self.game, &other.game),
            ("rules", &self.rules, &other.rules),
            ("position", &self.position, &other.position),
            ("question", &self.question, &other.question),
        ]
        .into_iter()
        .filter(|(_, ours, theirs)| ours != theirs)
        .map(|(name, ours, theirs)| (name, ours.as_str(), theirs.as_str()))
        .collect()
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.game, self.position)?;
        [&self.rules, &self.question]
            .into_iter()
            .filter(|field| !field.is_empty())
            .try_for_each(|field| write!(f, ", {field}"))
    }
}

/// A checked problem.
#[derive(Clone, Debug)]
pub enum Problem {
    /// Answered by deciding claims.
    Cram(cram::Problem),
    /// Answered by deciding claims.
    Kalah(kalah::Problem),
    /// Answered by deciding claims.
    Konane(konane::Problem),
    /// Answered by counting.
    Peg(peg::Problem),
}

/// How a problem is worked on.
pub enum Approach<'a> {
    /// By claims, in the proof graph.
    Claims(Box<dyn Plan>),
    /// By counting, level by level.
    Counting(&'a peg::Problem),
}

impl Problem {
    /// Reads a problem from its text.
    ///
    /// # Errors
    /// Names the field, the place in it and what would be right.
    pub fn from_fields(fields: &Fields) -> Result<Self, ProblemError> {
        let Fields { game, rules, position, question } = fields;
        let in_game = |error: &dyn fmt::Display| ProblemError::Invalid {
            game: game.clone(),
            reason: error.to_string(),
        };
        match game.as_str() {
            "cram" => {
                cram::Problem::from_text(rules, position, question).map(Self::Cram).map_err(|e| in_game(&e))
            }
            "kalah" => {
                kalah::Problem::from_text(rules, position, question).map(Self::Kalah).map_err(|e| in_game(&e))
            }
            "konane" => konane::Problem::from_text(rules, position, question)
                .map(Self::Konane)
                .map_err(|e| in_game(&e)),
            "peg" => {
                peg::Problem::from_text(rules, position, question).map(Self::Peg).map_err(|e| in_game(&e))
            }
            _ => Err(ProblemError::UnknownGame { game: game.clone() }),
        }
    }

    /// The problem's canonical text. `from_fields(p.to_fields())` gives `p` back.
    pub fn to_fields(&self) -> Fields {
        match self {
            Self::Cram(problem) => problem.to_fields(),
            Self::Kalah(problem) => problem.to_fields(),
            Self::Konane(problem) => problem.to_fields(),
            Self::Peg(problem) => problem.to_fields(),
        }
    }

    /// How to work on it.
    pub fn approach(&self) -> Approach<'_> {
        match self {
            Self::Cram(problem) => Approach::Claims(Box::new(cram::CramPlan::new(problem))),
            Self::Kalah(problem) => Approach::Claims(Box::new(kalah::KalahPlan::new(problem))),
            Self::Konane(problem) => Approach::Claims(Box::new(konane::KonanePlan::new(problem))),
            Self::Peg(problem) => Approach::Counting(problem),
        }
    }
}

/// Why a text is no problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// No such game.
    #[error("unknown game '{game}': expected cram, kalah, konane or peg")]
    UnknownGame {
        /// What was given.
        game: String,
    },
    /// The game refused a field.
    #[error("{game}: {reason}")]
    Invalid {
        /// The game.
        game: String,
        /// What is wrong, where, and what would be right.
        reason: String,
    },
}
