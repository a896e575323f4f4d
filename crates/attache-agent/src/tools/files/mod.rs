//! The tools for files: read, write, edit, delete, move, list, find and search.

mod change;
mod edit;
mod find;
mod list;
mod near;
mod pattern;
mod read;
mod relocate;
mod search;
mod specs;

use std::borrow::Cow;

use attache::model::tool::ToolKind;
use serde_json::Value;

use super::arguments::Arguments;
use super::{Introduction, Outcome, Prepared, Refusal};
use crate::workspace::{Target, Workspace};

pub use specs::specs;

/// The argument that is set for small models, which are not told of it: they get less of a file, are shown what they have
/// changed, and cannot say what a command needs.
pub(crate) const FOR_SMALL: &str = "for_small_model";

/// The same for rules, which show a file as they get it.
pub(crate) const WITHOUT_NUMBERS: &str = "without_numbers";

/// A call of one of these tools that has been looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct FileWork(Work);

#[derive(Debug, Clone, PartialEq)]
enum Work {
    Read(Box<read::Read>),
    Change(Box<change::Change>),
    Delete(Box<relocate::Delete>),
    Move(Box<relocate::Move>),
    List(Box<list::List>),
    Find(Box<find::Find>),
    Search(Box<search::Search>),
}

impl FileWork {
    /// What the work changes, and nothing else does it change. A move is from the first to the second.
    pub(crate) fn changed_targets(&self) -> Vec<&Target> {
        match &self.0 {
            Work::Change(work) => vec![work.target()],
            Work::Delete(work) => vec![work.target()],
            Work::Move(work) => work.targets().into(),
            Work::Read(_) | Work::List(_) | Work::Find(_) | Work::Search(_) => Vec::new(),
        }
    }
}

/// Looks at a call. `None` if the tool is none of these.
///
/// Nothing is changed here, and nothing outside of the session's directories is opened.
pub async fn prepare(
    workspace: &Workspace,
    name: &str,
    arguments: &Value,
) -> Option<Result<Prepared<FileWork>, Refusal>> {
    let arguments = Arguments::new(arguments);
    Some(match name {
        "read_file" => wrapped(read::prepare(workspace, arguments).await, Work::Read),
        "write_file" => wrapped(change::prepare_write(workspace, arguments).await, Work::Change),
        "edit_file" => wrapped(change::prepare_edit(workspace, arguments).await, Work::Change),
        "delete_file" => wrapped(relocate::prepare_delete(workspace, arguments).await, Work::Delete),
        "move_file" => wrapped(relocate::prepare_move(workspace, arguments).await, Work::Move),
        "list_directory" => wrapped(list::prepare(workspace, arguments).await, Work::List),
        "find_files" => wrapped(find::prepare(workspace, arguments).await, Work::Find),
        "search_files" => wrapped(search::prepare(workspace, arguments).await, Work::Search),
        _ => return None,
    })
}

/// What is shown of a call before it is looked at. `None` if the tool is none of these, or has no path yet.
///
/// Nothing is opened here: it is only seen where a path leads.
pub(crate) async fn introduce(workspace: &Workspace, name: &str, arguments: &Value) -> Option<Introduction> {
    let arguments = Arguments::new(arguments);
    let text = |name: &str| arguments.optional_text(name).ok().flatten();
    let count = |name: &str| arguments.count(name).ok().flatten();
    let (of_name, of_path) = (
        async |name: &str| workspace.target_of_name(&text(name)?).await.ok(),
        async |path: Option<Cow<'_, str>>| workspace.target(&path?).await.ok(),
    );
    let shown = |title: String, kind: ToolKind, target: &Target, line: Option<u32>| {
        let locations = vec![target.location(line.map(|line| line as usize))];
        Some(Introduction { title, kind, locations })
    };
    // Where there is no path, it is the session's directory.
    let directory = || Some(text("path").unwrap_or(".".into()));
    match name {
        "read_file" => {
            let target = of_path(text("path")).await?;
            let line = count("line");
            shown(read::title(&target, line, count("limit")), ToolKind::Read, &target, line)
        }
        "write_file" => {
            let target = of_path(text("path")).await?;
            shown(change::write_title(&target), ToolKind::Edit, &target, None)
        }
        "edit_file" => {
            let target = of_path(text("path")).await?;
            shown(change::edit_title(&target), ToolKind::Edit, &target, None)
        }
        "delete_file" => {
            let target = of_name("path").await?;
            shown(relocate::delete_title(&target), ToolKind::Delete, &target, None)
        }
        "move_file" => {
            let (from, to) = (of_name("from").await?, of_name("to").await?);
            let locations = vec![from.location(None), to.location(None)];
            Some(Introduction { title: relocate::move_title(&from, &to), kind: ToolKind::Move, locations })
        }
        "list_directory" => {
            let target = of_path(directory()).await?;
            shown(list::title(&target), ToolKind::Read, &target, None)
        }
        "find_files" => {
            let target = of_path(directory()).await?;
            shown(find::title(&target, &text("pattern")?), ToolKind::Search, &target, None)
        }
        "search_files" => {
            let target = of_path(directory()).await?;
            shown(search::title(&target, &text("pattern")?), ToolKind::Search, &target, None)
        }
        _ => None,
    }
}

/// Does what was looked at, after it was allowed.
pub async fn perform(workspace: &Workspace, work: FileWork) -> Outcome {
    let result = match work.0 {
        Work::Read(work) => read::perform(workspace, &work).await,
        Work::Change(work) => change::perform(workspace, &work).await,
        Work::Delete(work) => relocate::delete(workspace, *work).await,
        Work::Move(work) => relocate::rename(workspace, *work).await,
        Work::List(work) => list::perform(workspace, *work).await,
        Work::Find(work) => find::perform(workspace, *work).await,
        Work::Search(work) => search::perform(workspace, *work).await,
    };
    result.unwrap_or_else(|Refusal(reason)| Outcome::failed(reason))
}

fn wrapped<W>(
    prepared: Result<Prepared<W>, Refusal>,
    wrap: impl FnOnce(Box<W>) -> Work,
) -> Result<Prepared<FileWork>, Refusal> {
    let Prepared { title, kind, locations, content, actions, work } = prepared?;
    Ok(Prepared { title, kind, locations, content, actions, work: FileWork(wrap(Box::new(work))) })
}
