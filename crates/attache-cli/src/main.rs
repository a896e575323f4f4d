//! The command `attache`.

mod agent;
mod agents;
mod auth;
mod cli;
mod connect;
mod doctor;
mod document;
mod event;
mod exit;
mod journal;
mod output;
mod paths;
mod pen;
mod private;
mod project;
mod run;
mod sandbox;
mod sessions;
mod signals;
mod tty;
mod visible;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command, SchemaOf};
use exit::{Code, Failure};
use visible::visible;

fn main() -> ExitCode {
    // Before there is a second thread.
    private::close_off();
    // Whatever we start ends with us, to the last daemon.
    attache::process::use_keeper();
    let command = Cli::parse().command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = match runtime {
        Ok(runtime) => runtime.block_on(run(command)),
        Err(error) => fail(&Failure::new(Code::Usage, format!("cannot start: {error}"))),
    };
    // Not by returning: a thread that waits for stdin would be waited for.
    std::process::exit(i32::from(code as u8))
}

async fn run(command: Command) -> Code {
    let done = match command {
        Command::Run(args) => return run::run(*args).await,
        Command::Agent(options) => agent::run(*options).await,
        Command::Agents(command) => agents::run(command).await,
        Command::Sessions(command) => {
            connect::until_interrupted(sessions::sessions(command)).await.and_then(|text| print(&text))
        }
        Command::Trust(args) => connect::until_interrupted(project::trust(&args)).await,
        Command::Sandbox(command) => sandbox::run(command).await,
        Command::Doctor(options) => doctor::run(&options).await,
        Command::Schema { what: SchemaOf::Events } => print(&event::schema()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "attache", &mut script);
            print_bytes(&script)
        }
        Command::Man { command } => man(command.as_deref()),
    };
    match done {
        Ok(()) => Code::Done,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> Code {
    eprintln!("error: {}", visible(&failure.message));
    failure.code
}

fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Writes to stdout. A closed pipe is a quiet goodbye.
fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Usage, format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// The manual page of the program, or of one of its commands.
fn man(name: Option<&str>) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    if let Some(name) = name {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| Failure::usage(format!("there is no command `{name}`")))?;
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
    print_bytes(&page)
}
