//! Serving: from an agent to a running conversation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use attache_proto::conversation::Offer;
use attache_proto::json::{RawJson, Reader};
use attache_proto::method::{Method, Notification, Request};
use attache_proto::model::auth::{
    AuthMethod, AuthenticateRequest, AuthenticateResponse, LogoutRequest, LogoutResponse,
};
use attache_proto::model::capability::{AgentCapabilities, Capability, SessionCapabilities};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::initialize::Implementation;
use attache_proto::model::session::{DeleteSessionRequest, DeleteSessionResponse, ListSessionsRequest, SessionId};
use attache_proto::{Dialect, Encode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::any::AnySession;
use super::jobs::run;
use super::router::Decoder;
use super::{
    Agent, Authenticate, Context, Delete, Fork, HandlerError, List, OpenRequest, Opened, Restore, Session,
    SessionHandle, Turn,
};
use crate::link::{BoxFuture, Options};
use crate::transport::Transport;
use crate::{Error, Prompt, Stop};

type OpenResult = Result<Opened<AnySession>, HandlerError>;
type Opener = Box<dyn Fn(OpenRequest, SessionHandle) -> BoxFuture<'static, OpenResult> + Send + Sync>;
type Restorer =
    Box<dyn Fn(SessionId, OpenRequest, bool, SessionHandle) -> BoxFuture<'static, OpenResult> + Send + Sync>;
type Forker = Box<dyn Fn(SessionId, OpenRequest, SessionHandle) -> BoxFuture<'static, OpenResult> + Send + Sync>;
/// A result on its way to the client, still to be said in its dialect.
pub(super) type BoxedResponse = Box<dyn Encode + Send + Sync>;
type Handler =
    Box<dyn Fn(&str, Dialect, Context) -> BoxFuture<'static, Result<BoxedResponse, HandlerError>> + Send + Sync>;
type NoticeHandler = Box<dyn Fn(&str, Dialect, Context) -> BoxFuture<'static, Result<(), HandlerError>> + Send + Sync>;
type Extension =
    Box<dyn Fn(Option<RawJson>, Context) -> BoxFuture<'static, Result<RawJson, HandlerError>> + Send + Sync>;

/// Prepares to serve an agent. What it offers follows from what is registered.
///
/// ```no_run
/// use attache::{Prompt, Stop, Turn};
///
/// # async fn example() -> Result<(), attache::Error> {
/// attache::serve(attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
///     turn.text(prompt.text()).await?;
///     Ok(Stop::EndTurn)
/// }))
/// .stdio()
/// .await
/// # }
/// ```
pub fn serve<A: Agent>(agent: A) -> Server<A> {
    let info = agent.info();
    let mut session = SessionCapabilities::new();
    session.close = Some(Capability::new());
    session.mcp.stdio = Some(Capability::new());
    let agent = Arc::new(agent);
    let opening = agent.clone();
    let opener: Opener = Box::new(move |request, handle| {
        let agent = opening.clone();
        Box::pin(async move { agent.open(request, handle).await.map(AnySession::opened) })
    });
    let serving = Serving {
        info,
        capabilities: AgentCapabilities::new().session(session),
        auth_methods: Vec::new(),
        opener,
        restorer: None,
        forker: None,
        handlers: HashMap::new(),
        notice_handlers: HashMap::new(),
        extensions: HashMap::new(),
    };
    Server { agent, serving, options: Options::default() }
}

/// An agent made of one function that answers prompts.
///
/// An async closure cannot hold state here. A closure that makes a future can:
///
/// ```
/// use attache::{Prompt, Stop, Turn};
///
/// let greeting = String::from("Hello");
/// let agent = attache::agent_fn("greeter", "1.0", move |turn: Turn, prompt: Prompt| {
///     let greeting = greeting.clone();
///     async move {
///         turn.text(format!("{greeting}, {}", prompt.text())).await?;
///         Ok(Stop::EndTurn)
///     }
/// });
/// # let _ = attache::serve(agent);
/// ```
pub fn agent_fn<F, W>(name: &str, version: &str, prompt: F) -> impl Agent
where
    F: Fn(Turn, Prompt) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<Stop, HandlerError>> + Send + 'static,
{
    FnAgent { info: Implementation::new(name, version), prompt }
}

struct FnAgent<F> {
    info: Implementation,
    prompt: F,
}

struct FnSession<F>(F);

impl<F, W> Agent for FnAgent<F>
where
    F: Fn(Turn, Prompt) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<Stop, HandlerError>> + Send + 'static,
{
    type Session = FnSession<F>;

    fn info(&self) -> Implementation {
        self.info.clone()
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<FnSession<F>>, HandlerError> {
        Ok(FnSession(self.prompt.clone()).into())
    }
}

impl<F, W> Session for FnSession<F>
where
    F: Fn(Turn, Prompt) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<Stop, HandlerError>> + Send + 'static,
{
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        (self.0)(turn, prompt).await
    }
}

/// An agent that is about to be served. Made by [`serve`].
#[must_use = "nothing is served until `stdio` or `connect`"]
pub struct Server<A: Agent> {
    agent: Arc<A>,
    serving: Serving,
    options: Options,
}

/// What is served, without the type of the agent: so all that serves is compiled here, once, and not for every agent.
pub(super) struct Serving {
    info: Implementation,
    capabilities: AgentCapabilities,
    auth_methods: Vec<AuthMethod>,
    pub(super) opener: Opener,
    pub(super) restorer: Option<Restorer>,
    pub(super) forker: Option<Forker>,
    /// What serves requests that open no session, by method.
    pub(super) handlers: HashMap<Method, Handler>,
    /// What serves notifications, by method.
    pub(super) notice_handlers: HashMap<Method, NoticeHandler>,
    pub(super) extensions: HashMap<String, Extension>,
}

impl<A: Agent> Server<A> {
    /// Offers to open old sessions, with and without their history.
    ///
    /// Version 2 requires the method, so there an agent that does not register this answers with "Session not found", unless
    /// the session is still open and its history is not wanted.
    pub fn restores(mut self) -> Self
    where
        A: Restore,
    {
        let session = self.serving.session();
        session.load = Some(Capability::new());
        session.resume = Some(Capability::new());
        let agent = self.agent.clone();
        self.serving.restorer = Some(Box::new(move |session, request, replay, handle| {
            let agent = agent.clone();
            Box::pin(async move { agent.restore(session, request, replay, handle).await.map(AnySession::opened) })
        }));
        self
    }

    /// Offers to open a session with the history of another (unstable).
    pub fn forks(mut self) -> Self
    where
        A: Fork,
    {
        self.serving.session().fork = Some(Capability::new());
        let agent = self.agent.clone();
        self.serving.forker = Some(Box::new(move |session, request, handle| {
            let agent = agent.clone();
            Box::pin(async move { agent.fork(session, request, handle).await.map(AnySession::opened) })
        }));
        self
    }

    /// Offers to list sessions.
    ///
    /// Version 2 requires the method, so there an agent that does not register this answers with the sessions that are open.
    pub fn lists(self) -> Self
    where
        A: List,
    {
        self.handles(async |agent: Arc<A>, request: ListSessionsRequest, _| agent.list(request).await)
    }

    /// Offers to delete sessions.
    pub fn deletes(self) -> Self
    where
        A: Delete,
    {
        self.handles(async |agent: Arc<A>, request: DeleteSessionRequest, _| {
            agent.delete(request.session_id).await.map(|()| DeleteSessionResponse::new())
        })
    }

    /// Offers to authenticate, and to forget it.
    pub fn authenticates(mut self) -> Self
    where
        A: Authenticate,
    {
        self.serving.auth_methods = self.agent.methods();
        self.handles(async |agent: Arc<A>, request: AuthenticateRequest, context| {
            let known = agent.methods().iter().any(|method| method.id().as_ref() == Some(&request.method_id));
            if !known {
                return Err(ErrorObject::wrong_params("methodId: no such authentication method").into());
            }
            agent.authenticate(request.method_id, context).await.map(|()| AuthenticateResponse::new())
        })
        .handles(async |agent: Arc<A>, _: LogoutRequest, _| agent.logout().await.map(|()| LogoutResponse::new()))
    }

    /// Serves a request of the protocol that opens no session and has no method of its own on `Server`, such as the
    /// unstable ones. What is offered to clients follows.
    ///
    /// ```no_run
    /// use attache::model::unstable::{SetTitleRequest, SetTitleResponse};
    /// # fn example<A: attache::agent::Agent>(server: attache::agent::Server<A>) -> attache::agent::Server<A> {
    /// server.handles(async |_agent, request: SetTitleRequest, _context| Ok(SetTitleResponse::new(request.title)))
    /// # }
    /// ```
    pub fn handles<Q, W>(mut self, serve: impl Fn(Arc<A>, Q, Context) -> W + Send + Sync + 'static) -> Self
    where
        Q: Request + Send + 'static,
        Q::Response: Send + Sync + 'static,
        W: Future<Output = Result<Q::Response, HandlerError>> + Send + 'static,
    {
        self.serving.offer(Q::METHOD);
        let agent = self.agent.clone();
        self.serving.handlers.insert(
            Q::METHOD,
            Box::new(move |params, dialect, context| {
                let request = Reader::new(params, dialect).decode::<Q>();
                let work = request.map(|request| serve(agent.clone(), request, context));
                Box::pin(async move {
                    match work {
                        Ok(work) => work.await.map(|response| Box::new(response) as BoxedResponse),
                        Err(error) => Err(ErrorObject::invalid_params(&error).into()),
                    }
                })
            }),
        );
        self
    }

    /// Serves a notification of the protocol that has no method of its own on `Server`: messages of an MCP server of the client's
    /// (unstable), and of a proxy's neighbours. One is served after the other, in the order they come.
    pub fn handles_notification<N, W>(mut self, serve: impl Fn(Arc<A>, N, Context) -> W + Send + Sync + 'static) -> Self
    where
        N: Notification + Send + 'static,
        W: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        self.serving.offer(N::METHOD);
        let agent = self.agent.clone();
        self.serving.notice_handlers.insert(
            N::METHOD,
            Box::new(move |params, dialect, context| {
                let notification = Reader::new(params, dialect).decode::<N>();
                let work = notification.map(|notification| serve(agent.clone(), notification, context));
                Box::pin(async move {
                    match work {
                        Ok(work) => work.await,
                        Err(error) => Err(ErrorObject::invalid_params(&error).into()),
                    }
                })
            }),
        );
        self
    }

    /// Changes what sessions offer where only the agent can know: images in prompts, MCP over HTTP and the like.
    pub fn sessions(mut self, change: impl FnOnce(&mut SessionCapabilities)) -> Self {
        change(self.serving.session());
        self
    }

    /// Changes anything about what is offered, such as `_meta` for capabilities of your own.
    pub fn capabilities(mut self, change: impl FnOnce(&mut AgentCapabilities)) -> Self {
        change(&mut self.serving.capabilities);
        self
    }

    /// Serves an extension method, whose name begins with `_`, with types of your own. Needs the feature `serde`.
    ///
    /// ```no_run
    /// # fn example<A: attache::agent::Agent>(server: attache::agent::Server<A>) -> attache::agent::Server<A> {
    /// server.extension("_my/sum", async |numbers: Vec<i64>, _context| Ok(numbers.iter().sum::<i64>()))
    /// # }
    /// ```
    #[cfg(feature = "serde")]
    pub fn extension<P, T, W>(mut self, method: &str, serve: impl Fn(P, Context) -> W + Send + Sync + 'static) -> Self
    where
        P: serde::de::DeserializeOwned + Send,
        T: serde::Serialize,
        W: Future<Output = Result<T, HandlerError>> + Send + 'static,
    {
        let serve: Extension = Box::new(move |params, context| {
            let params = serde_json::from_str::<P>(params.as_ref().map_or("null", RawJson::as_str));
            let work = params.map(|params| serve(params, context));
            Box::pin(async move {
                let Ok(work) = work else {
                    return Err(ErrorObject::wrong_params("the params are not as expected").into());
                };
                Ok(RawJson::from_value(&work.await?)?)
            })
        });
        self.serving.extensions.insert(method.into(), serve);
        self
    }

    crate::link::connection_settings!("client");

    /// Serves on the process's own stdin and stdout until the client closes them. Needs a tokio runtime with IO and time
    /// enabled.
    ///
    /// The real stdout is kept for the wire alone: whatever else this process prints goes to stderr.
    pub async fn stdio(self) -> Result<(), Error> {
        let (reader, writer) = crate::stdio::take()
            .map_err(|error| Error::Invalid(format!("cannot serve on stdin and stdout: {error}")))?;
        self.serving.run(self.options, Wire::Bytes(reader, writer)).await
    }

    /// Serves on two streams until the client closes its end. Needs a tokio runtime with time enabled.
    pub async fn connect(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), Error> {
        self.serving.run(self.options, Wire::Bytes(Box::new(reader), Box::new(writer))).await
    }

    /// Serves on a transport that carries whole messages until the client closes its end. Needs a tokio runtime with time
    /// enabled.
    pub async fn over(self, transport: Transport) -> Result<(), Error> {
        self.serving.run(self.options, Wire::Messages(transport)).await
    }

    /// Prepares to serve many connections. They share the agent.
    ///
    /// ```
    /// use attache::{Prompt, Stop, Turn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), attache::Error> {
    /// let agent = attache::agent_fn("echo", "1.0", async |_: Turn, _: Prompt| Ok(Stop::EndTurn));
    /// let server = attache::serve(agent).shared();
    /// for _ in 0..2 {
    ///     let (near, far) = attache::pair();
    ///     tokio::spawn(server.clone().over(far));
    ///     attache::Client::new("test", "1.0").over(near).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn shared(self) -> SharedServer {
        SharedServer { serving: Arc::new(self.serving), options: self.options }
    }
}

/// An agent that is served on many connections. Made by [`Server::shared`].
#[derive(Clone)]
pub struct SharedServer {
    serving: Arc<Serving>,
    options: Options,
}

impl SharedServer {
    /// Serves one more connection, until its client closes its end. Needs a tokio runtime with time enabled.
    pub async fn over(self, transport: Transport) -> Result<(), Error> {
        Box::pin(run(self.serving, self.options, Wire::Messages(transport))).await
    }
}

impl std::fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedServer")
    }
}

