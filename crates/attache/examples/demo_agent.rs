//! A demonstration: an agent without a model that does what the words of the prompt say, to try clients with.
//!
//! A prompt is a list of steps, one a line or with `;` between: `say hello; plan; ask; read /project/a.txt`. `/help`
//! tells all of them. What a client does not offer is said to be missing, and the turn goes on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache::agent::{Agent, Ask, Delete, HandlerError, List, OpenRequest, Opened, Restore, Session, SessionHandle};
use attache::model::Patch;
use attache::model::command::{Command, TextInput};
use attache::model::config::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigSwitch, ConfigValue,
};
use attache::model::content::{ContentBlock, MessageId};
use attache::model::diff::Diff;
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::notice::NoticeSeverity;
use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo};
use attache::model::terminal::{ExitStatus, TerminalId, TerminalOutputChunk, TerminalUpdate};
use attache::model::tool::{Location, ToolCallTerminal, ToolKind};
use attache::model::update::{Cost, MessageChunk, SessionUpdate, UsageUpdate};
use attache::{Error, Prompt, Stop, Turn};

/// The steps: a word, what follows it, and what comes of it.
const STEPS: &[(&str, &str, &str)] = &[
    ("say", "TEXT", "says it, word by word"),
    ("think", "TEXT", "thinks it"),
    ("plan", "", "shows a plan and works it off"),
    ("ask", "", "asks whether a tool may be used"),
    ("diff", "PATH", "shows a change of a file"),
    ("read", "PATH", "reads a file through the client"),
    ("write", "PATH TEXT", "writes a file through the client"),
    ("run", "COMMAND", "runs a command through the client"),
    ("screen", "", "shows a terminal of the agent's own"),
    ("usage", "", "tells how full the context is"),
    ("notice", "TEXT", "tells something beside the conversation"),
    ("title", "TEXT", "names the session"),
    ("mode", "ask|auto", "changes the mode from the agent's side"),
    ("slow", "", "waits to be cancelled"),
    ("refuse", "", "refuses to go on"),
    ("fail", "", "ends the turn with an error"),
];

#[tokio::main]
async fn main() -> Result<(), Error> {
    attache::serve(Demo::default()).restores().lists().deletes().on_report(|report| eprintln!("{report}")).stdio().await
}

/// The agent. Its sessions are kept for as long as it runs.
#[derive(Default)]
struct Demo {
    kept: Kept,
}

type Kept = Arc<Mutex<BTreeMap<SessionId, Record>>>;

/// What is kept of a session.
#[derive(Clone, Default)]
struct Record {
    cwd: String,
    title: Option<String>,
    history: Vec<SessionUpdate>,
    settings: Settings,
}

#[derive(Clone)]
struct Settings {
    mode: String,
    thoughts: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { mode: "ask".into(), thoughts: true }
    }
}

impl Settings {
    /// The settings as options of the protocol. The one of category `mode` is also what older clients call modes.
    fn options(&self) -> Vec<ConfigOption> {
        let modes = vec![ConfigValue::new("ask", "Ask first"), ConfigValue::new("auto", "Never ask")];
        let mode = ConfigKind::Select(ConfigSelect::new(self.mode.as_str(), modes));
        let thoughts = ConfigKind::Boolean(ConfigSwitch::new(self.thoughts));
        vec![
            ConfigOption::new("mode", "Mode", mode).category(ConfigCategory::Mode),
            ConfigOption::new("thoughts", "Show thoughts", thoughts),
        ]
    }

    fn set(&mut self, option: &str, value: ConfigSetting) -> Result<(), Error> {
        match (option, value) {
            ("mode", ConfigSetting::Id(mode)) if ["ask", "auto"].contains(&mode.as_str()) => {
                self.mode = mode.as_str().into();
            }
            ("thoughts", ConfigSetting::Boolean(on)) => self.thoughts = on,
            _ => return Err(ErrorObject::wrong_params("there is no such option or value").into()),
        }
        Ok(())
    }
}

impl Demo {
    fn opened(&self, handle: &SessionHandle, settings: Settings) -> Opened<DemoSession> {
        let commands = vec![
            Command::new("help", "Tells what this agent can do").into(),
            Command::new("say", "Says it").input(TextInput::new("what to say")).into(),
        ];
        let options = settings.options();
        let session = DemoSession { id: handle.id().clone(), kept: self.kept.clone(), settings };
        Opened::from(session).options(options).commands(commands)
    }
}

impl Agent for Demo {
    type Session = DemoSession;

    fn info(&self) -> Implementation {
        Implementation::new("attache-demo", env!("CARGO_PKG_VERSION"))
    }

