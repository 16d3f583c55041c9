//! Problems: who wins a position.

use super::claims::KonaneClaims;
use super::notation::NotationError;
use super::position::Position;
use crate::claim::{Claim, ClaimRules};
use crate::plan::{Answer, Knowledge, Outcome, Plan, Progress};
use crate::problem::Fields;

/// How the answer is worded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Question {
    /// `winner`: black or white. The default.
    Winner,
    /// `outcome`: win or loss for the mover.
    Outcome,
}

impl Question {
    fn text(self) -> &'static str {
        match self {
            Self::Winner => "winner",
            Self::Outcome => "outcome",
        }
    }
}

/// A position and what is asked of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The position.
    pub position: Position,
    /// The question.
    pub question: Question,
}

impl Problem {
    /// Reads a problem: no rules variant, the position with its mover, `winner` or `outcome` (nothing means `winner`).
    ///
    /// # Errors
    /// Names the field, the place in it and what would be right.
    pub fn from_text(rules: &str, position: &str, question: &str) -> Result<Self, ProblemError> {
        if !rules.is_empty() {
            return Err(ProblemError::Rules { text: rules.to_owned() });
        }
        let question = match question {
            "" | "winner" => Question::Winner,
            "outcome" => Question::Outcome,
            _ => {
                return Err(ProblemError::Question { text: question.to_owned() });
            }
        };
        Ok(Self { position: Position::from_text(position)?, question })
    }

    /// The problem's canonical text.
    pub fn to_fields(&self) -> Fields {
        Fields {
            game: "konane".to_owned(),
            rules: String::new(),
            position: self.position.to_string(),
            question: self.question.text().to_owned(),
        }
    }

    /// The rules that read the problem's claims.
    pub fn claims(&self) -> KonaneClaims {
        KonaneClaims::new(*self.position.board())
    }
}

/// Asks one claim: that the mover wins.
#[derive(Clone, Debug)]
pub struct KonanePlan {
    problem: Problem,
    claims: KonaneClaims,
    root: Claim,
}

impl KonanePlan {
    /// The plan for a problem.
    pub fn new(problem: &Problem) -> Self {
        let claims = problem.claims();
        let root = claims.claim(problem.position.stones(), problem.position.mover());
        Self { problem: *problem, claims, root }
    }

    /// The answer if the mover's fate is this.
    fn answer(&self, mover_wins: Option<bool>) -> Answer {
        let mover = self.problem.position.mover();
        match self.problem.question {
            Question::Winner => Answer::Winner {
                winner: mover_wins.map(|wins| if wins { mover } else { mover.other() }.into()),
            },
            Question::Outcome => Answer::Outcome {
                outcome: mover_wins.map(|wins| if wins { Outcome::Win } else { Outcome::Loss }),
            },
        }
    }
}

impl Plan for KonanePlan {
    fn rules(&self) -> &dyn ClaimRules {
        &self.claims
    }

    fn next(&self, known: &dyn Knowledge) -> Progress {
        match known.truth(&self.root) {
            Some(truth) => Progress::Answered(self.answer(Some(truth))),
            None => Progress::Ask(vec![self.root.clone()]),
        }
    }

    fn partial(&self, known: &dyn Knowledge) -> Answer {
        self.answer(known.truth(&self.root))
    }
}

/// Why a text is no problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// A rules variant where there is none.
    #[error("unknown rules '{text}': konane has no variants, leave them out")]
    Rules {
        /// What was given.
        text: String,
    },
    /// No known question.
    #[error("unknown question '{text}': expected winner or outcome")]
    Question {
        /// What was given.
        text: String,
    },
    /// The position is none.
    #[error(transparent)]
    Position(#[from] NotationError),
}
