//! The RAM table alone: exact keys under any interleaving, replacement, ageing.

use grundy_search::numbers::Numbers;
use grundy_search::table::{Entry, Key, Known, Namespace, Table};
use grundy_tables::RamTable;
use grundy_tables::ram::Insertion;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

fn key(number: u64) -> Key {
    // Neighbouring states differ in few bits, as those of a game do.
    Key::new([number, number << 7], (number % 5) as u16, Namespace(3))
}

fn open(proof: u32, work: u64) -> Entry {
    Entry { known: Known::Numbers(Numbers::open(proof, 9)), work }
}

fn decided(truth: bool, work: u64) -> Entry {
    Entry { known: Known::Numbers(Numbers::decided(truth)), work }
}

/// One bucket: every key falls into it.
fn one_bucket() -> RamTable {
    let table = RamTable::with_bytes(64).expect("64 bytes are there");
    assert_eq!((table.bytes(), table.capacity(), table.len()), (64, 2, 0));
    table
}

/// An entry from which its key can be told, so that a torn one gives itself away: all fields are functions of key and version. Numbers
/// below 2^20 come back as they are.
fn telltale(key: &Key, version: u64) -> Entry {
    let digest =
        (key.words[0] ^ key.words[1].rotate_left(9) ^ u64::from(key.tag)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let version = version & 0x3f;
    let proof = 1 + ((digest >> 40) as u32 & 0x1fff) + ((version as u32) << 13);
    let disproof = 1 + ((digest >> 20) as u32 & 0x1fff) + ((version as u32) << 13);
    Entry { known: Known::Numbers(Numbers::open(proof, disproof)), work: 1 << (version % 40) }
}

fn is_telltale(key: &Key, entry: &Entry) -> bool {
    let Known::Numbers(numbers) = entry.known else {
        return false;
    };
    *entry == telltale(key, u64::from((numbers.proof - 1) >> 13))
}

/// Threads write and read few buckets without pause; every entry found must be one that was stored under its key.
#[test]
fn threads_never_read_what_was_not_stored_under_the_key() {
    for buckets in [1, 3, 64] {
        let table = RamTable::with_bytes(buckets * 64).expect("a few KiB are there");
        let (hits, reading) = (AtomicU64::new(0), AtomicU64::new(2));
        thread::scope(|scope| {
            for thread in 0..4u64 {
                let (table, reading) = (&table, &reading);
                scope.spawn(move || {
                    let mut state = thread + 1;
                    for round in 0.. {
                        if reading.load(Ordering::Relaxed) == 0 {
                            break;
                        }
                        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                        let key = key((state >> 33) % (buckets as u64 * 4));
                        table.store(&key, telltale(&key, round));
                    }
                });
            }
            for thread in 0..2u64 {
                let (table, reading, hits) = (&table, &reading, &hits);
                scope.spawn(move || {
                    let mut lies = Vec::new();
                    for number in thread..thread + 2_500_000 {
                        let key = key(number % (buckets as u64 * 4));
                        if let Some(entry) = table.probe(&key) {
                            hits.fetch_add(1, Ordering::Relaxed);
                            if !is_telltale(&key, &entry) {
                                lies.push((key, entry));
                            }
                        }
                    }
                    // Before the assertion: a reader that panics must not leave the writers running.
                    reading.fetch_sub(1, Ordering::Relaxed);
                    assert_eq!(lies, [], "in {buckets} buckets");
                });
            }
        });
        assert!(hits.into_inner() > 0, "the readers met nothing in {buckets} buckets");
    }
}

proptest! {
    /// One thread: a probe gives the last entry stored under the key, or nothing; final entries stay final.
    #[test]
    fn a_table_forgets_but_does_not_lie(
        operations in prop::collection::vec((0..40u64, any::<bool>(), 1..100u32, 0..1000u64), 1..300),
        buckets in 1..9usize,
    ) {
        let table = RamTable::with_bytes(64 * buckets).expect("a few bytes are there");
        let mut last = HashMap::<u64, Known>::new();
        for (number, is_final, proof, work) in operations {
            // One truth a key, so that nothing contradicts.
            let entry = if is_final { decided(number.is_multiple_of(2), work) } else { open(proof, work) };
            let insertion = table.insert(&key(number), &entry);
            prop_assert!(!matches!(insertion, Insertion::Busy | Insertion::Contradicts(_)));
            if insertion != Insertion::Kept {
                last.insert(number, entry.known);
            }
            let found = table.probe(&key(number)).expect("what was just stored or kept is there");
            prop_assert_eq!(found.known, last[&number]);
            for (number, known) in &last {
                prop_assert!(table.probe(&key(*number)).is_none_or(|found| found.known == *known));
            }
            prop_assert!(table.len() <= table.capacity());
        }
    }
}

#[test]
fn keys_that_differ_in_one_bit_are_different() {
    let table = one_bucket();
    let base = Key { words: [5, 6], tag: 7 };
    table.store(&base, decided(true, 1));
    for bit in 0..160 {
        let mut other = base;
        match bit {
            0..64 => other.words[0] ^= 1 << bit,
            64..128 => other.words[1] ^= 1 << (bit - 64),
            _ => other.tag ^= 1 << (bit - 128),
        }
        assert_eq!(table.probe(&other), None, "bit {bit}");
    }
    assert_eq!(table.probe(&base), Some(decided(true, 1)));
}

#[test]
fn the_key_of_zeroes_is_not_in_an_empty_table() {
    let zero = Key { words: [0, 0], tag: 0 };
    let table = one_bucket();
    assert_eq!(table.probe(&zero), None);
    table.store(&zero, open(1, 0));
    assert_eq!(table.probe(&zero), Some(open(1, 0)));
}

#[test]
fn a_final_entry_is_not_replaced_by_an_open_one_of_its_key() {
    let table = one_bucket();
    assert_eq!(table.insert(&key(1), &decided(false, 4)), Insertion::Stored);
    assert_eq!(table.insert(&key(1), &open(3, 1 << 30)), Insertion::Kept);
    assert_eq!(table.probe(&key(1)), Some(decided(false, 4)));
    assert_eq!(table.insert(&key(1), &decided(true, 1 << 30)), Insertion::Contradicts(decided(false, 4)));
    assert_eq!(table.probe(&key(1)), Some(decided(false, 4)));
}

#[test]
fn the_cheaper_slot_goes_and_a_final_one_stays_at_equal_work() {
    let table = one_bucket();
    table.store(&key(1), open(1, 1024));
    table.store(&key(2), open(1, 8));
    assert_eq!(table.insert(&key(3), &open(1, 1)), Insertion::Evicted(key(2), open(1, 8)));
    table.store(&key(3), decided(true, 1024));
    assert_eq!(table.insert(&key(4), &open(1, 1)), Insertion::Evicted(key(1), open(1, 1024)));
    assert_eq!(table.probe(&key(3)), Some(decided(true, 1024)));
}

/// Costly entries stay for long, costlier ones longer, none for ever.
#[test]
fn old_entries_give_way_in_the_order_of_their_work() {
    let stores_until_gone = |work: u64| {
        let table = one_bucket();
        table.store(&key(0), open(1, work));
        (1..100_000).find(|&number| {
            table.store(&key(number), open(1, 8));
            table.probe(&key(0)).is_none()
        })
    };
    let lives: Vec<u64> =
        [16, 256, 1 << 16, 1 << 24].iter().map(|&work| stores_until_gone(work).expect("it ages")).collect();
    assert!(lives.is_sorted() && lives[0] < lives[1] && lives[1] < lives[2], "{lives:?}");
    assert!(lives[2] >= 64, "an entry of 2^16 nodes left after {} stores of 8 nodes", lives[2]);
}

/// A table with room holds what it is given: structured keys spread over the buckets as random ones would.
#[test]
fn structured_keys_spread_evenly() {
    let table = RamTable::with_bytes(64 << 12).expect("256 KiB are there");
    let keys = table.capacity() as u64 / 2;
    let patterns: [fn(u64) -> Key; 4] = [
        key,
        |n| Key::new([n << 40, 0], 0, Namespace(0)),
        |n| Key::new([0, n.reverse_bits()], 1, Namespace(0)),
        |n| Key::new([n & 0x3f, n >> 6 << 58], 2, Namespace(9)),
    ];
    for (number, pattern) in patterns.iter().enumerate() {
        let table = RamTable::with_bytes(table.bytes()).expect("256 KiB are there");
        (0..keys).for_each(|n| table.store(&pattern(n), open(1, 1)));
        // One key a bucket on average and two slots: of Poisson arrivals, 2 - 3/e = 0.896 are kept.
        let kept = (0..keys).filter(|&n| table.probe(&pattern(n)).is_some()).count() as f64 / keys as f64;
        assert!((0.88..0.91).contains(&kept), "pattern {number}: {kept}");
        assert_eq!(table.len(), (kept * keys as f64).round() as usize);
    }
}

#[test]
fn memory_is_not_touched_before_it_is_used() {
    let begin = std::time::Instant::now();
    let table = RamTable::with_bytes(16 << 30).expect("address space for 16 GiB is there");
    table.store(&key(1), open(1, 1));
    assert_eq!(table.probe(&key(1)), Some(open(1, 1)));
    // Zeroing 16 GiB takes seconds.
    assert!(begin.elapsed().as_millis() < 500, "{:?}", begin.elapsed());
}

#[test]
fn too_much_memory_is_an_error_with_the_number() {
    let error = RamTable::with_bytes(usize::MAX / 2).err().expect("nobody has that much");
    assert!(error.to_string().starts_with("a table of 9223372036854775807 bytes does not fit"), "{error}");
}
