//! Opening files that lie in a directory where anything may lie.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file as told, unless it is no plain file: a pipe would wait for whoever is at its other end.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(Error::new(ErrorKind::InvalidInput, "it is not a plain file"))
    }
}
