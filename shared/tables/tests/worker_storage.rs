//! A worker's data directory and the table in front of it.

use grundy_search::numbers::Numbers;
use grundy_search::table::{Entry, Key, Known, Namespace, Table};
use grundy_tables::{
    RamTable, RocksJobs, StorageError, StorageMemory, TierOptions, TieredTable, WorkerStorage,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const MEMORY: StorageMemory = StorageMemory { cache: 1 << 20, write_buffers: 1 << 20 };
const OPTIONS: TierOptions = TierOptions { final_work_min: 16, open_work_min: 256 };

fn directory() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

fn open(directory: &Path) -> WorkerStorage {
    WorkerStorage::open(directory, &MEMORY).expect("the directory opens")
}

fn table_of(directory: &Path, ram_bytes: usize) -> TieredTable {
    let ram = RamTable::with_bytes(ram_bytes).expect("a little memory");
    let positions = open(directory).positions().expect("the register is readable");
    let table = TieredTable::new(ram, positions, OPTIONS).expect("threads start");
    table.wait_until_warm();
    table
}

fn key(number: u64) -> Key {
    Key::new([number, !number], number as u16, Namespace(2))
}

fn decided(truth: bool, work: u64) -> Entry {
    Entry { known: Known::Numbers(Numbers::decided(truth)), work }
}

fn undecided(work: u64) -> Entry {
    Entry { known: Known::Numbers(Numbers::open(5, 6)), work }
}

fn value(value: i16, work: u64) -> Entry {
    Entry { known: Known::Value(value), work }
}

#[test]
fn costly_entries_survive_and_cheap_ones_do_not() {
    let directory = directory();
    let entries = [
        (1, decided(true, 16), true),
        (2, decided(false, 15), false),
        (3, undecided(256), true),
        (4, undecided(255), false),
        (5, value(-3, 1 << 40), true),
        (6, value(7, 0), false),
    ];
    let table = table_of(directory.path(), 1 << 16);
    for (number, entry, _) in entries {
        table.store(&key(number), entry);
    }
    drop(table);
    let table = table_of(directory.path(), 1 << 16);
    for (number, entry, survives) in entries {
        assert_eq!(table.probe(&key(number)), survives.then_some(entry), "key {number}");
    }
    let statistics = table.statistics();
    assert_eq!((statistics.hits, statistics.misses, statistics.loaded), (3, 3, 3));
    assert_eq!((table.entries_on_disk(), table.contradiction(), table.failure()), (3, None, None));
}

#[test]
fn flushed_entries_are_on_disk_while_the_table_runs() {
    let directory = directory();
    let table = table_of(directory.path(), 1 << 16);
    table.store(&key(1), decided(true, 1024));
    table.flush().expect("the disk works");
    assert_eq!(table.statistics().disk_writes, 1);
    let image = TempDir::new().expect("a temporary directory");
    for folder in ["", "db"] {
        fs::create_dir_all(image.path().join(folder)).expect("a directory can be made");
        for entry in fs::read_dir(directory.path().join(folder)).expect("it is a directory") {
            let path = entry.expect("it can be read").path();
            if path.is_file() {
                fs::copy(&path, image.path().join(folder).join(path.file_name().expect("named")))
                    .expect("copied");
            }
        }
    }
    let positions = open(image.path()).positions().expect("readable");
    assert_eq!(positions.get(&key(1)), Ok(Some(decided(true, 1024))));
}

/// With less RAM than entries, the costliest are the ones that come back.
#[test]
fn a_small_table_is_filled_with_the_costliest() {
    let directory = directory();
    let positions = open(directory.path()).positions().expect("readable");
    let entries: Vec<_> = (0..4096).map(|number| (key(number), decided(true, 16 << (number % 16)))).collect();
    positions.merge(&entries).expect("the disk works");
    drop(positions);
    // Room for an eighth.
    let table = table_of(directory.path(), 4096 * 4);
    let kept =
        |octave: u64| (0..4096).filter(|n| n % 16 == octave && table.probe(&key(*n)).is_some()).count();
    let (cheapest, costliest) = (kept(0), kept(15));
    assert!(cheapest * 20 < costliest && costliest > 150, "{cheapest} of 2^4 nodes, {costliest} of 2^19");
}

/// Merging is order-free as far as truth goes: each key ends with its final entry, or its costliest open one.
#[test]
fn merging_keeps_final_and_costliest_entries() {
    let config = ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(offers in prop::collection::vec((0..12u64, any::<bool>(), 0..40u32), 1..60), batch in 1..20usize)| {
        let directory = directory();
        let positions = open(directory.path()).positions().expect("readable");
        let entry = |number: u64, is_final, octave: u32| {
            if is_final { decided(number.is_multiple_of(2), 1u64 << octave) } else { undecided(1u64 << octave) }
        };
        let offers: Vec<_> = offers.into_iter().map(|(number, is_final, octave)| (number, entry(number, is_final, octave))).collect();
        let mut expected = BTreeMap::<u64, Entry>::new();
        for (number, entry) in &offers {
            let best = expected.entry(*number).or_insert(*entry);
            if (entry.is_final(), entry.work) > (best.is_final(), best.work) {
                *best = *entry;
            }
        }
        for offers in offers.chunks(batch) {
            let offers: Vec<_> = offers.iter().map(|(number, entry)| (key(*number), *entry)).collect();
            let merged = positions.merge(&offers).expect("the disk works");
            prop_assert_eq!((merged.contradiction, merged.corrupt), (None, None));
        }
        for (number, entry) in expected {
            prop_assert_eq!(positions.get(&key(number)), Ok(Some(entry)));
        }
    });
}

