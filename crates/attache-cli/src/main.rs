//! The command `attache`.

mod agents;
mod auth;
mod cli;
mod connect;
mod doctor;
mod exit;
mod paths;
mod visible;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use exit::Failure;
use visible::visible;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", visible(&failure.message));
            ExitCode::from(failure.code as u8)
        }
    }
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Agents(command) => agents::run(command).await,
        Command::Doctor(options) => doctor::run(&options),
        _ => Err(Failure::usage("not built yet")),
    }
}
