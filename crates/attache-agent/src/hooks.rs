//! Hooks: commands of the person, or of a project that they trust, that run before and after tools and at the end of a turn.
//!
//! They come from `[[hooks]]` in `agent.toml`, or from `.attache/hooks.toml` of a trusted project:
//!
//! ```toml
//! [[hooks]]
//! event = "after_tool"              # or "before_tool", "end_of_turn"
//! tools = ["edit_file", "write_*"]  # all of them if it is left out
//! command = "cargo fmt"
//! timeout = 30                      # seconds; 60 if it is left out
//! ```
//!
//! A hook reads JSON on stdin: `event`, `tool`, `arguments`, `cwd`, `sessionId`, and after a tool `result` and `isError`. If it
//! exits with 2, what it printed is told to the model: before a tool that refuses the call, at the end of a turn the turn
//! goes on, once. Any other failure is a notice to the person.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use attache::Error;
use attache::model::notice::NoticeSeverity;
use attache_host::trust::Contents;
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use crate::config::{line_of, within};
use crate::cut::{Limits, cut_off_thread};
use crate::model::Part;
use crate::project::Project;
use crate::toolbox::{is_own_tool, own_tool_names};
use crate::tools::commands::HookEnd;
use crate::tools::{Outcome, first_line};
use crate::turn::Desk;
use crate::workspace::blocking;

/// How long a hook may run when nothing is said, and at most.
const DEFAULT_SECONDS: u64 = 60;
const MOST_SECONDS: u64 = 600;
/// More hooks are a mistake.
const MOST_HOOKS: usize = 100;
/// How much of a hook's output is looked at, and what the model gets of it.
const OUTPUT: usize = 64 << 10;
const TOLD: Limits = Limits { head: 4 << 10, tail: 4 << 10 };
/// How much of a tool's result a hook is given.
const RESULT: usize = 64 << 10;

/// A command that runs beside the agent's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// When it runs.
    pub event: HookEvent,
    /// The tools that it runs for, by name; `*` stands for any characters. Empty for all.
    pub tools: Vec<String>,
    /// The line for a shell.
    pub command: String,
    /// How long it may run.
    pub timeout: Duration,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Before a tool, and before anybody is asked about it.
    BeforeTool,
    /// After a tool.
    AfterTool,
    /// When the model has nothing more to do.
    EndOfTurn,
}

