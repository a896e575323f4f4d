//! What is to be decided: who wants to do what, and where.

use std::path::PathBuf;

use attache::model::Secret;
use attache::model::diff::{Diff, DiffChange};
use attache::model::permission::{PermissionRequest, PermissionSubject};
use attache::model::session::SessionId;
use attache::model::tool::{ToolCallContent, ToolKind};
use attache::proto::json::RawJson;
use attache::proto::view::ToolCall;

use super::input::Input;
use crate::commands::Command;

/// Who asks, from where: the same for every request of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The name of the agent, as the user has it in the configuration, or [`agent_identity`](super::agent_identity) of
    /// its command. Not what the agent calls itself.
    pub agent: String,
    /// The session.
    pub id: SessionId,
    /// The directory of the session.
    pub cwd: PathBuf,
    /// The directories that belong to the session; `cwd` is usually one of them.
    pub roots: Vec<PathBuf>,
}

impl Session {
    /// A session in a directory, which is its only root.
    pub fn new(agent: impl Into<String>, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        Session { agent: agent.into(), id: id.into(), roots: vec![cwd.clone()], cwd }
    }
}

/// What is to be decided. Made from what an agent sends; titles are for people and decide nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Who asks.
    pub session: Session,
    /// All that would be done. All of it has to be allowed.
    pub actions: Vec<Action>,
    /// The changes of files that the agent shows.
    pub diffs: Vec<Diff>,
    /// What the agent calls it.
    pub title: Option<String>,
    /// What else the agent says about it.
    pub description: Option<String>,
    /// The input of the tool, as JSON.
    pub input: Option<String>,
    /// What the agent shows beside that, as text.
    pub texts: Vec<String>,
    /// The client itself would do it, not the agent.
    pub is_served: bool,
}

/// Something that would be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Files are read, searched, changed, moved or deleted.
    Files {
        /// Which of them.
        kind: ToolKind,
        /// The files.
        paths: Vec<String>,
    },
    /// A command is run.
    Execute {
        /// The command.
        command: Command,
        /// The directory that it runs in, if it is another than the session's.
        cwd: Option<String>,
        /// The variables that are set for it.
        env: Vec<(String, Secret)>,
        /// Files that the agent says it works on.
        paths: Vec<String>,
    },
    /// Anything else: fetching, thinking, a change of mode, a tool of some kind.
    Other {
        /// What sort of thing it is.
        kind: ToolKind,
        /// The tool, by the name that rules have for it: `github__create_issue`, `fetch:docs.rs`. `None` for a tool call
        /// of an agent that is not ours, whose tools have titles only.
        name: Option<String>,
        /// Files that the agent says it works on.
        paths: Vec<String>,
    },
    /// What would be done cannot be told.
    Unclear {
        /// What sort of thing the agent says it is.
        kind: ToolKind,
        /// Files that the agent says it works on.
        paths: Vec<String>,
        /// What is missing.
        reason: &'static str,
    },
}

impl Action {
    /// The files that it names.
    pub(super) fn paths(&self) -> &[String] {
        match self {
            Action::Execute { paths, .. }
            | Action::Files { paths, .. }
            | Action::Other { paths, .. }
            | Action::Unclear { paths, .. } => paths,
        }
    }
}

impl Subject {
    /// From what is known to be done.
    pub fn new(session: Session, actions: Vec<Action>) -> Self {
        Subject {
            session,
            actions,
            diffs: Vec::new(),
            title: None,
            description: None,
            input: None,
            texts: Vec::new(),
            is_served: false,
        }
    }

    /// From `session/request_permission`, with what is known of the tool call from before.
    ///
    /// The most dangerous reading counts: whatever its kind, a tool call with a command runs it, and one with a diff
    /// changes files.
    pub fn from_request(session: Session, request: &PermissionRequest, known: Option<&ToolCall>) -> Self {
        let mut subject = Subject::new(session, Vec::new());
        subject.title = request.title.clone();
        subject.description = request.description.clone();
        match &request.subject {
            Some(PermissionSubject::Command(command)) => subject.actions.push(Action::Execute {
                command: Command::Line(command.command.clone()),
                cwd: Some(command.cwd.clone()),
                env: Vec::new(),
                paths: Vec::new(),
            }),
            Some(PermissionSubject::ToolCall(_)) => subject.read_tool_call(request, known),
            _ => subject.actions.push(Action::Unclear {
                kind: ToolKind::Generic,
                paths: Vec::new(),
                reason: "the agent does not say what it wants to do",
            }),
        }
        subject
    }

    /// The same, for what the client itself would do for the agent.
    pub fn served(session: Session, action: Action) -> Self {
        Subject { is_served: true, ..Subject::new(session, vec![action]) }
    }

