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

/// Calls `deploy/local.sh` from a folder by a symbolic link, with a cargo of this version.
fn local(directory: &Path, version: &str) -> Output {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the checkout");
    let link = directory.join("solve");
    symlink(root.join("deploy/local.sh"), &link).expect("a link can be made");
    let bin = directory.join("bin");
    // What it builds is a grundy that prints its arguments.
    let build = "mkdir -p \"$CARGO_TARGET_DIR/release\"
printf '#!/bin/sh\\necho \"$@\"\\n' > \"$CARGO_TARGET_DIR/release/grundy\"
chmod +x \"$CARGO_TARGET_DIR/release/grundy\"";
    let cargo =
        format!("if [ \"$1\" = --version ]; then echo 'cargo {version} (abc 2026-01-01)'; exit; fi\n{build}");
    script(&bin.join("cargo"), &cargo);
    script(&bin.join("c++"), "");
    script(&bin.join("make"), "");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    Command::new(link)
        .args(["cram", "3x4"])
        .current_dir(directory)
        .env("PATH", path)
        .env("LIBCLANG_PATH", "anywhere")
        .env("CARGO_TARGET_DIR", "out")
        .output()
        .expect("bash runs it")
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
