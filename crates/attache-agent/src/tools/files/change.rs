//! `write_file` and `edit_file`: a new text for a file.

use std::time::Duration;

use attache::model::diff::Diff;
use attache::model::tool::{ToolCallContent, ToolKind};

use super::FOR_SMALL;
use super::edit::{self, Replacement};
use similar::ChangeTag;

use crate::tools::arguments::Arguments;
use crate::tools::{Outcome, Prepared, Refusal};
use crate::workspace::{
    Digest, TEXT_LIMIT, Target, Text, Workspace, blocking, changed, check_file, check_size, shortened,
};

/// More edits than this in one call are no edit but a new file.
const MOST_EDITS: usize = 100;

/// How many lines of a change a small model is shown, and how long is looked for them.
const MOST_CHANGES: usize = 30;
const DIFFERENCE: Duration = Duration::from_millis(200);

/// A new text for a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    target: Target,
    /// The text that it replaces; `None` for a file that is new.
    before: Option<Digest>,
    after: Text,
    /// What the model is told when it is done.
    message: String,
    /// Whether anything is different after it.
    is_change: bool,
}

impl Change {
    pub(super) fn target(&self) -> &Target {
        &self.target
    }
}

pub(super) async fn prepare_write(
    workspace: &Workspace,
    arguments: Arguments<'_>,
) -> Result<Prepared<Change>, Refusal> {
    let target = workspace.target(&arguments.text("path")?).await?;
    if arguments.flag(FOR_SMALL)? && arguments.optional_text("content")?.is_none() {
        return Err(Refusal(
            "nothing was written, because no whole text for it was given. If nothing has to change, finish.".into(),
        ));
    }
    let content = arguments.text("content")?;
    if content.len() > TEXT_LIMIT {
        return Err(Refusal(format!("the content has more than {} MiB", TEXT_LIMIT >> 20)));
    }
    let name = &target.name;
    if target.info.is_none() {
        let lines = content.lines().count();
        let message = format!("`{name}` is created with {lines} lines");
        return Ok(prepared(write_title(&target), target, None, Text::new(content), message));
    }
    let old = known_text(workspace, &target).await?;
    let for_small = arguments.flag(FOR_SMALL)?;
    let after = old.with(content);
    if after.content != old.content {
        workspace.check_whole(&target)?;
    }
    let mut message = format!("`{name}` is written");
    if for_small {
        message.push_str(&format!(". What has changed:\n{}", changes(&old.content, &after.content)));
    }
    Ok(prepared(write_title(&target), target, Some(old.content), after, message))
}

pub(super) fn write_title(target: &Target) -> String {
    format!("{} `{}`", if target.info.is_none() { "Create" } else { "Write" }, target.name)
}

pub(super) fn edit_title(target: &Target) -> String {
    format!("Edit `{}`", target.name)
}

/// The lines that have changed, as far as they fit.
fn changes(before: &str, after: &str) -> String {
    let difference = similar::TextDiff::configure().timeout(DIFFERENCE).diff_lines(before, after);
    let lines = difference.iter_all_changes().filter_map(|change| {
        let mark = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        Some(format!("{mark}{}", shortened(change.value().trim_end_matches(['\r', '\n']), 200)))
    });
    let mut lines: Vec<String> = lines.take(MOST_CHANGES + 1).collect();
    if lines.len() > MOST_CHANGES {
        lines[MOST_CHANGES] = "…".into();
    }
    lines.join("\n")
}

