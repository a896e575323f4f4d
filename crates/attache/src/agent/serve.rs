//! Serving: from an agent to a running conversation.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use attache_proto::json::{RawJson, Reader};
use attache_proto::method::{Method, Request};
use attache_proto::model::{
    AgentCapabilities, AuthMethod, AuthenticateRequest, AuthenticateResponse, Capability, DeleteSessionRequest,
    DeleteSessionResponse, ErrorObject, Implementation, ListSessionsRequest, LogoutRequest, LogoutResponse,
    SessionCapabilities, SessionId,
};
use attache_proto::{Dialect, Encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};

use super::any::AnySession;
use super::jobs::run;
use super::router::Features;
use super::{Agent, Authenticate, Delete, Fork, List, OpenRequest, Opened, Restore, Session, SessionHandle, Turn};
use crate::link::Options;
use crate::{Closed, Error, Prompt, Stop};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type OpenResult = Result<Opened<AnySession>, Error>;
type Opener = Box<dyn Fn(OpenRequest, SessionHandle) -> Boxed<OpenResult> + Send + Sync>;
type Restorer = Box<dyn Fn(SessionId, OpenRequest, bool, SessionHandle) -> Boxed<OpenResult> + Send + Sync>;
type Forker = Box<dyn Fn(SessionId, OpenRequest, SessionHandle) -> Boxed<OpenResult> + Send + Sync>;
/// A result on its way to the client, still to be said in its dialect.
pub(super) type Answer = Box<dyn Encode + Send + Sync>;
type Doer = Box<dyn Fn(&str, Dialect) -> Boxed<Result<Answer, Error>> + Send + Sync>;
type Extension = Box<dyn Fn(Option<RawJson>) -> Boxed<Result<RawJson, ErrorObject>> + Send + Sync>;

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
        capabilities: AgentCapabilities { session: Some(session), ..AgentCapabilities::new() },
        auth_methods: Vec::new(),
        opener,
        restorer: None,
        forker: None,
        doers: HashMap::new(),
        extensions: HashMap::new(),
    };
    Server { agent, serving, options: Options::default() }
}

