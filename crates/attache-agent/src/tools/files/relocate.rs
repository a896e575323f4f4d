//! `delete_file` and `move_file`.

use attache::model::tool::ToolKind;
use attache_host::files::{EntryKind, Info};
use attache_host::permission::Action;

use crate::tools::arguments::Arguments;
use crate::tools::{Outcome, Prepared, Refusal};
use crate::workspace::{Target, Workspace, blocking, refusal};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Delete {
    target: Target,
    info: Info,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Move {
    from: Target,
    to: Target,
    info: Info,
}

impl Delete {
    pub(super) fn target(&self) -> &Target {
        &self.target
    }
}

impl Move {
    /// From where, and where to.
    pub(super) fn targets(&self) -> [&Target; 2] {
        [&self.from, &self.to]
    }
}

pub(super) async fn prepare_delete(
    workspace: &Workspace,
    arguments: Arguments<'_>,
) -> Result<Prepared<Delete>, Refusal> {
    let target = workspace.target_of_name(&arguments.text("path")?).await?;
    let info = existing(&target)?;
    if info.kind == EntryKind::Directory && target.is_inside() {
        let (files, real) = (workspace.files_for(&[&target]), target.real.clone());
        let listing = blocking(move || files.list(&real, 1)).await?.map_err(|error| refusal(&error))?;
        if !listing.entries.is_empty() {
            return Err(Refusal(format!("the directory `{}` is not empty: delete what is in it first", target.name)));
        }
    }
    Ok(Prepared {
        title: delete_title(&target),
        kind: ToolKind::Delete,
        locations: vec![target.location(None)],
        content: Vec::new(),
        actions: vec![Action::Files { kind: ToolKind::Delete, paths: vec![target.path.clone()] }],
        work: Delete { target, info },
    })
}

pub(super) fn delete_title(target: &Target) -> String {
    let what = match target.kind() {
        Some(EntryKind::Directory) => "the empty directory ",
        Some(EntryKind::Link) => "the link ",
        Some(EntryKind::File | EntryKind::Other) | None => "",
    };
    format!("Delete {what}`{}`", target.name)
}

pub(super) fn move_title(from: &Target, to: &Target) -> String {
    format!("Move `{}` to `{}`", from.name, to.name)
}

pub(super) async fn delete(workspace: &Workspace, work: Delete) -> Result<Outcome, Refusal> {
    let Delete { target, info } = work;
    let (files, real) = (workspace.files_for(&[&target]), target.real.clone());
    blocking(move || files.remove(&real, &info)).await?.map_err(|error| refusal(&error))?;
    workspace.forget(&target);
    Ok(Outcome::done(format!("`{}` is deleted", target.name)))
}

pub(super) async fn prepare_move(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<Move>, Refusal> {
    let from = workspace.target_of_name(&arguments.text("from")?).await?;
    let to = workspace.target_of_name(&arguments.text("to")?).await?;
    let info = existing(&from)?;
    if to.info.is_some() {
        return Err(Refusal(format!("there is already a `{}`, and it is not replaced", to.name)));
    }
    if to.real.starts_with(&from.real) {
        return Err(Refusal(format!("`{}` cannot be moved into itself", from.name)));
    }
    Ok(Prepared {
        title: move_title(&from, &to),
        kind: ToolKind::Move,
        locations: vec![from.location(None), to.location(None)],
        content: Vec::new(),
        actions: vec![Action::Files { kind: ToolKind::Move, paths: vec![from.path.clone(), to.path.clone()] }],
        work: Move { from, to, info },
    })
}

pub(super) async fn rename(workspace: &Workspace, work: Move) -> Result<Outcome, Refusal> {
    let Move { from, to, info } = work;
    let files = workspace.files_for(&[&from, &to]);
    let (old, new) = (from.real.clone(), to.real.clone());
    blocking(move || files.rename(&old, &new, &info)).await?.map_err(|error| refusal(&error))?;
    workspace.follow_move(&from.real, &to.real);
    let mut outcome = Outcome::done(format!("`{}` is moved to `{}`", from.name, to.name));
    outcome.locations = Some(vec![to.location(None)]);
    Ok(outcome)
}

fn existing(target: &Target) -> Result<Info, Refusal> {
    target.info.ok_or_else(|| Refusal(format!("there is no `{}`", target.name)))
}
