//! `list_directory`: what is in one directory.

use attache::model::tool::{ToolCallContent, ToolKind};
use attache_host::files::EntryKind;
use attache_host::permission::visible;
use serde_json::json;

use crate::tools::arguments::Arguments;
use crate::tools::{Outcome, Prepared, Refusal, excerpt, first_items};
use crate::workspace::{Stop, Target, Walk, Workspace, bounded, refusal};

/// How many names are shown.
const MOST_SHOWN: usize = 1_000;

/// How many names are read. Which of more they are is chance, so that is said.
const MOST_READ: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct List {
    target: Target,
}

pub(super) async fn prepare(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<List>, Refusal> {
    let target = directory(workspace, arguments).await?;
    Ok(Prepared {
        title: title(&target),
        kind: ToolKind::Read,
        locations: vec![target.location(None)],
        content: Vec::new(),
        actions: target.actions(ToolKind::Read),
        work: List { target },
    })
}

pub(super) fn title(target: &Target) -> String {
    format!("List `{}`", target.name)
}

/// The directory that a call is about: the session's own if it names none.
async fn directory(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Target, Refusal> {
    let target = workspace.target(&arguments.optional_text("path")?.unwrap_or(".".into())).await?;
    match target.kind() {
        Some(EntryKind::Directory) => Ok(target),
        None => Err(Refusal(format!("there is no directory `{}`", target.name))),
        Some(_) => Err(Refusal(format!("`{}` is not a directory", target.name))),
    }
}

pub(super) async fn perform(workspace: &Workspace, work: List) -> Result<Outcome, Refusal> {
    let List { target } = work;
    let (files, real, name) = (workspace.files_for(&[&target]), target.real.clone(), target.name.clone());
    let shown = bounded(move |stop: &Stop| {
        let listing = files.list(&real, MOST_READ)?;
        let walk = Walk::new(&files, &real, stop)?;
        let mut lines = Vec::new();
        for entry in &listing.entries {
            let name = visible(&entry.name.to_string_lossy());
            let is_directory = entry.info.kind == EntryKind::Directory;
            let what = match entry.info.kind {
                EntryKind::Directory => format!("{name}/"),
                EntryKind::File => format!("{name} ({} bytes)", entry.info.size),
                EntryKind::Link => format!("{name} (link)"),
                EntryKind::Other => format!("{name} (device, FIFO or socket)"),
            };
            let note = if walk.ignores(&real.join(&entry.name), is_directory) { " (ignored by git)" } else { "" };
            lines.push(format!("{what}{note}"));
        }
        Ok((lines, listing.is_cut))
    });
    let (mut lines, is_cut): (Vec<String>, bool) = shown.await?.map_err(|error| refusal(&error))?;
    let count = lines.len();
    if count == 0 {
        let text = format!("`{name}` is empty");
        let content = Some(vec![ToolCallContent::text(text.as_str())]);
        let raw = Some(json!({ "path": target.path, "total": 0, "truncated": false }));
        return Ok(Outcome { content, raw, ..Outcome::done(text) });
    }
    let raw = Some(json!({
        "path": target.path,
        "entries": first_items(&lines),
        "total": count,
        "truncated": count > MOST_SHOWN || is_cut,
    }));
    lines.truncate(MOST_SHOWN);
    if count > MOST_SHOWN || is_cut {
        let more = if is_cut { "at least " } else { "" };
        lines.push(format!("[{} of {more}{count} names are shown]", MOST_SHOWN.min(count)));
    }
    let found = lines.join("\n");
    let content = Some(vec![excerpt("", &found, 0)]);
    Ok(Outcome { content, raw, ..Outcome::done(format!("`{name}`:\n{found}")) })
}
