//! For tests: an agent that does as its options say, and as the steps of the prompt say.
//!
//! A prompt is steps with `; ` between them (see `step`); one that begins with no step is said back.
//!
//! `--die start|session|turn` ends without a word; `--junk` prints what is no message; `--hang` never answers; `--auth
//! agent|terminal|both` wants a login; `--state FILE` is there while somebody is logged in; `--login FILE` is the login
//! in a terminal; `--pid FILE` tells the process id; `--show NAME` tells a variable of the environment as its version;
//! `--generous` offers all that an agent may take: images, embedded files, further directories, a choice of models.
//! `--mute` never answers to logins and settings. `--sessions FILE` keeps sessions, which can be forked and deleted: FILE tells their ids.
#![allow(clippy::print_stdout, reason = "what is no message is printed to see what comes of it")]

#[path = "scripted_agent/chat.rs"]
mod chat;

use std::fs;
use std::path::PathBuf;
use std::process::exit;

use attache::agent::{
    Agent, Ask, Authenticate, Context, Delete, Fork, HandlerError, List, OpenRequest, Opened, Restore, Session,
    SessionHandle,
};
use attache::model::auth::{AgentAuthMethod, AuthMethod, AuthMethodId, TerminalAuthMethod};
use attache::model::capability::Capability;
use attache::model::command::Command;
use attache::model::config::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigValue,
};
use attache::model::content::{ContentBlock, ResourceContents};
use attache::model::diff::Diff;
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::notice::NoticeSeverity;
use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo};
use attache::model::tool::{ToolCallContent, ToolKind};
use attache::model::update::{Cost, UsageUpdate};
use attache::model::{Patch, RawJson};
use attache::{Error, Prompt, Stop, Turn};

#[derive(Default)]
struct Scripted {
    auth: String,
    state: PathBuf,
    dies: String,
    version: Option<String>,
    generous: bool,
    mute: bool,
    /// Tells what sessions there are.
    sessions: Option<PathBuf>,
    /// The directories of a session, beside the first.
    directories: Vec<String>,
    mode: String,
    model: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut agent = Scripted::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("an option has a value");
        match &*word {
            "--die" => agent.dies = value(),
            "--junk" => println!("Welcome to \u{1b}[31mjunk\u{7}"),
            "--hang" => std::thread::sleep(std::time::Duration::from_secs(60)),
            "--auth" => agent.auth = value(),
            "--state" => agent.state = value().into(),
            "--login" => {
                println!("logging in");
                fs::write(value(), "").expect("the file can be written");
                return Ok(());
            }
            "--pid" => fs::write(value(), std::process::id().to_string()).expect("the file can be written"),
            "--generous" => agent.generous = true,
            "--mute" => agent.mute = true,
            "--sessions" => agent.sessions = Some(value().into()),
            "--show" => agent.version = Some(std::env::var(value()).unwrap_or_default()),
            other => panic!("there is no option {other}"),
        }
    }
    agent.may_die("start");
    let wants_login = !agent.auth.is_empty();
    let keeps_sessions = agent.sessions.is_some();
    let offer = agent.generous.then(Capability::new);
    let server = attache::serve(agent).restores().lists().sessions(|session| {
        session.prompt.image = offer.clone();
        session.prompt.embedded_context = offer.clone();
        session.additional_directories = offer;
    });
    if keeps_sessions {
        return server.forks().deletes().stdio().await;
    }
    if wants_login { server.authenticates().stdio().await } else { server.stdio().await }
}

impl Scripted {
    fn may_die(&self, when: &str) {
        if self.dies == when {
            eprintln!("cannot go on \u{1b}[2J");
            exit(7);
        }
    }

    async fn may_be_mute(&self) {
        if self.mute {
            std::future::pending::<()>().await;
        }
    }

    fn options(&self) -> Vec<ConfigOption> {
        let select = |current: &str, values: [(&str, &str); 2]| {
            let values = values.map(|(id, name)| ConfigValue::new(id, name)).to_vec();
            ConfigKind::Select(ConfigSelect::new(current, values))
        };
        let mode = select(&self.mode, [("ask", "Ask"), ("auto", "Auto")]);
        let mode = ConfigOption::new("mode", "Mode", mode).category(ConfigCategory::Mode);
        let model = select(&self.model, [("small-1", "Small"), ("large-2", "Large")]);
        let model = ConfigOption::new("llm", "Model", model).category(ConfigCategory::Model);
        if self.generous { vec![mode, model] } else { vec![mode] }
    }
}

impl Agent for Scripted {
    type Session = Scripted;

    fn info(&self) -> Implementation {
        Implementation::new("scripted\u{1b}[2J", self.version.as_deref().unwrap_or("1.0"))
    }

