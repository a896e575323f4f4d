//! What is known of each session, and opening, listing and closing them.

use std::collections::VecDeque;

use super::modes::{self, Modes};
use super::recode::write;
use super::turns::Turn;
use super::{Asked, Bridge, Opening, Out};
use crate::Dialect;
use crate::dialect::Speaker;
use crate::method::{ClientRequest, Method, decode_result};
use crate::model::{
    AvailableCommand, CancelNotification, CloseSessionRequest, CloseSessionResponse, CommandsUpdate, ConfigKind,
    ConfigOption, ErrorObject, ForkSessionResponse, IdleState, ListSessionsRequest, ListSessionsResponse,
    LoadSessionRequest, LoadSessionResponse, ModeState, NewSessionResponse, PromptRequest, ReplayFrom,
    ResumeSessionRequest, ResumeSessionResponse, SessionId, SessionInfo, SessionUpdate, StateUpdate, StopReason,
};
use crate::rpc::{Call, Outcome};

/// A session as both sides have it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) speaker: Speaker,
    pub(super) modes: Modes,
    /// The directory, once the session was opened through us.
    cwd: Option<String>,
    pub(super) title: Option<String>,
    /// Whether the client hears nothing of it: it is closed, or the agent tells history that nobody asked for.
    pub(super) is_muted: bool,
    /// Whether an agent that answers at the end is at work.
    pub(super) is_busy: bool,
    /// Prompts that wait for their turn.
    pub(super) queue: VecDeque<(Call, PromptRequest)>,
    /// Questions of the agent that the user has not answered.
    pub(super) questions: usize,
    /// Prompts of a client that waits for the end.
    pub(super) turns: Vec<Turn>,
}

impl Session {
    /// The calls of the client that nobody will answer any more.
    #[inline]
    pub(super) fn take_open_calls(&mut self) -> Vec<Call> {
        let queued = self.queue.drain(..).map(|(call, _)| call);
        queued.chain(self.turns.drain(..).map(|turn| turn.call)).collect()
    }
}

impl Bridge {
    #[inline]
    pub(super) fn session(&mut self, id: &SessionId) -> &mut Session {
        let (client, _) = self.both();
        let capabilities = &self.client_capabilities;
        self.sessions.entry(id.clone()).or_insert_with(|| Session {
            speaker: Speaker::new(client, capabilities),
            modes: Modes::Plain,
            cwd: None,
            title: None,
            is_muted: false,
            is_busy: false,
            queue: VecDeque::new(),
            questions: 0,
            turns: Vec::new(),
        })
    }

    /// Opens a session: one that is new, or one that there was.
    #[inline]
    pub(super) fn open(&mut self, call: Call, request: ClientRequest, out: &mut Out<'_>) {
        let (cwd, session_id) = match &request {
            ClientRequest::NewSession(request) => (request.cwd.clone(), None),
            ClientRequest::ForkSession(request) => (request.cwd.clone(), None),
            ClientRequest::LoadSession(request) => (request.cwd.clone(), Some(request.session_id.clone())),
            ClientRequest::ResumeSession(request) => (request.cwd.clone(), Some(request.session_id.clone())),
            _ => return self.pass_client_call(call, request.method().any_name(), None, out),
        };
        let asked = request.method();
        let (request, is_muted) = match self.opening_request(request) {
            Ok(request) => request,
            Err(error) => return self.settle_error(call, &error, out),
        };
        if let Some(id) = &session_id {
            self.session(id).is_muted = is_muted;
        }
        let opening = Opening { call, asked, sent: request.method(), session_id, cwd };
        self.forward(call, &request, Asked::Open(Box::new(opening)), out);
    }

