//! Sessions and turns as a client sees them.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

use attache_proto::Dialect;
use attache_proto::method::AgentRequest;
use attache_proto::model::{
    AvailableCommand, CancelNotification, CancelTerminalRequest, CancelToolCallRequest, CloseSessionRequest,
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigValue, ConfigValues,
    ContentBlock, LoadSessionRequest, McpServer, Meta, ModeState, ModelState, NewSessionRequest, PromptRequest,
    ReplayFrom, ResumeSessionRequest, SessionCapabilities, SessionId, SetConfigOptionRequest, SetModeRequest,
    SetModelRequest, TerminalId, ToolCallId,
};

use super::connect::Shared;
use super::event::{Event, ExtensionCall, ExtensionNotice, Pending, PermissionAsk};
use super::router::{ClientRouter, Item, PromptTicket, cancelled_permission};
use super::turn::Turn;
use crate::link::{Link, Waiter};
use crate::{Error, Prompt};

/// A session that is about to be opened. Made by [`Connection::session`](super::Connection::session).
#[derive(Debug)]
#[must_use = "nothing is opened until `open`, `load` or `resume`"]
pub struct SessionBuilder {
    shared: Arc<Shared>,
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    servers: Vec<McpServer>,
    meta: Option<Meta>,
}

/// What the agent said of a session when it was opened.
struct Opened {
    id: SessionId,
    options: Options,
    commands: Vec<AvailableCommand>,
}

/// The options of a session, with those that stand for something older.
struct Options {
    all: Vec<ConfigOption>,
    /// Modes of version 1 that the agent does not also list as an option.
    has_old_modes: bool,
    /// Models of early version 1 that the agent does not also list as an option.
    has_old_models: bool,
}

impl SessionBuilder {
    pub(super) fn new(shared: Arc<Shared>, cwd: &Path) -> Self {
        SessionBuilder { shared, cwd: cwd.into(), directories: Vec::new(), servers: Vec::new(), meta: None }
    }

    /// Lets the agent work in one more directory. The agent must offer that.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Gives the agent an MCP server to connect to. The agent must offer its transport.
    pub fn mcp_server(mut self, server: impl Into<McpServer>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Adds data of your own.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Opens a new session.
    pub async fn open(self) -> Result<Session, Error> {
        let (cwd, directories) = self.check()?;
        let request = NewSessionRequest {
            additional_directories: directories,
            mcp_servers: self.servers,
            meta: self.meta,
            ..NewSessionRequest::new(cwd)
        };
        let opening = Opening::new(&self.shared, None);
        let response = opening.shared.link.call(&request).await?;
        let options = fold_options(response.config_options, response.modes.as_ref(), response.models.as_ref());
        Ok(opening.finish(Opened {
            id: response.session_id,
            options,
            commands: response.available_commands.unwrap_or_default(),
        }))
    }

    /// Opens an old session and has its whole history told again, as updates that come first.
    pub async fn load(self, session: impl Into<SessionId>) -> Result<Session, Error> {
        let offered = self.offers();
        let dialect = self.shared.link.dialect();
        if dialect == Dialect::V2 {
            return self.resume_with(session.into(), Some(ReplayFrom::start())).await;
        }
        if offered.load.is_none() {
            return Err(Error::NotOffered("loading sessions"));
        }
        let (cwd, directories) = self.check()?;
        let id = session.into();
        let request = LoadSessionRequest {
            additional_directories: directories,
            mcp_servers: self.servers,
            meta: self.meta,
            ..LoadSessionRequest::new(id.clone(), cwd)
        };
        let opening = Opening::new(&self.shared, Some(id.clone()));
        let response = opening.shared.link.call(&request).await?;
        let options = fold_options(response.config_options, response.modes.as_ref(), response.models.as_ref());
        Ok(opening.finish(Opened { id, options, commands: Vec::new() }))
    }

    /// Opens an old session and goes on where it ended, without its history.
    pub async fn resume(self, session: impl Into<SessionId>) -> Result<Session, Error> {
        if self.shared.link.dialect() != Dialect::V2 && self.offers().resume.is_none() {
            return Err(Error::NotOffered("resuming sessions"));
        }
        self.resume_with(session.into(), None).await
    }

    async fn resume_with(self, id: SessionId, replay: Option<ReplayFrom>) -> Result<Session, Error> {
        let (cwd, directories) = self.check()?;
        let request = ResumeSessionRequest {
            additional_directories: directories,
            mcp_servers: self.servers,
            replay_from: replay,
            meta: self.meta,
            ..ResumeSessionRequest::new(id.clone(), cwd)
        };
        let opening = Opening::new(&self.shared, Some(id.clone()));
        let response = opening.shared.link.call(&request).await?;
        let options = fold_options(response.config_options, response.modes.as_ref(), response.models.as_ref());
        Ok(opening.finish(Opened { id, options, commands: response.available_commands.unwrap_or_default() }))
    }

    fn offers(&self) -> SessionCapabilities {
        self.shared.session_capabilities()
    }

    /// Checks what can be checked before anything is sent.
    fn check(&self) -> Result<(String, Vec<String>), Error> {
        let offered = self.offers();
        if !self.directories.is_empty() && offered.additional_directories.is_none() {
            return Err(Error::NotOffered("additional directories"));
        }
        for server in &self.servers {
            let missing = match server {
                McpServer::Http(_) if offered.mcp.http.is_none() => "MCP servers over HTTP",
                McpServer::Sse(_) if offered.mcp.sse.is_none() => "MCP servers over SSE",
                McpServer::Acp(_) if offered.mcp.acp.is_none() => "MCP servers through the client",
                _ => continue,
            };
            return Err(Error::NotOffered(missing));
        }
        let cwd = absolute(&self.cwd)?;
        let directories = self.directories.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?;
        Ok((cwd, directories))
    }
}

fn absolute(path: &Path) -> Result<String, Error> {
    if !path.is_absolute() {
        return Err(Error::Invalid(format!("`{}` is not an absolute path", path.display())));
    }
    path.to_str().map(str::to_owned).ok_or_else(|| Error::Invalid(format!("`{}` is not UTF-8", path.display())))
}

/// While this lives, updates of the session that is being opened are kept.
struct Opening {
    shared: Arc<Shared>,
    /// The session, when its id is known before it is open.
    early: Option<SessionId>,
}

impl Opening {
    fn new(shared: &Arc<Shared>, early: Option<SessionId>) -> Self {
        shared.link.with(|router, _| {
            router.begin_opening();
            if let Some(id) = &early {
                router.claim(id.clone());
            }
        });
        Opening { shared: shared.clone(), early }
    }

