//! Sealed files of no game at all: what is written is what is read, and nothing else is accepted.

use grundy_tables::endgame::EndgameError;
use grundy_tables::endgame::build::{EntryCheck, Origin, Recipe, open_or_build};
use grundy_tables::endgame::header::{BLOCK_BYTES, HEADER_BYTES, Header, Kind};
use grundy_tables::endgame::sealed::SealedFile;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// Two whole blocks and a piece of one.
const PAYLOAD_BYTES: usize = 2 * BLOCK_BYTES + 4_321;

const HEADER: Header = Header {
    kind: Kind::new("test"),
    parameters: [3, 1, 4, 1, 5, 9, 2, 6],
    fingerprint: 0xfeed_beef,
    payload_bytes: PAYLOAD_BYTES as u64,
};

/// Any file is as good as another.
const ANY: &EntryCheck<'static> = &|_, _, _| Ok(());

fn fill(payload: &mut [u8]) -> bool {
    payload.iter_mut().enumerate().for_each(|(index, byte)| *byte = (index * 7 + index / 251) as u8);
    true
}

fn recipe(path: &Path) -> Recipe<'_> {
    Recipe { path, header: HEADER, fill: &fill, check: ANY, threads: 2, go_on: &|| true }
}

/// A directory with one sealed file in it.
fn sealed() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("one.edb");
    let (file, origin) = open_or_build(&recipe(&path)).expect("there is room for it");
    assert_eq!((origin, file.payload().len()), (Origin::Built, PAYLOAD_BYTES));
    (directory, path)
}

fn damage(path: &Path) -> (String, String) {
    match SealedFile::open(path) {
        Err(EndgameError::Damaged { path: named, place, reason }) => {
            assert_eq!(named, path);
            (place, reason)
        }
        Err(other) => panic!("damage is called: {other}"),
        Ok(_) => panic!("damage is not seen"),
    }
}

#[test]
fn what_was_sealed_is_read() {
    let (directory, path) = sealed();
    let file = SealedFile::open(&path).expect("it is intact").expect("it is there");
    let mut expected = vec![0; PAYLOAD_BYTES];
    fill(&mut expected);
    assert_eq!((*file.header(), file.payload()), (HEADER, expected.as_slice()));
    assert_eq!(file.check_all_blocks(3), []);
    assert_eq!(HEADER.payload_offset() % 4096, 0);
    assert_eq!(fs::metadata(&path).expect("it is there").len(), HEADER.file_bytes());
    let (_, origin) = open_or_build(&recipe(&path)).expect("it is there");
    assert_eq!(origin, Origin::Found);
    assert!(SealedFile::open(&directory.path().join("two.edb")).expect("no error").is_none());
    let mut names: Vec<_> = fs::read_dir(directory.path())
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["one.edb", "one.edb.lock"]);
}

/// The example of docs/formats.md.
const DOCUMENTED: &str = "\
    47 52 55 4e 44 59 44 42 01 00 00 00 00 00 10 00 \
    74 65 73 74 00 00 00 00 00 00 00 00 00 00 00 00 \
    03 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 \
    04 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 \
    05 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00 \
    02 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00 \
    ef be ed fe 3b e4 98 d4 00 10 00 00 00 00 00 00 \
    e1 10 20 00 00 00 00 00 00 00 00 00 33 60 b2 b9 \
    7a e8 55 0e 0e 3a 5b 5d 90 80 9e 5e \
";

#[test]
fn the_bytes_are_as_documented() {
    let (_directory, path) = sealed();
    let bytes = fs::read(&path).expect("it is there");
    let documented: Vec<u8> = DOCUMENTED
        .split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits"))
        .collect();
    assert_eq!(bytes[..HEADER_BYTES + 12], documented);
    assert!(bytes[HEADER_BYTES + 12..4096].iter().all(|byte| *byte == 0));
}