    /// How the agent is asked to open a session, and whether the history that it tells is not wanted.
    #[inline]
    fn opening_request(&self, request: ClientRequest) -> Result<(ClientRequest, bool), ErrorObject> {
        let (_, agent) = self.both();
        let session = self.agent_capabilities.session.as_ref();
        let loads = session.is_some_and(|session| session.load.is_some());
        let resumes = session.is_some_and(|session| session.resume.is_some());
        match request {
            ClientRequest::LoadSession(load) if agent == Dialect::V2 => {
                let LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, meta } =
                    load;
                let replay_from = Some(ReplayFrom::start());
                let resume = ResumeSessionRequest {
                    session_id,
                    cwd,
                    additional_directories,
                    mcp_servers,
                    replay_from,
                    system_prompt,
                    meta,
                };
                Ok((resume.into(), false))
            }
            ClientRequest::ResumeSession(resume) if agent != Dialect::V2 => {
                let replays = match &resume.replay_from {
                    None => false,
                    Some(ReplayFrom::Start(_)) => true,
                    Some(ReplayFrom::Other(_)) => return Err(unknown_place()),
                };
                if !replays && resumes {
                    return Ok((resume.into(), false));
                }
                if !loads {
                    let not_found = ErrorObject::method_not_found(Some("session/resume"));
                    return Err(if resumes { unknown_place() } else { not_found });
                }
                let ResumeSessionRequest {
                    session_id,
                    cwd,
                    additional_directories,
                    mcp_servers,
                    system_prompt,
                    meta,
                    ..
                } = resume;
                let load =
                    LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, meta };
                Ok((load.into(), !replays))
            }
            request => Ok((request, false)),
        }
    }

    #[inline]
    pub(super) fn opened(&mut self, opening: Opening, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let call = opening.call;
        if let Some(id) = &opening.session_id {
            self.session(id).is_muted = false;
        }
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.settle_error(call, &error, out),
        };
        let (_, agent) = self.both();
        let parts = match opening.sent {
            Method::NewSession => decode_result(result, agent, &mut Vec::new()).map(Parts::from_new),
            Method::ForkSession => decode_result(result, agent, &mut Vec::new()).map(Parts::from_fork),
            Method::LoadSession => decode_result(result, agent, &mut Vec::new()).map(Parts::from_load),
            _ => decode_result(result, agent, &mut Vec::new()).map(Parts::from_resume),
        };
        let Ok(mut parts) = parts else { return self.settle_misunderstood(call, out) };
        let Some(id) = opening.session_id.or_else(|| parts.session_id.clone()) else {
            return self.settle_misunderstood(call, out);
        };
        let session = self.session(&id);
        session.cwd = Some(opening.cwd);
        self.present(&id, &mut parts);
        let (client, _) = self.both();
        // v2 wants to know what a session is doing before it hears that it goes on.
        if client == Dialect::V2 && opening.asked == Method::ResumeSession {
            let state = if self.session(&id).is_busy { StateUpdate::running() } else { IdleState::new().into() };
            self.say(&id, &SessionUpdate::State(state), None, out);
        }
        let commands = if client == Dialect::V2 { None } else { parts.available_commands.take() };
        let (text, lost) = write(client, |writer| match opening.asked {
            Method::NewSession => writer.value(&parts.into_new(id.clone())),
            Method::ForkSession => writer.value(&parts.into_fork(id.clone())),
            Method::LoadSession => writer.value(&parts.into_load()),
            _ => writer.value(&parts.into_resume()),
        });
        self.reports.extend(lost);
        self.settle(call, |writer| writer.raw(&text), out);
        // Other dialects have no place for the commands in the answer.
        if let Some(commands) = commands {
            self.say(&id, &SessionUpdate::AvailableCommands(CommandsUpdate::new(commands)), None, out);
        }
    }

    /// Shows modes as an option or an option as modes, and leaves out what the client does not understand.
    #[inline]
    fn present(&mut self, id: &SessionId, parts: &mut Parts) {
        let (client, agent) = self.both();
        match (agent, client) {
            (Dialect::V1, _) => {
                let Some(modes) = parts.modes.take() else { return };
                let options = parts.config_options.take().unwrap_or_default();
                let modes = modes::as_option(modes, options.clone());
                parts.config_options = Some(modes.as_options().unwrap_or(options));
                self.session(id).modes = modes;
            }
            (_, Dialect::V1) => {
                let Some(options) = &mut parts.config_options else { return };
                if let Some(option) = modes::mode_option(options) {
                    parts.modes = modes::modes_of(option);
                    self.session(id).modes = Modes::FromOption(option.id.clone());
                }
                self.understood_options(options);
            }
            _ => {}
        }
    }

    /// Leaves out the options that a v1 client does not understand.
    #[inline]
    pub(super) fn understood_options(&mut self, options: &mut Vec<ConfigOption>) {
        let offers = self.client_capabilities.session.config_options.as_ref();
        let knows_switches = offers.is_some_and(|offers| offers.boolean.is_some());
        let all = options.len();
        options.retain(|option| match option.kind {
            ConfigKind::Select(_) => true,
            ConfigKind::Boolean(_) => knows_switches,
            ConfigKind::Other(_) => false,
        });
        if options.len() < all {
            self.report("configOptions.type");
        }
    }

    /// Lists the sessions that were opened through us, for an agent that cannot list its own.
    #[inline]
    pub(super) fn list(&mut self, call: Call, request: &ListSessionsRequest, out: &mut Out<'_>) {
        let mut sessions = Vec::new();
        for (id, session) in &self.sessions {
            let Some(cwd) = &session.cwd else { continue };
            if session.is_muted || request.cwd.as_ref().is_some_and(|wanted| wanted != cwd) {
                continue;
            }
            sessions.push(SessionInfo { title: session.title.clone(), ..SessionInfo::new(id.clone(), cwd.as_str()) });
        }
        sessions.sort_by(|one, other| one.session_id.cmp(&other.session_id));
        let response = ListSessionsResponse::new(sessions);
        self.settle(call, |writer| writer.value(&response), out);
    }

    #[inline]
    pub(super) fn close(&mut self, call: Call, request: CloseSessionRequest, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let id = request.session_id.clone();
        let session = self.agent_capabilities.session.as_ref();
        let is_offered = agent == Dialect::V2 || session.is_some_and(|session| session.close.is_some());
        let queued: Vec<Call> = self.session(&id).queue.drain(..).map(|(call, _)| call).collect();
        for call in queued {
            self.settle_error(call, &ErrorObject::cancelled(), out);
        }
        if is_offered {
            return self.forward(call, &request.into(), Asked::Close(call, id), out);
        }
        self.cancel_session(&CancelNotification::new(id.clone()), out);
        if client == Dialect::V2 && self.session(&id).is_busy {
            self.say(&id, &SessionUpdate::State(StateUpdate::idle(StopReason::Cancelled)), None, out);
        }
        self.closed(&id);
        self.settle(call, |writer| writer.value(&CloseSessionResponse::new()), out);
    }

    /// Nothing more is said of a session.
    #[inline]
    pub(super) fn closed(&mut self, id: &SessionId) {
        let session = self.session(id);
        session.is_muted = true;
        session.cwd = None;
    }
}

