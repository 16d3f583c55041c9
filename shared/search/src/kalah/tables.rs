//! The tables that the engines of a process share for one board size and rules variant.

use super::evaluation::Evaluation;
use super::fill::Filler;
use super::gains::{Gains, Known, Mixed};
use super::layers::{Index, LAYER_SEEDS_MAX, Layers, gain};
use super::search::{Glance, Sight};
use super::sides::choose;
use crate::memory::{prefetch, want_huge_pages};
use grundy_games::kalah::{Board, MoveTable, Rules};

/// Exact gains of boards with few seeds, and what is known of others.
pub struct KalahTables {
    /// The endgame database.
    pub layers: Layers,
    /// What searches found.
    pub gains: Gains,
    /// What searches for hints found.
    pub hints: Gains,
    /// Estimates of gains.
    pub evaluation: Evaluation,
}

/// Which tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KalahWish {
    /// Houses a side.
    pub houses: u8,
    /// The rules variant.
    pub rules: Rules,
    /// The most seeds in play of any board that will be searched, or more.
    pub seeds: u8,
}

/// As much of a problem's seeds are in play at most on the boards of layers that are built for it: with more, filling layers takes longer
/// than the searches that it saves. Kalah(6,4), of 48 seeds, takes as long with 24 as with 25, and longer with 26.
const SEEDS_PART: (u32, u32) = (25, 48);

/// The table of hints has this part of the bytes of both tables. Far from the database searches for hints look at more boards than
/// those for what is certain, and with a table that forgets them they look at twice as many.
const HINTS_PART: usize = 4;

/// The least bytes of both tables: a search in small steps has to find again what the steps before found.
const GAINS_BYTES_MIN: usize = 2 << 20;

/// The entries of all layers of up to so many seeds: C(n + 2h, 2h) - 2 C(n + h, h) + 1, saturating.
pub fn entries(houses: u8, seeds: u8) -> u64 {
    let (houses, seeds) = (u64::from(houses), u64::from(seeds));
    choose(seeds + 2 * houses, 2 * houses)
        .saturating_sub(choose(seeds + houses, houses).saturating_mul(2))
        .saturating_add(1)
}

impl KalahWish {
    /// How many seeds the largest layer has that pays.
    pub fn layer_seeds(&self) -> u8 {
        let (part, whole) = SEEDS_PART;
        let seeds = u32::from(self.seeds) * part / whole;
        u8::try_from(seeds).map_or(LAYER_SEEDS_MAX, |seeds| seeds.min(LAYER_SEEDS_MAX))
    }

    /// Whether tables for this wish do for another one: a table of boards with more seeds in play has those with fewer.
    pub fn serves(&self, other: Self) -> bool {
        self.seeds >= other.seeds && Self { seeds: other.seeds, ..*self } == other
    }

    /// No layers yet, of up to so many seeds.
    pub fn layers(&self, seeds: u8) -> Layers {
        Layers::new(Index::new(self.houses, seeds))
    }
}

/// Builds the next layers in memory, up to and with that of so many seeds, as far as they are indexed.
pub fn build_layers(layers: &mut Layers, rules: Rules, seeds: u8, threads: usize) {
    let moves = MoveTable::new(layers.index().sides().houses(), rules);
    let filler = Filler::new(layers.index(), &moves, seeds);
    while layers.len() <= usize::from(seeds) {
        let mut layer = vec![0; layers.index().len(layers.len())];
        want_huge_pages(&mut layer);
        filler.fill(layers, &mut layer, threads, &|_| true);
        if !layers.push(layer.into()) {
            return;
        }
    }
}

impl KalahTables {
    /// Builds layers in memory of up to half of `bytes`, on so many threads, and tables of gains and hints of the rest. `None` if there is no
    /// memory for them.
    pub fn build(wish: KalahWish, bytes: usize, threads: usize) -> Option<Self> {
        let fits = |seeds: &u8| entries(wish.houses, *seeds) <= bytes as u64 / 2;
        let seeds = (0..=wish.layer_seeds()).take_while(fits).last().unwrap_or(0);
        let mut layers = wish.layers(seeds);
        build_layers(&mut layers, wish.rules, seeds, threads);
        Self::new(layers, bytes / 2)
    }

    /// Tables over these layers, and of gains and hints of so many bytes together. `None` if there is no memory for them.
    pub fn new(layers: Layers, bytes: usize) -> Option<Self> {
        let houses = layers.index().sides().houses();
        let bytes = bytes.max(GAINS_BYTES_MIN);
        let hints = Gains::new(houses, bytes / HINTS_PART)?;
        let gains = Gains::new(houses, bytes - bytes / HINTS_PART)?;
        let evaluation = Evaluation::fit(houses, &layers);
        Some(Self { layers, gains, hints, evaluation })
    }

    /// Bytes of memory beside the layers.
    pub fn bytes(&self) -> usize {
        self.gains.bytes() + self.hints.bytes()
    }

    /// What is known of a board with so many seeds.
    pub(super) fn sight(&self, board: Board, seeds: i16) -> Sight {
        match self.glance(board, seeds) {
            Glance::Over(gain) => Sight::Exact(gain),
            Glance::Entry(entry) => Sight::Exact(gain(*entry)),
            Glance::Kept(mixed) => Sight::Bounds(self.look(mixed, seeds), mixed),
        }
    }

    /// What the rules say of a board, or where to look: that begins to load.
    pub(super) fn glance(&self, board: Board, seeds: i16) -> Glance<'_> {
        if board.is_over() {
            return Glance::Over(board.swept());
        }
        if let Some(entry) = self.layers.entry(board) {
            prefetch(entry);
            return Glance::Entry(entry);
        }
        let mixed = self.gains.mixed(board, seeds);
        if let Some(mixed) = mixed {
            self.gains.prefetch(mixed);
        }
        Glance::Kept(mixed)
    }

    /// What the table knows of a board with so many seeds.
    pub(super) fn look(&self, mixed: Option<Mixed>, seeds: i16) -> Known {
        let known = mixed.and_then(|mixed| self.gains.get(mixed, seeds));
        known.unwrap_or(Known::nothing(seeds))
    }
}
