//! Messages to types and back. Reading checks everything; writing cannot fail.

use crate::limits;
use crate::v1;
use grundy_games::claim::{Claim, Edge, Fact, Polarity, Subject};
use grundy_games::problem::Fields;

/// What is wrong with a message, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A field that must be there is not.
    #[error("field {field} is missing")]
    Missing {
        /// The field's path.
        field: &'static str,
    },
    /// A field's content is outside of what it may be.
    #[error("field {field}: {reason}")]
    Invalid {
        /// The field's path.
        field: &'static str,
        /// What is wrong and what would be right.
        reason: String,
    },
}

impl From<WireError> for tonic::Status {
    fn from(error: WireError) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

/// Takes a field that must be there.
///
/// # Errors
/// [`WireError::Missing`].
pub fn required<T>(value: Option<T>, field: &'static str) -> Result<T, WireError> {
    value.ok_or(WireError::Missing { field })
}

fn invalid(field: &'static str, reason: impl Into<String>) -> WireError {
    WireError::Invalid { field, reason: reason.into() }
}

/// Checks that a list is no longer than its limit.
///
/// # Errors
/// [`WireError::Invalid`] with both numbers.
pub fn at_most(length: usize, max: usize, field: &'static str) -> Result<(), WireError> {
    if length > max {
        Err(invalid(field, format!("{length} entries, at most {max} are allowed")))
    } else {
        Ok(())
    }
}

/// Checks a worker's name: 1 to 128 bytes, no control characters.
///
/// # Errors
/// [`WireError::Invalid`].
pub fn worker_name(name: &str) -> Result<(), WireError> {
    let field = "worker";
    if name.is_empty() || name.len() > limits::WORKER_NAME_BYTES_MAX {
        let max = limits::WORKER_NAME_BYTES_MAX;
        return Err(invalid(
            field,
            format!("a worker's name has 1 to {max} bytes, this one has {}", name.len()),
        ));
    }
    match name.chars().find(|c| c.is_control()) {
        Some(c) => {
            Err(invalid(field, format!("a worker's name has no control characters, this one has {c:?}")))
        }
        None => Ok(()),
    }
}

impl From<&Fields> for v1::Problem {
    fn from(fields: &Fields) -> Self {
        let Fields { game, rules, position, question } = fields.clone();
        Self { game, rules, position, question }
    }
}

impl From<v1::Problem> for Fields {
    fn from(problem: v1::Problem) -> Self {
        let v1::Problem { game, rules, position, question } = problem;
        Self { game, rules, position, question }
    }
}

impl From<&Claim> for v1::Claim {
    fn from(claim: &Claim) -> Self {
        Self { subject: claim.subject.as_bytes().to_vec(), parameter: claim.parameter.into() }
    }
}

impl TryFrom<v1::Claim> for Claim {
    type Error = WireError;

    fn try_from(claim: v1::Claim) -> Result<Self, WireError> {
        let parameter = i16::try_from(claim.parameter)
            .map_err(|_| invalid("claim.parameter", format!("{} does not fit 16 bits", claim.parameter)))?;
        let subject = Subject::new(claim.subject).map_err(|e| invalid("claim.subject", e.to_string()))?;
        Ok(Self { subject, parameter })
    }
}

impl From<&Fact> for v1::Fact {
    fn from(fact: &Fact) -> Self {
        Self { claim: Some((&fact.claim).into()), truth: fact.truth, work: fact.work }
    }
}

impl TryFrom<v1::Fact> for Fact {
    type Error = WireError;

