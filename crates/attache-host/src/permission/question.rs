//! What a person has to see before saying yes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use attache::model::Secret;
use attache::model::diff::{Diff, DiffChange};
use sha2::{Digest, Sha256};

use super::engine::Decision;
use super::subject::{Action, Subject};
use super::{visible, visible_lines};
use crate::commands::Command;

/// A question to show. All texts are made harmless already.
///
/// What the agent says about itself is in `title`, `description`, `texts` and `named`: it is cut short and marked as the
/// agent's own where it is shown. The rest is what would be done: it is shown whole, and last, because what is left out of
/// it could be what matters. `gist` and `digest` belong where the answer is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The agent, by the user's own name for it.
    pub agent: String,
    /// What would be done, on one short line: "run `make`".
    pub gist: String,
    /// A few digits that are others when anything else would be done.
    pub digest: String,
    /// What would be done, in words: `execute`, `edit`…
    pub kinds: Vec<String>,
    /// The commands in full, as a shell would read them.
    pub commands: Vec<String>,
    /// The directory that they run in.
    pub cwd: String,
    /// The machine that it would be done on, if it is another one.
    pub host: Option<String>,
    /// Variables that are set for them. Their values are for the person and for no log.
    pub env: Vec<(String, Secret)>,
    /// All files that would be read, changed, moved or deleted.
    pub paths: Vec<String>,
    /// Files that the agent names for something that is told otherwise. Its word only.
    pub named: Vec<String>,
    /// The changes in full.
    pub changes: Vec<Change>,
    /// The input of the tool, where nothing else says what it does.
    pub input: Option<String>,
    /// What the agent shows, where nothing else says what it does. Its word only.
    pub texts: Vec<String>,
    /// What the agent calls it. Its word only.
    pub title: Option<String>,
    /// What else the agent says. Its word only.
    pub description: Option<String>,
    /// Why this is asked.
    pub reason: String,
    /// The rules that would be saved to not be asked again.
    pub suggestion: Vec<String>,
}

/// A change of one file, or of several by a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Both texts of a file.
    Texts {
        /// The file.
        path: String,
        /// The text before; `None` if the file is new or nobody said.
        old: Option<String>,
        /// The text after.
        new: String,
    },
    /// What becomes of which files, and the patch.
    Patch {
        /// Lines such as `delete /project/file`.
        files: Vec<String>,
        /// The change of their contents, if it is told.
        patch: Option<String>,
    },
}

impl Question {
    /// What to show about a subject that is to be asked about.
    pub fn new(subject: &Subject, decision: &Decision) -> Self {
        let mut question = Question {
            agent: visible(&subject.session.agent),
            gist: String::new(),
            digest: digest(subject),
            kinds: Vec::new(),
            commands: Vec::new(),
            cwd: visible(&subject.session.cwd.to_string_lossy()),
            host: None,
            env: Vec::new(),
            paths: Vec::new(),
            named: Vec::new(),
            changes: subject.diffs.iter().map(change).collect(),
            input: None,
            texts: Vec::new(),
            title: subject.title.as_deref().map(visible),
            description: subject.description.as_deref().map(visible_lines),
            reason: decision.reason.clone(),
            suggestion: decision.suggestion.iter().map(ToString::to_string).collect(),
        };
        let mut known = BTreeSet::new();
        for action in &subject.actions {
            question.add(action, &subject.session.cwd, &mut known);
        }
        let says_nothing = question.commands.is_empty() && question.changes.is_empty();
        if says_nothing || subject.actions.iter().any(|action| matches!(action, Action::Unclear { .. })) {
            question.input = subject.input.as_deref().map(visible_lines);
            question.texts = subject.texts.iter().map(|text| visible_lines(text)).collect();
        }
        question.gist = question.gist(subject);
        question
    }

    /// The same for an agent on another machine, whose sessions work in this directory there; `None` if in the one of the same name.
    pub fn on(mut self, host: &str, session: &Path, directory: Option<&str>) -> Self {
        self.host = Some(visible(host));
        // What the agent names itself is its own word for a place there.
        if let Some(directory) = directory.filter(|_| self.cwd == visible(&session.to_string_lossy())) {
            self.cwd = visible(directory);
        }
        self
    }

    /// Where it would be done, in words.
    pub fn place(&self) -> String {
        match &self.host {
            Some(host) => format!("{}, on {host}", self.cwd),
            None => self.cwd.clone(),
        }
    }

