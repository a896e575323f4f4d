//! `/diff`: what the agent has changed, and what changed while programs ran, as unified diffs.

use std::path::PathBuf;
use std::time::Duration;

use similar::TextDiff;

use super::contents::Contents;
use super::journal::{Step, Turn};
use super::state::State;
use super::{Checkpoints, Inner};
use crate::workspace::{Text, Workspace};

/// More is not shown: nobody reads it in an answer.
const MOST_BYTES: usize = 100 << 10;
/// Larger files are not compared.
const LARGEST_TEXT: u64 = 1 << 20;
/// How long two texts are compared. After that the result is right and longer than it need be.
const LONGEST: Duration = Duration::from_millis(500);

/// One change of one path, from the first turn of an unbroken row to the last.
struct Change {
    path: PathBuf,
    before: State,
    after: State,
    while_running: bool,
}

impl Checkpoints {
    /// What was changed in the last turn that changed something, or in all of the session.
    pub(crate) async fn diff(&self, workspace: &Workspace, only_last: bool) -> String {
        let names = workspace.real_names();
        let made = self.work(move |inner| inner.diff(only_last, |path| names.of(path))).await;
        made.unwrap_or_else(|| "The changes cannot be shown.\n".into())
    }
}

impl Inner {
    fn diff(&self, only_last: bool, name: impl Fn(&std::path::Path) -> String) -> String {
        let turns: Vec<&Turn> = self.turns.0.iter().filter(|turn| turn.changed_something()).collect();
        let turns = if only_last { &turns[turns.len().saturating_sub(1)..] } else { &turns[..] };
        if turns.is_empty() {
            return "The agent has changed no files in this session, or its changes were taken back.\n".into();
        }
        let (changes, moves) = collected(turns);
        let mut answer = String::new();
        let mut left_out = 0;
        let mut room = MOST_BYTES;
        for (is_running, heading) in [(false, OWN), (true, WHILE_RUNNING)] {
            let mut text = String::new();
            for (from, to) in moves.iter().filter(|_| !is_running) {
                text.push_str(&format!("rename from {}/\nrename to {}/\n", name(from), name(to)));
            }
            for change in changes.iter().filter(|change| change.while_running == is_running) {
                if room == 0 {
                    left_out += 1;
                    continue;
                }
                let shown = shown(&self.contents, change, &name(&change.path));
                if shown.len() <= room {
                    room -= shown.len();
                    text.push_str(&shown);
                    continue;
                }
                let end = shown[..shown.floor_char_boundary(room)].rfind('\n').map_or(0, |end| end + 1);
                text.push_str(&shown[..end]);
                text.push_str("… the rest of this file's changes is left out\n");
                room = 0;
            }
            if !text.is_empty() {
                let line = if answer.is_empty() { "" } else { "\n" };
                answer.push_str(&format!("{line}{heading}\n\n{}", fenced(&text)));
            }
        }
        if left_out > 0 {
            answer.push_str(&format!("\n{left_out} more files are left out.\n"));
        }
        for what in turns.iter().flat_map(|turn| &turn.uncovered).take(20) {
            answer.push_str(&format!("\nChanged, but not kept: {what}\n"));
        }
        if turns.iter().any(|turn| turn.is_running) {
            answer.push_str("\nThe agent was stopped while a command ran; what that changed is not known.\n");
        }
        answer
    }
}

const OWN: &str = "Changed by the agent:";
const WHILE_RUNNING: &str = "Changed while a command or another program ran:";

/// The changes of turns, path by path; where nobody else came in between, as one.
fn collected(turns: &[&Turn]) -> (Vec<Change>, Vec<(PathBuf, PathBuf)>) {
    let (mut changes, mut moves): (Vec<Change>, _) = (Vec::new(), Vec::new());
    for step in turns.iter().flat_map(|turn| &turn.steps) {
        match step {
            Step::Move { from, to, .. } => moves.push((from.clone(), to.clone())),
            Step::Change { path, before, after, while_running, .. } => {
                let after = after.clone().unwrap_or_else(|| State::unkept("the agent was stopped meanwhile"));
                match changes.iter_mut().rev().find(|change| change.path == *path) {
                    Some(last) if last.after == *before && last.while_running == *while_running => last.after = after,
                    _ => changes.push(Change {
                        path: path.clone(),
                        before: before.clone(),
                        after,
                        while_running: *while_running,
                    }),
                }
            }
        }
    }
    let is_directory = |state: &State| matches!(state, State::Directory);
    let is_shown = |change: &Change| {
        change.before != change.after && !is_directory(&change.before) && !is_directory(&change.after)
    };
    changes.retain(is_shown);
    changes.sort_by(|one, two| one.path.cmp(&two.path));
    (changes, moves)
}

fn shown(contents: &Contents, change: &Change, name: &str) -> String {
    let (old_name, new_name) = (format!("a/{name}"), format!("b/{name}"));
    let nothing = "/dev/null".to_owned();
    let is_nothing = |state: &State| matches!(state, State::Nothing);
    let old_name = if is_nothing(&change.before) { &nothing } else { &old_name };
    let new_name = if is_nothing(&change.after) { &nothing } else { &new_name };
    let mut text = String::new();
    if let (State::File { mode: old, .. }, State::File { mode: new, .. }) = (&change.before, &change.after)
        && old != new
    {
        text.push_str(&format!("{name}: mode {old:o} → {new:o}\n"));
    }
    match (readable(contents, &change.before), readable(contents, &change.after)) {
        (Ok(old), Ok(new)) => {
            let diff = TextDiff::configure().timeout(LONGEST).diff_lines(&old, &new);
            text.push_str(&diff.unified_diff().header(old_name, new_name).to_string());
        }
        (Err(why), _) | (_, Err(why)) => text.push_str(&format!("--- {old_name}\n+++ {new_name}\n({why})\n")),
    }
    text
}

/// What is compared: a text, or where a link leads.
fn readable(contents: &Contents, state: &State) -> Result<String, String> {
    match state {
        State::Nothing | State::Directory => Ok(String::new()),
        State::Link { to } => Ok(format!("→ {}\n", to.display())),
        State::Unkept { why } => Err(why.clone()),
        State::File { size, .. } if *size > LARGEST_TEXT => Err(format!("{size} bytes, too many to compare")),
        State::File { content, size, .. } => {
            let bytes = contents.read(content).map_err(|error| error.to_string())?;
            let text = Text::decode(bytes).map_err(|_| format!("{size} bytes that are no text"))?;
            Ok(text.content)
        }
    }
}

/// A block of Markdown that nothing in it can end.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}diff\n{text}{line_end}{fence}\n")
}
