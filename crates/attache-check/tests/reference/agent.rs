//! The reference agent: opens, restores, forks, lists and deletes sessions, and logs in and out.

use attache::agent::{
    Agent, Authenticate, Context, Delete, Fork, HandlerError, List, OpenRequest, Opened, Restore, Server, SessionHandle,
};
use attache::model::Meta;
use attache::model::auth::{AgentAuthMethod, AuthMethod, AuthMethodId, TerminalAuthMethod};
use attache::model::capability::Capability;
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::mcp::McpServer;
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo};

use super::session::ReferenceSession;
use super::store::{Kept, Store, commands};

/// An agent that does nothing wrong.
pub(crate) struct ReferenceAgent {
    store: Store,
    needs_login: bool,
}

/// How many sessions a page of the list has.
const PAGE: usize = 2;

/// Prepares to serve the agent with all that it can do. If it needs a login, sessions are refused before.
pub(crate) fn server(store: Store, needs_login: bool) -> Server<ReferenceAgent> {
    attache::serve(ReferenceAgent { store, needs_login })
        .restores()
        .forks()
        .lists()
        .deletes()
        .authenticates()
        .extension("_reference/echo", async |value: serde_json::Value, _| Ok(value))
        .capabilities(|offered| offered.meta = Meta::new("{\"_reference/echo\":{}}").ok())
        .sessions(|session| {
            session.additional_directories = Some(Capability::new());
            session.prompt.image = Some(Capability::new());
            session.prompt.embedded_context = Some(Capability::new());
            session.mcp.http = Some(Capability::new());
        })
}

/// Serves the agent over a stream, until that ends.
pub(crate) fn spawn(store: Store, needs_login: bool) -> tokio::io::DuplexStream {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(server(store, needs_login).on_report(|_| {}).connect(reader, writer));
    near
}

impl ReferenceAgent {
    fn check(&self, request: &OpenRequest) -> Result<(), HandlerError> {
        if self.needs_login && !self.store.lock().is_logged_in {
            return Err(ErrorObject::auth_required(&self.methods()).into());
        }
        if std::iter::once(&request.cwd).chain(&request.directories).any(|path| !path.starts_with('/')) {
            return Err(ErrorObject::wrong_params("cwd: not an absolute path").into());
        }
        let is_served = |server: &McpServer| matches!(server, McpServer::Stdio(_) | McpServer::Http(_));
        match request.mcp_servers.iter().all(is_served) {
            true => Ok(()),
            false => Err(ErrorObject::wrong_params("mcpServers: not such servers").into()),
        }
    }

    /// Opens a session that is kept, with what the client says of it now.
    fn opened(&self, request: OpenRequest, handle: SessionHandle) -> Opened<ReferenceSession> {
        let options = self.store.with(handle.id().as_str(), |kept| {
            kept.cwd = request.cwd;
            kept.directories = request.directories;
            kept.settings.options()
        });
        let session = ReferenceSession { store: self.store.clone(), handle };
        Opened::from(session).options(options).commands(commands())
    }

    fn kept(&self, session: &SessionId) -> Result<Kept, HandlerError> {
        let kept = self.store.lock().sessions.get(session.as_str()).cloned();
        kept.ok_or_else(|| ErrorObject::session_not_found(session).into())
    }
}

impl Agent for ReferenceAgent {
    type Session = ReferenceSession;

    fn info(&self) -> Implementation {
        Implementation::new("reference-agent", "1.0")
    }

    async fn open(
        &self,
        request: OpenRequest,
        handle: SessionHandle,
    ) -> Result<Opened<ReferenceSession>, HandlerError> {
        self.check(&request)?;
        Ok(self.opened(request, handle))
    }
}

impl Restore for ReferenceAgent {
    async fn restore(
        &self,
        session: SessionId,
        request: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> Result<Opened<ReferenceSession>, HandlerError> {
        self.check(&request)?;
        let kept = self.kept(&session)?;
        if replay {
            for update in kept.history {
                handle.update(update).await?;
            }
            if let Some(title) = kept.title {
                handle.title(title).await?;
            }
        }
        Ok(self.opened(request, handle))
    }
}

impl Fork for ReferenceAgent {
    async fn fork(
        &self,
        session: SessionId,
        request: OpenRequest,
        handle: SessionHandle,
    ) -> Result<Opened<ReferenceSession>, HandlerError> {
        self.check(&request)?;
        let kept = self.kept(&session)?;
        self.store.lock().sessions.insert(handle.id().as_str().to_owned(), kept);
        Ok(self.opened(request, handle))
    }
}

impl List for ReferenceAgent {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        let begin = match request.cursor.as_deref() {
            None | Some("") => 0,
            Some(cursor) => cursor.parse().map_err(|_| ErrorObject::wrong_params("cursor: unknown"))?,
        };
        let state = self.store.lock();
        let is_asked = |kept: &Kept| request.cwd.as_ref().is_none_or(|cwd| *cwd == kept.cwd);
        let mut rest = state.sessions.iter().filter(|(_, kept)| is_asked(kept)).skip(begin);
        let sessions: Vec<_> = rest.by_ref().take(PAGE).map(|(id, kept)| info(id, kept)).collect();
        let next = rest.next().map(|_| (begin + PAGE).to_string());
        Ok(ListSessionsResponse::new(sessions).with(|response| response.next_cursor = next))
    }
}

fn info(id: &str, kept: &Kept) -> SessionInfo {
    SessionInfo::new(id, kept.cwd.as_str())
        .additional_directories(kept.directories.clone())
        .updated_at("2026-11-15T09:30:00Z")
        .with(|info| info.title = kept.title.clone())
}

impl Delete for ReferenceAgent {
    async fn delete(&self, session: SessionId) -> Result<(), HandlerError> {
        self.store.lock().sessions.remove(session.as_str());
        Ok(())
    }
}

impl Authenticate for ReferenceAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![
            AgentAuthMethod::new("login", "Log in").into(),
            TerminalAuthMethod::new("console", "Log in on a console").into(),
        ]
    }

    async fn authenticate(&self, method: AuthMethodId, _: Context) -> Result<(), HandlerError> {
        if method.as_str() != "login" {
            return Err(ErrorObject::wrong_params("methodId: not over the protocol").into());
        }
        self.store.lock().is_logged_in = true;
        Ok(())
    }

    async fn logout(&self) -> Result<(), HandlerError> {
        self.store.lock().is_logged_in = false;
        Ok(())
    }
}
