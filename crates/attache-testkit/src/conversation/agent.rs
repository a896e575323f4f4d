//! An agent that does whatever the choices say, and keeps to the protocol.

use std::collections::{BTreeMap, VecDeque};

use attache_proto::Dialect;
use attache_proto::conversation::{AgentSession, Emitted, MessageKind, Offer, OpenKind, Opening};
use attache_proto::method::{ClientRequest, Method, decode_params};
use attache_proto::model::capability::{AgentCapabilities, Capability, ClientCapabilities, SessionCapabilities};
use attache_proto::model::config::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigValue, ConfigValueId,
    SetConfigOptionResponse,
};
use attache_proto::model::content::ContentBlock;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::initialize::{Implementation, InitializeResponse};
use attache_proto::model::permission::{PermissionOption, PermissionOptionKind, PermissionRequest, PermissionSubject};
use attache_proto::model::prompt::{CancelNotification, PromptRequest, StopReason};
use attache_proto::model::session::{CloseSessionResponse, SessionId, SetModeResponse};
use attache_proto::model::tool::{ToolCallContent, ToolCallContentChunk, ToolCallStatus, ToolCallUpdate};
use attache_proto::model::update::{ConfigOptionsUpdate, MessageChunk, ModeUpdate, SessionUpdate, UsageUpdate};
use attache_proto::rpc::{Call, Event, Peer, RequestKey, Side};

use super::{Choices, Ledger};

pub(super) struct Agent {
    dialect: Dialect,
    peer: Peer<Question>,
    offer: Offer,
    /// It has modes, and does not list them as an option. Only version 1 has that.
    has_modes_only: bool,
    client: ClientCapabilities,
    sessions: BTreeMap<SessionId, Session>,
    count: u64,
    pub(super) out: Vec<u8>,
}

/// Who waits for the answer to a permission request.
struct Question {
    session: SessionId,
    number: u64,
}

struct Session {
    session: AgentSession,
    running: VecDeque<Turn>,
    queue: VecDeque<(Call, PromptRequest)>,
    /// Open questions by number.
    questions: Vec<(u64, RequestKey)>,
    options: Vec<ConfigOption>,
}

struct Turn {
    call: Call,
    prompt: u32,
    is_cancelled: bool,
}

impl Agent {
    /// An agent of a dialect. Three bits say what it can do besides.
    pub(super) fn new(dialect: Dialect, kind: usize) -> Self {
        let if_set = |bit: usize| (kind & bit != 0).then(Capability::new);
        let session = SessionCapabilities::new().load(Capability::new()).with(|capabilities| {
            capabilities.resume = if_set(1);
            capabilities.close = if_set(2);
        });
        let capabilities = AgentCapabilities::new().session(session);
        let response = InitializeResponse::new(dialect.version())
            .info(Implementation::new("agent", "1"))
            .capabilities(capabilities);
        Agent {
            dialect,
            peer: Peer::new(Side::Agent),
            offer: Offer::from(&response),
            has_modes_only: dialect == Dialect::V1 && kind & 4 != 0,
            client: ClientCapabilities::new(),
            sessions: BTreeMap::new(),
            count: 0,
            out: Vec::new(),
        }
    }

    pub(super) fn handle(&mut self, frame: &str, ledger: &mut Ledger) {
        for event in self.peer.handle_frame(frame, &mut self.out) {
            match event {
                Event::Call { call, method, params } if method == "initialize" => self.initialize(call, params),
                Event::Call { call, method, params } => {
                    let method = Method::parse(&method).unwrap_or_else(|| panic!("the agent is asked for {method}"));
                    match ClientRequest::decode(method, params, self.dialect, &mut Vec::new()) {
                        Some(Ok(request)) => self.handle_request(call, request, ledger),
                        other => panic!("the agent gets {frame}: {other:?}"),
                    }
                }
                Event::Notification { method, params } => {
                    assert_eq!(method, "session/cancel");
                    let cancel: CancelNotification =
                        decode_params(params, self.dialect, &mut Vec::new()).expect("params are right");
                    self.cancel(&cancel.session_id, None);
                }
                Event::Answer { waiter, .. } => {
                    let Some(session) = self.sessions.get_mut(&waiter.session) else { continue };
                    session.questions.retain(|(number, _)| *number != waiter.number);
                    tell(&mut self.peer, &mut self.out, &waiter.session, session, None, |session, emit| {
                        session.end_question(emit);
                    });
                }
                Event::Cancel(call) => {
                    for id in self.sessions.keys().cloned().collect::<Vec<_>>() {
                        self.cancel(&id, Some(call));
                    }
                }
                Event::Violation(violation) => panic!("the agent gets {frame}: {violation}"),
            }
        }
    }

