//! A table of what is known of boards' gains: both bounds and the best move in a word of 64 bits.
//!
//! The key is exact. All boards with n seeds in 2h houses are numbered without a gap by the combinatorial number system, p(i) being
//! the seeds in the first i + 1 houses (the mover's from its left, then the other's):
//!
//! ```text
//! number = sum over i = 0 .. 2h-1 of C(p(i) + i, i + 1)
//! ```
//!
//! A bijection mixes the number's bits. Of the result, read as a fraction, the bucket is the integral part of its product with the number of
//! buckets, so that each bucket's numbers follow each other, at most 2^t of them; their t lowest bits are kept, and bucket and entry together are
//! the whole number. A board whose number does not fit is not kept (past 100 seeds with six houses a side).
//!
//! ```text
//! bits  0..7    (low + n) / 2, where the gain is at least low; n: seeds in play
//! bits  7..14   (high + n) / 2, where the gain is at most high
//! bits 14..17   the house of the best move
//! bits 17..22   the rank: 1 + the binary logarithm of the nodes that were searched for it, at most 31; 0 in an empty entry
//! bits 22..64   the lowest t bits of the mixed number
//! ```

use crate::memory::{prefetch, want_huge_pages};
use grundy_games::kalah::{Board, HOUSES_MAX};
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromZeros;

/// Entries of a bucket: one cache line.
const WAYS: usize = 8;

/// Bits of an entry below those of its number.
const DATA_BITS: u32 = 22;

/// The most seeds of a board that is kept.
const SEEDS_MAX: usize = 126;

type Bucket = [AtomicU64; WAYS];

/// The table. Threads share it without locks: an entry is one word.
pub struct Gains {
    /// The buckets, from word `start` on.
    words: Box<[AtomicU64]>,
    /// Words to skip so that buckets lie on cache lines.
    start: usize,
    buckets: u64,
    numbering: Numbering,
}

/// What is known of a board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// The mover gains at least this.
    pub low: i16,
    /// The mover gains at most this.
    pub high: i16,
    /// The best house found, from 0.
    pub house: u8,
}

impl Known {
    /// What the rules say: the gain is no more than the seeds in play, on either side.
    pub fn nothing(seeds: i16) -> Self {
        Self { low: -seeds, high: seeds, house: HOUSES_MAX }
    }

    /// The same when it is known too whether the mover gains at least `margin`, of the parity of a gain.
    #[must_use]
    pub fn with(self, margin: i16, truth: bool) -> Self {
        if truth {
            Self { low: self.low.max(margin), ..self }
        } else {
            Self { high: self.high.min(margin - 2), ..self }
        }
    }

    /// Whether the mover gains at least `margin`, if that is known.
    pub fn truth(self, margin: i16) -> Option<bool> {
        if margin <= self.low {
            Some(true)
        } else if margin > self.high {
            Some(false)
        } else {
            None
        }
    }
}

/// A board's number, mixed.
#[derive(Clone, Copy)]
pub struct Mixed(u64);

/// The numbers of boards.
struct Numbering {
    houses: usize,
    /// C(p + i, i + 1), or `TOO_LARGE`.
    terms: Box<[[u64; SEEDS_MAX + 1]]>,
}

/// Sums of few of these do not overflow.
const TOO_LARGE: u64 = 1 << 59;

impl Numbering {
    fn new(houses: u8) -> Self {
        let houses = usize::from(houses.clamp(1, HOUSES_MAX));
        let term = |i: usize, p: usize| super::sides::choose((p + i) as u64, i as u64 + 1).min(TOO_LARGE);
        let terms = (0..2 * houses).map(|i| std::array::from_fn(|p| term(i, p))).collect();
        Self { houses, terms }
    }

    /// The number; at least [`TOO_LARGE`] if the true one is. Of at most [`SEEDS_MAX`] seeds.
    fn number(&self, board: Board) -> u64 {
        const ONES: u64 = 0x0101_0101_0101_0101;
        // Byte i of the products is the sum of the bytes 0 to i.
        let mine = board.mine.wrapping_mul(ONES);
        let all = (mine >> 56) * ONES + board.theirs.wrapping_mul(ONES);
        let (first, second) = self.terms.split_at(self.houses);
        let of = |terms: &[[u64; SEEDS_MAX + 1]], prefixes: u64| {
            let terms = terms.iter().enumerate();
            terms.map(|(i, terms)| terms[(prefixes >> (8 * i)) as usize & 127]).sum::<u64>()
        };
        of(first, mine) + of(second, all)
    }
}

