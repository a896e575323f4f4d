//! Where what a client sends is put: session calls with their session, everything else in one queue of jobs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use attache_proto::Dialect;
use attache_proto::json::{RawJson, Reader};
use attache_proto::method::{ClientNotification, ClientRequest, Method};
use attache_proto::model::{
    AgentCapabilities, AuthMethod, AvailableCommand, CancelToolCallResponse, ConfigCategory, ConfigId, ConfigOption,
    ConfigSetting, ContentBlock, ErrorObject, Implementation, InitializeRequest, InitializeResponse, McpServer,
    PromptRequest, ReplayFrom, SessionId,
};
use attache_proto::rpc::{Call, IntMap, Side, Violation};
use tokio::sync::oneshot;

use super::flag::Flag;
use super::handle::ClientInfo;
use super::jobs::{Kind, Opening, open_request};
use crate::link::{Port, Router};
use crate::{Closed, Error};

/// A request that belongs to no open session, for the server to run.
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) work: Work,
    pub(crate) cancelled: Arc<Flag>,
}

pub(crate) enum Work {
    /// A session is to be opened.
    Open(Opening),
    /// Open sessions are to be listed: all of them, or those in a directory.
    List(Option<String>),
    /// The params cannot be served, and why.
    Wrong(&'static str),
    /// A request that something was registered for; its params are right.
    Registered(Method, RawJson),
    Extension(Box<str>, Option<RawJson>),
}

/// What a session has to do next.
pub(crate) enum Command {
    Prompt {
        call: Call,
        request: PromptRequest,
        cancelled: Arc<Flag>,
    },
    SetOption(OptionChange),
    Close(Call),
    /// Close without a client's asking: the session is about to be opened again, or deleted.
    Leave(oneshot::Sender<()>),
}

/// A configuration option to set, and how the client wants to hear of it.
pub(crate) struct OptionChange {
    pub(crate) call: Call,
    pub(crate) id: ConfigId,
    pub(crate) value: ConfigSetting,
    /// Asked for as a mode or model, which is answered with an empty result.
    pub(crate) is_old_style: bool,
}

/// A session as the router sees it.
pub(crate) struct Slot {
    commands: VecDeque<Command>,
    waker: Option<Waker>,
    /// The turn that runs now.
    running: Option<(Call, Arc<Flag>)>,
    /// Tool calls and terminals that can be cancelled by themselves, by id.
    pub(crate) cancellable: HashMap<String, Arc<Flag>>,
    pub(crate) options: Vec<ConfigOption>,
    pub(crate) offered_commands: Vec<AvailableCommand>,
    pub(crate) cwd: String,
}

/// What the server was told that its agent can do.
pub(crate) struct Features {
    pub(crate) info: Implementation,
    pub(crate) capabilities: AgentCapabilities,
    pub(crate) auth_methods: Vec<AuthMethod>,
    pub(crate) restores: bool,
    pub(crate) forks: bool,
    /// Methods that something was registered for.
    pub(crate) methods: HashSet<Method>,
    pub(crate) extensions: HashSet<String>,
}

/// The agent's router.
pub(crate) struct AgentRouter {
    features: Features,
    pub(crate) client: Option<Arc<ClientInfo>>,
    jobs: VecDeque<Job>,
    jobs_waker: Option<Waker>,
    running: IntMap<Call, Arc<Flag>>,
    sessions: HashMap<SessionId, Slot>,
    notices: VecDeque<Notice>,
    notices_waker: Option<Waker>,
    unread: usize,
    sizes: IntMap<Call, usize>,
    closed: Option<Closed>,
}

/// A notification of an extension method.
pub(crate) struct Notice {
    pub(crate) method: Box<str>,
    pub(crate) params: Option<RawJson>,
    size: usize,
}

impl AgentRouter {
    pub(crate) fn new(features: Features) -> Self {
        AgentRouter {
            features,
            client: None,
            jobs: VecDeque::new(),
            jobs_waker: None,
            running: IntMap::default(),
            sessions: HashMap::new(),
            notices: VecDeque::new(),
            notices_waker: None,
            unread: 0,
            sizes: IntMap::default(),
            closed: None,
        }
    }

