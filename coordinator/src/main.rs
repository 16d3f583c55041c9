//! The `grundy` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    grundy::cli::run(std::env::args_os())
}
