//! Kalah straight from its rules: a ring of bins and plain recursion. Shares no code with what it judges.

use std::collections::HashMap;

/// Bins 0 to h-1 are South's houses, h its store, h+1 to 2h North's houses, 2h+1 its store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bins {
    pub seeds: Vec<u32>,
    pub houses: usize,
    /// Whether North moves.
    pub north: bool,
    pub empty_capture: bool,
}

impl Bins {
    /// The first bin of a side.
    fn first(&self, north: bool) -> usize {
        if north { self.houses + 1 } else { 0 }
    }

    /// The store of a side.
    pub fn store(&self, north: bool) -> u32 {
        self.seeds[self.first(north) + self.houses]
    }

    /// The seeds in a side's houses.
    pub fn remaining(&self, north: bool) -> u32 {
        let first = self.first(north);
        self.seeds[first..first + self.houses].iter().sum()
    }

    /// One side's houses are all empty.
    pub fn is_over(&self) -> bool {
        self.remaining(false) == 0 || self.remaining(true) == 0
    }

    /// All positions one move away.
    pub fn moves(&self) -> Vec<Self> {
        if self.is_over() {
            return Vec::new();
        }
        let first = self.first(self.north);
        (first..first + self.houses).filter(|&bin| self.seeds[bin] > 0).map(|bin| self.sow(bin)).collect()
    }

    fn sow(&self, from: usize) -> Self {
        let mut after = self.clone();
        let own_store = self.first(self.north) + self.houses;
        let their_store = self.first(!self.north) + self.houses;
        let mut hand = std::mem::take(&mut after.seeds[from]);
        let mut bin = from;
        while hand > 0 {
            bin = (bin + 1) % after.seeds.len();
            if bin != their_store {
                after.seeds[bin] += 1;
                hand -= 1;
            }
        }
        let own_house = (self.first(self.north)..own_store).contains(&bin);
        if own_house && after.seeds[bin] == 1 {
            let opposite = 2 * self.houses - bin;
            if after.seeds[opposite] > 0 || self.empty_capture {
                after.seeds[own_store] += 1 + after.seeds[opposite];
                after.seeds[bin] = 0;
                after.seeds[opposite] = 0;
            }
        }
        after.north = self.north != (bin != own_store);
        after
    }

    /// The mover's final store difference with best play.
    pub fn value(&self, memo: &mut HashMap<Self, i32>) -> i32 {
        if let Some(value) = memo.get(self) {
            return *value;
        }
        let total = |north| (self.store(north) + self.remaining(north)) as i32;
        let best = self
            .moves()
            .iter()
            .map(|next| if next.north == self.north { next.value(memo) } else { -next.value(memo) })
            .max()
            .unwrap_or(total(self.north) - total(!self.north));
        memo.insert(self.clone(), best);
        best
    }
}
