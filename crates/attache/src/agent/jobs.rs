//! Running: what a client asks that belongs to no open session, and the opening of sessions.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use attache_proto::Dialect;
use attache_proto::json::Reader;
use attache_proto::method::Method;
use attache_proto::model::{
    CommandsUpdate, ConfigCategory, ConfigKind, ConfigOption, ConfigValue, DeleteSessionRequest, ErrorObject,
    ListSessionsResponse, McpServer, Meta, Mode, ModeState, NewSessionResponse, ResumeSessionResponse, SessionId,
    SessionInfo, SessionUpdate, StateUpdate,
};
use attache_proto::rpc::Call;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::router::{AgentRouter, Job, Work};
use super::serve::{Answer, Serving};
use super::session::{self, catch_panic, internal};
use super::{ClientInfo, OpenRequest, Opened, SessionHandle};
use crate::link::{Link, Options};
use crate::{Closed, Error};

/// How much longer than a cancelled turn everything else may take when the client has closed its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The tasks of the open sessions. They end with the server.
type Sessions = Arc<Mutex<JoinSet<()>>>;

/// Serves until the client closes its end.
pub(super) async fn run(
    server: Serving,
    options: Options,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
) -> Result<(), Error> {
    let (link, driver) = Link::new(AgentRouter::new(server.features()), options, reader, writer);
    let mut tasks = JoinSet::new();
    let (ended, end) = tokio::sync::oneshot::channel();
    tasks.spawn(async move {
        let _ = ended.send(driver.await);
    });
    let server = Arc::new(server);
    let sessions = Sessions::default();
    tasks.spawn(run_notices(server.clone(), link.clone()));
    while let Some(job) = next_job(&link, &mut tasks).await {
        let (server, link, sessions) = (server.clone(), link.clone(), sessions.clone());
        tasks.spawn(async move { run_job(&server, &link, job, &sessions).await });
    }
    // Turns were cancelled when the client closed its end. What is owed is still answered, if somebody reads, and
    // sessions get to put their things away.
    let last_words = link.limits().cancel_grace + LAST_WORDS;
    let mut open = std::mem::take(&mut *sessions.lock().unwrap_or_else(PoisonError::into_inner));
    let _ = tokio::time::timeout(last_words, async {
        link.settled().await;
        while open.join_next().await.is_some() {}
    })
    .await;
    link.close();
    match tokio::time::timeout(last_words, end).await {
        Ok(Ok(Closed::ByPeer | Closed::ByUs)) | Err(_) => Ok(()),
        // A client that is gone without a word has closed its end too.
        Ok(Ok(Closed::Io(std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset))) => Ok(()),
        Ok(Ok(closed)) => Err(Error::Closed(closed)),
        Ok(Err(_)) => Err(Error::Closed(Closed::ByUs)),
    }
}

