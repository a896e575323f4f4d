//! `/undo`: takes back what the last turn changed, and leaves alone what others have changed since.
//!
//! What changed while a program ran may be the person's own work. `/undo` names it and leaves it, with what the agent did
//! to the same files before; `/undo all` takes it back, too.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use attache_host::files::{EntryKind, FileError, Files};

use super::journal::{Record, Step, Turn};
use super::state::{State, look, restore};
use super::{Checkpoints, Inner};
use crate::workspace::{Text, Workspace};

/// More lines are not shown.
const MOST_LINES: usize = 200;

/// What came of taking a turn back.
#[derive(Debug, Default)]
struct Undone {
    /// Paths that were taken back, each with what was done last.
    restored: BTreeMap<PathBuf, &'static str>,
    /// Paths that were left alone, each with the reason.
    refused: BTreeMap<PathBuf, String>,
    /// Paths that changed while a program ran and were left, each with whether the agent had changed it before that.
    left: BTreeMap<PathBuf, bool>,
    /// Where directories were that stay where the agent moved them: these paths mean nothing now.
    moved_away: Vec<PathBuf>,
    /// Something failed that may work another time.
    has_failed: bool,
}

/// A turn that is to be taken back.
struct Wanted {
    turn: Turn,
    /// Also what changed while programs ran.
    is_all: bool,
    /// Paths that later turns changed, where that was left.
    later: HashSet<PathBuf>,
}

/// What is to be said of it.
pub(crate) struct Report {
    /// To the person.
    pub(crate) text: String,
    /// To the model, with the next prompt.
    pub(crate) note: Option<String>,
}

/// A step that is to be taken back.
enum Todo {
    Nothing,
    Restore { path: PathBuf, before: State, files: Files },
    MoveBack { from: PathBuf, to: PathBuf, files: Files },
}

impl Checkpoints {
    /// Takes back the last turn that changed files: the agent's own changes, and with `is_all` also what changed while
    /// programs ran.
    pub(crate) async fn undo(&self, workspace: &Workspace, is_all: bool) -> Report {
        let Some(wanted) = self.work(move |inner| inner.last_turn(is_all)).await.flatten() else {
            let is_left = self.work(|inner| inner.last_turn(true).is_some()).await.unwrap_or_default();
            let text = if is_left { NOTHING_BUT_LEFT } else { NOTHING };
            return Report { text: text.into(), note: None };
        };
        let mut undone = Undone::default();
        let mut rest = Vec::new();
        for step in wanted.turn.steps.iter().rev() {
            if !self.undo_step(workspace, &wanted, step, &mut undone).await {
                rest.push(step.clone());
            }
        }
        rest.reverse();
        let mut records = vec![Record::Undone { turn: wanted.turn.number }];
        // What was refused may be taken back when the person's own change is gone, and is still a change of the agent's.
        let is_refused = !undone.refused.is_empty() && !wanted.is_all;
        if undone.has_failed || !undone.left.is_empty() || is_refused {
            let is_left = wanted.turn.is_left || !undone.has_failed;
            records.extend(Turn { steps: rest, is_left, ..wanted.turn.clone() }.records());
        }
        self.work(move |inner| inner.write(records)).await;
        report(workspace, &wanted, &undone)
    }

    /// Takes one step back, if it may be. True if nothing is left of it.
    async fn undo_step(&self, workspace: &Workspace, wanted: &Wanted, step: &Step, undone: &mut Undone) -> bool {
        let path = step.path();
        if undone.is_blocked(path) {
            if let Some(has_more) = undone.left.get_mut(path) {
                *has_more |= !step.is_while_running();
            }
            return false;
        }
        let todo = match self.todo(workspace, step, workspace.files_without_links()).await {
            Ok(Todo::Nothing) => return true,
            Ok(todo) => todo,
            Err(_) if wanted.later.contains(path) => {
                undone.left.insert(path.to_owned(), !step.is_while_running());
                return false;
            }
            Err(why) => {
                let why = if undone.restored.contains_key(path) { IN_BETWEEN.into() } else { why };
                undone.refused.insert(path.to_owned(), why);
                return false;
            }
        };
        let is_left = match step {
            Step::Change { while_running, .. } => *while_running && !wanted.is_all,
            // What is left in it has to be found where it is.
            Step::Move { to, .. } => undone.left.keys().chain(&wanted.later).any(|left| left.starts_with(to)),
        };
        if is_left {
            if let Step::Move { from, .. } = step {
                undone.moved_away.push(from.clone());
            }
            undone.left.insert(path.to_owned(), !step.is_while_running());
            return false;
        }
        match self.take_back(workspace, todo).await {
            Ok(what) => {
                undone.restored.extend(what.map(|what| (path.to_owned(), what)));
                // A directory may not be empty yet.
                what.is_some()
            }
            Err(why) => {
                undone.has_failed = true;
                undone.refused.insert(path.to_owned(), why);
                false
            }
        }
    }

