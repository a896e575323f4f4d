//! What an agent says to its client about one session, and asks of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_proto::Dialect;
use attache_proto::conversation::MessageKind;
use attache_proto::method::Method;
use attache_proto::model::Meta;
use attache_proto::model::capability::ClientCapabilities;
use attache_proto::model::command::AvailableCommand;
use attache_proto::model::config::ConfigOption;
use attache_proto::model::content::ContentBlock;
use attache_proto::model::elicitation::{
    CompleteElicitationNotification, CreateElicitationRequest, CreateElicitationResponse, ElicitationId,
};
use attache_proto::model::fs::{ReadTextFileRequest, WriteTextFileRequest};
use attache_proto::model::initialize::Implementation;
use attache_proto::model::notice::{Notice, NoticeSeverity};
use attache_proto::model::plan::{PlanContent, PlanEntry, PlanItems, PlanUpdate};
use attache_proto::model::session::SessionId;
use attache_proto::model::state::BackgroundWork;
use attache_proto::model::terminal::CreateTerminalRequest;
use attache_proto::model::unstable::{McpMessageRequest, McpMessageResponse, SessionMessage, SubagentUpdate};
use attache_proto::model::update::{
    CommandsUpdate, ConfigOptionsUpdate, SessionInfoUpdate, SessionUpdate, UsageUpdate,
};

use super::context::check_elicitation;
use super::router::AgentRouter;
use super::updates::Updates;
use super::{Compaction, ShownTerminal, Terminal, ToolCallBuilder};
use crate::Error;
use crate::link::{Expects, Link, Port};

/// What a client said of itself.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientInfo {
    /// How the two speak.
    pub dialect: Dialect,
    /// What the client calls itself.
    pub info: Option<Implementation>,
    /// What the client offers, with what goes without saying in its version.
    pub capabilities: ClientCapabilities,
    /// Custom metadata (`_meta`) of the client.
    pub meta: Option<Meta>,
}

impl ClientInfo {
    /// Whether the client can cancel a tool call or a terminal by itself.
    pub(super) fn can_cancel_parts(&self) -> bool {
        Method::CancelToolCall.name(self.dialect).is_some()
    }
}

/// A session's line to its client. Cheap to clone; usable during and between turns.
#[derive(Clone)]
pub struct SessionHandle(Arc<Inner>);

struct Inner {
    link: Link<AgentRouter>,
    id: SessionId,
    client: Arc<ClientInfo>,
    updates: Arc<Mutex<Updates>>,
}

impl SessionHandle {
    pub(super) fn new(link: Link<AgentRouter>, id: SessionId, client: Arc<ClientInfo>) -> Self {
        let updates = Arc::new(Mutex::new(Updates::new(&id, client.dialect, &client.capabilities)));
        SessionHandle(Arc::new(Inner { link, id, client, updates }))
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// What the client said of itself.
    pub fn client(&self) -> &ClientInfo {
        &self.0.client
    }

    /// Says a piece of the agent's answer, as Markdown. Pieces join until something else is said.
    pub fn text(&self, text: impl Into<String>) -> impl Future<Output = Result<(), Error>> + Send {
        self.say(MessageKind::Answer, ContentBlock::text(text))
    }

    /// Says a piece of the agent's answer that need not be text.
    pub fn content(&self, content: impl Into<ContentBlock>) -> impl Future<Output = Result<(), Error>> + Send {
        self.say(MessageKind::Answer, content.into())
    }

    /// Says a piece of the agent's reasoning.
    pub fn thought(&self, text: impl Into<String>) -> impl Future<Output = Result<(), Error>> + Send {
        self.say(MessageKind::Thought, ContentBlock::text(text))
    }

    fn say(&self, kind: MessageKind, content: ContentBlock) -> impl Future<Output = Result<(), Error>> + Send {
        // Taken out where it is written: every future on the way would have room for a copy of its own.
        let mut content = Some(content);
        async move {
            let mut write = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
                let Some(content) = content.take() else { return };
                self.updates().write_piece(port, kind, content);
            };
            match self.0.link.try_send(Expects::Nothing, &mut write)? {
                true => Ok(()),
                false => self.0.link.send_later(Expects::Nothing, &mut write).await,
            }
        }
    }

