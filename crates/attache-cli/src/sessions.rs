//! `attache sessions`: earlier runs from our own journal, and the sessions that an agent keeps.

use std::path::{Path, PathBuf};

use attache::model::session::ListSessionsRequest;
use serde::Serialize;

use crate::agent::sessions as kept;
use crate::cli::{ExportFormat, NamedAgent, Sessions};
use crate::connect::{self, Opening};
use crate::document::Document;
use crate::event::{Event, Line};
use crate::exit::{Code, Failure};
use crate::journal::{self, Summary};
use crate::output::Screen;
use crate::project::Project;
use crate::tty;
use crate::visible::{self, visible};

/// How many pages of an agent's sessions are asked for: a bound for an agent that never comes to an end.
const MOST_PAGES: usize = 100;

pub(crate) async fn sessions(command: Sessions) -> Result<String, Failure> {
    match command {
        Sessions::List { agent, auth, env, protocol, cwd, limit, json, command } => {
            let cwd = cwd.map(|cwd| connect::directory(Some(&cwd))).transpose()?;
            if agent.is_some() || !command.is_empty() {
                let agent = NamedAgent { name: agent, command, auth, env, protocol };
                return kept_by_agent(&agent, cwd.as_deref(), limit, json).await;
            }
            list(cwd.as_deref(), limit, json)
        }
        Sessions::Show { id } => show(&journal::find(&id)?),
        Sessions::Export { id, format } => export(&journal::find(&id)?, format),
        Sessions::Delete { id, older_than, yes, .. } => {
            let moment = kept::before(older_than);
            let (runs, sessions) = match (id, moment) {
                (Some(id), _) => (vec![journal::find(&id)?], Vec::new()),
                (None, Some(moment)) => (journal::runs_before(moment)?, kept::kept_before(Some(moment))?),
                (None, None) => (journal::runs()?, kept::kept_before(None)?),
            };
            delete(&runs, &sessions, yes).await.map(|()| String::new())
        }
    }
}

/// Deletes the records of runs and sessions of our own agent after one yes. What cannot be deleted is told, and keeps none of
/// the others.
async fn delete(runs: &[String], sessions: &[String], yes: bool) -> Result<(), Failure> {
    let records = match runs {
        [] => None,
        [run] => Some(format!("the record of run `{run}`")),
        runs => Some(format!("the records of {} runs", runs.len())),
    };
    let sessions_too = (!sessions.is_empty()).then(|| kept::counted(sessions.len()));
    let what: Vec<String> = records.into_iter().chain(sessions_too).collect();
    if what.is_empty() {
        eprintln!("there is nothing to delete");
        return Ok(());
    }
    if !tty::confirm(&format!("Delete {}? [y] yes   [N] no: ", what.join(" and ")), yes).await? {
        return Err(Failure::new(Code::Denied, "nothing is deleted"));
    }
    let failures: Vec<Failure> = runs.iter().filter_map(|run| journal::delete(run).err()).collect();
    let deleted = runs.len() - failures.len();
    let mut failure = failures.into_iter().next();
    let mut also = String::new();
    if !sessions.is_empty() {
        let (deleted, other) = kept::delete_all(sessions)?;
        also = format!(" and {}", kept::counted(deleted));
        failure = failure.or(other);
    }
    eprintln!("deleted {deleted} {}{also}", if deleted == 1 { "run" } else { "runs" });
    failure.map_or(Ok(()), Err)
}

