//! All tools of a session behind one door: which there are, what a call would do, and doing it.

use std::sync::Arc;

use attache::model::tool::ToolKind;
use serde_json::Value;

use crate::mcp::{McpWork, Servers};
use crate::model::ToolSpec;
use crate::settings::Mode;
use crate::skills::{self, Skill, SkillWork};
use crate::tools::commands::{self, CommandWork, Commands};
use crate::tools::fetch::{self, Fetch, FetchWork};
use crate::tools::files::{self, FileWork};
use crate::tools::{self, Live, Outcome, OwnWork, Prepared, Refusal};
use crate::workspace::Workspace;

/// The tools of one session.
pub(crate) struct Toolbox {
    pub(crate) workspace: Workspace,
    pub(crate) commands: Commands,
    pub(crate) servers: Servers,
    pub(crate) fetch: Fetch,
    pub(crate) skills: Arc<[Skill]>,
}

/// What a call that was looked at is to do.
pub(crate) enum Work {
    /// Something with the project or the world; the toolbox does it.
    Task(Task),
    /// Something with the conversation; the turn does it.
    Own(OwnWork),
}

/// What the toolbox is to do.
pub(crate) enum Task {
    File(FileWork),
    Command(CommandWork),
    Fetch(FetchWork),
    Mcp(McpWork),
    Skill(SkillWork),
}

/// Tools by name, with what is shown before their arguments are known.
const TOOLS: &[(&str, &str, ToolKind)] = &[
    ("read_file", "Read a file", ToolKind::Read),
    ("write_file", "Write a file", ToolKind::Edit),
    ("edit_file", "Edit a file", ToolKind::Edit),
    ("delete_file", "Delete a file", ToolKind::Delete),
    ("move_file", "Move a file", ToolKind::Move),
    ("list_directory", "List a directory", ToolKind::Read),
    ("find_files", "Find files", ToolKind::Search),
    ("search_files", "Search in files", ToolKind::Search),
    ("run_command", "Run a command", ToolKind::Execute),
    ("job_output", "Look at a job", ToolKind::Read),
    ("stop_job", "Stop a job", ToolKind::Execute),
    ("fetch_url", "Fetch a page", ToolKind::Fetch),
    ("open_skill", "Open a skill", ToolKind::Read),
    ("think", "Think", ToolKind::Think),
    ("update_plan", "Plan", ToolKind::Think),
    ("ask_user", "Ask", ToolKind::Generic),
    ("switch_mode", "Switch the mode", ToolKind::SwitchMode),
    ("task", "Give a task to a sub-agent", ToolKind::Generic),
];

/// Whether a tool only looks, so that it can run beside others that only look.
pub(crate) fn only_looks(name: &str) -> bool {
    matches!(name, "read_file" | "list_directory" | "find_files" | "search_files" | "job_output" | "open_skill")
}

impl Toolbox {
    /// The tools that the model is told of. In `architect` there are none that change something.
    pub(crate) fn specs(&self, mode: Mode) -> Vec<ToolSpec> {
        let is_offered = |spec: &ToolSpec| match TOOLS.iter().find(|(name, ..)| *name == spec.name) {
            Some((_, _, kind)) => {
                mode != Mode::Architect
                    || !matches!(kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Execute)
            }
            None => mode != Mode::Architect,
        };
        let own = files::specs().into_iter().chain(commands::specs()).chain(fetch::specs()).chain(tools::own_specs());
        own.chain(skills::specs(&self.skills)).chain(self.servers.specs()).filter(is_offered).collect()
    }

    /// What is shown of a call before its arguments are known.
    pub(crate) fn introduce(&self, name: &str) -> (String, ToolKind) {
        match TOOLS.iter().find(|(known, ..)| *known == name) {
            Some((_, title, kind)) => ((*title).into(), kind.clone()),
            None => (tools::first_line(name, 80), ToolKind::Generic),
        }
    }

    /// Looks at a call without doing anything.
    pub(crate) async fn prepare(&self, name: &str, arguments: &Value) -> Result<Prepared<Work>, Refusal> {
        if let Some(prepared) = tools::prepare_own(name, arguments) {
            return prepared.map(|prepared| prepared.map(Work::Own));
        }
        if let Some(prepared) = files::prepare(&self.workspace, name, arguments).await {
            return prepared.map(|prepared| prepared.map(|work| Work::Task(Task::File(work))));
        }
        if let Some(prepared) = self.commands.prepare(name, arguments) {
            return prepared.map(|prepared| prepared.map(|work| Work::Task(Task::Command(work))));
        }
        if let Some(prepared) = self.fetch.prepare(name, arguments) {
            return prepared.map(|prepared| prepared.map(|work| Work::Task(Task::Fetch(work))));
        }
        if let Some(prepared) = skills::prepare(&self.skills, name, arguments) {
            return prepared.map(|prepared| prepared.map(|work| Work::Task(Task::Skill(work))));
        }
        if let Some(prepared) = self.servers.prepare(name, arguments) {
            return prepared.map(|prepared| prepared.map(|work| Work::Task(Task::Mcp(work))));
        }
        Err(Refusal("there is no tool of that name".into()))
    }

    /// Does what was prepared and allowed.
    pub(crate) async fn perform(&self, task: Task, live: &Live) -> Outcome {
        match task {
            Task::File(work) => files::perform(&self.workspace, work).await,
            Task::Command(work) => self.commands.perform(work, live).await,
            Task::Fetch(work) => self.fetch.perform(work, live).await,
            Task::Mcp(work) => self.servers.perform(work, live).await,
            Task::Skill(work) => skills::perform(work).await,
        }
    }
}
