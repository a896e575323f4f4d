//! What a person has to see before saying yes.

use std::path::Path;

use attache::model::Secret;
use attache::model::diff::{Diff, DiffChange};

use super::engine::Decision;
use super::subject::{Action, Command, Subject};
use super::{visible, visible_lines};

/// A question to show, whole: what is left out of it could be what matters. All texts are made harmless already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The agent, by the user's own name for it.
    pub agent: String,
    /// What would be done, in words: `execute`, `edit`…
    pub kinds: Vec<String>,
    /// The commands in full, as a shell would read them.
    pub commands: Vec<String>,
    /// The directory that they run in.
    pub cwd: String,
    /// Variables that are set for them. Their values are for the person and for no log.
    pub env: Vec<(String, Secret)>,
    /// All files that are named.
    pub paths: Vec<String>,
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
            kinds: Vec::new(),
            commands: Vec::new(),
            cwd: visible(&subject.session.cwd.to_string_lossy()),
            env: Vec::new(),
            paths: Vec::new(),
            changes: subject.diffs.iter().map(change).collect(),
            input: None,
            texts: Vec::new(),
            title: subject.title.as_deref().map(visible),
            description: subject.description.as_deref().map(visible_lines),
            reason: decision.reason.clone(),
            suggestion: decision.suggestion.iter().map(ToString::to_string).collect(),
        };
        for action in &subject.actions {
            question.add(action, &subject.session.cwd);
        }
        let says_nothing = question.commands.is_empty() && question.changes.is_empty();
        if says_nothing || subject.actions.iter().any(|action| matches!(action, Action::Unclear { .. })) {
            question.input = subject.input.as_deref().map(visible_lines);
            question.texts = subject.texts.iter().map(|text| visible_lines(text)).collect();
        }
        question
    }

    fn add(&mut self, action: &Action, base: &Path) {
        let (kind, paths) = match action {
            Action::Execute { command, cwd, env, paths } => {
                self.commands.push(match command {
                    Command::Line(line) => visible_lines(line),
                    Command::Words(words) => shell_text(words),
                });
                if let Some(cwd) = cwd {
                    self.cwd = visible(cwd);
                }
                self.env.extend(env.iter().map(|(name, value)| (visible(name), visible(value.expose()).into())));
                ("execute", paths)
            }
            Action::Files { kind, paths } | Action::Other { kind, paths, .. } | Action::Unclear { kind, paths, .. } => {
                (kind.as_str(), paths)
            }
        };
        add_new(&mut self.kinds, visible(kind));
        for path in paths.iter().map(|path| visible(path)) {
            // An agent may name a file by its whole path and as it was asked for.
            if !self.paths.iter().any(|known| base.join(known) == base.join(&path)) {
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
