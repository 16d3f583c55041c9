//! The command line: one file a command, and what the commands share.
//!
//! Data goes to stdout; logs, progress and errors go to stderr.

mod cancel;
mod client;
mod completions;
mod config;
mod count;
mod drain;
mod endgame;
mod eval;
mod logging;
mod man;
mod memory;
mod output;
mod problem;
mod query;
mod serve;
mod signals;
mod simulate;
mod solve;
mod status;
mod submit;
mod watch;

use crate::exit::{Exit, Failure};
use clap::{Parser, Subcommand};
use config::{ConfigFile, GlobalArgs};
use std::ffi::OsString;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

/// How long the runtime's leftovers may take to end once the command is done.
const RUNTIME_GRACE: Duration = Duration::from_secs(1);

/// Solves board games exactly, on one machine or many.
#[derive(Parser)]
#[command(name = "grundy", version, about, propagate_version = true, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 solved or done, 1 failed, 2 usage or configuration, 3 not found or not decided, \
                        4 coordinator unreachable, 5 corruption found, 130 interrupted."
)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Solve(Box<solve::Args>),
    Eval(eval::Args),
    Count(Box<count::Args>),
    Serve(serve::Args),
    Submit(Box<submit::Args>),
    Status(status::Args),
    Watch(watch::Args),
    Cancel(cancel::Args),
    Drain(drain::Args),
    Query(query::Args),
    Endgame(endgame::Args),
    Simulate(Box<simulate::Args>),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// What is logged unless somebody says otherwise: everything worth knowing while a coordinator runs, only trouble while a
    /// person waits for a command or watches a progress line.
    fn log_filter(&self) -> &'static str {
        match self {
            Self::Serve(_) | Self::Endgame(_) => "info",
            Self::Solve(_) | Self::Count(_) if !logging::is_terminal() => "info",
            _ => "warn",
        }
    }

    fn run(self, file: &ConfigFile) -> Result<Exit, Failure> {
        match self {
            Self::Solve(args) => block_on(solve::run(*args, file)),
            Self::Eval(args) => eval::run(args, file),
            Self::Count(args) => count::run(*args, file),
            Self::Serve(args) => block_on(serve::run(args, file)),
            Self::Submit(args) => block_on(submit::run(*args, file)),
            Self::Status(args) => block_on(status::run(args, file)),
            Self::Watch(args) => block_on(watch::run(args, file)),
            Self::Cancel(args) => block_on(cancel::run(args, file)),
            Self::Drain(args) => block_on(drain::run(args, file)),
            Self::Query(args) => block_on(query::run(args, file)),
            Self::Endgame(args) => endgame::run(args, file),
            Self::Simulate(args) => simulate::run(*args, file),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
        }
    }
}

/// Runs the program with these arguments, the program's name first.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are printed this way too; a closed pipe is no error.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let done = cli.global.load().and_then(|file| {
        logging::init(&cli.global, &file, cli.command.log_filter())?;
        cli.command.run(&file)
    });
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::complain(&format!("error: {failure}"));
            failure.exit.into()
        }
    }
}

/// Runs a command that waits for several things at a time.
fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(command);
    runtime.shutdown_timeout(RUNTIME_GRACE);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
