//! A table entry in one 64-bit word, and how two entries of one key become one.
//!
//! ```text
//! bit  0        1: there is an entry
//! bit  1        0: numbers, 1: value
//! bits 2..10    work code: below 4 the work itself, above its three leading bits (see `work_code`)
//! bits 10..16   age, used by the RAM table alone
//! bits 16..64   numbers: codes of proof and disproof (24 bits each, see `number_code`); value: 16 bits, the rest 0
//! ```

use grundy_search::numbers::{INFINITE, Numbers};
use grundy_search::table::{Entry, Known};

const OCCUPIED: u64 = 1;
const IS_VALUE: u64 = 1 << 1;
const WORK_SHIFT: u32 = 2;
const AGE_SHIFT: u32 = 10;
const KNOWN_SHIFT: u32 = 16;
const AGE_MAX: u64 = 63;

/// The code of infinity: 24 bits, all set.
const CODE_MAX: u32 = (1 << 24) - 1;

/// How many bits of a number its code keeps behind the leading one.
const MANTISSA_BITS: u32 = 19;

/// Packs an entry with age 0. Work is rounded down to its three leading bits: by less than a quarter; numbers to their leading 20.
pub(crate) fn pack(entry: &Entry) -> u64 {
    let known = match entry.known {
        Known::Numbers(numbers) => {
            let [proof, disproof] = [numbers.proof, numbers.disproof].map(number_code);
            (u64::from(proof) | u64::from(disproof) << 24) << KNOWN_SHIFT
        }
        Known::Value(value) => u64::from(value.cast_unsigned()) << KNOWN_SHIFT | IS_VALUE,
    };
    known | u64::from(work_code(entry.work)) << WORK_SHIFT | OCCUPIED
}

/// Unpacks; `None` for a word without an entry.
pub(crate) fn unpack(word: u64) -> Option<Entry> {
    if word & OCCUPIED == 0 {
        return None;
    }
    let known = word >> KNOWN_SHIFT;
    let known = if word & IS_VALUE == 0 {
        let [proof, disproof] = [known as u32 & CODE_MAX, (known >> 24) as u32].map(number_of);
        Known::Numbers(Numbers { proof, disproof })
    } else {
        Known::Value((known as u16).cast_signed())
    };
    Some(Entry { known, work: work_of(word) })
}

/// Whether the word is one that `pack` can make.
pub(crate) fn is_packed(word: u64) -> bool {
    unpack(word).is_some_and(|entry| pack(&entry) == word)
}

/// The code of a proof or disproof number: `n` below 2^20; else, with `m` the 19 bits behind the leading one and `s` the bits behind those,
/// `(s + 1) 2^19 + m`; for infinity 2^24 - 1. Codes keep the order, and none but that of 0 is 0.
fn number_code(number: u32) -> u32 {
    if number >= INFINITE {
        return CODE_MAX;
    }
    let rest = number.checked_ilog2().unwrap_or(0).saturating_sub(MANTISSA_BITS);
    // The leading bit adds the one to `s`.
    (rest << MANTISSA_BITS) + (number >> rest)
}

fn number_of(code: u32) -> u32 {
    const REST_MAX: u32 = u32::BITS - 2 - MANTISSA_BITS;
    if code == CODE_MAX {
        return INFINITE;
    }
    // A code from elsewhere must not overflow the shift.
    let rest = (code >> MANTISSA_BITS).saturating_sub(1).min(REST_MAX);
    (code - (rest << MANTISSA_BITS)).min((2 << MANTISSA_BITS) - 1) << rest
}

/// The code of a work: `w` below 4; else, with `e` the place of the leading bit and `m` the two bits after it, `4 (e - 1) + m`.
/// Codes keep the order, four of them double the work, and the largest is 251.
fn work_code(work: u64) -> u8 {
    if work < 4 {
        return work as u8;
    }
    let place = work.ilog2();
    (4 * (place - 1) + (work >> (place - 2) & 3) as u32) as u8
}

fn work_of(word: u64) -> u64 {
    let code = word >> WORK_SHIFT & 0xff;
    if code < 4 {
        return code;
    }
    // 251 is the largest code made; a word from elsewhere with a larger one must not overflow the shift.
    (4 | code & 3) << (code / 4 - 1).min(61)
}

/// How much an entry deserves its place, in units of which eight double the work. Each step of age costs half an
/// octave, and a final entry, which is never searched again once found, counts one octave more than an open one.
pub(crate) fn priority(word: u64) -> i32 {
    let work = (word >> WORK_SHIFT & 0xff) as i32;
    let age = (word >> AGE_SHIFT & AGE_MAX) as i32;
    2 * work - 4 * age + if is_final(word) { 8 } else { 0 }
}

