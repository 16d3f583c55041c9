//! Bit tricks on a grid of at most 128 cells.
//!
//! Cell (row, column) of a grid that is `width` wide is bit `row * width + column`:
//!
//! ```text
//! width 4   0 1 2 3
//!           4 5 6 7      right: << 1    down: << width
//!           8 9 . .      left:  >> 1    up:   >> width
//! ```

/// `FIRST_COLUMN[w]` has every `w`-th bit: the leftmost cells of a grid `w` wide, however high.
const FIRST_COLUMN: [u128; 129] = {
    let mut masks = [0; 129];
    let mut width = 1;
    while width <= 128 {
        let mut cell = 0;
        while cell < 128 {
            masks[width] |= 1 << cell;
            cell += width;
        }
        width += 1;
    }
    masks
};

/// The lowest `count` bits, for `count` up to 128.
pub(super) fn low_bits(count: u32) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

/// `cells << count`, and nothing for a count that a shift cannot take (a grid 128 wide has one row).
fn down(cells: u128, count: u32) -> u128 {
    if count >= 128 { 0 } else { cells << count }
}

/// `cells >> count`, and nothing for a count that a shift cannot take.
fn up(cells: u128, count: u32) -> u128 {
    if count >= 128 { 0 } else { cells >> count }
}

/// Each cell's left neighbour.
fn left(cells: u128, width: u32) -> u128 {
    (cells & !FIRST_COLUMN[width as usize]) >> 1
}

/// Each cell's right neighbour.
fn right(cells: u128, width: u32) -> u128 {
    (cells << 1) & !FIRST_COLUMN[width as usize]
}

/// All cells beside, above or below one of `cells`. May reach below the last row: intersect it with cells of the grid.
pub(super) fn neighbours(cells: u128, width: u32) -> u128 {
    left(cells, width) | right(cells, width) | up(cells, width) | down(cells, width)
}

/// The connected region of `cells` around their lowest one.
pub(super) fn lowest_region(cells: u128, width: u32) -> u128 {
    let mut region = cells & cells.wrapping_neg();
    loop {
        let grown = region | neighbours(region, width) & cells;
        if grown == region {
            return region;
        }
        region = grown;
    }
}

/// The left cells of all horizontal dominoes that fit, and the upper cells of all vertical ones.
pub(super) fn domino_cells(cells: u128, width: u32) -> (u128, u128) {
    (cells & left(cells, width), cells & up(cells, width))
}

/// The grid turned by half a turn.
pub(super) fn half_turn(cells: u128, width: u32, height: u32) -> u128 {
    cells.reverse_bits() >> (128 - width * height)
}

/// The grid with its rows in reverse order.
pub(super) fn upside_down(cells: u128, width: u32, height: u32) -> u128 {
    if height == 1 {
        return cells;
    }
    let row_bits = low_bits(width);
    let (mut rest, mut flipped) = (cells, 0);
    for _ in 0..height {
        flipped = flipped << width | rest & row_bits;
        rest >>= width;
    }
    flipped
}

/// The grid mirrored in its main diagonal; the result is `height` wide.
pub(super) fn transpose(cells: u128, width: u32, height: u32) -> u128 {
    let row_bits = low_bits(width);
    let mut transposed = 0;
    for row in 0..height {
        let mut rest = cells >> (row * width) & row_bits;
        while rest != 0 {
            transposed |= 1 << (rest.trailing_zeros() * height + row);
            rest &= rest - 1;
        }
    }
    transposed
}

/// Cells moved to the top left corner of their bounding box, with the box's width and height. `cells` must not be empty.
pub(super) fn to_corner(cells: u128, width: u32) -> (u128, u32, u32) {
    let top = cells.trailing_zeros() / width;
    let height = (127 - cells.leading_zeros()) / width + 1 - top;
    let rows = cells >> (top * width);
    let row_bits = low_bits(width);
    let columns = (0..height).fold(0, |columns, row| columns | rows >> (row * width)) & row_bits;
    let first = columns.trailing_zeros();
    let box_width = 128 - columns.leading_zeros() - first;
    if box_width == width {
        return (rows, width, height);
    }
    let box_row = low_bits(box_width);
    let packed = (0..height)
        .fold(0, |packed, row| packed | (rows >> (row * width + first) & box_row) << (row * box_width));
    (packed, box_width, height)
}

/// A grid as a picture: `.` for its cells, `#` for the others, rows joined by `|`.
pub(super) fn write_picture(
    out: &mut impl std::fmt::Write,
    cells: u128,
    width: u32,
    height: u32,
) -> std::fmt::Result {
    for row in 0..height {
        if row > 0 {
            out.write_char('|')?;
        }
        for column in 0..width {
            out.write_char(if cells >> (row * width + column) & 1 == 1 { '.' } else { '#' })?;
        }
    }
    Ok(())
}
