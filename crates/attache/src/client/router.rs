//! Where what an agent sends is put: one ordered inbox a session, each with room of its own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::task::Waker;

use attache_proto::Dialect;
use attache_proto::conversation::{ClientOffer, ClientSession, Question, TurnId};
use attache_proto::json::{DecodeError, RawJson, Reader};
use attache_proto::method::{AgentNotification, AgentRequest, Method};
use attache_proto::model::Meta;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::permission::{PermissionOutcome, PermissionResponse};
use attache_proto::model::prompt::{CancelNotification, PromptResponse};
use attache_proto::model::session::SessionId;
use attache_proto::model::update::{SessionNotification, SessionUpdate};
use attache_proto::rpc::{Call, IntHasher, IntMap, Side, Violation};

use super::inbox::{Inbox, Item};
use crate::link::{Arriving, Port, Router, method_name};
use crate::{CancelToken, Closed, Error};

/// Sessions whose updates are kept before anybody has claimed them, at most, beside those that are being opened. Only kept
/// while one is.
const UNCLAIMED: usize = 64;

/// Sessions that we have let go of and still know, at most: an agent has little more to say about older ones.
const RELEASED: usize = 64;

/// The longest id of such a session, in bytes.
const LONGEST_ID: usize = 4096;

/// The longest name of a method that is remembered, in bytes, when it is not served: to tell the agent which it was.
const LONGEST_NAME: usize = 64;

/// What comes back when a prompt is answered.
pub(crate) struct PromptTicket {
    pub(crate) session: SessionId,
    pub(crate) turn: TurnId,
}

/// A call that is not answered.
struct OpenCall {
    /// The session whose inbox it came to, or the connection's.
    session: Option<SessionId>,
    is_unread: bool,
    /// What tells whoever has it in hand that it is cancelled.
    token: Option<CancelToken>,
}

/// What a client's messages are decoded by.
pub(crate) struct Decoder {
    pub(crate) offer: ClientOffer,
    pub(crate) extensions: HashSet<String>,
}

/// What an agent sent, decoded.
pub(crate) enum Received<'a> {
    /// With the bytes of its lists, which take more than they did on the wire.
    Update(Cow<'a, str>, SessionUpdate, Option<Meta>, Vec<DecodeError>, usize),
    Request(Method, Box<AgentRequest>, Vec<DecodeError>),
    Notification(Method, Box<AgentNotification>, Vec<DecodeError>),
    Extension(Box<str>, Option<SessionId>, Option<RawJson>),
    /// A method that is not served, by its name if that is a short one.
    NotServed(Option<Box<str>>),
    /// A notification that may be ignored.
    Ignored,
    /// Params that are wrong.
    Invalid(Method, DecodeError),
    /// A request that can be read but is refused.
    Refused(ErrorObject),
}

/// The client's router.
pub(crate) struct ClientRouter {
    /// We open them ourselves: an agent that chose their ids to collide would slow its own client only, and little.
    sessions: HashMap<SessionId, Inbox, BuildHasherDefault<IntHasher>>,
    connection: Inbox,
    /// Sessions that we have let go of lately.
    released: VecDeque<SessionId>,
    opening: usize,
    unclaimed: HashMap<SessionId, Inbox>,
    /// Bytes that wait to be taken, in all inboxes.
    unread: usize,
    /// Inboxes that hold more than the limit for one.
    over: usize,
    /// Calls that are answered with content and in somebody's hands.
    in_hand: HashSet<Call>,
    /// Calls that are unread or in somebody's hands.
    calls: IntMap<Call, OpenCall>,
    closed: Option<Closed>,
    limits: Arc<crate::Limits>,
}

