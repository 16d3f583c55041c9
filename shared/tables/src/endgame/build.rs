//! Building a sealed file, once for all processes that want it.

use super::header::{HEADER_BYTES, Header};
use super::sealed::{SealedFile, block_checksums};
use super::{EndgameError, map, plain};
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Entries that are checked when a file is opened.
const ENTRIES_CHECKED: usize = 1_000;

/// Entries that are checked before a file gets its name.
const ENTRIES_CHECKED_WHEN_BUILT: usize = 10_000;

/// How often a process that waits for another one tries the lock, and asks whether to wait on.
const LOCK_EVERY: Duration = Duration::from_millis(50);

/// A database as whoever builds and checks it knows it.
pub struct Recipe<'a> {
    /// Its name.
    pub path: &'a Path,
    /// What it holds.
    pub header: Header,
    /// Fills the payload, which is all zeros. False if it was told to stop.
    pub fill: &'a dyn Fn(&mut [u8]) -> bool,
    /// Checks so many entries, chosen by a seed, against the rules.
    pub check: &'a EntryCheck<'a>,
    /// Threads for checksums.
    pub threads: usize,
    /// Asked now and then while another process is waited for, which is left at no.
    pub go_on: &'a dyn Fn() -> bool,
}

/// Checks so many entries of a file, chosen by a seed.
pub type EntryCheck<'a> = dyn Fn(&Arc<SealedFile>, usize, u64) -> Result<(), EndgameError> + 'a;

/// How a database came to be open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It was there.
    Found,
    /// This process built it.
    Built,
}

/// Opens a database, or builds it if it is not there, is damaged, or is another than its name says. Of several processes that want
/// it at once one builds it, and the others wait for that.
///
/// # Errors
/// [`EndgameError`] when it is not there and cannot be built.
pub fn open_or_build(recipe: &Recipe<'_>) -> Result<(Arc<SealedFile>, Origin), EndgameError> {
    let begun = Instant::now();
    let opened = |file: Arc<SealedFile>, origin| {
        let how = match origin {
            Origin::Found => "opened",
            Origin::Built => "built",
        };
        let (bytes, seconds) = (file.payload().len(), begun.elapsed().as_secs_f64());
        info!(event = "endgame", file = %recipe.path.display(), bytes, seconds, "{how} an endgame database");
        (file, origin)
    };
    match recipe.open() {
        Ok(Some(file)) => return Ok(opened(file, Origin::Found)),
        Ok(None) => {}
        Err(error @ EndgameError::Damaged { .. }) => {
            warn!(event = "corruption", file = %recipe.path.display(), "{error}; it is not used and built again");
        }
        Err(error @ EndgameError::Other { .. }) => {
            info!(event = "endgame", file = %recipe.path.display(), "{error}; it is built again");
        }
        Err(error) => return Err(error),
    }
    let directory = recipe.path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|error| EndgameError::io(directory, "make", &error))?;
    let _lock = recipe.lock()?;
    // Somebody else may have built it meanwhile. What is wrong with it was said above.
    if let Ok(Some(file)) = recipe.open() {
        return Ok(opened(file, Origin::Found));
    }
    recipe.build(directory)?;
    match SealedFile::open(recipe.path)? {
        Some(file) => Ok(opened(Arc::new(file), Origin::Built)),
        None => Err(EndgameError::Io {
            path: recipe.path.to_owned(),
            action: "read",
            reason: "it was removed while it was built".to_owned(),
        }),
    }
}

/// The name of a database's file with something appended.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A file without its final name. Removed when dropped; one that a killed process left is overwritten.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is none.
        let _ = fs::remove_file(&self.0);
    }
}

