//! Where what a client sends is put: session calls with their session, everything else in one queue of jobs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use attache_proto::Dialect;
use attache_proto::conversation::{Offer, Opening, unsupported_version};
use attache_proto::json::{DecodeError, RawJson};
use attache_proto::method::{ClientNotification, ClientRequest, Method};
use attache_proto::model::config::{ConfigCategory, ConfigId, ConfigSetting};
use attache_proto::model::content::ContentBlock;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::initialize::{InitializeRequest, InitializeResponse};
use attache_proto::model::prompt::PromptRequest;
use attache_proto::model::session::{CloseSessionResponse, SessionId};
use attache_proto::model::terminal::{CancelTerminalResponse, TerminalId};
use attache_proto::model::tool::{CancelToolCallResponse, ToolCallId};
use attache_proto::rpc::{Call, IntMap, Side, Violation};
use tokio::sync::oneshot;

use super::handle::ClientInfo;
use super::updates::Updates;
use crate::link::{Arriving, Port, Router};
use crate::queue::Queue;
use crate::{CancelToken, Closed, Error};

/// A request that belongs to no open session, for the server to run.
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) work: Work,
    pub(crate) cancelled: CancelToken,
}

pub(crate) enum Work {
    /// A session is to be opened.
    Open(Method, Opening),
    /// Open sessions are to be listed: all of them, or those in a directory.
    List(Option<String>),
    /// A request that something was registered for; its params are right.
    Registered(Method, Option<SessionId>, RawJson),
    Extension(Box<str>, Option<RawJson>),
}

impl Work {
    /// The method that was called.
    pub(crate) fn method(&self) -> Cow<'static, str> {
        match self {
            Work::Open(method, _) | Work::Registered(method, ..) => method.any_name().into(),
            Work::List(_) => Method::ListSessions.any_name().into(),
            Work::Extension(method, _) => method.to_string().into(),
        }
    }
}

/// How long to wait for jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until the client has closed its end; some may still wait or run then.
    Closed,
    /// Until that, and until all are done.
    Done,
}

/// What a session has to do next.
pub(crate) enum Command {
    Prompt {
        call: Call,
        request: PromptRequest,
        cancelled: CancelToken,
    },
    SetOption(OptionChange),
    Close(Call, CancelToken),
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
    pub(crate) cancelled: CancelToken,
}

/// A session as the router sees it.
pub(crate) struct Slot {
    commands: Queue<Command>,
    /// What runs now: a prompt, or several that are taken up in one turn, or something else that can be cancelled.
    running: Vec<Running>,
    pub(crate) tool_calls: HashMap<ToolCallId, CancelToken>,
    pub(crate) terminals: HashMap<TerminalId, CancelToken>,
    pub(crate) updates: Arc<Mutex<Updates>>,
    cwd: String,
}

/// Something that a session does for a call.
struct Running {
    call: Call,
    token: CancelToken,
    /// Whether cancelling the session's work cancels this too.
    is_turn: bool,
}

/// The longest name of a method that is remembered, in bytes, when it is not served: to tell the client which it was.
const LONGEST_NAME: usize = 64;

/// What an agent's messages are decoded by.
pub(crate) struct Decoder {
    pub(crate) offer: Offer,
    pub(crate) extensions: HashSet<String>,
    /// Notifications that something was registered for.
    pub(crate) notifications: HashSet<Method>,
}

/// What a client sent, decoded.
pub(crate) enum Received {
    Initialize(Box<(Dialect, InitializeRequest, InitializeResponse)>, Vec<DecodeError>),
    Request(Method, Box<ClientRequest>, Vec<DecodeError>),
    Open(Method, Box<Opening>, Vec<DecodeError>),
    Registered(Method, Option<SessionId>, RawJson, Vec<DecodeError>),
    Cancel(SessionId),
    Notification(Method, RawJson),
    Extension(Box<str>, Option<RawJson>),
    /// A method that is not served, by its name if that is a short one.
    NotServed(Option<Box<str>>),
    /// A notification that may be ignored.
    Ignored,
    /// Params that are wrong.
    Invalid(Method, DecodeError),
    /// A request that can be read but is refused.
    Refused(ErrorObject),
}

