//! Where what an agent sends is put: one ordered inbox a session.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;
use std::task::Waker;

use attache_proto::Dialect;
use attache_proto::json::{RawJson, Reader};
use attache_proto::method::{AgentNotification, AgentRequest, Method};
use attache_proto::model::{
    ClientCapabilities, ElicitationMode, ErrorObject, Patch, PermissionOutcome, PermissionResponse, PromptResponse,
    SessionId, SessionNotification, SessionUpdate, StateUpdate, StopReason, Usage,
};
use attache_proto::rpc::{Call, IntHasher, Side, Violation};

use crate::link::{Port, Router};
use crate::{Closed, Error};

/// Sessions whose updates are kept before anybody has claimed them, at most. Only kept while a session is being opened.
const UNCLAIMED: usize = 64;

/// Sessions that we have let go of and still know, at most: an agent has little more to say about older ones.
const RELEASED: usize = 64;

/// Tool calls and terminals of a session that can be cancelled at a time, at most. More are simply not cancellable.
const CANCELLABLE: usize = 4096;

/// What comes back when a prompt is answered.
pub(crate) struct PromptTicket {
    pub(crate) session: SessionId,
    pub(crate) turn: u64,
}

/// How a turn ended.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) stop: StopReason,
    pub(crate) usage: Option<Usage>,
}

/// One thing that waits to be taken.
pub(crate) enum Item {
    Update(SessionUpdate),
    Call(Call, Box<AgentRequest>),
    Extension(Option<Call>, Box<str>, Option<RawJson>),
    Notification(Box<AgentNotification>),
    End(u64, Result<End, Error>),
}

/// What waits to be taken, in wire order.
#[derive(Default)]
pub(crate) struct Inbox {
    items: VecDeque<(usize, Item)>,
    waker: Option<Waker>,
    prompts: Vec<PromptState>,
    /// How many handles there are to the session: the same one may be opened again while an older handle lives.
    claims: usize,
    /// How many prompts were sent, by all handles.
    turns: u64,
    /// Permission requests that are not answered yet.
    asks: HashSet<Call>,
    /// Tool calls and terminals that the agent says can be cancelled by themselves.
    cancellable: HashSet<String>,
    /// Turns up to this one were cancelled: their permission requests are answered `cancelled`.
    cancelled: Option<u64>,
}

/// A prompt that was sent and whose turn has not ended.
struct PromptState {
    turn: u64,
    /// The agent has taken it in (version 2).
    accepted: bool,
    /// The agent was seen working since the prompt was sent.
    worked: bool,
    /// The agent was seen idle after it had worked, before it accepted.
    idled: Option<Result<End, Error>>,
}

/// The client's router.
pub(crate) struct ClientRouter {
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) extensions: HashSet<String>,
    /// We open them ourselves: an agent that chose their ids to collide would slow its own client only, and little.
    sessions: HashMap<SessionId, Inbox, BuildHasherDefault<IntHasher>>,
    connection: Inbox,
    /// Sessions that we have let go of lately.
    released: VecDeque<SessionId>,
    opening: usize,
    unclaimed: HashMap<SessionId, Inbox>,
    unread: usize,
    closed: Option<Closed>,
}

impl ClientRouter {
    pub(crate) fn new(capabilities: ClientCapabilities, extensions: HashSet<String>) -> Self {
        ClientRouter {
            capabilities,
            extensions,
            sessions: HashMap::default(),
            connection: Inbox::default(),
            released: VecDeque::new(),
            opening: 0,
            unclaimed: HashMap::new(),
            unread: 0,
            closed: None,
        }
    }

    /// From now on updates of sessions that nobody knows are kept: one of them may be the session being opened.
    pub(crate) fn begin_opening(&mut self) {
        self.opening += 1;
    }

    /// The other end of [`begin_opening`](Self::begin_opening).
    pub(crate) fn end_opening(&mut self) -> Vec<Call> {
        self.opening -= 1;
        if self.opening > 0 {
            return Vec::new();
        }
        let dropped = std::mem::take(&mut self.unclaimed);
        dropped.into_values().flat_map(|inbox| self.discard(inbox)).collect()
    }

