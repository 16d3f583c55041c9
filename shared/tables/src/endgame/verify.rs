//! Checking whole databases: every block, and many entries against the rules.

use super::EndgameError;
use super::cram::{EXTENSION, Extent};
use super::header::Header;
use super::sealed::SealedFile;
use grundy_search::cram::classes::Classes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries of each file that are checked against the rules.
pub const ENTRIES_VERIFIED: usize = 100_000;

/// How a database was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// As it was sealed, and right wherever it was tried.
    Intact,
    /// As it was sealed, but by another version of the program, or for another name: this one builds it again when it needs it.
    Outdated(EndgameError),
    /// Not as it was sealed, or wrong: each place that was found.
    Damaged(Vec<EndgameError>),
    /// It could not be read.
    Unreadable(EndgameError),
}

/// A file that was verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// The file.
    pub path: PathBuf,
    /// What it holds, as far as its header or its name tells.
    pub extent: Option<Extent>,
    /// Bytes of the file.
    pub bytes: u64,
    /// How it was found.
    pub condition: Condition,
    /// How long that took.
    pub took: Duration,
}

/// Verifies all databases of a directory, in the order of their names, and tells of each when it is done.
///
/// # Errors
/// [`EndgameError::Io`] when the directory cannot be read.
pub fn verify(directory: &Path, threads: usize, mut tell: impl FnMut(Verified)) -> Result<(), EndgameError> {
    let failed = |error: std::io::Error| EndgameError::io(directory, "read", &error);
    let entries = directory.read_dir().map_err(failed)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    paths.sort_unstable();
    for path in paths {
        let begun = Instant::now();
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let (extent, condition) = examine(&path, threads);
        tell(Verified { path, extent, bytes, condition, took: begun.elapsed() });
    }
    Ok(())
}

fn examine(path: &Path, threads: usize) -> (Option<Extent>, Condition) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let of_name = Extent::of_file_name(name);
    let condition = |error: EndgameError| match error {
        EndgameError::Damaged { .. } => Condition::Damaged(vec![error]),
        EndgameError::Other { .. } => Condition::Outdated(error),
        EndgameError::Space { .. } | EndgameError::Io { .. } | EndgameError::Stopped { .. } => {
            Condition::Unreadable(error)
        }
    };
    let file = match SealedFile::open(path) {
        Ok(Some(file)) => Arc::new(file),
        Ok(None) => {
            let (path, reason) = (path.to_owned(), "it is gone".to_owned());
            return (of_name, Condition::Unreadable(EndgameError::Io { path, action: "read", reason }));
        }
        Err(error) => return (of_name, condition(error)),
    };
    let extent = Extent::of_header(file.header());
    let damaged = file.check_all_blocks(threads);
    if !damaged.is_empty() {
        return (extent, Condition::Damaged(damaged));
    }
    let other = |field, found: String, expected: &str| {
        let expected = expected.to_owned();
        Condition::Outdated(EndgameError::Other { path: path.to_owned(), field, found, expected })
    };
    let Some(extent) = extent else {
        return (None, other("kind", file.header().kind.to_string(), "cram-pairs with columns and rows"));
    };
    if extent.file_name() != name {
        return (Some(extent), other("name", name.to_owned(), &extent.file_name()));
    }
    let Some(classes) = classes(&extent, file.header()) else {
        let found = format!("{:?}", file.header().parameters);
        return (Some(extent), other("parameters", found, "numbers of classes as this program finds them"));
    };
    let right = file.header().check_is(path, &extent.header(&classes)).and_then(|()| {
        extent.check_entries(&classes, &file, ENTRIES_VERIFIED, u64::from(file.header().fingerprint))
    });
    (Some(extent), right.map_or_else(condition, |()| Condition::Intact))
}

/// The classes that a file was made with. `None` as soon as they are more than its header says, which bounds the work by its length.
fn classes(extent: &Extent, header: &Header) -> Option<Classes> {
    let mut classes = Classes::new(extent.rows)?;
    while classes.columns() < extent.left_columns {
        let known = classes.len(classes.columns()) as u64;
        if known > header.parameters[3] || header.parameters[3] > header.payload_bytes || !classes.grow() {
            return None;
        }
    }
    Some(classes)
}