    async fn open(&self, request: OpenRequest, _: SessionHandle) -> Result<Opened<Scripted>, HandlerError> {
        self.may_die("session");
        if !self.auth.is_empty() && !self.state.exists() {
            return Err(ErrorObject::auth_required(&self.methods()).into());
        }
        let session = Scripted {
            auth: self.auth.clone(),
            state: self.state.clone(),
            dies: self.dies.clone(),
            generous: self.generous,
            mute: self.mute,
            directories: request.directories,
            mode: "ask".into(),
            model: "small-1".into(),
            ..Scripted::default()
        };
        let options = session.options();
        Ok(Opened::from(session).options(options).commands(vec![Command::new("help", "Helps").into()]))
    }
}

impl Session for Scripted {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        self.may_die("turn");
        let text = prompt.text();
        for (index, text_of_step) in text.split("; ").enumerate() {
            if text_of_step == "session" {
                turn.text(format!("{} {} {}", self.mode, self.model, self.directories.join(" "))).await?;
                continue;
            }
            if text_of_step == "guarded" {
                match self.state.exists() {
                    true => turn.text("logged in").await?,
                    false => return Err(ErrorObject::auth_required(&self.methods()).into()),
                }
                continue;
            }
            match step(&turn, text_of_step, &prompt).await? {
                Step::Done => {}
                Step::Stop(stop) => return Ok(stop),
                Step::Unknown if index == 0 => {
                    turn.text(text.as_str()).await?;
                    break;
                }
                Step::Unknown => panic!("there is no step {text_of_step}"),
            }
        }
        Ok(Stop::EndTurn)
    }

    async fn set_option(&mut self, option: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        self.may_be_mute().await;
        let ConfigSetting::Id(value) = value else { return Err(ErrorObject::wrong_params("no such value").into()) };
        *(if option.as_str() == "mode" { &mut self.mode } else { &mut self.model }) = value.to_string();
        Ok(self.options())
    }
}

impl Restore for Scripted {
    async fn restore(
        &self,
        session: SessionId,
        request: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> Result<Opened<Scripted>, HandlerError> {
        if session.as_str().contains("unknown") {
            return Err(ErrorObject::session_not_found(&session).into());
        }
        if replay {
            handle.text("what was said long ago").await?;
        }
        self.open(request, handle).await
    }
}

impl Fork for Scripted {
    async fn fork(
        &self,
        session: SessionId,
        request: OpenRequest,
        handle: SessionHandle,
    ) -> Result<Opened<Scripted>, HandlerError> {
        handle.text(format!("forked from {session}")).await?;
        self.open(request, handle).await
    }
}

impl Delete for Scripted {
    async fn delete(&self, session: SessionId) -> Result<(), HandlerError> {
        let Some(file) = &self.sessions else { return Ok(()) };
        let kept: String = fs::read_to_string(file)?
            .lines()
            .filter(|id| *id != session.as_str())
            .map(|id| format!("{id}\n"))
            .collect();
        Ok(fs::write(file, kept)?)
    }
}

impl List for Scripted {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        if let Some(file) = &self.sessions {
            let ids = fs::read_to_string(file).unwrap_or_default();
            let info =
                |id: &str| SessionInfo::new(id, "/").title(format!("about {id}")).updated_at("2024-02-29T12:00:00Z");
            return Ok(ListSessionsResponse::new(ids.lines().map(info).collect::<Vec<_>>()));
        }
        let number: usize = request.cursor.map_or(0, |cursor| cursor.parse().unwrap_or(0));
        let info = SessionInfo::new(format!("s{number}"), "/w").title(format!("talk {number}"));
        let next_cursor = (number < 2).then(|| (number + 1).to_string());
        Ok(ListSessionsResponse::new([info]).with(|response| response.next_cursor = next_cursor))
    }
}

/// What came of a step.
enum Step {
    Done,
    Stop(Stop),
    Unknown,
}

