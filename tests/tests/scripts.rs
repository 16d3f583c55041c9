//! The scripts that launch: with a cargo that only writes down how it was called.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// Makes a program of a few lines of shell.
fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder can be made");
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a file can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("and be made a program");
}

/// Calls a script of the checkout from a folder by a symbolic link, with a cargo that does this when it builds or tests.
fn call(directory: &Path, name: &str, arguments: &[&str], version: &str, cargo: &str) -> Output {
    // Where the test runs, not where it was built: checkouts may share a target directory.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let root = Path::new(&package).parent().expect("the tests are a folder of the checkout");
    let link = directory.join("link");
    symlink(root.join(name), &link).expect("a link can be made");
    let bin = directory.join("bin");
    let says = format!("if [ \"$1\" = --version ]; then echo 'cargo {version} (abc 2026-01-01)'; exit; fi");
    script(&bin.join("cargo"), &format!("{says}\n{cargo}"));
    script(&bin.join("c++"), "");
    script(&bin.join("make"), "");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    Command::new(link)
        .args(arguments)
        .current_dir(directory)
        .env("PATH", path)
        .env("LIBCLANG_PATH", "anywhere")
        .env("CARGO_TARGET_DIR", "out")
        .output()
        .expect("bash runs it")
}

/// Calls `deploy/local.sh` with a cargo of this version, whose build is a grundy that prints its arguments.
fn local(directory: &Path, version: &str) -> Output {
    let build = "mkdir -p \"$CARGO_TARGET_DIR/release\"
printf '#!/bin/sh\\necho \"$@\"\\n' > \"$CARGO_TARGET_DIR/release/grundy\"
chmod +x \"$CARGO_TARGET_DIR/release/grundy\"";
    call(directory, "deploy/local.sh", &["cram", "3x4"], version, build)
}

#[test]
fn it_solves_by_a_link_and_with_a_relative_target_directory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = local(directory.path(), "1.95.0");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "solve cram 3x4\n", "{output:?}");
    assert!(directory.path().join("out/release/grundy").is_file(), "relative to where it was called");
}

#[test]
fn an_old_rust_is_named_with_what_to_do() {
    for (version, fits) in [("1.84.1", false), ("1.100.0", true), ("1.94.2", false)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let output = local(directory.path(), version);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), fits, "{version}: {stderr}");
        let named = ["1.95 or newer", version, "rustup update"].iter().all(|part| stderr.contains(part));
        assert_eq!(named, !fits, "{version}: {stderr}");
    }
}

#[test]
fn all_tests_end_with_their_total() {
    // The second of the two runs fails, or none does.
    let runner = |second: &str| {
        format!(
            "[ \"$1\" = test ] || exit 0
case \"$*\" in
    *--release*) {second} ;;
    *) echo 'test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s' ;;
esac"
        )
    };
    let good = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured'";
    let bad = "echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured'; exit 101";
    for (second, code, total) in [
        (good, 0, "total: ok, 15 passed, 0 failed, 1 ignored in 2 test programs"),
        (bad, 1, "total: FAILED, 14 passed, 1 failed, 1 ignored in 2 test programs"),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let output = call(directory.path(), "tests/run.sh", &[], "1.95.0", &runner(second));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), stdout.lines().last()), (Some(code), Some(total)), "{output:?}");
        assert_eq!(stdout.lines().filter(|line| line.starts_with("test result")).count(), 2, "{stdout}");
    }
}