/// The agent's router.
pub(crate) struct AgentRouter {
    pub(crate) client: Option<Arc<ClientInfo>>,
    jobs: Queue<Job>,
    running: IntMap<Call, CancelToken>,
    sessions: HashMap<SessionId, Slot>,
    notices: Queue<Notice>,
    closed: Option<Closed>,
    limits: crate::Limits,
}

/// A notification that something was registered for.
pub(crate) enum Notice {
    Extension(Box<str>, Option<RawJson>),
    Registered(Method, RawJson),
}

impl AgentRouter {
    pub(crate) fn new(limits: crate::Limits) -> Self {
        AgentRouter {
            client: None,
            jobs: Queue::default(),
            running: IntMap::default(),
            sessions: HashMap::new(),
            notices: Queue::default(),
            closed: None,
            limits,
        }
    }

    /// The next job, when there is room for its answer; `Some(None)` when there will be no more.
    pub(crate) fn next_job(
        &mut self,
        until: Until,
        is_full: bool,
        waiter: &mut Option<u64>,
        waker: &Waker,
    ) -> Option<Option<Job>> {
        let can_run = !is_full && self.running.len() < self.limits.in_hand;
        if can_run && let Some(job) = self.jobs.pop() {
            self.running.insert(job.call, job.cancelled.clone());
            return Some(Some(job));
        }
        let is_done = self.jobs.is_empty() && self.running.is_empty();
        if self.closed.is_some() && (until == Until::Closed || is_done) {
            return Some(None);
        }
        self.jobs.waiters.join(waiter, waker);
        None
    }

    /// Whoever waits for jobs has one.
    pub(crate) fn leave_jobs(&mut self, waiter: &mut Option<u64>) {
        self.jobs.waiters.leave(waiter);
    }

    /// The next notification that something was registered for.
    pub(crate) fn next_notice(&mut self, waiter: &mut Option<u64>, waker: &Waker) -> Option<Notice> {
        let notice = self.notices.pop();
        if notice.is_none() {
            self.notices.waiters.join(waiter, waker);
        }
        notice
    }

    pub(crate) fn job_done(&mut self, call: Call) {
        self.running.remove(&call);
        self.jobs.waiters.wake();
    }

    /// Makes a place for a session that is being opened, unless it is open already or there are too many.
    pub(crate) fn reserve(
        &mut self,
        session: &SessionId,
        cwd: &str,
        updates: Arc<Mutex<Updates>>,
    ) -> Result<(), ErrorObject> {
        if self.sessions.contains_key(session) {
            return Err(ErrorObject::wrong_params("sessionId: the session is open already"));
        }
        if self.sessions.len() >= self.limits.sessions {
            return Err(ErrorObject::rate_limited(1));
        }
        let slot = Slot {
            commands: Queue::default(),
            running: Vec::new(),
            tool_calls: HashMap::new(),
            terminals: HashMap::new(),
            updates,
            cwd: cwd.into(),
        };
        self.sessions.insert(session.clone(), slot);
        Ok(())
    }

    pub(crate) fn slot(&mut self, session: &SessionId) -> Option<&mut Slot> {
        self.sessions.get_mut(session)
    }

    /// Has an open session close, so that it can be opened again or deleted. With `cancel`, also when a turn runs.
    pub(crate) fn leave(&mut self, session: &SessionId, cancel: bool) -> Option<oneshot::Receiver<()>> {
        if cancel {
            self.cancel_session(session);
        }
        let slot = self.sessions.get_mut(session)?;
        if !cancel && (!slot.running.is_empty() || !slot.commands.is_empty()) {
            return None;
        }
        let (left, leaving) = oneshot::channel();
        slot.commands.push(Command::Leave(left), 0);
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
        slot.commands.iter().filter_map(Command::call).collect()
    }

