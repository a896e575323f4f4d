//! `attache check client`: an agent that judges the client which starts it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_check::probe::Peer;
use attache_check::probe::client::{
    Ending, Options, ProbeRun, RunLimits, Scenario, Selection, find, run_client, scenarios, serve,
};
use attache_check::{Dialects, Report, Run, Side};

use super::options::CheckClient;
use super::{keep, tell, waivers};
use crate::connect::until_interrupted;
use crate::exit::{Code, Failure};
use crate::paths;
use crate::visible::{one_line, visible};

/// How long a client may take to end when its run is over.
const LEAVE: Duration = Duration::from_secs(3);

/// Checks a client.
pub(super) async fn run(options: CheckClient) -> Result<Code, Failure> {
    let chosen = options.scenario.iter().map(|name| find(name).ok_or_else(|| no_scenario(name)));
    let chosen = chosen.collect::<Result<Vec<_>, Failure>>()?;
    if options.serve { serve_client(&options, &chosen).await } else { run_clients(&options, chosen).await }
}

fn no_scenario(name: &str) -> Failure {
    Failure::usage(format!("no scenario `{}`\nhint: `attache check probes` lists them", one_line(name)))
}

/// Is the agent of the client on stdin and stdout.
async fn serve_client(options: &CheckClient, chosen: &[&'static Scenario]) -> Result<Code, Failure> {
    let (choice, waivers) = (options.judging.choice()?, waivers(&options.judging)?);
    let selection = match chosen {
        [] => Selection::All,
        [scenario] => Selection::One(scenario),
        _ => return Err(Failure::usage("`--serve` takes one scenario, or none for all of them")),
    };
    // A run has asked for this; a person takes their time.
    let is_run = options.records.is_some() && !chosen.is_empty();
    let settings = Options {
        dialect: options.protocol.map(|name| name.dialect()),
        records: Some(options.records.clone().map_or_else(records, Ok)?),
        ..if is_run { Options::unattended() } else { Options::attended() }
    };
    let directory = settings.records.clone();
    let taken = attache::stdio::take();
    let (reader, writer) = taken.map_err(|error| Failure::usage(format!("cannot use stdin and stdout: {error}")))?;
    let record = until_interrupted(async { Ok(serve(Peer { reader, writer }, selection, settings).await) }).await?;
    if is_run {
        return Ok(Code::Done);
    }
    let runs = [Run { name: "client".to_owned(), record }];
    let report = Report::new("client", Side::Client, &runs, &choice, &waivers);
    let text = report.to_text(options.judging.verbose);
    eprint!("{text}");
    if let Some(directory) = directory {
        let path = directory.join("report.txt");
        let written = paths::write_private(&path, text.as_bytes());
        written.map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
        eprintln!("the report and the record are in `{}`", directory.display());
    }
    Ok(if report.is_conformant() { Code::Done } else { Code::Agent })
}

/// Where the records of clients are.
fn records() -> Result<PathBuf, Failure> {
    Ok(paths::state()?.join("checks"))
}

/// Starts a client once for each scenario.
async fn run_clients(options: &CheckClient, chosen: Vec<&'static Scenario>) -> Result<Code, Failure> {
    let (mut choice, waivers) = (options.judging.choice()?, waivers(&options.judging)?);
    choice.dialects = options.protocol.map(|name| Dialects::only(name.dialect()));
    let chosen = if chosen.is_empty() { scenarios().iter().collect() } else { chosen };
    let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let program = program.ok_or_else(|| Failure::usage("this program cannot tell where it is"))?;
    let mut agent = vec![program, "check".to_owned(), "client".to_owned(), "--serve".to_owned()];
    if let Some(name) = options.protocol {
        agent.extend(["--protocol".to_owned(), name.dialect().to_string()]);
    }
    let client = crate::agents::from_anywhere(&options.run)?;
    let limits = RunLimits { run: Duration::from_secs(options.timeout), leave: LEAVE };
    let (mut count, all) = (0, chosen.len());
    let running = async {
        let done = |run: &ProbeRun| {
            count += 1;
            if std::io::stderr().is_terminal() {
                eprint!("\r\x1b[K{count} of {all} scenarios, {}", run.scenario.name);
            }
        };
        run_client(&client, &agent, &chosen, &limits, done).await.map_err(|error| Failure::usage(error.to_string()))
    };
    let done = until_interrupted(running).await;
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    let done = done?;
    never_connected(&done, options)?;
    if let Some(directory) = &options.records {
        save(directory, &done)?;
    }
    for run in done.iter().filter(|run| run.ending == Ending::TimedOut) {
        eprintln!("in {} the client was still running after {} s and was ended", run.scenario.name, options.timeout);
    }
    let runs: Vec<Run> =
        done.into_iter().map(|run| Run { name: run.scenario.name.to_owned(), record: run.record }).collect();
    let report = Report::new(one_line(&options.run.join(" ")), Side::Client, &runs, &choice, &waivers);
    tell(&[report], &options.judging, None)
}

/// A client that never said a word was not checked.
fn never_connected(runs: &[ProbeRun], options: &CheckClient) -> Result<(), Failure> {
    let is_heard = |run: &ProbeRun| run.record.connections().any(|(_, entries)| entries.iter().any(is_of_client));
    if runs.iter().any(is_heard) {
        return Ok(());
    }
    let Some(run) = runs.first() else { return Ok(()) };
    let why = match &run.ending {
        Ending::NotStarted(why) => format!("the client could not be started: {why}"),
        Ending::Exited(Some(code)) => format!("the client exited with status {code} and never spoke to the agent"),
        Ending::Exited(None) => "the client was ended by a signal and never spoke to the agent".to_owned(),
        Ending::TimedOut => format!("the client did not speak to the agent within {} s", options.timeout),
    };
    let printed = if run.output.trim().is_empty() {
        String::new()
    } else {
        format!("\n--- it printed ---\n{}", visible(run.output.trim()))
    };
    let is_relative = |word: &&String| !Path::new(word).is_absolute() && Path::new(word).exists();
    let hint = match options.run.iter().skip(1).find(is_relative) {
        Some(file) => {
            format!("hint: the client is started in a temporary directory; name `{}` by its whole path", one_line(file))
        }
        None => "hint: `{agent}` in its command stands for the command line of the agent".to_owned(),
    };
    Err(Failure::usage(format!("{why}{printed}\n{hint}")))
}

fn is_of_client(entry: &attache_check::record::Entry) -> bool {
    use attache_check::record::Event;
    matches!(entry.event, Event::Frame { from: Side::Client, .. } | Event::Junk { from: Side::Client, .. })
}

/// Keeps what was recorded, a trace for each scenario.
fn save(directory: &Path, runs: &[ProbeRun]) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot write to `{}`: {error}", directory.display()));
    paths::private_directory(directory).map_err(cannot)?;
    runs.iter().try_for_each(|run| keep(directory, run.scenario.name, &run.record)).map_err(cannot)
}