/// Says how many more there are than a list shows.
pub(crate) fn tell_more(more: usize, limit: usize) {
    if more > 0 {
        eprintln!("and {more} more\nhint: `-n {}` lists them all", limit.saturating_add(more));
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
    let (mut shown, mut more) = (0, 0);
    for run in journal::runs()? {
        // Without a directory, what is not shown need not be read.
        if shown == limit && cwd.is_none() {
            more += 1;
            continue;
        }
        let Some(summary) = journal::summary(&run)? else { continue };
        if cwd.is_some_and(|cwd| Path::new(&summary.start.cwd) != cwd) {
            continue;
        }
        if shown == limit {
            more += 1;
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
        eprintln!("no runs yet\nhint: `attache run \"…\"` makes one");
    }
    tell_more(more, limit);
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
    visible::json(&row) + "\n"
}

fn text_row(summary: &Summary) -> String {
    let status = match &summary.result {
        Some(result) => result.status.words(),
        None => "cut off".into(),
    };
    let prompt: String = summary.prompt.as_deref().unwrap_or_default().chars().take(60).collect();
    let prompt = visible(&prompt).replace(['\n', '\t'], " ");
    let time = summary.start.time.get(..16).unwrap_or(&summary.start.time).replace('T', " ");
    format!("{}  {time}  {:<10}  {status:<10}  {prompt}\n", summary.start.run, visible(&summary.start.agent))
}

/// What the agent offers by `session/list`.
async fn kept_by_agent(agent: &NamedAgent, cwd: Option<&Path>, limit: usize, json: bool) -> Result<String, Failure> {
    let directory: PathBuf = connect::directory(cwd)?;
    let project = Project::find(&directory)?;
    let mut spec = crate::agents::resolve(agent.name.as_deref(), &agent.command, &project)?;
    spec.pass_env.extend_from_slice(&agent.env);
    let opening = Opening::new(&spec, &directory, agent.protocol);
    let connection = crate::auth::start(connect::client(), &opening, agent.auth.as_deref()).await?;
    let (mut cursor, mut text, mut shown, mut is_more) = (None, String::new(), 0, false);
    for _ in 0..MOST_PAGES {
        let cwd = cwd.map(|cwd| cwd.display().to_string());
        let request = ListSessionsRequest::new().with(|request| {
            request.cwd = cwd;
            request.cursor = cursor;
        });
        let page = connection.list_sessions(&request).await;
        let page = page.map_err(|error| crate::auth::explain(error, &connection, &spec))?;
        let taken = limit - shown;
        for session in page.sessions.iter().take(taken) {
            shown += 1;
            if json {
                let row = serde_json::json!({
                    "session_id": session.session_id.as_str(), "cwd": session.cwd,
                    "title": session.title, "updated_at": session.updated_at,
                });
                text += &(visible::json(&row) + "\n");
            } else {
                let time = session.updated_at.as_deref().unwrap_or("-");
                let title = session.title.as_deref().unwrap_or("(no title)");
                let line = format!("{}  {time}  {}  {title}", session.session_id, session.cwd);
                text += &(visible(&line).replace(['\n', '\t'], " ") + "\n");
            }
        }
        is_more = page.sessions.len() > taken || page.next_cursor.is_some();
        cursor = page.next_cursor;
        if cursor.is_none() || shown == limit {
            break;
        }
    }
    connection.shutdown().await;
    if shown == 0 && !json {
        eprintln!("the agent keeps no sessions here");
    }
    if is_more {
        eprintln!("there are more\nhint: `-n {}` lists more of them", limit.saturating_mul(2).max(1));
    }
    Ok(text)
}

/// An earlier run as a document, harmless where it is looked at.
fn show(run: &str) -> Result<String, Failure> {
    let text = markdown(run)?;
    Ok(if Screen::here().out { visible(&text).into_owned() } else { text })
}

fn export(run: &str, format: ExportFormat) -> Result<String, Failure> {
    match format {
        ExportFormat::Markdown => show(run),
        ExportFormat::Json => {
            let line = |line: Line| visible::json(&line) + "\n";
            Ok(journal::lines(run)?.map(line).collect())
        }
    }
}

fn markdown(run: &str) -> Result<String, Failure> {
    let mut document = Document::default();
    for line in journal::lines(run)? {
        match line.event {
            Event::Start(start) => {
                let head = [("agent", start.agent), ("directory", format!("`{}`", start.cwd)), ("time", start.time)];
                document.head(&format!("Run {}", start.run), &head);
            }
            event => document.add(event),
        }
    }
    document.finish().ok_or_else(|| Failure::new(Code::NotFound, format!("the record of run `{run}` is empty")))
}
