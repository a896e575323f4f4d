//! The tools for files: read, write, edit, delete, move, list, find and search.

mod arguments;
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

use serde_json::Value;

use super::{Outcome, Prepared, Refusal};
use crate::workspace::Workspace;
use arguments::Arguments;

pub use specs::specs;

/// A call of one of these tools that has been looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct FileWork(Work);

#[derive(Debug, Clone, PartialEq)]
enum Work {
    Read(read::Read),
    Change(Box<change::Change>),
    Delete(relocate::Delete),
    Move(Box<relocate::Move>),
    List(list::List),
    Find(find::Find),
    Search(search::Search),
}

/// Looks at a call. `None` if the tool is none of these.
///
/// Nothing is changed here, and nothing outside of the session's directories is opened.
pub async fn prepare(
    workspace: &Workspace,
    name: &str,
    arguments: &Value,
) -> Option<Result<Prepared<FileWork>, Refusal>> {
    let arguments = Arguments(arguments);
    let prepared = match name {
        "read_file" => read::prepare(workspace, arguments).await.map(|prepared| prepared.map(Work::Read)),
        "write_file" => change::prepare_write(workspace, arguments).await.map(|prepared| prepared.map(Work::change)),
        "edit_file" => change::prepare_edit(workspace, arguments).await.map(|prepared| prepared.map(Work::change)),
        "delete_file" => {
            relocate::prepare_delete(workspace, arguments).await.map(|prepared| prepared.map(Work::Delete))
        }
        "move_file" => relocate::prepare_move(workspace, arguments)
            .await
            .map(|prepared| prepared.map(|work| Work::Move(work.into()))),
        "list_directory" => list::prepare(workspace, arguments).await.map(|prepared| prepared.map(Work::List)),
        "find_files" => find::prepare(workspace, arguments).await.map(|prepared| prepared.map(Work::Find)),
        "search_files" => search::prepare(workspace, arguments).await.map(|prepared| prepared.map(Work::Search)),
        _ => return None,
    };
    Some(prepared.map(|prepared| prepared.map(FileWork)))
}

/// Does what was looked at, after it was allowed.
pub async fn perform(workspace: &Workspace, work: FileWork) -> Outcome {
    let result = match work.0 {
        Work::Read(work) => read::perform(workspace, &work).await,
        Work::Change(work) => change::perform(workspace, &work).await,
        Work::Delete(work) => relocate::delete(workspace, work).await,
        Work::Move(work) => relocate::rename(workspace, *work).await,
        Work::List(work) => list::perform(workspace, work).await,
        Work::Find(work) => find::perform(workspace, work).await,
        Work::Search(work) => search::perform(workspace, work).await,
    };
    result.unwrap_or_else(|Refusal(reason)| Outcome::failed(reason))
}

impl Work {
    fn change(work: change::Change) -> Self {
        Work::Change(Box::new(work))
    }
}

impl<W> Prepared<W> {
    fn map<V>(self, make: impl FnOnce(W) -> V) -> Prepared<V> {
        let Prepared { title, kind, locations, content, actions, work } = self;
        Prepared { title, kind, locations, content, actions, work: make(work) }
    }
}