    fn initialize(&mut self, call: Call, params: Option<&str>) {
        let (dialect, request, mut response) =
            self.offer.handle_initialize(params, &mut Vec::new()).expect("params are right");
        // It speaks one dialect. Only one of version 1 is asked for another.
        assert!(dialect == self.dialect || self.dialect == Dialect::V1);
        response.protocol_version = self.dialect.version();
        self.client = request.capabilities;
        self.peer.set_dialect(self.dialect);
        self.peer.answer(call, |writer| writer.value(&response), &mut self.out);
    }

    fn handle_request(&mut self, call: Call, request: ClientRequest, ledger: &mut Ledger) {
        let method = request.method();
        let offered = self.offer.capabilities.session.clone().unwrap_or_default();
        let is_known = request.session_id().is_some_and(|id| self.sessions.contains_key(id));
        match request {
            ClientRequest::NewSession(_) | ClientRequest::LoadSession(_) | ClientRequest::ResumeSession(_) => {
                let opening = Opening::from_request(request);
                self.open(call, method, opening.and_then(Result::ok).expect("it opens a session"));
            }
            request if !is_known => {
                let id = request.session_id().cloned().unwrap_or_else(|| "".into());
                self.peer.refuse(call, &ErrorObject::session_not_found(&id), &mut self.out);
            }
            ClientRequest::Prompt(prompt) => {
                let session = self.sessions.get_mut(&prompt.session_id).expect("it is known");
                // Every other prompt that comes in mid-turn is taken in at once.
                if session.running.is_empty() || number(&prompt).is_multiple_of(2) {
                    self.begin_turn(call, &prompt);
                } else {
                    session.queue.push_back((call, prompt));
                }
            }
            ClientRequest::CloseSession(close) => {
                assert!(offered.close.is_some() || self.dialect == Dialect::V2, "closing is not offered");
                self.cancel(&close.session_id, None);
                self.end_all(&close.session_id, ledger);
                if let Some(session) = self.sessions.remove(&close.session_id) {
                    session.questions.iter().for_each(|(_, question)| self.peer.cancel(*question, &mut self.out));
                }
                self.peer.answer(call, |writer| writer.value(&CloseSessionResponse::new()), &mut self.out);
            }
            ClientRequest::SetConfigOption(set) => {
                assert!(!self.has_modes_only, "there are no options");
                let ConfigSetting::Id(value) = set.value else { panic!("all options are lists") };
                self.set_option(&set.session_id, &set.config_id, value);
                let session = self.sessions.get_mut(&set.session_id).expect("it is known");
                let shown = session.session.set_options(session.options.clone());
                let response = SetConfigOptionResponse::new(shown);
                self.peer.answer(call, |writer| writer.value(&response), &mut self.out);
            }
            ClientRequest::SetMode(set) => {
                assert_eq!(self.dialect, Dialect::V1);
                self.set_option(&set.session_id, &"mode".into(), set.mode_id.as_str().into());
                // One that knows nothing else has nothing to tell.
                if !self.has_modes_only {
                    self.tell_options(&set.session_id);
                }
                self.peer.answer(call, |writer| writer.value(&SetModeResponse::new()), &mut self.out);
            }
            other => panic!("the agent is asked for {}", other.method()),
        }
    }

    fn open(&mut self, call: Call, asked: Method, opening: Opening) {
        self.count += 1;
        let (id, is_new) = match opening.kind {
            OpenKind::New => (SessionId::from(format!("s{}", self.count)), true),
            OpenKind::Restore { session, .. } => (session, false),
            OpenKind::Fork { .. } => panic!("forking is not offered"),
        };
        let session = AgentSession::new(self.dialect, &self.client, self.count.to_string());
        let session = Session {
            session,
            running: VecDeque::new(),
            queue: VecDeque::new(),
            questions: Vec::new(),
            options: options(self.has_modes_only),
        };
        // It may be open still, if the client was told that it is closed by somebody else.
        let session = self.sessions.entry(id.clone()).or_insert(session);
        let (mut opened, _) = session.session.open(session.options.clone(), Vec::new(), None);
        if self.has_modes_only {
            opened.config_options = None;
        }
        if !is_new {
            tell(&mut self.peer, &mut self.out, &id, session, None, |session, emit| session.say_state(emit));
        }
        self.peer.answer(call, |writer| opened.encode_as(asked, &id, writer), &mut self.out);
    }

    fn begin_turn(&mut self, call: Call, prompt: &PromptRequest) {
        let session = self.sessions.get_mut(&prompt.session_id).expect("it is known");
        session.running.push_back(Turn { call, prompt: number(prompt), is_cancelled: false });
        tell(&mut self.peer, &mut self.out, &prompt.session_id, session, Some(call), |session, emit| {
            session.begin_turn(&prompt.prompt, None, emit);
        });
    }