    /// What a session has to do next; `Some(None)` when there will be nothing more. Whoever asks runs no turn any more.
    pub(crate) fn next_command(
        &mut self,
        session: &SessionId,
        waiter: &mut Option<u64>,
        waker: &Waker,
    ) -> Option<Option<Command>> {
        let is_closed = self.closed.is_some();
        let Some(slot) = self.sessions.get_mut(session) else { return Some(None) };
        slot.running.clear();
        let Some(command) = slot.commands.pop() else {
            if is_closed {
                return Some(None);
            }
            slot.commands.waiters.join(waiter, waker);
            return None;
        };
        slot.commands.waiters.leave(waiter);
        slot.running.extend(command.running());
        Some(Some(command))
    }

    /// An option change that waits, for a turn that wants to take it before it ends.
    pub(crate) fn next_option_change(
        &mut self,
        session: &SessionId,
        waiter: &mut Option<u64>,
        waker: &Waker,
    ) -> Option<OptionChange> {
        let slot = self.sessions.get_mut(session)?;
        match slot.commands.take(|command| matches!(command, Command::SetOption(_))) {
            Some(Command::SetOption(change)) => {
                slot.commands.waiters.leave(waiter);
                slot.running.push(Running { call: change.call, token: change.cancelled.clone(), is_turn: false });
                Some(change)
            }
            _ => {
                slot.commands.waiters.join(waiter, waker);
                None
            }
        }
    }

    /// Whether a prompt waits that a turn may take up before it ends.
    pub(crate) fn has_prompt(&mut self, session: &SessionId, waiter: &mut Option<u64>, waker: &Waker) -> bool {
        let Some(slot) = self.sessions.get_mut(session) else { return false };
        let has_prompt = slot.commands.iter().any(Command::is_open_prompt);
        match has_prompt {
            true => slot.commands.waiters.leave(waiter),
            false => slot.commands.waiters.join(waiter, waker),
        }
        has_prompt
    }

    /// The prompt that waits first, for a turn that takes it up if it wants it.
    pub(crate) fn take_prompt(
        &mut self,
        session: &SessionId,
        wants: &dyn Fn(&[ContentBlock]) -> bool,
    ) -> Option<(Call, PromptRequest)> {
        let slot = self.sessions.get_mut(session)?;
        let first = slot.commands.iter().find(|command| command.is_open_prompt());
        let Some(Command::Prompt { request, .. }) = first else { return None };
        if !wants(&request.prompt) {
            return None;
        }
        match slot.commands.take(Command::is_open_prompt) {
            Some(Command::Prompt { call, request, cancelled }) => {
                slot.running.push(Running { call, token: cancelled, is_turn: true });
                Some((call, request))
            }
            _ => None,
        }
    }

    /// A turn has ended: whoever waits for more of it is told.
    pub(crate) fn turn_ended(&self, session: &SessionId) {
        if let Some(slot) = self.sessions.get(session) {
            slot.commands.waiters.wake();
        }
    }

    /// Somebody waits for a session no longer.
    pub(crate) fn leave_session(&mut self, session: &SessionId, waiter: &mut Option<u64>) {
        if let Some(slot) = self.sessions.get_mut(session) {
            slot.commands.waiters.leave(waiter);
        }
    }

    fn push_job(&mut self, call: Call, work: Work, size: usize) {
        self.jobs.push(Job { call, work, cancelled: CancelToken::default() }, size);
    }

    fn push_command(
        &mut self,
        port: &mut Port<'_, Self>,
        call: Call,
        session: &SessionId,
        command: Command,
        size: usize,
    ) {
        match self.sessions.get_mut(session) {
            Some(slot) => slot.commands.push(command, size),
            None => {
                port.violation(Violation::UnknownSession);
                port.refuse(call, &ErrorObject::session_not_found(session));
            }
        }
    }

