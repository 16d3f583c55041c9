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
    locked(directory, lock.try_lock())?;
    match read(directory)? {
        Some(text) => check(directory, kind, &text)?,
        None => {
            // The marker is written before the database, so a database without one is another program's.
            if directory.join(DATABASE).try_exists().map_err(failed)? {
                return Err(StorageError::NotOurs { directory: directory.into() });
            }
            write(directory, kind).map_err(failed)?;
        }
    }
    Ok(lock)
}

/// Checks that a directory is one of this kind and that nobody writes to it, without changing a byte. Nobody can open it for
/// writing until the lock, if there is one, is dropped; a copy of a directory may lack it.
pub(crate) fn look(directory: &Path, kind: Kind) -> Result<Option<File>, StorageError> {
    let no_data = |lacks| StorageError::NoData { directory: directory.into(), lacks };
    let text = read(directory)?.ok_or_else(|| no_data("GRUNDY file"))?;
    check(directory, kind, &text)?;
    let failed = |error: io::Error| io_error(directory, &error);
    let lock = match File::open(directory.join(LOCK)) {
        Ok(lock) => Some(lock),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let Some(lock) = &lock {
        locked(directory, lock.try_lock_shared())?;
    }
    if !directory.join(DATABASE).try_exists().map_err(failed)? {
        return Err(no_data("db folder"));
    }
    Ok(lock)
}

/// What an attempt to lock came to.
fn locked(directory: &Path, attempt: Result<(), TryLockError>) -> Result<(), StorageError> {
    attempt.map_err(|error| match error {
        TryLockError::WouldBlock => StorageError::Locked { directory: directory.into() },
        TryLockError::Error(error) => io_error(directory, &error),
    })
}

/// The marker's text, if there is one.
fn read(directory: &Path) -> Result<Option<String>, StorageError> {
    match fs::read_to_string(directory.join(MARKER)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(corrupt(directory, "it is not text")),
        Err(error) => Err(io_error(directory, &error)),
    }
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
