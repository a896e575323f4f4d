//! `attache sessions`: earlier runs from our own journal, and the sessions that an agent keeps.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::model::session::ListSessionsRequest;
use serde::Serialize;

use crate::agent::sessions as kept;
use crate::agents::BUILT_IN;
use crate::cli::{ExportFormat, LISTED_SESSIONS, LogFormat, NamedAgent, Sessions};
use crate::connect::{self, Opening};
use crate::document::Document;
use crate::event::{Event, Line};
use crate::exit::{Code, Failure};
use crate::ids::{self, Meant};
use crate::journal::{self, Summary};
use crate::output::Screen;
use crate::project::Project;
use crate::tty;
use crate::visible::{self, one_line, visible};

/// How many pages of an agent's sessions are asked for: a bound for an agent that never comes to an end.
const MOST_PAGES: usize = 100;

pub(crate) async fn sessions(command: Option<Sessions>) -> Result<String, Failure> {
    let Some(command) = command else { return list(None, LISTED_SESSIONS, false) };
    match command {
        Sessions::List { agent, auth, env, protocol, cwd, limit, json, command } => {
            let cwd = cwd.map(|cwd| connect::directory(Some(&cwd))).transpose()?;
            if agent.is_some() || !command.is_empty() {
                let agent = NamedAgent { name: agent, command, auth, env, protocol };
                return kept_by_agent(&agent, cwd.as_deref(), limit, json).await;
            }
            list(cwd.as_deref(), limit, json)
        }
        Sessions::Show { id } => print(&id, ExportFormat::Markdown),
        Sessions::Export { id, format } => print(&id, format),
        Sessions::Delete { ids, older_than, yes, .. } => {
            let moment = kept::before(older_than);
            let (runs, sessions) = match (ids.is_empty(), moment) {
                (false, _) => named(&ids)?,
                (true, Some(moment)) => (journal::runs_before(moment)?, kept::kept_before(Some(moment))?),
                (true, None) => (journal::runs()?, kept::kept_before(None)?),
            };
            delete(&runs, &sessions, yes).await.map(|()| String::new())
        }
        Sessions::Prune { older_than, keep, dry_run, yes } => prune(older_than, keep, dry_run, yes).await,
    }
}

/// How old what is pruned is when nothing else is said.
const PRUNED_AFTER: Duration = Duration::from_secs(30 * 86_400);

/// Deletes what is old, except for the newest.
async fn prune(older_than: Option<Duration>, keep: Option<usize>, dry_run: bool, yes: bool) -> Result<String, Failure> {
    // Who only says how many are to be kept has said enough.
    let moment = kept::before(older_than.or(keep.is_none().then_some(PRUNED_AFTER)));
    let is_newest = |all: Vec<String>| all.into_iter().take(keep.unwrap_or(0)).collect::<Vec<String>>();
    let (newest_runs, newest_sessions) = (is_newest(journal::runs()?), is_newest(kept::newest_first()?));
    let mut runs = moment.map_or_else(journal::runs, journal::runs_before)?;
    runs.retain(|run| !newest_runs.contains(run));
    let mut sessions = kept::kept_before(moment)?;
    sessions.retain(|session| !newest_sessions.contains(session));
    if dry_run {
        let lines = runs.iter().map(|run| format!("run {run}\n"));
        let text: String = lines.chain(sessions.iter().map(|id| format!("session {}\n", one_line(id)))).collect();
        match what(&runs, &sessions) {
            Some(what) => eprintln!("would delete {what}"),
            None => eprintln!("there is nothing to delete"),
        }
        return Ok(text);
    }
    delete(&runs, &sessions, yes).await.map(|()| String::new())
}

/// The runs and the sessions of the built-in agent that some ids stand for.
fn named(ids: &[String]) -> Result<(Vec<String>, Vec<String>), Failure> {
    let (mut runs, mut sessions) = (Vec::new(), Vec::new());
    let kept = ids::kept_by_built_in();
    for id in ids {
        match ids::find(id)? {
            Meant::Run(run) => {
                if let Some(session) = journal::session_of(&run).filter(|session| kept.contains(session)) {
                    eprintln!(
                        "note: its session stays; `attache sessions delete {}` deletes all of it",
                        one_line(&session)
                    );
                }
                runs.push(run);
            }
            Meant::Session(session) => {
                runs.extend(session.runs);
                if session.is_kept {
                    sessions.push(session.id);
                }
            }
        }
    }
    for list in [&mut runs, &mut sessions] {
        list.sort_unstable();
        list.dedup();
    }
    Ok((runs, sessions))
}

/// Runs and sessions in words; nothing for none.
fn what(runs: &[String], sessions: &[String]) -> Option<String> {
    let records = match runs {
        [] => None,
        [run] => Some(format!("the record of run `{run}`")),
        runs => Some(format!("the records of {} runs", runs.len())),
    };
    let sessions = (!sessions.is_empty()).then(|| kept::counted(sessions.len()));
    let what: Vec<String> = records.into_iter().chain(sessions).collect();
    (!what.is_empty()).then(|| what.join(" and "))
}