    /// What would be done, on one short line. Nothing of it is the agent's word, but for a command or a path itself.
    fn gist(&self, subject: &Subject) -> String {
        let tools = subject.actions.iter().filter_map(|action| match action {
            Action::Other { name, .. } => name.as_deref(),
            _ => None,
        });
        let mut files: Vec<&String> = self.paths.iter().collect();
        let known: BTreeSet<&str> = self.paths.iter().map(String::as_str).collect();
        for change in &self.changes {
            let changed = match change {
                Change::Texts { path, .. } => std::slice::from_ref(path),
                Change::Patch { files, .. } => files,
            };
            // A patch says what becomes of a file before its name.
            let is_known = |file: &&String| {
                let bare = file.split_once(' ').map_or("", |(_, path)| path);
                known.contains(file.as_str()) || known.contains(bare)
            };
            files.extend(changed.iter().filter(|file| !is_known(file)));
        }
        let kinds = self.kinds.join(", ");
        let tools: Vec<String> = tools.map(visible).collect();
        match (self.commands.as_slice(), files.as_slice(), tools.as_slice()) {
            ([command], [], []) => format!("run `{}`", short(command)),
            ([], [file], []) => format!("{kinds} `{}`", short_end(file)),
            ([], [], [tool]) => format!("use `{}`", short(tool)),
            ([], [], []) => format!("use a tool: {kinds}"),
            (commands, files, tools) => {
                let count = |count: usize, what: &str| match count {
                    0 => None,
                    1 => Some(format!("1 {what}")),
                    count => Some(format!("{count} {what}s")),
                };
                let parts = [count(commands.len(), "command"), count(files.len(), "file"), count(tools.len(), "tool")];
                format!("{kinds}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn add(&mut self, action: &Action, base: &Path, known: &mut BTreeSet<PathBuf>) {
        let (kind, paths) = match action {
            Action::Execute { command, cwd, env, paths } => {
                self.commands.push(match command {
                    Command::Line(line) => visible_lines(line),
                    Command::Shell { shell, flag, line } => visible_lines(&format!("{shell} {flag}: {line}")),
                    Command::Words(words) => shell_text(words),
                });
                if let Some(cwd) = cwd {
                    self.cwd = visible(cwd);
                }
                self.env.extend(env.iter().map(|(name, value)| (visible(name), visible(value.expose()).into())));
                self.named.extend(paths.iter().map(|path| visible(path)));
                return add_new(&mut self.kinds, "execute".into());
            }
            Action::Files { kind, paths } | Action::Other { kind, paths, .. } | Action::Unclear { kind, paths, .. } => {
                (kind.as_str(), paths)
            }
        };
        add_new(&mut self.kinds, visible(kind));
        for path in paths.iter().map(|path| visible(path)) {
            // An agent may name a file by its whole path and as it was asked for.
            if known.insert(base.join(&path)) {
                self.paths.push(path);
            }
        }
    }
}

fn add_new(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

fn change(diff: &Diff) -> Change {
    match diff {
        Diff::Text(diff) => Change::Texts {
            path: visible(&diff.path),
            old: diff.old_text.as_deref().map(visible_lines),
            new: visible_lines(&diff.new_text),
        },
        Diff::Patch(diff) => {
            let file = |change: &DiffChange| match change {
                DiffChange::Add(file) | DiffChange::Delete(file) | DiffChange::Modify(file) => {
                    visible(&format!("{} {}", change.tag(), file.path))
                }
                DiffChange::Move(pair) | DiffChange::Copy(pair) => {
                    visible(&format!("{} {} to {}", change.tag(), pair.old_path, pair.path))
                }
                _ => "a change of an unknown kind".into(),
            };
            Change::Patch {
                files: diff.changes.iter().map(file).collect(),
                patch: diff.patch.as_ref().map(|patch| visible_lines(&patch.text)),
            }
        }
    }
}

/// How long a command or a path is where there is one line for it: with what stands around it, a line of 80 columns.
const SHORT: usize = 54;

/// The beginning and the end, if it is long: what matters may stand at either.
fn short(text: &str) -> String {
    let line = text.trim_end().replace('\n', " ⏎ ");
    let length = line.chars().count();
    if length <= SHORT {
        return line;
    }
    let begin: String = line.chars().take(SHORT / 2).collect();
    let end: String = line.chars().skip(length - SHORT / 2).collect();
    format!("{begin} … {end}")
}

/// The end: of a path that says the most.
fn short_end(text: &str) -> String {
    match text.chars().count().checked_sub(SHORT) {
        None | Some(0) => text.to_owned(),
        Some(more) => format!("…{}", text.chars().skip(more).collect::<String>()),
    }
}

/// A few digits of all that would be done.
fn digest(subject: &Subject) -> String {
    let mut hash = Sha256::new();
    // With its length before it, so that no two lists of texts are one.
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for action in &subject.actions {
        let (what, paths) = match action {
            Action::Execute { command, cwd, env, paths } => {
                command.words().iter().for_each(|word| add(word));
                add(cwd.as_deref().unwrap_or_default());
                for (name, value) in env {
                    add(name);
                    add(value.expose());
                }
                ("execute", paths)
            }
            Action::Files { kind, paths } | Action::Unclear { kind, paths, .. } => (kind.as_str(), paths),
            Action::Other { kind, name, paths } => {
                add(name.as_deref().unwrap_or_default());
                (kind.as_str(), paths)
            }
        };
        add(what);
        paths.iter().for_each(|path| add(path));
    }
    for change in subject.diffs.iter().map(change) {
        match change {
            Change::Texts { path, old, new } => {
                add(&path);
                add(old.as_deref().unwrap_or_default());
                add(&new);
            }
            Change::Patch { files, patch } => {
                files.iter().for_each(|file| add(file));
                add(patch.as_deref().unwrap_or_default());
            }
        }
    }
    add(subject.input.as_deref().unwrap_or_default());
    hash.finalize().iter().take(3).map(|byte| format!("{byte:02x}")).collect()
}

/// Words as a shell would have to be given them, made visible.
pub(super) fn shell_text(words: &[String]) -> String {
    let quote = |word: &String| {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
        if !word.is_empty() && word.chars().all(is_bare) {
            word.clone()
        } else {
            format!("'{}'", visible(word).replace('\'', "'\\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
