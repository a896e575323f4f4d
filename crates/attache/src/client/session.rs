//! Sessions as a client sees them.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use attache_proto::conversation::{OpenKind, OpenedSession, Opening, SetRequest, TurnEnd, TurnId};
use attache_proto::json::Reason;
use attache_proto::method::{AgentRequest, ClientRequest};
use attache_proto::model::Meta;
use attache_proto::model::command::AvailableCommand;
use attache_proto::model::config::{ConfigId, ConfigOption, ConfigSetting};
use attache_proto::model::content::ContentBlock;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::mcp::McpServer;
use attache_proto::model::prompt::{CancelNotification, PromptRequest};
use attache_proto::model::session::{CloseSessionRequest, SessionId};
use attache_proto::model::terminal::{CancelTerminalRequest, TerminalId};
use attache_proto::model::tool::{CancelToolCallRequest, ToolCallId};
use attache_proto::model::unstable::{SetTitleRequest, SystemPrompt};

use super::connect::Shared;
use super::event::{Event, ExtensionCall, ExtensionNotice, Pending, PermissionAsk};
use super::inbox::Item;
use super::router::{ClientRouter, PromptTicket, cancelled_permission};
use super::turn::Turn;
use crate::link::{BoxFuture, Link, Port, Waiter};
use crate::{Error, Prompt};

/// A session that is about to be opened. Made by [`Connection::session`](super::Connection::session).
#[derive(Debug)]
#[must_use = "nothing is opened until `open`, `load`, `resume` or `fork`"]
pub struct SessionBuilder {
    shared: Arc<Shared>,
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    servers: Vec<McpServer>,
    system_prompt: Option<SystemPrompt>,
    meta: Option<Meta>,
}

impl SessionBuilder {
    pub(super) fn new(shared: Arc<Shared>, cwd: &Path) -> Self {
        let (directories, servers) = (Vec::new(), Vec::new());
        SessionBuilder { shared, cwd: cwd.into(), directories, servers, system_prompt: None, meta: None }
    }

    /// Lets the agent work in one more directory, an absolute path. The agent must offer that.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Gives the agent an MCP server to connect to. The agent must offer its transport.
    pub fn mcp_server(mut self, server: impl Into<McpServer>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Sets what is added to the agent's own system prompt, or replaces it (unstable). The agent must offer that.
    pub fn system_prompt(mut self, prompt: SystemPrompt) -> Self {
        self.system_prompt = Some(prompt);
        self
    }

    /// Adds custom metadata (`_meta`).
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Opens a new session.
    pub async fn open(self) -> Result<Session, Error> {
        self.open_as(OpenKind::New).await
    }

    /// Opens an old session and has its whole history sent again, as updates that come first.
    ///
    /// If the agent does not offer that, this fails before anything is sent in version 1 and the draft of version 2. Version
    /// 2 requires the method, so there an agent that keeps no sessions answers with "Session not found".
    pub async fn load(self, session: impl Into<SessionId>) -> Result<Session, Error> {
        self.open_as(OpenKind::Restore { session: session.into(), replay: true }).await
    }

    /// Opens an old session and goes on where it ended, without its history. If the agent can only load it with its
    /// history, the history is discarded.
    pub async fn resume(self, session: impl Into<SessionId>) -> Result<Session, Error> {
        self.open_as(OpenKind::Restore { session: session.into(), replay: false }).await
    }

    /// Opens a new session that begins with the history of another (unstable).
    pub async fn fork(self, session: impl Into<SessionId>) -> Result<Session, Error> {
        self.open_as(OpenKind::Fork { from: session.into() }).await
    }

    fn open_as(self, kind: OpenKind) -> BoxFuture<'static, Result<Session, Error>> {
        Box::pin(async move {
            let (cwd, additional_directories) = self.check()?;
            let SessionBuilder { shared, servers: mcp_servers, system_prompt, meta, .. } = self;
            let known = match &kind {
                OpenKind::Restore { session, .. } => Some(session.clone()),
                _ => None,
            };
            let opening = Opening { kind, cwd, additional_directories, mcp_servers, system_prompt, meta };
            let offered = shared.session_capabilities();
            let link = &shared.link;
            let load_instead = opening.load_instead(link.dialect(), &offered);
            let (request, is_muted) = opening.into_request(link.dialect(), &offered).map_err(Error::NotOffered)?;
            let early = EarlyClaim::new(&shared, known.clone(), is_muted);
            let mut opened: OpenedSession = match &request {
                ClientRequest::NewSession(request) => link.call(request).await?.into(),
                ClientRequest::LoadSession(request) => link.call(request).await?.into(),
                ClientRequest::ResumeSession(request) => match (link.call(request).await, load_instead) {
                    // It says that it can resume, and does not know how.
                    (Err(Error::Refused(error)), Some(load)) if error.code == ErrorObject::METHOD_NOT_FOUND => {
                        link.with(|router, _| router.mute(&load.session_id, true));
                        link.call(&load).await?.into()
                    }
                    (answer, _) => answer?.into(),
                },
                ClientRequest::ForkSession(request) => link.call(request).await?.into(),
                _ => return Err(Error::NotOffered("opening sessions this way")),
            };
            let Some(id) = known.or(opened.session_id.take()) else { return Err(Error::NotOffered("sessions")) };
            Ok(early.finish(id, opened))
        })
    }

