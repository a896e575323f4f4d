//! `attache sessions`: earlier runs from our own journal, and the sessions that an agent keeps.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use attache::model::ListSessionsRequest;
use serde::Serialize;

use crate::cli::{ExportFormat, NamedAgent, Sessions};
use crate::connect::{self, Opening};
use crate::event::{Answer, Event, FileOperation, Line, Tool};
use crate::exit::{Code, Failure};
use crate::journal::{self, Summary};
use crate::output::Screen;
use crate::project::Project;
use crate::visible::visible;

/// How many pages of an agent's sessions are asked for: a bound for an agent that never comes to an end.
const MOST_PAGES: usize = 100;

pub(crate) async fn sessions(command: Sessions) -> Result<String, Failure> {
    match command {
        Sessions::List { agent, auth, protocol, cwd, limit, json, command } => {
            let cwd = cwd.map(|cwd| connect::directory(Some(&cwd))).transpose()?;
            if agent.is_some() || !command.is_empty() {
                let agent = NamedAgent { name: agent, command, auth, protocol };
                return kept_by_agent(&agent, cwd.as_deref(), limit, json).await;
            }
            list(cwd.as_deref(), limit, json)
        }
        Sessions::Show { id } => show(&journal::find(&id)?),
        Sessions::Export { id, format } => export(&journal::find(&id)?, format),
    }
}

/// A run as a line of JSON.
#[derive(Serialize)]
struct Row<'a> {
    run: &'a str,
    time: &'a str,
    agent: &'a str,
    cwd: &'a str,
    session_id: Option<&'a str>,
    prompt: Option<&'a str>,
    status: Option<crate::event::Status>,
    stop_reason: Option<&'a str>,
    duration_ms: Option<u64>,
}

fn list(cwd: Option<&Path>, limit: usize, json: bool) -> Result<String, Failure> {
    let mut text = String::new();
    let mut shown = 0;
    for run in journal::runs()? {
        if shown == limit {
            break;
        }
        let Some(summary) = journal::summary(&run)? else { continue };
        if cwd.is_some_and(|cwd| Path::new(&summary.start.cwd) != cwd) {
            continue;
        }
        shown += 1;
        if json {
            text += &json_row(&summary);
        } else {
            text += &text_row(&summary);
        }
    }
    if shown == 0 && !json {
        eprintln!("no runs yet\nhint: `attache run --agent NAME \"…\"` makes one");
    }
    Ok(text)
}

fn json_row(summary: &Summary) -> String {
    let result = summary.result.as_deref();
    let row = Row {
        run: &summary.start.run,
        time: &summary.start.time,
        agent: &summary.start.agent,
        cwd: &summary.start.cwd,
        session_id: summary.session.as_deref(),
        prompt: summary.prompt.as_deref(),
        status: result.map(|result| result.status),
        stop_reason: result.and_then(|result| result.stop_reason.as_deref()),
        duration_ms: result.map(|result| result.duration_ms),
    };
    serde_json::to_string(&row).expect("rows have string keys") + "\n"
}

fn text_row(summary: &Summary) -> String {
    let status = match &summary.result {
        Some(result) => status_word(result.status),
        None => "cut off".into(),
    };
    let prompt: String = summary.prompt.as_deref().unwrap_or_default().chars().take(60).collect();
    let prompt = visible(&prompt).replace(['\n', '\t'], " ");
    let time = summary.start.time.get(..16).unwrap_or(&summary.start.time).replace('T', " ");
    format!("{}  {time}  {:<10}  {status:<10}  {prompt}\n", summary.start.run, visible(&summary.start.agent))
}

fn status_word(status: crate::event::Status) -> String {
    serde_json::to_string(&status).unwrap_or_default().trim_matches('"').replace('_', " ")
}

