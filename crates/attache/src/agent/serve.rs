//! Serving: from an agent to a running conversation.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use attache_proto::frame::Framing;
use attache_proto::json::RawJson;
use attache_proto::method::ClientRequest;
use attache_proto::model::{
    AgentCapabilities, AuthMethod, AuthenticateResponse, AvailableCommand, Capability, CommandsUpdate, ConfigCategory,
    ConfigKind, ConfigOption, ConfigValue, DeleteSessionResponse, ErrorObject, Implementation, ListSessionsResponse,
    LoadSessionResponse, LogoutResponse, Mode, ModeState, NewSessionResponse, ResumeSessionResponse,
    SessionCapabilities, SessionId, SessionInfo, SessionUpdate, StateUpdate,
};
use attache_proto::rpc::Call;
use attache_proto::{Dialect, Encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::router::{AgentRouter, Features, Job, Next, Work};
use super::session::{catch_panic, internal, run};
use super::{
    Agent, Authenticate, ClientInfo, Delete, List, OpenRequest, Opened, Restore, Session, SessionHandle, Turn,
};
use crate::link::{Link, Options, Port};
use crate::{Closed, Error, Limits, Prompt, Report, Stop};

/// How long answers that are still owed are waited for when the client has closed its end.
const LAST_WORDS: Duration = Duration::from_secs(5);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Restorer<A> =
    Arc<dyn Fn(Arc<A>, SessionId, OpenRequest, bool, SessionHandle) -> Boxed<OpenResult<A>> + Send + Sync>;
type OpenResult<A> = Result<Opened<<A as Agent>::Session>, Error>;
/// A result on its way to the client, still to be said in its dialect.
type Answer = Box<dyn Encode + Send + Sync>;
type Doer<A> = Arc<dyn Fn(Arc<A>, ClientRequest) -> Boxed<Result<Answer, Error>> + Send + Sync>;
type Extension = Arc<dyn Fn(Option<RawJson>) -> Boxed<Result<RawJson, ErrorObject>> + Send + Sync>;

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
    Server {
        agent: Arc::new(agent),
        info,
        session,
        auth_methods: Vec::new(),
        restorer: None,
        lister: None,
        deleter: None,
        authenticator: None,
        extensions: HashMap::new(),
        options: Options::default(),
    }
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
    info: Implementation,
    session: SessionCapabilities,
    auth_methods: Vec<AuthMethod>,
    restorer: Option<Restorer<A>>,
    lister: Option<Doer<A>>,
    deleter: Option<Doer<A>>,
    authenticator: Option<Doer<A>>,
    extensions: HashMap<String, Extension>,
    options: Options,
}

impl<A: Agent> Server<A> {
    /// Offers to open old sessions, with and without their history.
    pub fn restores(mut self) -> Self
    where
        A: Restore,
    {
        self.session.load = Some(Capability::new());
        self.session.resume = Some(Capability::new());
        self.restorer = Some(Arc::new(|agent, session, request, replay, handle| {
            Box::pin(async move { agent.restore(session, request, replay, handle).await })
        }));
        self
    }

    /// Offers to list sessions.
    pub fn lists(mut self) -> Self
    where
        A: List,
    {
        self.session.list = Some(Capability::new());
        self.lister = Some(Arc::new(|agent, request| {
            Box::pin(async move {
                match request {
                    ClientRequest::ListSessions(request) => {
                        let response = agent.list(request).await?;
                        Ok(Box::new(response) as Answer)
                    }
                    _ => Err(internal()),
                }
            })
        }));
        self
    }

    /// Offers to delete sessions.
    pub fn deletes(mut self) -> Self
    where
        A: Delete,
    {
        self.session.delete = Some(Capability::new());
        self.deleter = Some(Arc::new(|agent, request| {
            Box::pin(async move {
                match request {
                    ClientRequest::DeleteSession(request) => agent.delete(request.session_id).await?,
                    _ => return Err(internal()),
                }
                Ok(Box::new(DeleteSessionResponse::new()) as Answer)
            })
        }));
        self
    }

