//! `attache check agent`: an agent, started again and again, made to do what it can.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use attache::Dialect;
use attache::process::Command;
use attache_check::probe::agent::{Options, ProbeRun, Start, Style, probes, run_telling};
use attache_check::record::Event;
use attache_check::{Dialects, Report, Run, Side};
use attache_testkit::model_server::ModelServer;

use super::options::{CheckAgent, ScriptStyle};
use super::{keep, tell, waivers};
use crate::agents;
use crate::connect::until_interrupted;
use crate::exit::{Code, Failure};
use crate::paths;
use crate::project::Project;
use crate::visible::one_line;

/// What stands for the address of the scripted model in the agent's command.
const MODEL_URL: &str = "{model-url}";

/// The variables by which agents and libraries find where a provider's API is, and whether its path ends in `/v1`.
const BASE_URLS: [(&str, bool); 6] = [
    ("OPENAI_BASE_URL", true),
    ("OPENAI_API_BASE", true),
    ("ANTHROPIC_BASE_URL", false),
    ("GOOGLE_GEMINI_BASE_URL", false),
    ("GEMINI_BASE_URL", false),
    ("ATTACHE_BASE_URL", true),
];

/// The variables of keys. A scripted model takes any.
const KEYS: [&str; 4] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// How many lines of stderr of an agent that says nothing else are shown.
const STDERR_LINES: usize = 10;

/// Checks an agent.
pub(super) async fn run(options: CheckAgent) -> Result<Code, Failure> {
    let (mut choice, waivers) = (options.judging.choice()?, waivers(&options.judging)?);
    for name in &options.probe {
        let is_known = |probe: &str| {
            probe.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !probes().any(|probe| is_known(probe.name)) {
            let names: Vec<&str> = probes().map(|probe| probe.name).collect();
            return Err(Failure::usage(format!("there is no probe `{}`\nhint: {}", one_line(name), names.join(", "))));
        }
    }
    let server = if options.model_server { Some(ModelServer::scripted().await) } else { None };
    let (subject, command) = command(&options, server.as_ref().map(ModelServer::url).as_deref())?;
    let dialects = match &options.protocol[..] {
        [] => Dialects::ALL,
        chosen => chosen
            .iter()
            .map(|name| Dialects::only(name.dialect()))
            .reduce(|one, other| one | other)
            .unwrap_or(Dialects::ALL),
    };
    choice.dialects = Some(dialects);
    let style = match options.script {
        Some(ScriptStyle::Lines) => Style::Lines,
        Some(ScriptStyle::Brackets) => Style::Brackets,
        Some(ScriptStyle::Offline) => Style::Offline,
        Some(ScriptStyle::English) => Style::English,
        None if options.model_server => Style::Lines,
        None => Style::English,
    };
    let settings = Options::new(style).with(|settings| {
        settings.patience = Duration::from_millis(options.patience);
        settings.startup = Duration::from_secs(options.startup);
        settings.turn = Duration::from_secs(options.turn);
        settings.probe = settings.probe.max(settings.startup + 2 * settings.turn);
        settings.authenticate.clone_from(&options.auth);
        settings.only.clone_from(&options.probe);
    });
    let progress = Progress::default();
    let probing = async {
        let done = |run: &ProbeRun| progress.tell(run);
        run_telling(&Start::process(command), dialects, &settings, done)
            .await
            .map_err(|error| Failure::usage(error.to_string()))
    };
    let done = until_interrupted(probing).await?;
    progress.end();
    if let Some(directory) = &options.records {
        save(directory, &done)?;
    }
    never_spoke(&done)?;
    let runs: Vec<Run> = done.into_iter().map(|run| Run { name: run.name.to_owned(), record: run.record }).collect();
    let report = Report::new(subject, Side::Agent, &runs, &choice, &waivers);
    tell(&[report], &options.judging, None)
}

/// An agent that never said a word was not checked.
fn never_spoke(runs: &[ProbeRun]) -> Result<(), Failure> {
    let events = || runs.iter().flat_map(|run| &run.record.entries).map(|entry| &entry.event);
    if events()
        .any(|event| matches!(event, Event::Frame { from: Side::Agent, .. } | Event::Junk { from: Side::Agent, .. }))
    {
        return Ok(());
    }
    let ended = events().find_map(|event| match event {
        Event::Exited { code: Some(code) } => Some(format!("the agent exited with status {code} and never answered")),
        Event::Exited { code: None } => Some("the agent was ended by a signal and never answered".to_owned()),
        _ => None,
    });
    let mut message = ended.unwrap_or_else(|| "the agent never answered".to_owned());
    let printed =
        events().filter_map(|event| if let Event::Stderr { text } = event { Some(one_line(text)) } else { None });
    let printed: Vec<String> = printed.take(STDERR_LINES).collect();
    if !printed.is_empty() {
        message.push_str(&format!("\n--- its stderr ---\n{}", printed.join("\n")));
    }
    Err(Failure::usage(message))
}

/// What is checked, in a few words, and how it is started.
fn command(options: &CheckAgent, model: Option<&str>) -> Result<(String, Command), Failure> {
    let (subject, mut command) = if options.agent_command.is_empty() {
        let Some(name) = options.agent.as_deref() else {
            return Err(Failure::usage("missing agent\nhint: `attache check agent -- COMMAND…`, or a name"));
        };
        let spec = agents::resolve(Some(name), &[], &Project::here()?)?;
        (one_line(name), spec.command())
    } else {
        let url = model.unwrap_or(MODEL_URL);
        let words: Vec<String> = options.agent_command.iter().map(|word| word.replace(MODEL_URL, url)).collect();
        if model.is_none() && options.agent_command.iter().any(|word| word.contains(MODEL_URL)) {
            return Err(Failure::usage("`{model-url}` has no meaning without `--model-server`"));
        }
        // The same program wherever it is started: each probe has a directory of its own.
        let words = agents::from_anywhere(&words)?;
        (one_line(&options.agent_command.join(" ")), Command::from(words))
    };
    if let Some(url) = model {
        for (variable, is_versioned) in BASE_URLS {
            let root = url.trim_end_matches("/v1");
            command = command.env(variable, if is_versioned { format!("{root}/v1") } else { root.to_owned() });
        }
        for variable in KEYS {
            command = command.env(variable, "scripted");
        }
    }
    Ok((subject, command))
}

/// Keeps what was recorded, a trace for each probe.
fn save(directory: &Path, runs: &[ProbeRun]) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot write to `{}`: {error}", directory.display()));
    paths::private_directory(directory).map_err(cannot)?;
    for run in runs {
        keep(directory, &format!("{}-{}", run.dialect, run.name.replace('/', "-")), &run.record).map_err(cannot)?;
    }
    Ok(())
}

/// A line that tells how far the check is, on a terminal.
#[derive(Default)]
struct Progress(Mutex<Option<(Dialect, usize)>>);

impl Progress {
    fn tell(&self, run: &ProbeRun) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let Ok(mut state) = self.0.lock() else { return };
        let count = match *state {
            Some((dialect, count)) if dialect == run.dialect => count + 1,
            _ => 1,
        };
        *state = Some((run.dialect, count));
        let all = probes().filter(|probe| probe.dialects.includes(run.dialect)).count();
        eprint!("\r\x1b[Kprotocol {}: {count} of {all} probes, {}", run.dialect, run.name);
    }

    fn end(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}