pub(super) async fn prepare_edit(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<Change>, Refusal> {
    let target = workspace.target(&arguments.text("path")?).await?;
    let replacements = replacements(arguments)?;
    let name = &target.name;
    if target.info.is_none() {
        return Err(Refusal(format!("there is no file `{name}`\nhint: use write_file to create it")));
    }
    let old = known_text(workspace, &target).await?;
    let content = old.content.clone();
    // A large file takes its time.
    let edited = blocking(move || edit::edit_all(&content, &replacements)).await?;
    let edited = edited.map_err(|reason| Refusal(format!("`{name}`: {reason}")))?;
    if edited.content.len() > TEXT_LIMIT {
        return Err(Refusal(format!("`{name}` would have more than {} MiB", TEXT_LIMIT >> 20)));
    }
    let message = format!("`{name}` is edited: {}", edited.note);
    // The edit has the line ends of what is around it already.
    let after = Text { content: edited.content, encoding: old.encoding };
    Ok(prepared(edit_title(&target), target, Some(old.content), after, message))
}

/// What a call wants replaced: one thing, several, or what a patch says.
fn replacements(arguments: Arguments<'_>) -> Result<Vec<Replacement>, Refusal> {
    if let Some(patch) = arguments.optional_text("patch")?.filter(|patch| !patch.trim().is_empty()) {
        return edit::replacements(&patch).map_err(Refusal);
    }
    let one = |arguments: Arguments<'_>| {
        Ok(Replacement {
            old: arguments.text("old_text")?.into_owned(),
            new: arguments.text("new_text")?.into_owned(),
            replace_all: arguments.flag("replace_all")?,
        })
    };
    match &*arguments.list("edits")? {
        [] => Ok(vec![one(arguments)?]),
        edits if edits.len() > MOST_EDITS => Err(Refusal(format!("there can be at most {MOST_EDITS} edits at once"))),
        edits => edits.iter().map(|edit| one(Arguments::new(edit))).collect(),
    }
}

/// The text of a file that is to be changed, which the model has to know.
async fn known_text(workspace: &Workspace, target: &Target) -> Result<Text, Refusal> {
    check_file(target)?;
    check_size(target)?;
    // Before it is read: one that was never allowed to be read is not read for this.
    workspace.check_read(target)?;
    let text = workspace.read_text(target).await?;
    workspace.check_seen(target, &text.content)?;
    Ok(text)
}

fn prepared(title: String, target: Target, before: Option<String>, after: Text, message: String) -> Prepared<Change> {
    if before.as_ref() == Some(&after.content) {
        // Nothing to ask about, and nothing to do: what was wanted is the case.
        let message = format!(
            "`{}` has this content already, so nothing has changed. If the task is done, finish; else make the change.",
            target.name
        );
        let (locations, digest) = (vec![target.location(None)], Some(Digest::of(&after.content)));
        let work = Change { target, before: digest, after, message, is_change: false };
        return Prepared { title, kind: ToolKind::Edit, locations, content: Vec::new(), actions: Vec::new(), work };
    }
    let line = before.as_ref().map(|before| first_difference(before, &after.content));
    let digest = before.as_deref().map(Digest::of);
    let diff = Diff::text(target.path.as_str(), before, after.content.as_str());
    Prepared {
        title,
        kind: ToolKind::Edit,
        locations: vec![target.location(line)],
        content: vec![ToolCallContent::Diff(diff.into())],
        actions: target.actions(ToolKind::Edit),
        work: Change { target, before: digest, after, message, is_change: true },
    }
}

/// The first line that is not the same.
fn first_difference(before: &str, after: &str) -> usize {
    let same = before.bytes().zip(after.bytes()).take_while(|(one, two)| one == two).count();
    1 + before.as_bytes()[..same].iter().filter(|byte| **byte == b'\n').count()
}

pub(super) async fn perform(workspace: &Workspace, work: &Change) -> Result<Outcome, Refusal> {
    let Change { target, before, after, message, is_change } = work;
    if !is_change {
        return Ok(Outcome::done(message.as_str()));
    }
    // A person may have been asked for minutes.
    let now = workspace.target(&target.path).await?;
    if now.real != target.real {
        return Err(changed(target));
    }
    match (before, now.info) {
        (None, None) => {}
        (None, Some(_)) => {
            return Err(Refusal(format!(
                "`{}` has been created by somebody else meanwhile: read it first",
                target.name
            )));
        }
        (Some(_), None) => return Err(Refusal(format!("`{}` has been removed meanwhile", target.name))),
        (Some(before), Some(_)) => {
            if Digest::of(&workspace.read_text(target).await?.content) != *before {
                return Err(changed(target));
            }
        }
    }
    let knows_all = before.is_none() || workspace.check_whole(target).is_ok();
    workspace.write_text(target, after).await?;
    workspace.note_written(target, &after.content, knows_all);
    Ok(Outcome::done(message.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_found() {
        for (before, after, line) in
            [("a\nb\n", "a\nc\n", 2), ("a\n", "a\nb\n", 2), ("é\nb", "è\nb", 1), ("a\nb", "a\n", 2), ("", "a", 1)]
        {
            assert_eq!(first_difference(before, after), line, "{before:?} {after:?}");
        }
    }
}