impl ClientRouter {
    pub(crate) fn new(limits: crate::Limits) -> Self {
        ClientRouter {
            sessions: HashMap::default(),
            connection: Inbox::default(),
            released: VecDeque::new(),
            opening: 0,
            unclaimed: HashMap::new(),
            unread: 0,
            over: 0,
            in_hand: HashSet::new(),
            calls: IntMap::default(),
            closed: None,
            limits: Arc::new(limits),
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
        dropped.into_values().flat_map(|inbox| self.drop_inbox(inbox)).collect()
    }

    /// Makes an inbox for a session, with what has arrived for it already. Every claim is released once.
    pub(crate) fn claim(&mut self, session: SessionId) -> &mut ClientSession {
        let early = self.unclaimed.remove(&session).unwrap_or_default();
        let inbox = self.sessions.entry(session).or_insert(early);
        inbox.claims += 1;
        &mut inbox.session
    }

    /// Says whether the history that the agent tells of a session is wanted.
    pub(crate) fn mute(&mut self, session: &SessionId, is_muted: bool) {
        if let Some(inbox) = self.sessions.get_mut(session) {
            inbox.is_muted = is_muted;
        }
    }

    /// What has to be remembered of a session.
    pub(crate) fn session(&mut self, session: &SessionId) -> Option<&mut ClientSession> {
        self.sessions.get_mut(session).map(|inbox| &mut inbox.session)
    }

    /// Forgets a session with its last claim; returns the calls that nobody will answer any more.
    pub(crate) fn release(&mut self, session: &SessionId) -> Vec<Call> {
        let Some(inbox) = self.sessions.get_mut(session) else { return Vec::new() };
        inbox.claims -= 1;
        if inbox.claims > 0 {
            return Vec::new();
        }
        if session.as_str().len() <= LONGEST_ID {
            if self.released.len() == RELEASED {
                self.released.pop_front();
            }
            self.released.push_back(session.clone());
        }
        self.sessions.remove(session).map_or_else(Vec::new, |inbox| self.drop_inbox(inbox))
    }

    fn drop_inbox(&mut self, mut inbox: Inbox) -> Vec<Call> {
        self.unread -= inbox.items.bytes();
        self.over -= usize::from(inbox.items.bytes() > self.limits.session);
        let calls = inbox.discard();
        self.forget(&calls);
        calls
    }

    /// Forgets calls that are answered now, and tells whoever has one in hand.
    fn forget(&mut self, calls: &[Call]) {
        for token in calls.iter().filter_map(|call| self.calls.remove(call)?.token) {
            token.cancel();
        }
    }

    /// Changes an inbox, and keeps count of its bytes.
    fn change<T>(&mut self, session: Option<&str>, change: impl FnOnce(&mut Inbox) -> T) -> Option<T> {
        let inbox = match session {
            None => &mut self.connection,
            Some(session) => self.sessions.get_mut(session).or_else(|| self.unclaimed.get_mut(session))?,
        };
        let before = inbox.items.bytes();
        let result = change(inbox);
        let after = inbox.items.bytes();
        self.unread = self.unread + after - before;
        let limit = self.limits.session;
        self.over = self.over + usize::from(after > limit) - usize::from(before > limit);
        Some(result)
    }

    /// A prompt is about to be sent; returns its turn, or why none can be.
    pub(crate) fn begin_turn(&mut self, session: &SessionId) -> Result<TurnId, Error> {
        let Some(inbox) = self.sessions.get_mut(session) else { return Err(self.gone()) };
        if let Some(discarded) = inbox.overflow {
            return Err(Error::SessionOverflow { session: Some(session.clone()), discarded });
        }
        if inbox.session.is_closed {
            return Err(Error::Invalid("the session is closed".into()));
        }
        let turn = inbox.session.begin_turn();
        inbox.readers.push(turn);
        Ok(turn)
    }

    /// Nobody will read a turn any more: what is there of it is discarded, so that the next turn begins with its own.
    /// Returns the calls that nobody will answer.
    pub(crate) fn drop_turn(&mut self, session: &SessionId, turn: TurnId) -> Vec<Call> {
        let calls = self.change(Some(session.as_str()), |inbox| {
            let is_told = !inbox.readers.contains(&turn);
            inbox.readers.retain(|reader| *reader != turn);
            inbox.ends.retain(|(ended, _)| *ended != turn);
            // Of two turns at once nobody can tell whose an update is.
            if is_told || !inbox.readers.is_empty() { Vec::new() } else { inbox.discard_turn(turn) }
        });
        let calls = calls.unwrap_or_default();
        self.forget(&calls);
        calls
    }

    /// Marks the turns up to `turn`, or all there are, as cancelled; returns the permission requests that this answers.
    pub(crate) fn cancel_turns(&mut self, session: &SessionId, turn: Option<TurnId>) -> Vec<Call> {
        let Some(inbox) = self.sessions.get_mut(session) else { return Vec::new() };
        let cancelled = inbox.session.cancel(turn);
        // One that is unread is passed over when its reader comes to it.
        inbox.items.waiters.wake();
        self.forget(&cancelled);
        cancelled
    }

    /// Whether a turn has been begun and not ended.
    pub(crate) fn is_open(&self, session: &SessionId, turn: TurnId) -> bool {
        self.sessions.get(session).is_some_and(|inbox| inbox.session.is_open(turn))
    }

    /// A call that was in somebody's hands is answered.
    pub(crate) fn answered(&mut self, session: Option<&SessionId>, call: Call) {
        if let Some(inbox) = session.and_then(|session| self.sessions.get_mut(session)) {
            inbox.session.question_answered(call);
        }
        self.calls.remove(&call);
        if self.in_hand.remove(&call) {
            self.room();
        }
    }

    /// What tells whoever has a call in hand that it is cancelled. One that is answered already is.
    pub(crate) fn cancel_token(&mut self, call: Call, is_owed: bool) -> CancelToken {
        if let Some(open) = self.calls.get_mut(&call).filter(|_| is_owed) {
            return open.token.get_or_insert_default().clone();
        }
        let token = CancelToken::default();
        token.cancel();
        token
    }

    /// The next thing in an inbox: of a session, or of the connection. A reader of a turn gets its end, and nobody else.
    pub(crate) fn take(
        &mut self,
        port: &mut Port<'_, Self>,
        session: Option<&SessionId>,
        turn: Option<TurnId>,
        waiter: &mut Option<u64>,
        waker: &Waker,
    ) -> Option<Result<Item, Error>> {
        let closed = self.closed.clone();
        let is_full = closed.is_none() && port.is_full();
        let is_busy = is_full || closed.is_none() && self.in_hand.len() >= self.limits.in_hand;
        let is_owed = |call| port.peer.is_open(call);
        let taken = self.change(session.map(SessionId::as_str), |inbox| {
            let taken = inbox.take(session, turn, is_full, is_busy, is_owed);
            let taken = taken.or_else(|| {
                let closed = Error::Closed(closed?);
                // A turn ends with its connection, behind what has arrived.
                Some(match turn {
                    Some(turn) => Ok(Item::End(turn, Err(closed))),
                    None => Err(closed),
                })
            });
            match &taken {
                Some(_) => inbox.items.waiters.leave(waiter),
                None => inbox.items.waiters.join(waiter, waker),
            }
            taken
        });
        let Some(taken) = taken else { return Some(Err(self.gone())) };
        if is_full && taken.is_none() {
            port.wait_for_room();
        }
        if let Some(Ok(item)) = &taken
            && let Some(call) = item.call()
        {
            if let Some(open) = self.calls.get_mut(&call) {
                open.is_unread = false;
            }
            if item.is_answered_with_content() {
                self.in_hand.insert(call);
            }
        }
        taken
    }

    /// Somebody waits no longer.
    pub(crate) fn leave(&mut self, session: Option<&SessionId>, waiter: &mut Option<u64>) {
        self.change(session.map(SessionId::as_str), |inbox| inbox.items.waiters.leave(waiter));
    }

    fn gone(&self) -> Error {
        Error::Closed(self.closed.clone().unwrap_or(Closed::ByUs))
    }

    /// Puts something into the inbox of a session, or of the connection. False when nobody knows the session.
    fn push(&mut self, session: Option<&str>, item: Item, size: usize) -> bool {
        let is_known = |session| self.sessions.contains_key(session);
        if session.is_some_and(|session| !is_known(session)) && !session.is_some_and(|id| self.is_kept_early(id)) {
            return false;
        }
        self.change(session, |inbox| inbox.push(item, size)).is_some()
    }

    /// Whether what comes for a session that nobody knows is kept, because it may be one that is being opened.
    fn is_kept_early(&mut self, session: &str) -> bool {
        if self.unclaimed.contains_key(session) {
            return true;
        }
        let is_kept = self.opening > 0 && self.unclaimed.len() < self.opening + UNCLAIMED;
        if is_kept {
            self.unclaimed.insert(session.into(), Inbox::default());
        }
        is_kept
    }

    fn update(
        &mut self,
        port: &mut Port<'_, Self>,
        session_id: &str,
        mut update: SessionUpdate,
        meta: Option<Meta>,
        size: usize,
    ) {
        if !self.sessions.contains_key(session_id) && !self.is_kept_early(session_id) {
            // What an agent still says about a session that we have let go of is no fault of its.
            if !self.released.iter().any(|released| released.as_str() == session_id) {
                port.violation(Violation::UnknownSession);
            }
            return;
        }
        self.change(Some(session_id), |inbox| {
            let ends = inbox.session.handle_update(&mut update);
            let size = match &update {
                // All of them are told, however short the message was.
                SessionUpdate::ConfigOptions(options) => size.max(RawJson::from_model(options).as_str().len()),
                _ => size,
            };
            if !inbox.is_muted {
                inbox.push(Item::Update(update, meta.map(Box::new)), size);
            }
            for end in ends {
                inbox.push(Item::End(end.turn, Ok(end)), 0);
            }
        });
    }

    /// Fails an inbox by name: what it holds is discarded, and the agent is asked to stop.
    fn overflow(&mut self, port: &mut Port<'_, Self>, session: Option<&SessionId>) {
        let calls = self.change(session.map(SessionId::as_str), |inbox| {
            inbox.overflow.get_or_insert(0);
            let mut calls = inbox.session.cancel(None);
            calls.extend(inbox.discard());
            inbox.items.waiters.wake();
            calls
        });
        if let Some(session) = session.filter(|session| self.sessions.contains_key(*session)) {
            let cancel = CancelNotification::new(session.clone());
            port.peer.notify("session/cancel", |writer| writer.value(&cancel), port.out);
        }
        let calls = calls.unwrap_or_default();
        self.forget(&calls);
        for call in calls {
            port.refuse(call, &ErrorObject::internal("nobody reads this session"));
        }
    }
}

impl Router for ClientRouter {
    const SIDE: Side = Side::Client;
    type Decoder = Decoder;
    type Message<'a> = Received<'a>;
    type Ticket = PromptTicket;
    type Answer = Result<PromptResponse, Error>;