    /// Checks what can be checked before anything is sent.
    fn check(&self) -> Result<(String, Vec<String>), Error> {
        let cwd = absolute("session's", &self.cwd)?;
        let directories = self.directories.iter().map(|path| absolute("additional", path)).collect::<Result<_, _>>()?;
        let offered = self.shared.session_capabilities();
        if !self.directories.is_empty() && offered.additional_directories.is_none() {
            return Err(Error::NotOffered("additional directories"));
        }
        if self.system_prompt.is_some() && offered.system_prompt.is_none() {
            return Err(Error::NotOffered("system prompts"));
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
        Ok((cwd, directories))
    }
}

/// The path of a directory as the protocol has it. `which` directory it is goes into the error.
fn absolute(which: &str, path: &Path) -> Result<String, Error> {
    let wrong = |rule: &str| Error::Invalid(format!("the {which} directory `{}` must be {rule}", path.display()));
    // The agent of a client on Windows may be in WSL or on another machine, and has paths of its own.
    let is_of_unix = || cfg!(windows) && path.to_str().is_some_and(|path| path.starts_with('/'));
    if !path.is_absolute() && !is_of_unix() {
        return Err(wrong("an absolute path"));
    }
    path.to_str().map(str::to_owned).ok_or_else(|| wrong("valid UTF-8"))
}

/// While this lives, updates of the session that is being opened are kept.
struct EarlyClaim {
    shared: Arc<Shared>,
    /// The session, when its id is known before it is open.
    session: Option<SessionId>,
}

impl EarlyClaim {
    fn new(shared: &Arc<Shared>, session: Option<SessionId>, is_muted: bool) -> Self {
        shared.link.with(|router, _| {
            router.begin_opening();
            if let Some(id) = &session {
                router.claim(id.clone());
                router.mute(id, is_muted);
            }
        });
        EarlyClaim { shared: shared.clone(), session }
    }

