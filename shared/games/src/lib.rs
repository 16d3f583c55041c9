//! Rules, notation, canonical forms, byte encodings and claims of Grundy's games.
//!
//! Each game has a folder: its position and moves, its one-line notation, its canonical form, and how a
//! question about it becomes claims. Nothing here searches, keeps a table, does I/O, or knows another crate
//! of the project.

pub mod claim;
pub mod cram;
pub mod kalah;
pub mod konane;
pub mod peg;
pub mod plan;
pub mod problem;