#[test]
fn every_flipped_byte_before_the_payload_is_found_at_opening() {
    use std::os::unix::fs::FileExt;
    let (_directory, path) = sealed();
    let bytes = fs::read(&path).expect("it is there");
    let file = fs::OpenOptions::new().write(true).open(&path).expect("it can be written");
    let table_end = HEADER_BYTES + 4 * HEADER.blocks();
    for (offset, byte) in bytes.iter().enumerate().take(HEADER.payload_offset() as usize) {
        for flip in [0x01, 0x80] {
            file.write_all_at(&[byte ^ flip], offset as u64).expect("it can be written");
            let (place, _) = damage(&path);
            let expected = match offset {
                ..HEADER_BYTES => "header".to_owned(),
                _ if offset < table_end => "table of block checksums".to_owned(),
                _ => format!("byte {offset}"),
            };
            assert_eq!(place, expected, "byte {offset} flipped by {flip:#x}");
        }
        file.write_all_at(&[*byte], offset as u64).expect("it can be written");
    }
    assert!(SealedFile::open(&path).expect("all bytes are back").is_some());
}

#[test]
fn flipped_bytes_of_the_payload_are_found_by_their_block() {
    let (_directory, path) = sealed();
    let bytes = fs::read(&path).expect("it is there");
    let start = HEADER.payload_offset() as usize;
    for (offset, block) in
        [(0, 0), (BLOCK_BYTES - 1, 0), (BLOCK_BYTES, 1), (2 * BLOCK_BYTES, 2), (PAYLOAD_BYTES - 1, 2)]
    {
        let mut damaged = bytes.clone();
        damaged[start + offset] ^= 0x10;
        fs::write(&path, damaged).expect("it can be written");
        let file = SealedFile::open(&path).expect("the header is right").expect("it is there");
        let errors = file.check_all_blocks(2);
        assert_eq!(errors.len(), 1, "{errors:?}");
        let words = errors[0].to_string();
        assert!(words.contains("one.edb") && words.contains(&format!("block {block} ")), "{words}");
        drop(file);
        let (file, origin) = open_or_build(&recipe(&path)).expect("it is built again");
        assert_eq!((origin, file.check_all_blocks(1)), (Origin::Built, vec![]));
        assert_eq!(fs::read(&path).expect("it is there"), bytes);
    }
}

#[test]
fn a_file_of_another_length_is_refused() {
    let (_directory, path) = sealed();
    let bytes = fs::read(&path).expect("it is there");
    for length in [0, 1, 127, 128, 140, 4096, 4097, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).expect("it can be written");
        let (place, reason) = damage(&path);
        let expected = if length < HEADER_BYTES { "header" } else { "length" };
        assert!(place == expected && reason.contains(&length.to_string()), "{length}: {place}: {reason}");
    }
    fs::write(&path, [&bytes[..], &[0]].concat()).expect("it can be written");
    assert_eq!(damage(&path).0, "length");
    let (_, origin) = open_or_build(&recipe(&path)).expect("it is built again");
    assert_eq!((origin, fs::read(&path).expect("it is there")), (Origin::Built, bytes));
}

#[test]
fn another_database_is_refused_by_the_field_that_differs_and_replaced() {
    let mut parameters = HEADER.parameters;
    parameters[7] += 1;
    let others = [
        (Header { kind: Kind::new("rest"), ..HEADER }, "kind is test, expected rest"),
        (Header { parameters, ..HEADER }, "parameters is [3, 1, 4, 1, 5, 9, 2, 6], expected"),
        (Header { fingerprint: 1, ..HEADER }, "fingerprint is 0xfeedbeef, expected 0x00000001"),
        (Header { payload_bytes: 5, ..HEADER }, "length is"),
    ];
    for (header, words) in others {
        let (_directory, path) = sealed();
        let error = HEADER.check_is(&path, &header).expect_err("they differ");
        assert!(error.to_string().contains(words), "{error}");
        let (file, origin) = open_or_build(&Recipe { header, ..recipe(&path) }).expect("it is replaced");
        assert_eq!((origin, *file.header()), (Origin::Built, header));
    }
}

