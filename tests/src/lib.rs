//! Support for end-to-end tests: real programs, real gRPC on loopback, real SIGKILL.
//!
//! Nothing of the programs' insides may enter here: what a user cannot see or do, these tests do not either.

pub mod data;
pub mod programs;
