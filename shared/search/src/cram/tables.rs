//! The classes and the pair table for the strips of a board: how large, and where they come from.

use super::classes::{Classes, HEIGHT_MAX};
use super::pairs::PairTable;
use super::strip;
use crate::engine::EngineTables;
use crate::kalah::tables::{KalahTables, KalahWish};
use grundy_games::cram::Sum;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Classes of ends and pair table for the strips of one height.
pub struct StripTable {
    /// The classes.
    pub classes: Classes,
    /// The pair table over them.
    pub pairs: PairTable,
}

/// What a table for a height has to be like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size {
    /// Rows, 1 to [`HEIGHT_MAX`].
    pub height: u32,
    /// The longest ends that are classified; fewer columns if more than `ends` would have to be looked at.
    pub class_columns: usize,
    /// The most ends that are looked at for one more column.
    pub ends: usize,
    /// The longest regions that the pair table answers; fewer columns if it would take more than `bytes`.
    pub pair_columns: usize,
    /// The most bytes of the pair table.
    pub bytes: usize,
}

impl StripTable {
    /// Builds a table in memory. `None` for a height that strips do not have.
    pub fn build(size: Size) -> Option<Self> {
        let classes = size.classes()?;
        let (left, right) = PairTable::size(&classes, size.pair_columns, size.bytes);
        let pairs = PairTable::build(&classes, left, right, 1);
        Some(Self { classes, pairs })
    }

    /// The nimber of the cells of a strip (bit `column * height + row`), connected or not, if they lie in few enough columns.
    pub fn nimber(&self, cells: u128) -> Option<u8> {
        if cells == 0 {
            return Some(0);
        }
        let cells = strip::to_front(cells, self.classes.height());
        let columns = strip::columns(cells, self.classes.height()) as usize;
        (columns <= self.pairs.columns()).then(|| self.pairs.of_strip(&self.classes, cells, columns))
    }
}

impl Size {
    /// The classes for a table of this size. `None` for a height that strips do not have.
    pub fn classes(&self) -> Option<Classes> {
        let mut classes = Classes::new(self.height)?;
        while classes.columns() < self.class_columns && classes.next_ends() <= self.ends && classes.grow() {}
        Some(classes)
    }
}

/// Where the engines of a process get their tables from.
pub trait StripTables: Send + Sync {
    /// How many bytes the pair tables of a board may take together.
    fn bytes(&self) -> usize;

    /// A table of this size, or one that answers more; `None` if there is none to be had. Whoever needs the same table at the
    /// same time waits for it instead of building it again.
    fn strip_table(&self, size: Size) -> Option<Arc<StripTable>>;
}

/// Tables that are built in memory when they are first needed.
pub struct BuiltTables {
    bytes: usize,
    tables: Mutex<BTreeMap<Size, Arc<StripTable>>>,
    kalah: Mutex<Vec<(KalahWish, Arc<KalahTables>)>>,
}

impl EngineTables for BuiltTables {
    fn kalah(&self, wish: KalahWish) -> Option<Arc<KalahTables>> {
        let mut kalah = self.kalah.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tables)) = kalah.iter().find(|(of, _)| of.serves(wish)) {
            return Some(Arc::clone(tables));
        }
        let tables = Arc::new(KalahTables::build(wish, self.bytes, 1)?);
        kalah.push((wish, Arc::clone(&tables)));
        Some(tables)
    }
}

impl BuiltTables {
    /// Tables that take at most so many bytes for a board.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, tables: Mutex::default(), kalah: Mutex::default() }
    }
}

impl StripTables for BuiltTables {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn strip_table(&self, size: Size) -> Option<Arc<StripTable>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&size) {
            return Some(table.clone());
        }
        let table = Arc::new(StripTable::build(size)?);
        tables.insert(size, table.clone());
        Some(table)
    }
}

/// The most rows and the most columns of a sum's components.
pub fn extent(sum: &Sum) -> (u32, u32) {
    sum.components().iter().fold((0, 0), |(rows, columns), component| {
        (rows.max(u32::from(component.height())), columns.max(u32::from(component.width())))
    })
}

/// The sizes of the tables for a board of so many rows (the short side) and columns, one for each height that its regions
/// can have; the pair tables take at most so many bytes together.
///
/// Longer regions in the table make the search shorter and the building longer, by a factor of 4 or 5 a column each; these
/// lengths come near the least sum of both: 3x14 with 11 columns, 3x16 with 13, 3x19 with 14, 3x22 with 15, 4x11 with 8, 4x13 with
/// 10, 5x8 and 5x9 with 7, 5x10 with 8. Ends are classified as far as the pair table needs, and to simplify longer regions as far as
/// that takes a fraction of a second.
pub fn sizes(rows: u32, columns: u32, bytes: usize) -> impl Iterator<Item = Size> {
    let rows = rows.min(HEIGHT_MAX);
    let below = bytes / 12;
    (1..=rows).map(move |height| {
        let columns = columns as usize;
        let pair_columns = match height {
            ..=3 => (columns * 5 / 8 + 3).min(columns.saturating_sub(1) / 3 + 8),
            4 => (columns * 3 + 2) / 4,
            _ => columns * 3 / 4 + 1,
        };
        let pair_columns = pair_columns.min(columns * 3 / 4 + 1);
        // Regions of fewer rows are many and their tables small.
        let bytes =
            if height == rows { bytes - below } else { (below - below / 4) >> (2 * (rows - 1 - height)) };
        Size {
            height,
            class_columns: pair_columns
                .div_ceil(2)
                .max((columns / 2).min(SIMPLIFIED_CELLS / height as usize)),
            ends: (bytes / ENDS_PER_BYTE).max(1 << 15),
            pair_columns,
            bytes,
        }
    })
}

/// Ends of more cells than this are classified only if the pair table needs them.
const SIMPLIFIED_CELLS: usize = 22;

/// No more ends are looked at than one for so many bytes of the pair table: a table that is worth its ends has some thousands of
/// pairs for each.
const ENDS_PER_BYTE: usize = 2048;
