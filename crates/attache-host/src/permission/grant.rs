//! What a yes to a tool call covers of that which the client then serves for it: exactly what was shown, once.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use attache::model::diff::Diff;
use attache::model::session::SessionId;
use attache::model::tool::ToolKind;

use super::judge::is_harmless_variable;
use super::subject::{Action, Subject};
use crate::commands::Command;

/// How long a yes holds. An agent does at once what it was allowed to do.
const HOLDS: Duration = Duration::from_secs(5 * 60);

/// How many are kept, and how many bytes of what was shown. What is not kept is asked about again.
const MOST: usize = 64;
const MOST_BYTES: usize = 4 << 20;

/// What was said yes to and has not been done yet.
///
/// A grant is bound to the session, the command with its directory and variables, or the file and its content, as they
/// were shown. Doing it uses it up.
///
/// ```
/// use std::time::Instant;
/// use attache_host::commands::Command;
/// use attache_host::permission::{Action, Grants, Session, Subject};
///
/// let session = Session::new("claude", "s1", "/project");
/// let make = Action::Execute { command: Command::Line("make all".into()), cwd: None, env: Vec::new(), paths: Vec::new() };
/// let mut grants = Grants::default();
/// grants.add(&Subject::new(session.clone(), vec![make.clone()]), Instant::now());
/// assert!(grants.take(&session, &make, Instant::now()));
/// assert!(!grants.take(&session, &make, Instant::now()), "it was done already");
/// ```
#[derive(Debug, Default)]
pub struct Grants {
    list: VecDeque<Grant>,
    bytes: usize,
}

#[derive(Debug)]
struct Grant {
    session: SessionId,
    until: Instant,
    what: Granted,
    size: usize,
}

#[derive(Debug)]
enum Granted {
    /// A command, or a file that is read.
    Action(Action),
    /// A file, with the change that was shown.
    Change(ShownChange),
}

/// The change of a file, as it was shown: its texts before and after, or parts of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownChange {
    path: String,
    /// Each is done after the one before. Without a text before, the other one is the whole file.
    steps: Vec<(Option<String>, String)>,
}

impl ShownChange {
    /// Whether a file's new content is what was shown to become of the old.
    ///
    /// Agents show a part of a file before and after, and then write the whole file: that has to be the old file with the
    /// part replaced, at its only place: which of several is meant was not shown.
    pub fn leads_to(&self, before: Option<&str>, after: &str) -> bool {
        let Some((last, steps)) = self.steps.split_last() else { return false };
        if steps.is_empty() && last.1 == after && last.0.as_deref().is_none_or(|old| before.unwrap_or_default() == old)
        {
            return true;
        }
        let mut text = before.unwrap_or_default().to_owned();
        for (old, new) in &self.steps {
            let Some(old) = old.as_deref().filter(|old| !old.is_empty()) else { return false };
            if text.matches(old).count() != 1 {
                return false;
            }
            text = text.replacen(old, new, 1);
        }
        text == after
    }
}

impl Grants {
    /// Keeps what was said yes to. A change without its content says nothing that could be kept.
    pub fn add(&mut self, subject: &Subject, now: Instant) {
        let mut changes: Vec<ShownChange> = Vec::new();
        for diff in &subject.diffs {
            let Diff::Text(diff) = diff else { continue };
            let step = (diff.old_text.clone(), diff.new_text.clone());
            match changes.iter_mut().find(|change| change.path == diff.path) {
                Some(change) => change.steps.push(step),
                None => changes.push(ShownChange { path: diff.path.clone(), steps: vec![step] }),
            }
        }
        for change in changes {
            let text = |(old, new): &(Option<String>, String)| old.as_ref().map_or(0, String::len) + new.len();
            let size = change.steps.iter().map(text).sum();
            self.keep(subject, Granted::Change(change), size, now);
        }
        for action in &subject.actions {
            match action {
                Action::Execute { command, .. } => {
                    let size = command.words().iter().map(String::len).sum();
                    self.keep(subject, Granted::Action(action.clone()), size, now);
                }
                Action::Files { kind: ToolKind::Read, paths } => {
                    for path in paths {
                        let one = Action::Files { kind: ToolKind::Read, paths: vec![path.clone()] };
                        self.keep(subject, Granted::Action(one), path.len(), now);
                    }
                }
                _ => {}
            }
        }
    }

