//! The events of a run, as scripts and the journal see them. Published by `attache schema events`: a promise.

use attache::model::Patch;
use attache::model::command::AvailableCommand;
use attache::model::config::{ConfigKind, ConfigOption};
use attache::model::content::{ContentBlock, ResourceContents};
use attache::model::diff::{Diff, DiffChange};
use attache::model::plan::{PlanContent, PlanEntries};
use attache::model::tool::ToolCallContent;
use attache::model::update::SessionUpdate;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the events. It grows when something that was there changes its meaning or goes; new fields and new
/// types of events may come without that.
pub(crate) const VERSION: u32 = 1;

/// How much of a command's output is kept from its end.
pub(crate) const KEPT_TAIL: usize = 4 << 10;

/// One line of `attache run -o stream-json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Line {
    /// Milliseconds since the run began.
    pub(crate) ms: u64,
    /// Whether this was told before the prompt of this run went out: history of the session, and no part of the answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) history: bool,
    #[serde(flatten)]
    pub(crate) event: Event,
}

impl Line {
    pub(crate) fn new(ms: u64, event: Event) -> Self {
        Line { ms, history: false, event }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What happened. The first event is `start`, the last is `result`. Readers skip types that they do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The run begins.
    Start(Start),
    /// The agent has answered to its greeting.
    Agent(Agent),
    /// There is a session.
    Session(Session),
    /// The model that answers, where the agent tells.
    Model(Model),
    /// Text of the person: the prompt, or what was said earlier in a session that is gone on with.
    User(Text),
    /// Text of the agent, the next piece of it.
    Text(Text),
    /// A thought of the agent, the next piece of it.
    Thought(Text),
    /// A message of the agent that is not what its pieces so far were: this takes their place.
    TextReplaced(Text),
    /// The same for a thought.
    ThoughtReplaced(Text),
    /// A tool call. The first event of an id creates it; later ones change it, and what they leave out stays.
    Tool(Tool),
    /// More output of a tool call.
    ToolOutput(Output),
    /// More output of a command.
    CommandOutput(Output),
    /// A command that runs for the agent. Later events of an id change it, and what they leave out stays.
    Command(Command),
    /// A file that was read or written for the agent.
    File(File),
    /// What the agent means to do, as a whole.
    Plan(Plan),
    /// How full the context is, and what the session has cost so far.
    Usage(ContextUsage),
    /// The slash commands that there are now.
    Commands(Commands),
    /// The mode that the session is in now, where the agent has modes and not options.
    Mode(Mode),
    /// The options as they are now: mode, model and others.
    Options(Options),
    /// The title that the session has now.
    Title(Title),
    /// What the session is doing, where the agent tells.
    State(State),
    /// The next piece of the summary that takes the place of the conversation so far.
    CompactionSummary(Text),
    /// An agent that works for this one. Later events of a session change it, and what they leave out stays.
    Subagent(Subagent),
    /// A message between this session and another, or the next piece of one.
    SessionMessage(SessionMessage),
    /// An update of a kind that is not known here.
    Unknown(Unknown),
    /// The agent asked for permission, and what became of it.
    Permission(Permission),
    /// Something to tell the person.
    Notice(Notice),
    /// The end, always the last line.
    Result(Box<Result>),
}

/// The beginning of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Start {
    /// The version of these events.
    pub(crate) schema: u32,
    /// The version of attache.
    pub(crate) attache: String,
    /// The id of the run, for `attache sessions show`.
    pub(crate) run: String,
    /// When it began, RFC 3339.
    pub(crate) time: String,
    /// The agent, as it was named.
    pub(crate) agent: String,
    /// Who it is for rules and for `--continue`: its name, or its command if that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<String>,
    /// The working directory.
    pub(crate) cwd: String,
}

/// Who the agent says it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Agent {
    /// As it was named on the command line.
    pub(crate) agent: String,
    /// As it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The version of the protocol: `1`, `2` or `2-draft`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
}

