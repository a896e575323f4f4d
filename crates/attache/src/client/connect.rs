//! How a client meets an agent.

#[cfg(feature = "process")]
mod launch;

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_proto::Dialect;
use attache_proto::conversation::{self, ClientOffer, Greeted, GreetingError, Protocol};
use attache_proto::json::Writer;
use attache_proto::method::Method;
use attache_proto::model::RawJson;
use attache_proto::model::auth::{AuthMethod, AuthMethodId, AuthenticateRequest, LogoutRequest};
use attache_proto::model::capability::{
    AgentCapabilities, Capability, ClientCapabilities, ElicitationCapabilities, SessionCapabilities,
};
use attache_proto::model::initialize::{Implementation, InitializeRequest, InitializeResponse};
use attache_proto::model::session::{DeleteSessionRequest, ListSessionsRequest, ListSessionsResponse, SessionId};
use attache_proto::model::unstable::{
    ArchiveSessionRequest, AuthStatusRequest, AuthStatusResponse, DisableProviderRequest, ListProvidersRequest,
    ListProvidersResponse, McpMessageNotification, ProxyInitializeRequest, ProxySuccessorNotification,
    ProxySuccessorRequest, SessionStatusRequest, SessionStatusResponse, SetProviderRequest, SetTitleRequest,
    UnarchiveSessionRequest,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use super::event::Event;
use super::router::{ClientRouter, Decoder};
use super::session::{Next, SessionBuilder, next};
use crate::error::check_runtime;
#[cfg(feature = "process")]
use crate::launch::AgentProcess;
use crate::link::{BoxFuture, Link, Options};
use crate::transport::Transport;
use crate::{Closed, Error, ExitStatus};

/// How long what is still to be sent may take when a connection is shut down, and how long an agent may take to leave.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// A client: what it is called, and what it offers to agents.
///
/// ```no_run
/// # async fn example() -> Result<(), attache::Error> {
/// use attache::{Client, Event};
///
/// let agent = Client::new("my-editor", "1.0").launch(["gemini", "--acp"]).await?;
/// let session = agent.session("/home/me/project").open().await?;
/// let mut turn = session.prompt("fix the failing test").await?;
/// while let Some(event) = turn.next().await? {
///     match event {
///         Event::Update(update) => println!("{update:?}"),
///         Event::Permission(ask) => ask.allow_once().await?,
///         other => other.decline().await?,
///     }
/// }
/// println!("{:?}", turn.stop());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    info: Implementation,
    capabilities: ClientCapabilities,
    extensions: HashSet<String>,
    /// Methods that are served beside those that a capability stands for.
    methods: HashSet<Method>,
    protocol: Protocol,
    options: Options,
    #[cfg(feature = "process")]
    launching: launch::Settings,
}