    async fn open(&self, request: OpenRequest, handle: SessionHandle) -> Result<Opened<DemoSession>, HandlerError> {
        let record = Record { cwd: request.cwd, ..Record::default() };
        lock(&self.kept).insert(handle.id().clone(), record);
        Ok(self.opened(&handle, Settings::default()))
    }
}

impl Restore for Demo {
    async fn restore(
        &self,
        session: SessionId,
        _: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> Result<Opened<DemoSession>, HandlerError> {
        let record = lock(&self.kept).get(&session).cloned();
        let record = record.ok_or_else(|| Error::from(ErrorObject::session_not_found(&session)))?;
        for update in record.history.into_iter().filter(|_| replay) {
            handle.update(update).await?;
        }
        Ok(self.opened(&handle, record.settings))
    }
}

impl List for Demo {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        let kept = lock(&self.kept);
        let wanted = kept.iter().filter(|(_, record)| request.cwd.as_ref().is_none_or(|cwd| *cwd == record.cwd));
        let info = |(id, record): (&SessionId, &Record)| {
            SessionInfo::new(id.clone(), record.cwd.as_str()).with(|info| info.title = record.title.clone())
        };
        Ok(ListSessionsResponse::new(wanted.map(info).collect::<Vec<_>>()))
    }
}

impl Delete for Demo {
    async fn delete(&self, session: SessionId) -> Result<(), HandlerError> {
        lock(&self.kept).remove(&session);
        Ok(())
    }
}

struct DemoSession {
    id: SessionId,
    kept: Kept,
    settings: Settings,
}

impl Session for DemoSession {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        let text = prompt.text();
        self.remember(SessionUpdate::UserMessageChunk, &text);
        for step in text.split(['\n', ';']).map(str::trim).filter(|step| !step.is_empty()) {
            if turn.is_cancelled() {
                return Ok(Stop::Cancelled);
            }
            match self.step(&turn, step.trim_start_matches('/')).await {
                Ok(None) => {}
                Ok(Some(stop)) => return Ok(stop),
                // Not every client offers everything; the turn goes on without.
                Err(Error::NotOffered(what)) => {
                    self.say(&turn, &format!("The client does not offer {what}.\n")).await?
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Stop::EndTurn)
    }

    async fn set_option(&mut self, option: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        self.settings.set(option.as_str(), value)?;
        self.change(|record| record.settings = self.settings.clone());
        Ok(self.settings.options())
    }
}

impl DemoSession {
    /// Does one step; a stop ends the turn.
    async fn step(&mut self, turn: &Turn, step: &str) -> Result<Option<Stop>, Error> {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        match word {
            "help" => self.help(turn).await?,
            "say" => self.say(turn, rest).await?,
            "think" if self.settings.thoughts => turn.thought(rest).await?,
            "think" => {}
            "plan" => plan(turn).await?,
            "ask" => return self.ask(turn).await,
            "diff" => diff(turn, rest).await?,
            "read" => self.read(turn, rest).await?,
            "write" => self.write(turn, rest).await?,
            "run" => self.run(turn, rest).await?,
            "screen" => screen(turn).await?,
            "usage" => {
                let cost = Patch::Set(Cost::new(0.25, "USD"));
                turn.usage(UsageUpdate::new(53_000_u64, 200_000_u64).with(|update| update.cost = cost)).await?;
            }
            "notice" => turn.notice(NoticeSeverity::Info, rest).await?,
            "title" => {
                self.change(|record| record.title = Some(rest.into()));
                turn.title(rest).await?;
            }
            "mode" => {
                self.settings.set("mode", ConfigSetting::Id(rest.into()))?;
                turn.options(self.settings.options()).await?;
            }
            "slow" => {
                self.say(turn, "Waiting to be cancelled.").await?;
                turn.cancelled().await;
                return Ok(Some(Stop::Cancelled));
            }
            "refuse" => return Ok(Some(Stop::Refusal)),
            "fail" => return Err(ErrorObject::internal("as you wished").into()),
            _ => self.say(turn, &format!("You said: {step}\n")).await?,
        }
        Ok(None)
    }

    async fn help(&self, turn: &Turn) -> Result<(), Error> {
        let mut text = String::from("This is a demonstration without a model. It knows these words:\n\n");
        for (word, rest, meaning) in STEPS {
            text.push_str(&format!("- `{}`: {meaning}\n", format!("{word} {rest}").trim()));
        }
        self.say(turn, &text).await
    }

    async fn say(&self, turn: &Turn, text: &str) -> Result<(), Error> {
        for piece in text.split_inclusive(' ') {
            turn.text(piece).await?;
        }
        self.remember(SessionUpdate::AgentMessageChunk, text);
        Ok(())
    }