/// An agent made of one function that answers prompts.
pub fn agent_fn<F, W>(name: &str, version: &str, prompt: F) -> impl Agent
where
    F: Fn(Turn, Prompt) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<Stop, Error>> + Send + 'static,
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
    W: Future<Output = Result<Stop, Error>> + Send + 'static,
{
    type Session = FnSession<F>;

    fn info(&self) -> Implementation {
        self.info.clone()
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<FnSession<F>>, Error> {
        Ok(FnSession(self.prompt.clone()).into())
    }
}

impl<F, W> Session for FnSession<F>
where
    F: Fn(Turn, Prompt) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<Stop, Error>> + Send + 'static,
{
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, Error> {
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
    /// What is done for requests that open no session, by method.
    pub(super) doers: HashMap<Method, Doer>,
    pub(super) extensions: HashMap<String, Extension>,
}

impl<A: Agent> Server<A> {
    /// Offers to open old sessions, with and without their history.
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
    pub fn lists(self) -> Self
    where
        A: List,
    {
        self.handles(async |agent: Arc<A>, request: ListSessionsRequest| agent.list(request).await)
    }

    /// Offers to delete sessions.
    pub fn deletes(self) -> Self
    where
        A: Delete,
    {
        self.handles(async |agent: Arc<A>, request: DeleteSessionRequest| {
            agent.delete(request.session_id).await.map(|()| DeleteSessionResponse::new())
        })
    }

    /// Offers to authenticate, and to forget it.
    pub fn authenticates(mut self) -> Self
    where
        A: Authenticate,
    {
        self.serving.auth_methods = self.agent.methods();
        self.handles(async |agent: Arc<A>, request: AuthenticateRequest| {
            let known = agent.methods().iter().any(|method| method.id().as_ref() == Some(&request.method_id));
            if !known {
                return Err(Error::Refused(ErrorObject::wrong_params(
                    "methodId: there is no such way to authenticate",
                )));
            }
            agent.authenticate(request.method_id).await.map(|()| AuthenticateResponse::new())
        })
        .handles(async |agent: Arc<A>, _: LogoutRequest| agent.logout().await.map(|()| LogoutResponse::new()))
    }

    /// Serves a request of the protocol that opens no session and has no word of its own here, such as the unstable
    /// ones. What is offered to clients follows.
    ///
    /// ```no_run
    /// use attache::model::unstable::{SetTitleRequest, SetTitleResponse};
    /// # fn example<A: attache::agent::Agent>(server: attache::agent::Server<A>) -> attache::agent::Server<A> {
    /// server.handles(async |_agent, request: SetTitleRequest| Ok(SetTitleResponse::new(request.title)))
    /// # }
    /// ```
    pub fn handles<Q, W>(mut self, serve: impl Fn(Arc<A>, Q) -> W + Send + Sync + 'static) -> Self
    where
        Q: Request + Send + 'static,
        Q::Response: Send + Sync + 'static,
        W: Future<Output = Result<Q::Response, Error>> + Send + 'static,
    {
        self.serving.offer(Q::METHOD);
        let agent = self.agent.clone();
        self.serving.doers.insert(
            Q::METHOD,
            Box::new(move |params, dialect| {
                let work = Reader::new(params, dialect).decode::<Q>().map(|request| serve(agent.clone(), request));
                Box::pin(async move {
                    match work {
                        Ok(work) => work.await.map(|response| Box::new(response) as Answer),
                        Err(error) => Err(Error::Refused(ErrorObject::invalid_params(&error))),
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

    /// Serves an extension method, whose name begins with `_`, with types of your own.
    pub fn extension<P, T, W>(mut self, method: &str, serve: impl Fn(P) -> W + Send + Sync + 'static) -> Self
    where
        P: DeserializeOwned + Send,
        T: Serialize,
        W: Future<Output = Result<T, ErrorObject>> + Send + 'static,
    {
        let serve: Extension = Box::new(move |params| {
            let params = serde_json::from_str::<P>(params.as_ref().map_or("null", RawJson::as_str));
            let work = params.map(&serve);
            Box::pin(async move {
                let Ok(work) = work else {
                    return Err(ErrorObject::wrong_params("the params are not as expected"));
                };
                RawJson::from_value(&work.await?).map_err(|_| ErrorObject::internal("Internal error"))
            })
        });
        self.serving.extensions.insert(method.into(), serve);
        self
    }

    crate::link::connection_settings!("client");

    /// Serves on the process's own stdin and stdout until the client closes them.
    ///
    /// The real stdout is kept for the wire alone: whatever else this process prints goes to stderr.
    pub async fn stdio(self) -> Result<(), Error> {
        let (reader, writer) = crate::stdio::take().map_err(|error| Error::Closed(Closed::Io(error.kind())))?;
        self.serving.run(self.options, reader, writer).await
    }

    /// Serves on two streams until the client closes its end.
    pub async fn connect(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), Error> {
        self.serving.run(self.options, Box::new(reader), Box::new(writer)).await
    }
}

impl Serving {
    /// Serves until the client closes its end. Boxed here, because a future is compiled where its type is known last.
    fn run(
        self,
        options: Options,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> Boxed<Result<(), Error>> {
        Box::pin(run(self, options, reader, writer))
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
            _ => {}
        }
    }

    fn session(&mut self) -> &mut SessionCapabilities {
        self.capabilities.session.get_or_insert_with(SessionCapabilities::new)
    }

    /// What the router has to know.
    pub(super) fn features(&self) -> Features {
        Features {
            info: self.info.clone(),
            capabilities: self.capabilities.clone(),
            auth_methods: self.auth_methods.clone(),
            restores: self.restorer.is_some(),
            forks: self.forker.is_some(),
            methods: self.doers.keys().copied().collect(),
            extensions: self.extensions.keys().cloned().collect(),
        }
    }
}
