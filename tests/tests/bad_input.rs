//! Bad input: one clear error that names the thing and what would be right, the right exit code, and nothing half-written.

use grundy_tests::programs::{Cluster, free_address, grundy, start, start_command, wait_until};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Arguments, exit code, and what the error must contain.
const CASES: &[(&[&str], i32, &[&str])] = &[
    (&["solve", "chess", "8x8"], 2, &["chess", "cram"]),
    (&["solve", "cram"], 2, &["POSITION"]),
    (&["solve", "cram", "0x5"], 2, &["no cells"]),
    (&["solve", "cram", "20x20"], 2, &["128"]),
    (&["solve", "cram", "..x.|...."], 2, &["x"]),
    (&["solve", "cram", "...|.."], 2, &["row 2"]),
    (&["solve", "cram", "3x4", "--question", "winner"], 2, &["nimber", "outcome"]),
    (&["solve", "cram", "3x4", "--rules", "standard"], 2, &["rules"]),
    (&["solve", "konane", "xo.x|.xo.", "--to-move", "black"], 2, &["d1"]),
    (&["solve", "konane", "xo.o|.xo."], 2, &["side to move"]),
    (&["solve", "konane", "6x6", "--start", "middle"], 2, &["corner", "center"]),
    (&["solve", "konane", "6x6", "--start", "a1,c3"], 2, &["a1", "c3"]),
    (&["solve", "konane", "9x9", "--start", "corner"], 2, &["64"]),
    (&["solve", "kalah", "6,-4"], 2, &["-4"]),
    (&["solve", "kalah", "9,4"], 2, &["8"]),
    (&["solve", "kalah", "6,999"], 2, &["999"]),
    (&["solve", "kalah", "1,2,0/3,0 S"], 2, &["house"]),
    (&["solve", "kalah", "6,4", "--rules", "oware"], 2, &["oware", "standard", "empty-capture"]),
    (&["solve", "kalah", "6,4", "--opening", "9"], 2, &["9", "3-6"]),
    (&["solve", "peg", "english", "--start", "a1"], 2, &["a1"]),
    (&["solve", "peg", "oo?"], 2, &["?"]),
    (&["solve", "peg", "triangle11"], 2, &["triangle11"]),
    (&["solve", "cram", "3x4", "--levels"], 2, &["levels", "cram"]),
    (&["count", "cram", "3x4"], 2, &["peg", "solve"]),
    (&["count", "peg", "english", "--memory", "1MiB"], 2, &["1.0 MiB", "at least"]),
    (&["solve", "cram", "3x4", "--wrkers", "2"], 2, &["--wrkers"]),
    (&["solve", "cram", "3x4", "--workers", "0"], 2, &["workers"]),
    (&["solve", "cram", "3x4", "--memory", "lots"], 2, &["lots"]),
    (&["solve", "cram", "3x4", "--memory", "1EiB"], 2, &["1.0 EiB", "machine"]),
    (&["solve", "cram", "3x4", "--workers", "2", "--memory", "100MiB"], 2, &["100", "2 workers", "at least"]),
    (&["solve", "cram", "3x4", "--config", "missing.toml"], 2, &["missing.toml"]),
    (&["solve", "cram", "3x4", "--config", "bad.toml"], 2, &["bad.toml", "colour"]),
    (&["solve", "cram", "3x4", "--data", "a-file"], 1, &["a-file"]),
    (&["status", "--coordinator", "127.0.0.1:1"], 4, &["127.0.0.1:1"]),
    (&["query", "7", "--coordinator", "127.0.0.1:1"], 4, &["127.0.0.1:1"]),
    (&["status", "--coordinator", "not an address"], 2, &["not an address"]),
    (&["serve", "--listen", "nowhere", "--data", "d"], 2, &["nowhere"]),
];

#[test]
fn a_table_of_bad_command_lines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("bad.toml"), "colour = \"red\"\n").expect("a file");
    std::fs::write(directory.path().join("a-file"), "not a directory").expect("a file");
    let mut wrong = Vec::new();
    for (arguments, code, parts) in CASES {
        let output = grundy(*arguments, directory.path());
        let named = parts.iter().all(|part| output.stderr.contains(part));
        let clean = output.stdout.is_empty() && !output.stderr.contains("panicked");
        if output.status.code() != Some(*code) || !named || !clean {
            wrong.push(format!("{arguments:?}: expected exit {code} and {parts:?}, got {output:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).expect("a directory").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is left behind by what was refused: {left:?}");
}

fn solve<'a>(problem: &[&'a str]) -> Vec<&'a str> {
    [&["solve"], problem, &["--data", "data", "--workers", "1", "--memory", "256MiB"]].concat()
}

#[test]
fn a_data_directory_of_another_job_is_refused_with_the_difference() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(grundy(solve(&["cram", "3x4"]), directory.path()).code(), 0);
    let other = grundy(solve(&["cram", "3x5", "--question", "outcome"]), directory.path());
    assert_eq!(other.code(), 2, "{other:?}");
    for part in ["position", "question", "nimber", "outcome", "data"] {
        assert!(other.stderr.contains(part), "{part}: {}", other.stderr);
    }
    assert_eq!(grundy(solve(&["cram", "3x4"]), directory.path()).code(), 0, "and is unharmed");
}

