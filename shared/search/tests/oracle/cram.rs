//! Cram from its rules alone: the cells of a plain grid, a domino on any two adjacent empty ones, and the mex rule with a
//! memo of whole grids. No symmetry, no components, no bits.

use std::collections::{BTreeSet, HashMap};

/// A grid of cells, row by row, true where empty.
type Grid = Vec<Vec<bool>>;

/// Nimbers of pictures such as `....|.##.`, with a memo for one run.
#[derive(Default)]
pub struct Oracle(HashMap<Grid, u32>);

impl Oracle {
    /// The nimber of a picture.
    pub fn nimber(&mut self, picture: &str) -> u32 {
        let grid: Grid =
            picture.split('|').map(|row| row.chars().map(|cell| cell == '.').collect()).collect();
        self.of_grid(&grid)
    }

    fn of_grid(&mut self, grid: &Grid) -> u32 {
        if let Some(nimber) = self.0.get(grid) {
            return *nimber;
        }
        let mut reached = BTreeSet::new();
        for row in 0..grid.len() {
            for column in 0..grid[row].len() {
                for (row2, column2) in [(row, column + 1), (row + 1, column)] {
                    let second_is_empty = grid.get(row2).and_then(|cells| cells.get(column2)) == Some(&true);
                    if grid[row][column] && second_is_empty {
                        let mut after = grid.clone();
                        after[row][column] = false;
                        after[row2][column2] = false;
                        reached.insert(self.of_grid(&after));
                    }
                }
            }
        }
        let mex = (0..).find(|n| !reached.contains(n)).expect("a finite set misses a number");
        self.0.insert(grid.clone(), mex);
        mex
    }
}
