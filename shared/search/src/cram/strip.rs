//! Regions of a strip of at most seven rows, column by column.
//!
//! Cell (row, column) of a strip of `height` rows is bit `column * height + row`:
//!
//! ```text
//! height 3   0 3 6 9
//!            1 4 7 .      right: << height    down: << 1
//!            2 5 8 .      left:  >> height    up:   >> 1
//! ```

use super::classes::HEIGHT_MAX;
use grundy_games::cram::Component;

/// `FIRST_ROW[h]` has every `h`-th bit: the first row's cells, however long the strip.
const FIRST_ROW: [u128; HEIGHT_MAX as usize + 1] = {
    let mut masks = [0; HEIGHT_MAX as usize + 1];
    let mut height = 1;
    while height <= HEIGHT_MAX as usize {
        let mut cell = 0;
        while cell < 128 {
            masks[height] |= 1 << cell;
            cell += height;
        }
        height += 1;
    }
    masks
};

/// Calls a function that is compiled for each height: shifts of 128 bits by a constant take a third of the time.
macro_rules! by_height {
    ($height:expr, $function:ident($($argument:expr),*)) => {
        match $height {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            5 => $function::<5>($($argument),*),
            6 => $function::<6>($($argument),*),
            _ => $function::<7>($($argument),*),
        }
    };
}

/// A connected region of at least two cells that starts in the first column, reaches the first and the last row, and is at
/// least as wide as high. Not canonical by itself: see `Strips`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Strip {
    /// The rows, 1 to [`HEIGHT_MAX`].
    pub(super) height: u8,
    /// The cells.
    pub(super) cells: u128,
}

impl Strip {
    /// The component as a strip; `None` if it has too many rows.
    pub(super) fn of(component: &Component) -> Option<Self> {
        let (width, height) = (u32::from(component.width()), u32::from(component.height()));
        if height > HEIGHT_MAX {
            return None;
        }
        Some(Self { height: component.height(), cells: transpose(component.cells(), width, height) })
    }

    /// The strip as a component.
    pub(super) fn component(&self) -> Option<Component> {
        let height = u32::from(self.height);
        let cells = transpose(self.cells, height, self.columns());
        Component::of_region(cells, self.columns() as u8)
    }

    pub(super) fn columns(&self) -> u32 {
        columns(self.cells, u32::from(self.height))
    }

    /// The dominoes that fit, as two cells each.
    pub(super) fn dominoes(&self) -> impl Iterator<Item = u128> + use<> {
        let height = u32::from(self.height);
        let mut across = self.cells & self.cells >> height;
        let mut upright = self.cells & up(self.cells, height);
        std::iter::from_fn(move || {
            let (cells, step) = if across != 0 { (&mut across, height) } else { (&mut upright, 1) };
            if *cells == 0 {
                return None;
            }
            let first = *cells & cells.wrapping_neg();
            *cells ^= first;
            Some(first | first << step)
        })
    }

    /// The regions that a domino leaves.
    pub(super) fn after(&self, domino: u128) -> Regions {
        let height = u32::from(self.height);
        let left = self.cells & !domino;
        if left.count_ones() > 1 && self.stays_connected(domino) {
            return Regions { rest: left, height, whole: true };
        }
        Regions::new(left, height)
    }

    /// Whether what a domino leaves is seen, by the cells around it, to be connected. Then the search for its extent can be
    /// spared.
    pub(super) fn stays_connected(&self, domino: u128) -> bool {
        by_height!(self.height, stays_connected(self.cells & !domino, domino))
    }

    /// Whether the half-turn theorem shows that the strip is *0 (`Component::is_zero_by_half_turn`).
    pub(super) fn is_zero_by_half_turn(&self) -> bool {
        let (height, columns) = (u32::from(self.height), self.columns());
        if half_turn(self.cells, height, columns) != self.cells {
            return false;
        }
        let centre = columns / 2 * height + height / 2;
        (height % 2 == 0 && columns % 2 == 0) || self.cells >> centre & 1 == 0
    }
}

fn up(cells: u128, height: u32) -> u128 {
    (cells & !FIRST_ROW[height as usize]) >> 1
}

/// All cells beside, above or below one of `cells`.
fn neighbours(cells: u128, height: u32) -> u128 {
    by_height!(height, neighbours_of(cells))
}

fn neighbours_of<const HEIGHT: u32>(cells: u128) -> u128 {
    let first = FIRST_ROW[HEIGHT as usize];
    (cells & !first) >> 1 | cells << 1 & !first | cells << HEIGHT | cells >> HEIGHT
}

/// How many columns there are up to the last that has a cell. There must be a cell.
pub(super) fn columns(cells: u128, height: u32) -> u32 {
    divided(127 - cells.leading_zeros(), height) + 1
}