    /// Makes an inbox for a session, with what has arrived for it already. Every claim is released once.
    pub(crate) fn claim(&mut self, session: SessionId) {
        let early = self.unclaimed.remove(&session).unwrap_or_default();
        self.sessions.entry(session).or_insert(early).claims += 1;
    }

    /// Forgets a session with its last claim; returns the calls that nobody will answer any more.
    pub(crate) fn release(&mut self, session: &SessionId) -> Vec<Call> {
        let Some(inbox) = self.sessions.get_mut(session) else { return Vec::new() };
        inbox.claims -= 1;
        if inbox.claims > 0 {
            return Vec::new();
        }
        if self.released.len() == RELEASED {
            self.released.pop_front();
        }
        self.released.push_back(session.clone());
        self.sessions.remove(session).map_or_else(Vec::new, |inbox| self.discard(inbox))
    }

    fn discard(&mut self, inbox: Inbox) -> Vec<Call> {
        let mut calls = Vec::new();
        for (size, item) in inbox.items {
            self.unread -= size;
            match item {
                Item::Call(call, _) | Item::Extension(Some(call), ..) => calls.push(call),
                _ => {}
            }
        }
        calls
    }

    /// A prompt is about to be sent; returns the number of its turn.
    pub(crate) fn begin_turn(&mut self, session: &SessionId) -> u64 {
        let Some(inbox) = self.sessions.get_mut(session) else { return 0 };
        inbox.turns += 1;
        let turn = inbox.turns;
        inbox.prompts.push(PromptState { turn, accepted: false, worked: false, idled: None });
        turn
    }

    /// Marks the turns up to `turn`, or all there are, as cancelled; returns the permission requests that this answers.
    pub(crate) fn cancel_turns(&mut self, session: &SessionId, turn: Option<u64>) -> Vec<Call> {
        let Some(inbox) = self.sessions.get_mut(session) else { return Vec::new() };
        inbox.cancelled = inbox.cancelled.max(turn.or(Some(inbox.turns)));
        let mut calls: Vec<Call> = inbox.asks.drain().collect();
        calls.sort_unstable();
        let mut freed = 0;
        inbox.items.retain(|(size, item)| {
            let asked = matches!(item, Item::Call(call, _) if calls.contains(call));
            freed += if asked { *size } else { 0 };
            !asked
        });
        self.unread -= freed;
        calls
    }

    /// Whether a turn has been begun and not ended.
    pub(crate) fn is_open(&self, session: &SessionId, turn: u64) -> bool {
        self.sessions.get(session).is_some_and(|inbox| inbox.prompts.iter().any(|prompt| prompt.turn == turn))
    }

    /// A permission request was answered.
    pub(crate) fn asked(&mut self, session: &SessionId, call: Call) {
        if let Some(inbox) = self.sessions.get_mut(session) {
            inbox.asks.remove(&call);
        }
    }

    /// The next thing in an inbox. Without a session, the connection's own.
    pub(crate) fn take(&mut self, session: Option<&SessionId>, waker: &Waker) -> Option<Result<Item, Error>> {
        let inbox = match session {
            Some(session) => match self.sessions.get_mut(session) {
                Some(inbox) => inbox,
                None => return Some(Err(Error::Closed(self.closed.clone().unwrap_or(Closed::ByUs)))),
            },
            None => &mut self.connection,
        };
        if let Some((size, item)) = inbox.items.pop_front() {
            self.unread -= size;
            inbox.waker = None;
            return Some(Ok(item));
        }
        if let Some(closed) = &self.closed {
            return Some(Err(Error::Closed(closed.clone())));
        }
        inbox.waker = Some(waker.clone());
        None
    }

    /// Puts back what somebody else has to take first.
    pub(crate) fn put_back(&mut self, session: &SessionId, item: Item) {
        if let Some(inbox) = self.sessions.get_mut(session) {
            inbox.items.push_front((0, item));
        }
    }