impl Gains {
    /// A table of at most so many bytes (and a bucket of 64 at least), for boards with so many houses a side. `None` if there is no memory for it.
    pub fn new(houses: u8, bytes: usize) -> Option<Self> {
        let buckets = (bytes / size_of::<Bucket>()).clamp(1, 1 << 40);
        let words = WAYS * buckets + WAYS - 1;
        // Zeros from the system: pages that nothing is put into take no memory.
        let mut words = <[AtomicU64]>::new_box_zeroed_with_elems(words).ok()?;
        want_huge_pages(&mut words);
        let start = words.as_ptr().align_offset(size_of::<Bucket>()).min(WAYS - 1);
        Some(Self { words, start, buckets: buckets as u64, numbering: Numbering::new(houses) })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// A board's mixed number; `None` if the board is not kept.
    pub fn mixed(&self, board: Board, seeds: i16) -> Option<Mixed> {
        if seeds as usize > SEEDS_MAX {
            return None;
        }
        let (number, bits) = (self.numbering.number(board), self.bits());
        (number >> bits == 0).then(|| Mixed(mix(number, bits)))
    }

    /// Begins to load what is known of a board that is looked up soon.
    pub(super) fn prefetch(&self, mixed: Mixed) {
        prefetch(self.bucket(mixed));
    }

    /// Bits of a number: below [`TOO_LARGE`].
    fn bits(&self) -> u32 {
        (u64::BITS - DATA_BITS + self.buckets.ilog2()).min(58)
    }

    fn bucket(&self, Mixed(mixed): Mixed) -> &Bucket {
        let buckets = self.words[self.start..].as_chunks().0;
        &buckets[((u128::from(mixed) * u128::from(self.buckets)) >> self.bits()) as usize]
    }

    /// The bits of the number that an entry has, in their place.
    fn tag(&self, Mixed(mixed): Mixed) -> u64 {
        (mixed & ((1 << (self.bits() - self.buckets.ilog2())) - 1)) << DATA_BITS
    }

    /// What is known of a board with so many seeds in play.
    pub fn get(&self, mixed: Mixed, seeds: i16) -> Option<Known> {
        self.get_ranked(mixed, seeds).map(|(known, _)| known)
    }

    /// The same with the rank it was kept with.
    pub(super) fn get_ranked(&self, mixed: Mixed, seeds: i16) -> Option<(Known, u8)> {
        let tag = self.tag(mixed);
        for entry in self.bucket(mixed) {
            let entry = entry.load(Ordering::Relaxed);
            if entry >> DATA_BITS == tag >> DATA_BITS && rank_of(entry) > 0 {
                let bound = |shift: u32| 2 * (entry >> shift & 127) as i16 - seeds;
                let known = Known { low: bound(0), high: bound(7), house: (entry >> 14 & 7) as u8 };
                return Some((known, rank_of(entry)));
            }
        }
        None
    }

    /// Keeps what became known of a board by so many nodes, in the place of what it had of it or of the cheapest of its bucket.
    pub fn put(&self, mixed: Mixed, seeds: i16, known: Known, nodes: u64) {
        self.put_with(mixed, seeds, known, |before| before.max(nodes.max(1).ilog2().min(30) as u8 + 1));
    }

    /// Keeps it with a rank from 1 to 31, in the place of what it had of it or of the lowest rank in its bucket.
    pub(super) fn put_ranked(&self, mixed: Mixed, seeds: i16, known: Known, rank: u8) {
        self.put_with(mixed, seeds, known, |_| rank);
    }

    /// Keeps it with the rank that follows from the one it had, 0 if it had none.
    fn put_with(&self, mixed: Mixed, seeds: i16, known: Known, rank: impl Fn(u8) -> u8) {
        let tag = self.tag(mixed);
        let bound = |bound: i16| ((bound + seeds) / 2) as u64 & 127;
        let data = bound(known.low) | bound(known.high) << 7 | u64::from(known.house & 7) << 14;
        let bucket = self.bucket(mixed);
        // Of entries of the same rank it is not always the first that gives way: it would be the newest one.
        let turn = (tag >> DATA_BITS) as usize;
        let (mut lowest, mut least) = (&bucket[turn % WAYS], u8::MAX);
        for way in 0..WAYS {
            let slot = &bucket[(turn + way) % WAYS];
            let entry = slot.load(Ordering::Relaxed);
            let entry_rank = rank_of(entry);
            if entry >> DATA_BITS == tag >> DATA_BITS && entry_rank > 0 {
                return slot.store(tag | data | u64::from(rank(entry_rank)) << 17, Ordering::Relaxed);
            }
            if entry_rank < least {
                (lowest, least) = (slot, entry_rank);
            }
        }
        lowest.store(tag | data | u64::from(rank(0)) << 17, Ordering::Relaxed);
    }
}

fn rank_of(entry: u64) -> u8 {
    (entry >> 17 & 31) as u8
}

/// A bijection of the numbers of so many bits.
fn mix(number: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let half = bits / 2;
    let mut mixed = number;
    for factor in [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9] {
        mixed = mixed.wrapping_mul(factor) & mask;
        mixed ^= mixed >> half;
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn mixing_is_a_bijection() {
        for bits in [8, 9, 14] {
            let mut seen = vec![false; 1 << bits];
            for number in 0..1 << bits {
                let mixed = mix(number, bits) as usize;
                assert!(!std::mem::replace(&mut seen[mixed], true), "{number} of {bits} bits");
            }
        }
    }

    #[test]
    fn numbers_have_no_gaps() {
        let numbering = Numbering::new(2);
        let mut numbers = Vec::new();
        for seeds in 0..5u64.pow(4) {
            let house = |place: u32| seeds / 5u64.pow(place) % 5;
            let board = Board { mine: house(0) | house(1) << 8, theirs: house(2) | house(3) << 8 };
            if board.seeds() <= 4 {
                numbers.push(numbering.number(board));
            }
        }
        numbers.sort_unstable();
        // C(4 + 4, 4) boards of at most four seeds.
        assert_eq!(numbers, (0..70).collect::<Vec<u64>>());
    }

    #[test]
    fn what_is_found_was_put_there_for_the_same_board() {
        for bytes in [1 << 14, 15_000, (1 << 15) - 64] {
            only_the_same_board_is_found(&Gains::new(6, bytes).expect("some KiB"));
        }
    }

    /// Bucket and tag are all of a number, also where buckets are no power of two.
    #[test]
    fn no_two_numbers_of_a_bucket_have_the_same_tag() {
        for buckets in [1, 3, 5, 7, 8] {
            let gains = Gains::new(2, 64 * buckets).expect("some bytes");
            let scale = gains.bits() - 12;
            // Neighbours at the borders of buckets, and far from each other within one.
            let mut seen = std::collections::HashSet::new();
            for high in 0..1u64 << 12 {
                for low in [0, 1, (1 << scale) - 1] {
                    let mixed = Mixed(high << scale | low);
                    assert!(
                        seen.insert((std::ptr::from_ref(gains.bucket(mixed)), gains.tag(mixed))),
                        "{buckets}"
                    );
                }
            }
        }
    }

    fn only_the_same_board_is_found(gains: &Gains) {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut put: HashMap<Board, Known> = HashMap::new();
        let (mut found, mut missed) = (0, 0);
        for _ in 0..200_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Few enough boards that many come again, of many different sums.
            let side =
                |bits: u64| (0..6).map(|i| ((bits >> (2 * i) & 3) * (1 + i % 2)) << (8 * i)).sum::<u64>();
            let board = Board { mine: side(state & 0x3f), theirs: side(state >> 20 & 0xfff) };
            let seeds = board.seeds();
            let mixed = gains.mixed(board, seeds).expect("few seeds");
            match (gains.get(mixed, seeds), put.get(&board)) {
                (Some(now), Some(before)) => {
                    assert_eq!(now, *before, "{board:?}");
                    found += 1;
                }
                (Some(now), None) => panic!("{now:?} of a board that was never put there: {board:?}"),
                (None, _) => missed += 1,
            }
            let low = 2 * (state >> 40 & 7) as i16 - seeds;
            let known = Known {
                low,
                high: low.max(seeds - 2 * (state >> 50 & 3) as i16),
                house: (state >> 60) as u8 & 7,
            };
            gains.put(mixed, seeds, known, state >> 44 & 0xff);
            put.insert(board, known);
        }
        assert!(found > 1_000 && missed > 1_000, "{found} found, {missed} missed");
    }

    #[test]
    fn boards_past_the_numbers_are_not_kept() {
        let gains = Gains::new(8, 1 << 12).expect("4 KiB");
        let board =
            |seeds: u64| Board { mine: seeds * 0x0101_0101_0101_0101, theirs: seeds * 0x0101_0101_0101_0101 };
        assert!(gains.mixed(board(1), 16).is_some());
        assert!(gains.mixed(board(7), 112).is_none());
        assert!(gains.mixed(board(15), 240).is_none());
    }
}