    fn finish(mut self, id: SessionId, mut opened: OpenedSession) -> Session {
        // The session takes over a claim that was made early.
        let is_claimed = self.session.take().is_some();
        self.shared.link.with(|router, _| {
            if !is_claimed {
                router.claim(id.clone());
            }
            router.mute(&id, false);
            if let Some(session) = router.session(&id) {
                session.is_closed = false;
                session.options = opened.options();
                if let Some(commands) = opened.available_commands.take() {
                    session.commands = commands;
                }
            }
        });
        Session(Arc::new(Inner { shared: self.shared.clone(), id, meta: opened.meta }))
    }
}

impl Drop for EarlyClaim {
    fn drop(&mut self) {
        self.shared.link.with(|router, port| {
            let mut calls = router.end_opening();
            if let Some(id) = &self.session {
                // An older handle may have been muted along with it.
                router.mute(id, false);
                calls.extend(router.release(id));
            }
            for call in calls {
                port.refuse(call, &ErrorObject::internal("nobody answered"));
            }
        });
    }
}

/// An open session. Cheap to clone; when the last clone is gone, what still arrives for it is discarded.
///
/// Not to be confused with the trait `agent::Session`, which an agent implements.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    id: SessionId,
    meta: Option<Meta>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.link.with(|router, port| {
            for call in router.release(&self.id) {
                port.refuse(call, &ErrorObject::internal("nobody answered"));
            }
        });
    }
}

impl Session {
    /// The agent's name for the session.
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// The configuration options as they are now, modes and models of version 1 among them.
    pub fn options(&self) -> Vec<ConfigOption> {
        let options = self.link().with(|router, _| Some(router.session(self.id())?.options.all().to_vec()));
        options.unwrap_or_default()
    }

    /// The slash commands as they are now. Agents of version 1 list them in an update behind the opening.
    pub fn commands(&self) -> Vec<AvailableCommand> {
        let commands = self.link().with(|router, _| Some(router.session(self.id())?.commands.clone()));
        commands.unwrap_or_default()
    }

    /// The `_meta` that the agent opened the session with.
    pub fn meta(&self) -> Option<&Meta> {
        self.0.meta.as_ref()
    }