/// A session of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Session {
    /// The agent's id for it, for `attache run --resume`.
    pub(crate) id: String,
    /// Whether it was there before.
    pub(crate) resumed: bool,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Model {
    /// The agent's id for it.
    pub(crate) id: String,
    /// What chose it: `--model`, a variable of the environment, or a file of settings. Nothing where the agent did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chosen_by: Option<String>,
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Text {
    /// The text.
    pub(crate) text: String,
    /// The message that it is part of, where the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<String>,
}

/// A tool call, or a change of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Tool {
    /// Its id.
    pub(crate) id: String,
    /// What it does, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `switch_mode`, `other` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// `pending`, `in_progress`, `completed`, `failed`, `cancelled` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// The files that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paths: Option<Vec<String>>,
    /// The same with lines, where the agent tells any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locations: Option<Vec<Location>>,
    /// Changes of files that it makes. They add to those of earlier events, unless `replaces` says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<Vec<Change>>,
    /// All of its text so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// Whether `changes` and `output` take the place of all that earlier events said. What is not there then is gone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) replaces: bool,
    /// The arguments of the tool, unless they are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw_input: Option<serde_json::Value>,
    /// The result of the tool, unless it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw_output: Option<serde_json::Value>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Location {
    /// The file.
    pub(crate) path: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u64>,
}

/// A change of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Change {
    /// The files.
    pub(crate) paths: Vec<String>,
    /// The change as a unified diff, where the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<String>,
}

/// More output of something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Output {
    /// Whose.
    pub(crate) id: String,
    /// What.
    pub(crate) text: String,
}

/// A command, or news of one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Command {
    /// Its id.
    pub(crate) id: String,
    /// What runs, as one would type it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i64>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<String>,
    /// The end of its output so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<String>,
}

/// A file that was served to the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct File {
    /// `read` or `write`.
    pub(crate) operation: FileOperation,
    /// Which.
    pub(crate) path: String,
    /// Why it was not done, when it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileOperation {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Plan {
    /// Which, where the agent has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Its steps.
    pub(crate) entries: Vec<PlanEntry>,
}

impl Plan {
    /// The steps that are not as they were in the plan before; all of them if it was another plan.
    pub(crate) fn changed_since<'a>(&'a self, before: Option<&'a Plan>) -> impl Iterator<Item = &'a PlanEntry> {
        let texts = |plan: &'a Plan| plan.entries.iter().map(|entry| &entry.text);
        let before = before.filter(|before| before.id == self.id && texts(before).eq(texts(self)));
        let changed = move |at: usize, entry: &PlanEntry| before.is_none_or(|before| before.entries[at] != *entry);
        self.entries.iter().enumerate().filter(move |(at, entry)| changed(*at, entry)).map(|(_, entry)| entry)
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct PlanEntry {
    /// What is to be done.
    pub(crate) text: String,
    /// `pending`, `in_progress`, `completed` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// `high`, `medium`, `low` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<String>,
}

/// The slash commands that there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Commands {
    /// All of them.
    pub(crate) commands: Vec<SlashCommand>,
}

/// A slash command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct SlashCommand {
    /// Its name, without the slash.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
}

/// The mode that a session is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Mode {
    /// Its id.
    pub(crate) mode: String,
}

/// The options of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Options {
    /// All of them.
    pub(crate) options: Vec<SetOption>,
}

/// An option of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct SetOption {
    /// Its id, for `--set`.
    pub(crate) id: String,
    /// `mode`, `model` …, where the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<String>,
    /// What it is set to.
    pub(crate) value: String,
}

/// The title of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Title {
    /// What it is called; nothing when it has lost its title.
    pub(crate) title: Option<String>,
}

/// An update of a kind that is not known here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Unknown {
    /// What the agent calls it.
    pub(crate) kind: String,
    /// All of it, unless it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) update: Option<serde_json::Value>,
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct State {
    /// `running`, `idle`, `requires_action`, or another word of the agent.
    pub(crate) state: String,
}

/// An agent that works for the one that was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Subagent {
    /// Its session.
    pub(crate) session: String,
    /// What it does, in one line; empty if that was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// More about it; empty if that was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// What it is doing: see the event `state`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// The directory that it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
}

/// A message between sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct SessionMessage {
    /// The message.
    pub(crate) id: String,
    /// The session that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The session that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The text, or the next piece of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Whether the text takes the place of all pieces so far.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) replaces: bool,
}

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct ContextUsage {
    /// Tokens in the context.
    pub(crate) used: u64,
    /// Tokens that fit into it.
    pub(crate) size: u64,
    /// What the session has cost so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Cost {
    /// How much.
    pub(crate) amount: f64,
    /// Of what, by ISO 4217.
    pub(crate) currency: String,
}

