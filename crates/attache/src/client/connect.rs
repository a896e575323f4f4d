//! How a client meets an agent.

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
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::event::Event;
use super::router::ClientRouter;
use super::session::SessionBuilder;
use crate::launch::{self, AgentProcess};
use crate::link::{Link, Options};
use crate::process::{Command, ExitStatus};
use crate::{Closed, Error, LaunchCause, LaunchError};

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
    launch_timeout: Option<Duration>,
    shutdown_grace: Duration,
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
            launch_timeout: None,
            shutdown_grace: SHUTDOWN_GRACE,
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

    /// Sets how long a launched agent may take until it has answered `initialize`. Without it there is no limit, because
    /// an agent that is installed when it is first launched takes as long as its download.
    ///
    /// When the time is up, the agent is ended, and [`LaunchError`] has what it has printed so far.
    pub fn launch_timeout(mut self, limit: Duration) -> Self {
        self.launch_timeout = Some(limit);
        self
    }

    /// Sets how long [`Connection::shutdown`] waits for a launched agent to leave by itself, and again after SIGTERM,
    /// before it is killed. It is two seconds unless told otherwise.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// Starts an agent as a process of its own and greets it.
    ///
    /// When it exits later, whatever waits for it fails with [`Closed::AgentExited`].
    pub async fn launch(self, command: impl Into<Command>) -> Result<Connection, Error> {
        let command = command.into();
        let again = (self.protocol == Protocol::Auto).then(|| self.clone());
        let deadline = self.launch_timeout.map(|limit| Instant::now() + limit);
        match self.launch_once(command.clone(), deadline).await {
            // An agent of version 1 that cannot be greeted twice is started once more and greeted in its own version.
            Err(Greeting::NeedsFreshStart) => match again {
                Some(client) => {
                    let launched = client.protocol(Protocol::V1).launch_once(command, deadline).await;
                    launched.map_err(Greeting::into_error)
                }
                None => Err(Error::Version { peer: 1 }),
            },
            other => other.map_err(Greeting::into_error),
        }
    }

    async fn launch_once(self, command: Command, deadline: Option<Instant>) -> Result<Connection, Greeting> {
        let shown = command.to_string();
        let (process, stdin, stdout) = match command.spawn() {
            Ok(started) => started,
            Err(error) => return Err(Greeting::launch_failed(LaunchError::not_started(shown, error))),
        };
        let (exited, exit) = watch::channel(None);
        let (output, input) = launch::pipes(stdout, stdin, exit);
        let link = self.open(Box::new(output), Box::new(input));
        let watched = link.0.clone();
        let agent = AgentProcess::watch(process, exited, move |exit| watched.set_cause(Closed::AgentExited(exit)));
        let greeted = match deadline {
            Some(deadline) => timeout_at(deadline, self.greet(&link.0)).await,
            None => Ok(self.greet(&link.0).await),
        };
        let (cause, exit) = match greeted {
            Ok(Ok(answer)) => return Ok(Connection::new(link, Some((agent, self.shutdown_grace)), answer)),
            Ok(Err(Greeting::Failed(Error::Closed(Closed::AgentExited(exit))))) => {
                (LaunchCause::Exited(exit.status), Some(exit))
            }
            Ok(Err(Greeting::Failed(Error::Closed(_)))) => (LaunchCause::NotAnAgent, None),
            Ok(Err(other)) => return Err(other),
            Err(_) => (LaunchCause::TimedOut(self.launch_timeout.unwrap_or_default()), None),
        };
        let stderr_tail = exit.map_or_else(|| agent.stderr_tail(), |exit| exit.stderr_tail.clone());
        Err(Greeting::launch_failed(LaunchError { command: shown, cause, stdout: link.0.junk(), stderr_tail }))
    }

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
    fn launch_failed(error: LaunchError) -> Self {
        Greeting::Failed(Error::Launch(Arc::new(error)))
    }

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

/// What all handles to one connection share. When the last is gone, the connection ends and the agent's process with it.
pub(super) struct Shared {
    pub(super) link: Link<ClientRouter>,
    driver: Mutex<Driver>,
    /// The agent that we launched, and how long it gets to leave.
    agent: Mutex<Option<(AgentProcess, Duration)>>,
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
        agent: Option<(AgentProcess, Duration)>,
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
        let grace = agent.as_ref().map_or(SHUTDOWN_GRACE, |(_, grace)| *grace);
        self.0.link.close();
        let task = self.0.driver.lock().unwrap_or_else(PoisonError::into_inner).0.take();
        if let Some(mut task) = task
            && tokio::time::timeout(grace, &mut task).await.is_err()
        {
            task.abort();
            let _ = task.await;
        }
        agent?.0.shutdown(grace).await
    }
}
