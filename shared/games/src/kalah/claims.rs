//! Claims of Kalah: "the mover's final gain from here is at least v".
//!
//! ```text
//! subject     byte 0: houses a side, h; bytes 1 to h: the mover's houses from its left; bytes h+1 to 2h: the other's
//! parameter   v; a gain has the parity of the seeds in play, and so has a canonical v (an odd one out is rounded up)
//! ```
//!
//! The gain is what the mover will add to its store less what the other will add, the final sweep included. Stores are no
//! part of the subject: they shift the value of a position and nothing else.

use super::{Board, HOUSES_MAX, MoveTable, Rules, SEEDS_MAX};
use crate::claim::{Claim, ClaimError, ClaimRules, Edge, Expansion, Polarity, Subject};

/// The claims of one board size and rules variant.
#[derive(Clone)]
pub struct KalahClaims {
    table: MoveTable,
}

impl KalahClaims {
    /// The claims of boards with `houses` houses a side (1 to [`HOUSES_MAX`]).
    pub fn new(houses: u8, rules: Rules) -> Self {
        Self { table: MoveTable::new(houses, rules) }
    }

    /// The moves they are about.
    pub fn table(&self) -> &MoveTable {
        &self.table
    }

    /// The claim that the mover gains at least `margin`, rounded up to the parity of a gain.
    pub fn claim(&self, board: Board, margin: i16) -> Claim {
        claim_of(self.table.houses(), board, margin)
    }

    /// The board and margin of a claim.
    ///
    /// # Errors
    /// [`ClaimError::Malformed`] for bytes that are no board of this size, or a margin of the wrong parity.
    pub fn decode(&self, claim: &Claim) -> Result<(Board, i16), ClaimError> {
        let board = self.decode_subject(&claim.subject)?;
        if (claim.parameter ^ board.seeds()) & 1 != 0 {
            let (margin, seeds) = (claim.parameter, board.seeds());
            return Err(malformed(format!(
                "margin {margin} with {seeds} seeds in play: a gain has the parity of the seeds"
            )));
        }
        Ok((board, claim.parameter))
    }

    fn decode_subject(&self, subject: &Subject) -> Result<Board, ClaimError> {
        let houses = self.table.houses();
        let (bytes, side) = (subject.as_bytes(), usize::from(houses));
        if bytes.first() != Some(&houses) {
            return Err(match bytes.first() {
                Some(other) => malformed(format!("byte 0 says {other} houses a side, expected {houses}")),
                None => malformed(format!("an empty subject, expected {} bytes", 1 + 2 * side)),
            });
        }
        if bytes.len() != 1 + 2 * side {
            return Err(malformed(format!("{} bytes, expected {}", bytes.len(), 1 + 2 * side)));
        }
        let seeds: u32 = bytes[1..].iter().map(|&seeds| u32::from(seeds)).sum();
        if seeds > u32::from(SEEDS_MAX) {
            return Err(malformed(format!("{seeds} seeds in play, at most {SEEDS_MAX} are allowed")));
        }
        let pack = super::position::pack;
        Ok(Board { mine: pack(&bytes[1..=side]), theirs: pack(&bytes[1 + side..]) })
    }

    /// The truth of a claim that the rules alone decide: a finished game, or a margin out of reach.
    pub fn settled(&self, board: Board, margin: i16) -> Option<bool> {
        if board.is_over() {
            return Some(board.swept() >= margin);
        }
        match board.seeds() {
            seeds if margin <= -seeds => Some(true),
            seeds if margin > seeds => Some(false),
            _ => None,
        }
    }
}

/// The claim that the mover of a board with `houses` houses a side gains at least `margin`, rounded up to the parity of a gain.
pub fn claim_of(houses: u8, board: Board, margin: i16) -> Claim {
    let side = usize::from(houses.min(HOUSES_MAX));
    let mut bytes = Vec::with_capacity(1 + 2 * side);
    bytes.push(houses);
    bytes.extend_from_slice(&board.mine.to_le_bytes()[..side]);
    bytes.extend_from_slice(&board.theirs.to_le_bytes()[..side]);
    let subject = Subject::new(bytes).expect("a board of 17 bytes is shorter than any limit on subjects");
    Claim { subject, parameter: margin.saturating_add((margin ^ board.seeds()) & 1) }
}

/// The margin that a claim's child is asked about: the mover banked `banked` and either moves again or lets the other
/// gain at least what would spoil the claim.
pub fn child_margin(margin: i16, banked: impl Into<i16>, again: bool) -> i16 {
    let left = margin - banked.into();
    if again { left } else { 2 - left }
}

impl ClaimRules for KalahClaims {
    fn namespace(&self) -> String {
        format!("kalah/{}/{}", self.table.houses(), self.table.rules())
    }

    fn check(&self, claim: &Claim) -> Result<(), ClaimError> {
        self.decode(claim).map(|_| ())
    }

    fn decided(&self, claim: &Claim) -> Result<Option<bool>, ClaimError> {
        let (board, margin) = self.decode(claim)?;
        Ok(self.settled(board, margin))
    }

    fn expand(&self, claim: &Claim) -> Result<Expansion, ClaimError> {
        let (board, margin) = self.decode(claim)?;
        if let Some(truth) = self.settled(board, margin) {
            return Ok(Expansion::Decided(truth));
        }
        // Distinct houses may lead to one board (two that pass all their seeds on), and an edge is listed once.
        let mut edges: Vec<Edge> = Vec::new();
        for (_, played) in self.table.moves(board) {
            let polarity = if played.again { Polarity::Same } else { Polarity::Opposite };
            let claim = self.claim(played.board, child_margin(margin, played.banked, played.again));
            let edge = Edge { polarity, claim };
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        }
        Ok(Expansion::Open(edges))
    }

    fn infer(&self, known: i16, truth: bool, asked: i16) -> Option<bool> {
        match truth {
            true if asked <= known => Some(true),
            false if asked >= known => Some(false),
            _ => None,
        }
    }

    fn describe(&self, claim: &Claim) -> String {
        let Ok(board) = self.decode_subject(&claim.subject) else {
            return format!("{:?} at least {}", claim.subject, claim.parameter);
        };
        let side = |word: u64| {
            let seeds: Vec<String> =
                word.to_le_bytes()[..usize::from(self.table.houses())].iter().map(u8::to_string).collect();
            seeds.join(",")
        };
        format!("the mover of {}/{} gains at least {}", side(board.mine), side(board.theirs), claim.parameter)
    }
}

fn malformed(reason: String) -> ClaimError {
    ClaimError::Malformed { game: "kalah", reason }
}
