//! `grundy completions`: completion scripts for shells.

use super::Cli;
use super::output;
use crate::exit::{Exit, Failure};
use clap::CommandFactory;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "grundy", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Done)
}
