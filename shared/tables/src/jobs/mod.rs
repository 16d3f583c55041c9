//! The coordinator's durable storage: typed records, batches that are atomic, and the big runs of counting jobs.

mod encoding;
pub mod memory;
pub mod record;
pub mod rocks;

use crate::error::StorageError;
use record::{Epoch, JobId, Loaded, PartId, Write};

/// Whether a commit must have reached the disk when it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Synced: survives power loss once the call has returned.
    Synced,
    /// Ordered after earlier commits and readable at once, but a crash of the machine may lose it.
    Buffered,
}

/// The coordinator's storage. A commit is all or nothing, and commits keep their order: if a later one survives a crash,
/// so do all earlier ones.
pub trait JobStorage: Send + Sync {
    /// This run's number: one more than that of the last run, already durable.
    fn epoch(&self) -> Epoch;

    /// Reads everything back.
    ///
    /// # Errors
    /// Corruption is named with its place; unreadable storage.
    fn load(&self) -> Result<Loaded, StorageError>;

    /// Applies writes in order, atomically.
    ///
    /// # Errors
    /// A full or failing disk. Nothing of the batch is applied then.
    fn commit(&self, writes: &[Write], durability: Durability) -> Result<(), StorageError>;

    /// Stores one encoded run of a part: the boards that go from `from` to part `to_part` of the next stage. Buffered: the
    /// synced [`Write::Part`] that follows makes it durable. Storing it again with the same bytes is harmless.
    ///
    /// # Errors
    /// A full or failing disk.
    fn put_run(&self, job: JobId, from: PartId, to_part: u32, bytes: &[u8]) -> Result<(), StorageError>;

    /// Reads a run.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when its checksum fails, [`StorageError::Missing`] when it is not there.
    fn get_run(&self, job: JobId, from: PartId, to_part: u32) -> Result<Vec<u8>, StorageError>;
}
