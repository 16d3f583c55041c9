//! Kalah's layers from files: the same as those in memory, found again, gone on with, checked, and never a reason to stop.

use grundy_games::kalah::Rules;
use grundy_search::engine::EngineTables;
use grundy_search::kalah::layers::Layers;
use grundy_search::kalah::tables::{KalahTables, KalahWish, build_layers};
use grundy_tables::endgame::build::{EntryCheck, Origin, Recipe, open_or_build};
use grundy_tables::endgame::header::Header;
use grundy_tables::endgame::kalah::Layer;
use grundy_tables::endgame::{
    Condition, Contents, EndgameError, EndgameMemory, EndgameTables, Verified, verify,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const MEMORY: EndgameMemory = EndgameMemory { mapped: 64 << 20, private: 16 << 20 };

const WISH: KalahWish = KalahWish { houses: 4, rules: Rules::EmptyCapture, seeds: 27 };

/// Layers in files however small they are.
fn tables(directory: &Path) -> EndgameTables {
    EndgameTables::new(directory.to_owned(), MEMORY).with_small_bytes_max(0)
}

fn layer(seeds: u8) -> Layer {
    Layer { houses: WISH.houses, rules: WISH.rules, seeds }
}

fn path(directory: &Path, seeds: u8) -> PathBuf {
    directory.join(layer(seeds).file_name())
}

fn in_memory(seeds: u8) -> Layers {
    let mut layers = WISH.layers(seeds);
    build_layers(&mut layers, WISH.rules, seeds, 2);
    layers
}

fn entries(layers: &Layers) -> Vec<&[u8]> {
    (0..layers.len()).map(|seeds| layers.layer(seeds)).collect()
}

/// Opens or builds the layers for a wish: what was done for each.
fn origins(tables: &EndgameTables, wish: KalahWish) -> Vec<(u8, Origin)> {
    let mut origins = Vec::new();
    tables
        .kalah_databases(wish, |file| origins.push((file.layer.seeds, file.origin)))
        .expect("there is room");
    origins
}

fn verified(directory: &Path) -> Vec<Verified> {
    let mut all = Vec::new();
    verify(directory, 2, |verified| all.push(verified)).expect("the directory is readable");
    all
}

fn all_intact(verified: &[Verified]) -> bool {
    verified.iter().all(|verified| verified.condition == Condition::Intact)
}

/// Writes a layer with the last entry wrong under right checksums.
fn write_wrong(directory: &Path, seeds: u8, change: impl Fn(Header) -> Header) {
    let layers = in_memory(seeds);
    let fill = |payload: &mut [u8]| {
        payload.copy_from_slice(layers.layer(seeds.into()));
        payload.iter_mut().step_by(10).for_each(|gain| *gain ^= 2);
        true
    };
    let header = change(layer(seeds).header(layers.index()));
    let (path, check): (_, &EntryCheck<'_>) = (path(directory, seeds), &|_, _, _| Ok(()));
    fs::remove_file(&path).expect("it was built");
    open_or_build(&Recipe { path: &path, header, fill: &fill, check, threads: 1, go_on: &|| true })
        .expect("there is room");
}

#[test]
fn names_and_headers_tell_the_layer() {
    for rules in [Rules::Standard, Rules::EmptyCapture] {
        for (houses, seeds) in [(1, 2), (6, 24), (8, 9), (2, 120)] {
            let layer = Layer { houses, rules, seeds };
            assert_eq!(Layer::of_file_name(&layer.file_name()), Some(layer));
            let wish = KalahWish { houses, rules, seeds };
            assert_eq!(Layer::of_header(&layer.header(wish.layers(seeds).index())), Some(layer));
        }
    }
    assert_eq!(layer(9).file_name(), "kalah-gains-4-empty-capture-009.edb");
    for name in [
        "kalah-gains-4-empty-capture-9.edb",
        "kalah-gains-9-standard-009.edb",
        "kalah-gains-4-other-009.edb",
        "kalah-gains-4-standard-001.edb",
        "kalah-gains-4-standard-121.edb",
        "kalah-gains-8-standard-120.edb",
        "cram-pairs-3-4-4.edb",
    ] {
        assert_eq!(Layer::of_file_name(name), None, "{name}");
    }
}

#[test]
fn mapped_layers_are_those_in_memory() {
    let directory = TempDir::new().expect("a temporary directory");
    let expected = in_memory(WISH.layer_seeds());
    assert_eq!(expected.len(), 15, "of 27 seeds up to 14");
    for _ in ["built", "found"] {
        let tables = tables(directory.path()).kalah(WISH).expect("there is memory");
        assert_eq!(entries(&tables.layers), entries(&expected));
    }
    let all = verified(directory.path());
    let expected: Vec<_> = (2..=14).map(|seeds| Some(Contents::Kalah(layer(seeds)))).collect();
    assert_eq!(all.iter().map(|verified| verified.contents).collect::<Vec<_>>(), expected);
    assert!(all_intact(&all), "{all:?}");
}

#[test]
fn small_layers_get_no_files() {
    let directory = TempDir::new().expect("a temporary directory");
    let tables = EndgameTables::new(directory.path().join("none"), MEMORY);
    assert_eq!(tables.kalah(WISH).expect("there is memory").layers.len(), 15);
    assert!(!directory.path().join("none").exists());
}

#[test]
fn a_process_maps_a_file_once_and_keeps_within_its_memory() {
    let directory = TempDir::new().expect("a temporary directory");
    let maps = |seeds| {
        let name = path(directory.path(), seeds).display().to_string();
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux");
        maps.lines().filter(|line| line.ends_with(&name)).count()
    };
    let memory = EndgameMemory { mapped: 200_000, private: 200_000 };
    let tables = EndgameTables::new(directory.path().to_owned(), memory).with_small_bytes_max(0);
    let one = tables.kalah(WISH).expect("there is memory");
    let most = u8::try_from(one.layers.len() - 1).expect("few seeds");
    assert_eq!(most, 13, "198,731 boards fit, 313,651 do not");
    // Boards with fewer seeds are among those with more.
    let again = tables.kalah(KalahWish { seeds: 18, ..WISH }).expect("the same");
    assert!(Arc::ptr_eq(&one, &again));
    // Another wish over the same files.
    let two = tables.kalah(KalahWish { seeds: 28, ..WISH }).expect("there is memory");
    assert!(!Arc::ptr_eq(&one, &two));
    assert_eq!((maps(10), maps(most)), (1, 1));
    drop((one, again, two));
    // In their place if nobody uses them.
    drop(tables.kalah(KalahWish { rules: Rules::Standard, ..WISH }).expect("there is memory"));
    assert_eq!(maps(most), 0);
}

#[test]
fn jobs_at_once_share_the_memory_and_one_alone_gets_it_back() {
    let directory = TempDir::new().expect("a temporary directory");
    let memory = EndgameMemory { mapped: 0, private: 64 << 20 };
    let tables = EndgameTables::new(directory.path().to_owned(), memory);
    let of = |rules| tables.kalah(KalahWish { houses: 6, rules, seeds: 72 }).expect("there is memory");
    let mib = |tables: &KalahTables| tables.bytes() >> 20;
    let first = of(Rules::Standard);
    assert!(mib(&first) > 30, "{}", mib(&first));
    let second = of(Rules::EmptyCapture);
    assert!(mib(&second) < 5, "{}", mib(&second));
    // The first is asked for again between two searches, when the second is in use.
    let whole = Arc::downgrade(&first);
    drop(first);
    let first = of(Rules::Standard);
    assert!(whole.upgrade().is_none() && (10..33).contains(&mib(&first)), "{}", mib(&first));
    // Now there is a half for the second.
    drop(second);
    let second = of(Rules::EmptyCapture);
    assert!((10..33).contains(&mib(&second)), "{}", mib(&second));
    assert!(mib(&first) + mib(&second) <= 64);
    // With about its share it keeps what it knows.
    let half = Arc::downgrade(&second);
    drop(second);
    assert!(half.upgrade().is_some_and(|half| Arc::ptr_eq(&half, &of(Rules::EmptyCapture))));
}

#[test]
fn tables_of_a_small_game_have_no_more_entries_than_it_has_boards() {
    let directory = TempDir::new().expect("a temporary directory");
    let tables =
        EndgameTables::new(directory.path().to_owned(), EndgameMemory { mapped: 0, private: 1 << 30 });
    let small = tables.kalah(KalahWish { houses: 3, rules: Rules::Standard, seeds: 12 });
    assert!(small.expect("there is memory").bytes() < 4 << 20);
}

#[test]
fn a_number_of_seeds_is_kept_to() {
    let directory = TempDir::new().expect("a temporary directory");
    let of = |seeds| tables(directory.path()).with_kalah_seeds(Some(seeds));
    assert_eq!(origins(&of(9), WISH).last(), Some(&(9, Origin::Built)));
    assert_eq!(origins(&of(16), WISH).last(), Some(&(16, Origin::Built)));
    assert_eq!(origins(&of(5), WISH).last(), Some(&(5, Origin::Found)));
    assert_eq!(of(5).kalah(WISH).expect("there is memory").layers.len(), 6);
    // Without one, what is there beyond what pays is as welcome.
    assert_eq!(origins(&tables(directory.path()), WISH).last(), Some(&(16, Origin::Found)));
    // More than there is memory for.
    let most = of(120).kalah(WISH).expect("there is memory").layers.len();
    assert!((17..40).contains(&most), "{most}");
}

#[test]
fn a_build_that_was_stopped_goes_on_where_it_was() {
    let directory = TempDir::new().expect("a temporary directory");
    let asked = Arc::new(AtomicUsize::new(0));
    let ask = Arc::clone(&asked);
    let stopping = tables(directory.path()).with_go_on(move || ask.fetch_add(1, Ordering::Relaxed) < 3_000);
    let mut built = Vec::new();
    let error =
        stopping.kalah_databases(WISH, |file| built.push(file.layer.seeds)).expect_err("it was stopped");
    assert!(matches!(error, EndgameError::Stopped { .. }), "{error}");
    assert!(stopping.kalah(WISH).is_none(), "nothing smaller in its place");
    let last = *built.last().expect("some were finished");
    assert!(last < 14 && !path(directory.path(), last + 1).exists(), "{built:?}");
    let expected: Vec<_> =
        (2..=14).map(|seeds| (seeds, if seeds <= last { Origin::Found } else { Origin::Built })).collect();
    assert_eq!(origins(&tables(directory.path()), WISH), expected);
    assert!(all_intact(&verified(directory.path())));
}

#[test]
fn a_flipped_bit_is_found_and_mended() {
    let directory = TempDir::new().expect("a temporary directory");
    origins(&tables(directory.path()), WISH);
    let path = path(directory.path(), 11);
    let intact = fs::read(&path).expect("it was built");
    let mut damaged = intact.clone();
    let at = damaged.len() - 1_000;
    damaged[at] ^= 1;
    fs::write(&path, damaged).expect("it can be written");
    for verified in verified(directory.path()) {
        match (&verified.condition, verified.contents) {
            (Condition::Damaged(errors), Some(Contents::Kalah(Layer { seeds: 11, .. }))) => {
                assert!(errors[0].to_string().contains("block 0"), "{errors:?}");
            }
            // Small ones are built again to check those above.
            (Condition::Intact, Some(Contents::Kalah(of))) => assert_ne!(of.seeds, 11),
            other => panic!("{other:?}"),
        }
    }
    let built = origins(&tables(directory.path()), WISH);
    let built: Vec<_> = built.into_iter().filter(|(_, origin)| *origin == Origin::Built).collect();
    assert_eq!(built, [(11, Origin::Built)]);
    assert_eq!(fs::read(&path).expect("it was built again"), intact);
}

#[test]
fn wrong_entries_and_other_numberings_are_found_under_right_checksums() {
    let directory = TempDir::new().expect("a temporary directory");
    origins(&tables(directory.path()), WISH);
    write_wrong(directory.path(), 12, |header| header);
    let damaged = |all: Vec<Verified>| {
        all.into_iter().find(|verified| verified.condition != Condition::Intact).expect("one is wrong")
    };
    let found = damaged(verified(directory.path()));
    let Condition::Damaged(errors) = &found.condition else { panic!("{found:?}") };
    assert!(errors[0].to_string().contains("entry "), "{errors:?}");
    assert_eq!(origins(&tables(directory.path()), WISH)[10], (12, Origin::Built), "it is not used");
    write_wrong(directory.path(), 12, |header| Header { fingerprint: header.fingerprint ^ 1, ..header });
    let found = damaged(verified(directory.path()));
    assert!(
        matches!(&found.condition, Condition::Outdated(error) if error.to_string().contains("fingerprint"))
    );
    assert_eq!(origins(&tables(directory.path()), WISH)[10], (12, Origin::Built));
    assert!(all_intact(&verified(directory.path())));
}

#[test]
fn without_a_directory_there_are_smaller_layers_in_memory() {
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("file");
    fs::write(&file, "no directory").expect("it can be written");
    let memory = EndgameMemory { mapped: 64 << 20, private: 300_000 };
    for hopeless in [file.as_path(), &file.join("below"), Path::new("/proc/grundy-endgame")] {
        let tables = EndgameTables::new(hopeless.to_owned(), memory).with_small_bytes_max(0);
        assert!(tables.kalah_databases(WISH, |_| {}).is_err(), "{}", hopeless.display());
        let kalah = tables.kalah(WISH).expect("smaller ones");
        assert!((8..14).contains(&kalah.layers.len()), "{} layers", kalah.layers.len());
        let expected = in_memory(14);
        assert_eq!(entries(&kalah.layers), entries(&expected)[..kalah.layers.len()]);
    }
}
