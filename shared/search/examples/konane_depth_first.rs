//! Who wins a Konane start, by a second algorithm: depth first with a table of outcomes. It shares the rules with the engine, and no other
//! code: no kernels, no proof numbers, no table. Slower, and meant for confirming what the engine says.
//!
//! ```sh
//! cargo run --release -p grundy-search --example konane_depth_first -- 6x6 center black 1024     # board, start, who moves first, MiB of table
//! ```

use grundy_games::konane::{Board, Position, Side, size_from_text};
use std::process::ExitCode;

/// Entries that a position may lie in: a cache line.
const BUCKET: usize = 8;

/// The most cells of a board: an entry has a bit for each.
const CELLS_MAX: usize = 56;

/// A table of outcomes. What is not known is searched, so it may forget.
///
/// ```text
/// bits 0-55    stones of the image that stands for the position
/// bit 56       mover: 0 black, 1 white
/// bit 57       whether the mover wins
/// bits 58-63   1 + the binary logarithm of the positions searched for it; 0 in an empty entry
/// ```
struct Table(Vec<[u64; BUCKET]>);

impl Table {
    fn new(mib: usize) -> Self {
        let buckets = (mib << 20) / (BUCKET * size_of::<u64>());
        Self(vec![[0; BUCKET]; buckets.max(1)])
    }

    fn bucket(&mut self, key: u64) -> &mut [u64; BUCKET] {
        // SplitMix64's finaliser.
        let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let index = (u128::from(z) * self.0.len() as u128) >> 64;
        &mut self.0[index as usize]
    }

    fn get(&mut self, key: u64) -> Option<bool> {
        let entry = self.bucket(key).iter().find(|entry| *entry & KEY == key && *entry >> 58 != 0)?;
        Some(entry >> 57 & 1 == 1)
    }

    fn put(&mut self, key: u64, wins: bool, searched: u64) {
        let rank = 1 + u64::from(searched.max(1).ilog2()).min(62);
        // What cost least makes room.
        if let Some(least) = self.bucket(key).iter_mut().min_by_key(|entry| **entry >> 58) {
            *least = key | u64::from(wins) << 57 | rank << 58;
        }
    }
}

/// Stones and mover.
const KEY: u64 = (1 << 57) - 1;

/// The board's symmetries that keep each cell's colour, as the images of each byte of a set of cells.
struct Images(Vec<Vec<[u64; 256]>>);

impl Images {
    fn new(board: &Board) -> Self {
        let (width, height) = (board.width(), board.height());
        let mut images = Vec::new();
        for flips in 0..8 {
            let (across, down, transposed) = (flips & 1 == 1, flips & 2 == 2, flips & 4 == 4);
            if transposed && width != height {
                continue;
            }
            let image = |cell: usize| {
                let (mut x, mut y) = (cell % width, cell / width);
                if transposed {
                    (x, y) = (y, x);
                }
                let x = if across { width - 1 - x } else { x };
                let y = if down { height - 1 - y } else { y };
                (x, y)
            };
            let keeps = |cell: usize| {
                let (x, y) = image(cell);
                (x + y) % 2 == (cell % width + cell / width) % 2
            };
            if (0..width * height).all(keeps) {
                let of_byte = |byte: usize| {
                    std::array::from_fn(|set| {
                        (0..8).filter(|bit| set >> bit & 1 == 1).map(|bit| 8 * byte + bit).fold(
                            0,
                            |all, cell| {
                                let (x, y) = if cell < width * height { image(cell) } else { return all };
                                all | 1 << (y * width + x)
                            },
                        )
                    })
                };
                images.push((0..8).map(of_byte).collect());
            }
        }
        Self(images)
    }

    /// The least image.
    fn least(&self, set: u64) -> u64 {
        let bytes = set.to_le_bytes();
        let image = |image: &Vec<[u64; 256]>| {
            image.iter().zip(bytes).fold(0, |all, (of_byte, byte)| all | of_byte[usize::from(byte)])
        };
        self.0.iter().map(image).min().unwrap_or(set)
    }
}

struct Search {
    board: Board,
    images: Images,
    table: Table,
    searched: u64,
}

impl Search {
    /// Whether the mover wins. It is not decided by having no jump: whoever leads here has looked.
    fn wins(&mut self, stones: u64, mover: Side) -> bool {
        let key = self.images.least(stones) | (mover as u64) << 56;
        if let Some(wins) = self.table.get(key) {
            return wins;
        }
        self.searched += 1;
        let before = self.searched;
        let mut moves = Vec::with_capacity(24);
        let mut won = false;
        self.board.for_each_jump(stones, mover, |jump| {
            let theirs = mobility(&self.board, jump.stones, mover.other());
            won |= theirs == 0;
            // What leaves the opponent least comes first, then what leaves the mover most.
            moves.push((2 * theirs - mobility(&self.board, jump.stones, mover), jump.stones));
        });
        if !won {
            moves.sort_unstable();
            moves.dedup_by_key(|(_, stones)| *stones);
            // What is known to win is looked for before anything is searched (enhanced transposition cut-off).
            let theirs = (mover.other() as u64) << 56;
            won = moves
                .iter()
                .any(|(_, stones)| self.table.get(self.images.least(*stones) | theirs) == Some(false))
                || moves.into_iter().any(|(_, stones)| !self.wins(stones, mover.other()));
        }
        self.table.put(key, won, self.searched - before + 1);
        won
    }
}

/// How many single jumps a side has.
fn mobility(board: &Board, stones: u64, side: Side) -> i32 {
    board.jumpers_of(stones, side).iter().map(|jumpers| jumpers.count_ones() as i32).sum()
}

fn run(arguments: &[String]) -> Result<String, String> {
    let [board, start, first, mib] = arguments else {
        return Err(
            "expected a board, a start, who moves first, and MiB of table: 6x6 center black 1024".to_owned()
        );
    };
    let (rows, columns) = size_from_text(board).map_err(|error| error.to_string())?;
    if rows * columns > CELLS_MAX {
        return Err(format!("{board} has {} cells: expected at most {CELLS_MAX}", rows * columns));
    }
    let start = start.parse().map_err(|error| format!("{error}"))?;
    let first: Side = first.parse().map_err(|error| format!("{error}"))?;
    let position = Position::start(rows, columns, start, first).map_err(|error| error.to_string())?;
    let mib = mib.parse().map_err(|_| format!("'{mib}' is no size of a table: expected MiB such as 1024"))?;
    let board = *position.board();
    let mut search = Search { board, images: Images::new(&board), table: Table::new(mib), searched: 0 };
    let wins = !position.is_lost() && search.wins(position.stones(), first);
    let winner = if wins { first } else { first.other() };
    let winner = if winner == Side::Black { "black" } else { "white" };
    Ok(format!("{winner} wins; {} positions searched", search.searched))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