/// Serves notifications of extensions, one after the other in the order they came.
async fn run_notices(server: Arc<Serving>, link: Link<AgentRouter>) {
    loop {
        let notice = poll_fn(|cx| {
            let next = link.with(|router, _| router.next_notice(cx.waker()));
            next.map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        if let Some(extension) = server.extensions.get(&*notice.method) {
            let _ = catch_panic(pin!(extension(notice.params))).await;
        }
    }
}

async fn next_job(link: &Link<AgentRouter>, tasks: &mut JoinSet<()>) -> Option<Job> {
    poll_fn(|cx| {
        // Tasks that have ended are cleared away as they end.
        while let Poll::Ready(Some(_)) = tasks.poll_join_next(cx) {}
        let next = link.with(|router, _| router.next_job(cx.waker()));
        next.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

async fn run_job(server: &Serving, link: &Link<AgentRouter>, job: Job, sessions: &Sessions) {
    let Job { call, work, cancelled } = job;
    let _debt = Debt { link: link.clone(), call };
    let work = pin!(do_work(server, link, call, work, sessions));
    let mut work = pin!(catch_panic(work));
    let mut cancel = pin!(cancelled.raised());
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
}

async fn do_work(
    server: &Serving,
    link: &Link<AgentRouter>,
    call: Call,
    work: Work,
    sessions: &Sessions,
) -> Result<Option<Answer>, Error> {
    let client = link.with(|router, _| router.client.clone()).ok_or_else(internal)?;
    match work {
        Work::Extension(method, params) => match server.extensions.get(&*method) {
            Some(extension) => Ok(Some(Box::new(extension(params).await?))),
            None => Err(Error::Refused(ErrorObject::method_not_found(None))),
        },
        Work::Registered(method, params) => {
            if method == Method::DeleteSession
                && let Ok(request) = Reader::new(params.as_str(), client.dialect).decode::<DeleteSessionRequest>()
            {
                // What is deleted must not be written to any more.
                if let Some(leaving) = link.with(|router, _| router.leave(&request.session_id, true)) {
                    let _ = leaving.await;
                }
            }
            let doer = server.doers.get(&method).ok_or_else(internal)?;
            doer(params.as_str(), client.dialect).await.map(Some)
        }
        Work::Open(Opening { kind: Kind::Restore { id, replay }, .. }) if server.restorer.is_none() => {
            resume_open(link, call, &id, replay, client).await.map(|()| None)
        }
        Work::Open(opening) => opening.run(server, link, call, client, sessions).await.map(|()| None),
        Work::List(wanted) => {
            // Listing is part of version 2's baseline. Without a store, the open sessions are all there are.
            let open = link.with(|router, _| router.open_sessions()).into_iter();
            let open = open.filter(|(_, cwd)| wanted.as_ref().is_none_or(|wanted| wanted == cwd));
            let sessions: Vec<SessionInfo> = open.map(|(id, cwd)| SessionInfo::new(id, cwd)).collect();
            Ok(Some(Box::new(ListSessionsResponse::new(sessions))))
        }
        Work::Wrong(why) => Err(wrong(why)),
    }
}

fn wrong(why: &'static str) -> Error {
    Error::Refused(ErrorObject::wrong_params(why))
}

pub(super) fn open_request(
    cwd: String,
    directories: Vec<String>,
    mcp_servers: Vec<McpServer>,
    meta: Option<Meta>,
) -> OpenRequest {
    OpenRequest { cwd, directories, mcp_servers, meta }
}

/// Resuming is part of version 2's baseline. Without a store, a session that is open is there, and no other.
async fn resume_open(
    link: &Link<AgentRouter>,
    call: Call,
    id: &SessionId,
    replay: bool,
    client: Arc<ClientInfo>,
) -> Result<(), Error> {
    let open = link.with(|router, _| {
        let is_at_rest = router.is_at_rest(id);
        router.slot(id).map(|slot| (slot.options.clone(), slot.offered_commands.clone(), is_at_rest))
    });
    let Some((options, commands, is_at_rest)) = open.filter(|_| !replay) else {
        return Err(Error::Refused(ErrorObject::session_not_found(id)));
    };
    let response = ResumeSessionResponse {
        config_options: (!options.is_empty()).then_some(options),
        available_commands: (!commands.is_empty()).then_some(commands),
        ..ResumeSessionResponse::new()
    };
    // Version 2 wants to hear the state before the answer, every time.
    let state = if is_at_rest { StateUpdate::at_rest() } else { StateUpdate::running() };
    let handle = SessionHandle::new(link.clone(), id.clone(), client);
    link.send(|_, port| {
        handle.write_update(port, &SessionUpdate::State(state));
        port.answer(call, &response);
    })
    .await
}

/// A session that is to be opened.
pub(super) struct Opening {
    pub(super) kind: Kind,
    pub(super) open: OpenRequest,
}

pub(super) enum Kind {
    New,
    Restore { id: SessionId, replay: bool },
    Fork { from: SessionId },
}

impl Opening {
    /// Opens the session, answers, tells what an older version tells in updates, and starts the session's task.
    async fn run(
        self,
        server: &Serving,
        link: &Link<AgentRouter>,
        call: Call,
        client: Arc<ClientInfo>,
        sessions: &Sessions,
    ) -> Result<(), Error> {
        let is_new = !matches!(self.kind, Kind::Restore { .. });
        let id = match &self.kind {
            Kind::Restore { id, .. } => id.clone(),
            Kind::New | Kind::Fork { .. } => SessionId::from(format!("sess_{}", crate::random::hex())),
        };
        if let Kind::Restore { id, .. } = &self.kind
            && let Some(leaving) = link.with(|router, _| router.leave(id, false))
        {
            // A session that is open and at rest is opened anew.
            let _ = leaving.await;
        }
        let mut place = Place::reserve(link, &id, &self.open)?;
        let handle = SessionHandle::new(link.clone(), id.clone(), client.clone());
        let opened = match self.kind {
            Kind::New => (server.opener)(self.open, handle.clone()).await?,
            Kind::Restore { id, replay } => {
                let restorer = server.restorer.as_ref().ok_or_else(internal)?;
                let opened = restorer(id, self.open, replay, handle.clone()).await?;
                handle.update(SessionUpdate::State(StateUpdate::at_rest())).await?;
                opened
            }
            Kind::Fork { from } => {
                let forker = server.forker.as_ref().ok_or_else(internal)?;
                forker(from, self.open, handle.clone()).await?
            }
        };
        let Opened { session, options, commands } = opened;
        let is_v2 = client.dialect == Dialect::V2;
        let modes = (client.dialect == Dialect::V1).then(|| modes(&options)).flatten();
        let shown = offered_options(options.clone(), &client);
        let config_options = (!shown.is_empty()).then_some(shown);
        let available_commands = (is_v2 && !commands.is_empty()).then(|| commands.clone());
        let answer: Answer = if is_new {
            Box::new(NewSessionResponse { modes, config_options, available_commands, ..NewSessionResponse::new(id) })
        } else {
            Box::new(ResumeSessionResponse {
                modes,
                config_options,
                available_commands,
                ..ResumeSessionResponse::new()
            })
        };
        link.send(|router, port| {
            if let Some(slot) = router.slot(handle.id()) {
                slot.options = options;
                slot.offered_commands.clone_from(&commands);
            }
            port.answer(call, &answer);
            if !is_v2 && !commands.is_empty() {
                handle.write_update(port, &SessionUpdate::AvailableCommands(CommandsUpdate::new(commands)));
            }
        })
        .await?;
        place.is_open = true;
        let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
        while sessions.try_join_next().is_some() {}
        sessions.spawn(session::run(session, handle));
        Ok(())
    }
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
        let is_absolute = |path: &String| std::path::Path::new(path).is_absolute();
        if !is_absolute(&request.cwd) {
            return Err(wrong("cwd: the path is not absolute"));
        }
        if !request.directories.iter().all(is_absolute) {
            return Err(wrong("additionalDirectories: a path is not absolute"));
        }
        let limit = link.limits().sessions;
        link.with(|router, _| router.reserve(id, &request.cwd, limit))?;
        Ok(Place { link: link.clone(), id: id.clone(), is_open: false })
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