    /// The next job; `Some(None)` when there will be no more.
    pub(crate) fn next_job(&mut self, waker: &Waker) -> Option<Option<Job>> {
        if let Some(job) = self.jobs.pop_front() {
            self.free(job.call);
            self.running.insert(job.call, job.cancelled.clone());
            return Some(Some(job));
        }
        if self.closed.is_some() {
            return Some(None);
        }
        self.jobs_waker = Some(waker.clone());
        None
    }

    /// The next notification of an extension.
    pub(crate) fn next_notice(&mut self, waker: &Waker) -> Option<Notice> {
        let Some(notice) = self.notices.pop_front() else {
            self.notices_waker = Some(waker.clone());
            return None;
        };
        self.unread -= notice.size;
        Some(notice)
    }

    pub(crate) fn job_done(&mut self, call: Call) {
        self.running.remove(&call);
    }

    /// Makes a place for a session that is being opened, unless it is open already or there are too many.
    pub(crate) fn reserve(&mut self, session: &SessionId, cwd: &str, limit: usize) -> Result<(), ErrorObject> {
        if self.sessions.contains_key(session) {
            return Err(ErrorObject::wrong_params("sessionId: the session is open already"));
        }
        if self.sessions.len() >= limit {
            return Err(ErrorObject::rate_limited(1));
        }
        let slot = Slot {
            commands: VecDeque::new(),
            waker: None,
            running: None,
            cancellable: HashMap::new(),
            options: Vec::new(),
            offered_commands: Vec::new(),
            cwd: cwd.into(),
        };
        self.sessions.insert(session.clone(), slot);
        Ok(())
    }

    pub(crate) fn slot(&mut self, session: &SessionId) -> Option<&mut Slot> {
        self.sessions.get_mut(session)
    }

    /// Whether no turn runs in a session.
    pub(crate) fn is_at_rest(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_none_or(|slot| slot.running.is_none())
    }

    /// Has an open session close, so that it can be opened again or deleted. With `cancel`, also when a turn runs.
    pub(crate) fn leave(&mut self, session: &SessionId, cancel: bool) -> Option<oneshot::Receiver<()>> {
        if cancel {
            self.cancel_session(session);
        }
        let slot = self.sessions.get_mut(session)?;
        if !cancel && (slot.running.is_some() || !slot.commands.is_empty()) {
            return None;
        }
        let (left, leaving) = oneshot::channel();
        slot.commands.push_back(Command::Leave(left));
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        Some(leaving)
    }

    /// The open sessions and their directories.
    pub(crate) fn open_sessions(&self) -> Vec<(SessionId, String)> {
        let mut open: Vec<_> = self.sessions.iter().map(|(id, slot)| (id.clone(), slot.cwd.clone())).collect();
        open.sort();
        open
    }

    /// Forgets a session; returns the calls that it will not answer any more.
    pub(crate) fn release(&mut self, session: &SessionId) -> Vec<Call> {
        let Some(slot) = self.sessions.remove(session) else { return Vec::new() };
        let calls: Vec<Call> = slot.commands.iter().filter_map(Command::call).collect();
        for call in &calls {
            self.free(*call);
        }
        calls
    }

    /// What a session has to do next; `Some(None)` when there will be nothing more. Whoever asks runs no turn any more.
    pub(crate) fn next_command(&mut self, session: &SessionId, waker: &Waker) -> Option<Option<Command>> {
        let is_closed = self.closed.is_some();
        let Some(slot) = self.sessions.get_mut(session) else { return Some(None) };
        slot.running = None;
        let Some(command) = slot.commands.pop_front() else {
            if is_closed {
                return Some(None);
            }
            slot.waker = Some(waker.clone());
            return None;
        };
        if let Command::Prompt { call, cancelled, .. } = &command {
            slot.running = Some((*call, cancelled.clone()));
        }
        if let Some(call) = command.call() {
            self.free(call);
        }
        Some(Some(command))
    }

