//! The sessions that the built-in agent keeps: for `attache sessions`, and for `attache agent sessions`, its name in the
//! first version.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use attache::model::tool::ToolCallContent;
use attache::model::update::SessionUpdate;
use attache_agent::store::{Entry, FileStore, Query, Store, StoreError, Summary};
use attache_agent::{Config, delete_session};
use serde::Serialize;

use crate::agents::print_lines;
use crate::cli::{AgentSessions, LogFormat};
use crate::document::Document;
use crate::event::{self, Event, Text, Tool};
use crate::exit::{Code, Failure};
use crate::output::Screen;
use crate::visible::{self, one_line, visible};
use crate::{connect, ids, paths, tty};

pub(super) async fn run(command: AgentSessions) -> Result<(), Failure> {
    let config = config()?;
    let store = FileStore::open(config.sessions_dir()).map_err(failed)?.of_everyone();
    match command {
        AgentSessions::List { cwd, limit, json } => list(&store, cwd.as_deref(), limit.into(), json),
        AgentSessions::Export { id, format } => export(&meant(&id)?, format),
        AgentSessions::Delete { id: Some(id), .. } => {
            let id = meant(&id)?;
            // To delete what is not there is fine for the store; a person has mistyped.
            if store.salvage(&id).is_err_and(|error| matches!(error, StoreError::NotFound(_))) {
                return Err(failed(StoreError::NotFound(id)));
            }
            delete_session(&config, &store, &id).map_err(failed)?;
            eprintln!("deleted");
            Ok(())
        }
        AgentSessions::Delete { older_than, yes, .. } => {
            let ids = kept_before(before(older_than))?;
            if ids.is_empty() {
                eprintln!("there is nothing to delete");
                return Ok(());
            }
            if !tty::confirm(&format!("Delete {}? [y] yes   [N] no: ", counted(ids.len())), yes).await? {
                return Err(Failure::new(Code::Denied, "nothing is deleted"));
            }
            let (deleted, failure) = delete_all(&ids)?;
            eprintln!("deleted {}", counted(deleted));
            failure.map_or(Ok(()), Err)
        }
    }
}

fn config() -> Result<Config, Failure> {
    Ok(Config::new(paths::config()?, paths::state()?))
}

/// The moment that is this long ago. What is older than time itself is nothing.
pub(crate) fn before(age: Option<Duration>) -> Option<SystemTime> {
    age.map(|age| SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH))
}

/// Some sessions in words.
pub(crate) fn counted(count: usize) -> String {
    if count == 1 {
        "1 session of the built-in agent".into()
    } else {
        format!("{count} sessions of the built-in agent")
    }
}

/// The sessions to which nothing was added since a moment, or all of them: also those that are damaged, which no list has.
pub(crate) fn kept_before(moment: Option<SystemTime>) -> Result<Vec<String>, Failure> {
    let directory = config()?.sessions_dir();
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::usage(format!("cannot read `{}`: {error}", directory.display()))),
    };
    let id = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_str()?.strip_suffix(".log")?.to_owned();
        let is_old = |moment| entry.metadata().and_then(|file| file.modified()).is_ok_and(|time| time < moment);
        moment.is_none_or(is_old).then_some(id)
    };
    Ok(entries.flatten().filter_map(id).collect())
}

/// All sessions, those first to which something was added last.
pub(crate) fn newest_first() -> Result<Vec<String>, Failure> {
    let directory = config()?.sessions_dir();
    let changed = |id: &String| directory.join(format!("{id}.log")).metadata().and_then(|file| file.modified()).ok();
    let mut ids = kept_before(None)?;
    ids.sort_by_cached_key(|id| std::cmp::Reverse(changed(id)));
    Ok(ids)
}

/// Deletes sessions. Returns how many are gone, and why one is not.
pub(crate) fn delete_all(ids: &[String]) -> Result<(usize, Option<Failure>), Failure> {
    let config = config()?;
    let store = FileStore::open(config.sessions_dir()).map_err(failed)?.of_everyone();
    let mut failures: Vec<StoreError> = ids.iter().filter_map(|id| delete_session(&config, &store, id).err()).collect();
    let deleted = ids.len() - failures.len();
    let more = failures.len().saturating_sub(1);
    let failure = (!failures.is_empty()).then(|| failed(failures.swap_remove(0)));
    let failure = failure.map(|mut failure| {
        if more > 0 {
            failure.message += &format!("\nand {more} more could not be deleted");
        }
        failure
    });
    Ok((deleted, failure))
}

fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::NotFound(id) => {
            let what = format!("no session `{}`", one_line(&id));
            Failure::new(Code::NotFound, format!("{what}\nhint: `attache sessions list` has them"))
        }
        StoreError::WrongId(_) => Failure::new(Code::NotFound, error.to_string()),
        StoreError::Busy { .. } => Failure::usage("the session is open now\nhint: close it in your editor first"),
        error => Failure::usage(error.to_string()),
    }
}

/// A session as a line of JSON.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    cwd: &'a str,
    title: Option<&'a str>,
    created: &'a str,
    updated: &'a str,
    prompts: u64,
}

fn list(store: &dyn Store, cwd: Option<&Path>, limit: usize, json: bool) -> Result<(), Failure> {
    let cwd = match cwd {
        Some(cwd) => Some(connect::directory(Some(cwd))?.to_string_lossy().into_owned()),
        None => None,
    };
    let mut page = store.list(&Query { cwd, cursor: None, limit: usize::MAX }).map_err(failed)?;
    let more = page.sessions.len().saturating_sub(limit);
    page.sessions.truncate(limit);
    if page.sessions.is_empty() && !json {
        eprintln!(
            "no sessions yet\nhint: `attache run \"…\"` makes one, and so does every editor that starts the agent"
        );
    }
    print_lines(page.sessions.iter().map(if json { json_row } else { text_row }))?;
    crate::sessions::tell_more(more, limit);
    Ok(())
}

