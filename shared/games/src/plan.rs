//! Plans: how a user's question is answered by claims.
//!
//! A plan is a pure function of what is known. Asked again after each decided claim, it either has the answer
//! or names the claims that it needs next. It keeps no state, so a resumed job, a distributed job and an
//! in-process evaluation walk the same path.

use crate::claim::{Claim, ClaimRules};
use serde::Serialize;

/// Read access to decided claims, inference included.
pub trait Knowledge {
    /// The claim's truth, if it is decided or follows from a decided claim about the same subject.
    fn truth(&self, claim: &Claim) -> Option<bool>;
}

/// What a plan says to the knowledge so far.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress {
    /// Not answered: these claims are wanted now, most urgent first. Never empty, and none of them is known.
    Ask(Vec<Claim>),
    /// The answer.
    Answered(Answer),
}

/// A question about a position of one game, as a strategy of asking claims.
pub trait Plan: Send + Sync {
    /// The rules that read the plan's claims.
    fn rules(&self) -> &dyn ClaimRules;

    /// The next claims, or the answer.
    fn next(&self, known: &dyn Knowledge) -> Progress;

    /// What is known of the answer so far, for status displays: intervals, "nimber at least 2".
    /// Equal to the answer once it is known.
    fn partial(&self, known: &dyn Knowledge) -> Answer;

    /// Whether a claim's search is like those that the open parts take, so that its samples tell of them.
    fn is_typical(&self, _known: &dyn Knowledge, _claim: &Claim) -> bool {
        true
    }

    /// The parts of the answer that are open, for an estimate of what they take. Empty for games whose claims have no levels.
    fn open_parts(&self, _known: &dyn Knowledge) -> Vec<OpenPart> {
        Vec::new()
    }
}

/// A part of an answer that is not decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenPart {
    /// What it is called, such as an opening.
    pub part: String,
    /// How far its claims are from the end of the game: seeds in play.
    pub level: u16,
    /// How many claims decide it, each as hard as claims of its level are.
    pub claims: u16,
}

/// The answer to a question. Serialises to the JSON that `solve --json` prints under `answer`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// Cram: the exact nimber.
    Nimber {
        /// The nimber.
        nimber: u32,
    },
    /// Cram, not yet exact: the nimber is at least this.
    NimberAtLeast {
        /// The lower bound.
        nimber_at_least: u32,
    },
    /// Whether the mover wins; `None` while unknown.
    Outcome {
        /// `win` or `loss`.
        outcome: Option<Outcome>,
    },
    /// Konane: who wins; `None` while unknown.
    Winner {
        /// `black` or `white`.
        winner: Option<Winner>,
    },
    /// Kalah: each opening's value or interval, and the best of them.
    Openings {
        /// The value that the openings are asked to reach, where no more is asked; each then has one bound, once it is decided.
        #[serde(skip_serializing_if = "Option::is_none")]
        asked_at_least: Option<i16>,
        /// The value of the best opening, to the mover; `None` until all that could matter is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<i16>,
        /// One entry an opening, in the order of the houses played.
        openings: Vec<OpeningAnswer>,
    },
    /// Kalah: the mover's final gain from here.
    Gain {
        /// What it adds to its store minus what the other adds; `None` while unknown.
        gain: Option<i16>,
    },
    /// Peg solitaire: the number of jump sequences, in decimal (it outgrows 2^53).
    Count {
        /// The count; `None` while unknown.
        #[serde(serialize_with = "decimal::optional")]
        count: Option<u128>,
        /// The same by finish, where more than one was asked for; without those that nothing leads to.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        finishes: Vec<FinishCount>,
    },
}

/// How many jump sequences end with the last peg in one hole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FinishCount {
    /// The hole's name.
    pub finish: String,
    /// The sequences, in decimal.
    #[serde(serialize_with = "decimal::whole")]
    pub count: u128,
}

/// Win or loss for the mover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The mover wins.
    Win,
    /// The mover loses.
    Loss,
}

/// The winner of a Konane game.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Winner {
    /// Black, `x`.
    Black,
    /// White, `o`.
    White,
}

/// What is known of one Kalah opening, to the player who makes it, in final store difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OpeningAnswer {
    /// The opening turn, its house numbers joined by `-`: `4`, `3-6`.
    pub opening: String,
    /// The exact value, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<i16>,
    /// A proven lower bound of a value that is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<i16>,
    /// A proven upper bound of a value that is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<i16>,
    /// A perfect continuation after the opening, in bin numbers, to the end of the game. Empty until known.
    pub continuation: Vec<u8>,
}

/// Serialises counts as decimal strings.
mod decimal {
    use serde::Serializer;

    // serde's `serialize_with` hands over references and fixes these signatures.
    pub fn whole<S: Serializer>(count: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(count)
    }

    pub fn optional<S: Serializer>(count: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
        match count {
            Some(count) => whole(count, serializer),
            None => serializer.serialize_none(),
        }
    }
}