async fn step(turn: &Turn, step: &str, prompt: &Prompt) -> Result<Step, Error> {
    let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
    match word {
        "say" => turn.text(rest).await?,
        "think" => turn.thought(rest).await?,
        "notice" => turn.notice(NoticeSeverity::Warning, rest).await?,
        "plan" => {
            let entry = |text: &str, status| PlanEntry::new(text, PlanPriority::High, status);
            turn.plan(vec![entry("look", PlanStatus::Completed), entry("leap", PlanStatus::Pending)]).await?;
        }
        "usage" => {
            let cost = Patch::Set(Cost::new(0.25, "USD"));
            turn.usage(UsageUpdate::new(100, 1000).with(|update| update.cost = cost)).await?;
        }
        // A tool call that ends well or fails: `tool read the book`, `fail execute the order`.
        "tool" | "fail" => {
            let (kind, title) = rest.split_once(' ').unwrap_or((rest, "untitled"));
            let tool = turn.tool(title).await?;
            tool.kind(ToolKind::from(kind)).await?;
            tool.in_progress().await?;
            tool.push_text("first line\nlast line").await?;
            if word == "tool" { tool.complete().await? } else { tool.fail().await? }
        }
        // Shows a change and asks for it: `edit PATH`. The agent changes nothing itself.
        "edit" => {
            let tool = turn.tool(format!("Edit {rest}")).await?;
            tool.kind(ToolKind::Edit).await?;
            tool.push(ToolCallContent::Diff(Box::new(Diff::text(rest, Some("old\nsame\n".into()), "new\nsame\n"))))
                .await?;
            let allowed = turn.ask(Ask::new("May I?").about(&tool)).await?.is_allowed();
            turn.text(if allowed { "edit allowed. " } else { "edit denied. " }).await?;
            if allowed { tool.complete().await? } else { tool.fail().await? }
        }
        // Asks whether a command may be run: `ask rm -rf /`.
        "ask" => {
            let tool = turn.tool("Something harmless").await?;
            tool.kind(ToolKind::Execute).await?;
            tool.input(RawJson::from_value(&serde_json::json!({ "command": rest })).expect("it is JSON")).await?;
            let allowed = turn.ask(Ask::new("May I?").about(&tool).allow_always("Always")).await?.is_allowed();
            turn.text(if allowed { "command allowed. " } else { "command denied. " }).await?;
            tool.complete().await?;
        }
        "read" => match turn.read_text_file(rest).await {
            Ok(text) => turn.text(format!("read {text:?}. ")).await?,
            Err(Error::Refused(error)) => turn.text(format!("not read, {}. ", error.code)).await?,
            Err(error) => return Err(error),
        },
        "write" => {
            let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
            match turn.write_text_file(path, text).await {
                Ok(()) => turn.text("written. ").await?,
                Err(Error::Refused(error)) => turn.text(format!("not written, {}. ", error.code)).await?,
                Err(error) => return Err(error),
            }
        }
        "run" => match turn.terminal(rest, Vec::<String>::new()).await {
            Ok(terminal) => {
                let status = terminal.wait().await?;
                let output = terminal.output().await?.output;
                turn.text(format!("exit {:?}, {output:?}. ", status.exit_code)).await?;
                terminal.release().await?;
            }
            Err(Error::Refused(error)) => turn.text(format!("not run, {}. ", error.code)).await?,
            Err(error) => return Err(error),
        },
        // Leaves a command running that nobody waits for.
        "leave" => {
            let terminal = turn.terminal(rest, Vec::<String>::new()).await?;
            std::mem::forget(terminal);
        }
        "blocks" => {
            let kinds: Vec<String> = prompt.blocks.iter().map(|block| block.tag().to_owned()).collect();
            turn.text(kinds.join(" ")).await?;
        }
        // What stands in the blocks beside the text.
        "contents" => {
            let content = |block: &ContentBlock| match block {
                ContentBlock::Image(image) => Some(format!("{} {}", image.mime_type, image.data)),
                ContentBlock::Resource(resource) => match &resource.resource {
                    ResourceContents::Text(text) => Some(format!("{} {}", text.uri, text.text)),
                    ResourceContents::Blob(blob) => Some(format!("{} {}", blob.uri, blob.blob)),
                },
                ContentBlock::ResourceLink(link) => Some(link.uri.clone()),
                _ => None,
            };
            let contents: Vec<String> = prompt.blocks.iter().filter_map(content).collect();
            turn.text(contents.join(", ")).await?;
        }
        "stream" => {
            let count = rest.parse::<usize>().expect("a number of MiB") << 10;
            let piece = format!("{}\n", "x".repeat(1023));
            for _ in 0..count {
                turn.text(piece.as_str()).await?;
            }
        }
        "slow" => {
            turn.text("working").await?;
            turn.cancelled().await;
        }
        "deaf" => {
            turn.text("working").await?;
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        }
        "error" => return Err(ErrorObject::internal("it \u{1b}[31mbroke").into()),
        "stop" => return Ok(Step::Stop(Stop::from(rest))),
        _ => return Ok(if chat::step(turn, word, rest).await? { Step::Done } else { Step::Unknown }),
    }
    Ok(Step::Done)
}

impl Authenticate for Scripted {
    fn methods(&self) -> Vec<AuthMethod> {
        let agent = AgentAuthMethod::new("key", "API key").description("Just do\u{202e} it");
        let args = vec!["--login".into(), self.state.display().to_string()];
        let terminal = TerminalAuthMethod::new("term", "In a terminal").args(args);
        match &*self.auth {
            "agent" => vec![AuthMethod::Agent(agent)],
            "terminal" => vec![AuthMethod::Terminal(terminal)],
            _ => vec![AuthMethod::Agent(agent), AuthMethod::Terminal(terminal)],
        }
    }

    async fn authenticate(&self, _: AuthMethodId, _: Context) -> Result<(), HandlerError> {
        self.may_be_mute().await;
        Ok(fs::write(&self.state, "")?)
    }

    async fn logout(&self) -> Result<(), HandlerError> {
        let _ = fs::remove_file(&self.state);
        Ok(())
    }
}
