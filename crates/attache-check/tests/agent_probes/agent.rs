//! A small agent that keeps to the protocol. It does what the lines of a prompt say, as the scripted model of the testkit does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use attache::agent::{
    Agent, Ask, Delete, HandlerError, List, OpenRequest, Opened, Restore, Session, SessionHandle, ToolCall,
};
use attache::model::capability::Capability;
use attache::model::config::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigSwitch, ConfigValue,
};
use attache::model::content::{ContentBlock, MessageId};
use attache::model::elicitation::{
    CreateElicitationRequest, ElicitationForm, ElicitationMode, ElicitationScope, SessionScope,
};
use attache::model::error::ErrorObject;
use attache::model::form::{ElicitationProperty, ElicitationSchema, StringProperty};
use attache::model::initialize::Implementation;
use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo};
use attache::model::tool::{ToolCallStatus, ToolCallTerminal, ToolKind};
use attache::model::update::{MessageChunk, SessionUpdate};
use attache::{Error, Prompt, Stop, Turn};
use attache_check::probe::Peer;
use attache_check::probe::agent::Start;
use serde_json::Value;

/// Starts such an agent for each probe. What is kept of sessions is common to them, like files.
pub(crate) fn start() -> Start {
    let kept = Kept::default();
    Start::connect(move || {
        let agent = SmallAgent { kept: kept.clone() };
        async {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let (reader, writer) = tokio::io::split(far);
            let server = attache::serve(agent).restores().lists().deletes().on_report(|_| {});
            let server = server.sessions(|session| session.mcp.http = Some(Capability::new()));
            tokio::spawn(server.connect(reader, writer));
            Ok(Peer::from_stream(near))
        }
    })
}

type Kept = Arc<Mutex<BTreeMap<SessionId, Record>>>;

/// What is kept of a session.
#[derive(Clone, Default)]
struct Record {
    cwd: String,
    history: Vec<SessionUpdate>,
    mode: String,
    is_loud: bool,
}

impl Record {
    fn options(&self) -> Vec<ConfigOption> {
        let modes = vec![ConfigValue::new("ask", "Ask first"), ConfigValue::new("auto", "Never ask")];
        let mode = ConfigKind::Select(ConfigSelect::new(self.mode.as_str(), modes));
        vec![
            ConfigOption::new("mode", "Mode", mode).category(ConfigCategory::Mode),
            ConfigOption::new("loud", "Loud", ConfigKind::Boolean(ConfigSwitch::new(self.is_loud))),
        ]
    }
}

struct SmallAgent {
    kept: Kept,
}

impl SmallAgent {
    fn opened(&self, handle: SessionHandle) -> Opened<SmallSession> {
        let session = SmallSession { id: handle.id().clone(), kept: self.kept.clone() };
        let options = session.record().options();
        Opened::from(session).options(options)
    }
}

/// The directory that a session may be opened in.
fn directory(request: &OpenRequest) -> Result<String, HandlerError> {
    let is_there = request.cwd.starts_with('/') && std::path::Path::new(&request.cwd).is_dir();
    is_there.then(|| request.cwd.clone()).ok_or_else(|| ErrorObject::wrong_params("cwd: not a directory").into())
}

impl Agent for SmallAgent {
    type Session = SmallSession;

    fn info(&self) -> Implementation {
        Implementation::new("small", "1.0")
    }

    async fn open(&self, request: OpenRequest, handle: SessionHandle) -> Result<Opened<SmallSession>, HandlerError> {
        let record = Record { cwd: directory(&request)?, mode: "ask".into(), ..Record::default() };
        lock(&self.kept).insert(handle.id().clone(), record);
        Ok(self.opened(handle))
    }
}