    /// An option change that waits, for a turn that wants to take it before it ends.
    pub(crate) fn next_option_change(&mut self, session: &SessionId, waker: &Waker) -> Option<OptionChange> {
        let slot = self.sessions.get_mut(session)?;
        let position = slot.commands.iter().position(|command| matches!(command, Command::SetOption(_)));
        let Some(Command::SetOption(change)) = position.and_then(|position| slot.commands.remove(position)) else {
            slot.waker = Some(waker.clone());
            return None;
        };
        self.free(change.call);
        Some(change)
    }

    fn charge(&mut self, call: Call, size: usize) {
        let size = size + size_of::<Command>();
        self.unread += size;
        self.sizes.insert(call, size);
    }

    fn free(&mut self, call: Call) {
        self.unread -= self.sizes.remove(&call).unwrap_or(0);
    }

    fn push_job(&mut self, call: Call, work: Work, size: usize) {
        self.charge(call, size);
        self.jobs.push_back(Job { call, work, cancelled: Arc::default() });
        if let Some(waker) = self.jobs_waker.take() {
            waker.wake();
        }
    }

    fn push_command(
        &mut self,
        port: &mut Port<'_, Self>,
        call: Call,
        session: &SessionId,
        command: Command,
        size: usize,
    ) {
        let Some(slot) = self.sessions.get_mut(session) else {
            port.violation(Violation::UnknownSession);
            return port.refuse(call, &ErrorObject::session_not_found(session));
        };
        if slot.commands.capacity() == 0 {
            // Few sessions ever have two to do.
            slot.commands.reserve_exact(1);
        }
        slot.commands.push_back(command);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        self.charge(call, size);
    }

    /// Cancels the turns of a session that there are now, and none that comes later.
    fn cancel_session(&mut self, session: &SessionId) {
        let Some(slot) = self.sessions.get(session) else { return };
        if let Some((_, flag)) = &slot.running {
            flag.raise();
        }
        for command in &slot.commands {
            if let Command::Prompt { cancelled, .. } = command {
                cancelled.raise();
            }
        }
    }

    fn initialize(&mut self, port: &mut Port<'_, Self>, call: Call, params: Option<&str>) {
        if !self.sessions.is_empty() || !self.running.is_empty() || !self.jobs.is_empty() {
            return port.refuse(call, &ErrorObject::invalid_request("the connection is in use"));
        }
        let params = params.unwrap_or("{}");
        let dialect = asked_dialect(params);
        let mut reader = Reader::new(params, dialect);
        let request: InitializeRequest = match reader.decode() {
            Ok(request) => request,
            Err(error) => return port.invalid_params(call, Method::Initialize, error),
        };
        port.peer.set_dialect(dialect);
        port.tolerated(Method::Initialize, reader.tolerated());
        // A login in a terminal is only for clients that can show one.
        let has_terminal = request.capabilities.auth.terminal.is_some();
        let is_for_client = |method: &&AuthMethod| has_terminal || !matches!(method, AuthMethod::Terminal(_));
        let response = InitializeResponse {
            info: Some(self.features.info.clone()),
            capabilities: self.features.capabilities.clone(),
            auth_methods: self.features.auth_methods.iter().filter(is_for_client).cloned().collect(),
            ..InitializeResponse::new(dialect.version())
        };
        port.answer(call, &response);
        // What an older version has no words for is simply not offered there.
        port.peer.take_lost();
        self.client = Some(Arc::new(ClientInfo { dialect, info: request.info, capabilities: request.capabilities }));
    }