    fn decode<'a>(decoder: &Decoder, dialect: Dialect, arriving: Arriving<'_, 'a>) -> Received<'a> {
        let Arriving { method: name, params, is_request } = arriving;
        let not_served = || Received::NotServed((name.len() <= LONGEST_NAME).then(|| name.into()));
        if !is_request && name == "session/update" {
            // The hot path: no detour through the table of methods.
            let mut reader = Reader::new(params.unwrap_or("{}"), dialect);
            return match SessionNotification::decode_parts(&mut reader) {
                Ok((session, update, meta)) => {
                    Received::Update(session, update, meta, reader.tolerated(), reader.list_bytes())
                }
                Err(error) => Received::Invalid(Method::SessionUpdate, error),
            };
        }
        if name.starts_with('_') {
            return match decoder.extensions.contains(name) {
                true => extension(name, params),
                false if is_request => not_served(),
                false => Received::Ignored,
            };
        }
        let mut tolerated = Vec::new();
        if is_request {
            let Some(method) = Method::parse(name).filter(|method| decoder.offer.serves(*method, dialect)) else {
                return not_served();
            };
            return match AgentRequest::decode(method, params, dialect, &mut tolerated) {
                None => not_served(),
                Some(Err(error)) => Received::Invalid(method, error),
                Some(Ok(request)) => match decoder.offer.check(&request) {
                    Ok(()) => Received::Request(method, Box::new(request), tolerated),
                    Err(error) => Received::Refused(error),
                },
            };
        }
        let decoded = Method::parse(name)
            .and_then(|method| Some((method, AgentNotification::decode(method, params, dialect, &mut tolerated)?)));
        match decoded {
            None if name.starts_with("$/") => Received::Ignored,
            None => not_served(),
            Some((method, Ok(notification))) => Received::Notification(method, Box::new(notification), tolerated),
            Some((method, Err(error))) => Received::Invalid(method, error),
        }
    }