    /// Puts something into the inbox of a session, or of the connection. False when nobody knows the session.
    fn push(&mut self, session: Option<&str>, item: Item, size: usize) -> bool {
        // What an item costs in memory is close to what it cost on the wire, plus its place in the queue.
        let size = size + size_of::<(usize, Item)>();
        let inbox = match session {
            None => &mut self.connection,
            Some(session) => match self.sessions.get_mut(session) {
                Some(inbox) => inbox,
                None if self.opening > 0
                    && (self.unclaimed.len() < UNCLAIMED || self.unclaimed.contains_key(session)) =>
                {
                    self.unclaimed.entry(session.into()).or_default()
                }
                None => return false,
            },
        };
        self.unread += size;
        inbox.items.push_back((size, item));
        if let Some(waker) = inbox.waker.take() {
            waker.wake();
        }
        true
    }

    /// Whether the agent says that this tool call or terminal can be cancelled.
    pub(crate) fn is_cancellable(&self, session: &SessionId, part: &str) -> bool {
        self.sessions.get(session).is_some_and(|inbox| inbox.cancellable.contains(part))
    }

    fn set_cancellable(&mut self, session: &str, part: &str, change: &Patch<bool>) {
        let Some(inbox) = self.sessions.get_mut(session) else { return };
        match change {
            Patch::Keep => {}
            Patch::Set(true) if inbox.cancellable.len() < CANCELLABLE => {
                inbox.cancellable.insert(part.into());
            }
            Patch::Set(true) => {}
            Patch::Set(false) | Patch::Clear => {
                inbox.cancellable.remove(part);
            }
        }
    }

    fn update(&mut self, port: &mut Port<'_, Self>, session_id: &str, update: SessionUpdate, size: usize) {
        let mut end = None;
        match &update {
            SessionUpdate::State(state) => end = self.state_changed(session_id, state),
            SessionUpdate::ToolCallUpdate(update) => {
                let change = update.capabilities.map(|capabilities| capabilities.cancel.is_some());
                self.set_cancellable(session_id, update.tool_call_id.as_str(), &change);
            }
            SessionUpdate::TerminalUpdate(update) => {
                let change = update.capabilities.map(|capabilities| capabilities.cancel.is_some());
                self.set_cancellable(session_id, update.terminal_id.as_str(), &change);
            }
            _ => {}
        }
        if !self.push(Some(session_id), Item::Update(update), size) {
            // What an agent still says about a session that we have let go of is no fault of its.
            if !self.released.iter().any(|released| released.as_str() == session_id) {
                port.violation(Violation::UnknownSession);
            }
            return;
        }
        if let Some((turn, end)) = end {
            self.push(Some(session_id), Item::End(turn, end), 0);
        }
    }

    /// What a `state_update` means for the oldest open turn: whether it ended, and how.
    fn state_changed(&mut self, session: &str, state: &StateUpdate) -> Option<(u64, Result<End, Error>)> {
        let inbox = self.sessions.get_mut(session)?;
        let prompt = inbox.prompts.first_mut()?;
        let idle = match state {
            StateUpdate::Running(_) | StateUpdate::RequiresAction(_) => {
                prompt.worked = true;
                return None;
            }
            StateUpdate::Idle(idle) => idle,
            // An unknown state is busy, not idle.
            _ => return None,
        };
        // An idle snapshot from before the prompt says nothing about it.
        if !prompt.worked && (!prompt.accepted || idle.stop_reason.is_none()) {
            return None;
        }
        let stop = idle.stop_reason.clone().unwrap_or(StopReason::EndTurn);
        let end = match (&stop, &idle.error) {
            (StopReason::Error, Some(error)) => Err(Error::Refused(error.clone())),
            (StopReason::Error, None) => Err(Error::Refused(ErrorObject::internal("the agent failed"))),
            _ => Ok(End { stop, usage: idle.usage.clone() }),
        };
        if !prompt.accepted {
            prompt.idled = Some(end);
            return None;
        }
        let turn = inbox.prompts.remove(0).turn;
        Some((turn, end))
    }

