//! Where the engines of a process get their pair tables from: small ones are built in memory, large ones mapped.

use super::EndgameError;
use super::build::{Origin, Recipe, open_or_build};
use super::cram::{self, Extent};
use super::kalah::{LayerFile, LayerFiles};
use super::progress::Progress;
use super::sealed::SealedFile;
use grundy_search::cram::classes::Classes;
use grundy_search::cram::pairs::PairTable;
use grundy_search::cram::tables::{Size, StripTable, StripTables};
use grundy_search::engine::EngineTables;
use grundy_search::kalah::fill::Filler;
use grundy_search::kalah::layers::{LAYER_SEEDS_MAX, Layers};
use grundy_search::kalah::tables::{KalahTables, KalahWish, build_layers, entries};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::{debug, info, warn};

/// Tables of at most this many bytes get no file: they are built faster than a file is checked.
pub(super) const SMALL_BYTES_MAX: usize = 8 << 20;

/// Tables of at most this many bytes get no file however little memory is left.
const TINY_BYTES_MAX: usize = 64 << 10;

/// Kalah's tables that have less than this part of what there is are made again.
const STARVED_PART: usize = 4;

/// The bytes of Kalah's tables, gains and hints, for a board.
const GAIN_BYTES: usize = 16;

/// How much memory tables may take, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndgameMemory {
    /// Mapped databases. Processes of one machine that map the same file have it in memory once.
    pub mapped: usize,
    /// What is this process's own: classes, small tables, and tables that find no room on disk.
    pub private: usize,
}

impl EndgameMemory {
    /// The lesser of each.
    fn least(self, other: Self) -> Self {
        Self { mapped: self.mapped.min(other.mapped), private: self.private.min(other.private) }
    }
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
    /// The most seeds of Kalah's layers, if it was said.
    kalah_seeds: Option<u8>,
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
    kalah: Vec<KeptKalah>,
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

/// Kalah's tables of one wish.
struct KeptKalah {
    wish: KalahWish,
    tables: Arc<KalahTables>,
    /// The files of those layers that have one.
    files: Vec<Arc<SealedFile>>,
    own: usize,
    /// The process's own memory that there was for them.
    granted: usize,
    used: u64,
}

impl KeptKalah {
    /// Whether the tables have about the share of memory that they would be given now. What they know is worth a good deal of it.
    fn fits(&self, share: EndgameMemory) -> bool {
        self.granted >= share.private / STARVED_PART && self.granted <= share.private / 4 * 5
    }
}

impl Open {
    /// The memory for tables of a wish: an equal share for each wish whose tables somebody uses, as far as it is there.
    fn kalah_share(&self, memory: &EndgameMemory, wish: KalahWish) -> EndgameMemory {
        let others = self.kalah.iter().filter(|kept| !kept.wish.serves(wish));
        let in_use = others.filter(|kept| Arc::strong_count(&kept.tables) > 1);
        let taken = in_use.clone().fold(0, |sum: usize, kept| sum.saturating_add(kept.own));
        let wishes = in_use.count() + 1;
        let mapped = memory.mapped / wishes;
        EndgameMemory { mapped, private: (memory.private / wishes).min(memory.private.saturating_sub(taken)) }
    }

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
        self.files().find(|file| file.path() == path)
    }

    /// All files that are mapped, some of them more than once.
    fn files(&self) -> impl Iterator<Item = &Arc<SealedFile>> {
        let of_kalah = self.kalah.iter().flat_map(|kept| &kept.files);
        self.kept.iter().filter_map(|kept| kept.file.as_ref()).chain(of_kalah)
    }

