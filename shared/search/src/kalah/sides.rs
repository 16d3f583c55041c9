//! Numbering the ways to put seeds into the houses of one side.
//!
//! With p(i) the seeds in the houses 0 to i, the number of a side of s seeds in h houses is that of the combinatorial number system:
//!
//! ```text
//! number = sum over i = 0 .. h-2 of C(p(i) + i, i + 1)         0 <= number < C(s + h - 1, h - 1)
//! ```
//!
//! A seed that moves on to a later house of its side makes some p(i) smaller and none larger, so it makes the number smaller.

use grundy_games::kalah::HOUSES_MAX;

/// The most seeds of a numbered side.
pub const SIDE_SEEDS_MAX: usize = 127;

/// The numbering of sides with one number of houses.
#[derive(Clone)]
pub struct Sides {
    houses: u8,
    /// `terms[i][p]` = C(p + i, i + 1), for all houses but the last.
    terms: Vec<[u32; SIDE_SEEDS_MAX + 1]>,
    /// How many sides there are, by seeds.
    counts: Vec<u32>,
}

impl Sides {
    /// The numbering for 1 to [`HOUSES_MAX`] houses (others count as the nearest bound) and sides of up to `seeds` seeds, at most
    /// [`SIDE_SEEDS_MAX`] and as many as have numbers of 31 bits.
    pub fn new(houses: u8, seeds: u8) -> Self {
        let houses = houses.clamp(1, HOUSES_MAX);
        let others = u64::from(houses) - 1;
        let count = |seeds: usize| {
            u32::try_from(choose(seeds as u64 + others, others)).ok().filter(|count| *count <= 1 << 31)
        };
        let counts: Vec<u32> = (0..=usize::from(seeds).min(SIDE_SEEDS_MAX)).map_while(count).collect();
        let terms = (0..others)
            .map(|i| {
                std::array::from_fn(|p| {
                    // Larger prefixes do not come up, and their terms may be too large.
                    if p < counts.len() { choose(p as u64 + i, i + 1) as u32 } else { 0 }
                })
            })
            .collect();
        Self { houses, terms, counts }
    }

    /// Houses of a side.
    pub fn houses(&self) -> u8 {
        self.houses
    }

    /// The most seeds of a numbered side.
    pub fn seeds_max(&self) -> usize {
        self.counts.len() - 1
    }

    /// How many sides have so many seeds; 0 for more than are numbered.
    pub fn count(&self, seeds: usize) -> usize {
        self.counts.get(seeds).map_or(0, |count| *count as usize)
    }

    /// The number of a side, a byte a house.
    pub fn number(&self, side: u64) -> usize {
        // Byte i of the product is the sum of the bytes 0 to i: no sum exceeds a byte.
        let prefixes = side.wrapping_mul(0x0101_0101_0101_0101);
        let mut number = 0;
        for (i, terms) in self.terms.iter().enumerate() {
            number += terms[(prefixes >> (8 * i)) as usize & SIDE_SEEDS_MAX];
        }
        number as usize
    }

    /// All sides of so many seeds, in the order of their numbers.
    pub fn all(&self, seeds: usize) -> Vec<u64> {
        let mut sides = Vec::with_capacity(self.count(seeds));
        self.place(usize::from(self.houses) - 1, seeds, 0, &mut sides);
        sides
    }

    /// Puts seeds into the houses up to `last`: the fewer the earlier houses have, the smaller the number.
    fn place(&self, last: usize, seeds: usize, side: u64, sides: &mut Vec<u64>) {
        if last == 0 {
            return sides.push(side | seeds as u64);
        }
        for earlier in 0..=seeds {
            let here = (seeds - earlier) as u64;
            self.place(last - 1, earlier, side | here << (8 * last), sides);
        }
    }

    /// The side of a number.
    pub fn side(&self, seeds: usize, number: usize) -> u64 {
        let (mut side, mut left, mut number) = (0, seeds, number as u32);
        for (i, terms) in self.terms.iter().enumerate().rev() {
            // The largest prefix whose term still fits.
            let prefix = terms[..=left].partition_point(|term| *term <= number).saturating_sub(1);
            number -= terms[prefix];
            side |= ((left - prefix) as u64) << (8 * (i + 1));
            left = prefix;
        }
        side | left as u64
    }
}

/// A binomial coefficient, saturating.
pub(super) fn choose(n: u64, k: u64) -> u64 {
    if k > n {
        return 0;
    }
    (0..k.min(n - k))
        .try_fold(1u64, |product, i| Some(product.checked_mul(n - i)? / (i + 1)))
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_a_bijection_in_order() {
        for houses in 1..=8 {
            let sides = Sides::new(houses, 9);
            assert_eq!(sides.seeds_max(), 9);
            for seeds in 0..=9 {
                let all = sides.all(seeds);
                assert_eq!(all.len(), sides.count(seeds), "{houses} houses, {seeds} seeds");
                for (number, side) in all.into_iter().enumerate() {
                    assert_eq!(sides.number(side), number, "{side:x}");
                    assert_eq!(sides.side(seeds, number), side, "{number} of {seeds}");
                    assert_eq!(
                        side.to_le_bytes().iter().map(|seeds| usize::from(*seeds)).sum::<usize>(),
                        seeds
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_of_many_seeds_fit() {
        let sides = Sides::new(8, 127);
        let most = sides.seeds_max();
        assert!(sides.count(most) <= 1 << 31 && (60..127).contains(&most), "{most}");
        assert_eq!(sides.number(sides.side(most, sides.count(most) - 1)), sides.count(most) - 1);
        assert_eq!(Sides::new(6, 127).seeds_max(), 127);
    }
}
