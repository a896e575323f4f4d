//! `attache check agent`: an agent, started again and again, made to do what it can.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use attache::Dialect;
use attache::process::Command;
use attache_check::exchange::{Call, Exchange};
use attache_check::probe::agent::{Options, Probe, ProbeRun, Start, Style, probes, run_telling};
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
        if !probes().any(|probe| is_meant(probe.name, name)) {
            let shown = one_line(name);
            return Err(Failure::usage(format!("no probe `{shown}`\nhint: `attache check probes` lists them")));
        }
    }
    let server = if options.model_server { Some(ModelServer::scripted_without_memory().await) } else { None };
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
    let progress = Progress { chosen: options.probe.clone(), ..Progress::default() };
    let probing = async {
        let done = |run: &ProbeRun| progress.tell(run);
        run_telling(&Start::process(command), dialects, &settings, done)
            .await
            .map_err(|error| Failure::usage(error.to_string()))
    };
    let done = until_interrupted(probing).await;
    progress.end();
    let done = done?;
    if let Some(directory) = &options.records {
        save(directory, &done)?;
    }
    never_spoke(&done, &options)?;
    let unchecked = why_unchecked(&done, dialects, options.auth.as_deref());
    let runs: Vec<Run> = done.into_iter().map(|run| Run { name: run.name.to_owned(), record: run.record }).collect();
    let report = Report::new(subject, Side::Agent, &runs, &choice, &waivers);
    let told = tell(&[report], &options.judging, None);
    // What could not be checked is not conformant, whatever else was kept.
    match unchecked {
        Some(why) => Err(Failure::usage(why)),
        None => told,
    }
}

/// Why most of the agent could not be checked, if that is so.
fn why_unchecked(runs: &[ProbeRun], dialects: Dialects, auth: Option<&str>) -> Option<String> {
    let connections: Vec<_> = runs.iter().flat_map(|run| run.record.connections()).collect();
    let exchanges: Vec<Exchange<'_>> = connections.iter().map(|(_, entries)| Exchange::new(entries)).collect();
    let greeted: Vec<&Exchange<'_>> = exchanges.iter().filter(|exchange| exchange.agent_hello().is_object()).collect();
    if !greeted.is_empty() && !greeted.iter().any(|exchange| dialects.includes(exchange.dialect)) {
        let spoken: BTreeSet<String> = greeted.iter().map(|exchange| exchange.dialect.to_string()).collect();
        let spoken: Vec<String> = spoken.into_iter().collect();
        return Some(format!("the agent speaks protocol {}, which is not what was to be checked", spoken.join(", ")));
    }
    let calls = || exchanges.iter().flat_map(|exchange| &exchange.calls);
    let is_open = exchanges.iter().any(|exchange| !exchange.sessions.is_empty());
    let is_login = |call: &&Call| matches!(call.method.as_str(), "authenticate" | "auth/login");
    if let Some(method) = auth
        && calls().any(|call| is_login(&call))
        && !calls().filter(is_login).any(|call| call.result().is_some())
    {
        return Some(format!("the agent refused to authenticate with `{}`{}", one_line(method), methods(&exchanges)));
    }
    let wants_login =
        |call: &Call| call.method == "session/new" && call.error().is_some_and(|error| error.code == AUTH_REQUIRED);
    (!is_open && calls().any(wants_login)).then(|| {
        format!(
            "no session could be opened: the agent wants a login first\nhint: `--auth METHOD`{}",
            methods(&exchanges)
        )
    })
}

/// The code of the error that asks for a login.
const AUTH_REQUIRED: i32 = -32000;

/// The login methods that an agent has told.
fn methods(exchanges: &[Exchange<'_>]) -> String {
    let told = exchanges.iter().filter_map(|exchange| exchange.agent_hello()["authMethods"].as_array()).flatten();
    let ids: BTreeSet<String> =
        told.filter_map(|method| Some(one_line(method["id"].as_str().or(method["methodId"].as_str())?))).collect();
    if ids.is_empty() {
        return String::new();
    }
    format!("; it has {}", ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", "))
}

/// An agent that never said a word was not checked.
fn never_spoke(runs: &[ProbeRun], options: &CheckAgent) -> Result<(), Failure> {
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
    let silent =
        || format!("the agent did not answer within {} s\nhint: `--startup` gives it more time", options.startup);
    let mut message = ended.unwrap_or_else(silent);
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
struct Progress {
    /// The probes that were asked for; all of them if there are none.
    chosen: Vec<String>,
    done: Mutex<Option<(Dialect, usize)>>,
}

/// Whether a probe is meant by its name or that of its group.
fn is_meant(probe: &str, name: &str) -> bool {
    probe.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Progress {
    fn tell(&self, run: &ProbeRun) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let Ok(mut state) = self.done.lock() else { return };
        let count = match *state {
            Some((dialect, count)) if dialect == run.dialect => count + 1,
            _ => 1,
        };
        *state = Some((run.dialect, count));
        let is_chosen = |probe: &&Probe| {
            probe.dialects.includes(run.dialect)
                && (self.chosen.is_empty() || self.chosen.iter().any(|name| is_meant(probe.name, name)))
        };
        let all = probes().filter(is_chosen).count().max(count);
        eprint!("\r\x1b[Kprotocol {}: {count} of {all} probes, {}", run.dialect, run.name);
    }

    fn end(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}
