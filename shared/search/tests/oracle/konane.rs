//! Konane straight from the rules, on a grid of characters: slow, and obviously right.

use std::collections::HashMap;

type Grid = Vec<Vec<char>>;

/// Who wins, remembered for every picture met.
#[derive(Default)]
pub struct Oracle(HashMap<(String, char), bool>);

impl Oracle {
    /// Whether `mover` (`x` or `o`), to move in this picture, wins.
    pub fn wins(&mut self, picture: &str, mover: char) -> bool {
        let key = (picture.to_owned(), mover);
        if let Some(&known) = self.0.get(&key) {
            return known;
        }
        let wins = moves(picture, mover).iter().any(|next| !self.wins(next, enemy(mover)));
        self.0.insert(key, wins);
        wins
    }
}

/// The other letter.
pub fn enemy(mover: char) -> char {
    if mover == 'x' { 'o' } else { 'x' }
}

/// The picture after each jump.
pub fn moves(picture: &str, mover: char) -> Vec<String> {
    let grid: Grid = picture.split('|').map(|row| row.chars().collect()).collect();
    let mut found = Vec::new();
    for y in 0..grid.len() {
        for x in 0..grid[y].len() {
            if grid[y][x] != mover {
                continue;
            }
            for (dx, dy) in [(1, 0), (-1, 0), (0, 1), (0, -1)] {
                let mut now = grid.clone();
                let (mut x, mut y) = (x as i32, y as i32);
                while at(&now, x + dx, y + dy) == enemy(mover) && at(&now, x + 2 * dx, y + 2 * dy) == '.' {
                    now[y as usize][x as usize] = '.';
                    now[(y + dy) as usize][(x + dx) as usize] = '.';
                    (x, y) = (x + 2 * dx, y + 2 * dy);
                    now[y as usize][x as usize] = mover;
                    let rows: Vec<String> = now.iter().map(|row| row.iter().collect()).collect();
                    found.push(rows.join("|"));
                }
            }
        }
    }
    found
}

/// What is at a place; off the board there is no cell.
fn at(grid: &Grid, x: i32, y: i32) -> char {
    let row = usize::try_from(y).ok().and_then(|y| grid.get(y));
    row.and_then(|row| usize::try_from(x).ok().and_then(|x| row.get(x))).copied().unwrap_or('#')
}
