//! All tools of a session behind one door: which there are, what a call would do, and doing it.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use attache::model::tool::ToolKind;
use serde_json::{Value, json};

use crate::mcp::{McpWork, Servers};
use crate::model::{Call, ModelInfo, ToolSpec};
use crate::settings::Mode;
use crate::skills::{self, Skill, SkillWork};
use crate::tools::commands::{self, CommandWork, Commands};
use crate::tools::fetch::{self, Fetch, FetchWork};
use crate::tools::files::{self, FileWork};
use crate::tools::{self, Arguments, Introduction, Live, Outcome, OwnWork, Prepared, Refusal, on_one_line};
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

impl Work {
    /// The command that it runs, if it is one.
    pub(crate) fn command(&mut self) -> Option<&mut CommandWork> {
        match self {
            Work::Task(Task::Command(work)) => Some(work),
            _ => None,
        }
    }
}

/// A tool of ours, as it is shown.
struct Row {
    name: &'static str,
    /// What it is called as long as nothing is known of its arguments.
    title: &'static str,
    kind: ToolKind,
    /// The argument that tells what a call is about.
    lead: &'static str,
    /// Whether it can be shown as soon as that has come, because others may be long.
    is_long: bool,
}

const fn row(name: &'static str, title: &'static str, kind: ToolKind, lead: &'static str) -> Row {
    Row { name, title, kind, lead, is_long: false }
}

const fn long_row(name: &'static str, title: &'static str, kind: ToolKind, lead: &'static str) -> Row {
    Row { name, title, kind, lead, is_long: true }
}

const TOOLS: &[Row] = &[
    row("read_file", "Read a file", ToolKind::Read, "path"),
    long_row("write_file", "Write a file", ToolKind::Edit, "path"),
    long_row("edit_file", "Edit a file", ToolKind::Edit, "path"),
    row("delete_file", "Delete a file", ToolKind::Delete, "path"),
    row("move_file", "Move a file", ToolKind::Move, "from"),
    row("list_directory", "List a directory", ToolKind::Read, "path"),
    row("find_files", "Find files", ToolKind::Search, "pattern"),
    row("search_files", "Search in files", ToolKind::Search, "pattern"),
    row("run_command", "Run a command", ToolKind::Execute, "command"),
    row("job_output", "Look at a job", ToolKind::Read, "job"),
    row("stop_job", "Stop a job", ToolKind::Execute, "job"),
    // An address that is refused may have a password in it.
    row("fetch_url", "Fetch a page", ToolKind::Fetch, ""),
    row("open_skill", "Open a skill", ToolKind::Read, "name"),
    row("think", "Think", ToolKind::Think, ""),
    row("update_plan", "Plan", ToolKind::Think, ""),
    row("ask_user", "Ask", ToolKind::Generic, "question"),
    row("switch_mode", "Switch the mode", ToolKind::SwitchMode, "mode"),
    row("task", "Give a task to a sub-agent", ToolKind::Generic, "description"),
];

/// What our tools take.
static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
    let own = files::specs().into_iter().chain(commands::specs()).chain(fetch::specs()).chain(tools::own_specs());
    own.chain([skills::spec()]).collect()
});

fn row_of(name: &str) -> Option<&'static Row> {
    TOOLS.iter().find(|row| row.name == name)
}

/// The names of our own tools.
pub(crate) fn own_tool_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|row| row.name)
}

/// Whether it is the name of one of our own tools, and not of a server's.
pub(crate) fn is_own_tool(name: &str) -> bool {
    row_of(name).is_some()
}

/// The arguments of a call, read once for all that is done with them: judged, shown, told to hooks, done.
pub(crate) fn arguments(call: &Call) -> Result<Value, Refusal> {
    let given = tools::parse_arguments(&call.arguments)?;
    match SPECS.iter().find(|spec| spec.name == call.name) {
        Some(spec) => tools::fitted(given, &spec.schema),
        // A server's tool reads them itself.
        None => Ok(given),
    }
}

/// What is known of the arguments of a call that are still coming, if that is enough to show it.
pub(crate) fn early_arguments(name: &str, so_far: &str) -> Option<Value> {
    let row = row_of(name).filter(|row| row.is_long)?;
    let known = tools::beginning(so_far);
    let has_lead = Arguments::new(&known).optional_text(row.lead).is_ok_and(|lead| lead.is_some());
    has_lead.then_some(known)
}

/// Whether a tool only looks, so that it can run beside others that only look.
pub(crate) fn only_looks(name: &str) -> bool {
    matches!(name, "read_file" | "list_directory" | "find_files" | "search_files" | "job_output" | "open_skill")
}