    /// What there is to do for a step, or why nothing may be done.
    async fn todo(&self, workspace: &Workspace, step: &Step, files: Files) -> Result<Todo, String> {
        match step.clone() {
            Step::Move { from, to, was_asked } => {
                let files = if was_asked { files.allow(&from).allow(&to) } else { files };
                self.work(move |_| {
                    let is_there = |path: &Path| files.stat_name(path);
                    match (is_there(&from), is_there(&to)) {
                        (Err(FileError::NotFound { .. }), Ok(info)) if info.kind == EntryKind::Directory => {
                            Ok(Todo::MoveBack { from, to, files })
                        }
                        (Ok(info), Err(FileError::NotFound { .. })) if info.kind == EntryKind::Directory => {
                            Ok(Todo::Nothing)
                        }
                        (Ok(_), _) => Err(format!("there is something at `{}` again", super::name(&from))),
                        _ => Err("the directory is not where the agent moved it".to_owned()),
                    }
                })
                .await
                .unwrap_or_else(|| Err(INTERNAL.into()))
            }
            Step::Change { path, before, after, was_asked, .. } => {
                let files = if was_asked { files.allow(&path) } else { files };
                let (looked, looked_files) = (path.clone(), files.clone());
                let (now, bytes) = self.work(move |_| look(&looked_files, &looked)).await.ok_or(INTERNAL)?;
                if now == before && !matches!(now, State::Unkept { .. }) {
                    return Ok(Todo::Nothing);
                }
                if let State::Unkept { why } = &before {
                    return Err(format!("what it was before is not kept: {why}"));
                }
                let Some(after) = after else {
                    return Err(
                        "the agent was stopped while it changed this, so it is not known whose change it is".into()
                    );
                };
                if now != after {
                    return Err(now.as_found(&after).into());
                }
                if let Some(bytes) = bytes {
                    check_editor(workspace, &path, bytes).await?;
                }
                Ok(Todo::Restore { path, before, files })
            }
        }
    }

    /// Does it. Says what was done, if anything was.
    async fn take_back(&self, workspace: &Workspace, todo: Todo) -> Result<Option<&'static str>, String> {
        match todo {
            Todo::Nothing => Ok(None),
            Todo::MoveBack { from, to, files } => {
                let (old, new) = (from.clone(), to.clone());
                let moved = self.work(move |_| {
                    let info = files.stat_name(&new)?;
                    files.rename(&new, &old, &info)
                });
                moved.await.ok_or(INTERNAL)?.map_err(|error| error.to_string())?;
                workspace.follow_move(&to, &from);
                Ok(Some("moved back"))
            }
            Todo::Restore { path, before, files } => {
                if let State::Directory | State::Nothing = before
                    && files.stat_name(&path).is_ok_and(|info| info.kind == EntryKind::Directory)
                {
                    // A directory that is not empty holds something of others.
                    let removed = self.work(move |inner| restore(&files, &inner.contents, &path, &before)).await;
                    return match removed.ok_or(INTERNAL)? {
                        Err(FileError::NotEmpty { .. }) | Ok(()) => Ok(None),
                        Err(error) => Err(error.to_string()),
                    };
                }
                let what = match before {
                    State::Nothing => "removed",
                    _ => "restored",
                };
                if !self.through_editor(workspace, &path, &before).await? {
                    let target = path.clone();
                    let restored = self.work(move |inner| restore(&files, &inner.contents, &target, &before)).await;
                    restored.ok_or(INTERNAL)?.map_err(|error| error.to_string())?;
                }
                workspace.forget_path(&path);
                Ok(Some(what))
            }
        }
    }

    /// Restores a text through the client's editor, so that it shows what is on the disk. False where it has no part in it.
    async fn through_editor(&self, workspace: &Workspace, path: &Path, before: &State) -> Result<bool, String> {
        let (State::File { content, mode, .. }, Some(path)) = (before, path.to_str()) else { return Ok(false) };
        let Ok(target) = workspace.target(path).await else { return Ok(false) };
        let is_same_mode = target.info.is_some_and(|info| info.mode & 0o777 == *mode);
        if !workspace.writes_through_client(&target) || target.kind() != Some(EntryKind::File) || !is_same_mode {
            return Ok(false);
        }
        let address = content.clone();
        let bytes = self.work(move |inner| inner.contents.read(&address)).await.ok_or(INTERNAL)?;
        let Ok(text) = Text::decode(bytes.map_err(|error| error.to_string())?) else { return Ok(false) };
        if !text.is_utf8() {
            return Ok(false);
        }
        workspace.write_text(&target, &text).await.map_err(|refusal| refusal.0)?;
        Ok(true)
    }
}

impl Undone {
    fn is_blocked(&self, path: &Path) -> bool {
        let is_named = self.refused.contains_key(path) || self.left.contains_key(path);
        is_named || self.moved_away.iter().any(|from| path.starts_with(from))
    }
}