    /// Sends a prompt. The turn is a stream of events that has to be read.
    ///
    /// A prompt may be sent while a turn runs. What an agent makes of it is its own affair: it may take it up at once, or
    /// when the turn has ended.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn, Error> {
        self.send_prompt(prompt.into()).await
    }

    fn send_prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<Turn, Error>> {
        Box::pin(async move {
            self.check_prompt(&prompt)?;
            let request =
                PromptRequest::new(self.id().clone(), prompt.blocks).with(|request| request.meta = prompt.meta);
            let turn = self
                .link()
                .send(|router, port| {
                    let turn = router.begin_turn(self.id())?;
                    let ticket = PromptTicket { session: self.id().clone(), turn };
                    let params = |writer: &mut attache_proto::json::Writer<'_>| writer.value(&request);
                    port.peer.request("session/prompt", params, Waiter::Ticket(ticket), port.out);
                    Ok::<_, Error>(turn)
                })
                .await??;
            Ok(Turn::new(self.clone(), turn))
        })
    }

    /// The next event between turns. Waits until there is one. Cancel safe: dropping the future loses no event.
    pub async fn next(&self) -> Result<Event, Error> {
        Ok(self.next_with_meta().await?.0)
    }

    /// The next event between turns, with the `_meta` of the message that it came in, if it is an update that has one.
    /// Cancel safe.
    pub async fn next_with_meta(&self) -> Result<(Event, Option<Meta>), Error> {
        loop {
            if let Next::Event(event, meta) = next(&self.0.shared, Some(self.id()), None).await? {
                return Ok((event, meta));
            }
        }
    }

    /// The events between turns as a stream.
    #[cfg(feature = "stream")]
    pub fn events(&self) -> Events {
        Events::new(self.0.shared.clone(), Some(self.clone()))
    }

    /// Cancels what the agent is doing in this session. Permission requests that wait are answered `cancelled`.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.cancel_with(CancelNotification::new(self.id().clone())).await
    }

    /// Cancels what the agent is doing in this session, with custom metadata (`_meta`). The session is filled in.
    pub async fn cancel_with(&self, cancel: CancelNotification) -> Result<(), Error> {
        let cancel = cancel.with(|notification| notification.session_id = self.id().clone());
        self.link().send(|router, port| self.send_cancel(router, port, None, &cancel)).await
    }

    /// Cancels one tool call and nothing else. The agent must have said that it can be.
    pub async fn cancel_tool_call(&self, tool_call: impl Into<ToolCallId>) -> Result<(), Error> {
        let id = tool_call.into();
        let can = self.link().with(|router, _| router.session(self.id()).is_some_and(|s| s.can_cancel_tool_call(&id)));
        if !can {
            return Err(Error::NotOffered("cancelling this tool call"));
        }
        self.link().call(&CancelToolCallRequest::new(self.id().clone(), id)).await.map(|_| ())
    }

    /// Cancels one command of the agent's and nothing else. The agent must have said that it can be.
    pub async fn cancel_terminal(&self, terminal: impl Into<TerminalId>) -> Result<(), Error> {
        let id = terminal.into();
        let can = self.link().with(|router, _| router.session(self.id()).is_some_and(|s| s.can_cancel_terminal(&id)));
        if !can {
            return Err(Error::NotOffered("cancelling this terminal"));
        }
        self.link().call(&CancelTerminalRequest::new(self.id().clone(), id)).await.map(|_| ())
    }

    /// Sets a configuration option; returns all options as they are now. Modes and models are options too.
    pub async fn set_option(
        &self,
        option: impl Into<ConfigId>,
        value: impl Into<ConfigSetting>,
    ) -> Result<Vec<ConfigOption>, Error> {
        let (id, value) = (option.into(), value.into());
        let link = self.link();
        let request = link.with(|router, _| {
            let session = router.session(self.id())?;
            Some(session.options.set_request(self.id(), id.clone(), value.clone()))
        });
        let named = match request {
            None => return Err(Error::NotOffered("options")),
            Some(SetRequest::Option(request)) => match link.call(&request).await {
                // Some agents answer `{}`: the option is set, and the others are as they were.
                Err(Error::BadAnswer { error, .. }) if error.reason() == Reason::Missing => None,
                answer => Some(answer?.config_options).filter(|options| !options.is_empty()),
            },
            Some(SetRequest::Mode(request)) => link.call(&request).await.map(|_| None)?,
            Some(SetRequest::Model(request)) => link.call(&request).await.map(|_| None)?,
        };
        link.with(|router, _| {
            if let Some(session) = router.session(self.id()) {
                match (named, &value) {
                    (Some(options), _) => session.options.replace(options),
                    (None, ConfigSetting::Id(value)) => session.options.was_set(&id, value),
                    (None, ConfigSetting::Boolean(is_on)) => session.options.was_switched(&id, *is_on),
                    (None, _) => {}
                }
            }
        });
        Ok(self.options())
    }

    /// Gives the session a title (unstable). Returns the title that it has now.
    pub async fn set_title(&self, title: impl Into<String>) -> Result<String, Error> {
        if self.0.shared.session_capabilities().title.is_none() {
            return Err(Error::NotOffered("titles of sessions"));
        }
        Ok(self.link().call(&SetTitleRequest::new(self.id().clone(), title)).await?.title)
    }

    pub(super) fn link(&self) -> &Link<ClientRouter> {
        &self.0.shared.link
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Closes the session: the agent stops what it does and frees what it holds.
    pub async fn close(&self) -> Result<(), Error> {
        if self.0.shared.session_capabilities().close.is_none() {
            return Err(Error::NotOffered("closing sessions"));
        }
        match self.link().call(&CloseSessionRequest::new(self.id().clone())).await {
            // A session that the agent does not know is closed already.
            Err(Error::Refused(error)) if error.code == ErrorObject::NOT_FOUND => {}
            other => other.map(|_| ())?,
        }
        self.link().with(|router, _| {
            if let Some(session) = router.session(self.id()) {
                session.is_closed = true;
            }
        });
        Ok(())
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
        router: &mut ClientRouter,
        port: &mut Port<'_, ClientRouter>,
        turn: Option<TurnId>,
        cancel: &CancelNotification,
    ) {
        port.peer.notify("session/cancel", |writer| writer.value(cancel), port.out);
        for call in router.cancel_turns(self.id(), turn) {
            port.answer(call, &cancelled_permission());
        }
    }
}

