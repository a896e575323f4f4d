//! What an agent says to its client about one session, and asks of it.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_proto::Dialect;
use attache_proto::model::{
    AvailableCommand, ClientCapabilities, CommandsUpdate, ConfigId, ConfigOption, ConfigOptionsUpdate, ConfigSetting,
    ContentBlock, CreateElicitationRequest, CreateElicitationResponse, CreateTerminalRequest, ElicitationMode,
    ErrorObject, Implementation, MessageId, Notice, NoticeSeverity, Patch, PlanContent, PlanEntry, PlanItems,
    PlanUpdate, ReadTextFileRequest, SessionId, SessionInfoUpdate, SessionUpdate, StateUpdate, UsageUpdate,
    WriteTextFileRequest,
};

use super::flag::Flag;
use super::router::{AgentRouter, OptionChange};
use super::session::answer_option_change;
use super::voice::{Stream, Voice};
use super::{Ask, Decision, Terminal, ToolCall};
use crate::Error;
use crate::link::{Link, Port};

/// What a client said of itself.
#[derive(Debug)]
pub struct ClientInfo {
    /// How the two speak.
    pub dialect: Dialect,
    /// What the client calls itself.
    pub info: Option<Implementation>,
    /// What the client offers.
    pub capabilities: ClientCapabilities,
}

/// A session's line to its client. Cheap to clone; usable during and between turns.
#[derive(Clone)]
pub struct SessionHandle(Arc<Inner>);

struct Inner {
    link: Link<AgentRouter>,
    id: SessionId,
    client: Arc<ClientInfo>,
    voice: Mutex<Voice>,
}

impl SessionHandle {
    pub(super) fn new(link: Link<AgentRouter>, id: SessionId, client: Arc<ClientInfo>) -> Self {
        let voice = Mutex::new(Voice::new(&id, client.dialect, &client.capabilities));
        SessionHandle(Arc::new(Inner { link, id, client, voice }))
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
        self.say(Stream::Text, ContentBlock::text(text))
    }

    /// Says a piece of the agent's answer that need not be text.
    pub fn content(&self, content: impl Into<ContentBlock>) -> impl Future<Output = Result<(), Error>> + Send {
        self.say(Stream::Text, content.into())
    }

    /// Says a piece of the agent's reasoning.
    pub fn thought(&self, text: impl Into<String>) -> impl Future<Output = Result<(), Error>> + Send {
        self.say(Stream::Thought, ContentBlock::text(text))
    }

    fn say(&self, stream: Stream, content: ContentBlock) -> impl Future<Output = Result<(), Error>> + Send {
        // Taken out where it is written: every future on the way would have room for a copy of its own.
        let mut content = Some(content);
        async move {
            let write = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
                let Some(content) = content.take() else { return };
                self.voice().write_piece(port, stream, content);
            };
            self.0.link.send(write).await
        }
    }

    /// Starts a tool call, and shows it as pending. The guard that comes back ends it.
    pub async fn tool(&self, title: impl Into<String>) -> Result<ToolCall, Error> {
        ToolCall::start(self.clone(), title.into(), None).await
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

    /// Tells the person something that is no part of the conversation. A client that takes no notices is not told.
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
        self.0.link.with(|router, _| {
            if let Some(slot) = router.slot(&self.0.id) {
                slot.options.clone_from(&options);
            }
        });
        self.update(SessionUpdate::ConfigOptions(ConfigOptionsUpdate::new(options))).await
    }

    /// Gives the session a title.
    pub async fn title(&self, title: impl Into<String>) -> Result<(), Error> {
        let update = SessionInfoUpdate { title: Patch::Set(title.into()), ..SessionInfoUpdate::new() };
        self.update(SessionUpdate::SessionInfo(update)).await
    }

    /// Sends any update. What the agreed version cannot say is said as well as it can be, and reported.
    pub fn update(&self, update: SessionUpdate) -> impl Future<Output = Result<(), Error>> + Send {
        let mut update = Some(update);
        async move {
            let write = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
                let Some(update) = update.take() else { return };
                self.voice().write(port, update);
            };
            self.0.link.send(write).await
        }
    }

    /// The same at once, for those who cannot wait: guards that are dropped.
    pub(super) fn update_now(&self, update: &SessionUpdate) {
        self.0.link.with(|_, port| self.write_update(port, update));
    }

    pub(super) fn write_update(&self, port: &mut Port<'_, AgentRouter>, update: &SessionUpdate) {
        self.voice().write_ref(port, update);
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
        let request = ReadTextFileRequest { line, limit, ..ReadTextFileRequest::new(self.0.id.clone(), path) };
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
        let args = args.into_iter().map(Into::into).collect();
        let request = CreateTerminalRequest { args, ..CreateTerminalRequest::new(self.0.id.clone(), command) };
        self.create_terminal(request).await
    }

    /// The same with all that can be said about the command: where it runs, its variables, how much output is kept. The
    /// session is filled in.
    pub async fn create_terminal(&self, request: CreateTerminalRequest) -> Result<Terminal, Error> {
        Terminal::create(self.clone(), request).await
    }

    /// Puts a question to the person. The session is filled in.
    pub async fn elicit(&self, request: CreateElicitationRequest) -> Result<CreateElicitationResponse, Error> {
        let offered = self.0.client.capabilities.elicitation.as_ref();
        let is_offered = match &request.mode {
            ElicitationMode::Form(_) => offered.is_some_and(|offered| offered.form.is_some()),
            ElicitationMode::Url(_) => offered.is_some_and(|offered| offered.url.is_some()),
            _ => false,
        };
        if !is_offered {
            return Err(Error::NotOffered("questions of this kind"));
        }
        self.call(&request).await
    }

    crate::link::free_speech!();

    pub(super) fn link(&self) -> &Link<AgentRouter> {
        &self.0.link
    }

    pub(super) fn next_tool_id(&self) -> String {
        self.voice().next_tool_id()
    }

    pub(super) fn next_message_id(&self) -> MessageId {
        self.voice().separate_message_id()
    }

    /// Writes what is held back, before a turn ends or a question is asked.
    pub(super) fn settle(&self, port: &mut Port<'_, AgentRouter>) {
        self.voice().settle(port);
    }

    pub(super) fn rest(&self) {
        self.voice().rest();
    }

    fn voice(&self) -> MutexGuard<'_, Voice> {
        self.0.voice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.0.id).finish_non_exhaustive()
    }
}

