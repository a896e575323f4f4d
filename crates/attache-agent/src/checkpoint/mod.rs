//! Undo: what the agent changes in a turn is kept before it is changed, outside of the person's own git.
//!
//! Changes by the tools for files are known exactly. Commands and MCP servers may change anything, so the project's files
//! are looked at before and after them ([`survey`]). What has changed in between may also be the work of the person, who
//! goes on typing while a command runs, so it is marked (`while_running`): `/undo` names it and leaves it alone, `/undo all`
//! takes it back, too.
//!
//! What is kept is beneath the state directory, for the user alone, bounded, and written before the change is made, so that
//! it is there when the agent was killed.
//!
//! What is not covered is said where it matters: files that git ignores and commands change, files that are too large, what
//! may hold secrets, git's own data, and what a background job changes after its turn.

mod changes;
mod contents;
mod diff;
mod journal;
mod state;
mod survey;
mod undo;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use attache::model::tool::ToolCallContent;
use attache_host::files::{FileError, Files};

use changes::{Changes, Touched, changes_of, unsaved_bytes};
use contents::{Address, Contents};
use journal::{Journal, Record, Step, Turns};
use state::{State, look};
use survey::{Changed, Survey, Surveyor};

use crate::lock;
use crate::toolbox::Task;
use crate::workspace::{Workspace, blocking};

/// How many files that a command changed are kept. More is a checkout or a build, for which there are other ways back.
const MOST_CHANGES: usize = 5_000;
/// How many turns can be taken back.
const MOST_TURNS: usize = 200;

/// What a session has changed, and how to take it back.
#[derive(Debug, Clone)]
pub(crate) struct Checkpoints {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    contents: Contents,
    journal: Journal,
    turns: Turns,
    /// Contents that are kept for records which are not among the turns yet.
    unwritten: HashSet<Address>,
    /// The number of the turn that runs.
    turn: u64,
    surveyor: Surveyor,
    /// What the project was like before the programs ran that are running now, with what the agent itself has changed since.
    window: Option<Survey>,
    /// Paths that are being changed.
    pending: Vec<PathBuf>,
    /// Directories that are being moved.
    moving: Option<(PathBuf, PathBuf)>,
    /// What the person has to know.
    notices: Vec<String>,
    /// What was told already.
    told: HashSet<&'static str>,
    /// The project could not be looked at in this turn.
    is_blind: bool,
    /// Something was started in this turn that goes on in the background.
    has_job: bool,
    /// How many programs run now, beside jobs: hooks of calls that run side by side.
    programs: usize,
}

/// What was kept before something was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    /// What it named.
    Paths,
    /// The whole project, because it is a program.
    Project,
}

impl Checkpoints {
    /// What is kept of a session in this directory, which need not exist.
    pub(crate) fn open(directory: PathBuf) -> Self {
        let (journal, turns) = Journal::open(directory.join("journal"));
        let contents = Contents::new(directory.join("contents"));
        let turn = turns.0.last().map_or(0, |turn| turn.number);
        let inner = Inner {
            directory,
            contents,
            journal,
            turns,
            unwritten: HashSet::new(),
            turn,
            surveyor: Surveyor::default(),
            window: None,
            pending: Vec::new(),
            moving: None,
            notices: Vec::new(),
            told: HashSet::new(),
            is_blind: false,
            has_job: false,
            programs: 0,
        };
        Checkpoints { inner: Arc::new(Mutex::new(inner)) }
    }

    /// What changes from here on is another turn's.
    pub(crate) async fn begin_turn(&self) {
        self.work(|inner| {
            inner.turn += 1;
            (inner.is_blind, inner.has_job, inner.programs) = (false, false, 0);
        })
        .await;
    }

    /// Keeps what a task is about to change, and says what that is. `shown` is what the person was shown of it.
    /// Whatever goes wrong here is a notice, and the work goes on.
    pub(crate) async fn before(&self, workspace: &Workspace, task: &Task, shown: &[ToolCallContent]) -> Kept {
        let changes = changes_of(task, shown);
        let kept = match &changes {
            Changes::Nothing => return Kept::Nothing,
            Changes::Paths(_) | Changes::Move { .. } => Kept::Paths,
            Changes::Anything { .. } => Kept::Project,
        };
        let files = workspace.files_without_links();
        self.work(move |inner| match changes {
            Changes::Nothing => {}
            Changes::Paths(paths) => inner.keep_paths(&files, paths),
            Changes::Move { from, to, was_asked } => inner.keep_move(&files, from, to, was_asked),
            Changes::Anything { goes_on } => {
                inner.has_job |= goes_on;
                inner.open_window(&files);
            }
        })
        .await;
        kept
    }

    /// The same for a program that runs beside the tools.
    pub(crate) async fn before_program(&self, workspace: &Workspace) -> Kept {
        let files = workspace.files_without_links();
        self.work(move |inner| inner.open_window(&files)).await;
        Kept::Project
    }