    /// What is left of a memory.
    fn left(&self, memory: &EndgameMemory) -> EndgameMemory {
        let kalah = self.kalah.iter().map(|kept| kept.own);
        let own: usize = self.kept.iter().map(|kept| kept.own).chain(kalah).sum();
        let files: BTreeMap<&Path, usize> =
            self.files().map(|file| (file.path(), file.payload().len())).collect();
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
                self.kalah.iter().enumerate().filter(|(_, kept)| Arc::strong_count(&kept.tables) == 1);
            if let Some((oldest, _)) = unused.min_by_key(|(_, kept)| kept.used) {
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
            kalah_seeds: None,
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

    /// The same with Kalah's layers of up to so many seeds instead of as many as pay.
    #[must_use]
    pub fn with_kalah_seeds(self, kalah_seeds: Option<u8>) -> Self {
        Self { kalah_seeds, ..self }
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
        let threads = cores();
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

    /// Opens or builds the databases for a wish of Kalah, and tells of each. None if small layers in memory are all that there is room
    /// for.
    ///
    /// # Errors
    /// Any [`EndgameError`] of a layer; those before it are told of.
    pub fn kalah_databases(&self, wish: KalahWish, tell: impl FnMut(LayerFile)) -> Result<(), EndgameError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.kalah_layers(&open, self.memory, wish, tell).1
    }

    /// The layers for a wish within a share of the memory. Small ones are built in memory, and all if it has room for more than files have.
    fn kalah_layers(
        &self,
        open: &Open,
        share: EndgameMemory,
        wish: KalahWish,
        tell: impl FnMut(LayerFile),
    ) -> (Layers, Result<(), EndgameError>) {
        let KalahWish { houses, rules, .. } = wish;
        let left = open.left(&self.memory).least(share);
        let most = |fits: &dyn Fn(u8) -> bool| {
            (2..=LAYER_SEEDS_MAX).take_while(|seeds| fits(*seeds)).last().unwrap_or(1)
        };
        let in_memory = |bytes: usize| most(&|seeds| entries(houses, seeds) <= bytes as u64);
        let small = in_memory(self.small_bytes_max.min(left.private / 2));
        let opened = most(&|seeds| {
            entries(houses, seeds).saturating_sub(entries(houses, small)) <= left.mapped as u64
        });
        // Whoever fills a layer needs some memory for that.
        let filled = most(&|seeds| Filler::bytes_for(houses, seeds) <= left.private as u64);
        let wished = self.kalah_seeds.unwrap_or_else(|| wish.layer_seeds());
        let built = wished.min(opened).min(filled);
        // More than was asked for by number is not opened; more than was reckoned is as welcome as it is there.
        let opened = if self.kalah_seeds.is_some() { built } else { opened };
        let without_files = wished.min(in_memory(left.private / 2));
        if let Some(asked) = self.kalah_seeds
            && asked > built.max(without_files)
        {
            let fit = built.max(without_files);
            warn!(event = "endgame", "a database of {asked} seeds needs more memory: {fit} fit");
        }
        let mut layers = wish.layers(opened.max(without_files));
        let threads = cores();
        if built <= small || built < without_files {
            build_layers(&mut layers, rules, without_files, threads);
            return (layers, Ok(()));
        }
        build_layers(&mut layers, rules, small, threads);
        let (directory, go_on) = (&self.directory, &*self.go_on);
        let files = LayerFiles { directory, rules, built, opened, threads, go_on };
        let added = files.add(&mut layers, |path| open.file(path).cloned(), tell);
        if !matches!(added, Ok(()) | Err(EndgameError::Stopped { .. }))
            && layers.len() <= without_files.into()
        {
            build_layers(&mut layers, rules, without_files, threads);
        }
        (layers, added)
    }

    /// Says once that databases cannot be had.
    fn complain(&self, error: &EndgameError, instead: &str) {
        if self.complained.swap(true, Ordering::Relaxed) {
            debug!(event = "endgame", "{error}");
        } else {
            warn!(event = "endgame", "{error}; {instead}");
        }
    }

    /// Builds a table in what is left of the process's own memory.
    fn in_memory(&self, open: &mut Open, classes: Classes, size: Size) -> Arc<StripTable> {
        let left = open.left(&self.memory).private.saturating_sub(classes.bytes());
        let (left_columns, right_columns) =
            PairTable::size(&classes, size.pair_columns, size.bytes.min(left));
        let threads = cores();
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
        let share = open.kalah_share(&self.memory, wish);
        let mut wish = wish;
        if let Some(index) = open.kalah.iter().position(|kept| kept.wish.serves(wish)) {
            let kept = &mut open.kalah[index];
            kept.used = clock;
            let tables = Arc::clone(&kept.tables);
            // Two are this one and the list's.
            if Arc::strong_count(&tables) > 2 || kept.fits(share) {
                return Some(tables);
            }
            wish = kept.wish;
            open.kalah.swap_remove(index);
        }
        // All that nobody uses: the more there is, the less is searched twice.
        open.make_room(&self.memory, EndgameMemory { mapped: usize::MAX, private: usize::MAX });
        let mut files = Vec::new();
        let layers = match self.kalah_layers(&open, share, wish, |file| files.push(file.file)) {
            (_, Err(EndgameError::Stopped { .. })) => return None,
            (layers, Ok(())) => layers,
            (layers, Err(error)) => {
                self.complain(&error, "going on with a smaller one");
                layers
            }
        };
        let own: usize =
            (0..layers.len()).map(|seeds| layers.layer(seeds).len()).sum::<usize>() - bytes_of(&files);
        let granted = open.left(&self.memory).private.min(share.private);
        if granted < self.memory.private / STARVED_PART {
            let KalahWish { houses, rules, seeds } = wish;
            let bytes = granted.max(own);
            warn!(event = "tables", houses, %rules, seeds, bytes, "another Kalah job's tables have nearly all of the memory; it is shared out once their searches come to an end");
        }
        // More than an entry for each board is of no use.
        let all_boards = usize::try_from(entries(wish.houses, wish.seeds)).unwrap_or(usize::MAX);
        let gains = granted.saturating_sub(own).min(all_boards.saturating_mul(GAIN_BYTES));
        let tables = Arc::new(KalahTables::new(layers, gains)?);
        let own = own + tables.bytes();
        open.kalah.push(KeptKalah { wish, tables: Arc::clone(&tables), files, own, granted, used: clock });
        Some(tables)
    }
}

fn bytes_of(files: &[Arc<SealedFile>]) -> usize {
    files.iter().map(|file| file.payload().len()).sum()
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
                self.complain(&error, "going on with smaller tables in memory");
                Some(self.in_memory(&mut open, size.classes()?, size))
            }
        }
    }
}

/// Threads that build: as many as the machine has cores.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Fills a pair table's payload and says how far it is. False if it was told to stop.
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
    let progress = Progress::new(path, total, go_on);
    let (left, right) = (extent.left_columns, extent.right_columns);
    PairTable::fill(classes, left, right, bytes, threads, &|filled| progress.report(filled))
}
