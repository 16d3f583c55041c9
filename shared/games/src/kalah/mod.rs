//! Kalah, also known as Kalaha or Mancala, with one to eight houses a side.
//!
//! Sow anticlockwise through your own store and never the opponent's; the house that was emptied is sown again on a
//! lap. The last seed in your own store moves again; in your own house that was empty it captures. The game ends as
//! soon as either side's houses are all empty, and what remains goes to its owner. The value of a game is the final
//! store difference (Irving, Donkers and Uiterwijk, "Solving Kalah", ICGA Journal 23(3), 2000).

mod board;
mod claims;
mod notation;
mod opening;
mod plan;
mod position;
mod problem;

pub use board::{Board, MoveTable, Played};
pub use claims::{KalahClaims, child_margin, claim_of};
pub use notation::NotationError;
pub use opening::{MoveError, OPENINGS_MAX, Opening, OpeningError, openings, parse_opening, replay};
pub use plan::KalahPlan;
pub use position::{Player, Position};
pub use problem::{KalahError, Problem, Question};

use std::fmt;
use std::str::FromStr;

/// The most houses a side: a side's houses are the bytes of one 64-bit word.
pub const HOUSES_MAX: u8 = 8;

/// The most seeds of a game, stores included: however they gather, no house outgrows its byte.
pub const SEEDS_MAX: u8 = u8::MAX;

/// What happens when the last seed falls into the mover's own house that was empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub enum Rules {
    /// It is banked together with the opposite seeds if there are any; otherwise it stays.
    #[default]
    Standard,
    /// It is banked together with the opposite seeds, even if there are none.
    EmptyCapture,
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::EmptyCapture => "empty-capture",
        })
    }
}

impl FromStr for Rules {
    type Err = RulesError;

    fn from_str(text: &str) -> Result<Self, RulesError> {
        match text {
            "standard" => Ok(Self::Standard),
            "empty-capture" => Ok(Self::EmptyCapture),
            _ => Err(RulesError { text: text.to_owned() }),
        }
    }
}

/// No such variant of the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown rules '{text}': expected standard or empty-capture")]
pub struct RulesError {
    /// What was given.
    pub text: String,
}