#[test]
fn contradictions_are_flagged_and_the_first_entry_stays() {
    let pairs = [
        (decided(true, 64), decided(false, 1 << 20)),
        (value(3, 64), value(4, 64)),
        (value(0, 64), decided(true, 64)),
    ];
    for (first, second) in pairs {
        // Met in RAM.
        let in_ram = directory();
        let table = table_of(in_ram.path(), 1 << 12);
        for number in 0..3 {
            assert_eq!(table.namespace(&format!("game {number}")), Ok(Namespace(number)));
        }
        table.store(&key(1), first);
        table.store(&key(1), second);
        let found = table.contradiction().expect("it was flagged");
        assert_eq!((found.key, found.kept, found.offered), (key(1), first, second));
        assert_eq!(found.namespace.as_deref(), Some("game 2"));
        assert_eq!(table.probe(&key(1)), Some(first));

        // Met on disk, RAM having forgotten the first.
        let on_disk = directory();
        let table = table_of(on_disk.path(), 64);
        table.store(&key(1), first);
        (2..2000).for_each(|number| table.store(&key(number), undecided(8)));
        table.flush().expect("the disk works");
        assert_eq!((table.ram().probe(&key(1)), table.contradiction()), (None, None));
        table.store(&key(1), second);
        table.flush().expect("the disk works");
        let found = table.contradiction().expect("it was flagged");
        assert_eq!((found.key, found.kept, found.offered), (key(1), first, second));
        drop(table);
        let positions = open(on_disk.path()).positions().expect("readable");
        assert_eq!(positions.get(&key(1)), Ok(Some(first)));
    }
}

/// Engines store faster than a disk can take: nothing waits, and all is either written or counted as dropped.
#[test]
fn offers_beyond_the_queue_are_counted() {
    let directory = directory();
    let table = table_of(directory.path(), 1 << 20);
    const EACH: u64 = 200_000;
    thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || {
                (0..EACH).for_each(|number| table.store(&key(thread * EACH + number), decided(true, 1024)));
            });
        }
    });
    table.flush().expect("the disk works");
    let statistics = table.statistics();
    assert_eq!(statistics.stores, 4 * EACH);
    assert_eq!(statistics.disk_writes + statistics.dropped, 4 * EACH);
    assert!(statistics.disk_writes > 0);
}