    /// Notes what has changed.
    pub(crate) async fn after(&self, workspace: &Workspace, kept: Kept) {
        if kept == Kept::Nothing {
            return;
        }
        let files = workspace.files_without_links();
        self.work(move |inner| {
            inner.programs = inner.programs.saturating_sub(usize::from(kept == Kept::Project));
            inner.settle(&files);
        })
        .await;
    }

    /// Notes what is left to note at the end of a turn: of what was cancelled, and of what goes on in the background.
    pub(crate) async fn end_turn(&self, workspace: &Workspace) {
        let files = workspace.files_without_links();
        self.work(move |inner| {
            if !(inner.pending.is_empty() && inner.moving.is_none() && inner.window.is_none()) {
                (inner.has_job, inner.programs) = (false, 0);
                inner.settle(&files);
            }
        })
        .await;
    }

    /// What the person has to know and was not told yet.
    pub(crate) async fn take_notices(&self) -> Vec<String> {
        self.work(|inner| std::mem::take(&mut inner.notices)).await.unwrap_or_default()
    }

    /// Not on the runtime's thread, nor is the lock taken there: whoever has it may wait for the disk.
    async fn work<T: Send + 'static>(&self, work: impl FnOnce(&mut Inner) -> T + Send + 'static) -> Option<T> {
        let inner = self.inner.clone();
        blocking(move || work(&mut lock(&inner))).await.ok()
    }
}

impl Inner {
    /// Keeps what paths hold, and which directories they will need.
    fn keep_paths(&mut self, files: &Files, paths: Vec<Touched>) {
        for Touched { path, was_asked, unsaved } in paths {
            let files = if was_asked { files.clone().allow(&path) } else { files.clone() };
            self.keep_missing_parents(&files, &path, was_asked);
            self.note_others(&files, &path);
            let (mut state, mut bytes) = look(&files, &path);
            if let (State::File { mode, .. }, Some(on_disk), Some(text)) = (&state, &bytes, unsaved)
                && let Some(text) = unsaved_bytes(on_disk, text)
            {
                state = State::file(&text, *mode);
                bytes = Some(text);
            }
            self.keep(path, state, bytes, was_asked);
        }
    }

    /// A path that has changed since a program was started, and not by the agent itself, which is about to do so.
    fn note_others(&mut self, files: &Files, path: &Path) {
        let Some(window) = &self.window else { return };
        if let Some(changed) = self.surveyor.change_of(files, window, path) {
            let records = self.while_running(changed);
            self.write(records.into());
        }
    }

    fn keep_move(&mut self, files: &Files, from: PathBuf, to: PathBuf, was_asked: bool) {
        let allowed = if was_asked { files.clone().allow(&to) } else { files.clone() };
        self.keep_missing_parents(&allowed, &to, was_asked);
        self.moving = Some((from.clone(), to.clone()));
        self.write(vec![Record::Moved { turn: self.turn, from, to, was_asked }]);
    }

    /// The directories that are made on the way to a path are part of the change.
    fn keep_missing_parents(&mut self, files: &Files, path: &Path, was_asked: bool) {
        let is_missing = |directory: &&Path| {
            let files = files.clone().allow(*directory);
            matches!(files.stat_name(directory), Err(FileError::NotFound { .. }))
        };
        let missing: Vec<PathBuf> = path.ancestors().skip(1).take_while(is_missing).map(Path::to_owned).collect();
        for directory in missing.into_iter().rev() {
            self.keep(directory, State::Nothing, None, was_asked);
        }
    }

    fn keep(&mut self, path: PathBuf, state: State, bytes: Option<Vec<u8>>, was_asked: bool) {
        let before = self.kept(state, bytes.as_deref());
        if let State::Unkept { why } = &before {
            self.notices.push(format!("`/undo` will not be able to restore `{}`: {why}", name(&path)));
        }
        if !self.pending.contains(&path) {
            self.pending.push(path.clone());
        }
        self.write(vec![Record::Before { turn: self.turn, path, before, was_asked, while_running: false }]);
    }

    /// The state, or why its content could not be kept.
    fn kept(&mut self, state: State, bytes: Option<&[u8]>) -> State {
        let State::File { content, size, .. } = &state else { return state };
        if !self.contents.has_room(*size) {
            self.forget_oldest(*size);
        }
        let kept = match bytes {
            Some(bytes) => self.contents.keep(content, bytes),
            None => Err(io::Error::other("its content is not there any more")),
        };
        match kept {
            Ok(()) => {
                self.unwritten.insert(content.clone());
                state
            }
            Err(error) => State::unkept(format!("its content could not be kept: {error}")),
        }
    }

    /// Looks at the project before something runs that may change all of it.
    fn open_window(&mut self, files: &Files) {
        self.programs += 1;
        if self.window.is_some() || self.is_blind {
            return;
        }
        self.write(vec![Record::Running { turn: self.turn }]);
        match self.surveyor.look_anew(files, &self.directory) {
            Ok(survey) => {
                if survey.is_cut {
                    self.tell(
                        "cut",
                        "the project is large: `/undo` cannot take back all that commands change, only the first 20,000 \
                         files are looked at",
                    );
                }
                self.window = Some(survey);
            }
            Err(error) => {
                self.is_blind = true;
                let what = "what commands changed: the project could not be looked at".to_owned();
                self.write(vec![
                    Record::Uncovered { turn: self.turn, what },
                    Record::Ended { turn: self.turn, is_cut: false },
                ]);
                self.tell("full", &format!("`/undo` cannot take back what commands change: {error}"));
            }
        }
    }