    /// Ends the oldest turn of a session; a prompt that waits is taken up when no other runs.
    fn end_turn(&mut self, id: &SessionId, result: Result<StopReason, ErrorObject>, ledger: &mut Ledger) {
        let session = self.sessions.get_mut(id).expect("it is known");
        let Some(turn) = session.running.pop_front() else { return };
        ledger.ended.insert(turn.prompt, ledger.pieces.get(id).copied().unwrap_or(0));
        let result = if turn.is_cancelled { Ok(StopReason::Cancelled) } else { result };
        tell(&mut self.peer, &mut self.out, id, session, Some(turn.call), |session, emit| {
            session.end_turn(result, None, None, emit);
        });
        if session.running.is_empty()
            && let Some((call, prompt)) = session.queue.pop_front()
        {
            self.begin_turn(call, &prompt);
        }
    }

    fn end_all(&mut self, id: &SessionId, ledger: &mut Ledger) {
        while self.sessions.get(id).is_some_and(|session| !session.running.is_empty()) {
            self.end_turn(id, Ok(StopReason::EndTurn), ledger);
        }
    }

    /// Cancels the prompt of a call, or all of a session.
    fn cancel(&mut self, id: &SessionId, call: Option<Call>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let is_meant = |one: Call| call.is_none_or(|call| call == one);
        for turn in session.running.iter_mut().filter(|turn| is_meant(turn.call)) {
            turn.is_cancelled = true;
        }
        let queue = std::mem::take(&mut session.queue);
        let (cancelled, left): (Vec<_>, Vec<_>) = queue.into_iter().partition(|(call, _)| is_meant(*call));
        session.queue = left.into();
        for (call, _) in cancelled {
            tell(&mut self.peer, &mut self.out, id, session, Some(call), |session, emit| session.cancel_prompt(emit));
        }
    }

    fn set_option(&mut self, id: &SessionId, option: &ConfigId, value: ConfigValueId) {
        let session = self.sessions.get_mut(id).expect("it is known");
        let found = session.options.iter_mut().find(|one| one.id == *option);
        match &mut found.unwrap_or_else(|| panic!("there is no option {option}")).kind {
            ConfigKind::Select(select) => select.current = value,
            other => panic!("{other:?} is no list"),
        }
    }

    fn tell_options(&mut self, id: &SessionId) {
        let session = self.sessions.get_mut(id).expect("it is known");
        let update = match (&session.options[0].kind, self.has_modes_only) {
            (ConfigKind::Select(mode), true) => SessionUpdate::CurrentMode(ModeUpdate::new(mode.current.as_str())),
            _ => SessionUpdate::ConfigOptions(ConfigOptionsUpdate::new(session.options.clone())),
        };
        tell(&mut self.peer, &mut self.out, id, session, None, |session, emit| session.say_owned(update, emit));
    }