    /// Whether a request is served at all, by what was offered in this dialect.
    fn offers(&self, request: &ClientRequest, dialect: Dialect) -> bool {
        let is_v2 = dialect == Dialect::V2;
        match request {
            ClientRequest::NewSession(_) | ClientRequest::Prompt(_) | ClientRequest::CloseSession(_) => true,
            ClientRequest::SetConfigOption(_) => true,
            ClientRequest::SetMode(_) | ClientRequest::SetModel(_) => dialect == Dialect::V1,
            ClientRequest::LoadSession(_) => self.features.restores,
            ClientRequest::ResumeSession(_) => self.features.restores || is_v2,
            ClientRequest::ForkSession(_) => self.features.forks,
            ClientRequest::ListSessions(_) => is_v2,
            ClientRequest::CancelToolCall(_) | ClientRequest::CancelTerminal(_) => is_v2,
            _ => false,
        }
    }

    /// What version 2 has an agent refuse: content and servers of kinds that it did not offer to take.
    fn unsupported(&self, request: &ClientRequest) -> Option<&'static str> {
        let offered = self.features.capabilities.session.as_ref()?;
        let servers = match request {
            ClientRequest::Prompt(request) if request.prompt.is_empty() => {
                return Some("prompt: there is nothing in it");
            }
            ClientRequest::Prompt(request) => {
                let is_taken = |block: &ContentBlock| match block {
                    ContentBlock::Text(_) | ContentBlock::ResourceLink(_) => true,
                    ContentBlock::Image(_) => offered.prompt.image.is_some(),
                    ContentBlock::Audio(_) => offered.prompt.audio.is_some(),
                    ContentBlock::Resource(_) => offered.prompt.embedded_context.is_some(),
                    _ => false,
                };
                let is_fine = request.prompt.iter().all(is_taken);
                return (!is_fine).then_some("prompt: content of this kind is not offered");
            }
            ClientRequest::NewSession(request) => &request.mcp_servers,
            ClientRequest::ResumeSession(request) => &request.mcp_servers,
            _ => return None,
        };
        let is_taken = |server: &McpServer| match server {
            McpServer::Stdio(_) => offered.mcp.stdio.is_some(),
            McpServer::Http(_) => offered.mcp.http.is_some(),
            McpServer::Acp(_) => offered.mcp.acp.is_some(),
            _ => false,
        };
        (!servers.iter().all(is_taken)).then_some("mcpServers: servers of this kind are not offered")
    }

    fn route(&mut self, port: &mut Port<'_, Self>, call: Call, request: ClientRequest, size: usize) {
        // Version 1 leaves this to the client, and its clients are not always strict.
        if port.dialect() == Dialect::V2
            && let Some(why) = self.unsupported(&request)
        {
            return port.refuse(call, &ErrorObject::wrong_params(why));
        }
        match request {
            ClientRequest::Prompt(request) => {
                let session = request.session_id.clone();
                let command = Command::Prompt { call, request, cancelled: Arc::default() };
                self.push_command(port, call, &session, command, size);
            }
            ClientRequest::SetConfigOption(request) => {
                let change = OptionChange { call, id: request.config_id, value: request.value, is_old_style: false };
                self.push_command(port, call, &request.session_id, Command::SetOption(change), size);
            }
            ClientRequest::SetMode(request) => {
                let value = request.mode_id.as_str().into();
                self.set_old_style(port, call, &request.session_id, ConfigCategory::Mode, value, size);
            }
            ClientRequest::SetModel(request) => {
                let value = request.model_id;
                self.set_old_style(port, call, &request.session_id, ConfigCategory::Model, value, size);
            }
            ClientRequest::CloseSession(request) => {
                if !self.sessions.contains_key(&request.session_id) {
                    return port.refuse(call, &ErrorObject::session_not_found(&request.session_id));
                }
                self.cancel_session(&request.session_id);
                self.push_command(port, call, &request.session_id, Command::Close(call), size);
            }
            ClientRequest::CancelToolCall(request) => {
                self.cancel_part(port, call, &request.session_id, request.tool_call_id.as_str());
            }
            ClientRequest::CancelTerminal(request) => {
                self.cancel_part(port, call, &request.session_id, request.terminal_id.as_str());
            }
            // From here on a job, which keeps what it needs and not the whole of every request.
            ClientRequest::NewSession(request) => {
                let open = open_request(request.cwd, request.additional_directories, request.mcp_servers, request.meta);
                self.push_job(call, Work::Open(Opening { kind: Kind::New, open }), size);
            }
            ClientRequest::LoadSession(request) => {
                let open = open_request(request.cwd, request.additional_directories, request.mcp_servers, request.meta);
                let kind = Kind::Restore { id: request.session_id, replay: true };
                self.push_job(call, Work::Open(Opening { kind, open }), size);
            }
            ClientRequest::ForkSession(request) => {
                let open = open_request(request.cwd, request.additional_directories, request.mcp_servers, request.meta);
                let kind = Kind::Fork { from: request.session_id };
                self.push_job(call, Work::Open(Opening { kind, open }), size);
            }
            ClientRequest::ResumeSession(request) => {
                let replay = match &request.replay_from {
                    None => false,
                    Some(ReplayFrom::Start(_)) => true,
                    Some(_) => return self.push_job(call, Work::Wrong("replayFrom: there is no such point"), size),
                };
                let open = open_request(request.cwd, request.additional_directories, request.mcp_servers, request.meta);
                let kind = Kind::Restore { id: request.session_id, replay };
                self.push_job(call, Work::Open(Opening { kind, open }), size);
            }
            ClientRequest::ListSessions(request) => self.push_job(call, Work::List(request.cwd), size),
            _ => port.refuse(call, &ErrorObject::internal("Internal error")),
        }
    }