/// What a conversation goes over.
pub(super) enum Wire {
    Bytes(Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>),
    Messages(Transport),
}

impl Serving {
    /// Serves until the client closes its end. Boxed here, because a future is compiled where its type is known last.
    fn run(self, options: Options, wire: Wire) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(run(Arc::new(self), options, wire))
    }

    /// Offers what a method stands for.
    fn offer(&mut self, method: Method) {
        let offered = Some(Capability::new());
        match method {
            Method::ListSessions => self.session().list = offered,
            Method::DeleteSession => self.session().delete = offered,
            Method::ArchiveSession | Method::UnarchiveSession => self.session().archive = offered,
            Method::SessionStatus => self.session().status = offered,
            Method::SetTitle => self.session().title = offered,
            Method::Logout => self.capabilities.auth.logout = offered,
            Method::AuthStatus => self.capabilities.auth.status = offered,
            Method::ListProviders | Method::SetProvider | Method::DisableProvider => {
                self.capabilities.providers = offered;
            }
            Method::McpMessage => self.session().mcp.acp = offered,
            _ => {}
        }
    }

    fn session(&mut self) -> &mut SessionCapabilities {
        self.capabilities.session.get_or_insert_with(SessionCapabilities::new)
    }

    /// What has to be known to decode what a client sends.
    pub(super) fn decoder(&self) -> Decoder {
        let offer = Offer {
            info: self.info.clone(),
            capabilities: self.capabilities.clone(),
            auth_methods: self.auth_methods.clone(),
            restores: self.restorer.is_some(),
            forks: self.forker.is_some(),
            methods: self.handlers.keys().copied().collect(),
        };
        let extensions: HashSet<String> = self.extensions.keys().cloned().collect();
        Decoder { offer, extensions, notifications: self.notice_handlers.keys().copied().collect() }
    }
}
