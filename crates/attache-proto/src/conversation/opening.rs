//! Opening a session: one request and one answer, whatever the dialect calls them.

use super::options::SessionOptions;
use crate::Dialect;
use crate::json::{DecodeError, Writer};
use crate::method::{ClientRequest, Method, decode_result};
use crate::model::Meta;
use crate::model::capability::SessionCapabilities;
use crate::model::command::AvailableCommand;
use crate::model::config::ConfigOption;
use crate::model::error::ErrorObject;
use crate::model::mcp::McpServer;
use crate::model::session::{
    LoadSessionRequest, LoadSessionResponse, ModeState, ModelState, NewSessionRequest, NewSessionResponse, ReplayFrom,
    ResumeSessionRequest, ResumeSessionResponse, SessionId,
};
use crate::model::unstable::{ForkSessionRequest, ForkSessionResponse, SystemPrompt};

/// How a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenKind {
    /// A new one.
    New,
    /// One that there was.
    Restore {
        /// Which.
        session: SessionId,
        /// Whether its history is sent again.
        replay: bool,
    },
    /// A new one with the history of another (unstable).
    Fork {
        /// The other.
        from: SessionId,
    },
}

/// A request to open a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// How.
    pub kind: OpenKind,
    /// The working directory, absolute.
    pub cwd: String,
    /// More directories to work in, absolute.
    pub additional_directories: Vec<String>,
    /// MCP servers to connect to.
    pub mcp_servers: Vec<McpServer>,
    /// What to add to the agent's system prompt, or to use instead of it (unstable).
    pub system_prompt: Option<SystemPrompt>,
    /// Custom metadata (`_meta`) of the client.
    pub meta: Option<Meta>,
}

impl Opening {
    /// What a client asks for; `None` when the request opens no session.
    pub fn from_request(request: ClientRequest) -> Option<Result<Self, ErrorObject>> {
        Some(Ok(match request {
            ClientRequest::NewSession(request) => {
                let NewSessionRequest { cwd, additional_directories, mcp_servers, system_prompt, meta } = request;
                Opening { kind: OpenKind::New, cwd, additional_directories, mcp_servers, system_prompt, meta }
            }
            ClientRequest::LoadSession(request) => {
                let LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, meta } =
                    request;
                let kind = OpenKind::Restore { session: session_id, replay: true };
                Opening { kind, cwd, additional_directories, mcp_servers, system_prompt, meta }
            }
            ClientRequest::ResumeSession(request) => {
                let ResumeSessionRequest {
                    session_id,
                    cwd,
                    additional_directories,
                    mcp_servers,
                    replay_from,
                    system_prompt,
                    meta,
                } = request;
                let replay = match replay_from {
                    None => false,
                    Some(ReplayFrom::Start(_)) => true,
                    Some(_) => return Some(Err(ErrorObject::wrong_params("replayFrom: cannot replay from there"))),
                };
                let kind = OpenKind::Restore { session: session_id, replay };
                Opening { kind, cwd, additional_directories, mcp_servers, system_prompt, meta }
            }
            ClientRequest::ForkSession(request) => {
                let ForkSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, meta } =
                    request;
                let kind = OpenKind::Fork { from: session_id };
                Opening { kind, cwd, additional_directories, mcp_servers, system_prompt, meta }
            }
            _ => return None,
        }))
    }

    /// What to ask of an agent that does not know `session/resume` although it offers that: to load the session, with a
    /// history that is not wanted. `None` where that is not the same, or not offered either.
    pub fn load_instead(&self, dialect: Dialect, offered: &SessionCapabilities) -> Option<LoadSessionRequest> {
        let OpenKind::Restore { session, replay: false } = &self.kind else { return None };
        if offered.load.is_none() || Method::LoadSession.name(dialect).is_none() {
            return None;
        }
        Some(LoadSessionRequest {
            session_id: session.clone(),
            cwd: self.cwd.clone(),
            additional_directories: self.additional_directories.clone(),
            mcp_servers: self.mcp_servers.clone(),
            system_prompt: self.system_prompt.clone(),
            meta: self.meta.clone(),
        })
    }

    /// The request that asks an agent for this, and whether the history that comes with it was not asked for. An error
    /// names what the agent does not offer.
    pub fn into_request(
        self,
        dialect: Dialect,
        offered: &SessionCapabilities,
    ) -> Result<(ClientRequest, bool), &'static str> {
        let Opening { kind, cwd, additional_directories, mcp_servers, system_prompt, meta } = self;
        let (session_id, replay) = match kind {
            OpenKind::New => {
                let request = NewSessionRequest { cwd, additional_directories, mcp_servers, system_prompt, meta };
                return Ok((request.into(), false));
            }
            OpenKind::Fork { from } => {
                if offered.fork.is_none() {
                    return Err("forking sessions");
                }
                let request = ForkSessionRequest {
                    session_id: from,
                    cwd,
                    additional_directories,
                    mcp_servers,
                    system_prompt,
                    meta,
                };
                return Ok((request.into(), false));
            }
            OpenKind::Restore { session, replay } => (session, replay),
        };
        let has_load = Method::LoadSession.name(dialect).is_some();
        let resumes = offered.resume.is_some() && !(replay && has_load);
        if resumes {
            let replay_from = replay.then(ReplayFrom::start);
            let request = ResumeSessionRequest {
                session_id,
                cwd,
                additional_directories,
                mcp_servers,
                replay_from,
                system_prompt,
                meta,
            };
            return Ok((request.into(), false));
        }
        if offered.load.is_none() || !has_load {
            return Err(if replay { "loading sessions" } else { "resuming sessions" });
        }
        let request = LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, meta };
        Ok((request.into(), !replay))
    }
}

