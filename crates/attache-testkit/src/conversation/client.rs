//! A client that does whatever the choices say, and keeps to the protocol.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use attache_proto::Dialect;
use attache_proto::conversation::{
    ClientSession, Greeted, Greeting, OpenKind, OpenedSession, Opening, Protocol, Question, SetRequest, TurnEnd, TurnId,
};
use attache_proto::method::{AgentNotification, AgentRequest, ClientRequest, Method, decode_result};
use attache_proto::model::Patch;
use attache_proto::model::capability::{Capability, ClientCapabilities, SessionCapabilities};
use attache_proto::model::config::{
    ConfigCategory, ConfigId, ConfigOption, ConfigSetting, ConfigValueId, SetConfigOptionResponse,
};
use attache_proto::model::content::{ContentBlock, MessageId};
use attache_proto::model::initialize::{Implementation, InitializeRequest};
use attache_proto::model::permission::{PermissionOutcome, PermissionResponse};
use attache_proto::model::prompt::{CancelNotification, PromptRequest};
use attache_proto::model::session::{CloseSessionRequest, SessionId, SetModeRequest};
use attache_proto::model::state::StateUpdate;
use attache_proto::model::tool::ToolCallContent;
use attache_proto::model::update::SessionUpdate;
use attache_proto::rpc::{Call, Event, Outcome, Peer, RequestKey, Side};

use super::{Choices, Ledger};

pub(super) struct Client {
    dialect: Dialect,
    peer: Peer<Waiter>,
    greeting: Greeting,
    /// It sets modes as modes, where there are any.
    prefers_modes: bool,
    offered: Option<SessionCapabilities>,
    sessions: BTreeMap<SessionId, Session>,
    closed: BTreeSet<SessionId>,
    prompts: u32,
    /// Prompts that were repeated.
    echoes: BTreeSet<(SessionId, MessageId)>,
    pub(super) out: Vec<u8>,
}

enum Waiter {
    Greet,
    Open { sent: Method, restored: Option<SessionId> },
    Prompt(SessionId, TurnId),
    Set { session: SessionId, older: Option<(ConfigId, ConfigValueId)>, is_mode: bool },
    Close(SessionId),
}

#[derive(Default)]
struct Session {
    session: ClientSession,
    is_open: bool,
    is_closing: bool,
    /// The number of the prompt of each open turn, and its request.
    turns: HashMap<TurnId, (u32, RequestKey)>,
    questions: BTreeSet<Call>,
    /// The last piece that was heard. Nothing is expected of the first one of a session that was restored.
    heard: Option<u64>,
    /// The content of the tool call that has some.
    output: Option<String>,
    state: Option<StateUpdate>,
}

impl Client {
    pub(super) fn new(dialect: Dialect, prefers_modes: bool) -> Self {
        let protocol = match dialect {
            Dialect::V1 => Protocol::V1,
            Dialect::V2Draft => Protocol::V2Draft,
            Dialect::V2 => Protocol::V2,
        };
        Client {
            dialect,
            peer: Peer::new(Side::Client),
            greeting: Greeting::new(protocol, &ClientCapabilities::new()),
            prefers_modes: prefers_modes && dialect == Dialect::V1,
            offered: None,
            sessions: BTreeMap::new(),
            closed: BTreeSet::new(),
            prompts: 0,
            echoes: BTreeSet::new(),
            out: Vec::new(),
        }
    }

    pub(super) fn greet(&mut self) {
        self.peer.set_dialect(self.greeting.dialect());
        let mut capabilities = ClientCapabilities::new();
        capabilities.session.notices = Some(Capability::new());
        let request = InitializeRequest::new(self.dialect.version())
            .info(Implementation::new("client", "1"))
            .capabilities(capabilities);
        self.request(&request.into(), Waiter::Greet);
    }

    fn request(&mut self, request: &ClientRequest, waiter: Waiter) -> RequestKey {
        let name = request.method().name(self.dialect).expect("the dialect has it");
        self.peer.request(name, |writer| request.encode_params(writer), waiter, &mut self.out)
    }

