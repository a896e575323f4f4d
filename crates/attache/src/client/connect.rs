//! How a client meets an agent.

#[cfg(feature = "process")]
mod launch;

use std::collections::HashSet;
use std::future::poll_fn;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use attache_proto::Dialect;
use attache_proto::json::{RawJson, Reader, Writer};
use attache_proto::model::{
    AgentCapabilities, AuthMethod, AuthMethodId, AuthenticateRequest, Capability, ClientCapabilities,
    DeleteSessionRequest, ElicitationCapabilities, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LogoutRequest, SessionCapabilities, SessionId,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use super::event::Event;
use super::router::ClientRouter;
use super::session::SessionBuilder;
#[cfg(feature = "process")]
use crate::launch::AgentProcess;
use crate::link::{Link, Options};
use crate::{Closed, Error, ExitStatus};

/// How long what is still to be sent may take when a connection is shut down, and how long an agent may take to leave.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Which version of the protocol a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// The newest that both speak.
    #[default]
    Auto,
    /// Version 1 only.
    V1,
    /// Version 2 as its draft of June 2026 had it.
    V2Draft,
    /// Version 2 only.
    V2,
}

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

    fn elicitation(&mut self) -> &mut ElicitationCapabilities {
        self.capabilities.elicitation.get_or_insert_with(ElicitationCapabilities::new)
    }

    /// Takes requests and notifications of an extension method, whose name begins with `_`.
    pub fn extension(mut self, method: impl Into<String>) -> Self {
        self.extensions.insert(method.into());
        self
    }

    /// Changes what is offered in ways that have no shorter word here.
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

    /// Greets an agent at the other end of two streams.
    pub async fn connect(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Connection, Error> {
        let link = self.open(Box::new(reader), Box::new(writer));
        let answer = self.greet(&link.0).await.map_err(Greeting::into_error)?;
        Ok(Connection::new(link, None, answer))
    }

    fn open(
        &self,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> (Link<ClientRouter>, Driver) {
        let router = ClientRouter::new(self.capabilities.clone(), self.extensions.clone());
        let (link, driver) = Link::new(router, self.options.clone(), reader, writer);
        (link, Driver(Some(tokio::spawn(driver))))
    }

    /// Agrees on a version. See `spec.md` 5.3: the shape of the answer tells the published version 2 from its draft.
    async fn greet(&self, link: &Link<ClientRouter>) -> Result<InitializeResponse, Greeting> {
        let first = match self.protocol {
            Protocol::V1 => Dialect::V1,
            Protocol::V2Draft => Dialect::V2Draft,
            Protocol::V2 | Protocol::Auto => Dialect::V2,
        };
        match self.initialize(link, first).await {
            Ok((dialect, answer)) if dialect.version() == first.version() => Ok(answer),
            Ok((Dialect::V1, answer)) if self.protocol == Protocol::Auto => {
                if !self.needs_version_1_words() {
                    return Ok(answer);
                }
                match self.initialize(link, Dialect::V1).await {
                    Ok((_, answer)) => Ok(answer),
                    Err(Error::Refused(_)) => Err(Greeting::NeedsFreshStart),
                    Err(error) => Err(Greeting::Failed(error)),
                }
            }
            Ok((dialect, _)) => Err(Greeting::Failed(Error::Version { peer: dialect.version() })),
            // Some agents of version 1 refuse what they do not know instead of naming their own version.
            Err(Error::Refused(_)) if self.protocol == Protocol::Auto => match self.initialize(link, Dialect::V1).await
            {
                Ok((Dialect::V1, answer)) => Ok(answer),
                Ok((dialect, _)) => Err(Greeting::Failed(Error::Version { peer: dialect.version() })),
                Err(error) => Err(Greeting::Failed(error)),
            },
            Err(error) => Err(Greeting::Failed(error)),
        }
    }

    /// Whether the first greeting, in the words of version 2, kept something from an agent of version 1.
    fn needs_version_1_words(&self) -> bool {
        self.capabilities != ClientCapabilities::default()
    }

    async fn initialize(
        &self,
        link: &Link<ClientRouter>,
        dialect: Dialect,
    ) -> Result<(Dialect, InitializeResponse), Error> {
        link.with(|_, port| port.peer.set_dialect(dialect));
        let request = InitializeRequest {
            info: Some(self.info.clone()),
            capabilities: self.capabilities.clone(),
            ..InitializeRequest::new(dialect.version())
        };
        // What only version 1 has words for is not offered to others. That is no loss to report, so it is written apart.
        let mut params = Vec::new();
        Writer::new(&mut params, dialect).value(&request);
        let params = String::from_utf8(params).expect("the writer takes strings and adds ASCII");
        let answer = link.call_raw("initialize", |writer| writer.raw(&params)).await?;
        let agreed = answered_dialect(&answer, dialect)?;
        link.with(|_, port| port.peer.set_dialect(agreed));
        Ok((agreed, link.read_answer("initialize", &answer)?))
    }
}

/// The dialect that an agent's answer to `initialize` shows.
fn answered_dialect(answer: &RawJson, asked: Dialect) -> Result<Dialect, Error> {
    let version = answer.get("protocolVersion");
    let version = version.and_then(|version| Reader::new(version.as_str(), asked).decode::<u16>().ok());
    match version {
        Some(1) => Ok(Dialect::V1),
        Some(2) if answer.get("info").is_some() => Ok(Dialect::V2),
        Some(2) if answer.get("agentInfo").is_some() || asked == Dialect::V2Draft => Ok(Dialect::V2Draft),
        Some(2) => {
            let session = answer.get("capabilities").and_then(|capabilities| capabilities.get("session"));
            let is_draft = session.is_some_and(|session| {
                ["load", "list", "resume", "close"].iter().any(|key| session.get(key).is_some())
            });
            Ok(if is_draft { Dialect::V2Draft } else { Dialect::V2 })
        }
        Some(peer) => Err(Error::Version { peer }),
        None => {
            let error = attache_proto::json::DecodeError::new(attache_proto::json::Reason::Missing);
            Err(Error::BadAnswer { method: "initialize", error: error.in_field("protocolVersion") })
        }
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
        let offered = match self.dialect() {
            Dialect::V2 => !self.auth_methods().is_empty(),
            _ => self.capabilities().auth.logout.is_some(),
        };
        if !offered {
            return Err(Error::NotOffered("logging out"));
        }
        self.call(&LogoutRequest::new()).await.map(|_| ())
    }

    /// One page of the sessions that the agent keeps.
    pub async fn list_sessions(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        if self.dialect() != Dialect::V2 && self.0.session_capabilities().list.is_none() {
            return Err(Error::NotOffered("listing sessions"));
        }
        self.call(request).await
    }

    /// Deletes a session that the agent keeps.
    pub async fn delete_session(&self, session: impl Into<SessionId>) -> Result<(), Error> {
        if self.0.session_capabilities().delete.is_none() {
            return Err(Error::NotOffered("deleting sessions"));
        }
        self.call(&DeleteSessionRequest::new(session)).await.map(|_| ())
    }

    /// The next event that belongs to no session. Waits until there is one.
    pub async fn next(&self) -> Result<Event, Error> {
        let item = poll_fn(|cx| {
            let taken = self.0.link.with(|router, _| router.take(None, cx.waker()));
            taken.map_or(Poll::Pending, Poll::Ready)
        })
        .await?;
        Ok(super::session::event(&self.0, item))
    }

    crate::link::free_speech!();

    /// Ends the connection: what is still to be sent is sent, then an agent that we launched is given time to leave and is
    /// ended with its processes if it does not. Returns its exit status.
    pub async fn shutdown(self) -> Option<ExitStatus> {
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
    }
}