    fn try_from(fact: v1::Fact) -> Result<Self, WireError> {
        let claim = required(fact.claim, "fact.claim")?.try_into()?;
        Ok(Self { claim, truth: fact.truth, work: fact.work })
    }
}

/// A part's share of a count as `(hole, sequences)`.
///
/// # Errors
/// [`WireError::Invalid`] for a hole beyond 64 or out of order, and for a count of 0 or of another length than 16 bytes.
pub fn shares(shares: Vec<v1::FinishShare>) -> Result<Vec<(u8, u128)>, WireError> {
    let mut read: Vec<(u8, u128)> = Vec::with_capacity(shares.len());
    for v1::FinishShare { hole, ways } in shares {
        let before = read.last().map(|(hole, _)| *hole);
        let known =
            u8::try_from(hole).ok().filter(|hole| *hole < 64 && before.is_none_or(|before| before < *hole));
        let hole = known.ok_or_else(|| {
            invalid(
                "result.shares",
                format!("hole {hole} is out of order or no hole: expected ascending numbers below 64"),
            )
        })?;
        let bytes: [u8; 16] = ways.as_slice().try_into().map_err(|_| {
            invalid("result.shares", format!("hole {hole}: a count has 16 bytes, this has {}", ways.len()))
        })?;
        let ways = u128::from_le_bytes(bytes);
        if ways == 0 {
            return Err(invalid("result.shares", format!("hole {hole}: no sequences: expected at least 1")));
        }
        read.push((hole, ways));
    }
    Ok(read)
}

/// The inverse of [`shares`].
pub fn shares_to_wire(shares: impl IntoIterator<Item = (u8, u128)>) -> Vec<v1::FinishShare> {
    let share =
        |(hole, ways): (u8, u128)| v1::FinishShare { hole: hole.into(), ways: ways.to_le_bytes().to_vec() };
    shares.into_iter().map(share).collect()
}

/// Reads `(proof, disproof)` of an open or decided claim.
///
/// # Errors
/// [`WireError::Invalid`] when a number is past 31 bits or the pair is neither open nor decided.
pub fn numbers(numbers: v1::Numbers) -> Result<(u32, u32), WireError> {
    const INFINITE: u32 = (1 << 31) - 1;
    let v1::Numbers { proof, disproof } = numbers;
    let open = |n: u32| n > 0 && n < INFINITE;
    let fits = matches!((proof, disproof), (0, INFINITE) | (INFINITE, 0)) || open(proof) && open(disproof);
    if fits {
        Ok((proof, disproof))
    } else {
        Err(invalid("numbers", format!("({proof}, {disproof}) are no proof and disproof numbers")))
    }
}

/// Writes what an open result says: `(proof, disproof)` of its claim, and of what it hangs on.
pub fn open_to_wire<'a>(
    own: (u32, u32),
    children: impl IntoIterator<Item = (&'a Edge, (u32, u32))>,
) -> v1::Open {
    let numbers = |(proof, disproof)| Some(v1::Numbers { proof, disproof });
    let child = |(edge, of_child): (&Edge, _)| v1::Child {
        claim: Some((&edge.claim).into()),
        numbers: numbers(of_child),
        same: edge.polarity == Polarity::Same,
    };
    v1::Open { numbers: numbers(own), children: children.into_iter().map(child).collect() }
}

/// Reads a claim that another one hangs on.
///
/// # Errors
/// [`WireError`].
pub fn edge(claim: Option<v1::Claim>, same: bool, field: &'static str) -> Result<Edge, WireError> {
    let polarity = if same { Polarity::Same } else { Polarity::Opposite };
    Ok(Edge { polarity, claim: required(claim, field)?.try_into()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_cross_the_wire_unchanged() -> Result<(), Box<dyn std::error::Error>> {
        for parameter in [i16::MIN, -1, 0, 1, i16::MAX] {
            let claim = Claim { subject: Subject::new(vec![1, 2, 0])?, parameter };
            assert_eq!(Claim::try_from(v1::Claim::from(&claim))?, claim);
        }
        Ok(())
    }

    #[test]
    fn bad_fields_are_named() {
        let far = v1::Claim { subject: vec![], parameter: 40_000 };
        let error = Claim::try_from(far).expect_err("40,000 does not fit");
        assert_eq!(error.to_string(), "field claim.parameter: 40000 does not fit 16 bits");
        let long = v1::Claim { subject: vec![0; 2000], parameter: 0 };
        let error = Claim::try_from(long).expect_err("2,000 bytes are too many");
        assert!(error.to_string().starts_with("field claim.subject"), "{error}");
        let error = Fact::try_from(v1::Fact::default()).expect_err("a fact has a claim");
        assert_eq!(error.to_string(), "field fact.claim is missing");
        assert!(worker_name("").is_err() && worker_name("a\nb").is_err() && worker_name("node-7/2").is_ok());
    }

    #[test]
    fn shares_are_in_order_and_count_something() {
        let of = |holes: &[(u32, &[u8])]| {
            shares(
                holes
                    .iter()
                    .map(|(hole, ways)| v1::FinishShare { hole: *hole, ways: ways.to_vec() })
                    .collect(),
            )
        };
        let (one, many) = (1u128.to_le_bytes(), u128::MAX.to_le_bytes());
        let good = [(0, 1), (63, u128::MAX)];
        assert_eq!(of(&[(0, &one), (63, &many)]), Ok(good.to_vec()));
        assert_eq!(shares(shares_to_wire(good)), Ok(good.to_vec()));
        for bad in [
            &[(64, &one[..])][..],
            &[(3, &one), (3, &one)],
            &[(3, &one), (2, &one)],
            &[(3, &one[1..])],
            &[(3, &[0; 16])],
            &[(1 << 8, &one)],
        ] {
            let error = of(bad).expect_err("something is wrong").to_string();
            assert!(error.starts_with("field result.shares: hole "), "{error}");
        }
    }

    #[test]
    fn numbers_are_open_or_decided() {
        let read = |proof, disproof| numbers(v1::Numbers { proof, disproof });
        assert!(read(1, 1).is_ok() && read(0, (1 << 31) - 1).is_ok() && read((1 << 31) - 1, 0).is_ok());
        for (proof, disproof) in [(0, 0), (0, 5), (1 << 31, 1), (3, (1 << 31) - 1)] {
            assert!(read(proof, disproof).is_err(), "({proof}, {disproof})");
        }
    }
}