impl HookEvent {
    fn word(self) -> &'static str {
        match self {
            HookEvent::BeforeTool => "before_tool",
            HookEvent::AfterTool => "after_tool",
            HookEvent::EndOfTurn => "end_of_turn",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookSettings {
    event: HookEvent,
    #[serde(default)]
    tools: Vec<Spanned<String>>,
    command: Spanned<String>,
    timeout: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HooksFile {
    #[serde(default)]
    hooks: Vec<HookSettings>,
}

impl HookSettings {
    /// The hooks that a text has, or the line that is wrong.
    pub(crate) fn read(text: &str, settings: Vec<HookSettings>) -> Result<Vec<Hook>, String> {
        if settings.len() > MOST_HOOKS {
            return Err(format!("there are more than {MOST_HOOKS} hooks"));
        }
        let hook = |hook: HookSettings| {
            let line = line_of(text, hook.command.span().start);
            let command = hook.command.into_inner();
            if command.trim().is_empty() || command.contains('\0') {
                return Err(format!("line {line}: `command` of a hook is empty"));
            }
            if hook.event == HookEvent::EndOfTurn && !hook.tools.is_empty() {
                return Err(format!("line {line}: a hook at the end of a turn has no `tools`"));
            }
            let tools = hook.tools.into_iter().map(|tool| known_tool(text, tool)).collect::<Result<_, _>>()?;
            let seconds = within(text, "timeout", hook.timeout, 1..=MOST_SECONDS)?.unwrap_or(DEFAULT_SECONDS);
            Ok(Hook { event: hook.event, tools, command, timeout: Duration::from_secs(seconds) })
        };
        settings.into_iter().map(hook).collect()
    }
}

/// The name of a tool in a hook. One that no tool has is a mistake: a hook that is to refuse calls would refuse none.
/// Names with `__` are of MCP servers, which nobody knows before they run, and patterns may be for those too.
fn known_tool(text: &str, tool: Spanned<String>) -> Result<String, String> {
    let line = line_of(text, tool.span().start);
    let tool = tool.into_inner();
    match is_own_tool(&tool) || tool.contains("__") || tool.contains('*') {
        true => Ok(tool),
        false => Err(format!(
            "line {line}: unknown tool `{}` in `tools` of a hook; expected {}",
            crate::model::tidy(&tool, 40),
            own_tool_names().collect::<Vec<_>>().join(", ")
        )),
    }
}

impl Hook {
    fn is_for(&self, event: HookEvent, tool: Option<&str>) -> bool {
        let fits = |tool: &str| self.tools.is_empty() || self.tools.iter().any(|pattern| fits(pattern, tool));
        self.event == event && tool.is_none_or(fits)
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.event.word())?;
        if !self.tools.is_empty() {
            write!(f, " of {}", self.tools.join(", "))?;
        }
        write!(f, ": `{}`", attache_host::permission::visible(&first_line(&self.command, 80)))
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(place) => name = &name[place + part.len()..],
            None => return false,
        }
    }
    name.ends_with(tail)
}

/// The hooks of a session.
pub(crate) struct Hooks {
    own: Vec<Hook>,
    trusted: Option<Trusted>,
}

/// The hooks of a project. They run as long as the project is what was trusted.
struct Trusted {
    hooks: Vec<Hook>,
    project: Project,
    /// The file as it was read.
    content: Vec<u8>,
    /// The top of the project, where they run.
    root: PathBuf,
}

/// What a hook is told.
struct Told<'a> {
    event: HookEvent,
    call: Option<(&'a str, &'a Value)>,
    outcome: Option<&'a Outcome>,
}

impl Hooks {
    /// The person's own, and those of a project that is trusted. Says also what is wrong with the latter.
    pub(crate) fn new(own: Vec<Hook>, project: &Project, contents: Option<&Contents>) -> (Self, Option<String>) {
        let file = contents.and_then(|contents| Some((contents, contents.file("hooks.toml")?)));
        let Some((contents, content)) = file else { return (Hooks { own, trusted: None }, None) };
        match parse(content) {
            Ok(hooks) => {
                let (project, root) = (project.clone(), contents.directory().to_owned());
                let trusted = Trusted { hooks, project, content: content.to_owned(), root };
                (Hooks { own, trusted: Some(trusted) }, None)
            }
            Err(what) => (Hooks { own, trusted: None }, Some(format!("`hooks.toml` of the project: {what}"))),
        }
    }

    /// Those that are to run now, each with the project that it is of.
    fn chosen(&self, told: &Told<'_>) -> Vec<(&Hook, Option<&Trusted>)> {
        let tool = told.call.map(|(name, _)| name);
        let mut chosen: Vec<(&Hook, Option<&Trusted>)> = self.own.iter().map(|hook| (hook, None)).collect();
        if let Some(trusted) = &self.trusted {
            chosen.extend(trusted.hooks.iter().map(|hook| (hook, Some(trusted))));
        }
        chosen.retain(|(hook, _)| hook.is_for(told.event, tool));
        chosen
    }

    /// All of them as lines for people.
    pub(crate) fn list(&self) -> impl Iterator<Item = String> + '_ {
        let own = self.own.iter().map(|hook| format!("{hook} (agent.toml)"));
        let trusted = self.trusted.iter().flat_map(|trusted| &trusted.hooks);
        own.chain(trusted.map(|hook| format!("{hook} (the project's hooks.toml)")))
    }
}