    /// Cancels one tool call or terminal, if it said that it can be.
    fn cancel_part(&mut self, port: &mut Port<'_, Self>, call: Call, session: &SessionId, part: &str) {
        let Some(slot) = self.sessions.get(session) else {
            port.violation(Violation::UnknownSession);
            return port.refuse(call, &ErrorObject::session_not_found(session));
        };
        match slot.cancellable.get(part) {
            Some(flag) => {
                flag.raise();
                port.answer(call, &CancelToolCallResponse::new());
            }
            None => port.refuse(call, &ErrorObject::wrong_params("this cannot be cancelled")),
        }
    }

    /// Maps a mode or a model to the configuration option of that category.
    fn set_old_style(
        &mut self,
        port: &mut Port<'_, Self>,
        call: Call,
        session: &SessionId,
        category: ConfigCategory,
        value: attache_proto::model::ConfigValueId,
        size: usize,
    ) {
        let Some(slot) = self.sessions.get(session) else {
            port.violation(Violation::UnknownSession);
            return port.refuse(call, &ErrorObject::session_not_found(session));
        };
        let Some(option) = slot.options.iter().find(|option| option.category.as_ref() == Some(&category)) else {
            return port.refuse(call, &ErrorObject::method_not_found(None));
        };
        let value = ConfigSetting::Id(value);
        let change = OptionChange { call, id: option.id.clone(), value, is_old_style: true };
        self.push_command(port, call, session, Command::SetOption(change), size);
    }
}

impl Command {
    /// The call that the command has to answer.
    pub(crate) fn call(&self) -> Option<Call> {
        match self {
            Command::Prompt { call, .. } | Command::Close(call) => Some(*call),
            Command::SetOption(change) => Some(change.call),
            Command::Leave(_) => None,
        }
    }
}

impl Router for AgentRouter {
    const SIDE: Side = Side::Agent;
    type Ticket = ();