impl Restore for SmallAgent {
    async fn restore(
        &self,
        session: SessionId,
        request: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> Result<Opened<SmallSession>, HandlerError> {
        let record = lock(&self.kept).get(&session).cloned();
        let record = record.ok_or_else(|| ErrorObject::session_not_found(&session))?;
        if directory(&request)? != record.cwd {
            return Err(ErrorObject::wrong_params("cwd: the session has another").into());
        }
        for update in record.history.into_iter().filter(|_| replay) {
            handle.update(update).await?;
        }
        Ok(self.opened(handle))
    }
}

impl List for SmallAgent {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        if request.cursor.is_some_and(|cursor| !cursor.is_empty()) {
            return Err(ErrorObject::wrong_params("cursor: unknown").into());
        }
        let kept = lock(&self.kept);
        let wanted = kept.iter().filter(|(_, record)| request.cwd.as_ref().is_none_or(|cwd| *cwd == record.cwd));
        let infos = wanted.map(|(id, record)| SessionInfo::new(id.clone(), record.cwd.as_str()));
        Ok(ListSessionsResponse::new(infos.collect::<Vec<_>>()))
    }
}

impl Delete for SmallAgent {
    async fn delete(&self, session: SessionId) -> Result<(), HandlerError> {
        lock(&self.kept).remove(&session);
        Ok(())
    }
}

struct SmallSession {
    id: SessionId,
    kept: Kept,
}

impl Session for SmallSession {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        let text = prompt.text();
        self.remember(SessionUpdate::UserMessageChunk, &text);
        for line in text.lines().map(str::trim) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let done = match (word, rest) {
                ("say", text) => self.say(&turn, text).await,
                ("think", text) => turn.thought(text).await,
                ("slowly", "") => self.slowly(&turn).await,
                ("stop", "refusal") => return Ok(Stop::Refusal),
                ("stop", "length") => return Ok(Stop::MaxTokens),
                ("use", call) => self.call(&turn, call).await,
                _ => Ok(()),
            };
            match done {
                // What the client does not offer, or refuses, is left out.
                Ok(()) | Err(Error::NotOffered(_) | Error::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if turn.is_cancelled() {
                return Ok(Stop::Cancelled);
            }
        }
        Ok(Stop::EndTurn)
    }

    async fn set_option(&mut self, option: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        let mut kept = lock(&self.kept);
        let record = kept.get_mut(&self.id).ok_or_else(|| ErrorObject::session_not_found(&self.id))?;
        match (option.as_str(), value) {
            ("mode", ConfigSetting::Id(mode)) if ["ask", "auto"].contains(&mode.as_str()) => {
                record.mode = mode.as_str().into();
            }
            ("loud", ConfigSetting::Boolean(on)) => record.is_loud = on,
            _ => return Err(ErrorObject::wrong_params("no such option or value").into()),
        }
        Ok(record.options())
    }
}

impl SmallSession {
    fn record(&self) -> Record {
        lock(&self.kept).get(&self.id).cloned().unwrap_or_default()
    }

    async fn say(&self, turn: &Turn, text: &str) -> Result<(), Error> {
        for piece in text.split_inclusive(' ') {
            turn.text(piece).await?;
        }
        self.remember(SessionUpdate::AgentMessageChunk, text);
        Ok(())
    }

    async fn slowly(&self, turn: &Turn) -> Result<(), Error> {
        for word in 0..150 {
            turn.text(format!("word {word} ")).await?;
            turn.unless_cancelled(tokio::time::sleep(Duration::from_millis(200))).await?;
        }
        Ok(())
    }

