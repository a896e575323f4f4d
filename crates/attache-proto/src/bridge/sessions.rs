//! The sessions of a bridge: each is an agent's session and a client's session, back to back.

use std::collections::VecDeque;

use super::{Bridge, Out, Then};
use crate::conversation::{
    AgentSession, ClientSession, Emitted, OpenKind, OpenedSession, Opening, TurnEnd, TurnId, is_memorable,
};
use crate::json::Writer;
use crate::method::Method;
use crate::model::Meta;
use crate::model::error::ErrorObject;
use crate::model::permission::{PermissionOutcome, PermissionResponse};
use crate::model::prompt::{CancelNotification, PromptRequest, StopReason};
use crate::model::session::{
    CloseSessionRequest, CloseSessionResponse, ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo,
};
use crate::rpc::{Call, Outcome};

/// Sessions at a time. The ends have limits of their own; this one is for a bridge whose ends have none.
const SESSIONS: usize = 4096;

/// Sessions that were closed and are still known: an agent has little more to say about older ones.
const CLOSED_SESSIONS: usize = 64;

/// Bytes of prompts that wait for their turn, in all sessions: as much as the longest message that is let through.
pub(super) const QUEUED_BYTES: usize = if cfg!(test) { 64 * 1024 } else { 64 * 1024 * 1024 };

/// A session that was opened through the bridge, or is being opened.
#[derive(Debug)]
pub(super) struct Session {
    /// What we are to the client.
    pub(super) as_agent: AgentSession,
    /// What we are to the agent.
    pub(super) as_client: ClientSession,
    /// Whether the agent has opened it. If not, it is kept as long as something is being opened.
    is_open: bool,
    /// The session that this one works for, if its agent says so.
    parent: Option<SessionId>,
    /// Empty if it is too long to be kept; then the session is not listed.
    cwd: String,
    pub(super) title: Option<String>,
    /// The client's calls that open it again without its history, which this agent tells all the same.
    pub(super) muted_by: Vec<Call>,
    /// The turns that run, with the client's calls that began them.
    pub(super) prompts: Vec<(TurnId, Call)>,
    /// Prompts that wait for their turn, and their size.
    queue: VecDeque<(Call, PromptRequest, usize)>,
}

/// A session on its way to be opened.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// What the client asked for.
    asked: Method,
    /// What the agent was asked for.
    sent: Method,
    /// The session, unless it is new.
    restored: Option<SessionId>,
    cwd: String,
}

impl Bridge {
    /// The session of this id, which is made if there is none.
    #[inline]
    fn add_session(&mut self, id: &SessionId) -> &mut Session {
        self.closed_sessions.retain(|closed| closed != id);
        let dialect = self.client_dialect();
        self.sessions.entry(id.clone()).or_insert_with(|| {
            // A session that is opened again has other ids.
            self.session_count += 1;
            let prefix = format!("{}{}", self.id_prefix, self.session_count);
            Session {
                as_agent: AgentSession::new(dialect, &self.client_capabilities, prefix),
                as_client: ClientSession::default(),
                is_open: false,
                parent: None,
                cwd: String::new(),
                title: None,
                muted_by: Vec::new(),
                prompts: Vec::new(),
                queue: VecDeque::new(),
            }
        })
    }

    /// A session that the client may speak of.
    #[inline]
    pub(super) fn open_session(&mut self, id: &SessionId) -> Result<&mut Session, ErrorObject> {
        let session = self.sessions.get_mut(id).filter(|session| session.is_open);
        session.ok_or_else(|| ErrorObject::session_not_found(id))
    }

    /// A session that the agent may speak of: one that is open, or that may be the one being opened.
    #[inline]
    pub(super) fn session_of_agent(&mut self, id: &SessionId) -> Option<&mut Session> {
        let unopened = || self.sessions.values().filter(|session| !session.is_open).count();
        let may_be_new = || self.opening > unopened() && !self.closed_sessions.contains(id);
        (self.sessions.contains_key(id) || may_be_new()).then(|| self.add_session(id))
    }

