//! The tables that the engines of a process share for one board size and rules variant.

use super::fill::Filler;
use super::gains::Gains;
use super::layers::{Index, LAYER_SEEDS_MAX, Layers};
use super::sides::choose;
use grundy_games::kalah::{MoveTable, Rules};

/// Exact gains of boards with few seeds, and what is known of others.
pub struct KalahTables {
    /// The endgame database.
    pub layers: Layers,
    /// What searches found.
    pub gains: Gains,
}

/// Which tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KalahWish {
    /// Houses a side.
    pub houses: u8,
    /// The rules variant.
    pub rules: Rules,
    /// The most seeds in play of any board that will be searched.
    pub seeds: u8,
}

/// Layers are built for boards with at most this part of a problem's seeds: more would solve the whole game the long way.
const SEEDS_PART: u8 = 2;

/// The least bytes of a table of gains.
const GAINS_BYTES_MIN: usize = 1 << 20;

/// The entries of all layers of up to so many seeds: C(n + 2h, 2h) - 2 C(n + h, h) + 1, saturating.
pub fn entries(houses: u8, seeds: u8) -> u64 {
    let (houses, seeds) = (u64::from(houses), u64::from(seeds));
    choose(seeds + 2 * houses, 2 * houses)
        .saturating_sub(2 * choose(seeds + houses, houses))
        .saturating_add(1)
}

impl KalahTables {
    /// Builds layers of up to half of `bytes`, on so many threads, and a table of gains of the rest, as much as is of use. `None` if there is
    /// no memory for it.
    pub fn build(wish: KalahWish, bytes: usize, threads: usize) -> Option<Self> {
        let KalahWish { houses, rules, seeds } = wish;
        let most = (seeds / SEEDS_PART).min(LAYER_SEEDS_MAX);
        let fits = |seeds: &u8| entries(houses, *seeds) <= bytes as u64 / 2;
        let seeds = (0..=most).take_while(fits).last().unwrap_or(0);
        let moves = MoveTable::new(houses, rules);
        let index = Index::new(houses, seeds);
        let filler = Filler::new(&index, &moves);
        let mut layers = Layers::new(index);
        for seeds in 0..=layers.index().seeds_max() {
            let mut layer = vec![0; layers.index().len(seeds)];
            filler.fill(&layers, &mut layer, threads, &|_| true);
            layers.push(Box::new(layer));
        }
        let gains = Gains::new(houses, (bytes / 2).max(GAINS_BYTES_MIN))?;
        Some(Self { layers, gains })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let layers: usize = (0..self.layers.len()).map(|seeds| self.layers.layer(seeds).len()).sum();
        layers + self.gains.bytes()
    }
}