/// The word one step older; age stops at its maximum, 31 octaves below the entry's worth.
pub(crate) fn aged(word: u64) -> u64 {
    if word >> AGE_SHIFT & AGE_MAX == AGE_MAX { word } else { word + (1 << AGE_SHIFT) }
}

/// [`Entry::is_final`] of a packed word.
pub(crate) fn is_final(word: u64) -> bool {
    const PROOF: u64 = (CODE_MAX as u64) << KNOWN_SHIFT;
    const DISPROOF: u64 = (CODE_MAX as u64) << (KNOWN_SHIFT + 24);
    word & IS_VALUE != 0 || word & PROOF == 0 || word & DISPROOF == 0
}

/// Whether both are final and say different things: one of them is wrong, or one key means two claims.
pub fn contradict(a: &Entry, b: &Entry) -> bool {
    match (a.known, b.known) {
        (Known::Numbers(a), Known::Numbers(b)) => {
            a.truth().is_some() && b.truth().is_some() && a.truth() != b.truth()
        }
        (Known::Value(a), Known::Value(b)) => a != b,
        // A value next to numbers: a game keeps values under keys of their own.
        (Known::Value(_), Known::Numbers(numbers)) | (Known::Numbers(numbers), Known::Value(_)) => {
            numbers.truth().is_some()
        }
    }
}

/// The better of two entries of one key that do not [`contradict`]: final before open, then more work, then the newer.
pub fn merge(old: &Entry, new: &Entry) -> Entry {
    let rank = |entry: &Entry| (entry.is_final(), entry.work);
    if rank(old) > rank(new) { *old } else { *new }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn entries() -> impl Strategy<Value = Entry> {
        let known = prop_oneof![
            any::<bool>().prop_map(|truth| Known::Numbers(Numbers::decided(truth))),
            (number(), number()).prop_map(|(p, d)| Known::Numbers(Numbers::open(p, d))),
            any::<i16>().prop_map(Known::Value),
        ];
        let work = (any::<u64>(), 0..64u32).prop_map(|(work, shift)| work >> shift);
        (known, work).prop_map(|(known, work)| Entry { known, work })
    }

    /// Numbers of all lengths that a word holds as they are.
    fn number() -> impl Strategy<Value = u32> {
        (1..INFINITE, 0..31u32).prop_map(|(number, shift)| number_of(number_code(number >> shift)))
    }

    #[test]
    fn number_codes() {
        for exact in [0, 1, 2, 1 << 19, (1 << 20) - 1, 1 << 20, 1 << 30, INFINITE] {
            assert_eq!(number_of(number_code(exact)), exact);
        }
        assert_eq!(number_code((1 << 20) - 1), (1 << 20) - 1);
        assert_eq!(number_code(1 << 20), 2 << 19);
        assert_eq!(number_of(number_code((1 << 20) + 1)), 1 << 20);
        assert_eq!(number_code(INFINITE - 1), 13 * (1 << 19) - 1);
    }

    proptest! {
        #[test]
        fn number_codes_keep_the_order_and_all_but_a_millionth(a in 1..INFINITE, b in 1..INFINITE, shift in 0..31u32) {
            let (a, b) = (a >> shift, b >> shift);
            prop_assert!(number_code(a.min(b)) <= number_code(a.max(b)));
            let back = number_of(number_code(a));
            prop_assert!(back <= a && a - back <= a >> 19 && (back == 0) == (a == 0));
            prop_assert!(number_code(a) < CODE_MAX);
        }

        #[test]
        fn any_code_is_a_number(code in 0..=CODE_MAX) {
            prop_assert!(number_of(code) <= INFINITE);
        }

        #[test]
        fn a_word_keeps_the_knowledge_and_three_bits_of_work(entry in entries(), ages in 0..80u32) {
            let word = (0..ages).fold(pack(&entry), |word, _| aged(word));
            let back = unpack(word).expect("an entry was packed");
            prop_assert_eq!(back.known, entry.known);
            prop_assert_eq!(is_final(word), entry.is_final());
            prop_assert!(back.work <= entry.work && entry.work - back.work <= entry.work / 4);
            prop_assert_eq!(unpack(pack(&back)), Some(back));
            prop_assert!(is_packed(pack(&entry)));
        }

        #[test]
        fn any_word_unpacks(word: u64) {
            prop_assert_eq!(unpack(word).is_some(), word & 1 == 1);
        }

        #[test]
        fn work_codes_keep_the_order(a: u64, b: u64, shift in 0..64u32) {
            let (a, b) = (a >> shift, b >> shift);
            prop_assert!(work_code(a.min(b)) <= work_code(a.max(b)));
        }

        #[test]
        fn merging_never_loses_finality(a in entries(), b in entries()) {
            prop_assume!(!contradict(&a, &b));
            let merged = merge(&a, &b);
            prop_assert_eq!(merged.is_final(), a.is_final() || b.is_final());
            prop_assert!(merged == a || merged == b);
        }
    }
}
