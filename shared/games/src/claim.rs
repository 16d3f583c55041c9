//! Claims: the yes/no questions that a search decides, and how one follows from others.
//!
//! A claim asks about a *subject* (one or more positions in canonical form, as bytes) with a *parameter*
//! (the heap size of a couple, the margin of "gains at least v"). Everything above this crate (the proof
//! graph, the wire, the disk) handles claims as opaque bytes; only a game's [`ClaimRules`] can read them.
//!
//! A claim is true exactly when some edge supports it: an edge of polarity [`Polarity::Same`] supports it when
//! its child is true, an edge of polarity [`Polarity::Opposite`] when its child is false. A claim without edges
//! is false. No game here can cycle, so a claim's truth does not depend on how it was reached.

use std::fmt;

/// The longest subject that any game may produce, in bytes. 128 cells in at most 43 components of at most
/// 2 + 16 bytes each stay far below it; a peer that sends more is wrong.
pub const SUBJECT_BYTES_MAX: usize = 1024;

/// The canonical bytes of what a claim is about. Equal subjects are equal in value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(Box<[u8]>);

impl Subject {
    /// Takes bytes as a subject. Whether they mean anything is for [`ClaimRules::check`] to say.
    ///
    /// # Errors
    /// [`ClaimError::TooLong`] past [`SUBJECT_BYTES_MAX`].
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self, ClaimError> {
        let bytes = bytes.into();
        if bytes.len() > SUBJECT_BYTES_MAX {
            return Err(ClaimError::TooLong { bytes: bytes.len() });
        }
        Ok(Self(bytes))
    }

    /// The bytes themselves.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A yes/no question about a subject. Ordered so that all claims about one subject are neighbours.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Claim {
    /// What is asked about.
    pub subject: Subject,
    /// The game's number in the question: a heap size, a margin; 0 where a game needs none.
    pub parameter: i16,
}

/// How a child's truth bears on its parent's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Polarity {
    /// The parent is true if the child is true (the mover moves again).
    Same,
    /// The parent is true if the child is false (the turn passes).
    Opposite,
}

impl Polarity {
    /// What a child of this truth says of the parent's edge: `true` if it makes the parent true.
    pub fn supports(self, child_truth: bool) -> bool {
        match self {
            Self::Same => child_truth,
            Self::Opposite => !child_truth,
        }
    }
}

/// One way to support a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// How the child's truth bears on the claim.
    pub polarity: Polarity,
    /// The child.
    pub claim: Claim,
}

/// What the rules alone say of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expansion {
    /// The rules decide it at once (a finished game, a margin out of reach, a theorem).
    Decided(bool),
    /// It is true exactly when one of these edges supports it. Equal edges are listed once.
    Open(Vec<Edge>),
}

/// A decided claim, with what deciding it cost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// The claim.
    pub claim: Claim,
    /// Its truth.
    pub truth: bool,
    /// Nodes searched to decide it, for choosing what is worth keeping and sharing.
    pub work: u64,
}

/// A game's reading of claims. Pure and deterministic.
pub trait ClaimRules: Send + Sync {
    /// Names the set of claims that may share a table: the game and whatever a subject leaves out, such as the
    /// rules variant. For example `cram` or `kalah/6/standard`.
    fn namespace(&self) -> String;

    /// Checks that the claim is well formed and canonical under these rules.
    ///
    /// # Errors
    /// [`ClaimError::Malformed`] says what is wrong.
    fn check(&self, claim: &Claim) -> Result<(), ClaimError>;

    /// The claim's truth where the rules decide it without a look at the moves' results (a finished game, a margin out of reach).
    /// Cheap: it guards what comes from outside.
    ///
    /// # Errors
    /// As [`ClaimRules::check`].
    fn decided(&self, claim: &Claim) -> Result<Option<bool>, ClaimError>;

    /// The claim's edges, or its truth where the rules decide it ([`ClaimRules::decided`]). Children come out canonical.
    ///
    /// # Errors
    /// As [`ClaimRules::check`].
    fn expand(&self, claim: &Claim) -> Result<Expansion, ClaimError>;

    /// What a decided claim says of another claim about the same subject: the truth of the claim with
    /// parameter `asked`, given that the claim with parameter `known` has truth `truth`. `None` where nothing follows.
    /// For `asked == known` it is `Some(truth)`.
    fn infer(&self, known: i16, truth: bool, asked: i16) -> Option<bool>;

    /// The claim in the game's notation, for logs and people. Falls back to hex for malformed claims.
    fn describe(&self, claim: &Claim) -> String;
}

/// What can be wrong with a claim that came from outside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// A subject longer than any game makes.
    #[error("a claim's subject has {bytes} bytes, at most {SUBJECT_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Bytes that do not encode a canonical position of the game.
    #[error("not a claim of {game}: {reason}")]
    Malformed {
        /// The game whose rules refused it.
        game: &'static str,
        /// What is wrong and where.
        reason: String,
    },
}
