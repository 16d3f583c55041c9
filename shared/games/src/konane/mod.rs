//! Konane: jump over an adjacent enemy stone into the empty cell beyond; whoever has no jump loses.
//!
//! Jumps are orthogonal, captures are removed, a multiple jump keeps its direction and may stop after any jump. A jump
//! moves a stone by two cells, so every stone stays on cells of its own colour for ever: black on even `x + y`, white on
//! odd. One 64-bit set of stones is therefore the whole board, and which side a stone belongs to is a mask:
//!
//! ```text
//!      a b c d        bit = y * width + x, from 0 at a1
//!   1  x o x o        black on a1 (bit 0), c1 (2), b2 (5), d2 (7)
//!   2  o x o x        white on b1 (bit 1), d1 (3), a2 (4), c2 (6)
//! ```

mod board;
mod cellset;
mod claims;
mod notation;
mod position;
mod problem;
mod start;
mod symmetry;

pub use board::{Board, CELLS_MAX, Jump};
pub use cellset::CellSet;
pub use claims::KonaneClaims;
pub use notation::{Cell, NotationError};
pub use position::{Position, Side};
pub use problem::{KonanePlan, Problem, ProblemError, Question};
pub use start::{Start, StartError, size_from_text};
pub use symmetry::Symmetries;
