//! Regions of strips, simplified by classes of ends and answered by pair tables.

use super::classes::{Classes, End, HEIGHT_MAX};
use super::couple::Couple;
use super::kind::Kind;
use super::look::Look;
use super::outlook::{Outlook, Outlooks};
use super::small::{SMALL_CELLS_MAX, SmallNimbers};
use super::strip::{self, Regions, Strip};
use super::tables::StripTable;
use crate::numbers::Numbers;
use grundy_games::cram::Component;
use std::sync::Arc;

/// Regions are strips of at most [`HEIGHT_MAX`] rows. One that the pair table covers is a nimber; of a longer one both
/// ends are replaced by the representatives of their classes, and of the images the least is kept.
///
/// In a key a strip is its 128 cells and its height (a cell lies in the last column, so the length follows); bit 7 tells it
/// from a component as it is:
///
/// ```text
/// words          the cells, column by column
/// bits 0..3      height
/// bit  7         set
/// ```
///
/// What a key says is about just these cells, whatever tables simplified it, so entries made with other tables hold.
pub struct Strips {
    /// By height, from 1.
    tables: [Option<Arc<StripTable>>; HEIGHT_MAX as usize],
    small: SmallNimbers,
    outlooks: Outlooks,
}

/// One move in so many that the tables do not answer is taken to be needed for a proof. Over 3x14, 4x9, 5x7, 4x11 and 5x8 this
/// makes 57,605 expansions; 1 in its place makes 64,835, 4 makes 66,182 and 8 100,618. An estimate as for components, without
/// a look at the tables, makes 437,930.
const PROOF_MOVES: u32 = 2;

/// What is known of an end of a region.
#[derive(Clone, Copy)]
struct Part {
    /// Its columns, the one at the border lowest.
    outward: u128,
    /// The end equals these columns with this heap beside them.
    offset: u8,
}

impl Strips {
    pub(super) fn new() -> Self {
        Self {
            tables: [const { None }; HEIGHT_MAX as usize],
            small: SmallNimbers::new(),
            outlooks: Outlooks::new(),
        }
    }

    /// Sets the table for strips of its height.
    pub(super) fn set(&mut self, table: Arc<StripTable>) {
        let index = table.classes.height() as usize - 1;
        self.tables[index] = Some(table);
        self.outlooks.clear();
    }

    /// The table for strips of so many rows.
    pub(super) fn table(&self, height: u32) -> Option<&Arc<StripTable>> {
        self.tables[height as usize - 1].as_ref()
    }

    /// Adds what equals a strip: to the heap what is known, the rest simplified.
    ///
    /// Ends: a strip is replaced by one of no more cells, and by one of as many only if its box is smaller.
    fn add(&self, strip: Strip, couple: &mut Couple<Strip>) {
        if strip.is_zero_by_half_turn() {
            return;
        }
        let Some(table) = self.table(u32::from(strip.height)) else {
            couple.add::<Self>(strip);
            return;
        };
        if let Some(nimber) = table.nimber(strip.cells) {
            couple.heap ^= nimber;
            return;
        }
        let (cells, offset) = simplify(&table.classes, strip);
        couple.heap ^= offset;
        let mut regions = Regions::new(cells, u32::from(strip.height));
        let whole = Strip { cells, ..strip };
        match (regions.next(), regions.next()) {
            (Some(region), None) if region == whole => {
                if !whole.is_zero_by_half_turn() {
                    couple.add::<Self>(whole);
                }
            }
            (first, second) => {
                first.into_iter().chain(second).chain(regions).for_each(|region| self.add(region, couple));
            }
        }
    }

    /// By the mex rule.
    fn small_nimber(&mut self, strip: &Strip) -> u8 {
        if let Some(nimber) = self.small.get(strip.cells, strip.height) {
            return nimber;
        }
        let mut reached = 0u32;
        for domino in strip.dominoes() {
            let mut left = Couple::new(0);
            self.place(strip, domino, &mut left);
            let nimber = left.regions().fold(left.heap, |sum, region| sum ^ self.small_nimber(region));
            reached |= 1 << nimber;
        }
        let nimber = reached.trailing_ones() as u8;
        self.small.put(strip.cells, strip.height, nimber);
        nimber
    }
}