    /// Does something of its own.
    pub(super) fn act(&mut self, choices: &mut Choices<'_>, ledger: &mut Ledger) -> Option<()> {
        let what = choices.below(12)?;
        let ids = self.sessions.iter().filter(|(_, session)| what == 0 || !session.running.is_empty());
        let Some(id) = choices.pick(ids.map(|(id, _)| id.clone()).collect()) else { return Some(()) };
        let session = self.sessions.get_mut(&id).expect("it was picked");
        match what {
            0 => {
                let value = choices.pick(vec!["a", "b", "c"])?;
                let option = choices.pick(session.options.iter().map(|option| option.id.clone()).collect())?;
                self.set_option(&id, &option, value.into());
                self.tell_options(&id);
            }
            1 | 2 if session.questions.len() < 3 => {
                self.count += 1;
                let tool_call = ToolCallUpdate::new("t").title("Work");
                let options = vec![PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce)];
                let request =
                    PermissionRequest::new(id.clone(), options).subject(PermissionSubject::tool_call(tool_call));
                let request = request.title("May I?");
                let waiter = Question { session: id.clone(), number: self.count };
                tell(&mut self.peer, &mut self.out, &id, session, None, |session, emit| session.ask(emit));
                let params = |writer: &mut attache_proto::json::Writer<'_>| writer.value(&request);
                let key = self.peer.request("session/request_permission", params, waiter, &mut self.out);
                session.questions.push((self.count, key));
            }
            3 => {
                // It no longer needs an answer.
                if let Some((_, question)) = choices.pick(session.questions.clone()) {
                    self.peer.cancel(question, &mut self.out);
                }
            }
            // A turn ends when its questions are answered.
            4 | 5 if session.questions.is_empty() => {
                let result = match choices.below(4)? {
                    0 => Ok(StopReason::Refusal),
                    1 => Err(ErrorObject::internal("no")),
                    _ => Ok(StopReason::EndTurn),
                };
                self.end_turn(&id, result, ledger);
            }
            6 => {
                let status = choices.pick(vec![ToolCallStatus::InProgress, ToolCallStatus::Completed])?;
                let call = ToolCallUpdate::new("t").status(status);
                let update = SessionUpdate::ToolCallUpdate(call.into());
                tell(&mut self.peer, &mut self.out, &id, session, None, |session, emit| {
                    session.say_owned(update, emit)
                });
            }
            // A stream of output, which version 1 gets in larger pieces.
            7 => {
                let text = format!("{} ", choices.below(256)?).repeat(64 * choices.below(16)?);
                for _ in 0..choices.below(16)? {
                    ledger.output.entry(id.clone()).or_default().push_str(&text);
                    let chunk = ToolCallContentChunk::new("output", ToolCallContent::text(text.as_str()));
                    let update = SessionUpdate::ToolCallContentChunk(chunk);
                    tell(&mut self.peer, &mut self.out, &id, session, None, |session, emit| {
                        session.say_owned(update, emit);
                    });
                }
            }
            8 => {
                let update = SessionUpdate::Usage(UsageUpdate::new(1, 2));
                tell(&mut self.peer, &mut self.out, &id, session, None, |session, emit| session.say(&update, emit));
            }
            _ => {
                let kind = choices.pick(vec![MessageKind::Answer, MessageKind::Thought])?;
                let number = ledger.pieces.entry(id.clone()).or_default();
                *number += 1;
                let content = ContentBlock::text(number.to_string());
                // Version 1 has pieces that belong to no message.
                let update = if choices.is_one_in(2) && self.dialect == Dialect::V1 {
                    SessionUpdate::AgentMessageChunk(MessageChunk::new(content))
                } else {
                    kind.chunk(session.session.message(kind).0, content)
                };
                tell(&mut self.peer, &mut self.out, &id, session, None, |session, emit| {
                    session.say_owned(update, emit)
                });
            }
        }
        Some(())
    }

    /// Ends every turn that waits for nobody; says whether there was one.
    pub(super) fn finish(&mut self, ledger: &mut Ledger) -> bool {
        let free = |session: &Session| !session.running.is_empty() && session.questions.is_empty();
        let ids: Vec<SessionId> =
            self.sessions.iter().filter(|(_, session)| free(session)).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.end_all(id, ledger));
        !ids.is_empty()
    }

    pub(super) fn options(&self, id: &SessionId) -> Option<Vec<ConfigOption>> {
        self.sessions.get(id).map(|session| session.options.clone())
    }

    pub(super) fn assert_at_rest(&self) {
        assert_eq!((self.peer.open_calls(), self.peer.waiting()), (0, 0), "the agent owes and waits for nothing");
        for (id, session) in &self.sessions {
            assert!(!session.session.is_running() && session.queue.is_empty(), "{id} is at rest");
        }
    }
}

/// The number of a prompt, which is its text.
fn number(prompt: &PromptRequest) -> u32 {
    let text = prompt.prompt.first().and_then(ContentBlock::as_text);
    text.and_then(|text| text.parse().ok()).expect("a prompt is its number")
}

fn options(has_modes_only: bool) -> Vec<ConfigOption> {
    let values = || ["a", "b", "c"].map(|value| ConfigValue::new(value, value)).to_vec();
    let select = |id: &str| ConfigOption::new(id, id, ConfigKind::Select(ConfigSelect::new("a", values())));
    let mode = select("mode").category(ConfigCategory::Mode);
    if has_modes_only { vec![mode] } else { vec![mode, select("level")] }
}

/// Has a session say something, and sends it.
fn tell(
    peer: &mut Peer<Question>,
    out: &mut Vec<u8>,
    id: &SessionId,
    session: &mut Session,
    call: Option<Call>,
    say: impl FnOnce(&mut AgentSession, &mut dyn FnMut(Emitted<'_>)),
) {
    say(&mut session.session, &mut |emitted| match (emitted, call) {
        (Emitted::Update(update), _) => {
            let params = |writer: &mut attache_proto::json::Writer<'_>| {
                writer.begin_object();
                writer.key("sessionId");
                writer.value(id);
                writer.key("update");
                writer.value(update);
                writer.end_object();
            };
            peer.notify("session/update", params, out);
        }
        (Emitted::Answer(response), Some(call)) => {
            assert!(peer.is_open(call), "a prompt is answered once");
            peer.answer(call, |writer| writer.value(&response), out);
        }
        (Emitted::Refusal(error), Some(call)) => {
            assert!(peer.is_open(call), "a prompt is answered once");
            peer.refuse(call, &error, out);
        }
        (other, None) => panic!("{other:?} answers nothing"),
    });
}