    fn decode_answer(
        _: &PromptTicket,
        dialect: Dialect,
        outcome: Result<&str, Error>,
    ) -> Result<PromptResponse, Error> {
        Reader::new(outcome?, dialect).decode().map_err(|error| Error::BadAnswer { method: "session/prompt", error })
    }

    fn call(&mut self, port: &mut Port<'_, Self>, call: Call, message: Received<'_>, size: usize) {
        let (item, session) = match message {
            Received::Request(method, mut request, tolerated) => {
                port.tolerated(method, tolerated);
                let session = request.session_id().cloned();
                if let AgentRequest::RequestPermission(request) = &mut *request
                    && let Some(inbox) = self.sessions.get_mut(&request.session_id)
                    && (inbox.overflow.is_some() || inbox.session.handle_question(call, request) == Question::Cancelled)
                {
                    return port.answer(call, &cancelled_permission());
                }
                (Item::Call(call, request), session)
            }
            Received::Extension(name, session, params) => {
                let session = session.filter(|session| self.sessions.contains_key(session));
                (Item::Extension(Some(call), name, params), session)
            }
            Received::Invalid(method, error) => return port.invalid_params(call, method, error),
            Received::Refused(error) => {
                port.violation(Violation::UnknownMethod);
                return port.refuse(call, &error);
            }
            other => {
                let name = if let Received::NotServed(name) = &other { name.as_deref() } else { None };
                port.violation(Violation::UnknownMethod);
                return port.refuse(call, &ErrorObject::method_not_found(name));
            }
        };
        let inbox = match &session {
            None => Some(&self.connection),
            Some(session) => self.sessions.get(session).or_else(|| self.unclaimed.get(session)),
        };
        if inbox.is_some_and(|inbox| inbox.overflow.is_some() || inbox.dropped.is_some()) {
            return port.refuse(call, &ErrorObject::internal("nobody reads this session"));
        }
        if !self.push(session.as_ref().map(SessionId::as_str), item, size) {
            port.violation(Violation::UnknownSession);
            let error = match session {
                Some(session) => ErrorObject::session_not_found(&session),
                None => ErrorObject::invalid_request("there is no session"),
            };
            return port.refuse(call, &error);
        }
        self.calls.insert(call, OpenCall { session, is_unread: true, token: None });
    }