/// What small models are told of: few tools, in few words, and no more arguments than it takes.
const SMALL: &[(&str, &str, &[&str])] = &[
    ("read_file", "Reads a file.", &["path"]),
    // What is in it is asked for apart: small models get the escapes of JSON wrong.
    ("write_file", "Changes a file, or creates it. You are asked for its whole text next.", &["path"]),
    ("run_command", "Runs a shell command, such as ls, grep -rn, rm, or a test.", &["command"]),
];

/// What models with little room are told of: the tools that most work takes, in few words. What they send is read as the
/// whole tool reads it.
const BRIEF: &[(&str, &str, &[&str], &[&str])] = &[
    ("read_file", "Reads a file. Lines have their numbers before them.", &["path"], &["line", "limit"]),
    ("write_file", "Creates a file, or writes all of one that was read.", &["path", "content"], &[]),
    (
        "edit_file",
        "Replaces text in a file that was read. `old_text` is in it exactly once, and has no line numbers.",
        &["path", "old_text", "new_text"],
        &[],
    ),
    ("find_files", "Finds files by a glob.", &["pattern"], &[]),
    ("search_files", "Finds lines by a regular expression.", &["pattern"], &["path"]),
    (
        "run_command",
        "Runs a shell command. The user is asked for what it `needs` that the sandbox withholds, with your `reason`.",
        &["command"],
        &["needs", "reason"],
    ),
    ("switch_mode", "Changes the mode. To leave `architect`, give the `plan`.", &["mode"], &["plan"]),
];

fn brief_specs() -> impl Iterator<Item = ToolSpec> {
    let kind = |parameter: &str| match parameter {
        "line" | "limit" => json!({"type": "integer"}),
        "needs" => json!({"type": "array", "items": {"type": "string", "enum": ["network", "unsandboxed"]}}),
        _ => json!({"type": "string"}),
    };
    BRIEF.iter().map(move |(name, description, required, optional)| {
        let properties = required.iter().chain(*optional);
        let properties = properties.map(|parameter| ((*parameter).to_owned(), kind(parameter)));
        let schema = json!({
            "type": "object",
            "properties": properties.collect::<serde_json::Map<_, _>>(),
            "required": required,
        });
        ToolSpec { name: (*name).into(), description: (*description).into(), schema }
    })
}

/// The tool that a small model ends with where it is only asked something: what it says is asked for apart, too.
pub(crate) const ANSWER: &str = "answer";

/// The same for questions: nothing that changes files.
const SMALL_QUESTION: &[(&str, &str, &[&str])] = &[
    ("read_file", "Reads a file.", &["path"]),
    ("run_command", "Runs a shell command, such as ls, grep -rn, wc -l, or a script.", &["command"]),
    (ANSWER, "Ends the work, when you know the answer. You are asked for it next.", &[]),
];

fn small_specs(is_question: bool) -> impl Iterator<Item = ToolSpec> {
    let tools = if is_question { SMALL_QUESTION } else { SMALL };
    tools.iter().map(|(name, description, parameters)| {
        let properties = parameters.iter().map(|parameter| ((*parameter).to_owned(), json!({ "type": "string" })));
        let schema = json!({
            "type": "object",
            "properties": properties.collect::<serde_json::Map<_, _>>(),
            "required": parameters,
        });
        ToolSpec { name: (*name).into(), description: (*description).into(), schema }
    })
}

/// How many tools of servers a small model is told of, and one with little room. The rest is there for others.
const FEW: usize = 5;
const SOME: usize = 20;

/// How many characters of their descriptions, and how many bytes their parameters may take.
const SHORT_DESCRIPTION: usize = 160;
const LONGEST_SCHEMA: usize = 4 << 10;

/// Tools of several servers, so that each has one of the first places.
fn by_turns(specs: impl Iterator<Item = ToolSpec>) -> Vec<ToolSpec> {
    let server_of = |spec: &ToolSpec| spec.name.split("__").next().unwrap_or_default().to_owned();
    let mut counts: std::collections::HashMap<String, usize> = Default::default();
    let mut specs: Vec<(usize, ToolSpec)> = specs
        .map(|spec| {
            let count = counts.entry(server_of(&spec)).or_default();
            *count += 1;
            (*count, spec)
        })
        .collect();
    specs.sort_by_key(|(count, _)| *count);
    specs.into_iter().map(|(_, spec)| spec).collect()
}