fn parse(content: &[u8]) -> Result<Vec<Hook>, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
    let file: HooksFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        format!("line {line}: {}", error.message())
    })?;
    HookSettings::read(text, file.hooks)
}

/// Runs what is to run before a tool. Gives the reason why the call is refused, if it is.
pub(crate) async fn before_tool(desk: &Desk, name: &str, arguments: &Value) -> Result<Option<String>, Error> {
    let told = Told { event: HookEvent::BeforeTool, call: Some((name, arguments)), outcome: None };
    let said = run(desk, &told, true).await?;
    Ok(said.into_iter().next().map(|text| format!("refused by a hook of the person's: {text}")))
}

/// Runs what is to run after a tool. What it says is added to what the model is told.
pub(crate) async fn after_tool(desk: &Desk, name: &str, arguments: &Value, outcome: &mut Outcome) -> Result<(), Error> {
    let told = Told { event: HookEvent::AfterTool, call: Some((name, arguments)), outcome: Some(outcome) };
    let said = run(desk, &told, false).await?;
    outcome.parts.extend(said.into_iter().map(|text| Part::text(format!("A hook of the person's says:\n{text}"))));
    Ok(())
}

/// Runs what is to run when the model has nothing more to do. Gives what it is to be told.
pub(crate) async fn end_of_turn(desk: &Desk) -> Result<Option<String>, Error> {
    let told = Told { event: HookEvent::EndOfTurn, call: None, outcome: None };
    let said = run(desk, &told, false).await?;
    Ok((!said.is_empty()).then(|| format!("A hook at the end of the turn says:\n{}", said.join("\n"))))
}

/// Runs hooks one after the other. Gives what those printed that exited with 2; `ends_there` at the first of them, or at the
/// first that failed.
async fn run(desk: &Desk, told: &Told<'_>, ends_there: bool) -> Result<Vec<String>, Error> {
    let mut said = Vec::new();
    for (hook, trusted) in desk.hooks.chosen(told) {
        match one(desk, told, hook, trusted).await {
            Ok(None) => {}
            Ok(Some(text)) => {
                said.push(text);
                if ends_there {
                    break;
                }
            }
            Err(why) => {
                desk.log.notice(NoticeSeverity::Warning, format!("hook {hook} {why}")).await?;
                // What has to be allowed is not allowed by who gave no answer.
                if ends_there {
                    said.push("it failed, and only one that exits with 0 lets a call pass".into());
                    break;
                }
            }
        }
    }
    Ok(said)
}

/// Runs one hook. What it printed if it exited with 2, or what is wrong.
async fn one(desk: &Desk, told: &Told<'_>, hook: &Hook, trusted: Option<&Trusted>) -> Result<Option<String>, String> {
    let cwd = match trusted {
        Some(trusted) => {
            check_trust(trusted).await?;
            trusted.root.clone()
        }
        None => desk.place.cwd.clone(),
    };
    let workspace = &desk.tools.workspace;
    // A formatter changes files on behalf of the agent.
    let kept = desk.checkpoints.before_program(workspace).await;
    let input = told.input(desk);
    let ended = desk.tools.commands.run_hook(&hook.command, &cwd, input, hook.timeout, OUTPUT).await;
    desk.checkpoints.after(workspace, kept).await;
    match ended.map_err(|refusal| format!("could not run: {}", refusal.0))? {
        HookEnd::Exit(Some(0), _) => Ok(None),
        HookEnd::Exit(Some(2), output) if output.trim().is_empty() => Ok(Some("(it gave no reason)".into())),
        HookEnd::Exit(Some(2), output) => Ok(Some(cut_off_thread(output.trim(), TOLD, &desk.spill).await)),
        HookEnd::Exit(code, output) => {
            let code = code.map_or_else(|| "by a signal".to_owned(), |code| format!("with status {code}"));
            let last = output.trim().lines().next_back().map(|line| first_line(line, 200)).unwrap_or_default();
            let last = attache_host::permission::visible(&last);
            Err(format!("ended {code}{}{last}", if last.is_empty() { "" } else { ": " }))
        }
        HookEnd::TimeOver => Err(format!("timed out after {} s", hook.timeout.as_secs())),
    }
}