impl Recipe<'_> {
    /// Opens the file if it is there, and checks all of its blocks and some entries, other ones each time: an answer that rests on a
    /// damaged entry would be wrong, and so would be all that is kept of it.
    ///
    /// # Errors
    /// [`EndgameError`] when it is not what is looked for, or cannot be read.
    pub fn open(&self) -> Result<Option<Arc<SealedFile>>, EndgameError> {
        let Some(file) = SealedFile::open(self.path)? else {
            return Ok(None);
        };
        file.header().check_is(self.path, &self.header)?;
        if let Some(damage) = file.check_all_blocks(self.threads).into_iter().next() {
            return Err(damage);
        }
        let file = Arc::new(file);
        (self.check)(&file, ENTRIES_CHECKED, RandomState::new().hash_one(0))?;
        Ok(Some(file))
    }

    /// Waits for the right to build the database. It is let go of with the file, or with the process, however that ends.
    fn lock(&self) -> Result<File, EndgameError> {
        let name = beside(self.path, ".lock");
        let failed = |error| EndgameError::io(&name, "lock", &error);
        let lock = plain::open(OpenOptions::new().create(true).truncate(false).write(true), &name)
            .map_err(failed)?;
        let mut waits = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if !(self.go_on)() => {
                    return Err(EndgameError::Stopped { path: self.path.to_owned() });
                }
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut waits, true) {
                        info!(event = "endgame", file = %self.path.display(), "waiting for another process that builds this endgame database");
                    }
                    std::thread::sleep(LOCK_EVERY);
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// Builds the file. The caller holds its lock.
    fn build(&self, directory: &Path) -> Result<(), EndgameError> {
        let aside = Unfinished(beside(self.path, ".new"));
        let failed = |error| EndgameError::io(&aside.0, "write", &error);
        // Whatever a killed process or somebody else left there goes. It is not opened: it may be a link to another file.
        match fs::remove_file(&aside.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file =
            OpenOptions::new().create_new(true).read(true).write(true).open(&aside.0).map_err(failed)?;
        allocate(&file, directory, &aside.0, self.header.file_bytes())?;
        let mut map = map::unfinished(&file).map_err(failed)?;
        let (front, payload) = map.split_at_mut(self.header.payload_offset() as usize);
        if !(self.fill)(payload) {
            return Err(EndgameError::Stopped { path: self.path.to_owned() });
        }
        let checksums = block_checksums(payload, self.threads);
        let table = &mut front[HEADER_BYTES..HEADER_BYTES + 4 * checksums.len()];
        for (bytes, checksum) in table.chunks_exact_mut(4).zip(checksums) {
            bytes.copy_from_slice(&checksum.to_le_bytes());
        }
        let table_crc = crc32c::crc32c(table);
        front[..HEADER_BYTES].copy_from_slice(&self.header.encode(table_crc));
        map.flush().map_err(failed)?;
        file.sync_all().map_err(failed)?;
        drop(map);
        if let Some(sealed) = SealedFile::open(&aside.0)? {
            (self.check)(&Arc::new(sealed), ENTRIES_CHECKED_WHEN_BUILT, u64::from(self.header.fingerprint))?;
        }
        fs::rename(&aside.0, self.path).map_err(failed)?;
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| EndgameError::io(directory, "sync", &error))
    }
}

/// Gives a file its length, and disk blocks for all of it: a write through a map that finds no space kills the process.
fn allocate(mut file: &File, directory: &Path, path: &Path, bytes: u64) -> Result<(), EndgameError> {
    let failed = |error: std::io::Error| EndgameError::io(path, "allocate", &error);
    let disk = statvfs(directory).map_err(|error| failed(error.into()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let full = || EndgameError::Space { directory: directory.to_owned(), needed: bytes, free };
    if bytes > free {
        return Err(full());
    }
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        Err(Errno::NOSPC | Errno::DQUOT) => Err(full()),
        // Not every file system can; all of them can be written to.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = vec![0; 1 << 20];
            let mut left = bytes;
            while left > 0 {
                let length = left.min(zeros.len() as u64);
                file.write_all(&zeros[..length as usize]).map_err(failed)?;
                left -= length;
            }
            Ok(())
        }
        Err(error) => Err(failed(error.into())),
    }
}