    pub(super) fn handle(&mut self, frame: &str, ledger: &Ledger) {
        for event in self.peer.handle_frame(frame, &mut self.out) {
            match event {
                Event::Answer { waiter, outcome } => self.handle_answer(waiter, outcome.map_err(Into::into), ledger),
                Event::Call { call, method, params } => {
                    let method = Method::parse(&method).unwrap_or_else(|| panic!("the client is asked for {method}"));
                    match AgentRequest::decode(method, params, self.dialect, &mut Vec::new()) {
                        Some(Ok(AgentRequest::RequestPermission(mut request))) => {
                            let session = self.sessions.get_mut(&request.session_id);
                            let session = session.unwrap_or_else(|| panic!("{} is not open", request.session_id));
                            match session.session.handle_question(call, &mut request) {
                                Question::Ask => drop(session.questions.insert(call)),
                                Question::Cancelled => self.answer(call, PermissionOutcome::cancelled()),
                            }
                        }
                        other => panic!("the client gets {frame}: {other:?}"),
                    }
                }
                Event::Notification { method, params } => {
                    let method = Method::parse(&method).unwrap_or_else(|| panic!("the client is told {method}"));
                    match AgentNotification::decode(method, params, self.dialect, &mut Vec::new()) {
                        Some(Ok(AgentNotification::SessionUpdate(news))) => {
                            self.handle_update(&news.session_id, news.update, ledger);
                        }
                        other => panic!("the client gets {frame}: {other:?}"),
                    }
                }
                Event::Cancel(call) => {
                    for session in self.sessions.values_mut() {
                        if session.questions.remove(&call) {
                            assert!(session.session.question_answered(call));
                            self.peer.answer(call, |writer| writer.value(&cancelled()), &mut self.out);
                        }
                    }
                }
                Event::Violation(violation) => panic!("the client gets {frame}: {violation}"),
            }
        }
    }

