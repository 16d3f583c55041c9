//! Cram's tables from files: the same as those in memory, found again, and never a reason to stop.

use grundy_search::cram::pairs::PairTable;
use grundy_search::cram::tables::{Size, StripTable, StripTables};
use grundy_tables::endgame::build::{EntryCheck, Origin, Recipe, open_or_build};
use grundy_tables::endgame::cram::Extent;
use grundy_tables::endgame::{Condition, EndgameError, EndgameMemory, EndgameTables, Verified, verify};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const MEMORY: EndgameMemory = EndgameMemory { mapped: 64 << 20, private: 32 << 20 };

/// Tables in files however small they are.
fn tables(directory: &Path) -> EndgameTables {
    EndgameTables::new(directory.to_owned(), MEMORY).with_small_bytes_max(0)
}

/// A wish for strips of three rows.
fn wish(columns: usize) -> Size {
    Size { height: 3, class_columns: 5, ends: 1 << 17, pair_columns: columns, bytes: 32 << 20 }
}

/// A file name of three rows.
fn file(left_columns: usize, right_columns: usize) -> String {
    Extent { rows: 3, left_columns, right_columns }.file_name()
}

fn files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".edb")).collect();
    names.sort();
    names
}

/// Nimbers of strips of cells at random.
fn nimbers(table: &StripTable) -> Vec<Option<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let strips = (0..20_000).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u128::from(state >> (64 - 27))
    });
    strips.map(|cells| table.nimber(cells)).collect()
}

/// How often this process has mapped a file.
fn maps(name: &str) -> usize {
    fs::read_to_string("/proc/self/maps").expect("Linux").lines().filter(|line| line.ends_with(name)).count()
}

fn verified(directory: &Path) -> Vec<Verified> {
    let mut all = Vec::new();
    verify(directory, 2, |verified| all.push(verified)).expect("the directory is readable");
    all
}

#[test]
fn a_mapped_table_answers_as_one_in_memory() {
    let directory = TempDir::new().expect("a temporary directory");
    let in_memory = StripTable::build(wish(8)).expect("three rows are few enough");
    let tables = tables(directory.path());
    for _ in ["built", "found"] {
        let table = tables.strip_table(wish(8)).expect("three rows are few enough");
        assert_eq!(table.pairs.columns(), 8);
        assert_eq!(nimbers(&table), nimbers(&in_memory));
    }
    assert_eq!(files(directory.path()), [file(4, 4)]);
    assert!(matches!(verified(directory.path())[..], [Verified { condition: Condition::Intact, .. }]));
}

#[test]
fn engines_of_a_process_share_a_map() {
    let directory = TempDir::new().expect("a temporary directory");
    let name = directory.path().join(file(4, 4)).display().to_string();
    let tables = tables(directory.path());
    let one = tables.strip_table(wish(8)).expect("a table");
    let two = tables.strip_table(wish(8)).expect("a table");
    assert!(Arc::ptr_eq(&one, &two));
    // Another wish that the same file serves.
    let three = tables.strip_table(wish(7)).expect("a table");
    assert_eq!((three.pairs.columns(), maps(&name)), (8, 1));
    // Kept for whoever comes back, as long as nobody needs the room.
    drop((one, two, three));
    assert_eq!(maps(&name), 1);
    drop(tables);
    assert_eq!(maps(&name), 0);
}