/// What the agent offers by `session/list`.
async fn kept_by_agent(agent: &NamedAgent, cwd: Option<&Path>, limit: usize, json: bool) -> Result<String, Failure> {
    let directory: PathBuf = connect::directory(cwd)?;
    let project = Project::find(&directory)?;
    let spec = crate::agents::resolve(agent.name.as_deref(), &agent.command, &project)?;
    let opening = Opening::new(&spec, &directory, agent.protocol);
    let connection = crate::auth::start(connect::client(), &opening, agent.auth.as_deref()).await?;
    let (mut cursor, mut text, mut shown) = (None, String::new(), 0);
    for _ in 0..MOST_PAGES {
        let cwd = cwd.map(|cwd| cwd.display().to_string());
        let request = ListSessionsRequest { cwd, cursor, ..ListSessionsRequest::new() };
        let page = connection.list_sessions(&request).await;
        let page = page.map_err(|error| crate::auth::explain(error, &connection, &spec))?;
        for session in page.sessions.iter().take(limit - shown) {
            shown += 1;
            if json {
                let row = serde_json::json!({
                    "session_id": session.session_id.as_str(), "cwd": session.cwd,
                    "title": session.title, "updated_at": session.updated_at,
                });
                text += &format!("{row}\n");
            } else {
                let time = session.updated_at.as_deref().unwrap_or("-");
                let title = session.title.as_deref().unwrap_or("(no title)");
                let line = format!("{}  {time}  {}  {title}", session.session_id, session.cwd);
                text += &(visible(&line).replace(['\n', '\t'], " ") + "\n");
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() || shown == limit {
            break;
        }
    }
    connection.shutdown().await;
    if shown == 0 && !json {
        eprintln!("the agent keeps no sessions here");
    }
    Ok(text)
}

/// An earlier run as `run -o text` would have shown it.
fn show(run: &str) -> Result<String, Failure> {
    let text = markdown(run)?;
    Ok(if Screen::here().out { visible(&text).into_owned() } else { text })
}

fn export(run: &str, format: ExportFormat) -> Result<String, Failure> {
    match format {
        ExportFormat::Markdown => markdown(run),
        ExportFormat::Json => {
            let line = |line: Line| serde_json::to_string(&line).expect("events have string keys") + "\n";
            Ok(journal::lines(run)?.map(line).collect())
        }
    }
}

/// What a document is being written: consecutive pieces of one kind belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    User,
    Text,
    Thought,
    Other,
}

fn markdown(run: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let mut part = Part::None;
    let mut begin = |text: &mut String, next: Part, heading: &str| {
        if next != part || next == Part::Other {
            if !text.is_empty() {
                text.truncate(text.trim_end().len());
                text.push_str("\n\n");
            }
            text.push_str(heading);
        }
        part = next;
    };
    let mut tools = HashMap::new();
    for line in journal::lines(run)? {
        match line.event {
            Event::Start(start) => {
                let _ = write!(
                    text,
                    "# Run {}\n\n- agent: {}\n- directory: `{}`\n- time: {}",
                    start.run, start.agent, start.cwd, start.time
                );
            }
            Event::Session(session) => {
                let _ = write!(text, "\n- session: `{}`", session.id);
            }
            Event::User(piece) => {
                begin(&mut text, Part::User, "## Prompt\n\n");
                text.push_str(&piece.text);
            }
            Event::Text(piece) => {
                begin(&mut text, Part::Text, "## Agent\n\n");
                text.push_str(&piece.text);
            }
            Event::Thought(piece) => {
                begin(&mut text, Part::Thought, "## Thought\n\n");
                text.push_str(&piece.text);
            }
            Event::Tool(tool) => {
                let Some(shown) = tool_end(tool, &mut tools) else { continue };
                begin(&mut text, Part::Other, &shown);
            }
            Event::Permission(permission) => {
                let word = match permission.answer {
                    Answer::Allowed => "Allowed",
                    Answer::Denied => "Denied",
                    Answer::Cancelled => "Cancelled",
                };
                let shown = format!("{word}: {} ({})", permission.what, permission.reason);
                begin(&mut text, Part::Other, &shown);
            }
            Event::File(file) => {
                let verb = match file.operation {
                    FileOperation::Read => "Read",
                    FileOperation::Write => "Wrote",
                };
                let error = file.error.map(|error| format!(", not done: {error}")).unwrap_or_default();
                begin(&mut text, Part::Other, &format!("{verb} `{}`{error}", file.path));
            }
            Event::Command(command) => {
                let mut shown = command.command.map(|line| fenced("$ ", &line, "sh")).unwrap_or_default();
                if let Some(tail) = &command.tail {
                    shown += &fenced("", tail, "text");
                }
                match (command.exit_code, command.signal) {
                    (Some(code), _) => shown += &format!("Exit code {code}"),
                    (None, Some(signal)) => shown += &format!("Ended by {signal}"),
                    (None, None) => {}
                }
                begin(&mut text, Part::Other, &shown);
            }
            Event::Plan(plan) => {
                let mark = |entry: &crate::event::PlanEntry| match entry.status.as_deref() {
                    Some("completed") => format!("- [x] {}\n", entry.text),
                    _ => format!("- [ ] {}\n", entry.text),
                };
                begin(&mut text, Part::Other, &plan.entries.iter().map(mark).collect::<String>());
            }
            Event::Notice(notice) => begin(&mut text, Part::Other, &format!("> {}", notice.text)),
            Event::Result(result) => {
                let status = status_word(result.status);
                let error = result.error.map(|error| format!(": {}", error.message)).unwrap_or_default();
                let time = result.duration_ms as f64 / 1000.0;
                begin(&mut text, Part::Other, &format!("---\n\n{status} after {time:.1} s{error}"));
            }
            Event::Agent(_) | Event::ToolOutput(_) | Event::CommandOutput(_) | Event::Usage(_) => {}
        }
    }
    if text.is_empty() {
        return Err(Failure::new(Code::NotFound, format!("the record of run `{run}` is empty")));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text)
}

/// A tool call is shown once, when it has ended, with all that was said about it.
fn tool_end(tool: Tool, known: &mut HashMap<String, Tool>) -> Option<String> {
    let entry = known.entry(tool.id.clone()).or_default();
    entry.title = tool.title.or(entry.title.take());
    entry.output = tool.output.or(entry.output.take());
    let changes = entry.changes.get_or_insert_default();
    for change in tool.changes.into_iter().flatten() {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    let status = tool.status.filter(|status| matches!(status.as_str(), "completed" | "failed" | "cancelled"))?;
    let whole = known.remove(&tool.id)?;
    let mut shown = format!("**{}** ({status})\n\n", whole.title.unwrap_or_default().replace('\n', " "));
    for change in whole.changes.iter().flatten() {
        match &change.patch {
            Some(patch) => shown += &fenced("", patch, "diff"),
            None => shown += &format!("Changed `{}`\n\n", change.paths.join("`, `")),
        }
    }
    if let Some(output) = &whole.output {
        shown += &fenced("", output, "text");
    }
    Some(shown)
}

/// A block of code whose fence is longer than any in it, so that its content cannot end it.
fn fenced(prefix: &str, text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{prefix}{}\n{fence}\n\n", text.trim_end())
}