impl Client {
    /// A client that offers nothing but to answer permission requests.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Client {
            info: Implementation::new(name, version),
            capabilities: ClientCapabilities::default(),
            extensions: HashSet::new(),
            methods: HashSet::new(),
            protocol: Protocol::Auto,
            options: Options::default(),
            #[cfg(feature = "process")]
            launching: launch::Settings::default(),
        }
    }

    /// Offers to read files: [`Event::ReadTextFile`] will come.
    pub fn read_files(mut self) -> Self {
        self.capabilities.fs.read_text_file = true;
        self
    }

    /// Offers to write files: [`Event::WriteTextFile`] will come.
    pub fn write_files(mut self) -> Self {
        self.capabilities.fs.write_text_file = true;
        self
    }

    /// Offers to run commands: the five terminal events will come.
    pub fn terminals(mut self) -> Self {
        self.capabilities.terminal = true;
        self
    }

    /// Offers to show forms: [`Event::Elicitation`] will come.
    pub fn forms(mut self) -> Self {
        self.elicitation().form = Some(Capability::new());
        self
    }

    /// Offers to open web pages for the person: [`Event::Elicitation`] will come.
    pub fn urls(mut self) -> Self {
        self.elicitation().url = Some(Capability::new());
        self
    }

    /// Offers to show options that are on or off. Since version 2 every client has to; agents of version 1 leave them out
    /// for one that does not offer it.
    pub fn switches(mut self) -> Self {
        let session = &mut self.capabilities.session;
        session.config_options.get_or_insert_default().boolean = Some(Capability::new());
        self
    }

    fn elicitation(&mut self) -> &mut ElicitationCapabilities {
        self.capabilities.elicitation.get_or_insert_with(ElicitationCapabilities::new)
    }

    /// Takes requests and notifications of an extension method, whose name begins with `_`.
    pub fn extension(mut self, method: impl Into<String>) -> Self {
        self.extensions.insert(method.into());
        self
    }

    /// Serves MCP servers of your own to agents that connect to them through the client (unstable):
    /// [`Event::McpMessage`] will come for each server that was given as [`McpServer::Acp`](crate::model::mcp::McpServer::Acp).
    pub fn mcp(mut self) -> Self {
        self.methods.insert(Method::McpMessage);
        self
    }

    /// Is the conductor of a chain of proxies (unstable): [`Event::ProxySuccessor`] will come from a proxy for the agent
    /// behind it.
    pub fn proxies(mut self) -> Self {
        self.methods.insert(Method::ProxySuccessor);
        self
    }

    /// Changes what is offered in ways that have no method of their own here.
    pub fn capabilities(mut self, change: impl FnOnce(&mut ClientCapabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    /// Asks for one version of the protocol instead of the newest.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    crate::link::connection_settings!("agent");

    /// Greets an agent at the other end of two streams. Needs a tokio runtime with time enabled.
    pub async fn connect(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Connection, Error> {
        check_runtime()?;
        let link = self.open(Box::new(reader), Box::new(writer));
        self.greet_over(link).await
    }

    /// Greets an agent at the other end of a transport that carries whole messages. Needs a tokio runtime with time enabled.
    pub async fn over(self, transport: Transport) -> Result<Connection, Error> {
        check_runtime()?;
        let (link, driver) = Link::over(self.router(), self.decoder(), self.options.clone(), transport);
        self.greet_over((link, Driver(Some(tokio::spawn(driver))))).await
    }

    fn greet_over(self, link: (Link<ClientRouter>, Driver)) -> BoxFuture<'static, Result<Connection, Error>> {
        Box::pin(async move {
            let answer = self.greet(&link.0, false).await.map_err(Greeting::into_error)?;
            Ok(Connection::new(link, None, answer))
        })
    }

    fn open(
        &self,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> (Link<ClientRouter>, Driver) {
        let (link, driver) = Link::new(self.router(), self.decoder(), self.options.clone(), reader, writer);
        (link, Driver(Some(tokio::spawn(driver))))
    }

    fn router(&self) -> ClientRouter {
        ClientRouter::new(self.options.limits.clone())
    }

    fn decoder(&self) -> Decoder {
        let offer = ClientOffer { capabilities: self.capabilities.clone(), methods: self.methods.clone() };
        Decoder { offer, extensions: self.extensions.clone() }
    }

    /// Agrees on a version.
    async fn greet(&self, link: &Link<ClientRouter>, can_restart: bool) -> Result<InitializeResponse, Greeting> {
        let mut greeting = conversation::Greeting::new(self.protocol, &self.capabilities);
        if can_restart {
            greeting = greeting.can_restart();
        }
        loop {
            let answer = match self.initialize(link, greeting.dialect()).await {
                Ok(answer) => Ok(answer),
                Err(Error::Refused(error)) => Err(error),
                Err(Error::Closed(_)) if greeting.is_second() => return Err(Greeting::NeedsFreshStart),
                Err(error) => return Err(Greeting::Failed(error)),
            };
            match greeting.handle_answer(answer.as_ref().map(|answer| answer.as_str()).map_err(Clone::clone)) {
                Greeted::Agreed(dialect, answer) => {
                    link.with(|_, port| port.peer.set_dialect(dialect));
                    return Ok(*answer);
                }
                Greeted::Again(_) => {}
                Greeted::Restart => return Err(Greeting::NeedsFreshStart),
                Greeted::Failed(error) => {
                    return Err(Greeting::Failed(match error {
                        GreetingError::Refused(error) => Error::Refused(error),
                        GreetingError::BadAnswer(error) => Error::BadAnswer { method: "initialize", error },
                        GreetingError::Version(peer) => Error::Version { peer },
                    }));
                }
            }
        }
    }

    async fn initialize(&self, link: &Link<ClientRouter>, dialect: Dialect) -> Result<RawJson, Error> {
        link.with(|_, port| port.peer.set_dialect(dialect));
        let request =
            InitializeRequest::new(dialect.version()).info(self.info.clone()).capabilities(self.capabilities.clone());
        // What only version 1 has words for is not offered to others. That is no loss to report, so it is written apart.
        let mut params = Vec::new();
        Writer::new(&mut params, dialect).value(&request);
        let params = String::from_utf8(params).expect("the writer takes strings and adds ASCII");
        link.call_raw("initialize", &mut |writer| writer.raw(&params)).await
    }
}

/// Why a greeting came to nothing.
enum Greeting {
    Failed(Error),
    /// The agent speaks version 1 and has to be started anew to hear what we offer.
    NeedsFreshStart,
}

impl Greeting {
    fn into_error(self) -> Error {
        match self {
            Greeting::Failed(error) => error,
            Greeting::NeedsFreshStart => Error::Version { peer: 1 },
        }
    }
}

/// The connection's task; it ends with its owner.
#[derive(Debug)]
pub(super) struct Driver(Option<JoinHandle<Closed>>);

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Without the feature `process` there is no launched agent.
#[cfg(not(feature = "process"))]
enum AgentProcess {}

#[cfg(not(feature = "process"))]
impl AgentProcess {
    fn grace(&self) -> Duration {
        match *self {}
    }

    async fn shutdown(self) -> Option<ExitStatus> {
        match self {}
    }
}

/// What all handles to one connection share. When the last is gone, the connection ends and the agent's process with it.
pub(super) struct Shared {
    pub(super) link: Link<ClientRouter>,
    driver: Mutex<Driver>,
    /// The agent, if we launched it.
    agent: Mutex<Option<AgentProcess>>,
    answer: InitializeResponse,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("agent", &self.answer.info).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn session_capabilities(&self) -> SessionCapabilities {
        self.answer.capabilities.session.clone().unwrap_or_default()
    }
}

/// A connection to an agent. Cheap to clone. It lasts as long as any clone or session of it.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Shared>);

impl Connection {
    fn new(
        (link, driver): (Link<ClientRouter>, Driver),
        agent: Option<AgentProcess>,
        answer: InitializeResponse,
    ) -> Self {
        Connection(Arc::new(Shared { link, driver: Mutex::new(driver), agent: Mutex::new(agent), answer }))
    }

    /// What the agent calls itself.
    pub fn info(&self) -> Option<&Implementation> {
        self.0.answer.info.as_ref()
    }

    /// What the agent offers.
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.0.answer.capabilities
    }

    /// The ways to authenticate that the agent offers.
    pub fn auth_methods(&self) -> &[AuthMethod] {
        &self.0.answer.auth_methods
    }

    /// How the two speak.
    pub fn dialect(&self) -> Dialect {
        self.0.link.dialect()
    }

    /// Prepares a session in a working directory, an absolute path.
    pub fn session(&self, cwd: impl AsRef<Path>) -> SessionBuilder {
        SessionBuilder::new(self.0.clone(), cwd.as_ref())
    }

    /// Authenticates by one of [`auth_methods`](Self::auth_methods).
    pub async fn authenticate(&self, method: impl Into<AuthMethodId>) -> Result<(), Error> {
        let method = method.into();
        match self.auth_methods().iter().find(|offered| offered.id().as_ref() == Some(&method)) {
            None => Err(Error::NotOffered("this way to authenticate")),
            Some(AuthMethod::Terminal(_)) => {
                Err(Error::Invalid("this way to authenticate runs in a terminal, not over the protocol".into()))
            }
            Some(_) => self.call(&AuthenticateRequest::new(method)).await.map(|_| ()),
        }
    }

    /// Forgets the authentication.
    pub async fn logout(&self) -> Result<(), Error> {
        self.offered("logging out", self.capabilities().auth.logout.as_ref())?;
        self.call(&LogoutRequest::new()).await.map(|_| ())
    }

    /// Tells who is logged in (unstable).
    pub async fn auth_status(&self) -> Result<AuthStatusResponse, Error> {
        self.offered("reporting who is logged in", self.capabilities().auth.status.as_ref())?;
        self.call(&AuthStatusRequest::new()).await
    }

    /// Lists the providers of language models that the agent knows (unstable).
    pub async fn providers(&self) -> Result<ListProvidersResponse, Error> {
        self.offered("providers", self.capabilities().providers.as_ref())?;
        self.call(&ListProvidersRequest::new()).await
    }

    /// Sets where a provider of language models is (unstable).
    pub async fn set_provider(&self, request: &SetProviderRequest) -> Result<(), Error> {
        self.offered("providers", self.capabilities().providers.as_ref())?;
        self.call(request).await.map(|_| ())
    }

    /// Disables a provider of language models (unstable).
    pub async fn disable_provider(&self, request: &DisableProviderRequest) -> Result<(), Error> {
        self.offered("providers", self.capabilities().providers.as_ref())?;
        self.call(request).await.map(|_| ())
    }

    /// One page of the sessions that the agent keeps. Fails where the agent does not offer that; version 2 requires it of
    /// every agent.
    pub async fn list_sessions(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        self.offered("listing sessions", self.0.session_capabilities().list.as_ref())?;
        self.call(request).await
    }

    /// Deletes a session that the agent keeps.
    pub async fn delete_session(&self, session: impl Into<SessionId>) -> Result<(), Error> {
        self.offered("deleting sessions", self.0.session_capabilities().delete.as_ref())?;
        self.call(&DeleteSessionRequest::new(session)).await.map(|_| ())
    }

    /// Puts a session that the agent keeps into the archive (unstable).
    pub async fn archive_session(&self, session: impl Into<SessionId>) -> Result<(), Error> {
        self.offered("archiving sessions", self.0.session_capabilities().archive.as_ref())?;
        self.call(&ArchiveSessionRequest::new(session)).await.map(|_| ())
    }

    /// Takes a session out of the archive (unstable).
    pub async fn unarchive_session(&self, session: impl Into<SessionId>) -> Result<(), Error> {
        self.offered("archiving sessions", self.0.session_capabilities().archive.as_ref())?;
        self.call(&UnarchiveSessionRequest::new(session)).await.map(|_| ())
    }

    /// Tells whether a session is open, and what it is doing (unstable).
    pub async fn session_status(&self, session: impl Into<SessionId>) -> Result<SessionStatusResponse, Error> {
        self.offered("the status of sessions", self.0.session_capabilities().status.as_ref())?;
        self.call(&SessionStatusRequest::new(session)).await
    }

    /// Gives a session that the agent keeps a title (unstable). Returns the title that it has now.
    pub async fn set_session_title(
        &self,
        session: impl Into<SessionId>,
        title: impl Into<String>,
    ) -> Result<String, Error> {
        self.offered("titles of sessions", self.0.session_capabilities().title.as_ref())?;
        Ok(self.call(&SetTitleRequest::new(session, title)).await?.title)
    }

    /// Sends a message of an MCP server that is served through the client (unstable).
    pub async fn send_mcp(&self, message: &McpMessageNotification) -> Result<(), Error> {
        self.offered("MCP servers through the client", self.0.session_capabilities().mcp.acp.as_ref())?;
        self.notify(message).await
    }

    /// Opens the connection to a proxy, as the conductor of a chain (unstable).
    pub async fn initialize_proxy(&self, request: &ProxyInitializeRequest) -> Result<InitializeResponse, Error> {
        self.call(request).await
    }

    /// Sends a proxy a request of the neighbour behind it (unstable).
    pub async fn call_proxy(&self, request: &ProxySuccessorRequest) -> Result<RawJson, Error> {
        self.call(request).await
    }

    /// Tells a proxy something of the neighbour behind it (unstable).
    pub async fn notify_proxy(&self, notification: &ProxySuccessorNotification) -> Result<(), Error> {
        self.notify(notification).await
    }

    fn offered<T>(&self, what: &'static str, capability: Option<&T>) -> Result<(), Error> {
        capability.map(|_| ()).ok_or(Error::NotOffered(what))
    }

    /// The next event that belongs to no session. Waits until there is one. Cancel safe.
    pub async fn next(&self) -> Result<Event, Error> {
        loop {
            if let Next::Event(event, _) = next(&self.0, None, None).await? {
                return Ok(event);
            }
        }
    }

    /// The events that belong to no session as a stream.
    #[cfg(feature = "stream")]
    pub fn events(&self) -> super::Events {
        super::Events::new(self.0.clone(), None)
    }

    crate::link::untyped_methods!();

    /// Ends the connection: what is still to be sent is sent, then an agent that we launched is given time to leave and is
    /// ended with its processes if it does not. Returns its exit status.
    pub async fn shutdown(self) -> Option<ExitStatus> {
        self.shut_down().await
    }

    fn shut_down(self) -> BoxFuture<'static, Option<ExitStatus>> {
        Box::pin(async move {
            let agent = self.0.agent.lock().unwrap_or_else(PoisonError::into_inner).take();
            let grace = agent.as_ref().map_or(SHUTDOWN_GRACE, AgentProcess::grace);
            self.0.link.close();
            let task = self.0.driver.lock().unwrap_or_else(PoisonError::into_inner).0.take();
            if let Some(mut task) = task
                && tokio::time::timeout(grace, &mut task).await.is_err()
            {
                task.abort();
                let _ = task.await;
            }
            agent?.shutdown().await
        })
    }
}
