//! `find_files`: the files whose names fit a pattern.

use attache::model::tool::{ToolCallContent, ToolKind};
use attache_host::files::{EntryKind, Files};
use attache_host::permission::visible;
use serde_json::json;

use super::pattern::Pattern;
use crate::tools::arguments::Arguments;
use crate::tools::{Outcome, Prepared, Refusal, excerpt, first_items};
use crate::workspace::{Stop, Target, Walk, Workspace, bounded, refusal, shortened};

/// How many files are shown.
const MOST: usize = 1_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Find {
    target: Target,
    pattern: String,
}

pub(super) async fn prepare(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<Find>, Refusal> {
    let pattern = arguments.text("pattern")?.into_owned();
    Pattern::new(&pattern)?;
    let target = workspace.target(&arguments.optional_text("path")?.unwrap_or(".".into())).await?;
    match target.kind() {
        Some(EntryKind::Directory) => {}
        None => return Err(Refusal(format!("there is no directory `{}`", target.name))),
        Some(_) => return Err(Refusal(format!("`{}` is not a directory", target.name))),
    }
    Ok(Prepared {
        title: title(&target, &pattern),
        kind: ToolKind::Search,
        locations: vec![target.location(None)],
        content: Vec::new(),
        actions: target.actions(ToolKind::Search),
        work: Find { target, pattern },
    })
}

pub(super) fn title(target: &Target, pattern: &str) -> String {
    format!("Find `{}` in `{}`", visible(&shortened(pattern, 100)), target.name)
}

pub(super) async fn perform(workspace: &Workspace, work: Find) -> Result<Outcome, Refusal> {
    let Find { target, pattern } = work;
    let wanted = Pattern::new(&pattern)?;
    let (files, start) = (root_for(workspace, &target)?, target.real.clone());
    let name = target.name.clone();
    let found = bounded(move |stop: &Stop| {
        let mut walk = Walk::new(&files, &start, stop)?;
        let mut paths = Vec::new();
        let mut has_more = false;
        for file in walk.by_ref().filter(|file| wanted.is_for(&file.relative)) {
            if paths.len() == MOST {
                has_more = true;
                break;
            }
            paths.push(below(&name, &file.relative));
        }
        Ok((paths, has_more, walk.is_cut, walk.unreadable))
    });
    let (mut lines, has_more, is_cut, unreadable): (Vec<String>, bool, bool, usize) =
        found.await?.map_err(|error| refusal(&error))?;
    let raw = json!({
        "path": target.path,
        "pattern": shortened(&pattern, 200),
        "files": first_items(&lines),
        "total": lines.len(),
        "truncated": has_more || is_cut,
    });
    let summary = match lines.len() {
        0 => format!("no file beneath `{}` fits the pattern", target.name),
        1 => "1 file".into(),
        count => format!("{count} files"),
    };
    let mut notes = Vec::new();
    if has_more {
        notes.push(format!("there are more than these {MOST} files: use a narrower pattern or path"));
    }
    notes.extend(walk_notes(is_cut, unreadable));
    lines.extend(notes.iter().map(|note| format!("[{note}]")));
    let found = lines.join("\n");
    let content = std::iter::once(ToolCallContent::text(summary.as_str()));
    let content = content.chain((!found.is_empty()).then(|| excerpt("", &found, 0))).collect();
    let text = if lines.len() == notes.len() { [vec![summary], lines].concat().join("\n") } else { found };
    Ok(Outcome { content: Some(content), raw: Some(raw), ..Outcome::done(text) })
}

/// The files to walk through. A directory outside that was allowed is a root of its own for this.
pub(super) fn root_for(workspace: &Workspace, target: &Target) -> Result<Files, Refusal> {
    if target.is_inside() || target.kind() != Some(EntryKind::Directory) {
        return Ok(workspace.files_for(&[target]));
    }
    let files = Files::open(&target.real, &[]).map_err(|error| refusal(&error))?;
    // It was a directory without links; if it is a link by now, it is not what was allowed.
    if files.roots().next() != Some(target.real.as_path()) {
        return Err(Refusal(format!("`{}` has changed meanwhile", target.name)));
    }
    Ok(files)
}

/// The name of a file beneath a directory, for the model.
pub(super) fn below(directory: &str, relative: &std::path::Path) -> String {
    let relative = visible(&relative.to_string_lossy());
    if directory == "." { relative } else { format!("{}/{relative}", directory.trim_end_matches('/')) }
}

/// What the model has to know of a walk that did not see everything.
pub(super) fn walk_notes(is_cut: bool, unreadable: usize) -> Vec<String> {
    let cut = is_cut.then(|| "not everything was looked at, there is too much: use a narrower path".to_owned());
    let unreadable = (unreadable > 0).then(|| format!("directories that could not be read: {unreadable}"));
    cut.into_iter().chain(unreadable).collect()
}