    fn read_tool_call(&mut self, request: &PermissionRequest, known: Option<&ToolCall>) {
        let Some(update) = request.tool_call() else { return };
        let known = known.filter(|known| known.id == update.tool_call_id);
        let mut kind = known.map(|known| known.kind.clone());
        update.kind.clone().apply(&mut kind);
        let kind = kind.unwrap_or_default();
        let mut raw_input = known.and_then(|known| known.raw_input.clone());
        update.raw_input.clone().apply(&mut raw_input);
        let mut content = known.map(|known| known.content.clone());
        update.content.clone().apply(&mut content);
        let mut locations = known.map(|known| known.locations.clone());
        update.locations.clone().apply(&mut locations);
        let mut title = known.map(|known| known.title.clone());
        update.title.clone().apply(&mut title);
        self.title = self.title.take().or(title).filter(|title| !title.is_empty());

        // Kimi shows the input as text while it comes in, and has none when it asks.
        let raw_input = raw_input.or_else(|| known.and_then(shown_input));
        let input = raw_input.as_ref().map(Input::read).unwrap_or_default();
        self.input = raw_input.map(|raw| raw.as_str().to_owned());
        let mut paths: Vec<String> = locations.into_iter().flatten().map(|location| location.path).collect();
        paths.extend(input.paths);
        dedup(&mut paths);
        for part in content.into_iter().flatten() {
            match part {
                ToolCallContent::Diff(diff) => {
                    self.actions.extend(changes(&diff));
                    self.diffs.push(*diff);
                }
                ToolCallContent::Content(block) => self.texts.extend(block.content.as_text().map(str::to_owned)),
                ToolCallContent::Terminal(_) => {}
                _ => self.unclear(&kind, "it shows something of an unknown kind"),
            }
        }
        match input.command {
            Ok(Some(command)) => {
                return self.actions.push(Action::Execute { command, cwd: input.cwd, env: input.env, paths });
            }
            Ok(None) => {}
            Err(reason) => return self.actions.push(Action::Unclear { kind: ToolKind::Execute, paths, reason }),
        }
        let action = match kind {
            ToolKind::Execute => Action::Unclear { kind, paths, reason: "there is no command to look at" },
            ToolKind::Read | ToolKind::Search | ToolKind::Edit | ToolKind::Move | ToolKind::Delete => {
                if paths.is_empty() {
                    // A change is seen from its diffs; anything else says nothing about its files.
                    if !self.diffs.is_empty() && kind == ToolKind::Edit {
                        return;
                    }
                    Action::Unclear { kind, paths, reason: "there is no file to look at" }
                } else {
                    Action::Files { kind, paths }
                }
            }
            // Diffs say all that a tool of no particular kind does.
            ToolKind::Generic if !self.diffs.is_empty() => Action::Files { kind: ToolKind::Edit, paths },
            kind => Action::Other { kind, name: None, paths },
        };
        self.actions.push(action);
    }

    fn unclear(&mut self, kind: &ToolKind, reason: &'static str) {
        self.actions.push(Action::Unclear { kind: kind.clone(), paths: Vec::new(), reason });
    }
}

/// The input of a tool call that is shown as its only text: a JSON object.
fn shown_input(call: &ToolCall) -> Option<RawJson> {
    let [ToolCallContent::Content(block)] = call.content.as_slice() else { return None };
    RawJson::new(block.content.as_text()?).ok().filter(RawJson::is_object)
}

/// What a diff does to which files.
fn changes(diff: &Diff) -> Vec<Action> {
    let files =
        |kind: ToolKind, paths: Vec<&String>| Action::Files { kind, paths: paths.into_iter().cloned().collect() };
    let diff = match diff {
        Diff::Text(diff) => return vec![files(ToolKind::Edit, vec![&diff.path])],
        Diff::Patch(diff) => diff,
    };
    let mut actions: Vec<Action> = diff
        .changes
        .iter()
        .map(|change| match change {
            DiffChange::Add(change) | DiffChange::Modify(change) => files(ToolKind::Edit, vec![&change.path]),
            DiffChange::Delete(change) => files(ToolKind::Delete, vec![&change.path]),
            DiffChange::Move(change) => files(ToolKind::Move, vec![&change.old_path, &change.path]),
            DiffChange::Copy(change) => files(ToolKind::Edit, vec![&change.old_path, &change.path]),
            _ => Action::Unclear { kind: ToolKind::Edit, paths: Vec::new(), reason: "a change is of an unknown kind" },
        })
        .collect();
    if actions.is_empty() {
        actions.push(Action::Unclear { kind: ToolKind::Edit, paths: Vec::new(), reason: "a change names no file" });
    }
    actions
}

fn dedup(paths: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}
