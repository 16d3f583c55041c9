//! What can go wrong with a count, and with a run that came from outside.

/// Why a count, or a step of it, has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// More sequences than 128 bits hold. Counts never wrap.
    #[error("more than 2^128 - 1 jump sequences lead to board {board:#018x}")]
    BoardOverflow {
        /// The canonical board.
        board: u64,
    },
    /// The answer itself, or the sum over a part, outgrows 128 bits.
    #[error("the sum of jump sequences exceeds 2^128 - 1")]
    TotalOverflow,
    /// An entry that no correct expansion makes: its count is shared evenly by the boards of the orbit.
    #[error("board {board:#018x} has {ways} sequences: expected a multiple of its {orbit} symmetric boards")]
    Uneven {
        /// The canonical board.
        board: u64,
        /// Its count.
        ways: u128,
        /// The size of its orbit.
        orbit: u32,
    },
    /// A level, or the least share of it that can be worked on, does not fit.
    #[error("the count does not fit into {bytes} bytes of memory")]
    Memory {
        /// What it may use.
        bytes: usize,
    },
    /// What does not fit into memory could not be kept elsewhere, or did not come back as it was.
    #[error("levels that do not fit into memory: {reason}")]
    Spill {
        /// What went wrong.
        reason: String,
    },
    /// Somebody asked the count to stop.
    #[error("the count was stopped")]
    Stopped,
}

impl CountError {
    pub(super) fn spill(error: std::io::Error) -> Self {
        Self::Spill { reason: error.to_string() }
    }
}

/// Why bytes are no run of entries. Offsets and entries count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The bytes end in the middle of a number or before the announced entries.
    #[error("the run ends at byte {offset}, inside entry {entry} of {entries}")]
    Truncated {
        /// Where the bytes end.
        offset: usize,
        /// The entry that is not whole.
        entry: u64,
        /// The number of entries announced, 0 if that number itself is cut off.
        entries: u64,
    },
    /// More entries announced than the bytes could hold.
    #[error(
        "the run announces {entries} entries but has {bytes} bytes: expected at least two bytes an entry"
    )]
    TooManyEntries {
        /// The number announced.
        entries: u64,
        /// The length of the run.
        bytes: usize,
    },
    /// A number in more bytes than it needs, or beyond its type.
    #[error(
        "the number at byte {offset} of the run is too long: expected the shortest form of at most {bits} bits"
    )]
    Number {
        /// Where it starts.
        offset: usize,
        /// The bits of its type.
        bits: u32,
    },
    /// Boards must increase strictly.
    #[error(
        "entry {entry} of the run does not come after the entry before it: expected boards in strictly increasing order"
    )]
    Unsorted {
        /// The entry.
        entry: u64,
    },
    /// Pegs where the board has no hole.
    #[error("entry {entry} of the run is board {board:#018x}: expected pegs within {holes:#018x} only")]
    OutsideHoles {
        /// The entry.
        entry: u64,
        /// Its board.
        board: u64,
        /// All holes.
        holes: u64,
    },
    /// A board that does not stand for its orbit.
    #[error(
        "entry {entry} of the run is board {board:#018x}: expected the canonical board {canonical:#018x}"
    )]
    NotCanonical {
        /// The entry.
        entry: u64,
        /// Its board.
        board: u64,
        /// The board that stands for it.
        canonical: u64,
    },
    /// A board that no sequence reaches has no entry.
    #[error("entry {entry} of the run counts 0 sequences: expected at least 1")]
    NoWays {
        /// The entry.
        entry: u64,
    },
    /// Bytes after the last entry.
    #[error(
        "the run goes on after its last entry, which ends at byte {offset}: expected {bytes} bytes to end there"
    )]
    TrailingBytes {
        /// Where the last entry ends.
        offset: usize,
        /// The length of the run.
        bytes: usize,
    },
}