/// A permission that the agent asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Permission {
    /// What for, in one line.
    pub(crate) what: String,
    /// What became of it.
    pub(crate) answer: Answer,
    /// Why: the rule, the mode, or the person.
    pub(crate) reason: String,
    /// The tool call that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Yes.
    Allowed,
    /// No.
    Denied,
    /// The turn was cancelled meanwhile.
    Cancelled,
}

/// Something to tell the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Notice {
    /// How bad it is.
    pub(crate) level: Level,
    /// What it is.
    pub(crate) text: String,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Good to know.
    Info,
    /// Worth a look.
    Warning,
    /// Something failed.
    Error,
}

/// What a run came to: the one object of `-o json`, and the last line of `-o stream-json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Result {
    /// How it ended.
    pub(crate) status: Status,
    /// The exit code of the program.
    pub(crate) exit_code: u8,
    /// Why the agent stopped: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal`, `cancelled` …
    pub(crate) stop_reason: Option<String>,
    /// All text of the agent in this run, as it was at the end.
    pub(crate) text: String,
    /// Whether the text was too long to keep, and this is only its beginning.
    pub(crate) text_truncated: bool,
    /// The session, for `attache run --resume`.
    pub(crate) session_id: Option<String>,
    /// The run, for `attache sessions show`.
    pub(crate) run: String,
    /// The agent.
    pub(crate) agent: Agent,
    /// The model, where the agent tells.
    #[serde(default)]
    pub(crate) model: Option<Model>,
    /// The tokens of the turn, where the agent tells.
    pub(crate) usage: Option<Usage>,
    /// How full the context is at the end, where the agent tells.
    pub(crate) context: Option<ContextUsage>,
    /// What the run has cost, where the agent tells; `context.cost` is what the whole session has.
    pub(crate) cost: Option<Cost>,
    /// How often permission was asked for, and what became of it.
    pub(crate) permissions: Permissions,
    /// The tool calls, at most the first thousand.
    pub(crate) tool_calls: Vec<ToolCall>,
    /// The plan as it was at the end, where the agent had one.
    #[serde(default)]
    pub(crate) plan: Option<Plan>,
    /// How many updates of the agent were of kinds that are not known here.
    #[serde(default)]
    pub(crate) unknown_updates: u64,
    /// The files that were changed, as far as the agent told or we wrote them.
    pub(crate) files_changed: Vec<String>,
    /// How the agent and its commands were confined, if it came to that.
    #[serde(default)]
    pub(crate) sandbox: Option<Sandbox>,
    /// How long it took.
    pub(crate) duration_ms: u64,
    /// What went wrong.
    pub(crate) error: Option<Error>,
}

/// How the agent and its commands were confined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Sandbox {
    /// Whether they were.
    pub(crate) state: SandboxState,
    /// What this machine did not enforce of it, in sentences.
    pub(crate) gaps: Vec<String>,
}

/// Whether there was a sandbox. Without `--sandbox` this is about the commands of the built-in agent; another agent may
/// have one of its own that we do not know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum SandboxState {
    /// No.
    Off,
    /// Yes.
    On,
    /// Yes, and without a network.
    Offline,
    /// No, because this machine cannot enforce one.
    Unavailable,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The agent ended its turn.
    Done,
    /// The agent answered with an error, or broke the protocol.
    Error,
    /// The command line or a file of settings is wrong.
    Usage,
    /// It took too long.
    Timeout,
    /// The agent wants a login first.
    LoginRequired,
    /// Something was denied, and `--fail-on-denied` was given.
    Denied,
    /// The model refused.
    Refused,
    /// A limit of tokens or requests was met, or `-o quiet` met an answer that is too long for it.
    Limit,
    /// The agent ended its turn and did nothing: its rules did not understand the prompt, or all that it asked for was denied.
    NotDone,
    /// There is no such agent or session.
    NotFound,
    /// The agent did not start, or died.
    AgentDied,
    /// It was cut short: by a signal, by a reader of stdout that left, or by the agent, which says that it was cancelled.
    Cancelled,
}

impl Status {
    /// For people.
    pub(crate) fn words(self) -> String {
        serde_json::to_string(&self).unwrap_or_default().trim_matches('"').replace('_', " ")
    }
}

/// The tokens of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Usage {
    /// All of them.
    pub(crate) total_tokens: u64,
    /// Read by the model.
    pub(crate) input_tokens: u64,
    /// Written by the model.
    pub(crate) output_tokens: u64,
    /// Thought by the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thought_tokens: Option<u64>,
    /// Read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_read_tokens: Option<u64>,
    /// Written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_write_tokens: Option<u64>,
}