#[test]
fn all_tables_together_stay_within_the_memory() {
    let directory = TempDir::new().expect("a temporary directory");
    let memory = EndgameMemory { mapped: 900_000, private: 800_000 };
    let tables = EndgameTables::new(directory.path().to_owned(), memory).with_small_bytes_max(0);
    let size = |height, pair_columns| Size { height, pair_columns, ..wish(8) };
    let mapped = || {
        let files = files(directory.path()).into_iter().map(|name| directory.path().join(name));
        let files = files.filter(|path| maps(&path.display().to_string()) > 0);
        files.map(|path| path.metadata().expect("it is there").len()).sum::<u64>()
    };
    // Beside their entries files have headers.
    let most = 900_000 + (1 << 16);
    let wishes = [size(3, 8), size(4, 6), size(3, 7), size(2, 16), size(4, 5)];
    for wish in wishes {
        let table = tables.strip_table(wish).expect("a table");
        assert!(table.pairs.columns() > 0);
        assert!((1..=most).contains(&mapped()), "{} bytes after {wish:?}", mapped());
    }
    // In use, a table is not let go of, and others get what is left.
    let held = tables.strip_table(size(3, 8)).expect("a table");
    let other = tables.strip_table(size(4, 6)).expect("a smaller one");
    assert!(mapped() <= most, "{} bytes", mapped());
    assert!(Arc::ptr_eq(&held, &tables.strip_table(size(3, 8)).expect("the same")));
    assert!(other.pairs.columns() < 6, "{:?} beside {:?}", other.pairs.ends(), held.pairs.ends());
}

#[test]
fn files_that_cannot_be_used_are_passed_over() {
    let directory = TempDir::new().expect("a temporary directory");
    drop(tables(directory.path()).database(wish(8)).expect("there is room").expect("a file"));
    fs::create_dir(directory.path().join(file(6, 5))).expect("a directory can be made");
    fs::write(directory.path().join(file(5, 5)), "").expect("it can be written");
    let found = tables(directory.path()).database(wish(8)).expect("the good one").expect("a file");
    assert_eq!((found.origin, found.extent.columns()), (Origin::Found, 8));
}

#[test]
fn a_file_that_answers_more_serves_a_smaller_wish_if_the_memory_is_there() {
    let directory = TempDir::new().expect("a temporary directory");
    let built = tables(directory.path()).database(wish(8)).expect("there is room").expect("a file");
    assert_eq!((built.origin, built.extent.columns()), (Origin::Built, 8));
    let tables = tables(directory.path());
    let found = tables.database(wish(6)).expect("it is there").expect("a file");
    assert_eq!((found.origin, found.extent.columns()), (Origin::Found, 8));
    // Fewer classified ends than the file needs: more are classified.
    let shallow = Size { class_columns: 3, ..wish(6) };
    let found = tables.database(shallow).expect("it is there").expect("a file");
    assert_eq!((found.origin, found.extent.columns()), (Origin::Found, 8));
    let small = Size { bytes: found.table.pairs.bytes() - 1, ..wish(6) };
    let own = tables.database(small).expect("there is room").expect("a file");
    assert_eq!((own.origin, own.extent.columns()), (Origin::Built, 6));
    assert_eq!(files(directory.path()), [file(3, 3), file(4, 4)]);
}

#[test]
fn a_file_of_other_classes_or_with_damage_is_built_again() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join(file(4, 4));
    let classes = wish(8).classes().expect("three rows are few enough");
    let extent = Extent { rows: 3, left_columns: 4, right_columns: 4 };
    let mut header = extent.header(&classes);
    header.fingerprint ^= 1;
    let fill = |payload: &mut [u8]| PairTable::fill(&classes, 4, 4, payload, 2, &|_| true);
    let check: &EntryCheck<'_> = &|_, _, _| Ok(());
    open_or_build(&Recipe { path: &path, header, fill: &fill, check, threads: 1, go_on: &|| true })
        .expect("there is room");
    let [Verified { condition: Condition::Outdated(error), .. }] = &verified(directory.path())[..] else {
        panic!("the numbering is another")
    };
    assert!(error.to_string().contains("fingerprint"), "{error}");
    let built = tables(directory.path()).database(wish(8)).expect("there is room").expect("a file");
    assert_eq!(built.origin, Origin::Built);
    drop(built);
    let mut bytes = fs::read(&path).expect("it is there");
    *bytes.last_mut().expect("it is not empty") ^= 4;
    fs::write(&path, bytes).expect("it can be written");
    let [Verified { condition: Condition::Damaged(errors), .. }] = &verified(directory.path())[..] else {
        panic!("its last byte is wrong")
    };
    assert!(errors[0].to_string().contains("block 0"), "{errors:?}");
    let built = tables(directory.path()).database(wish(8)).expect("there is room").expect("a file");
    assert_eq!((built.origin, built.extent), (Origin::Built, extent));
    assert!(matches!(verified(directory.path())[..], [Verified { condition: Condition::Intact, .. }]));
}

