//! Proof and disproof numbers.

/// How many open leaves must still be decided, at least, to decide a claim true (`proof`) or false (`disproof`).
///
/// Exactly one of them is 0 (and the other infinite) when the claim is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Numbers {
    /// Leaves to decide before the claim is true.
    pub proof: u32,
    /// Leaves to decide before the claim is false.
    pub disproof: u32,
}

/// The number that no finite sum reaches. Sums of two such numbers fit 32 bits. A limit of 24 bits is too low: Konane's root on 7x7 comes to
/// it within seconds, and where all numbers are the same there is nothing to choose by.
pub const INFINITE: u32 = (1 << 31) - 1;

/// The largest finite number; sums saturate here.
pub const FINITE_MAX: u32 = INFINITE - 1;

impl Numbers {
    /// An open leaf of which nothing is known.
    pub const UNKNOWN: Self = Self { proof: 1, disproof: 1 };

    /// A decided claim's numbers.
    pub fn decided(truth: bool) -> Self {
        if truth { Self { proof: 0, disproof: INFINITE } } else { Self { proof: INFINITE, disproof: 0 } }
    }

    /// The truth, when decided.
    pub fn truth(self) -> Option<bool> {
        match self {
            Self { proof: 0, .. } => Some(true),
            Self { disproof: 0, .. } => Some(false),
            _ => None,
        }
    }

    /// Numbers of an open claim from estimates: both forced into the finite, non-zero range.
    pub fn open(proof: u32, disproof: u32) -> Self {
        Self { proof: proof.clamp(1, FINITE_MAX), disproof: disproof.clamp(1, FINITE_MAX) }
    }

    /// Whether one of the numbers is at least as large as in `thresholds`, which none is that is infinite there.
    pub fn reach(self, thresholds: Self) -> bool {
        let reaches = |number, threshold| threshold < INFINITE && number >= threshold;
        reaches(self.proof, thresholds.proof) || reaches(self.disproof, thresholds.disproof)
    }

    /// The child's numbers as seen from its parent across an edge.
    pub fn across(self, polarity: grundy_games::claim::Polarity) -> Self {
        match polarity {
            grundy_games::claim::Polarity::Same => self,
            grundy_games::claim::Polarity::Opposite => Self { proof: self.disproof, disproof: self.proof },
        }
    }

    /// A parent's numbers from its children's, each already seen [`across`](Self::across) its edge: the least proof, the sum of disproofs.
    pub fn backed_up(children: impl IntoIterator<Item = Self>) -> Self {
        let mut result = Self { proof: INFINITE, disproof: 0 };
        for child in children {
            result.proof = result.proof.min(child.proof);
            result.disproof = add(result.disproof, child.disproof);
        }
        if result.proof == 0 { Self::decided(true) } else { result }
    }
}

/// Adds two numbers; finite sums saturate at [`FINITE_MAX`], infinity stays.
pub fn add(a: u32, b: u32) -> u32 {
    if a >= INFINITE || b >= INFINITE { INFINITE } else { (a + b).min(FINITE_MAX) }
}
