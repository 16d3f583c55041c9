//! A count's levels on a disk, for as long as the count runs.

use grundy_search::peg::Spill;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps each level in a file without a name: when the process ends, however it ends, the files are gone.
///
/// Nobody else reads them, so what would be their header stays in memory: where each part is, and its CRC-32C.
pub struct FileSpill {
    directory: PathBuf,
    levels: Mutex<BTreeMap<u32, Level>>,
}

struct Level {
    file: Arc<File>,
    end: u64,
    parts: BTreeMap<usize, Extent>,
}

#[derive(Clone, Copy)]
struct Extent {
    offset: u64,
    length: usize,
    checksum: u32,
}

impl FileSpill {
    /// Spills into a directory, which must exist once something is put.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), levels: Mutex::default() }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The bytes on the disk.
    pub fn bytes(&self) -> u64 {
        self.lock().values().map(|level| level.end).sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Level>> {
        // A part is entered after it was written: whatever panicked, what is entered is there.
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error that says where.
    fn at(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("a temporary file in {}: {error}", self.directory.display()))
    }
}

impl Spill for FileSpill {
    fn put(&self, level: u32, part: usize, bytes: &[u8]) -> io::Result<()> {
        let (file, offset) = {
            let mut levels = self.lock();
            let level = match levels.get_mut(&level) {
                Some(known) => known,
                None => {
                    let file = tempfile::tempfile_in(&self.directory).map_err(|error| self.at(&error))?;
                    let new = Level { file: Arc::new(file), end: 0, parts: BTreeMap::new() };
                    levels.entry(level).or_insert(new)
                }
            };
            let offset = level.end;
            level.end += bytes.len() as u64;
            (Arc::clone(&level.file), offset)
        };
        file.write_all_at(bytes, offset).map_err(|error| self.at(&error))?;
        let extent = Extent { offset, length: bytes.len(), checksum: crc32c::crc32c(bytes) };
        if let Some(level) = self.lock().get_mut(&level) {
            level.parts.insert(part, extent);
        }
        Ok(())
    }

    fn get(&self, level: u32, part: usize) -> io::Result<Vec<u8>> {
        let found = self
            .lock()
            .get(&level)
            .and_then(|level| Some((Arc::clone(&level.file), *level.parts.get(&part)?)));
        let (file, Extent { offset, length, checksum }) = found.ok_or(ErrorKind::NotFound)?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).map_err(|error| self.at(&error))?;
        if crc32c::crc32c(&bytes) != checksum {
            let damaged = io::Error::new(
                ErrorKind::InvalidData,
                format!("level {level}, part {part}, is not what was written: its checksum differs"),
            );
            return Err(self.at(&damaged));
        }
        Ok(bytes)
    }

    fn clear(&self, level: u32) {
        self.lock().remove(&level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_a_flipped_byte_is_found() -> io::Result<()> {
        let directory = tempfile::TempDir::new()?;
        let spill = FileSpill::new(directory.path());
        for level in [5, 6] {
            for part in 0..10 {
                spill.put(level, part, &vec![part as u8; 100 * part])?;
            }
        }
        assert_eq!(spill.bytes(), 2 * 4500);
        assert_eq!(std::fs::read_dir(directory.path())?.count(), 0, "the files have no names");
        for part in 0..10 {
            assert_eq!(spill.get(6, part)?, vec![part as u8; 100 * part]);
        }
        spill.clear(5);
        assert_eq!(spill.get(5, 1).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
        assert_eq!(spill.bytes(), 4500);
        let (file, offset) = {
            let levels = spill.lock();
            (Arc::clone(&levels[&6].file), levels[&6].parts[&9].offset)
        };
        file.write_all_at(&[8], offset + 450)?;
        let error = spill.get(6, 9).expect_err("a byte is flipped").to_string();
        assert!(error.contains("level 6, part 9, is not what was written"), "{error}");
        assert!(spill.get(6, 8).is_ok());
        Ok(())
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let spill = FileSpill::new("/nowhere/at/all");
        let error = spill.put(0, 0, &[1]).expect_err("there is no such directory").to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