    fn keep(&mut self, subject: &Subject, what: Granted, size: usize, now: Instant) {
        if size > MOST_BYTES {
            return;
        }
        while self.list.len() >= MOST || self.bytes + size > MOST_BYTES {
            let Some(oldest) = self.list.pop_front() else { break };
            self.bytes -= oldest.size;
        }
        self.bytes += size;
        self.list.push_back(Grant { session: subject.session.id.clone(), until: now + HOLDS, what, size });
    }

    /// Whether a command, or reading a file, was said yes to. It is used up by that.
    ///
    /// A command may be told to run in the directory that it was shown with, and be given variables that change nothing.
    pub fn take(&mut self, session: &super::Session, wanted: &Action, now: Instant) -> bool {
        let covers = |granted: &Granted| match granted {
            Granted::Action(granted) => covers(granted, wanted, &session.cwd),
            Granted::Change(_) => false,
        };
        self.remove(&session.id, now, covers).is_some()
    }

    /// What was shown of a change to a file, if there is something to compare with.
    pub fn change_of(&self, session: &SessionId, path: &str, now: Instant) -> Option<ShownChange> {
        self.list.iter().filter(|grant| grant.session == *session && grant.until > now).find_map(|grant| {
            match &grant.what {
                Granted::Change(change) if change.path == path => Some(change.clone()),
                _ => None,
            }
        })
    }

    /// Whether a change was said yes to. It is used up by that.
    pub fn take_change(&mut self, session: &SessionId, change: &ShownChange, now: Instant) -> bool {
        self.remove(session, now, |granted| matches!(granted, Granted::Change(granted) if granted == change)).is_some()
    }

    /// Forgets everything: the turn has ended.
    pub fn clear(&mut self) {
        *self = Grants::default();
    }

    fn remove(&mut self, session: &SessionId, now: Instant, fits: impl Fn(&Granted) -> bool) -> Option<Grant> {
        let is_it = |grant: &Grant| grant.session == *session && grant.until > now && fits(&grant.what);
        let index = self.list.iter().position(is_it)?;
        let grant = self.list.remove(index)?;
        self.bytes -= grant.size;
        Some(grant)
    }
}

/// Whether `wanted` is what was `granted`.
fn covers(granted: &Action, wanted: &Action, session_cwd: &Path) -> bool {
    match (granted, wanted) {
        (Action::Files { kind: ToolKind::Read, paths: granted }, Action::Files { kind: ToolKind::Read, paths }) => {
            granted == paths
        }
        (
            Action::Execute { command: granted, cwd: granted_cwd, env: granted_env, .. },
            Action::Execute { command, cwd, env, .. },
        ) => {
            let granted_cwd = granted_cwd.as_deref().map_or(session_cwd, Path::new);
            // The same line is another for another shell.
            let is_known = !command.is_for_other_shell() && !granted.is_for_other_shell();
            let is_same = command == granted
                || is_known && (is_same(command, granted) || is_in_directory(command, granted, granted_cwd));
            let is_there = cwd.as_deref().map_or(session_cwd, Path::new) == granted_cwd;
            let adds_nothing = env.iter().all(|variable| {
                granted_env.contains(variable) || is_harmless_variable(&variable.0, variable.1.expose())
            });
            let lacks_nothing = granted_env.iter().all(|variable| env.contains(variable));
            is_same && is_there && adds_nothing && lacks_nothing
        }
        _ => false,
    }
}

/// Whether two commands are one: agents show a line, and then have a shell of their choice run it.
fn is_same(command: &Command, granted: &Command) -> bool {
    command == granted || command.line().is_some_and(|line| matches!(granted, Command::Line(shown) if shown == line))
}

/// Whether a command is another one behind a `cd` to the directory.
fn is_in_directory(command: &Command, granted: &Command, directory: &Path) -> bool {
    let (Some(command), Some(granted), Some(directory)) = (command.line(), granted.line(), directory.to_str()) else {
        return false;
    };
    // A directory that needs more than quotes is not worth the risk.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@ ".contains(c);
    if !directory.chars().all(is_plain) {
        return false;
    }
    let Some(head) = command.strip_suffix(granted).and_then(|head| head.strip_suffix(" && ")) else {
        return false;
    };
    let is_bare = !directory.contains(' ') && head == format!("cd {directory}");
    is_bare || head == format!("cd '{directory}'") || head == format!("cd \"{directory}\"")
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