    fn finish(mut self, opened: Opened) -> Session {
        // The session takes over a claim that was made early.
        if self.early.take().is_none() {
            self.shared.link.with(|router, _| router.claim(opened.id.clone()));
        }
        Session(Arc::new(Inner { shared: self.shared.clone(), opened }))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.shared.link.with(|router, port| {
            let mut calls = router.end_opening();
            if let Some(id) = &self.early {
                calls.extend(router.release(id));
            }
            for call in calls {
                port.refuse(call, &attache_proto::model::ErrorObject::internal("nobody answered"));
            }
        });
    }
}

/// The id of the option that stands for the modes of version 1.
const MODE_OPTION: &str = "mode";
/// The id of the option that stands for the models of early version 1.
const MODEL_OPTION: &str = "model";

/// Modes and models are configuration options by another name. One that the agent does not also list as such is added.
fn fold_options(options: Option<Vec<ConfigOption>>, modes: Option<&ModeState>, models: Option<&ModelState>) -> Options {
    let mut options = options.unwrap_or_default();
    let has = |category| options.iter().any(|option| option.category.as_ref() == Some(&category));
    let modes = modes.filter(|_| !has(ConfigCategory::Mode));
    let models = models.filter(|_| !has(ConfigCategory::Model));
    if let Some(modes) = modes {
        let values = modes.available_modes.iter().map(|mode| ConfigValue {
            description: mode.description.clone(),
            ..ConfigValue::new(mode.id.as_str(), mode.name.as_str())
        });
        options.push(select(
            MODE_OPTION,
            "Mode",
            ConfigCategory::Mode,
            modes.current_mode_id.as_str(),
            values.collect(),
        ));
    }
    if let Some(models) = models {
        let values = models.available_models.iter().map(|model| ConfigValue {
            description: model.description.clone(),
            ..ConfigValue::new(model.model_id.as_str(), model.name.as_str())
        });
        let current = models.current_model_id.as_str();
        options.push(select(MODEL_OPTION, "Model", ConfigCategory::Model, current, values.collect()));
    }
    Options { all: options, has_old_modes: modes.is_some(), has_old_models: models.is_some() }
}

fn select(id: &str, name: &str, category: ConfigCategory, current: &str, values: Vec<ConfigValue>) -> ConfigOption {
    let kind = ConfigKind::Select(ConfigSelect::new(current, ConfigValues::Flat(values)));
    ConfigOption { category: Some(category), ..ConfigOption::new(id, name, kind) }
}

/// An open session. Cheap to clone; when the last clone is gone, what still arrives for it is let pass.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    opened: Opened,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.opened.id).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.link.with(|router, port| {
            for call in router.release(&self.opened.id) {
                port.refuse(call, &attache_proto::model::ErrorObject::internal("nobody answered"));
            }
        });
    }
}

