//! Peg solitaire straight from the rules, on a grid of characters: slow, and with no code of the engine's.

use std::collections::{BTreeMap, HashMap};

/// Rows of `o`, `.` and `#`.
pub type Grid = Vec<Vec<char>>;

/// The grid of a one-line picture.
pub fn grid(picture: &str) -> Grid {
    picture.split('|').map(|row| row.chars().collect()).collect()
}

/// Half of the directions of jumps: along rows and columns.
pub const SQUARE: &[(i32, i32)] = &[(1, 0), (0, 1)];

/// And along one diagonal.
pub const TRIANGULAR: &[(i32, i32)] = &[(1, 0), (0, 1), (1, 1)];

/// The one-line picture of a grid.
pub fn picture(grid: &Grid) -> String {
    grid.iter().map(|row| row.iter().collect::<String>()).collect::<Vec<_>>().join("|")
}

/// The grid after each legal jump; equal grids once for each jump.
pub fn successors(grid: &Grid, directions: &[(i32, i32)]) -> Vec<Grid> {
    let at = |x: i32, y: i32| {
        let row = usize::try_from(y).ok().and_then(|y| grid.get(y));
        row.zip(usize::try_from(x).ok()).and_then(|(row, x)| row.get(x)).copied()
    };
    let mut successors = Vec::new();
    for y in 0..grid.len() as i32 {
        for x in 0..grid[0].len() as i32 {
            for (dx, dy) in directions.iter().flat_map(|&(dx, dy)| [(dx, dy), (-dx, -dy)]) {
                let line = [(x, y), (x + dx, y + dy), (x + 2 * dx, y + 2 * dy)];
                if line.map(|(x, y)| at(x, y)) == [Some('o'), Some('o'), Some('.')] {
                    let mut after = grid.clone();
                    for ((x, y), cell) in line.into_iter().zip(['.', '.', 'o']) {
                        after[y as usize][x as usize] = cell;
                    }
                    successors.push(after);
                }
            }
        }
    }
    successors
}

/// The number of jump sequences from the grid to a single peg in the cell (column, row), or anywhere. `known` remembers.
pub fn solutions(grid: &Grid, finish: Option<(usize, usize)>, known: &mut HashMap<Grid, u128>) -> u128 {
    solutions_on(SQUARE, grid, finish, known)
}

/// The same with jumps in these directions and back.
pub fn solutions_on(
    directions: &[(i32, i32)],
    grid: &Grid,
    finish: Option<(usize, usize)>,
    known: &mut HashMap<Grid, u128>,
) -> u128 {
    if let Some(&count) = known.get(grid) {
        return count;
    }
    let pegs: Vec<(usize, usize)> = (0..grid.len())
        .flat_map(|y| (0..grid[y].len()).map(move |x| (x, y)))
        .filter(|&(x, y)| grid[y][x] == 'o')
        .collect();
    let solved = pegs.len() == 1 && finish.is_none_or(|finish| finish == pegs[0]);
    let after = successors(grid, directions);
    let onward: u128 = after.iter().map(|after| solutions_on(directions, after, finish, known)).sum();
    known.insert(grid.clone(), onward + u128::from(solved));
    onward + u128::from(solved)
}

/// For each number of jumps, the boards reached and the number of jump sequences to each. Ends before the first empty level.
pub fn levels(start: &Grid) -> Vec<BTreeMap<String, u128>> {
    let mut levels = vec![BTreeMap::from([(picture(start), 1)])];
    loop {
        let mut next = BTreeMap::new();
        for (board, ways) in &levels[levels.len() - 1] {
            for after in successors(&grid(board), SQUARE) {
                *next.entry(picture(&after)).or_insert(0) += ways;
            }
        }
        if next.is_empty() {
            return levels;
        }
        levels.push(next);
    }
}
