//! Where the engines of a process get their pair tables from: small ones are built in memory, large ones mapped.

use super::EndgameError;
use super::build::{Origin, Recipe, open_or_build};
use super::cram::{self, Extent};
use super::sealed::SealedFile;
use grundy_search::cram::classes::Classes;
use grundy_search::cram::pairs::PairTable;
use grundy_search::cram::tables::{Size, StripTable, StripTables};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

/// Tables of at most this many bytes get no file: they are built faster than a file is checked.
const SMALL_BYTES_MAX: usize = 8 << 20;

/// Tables of at most this many bytes get no file however little memory is left.
const TINY_BYTES_MAX: usize = 64 << 10;

/// How often a build says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// How much memory tables may take, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndgameMemory {
    /// Mapped databases. Processes of one machine that map the same file have it in memory once.
    pub mapped: usize,
    /// What is this process's own: classes, small tables, and tables that find no room on disk.
    pub private: usize,
}

/// A database that is open.
pub struct Database {
    /// The table over it.
    pub table: Arc<StripTable>,
    /// What it holds.
    pub extent: Extent,
    /// Its file.
    pub path: PathBuf,
    /// Whether it was there.
    pub origin: Origin,
}

/// Endgame databases of a directory, and small tables beside them.
///
/// A table is kept for as long as an engine uses it. All engines of a process share one map of a file.
pub struct EndgameTables {
    directory: PathBuf,
    memory: EndgameMemory,
    small_bytes_max: usize,
    /// Whether the process is to go on: not when it was told to stop.
    go_on: Box<GoOn>,
    open: Mutex<Open>,
    /// Whether it was said that databases cannot be had.
    complained: AtomicBool,
}

/// Asked now and then while a database is built. Whoever answers no gets none.
pub type GoOn = dyn Fn() -> bool + Send + Sync;

/// What is in use.
#[derive(Default)]
struct Open {
    tables: BTreeMap<Size, Weak<StripTable>>,
    /// Tables with what they take of the process's own memory.
    own: Vec<(Weak<StripTable>, usize)>,
    maps: BTreeMap<PathBuf, Weak<SealedFile>>,
}

impl EndgameTables {
    /// Tables whose databases lie in a directory, which is made when the first one is built.
    pub fn new(directory: PathBuf, memory: EndgameMemory) -> Self {
        let open = Mutex::default();
        let complained = AtomicBool::new(false);
        Self {
            directory,
            memory,
            small_bytes_max: SMALL_BYTES_MAX,
            go_on: Box::new(|| true),
            open,
            complained,
        }
    }

    /// The same for a process that may be told to stop.
    #[must_use]
    pub fn with_go_on(self, go_on: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { go_on: Box::new(go_on), ..self }
    }

    /// The same with another bound between tables in memory and tables in files. For tests.
    #[must_use]
    pub fn with_small_bytes_max(self, small_bytes_max: usize) -> Self {
        Self { small_bytes_max, ..self }
    }

