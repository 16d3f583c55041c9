//! Checking whole databases: every block, and many entries against the rules.

use super::EndgameError;
use super::cram::{EXTENSION, Extent};
use super::header::Header;
use super::kalah::{Layer, payload};
use super::provider::SMALL_BYTES_MAX;
use super::sealed::SealedFile;
use grundy_search::cram::classes::Classes;
use grundy_search::kalah::layers::{Index, Layers};
use grundy_search::kalah::tables::{build_layers, entries};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries of each file that are checked against the rules.
pub const ENTRIES_VERIFIED: usize = 100_000;

/// What a database holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Cram's pairs of ends.
    Cram(Extent),
    /// Kalah's gains.
    Kalah(Layer),
}

/// How a database was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// As it was sealed, and right wherever it was tried.
    Intact,
    /// As it was sealed, but by another version of the program, or for another name: this one builds it again when it needs it.
    Outdated(EndgameError),
    /// As it was sealed; the layer below, which its entries could be checked against, is damaged or missing.
    Unchecked(EndgameError),
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
    pub contents: Option<Contents>,
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
    let mut examiner = Examiner { threads, layers: None };
    for path in paths {
        let begun = Instant::now();
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let (contents, condition) = examiner.examine(&path);
        tell(Verified { path, contents, bytes, condition, took: begun.elapsed() });
    }
    Ok(())
}

impl Contents {
    fn of_file_name(name: &str) -> Option<Self> {
        Extent::of_file_name(name).map(Self::Cram).or_else(|| Layer::of_file_name(name).map(Self::Kalah))
    }

    fn of_header(header: &Header) -> Option<Self> {
        Extent::of_header(header).map(Self::Cram).or_else(|| Layer::of_header(header).map(Self::Kalah))
    }

    fn file_name(&self) -> String {
        match self {
            Self::Cram(extent) => extent.file_name(),
            Self::Kalah(layer) => layer.file_name(),
        }
    }
}

impl From<EndgameError> for Condition {
    fn from(error: EndgameError) -> Self {
        match error {
            EndgameError::Damaged { .. } => Self::Damaged(vec![error]),
            EndgameError::Other { .. } => Self::Outdated(error),
            EndgameError::Unchecked { .. } => Self::Unchecked(error),
            EndgameError::Space { .. } | EndgameError::Io { .. } | EndgameError::Stopped { .. } => {
                Self::Unreadable(error)
            }
        }
    }
}

/// Looks at one file after the other.
struct Examiner {
    threads: usize,
    /// The intact layers of one board size and rules variant so far, from the fewest seeds on; with the last of them.
    layers: Option<(Layer, Layers)>,
}

impl Examiner {
    fn examine(&mut self, path: &Path) -> (Option<Contents>, Condition) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let file = match SealedFile::open(path) {
            Ok(Some(file)) => Arc::new(file),
            Ok(None) => {
                let (path, reason) = (path.to_owned(), "it is gone".to_owned());
                let error = EndgameError::Io { path, action: "read", reason };
                return (Contents::of_file_name(name), error.into());
            }
            Err(error) => return (Contents::of_file_name(name), error.into()),
        };
        let contents = Contents::of_header(file.header());
        let damaged = file.check_all_blocks(self.threads);
        if !damaged.is_empty() {
            return (contents, Condition::Damaged(damaged));
        }
        let Some(known) = contents else {
            let kind = file.header().kind.to_string();
            return (
                None,
                other(path, "kind", kind, "cram-pairs or kalah-gains of a size that there is").into(),
            );
        };
        if known.file_name() != name {
            return (contents, other(path, "name", name.to_owned(), &known.file_name()).into());
        }
        let right = match known {
            Contents::Cram(extent) => check_cram(path, &extent, &file),
            Contents::Kalah(layer) => self.check_kalah(path, layer, &file),
        };
        (contents, right.map_or_else(Into::into, |()| Condition::Intact))
    }

    /// Checks a layer against those of fewer seeds, which came before it.
    fn check_kalah(&mut self, path: &Path, layer: Layer, file: &Arc<SealedFile>) -> Result<(), EndgameError> {
        let Layer { houses, rules, seeds } = layer;
        let below = self.layers.take().filter(|(last, _)| (last.houses, last.rules) == (houses, rules));
        let index = Index::new(houses, seeds);
        file.header().check_is(path, &layer.header(&index))?;
        let mut layers = Layers::new(index);
        if let Some((_, below)) = below {
            for seeds in 0..below.len() {
                layers.push(below.layer_bytes(seeds));
            }
        }
        // Small ones have no file.
        if layers.len() < seeds.into() && entries(houses, seeds - 1) <= SMALL_BYTES_MAX as u64 {
            build_layers(&mut layers, rules, seeds - 1, self.threads);
        }
        if layers.len() < seeds.into() {
            // The first that is missing. Those of few seeds have no file, and are built where something follows from them.
            let least =
                (0..seeds).find(|seeds| entries(houses, *seeds) > SMALL_BYTES_MAX as u64).unwrap_or(seeds);
            let missing = u8::try_from(layers.len()).unwrap_or(seeds).max(least);
            self.layers = Some((layer, layers));
            return Err(EndgameError::Unchecked { path: path.to_owned(), seeds: missing });
        }
        let seed = u64::from(file.header().fingerprint);
        let right = layer.check_entries(&layers, file, ENTRIES_VERIFIED, seed);
        if right.is_ok() {
            layers.push(payload(file));
        }
        self.layers = Some((layer, layers));
        right
    }
}

/// The error for a file that is something else than is looked for.
fn other(path: &Path, field: &'static str, found: String, expected: &str) -> EndgameError {
    EndgameError::Other { path: path.to_owned(), field, found, expected: expected.to_owned() }
}

/// Checks a pair table against the rules.
fn check_cram(path: &Path, extent: &Extent, file: &Arc<SealedFile>) -> Result<(), EndgameError> {
    let Some(classes) = classes(extent, file.header()) else {
        let found = format!("{:?}", file.header().parameters);
        return Err(other(path, "parameters", found, "numbers of classes as this program finds them"));
    };
    file.header().check_is(path, &extent.header(&classes))?;
    extent.check_entries(&classes, file, ENTRIES_VERIFIED, u64::from(file.header().fingerprint))
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