    /// Cancels the turns of a session that there are now, and none that comes later.
    fn cancel_session(&mut self, session: &SessionId) {
        let Some(slot) = self.sessions.get(session) else { return };
        for running in slot.running.iter().filter(|running| running.is_turn) {
            running.token.cancel();
        }
        for command in slot.commands.iter() {
            if let Command::Prompt { cancelled, .. } = command {
                cancelled.cancel();
            }
        }
    }

    fn initialize(
        &mut self,
        port: &mut Port<'_, Self>,
        call: Call,
        (dialect, request, response): (Dialect, InitializeRequest, InitializeResponse),
    ) {
        if !self.sessions.is_empty() || !self.running.is_empty() || !self.jobs.is_empty() {
            return port.refuse(call, &ErrorObject::invalid_request("the connection is in use"));
        }
        port.peer.set_dialect(dialect);
        port.answer(call, &response);
        // What an older version has no words for is simply not offered there.
        port.peer.take_lost();
        let InitializeRequest { info, capabilities, meta, .. } = request;
        self.client = Some(Arc::new(ClientInfo { dialect, info, capabilities, meta }));
    }

    fn route(&mut self, port: &mut Port<'_, Self>, call: Call, request: ClientRequest, size: usize) {
        match request {
            ClientRequest::Prompt(request) => {
                let session = request.session_id.clone();
                let command = Command::Prompt { call, request, cancelled: CancelToken::default() };
                self.push_command(port, call, &session, command, size);
            }
            ClientRequest::SetConfigOption(request) => {
                let (id, value) = (request.config_id, request.value);
                let change = OptionChange { call, id, value, is_old_style: false, cancelled: CancelToken::default() };
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
            // What is not open is closed. Version 1 leaves it to the agent, and its clients may want to know.
            ClientRequest::CloseSession(request)
                if port.dialect() == Dialect::V2 && !self.sessions.contains_key(&request.session_id) =>
            {
                port.answer(call, &CloseSessionResponse::new());
            }
            ClientRequest::CloseSession(request) => {
                self.cancel_session(&request.session_id);
                let command = Command::Close(call, CancelToken::default());
                self.push_command(port, call, &request.session_id, command, size);
            }
            ClientRequest::CancelToolCall(request) => {
                let slot = self.sessions.get(&request.session_id);
                let token = slot.map(|slot| slot.tool_calls.get(&request.tool_call_id));
                if cancel_part(port, call, &request.session_id, token) {
                    port.answer(call, &CancelToolCallResponse::new());
                }
            }
            ClientRequest::CancelTerminal(request) => {
                let slot = self.sessions.get(&request.session_id);
                let token = slot.map(|slot| slot.terminals.get(&request.terminal_id));
                if cancel_part(port, call, &request.session_id, token) {
                    port.answer(call, &CancelTerminalResponse::new());
                }
            }
            ClientRequest::ListSessions(request) => self.push_job(call, Work::List(request.cwd), size),
            _ => port.refuse(call, &ErrorObject::method_not_found(None)),
        }
    }

    /// Maps a mode or a model to the configuration option of that category.
    fn set_old_style(
        &mut self,
        port: &mut Port<'_, Self>,
        call: Call,
        session: &SessionId,
        category: ConfigCategory,
        value: attache_proto::model::config::ConfigValueId,
        size: usize,
    ) {
        let Some(slot) = self.sessions.get(session) else {
            port.violation(Violation::UnknownSession);
            return port.refuse(call, &ErrorObject::session_not_found(session));
        };
        let id = slot.updates.lock().unwrap_or_else(PoisonError::into_inner).session.option_of(&category).cloned();
        let Some(id) = id else {
            let method = if category == ConfigCategory::Mode { Method::SetMode } else { Method::SetModel };
            return port.refuse(call, &ErrorObject::method_not_found(Some(method.any_name())));
        };
        let value = ConfigSetting::Id(value);
        let change = OptionChange { call, id, value, is_old_style: true, cancelled: CancelToken::default() };
        self.push_command(port, call, session, Command::SetOption(change), size);
    }
}

/// Cancels one tool call or terminal, if it said that it can be. False when that is refused.
fn cancel_part(
    port: &mut Port<'_, AgentRouter>,
    call: Call,
    session: &SessionId,
    token: Option<Option<&CancelToken>>,
) -> bool {
    match token {
        Some(Some(token)) => {
            token.cancel();
            return true;
        }
        Some(None) => port.refuse(call, &ErrorObject::wrong_params("it cannot be cancelled")),
        None => {
            port.violation(Violation::UnknownSession);
            port.refuse(call, &ErrorObject::session_not_found(session));
        }
    }
    false
}

impl Command {
    /// The call that the command has to answer.
    pub(crate) fn call(&self) -> Option<Call> {
        self.running().map(|running| running.call)
    }