#[test]
fn namespaces_keep_their_numbers() {
    let directory = directory();
    let names = ["cram", "kalah/6/standard", "konane/6x6", ""];
    let number = |names: &[&str]| -> Vec<Namespace> {
        let positions = open(directory.path()).positions().expect("readable");
        names.iter().map(|name| positions.namespace(name).expect("registered")).collect()
    };
    assert_eq!(number(&names), (0..4).map(Namespace).collect::<Vec<_>>());
    let backwards: Vec<_> = names.into_iter().rev().chain(["new"]).collect();
    assert_eq!(number(&backwards), [3, 2, 1, 0, 4].map(Namespace));
}

#[test]
fn spooled_results_wait_until_they_are_removed() {
    let directory = directory();
    let (long, empty) = (vec![7; 100_000], Vec::new());
    {
        let spool = open(directory.path()).spool();
        spool.put(9, &long).expect("there is space");
        spool.put(256, b"two").expect("there is space");
        spool.put(1, &empty).expect("there is space");
        spool.put(2, b"acknowledged").expect("there is space");
        spool.remove(2).expect("there is space");
        spool.remove(77).expect("nothing there is no error");
    }
    let spool = open(directory.path()).spool();
    assert_eq!(spool.list(), Ok(vec![(1, empty), (9, long), (256, b"two".to_vec())]));
}

/// The error of a directory that must not open.
fn refused(directory: &Path) -> StorageError {
    WorkerStorage::open(directory, &MEMORY).err().expect("it must not open")
}

#[test]
fn a_directory_in_use_is_refused_until_all_that_uses_it_is_gone() {
    let directory = directory();
    let storage = open(directory.path());
    let locked = StorageError::Locked { directory: directory.path().into() };
    assert_eq!(refused(directory.path()), locked);
    let spool = storage.spool();
    drop(storage);
    assert_eq!(refused(directory.path()), locked);
    drop(spool);
    open(directory.path());
}

#[test]
fn a_directory_of_another_kind_version_or_program_is_refused() {
    let path = |directory: &TempDir| directory.path().to_path_buf();
    let coordinator = directory();
    drop(RocksJobs::open(coordinator.path(), &MEMORY).expect("an empty directory opens"));
    let (found, expected) = ("coordinator".to_owned(), "worker-table");
    assert_eq!(
        refused(coordinator.path()),
        StorageError::WrongKind { directory: path(&coordinator), found, expected }
    );

    let newer = directory();
    drop(open(newer.path()));
    let marker = newer.path().join("GRUNDY");
    let text = fs::read_to_string(&marker).expect("it is text");
    assert_eq!(text, "grundy data directory\nkind worker-table\nformat 1\n");
    fs::write(&marker, text.replace("format 1", "format 2")).expect("writable");
    let error = refused(newer.path());
    assert_eq!(error, StorageError::WrongVersion { directory: path(&newer), found: 2, expected: 1 });

    for damaged in ["", "grundy", "grundy data directory\nkind worker-table\n", "\u{1}"] {
        fs::write(&marker, damaged).expect("writable");
        assert!(matches!(refused(newer.path()), StorageError::Corrupt { .. }), "{damaged:?}");
    }
    fs::write(&marker, [0xff, 0xfe]).expect("writable");
    assert!(matches!(refused(newer.path()), StorageError::Corrupt { .. }));

    fs::remove_file(&marker).expect("it is there");
    assert_eq!(refused(newer.path()), StorageError::NotOurs { directory: path(&newer) });
}

#[test]
fn a_path_that_is_a_file_is_refused_by_name() {
    let directory = directory();
    let file = directory.path().join("file");
    fs::write(&file, "").expect("writable");
    let message = refused(&file).to_string();
    assert!(message.contains(&file.display().to_string()), "{message}");
}

/// An entry that RAM had to let go comes back from disk once somebody asks for it.
#[test]
fn evicted_entries_are_read_back() {
    let directory = directory();
    let table = table_of(directory.path(), 64);
    table.store(&key(1), decided(true, 1 << 20));
    table.flush().expect("the disk works");
    (2..2000).for_each(|number| table.store(&key(number), undecided(8)));
    assert_eq!(table.probe(&key(1)), None);
    let found = (0..1000).find_map(|_| {
        thread::sleep(Duration::from_millis(5));
        table.probe(&key(1))
    });
    assert_eq!(found, Some(decided(true, 1 << 20)));
    assert!(table.statistics().read_back >= 1);
}
