//! Couples as claims.

use super::sum::Sum;
use crate::claim::{Claim, ClaimError, ClaimRules, Edge, Expansion, Polarity, SUBJECT_BYTES_MAX, Subject};

/// The largest heap of a couple. No nimber exceeds 64 (128 cells hold 64 dominoes), and heaps below 128 are closed under
/// Nim addition, so folding known components into the heap never passes it.
pub const HEAP_MAX: u8 = 127;

// A component of n cells takes at most 3n/2 bytes: 3 bytes for two or three cells; n cells span at most (n + 1)^2 / 4 of
// box, and no box takes more than 2 + 16 bytes. So 128 cells take at most 192 bytes.
const _: () = assert!(SUBJECT_BYTES_MAX >= 192);

/// Cram's claims: subject the bytes of a [`Sum`], parameter a heap size n; true if the mover wins the sum and *n.
#[derive(Clone, Copy, Debug, Default)]
pub struct CramClaims;

impl CramClaims {
    /// The claim that the mover wins `sum` and a heap.
    pub fn claim(sum: &Sum, heap: u8) -> Claim {
        let subject = Subject::new(sum.encode()).expect("128 cells take at most 192 bytes");
        Claim { subject, parameter: i16::from(heap) }
    }

    /// The sum and the heap of a claim.
    ///
    /// # Errors
    /// [`ClaimError::Malformed`] says what is wrong.
    pub fn couple(claim: &Claim) -> Result<(Sum, u8), ClaimError> {
        let malformed = |reason| ClaimError::Malformed { game: "cram", reason };
        let heap = u8::try_from(claim.parameter)
            .ok()
            .filter(|heap| *heap <= HEAP_MAX)
            .ok_or_else(|| malformed(format!("the heap is {}, expected 0 to {HEAP_MAX}", claim.parameter)))?;
        let sum = Sum::decode(claim.subject.as_bytes()).map_err(|error| malformed(error.to_string()))?;
        Ok((sum, heap))
    }
}

impl ClaimRules for CramClaims {
    fn namespace(&self) -> String {
        "cram".to_owned()
    }

    fn check(&self, claim: &Claim) -> Result<(), ClaimError> {
        Self::couple(claim).map(|_| ())
    }

    fn decided(&self, claim: &Claim) -> Result<Option<bool>, ClaimError> {
        let (sum, heap) = Self::couple(claim)?;
        // A heap that the nimber cannot equal is won; with nothing left the bound is 0 and the heap decides alone.
        if heap > sum.nimber_max() {
            return Ok(Some(true));
        }
        Ok(sum.is_empty().then_some(false))
    }

    fn expand(&self, claim: &Claim) -> Result<Expansion, ClaimError> {
        if let Some(truth) = self.decided(claim)? {
            return Ok(Expansion::Decided(truth));
        }
        let (sum, heap) = Self::couple(claim)?;
        let edge = |claim| Edge { polarity: Polarity::Opposite, claim };
        let dominoes = sum.after_moves();
        let claims = dominoes.iter().map(|after| Self::claim(after, heap));
        let claims = claims.chain((0..heap).map(|smaller| Self::claim(&sum, smaller)));
        Ok(Expansion::Open(claims.map(edge).collect()))
    }

    fn infer(&self, known: i16, truth: bool, asked: i16) -> Option<bool> {
        // A lost couple gives the nimber, and with it every other couple; a won one rules out one nimber only.
        if known == asked { Some(truth) } else { (!truth).then_some(true) }
    }

    fn describe(&self, claim: &Claim) -> String {
        match Self::couple(claim) {
            Ok((sum, heap)) => format!("{sum} + *{heap}"),
            Err(_) => format!("{:?} + *{}", claim.subject, claim.parameter),
        }
    }
}
