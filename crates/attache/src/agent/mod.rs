//! The agent's end: answer prompts, and ask the client for what a turn needs.

mod any;
mod ask;
mod flag;
mod handle;
mod jobs;
mod router;
mod serve;
mod session;
mod terminal;
mod tool;
mod voice;

pub use ask::{Ask, Decision};
pub use handle::{ClientInfo, SessionHandle, Turn};
pub use serve::{Server, agent_fn, serve};
pub use terminal::Terminal;
pub use tool::ToolCall;

use attache_proto::model::{
    AuthMethod, AuthMethodId, AvailableCommand, ConfigId, ConfigOption, ConfigSetting, ErrorObject, Implementation,
    ListSessionsRequest, ListSessionsResponse, McpServer, Meta, SessionId,
};

use crate::{Error, Prompt, Stop};

/// An agent: opens sessions. What else it can do is said by further traits and registered with the [`Server`].
pub trait Agent: Send + Sync + 'static {
    /// What holds the state of one session.
    type Session: Session;

    /// What the agent calls itself.
    fn info(&self) -> Implementation;

    /// Opens a session. The handle speaks to the client about it.
    fn open(
        &self,
        request: OpenRequest,
        handle: SessionHandle,
    ) -> impl Future<Output = Result<Opened<Self::Session>, Error>> + Send;
}

/// One conversation.
pub trait Session: Send + 'static {
    /// Answers a prompt. What is to be seen meanwhile is said through the turn.
    ///
    /// When the turn is cancelled this should return soon; what it returns then does not matter. If it has not returned
    /// after [`Limits::cancel_grace`](crate::Limits::cancel_grace), it is dropped.
    fn prompt(&mut self, turn: Turn, prompt: Prompt) -> impl Future<Output = Result<Stop, Error>> + Send;

    /// Sets a configuration option and returns all options as they are now. Called between turns; a running turn may
    /// take the change earlier with [`Turn::option_change`].
    fn set_option(
        &mut self,
        option: ConfigId,
        value: ConfigSetting,
    ) -> impl Future<Output = Result<Vec<ConfigOption>, Error>> + Send {
        let _ = (option, value);
        async { Err(Error::Refused(ErrorObject::wrong_params("there is no such option"))) }
    }

    /// The session ends: the client closed it, or the connection ended.
    fn close(self) -> impl Future<Output = ()> + Send
    where
        Self: Sized,
    {
        async {}
    }
}

/// An agent that can open its sessions again. Registered with [`Server::restores`].
pub trait Restore: Agent {
    /// Opens an old session. With `replay`, the whole history has to be told through the handle before this returns.
    fn restore(
        &self,
        session: SessionId,
        request: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> impl Future<Output = Result<Opened<Self::Session>, Error>> + Send;
}

/// An agent that can list its sessions. Registered with [`Server::lists`].
pub trait List: Agent {
    /// One page of sessions.
    fn list(&self, request: ListSessionsRequest) -> impl Future<Output = Result<ListSessionsResponse, Error>> + Send;
}

/// An agent that can delete its sessions. Registered with [`Server::deletes`].
pub trait Delete: Agent {
    /// Deletes a session. One that does not exist counts as deleted.
    fn delete(&self, session: SessionId) -> impl Future<Output = Result<(), Error>> + Send;
}

/// An agent that has to know who it works for. Registered with [`Server::authenticates`].
pub trait Authenticate: Agent {
    /// The ways to authenticate.
    fn methods(&self) -> Vec<AuthMethod>;

    /// Authenticates by one of [`methods`](Self::methods).
    fn authenticate(&self, method: AuthMethodId) -> impl Future<Output = Result<(), Error>> + Send;

    /// Forgets the authentication.
    fn logout(&self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// An agent that can open a session with the history of another (unstable). Registered with [`Server::forks`].
pub trait Fork: Agent {
    /// Opens a session that begins where `session` is now.
    fn fork(
        &self,
        session: SessionId,
        request: OpenRequest,
        handle: SessionHandle,
    ) -> impl Future<Output = Result<Opened<Self::Session>, Error>> + Send;
}

/// What a client asks for when it opens a session.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The working directory, an absolute path.
    pub cwd: String,
    /// More directories to work in.
    pub directories: Vec<String>,
    /// MCP servers to connect to.
    pub mcp_servers: Vec<McpServer>,
    /// Data of the client's own.
    pub meta: Option<Meta>,
}

/// A session that was opened.
#[derive(Debug)]
pub struct Opened<S> {
    /// What holds its state.
    pub session: S,
    /// Its configuration options. One of category `mode` also serves clients that know modes only.
    pub options: Vec<ConfigOption>,
    /// Its slash commands.
    pub commands: Vec<AvailableCommand>,
}

impl<S> From<S> for Opened<S> {
    fn from(session: S) -> Self {
        Opened { session, options: Vec::new(), commands: Vec::new() }
    }
}