/// A session that was opened: what it starts with, however that was.
#[derive(Debug, Clone, Default)]
pub struct OpenedSession {
    /// Its id, when the answer names it.
    pub session_id: Option<SessionId>,
    /// Its modes.
    pub modes: Option<ModeState>,
    /// Its models, as early version 1 had them.
    pub models: Option<ModelState>,
    /// Its configuration options.
    pub config_options: Option<Vec<ConfigOption>>,
    /// Its slash commands.
    pub available_commands: Option<Vec<AvailableCommand>>,
    /// Custom metadata (`_meta`) of the agent.
    pub meta: Option<Meta>,
}

impl OpenedSession {
    /// Its options, with its modes and models among them.
    pub fn options(&mut self) -> SessionOptions {
        SessionOptions::new(self.config_options.take(), self.modes.as_ref(), self.models.as_ref())
    }

    /// Reads the answer to the request that opened the session.
    pub fn decode_as(method: Method, result: &str, dialect: Dialect) -> Result<Self, DecodeError> {
        let tolerated = &mut Vec::new();
        match method {
            Method::LoadSession => decode_result::<LoadSessionResponse>(result, dialect, tolerated).map(Self::from),
            Method::ResumeSession => decode_result::<ResumeSessionResponse>(result, dialect, tolerated).map(Self::from),
            Method::ForkSession => decode_result::<ForkSessionResponse>(result, dialect, tolerated).map(Self::from),
            _ => decode_result::<NewSessionResponse>(result, dialect, tolerated).map(Self::from),
        }
    }

    /// Writes the answer to the request that opened the session.
    pub fn encode_as(self, method: Method, id: &SessionId, writer: &mut Writer<'_>) {
        let OpenedSession { modes, models, config_options, available_commands, meta, .. } = self;
        let session_id = id.clone();
        match method {
            Method::LoadSession => writer.value(&LoadSessionResponse { modes, models, config_options, meta }),
            Method::ResumeSession => {
                writer.value(&ResumeSessionResponse { modes, models, config_options, available_commands, meta });
            }
            Method::ForkSession => {
                writer.value(&ForkSessionResponse { session_id, modes, config_options, available_commands, meta });
            }
            _ => writer.value(&NewSessionResponse {
                session_id,
                modes,
                models,
                config_options,
                available_commands,
                meta,
            }),
        }
    }
}

impl From<NewSessionResponse> for OpenedSession {
    fn from(response: NewSessionResponse) -> Self {
        let NewSessionResponse { session_id, modes, models, config_options, available_commands, meta } = response;
        OpenedSession { session_id: Some(session_id), modes, models, config_options, available_commands, meta }
    }
}

impl From<ForkSessionResponse> for OpenedSession {
    fn from(response: ForkSessionResponse) -> Self {
        let ForkSessionResponse { session_id, modes, config_options, available_commands, meta } = response;
        OpenedSession { session_id: Some(session_id), modes, models: None, config_options, available_commands, meta }
    }
}

impl From<LoadSessionResponse> for OpenedSession {
    fn from(response: LoadSessionResponse) -> Self {
        let LoadSessionResponse { modes, models, config_options, meta } = response;
        OpenedSession { modes, models, config_options, meta, ..OpenedSession::default() }
    }
}

impl From<ResumeSessionResponse> for OpenedSession {
    fn from(response: ResumeSessionResponse) -> Self {
        let ResumeSessionResponse { modes, models, config_options, available_commands, meta } = response;
        OpenedSession { session_id: None, modes, models, config_options, available_commands, meta }
    }
}
