//! `attache agent sessions`: the sessions that the built-in agent keeps.

use std::collections::HashMap;
use std::path::Path;

use attache::model::tool::ToolCallContent;
use attache::model::update::SessionUpdate;
use attache_agent::store::{Entry, Query, Store, StoreError, Summary};
use attache_agent::{Config, delete_session};
use serde::Serialize;

use crate::agents::print_lines;
use crate::cli::{AgentSessions, LogFormat};
use crate::document::Document;
use crate::event::{self, Event, Text, Tool};
use crate::exit::{Code, Failure};
use crate::output::Screen;
use crate::visible::{self, one_line, visible};
use crate::{connect, paths};

pub(super) fn run(command: AgentSessions) -> Result<(), Failure> {
    let config = Config::new(paths::config()?, paths::state()?);
    let store = Store::open(config.sessions_dir()).map_err(failed)?;
    match command {
        AgentSessions::List { cwd, limit, json } => list(&store, cwd.as_deref(), limit.into(), json),
        AgentSessions::Export { id, format } => export(&store, &meant(&store, &id)?, format),
        AgentSessions::Delete { id } => {
            // To delete what is not there is fine for the store; a person has mistyped.
            if store.salvage(&id).is_err_and(|error| matches!(error, StoreError::NotFound(_))) {
                return Err(failed(StoreError::NotFound(id)));
            }
            delete_session(&config, &store, &id).map_err(failed)?;
            eprintln!("deleted");
            Ok(())
        }
    }
}

fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::NotFound(id) => {
            let what = format!("no session `{}`", one_line(&id));
            Failure::new(Code::NotFound, format!("{what}\nhint: `attache agent sessions list` has them"))
        }
        StoreError::WrongId(_) => Failure::new(Code::NotFound, error.to_string()),
        StoreError::Busy(_) => Failure::usage("the session is open now\nhint: close it in your editor first"),
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

fn list(store: &Store, cwd: Option<&Path>, limit: usize, json: bool) -> Result<(), Failure> {
    let cwd = match cwd {
        Some(cwd) => Some(connect::directory(Some(cwd))?.to_string_lossy().into_owned()),
        None => None,
    };
    let page = store.list(&Query { cwd, cursor: None, limit }).map_err(failed)?;
    if page.sessions.is_empty() && !json {
        eprintln!(
            "no sessions yet\nhint: `attache run \"…\"` makes one, and so does every editor that starts the agent"
        );
    }
    print_lines(page.sessions.iter().map(if json { json_row } else { text_row }))
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

/// The one session whose id begins like this.
fn meant(store: &Store, start: &str) -> Result<String, Failure> {
    let page = store.list(&Query { cwd: None, cursor: None, limit: usize::MAX }).map_err(failed)?;
    let found: Vec<String> = page.sessions.into_iter().map(|summary| summary.id).collect();
    let mut alike = found.iter().filter(|id| id.starts_with(start) && !start.is_empty());
    match (alike.next(), alike.next()) {
        (Some(id), None) => Ok(id.clone()),
        (Some(_), Some(_)) if !found.iter().any(|id| id == start) => Err(Failure::usage(format!(
            "more than one session begins with `{}`\nhint: give more of it",
            one_line(start)
        ))),
        // A damaged one is in no list, and can be read by its whole id as far as it goes.
        _ => Ok(start.into()),
    }
}

fn export(store: &Store, id: &str, format: LogFormat) -> Result<(), Failure> {
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