    fn notification(&mut self, port: &mut Port<'_, Self>, message: Received<'_>, size: usize) {
        match message {
            Received::Update(session, update, meta, tolerated, list_bytes) => {
                port.tolerated(Method::SessionUpdate, tolerated);
                self.update(port, &session, update, meta, size + list_bytes);
            }
            Received::Notification(method, notification, tolerated) => {
                port.tolerated(method, tolerated);
                self.push(None, Item::Notification(notification), size);
            }
            Received::Extension(name, session, params) => {
                let session = session.filter(|session| self.sessions.contains_key(session));
                let item = Item::Extension(None, name, params);
                self.push(session.as_ref().map(SessionId::as_str), item, size);
            }
            Received::Invalid(method, error) => {
                let method = method_name(method, port.dialect());
                port.violation(Violation::InvalidParams { method, error });
            }
            Received::Ignored => {}
            Received::NotServed(_) | Received::Request(..) | Received::Refused(_) => {
                port.violation(Violation::UnknownMethod)
            }
        }
    }

    fn answer(
        &mut self,
        _: &mut Port<'_, Self>,
        ticket: PromptTicket,
        answer: Result<PromptResponse, Error>,
        size: usize,
    ) {
        let Some(inbox) = self.sessions.get_mut(&ticket.session) else { return };
        let (answer, failed) = match answer {
            Ok(answer) => (Ok(answer), None),
            Err(Error::Refused(error)) => (Err(error), None),
            Err(error) => (Err(ErrorObject::internal("not understood")), Some(error)),
        };
        // Since version 2 this says that the prompt was taken up: what follows is about it.
        inbox.dropped = inbox.dropped.filter(|dropped| *dropped == ticket.turn);
        let Some(end) = inbox.session.prompt_answered(ticket.turn, answer) else { return };
        let end = failed.map_or(Ok(end), Err);
        self.push(Some(ticket.session.as_str()), Item::End(ticket.turn, end), size);
    }

