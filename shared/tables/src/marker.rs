//! The marker file of a data directory, and the lock on it.
//!
//! `GRUNDY` says whose directory it is and in which format, in three lines a person can read. `LOCK` is locked for as long as
//! the directory is open; the system lets go of it when the process dies, however it dies.

use crate::error::StorageError;
use crate::layout::Kind;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The marker's name.
pub(crate) const MARKER: &str = "GRUNDY";
/// The lock's name.
const LOCK: &str = "LOCK";
/// The database's directory in the data directory.
pub(crate) const DATABASE: &str = "db";

const TITLE: &str = "grundy data directory";

/// Creates the directory if need be, locks it, and checks its marker or writes one. The lock is held until the file is dropped.
pub(crate) fn claim(directory: &Path, kind: Kind) -> Result<File, StorageError> {
    let failed = |error: io::Error| io_error(directory, &error);
    fs::create_dir_all(directory).map_err(failed)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(directory.join(LOCK))
        .map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StorageError::Locked { directory: directory.into() });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    match fs::read_to_string(directory.join(MARKER)) {
        Ok(text) => check(directory, kind, &text)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The marker is written before the database, so a database without one is another program's.
            if directory.join(DATABASE).try_exists().map_err(failed)? {
                return Err(StorageError::NotOurs { directory: directory.into() });
            }
            write(directory, kind).map_err(failed)?;
        }
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return Err(corrupt(directory, "it is not text"));
        }
        Err(error) => return Err(failed(error)),
    }
    Ok(lock)
}

fn write(directory: &Path, kind: Kind) -> io::Result<()> {
    // Whole or not at all: written aside, synced, renamed, and the new name synced too.
    let aside = directory.join(format!("{MARKER}.new"));
    let mut file = File::create(&aside)?;
    write!(file, "{TITLE}\nkind {}\nformat {}\n", kind.name(), kind.format())?;
    file.sync_all()?;
    fs::rename(&aside, directory.join(MARKER))?;
    File::open(directory)?.sync_all()
}

fn corrupt(directory: &Path, reason: &str) -> StorageError {
    StorageError::Corrupt { place: directory.join(MARKER).display().to_string(), reason: reason.to_owned() }
}

fn check(directory: &Path, expected: Kind, text: &str) -> Result<(), StorageError> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(corrupt(directory, "its first line should be 'grundy data directory'"));
    }
    let found = lines.next().and_then(|line| line.strip_prefix("kind "));
    let found = found.ok_or_else(|| corrupt(directory, "its second line should be 'kind ...'"))?;
    let format =
        lines.next().and_then(|line| line.strip_prefix("format ")).and_then(|number| number.parse().ok());
    let format: u32 =
        format.ok_or_else(|| corrupt(directory, "its third line should be 'format' and a number"))?;
    if found != expected.name() {
        return Err(StorageError::WrongKind {
            directory: directory.into(),
            found: found.to_owned(),
            expected: expected.name(),
        });
    }
    if format != expected.format() {
        return Err(StorageError::WrongVersion {
            directory: directory.into(),
            found: format,
            expected: expected.format(),
        });
    }
    Ok(())
}

/// Sorts an error of the file system.
pub(crate) fn io_error(directory: &Path, error: &io::Error) -> StorageError {
    let (directory, reason) = (directory.to_path_buf(), error.to_string());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StorageError::Full { directory, reason },
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            StorageError::ReadOnly { directory, reason }
        }
        _ => StorageError::Io { directory, reason },
    }
}
