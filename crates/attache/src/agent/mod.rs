//! The agent's end: answer prompts, and ask the client for what a turn needs.

mod any;
mod ask;
mod context;
mod error;
mod handle;
mod jobs;
mod router;
mod serve;
mod session;
mod shown;
mod terminal;
mod tool;
mod turn;
mod updates;

pub use ask::{Ask, Decision};
pub use context::Context;
pub use error::HandlerError;
pub use handle::{ClientInfo, SessionHandle};
pub use serve::{Server, SharedServer, agent_fn, serve};
pub use shown::{Compaction, ShownTerminal};
pub use terminal::Terminal;
pub use tool::{ToolCall, ToolCallBuilder};
pub use turn::{PendingOption, Turn};

use attache_proto::model::Meta;
use attache_proto::model::auth::{AuthMethod, AuthMethodId};
use attache_proto::model::command::AvailableCommand;
use attache_proto::model::config::{ConfigId, ConfigOption, ConfigSetting};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::initialize::Implementation;
use attache_proto::model::mcp::McpServer;
use attache_proto::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId};
use attache_proto::model::unstable::SystemPrompt;

use crate::{Prompt, Stop};

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
    ) -> impl Future<Output = Result<Opened<Self::Session>, HandlerError>> + Send;
}

/// One conversation.
///
/// Not to be confused with `client::Session`, the handle that a client has.
pub trait Session: Send + 'static {
    /// Answers a prompt. What is to be seen meanwhile is said through the turn.
    ///
    /// When the turn is cancelled this should return soon; what it returns then does not matter. If it has not returned
    /// after [`Limits::cancel_grace`](crate::Limits::cancel_grace), it is dropped.
    fn prompt(&mut self, turn: Turn, prompt: Prompt) -> impl Future<Output = Result<Stop, HandlerError>> + Send;

    /// Sets a configuration option and returns all options as they are now. Called between turns; a running turn may
    /// take the change earlier with [`Turn::option_change`].
    ///
    /// Neither the option nor the value is checked before: refuse what does not exist with
    /// [`ErrorObject::wrong_params`](crate::model::error::ErrorObject::wrong_params).
    fn set_option(
        &mut self,
        option: ConfigId,
        value: ConfigSetting,
    ) -> impl Future<Output = Result<Vec<ConfigOption>, HandlerError>> + Send {
        let _ = (option, value);
        async { Err(ErrorObject::wrong_params("configId: no such option").into()) }
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
    /// Opens an old session. With `replay`, the whole history has to be sent through the handle before this returns.
    fn restore(
        &self,
        session: SessionId,
        request: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> impl Future<Output = Result<Opened<Self::Session>, HandlerError>> + Send;
}

/// An agent that can list its sessions. Registered with [`Server::lists`].
pub trait List: Agent {
    /// One page of sessions.
    fn list(
        &self,
        request: ListSessionsRequest,
    ) -> impl Future<Output = Result<ListSessionsResponse, HandlerError>> + Send;
}

/// An agent that can delete its sessions. Registered with [`Server::deletes`].
pub trait Delete: Agent {
    /// Deletes a session. One that does not exist counts as deleted.
    fn delete(&self, session: SessionId) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

/// An agent that has to know who it works for. Registered with [`Server::authenticates`].
pub trait Authenticate: Agent {
    /// The ways to authenticate.
    fn methods(&self) -> Vec<AuthMethod>;

    /// Authenticates by one of [`methods`](Self::methods). The context can ask the person.
    fn authenticate(
        &self,
        method: AuthMethodId,
        context: Context,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Forgets the authentication.
    fn logout(&self) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

/// An agent that can open a session with the history of another (unstable). Registered with [`Server::forks`].
pub trait Fork: Agent {
    /// Opens a session that begins where `session` is now.
    fn fork(
        &self,
        session: SessionId,
        request: OpenRequest,
        handle: SessionHandle,
    ) -> impl Future<Output = Result<Opened<Self::Session>, HandlerError>> + Send;
}

/// What a client asks for when it opens a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenRequest {
    /// The working directory, an absolute path.
    pub cwd: String,
    /// More directories to work in.
    pub directories: Vec<String>,
    /// MCP servers to connect to.
    pub mcp_servers: Vec<McpServer>,
    /// What the client wants to add to the agent's system prompt, or to use instead of it (unstable). Only agents that
    /// offer this get it: [`SessionCapabilities::system_prompt`](crate::model::capability::SessionCapabilities).
    pub system_prompt: Option<SystemPrompt>,
    /// Custom metadata (`_meta`) of the client.
    pub meta: Option<Meta>,
}

/// A session that was opened. Made of the session itself, with [`From`], where nothing else is to be said.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened<S> {
    /// What holds its state.
    pub session: S,
    /// Its configuration options. One of category `mode` also serves clients that know modes only.
    pub options: Vec<ConfigOption>,
    /// Its slash commands.
    pub commands: Vec<AvailableCommand>,
    /// Custom metadata (`_meta`) for the client.
    pub meta: Option<Meta>,
}

impl<S> Opened<S> {
    /// Sets the configuration options.
    #[must_use]
    pub fn options(mut self, options: Vec<ConfigOption>) -> Self {
        self.options = options;
        self
    }

    /// Sets the slash commands.
    #[must_use]
    pub fn commands(mut self, commands: Vec<AvailableCommand>) -> Self {
        self.commands = commands;
        self
    }

    /// Adds custom metadata (`_meta`) for the client.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

impl<S> From<S> for Opened<S> {
    fn from(session: S) -> Self {
        Opened { session, options: Vec::new(), commands: Vec::new(), meta: None }
    }
}