/// How often permission was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Permissions {
    /// Times that the agent wanted something that needs permission.
    pub(crate) asked: u64,
    /// Times that it was allowed.
    pub(crate) allowed: u64,
    /// Times that it was denied.
    pub(crate) denied: u64,
}

/// A tool call as it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct ToolCall {
    /// Its id.
    pub(crate) id: String,
    /// What it did.
    pub(crate) title: String,
    /// Its kind.
    pub(crate) kind: String,
    /// How it ended.
    pub(crate) status: String,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(crate) struct Error {
    /// In a sentence.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

impl Error {
    /// Parts a message from the hint in its last line.
    pub(crate) fn new(message: &str) -> Self {
        match message.split_once("\nhint: ") {
            Some((message, hint)) => Error { message: message.into(), hint: Some(hint.into()) },
            None => Error { message: message.into(), hint: None },
        }
    }
}

impl Event {
    pub(crate) fn notice(level: Level, text: impl Into<String>) -> Self {
        Event::Notice(Notice { level, text: text.into() })
    }
}

/// The JSON Schema of the events. A file rather than made at run time: what makes it is compiled for tests only.
pub(crate) const SCHEMA: &str = include_str!("event.schema.json");

/// How many paths of a tool call are told. Nobody reads more, and a list without an end is only memory.
const MOST_PATHS: usize = 1000;

/// How long arguments and results of tools may be to be told.
const LONGEST_RAW: usize = 64 << 10;

fn raw(json: &attache::model::RawJson) -> Option<serde_json::Value> {
    if json.as_str().len() > LONGEST_RAW { None } else { json.parse().ok() }
}

/// What an update of the agent is as an event, if it is taken by itself. `None` for what only matters to an editor.
pub(crate) fn from_update(update: &SessionUpdate) -> Option<Event> {
    let text = |chunk: &attache::model::update::MessageChunk| Text {
        text: text_of(&chunk.content),
        message_id: chunk.message_id.as_ref().map(ToString::to_string),
    };
    let whole = |message: &attache::model::update::MessageUpdate| {
        Some(Text {
            text: message.content.set()?.iter().map(text_of).collect(),
            message_id: Some(message.message_id.to_string()),
        })
    };
    Some(match update {
        SessionUpdate::UserMessageChunk(chunk) => Event::User(text(chunk)),
        SessionUpdate::AgentMessageChunk(chunk) => Event::Text(text(chunk)),
        SessionUpdate::AgentThoughtChunk(chunk) => Event::Thought(text(chunk)),
        SessionUpdate::UserMessage(message) => Event::User(whole(message)?),
        SessionUpdate::AgentMessage(message) => Event::Text(whole(message)?),
        SessionUpdate::AgentThought(message) => Event::Thought(whole(message)?),
        SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => {
            let tool = tool(call);
            // What changed is nothing that is told here.
            if tool == (Tool { id: tool.id.clone(), ..Tool::default() }) {
                return None;
            }
            Event::Tool(tool)
        }
        SessionUpdate::ToolCallContentChunk(chunk) => {
            let id = short(chunk.tool_call_id.as_str());
            match change(&chunk.content) {
                Some(change) => Event::Tool(Tool { id, changes: Some(vec![change]), ..Tool::default() }),
                None => Event::ToolOutput(Output { id, text: output(&chunk.content)? }),
            }
        }
        SessionUpdate::Plan(PlanEntries { entries, .. }) => plan(None, entries),
        SessionUpdate::PlanUpdate(update) => match &update.plan {
            PlanContent::Items(items) => plan(Some(items.plan_id.to_string()), &items.entries),
            PlanContent::Markdown(plan) => Event::Plan(Plan {
                id: Some(plan.plan_id.to_string()),
                entries: vec![PlanEntry { text: plan.content.clone(), status: None, priority: None }],
            }),
            PlanContent::File(plan) => Event::Plan(Plan {
                id: Some(plan.plan_id.to_string()),
                entries: vec![PlanEntry { text: plan.uri.clone(), status: None, priority: None }],
            }),
            PlanContent::Other(unknown) => Event::Unknown(Unknown {
                kind: short(&format!("plan_update {}", unknown.tag())),
                update: raw(unknown.raw()),
            }),
            _ => return None,
        },
        SessionUpdate::PlanRemoved(plan) => {
            Event::Plan(Plan { id: Some(plan.plan_id.to_string()), entries: Vec::new() })
        }
        SessionUpdate::AvailableCommands(update) => {
            let command = |command: &AvailableCommand| match command {
                AvailableCommand::Command(command) => {
                    Some(SlashCommand { name: command.name.clone(), description: command.description.clone() })
                }
                _ => None,
            };
            Event::Commands(Commands { commands: update.available_commands.iter().filter_map(command).collect() })
        }
        SessionUpdate::CurrentMode(update) => Event::Mode(Mode { mode: update.current_mode_id.to_string() }),
        SessionUpdate::ConfigOptions(update) => options(&update.config_options),
        SessionUpdate::SessionInfo(update) if !update.title.is_keep() => {
            Event::Title(Title { title: update.title.set().cloned() })
        }
        SessionUpdate::Other(unknown) => {
            Event::Unknown(Unknown { kind: short(unknown.tag()), update: raw(unknown.raw()) })
        }
        SessionUpdate::Usage(usage) => Event::Usage(ContextUsage {
            used: usage.used,
            size: usage.size,
            cost: usage.cost.set().map(|cost| Cost { amount: cost.amount, currency: cost.currency.clone() }),
        }),
        SessionUpdate::Notice(notice) => {
            let level = match notice.severity.as_str() {
                "error" => Level::Error,
                "warning" => Level::Warning,
                _ => Level::Info,
            };
            let description = notice.description.as_deref().map(|text| format!(": {text}"));
            Event::notice(level, format!("{}{}", notice.title, description.unwrap_or_default()))
        }
        SessionUpdate::TerminalUpdate(update) => {
            let status = update.exit_status.set();
            let output = update.output.set().and_then(|output| attache::proto::base64::decode(&output.data));
            Event::Command(Command {
                id: short(update.terminal_id.as_str()),
                command: update.command.set().cloned(),
                cwd: update.cwd.set().cloned(),
                exit_code: status.and_then(|status| status.exit_code),
                signal: status.and_then(|status| status.signal.clone()),
                tail: output.map(|output| tail_of(&String::from_utf8_lossy(&output))),
            })
        }
        SessionUpdate::TerminalOutputChunk(chunk) => {
            let bytes = attache::proto::base64::decode(&chunk.data)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Event::CommandOutput(Output { id: short(chunk.terminal_id.as_str()), text })
        }
        SessionUpdate::Compaction(update) => Event::notice(Level::Info, format!("compaction {}", update.status)),
        SessionUpdate::CompactionSummaryChunk(chunk) => Event::CompactionSummary(Text {
            text: text_of(&chunk.content),
            message_id: Some(short(chunk.compaction_id.as_str())),
        }),
        SessionUpdate::State(state) => Event::State(State { state: short(state.tag()) }),
        SessionUpdate::Subagent(update) => Event::Subagent(Subagent {
            session: short(update.session_id.as_str()),
            title: told(&update.title, &String::new()).cloned(),
            description: told(&update.description, &String::new()).cloned(),
            state: update.state.set().map(|state| short(state.tag())),
            cwd: update.cwd.set().cloned(),
        }),
        SessionUpdate::SessionMessage(message) => Event::SessionMessage(SessionMessage {
            id: short(message.message_id.as_str()),
            from: message.sender_session_id.set().map(|id| short(id.as_str())),
            to: message.recipient_session_id.set().map(|id| short(id.as_str())),
            text: told(&message.content, &Vec::new()).map(|content| content.iter().map(text_of).collect()),
            replaces: !message.content.is_keep(),
        }),
        SessionUpdate::SessionMessageChunk(chunk) => Event::SessionMessage(SessionMessage {
            id: short(chunk.message_id.as_str()),
            from: None,
            to: None,
            text: Some(text_of(&chunk.content)),
            replaces: false,
        }),
        // What is left says nothing new: information of a session without a title, a plan of an unknown kind.
        _ => return None,
    })
}

/// An id that is not longer than ids are: they are kept.
fn short(id: &str) -> String {
    id.chars().take(256).collect()
}

/// The options of a session as they are now.
pub(crate) fn options(options: &[ConfigOption]) -> Event {
    let option = |option: &ConfigOption| SetOption {
        id: option.id.to_string(),
        category: option.category.as_ref().map(ToString::to_string),
        value: match &option.kind {
            ConfigKind::Select(select) => select.current.to_string(),
            ConfigKind::Boolean(switch) => switch.current.to_string(),
            _ => String::new(),
        },
    };
    Event::Options(Options { options: options.iter().map(option).collect() })
}

fn plan(id: Option<String>, entries: &[attache::model::plan::PlanEntry]) -> Event {
    let entry = |entry: &attache::model::plan::PlanEntry| PlanEntry {
        text: entry.content.clone(),
        status: Some(entry.status.to_string()),
        priority: Some(entry.priority.to_string()),
    };
    Event::Plan(Plan { id, entries: entries.iter().map(entry).collect() })
}

/// What a tool call says. What is cleared is told as what it is then.
pub(crate) fn tool(call: &attache::model::tool::ToolCallUpdate) -> Tool {
    let none = Vec::new();
    let content = told(&call.content, &none);
    let changes: Option<Vec<Change>> = content.map(|content| content.iter().filter_map(change).collect());
    let output: Option<Vec<String>> = content.map(|content| content.iter().filter_map(output).collect());
    let no_locations = Vec::new();
    let locations = told(&call.locations, &no_locations);
    let locations = locations.map(|locations| &locations[..locations.len().min(MOST_PATHS)]);
    Tool {
        id: short(call.tool_call_id.as_str()),
        title: told(&call.title, &String::new()).cloned(),
        kind: told(&call.kind, &Default::default()).map(ToString::to_string),
        status: told(&call.status, &Default::default()).map(ToString::to_string),
        paths: locations.map(|locations| locations.iter().map(|location| location.path.clone()).collect()),
        locations: locations.filter(|locations| locations.iter().any(|location| location.line.is_some())).map(
            |locations| {
                let place = |location: &attache::model::tool::Location| Location {
                    path: location.path.clone(),
                    line: location.line.map(u64::from),
                };
                locations.iter().map(place).collect()
            },
        ),
        changes: changes.filter(|changes| !changes.is_empty()),
        output: output.filter(|output| !output.is_empty()).map(|output| output.join("\n")),
        replaces: content.is_some(),
        raw_input: call.raw_input.set().and_then(raw),
        raw_output: call.raw_output.set().and_then(raw),
    }
}

/// What an update sets something to, if it does.
fn told<'a, T>(patch: &'a Patch<T>, cleared: &'a T) -> Option<&'a T> {
    match patch {
        Patch::Keep => None,
        Patch::Clear => Some(cleared),
        Patch::Set(value) => Some(value),
    }
}

fn change(content: &ToolCallContent) -> Option<Change> {
    let ToolCallContent::Diff(diff) = content else { return None };
    Some(change_of(diff))
}

pub(crate) fn change_of(diff: &Diff) -> Change {
    let patch = diff.to_patch();
    let paths = patch.changes.iter().flat_map(|change| match change {
        DiffChange::Add(change) | DiffChange::Delete(change) | DiffChange::Modify(change) => vec![change.path.clone()],
        DiffChange::Move(change) | DiffChange::Copy(change) => vec![change.old_path.clone(), change.path.clone()],
        _ => Vec::new(),
    });
    Change { paths: paths.collect(), patch: patch.patch.map(|patch| patch.text) }
}

fn output(content: &ToolCallContent) -> Option<String> {
    match content {
        ToolCallContent::Content(block) => Some(text_of(&block.content)),
        _ => None,
    }
}

/// The end of a command's output, which is what matters of a long one.
pub(crate) fn tail_of(output: &str) -> String {
    output[output.ceil_char_boundary(output.len().saturating_sub(KEPT_TAIL))..].to_owned()
}

/// The text of a block; what is no text is named in brackets.
pub(crate) fn text_of(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio, {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::Text(resource) => format!("[{}]\n{}", resource.uri, resource.text),
            ResourceContents::Blob(resource) => format!("[{}]", resource.uri),
        },
        _ => "[content of an unknown kind]".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BLESS=1` writes the file.
    #[test]
    fn the_schema_is_that_of_the_types() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Line)).unwrap() + "\n";
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/event.schema.json"), &schema).unwrap();
            return;
        }
        assert!(
            schema == SCHEMA,
            "the events have changed; look at `event.rs`, then BLESS=1 and look at the difference"
        );
    }
}