/// Replaces both ends of a strip by the representatives of their classes and takes the least of the images: cells of as
/// many columns, and the heap that is to be added.
fn simplify(classes: &Classes, strip: Strip) -> (u128, u8) {
    let (height, columns) = (classes.height(), strip.columns());
    // The ends leave no column between them, or one.
    let ends = (classes.columns() as u32).min(columns / 2);
    let bits = ends * height;
    let mask = (1u128 << bits) - 1;
    let turned = strip::half_turn(strip.cells, height, columns);
    let left = classes.of_word(strip.cells, ends as usize);
    let right = classes.of_word(turned, ends as usize);
    // As it is: the left end mirrored is the turned one's last columns upside down. Read inward, the turned strip's first
    // columns are the right end upside down.
    let upside_down = strip::flip(turned, height);
    let flipped = strip::flip(strip.cells, height);
    let middle = !(mask | mask << ((columns - ends) * height));
    let image = |whole: u128, mirrored: u128, left: End, right: End| {
        let shift = (columns - ends) * height;
        let left = part(classes, left, mirrored >> shift);
        let right = part(classes, right, whole >> shift);
        // The left part goes in mirrored.
        let front = strip::mirror(left.outward, height, ends);
        (whole & middle | front | right.outward << shift, left.offset ^ right.offset)
    };
    let flip = |end: End| classes.flip(end.class()).shifted(end.offset());
    // `upside_down` is the strip mirrored, `turned` is `flipped` mirrored.
    let as_is = image(strip.cells, upside_down, left, flip(right));
    let over = image(flipped, turned, flip(left), right);
    let mirror = |(cells, offset)| (strip::mirror(cells, height, columns), offset);
    as_is.min(over).min(mirror(as_is)).min(mirror(over))
}

/// The simpler of an end and its class's representative.
fn part(classes: &Classes, end: End, outward: u128) -> Part {
    let (cells, offset, word) = classes.representative(end.class());
    if cells <= outward.count_ones() {
        Part { outward: u128::from(word), offset: end.offset() ^ offset }
    } else {
        Part { outward, offset: 0 }
    }
}

impl Kind for Strips {
    type Region = Strip;

    fn cells(region: &Strip) -> u32 {
        region.cells.count_ones()
    }

    fn key(region: &Strip) -> ([u64; 2], u8) {
        ([region.cells as u64, (region.cells >> 64) as u64], 1 << 7 | region.height)
    }

    fn dominoes(region: &Strip) -> impl Iterator<Item = u128> + use<> {
        region.dominoes()
    }

    fn read(&self, component: &Component, couple: &mut Couple<Strip>) {
        if let Some(strip) = Strip::of(component) {
            self.add(strip, couple);
        } else {
            debug_assert!(false, "strips have at most {HEIGHT_MAX} rows");
        }
    }

    fn component(&self, region: &Strip) -> Option<Component> {
        region.component()
    }

    fn place(&mut self, region: &Strip, domino: u128, couple: &mut Couple<Strip>) {
        for left in region.after(domino) {
            self.add(left, couple);
        }
    }

    /// A look at the moves that the tables answer. The others, and the smaller heaps, must all be refuted to disprove the
    /// couple; and the more of them there are, the longer it takes to find the one that proves it.
    fn outlook(&mut self, region: &Strip, heap: u8) -> Numbers {
        let Outlook { reached, open } = self.outlooks.get(region).unwrap_or_else(|| {
            let table = self.table(u32::from(region.height));
            // Without a table it is the same for all heaps and costs nothing.
            let unseen = || Outlook { reached: 0, open: region.dominoes().count() as u8 };
            let outlook = table.map_or_else(unseen, |table| Look::new(table, *region).outlook());
            self.outlooks.put(region, outlook);
            outlook
        });
        // A nimber of the tables is at most 31.
        let below = 1u64.checked_shl(heap.into()).map_or(u64::MAX, |bit| bit - 1);
        let (heap, open) = (u32::from(heap), u32::from(open));
        let missing = heap - (u64::from(reached) & below).count_ones();
        if heap < u32::BITS && reached >> heap & 1 == 1 || missing > open {
            // A move wins; or too few moves are left to reach all that is smaller than the heap, so it exceeds the nimber.
            return Numbers::decided(true);
        }
        match open + missing {
            0 => Numbers::decided(false),
            open => Numbers::open(1 + open / PROOF_MOVES, open),
        }
    }

    fn nimber(&mut self, region: &Strip) -> Option<u8> {
        (Self::cells(region) <= SMALL_CELLS_MAX).then(|| self.small_nimber(region))
    }
}
