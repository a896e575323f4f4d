//! The command `attache`.

mod agent;
mod agents;
mod auth;
mod chat;
mod check;
mod cli;
mod client;
mod complete;
mod connect;
mod doctor;
mod document;
#[cfg(test)]
mod documents;
mod event;
mod exit;
mod fetch;
mod ids;
mod journal;
mod login;
mod mcp;
mod output;
mod paths;
mod pen;
mod permissions;
mod private;
mod project;
mod remote;
mod rule_option;
mod run;
mod sandbox;
mod serve;
mod sessions;
mod setup;
mod signals;
mod stdout;
mod trace;
mod tty;
mod update;
mod usage;
mod visible;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command, SchemaOf};
use exit::{Code, Failure};
use visible::visible;

fn main() -> ExitCode {
    // A shell that asks for words gets them, and nothing else happens.
    complete::answer();
    // A panic may carry text of others.
    std::panic::set_hook(Box::new(|info| {
        let _ = writeln!(std::io::stderr(), "{}", visible(&info.to_string()));
    }));
    // Before there is a second thread.
    private::close_off();
    // A console understands colours once it is told so; this tells it, and asks.
    #[cfg(windows)]
    crossterm::ansi_support::supports_ansi();
    // Whatever we start ends with us, to the last daemon.
    attache::process::use_keeper();
    let Some(command) = parse() else {
        // Nothing is asked for, and nobody is there.
        let help = Cli::command().render_help();
        eprintln!("error: without a command this is a chat, which needs a terminal on stdin and stdout");
        eprint!("hint: `attache run \"…\"` needs none\n\n{help}");
        std::process::exit(i32::from(Code::Usage as u8));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = match runtime {
        Ok(runtime) => runtime.block_on(run(command)),
        Err(error) => fail(&Failure::new(Code::Usage, format!("cannot start: {error}"))),
    };
    // Not by returning: a thread that waits for stdin would be waited for.
    std::process::exit(i32::from(code as u8))
}

/// Reads the command line. Without a command a terminal is sat down at; elsewhere there is none. A script that asked for JSON is told its mistakes in JSON, too.
fn parse() -> Option<Command> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let error = match Cli::try_parse() {
        Ok(cli) => {
            let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
            let chat = || Cli::parse_from(["attache", "chat"]).command;
            return cli.command.or_else(|| is_terminal.then(chat).flatten());
        }
        Err(error) => usage::explained(&words, error),
    };
    if error.use_stderr()
        && let Some(result) = usage::result(&words, &error.render().to_string())
    {
        // Whoever does not read the result has the exit code.
        let _ = print(&(result + "\n"));
    }
    if error.use_stderr() {
        error.exit();
    }
    // Help is data: whoever asked for it and does not get it has to know.
    let written = stdout::check().and_then(|()| error.print()).and_then(|()| std::io::stdout().flush());
    let code = match checked(written) {
        Ok(()) => Code::Done,
        Err(failure) => fail(&failure),
    };
    std::process::exit(i32::from(code as u8))
}

async fn run(command: Command) -> Code {
    let done = match command {
        Command::Setup(options) => match setup::run(options).await {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Run(args) => return run::run(args.in_one_way()).await,
        Command::Chat(args) => match chat::run(*args).await {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Agent(options) => agent::run(*options).await,
        Command::Serve(options) => serve::run(*options).await,
        Command::Connect(options) => remote::connect(options).await,
        Command::Check(command) => match check::run(command).await {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Trace(options) => match trace::run(options).await {
            // The agent's own code, whatever it means there.
            Ok(code) => std::process::exit(i32::from(code)),
            Err(failure) => Err(failure),
        },
        Command::Agents(command) => agents::run(command).await,
        Command::Login(options) => login::login(options).await,
        Command::Logout(options) => login::logout(options).await,
        Command::Models(list) => agent::models(&list).await,
        Command::Permissions { command } => permissions::run(command),
        Command::Sessions { command } => {
            connect::until_interrupted(sessions::sessions(command)).await.and_then(|text| print(&text))
        }
        Command::Mcp(command) => connect::until_interrupted(mcp::run(command)).await,
        Command::Trust(args) => connect::until_interrupted(project::trust(&args)).await,
        Command::Sandbox(command) => sandbox::run(command).await,
        Command::Doctor(options) => doctor::run(&options).await,
        Command::Update(options) => match update::run(&options).await {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Schema { what: SchemaOf::Events } => print(event::SCHEMA),
        Command::Completions { shell } => complete::script(shell).and_then(|script| print_bytes(&script)),
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

/// Writes to stdout, to the last byte.
fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    checked(stdout::check().and_then(|()| stdout.write_all(bytes)).and_then(|()| stdout.flush()))
}

/// What came of writing to stdout. A closed pipe is a quiet goodbye.
fn checked(written: std::io::Result<()>) -> Result<(), Failure> {
    match written {
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