    /// Notes what has changed: of paths that were named, and, when everything that ran is over, of all others.
    fn settle(&mut self, files: &Files) {
        let mut records = Vec::new();
        for path in std::mem::take(&mut self.pending) {
            // It was allowed when it was changed, and is only looked at.
            let (state, bytes) = look(&files.clone().allow(&path), &path);
            let after = self.kept(state, bytes.as_deref());
            if let Some(window) = &mut self.window {
                self.surveyor.note_change(files, window, &path);
            }
            records.push(Record::After { turn: self.turn, path, after });
        }
        if let Some((from, to)) = self.moving.take() {
            let is_there = |path: &Path| files.clone().allow(path).stat_name(path).is_ok();
            if is_there(&from) || !is_there(&to) {
                records.push(Record::NotMoved { turn: self.turn, from, to });
            } else if let Some(window) = &mut self.window {
                window.note_move(&from, &to);
            }
        }
        self.write(records);
        if !self.has_job
            && self.programs == 0
            && let Some(before) = self.window.take()
        {
            self.close_window(files, &before);
        }
    }

    fn close_window(&mut self, files: &Files, before: &Survey) {
        let turn = self.turn;
        let after = match self.surveyor.look(files) {
            Ok(after) => after,
            Err(error) => {
                self.tell("full", &format!("`/undo` cannot take back what commands change: {error}"));
                let what = format!("what commands changed: {error}");
                return self.write(vec![Record::Uncovered { turn, what }, Record::Ended { turn, is_cut: false }]);
            }
        };
        let mut changes = self.surveyor.changes(files, before, &after);
        let left_out = changes.len().saturating_sub(MOST_CHANGES);
        changes.truncate(MOST_CHANGES);
        let mut records = Vec::new();
        for change in changes {
            if change.path.to_str().is_none() {
                let what = format!("`{}`: its name is not UTF-8", name(&change.path));
                records.push(Record::Uncovered { turn, what });
                continue;
            }
            records.extend(self.while_running(change));
        }
        if left_out > 0 {
            records.push(Record::Uncovered { turn, what: format!("{left_out} more files that commands changed") });
        }
        records.push(Record::Ended { turn, is_cut: before.is_cut || after.is_cut });
        self.write(records);
    }

    /// What is written down of a change that was seen by comparing.
    fn while_running(&mut self, changed: Changed) -> [Record; 2] {
        let Changed { path, before, after, contents } = changed;
        let bytes = |state: &State| match state {
            State::File { content, .. } => {
                contents.iter().find(|(address, _)| address == content).map(|(_, bytes)| bytes.as_slice())
            }
            _ => None,
        };
        let (bytes_before, bytes_after) = (bytes(&before), bytes(&after));
        let before = self.kept(before, bytes_before);
        let after = self.kept(after, bytes_after);
        let turn = self.turn;
        [
            Record::Before { turn, path: path.clone(), before, was_asked: false, while_running: true },
            Record::After { turn, path, after },
        ]
    }

    /// Writes records down, and takes them into account. What cannot be written down is still known to this process.
    fn write(&mut self, records: Vec<Record>) {
        if records.is_empty() {
            return;
        }
        if let Err(error) = self.journal.append(&records) {
            self.tell("full", &format!("what is changed from here on may not be undoable: {error}"));
        }
        for record in records {
            self.turns.apply(record);
        }
        self.unwritten.clear();
        while self.turns.0.len() > MOST_TURNS || (self.journal.is_too_long() && self.turns.0.len() > 1) {
            self.turns.0.remove(0);
            let _ = self.journal.rewrite(&self.turns);
        }
    }

    /// Forgets the oldest turns, so that there is room for what is new.
    fn forget_oldest(&mut self, wanted: u64) {
        while !self.contents.has_room(wanted) && self.turns.0.first().is_some_and(|turn| turn.number != self.turn) {
            self.turns.0.remove(0);
            let addresses = self.turns.0.iter().flat_map(|turn| &turn.steps).flat_map(addresses);
            self.contents.retain(&addresses.chain(&self.unwritten).cloned().collect());
            let _ = self.journal.rewrite(&self.turns);
        }
    }

    fn tell(&mut self, once: &'static str, notice: &str) {
        if self.told.insert(once) {
            self.notices.push(notice.to_owned());
        }
    }
}

fn addresses(step: &Step) -> Vec<&Address> {
    let Step::Change { before, after, .. } = step else { return Vec::new() };
    let states = std::iter::once(before).chain(after);
    let files = states.filter_map(|state| if let State::File { content, .. } = state { Some(content) } else { None });
    files.collect()
}

/// A path for people.
fn name(path: &Path) -> String {
    attache_host::permission::visible(&path.to_string_lossy())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
