//! The `grundy-worker` program.

use anyhow::{Context, anyhow};
use clap::Parser;
use grundy_worker::cli::{Cli, ConfigError, LogFormat};
use grundy_worker::{Drain, Exit, WorkerError, drain};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            // Also after the log may have been filtered away: the reason a program ends is always said.
            eprintln!("grundy-worker: {error:#}");
            exit_of(&error).into()
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<Exit> {
    let settings = cli.settings()?;
    start_log(settings.log_format.unwrap_or_default())?;
    let options = settings.options()?;
    let drain = Arc::new(Drain::default());
    drain::watch_signals(Arc::clone(&drain))?;
    if cli.exit_with_parent {
        drain::watch_parent(Arc::clone(&drain))?;
    }
    Ok(grundy_worker::run(&options, &drain)?)
}

fn exit_of(error: &anyhow::Error) -> Exit {
    if error.is::<ConfigError>() {
        return Exit::Usage;
    }
    error.downcast_ref::<WorkerError>().map_or(Exit::Failed, WorkerError::exit)
}

fn start_log(format: LogFormat) -> anyhow::Result<()> {
    let filter =
        ["GRUNDY_LOG", "RUST_LOG"].into_iter().find_map(|name| Some((name, std::env::var(name).ok()?)));
    let filter = match filter {
        Some((name, text)) => EnvFilter::try_new(&text).with_context(|| format!("{name}='{text}'"))?,
        None => EnvFilter::new("info"),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Human => log.with_target(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).try_init(),
    };
    started.map_err(|e| anyhow!("cannot start the log: {e}"))
}
