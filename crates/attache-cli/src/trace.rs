//! `attache trace`: records what goes between a client and an agent.

pub(crate) mod options;
mod replay;
mod view;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use attache::ExitStatus;
use attache::process::{Command, Process};
use attache_check::Side;
use attache_check::record::Event;
use attache_check::trace::{Difference, Passed, Recorder, Recording, pass};

use crate::agents;
use crate::check::read;
use crate::exit::{Code, Failure};
use crate::paths;
use crate::project::Project;
use crate::signals::{Signal, Signals};
use options::{Part, Trace, TraceCommand};

/// How long an agent may go on when its client has left.
const GRACE: Duration = Duration::from_secs(5);

impl Part {
    /// The side whose part it is.
    fn side(self) -> Side {
        match self {
            Part::Client => Side::Client,
            Part::Agent => Side::Agent,
        }
    }
}

/// Does what the command line says. The exit code of a recording is the agent's own.
pub(crate) async fn run(options: Trace) -> Result<u8, Failure> {
    match options.command {
        None => record(options).await,
        Some(TraceCommand::View(options)) => view::run(&options).await.map(|()| 0),
        Some(TraceCommand::Replay(options)) => replay::run(options).await,
        Some(TraceCommand::Diff(options)) => {
            let differences = attache_check::trace::diff(&read(&options.first)?, &read(&options.second)?);
            tell(&differences, |text| crate::print(&text))
        }
        Some(TraceCommand::Export(options)) => {
            let record = read(&options.file)?;
            let text = if options.exact {
                record.to_transcript()
            } else {
                attache_check::trace::export(&record, options.part.side())
            };
            crate::print(&text).map(|()| 0)
        }
    }
}

/// Stands between the client on stdin and stdout and an agent.
async fn record(options: Trace) -> Result<u8, Failure> {
    let command = agent(options.agent.as_deref(), &options.agent_command, "attache trace")?;
    let path = options.output.map_or_else(new_file, Ok)?;
    let recording = Recording { keeps_secrets: options.raw, rotate: options.rotate };
    let cannot = |error| Failure::usage(format!("cannot write `{}`: {error}", path.display()));
    let mut recorder = Recorder::open(&path, recording).map_err(cannot)?;
    let mut signals = Signals::new().map_err(|error| Failure::usage(error.to_string()))?;
    let (mut process, stdin, stdout, stderr) =
        command.spawn_piped().map_err(|error| Failure::new(Code::Died, error.to_string()))?;
    let client =
        attache::stdio::take().map_err(|error| Failure::usage(format!("cannot use stdin and stdout: {error}")))?;
    eprintln!("attache trace: writing `{}`", path.display());
    if options.raw {
        eprintln!("warning: secrets are written down (--raw): look at the file before you show it to anybody");
    }
    let agent = (Box::new(stdout) as _, Box::new(stdin) as _);
    let stderr = stderr.map(|stderr| Box::new(stderr) as _);
    let passing = pass(client, agent, stderr, Box::new(tokio::io::stderr()), &mut recorder, GRACE);
    let passed = tokio::select! {
        passed = passing => passed.map_err(|error| Failure::new(Code::Died, format!("cannot read: {error}"))),
        signal = signals.next() => Err(interrupted(signal)),
    };
    let status = end(process_ended(&passed, &mut process).await, process).await;
    recorder.write(&Event::Exited { code: status.code });
    if recorder.failures() > 0 {
        eprintln!("warning: {} lines of the trace could not be written to `{}`", recorder.failures(), path.display());
    }
    passed?;
    // A signal has no number here; what shells make of it is more than 128.
    Ok(status.code.map_or(Code::Died as u8, |code| u8::try_from(code).unwrap_or(Code::Died as u8)))
}

/// How an agent ended that left by itself.
async fn process_ended(passed: &Result<Passed, Failure>, process: &mut Process) -> Option<ExitStatus> {
    passed.as_ref().ok()?;
    tokio::time::timeout(GRACE, process.wait()).await.ok()
}

/// Ends what is left of an agent.
async fn end(ended: Option<ExitStatus>, process: Process) -> ExitStatus {
    let status = process.shutdown(GRACE).await;
    ended.unwrap_or(status)
}

fn interrupted(signal: Signal) -> Failure {
    let code = if signal == Signal::Interrupt { Code::Interrupted } else { Code::Terminated };
    Failure::new(code, "interrupted")
}

/// Tells differences. The exit code is 1 if there are any.
fn tell(differences: &[Difference], print: impl FnOnce(String) -> Result<(), Failure>) -> Result<u8, Failure> {
    let lines: String = differences.iter().map(|difference| format!("{difference}\n")).collect();
    let count = differences.len();
    print(match count {
        0 => "no difference\n".to_owned(),
        1 => format!("{lines}\n1 difference\n"),
        _ => format!("{lines}\n{count} differences\n"),
    })?;
    Ok(if count == 0 { Code::Done } else { Code::Agent } as u8)
}

/// The command of the agent: as it was typed, with all that this process has in its environment.
fn agent(name: Option<&str>, words: &[String], typed: &str) -> Result<Command, Failure> {
    if let [program, arguments @ ..] = words {
        return Ok(Command::new(program).args(arguments));
    }
    if name.is_none() {
        return Err(Failure::usage(format!("missing agent\nhint: `{typed} -- COMMAND…`, or `--agent NAME`")));
    }
    Ok(agents::resolve(name, &[], &Project::here()?)?.command())
}

/// A file of its own for this conversation.
fn new_file() -> Result<PathBuf, Failure> {
    let directory = paths::state()?.join("traces");
    let cannot = |error| Failure::usage(format!("cannot make `{}`: {error}", directory.display()));
    paths::private_directory(&directory).map_err(cannot)?;
    let time: String =
        attache::trace::rfc3339(SystemTime::now()).chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    Ok(directory.join(format!("{time}-{}.jsonl", std::process::id())))
}