    /// A tool that may only be used with permission, unless the mode says otherwise.
    async fn ask(&self, turn: &Turn) -> Result<Option<Stop>, Error> {
        let tool = turn.tool("Water the plants").await?;
        tool.kind(ToolKind::Generic).await?;
        if self.settings.mode == "ask" {
            // Clients of version 1 show the title of the tool call, so the question has to have it too.
            let call = tool.blank().title("Water the plants");
            let question = Ask::new("Water the plants").tool_call(call).allow_always("Always");
            if !turn.ask(question).await?.is_allowed() {
                tool.fail().await?;
                self.say(turn, "Then not.\n").await?;
                return Ok(turn.is_cancelled().then_some(Stop::Cancelled));
            }
        }
        tool.in_progress().await?;
        tool.push_text("They are wet now.").await?;
        tool.complete().await?;
        Ok(None)
    }

    async fn read(&self, turn: &Turn, path: &str) -> Result<(), Error> {
        let tool = turn.tool(format!("Read {path}")).await?;
        tool.kind(ToolKind::Read).await?;
        tool.locations(vec![Location::new(path)]).await?;
        match turn.read_text_file(path).await {
            Ok(text) => {
                tool.push_text(text.as_str()).await?;
                tool.complete().await?;
                self.say(turn, &format!("It has {} lines.\n", text.lines().count())).await
            }
            // The client's no is an answer like any other.
            Err(Error::Refused(error)) => self.say(turn, &format!("That did not work: {}\n", error.message)).await,
            Err(error) => Err(error),
        }
    }

    async fn write(&self, turn: &Turn, rest: &str) -> Result<(), Error> {
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let tool = turn.tool(format!("Write {path}")).await?;
        tool.kind(ToolKind::Edit).await?;
        let old = turn.read_text_file(path).await.ok();
        tool.push(Diff::text(path, old, text)).await?;
        turn.write_text_file(path, text).await?;
        tool.complete().await
    }

    async fn run(&self, turn: &Turn, line: &str) -> Result<(), Error> {
        let mut words = line.split_whitespace();
        let tool = turn.tool(format!("Run {line}")).await?;
        tool.kind(ToolKind::Execute).await?;
        let terminal = turn.terminal(words.next().unwrap_or("true"), words).await?;
        tool.push(ToolCallTerminal::new(terminal.id().clone())).await?;
        let status = turn.unless_cancelled(terminal.wait()).await??;
        let output = terminal.output().await?.output;
        tool.complete().await?;
        // The tool call may go on showing what the terminal shows after this.
        terminal.release().await?;
        self.say(turn, &format!("Exit code {}, output: {output}\n", status.exit_code.unwrap_or(-1))).await
    }

    fn remember(&self, kind: fn(MessageChunk) -> SessionUpdate, text: &str) {
        self.change(|record| {
            let id = MessageId::from(format!("kept_{}", record.history.len()));
            let chunk = MessageChunk::new(ContentBlock::text(text)).message_id(id);
            record.history.push(kind(chunk));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Record)) {
        if let Some(record) = lock(&self.kept).get_mut(&self.id) {
            change(record);
        }
    }
}

async fn plan(turn: &Turn) -> Result<(), Error> {
    let steps = |first, second| {
        vec![
            PlanEntry::new("Look around", PlanPriority::High, first),
            PlanEntry::new("Tidy up", PlanPriority::Low, second),
        ]
    };
    turn.plan(steps(PlanStatus::InProgress, PlanStatus::Pending)).await?;
    turn.plan(steps(PlanStatus::Completed, PlanStatus::Completed)).await
}

/// A change that is shown and not made.
async fn diff(turn: &Turn, path: &str) -> Result<(), Error> {
    let path = Path::new("/").join(path);
    let path = path.display().to_string();
    let tool = turn.tool(format!("Edit {path}")).await?;
    tool.kind(ToolKind::Edit).await?;
    tool.locations(vec![Location::new(path.as_str()).line(2)]).await?;
    tool.push(Diff::text(path, Some("one\ntwo\n".into()), "one\nthree\n")).await?;
    tool.complete().await
}

/// A terminal of the agent's own, which version 2 can show.
async fn screen(turn: &Turn) -> Result<(), Error> {
    let tool = turn.tool("Say hello").await?;
    let id = TerminalId::from(format!("screen_{}", tool.id()));
    let begun = TerminalUpdate::new(id.clone()).command("echo hello");
    turn.update(SessionUpdate::TerminalUpdate(begun.into())).await?;
    tool.push(ToolCallTerminal::new(id.clone())).await?;
    // "hello\n", in base64.
    turn.update(SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new(id.clone(), "aGVsbG8K"))).await?;
    let status = ExitStatus::new().exit_code(0);
    let ended = TerminalUpdate::new(id).exit_status(status);
    turn.update(SessionUpdate::TerminalUpdate(ended.into())).await?;
    tool.complete().await
}

fn lock(kept: &Kept) -> MutexGuard<'_, BTreeMap<SessionId, Record>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