#[test]
fn a_locked_data_directory_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cluster = Cluster::start(directory.path(), 0);
    cluster.client(&["status"]);
    let address = free_address().to_string();
    let second = grundy(["serve", "--listen", &address, "--data", "coordinator"], directory.path());
    assert_eq!(second.code(), 1, "{second:?}");
    assert!(second.stderr.contains("coordinator") && second.stderr.contains("in use"), "{}", second.stderr);
}

#[test]
fn a_data_directory_of_another_version_or_kind_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(grundy(solve(&["cram", "3x4"]), directory.path()).code(), 0);
    let marker = find(&directory.path().join("data"), "GRUNDY");
    let text = std::fs::read_to_string(&marker).expect("the marker is text");
    let newer: String = text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    assert_ne!(text, newer, "the marker names a version: {text}");
    std::fs::write(&marker, newer).expect("the marker can be written");
    let output = grundy(solve(&["cram", "3x4"]), directory.path());
    assert_ne!(output.code(), 0, "{output:?}");
    assert!(output.stderr.contains("version"), "{}", output.stderr);
}

fn find(folder: &Path, name: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name() == name {
                return entry.path();
            }
            if entry.path().is_dir() {
                folders.insert(0, entry.path());
            }
        }
    }
    panic!("no {name} below {}", folder.display());
}

#[test]
fn a_flipped_byte_in_a_checkpoint_is_found() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(grundy(solve(&["cram", "3x6"]), directory.path()).code(), 0);
    // Whichever file of the coordinator holds the records: a byte in its middle is flipped.
    let log =
        std::fs::read_dir(find(&directory.path().join("data"), "db")).expect("RocksDB's folder").flatten();
    let biggest = log
        .filter(|entry| matches!(entry.path().extension().and_then(|e| e.to_str()), Some("log" | "sst")))
        .max_by_key(|entry| entry.metadata().map_or(0, |metadata| metadata.len()))
        .expect("RocksDB has files");
    let mut bytes = std::fs::read(biggest.path()).expect("the file can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(biggest.path(), bytes).expect("and written");
    let output = grundy(solve(&["cram", "3x6"]), directory.path());
    assert_eq!(output.code(), 5, "{output:?}");
    assert!(output.stderr.contains("data"), "the place is named: {}", output.stderr);
}

#[test]
fn a_port_in_use_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = taken.local_addr().expect("a bound socket has an address").to_string();
    let output = grundy(["serve", "--listen", &address, "--data", "data"], directory.path());
    assert_eq!(output.code(), 1, "{output:?}");
    assert!(output.stderr.contains(&address) && output.stderr.contains("in use"), "{}", output.stderr);
}

#[test]
fn a_worker_without_a_coordinator_says_so_and_gives_up_when_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let address = free_address().to_string();
    let arguments =
        ["--coordinator", &address, "--data", "worker", "--give-up-after", "1", "--memory", "128MiB"];
    let output = start("grundy-worker", arguments, directory.path()).wait();
    assert_eq!(output.code(), 4, "{output:?}");
    assert!(output.stderr.contains(&address), "{}", output.stderr);
}

#[test]
fn jobs_and_positions_that_are_not_there() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut cluster = Cluster::start(directory.path(), 0);
    let job = cluster.submit(&["cram", "3x4"]).to_string();
    assert_eq!(cluster.client(&["status", "99"]).code(), 3);
    assert_eq!(cluster.client(&["cancel", "99"]).code(), 3);
    let open = cluster.client(&["query", &job]);
    assert_eq!(open.code(), 3, "not decided yet: {open:?}");
    let bad = cluster.client(&["query", &job, "..?"]);
    assert_eq!(bad.code(), 2, "{bad:?}");
    cluster.workers.push(None);
    cluster.start_worker(0);
    cluster.wait_solved(job.parse().expect("a number"));
    let solved = cluster.client(&["query", &job]);
    assert_eq!((solved.code(), solved.stdout.trim()), (0, "nimber 1"), "{solved:?}");
    let elsewhere = cluster.client(&["query", &job, ".....|....."]);
    assert_eq!(elsewhere.code(), 3, "another position was not asked for: {elsewhere:?}");
}

/// A file system of a few megabytes, full in mid-solve: the solve stops with a clear error, and goes on when there is room.
#[test]
fn a_full_disk_loses_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=40m", "tmpfs"])
        .arg(&data)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("not allowed to mount a small file system here: skipped");
        return;
    }
    let filler = data.join("filler");
    let problem = ["cram", "3x13"];
    let mut command = Command::new(grundy_tests::programs::program("grundy"));
    command.args(solve(&problem)).current_dir(directory.path());
    let running = start_command(command);
    wait_until("the solve has written something", || {
        std::fs::read_dir(&data).into_iter().flatten().flatten().count() > 0
    });
    std::thread::sleep(std::time::Duration::from_millis(700));
    // Everything that is left.
    let _ = std::fs::write(&filler, vec![0_u8; 40 << 20]);
    let output = running.wait();
    std::fs::remove_file(&filler).expect("the filler was there");
    let again = grundy(solve(&problem), directory.path());
    let unmounted = Command::new("umount").arg("-l").arg(&data).status().is_ok_and(|status| status.success());
    assert!(unmounted, "{} stays mounted", data.display());
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    if output.code() != 0 {
        assert_eq!(output.code(), 1, "{output:?}");
        assert!(output.stderr.contains("full") || output.stderr.contains("space"), "{}", output.stderr);
    }
    assert_eq!((again.code(), again.stdout.trim()), (0, "nimber 2"), "{again:?}");
}
