//! What either end serves: by what it has registered, and by what the dialect has.

use std::collections::HashSet;

use super::greeting::{requested_dialect, understand_client};
use crate::Dialect;
use crate::json::{DecodeError, Reader};
use crate::method::{AgentRequest, ClientRequest, Method};
use crate::model::auth::AuthMethod;
use crate::model::capability::{AgentCapabilities, ClientCapabilities};
use crate::model::content::ContentBlock;
use crate::model::elicitation::ElicitationMode;
use crate::model::error::ErrorObject;
use crate::model::initialize::{Implementation, InitializeRequest, InitializeResponse};
use crate::model::mcp::McpServer;

/// What an agent offers and serves.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What the agent calls itself.
    pub info: Implementation,
    /// What it offers.
    pub capabilities: AgentCapabilities,
    /// The ways to log in.
    pub auth_methods: Vec<AuthMethod>,
    /// Whether it can open its sessions again.
    pub restores: bool,
    /// Whether it can open a session with the history of another.
    pub forks: bool,
    /// Further methods that it serves.
    pub methods: HashSet<Method>,
}

impl From<&InitializeResponse> for Offer {
    /// What an agent said that it offers.
    fn from(response: &InitializeResponse) -> Self {
        let session = response.capabilities.session.as_ref();
        Offer {
            info: response.info.clone().unwrap_or_else(|| Implementation::new("agent", "0")),
            capabilities: response.capabilities.clone(),
            auth_methods: response.auth_methods.clone(),
            restores: session.is_some_and(|session| session.load.is_some() || session.resume.is_some()),
            forks: session.is_some_and(|session| session.fork.is_some()),
            methods: HashSet::new(),
        }
    }
}

impl Offer {
    /// Takes in a client's `initialize`: the dialect, what the client said with what goes without saying in its dialect,
    /// the answer, and what was ignored.
    pub fn handle_initialize(
        &self,
        params: Option<&str>,
        tolerated: &mut Vec<DecodeError>,
    ) -> Result<(Dialect, InitializeRequest, InitializeResponse), DecodeError> {
        let dialect = requested_dialect(params)?;
        let mut reader = Reader::new(params.unwrap_or("{}"), dialect);
        let mut request: InitializeRequest = reader.decode()?;
        tolerated.extend(reader.tolerated());
        understand_client(&mut request, dialect);
        // A login in a terminal is only for clients that can show one.
        let has_terminal = request.capabilities.auth.terminal.is_some();
        let is_for_client = |method: &&AuthMethod| has_terminal || !matches!(method, AuthMethod::Terminal(_));
        let response = InitializeResponse {
            info: Some(self.info.clone()),
            capabilities: self.capabilities.clone(),
            auth_methods: self.auth_methods.iter().filter(is_for_client).cloned().collect(),
            ..InitializeResponse::new(dialect.version())
        };
        Ok((dialect, request, response))
    }

    /// Whether a request is served at all.
    pub fn serves(&self, method: Method, dialect: Dialect) -> bool {
        let is_v2 = dialect == Dialect::V2;
        let is_offered = match method {
            _ if self.methods.contains(&method) => true,
            Method::NewSession | Method::Prompt | Method::CloseSession | Method::SetConfigOption => true,
            Method::SetMode | Method::SetModel | Method::CancelToolCall | Method::CancelTerminal => true,
            Method::LoadSession => self.restores,
            Method::ResumeSession => self.restores || is_v2,
            Method::ForkSession => self.forks,
            Method::ListSessions => is_v2,
            _ => false,
        };
        is_offered && method.name(dialect).is_some()
    }

    /// Whether a request holds only content and servers of kinds that are offered.
    pub fn check(&self, request: &ClientRequest, dialect: Dialect) -> Result<(), ErrorObject> {
        let Some(offered) = &self.capabilities.session else { return Ok(()) };
        let servers = match request {
            ClientRequest::Prompt(request) if request.prompt.is_empty() && dialect == Dialect::V2 => {
                return Err(ErrorObject::wrong_params("prompt: must not be empty"));
            }
            ClientRequest::Prompt(request) => {
                let is_offered = |block: &ContentBlock| match block {
                    ContentBlock::Text(_) | ContentBlock::ResourceLink(_) => true,
                    ContentBlock::Image(_) => offered.prompt.image.is_some(),
                    ContentBlock::Audio(_) => offered.prompt.audio.is_some(),
                    ContentBlock::Resource(_) => offered.prompt.embedded_context.is_some(),
                    _ => false,
                };
                return match request.prompt.iter().all(is_offered) {
                    true => Ok(()),
                    false => Err(ErrorObject::wrong_params("prompt: this kind of content is not supported")),
                };
            }
            ClientRequest::NewSession(request) => &request.mcp_servers,
            ClientRequest::ResumeSession(request) => &request.mcp_servers,
            _ => return Ok(()),
        };
        // Version 1 leaves this to the client, and its clients are not always strict.
        let is_offered = |server: &McpServer| match server {
            McpServer::Stdio(_) => offered.mcp.stdio.is_some(),
            McpServer::Http(_) => offered.mcp.http.is_some(),
            McpServer::Acp(_) => offered.mcp.acp.is_some(),
            _ => false,
        };
        match dialect != Dialect::V2 || servers.iter().all(is_offered) {
            true => Ok(()),
            false => Err(ErrorObject::wrong_params("mcpServers: this kind of server is not supported")),
        }
    }
}

/// What a client serves.
#[derive(Debug, Clone, Default)]
pub struct ClientOffer {
    /// What it offers.
    pub capabilities: ClientCapabilities,
    /// Further methods that it serves.
    pub methods: HashSet<Method>,
}

impl ClientOffer {
    /// Whether a request is served at all. Version 2 has no files and no commands of the client's.
    pub fn serves(&self, method: Method, dialect: Dialect) -> bool {
        let capabilities = &self.capabilities;
        let is_offered = match method {
            Method::RequestPermission => true,
            Method::ReadTextFile => capabilities.fs.read_text_file,
            Method::WriteTextFile => capabilities.fs.write_text_file,
            Method::CreateTerminal
            | Method::TerminalOutput
            | Method::WaitForTerminalExit
            | Method::KillTerminal
            | Method::ReleaseTerminal => capabilities.terminal,
            Method::CreateElicitation => capabilities.elicitation.is_some(),
            method => self.methods.contains(&method),
        };
        is_offered && method.name(dialect).is_some()
    }

    /// Whether a request is of a kind that was offered.
    pub fn check(&self, request: &AgentRequest) -> Result<(), ErrorObject> {
        let AgentRequest::CreateElicitation(request) = request else { return Ok(()) };
        let elicitation = self.capabilities.elicitation.as_ref();
        let is_offered = match &request.mode {
            ElicitationMode::Form(_) => elicitation.is_some_and(|offered| offered.form.is_some()),
            ElicitationMode::Url(_) => elicitation.is_some_and(|offered| offered.url.is_some()),
            _ => false,
        };
        if is_offered {
            Ok(())
        } else {
            Err(ErrorObject::wrong_params("mode: this kind of elicitation is not supported"))
        }
    }
}