    /// Prepares a tool call with a title. It is shown when it is started.
    pub fn tool(&self, title: impl Into<String>) -> ToolCallBuilder {
        ToolCallBuilder::new(self.clone(), title.into())
    }

    /// Shows a plan; it replaces the one before.
    pub async fn plan(&self, entries: Vec<PlanEntry>) -> Result<(), Error> {
        let items = PlanContent::Items(PlanItems::new("plan", entries));
        self.update(SessionUpdate::PlanUpdate(PlanUpdate::new(items))).await
    }

    /// Says how much of the context is used.
    pub async fn usage(&self, usage: UsageUpdate) -> Result<(), Error> {
        self.update(SessionUpdate::Usage(usage)).await
    }

    /// Shows the person something that is not part of the conversation. Not sent to a client that takes no notices.
    pub async fn notice(&self, severity: NoticeSeverity, title: impl Into<String>) -> Result<(), Error> {
        self.update(SessionUpdate::Notice(Notice::new(severity, title))).await
    }

    /// Says which slash commands there are.
    pub async fn commands(&self, commands: Vec<AvailableCommand>) -> Result<(), Error> {
        let update = CommandsUpdate::new(commands);
        self.update(SessionUpdate::AvailableCommands(update)).await
    }

    /// Says which configuration options there are and how they are set.
    pub async fn options(&self, options: Vec<ConfigOption>) -> Result<(), Error> {
        self.update(SessionUpdate::ConfigOptions(ConfigOptionsUpdate::new(options))).await
    }

