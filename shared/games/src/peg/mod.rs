//! Peg solitaire: boards of up to 64 holes on the square or the triangular lattice, and counting problems about them.
//!
//! ```text
//!     a b c d e f g
//!   1 # # o o o # #        o peg, . empty hole, # no hole
//!   2 # # o o o # #        a cell is a column letter and a row from the top: the empty hole is d4
//!   3 o o o o o o o
//!   4 o o o . o o o        holes are numbered in reading order from 0, cells without a hole not counted:
//!   5 o o o o o o o        c1 is 0, d1 is 1, a3 is 6, d4 is 16, e7 is 32
//!   6 # # o o o # #
//!   7 # # o o o # #        a board is a u64: bit h is set when hole h has a peg
//! ```
//!
//! On one line the rows are joined by `|`. A jump takes a peg over a neighbouring peg into the empty hole behind it,
//! along a row or a column, and removes the peg jumped over. On the triangular lattice ([`Lattice`]) it may also go along the
//! diagonals from `a1` to `b2`:
//!
//! ```text
//!     a b c d e                     .
//!   1 . # # # #                    o o
//!   2 o o # # #                   o o o         triangle5, drawn as a picture and as it looks;
//!   3 o o o # #                  o o o o        rules: triangular
//!   4 o o o o #                 o o o o o
//!   5 o o o o o
//! ```

mod geometry;
mod jumps;
mod notation;
mod problem;
mod symmetry;

pub use geometry::{Geometry, HOLES_MAX, Hole, Lattice, SIDE_MAX};
pub use jumps::{JUMP_WORDS, Jump, JumpTable};
pub use notation::NotationError;
pub use problem::{Finish, NAMED_BOARDS, Problem, TRIANGULAR};
pub use symmetry::{Images, LANES, Orbits, Symmetry};