    fn call(&mut self, port: &mut Port<'_, Self>, call: Call, name: &str, params: Option<&str>, size: usize) {
        if name == "initialize" {
            return self.initialize(port, call, params);
        }
        if name.starts_with('_') && self.features.extensions.contains(name) {
            let params = params.and_then(|params| RawJson::new(params).ok());
            return self.push_job(call, Work::Extension(name.into(), params), size);
        }
        let dialect = port.dialect();
        let mut tolerated = Vec::new();
        let decoded = Method::parse(name)
            .and_then(|method| Some((method, ClientRequest::decode(method, params, dialect, &mut tolerated)?)));
        let Some((method, decoded)) = decoded else {
            port.violation(Violation::UnknownMethod);
            return port.refuse(call, &ErrorObject::method_not_found(None));
        };
        port.tolerated(method, tolerated);
        match decoded {
            Ok(_) if self.features.methods.contains(&method) => {
                let params = RawJson::new(params.unwrap_or("{}")).unwrap_or_else(|_| RawJson::empty_object());
                self.push_job(call, Work::Registered(method, params), size);
            }
            Ok(request) if self.offers(&request, dialect) => self.route(port, call, request, size),
            Ok(_) => {
                port.violation(Violation::UnknownMethod);
                port.refuse(call, &ErrorObject::method_not_found(None));
            }
            Err(error) => port.invalid_params(call, method, error),
        }
    }

    fn notification(&mut self, port: &mut Port<'_, Self>, name: &str, params: Option<&str>, size: usize) {
        if name.starts_with('_') {
            if self.features.extensions.contains(name) {
                let params = params.and_then(|params| RawJson::new(params).ok());
                let size = size + size_of::<Notice>();
                self.unread += size;
                self.notices.push_back(Notice { method: name.into(), params, size });
                if let Some(waker) = self.notices_waker.take() {
                    waker.wake();
                }
            }
            return;
        }
        let mut tolerated = Vec::new();
        let decoded = Method::parse(name)
            .and_then(|method| ClientNotification::decode(method, params, port.dialect(), &mut tolerated));
        match decoded {
            Some(Ok(ClientNotification::Cancel(cancel))) => self.cancel_session(&cancel.session_id),
            Some(Err(error)) => port.violation(Violation::InvalidParams { method: "session/cancel", error }),
            _ if name.starts_with("$/") => {}
            _ => port.violation(Violation::UnknownMethod),
        }
    }

    fn answer(&mut self, _: &mut Port<'_, Self>, (): (), _: Result<&str, Error>, _: usize) {}

    fn cancel(&mut self, _: &mut Port<'_, Self>, call: Call) {
        if let Some(flag) = self.running.get(&call) {
            return flag.raise();
        }
        if let Some(job) = self.jobs.iter().find(|job| job.call == call) {
            return job.cancelled.raise();
        }
        for slot in self.sessions.values() {
            if let Some((_, flag)) = slot.running.as_ref().filter(|(running, _)| *running == call) {
                return flag.raise();
            }
            for command in &slot.commands {
                if let Command::Prompt { call: queued, cancelled, .. } = command
                    && *queued == call
                {
                    return cancelled.raise();
                }
            }
        }
    }

    fn closed(&mut self, reason: &Closed) {
        self.closed = Some(reason.clone());
        let sessions: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for session in sessions {
            self.cancel_session(&session);
            if let Some(waker) = self.sessions.get_mut(&session).and_then(|slot| slot.waker.take()) {
                waker.wake();
            }
        }
        if let Some(waker) = self.jobs_waker.take() {
            waker.wake();
        }
    }

    fn unread(&self) -> usize {
        self.unread
    }

    fn is_awaited(&self) -> bool {
        // The server takes jobs at once, and a cancel must always get through to a session that is busy.
        !self.sessions.is_empty()
    }
}

/// The dialect that a client's `initialize` asks for, by `spec.md` 5.3: version 2 with `info` is the published one.
fn asked_dialect(params: &str) -> Dialect {
    let Ok(params) = RawJson::new(params) else { return Dialect::V1 };
    let version = params.get("protocolVersion");
    match version.and_then(|version| Reader::new(version.as_str(), Dialect::V1).decode::<u16>().ok()) {
        Some(2..) if params.get("info").is_some() => Dialect::V2,
        Some(2..) => Dialect::V2Draft,
        _ => Dialect::V1,
    }
}
