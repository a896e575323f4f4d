//! `attache trace`: records what goes between a client and an agent.

mod log;
pub(crate) mod options;
mod replay;
mod view;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use attache::ExitStatus;
use attache::process::{Command, Process};
use attache_check::Side;
use attache_check::record::Event;
use attache_check::trace::{Difference, Recorder, Recording, pass};

use crate::agents;
use crate::check::read;
use crate::exit::{Code, Failure};
use crate::paths;
use crate::project::Project;
use crate::signals::{Signal, Signals};
use log::Log;
use options::{Part, Trace, TraceCommand};

/// How long an agent may take to exit when it has closed its end, or has said nothing for long enough.
const GRACE: Duration = Duration::from_secs(5);

/// The same when it was asked to stop, and had time already.
const LAST_WORDS: Duration = Duration::from_secs(1);

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
            tell(&differences, None, |text| crate::print(&text))
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
    let (process, stdin, stdout, stderr) =
        command.spawn_piped().map_err(|error| Failure::new(Code::Died, error.to_string()))?;
    let client =
        attache::stdio::take().map_err(|error| Failure::usage(format!("cannot use stdin and stdout: {error}")))?;
    let log = Log::new().map_err(|error| Failure::usage(format!("cannot start a thread: {error}")))?;
    log.say(&format!("attache trace: writing `{}`", recorder.path().display())).await;
    if std::fs::canonicalize(&path).is_ok_and(|path| path != recorder.path()) {
        log.say(&format!("warning: another trace is being written to `{}`", path.display())).await;
    }
    if options.raw {
        log.say("warning: secrets are written down (--raw): look at the file before you show it to anybody").await;
    }
    let agent = (Box::new(stdout) as _, Box::new(stdin) as _);
    let stderr = stderr.map(|stderr| Box::new(stderr) as _);
    let mut signal = None;
    let stop = async { signal = Some(signals.next().await) };
    let grace = Duration::from_secs(options.grace);
    let passed = pass(client, agent, stderr, log.lines(), &mut recorder, grace, stop).await;
    let status = tokio::select! {
        status = end(process, &mut recorder, signal.is_some()) => status,
        // Whoever asks twice does not want to wait; what is left is ended by dropping it.
        again = signals.next() => {
            signal = Some(again);
            recorder.write(&Event::Waited { time: Duration::ZERO });
            None
        }
    };
    recorder.write(&Event::Exited { code: status.and_then(|status| status.code) });
    if recorder.failures() > 0 {
        let (count, path) = (recorder.failures(), recorder.path().display());
        log.say(&format!("warning: {count} lines of the trace could not be written to `{path}`")).await;
    }
    if recorder.has_outgrown() {
        let path = recorder.path().display();
        log.say(&format!("warning: `{path}` is larger than it should be: it could not be put aside")).await;
    }
    let passed = passed.map_err(|error| format!("cannot read: {error}"));
    if let (Err(error), None) = (&passed, signal) {
        log.say(&format!("error: {error}")).await;
    }
    log.end().await;
    Ok(match (signal, passed, status) {
        (Some(Signal::Interrupt), ..) => Code::Interrupted as u8,
        (Some(Signal::Terminate), ..) => Code::Terminated as u8,
        (None, Err(_), _) | (None, Ok(_), None) => Code::Died as u8,
        (None, Ok(_), Some(status)) => code_of(status),
    })
}

/// The agent's own code. An agent that was ended by a signal has the code that shells give it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code.or(status.signal.map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code & 0xff).ok()).unwrap_or(Code::Died as u8)
}

/// Waits for an agent whose client has left, and ends it if it does not go. That it was ended is written down.
async fn end(mut process: Process, recorder: &mut Recorder, is_stopped: bool) -> Option<ExitStatus> {
    // One that was stopped has had its time.
    let limit = if is_stopped { LAST_WORDS } else { GRACE };
    match tokio::time::timeout(limit, process.wait()).await {
        Ok(status) => {
            // What it has left behind ends with it.
            process.shutdown(Duration::ZERO).await;
            Some(status)
        }
        Err(_) => {
            recorder.write(&Event::Waited { time: limit });
            Some(process.shutdown(LAST_WORDS).await)
        }
    }
}

/// Tells differences, and one more that is none of a message. The exit code is 1 if there are any.
fn tell(
    differences: &[Difference],
    more: Option<String>,
    print: impl FnOnce(String) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    let lines = differences.iter().map(ToString::to_string).chain(more.map(|more| format!("- {more}")));
    let lines: Vec<String> = lines.collect();
    print(match &lines[..] {
        [] => "no difference\n".to_owned(),
        [line] => format!("{line}\n\n1 difference\n"),
        lines => format!("{}\n\n{} differences\n", lines.join("\n"), lines.len()),
    })?;
    Ok(if lines.is_empty() { Code::Done } else { Code::Agent } as u8)
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