    /// Offers to authenticate, and to forget it.
    pub fn authenticates(mut self) -> Self
    where
        A: Authenticate,
    {
        self.auth_methods = self.agent.methods();
        self.authenticator = Some(Arc::new(|agent, request| {
            Box::pin(async move {
                match request {
                    ClientRequest::Authenticate(request) => {
                        let known =
                            agent.methods().iter().any(|method| method.id().as_ref() == Some(&request.method_id));
                        if !known {
                            let error = ErrorObject::wrong_params("there is no such way to authenticate");
                            return Err(Error::Refused(error));
                        }
                        agent.authenticate(request.method_id).await?;
                        Ok(Box::new(AuthenticateResponse::new()) as Answer)
                    }
                    ClientRequest::Logout(_) => {
                        agent.logout().await?;
                        Ok(Box::new(LogoutResponse::new()) as Answer)
                    }
                    _ => Err(internal()),
                }
            })
        }));
        self
    }

    /// Changes what sessions offer where only the agent can know: images in prompts, MCP over HTTP and the like.
    pub fn sessions(mut self, change: impl FnOnce(&mut SessionCapabilities)) -> Self {
        change(&mut self.session);
        self
    }

    /// Serves an extension method, whose name begins with `_`, with types of your own.
    pub fn extension<P, T, W>(mut self, method: &str, serve: impl Fn(P) -> W + Send + Sync + 'static) -> Self
    where
        P: DeserializeOwned + Send,
        T: Serialize,
        W: Future<Output = Result<T, ErrorObject>> + Send + 'static,
    {
        let serve: Extension = Arc::new(move |params| {
            let params = serde_json::from_str::<P>(params.as_ref().map_or("null", RawJson::as_str));
            let work = params.map(&serve);
            Box::pin(async move {
                let Ok(work) = work else {
                    return Err(ErrorObject::wrong_params("the params are not as expected"));
                };
                RawJson::from_value(&work.await?).map_err(|_| ErrorObject::internal("Internal error"))
            })
        });
        self.extensions.insert(method.into(), serve);
        self
    }

    /// Sets other bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Frames messages in another way than by lines.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.options.framing = Some(framing);
        self
    }

    /// Reports every deviation of the client, also those that are let pass without harm.
    pub fn strict(mut self) -> Self {
        self.options.strict = true;
        self
    }

    /// Refuses batches, as the newest implementations do.
    pub fn refuse_batches(mut self) -> Self {
        self.options.refuse_batches = true;
        self
    }

    /// Is told what the client did wrong, and what could not be said in the agreed version. Must not block.
    pub fn on_report(mut self, report: impl Fn(Report) + Send + Sync + 'static) -> Self {
        self.options.report = Some(Arc::new(report));
        self
    }

    /// Writes down every message.
    pub fn trace(mut self, tap: crate::trace::Tap) -> Self {
        self.options.tap = Some(Arc::new(tap));
        self
    }

    /// Serves on the process's own stdin and stdout until the client closes them.
    ///
    /// The real stdout is kept for the wire alone: whatever else this process prints goes to stderr.
    pub async fn stdio(self) -> Result<(), Error> {
        let (reader, writer) = crate::stdio::take().map_err(|error| Error::Closed(Closed::Io(error.kind())))?;
        self.run(reader, writer).await
    }

    /// Serves on two streams until the client closes its end.
    pub async fn connect(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), Error> {
        self.run(Box::new(reader), Box::new(writer)).await
    }

