//! Claims about Konane: "the mover wins".

use super::board::Board;
use super::position::{Position, Side};
use super::symmetry::Symmetries;
use crate::claim::{Claim, ClaimError, ClaimRules, Edge, Expansion, Polarity, Subject};
use std::collections::BTreeSet;

/// The bytes of a subject.
const SUBJECT_BYTES: usize = 27;

/// The claims about positions on one board. A claim is true when the mover wins; its parameter is always 0.
///
/// The subject is the canonical form (see [`Symmetries::canonical`]), which says all there is to say:
///
/// ```text
/// 0        width
/// 1        height
/// 2..10    cells, little endian; bit y * width + x
/// 10..18   black stones
/// 18..26   white stones
/// 26       mover: 0 black, 1 white
/// ```
#[derive(Clone, Debug)]
pub struct KonaneClaims {
    board: Board,
    symmetries: Symmetries,
}

impl KonaneClaims {
    /// The claims on this board.
    pub fn new(board: Board) -> Self {
        Self { board, symmetries: Symmetries::of(&board) }
    }

    /// The board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The board's symmetries.
    pub fn symmetries(&self) -> &Symmetries {
        &self.symmetries
    }

    /// The claim that the mover wins with these stones on this board.
    pub fn claim(&self, stones: u64, mover: Side) -> Claim {
        let ([stones], mover) = self.symmetries.canonical([stones], mover);
        let mut bytes = Vec::with_capacity(SUBJECT_BYTES);
        bytes.extend([self.board.width() as u8, self.board.height() as u8]);
        bytes.extend(self.board.cells().to_le_bytes());
        bytes.extend((stones & self.board.colour(Side::Black)).to_le_bytes());
        bytes.extend((stones & self.board.colour(Side::White)).to_le_bytes());
        bytes.push(mover as u8);
        let subject = Subject::new(bytes).expect("27 bytes are fewer than any subject's limit");
        Claim { subject, parameter: 0 }
    }

    /// The position that a claim is about.
    ///
    /// # Errors
    /// [`ClaimError::Malformed`] for bytes that are not the canonical form of a position on this board.
    pub fn position(&self, claim: &Claim) -> Result<Position, ClaimError> {
        let (stones, mover) =
            self.read(claim).map_err(|reason| ClaimError::Malformed { game: "konane", reason })?;
        Position::new(self.board, stones, mover).ok_or_else(|| ClaimError::Malformed {
            game: "konane",
            reason: "a stone off the board".to_owned(),
        })
    }

    fn read(&self, claim: &Claim) -> Result<(u64, Side), String> {
        let bytes = claim.subject.as_bytes();
        if claim.parameter != 0 {
            return Err(format!("parameter {}: expected 0", claim.parameter));
        }
        let bytes: &[u8; SUBJECT_BYTES] = bytes
            .try_into()
            .map_err(|_| format!("a subject of {} bytes: expected {SUBJECT_BYTES}", bytes.len()))?;
        let word = |at: usize| {
            bytes[at..].iter().take(8).rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte))
        };
        let board = &self.board;
        let (width, height, cells) = (usize::from(bytes[0]), usize::from(bytes[1]), word(2));
        if (width, height, cells) != (board.width(), board.height(), board.cells()) {
            return Err(format!(
                "width {width}, height {height}, cells {cells:016x}: expected {}, {}, {:016x}",
                board.width(),
                board.height(),
                board.cells()
            ));
        }
        for (side, at) in [(Side::Black, 10), (Side::White, 18)] {
            let astray = word(at) & !(board.cells() & board.colour(side));
            if astray != 0 {
                return Err(format!(
                    "{side} stones {:016x}: {astray:016x} of them are not on {side}'s cells",
                    word(at)
                ));
            }
        }
        let mover = match bytes[26] {
            0 => Side::Black,
            1 => Side::White,
            other => return Err(format!("mover {other}: expected 0 (black) or 1 (white)")),
        };
        let stones = word(10) | word(18);
        let canonical = self.symmetries.canonical([stones], mover);
        if canonical != ([stones], mover) {
            return Err(format!(
                "stones {stones:016x} with {mover} to move are not canonical: expected {:016x} with {} to move",
                canonical.0[0], canonical.1
            ));
        }
        Ok((stones, mover))
    }
}

impl ClaimRules for KonaneClaims {
    fn namespace(&self) -> String {
        format!("konane/{}x{}/{:016x}", self.board.height(), self.board.width(), self.board.cells())
    }

    fn check(&self, claim: &Claim) -> Result<(), ClaimError> {
        self.position(claim).map(drop)
    }

    fn decided(&self, claim: &Claim) -> Result<Option<bool>, ClaimError> {
        Ok(self.position(claim)?.is_lost().then_some(false))
    }

    fn expand(&self, claim: &Claim) -> Result<Expansion, ClaimError> {
        let position = self.position(claim)?;
        if position.is_lost() {
            return Ok(Expansion::Decided(false));
        }
        let children: BTreeSet<Claim> =
            position.successors().map(|child| self.claim(child.stones(), child.mover())).collect();
        let edges = children.into_iter().map(|claim| Edge { polarity: Polarity::Opposite, claim }).collect();
        Ok(Expansion::Open(edges))
    }

    fn infer(&self, known: i16, truth: bool, asked: i16) -> Option<bool> {
        (known == asked).then_some(truth)
    }

    fn describe(&self, claim: &Claim) -> String {
        match self.position(claim) {
            Ok(position) => format!("{position} wins"),
            Err(_) => format!("{:?}", claim.subject),
        }
    }
}
