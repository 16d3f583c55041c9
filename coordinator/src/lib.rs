//! The coordinator and the command line of the `grundy` program.
//!
//! The job logic is [`core`]: one state machine that knows no clock, socket or disk. Everything else here is the shell
//! around it, and decides nothing about a job:
//!
//! ```text
//!   workers, users                     this process
//!   -------------- gRPC --> service --> actor: one thread that owns core and storage
//!   solve ------------------ Handle -->   |  step(now, event) -> commit -> replies
//!                                         v
//!                                      JobStorage
//! ```
//!
//! A rule of a game, a decision about a lease or a key of the database does not belong in this crate's shell: they are
//! `grundy-games`, [`core`] and `grundy-tables`.

pub mod actor;
pub mod answer;
pub mod cli;
pub mod core;
pub mod exit;
mod log;
pub mod server;
pub mod service;
pub mod simulate;
pub mod tide;