    async fn run(
        self,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> Result<(), Error> {
        let mut capabilities = AgentCapabilities { session: Some(self.session.clone()), ..AgentCapabilities::new() };
        if !self.auth_methods.is_empty() {
            capabilities.auth.logout = Some(Capability::new());
        }
        let features = Features {
            info: self.info.clone(),
            capabilities,
            auth_methods: self.auth_methods.clone(),
            restores: self.restorer.is_some(),
            lists: self.lister.is_some(),
            deletes: self.deleter.is_some(),
            extensions: self.extensions.keys().cloned().collect(),
        };
        let (link, driver) = Link::new(AgentRouter::new(features), self.options.clone(), reader, writer);
        // Everything runs in tasks of this set, and ends with it.
        let mut tasks = JoinSet::new();
        let (ended, end) = tokio::sync::oneshot::channel();
        tasks.spawn(async move {
            let _ = ended.send(driver.await);
        });
        let server = Arc::new(self);
        let sessions = Arc::new(std::sync::Mutex::new(JoinSet::new()));
        loop {
            match next(&link, &mut tasks).await {
                Next::Job(job) => {
                    let (server, link, sessions) = (server.clone(), link.clone(), sessions.clone());
                    tasks.spawn(async move { server.run_job(link, job, &sessions).await });
                }
                Next::Notice(method, params) => {
                    if let Some(extension) = server.extensions.get(&*method) {
                        let work = extension(params);
                        tasks.spawn(async move {
                            let _ = catch_panic(work).await;
                        });
                    }
                }
                Next::Closed => break,
            }
        }
        // Turns were cancelled when the client closed its end. What is owed is still answered, if somebody reads.
        let _ = tokio::time::timeout(LAST_WORDS, link.settled()).await;
        link.close();
        match tokio::time::timeout(LAST_WORDS, end).await {
            Ok(Ok(Closed::ByPeer | Closed::ByUs)) | Err(_) => Ok(()),
            // A client that is gone without a word has closed its end too.
            Ok(Ok(Closed::Io(std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset))) => Ok(()),
            Ok(Ok(closed)) => Err(Error::Closed(closed)),
            Ok(Err(_)) => Err(Error::Closed(Closed::ByUs)),
        }
    }

    async fn run_job(&self, link: Link<AgentRouter>, job: Job, sessions: &std::sync::Mutex<JoinSet<()>>) {
        let Job { call, work, cancelled } = job;
        let debt = Debt { link: link.clone(), call };
        let mut work = std::pin::pin!(catch_panic(self.work(&link, call, work, sessions)));
        let mut cancel = std::pin::pin!(cancelled.raised());
        let result = poll_fn(|cx| {
            if let Poll::Ready(result) = work.as_mut().poll(cx) {
                return Poll::Ready(result.unwrap_or_else(|| Err(internal())));
            }
            cancel.as_mut().poll(cx).map(|()| Err(Error::Cancelled))
        })
        .await;
        let _ = match result {
            // Opening a session answers by itself: its answer and its first updates go out together.
            Ok(None) => Ok(()),
            Ok(Some(result)) => link.send(|_, port| port.answer(call, &result)).await,
            Err(error) => link.send(|_, port| port.refuse(call, &error.to_peer())).await,
        };
        drop(debt);
    }

    async fn work(
        &self,
        link: &Link<AgentRouter>,
        call: Call,
        work: Work,
        sessions: &std::sync::Mutex<JoinSet<()>>,
    ) -> Result<Option<Answer>, Error> {
        let agent = self.agent.clone();
        let client = link.with(|router, _| router.client.clone()).ok_or_else(internal)?;
        match work {
            Work::Extension(method, params) => match self.extensions.get(&*method) {
                Some(extension) => match extension(params).await {
                    Ok(result) => Ok(Some(Box::new(result))),
                    Err(error) => Err(Error::Refused(error)),
                },
                None => Err(Error::Refused(ErrorObject::method_not_found(None))),
            },
            Work::Request(ClientRequest::NewSession(request)) => {
                let id = SessionId::from(format!("sess_{}", crate::random::hex()));
                let open = OpenRequest {
                    cwd: request.cwd,
                    directories: request.additional_directories,
                    mcp_servers: request.mcp_servers,
                    meta: request.meta,
                };
                let place = Place::reserve(link, &id, &open)?;
                let handle = SessionHandle::new(link.clone(), id.clone(), client.clone());
                let opened = agent.open(open, handle.clone()).await?;
                let write = |options: Vec<ConfigOption>, modes, commands: Vec<AvailableCommand>| NewSessionResponse {
                    modes,
                    config_options: (!options.is_empty()).then_some(options),
                    available_commands: (!commands.is_empty()).then_some(commands),
                    ..NewSessionResponse::new(id.clone())
                };
                place.finish(call, opened, handle, write, sessions).await?;
                Ok(None)
            }
            Work::Request(ClientRequest::LoadSession(request)) => {
                let open = OpenRequest {
                    cwd: request.cwd,
                    directories: request.additional_directories,
                    mcp_servers: request.mcp_servers,
                    meta: request.meta,
                };
                let id = request.session_id;
                let place = Place::reserve(link, &id, &open)?;
                let handle = SessionHandle::new(link.clone(), id.clone(), client.clone());
                let restorer = self.restorer.clone().ok_or_else(internal)?;
                let opened = restorer(agent, id, open, true, handle.clone()).await?;
                let write = |options: Vec<ConfigOption>, modes, _: Vec<AvailableCommand>| LoadSessionResponse {
                    modes,
                    config_options: (!options.is_empty()).then_some(options),
                    ..LoadSessionResponse::new()
                };
                place.finish(call, opened, handle, write, sessions).await?;
                Ok(None)
            }
            Work::Request(ClientRequest::ResumeSession(request)) => {
                let open = OpenRequest {
                    cwd: request.cwd,
                    directories: request.additional_directories,
                    mcp_servers: request.mcp_servers,
                    meta: request.meta,
                };
                let id = request.session_id;
                let replay = match &request.replay_from {
                    None => false,
                    Some(attache_proto::model::ReplayFrom::Start(_)) => true,
                    Some(_) => {
                        let error = ErrorObject::wrong_params("replayFrom: there is no such point");
                        return Err(Error::Refused(error));
                    }
                };
                let Some(restorer) = self.restorer.clone() else {
                    // Resuming is part of version 2's baseline. Without a store, a session that is open is there.
                    let open = link.with(|router, _| router.resting(&id));
                    let Some((options, at_rest)) = open.filter(|_| !replay) else {
                        return Err(Error::Refused(ErrorObject::session_not_found(&id)));
                    };
                    // Version 2 wants to hear the state before the answer, every time.
                    let state = if at_rest { StateUpdate::at_rest() } else { StateUpdate::running() };
                    let options = (!options.is_empty()).then_some(options);
                    let response = ResumeSessionResponse { config_options: options, ..ResumeSessionResponse::new() };
                    let handle = SessionHandle::new(link.clone(), id, client);
                    let answer = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
                        handle.write_update(port, &SessionUpdate::State(state));
                        port.answer(call, &response);
                    };
                    link.send(answer).await?;
                    return Ok(None);
                };
                let place = Place::reserve(link, &id, &open)?;
                let handle = SessionHandle::new(link.clone(), id.clone(), client.clone());
                let opened = restorer(agent, id, open, replay, handle.clone()).await?;
                if client.dialect == Dialect::V2 {
                    handle.update(SessionUpdate::State(StateUpdate::at_rest())).await?;
                }
                let write =
                    |options: Vec<ConfigOption>, modes, commands: Vec<AvailableCommand>| ResumeSessionResponse {
                        modes,
                        config_options: (!options.is_empty()).then_some(options),
                        available_commands: (!commands.is_empty()).then_some(commands),
                        ..ResumeSessionResponse::new()
                    };
                place.finish(call, opened, handle, write, sessions).await?;
                Ok(None)
            }
            Work::Request(ClientRequest::ListSessions(request)) => match &self.lister {
                Some(lister) => lister(agent, ClientRequest::ListSessions(request)).await.map(Some),
                None => {
                    // Listing is part of version 2's baseline. Without a store, the open sessions are all there are.
                    let open = link.with(|router, _| router.open_sessions()).into_iter();
                    let open = open.filter(|(_, cwd)| request.cwd.as_ref().is_none_or(|wanted| wanted == cwd));
                    let sessions = open.map(|(id, cwd)| SessionInfo::new(id, cwd)).collect::<Vec<_>>();
                    Ok(Some(Box::new(ListSessionsResponse::new(sessions))))
                }
            },
            Work::Request(request @ ClientRequest::DeleteSession(_)) => match &self.deleter {
                Some(deleter) => deleter(agent, request).await.map(Some),
                None => Err(internal()),
            },
            Work::Request(request) => match &self.authenticator {
                Some(authenticator) => authenticator(agent, request).await.map(Some),
                None => Err(internal()),
            },
        }
    }
}

