//! The houses as the mover sees them, and sowing by table look-up.

use super::{HOUSES_MAX, Rules, SEEDS_MAX};

/// The houses of both sides, seen from the mover; stores are left out because they do not bear on the rest of the game.
///
/// ```text
/// theirs   byte 2   byte 1   byte 0      each side's byte 0 is its leftmost house,
/// mine     byte 0   byte 1   byte 2      so seeds move to higher bytes and then to the store
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Board {
    /// The mover's houses, one byte each, the leftmost in the lowest byte.
    pub mine: u64,
    /// The other's houses in the same way, from its own left.
    pub theirs: u64,
}

impl Board {
    /// Seeds in the mover's houses.
    pub fn my_seeds(self) -> i16 {
        sum(self.mine)
    }

    /// Seeds in the other's houses.
    pub fn their_seeds(self) -> i16 {
        sum(self.theirs)
    }

    /// Seeds in play: what bounds the gain on either side, and has its parity.
    pub fn seeds(self) -> i16 {
        sum(self.mine) + sum(self.theirs)
    }

    /// Whether the game is over: one side's houses are all empty.
    pub fn is_over(self) -> bool {
        self.mine == 0 || self.theirs == 0
    }

    /// The mover's gain when the game is over and the remaining seeds go to their owners.
    pub fn swept(self) -> i16 {
        sum(self.mine) - sum(self.theirs)
    }

    /// A guess at the mover's gain, of the parity of a gain: half the difference of the seeds. It orders searches and decides nothing.
    pub fn guess(self) -> i16 {
        let half = (self.my_seeds() - self.their_seeds()) / 2;
        half + ((half ^ self.seeds()) & 1)
    }

    /// The same houses seen from the other side.
    pub fn turned(self) -> Self {
        Self { mine: self.theirs, theirs: self.mine }
    }

    /// The seeds in one of the mover's houses, counted from 0 at its left.
    pub fn seeds_in(self, house: u8) -> u8 {
        byte(self.mine, house)
    }
}

/// The sum of a word's bytes. A game has at most [`SEEDS_MAX`] seeds, so the sum fits the top byte of the product.
fn sum(houses: u64) -> i16 {
    (houses.wrapping_mul(0x0101_0101_0101_0101) >> 56) as i16
}

fn byte(houses: u64, index: u8) -> u8 {
    (houses >> (8 * u32::from(index))) as u8
}

/// What a move leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Played {
    /// Seeds that the move put into the mover's store, captures included.
    pub banked: u8,
    /// Whether the same side moves again.
    pub again: bool,
    /// The houses after the move, seen from whoever moves next; when the game is over, not yet swept.
    pub board: Board,
}

/// Where the seeds of one house go.
#[derive(Clone, Copy, Default)]
struct Sowing {
    /// Seeds added to the mover's houses, a byte each.
    mine: u64,
    /// Seeds added to the other's houses.
    theirs: u64,
    /// Seeds added to the mover's store.
    banked: u8,
    /// Where the last one falls: the mover's houses from 0, then the store, then the other's houses.
    last: u8,
}

/// The moves of one board size and rules variant, every sowing worked out beforehand.
#[derive(Clone)]
pub struct MoveTable {
    houses: u8,
    rules: Rules,
    /// Indexed by house and number of seeds.
    sowings: Box<[[Sowing; SEEDS_MAX as usize + 1]]>,
}

impl MoveTable {
    /// The moves with `houses` houses a side; as many as are out of 1 to [`HOUSES_MAX`] count as the nearest bound.
    pub fn new(houses: u8, rules: Rules) -> Self {
        let houses = houses.clamp(1, HOUSES_MAX);
        let sowings =
            (0..houses).map(|house| std::array::from_fn(|seeds| sow(houses, house, seeds))).collect();
        Self { houses, rules, sowings }
    }

    /// Houses a side.
    pub fn houses(&self) -> u8 {
        self.houses
    }

    /// The rules variant.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Plays one of the mover's houses, counted from 0 at its left. `None` if it is empty or does not exist, or the game is over.
    pub fn play(&self, board: Board, house: u8) -> Option<Played> {
        let playable = house < self.houses && board.seeds_in(house) > 0 && board.theirs != 0;
        playable.then(|| self.play_unchecked(board, house))
    }

    /// The moves from the store outwards, with the house of each. None when the game is over.
    pub fn moves(&self, board: Board) -> impl Iterator<Item = (u8, Played)> + '_ {
        let houses = if board.is_over() { 0 } else { self.houses };
        (0..houses)
            .rev()
            .filter(move |&house| board.seeds_in(house) > 0)
            .map(move |house| (house, self.play_unchecked(board, house)))
    }

    fn play_unchecked(&self, board: Board, house: u8) -> Played {
        let sowing = &self.sowings[usize::from(house)][usize::from(board.seeds_in(house))];
        let mut mine = (board.mine & !(0xff << (8 * u32::from(house)))) + sowing.mine;
        let mut theirs = board.theirs + sowing.theirs;
        let mut banked = sowing.banked;
        // A single seed where the last one fell means that the house was empty before it.
        if sowing.last < self.houses && byte(mine, sowing.last) == 1 {
            let opposite = self.houses - 1 - sowing.last;
            let captured = byte(theirs, opposite);
            if captured > 0 || self.rules == Rules::EmptyCapture {
                banked += captured + 1;
                mine &= !(0xff << (8 * u32::from(sowing.last)));
                theirs &= !(0xff << (8 * u32::from(opposite)));
            }
        }
        let again = sowing.last == self.houses;
        let board = if again { Board { mine, theirs } } else { Board { mine: theirs, theirs: mine } };
        Played { banked, again, board }
    }
}

/// Works out one sowing seed by seed.
fn sow(houses: u8, house: u8, seeds: usize) -> Sowing {
    let mut sowing = Sowing { last: house, ..Sowing::default() };
    for _ in 0..seeds {
        // The ring of a sowing: the mover's houses, its store, the other's houses. The other's store is not on it.
        sowing.last = (sowing.last + 1) % (2 * houses + 1);
        match sowing.last {
            own if own < houses => sowing.mine += 1 << (8 * u32::from(own)),
            store if store == houses => sowing.banked += 1,
            other => sowing.theirs += 1 << (8 * u32::from(other - houses - 1)),
        }
    }
    sowing
}