    /// A prompt that is still wanted.
    fn is_open_prompt(&self) -> bool {
        matches!(self, Command::Prompt { cancelled, .. } if !cancelled.is_cancelled())
    }

    fn running(&self) -> Option<Running> {
        let (call, token) = match self {
            Command::Prompt { call, cancelled, .. } | Command::Close(call, cancelled) => (*call, cancelled),
            Command::SetOption(change) => (change.call, &change.cancelled),
            Command::Leave(_) => return None,
        };
        Some(Running { call, token: token.clone(), is_turn: matches!(self, Command::Prompt { .. }) })
    }
}

impl Router for AgentRouter {
    const SIDE: Side = Side::Agent;
    type Decoder = Decoder;
    type Message<'a> = Received;
    type Ticket = ();
    type Answer = ();

    fn decode(decoder: &Decoder, dialect: Dialect, arriving: Arriving<'_, '_>) -> Received {
        let Arriving { method: name, params, is_request } = arriving;
        let not_served = || Received::NotServed((name.len() <= LONGEST_NAME).then(|| name.into()));
        if name.starts_with('_') {
            return match decoder.extensions.contains(name) {
                true => Received::Extension(name.into(), params.and_then(|params| RawJson::new(params).ok())),
                false if is_request => not_served(),
                false => Received::Ignored,
            };
        }
        let mut tolerated = Vec::new();
        let Some(method) = Method::parse(name) else {
            return if !is_request && name.starts_with("$/") { Received::Ignored } else { not_served() };
        };
        let raw = || RawJson::new(params.unwrap_or("{}")).unwrap_or_else(|_| RawJson::empty_object());
        if !is_request {
            return match ClientNotification::decode(method, params, dialect, &mut tolerated) {
                Some(Ok(ClientNotification::Cancel(cancel))) => Received::Cancel(cancel.session_id),
                Some(Ok(_)) if decoder.notifications.contains(&method) => Received::Notification(method, raw()),
                Some(Err(error)) => Received::Invalid(method, error),
                _ if name.starts_with("$/") => Received::Ignored,
                _ => not_served(),
            };
        }
        if method == Method::Initialize {
            if let Some(error) = unsupported_version(params) {
                return Received::Refused(error);
            }
            return match decoder.offer.handle_initialize(params, &mut tolerated) {
                Ok(initialize) => Received::Initialize(Box::new(initialize), tolerated),
                Err(error) => Received::Invalid(method, error),
            };
        }
        if !decoder.offer.serves(method, dialect) {
            return not_served();
        }
        let request = match ClientRequest::decode(method, params, dialect, &mut tolerated) {
            None => return not_served(),
            Some(Err(error)) => return Received::Invalid(method, error),
            Some(Ok(request)) => request,
        };
        if decoder.offer.methods.contains(&method) {
            return Received::Registered(method, request.session_id().cloned(), raw(), tolerated);
        }
        if let Err(error) = decoder.offer.check(&request, dialect) {
            return Received::Refused(error);
        }
        match method {
            Method::NewSession | Method::LoadSession | Method::ResumeSession | Method::ForkSession => {
                match Opening::from_request(request) {
                    Some(Ok(opening)) => Received::Open(method, Box::new(opening), tolerated),
                    Some(Err(error)) => Received::Refused(error),
                    None => not_served(),
                }
            }
            _ => Received::Request(method, Box::new(request), tolerated),
        }
    }