impl Toolbox {
    /// The tools that a model is told of.
    ///
    /// They are the same in every mode: they come before all else in a request, and one that is begun differently is
    /// not in the provider's cache. What a mode refuses is refused by the gate. Small models are told of no tool that
    /// would be refused, or that a question does not need, and neither are rules. Models with little room are told of
    /// fewer, in fewer words.
    pub(crate) fn specs(&self, mode: Mode, model: &ModelInfo, is_question: bool) -> Vec<ToolSpec> {
        let is_offered = |spec: &ToolSpec| match row_of(&spec.name) {
            Some(row) => {
                mode != Mode::Architect
                    || !matches!(row.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Execute)
            }
            None => mode != Mode::Architect,
        };
        if model.is_small {
            let is_usable = |spec: &ToolSpec| spec.name == ANSWER || is_offered(spec);
            return small_specs(is_question).chain(self.few_of_servers(FEW)).filter(is_usable).collect();
        }
        if model.is_brief() {
            let skill = (!self.skills.is_empty()).then(skills::spec);
            return brief_specs().chain(skill).chain(self.few_of_servers(SOME)).collect();
        }
        let is_there = |spec: &&ToolSpec| spec.name != "open_skill" || !self.skills.is_empty();
        let all = SPECS.iter().filter(is_there).cloned().chain(self.servers.specs());
        if model.is_offline() { all.filter(is_offered).collect() } else { all.collect() }
    }

    /// Tools of servers for a model that has no room for many, in few words.
    fn few_of_servers(&self, most: usize) -> impl Iterator<Item = ToolSpec> {
        let briefly =
            |spec: ToolSpec| ToolSpec { description: tools::first_line(&spec.description, SHORT_DESCRIPTION), ..spec };
        let is_short = |spec: &ToolSpec| spec.schema.to_string().len() <= LONGEST_SCHEMA;
        by_turns(self.servers.specs().into_iter().filter(is_short)).into_iter().take(most).map(briefly)
    }

    /// What is shown of a call before it is looked at: what its arguments tell, as far as they are known. It is what a
    /// call that was looked at is shown as, unless what came between has changed that.
    pub(crate) async fn introduce(&self, name: &str, arguments: &Value) -> Introduction {
        if let Some(shown) = files::introduce(&self.workspace, name, arguments).await {
            return shown;
        }
        let command = self.commands.prepare(name, arguments).await;
        let prepared = tools::prepare_own(name, arguments)
            .map(|prepared| prepared.map(Introduction::of))
            .or_else(|| command.map(|prepared| prepared.map(Introduction::of)))
            .or_else(|| self.fetch.prepare(name, arguments).map(|prepared| prepared.map(Introduction::of)))
            .or_else(|| skills::prepare(&self.skills, name, arguments).map(|prepared| prepared.map(Introduction::of)))
            .or_else(|| self.servers.prepare(name, arguments).map(|prepared| prepared.map(Introduction::of)));
        if let Some(Ok(shown)) = prepared {
            return shown;
        }
        // It will be refused; so it says only what it was about.
        let Some(row) = row_of(name) else {
            return Introduction { title: on_one_line(name), kind: ToolKind::Generic, locations: Vec::new() };
        };
        let lead = Arguments::new(arguments).optional_text(row.lead).ok().flatten().unwrap_or_default();
        let title = match tools::first_line(&on_one_line(&lead), 80) {
            lead if lead.is_empty() => row.title.to_owned(),
            lead => format!("{}: {lead}", row.title),
        };
        Introduction { title, kind: row.kind.clone(), locations: Vec::new() }
    }

    /// Looks at a call without doing anything.
    pub(crate) async fn prepare(
        &self,
        name: &str,
        arguments: &Value,
        model: &ModelInfo,
    ) -> Result<Prepared<Work>, Refusal> {
        let mut arguments = Cow::Borrowed(arguments);
        let is_read_by_rules = model.is_offline() && name == "read_file";
        if row_of(name).is_some() && arguments.is_object() {
            if model.is_small || is_read_by_rules {
                arguments.to_mut()[files::FOR_SMALL] = true.into();
            }
            if is_read_by_rules {
                arguments.to_mut()[files::WITHOUT_NUMBERS] = true.into();
            }
        }
        let arguments = &*arguments;
        if let Some(prepared) = tools::prepare_own(name, arguments) {
            return prepared.map(|prepared| prepared.map(Work::Own));
        }
        if let Some(prepared) = files::prepare(&self.workspace, name, arguments).await {
            return prepared.map(|prepared| prepared.map(|work| Work::Task(Task::File(work))));
        }
        if let Some(prepared) = self.commands.prepare(name, arguments).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_one_of_the_first_places() {
        let spec = |name: &&str| ToolSpec { name: (*name).into(), description: String::new(), schema: Value::Null };
        let order = |names: &[&str]| {
            by_turns(names.iter().map(spec)).into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            order(&["a__one", "a__two", "a__three", "b__one", "c__one", "c__two"]),
            "a__one b__one c__one a__two c__two a__three"
        );
        // A server keeps the order of its tools, and one alone keeps all.
        assert_eq!(order(&["a__z", "a__y", "a__x"]), "a__z a__y a__x");
        assert_eq!(order(&["a__x__y", "a__x", "ab__x"]), "a__x__y ab__x a__x");
        assert_eq!(order(&[]), "");
    }
}
