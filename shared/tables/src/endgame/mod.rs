//! Endgame databases: exact values of all small positions, built once, sealed, and mapped by every process that needs them.
//!
//! ```text
//!   wish --> file there? --> open: header, length, all blocks, some entries --> read-only map, shared by all processes
//!              | no, or damaged                                                         ^
//!              v                                                                        |
//!            lock of the file --> fill NAME.new through a writable map --> checksums --> sync --> rename
//! ```
//!
//! A sealed file never changes: it is written under another name and renamed when all of it is on disk and was checked.
//! Whoever finds it damaged builds it again beside it and renames that; maps of the old one stay as they are.
//!
//! [`header`], [`sealed`] and [`build`] know nothing of any game; [`cram`] and [`kalah`] say what these games keep in such files,
//! and [`EndgameTables`] gives engines their tables. The layout is in `docs/formats.md`.

pub mod build;
pub mod cram;
mod error;
pub mod header;
pub mod kalah;
mod map;
mod plain;
mod progress;
mod provider;
pub mod sealed;
mod verify;

pub use error::EndgameError;
pub use provider::{Database, EndgameMemory, EndgameTables};
pub use verify::{Condition, Contents, Verified, verify};