#[inline]
fn unknown_place() -> ErrorObject {
    ErrorObject::new(ErrorObject::INVALID_PARAMS, "Invalid params: the history cannot be replayed from there")
}

/// What a session starts with, however it was opened.
#[derive(Debug, Default)]
struct Parts {
    session_id: Option<SessionId>,
    modes: Option<ModeState>,
    models: Option<crate::model::ModelState>,
    config_options: Option<Vec<ConfigOption>>,
    available_commands: Option<Vec<AvailableCommand>>,
    meta: Option<crate::model::Meta>,
}

impl Parts {
    #[inline]
    fn from_new(response: NewSessionResponse) -> Self {
        let NewSessionResponse { session_id, modes, models, config_options, available_commands, meta } = response;
        Parts { session_id: Some(session_id), modes, models, config_options, available_commands, meta }
    }

    #[inline]
    fn from_fork(response: ForkSessionResponse) -> Self {
        let ForkSessionResponse { session_id, modes, config_options, available_commands, meta } = response;
        Parts { session_id: Some(session_id), modes, models: None, config_options, available_commands, meta }
    }

    #[inline]
    fn from_load(response: LoadSessionResponse) -> Self {
        let LoadSessionResponse { modes, models, config_options, meta } = response;
        Parts { modes, models, config_options, meta, ..Parts::default() }
    }

    #[inline]
    fn from_resume(response: ResumeSessionResponse) -> Self {
        let ResumeSessionResponse { modes, models, config_options, available_commands, meta } = response;
        Parts { session_id: None, modes, models, config_options, available_commands, meta }
    }

    #[inline]
    fn into_new(self, session_id: SessionId) -> NewSessionResponse {
        let Parts { modes, models, config_options, available_commands, meta, .. } = self;
        NewSessionResponse { session_id, modes, models, config_options, available_commands, meta }
    }

    #[inline]
    fn into_fork(self, session_id: SessionId) -> ForkSessionResponse {
        let Parts { modes, config_options, available_commands, meta, .. } = self;
        ForkSessionResponse { session_id, modes, config_options, available_commands, meta }
    }

    #[inline]
    fn into_load(self) -> LoadSessionResponse {
        let Parts { modes, models, config_options, meta, .. } = self;
        LoadSessionResponse { modes, models, config_options, meta }
    }

    #[inline]
    fn into_resume(self) -> ResumeSessionResponse {
        let Parts { modes, models, config_options, available_commands, meta, .. } = self;
        ResumeSessionResponse { modes, models, config_options, available_commands, meta }
    }
}