    async fn call(&self, turn: &Turn, call: &str) -> Result<(), Error> {
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        match name {
            "read" => {
                let tool = turn.tool(format!("Read {}", text("path"))).name(name).kind(ToolKind::Read).start().await?;
                let content = turn.read_text_file(text("path")).await;
                self.finish(tool, name, content.map(|content| content.lines().count().to_string())).await
            }
            "write" => {
                let tool = turn.tool(format!("Write {}", text("path"))).name(name).kind(ToolKind::Edit).start().await?;
                if !self.may(turn, &tool).await? {
                    return self.finish(tool, name, Err(Error::Cancelled)).await;
                }
                tool.in_progress().await?;
                let written = turn.write_text_file(text("path"), text("content")).await;
                self.finish(tool, name, written.map(|()| "written".into())).await
            }
            "run" => {
                let tool =
                    turn.tool(format!("Run {}", text("command"))).name(name).kind(ToolKind::Execute).start().await?;
                if !self.may(turn, &tool).await? {
                    return self.finish(tool, name, Err(Error::Cancelled)).await;
                }
                tool.in_progress().await?;
                let seconds = arguments["seconds"].as_u64().unwrap_or(3600);
                let output = run(turn, &tool, text("command"), Duration::from_secs(seconds)).await;
                self.finish(tool, name, output).await
            }
            "plan" => {
                let entry = |status| vec![PlanEntry::new("Look around", PlanPriority::High, status)];
                turn.plan(entry(PlanStatus::InProgress)).await?;
                turn.plan(entry(PlanStatus::Completed)).await
            }
            "ask" => self.ask(turn, text("question")).await,
            _ => Ok(()),
        }
    }

    async fn may(&self, turn: &Turn, tool: &ToolCall) -> Result<bool, Error> {
        let is_asked = self.record().mode == "ask";
        Ok(!is_asked || turn.ask(Ask::new("May I?").about(tool)).await?.is_allowed())
    }

    async fn ask(&self, turn: &Turn, question: String) -> Result<(), Error> {
        let colour = ("colour".to_owned(), ElicitationProperty::String(StringProperty::new().into()));
        let schema = ElicitationSchema::new().with(|schema| schema.properties = vec![colour]);
        let scope = ElicitationScope::Session(SessionScope::new(self.id.clone()));
        let form = ElicitationForm::new(schema, scope);
        let request = CreateElicitationRequest::new(question, ElicitationMode::Form(form));
        turn.unless_cancelled(turn.elicit(request)).await??;
        Ok(())
    }

    async fn finish(&self, tool: ToolCall, name: &str, result: Result<String, Error>) -> Result<(), Error> {
        let kept = tool.blank().title("Did something").name(name.to_owned());
        match result {
            Ok(text) => {
                self.keep(SessionUpdate::ToolCallUpdate(kept.status(ToolCallStatus::Completed).into()));
                tool.push_text(text).await?;
                tool.complete().await
            }
            Err(Error::Refused(_) | Error::NotOffered(_) | Error::Cancelled) => {
                self.keep(SessionUpdate::ToolCallUpdate(kept.status(ToolCallStatus::Failed).into()));
                tool.fail().await
            }
            Err(error) => Err(error),
        }
    }

    fn keep(&self, update: SessionUpdate) {
        if let Some(record) = lock(&self.kept).get_mut(&self.id) {
            record.history.push(update);
        }
    }

    fn remember(&self, kind: fn(MessageChunk) -> SessionUpdate, text: &str) {
        if let Some(record) = lock(&self.kept).get_mut(&self.id) {
            let id = MessageId::from(format!("kept_{}", record.history.len()));
            record.history.push(kind(MessageChunk::new(ContentBlock::text(text)).message_id(id)));
        }
    }
}

/// Runs a command through the client, and gives it up after a time.
async fn run(turn: &Turn, tool: &ToolCall, command: String, limit: Duration) -> Result<String, Error> {
    let terminal = turn.terminal("sh", ["-c".to_owned(), command]).await?;
    tool.push(ToolCallTerminal::new(terminal.id().clone())).await?;
    let ended = turn.unless_cancelled(tokio::time::timeout(limit, terminal.wait())).await;
    if !matches!(ended, Ok(Ok(_))) {
        terminal.kill().await?;
    }
    let output = terminal.output().await?.output;
    terminal.release().await?;
    ended?.map_err(|_| Error::Cancelled)??;
    Ok(output)
}

fn lock(kept: &Kept) -> MutexGuard<'_, BTreeMap<SessionId, Record>> {
    kept.lock().unwrap()
}