/// What comes next in an inbox.
pub(super) enum Next {
    Event(Event, Option<Meta>),
    End(Result<TurnEnd, Error>),
}

/// Waits for what comes next in the inbox of a session, or of the connection.
pub(super) async fn next(
    shared: &Arc<Shared>,
    session: Option<&SessionId>,
    turn: Option<TurnId>,
) -> Result<Next, Error> {
    let mut guard = WaiterGuard { shared, session, waiter: None };
    poll_fn(|cx| poll_next(shared, session, turn, &mut guard.waiter, cx)).await
}

/// The same for those who poll, and keep their guard among those who wait themselves.
pub(super) fn poll_next(
    shared: &Arc<Shared>,
    session: Option<&SessionId>,
    turn: Option<TurnId>,
    waiter: &mut Option<u64>,
    cx: &mut Context<'_>,
) -> Poll<Result<Next, Error>> {
    match shared.link.with(|router, port| router.take(port, session, turn, waiter, cx.waker())) {
        None => Poll::Pending,
        Some(Ok(item)) => Poll::Ready(Ok(event(shared, item))),
        Some(Err(error)) => Poll::Ready(Err(error)),
    }
}

/// The events of a session between turns, or of a connection, as a stream. Made by [`Session::events`] and
/// [`Connection::events`](super::Connection::events), with the feature `stream`.
#[cfg(feature = "stream")]
#[derive(Debug)]
pub struct Events {
    shared: Arc<Shared>,
    session: Option<Session>,
    waiter: Option<u64>,
}

#[cfg(feature = "stream")]
impl Events {
    pub(super) fn new(shared: Arc<Shared>, session: Option<Session>) -> Self {
        Events { shared, session, waiter: None }
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Events {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let session = this.session.as_ref().map(Session::id);
        loop {
            match std::task::ready!(poll_next(&this.shared, session, None, &mut this.waiter, cx)) {
                Ok(Next::Event(event, _)) => return Poll::Ready(Some(Ok(event))),
                Ok(Next::End(_)) => {}
                // There is nothing after the end of a connection.
                Err(Error::Closed(_)) => return Poll::Ready(None),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

#[cfg(feature = "stream")]
impl Drop for Events {
    fn drop(&mut self) {
        let session = self.session.as_ref().map(|session| session.id().clone());
        self.shared.link.with(|router, _| router.leave(session.as_ref(), &mut self.waiter));
    }
}

/// A guard among those who wait for an inbox; given up when it is dropped.
struct WaiterGuard<'a> {
    shared: &'a Arc<Shared>,
    session: Option<&'a SessionId>,
    waiter: Option<u64>,
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        if self.waiter.is_some() {
            self.shared.link.with(|router, _| router.leave(self.session, &mut self.waiter));
        }
    }
}

/// What the user sees of an inbox item.
fn event(shared: &Arc<Shared>, item: Item) -> Next {
    let link = shared.link.clone();
    let event = match item {
        Item::End(_, end) => return Next::End(end),
        Item::Update(update, meta) => return Next::Event(Event::Update(update), meta.map(|meta| *meta)),
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
            AgentRequest::McpMessage(request) => Event::McpMessage(Pending::new(request, link, call)),
            AgentRequest::ProxySuccessor(request) => Event::ProxySuccessor(Pending::new(request, link, call)),
            other => unreachable!("the router lets only offered requests through, not {:?}", other.method()),
        },
    };
    Next::Event(event, None)
}
