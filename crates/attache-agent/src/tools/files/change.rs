//! `write_file` and `edit_file`: a new text for a file.

use attache::model::diff::Diff;
use attache::model::tool::{ToolCallContent, ToolKind};

use super::arguments::Arguments;
use super::edit;
use crate::tools::{Outcome, Prepared, Refusal};
use crate::workspace::{Digest, TEXT_LIMIT, Target, Text, Workspace, blocking, changed, check_file, check_size};

/// A new text for a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    target: Target,
    /// The text that it replaces; `None` for a file that is new.
    before: Option<Digest>,
    after: Text,
    /// What the model is told when it is done.
    message: String,
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
    let target = workspace.target(arguments.text("path")?).await?;
    let content = arguments.text("content")?;
    if content.len() > TEXT_LIMIT {
        return Err(Refusal(format!("the content has more than {} MiB", TEXT_LIMIT >> 20)));
    }
    let name = &target.name;
    if target.info.is_none() {
        let lines = content.lines().count();
        let (title, message) = (format!("Create `{name}`"), format!("`{name}` is created with {lines} lines"));
        return Ok(prepared(title, target, None, Text::new(content), message));
    }
    let old = known_text(workspace, &target).await?;
    let after = old.with(content);
    if after.content == old.content {
        return Err(Refusal(format!("`{name}` has this content already")));
    }
    let (title, message) = (format!("Write `{name}`"), format!("`{name}` is written"));
    Ok(prepared(title, target, Some(old.content), after, message))
}

pub(super) async fn prepare_edit(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<Change>, Refusal> {
    let target = workspace.target(arguments.text("path")?).await?;
    let (old_text, new_text) = (arguments.text("old_text")?, arguments.text("new_text")?);
    let replace_all = arguments.flag("replace_all")?;
    let name = &target.name;
    if target.info.is_none() {
        return Err(Refusal(format!("there is no file `{name}`\nhint: use write_file to create it")));
    }
    let old = known_text(workspace, &target).await?;
    let (content, old_text, new_text) = (old.content.clone(), old_text.to_owned(), new_text.to_owned());
    // A large file takes its time.
    let edited = blocking(move || edit::edit(&content, &old_text, &new_text, replace_all)).await?;
    let edited = edited.map_err(|reason| Refusal(format!("`{name}`: {reason}")))?;
    if edited.content.len() > TEXT_LIMIT {
        return Err(Refusal(format!("`{name}` would have more than {} MiB", TEXT_LIMIT >> 20)));
    }
    let message = format!("`{name}` is edited: {}", edited.note);
    // The edit has the line ends of what is around it already.
    let after = Text { content: edited.content, encoding: old.encoding };
    Ok(prepared(format!("Edit `{name}`"), target, Some(old.content), after, message))
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
    let line = before.as_ref().map(|before| first_difference(before, &after.content));
    let digest = before.as_deref().map(Digest::of);
    let diff = Diff::text(target.path.as_str(), before, after.content.as_str());
    Prepared {
        title,
        kind: ToolKind::Edit,
        locations: vec![target.location(line)],
        content: vec![ToolCallContent::Diff(diff.into())],
        actions: target.actions(ToolKind::Edit),
        work: Change { target, before: digest, after, message },
    }
}

/// The first line that is not the same.
fn first_difference(before: &str, after: &str) -> usize {
    let same = before.bytes().zip(after.bytes()).take_while(|(one, two)| one == two).count();
    1 + before.as_bytes()[..same].iter().filter(|byte| **byte == b'\n').count()
}

pub(super) async fn perform(workspace: &Workspace, work: &Change) -> Result<Outcome, Refusal> {
    let Change { target, before, after, message } = work;
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
    workspace.write_text(target, after).await?;
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