impl Inner {
    /// The last turn that changed something, and was not taken back as far as this would do it.
    fn last_turn(&mut self, is_all: bool) -> Option<Wanted> {
        let turns = &self.turns.0;
        let place = turns.iter().rposition(|turn| turn.changed_something() && (is_all || !turn.is_left))?;
        let later = turns[place + 1..].iter().flat_map(|turn| &turn.steps).map(|step| step.path().to_owned());
        Some(Wanted { turn: turns[place].clone(), is_all, later: later.collect() })
    }
}

const NOTHING: &str = "There is nothing to undo: no turn of this session has changed files, or all were taken back.\n";
const NOTHING_BUT_LEFT: &str = "There is nothing to undo but what was left before: it changed while commands ran, or \
                                others have changed it since. Type `/undo all` to take that back.\n";
const IN_BETWEEN: &str = "the agent's earlier change of it stays, because somebody else changed it in between";
const INTERNAL: &str = "an internal error: the file system's thread has ended";

/// Whether an editor has changes of the file that are not saved.
async fn check_editor(workspace: &Workspace, path: &Path, on_disk: Vec<u8>) -> Result<(), String> {
    let Some(path) = path.to_str() else { return Ok(()) };
    let Ok(target) = workspace.target(path).await else { return Ok(()) };
    if !workspace.reads_through_client(&target) {
        return Ok(());
    }
    // What is no text is in no editor.
    let Ok(saved) = Text::decode(on_disk) else { return Ok(()) };
    let Ok(shown) = workspace.read_text(&target).await else { return Ok(()) };
    let plain = |text: &str| text.replace("\r\n", "\n");
    if plain(&saved.content) == plain(&shown.content) {
        return Ok(());
    }
    Err("the editor has changes of it that are not saved".into())
}

fn report(workspace: &Workspace, wanted: &Wanted, undone: &Undone) -> Report {
    let Wanted { turn, is_all, .. } = wanted;
    let names = workspace.real_names();
    let name = |path: &Path| names.of(path);
    let mut text = String::new();
    text.push_str(match (undone.restored.is_empty(), *is_all) {
        (true, _) => "Nothing was taken back.\n",
        (false, false) => "Took back what the agent changed in its last turn with changes:\n\n",
        (false, true) => "Took back what changed in the agent's last turn with changes:\n\n",
    });
    text.push_str(&list(undone.restored.iter().map(|(path, what)| format!("- `{}`: {what}\n", name(path)))));
    if !undone.refused.is_empty() {
        text.push_str("\nLeft alone:\n\n");
        text.push_str(&list(undone.refused.iter().map(|(path, why)| format!("- `{}`: {why}\n", name(path)))));
    }
    if !undone.left.is_empty() {
        text.push_str("\nChanged while a command or another program ran, perhaps by you, and left as it is:\n\n");
        // A directory goes without saying where something in it is named.
        let next = undone.left.keys().skip(1).map(Some).chain([None]);
        let rows =
            undone.left.iter().zip(next).filter(|((path, _), next)| !next.is_some_and(|it| it.starts_with(path)));
        let rows = rows.map(|((path, has_more), _)| {
            format!("- `{}`{}\n", name(path), if *has_more { ", with what the agent changed before that" } else { "" })
        });
        text.push_str(&list(rows.collect::<Vec<_>>().into_iter()));
        text.push_str("\nType `/undo all` to take this back.\n");
    }
    if turn.is_running {
        text.push_str(
            "\nThe agent was stopped while a command ran. What that command changed is not known, so it stays.\n",
        );
    }
    if !turn.uncovered.is_empty() {
        text.push_str("\nCould not be taken back:\n\n");
        text.push_str(&list(turn.uncovered.iter().map(|what| format!("- {what}\n"))));
    }
    if turn.ran_programs {
        text.push_str(
            "\nCommands ran in that turn. Not covered: files that git ignores, git's own data, and everything outside of the \
             project.\n",
        );
    }
    if turn.is_cut {
        text.push_str(
            "The project is too large for all of it to be looked at: files that commands created or deleted stay so.\n",
        );
    }
    if undone.has_failed {
        let command = if *is_all { "/undo all" } else { "/undo" };
        text.push_str(&format!("\nType `{command}` again to try what failed once more.\n"));
    }
    let note = (!undone.restored.is_empty()).then(|| {
        let names = undone.restored.iter().take(50).map(|(path, what)| format!("`{}` ({what})", name(path)));
        format!(
            "(The person has undone your changes of an earlier turn: {}. Read these files again before you change them, and \
             do not repeat the changes unless you are asked to.)",
            names.collect::<Vec<_>>().join(", ")
        )
    });
    Report { text, note }
}

fn list(lines: impl ExactSizeIterator<Item = String>) -> String {
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let mut text: String = lines.take(MOST_LINES).collect();
    if left_out > 0 {
        text.push_str(&format!("- and {left_out} more\n"));
    }
    text
}