/// Deletes the records of runs and sessions of our own agent after one yes. What cannot be deleted is told, and keeps none of
/// the others.
async fn delete(runs: &[String], sessions: &[String], yes: bool) -> Result<(), Failure> {
    let Some(what) = what(runs, sessions) else {
        eprintln!("there is nothing to delete");
        return Ok(());
    };
    if !tty::confirm(&format!("Delete {what}? [y] yes   [N] no: "), yes).await? {
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

/// A run, or a session of the built-in agent that no run opened, as a line of JSON.
#[derive(Serialize)]
struct Row<'a> {
    run: Option<&'a str>,
    time: &'a str,
    agent: &'a str,
    cwd: &'a str,
    session_id: Option<&'a str>,
    prompt: Option<&'a str>,
    status: Option<crate::event::Status>,
    stop_reason: Option<&'a str>,
    duration_ms: Option<u64>,
}

/// Lists runs, and between them the sessions that no run has, by time.
fn list(cwd: Option<&Path>, limit: usize, json: bool) -> Result<String, Failure> {
    let mut page = Page { limit, ..Page::default() };
    let runs = journal::runs()?;
    let known: HashSet<String> = runs.iter().filter_map(|run| journal::session_of(run)).collect();
    let others = kept::summaries(cwd)?.into_iter().filter(|session| !known.contains(&session.id));
    let mut others = others.peekable();
    for run in runs {
        // Without a directory, what is not shown need not be read.
        if page.is_full() && cwd.is_none() {
            page.more += 1;
            continue;
        }
        let Some(summary) = journal::summary(&run)? else { continue };
        if cwd.is_some_and(|cwd| Path::new(&summary.start.cwd) != cwd) {
            continue;
        }
        while let Some(session) = others.next_if(|session| session.updated > summary.start.time) {
            page.add(|| session_row(&session, json));
        }
        page.add(|| if json { json_row(&summary) } else { text_row(&summary) });
    }
    others.for_each(|session| page.add(|| session_row(&session, json)));
    if page.shown == 0 && !json {
        eprintln!("no runs yet\nhint: `attache run \"…\"` makes one");
    }
    tell_more(page.more, limit);
    Ok(page.text)
}

/// As many rows as are to be shown, and how many more there are.
#[derive(Default)]
struct Page {
    text: String,
    limit: usize,
    shown: usize,
    more: usize,
}

impl Page {
    fn is_full(&self) -> bool {
        self.shown >= self.limit
    }

    fn add(&mut self, row: impl FnOnce() -> String) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        self.shown += 1;
        self.text += &row();
    }
}

fn json_row(summary: &Summary) -> String {
    let result = summary.result.as_deref();
    let row = Row {
        run: Some(&summary.start.run),
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
    let start = &summary.start;
    line(&start.run, &start.time, &start.agent, &status, summary.prompt.as_deref().unwrap_or_default())
}

fn session_row(session: &attache_agent::store::Summary, json: bool) -> String {
    let title = session.title.as_deref();
    if !json {
        return line(&session.id, &session.updated, BUILT_IN, "session", title.unwrap_or("(no prompt yet)"));
    }
    let row = Row {
        run: None,
        time: &session.updated,
        agent: BUILT_IN,
        cwd: &session.cwd,
        session_id: Some(&session.id),
        prompt: title,
        status: None,
        stop_reason: None,
        duration_ms: None,
    };
    visible::json(&row) + "\n"
}

fn line(id: &str, time: &str, agent: &str, status: &str, prompt: &str) -> String {
    let prompt: String = prompt.chars().take(60).collect();
    let prompt = visible(&prompt).replace(['\n', '\t'], " ");
    let time = time.get(..16).unwrap_or(time).replace('T', " ");
    format!("{}  {time}  {:<10}  {status:<10}  {prompt}\n", visible(id), visible(agent))
}

/// What the agent offers by `session/list`.
async fn kept_by_agent(agent: &NamedAgent, cwd: Option<&Path>, limit: usize, json: bool) -> Result<String, Failure> {
    let directory: PathBuf = connect::directory(cwd)?;
    let project = Project::find(&directory)?;
    let mut spec = crate::agents::resolve(agent.name.as_deref(), &agent.command, &project)?;
    spec.pass_env.extend_from_slice(&agent.env);
    spec.tell_download();
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

/// What an id stands for, as a document or as data. A session is all of it: what the built-in agent keeps, or else its
/// runs, one after the other.
fn print(id: &str, format: ExportFormat) -> Result<String, Failure> {
    let runs = match ids::find(id)? {
        Meant::Run(run) => vec![run],
        Meant::Session(session) if session.is_kept => {
            let format = match format {
                ExportFormat::Markdown => LogFormat::Markdown,
                ExportFormat::Json => LogFormat::Json,
            };
            return kept::export(&session.id, format).map(|()| String::new());
        }
        Meant::Session(session) => session.runs.into_iter().rev().collect(),
    };
    match format {
        ExportFormat::Markdown => {
            let documents = runs.iter().map(|run| markdown(run)).collect::<Result<Vec<String>, Failure>>()?;
            let text = documents.join("\n");
            Ok(if Screen::here().out { visible(&text).into_owned() } else { text })
        }
        ExportFormat::Json => {
            let mut text = String::new();
            for run in &runs {
                text.extend(journal::lines(run)?.map(|line: Line| visible::json(&line) + "\n"));
            }
            Ok(text)
        }
    }
}

fn markdown(run: &str) -> Result<String, Failure> {
    let mut document = Document::default();
    for line in journal::lines(run)?.filter(|line| !line.history) {
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