    /// The agent says that a session works for another.
    #[inline]
    pub(super) fn add_subagent(&mut self, parent: &SessionId, id: &SessionId) {
        if self.sessions.len() < SESSIONS && is_memorable(id.as_str()) && !self.sessions.contains_key(id) {
            let root = self.sessions.get(parent).and_then(|session| session.parent.clone());
            let session = self.add_session(id);
            session.is_open = true;
            session.parent = Some(root.unwrap_or_else(|| parent.clone()));
        }
    }

    /// Has a session tell the client something: updates, and the answer to one of its calls.
    #[inline]
    pub(super) fn tell(
        &mut self,
        id: &SessionId,
        call: Option<Call>,
        mut meta: Option<Meta>,
        out: &mut Out<'_>,
        say: impl FnOnce(&mut AgentSession, &mut dyn FnMut(Emitted<'_>)),
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let client = &mut self.client;
        say(&mut session.as_agent, &mut |emitted| match (emitted, call) {
            (Emitted::Update(update), _) => {
                let params = |writer: &mut Writer<'_>| {
                    writer.begin_object();
                    writer.key("sessionId");
                    writer.value(id);
                    writer.key("update");
                    writer.value(update);
                    if let Some(meta) = meta.take() {
                        writer.key("_meta");
                        writer.value(&meta);
                    }
                    writer.end_object();
                };
                client.notify("session/update", params, out.client);
            }
            (Emitted::Answer(response), Some(call)) => {
                client.answer(call, |writer| writer.value(&response), out.client);
            }
            (Emitted::Refusal(error), Some(call)) => client.refuse(call, &error, out.client),
            (Emitted::Answer(_) | Emitted::Refusal(_), None) => {}
        });
        for lost in session.as_agent.take_lost() {
            self.report(lost);
        }
    }

    /// Opens a session: one that is new, or one that there was.
    #[inline]
    pub(super) fn open(&mut self, call: Call, asked: Method, opening: Opening, out: &mut Out<'_>) {
        if self.sessions.len() + self.opening >= SESSIONS {
            return self.refuse(call, &ErrorObject::rate_limited(1), out);
        }
        let offered = self.offer.as_ref().and_then(|offer| offer.capabilities.session.clone()).unwrap_or_default();
        let restored = match &opening.kind {
            OpenKind::Restore { session, .. } => Some(session.clone()),
            OpenKind::New | OpenKind::Fork { .. } => None,
        };
        let cwd = if is_memorable(&opening.cwd) { opening.cwd.clone() } else { String::new() };
        let (request, is_muted) = match opening.into_request(self.agent_dialect(), &offered) {
            Ok(request) => request,
            Err(_) if asked == Method::ResumeSession && offered.resume.is_some() => {
                let error = ErrorObject::wrong_params("replayFrom: the agent cannot replay the history");
                return self.refuse(call, &error, out);
            }
            Err(_) => return self.refuse(call, &ErrorObject::method_not_found(Some(asked.any_name())), out),
        };
        if let Some(id) = &restored {
            self.add_session(id).muted_by.extend(is_muted.then_some(call));
        }
        self.opening += 1;
        let open = OpenRequest { asked, sent: request.method(), restored, cwd };
        self.ask(call, &request, Then::Open(Box::new(open)), out);
    }

    /// The agent has opened a session, or not.
    #[inline]
    pub(super) fn opened(&mut self, call: Call, open: OpenRequest, outcome: Outcome<'_>, out: &mut Out<'_>) {
        self.opening -= 1;
        if let Some(session) = open.restored.as_ref().and_then(|id| self.sessions.get_mut(id)) {
            session.muted_by.retain(|muted| *muted != call);
        }
        match outcome.map(|result| OpenedSession::decode_as(open.sent, result, self.agent_dialect())) {
            Ok(Ok(opened)) => self.present(call, open, opened, out),
            Ok(Err(_)) => self.refuse_misunderstood(call, out),
            Err(error) => self.refuse(call, &error, out),
        }
        if self.opening == 0 {
            self.sessions.retain(|_, session| session.is_open);
        }
    }

    /// Tells the client of a session that the agent has opened.
    #[inline]
    fn present(&mut self, call: Call, open: OpenRequest, mut opened: OpenedSession, out: &mut Out<'_>) {
        let is_restored = open.restored.is_some();
        let Some(id) = open.restored.or(opened.session_id.take()) else { return self.refuse_misunderstood(call, out) };
        let session = self.add_session(&id);
        session.is_open = true;
        session.cwd = open.cwd;
        session.as_client.options = opened.options();
        let options = session.as_client.options.all().to_vec();
        let commands = opened.available_commands.unwrap_or_default();
        let (answer, later) = session.as_agent.open(options, commands, opened.meta);
        if is_restored {
            self.tell(&id, None, None, out, |session, emit| session.say_state(emit));
        }
        self.client.answer(call, |writer| answer.encode_as(open.asked, &id, writer), out.client);
        if let Some(later) = later {
            self.tell(&id, None, None, out, |session, emit| session.say_owned(later, emit));
        }
    }

    /// Lists the sessions that were opened through us, for an agent that cannot list its own.
    #[inline]
    pub(super) fn list(&mut self, call: Call, request: &ListSessionsRequest, out: &mut Out<'_>) {
        let is_listed = |session: &Session| {
            session.is_open
                && session.parent.is_none()
                && !session.cwd.is_empty()
                && request.cwd.as_ref().is_none_or(|cwd| *cwd == session.cwd)
        };
        let listed = self.sessions.iter().filter(|(_, session)| is_listed(session));
        let mut sessions: Vec<SessionInfo> = listed
            .map(|(id, session)| {
                let info = SessionInfo::new(id.clone(), session.cwd.as_str());
                SessionInfo { title: session.title.clone(), ..info }
            })
            .collect();
        sessions.sort_by(|one, other| one.session_id.cmp(&other.session_id));
        self.client.answer(call, |writer| writer.value(&ListSessionsResponse::new(sessions)), out.client);
    }

    /// Closes a session, also at an agent that knows no closing.
    #[inline]
    pub(super) fn close(&mut self, call: Call, request: CloseSessionRequest, out: &mut Out<'_>) {
        let id = request.session_id.clone();
        self.cancel_queued(&id, None, out);
        let offered = self.offer.as_ref().and_then(|offer| offer.capabilities.session.as_ref());
        if offered.is_some_and(|session| session.close.is_some()) {
            return self.ask(call, &request.into(), Then::Free(Method::CloseSession, id), out);
        }
        if self.sessions.contains_key(&id) {
            self.cancel_work(&CancelNotification::new(id.clone()), out);
            self.end_session(&id, &Ok(StopReason::Cancelled), out);
        }
        self.client.answer(call, |writer| writer.value(&CloseSessionResponse::new()), out.client);
    }

    /// A session is no more, nor are those that work for it. What was open in it is cancelled; its turns end like this.
    #[inline]
    pub(super) fn end_session(&mut self, id: &SessionId, result: &Result<StopReason, ErrorObject>, out: &mut Out<'_>) {
        let children = self.sessions.iter().filter(|(_, session)| session.parent.as_ref() == Some(id));
        let mut children: Vec<SessionId> = children.map(|(child, _)| child.clone()).collect();
        children.sort_unstable();
        for child in &children {
            self.end_session(child, result, out);
        }
        self.cancel_queued(id, None, out);
        self.cancel_questions(id, None, out);
        let Some(session) = self.sessions.get_mut(id) else { return };
        for turn in session.as_client.close() {
            self.end_turn(id, TurnEnd { turn, result: result.clone(), usage: None, meta: None }, out);
        }
        self.sessions.remove(id);
        if is_memorable(id.as_str()) {
            self.closed_sessions.truncate(CLOSED_SESSIONS - 1);
            self.closed_sessions.push_front(id.clone());
        }
    }

    /// A prompt of the client: it goes to the agent, or waits for its turn at an agent that takes one at a time.
    #[inline]
    pub(super) fn prompt(&mut self, call: Call, prompt: PromptRequest, bytes: usize, out: &mut Out<'_>) {
        let takes_one = self.agent_dialect().answers_at_end();
        let has_room = self.queued_bytes + bytes <= QUEUED_BYTES;
        match self.open_session(&prompt.session_id) {
            Err(error) => self.refuse(call, &error, out),
            Ok(session) if !takes_one || session.prompts.is_empty() => self.begin_turn(call, prompt, out),
            Ok(_) if !has_room => self.refuse(call, &ErrorObject::rate_limited(1), out),
            Ok(session) => {
                session.queue.push_back((call, prompt, bytes));
                self.queued_bytes += bytes;
            }
        }
    }

    #[inline]
    fn begin_turn(&mut self, call: Call, prompt: PromptRequest, out: &mut Out<'_>) {
        let id = prompt.session_id.clone();
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let turn = session.as_client.begin_turn();
        session.prompts.push((turn, call));
        let content = prompt.prompt.clone();
        self.ask(call, &prompt.into(), Then::Prompt(id.clone()), out);
        self.tell(&id, Some(call), None, out, |session, emit| {
            session.begin_turn(&content, None, emit);
        });
    }

    /// A turn has ended; the next prompt begins.
    #[inline]
    pub(super) fn end_turn(&mut self, id: &SessionId, end: TurnEnd, out: &mut Out<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(index) = session.prompts.iter().position(|(turn, _)| *turn == end.turn) else { return };
        let (_, call) = session.prompts.remove(index);
        let next = if session.prompts.is_empty() { session.queue.pop_front() } else { None };
        self.tell(id, Some(call), None, out, |session, emit| {
            session.end_turn(end.result, end.usage, end.meta, emit);
        });
        if let Some((call, prompt, bytes)) = next {
            self.queued_bytes -= bytes;
            self.begin_turn(call, prompt, out);
        }
    }

    /// The calls of prompts that wait for their turn, one or all. They wait no more.
    #[inline]
    pub(super) fn take_queued(&mut self, id: &SessionId, wanted: Option<Call>) -> Vec<Call> {
        let Some(session) = self.sessions.get_mut(id) else { return Vec::new() };
        let mut taken = Vec::new();
        session.queue.retain(|(call, _, bytes)| {
            let is_wanted = wanted.is_none_or(|wanted| wanted == *call);
            if is_wanted {
                self.queued_bytes -= bytes;
                taken.push(*call);
            }
            !is_wanted
        });
        taken
    }

    /// Prompts that wait for their turn will not be begun: one of them, or all.
    #[inline]
    pub(super) fn cancel_queued(&mut self, id: &SessionId, wanted: Option<Call>, out: &mut Out<'_>) {
        for call in self.take_queued(id, wanted) {
            self.tell(id, Some(call), None, out, |session, emit| session.cancel_prompt(emit));
        }
    }

    /// Turns of a session are cancelled: those up to `turn`, or all. Nobody has to answer their questions any more.
    #[inline]
    pub(super) fn cancel_questions(&mut self, id: &SessionId, turn: Option<TurnId>, out: &mut Out<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for call in session.as_client.cancel(turn) {
            if let Some(request) = self.agent_calls.get(&call) {
                self.client.cancel(*request, out.client);
            }
            self.tell(id, None, None, out, |session, emit| session.end_question(emit));
            let cancelled = PermissionResponse::new(PermissionOutcome::cancelled());
            self.agent.answer(call, |writer| writer.value(&cancelled), out.agent);
        }
    }

    /// Has the agent stop what a session is doing.
    #[inline]
    pub(super) fn cancel_work(&mut self, cancel: &CancelNotification, out: &mut Out<'_>) {
        self.agent.notify("session/cancel", |writer| writer.value(cancel), out.agent);
    }
}
