//! Cram problems and how couples answer them.

use super::claims::CramClaims;
use super::position::{Position, PositionError};
use crate::claim::{Claim, ClaimRules, Subject};
use crate::plan::{Answer, Knowledge, Outcome, Plan, Progress};
use crate::problem::Fields;

/// What is asked of a position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Question {
    /// The nimber.
    Nimber,
    /// Whether the mover wins.
    Outcome,
}

/// A position and a question about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The position.
    pub position: Position,
    /// The question.
    pub question: Question,
}

impl Problem {
    /// Reads a problem. `rules` must be empty; `question` is `nimber` (also when empty) or `outcome`.
    ///
    /// # Errors
    /// Names the field and what would be right.
    pub fn from_text(rules: &str, position: &str, question: &str) -> Result<Self, CramError> {
        if !rules.is_empty() {
            return Err(CramError::Rules { rules: rules.to_owned() });
        }
        let question = match question {
            "" | "nimber" => Question::Nimber,
            "outcome" => Question::Outcome,
            _ => {
                return Err(CramError::Question { question: question.to_owned() });
            }
        };
        Ok(Self { position: position.parse()?, question })
    }

    /// The canonical text.
    pub fn to_fields(&self) -> Fields {
        let question = match self.question {
            Question::Nimber => "nimber",
            Question::Outcome => "outcome",
        };
        Fields {
            game: "cram".to_owned(),
            rules: String::new(),
            position: self.position.to_string(),
            question: question.to_owned(),
        }
    }
}

/// Why a text is no Cram problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CramError {
    /// Cram has no variants.
    #[error("unknown rules '{rules}': cram has no variants, expected none")]
    Rules {
        /// What was given.
        rules: String,
    },
    /// No such question.
    #[error("unknown question '{question}': expected nimber or outcome")]
    Question {
        /// What was given.
        question: String,
    },
    /// The position is none.
    #[error("position: {0}")]
    Position(#[from] PositionError),
}

/// Asks the couples with *0, *1, *2, ... until one is lost: its heap is the nimber.
#[derive(Clone, Debug)]
pub struct CramPlan {
    /// The position's sum as bytes.
    subject: Subject,
    /// A bound on the nimber: when all smaller ones are refuted, it is the nimber.
    nimber_max: u8,
    question: Question,
}

impl CramPlan {
    /// A plan for a problem.
    pub fn new(problem: &Problem) -> Self {
        let sum = problem.position.sum();
        let Claim { subject, .. } = CramClaims::claim(&sum, 0);
        Self { subject, nimber_max: sum.nimber_max(), question: problem.question }
    }

    fn claim(&self, heap: u8) -> Claim {
        Claim { subject: self.subject.clone(), parameter: i16::from(heap) }
    }

    /// The least nimber that is not refuted, and whether it is proved.
    fn nimber(&self, known: &dyn Knowledge) -> (u8, bool) {
        for heap in 0..self.nimber_max {
            match known.truth(&self.claim(heap)) {
                Some(true) => {}
                Some(false) => return (heap, true),
                None => return (heap, false),
            }
        }
        (self.nimber_max, true)
    }
}

impl Plan for CramPlan {
    fn rules(&self) -> &dyn ClaimRules {
        &CramClaims
    }

    fn next(&self, known: &dyn Knowledge) -> Progress {
        match (self.partial(known), self.nimber(known)) {
            (Answer::NimberAtLeast { .. } | Answer::Outcome { outcome: None }, (heap, _)) => {
                Progress::Ask(vec![self.claim(heap)])
            }
            (answer, _) => Progress::Answered(answer),
        }
    }

    fn partial(&self, known: &dyn Knowledge) -> Answer {
        let (nimber, proved) = self.nimber(known);
        match self.question {
            Question::Nimber if proved => Answer::Nimber { nimber: u32::from(nimber) },
            Question::Nimber => Answer::NimberAtLeast { nimber_at_least: u32::from(nimber) },
            Question::Outcome if nimber > 0 => Answer::Outcome { outcome: Some(Outcome::Win) },
            Question::Outcome => Answer::Outcome { outcome: proved.then_some(Outcome::Loss) },
        }
    }
}