async fn next(link: &Link<AgentRouter>, tasks: &mut JoinSet<()>) -> Next {
    poll_fn(|cx| {
        // Tasks that have ended are cleared away as they end.
        while let Poll::Ready(Some(_)) = tasks.poll_join_next(cx) {}
        let next = link.with(|router, _| router.next_job(cx.waker()));
        next.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// A call that a job owes an answer to. Dropped, it is answered with an internal error if it was not answered before.
struct Debt {
    link: Link<AgentRouter>,
    call: Call,
}

impl Drop for Debt {
    fn drop(&mut self) {
        self.link.with(|router, port| {
            router.job_done(self.call);
            port.refuse(self.call, &ErrorObject::internal("Internal error"));
        });
    }
}

/// The place of a session that is being opened; given back if it is not opened after all.
struct Place {
    link: Link<AgentRouter>,
    id: SessionId,
    is_open: bool,
}

impl Place {
    fn reserve(link: &Link<AgentRouter>, id: &SessionId, request: &OpenRequest) -> Result<Self, Error> {
        if !std::path::Path::new(&request.cwd).is_absolute() {
            return Err(Error::Refused(ErrorObject::wrong_params("cwd: the path is not absolute")));
        }
        if !link.with(|router, _| router.reserve(id, &request.cwd)) {
            return Err(Error::Refused(ErrorObject::wrong_params("sessionId: the session is open")));
        }
        Ok(Place { link: link.clone(), id: id.clone(), is_open: false })
    }

    /// Answers, tells what an older version tells in updates, and starts the session's task.
    async fn finish<S: Session, R: Encode>(
        mut self,
        call: Call,
        opened: Opened<S>,
        handle: SessionHandle,
        write: impl FnOnce(Vec<ConfigOption>, Option<ModeState>, Vec<AvailableCommand>) -> R,
        sessions: &std::sync::Mutex<JoinSet<()>>,
    ) -> Result<(), Error> {
        let Opened { session, options, commands } = opened;
        let client = handle.client();
        let is_v2 = client.dialect == Dialect::V2;
        let modes = (client.dialect == Dialect::V1).then(|| modes(&options)).flatten();
        let shown = offered_options(options.clone(), client);
        let response = write(shown, modes, if is_v2 { commands.clone() } else { Vec::new() });
        self.link
            .send(|router, port| {
                if let Some(slot) = router.slot(&self.id) {
                    slot.is_opening = false;
                    slot.options = options;
                }
                port.answer(call, &response);
                if !is_v2 && !commands.is_empty() {
                    let update = CommandsUpdate::new(commands);
                    handle.write_update(port, &SessionUpdate::AvailableCommands(update));
                }
            })
            .await?;
        self.is_open = true;
        let mut sessions = sessions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while sessions.try_join_next().is_some() {}
        sessions.spawn(run(session, handle));
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_open {
            self.link.with(|router, port| {
                for call in router.release(&self.id) {
                    port.refuse(call, &ErrorObject::session_not_found(&self.id));
                }
            });
        }
    }
}

/// The option of category `mode`, as version 1 has it.
fn modes(options: &[ConfigOption]) -> Option<ModeState> {
    let option = options.iter().find(|option| option.category == Some(ConfigCategory::Mode))?;
    let ConfigKind::Select(select) = &option.kind else { return None };
    let mode = |value: &ConfigValue| Mode {
        description: value.description.clone(),
        ..Mode::new(value.value.as_str(), value.name.as_str())
    };
    let available: Vec<Mode> = select.options.iter().map(mode).collect();
    Some(ModeState::new(select.current.as_str(), available))
}

/// The options that a client can take: switches only go to a client of version 1 that says it knows them.
pub(super) fn offered_options(mut options: Vec<ConfigOption>, client: &ClientInfo) -> Vec<ConfigOption> {
    let offered = client.capabilities.session.config_options.as_ref();
    let takes_booleans = client.dialect != Dialect::V1 || offered.is_some_and(|offered| offered.boolean.is_some());
    options.retain(|option| takes_booleans || !matches!(option.kind, ConfigKind::Boolean(_)));
    options
}