    fn offers(&self, request: &AgentRequest) -> Result<(), ErrorObject> {
        let capabilities = &self.capabilities;
        let offered = match request {
            AgentRequest::RequestPermission(_) => true,
            AgentRequest::ReadTextFile(_) => capabilities.fs.read_text_file,
            AgentRequest::WriteTextFile(_) => capabilities.fs.write_text_file,
            AgentRequest::CreateTerminal(_)
            | AgentRequest::TerminalOutput(_)
            | AgentRequest::WaitForTerminalExit(_)
            | AgentRequest::KillTerminal(_)
            | AgentRequest::ReleaseTerminal(_) => capabilities.terminal,
            AgentRequest::CreateElicitation(request) => {
                let Some(elicitation) = &capabilities.elicitation else {
                    return Err(ErrorObject::method_not_found(None));
                };
                let offered = match &request.mode {
                    ElicitationMode::Form(_) => elicitation.form.is_some(),
                    ElicitationMode::Url(_) => elicitation.url.is_some(),
                    _ => false,
                };
                return if offered { Ok(()) } else { Err(ErrorObject::wrong_params("mode was not offered")) };
            }
            _ => false,
        };
        if offered { Ok(()) } else { Err(ErrorObject::method_not_found(None)) }
    }
}

impl Router for ClientRouter {
    const SIDE: Side = Side::Client;
    type Ticket = PromptTicket;

    fn call(&mut self, port: &mut Port<'_, Self>, call: Call, name: &str, params: Option<&str>, size: usize) {
        if name.starts_with('_') && self.extensions.contains(name) {
            let (session, params) = match extension_params(params, |id| self.sessions.contains_key(id)) {
                Ok(parts) => parts,
                Err(error) => return port.refuse(call, &error),
            };
            self.push(session.as_ref().map(SessionId::as_str), Item::Extension(Some(call), name.into(), params), size);
            return;
        }
        let mut tolerated = Vec::new();
        let decoded = Method::parse(name)
            .and_then(|method| Some((method, AgentRequest::decode(method, params, port.dialect(), &mut tolerated)?)));
        let Some((method, decoded)) = decoded else {
            port.violation(Violation::UnknownMethod);
            return port.refuse(call, &ErrorObject::method_not_found(None));
        };
        port.tolerated(method, tolerated);
        let request = match decoded {
            Ok(request) => request,
            Err(error) => return port.invalid_params(call, method, error),
        };
        if let Err(error) = self.offers(&request) {
            port.violation(Violation::UnknownMethod);
            return port.refuse(call, &error);
        }
        let session = request.session_id().cloned();
        if matches!(request, AgentRequest::RequestPermission(_))
            && let Some(inbox) = session.as_ref().and_then(|session| self.sessions.get_mut(session))
        {
            let turn = inbox.prompts.first().map(|prompt| prompt.turn);
            if turn.is_some() && turn <= inbox.cancelled {
                return port.answer(call, &cancelled_permission());
            }
            inbox.asks.insert(call);
        }
        if !self.push(session.as_ref().map(SessionId::as_str), Item::Call(call, Box::new(request)), size) {
            port.violation(Violation::UnknownSession);
            let error = match session {
                Some(session) => ErrorObject::session_not_found(&session),
                None => ErrorObject::invalid_request("there is no session"),
            };
            port.refuse(call, &error);
        }
    }

    fn notification(&mut self, port: &mut Port<'_, Self>, name: &str, params: Option<&str>, size: usize) {
        if name == "session/update" {
            // The hot path: no detour through the table of methods.
            let mut reader = Reader::new(params.unwrap_or("{}"), port.dialect());
            match SessionNotification::decode_parts(&mut reader) {
                Ok((session, update)) => {
                    port.tolerated(Method::SessionUpdate, reader.tolerated());
                    self.update(port, &session, update, size);
                }
                Err(error) => port.violation(Violation::InvalidParams { method: "session/update", error }),
            }
            return;
        }
        if name.starts_with('_') {
            if self.extensions.contains(name)
                && let Ok((session, params)) = extension_params(params, |id| self.sessions.contains_key(id))
            {
                self.push(session.as_ref().map(SessionId::as_str), Item::Extension(None, name.into(), params), size);
            }
            return;
        }
        let mut tolerated = Vec::new();
        let decoded = Method::parse(name)
            .and_then(|method| AgentNotification::decode(method, params, port.dialect(), &mut tolerated));
        match decoded {
            None if name.starts_with("$/") => {}
            None => port.violation(Violation::UnknownMethod),
            Some(Ok(notification)) => {
                self.push(None, Item::Notification(Box::new(notification)), size);
            }
            Some(Err(error)) => {
                let method = Method::parse(name)
                    .map_or("a notification", |method| crate::link::method_name(method, port.dialect()));
                port.violation(Violation::InvalidParams { method, error });
            }
        }
    }

