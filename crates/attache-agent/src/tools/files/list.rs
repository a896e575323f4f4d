//! `list_directory`: what is in one directory.

use attache::model::tool::ToolKind;
use attache_host::files::EntryKind;
use attache_host::permission::visible;

use crate::tools::arguments::Arguments;
use crate::tools::{Outcome, Prepared, Refusal};
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
        title: format!("List `{}`", target.name),
        kind: ToolKind::Read,
        locations: vec![target.location(None)],
        content: Vec::new(),
        actions: target.actions(ToolKind::Read),
        work: List { target },
    })
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
    let (mut lines, is_cut) = shown.await?.map_err(|error| refusal(&error))?;
    let count = lines.len();
    if count == 0 {
        return Ok(Outcome::done(format!("`{name}` is empty")));
    }
    lines.truncate(MOST_SHOWN);
    if count > MOST_SHOWN || is_cut {
        let more = if is_cut { "at least " } else { "" };
        lines.push(format!("[{} of {more}{count} names are shown]", MOST_SHOWN.min(count)));
    }
    Ok(Outcome::done(format!("`{name}`:\n{}", lines.join("\n"))))
}