    fn cancel(&mut self, port: &mut Port<'_, Self>, call: Call) {
        let Some(mut open) = self.calls.remove(&call) else { return };
        let mut inbox = match &open.session {
            None => Some(&mut self.connection),
            Some(session) => self.sessions.get_mut(session).or_else(|| self.unclaimed.get_mut(session)),
        };
        // The agent no longer needs the answer. A permission is settled at once; whoever has it in hand finds it answered.
        let is_question = inbox.as_mut().is_some_and(|inbox| inbox.session.question_answered(call));
        if is_question {
            port.answer(call, &cancelled_permission());
        }
        if open.is_unread {
            port.refuse(call, &ErrorObject::cancelled());
            // Its reader passes it over, and may wait for what is behind it.
            return inbox.into_iter().for_each(|inbox| inbox.items.waiters.wake());
        }
        // Whoever has it in hand, such as a form on the screen, hears of it there.
        open.token.get_or_insert_default().cancel();
        if !is_question {
            self.calls.insert(call, open);
        }
    }

    fn closed(&mut self, reason: &Closed) {
        self.closed = Some(reason.clone());
        for inbox in self.sessions.values_mut().chain([&mut self.connection]) {
            // Those who read its turns are told the end behind what has arrived.
            inbox.session.close();
            inbox.items.waiters.wake();
        }
    }

    fn is_over(&self) -> bool {
        self.over > 0 || self.unread > self.limits.unread
    }

    fn is_awaited(&self) -> bool {
        self.sessions.values().chain([&self.connection]).any(|inbox| inbox.items.is_awaited())
    }

    fn shed(&mut self, port: &mut Port<'_, Self>) {
        let most = self.limits.session.saturating_add(self.limits.overdraft);
        loop {
            let sessions = self.sessions.iter().chain(&self.unclaimed).map(|(id, inbox)| (Some(id), inbox));
            let inboxes = sessions.chain([(None, &self.connection)]);
            let Some((session, inbox)) = inboxes.max_by_key(|(_, inbox)| inbox.items.bytes()) else { return };
            let bytes = inbox.items.bytes();
            if bytes == 0 || bytes <= most && self.unread <= self.limits.unread {
                return;
            }
            let session = session.cloned();
            self.overflow(port, session.as_ref());
        }
    }

    fn room(&mut self) {
        for inbox in self.sessions.values().chain([&self.connection]) {
            inbox.items.waiters.wake();
        }
    }
}

/// The answer to a permission request of a cancelled turn.
pub(crate) fn cancelled_permission() -> PermissionResponse {
    PermissionResponse::new(PermissionOutcome::cancelled())
}

/// An extension's params, and the session they name.
fn extension<'a>(name: &str, params: Option<&str>) -> Received<'a> {
    let Some(params) = params else { return Received::Extension(name.into(), None, None) };
    let params = match RawJson::new(params) {
        Ok(params) => params,
        Err(error) => return Received::Refused(ErrorObject::invalid_params(&error)),
    };
    let session = params.get("sessionId");
    let session = session.and_then(|id| Reader::new(id.as_str(), Dialect::V1).decode::<SessionId>().ok());
    Received::Extension(name.into(), session, Some(params))
}