#[test]
fn whoever_comes_at_once_builds_once() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("deep/below/one.edb");
    let filled = AtomicUsize::new(0);
    let slow = |payload: &mut [u8]| {
        filled.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(200));
        fill(payload)
    };
    let built = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let recipe = Recipe { fill: &slow, ..recipe(&path) };
                let (file, origin) = open_or_build(&recipe).expect("it is built");
                built.fetch_add(usize::from(origin == Origin::Built), Ordering::Relaxed);
                assert_eq!(file.check_all_blocks(1), []);
            });
        }
    });
    assert_eq!((filled.into_inner(), built.into_inner()), (1, 1));
}

#[test]
fn what_a_killed_builder_left_is_overwritten() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("one.edb");
    let aside = directory.path().join("one.edb.new");
    fs::write(&aside, vec![0xff; 3 * PAYLOAD_BYTES]).expect("it can be written");
    fs::write(directory.path().join("one.edb.lock"), "").expect("it can be written");
    let (_, origin) = open_or_build(&recipe(&path)).expect("it is built");
    assert!(origin == Origin::Built && !aside.exists());
    assert_eq!(fs::metadata(&path).expect("it is there").len(), HEADER.file_bytes());
}

#[test]
fn what_is_stopped_leaves_nothing() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("one.edb");
    let error = open_or_build(&Recipe { fill: &|_| false, ..recipe(&path) }).err().expect("it was stopped");
    assert_eq!(error, EndgameError::Stopped { path: path.clone() });
    assert!(!path.exists() && !directory.path().join("one.edb.new").exists());
}

#[test]
fn links_and_pipes_of_its_names_do_no_harm() {
    let directory = TempDir::new().expect("a temporary directory");
    let (path, precious) = (directory.path().join("one.edb"), directory.path().join("precious"));
    fs::write(&precious, "not to be touched").expect("it can be written");
    symlink(&precious, directory.path().join("one.edb.new")).expect("a link can be made");
    let (_, origin) = open_or_build(&recipe(&path)).expect("it is built");
    assert_eq!(origin, Origin::Built);
    assert_eq!(fs::read_to_string(&precious).expect("it is there"), "not to be touched");
    for name in ["one.edb", "two.edb.lock"] {
        let pipe = directory.path().join(name);
        let _ = fs::remove_file(&pipe);
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe can be made");
        let path = directory.path().join(name.trim_end_matches(".lock"));
        let error = open_or_build(&recipe(&path)).err().expect("a pipe is refused");
        assert!(matches!(&error, EndgameError::Io { path, .. } if *path == pipe), "{error}");
    }
}

#[test]
fn wrong_entries_never_get_the_name() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("one.edb");
    let check: &EntryCheck<'_> = &|file: &Arc<SealedFile>, count, _| {
        assert!(count >= 1_000);
        Err(EndgameError::Damaged {
            path: file.path().to_owned(),
            place: "entry 5".to_owned(),
            reason: "tested".to_owned(),
        })
    };
    let error = open_or_build(&Recipe { check, ..recipe(&path) }).err().expect("the check fails");
    assert!(error.to_string().contains("entry 5"), "{error}");
    assert!(!path.exists() && !directory.path().join("one.edb.new").exists());
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_begun() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("one.edb");
    let header = Header { payload_bytes: 1 << 45, ..HEADER };
    let fill = |_: &mut [u8]| -> bool { panic!("nothing is to be filled") };
    let error = open_or_build(&Recipe { header, fill: &fill, ..recipe(&path) }).err().expect("32 TiB");
    assert!(matches!(error, EndgameError::Space { .. }), "{error}");
    assert!(!path.exists() && !directory.path().join("one.edb.new").exists());
}