impl Session {
    /// The agent's name for the session.
    pub fn id(&self) -> &SessionId {
        &self.0.opened.id
    }

    /// The configuration options at the time of opening, modes and models of version 1 among them.
    pub fn options(&self) -> &[ConfigOption] {
        &self.0.opened.options.all
    }

    /// The commands that the agent listed when the session was opened. Version 1 sends them as an update instead.
    pub fn commands(&self) -> &[AvailableCommand] {
        &self.0.opened.commands
    }

    /// Sends a prompt. The turn is a stream of events that has to be read.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn, Error> {
        let prompt = prompt.into();
        self.check_prompt(&prompt)?;
        let request = PromptRequest::new(self.id().clone(), prompt.blocks);
        let number = self
            .0
            .shared
            .link
            .send(|router, port| {
                let turn = router.begin_turn(self.id());
                let ticket = PromptTicket { session: self.id().clone(), turn };
                let params = |writer: &mut attache_proto::json::Writer<'_>| writer.value(&request);
                port.peer.request("session/prompt", params, Waiter::Ticket(ticket), port.out);
                turn
            })
            .await?;
        Ok(Turn::new(self.clone(), number))
    }

    /// The next event between turns. Waits until there is one.
    pub async fn next(&self) -> Result<Event, Error> {
        loop {
            match self.take().await? {
                // A turn that nobody reads any more.
                Item::End(..) => {}
                item => return Ok(self.event(item)),
            }
        }
    }

    /// Cancels what the agent is doing in this session. Permission requests that wait are answered `cancelled`.
    pub async fn cancel(&self) -> Result<(), Error> {
        let cancel = CancelNotification::new(self.id().clone());
        self.0.shared.link.send(|router, port| self.send_cancel(router, port, None, &cancel)).await
    }

    /// Cancels one tool call and nothing else. The agent must have said that it can be.
    pub async fn cancel_tool_call(&self, tool_call: impl Into<ToolCallId>) -> Result<(), Error> {
        let id = tool_call.into();
        self.check_cancellable(id.as_str())?;
        let request = CancelToolCallRequest::new(self.id().clone(), id);
        self.0.shared.link.call(&request).await.map(|_| ())
    }

    /// Cancels one command of the agent's and nothing else. The agent must have said that it can be.
    pub async fn cancel_terminal(&self, terminal: impl Into<TerminalId>) -> Result<(), Error> {
        let id = terminal.into();
        self.check_cancellable(id.as_str())?;
        let request = CancelTerminalRequest::new(self.id().clone(), id);
        self.0.shared.link.call(&request).await.map(|_| ())
    }

    fn check_cancellable(&self, part: &str) -> Result<(), Error> {
        let is_cancellable = self.0.shared.link.with(|router, _| router.is_cancellable(self.id(), part));
        if is_cancellable { Ok(()) } else { Err(Error::NotOffered("cancelling this")) }
    }

    /// Sets a configuration option; returns all options as they are now. Modes and models are options too.
    pub async fn set_option(
        &self,
        option: impl Into<ConfigId>,
        value: impl Into<ConfigSetting>,
    ) -> Result<Vec<ConfigOption>, Error> {
        let (id, value) = (option.into(), value.into());
        let link = &self.0.shared.link;
        if let ConfigSetting::Id(value) = &value {
            // An option that stands for something older is set the older way.
            let options = &self.0.opened.options;
            if options.has_old_modes && id.as_str() == MODE_OPTION {
                link.call(&SetModeRequest::new(self.id().clone(), value.as_str())).await?;
                return Ok(self.with_current(&id, value.as_str()));
            }
            if options.has_old_models && id.as_str() == MODEL_OPTION {
                link.call(&SetModelRequest::new(self.id().clone(), value.clone())).await?;
                return Ok(self.with_current(&id, value.as_str()));
            }
        }
        let request = SetConfigOptionRequest::new(self.id().clone(), id, value);
        Ok(link.call(&request).await?.config_options)
    }

    pub(super) fn link(&self) -> &Link<ClientRouter> {
        &self.0.shared.link
    }

    /// Closes the session: the agent stops what it does and frees what it holds.
    pub async fn close(&self) -> Result<(), Error> {
        let shared = &self.0.shared;
        if shared.link.dialect() != Dialect::V2 && shared.session_capabilities().close.is_none() {
            return Err(Error::NotOffered("closing sessions"));
        }
        match shared.link.call(&CloseSessionRequest::new(self.id().clone())).await {
            // A session that the agent does not know is closed already.
            Err(Error::Refused(error)) if error.code == attache_proto::model::ErrorObject::NOT_FOUND => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn with_current(&self, id: &ConfigId, value: &str) -> Vec<ConfigOption> {
        let mut options = self.options().to_vec();
        for option in options.iter_mut().filter(|option| option.id == *id) {
            if let ConfigKind::Select(select) = &mut option.kind {
                select.current = value.into();
            }
        }
        options
    }

    fn check_prompt(&self, prompt: &Prompt) -> Result<(), Error> {
        if prompt.blocks.is_empty() {
            return Err(Error::Invalid("the prompt is empty".into()));
        }
        let offered = self.0.shared.session_capabilities().prompt;
        for block in &prompt.blocks {
            let missing = match block {
                ContentBlock::Image(_) if offered.image.is_none() => "images in prompts",
                ContentBlock::Audio(_) if offered.audio.is_none() => "audio in prompts",
                ContentBlock::Resource(_) if offered.embedded_context.is_none() => "embedded resources in prompts",
                _ => continue,
            };
            return Err(Error::NotOffered(missing));
        }
        Ok(())
    }

    pub(super) fn send_cancel(
        &self,
        router: &mut super::router::ClientRouter,
        port: &mut crate::link::Port<'_, super::router::ClientRouter>,
        turn: Option<u64>,
        cancel: &CancelNotification,
    ) {
        port.peer.notify("session/cancel", |writer| writer.value(cancel), port.out);
        for call in router.cancel_turns(self.id(), turn) {
            port.answer(call, &cancelled_permission());
        }
    }

    pub(super) async fn take(&self) -> Result<Item, Error> {
        poll_fn(|cx| {
            let taken = self.0.shared.link.with(|router, _| router.take(Some(self.id()), cx.waker()));
            taken.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    pub(super) fn event(&self, item: Item) -> Event {
        event(&self.0.shared, item)
    }
}

/// What the user sees of an inbox item.
pub(super) fn event(shared: &Arc<Shared>, item: Item) -> Event {
    let link = shared.link.clone();
    match item {
        Item::Update(update) => Event::Update(update),
        Item::Notification(notification) => Event::Notification(*notification),
        Item::Extension(Some(call), method, params) => Event::Extension(ExtensionCall::new(method, params, link, call)),
        Item::Extension(None, method, params) => Event::ExtensionNotice(ExtensionNotice { method, params }),
        Item::Call(call, request) => match *request {
            AgentRequest::RequestPermission(request) => Event::Permission(PermissionAsk::new(request, link, call)),
            AgentRequest::ReadTextFile(request) => Event::ReadTextFile(Pending::new(request, link, call)),
            AgentRequest::WriteTextFile(request) => Event::WriteTextFile(Pending::new(request, link, call)),
            AgentRequest::CreateTerminal(request) => Event::CreateTerminal(Pending::new(request, link, call)),
            AgentRequest::TerminalOutput(request) => Event::TerminalOutput(Pending::new(request, link, call)),
            AgentRequest::WaitForTerminalExit(request) => Event::WaitForTerminalExit(Pending::new(request, link, call)),
            AgentRequest::KillTerminal(request) => Event::KillTerminal(Pending::new(request, link, call)),
            AgentRequest::ReleaseTerminal(request) => Event::ReleaseTerminal(Pending::new(request, link, call)),
            AgentRequest::CreateElicitation(request) => Event::Elicitation(Pending::new(request, link, call)),
            other => unreachable!("the router lets only offered requests through, not {:?}", other.method()),
        },
        Item::End(..) => unreachable!("the end of a turn is taken before events are made"),
    }
}
