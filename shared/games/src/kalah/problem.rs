//! A position, a rules variant and a question, as users state them.
//!
//! ```text
//! values               every opening's exact value to the mover, each with a perfect continuation
//! values 3-6           the same of one opening
//! at-least 2 [3-6]     whether the openings reach a final store difference of 2, no more
//! gain                 what the mover gains from here, stores aside
//! ```

use super::{
    MoveTable, NotationError, Opening, OpeningError, Position, Rules, RulesError, SEEDS_MAX, openings,
    parse_opening,
};
use crate::problem::Fields;
use std::fmt;

/// What is asked about a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// The exact value of openings: final store difference to the mover, stores so far included.
    Values,
    /// Whether openings reach this final store difference.
    AtLeast(i16),
    /// The mover's gain from here.
    Gain,
}

/// A checked problem of Kalah.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    position: Position,
    rules: Rules,
    question: Question,
    /// The opening that the question names, if it does.
    named: Option<Opening>,
    /// The openings it is about; none for [`Question::Gain`] or a finished game.
    openings: Vec<Opening>,
}

impl Problem {
    /// Reads a problem from its fields' text. No rules means `standard`, no question `values`.
    ///
    /// # Errors
    /// Names the field, the place in it and what would be right.
    pub fn from_text(rules: &str, position: &str, question: &str) -> Result<Self, KalahError> {
        let rules = if rules.is_empty() { Rules::Standard } else { rules.parse()? };
        let position: Position = position.parse()?;
        let words: Vec<&str> = question.split_whitespace().collect();
        let (question, opening) = match words[..] {
            [] | ["values"] => (Question::Values, None),
            ["values", opening] => (Question::Values, Some(opening)),
            ["at-least", value] => (Question::AtLeast(difference(value)?), None),
            ["at-least", value, opening] => (Question::AtLeast(difference(value)?), Some(opening)),
            ["gain"] => (Question::Gain, None),
            _ => {
                return Err(KalahError::Question { text: question.to_owned() });
            }
        };
        Self::new(position, rules, question, opening)
    }

    /// A question about a position, or about one of its openings.
    ///
    /// # Errors
    /// [`OpeningError`] for an opening that cannot be played, or too many to ask about.
    pub fn new(
        position: Position,
        rules: Rules,
        question: Question,
        opening: Option<&str>,
    ) -> Result<Self, KalahError> {
        let table = MoveTable::new(position.houses(), rules);
        let named = opening.map(|text| parse_opening(&table, position.board(), text)).transpose()?;
        let openings = match (&question, &named) {
            (Question::Gain, _) => Vec::new(),
            (_, Some(opening)) => vec![opening.clone()],
            (_, None) => openings(&table, position.board())?,
        };
        Ok(Self { position, rules, question, named, openings })
    }

    /// The position.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The rules variant.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The question.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// The openings that the question is about.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// The problem's canonical text: `from_text` gives an equal problem back.
    pub fn to_fields(&self) -> Fields {
        let question = match &self.question {
            Question::Values => "values".to_owned(),
            Question::AtLeast(value) => format!("at-least {value}"),
            Question::Gain => "gain".to_owned(),
        };
        let question = match &self.named {
            Some(opening) => format!("{question} {opening}"),
            None => question,
        };
        Fields {
            game: "kalah".to_owned(),
            rules: self.rules.to_string(),
            position: self.position.to_string(),
            question,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_fields().fmt(f)
    }
}

/// A final store difference.
fn difference(text: &str) -> Result<i16, KalahError> {
    let limit = i16::from(SEEDS_MAX);
    match text.parse() {
        Ok(value) if (-limit..=limit).contains(&value) => Ok(value),
        _ => Err(KalahError::Difference { text: text.to_owned() }),
    }
}

/// Why a text is no problem of Kalah.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KalahError {
    /// The rules field.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The position field.
    #[error(transparent)]
    Position(#[from] NotationError),
    /// The opening in the question field.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The question field.
    #[error(
        "unknown question '{text}': expected 'values [OPENING]', 'at-least DIFFERENCE [OPENING]' or 'gain'"
    )]
    Question {
        /// What was given.
        text: String,
    },
    /// The bound in the question field.
    #[error(
        "'{text}' is no final store difference: expected a whole number from -{SEEDS_MAX} to {SEEDS_MAX}"
    )]
    Difference {
        /// What was given.
        text: String,
    },
}