fn json_row(summary: &Summary) -> String {
    visible::json(&Row {
        id: &summary.id,
        cwd: &summary.cwd,
        title: summary.title.as_deref(),
        created: &summary.created,
        updated: &summary.updated,
        prompts: summary.prompts,
    })
}

fn text_row(summary: &Summary) -> String {
    let time = summary.updated.get(..16).unwrap_or(&summary.updated).replace('T', " ");
    let title: String = one_line(summary.title.as_deref().unwrap_or("(no prompt yet)")).chars().take(60).collect();
    format!("{}  {time}  {:>3}  {title}  {}", summary.id, summary.prompts, one_line(&summary.cwd))
}

/// The session that an id means. One that is not known may still be damaged, and be read as far as it goes.
fn meant(id: &str) -> Result<String, Failure> {
    Ok(ids::kept_session(id)?.unwrap_or_else(|| id.into()))
}

/// The sessions that are kept, those first to which something was added last.
pub(crate) fn summaries(cwd: Option<&Path>) -> Result<Vec<Summary>, Failure> {
    let directory = config()?.sessions_dir();
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let cwd = cwd.map(|cwd| cwd.to_string_lossy().into_owned());
    let store = FileStore::open(directory).map_err(failed)?.of_everyone();
    Ok(store.list(&Query { cwd, cursor: None, limit: usize::MAX }).map_err(failed)?.sessions)
}

/// Prints a session.
pub(crate) fn export(id: &str, format: LogFormat) -> Result<(), Failure> {
    let store = FileStore::open(config()?.sessions_dir()).map_err(failed)?.of_everyone();
    let (entries, damage) = store.salvage(id).map_err(failed)?;
    match format {
        LogFormat::Json => {
            print_lines(
                entries.iter().filter_map(|entry| Some(visible::escaped(entry.to_json().ok()?.as_str()).into_owned())),
            )?;
        }
        LogFormat::Markdown => {
            let text = markdown(id, entries);
            crate::print(&if Screen::here().out { visible(&text) } else { text.as_str().into() })?;
        }
    }
    match damage {
        None => Ok(()),
        Some(damage) => Err(Failure::new(Code::Agent, format!("this is not all of it: {damage}"))),
    }
}

/// A session as a document for people.
fn markdown(id: &str, entries: Vec<Entry>) -> String {
    let mut document = Document::default();
    let title = entries.iter().rev().find_map(|entry| match entry {
        Entry::Title { title } => Some(one_line(title)),
        _ => None,
    });
    let mut rows = vec![("session", format!("`{id}`"))];
    if let Some(Entry::Opened(opened)) = entries.first() {
        rows.push(("directory", format!("`{}`", one_line(&opened.cwd))));
        rows.extend(opened.directories.iter().map(|other| ("also", format!("`{}`", one_line(other)))));
        rows.push(("begun", one_line(&opened.created)));
    }
    document.head(&title.unwrap_or_else(|| "Session".into()), &rows);
    // What stands for the terminal of a call comes after the end of the call, where it is to be shown.
    let mut instead: HashMap<String, String> = HashMap::new();
    for entry in &entries {
        if let Entry::Plain { update } = entry {
            let content = update.content.set().into_iter().flatten();
            let texts = content.filter_map(|part| match part {
                ToolCallContent::Content(block) => Some(event::text_of(&block.content)),
                _ => None,
            });
            instead.insert(update.tool_call_id.to_string(), texts.collect::<Vec<_>>().join("\n"));
        }
    }
    for entry in entries {
        match entry {
            Entry::Prompt { content, .. } => {
                let text = content.iter().map(event::text_of).collect::<Vec<_>>().join("\n\n");
                document.add(Event::User(Text { text, message_id: None }));
            }
            Entry::Update { update } => add_update(&mut document, &update, &instead),
            Entry::Set { option, value } => {
                document.paragraph(&format!("_{}: {}_", one_line(&option), one_line(&value)));
            }
            Entry::Compacted { .. } => document.paragraph("_From here on the model had a summary of what is above._"),
            Entry::TurnEnded { stop } if stop != "end_turn" => {
                document.paragraph(&format!("_The turn ended: {}._", one_line(&stop).replace('_', " ")));
            }
            _ => {}
        }
    }
    document.finish().unwrap_or_default()
}

fn add_update(document: &mut Document, update: &SessionUpdate, instead: &HashMap<String, String>) {
    match event::from_update(update) {
        // They are shown with their call.
        Some(Event::Command(_) | Event::CommandOutput(_)) | None => {}
        Some(Event::Tool(mut tool)) => {
            shorten(&mut tool, instead);
            document.add(Event::Tool(tool));
        }
        Some(event) => document.add(event),
    }
}

/// What is shown of a change or an output, in lines: the beginning, and the end.
const HEAD: usize = 30;
const TAIL: usize = 10;

fn shorten(tool: &mut Tool, instead: &HashMap<String, String>) {
    if let Some(text) = instead.get(&tool.id) {
        tool.output = Some(text.clone());
    }
    let patches = tool.changes.iter_mut().flatten().filter_map(|change| change.patch.as_mut());
    for text in patches.chain(&mut tool.output) {
        let lines: Vec<&str> = text.lines().collect();
        let left_out = lines.len().saturating_sub(HEAD + TAIL);
        if left_out > 1 {
            let (head, tail) = (lines[..HEAD].join("\n"), lines[lines.len() - TAIL..].join("\n"));
            *text = format!("{head}\n… {left_out} lines are left out here …\n{tail}");
        }
    }
}