/// Whether the project is still what was trusted. The agent itself can change a program that a hook starts.
async fn check_trust(trusted: &Trusted) -> Result<(), String> {
    let (project, content) = (trusted.project.clone(), trusted.content.clone());
    let check = move || {
        let (contents, notice) = project.contents();
        let is_same = contents.is_some_and(|contents| contents.file("hooks.toml") == Some(content.as_slice()));
        if is_same { Ok(()) } else { Err(notice) }
    };
    match blocking(check).await {
        Ok(Ok(())) => Ok(()),
        // What has changed, as far as that can be told.
        Ok(Err(Some(notice))) => Err(format!("did not run: {notice}")),
        _ => {
            Err("did not run: the project has changed since it was trusted\nhint: `attache trust` shows it again"
                .into())
        }
    }
}

impl Told<'_> {
    fn input(&self, desk: &Desk) -> Vec<u8> {
        let mut told = json!({
            "event": self.event.word(),
            "cwd": desk.place.cwd.to_string_lossy(),
            "sessionId": desk.log.handle().id().as_str(),
        });
        if let Some((name, arguments)) = self.call {
            told["tool"] = name.into();
            told["arguments"] = arguments.clone();
        }
        if let Some(outcome) = self.outcome {
            let texts = outcome.parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Media { .. } => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            told["result"] = text[..text.floor_char_boundary(RESULT)].into();
            told["isError"] = outcome.is_error.into();
        }
        told.to_string().into_bytes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_tools() {
        for (pattern, name, expected) in [
            ("edit_file", "edit_file", true),
            ("edit_file", "edit_files", false),
            ("run_*", "run_command", true),
            ("run_*", "rerun_command", false),
            ("*_file", "edit_file", true),
            ("*", "", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
            ("a*a", "a", false),
            ("mcp__*__read*", "mcp__x__read_all", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn hooks_are_read_and_mistakes_are_named() {
        let hooks = parse(
            b"[[hooks]]\nevent = 'after_tool'\ntools = ['edit_file', 'run_*']\ncommand = 'cargo fmt'\n\n\
              [[hooks]]\nevent = 'end_of_turn'\ncommand = 'make test'\ntimeout = 600\n",
        )
        .unwrap();
        assert_eq!(hooks[0].to_string(), "after_tool of edit_file, run_*: `cargo fmt`");
        assert_eq!(hooks[1].timeout, Duration::from_secs(MOST_SECONDS));
        assert!(hooks[0].is_for(HookEvent::AfterTool, Some("run_command")));
        assert!(!hooks[0].is_for(HookEvent::BeforeTool, Some("run_command")));
        assert!(!hooks[0].is_for(HookEvent::AfterTool, Some("read_file")));
        for (text, named) in [
            ("[[hooks]]\nevent = 'sometimes'\ncommand = 'x'", "line 2"),
            ("[[hooks]]\nevent = 'end_of_turn'\ncommand = ' '", "line 3: `command` of a hook is empty"),
            ("[[hooks]]\nevent = 'end_of_turn'\ncommand = 'x'\ntools = ['y']", "has no `tools`"),
            (
                "[[hooks]]\nevent = 'end_of_turn'\ncommand = 'x'\ntimeout = 601",
                "line 4: invalid value 601 for `timeout`",
            ),
            ("[[hooks]]\nevent = 'after_tool'\ncommand = 'x'\ntools = ['edit']", "line 4: unknown tool `edit`"),
            ("[[hooks]]\nevent = 'end_of_turn'", "command"),
            ("[[hook]]\n", "line 1"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