    /// Opens or builds the database for a wish. `None` if the wish is for a table that gets no file.
    ///
    /// # Errors
    /// Any [`EndgameError`]; there is no table in memory in its place.
    pub fn database(&self, size: Size) -> Result<Option<Database>, EndgameError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match size.classes() {
            Some(classes) if self.is_for_a_file(&classes, size, &open) => {
                self.mapped(&mut open, classes, size).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// What is left of the process's own memory.
    fn private_left(&self, open: &Open) -> usize {
        let used = open.own.iter().filter(|(table, _)| table.strong_count() > 0);
        self.memory.private.saturating_sub(used.map(|(_, bytes)| bytes).sum())
    }

    /// Whether a table is worth a file, and files have the room.
    fn is_for_a_file(&self, classes: &Classes, size: Size, open: &Open) -> bool {
        let (left, right) = PairTable::size(classes, size.pair_columns, size.bytes);
        let bytes = PairTable::bytes_for(classes, left, right);
        let left = self.private_left(open).saturating_sub(classes.bytes()).max(TINY_BYTES_MAX);
        let small = self.small_bytes_max.min(left);
        self.memory.mapped > self.memory.private && bytes > small
    }

    /// Opens or builds a database that answers the wish.
    fn mapped(&self, open: &mut Open, mut classes: Classes, size: Size) -> Result<Database, EndgameError> {
        let extent = self.choose(&mut classes, size);
        let path = cram::path(&self.directory, &extent);
        let shared = open.maps.get(&path).and_then(Weak::upgrade);
        let header = extent.header(&classes);
        let (file, origin) = match shared.filter(|file| *file.header() == header) {
            Some(file) => (file, Origin::Found),
            None => {
                let threads = std::thread::available_parallelism().map_or(1, usize::from);
                let fill = |bytes: &mut [u8]| fill(&classes, &extent, bytes, threads, &path, &*self.go_on);
                let check =
                    |file: &Arc<SealedFile>, count, seed| extent.check_entries(&classes, file, count, seed);
                open_or_build(&Recipe { path: &path, header, fill: &fill, check: &check, threads })?
            }
        };
        open.maps.retain(|_, map| map.strong_count() > 0);
        open.maps.insert(path.clone(), Arc::downgrade(&file));
        let pairs = extent.pairs(&classes, &file).ok_or_else(|| {
            EndgameError::damaged(&path, "length", "it is not that of the table of its classes")
        })?;
        let own = classes.bytes();
        let table = Arc::new(StripTable { classes, pairs });
        open.own.push((Arc::downgrade(&table), own));
        Ok(Database { table, extent, path, origin })
    }

    /// The file to use: of those that answer as many columns as the wish and take no more bytes than it allows the one that answers
    /// most; else the one that was wished for. Classifies more ends if a file needs them and the wish allows it.
    fn choose(&self, classes: &mut Classes, size: Size) -> Extent {
        let (left_columns, right_columns) = PairTable::size(classes, size.pair_columns, size.bytes);
        let wished = Extent { rows: size.height, left_columns, right_columns };
        let mut files = cram::files(&self.directory, size.height);
        files.retain(|file| file.columns() >= wished.columns());
        files.sort_unstable_by_key(|file| (std::cmp::Reverse(file.columns()), file.left_columns));
        let fits = |file: &Extent| {
            while classes.columns() < file.left_columns && classes.next_ends() <= size.ends && classes.grow()
            {
            }
            classes.columns() >= file.left_columns
                && PairTable::bytes_for(classes, file.left_columns, file.right_columns) <= size.bytes
        };
        files.into_iter().find(fits).unwrap_or(wished)
    }

    /// Builds a table in what is left of the process's own memory.
    fn in_memory(&self, open: &mut Open, classes: Classes, size: Size) -> Arc<StripTable> {
        let left = self.private_left(open).saturating_sub(classes.bytes());
        let (left_columns, right_columns) =
            PairTable::size(&classes, size.pair_columns, size.bytes.min(left));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pairs = PairTable::build(&classes, left_columns, right_columns, threads);
        let own = classes.bytes() + pairs.bytes();
        let table = Arc::new(StripTable { classes, pairs });
        open.own.push((Arc::downgrade(&table), own));
        table
    }
}

impl StripTables for EndgameTables {
    fn bytes(&self) -> usize {
        self.memory.mapped.max(self.memory.private)
    }

    fn strip_table(&self, size: Size) -> Option<Arc<StripTable>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = open.tables.get(&size).and_then(Weak::upgrade) {
            return Some(table);
        }
        open.own.retain(|(table, _)| table.strong_count() > 0);
        open.tables.retain(|_, table| table.strong_count() > 0);
        let classes = size.classes()?;
        let table = if self.is_for_a_file(&classes, size, &open) {
            match self.mapped(&mut open, classes, size) {
                Ok(database) => database.table,
                Err(EndgameError::Stopped { .. }) => return None,
                Err(error) => {
                    if self.complained.swap(true, Ordering::Relaxed) {
                        debug!(event = "endgame", "{error}");
                    } else {
                        warn!(event = "endgame", "{error}; going on with smaller tables in memory");
                    }
                    self.in_memory(&mut open, size.classes()?, size)
                }
            }
        } else {
            self.in_memory(&mut open, classes, size)
        };
        open.tables.insert(size, Arc::downgrade(&table));
        Some(table)
    }
}

/// Fills a database's payload and says how far it is. False if it was told to stop.
fn fill(
    classes: &Classes,
    extent: &Extent,
    bytes: &mut [u8],
    threads: usize,
    path: &Path,
    go_on: &GoOn,
) -> bool {
    let (rows, columns, total) = (extent.rows, extent.columns(), bytes.len());
    info!(event = "endgame", file = %path.display(), rows, columns, bytes = total, threads, "building an endgame database");
    let said = Mutex::new(Instant::now());
    let said_and_go_on = |filled: usize| {
        // A thread that finds another one talking has nothing to add.
        if let Ok(mut said) = said.try_lock()
            && said.elapsed() >= PROGRESS_EVERY
        {
            *said = Instant::now();
            let percent = (filled as f64 / total.max(1) as f64 * 100.0).floor();
            info!(event = "endgame", file = %path.display(), percent, "building an endgame database");
        }
        go_on()
    };
    PairTable::fill(classes, extent.left_columns, extent.right_columns, bytes, threads, &said_and_go_on)
}
