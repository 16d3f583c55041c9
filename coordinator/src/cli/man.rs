//! `grundy man`: the manual pages.

use super::Cli;
use super::output;
use crate::exit::{Exit, Failure};
use clap::CommandFactory;

/// Print the manual page of the program or of one of its commands, as roff
#[derive(clap::Args)]
pub(super) struct Args {
    /// The command
    command: Option<String>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let mut root = Cli::command();
    root.build();
    let page = match &args.command {
        None => root,
        Some(name) => match root.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                return Err(Failure::message(Exit::Usage, format!("there is no command '{name}'")));
            }
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    output::print(String::from_utf8_lossy(&text).trim_end())?;
    Ok(Exit::Done)
}
