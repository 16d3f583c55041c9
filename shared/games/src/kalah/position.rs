//! A position with stores and a named mover, as users state it.

use super::{Board, HOUSES_MAX, MoveTable, SEEDS_MAX};

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Player {
    /// `S`: the side that opens a game from the start position.
    South,
    /// `N`.
    North,
}

impl Player {
    /// The other side.
    pub fn other(self) -> Self {
        match self {
            Self::South => Self::North,
            Self::North => Self::South,
        }
    }

    /// The side's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::South => "south",
            Self::North => "north",
        }
    }
}

/// A position of Kalah: houses, stores and mover, at most [`SEEDS_MAX`] seeds altogether.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Position {
    houses: u8,
    board: Board,
    my_store: u8,
    their_store: u8,
    mover: Player,
}

impl Position {
    /// The start position with `seeds` in each of `houses` houses a side, South to move. `None` for no houses, more than
    /// [`HOUSES_MAX`], or more than [`SEEDS_MAX`] seeds altogether.
    pub fn start(houses: u8, seeds: u8) -> Option<Self> {
        if houses == 0
            || houses > HOUSES_MAX
            || 2 * u32::from(houses) * u32::from(seeds) > u32::from(SEEDS_MAX)
        {
            return None;
        }
        let side = pack(&vec![seeds; usize::from(houses)]);
        Some(Self::assemble(houses, [side, side], [0, 0], Player::South))
    }

    /// Joins what the notation has checked: packed houses and stores of South and North.
    pub(super) fn assemble(houses: u8, sides: [u64; 2], stores: [u8; 2], mover: Player) -> Self {
        let (mine, theirs) = if mover == Player::South { (0, 1) } else { (1, 0) };
        Self {
            houses,
            board: Board { mine: sides[mine], theirs: sides[theirs] },
            my_store: stores[mine],
            their_store: stores[theirs],
            mover,
        }
    }

    /// Houses a side.
    pub fn houses(&self) -> u8 {
        self.houses
    }

    /// The houses as the mover sees them.
    pub fn board(&self) -> Board {
        self.board
    }

    /// The side to move.
    pub fn mover(&self) -> Player {
        self.mover
    }

    /// The seeds in a side's houses from its left.
    pub fn houses_of(&self, player: Player) -> Vec<u8> {
        let word = if player == self.mover { self.board.mine } else { self.board.theirs };
        word.to_le_bytes()[..usize::from(self.houses)].to_vec()
    }

    /// The seeds in a side's store.
    pub fn store_of(&self, player: Player) -> u8 {
        if player == self.mover { self.my_store } else { self.their_store }
    }

    /// What the mover's store holds more than the other's.
    pub fn lead(&self) -> i16 {
        i16::from(self.my_store) - i16::from(self.their_store)
    }

    /// Whether either side's houses are all empty.
    pub fn is_over(&self) -> bool {
        self.board.is_over()
    }

    /// Plays one of the mover's houses, counted from 0 at its left; when that ends the game the houses are not yet swept.
    /// `None` for an empty house, a finished game, or a table of another size.
    pub fn play(&self, table: &MoveTable, house: u8) -> Option<Self> {
        if table.houses() != self.houses {
            return None;
        }
        let played = table.play(self.board, house)?;
        let my_store = self.my_store + played.banked;
        let (my_store, their_store, mover) = if played.again {
            (my_store, self.their_store, self.mover)
        } else {
            (self.their_store, my_store, self.mover.other())
        };
        Some(Self { houses: self.houses, board: played.board, my_store, their_store, mover })
    }

    /// South's final store less North's, when the game is over and swept.
    pub fn final_difference(&self) -> Option<i16> {
        let difference = self.is_over().then(|| self.lead() + self.board.swept())?;
        Some(if self.mover == Player::South { difference } else { -difference })
    }

    /// The bin number of one of the mover's houses (from 0 at its left): South's are 1 to h, its store h + 1, North's
    /// h + 2 to 2h + 1, its store 2h + 2.
    pub fn bin(&self, house: u8) -> u8 {
        match self.mover {
            Player::South => house + 1,
            Player::North => self.houses + 2 + house,
        }
    }

    /// The mover's house with this bin number, from 0 at its left; the inverse of [`Position::bin`].
    pub fn house_of_bin(&self, bin: u8) -> Option<u8> {
        let house = bin.checked_sub(self.bin(0))?;
        (house < self.houses).then_some(house)
    }
}

/// Packs a side's houses, the leftmost in the lowest byte.
pub(super) fn pack(houses: &[u8]) -> u64 {
    houses.iter().rev().fold(0, |word, &seeds| word << 8 | u64::from(seeds))
}