/// The cells moved so that the first lies in the first column. There must be a cell.
pub(super) fn to_front(cells: u128, height: u32) -> u128 {
    cells >> (column(cells, height) * height)
}

/// The column of the first cell. There must be a cell.
pub(super) fn column(cells: u128, height: u32) -> u32 {
    divided(cells.trailing_zeros(), height)
}

/// `bit / height` for a bit of a strip, by a multiplication: the error of the rounded reciprocal, below 1/1024, times 127 is
/// less than 1/7.
fn divided(bit: u32, height: u32) -> u32 {
    const RECIPROCALS: [u32; HEIGHT_MAX as usize + 1] = {
        let mut reciprocals = [0; HEIGHT_MAX as usize + 1];
        let mut height = 1;
        while height <= HEIGHT_MAX {
            reciprocals[height as usize] = 1024u32.div_ceil(height);
            height += 1;
        }
        reciprocals
    };
    (bit * RECIPROCALS[height as usize]) >> 10
}

/// The strip turned by half a turn.
pub(super) fn half_turn(cells: u128, height: u32, columns: u32) -> u128 {
    if columns == 0 { 0 } else { cells.reverse_bits() >> (128 - height * columns) }
}

/// The strip with its rows in reverse order.
pub(super) fn flip(cells: u128, height: u32) -> u128 {
    let first = FIRST_ROW[height as usize];
    let mut flipped = 0;
    for row in 0..height / 2 {
        let opposite = height - 1 - row;
        flipped |= (cells >> row & first) << opposite | (cells >> opposite & first) << row;
    }
    if height % 2 == 1 { flipped | cells & first << (height / 2) } else { flipped }
}

/// The strip with its columns in reverse order.
pub(super) fn mirror(cells: u128, height: u32, columns: u32) -> u128 {
    flip(half_turn(cells, height, columns), height)
}

/// The grid of `height` rows whose bits run along lines of length `line`, so that they run across.
fn transpose(cells: u128, line: u32, lines: u32) -> u128 {
    let mut transposed = 0;
    let mut rest = cells;
    while rest != 0 {
        let bit = rest.trailing_zeros();
        transposed |= 1 << (bit % line * lines + bit / line);
        rest &= rest - 1;
    }
    transposed
}

/// The connected regions of cells in a strip, those of a single cell left out, each moved to the corner and turned so that
/// it is at least as wide as high.
pub(super) struct Regions {
    rest: u128,
    height: u32,
    /// All the rest is known to be one region.
    whole: bool,
}

impl Regions {
    pub(super) fn new(cells: u128, height: u32) -> Self {
        Self { rest: cells & neighbours(cells, height), height, whole: false }
    }
}

impl Iterator for Regions {
    type Item = Strip;

    fn next(&mut self) -> Option<Strip> {
        if self.rest == 0 {
            return None;
        }
        let lowest = self.rest & self.rest.wrapping_neg();
        let region = if self.whole { self.rest } else { by_height!(self.height, grown(lowest, self.rest)) };
        self.rest ^= region;
        Some(to_corner(region, self.height))
    }
}

/// Whether the cells beside a domino hang together by the cells around it.
fn stays_connected<const HEIGHT: u32>(left: u128, domino: u128) -> bool {
    let beside = neighbours_of::<HEIGHT>(domino);
    let around = neighbours_of::<HEIGHT>(beside) & left;
    let beside = beside & left;
    grown::<HEIGHT>(beside & beside.wrapping_neg(), around) & beside == beside
}

/// The cells connected to `region` by `cells`.
fn grown<const HEIGHT: u32>(mut region: u128, cells: u128) -> u128 {
    loop {
        let grown = region | neighbours_of::<HEIGHT>(region) & cells;
        if grown == region {
            return region;
        }
        region = grown;
    }
}

fn to_corner(region: u128, height: u32) -> Strip {
    let mut cells = to_front(region, height);
    let columns = columns(cells, height);
    let first = FIRST_ROW[height as usize];
    if columns >= height && cells & first != 0 && cells & first << (height - 1) != 0 {
        return Strip { height: height as u8, cells };
    }
    let row = |row: u32| cells & first << row;
    let (mut top, mut bottom) = (0, height - 1);
    while row(top) == 0 {
        top += 1;
    }
    while row(bottom) == 0 {
        bottom -= 1;
    }
    let box_height = bottom - top + 1;
    if box_height < height {
        let mask = (1 << box_height) - 1;
        cells = (0..columns).fold(0, |packed, column| {
            packed | (cells >> (column * height + top) & mask) << (column * box_height)
        });
    }
    if box_height <= columns {
        return Strip { height: box_height as u8, cells };
    }
    Strip { height: columns as u8, cells: transpose(cells, box_height, columns) }
}
