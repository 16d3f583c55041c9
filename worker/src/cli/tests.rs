//! What is accepted, what is refused, and which source wins. The environment is tested with whole processes, in `tests/program.rs`.

use super::*;
use std::io::Write;

#[test]
fn the_definition_of_the_flags_is_sound() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}

#[test]
fn addresses() {
    for (text, address) in [
        ("node1:4848", "http://node1:4848"),
        ("http://10.0.0.7:99", "http://10.0.0.7:99"),
        ("http://node1:4848/", "http://node1:4848"),
        ("node1", "http://node1:4848"),
        ("[::1]:5", "http://[::1]:5"),
        ("[::1]", "http://[::1]:4848"),
    ] {
        let parsed: Address = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(parsed.to_string(), address);
    }
    for (text, named) in [
        ("https://node1:4848", "scheme 'https'"),
        ("node1:http", "port 'http'"),
        ("node1:70000", "port '70000'"),
        (":4848", "host ''"),
        ("a b:1", "host 'a b'"),
        ("[::g]:1", "host '[::g]'"),
        ("http://node1:1/path", "port '1/path'"),
    ] {
        let error = text.parse::<Address>().expect_err(text);
        assert!(error.contains(named) && error.contains("expected host:port"), "{error}");
    }
}

fn file(text: &str) -> Result<tempfile::NamedTempFile, std::io::Error> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[test]
fn flags_beat_the_file_and_the_file_beats_the_defaults() -> Result<(), Box<dyn std::error::Error>> {
    let file = file(
        "coordinator = \"filed:1\"\nthreads = 3\nmemory = \"256MiB\"\nendgame = \"shared\"\nendgame-memory = \"64MiB\"\ngive-up-after = 9\nlog-format = \"json\"\n",
    )?;
    let path = file.path().to_str().ok_or("a path in UTF-8")?;
    let cli = Cli::try_parse_from([
        "grundy-worker",
        "--config",
        path,
        "--coordinator",
        "flagged:2",
        "--threads",
        "5",
    ])?;
    let settings = cli.settings()?;
    assert_eq!(settings.log_format, Some(LogFormat::Json));
    let options = settings.options()?;
    assert_eq!((options.coordinator.as_str(), options.threads), ("http://flagged:2", 5));
    assert_eq!((options.memory, options.give_up_after), (256 << 20, Some(Duration::from_secs(9))));
    assert_eq!((options.endgame.as_path(), options.endgame_memory), (Path::new("shared"), Some(64 << 20)));
    assert_eq!(options.data, Path::new("grundy-worker"));
    assert_eq!(options.name, machine::worker_name(Path::new("grundy-worker")));
    Ok(())
}

#[test]
fn files_are_refused_by_key_and_value() -> Result<(), Box<dyn std::error::Error>> {
    for (text, named) in [
        ("memroy = \"1GiB\"", "memroy"),
        ("threads = 0", "0 is no number of threads"),
        ("threads = \"many\"", "threads"),
        ("name = \"\"", "name"),
        ("coordinator = \"https://x:1\"", "scheme"),
        ("exit-with-parent = true", "exit-with-parent"),
        ("log-format = \"xml\"", "xml"),
    ] {
        let file = file(text)?;
        let error = Settings::from_file(file.path()).expect_err(text).to_string();
        let path = file.path().display().to_string();
        assert!(error.contains(named) && error.contains(&path), "{text}: {error}");
    }
    let error = Settings::from_file(Path::new("/nowhere.toml")).expect_err("no such file").to_string();
    assert!(error.contains("/nowhere.toml"), "{error}");
    Ok(())
}

#[test]
fn what_is_missing_or_too_small_is_named() {
    let error = Settings::default().options().expect_err("no coordinator").to_string();
    assert!(error.contains("--coordinator"), "{error}");
    let coordinator = "node1:1".parse().ok();
    let small = Settings { coordinator, memory: Some(ByteSize::kib(5)), ..Settings::default() };
    let error = small.options().expect_err("5 KiB").to_string();
    assert!(error.contains("5.0 KiB") && error.contains("at least"), "{error}");
    let settings = |endgame_memory| Settings {
        coordinator: "node1:1".parse().ok(),
        threads: Some(Threads(1)),
        memory: Some(ByteSize::mib(256)),
        endgame_memory: Some(endgame_memory),
        ..Settings::default()
    };
    let error = settings(ByteSize::mib(250)).options().expect_err("250 of 256 MiB").to_string();
    assert!(error.contains("250.0 MiB") && error.contains("at most 164.0 MiB"), "{error}");
    let options = settings(ByteSize::mib(164)).options().expect("164 of 256 MiB");
    assert_eq!(options.endgame, Path::new("grundy-worker/endgame"));
    for flags in [["--threads", "0"], ["--threads", "x"], ["--name", ""], ["--memory", "lots"]] {
        assert!(Cli::try_parse_from(["grundy-worker"].into_iter().chain(flags)).is_err(), "{flags:?}");
    }
}