    fn answer(&mut self, port: &mut Port<'_, Self>, ticket: PromptTicket, outcome: Result<&str, Error>, size: usize) {
        let end = match outcome {
            Err(error) => Some(Err(error)),
            Ok(text) => match Reader::new(text, port.dialect()).decode::<PromptResponse>() {
                Err(error) => Some(Err(Error::BadAnswer { method: "session/prompt", error })),
                Ok(PromptResponse { stop_reason: Some(stop), usage, .. }) => Some(Ok(End { stop, usage })),
                Ok(_) => None,
            },
        };
        let Some(inbox) = self.sessions.get_mut(&ticket.session) else { return };
        let Some(index) = inbox.prompts.iter().position(|prompt| prompt.turn == ticket.turn) else { return };
        let end = match end {
            // A prompt that was cancelled before the agent took it in is an error in version 2; here it is what was asked.
            Some(Err(Error::Refused(error)))
                if error.code == ErrorObject::CANCELLED && Some(ticket.turn) <= inbox.cancelled =>
            {
                Some(Ok(End { stop: StopReason::Cancelled, usage: None }))
            }
            Some(end) => Some(end),
            None => {
                inbox.prompts[index].accepted = true;
                inbox.prompts[index].idled.take()
            }
        };
        if let Some(end) = end {
            inbox.prompts.remove(index);
            self.push(Some(ticket.session.as_str()), Item::End(ticket.turn, end), size);
        }
    }

    fn cancel(&mut self, port: &mut Port<'_, Self>, call: Call) {
        // The agent no longer needs the answer. A permission is settled at once; whoever has it in hand finds it answered.
        for inbox in self.sessions.values_mut() {
            if inbox.asks.remove(&call) {
                port.answer(call, &cancelled_permission());
                let mut freed = 0;
                inbox.items.retain(|(size, item)| {
                    let asked = matches!(item, Item::Call(waiting, _) if *waiting == call);
                    freed += if asked { *size } else { 0 };
                    !asked
                });
                self.unread -= freed;
                return;
            }
        }
    }

    fn closed(&mut self, reason: &Closed) {
        self.closed = Some(reason.clone());
        for inbox in self.sessions.values_mut().chain([&mut self.connection]) {
            let prompts = std::mem::take(&mut inbox.prompts);
            for prompt in prompts {
                inbox.items.push_back((0, Item::End(prompt.turn, Err(Error::Closed(reason.clone())))));
            }
            if let Some(waker) = inbox.waker.take() {
                waker.wake();
            }
        }
    }

    fn unread(&self) -> usize {
        self.unread
    }

    fn is_awaited(&self) -> bool {
        self.sessions.values().chain([&self.connection]).any(|inbox| inbox.waker.is_some())
    }
}

/// The answer to a permission request of a cancelled turn.
pub(crate) fn cancelled_permission() -> PermissionResponse {
    PermissionResponse::new(PermissionOutcome::cancelled())
}

/// The params of an extension, and the session they name if it is one of ours.
fn extension_params(
    params: Option<&str>,
    is_open: impl Fn(&SessionId) -> bool,
) -> Result<(Option<SessionId>, Option<RawJson>), ErrorObject> {
    let Some(params) = params else { return Ok((None, None)) };
    let params = RawJson::new(params).map_err(|error| ErrorObject::invalid_params(&error))?;
    let session = params
        .get("sessionId")
        .and_then(|id| Reader::new(id.as_str(), Dialect::V1).decode::<SessionId>().ok())
        .filter(is_open);
    Ok((session, Some(params)))
}
