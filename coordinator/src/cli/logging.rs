//! Log lines to stderr, around the progress line when there is one.

use super::config::{ConfigFile, GlobalArgs, LogFormat};
use crate::exit::Failure;
use anyhow::Context;
use indicatif::ProgressBar;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use tracing_subscriber::EnvFilter;

/// The variables that say which lines are written, the first that is set counts.
const FILTER_VARIABLES: [&str; 2] = ["GRUNDY_LOG", "RUST_LOG"];

/// The progress line that log lines must not run into.
static LINE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Whether stderr is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether the environment says which lines are written.
pub(super) fn filter_is_set() -> bool {
    FILTER_VARIABLES.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Sets up logging for the process.
pub(super) fn init(args: &GlobalArgs, file: &ConfigFile, default: &str) -> Result<(), Failure> {
    let from_environment = FILTER_VARIABLES.iter().find_map(|name| match std::env::var(name) {
        Ok(value) if !value.is_empty() => Some((*name, value)),
        _ => None,
    });
    let from_file = file.log.clone().map(|value| ("log", value));
    let (name, filter) = from_environment.or(from_file).unwrap_or_else(|| ("default", default.to_owned()));
    let filter = EnvFilter::try_new(&filter).with_context(|| format!("{name}: '{filter}' is no log filter"));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter.map_err(Failure::usage)?).with_writer(|| Stderr);
    let done = match args.log_format.or(file.log_format).unwrap_or_default() {
        LogFormat::Human => builder.with_ansi(is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    done.map_err(|error| Failure::from(anyhow::anyhow!("cannot set up logging: {error}")))
}

/// From now on log lines keep clear of this progress line; with `None`, of none.
pub(super) fn keep_clear_of(line: Option<ProgressBar>) {
    *LINE.lock().unwrap_or_else(PoisonError::into_inner) = line;
}

/// Stderr, with the progress line out of the way during a write.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
        match &*line {
            Some(line) => line.suspend(|| io::stderr().write(buffer)),
            None => io::stderr().write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
