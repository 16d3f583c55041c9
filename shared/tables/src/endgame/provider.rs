//! Where the engines of a process get their pair tables from: small ones are built in memory, large ones mapped.

use super::EndgameError;
use super::build::{Origin, Recipe, open_or_build};
use super::cram::{self, Extent};
use super::sealed::SealedFile;
use grundy_search::cram::classes::Classes;
use grundy_search::cram::pairs::PairTable;
use grundy_search::cram::tables::{Size, StripTable, StripTables};
use grundy_search::engine::EngineTables;
use grundy_search::kalah::tables::{KalahTables, KalahWish};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
/// All engines of a process share one table of a size, and one map of a file. Tables that no engine uses are kept until others need
/// their room, so that a worker may change between jobs; all together stay within the memory.
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

/// The tables there are.
#[derive(Default)]
struct Open {
    kept: Vec<Kept>,
    /// Kalah's tables, with when they were last wished for.
    kalah: Vec<(KalahWish, Arc<KalahTables>, u64)>,
    /// Counts uses.
    clock: u64,
}

/// A table that is there.
struct Kept {
    /// The wish that it answers.
    size: Size,
    table: Arc<StripTable>,
    /// The file it lies in; `None` if it is the process's own.
    file: Option<Arc<SealedFile>>,
    /// What it takes of the process's own memory.
    own: usize,
    /// When it was last wished for.
    used: u64,
}

impl Open {
    /// The table for a wish that came before.
    fn find(&mut self, size: Size) -> Option<Arc<StripTable>> {
        self.clock += 1;
        let kept = self.kept.iter_mut().find(|kept| kept.size == size)?;
        kept.used = self.clock;
        Some(Arc::clone(&kept.table))
    }

    fn keep(&mut self, size: Size, table: StripTable, file: Option<Arc<SealedFile>>) -> Arc<StripTable> {
        let own = table.classes.bytes() + if file.is_some() { 0 } else { table.pairs.bytes() };
        let table = Arc::new(table);
        self.kept.push(Kept { size, table: Arc::clone(&table), file, own, used: self.clock });
        table
    }

    /// A file that is mapped.
    fn file(&self, path: &Path) -> Option<&Arc<SealedFile>> {
        self.kept.iter().filter_map(|kept| kept.file.as_ref()).find(|file| file.path() == path)
    }

    /// What is left of a memory.
    fn left(&self, memory: &EndgameMemory) -> EndgameMemory {
        let kalah = self.kalah.iter().map(|(_, tables, _)| tables.bytes());
        let own: usize = self.kept.iter().map(|kept| kept.own).chain(kalah).sum();
        let files = self.kept.iter().filter_map(|kept| kept.file.as_ref());
        let files: BTreeMap<&Path, usize> = files.map(|file| (file.path(), file.payload().len())).collect();
        EndgameMemory {
            mapped: memory.mapped.saturating_sub(files.into_values().sum()),
            private: memory.private.saturating_sub(own),
        }
    }