#[test]
fn entries_that_are_wrong_under_right_checksums_are_found() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join(file(4, 4));
    let classes = wish(8).classes().expect("three rows are few enough");
    let extent = Extent { rows: 3, left_columns: 4, right_columns: 4 };
    let fill = |payload: &mut [u8]| {
        let is_filled = PairTable::fill(&classes, 4, 4, payload, 2, &|_| true);
        payload.iter_mut().step_by(100).for_each(|nimber| *nimber ^= 1);
        is_filled
    };
    let header = extent.header(&classes);
    let check: &EntryCheck<'_> = &|_, _, _| Ok(());
    open_or_build(&Recipe { path: &path, header, fill: &fill, check, threads: 1, go_on: &|| true })
        .expect("there is room");
    let [Verified { condition: Condition::Damaged(errors), .. }] = &verified(directory.path())[..] else {
        panic!("every hundredth entry is wrong")
    };
    assert!(errors[0].to_string().contains("entry "), "{errors:?}");
    let check: &EntryCheck<'_> = &|file, count, seed| extent.check_entries(&classes, file, count, seed);
    let aside = directory.path().join("aside.edb");
    let error =
        open_or_build(&Recipe { path: &aside, header, fill: &fill, check, threads: 1, go_on: &|| true });
    assert!(matches!(error.err(), Some(EndgameError::Damaged { .. })), "it gets no name");
    let found = tables(directory.path()).database(wish(8)).expect("there is room").expect("a file");
    assert_eq!(found.origin, Origin::Built, "what is there is not used");
}

#[test]
fn without_a_directory_there_are_smaller_tables_in_memory() {
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("file");
    fs::write(&file, "no directory").expect("it can be written");
    // As root, permissions do not keep anybody from writing; /proc does.
    for hopeless in [file.as_path(), &file.join("below"), Path::new("/proc/grundy-endgame")] {
        let memory = EndgameMemory { mapped: 64 << 20, private: 1 << 20 };
        let tables = EndgameTables::new(hopeless.to_owned(), memory).with_small_bytes_max(0);
        assert!(tables.database(wish(10)).is_err(), "{}", hopeless.display());
        let table = tables.strip_table(wish(10)).expect("a table in memory");
        assert!((5..10).contains(&table.pairs.columns()), "{} columns", table.pairs.columns());
        assert!(table.pairs.bytes() + table.classes.bytes() <= memory.private);
        let again = tables.strip_table(wish(10)).expect("the same table");
        assert!(Arc::ptr_eq(&table, &again));
        // Together they keep within the memory, and the smallest answers at least nothing.
        let other = tables.strip_table(Size { height: 4, ..wish(8) }).expect("a table in memory");
        let used = [&table, &other].map(|table| table.pairs.bytes());
        assert!(used.iter().sum::<usize>() <= memory.private, "{used:?}");
    }
}

#[test]
fn small_tables_and_small_budgets_get_no_files() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("none");
    let usual = EndgameTables::new(path.clone(), MEMORY);
    assert!(usual.database(wish(8)).expect("nothing is tried").is_none());
    assert_eq!(usual.strip_table(wish(8)).expect("a table").pairs.columns(), 8);
    let poor = EndgameTables::new(path.clone(), EndgameMemory { mapped: 0, private: 8 << 20 });
    assert_eq!(poor.with_small_bytes_max(0).strip_table(wish(8)).expect("a table").pairs.columns(), 8);
    assert!(!path.exists());
}