    /// Says which work goes on beside the conversation, from now on with every state (version 2). The tool call or
    /// terminal that it belongs to has to be shown first.
    pub async fn background(&self, work: Vec<BackgroundWork>) -> Result<(), Error> {
        let mut work = Some(work);
        let write = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
            let work = work.take().unwrap_or_default();
            self.updates().write_with(port, None, None, |session, emit| session.set_background(work, emit));
        };
        self.0.link.send(write).await
    }

    /// Gives the session a title.
    pub async fn title(&self, title: impl Into<String>) -> Result<(), Error> {
        let update = SessionInfoUpdate::new().title(title);
        self.update(SessionUpdate::SessionInfo(update)).await
    }

    /// Shows a command that the agent runs itself, in a directory (absolute).
    pub async fn show_terminal(
        &self,
        command: impl Into<String>,
        cwd: impl Into<String>,
    ) -> Result<ShownTerminal, Error> {
        ShownTerminal::show(self.clone(), command.into(), cwd.into()).await
    }

    /// Shows that the conversation is being summarised.
    pub async fn compact(&self) -> Result<Compaction, Error> {
        Compaction::start(self.clone()).await
    }

    /// Tells about an agent that works for this one, by its session (unstable).
    pub async fn subagent(&self, update: SubagentUpdate) -> Result<(), Error> {
        self.update(SessionUpdate::Subagent(update.into())).await
    }

    /// Tells about a message between this session and another (unstable).
    pub async fn session_message(&self, message: SessionMessage) -> Result<(), Error> {
        self.update(SessionUpdate::SessionMessage(message.into())).await
    }

    /// Sends any update. What the agreed version cannot say is said as well as it can be, and reported.
    pub fn update(&self, update: SessionUpdate) -> impl Future<Output = Result<(), Error>> + Send {
        self.update_with(update, None)
    }

    /// Sends any update in a message that has `_meta` of its own.
    pub fn update_with_meta(
        &self,
        update: SessionUpdate,
        meta: Meta,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.update_with(update, Some(meta))
    }

    fn update_with(&self, update: SessionUpdate, meta: Option<Meta>) -> impl Future<Output = Result<(), Error>> + Send {
        let mut update = Some(update);
        async move {
            let write = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
                let Some(update) = update.take() else { return };
                self.updates().write(port, update, meta.as_ref());
            };
            self.0.link.send(write).await
        }
    }

    /// The same at once, for those who cannot wait: guards that are dropped.
    pub(super) fn update_now(&self, update: &SessionUpdate) {
        self.0.link.with(|_, port| self.write_update(port, update));
    }

    pub(super) fn write_update(&self, port: &mut Port<'_, AgentRouter>, update: &SessionUpdate) {
        self.updates().write_ref(port, update);
    }

    /// Waits until everything said so far is written.
    pub async fn flush(&self) -> Result<(), Error> {
        self.0.link.flush().await
    }

    /// Reads a file through the client, with changes that are not saved yet.
    pub async fn read_text_file(&self, path: impl Into<String>) -> Result<String, Error> {
        self.read_lines(path, None, None).await
    }

    /// Reads some lines of a file through the client. Lines count from 1.
    pub async fn read_lines(
        &self,
        path: impl Into<String>,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, Error> {
        if !self.0.client.capabilities.fs.read_text_file {
            return Err(Error::NotOffered("reading files"));
        }
        let request = ReadTextFileRequest::new(self.0.id.clone(), path).with(|request| {
            request.line = line;
            request.limit = limit;
        });
        Ok(self.call(&request).await?.content)
    }

    /// Writes a file through the client.
    pub async fn write_text_file(&self, path: impl Into<String>, content: impl Into<String>) -> Result<(), Error> {
        if !self.0.client.capabilities.fs.write_text_file {
            return Err(Error::NotOffered("writing files"));
        }
        self.call(&WriteTextFileRequest::new(self.0.id.clone(), path, content)).await.map(|_| ())
    }

    /// Has the client run a command. The terminal is released when it is dropped.
    pub async fn terminal(
        &self,
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Terminal, Error> {
        let request = CreateTerminalRequest::new(self.0.id.clone(), command).args(args);
        self.create_terminal(request).await
    }

    /// The same with all that can be said about the command: where it runs, its variables, how much output is kept. The
    /// session is filled in.
    pub async fn create_terminal(&self, request: CreateTerminalRequest) -> Result<Terminal, Error> {
        Terminal::create(self.clone(), request).await
    }

    /// Sends a message to an MCP server that the client serves (unstable). It was given to the session as
    /// [`McpServer::Acp`](crate::model::mcp::McpServer::Acp).
    pub async fn call_mcp(&self, message: &McpMessageRequest) -> Result<McpMessageResponse, Error> {
        self.call(message).await
    }

    /// Puts a question to the person. Its scope may be this session, or a request of the client that is being served.
    /// While it is open, a session of version 2 waits for the person.
    pub async fn elicit(&self, request: CreateElicitationRequest) -> Result<CreateElicitationResponse, Error> {
        check_elicitation(&self.0.client, &request)?;
        let _question = self.open_question().await?;
        self.call(&request).await
    }

    /// Says that a question which sent the person to a web page is answered.
    pub async fn complete_elicitation(&self, id: impl Into<ElicitationId>) -> Result<(), Error> {
        self.notify(&CompleteElicitationNotification::new(id)).await
    }

    /// Opens a question: until what is returned is dropped, the session waits for the person.
    pub(super) async fn open_question(&self) -> Result<OpenQuestion, Error> {
        let ask = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
            self.updates().write_with(port, None, None, |session, emit| session.ask(emit));
            OpenQuestion(self.clone())
        };
        self.0.link.send(ask).await
    }

    crate::link::untyped_methods!();

    pub(super) fn link(&self) -> &Link<AgentRouter> {
        &self.0.link
    }

    pub(super) fn updates(&self) -> MutexGuard<'_, Updates> {
        self.0.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shared_updates(&self) -> Arc<Mutex<Updates>> {
        self.0.updates.clone()
    }

    /// Another handle to an open session, for somebody who only knows what it remembers.
    pub(super) fn of_open(
        link: Link<AgentRouter>,
        id: SessionId,
        client: Arc<ClientInfo>,
        updates: Arc<Mutex<Updates>>,
    ) -> Self {
        SessionHandle(Arc::new(Inner { link, id, client, updates }))
    }
}

/// A question that the person has not answered. Dropped, it is over, whatever came of it.
pub(super) struct OpenQuestion(SessionHandle);

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.link().with(|_, port| {
            self.0.updates().write_with(port, None, None, |session, emit| session.end_question(emit));
        });
    }
}

impl std::fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.0.id).finish_non_exhaustive()
    }
}