    /// Lets go of tables that nobody uses, the longest unused first, until so much is left or there are none.
    fn make_room(&mut self, memory: &EndgameMemory, needed: EndgameMemory) {
        loop {
            let left = self.left(memory);
            if left.mapped >= needed.mapped && left.private >= needed.private {
                return;
            }
            let unused =
                self.kalah.iter().enumerate().filter(|(_, (_, tables, _))| Arc::strong_count(tables) == 1);
            if let Some((oldest, _)) = unused.min_by_key(|(_, (_, _, used))| *used) {
                self.kalah.swap_remove(oldest);
                continue;
            }
            let unused = self.kept.iter().enumerate().filter(|(_, kept)| Arc::strong_count(&kept.table) == 1);
            let Some((oldest, _)) = unused.min_by_key(|(_, kept)| kept.used) else { return };
            self.kept.swap_remove(oldest);
        }
    }
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
        let Some(classes) = size.classes() else { return Ok(None) };
        match self.make_room(&mut open, &classes, size) {
            Some(bytes) => self.mapped(&mut open, classes, size, bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Makes room for a table, as far as there are tables that nobody uses. The bytes that it may take as a file if it is worth
    /// one, and files have the room.
    fn make_room(&self, open: &mut Open, classes: &Classes, size: Size) -> Option<usize> {
        let bytes_within = |bytes: usize| {
            let (left, right) = PairTable::size(classes, size.pair_columns, bytes.min(size.bytes));
            PairTable::bytes_for(classes, left, right)
        };
        let (bytes, own) = (bytes_within(usize::MAX), classes.bytes());
        let private = own + bytes.min(self.small_bytes_max);
        let mapped = if bytes > TINY_BYTES_MAX { bytes } else { 0 };
        open.make_room(&self.memory, EndgameMemory { mapped, private });
        let left = open.left(&self.memory);
        let small = self.small_bytes_max.min(left.private.saturating_sub(own).max(TINY_BYTES_MAX));
        let bytes = bytes_within(left.mapped);
        (self.memory.mapped > self.memory.private && bytes > small).then(|| left.mapped.min(size.bytes))
    }

    /// Opens or builds a database that answers the wish as far as so many bytes allow. It is kept under the wish as it came.
    fn mapped(
        &self,
        open: &mut Open,
        mut classes: Classes,
        wish: Size,
        bytes: usize,
    ) -> Result<Database, EndgameError> {
        let size = Size { bytes, ..wish };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (left_columns, right_columns) = PairTable::size(&classes, size.pair_columns, size.bytes);
        let wished = Extent { rows: size.height, left_columns, right_columns };
        let mut files = cram::files(&self.directory, size.height);
        files.retain(|file| file.columns() >= wished.columns() && *file != wished);
        files.sort_unstable_by_key(|file| (std::cmp::Reverse(file.columns()), file.left_columns));
        // Those there are that answer as much or more within the bytes, the most first; then the one that was wished for.
        for extent in files.into_iter().chain([wished]) {
            if !fits(&mut classes, &extent, &size) {
                continue;
            }
            let path = cram::path(&self.directory, &extent);
            let header = extent.header(&classes);
            let shared = open.file(&path).filter(|file| *file.header() == header);
            let (file, origin) = match shared {
                Some(file) => (Arc::clone(file), Origin::Found),
                None => {
                    let fill =
                        |bytes: &mut [u8]| fill(&classes, &extent, bytes, threads, &path, &*self.go_on);
                    let check = |file: &Arc<SealedFile>, count, seed| {
                        extent.check_entries(&classes, file, count, seed)
                    };
                    let go_on = &*self.go_on;
                    let recipe = Recipe { path: &path, header, fill: &fill, check: &check, threads, go_on };
                    if extent == wished {
                        open_or_build(&recipe)?
                    } else {
                        match recipe.open() {
                            Ok(Some(file)) => (file, Origin::Found),
                            Ok(None) => continue,
                            Err(error) => {
                                warn!(event = "endgame", "{error}; it is passed over");
                                continue;
                            }
                        }
                    }
                }
            };
            let pairs = extent.pairs(&classes, &file).ok_or_else(|| {
                EndgameError::damaged(&path, "length", "it is not that of the table of its classes")
            })?;
            let table = open.keep(wish, StripTable { classes, pairs }, Some(file));
            return Ok(Database { table, extent, path, origin });
        }
        Err(EndgameError::Stopped { path: cram::path(&self.directory, &wished) })
    }

    /// Builds a table in what is left of the process's own memory.
    fn in_memory(&self, open: &mut Open, classes: Classes, size: Size) -> Arc<StripTable> {
        let left = open.left(&self.memory).private.saturating_sub(classes.bytes());
        let (left_columns, right_columns) =
            PairTable::size(&classes, size.pair_columns, size.bytes.min(left));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pairs = PairTable::build(&classes, left_columns, right_columns, threads);
        open.keep(size, StripTable { classes, pairs }, None)
    }
}

/// Whether a file answers within a wish's bytes. Classifies more ends if it needs them and the wish allows it.
fn fits(classes: &mut Classes, file: &Extent, size: &Size) -> bool {
    while classes.columns() < file.left_columns && classes.next_ends() <= size.ends && classes.grow() {}
    classes.columns() >= file.left_columns
        && PairTable::bytes_for(classes, file.left_columns, file.right_columns) <= size.bytes
}

impl EngineTables for EndgameTables {
    fn kalah(&self, wish: KalahWish) -> Option<Arc<KalahTables>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clock += 1;
        let clock = open.clock;
        if let Some((_, tables, used)) = open.kalah.iter_mut().find(|(of, ..)| *of == wish) {
            *used = clock;
            return Some(Arc::clone(tables));
        }
        // All that nobody uses: the more there is, the less is searched twice.
        open.make_room(&self.memory, EndgameMemory { mapped: 0, private: usize::MAX });
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let tables = KalahTables::build(wish, open.left(&self.memory).private, threads)?;
        let tables = Arc::new(tables);
        open.kalah.push((wish, Arc::clone(&tables), clock));
        Some(tables)
    }
}

impl StripTables for EndgameTables {
    fn bytes(&self) -> usize {
        self.memory.mapped.max(self.memory.private)
    }

    fn strip_table(&self, size: Size) -> Option<Arc<StripTable>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = open.find(size) {
            return Some(table);
        }
        let classes = size.classes()?;
        let Some(bytes) = self.make_room(&mut open, &classes, size) else {
            return Some(self.in_memory(&mut open, classes, size));
        };
        match self.mapped(&mut open, classes, size, bytes) {
            Ok(database) => Some(database.table),
            Err(EndgameError::Stopped { .. }) => None,
            Err(error) => {
                if self.complained.swap(true, Ordering::Relaxed) {
                    debug!(event = "endgame", "{error}");
                } else {
                    warn!(event = "endgame", "{error}; going on with smaller tables in memory");
                }
                Some(self.in_memory(&mut open, size.classes()?, size))
            }
        }
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
