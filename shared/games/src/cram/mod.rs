//! Cram: players in turn place a domino on two adjacent empty cells; who cannot move loses.
//!
//! Cram is impartial, so every position equals a Nim heap (Sprague 1935, Grundy 1939). A position is the sum of
//! its [components](Component); a claim asks whether the mover wins the *couple* of such a [`Sum`] and a heap
//! (Lemoine and Viennot, "Nimbers are inevitable", 2010), and the nimber is the one heap whose couple is lost.
//!
//! ```
//! use grundy_games::cram::Position;
//!
//! let position: Position = "....|.##.|#...".parse()?;
//! assert_eq!(position.to_string(), "....|.##.|#...");
//! assert_eq!("2x3".parse::<Position>()?.to_string(), "...|...");
//! # Ok::<(), grundy_games::cram::PositionError>(())
//! ```

mod claims;
mod component;
mod grid;
mod position;
mod problem;
mod sum;

pub use claims::{CramClaims, HEAP_MAX};
pub use component::{Component, Regions};
pub use position::{CELLS_MAX, Position, PositionError};
pub use problem::{CramError, CramPlan, Problem, Question};
pub use sum::{Sum, SumError};
