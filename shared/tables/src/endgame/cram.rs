//! Cram's databases: the pair tables of strips, one file for each height and length of ends.

use super::EndgameError;
use super::header::{Header, Kind, PARAMETERS};
use super::sealed::{Payload, SealedFile, sample};
use grundy_search::cram::classes::{Classes, HEIGHT_MAX};
use grundy_search::cram::pairs::PairTable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of these files. Payload: one byte for each pair of a left and a right class, see `grundy_search::cram::pairs`.
pub const KIND: Kind = Kind::new("cram-pairs");

/// How file names end.
pub const EXTENSION: &str = "edb";

/// How file names start.
const PREFIX: &str = "cram-pairs-";

/// Which pair table a file holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Extent {
    /// Rows of the strips, 1 to 7.
    pub rows: u32,
    /// The most columns of left ends.
    pub left_columns: usize,
    /// The most columns of right ends.
    pub right_columns: usize,
}

impl Extent {
    /// The most columns of a region that the table answers.
    pub fn columns(&self) -> usize {
        self.left_columns + self.right_columns
    }

    /// The file's name: `cram-pairs-ROWS-LEFT-RIGHT.edb`.
    pub fn file_name(&self) -> String {
        let Self { rows, left_columns, right_columns } = self;
        format!("{PREFIX}{rows}-{left_columns}-{right_columns}.{EXTENSION}")
    }

    /// What a file of this name holds; `None` for any other name.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix(PREFIX)?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
        let mut numbers = numbers.split('-').map(|number| number.parse().ok());
        let (rows, left, right): (usize, _, _) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let extent = Self { rows: rows as u32, left_columns: left, right_columns: right };
        (extent.is_possible() && extent.file_name() == name).then_some(extent)
    }

    /// What a file with this header holds; `None` for another kind.
    pub fn of_header(header: &Header) -> Option<Self> {
        let [rows, left, right, ..] = header.parameters;
        let narrow = |number: u64| usize::try_from(number).ok();
        let extent = Self {
            rows: u32::try_from(rows).ok()?,
            left_columns: narrow(left)?,
            right_columns: narrow(right)?,
        };
        (header.kind == KIND && extent.is_possible()).then_some(extent)
    }

    fn is_possible(&self) -> bool {
        (1..=HEIGHT_MAX).contains(&self.rows)
            && self.left_columns <= 64
            && self.right_columns <= self.left_columns
    }

    /// The header of the file over these classes, which must have as many columns.
    pub fn header(&self, classes: &Classes) -> Header {
        let counts = [self.left_columns, self.right_columns].map(|columns| classes.len(columns) as u64);
        let mut parameters = [0; PARAMETERS];
        parameters[..3].copy_from_slice(&[
            u64::from(self.rows),
            self.left_columns as u64,
            self.right_columns as u64,
        ]);
        parameters[3..5].copy_from_slice(&counts);
        Header {
            kind: KIND,
            parameters,
            fingerprint: fingerprint(classes, self.left_columns),
            payload_bytes: PairTable::bytes_for(classes, self.left_columns, self.right_columns) as u64,
        }
    }

    /// The pair table in a file; `None` if the classes have too few columns or the file another length.
    pub fn pairs(&self, classes: &Classes, file: &Arc<SealedFile>) -> Option<PairTable> {
        let payload = Box::new(Payload(Arc::clone(file)));
        PairTable::of_bytes(classes, self.left_columns, self.right_columns, payload)
    }

    /// Checks so many entries of a file against the rules, chosen by a seed.
    ///
    /// # Errors
    /// [`EndgameError::Damaged`] names the first that is wrong.
    pub fn check_entries(
        &self,
        classes: &Classes,
        file: &Arc<SealedFile>,
        count: usize,
        seed: u64,
    ) -> Result<(), EndgameError> {
        let damaged = |place: String, reason: &str| Err(EndgameError::damaged(file.path(), place, reason));
        let Some(pairs) = self.pairs(classes, file) else {
            return damaged("length".to_owned(), "it is not that of the table of its classes");
        };
        match sample(pairs.bytes(), count, seed).find(|pair| !pairs.is_right(classes, *pair)) {
            Some(pair) => damaged(format!("entry {pair}"), "it is not the mex of its options"),
            None => Ok(()),
        }
    }
}

/// The names of the databases of strips of so many rows in a directory; none if it cannot be read.
pub fn files(directory: &Path, rows: u32) -> Vec<Extent> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let extents = entries.filter_map(|entry| Extent::of_file_name(entry.file_name().to_str()?));
    extents.filter(|extent| extent.rows == rows).collect()
}

/// Where a database lies.
pub fn path(directory: &Path, extent: &Extent) -> PathBuf {
    directory.join(extent.file_name())
}

/// CRC-32C of the automaton of the classes of up to so many columns: how many classes each number of columns has, then class and
/// offset of each class with each column. Entries are filed by class, so a table of other classes is another table.
pub fn fingerprint(classes: &Classes, columns: usize) -> u32 {
    let word = |crc, number: u32| crc32c::crc32c_append(crc, &number.to_le_bytes());
    let mut crc = word(0, classes.height());
    for columns in 0..=columns {
        crc = word(crc, classes.len(columns) as u32);
    }
    if columns > 0 {
        for class in 0..classes.len(columns - 1) as u32 {
            for column in 0..1 << classes.height() {
                let end = classes.step(class, column);
                crc = word(word(crc, end.class()), u32::from(end.offset()));
            }
        }
    }
    crc
}
