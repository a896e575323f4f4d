//! The command `attache`.

mod cli;
mod exit;
mod paths;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let _ = cli::Cli::parse();
    ExitCode::SUCCESS
}