    fn handle_update(&mut self, id: &SessionId, mut update: SessionUpdate, ledger: &Ledger) {
        let Some(session) = self.sessions.get_mut(id) else {
            return assert!(self.closed.contains(id), "nobody opened {id}");
        };
        let ended = session.session.handle_update(&mut update);
        match update {
            SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => {
                let number: u64 = chunk.content.as_text().and_then(|text| text.parse().ok()).expect("a number");
                assert!(session.heard.is_none_or(|heard| number == heard + 1), "{:?}, {number}", session.heard);
                session.heard = Some(number);
            }
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call)
                if call.tool_call_id.as_str() == "output" =>
            {
                if let (Patch::Set(content), Some(output)) = (&call.content, &mut session.output) {
                    *output = content.iter().map(text).collect();
                }
            }
            SessionUpdate::ToolCallContentChunk(chunk) => {
                if let Some(output) = &mut session.output {
                    output.push_str(text(&chunk.content));
                }
            }
            SessionUpdate::State(state) => session.state = Some(state),
            SessionUpdate::UserMessage(message) => {
                assert!(!self.dialect.answers_at_end(), "a prompt is repeated");
                assert!(self.echoes.insert((id.clone(), message.message_id)), "a prompt is repeated twice");
            }
            SessionUpdate::UserMessageChunk(_) => panic!("a prompt is repeated"),
            _ => {}
        }
        ended.into_iter().for_each(|end| self.end_turn(id, &end, ledger));
    }

    fn end_turn(&mut self, id: &SessionId, end: &TurnEnd, ledger: &Ledger) {
        let session = self.sessions.get_mut(id).expect("it is open");
        let (prompt, _) = session.turns.remove(&end.turn).expect("a turn ends once");
        // A bridge closes a session without waiting for an agent that cannot.
        if let (Some(heard), Some(said), false) = (session.heard, ledger.ended.get(&prompt), session.is_closing) {
            assert!(heard >= *said, "prompt {prompt} of {id} ended after piece {heard} of {said}");
        }
    }

    fn handle_answer(&mut self, waiter: Waiter, outcome: Outcome<'_>, ledger: &Ledger) {
        match waiter {
            Waiter::Greet => match self.greeting.handle_answer(outcome) {
                Greeted::Agreed(dialect, response) => {
                    assert_eq!(dialect, self.dialect);
                    self.offered = response.capabilities.session;
                }
                other => panic!("{other:?}"),
            },
            Waiter::Open { sent, restored } => {
                let Ok(result) = outcome else {
                    // It may have been opened twice, and is open if one of the two was well.
                    return;
                };
                let mut opened = OpenedSession::decode_as(sent, result, self.dialect).expect("the answer is right");
                let is_new = restored.is_none();
                let id = opened.session_id.take().or(restored).expect("it has an id");
                let session = self.sessions.entry(id).or_default();
                session.is_open = true;
                session.session.options = opened.options();
                if is_new {
                    session.heard = Some(0);
                    session.output = Some(String::new());
                }
            }
            Waiter::Prompt(id, turn) => {
                let answer = outcome
                    .map(|result| decode_result(result, self.dialect, &mut Vec::new()).expect("the answer is right"));
                let session = self.sessions.get_mut(&id).expect("a session is open as long as a prompt is");
                if let Some(end) = session.session.prompt_answered(turn, answer) {
                    self.end_turn(&id, &end, ledger);
                }
            }
            Waiter::Set { session, older, is_mode } => {
                let (Some(session), Ok(result)) = (self.sessions.get_mut(&session), outcome) else { return };
                match older {
                    Some((option, value)) => session.session.options.was_set(&option, &value),
                    None if is_mode => {}
                    None => {
                        let response: SetConfigOptionResponse =
                            decode_result(result, self.dialect, &mut Vec::new()).expect("the answer is right");
                        session.session.options.replace(response.config_options);
                    }
                }
            }
            Waiter::Close(id) => {
                if outcome.is_err() {
                    return;
                }
                let Some(mut session) = self.sessions.remove(&id) else { return };
                assert!(session.turns.is_empty(), "{id} is closed, and turns run: {:?}", session.turns);
                for call in session.session.cancel(None) {
                    self.answer(call, PermissionOutcome::cancelled());
                }
                self.closed.insert(id);
            }
        }
    }

    fn answer(&mut self, call: Call, outcome: PermissionOutcome) {
        let response = PermissionResponse::new(outcome);
        self.peer.answer(call, |writer| writer.value(&response), &mut self.out);
    }

    /// Does something.
    pub(super) fn act(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let what = choices.below(12)?;
        let is_usable = |session: &Session| session.is_open && !session.is_closing;
        let ids: Vec<SessionId> =
            self.sessions.iter().filter(|(_, session)| is_usable(session)).map(|(id, _)| id.clone()).collect();
        match what {
            0 if self.sessions.len() < 3 => self.open(OpenKind::New),
            1 if self.sessions.len() < 3 => {
                if let Some(session) = choices.pick(self.closed.iter().cloned().collect()) {
                    self.closed.remove(&session);
                    self.sessions.insert(session.clone(), Session::default());
                    self.open(OpenKind::Restore { session, replay: choices.is_one_in(2) });
                }
            }
            _ => {}
        }
        let Some(id) = choices.pick(ids) else { return Some(()) };
        let session = self.sessions.get_mut(&id).expect("it was picked");
        match what {
            2..6 if session.turns.len() < 4 => {
                self.prompts += 1;
                let number = self.prompts;
                let turn = session.session.begin_turn();
                let prompt = PromptRequest::new(id.clone(), vec![ContentBlock::text(number.to_string())]);
                let key = self.request(&prompt.into(), Waiter::Prompt(id.clone(), turn));
                self.sessions.get_mut(&id).expect("it was picked").turns.insert(turn, (number, key));
            }
            6 => {
                let cancel = CancelNotification::new(id.clone());
                self.peer.notify("session/cancel", |writer| writer.value(&cancel), &mut self.out);
                self.cancel(&id, None);
            }
            7 => {
                let mut turns: Vec<(TurnId, RequestKey)> =
                    session.turns.iter().map(|(turn, (_, key))| (*turn, *key)).collect();
                turns.sort_by_key(|(turn, _)| *turn);
                if let Some((turn, key)) = choices.pick(turns) {
                    self.peer.cancel(key, &mut self.out);
                    self.cancel(&id, Some(turn));
                }
            }
            8 => {
                let outcome = if choices.is_one_in(3) { PermissionOutcome::cancelled() } else { yes() };
                if let Some(call) = choices.pick(session.questions.iter().copied().collect()) {
                    session.questions.remove(&call);
                    assert!(session.session.question_answered(call), "a question is answered once");
                    self.answer(call, outcome);
                }
            }
            9 => self.set_option(&id, choices)?,
            10 if self.offered.as_ref().is_some_and(|offered| offered.close.is_some()) && choices.is_one_in(3) => {
                session.is_closing = true;
                self.request(&CloseSessionRequest::new(id.clone()).into(), Waiter::Close(id));
            }
            _ => {}
        }
        Some(())
    }

    fn open(&mut self, kind: OpenKind) {
        let offered = self.offered.clone().expect("the agent has answered");
        let restored = match &kind {
            OpenKind::Restore { session, .. } => Some(session.clone()),
            _ => None,
        };
        let opening = Opening {
            kind,
            cwd: "/".into(),
            additional_directories: Vec::new(),
            mcp_servers: Vec::new(),
            system_prompt: None,
            meta: None,
        };
        match opening.into_request(self.dialect, &offered) {
            Ok((request, _)) => drop(self.request(&request, Waiter::Open { sent: request.method(), restored })),
            Err(what) => panic!("the agent does not offer {what}"),
        }
    }

    /// Turns are cancelled, and so are their questions.
    fn cancel(&mut self, id: &SessionId, turn: Option<TurnId>) {
        let session = self.sessions.get_mut(id).expect("it is open");
        for call in session.session.cancel(turn) {
            assert!(session.questions.remove(&call));
            self.peer.answer(call, |writer| writer.value(&cancelled()), &mut self.out);
        }
    }

    fn set_option(&mut self, id: &SessionId, choices: &mut Choices<'_>) -> Option<()> {
        let session = self.sessions.get_mut(id).expect("it is open");
        let option = choices.pick(session.session.options.all().to_vec())?;
        let value = ConfigValueId::from(choices.pick(vec!["a", "b", "c"])?);
        let is_mode = self.prefers_modes && option.category == Some(ConfigCategory::Mode);
        let set = session.session.options.set_request(id, option.id.clone(), ConfigSetting::Id(value.clone()));
        let (request, older): (ClientRequest, _) = match set {
            SetRequest::Option(_) if is_mode => (SetModeRequest::new(id.clone(), value.as_str()).into(), None),
            SetRequest::Option(request) => (request.into(), None),
            SetRequest::Mode(request) => (request.into(), Some((option.id, value))),
            SetRequest::Model(request) => (request.into(), Some((option.id, value))),
        };
        self.request(&request, Waiter::Set { session: id.clone(), older, is_mode });
        Some(())
    }

    /// Answers all questions; says whether there was one.
    pub(super) fn finish(&mut self) -> bool {
        let mut had_questions = false;
        for session in self.sessions.values_mut() {
            for call in std::mem::take(&mut session.questions) {
                had_questions = true;
                assert!(session.session.question_answered(call), "a question is answered once");
                self.peer.answer(call, |writer| writer.value(&PermissionResponse::new(yes())), &mut self.out);
            }
        }
        had_questions
    }

    /// What each session says that it does is what it does, now that every frame was delivered.
    pub(super) fn assert_states(&self) {
        for (id, session) in self.sessions.iter().filter(|_| !self.dialect.answers_at_end()) {
            let is_right = match &session.state {
                None | Some(StateUpdate::Idle(_)) => session.turns.is_empty(),
                Some(StateUpdate::Running(_)) => !session.turns.is_empty() && session.questions.is_empty(),
                Some(StateUpdate::RequiresAction(_)) => !session.turns.is_empty() && !session.questions.is_empty(),
                Some(_) => false,
            };
            assert!(is_right, "{id} is {:?} with turns {:?}", session.state, session.turns);
        }
    }

    /// The options of each session that is open.
    pub(super) fn options(&self) -> Vec<(SessionId, Vec<ConfigOption>)> {
        let open = self.sessions.iter().filter(|(_, session)| session.is_open);
        open.map(|(id, session)| (id.clone(), session.session.options.all().to_vec())).collect()
    }

    /// The last piece and the output that were heard in each session.
    pub(super) fn heard(&self) -> Vec<(SessionId, u64, Option<String>)> {
        let heard = |(id, session): (&SessionId, &Session)| Some((id.clone(), session.heard?, session.output.clone()));
        self.sessions.iter().filter_map(heard).collect()
    }

    pub(super) fn assert_nothing_waits(&self) {
        assert_eq!((self.peer.open_calls(), self.peer.waiting()), (0, 0), "the client owes and waits for nothing");
    }

    pub(super) fn assert_at_rest(&self) {
        self.assert_nothing_waits();
        self.assert_states();
        for (id, session) in &self.sessions {
            assert!(session.turns.is_empty(), "turns of {id} did not end: {:?}", session.turns);
        }
    }
}

fn text(content: &ToolCallContent) -> &str {
    match content {
        ToolCallContent::Content(block) => block.content.as_text().expect("all output is text"),
        other => panic!("{other:?} is no text"),
    }
}

fn yes() -> PermissionOutcome {
    PermissionOutcome::selected("yes")
}

fn cancelled() -> PermissionResponse {
    PermissionResponse::new(PermissionOutcome::cancelled())
}