    fn decode_answer((): &(), _: Dialect, _: Result<&str, Error>) {}

    fn call(&mut self, port: &mut Port<'_, Self>, call: Call, message: Received, size: usize) {
        match message {
            Received::Initialize(initialize, tolerated) => {
                self.initialize(port, call, *initialize);
                port.tolerated(Method::Initialize, tolerated);
            }
            Received::Request(method, request, tolerated) => {
                port.tolerated(method, tolerated);
                self.route(port, call, *request, size);
            }
            Received::Open(method, opening, tolerated) => {
                port.tolerated(method, tolerated);
                self.push_job(call, Work::Open(method, *opening), size);
            }
            Received::Registered(method, session, params, tolerated) => {
                port.tolerated(method, tolerated);
                self.push_job(call, Work::Registered(method, session, params), size);
            }
            Received::Extension(name, params) => self.push_job(call, Work::Extension(name, params), size),
            Received::Invalid(method, error) => port.invalid_params(call, method, error),
            Received::Refused(error) => port.refuse(call, &error),
            other => {
                let name = if let Received::NotServed(name) = &other { name.as_deref() } else { None };
                port.violation(Violation::UnknownMethod);
                port.refuse(call, &ErrorObject::method_not_found(name));
            }
        }
    }

    fn notification(&mut self, port: &mut Port<'_, Self>, message: Received, size: usize) {
        match message {
            Received::Cancel(session) => self.cancel_session(&session),
            Received::Extension(name, params) => self.notices.push(Notice::Extension(name, params), size),
            Received::Notification(method, params) => self.notices.push(Notice::Registered(method, params), size),
            Received::Invalid(method, error) => {
                let method = crate::link::method_name(method, port.dialect());
                port.violation(Violation::InvalidParams { method, error });
            }
            Received::Ignored => {}
            _ => port.violation(Violation::UnknownMethod),
        }
    }

    fn answer(&mut self, _: &mut Port<'_, Self>, (): (), (): (), _: usize) {}

    fn cancel(&mut self, port: &mut Port<'_, Self>, call: Call) {
        if let Some(token) = self.running.get(&call) {
            return token.cancel();
        }
        if let Some(job) = self.jobs.take(|job| job.call == call) {
            return port.refuse(job.call, &ErrorObject::cancelled());
        }
        for slot in self.sessions.values_mut() {
            if let Some(running) = slot.running.iter().find(|running| running.call == call) {
                return running.token.cancel();
            }
            // A prompt that waits is answered when its turn comes, in order; the rest is not waited for.
            let is_it = |command: &Command| matches!(command, Command::SetOption(change) if change.call == call);
            if slot.commands.take(is_it).is_some() {
                return port.refuse(call, &ErrorObject::cancelled());
            }
            let mut queued = slot.commands.iter().filter_map(Command::running);
            if let Some(queued) = queued.find(|queued| queued.call == call) {
                return queued.token.cancel();
            }
        }
    }

    fn closed(&mut self, reason: &Closed) {
        self.closed = Some(reason.clone());
        let sessions: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for session in sessions {
            self.cancel_session(&session);
        }
        self.room();
    }

    fn is_over(&self) -> bool {
        self.notices.bytes() > self.limits.session
    }

    fn is_awaited(&self) -> bool {
        // A cancel must always get through to a session that is busy.
        !self.sessions.is_empty()
    }

    fn shed(&mut self, port: &mut Port<'_, Self>) {
        if self.notices.bytes() > self.limits.session.saturating_add(self.limits.overdraft) {
            self.notices.drain().for_each(drop);
            port.violation(Violation::TooManyRequests);
        }
    }

    fn room(&mut self) {
        self.jobs.waiters.wake();
        if self.closed.is_some() {
            self.sessions.values().for_each(|slot| slot.commands.waiters.wake());
        }
    }
}