/// One turn: everything a [`SessionHandle`] can do, and what depends on the prompt. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turn {
    handle: SessionHandle,
    cancelled: Arc<Flag>,
    prompt_id: Option<MessageId>,
}

impl Turn {
    pub(super) fn new(handle: SessionHandle, cancelled: Arc<Flag>, prompt_id: Option<MessageId>) -> Self {
        Turn { handle, cancelled, prompt_id }
    }

    /// The id of the message that the prompt is, where the version has one: whoever replays the session later should
    /// give the message the same id.
    pub fn prompt_id(&self) -> Option<&MessageId> {
        self.prompt_id.as_ref()
    }

    /// Whether the client has cancelled the turn.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_raised()
    }

    /// Waits until the client cancels the turn.
    pub async fn cancelled(&self) {
        self.cancelled.raised().await;
    }

    /// Does `work` unless the turn is cancelled first; then the work is dropped.
    pub async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut work = std::pin::pin!(work);
        let mut cancelled = std::pin::pin!(self.cancelled());
        std::future::poll_fn(|cx| {
            use std::task::Poll;
            if let Poll::Ready(value) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(value));
            }
            cancelled.as_mut().poll(cx).map(|()| Err(Error::Cancelled))
        })
        .await
    }

    /// Asks for permission. Only a clear yes is [`Decision::Allowed`]; a turn that is cancelled meanwhile is a no.
    pub async fn ask(&self, ask: Ask) -> Result<Decision, Error> {
        let is_v2 = self.client().dialect == Dialect::V2;
        if is_v2 {
            self.update(SessionUpdate::State(StateUpdate::requires_action())).await?;
        } else {
            self.handle.0.link.send(|_, port| self.handle.settle(port)).await?;
        }
        let decision = match self.unless_cancelled(ask.put(&self.handle)).await {
            Ok(decision) => decision?,
            Err(_) => Decision::Cancelled,
        };
        if is_v2 {
            self.update(SessionUpdate::State(StateUpdate::running())).await?;
        }
        Ok(decision)
    }

    /// Waits for a configuration option that the client sets while the turn runs. Without this, it is set after the turn.
    pub async fn option_change(&self) -> PendingOption {
        let change = std::future::poll_fn(|cx| {
            let next = self.handle.0.link.with(|router, _| router.next_option_change(self.id(), cx.waker()));
            next.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        })
        .await;
        PendingOption { handle: self.handle.clone(), change: Some(change) }
    }
}

impl Deref for Turn {
    type Target = SessionHandle;

    fn deref(&self) -> &SessionHandle {
        &self.handle
    }
}

/// A configuration option that the client has set, to be answered. Dropped, it is refused.
pub struct PendingOption {
    handle: SessionHandle,
    change: Option<OptionChange>,
}

impl PendingOption {
    /// Which option.
    pub fn option(&self) -> Option<&ConfigId> {
        self.change.as_ref().map(|change| &change.id)
    }

    /// To which value.
    pub fn value(&self) -> Option<&ConfigSetting> {
        self.change.as_ref().map(|change| &change.value)
    }

    /// Answers with all options as they are now, or with an error.
    pub async fn reply(mut self, options: Result<Vec<ConfigOption>, ErrorObject>) -> Result<(), Error> {
        match self.change.take() {
            Some(change) => answer_option_change(&self.handle, change, options.map_err(Error::Refused)).await,
            None => Ok(()),
        }
    }
}

impl Drop for PendingOption {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            let error = ErrorObject::internal("nobody answered");
            self.handle.link().with(|_, port| port.refuse(change.call, &error));
        }
    }
}
