//! Engines that decide claims within a budget, and count boards level by level.
//!
//! One depth-first proof-number search ([`dfpn`]) serves every game; a game's folder gives it moves, estimates and exact
//! table keys. Tables are behind [`table::Table`]. No I/O, no clock, no storage may enter here.

pub mod cram;
pub mod dfpn;
pub mod engine;
pub mod evaluate;
pub mod kalah;
pub mod konane;
pub mod memory;
pub mod numbers;
pub mod peg;
pub mod samples;
mod shelf;
pub mod table;
mod together;
