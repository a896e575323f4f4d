//! Running: what a client asks that belongs to no open session, and the opening of sessions.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use attache_proto::conversation::{OpenKind, Opening};
use attache_proto::method::Method;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::session::{ListSessionsResponse, SessionId, SessionInfo};
use attache_proto::rpc::Call;
use tokio::task::JoinSet;

use super::context::{self, Context};
use super::router::{AgentRouter, Job, Notice, Until, Work};
use super::serve::{BoxedResponse, Serving, Wire};
use super::session::{self, catch_panic, internal, unless_cancelled};
use super::{ClientInfo, HandlerError, OpenRequest, Opened, SessionHandle};
use crate::error::check_runtime;
use crate::link::{BoxFuture, Link, Options};
use crate::spans::Span;
use crate::{CancelToken, Closed, Error};

/// How much longer than a cancelled turn everything else may take when the client has closed its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The longest directory that a session can be opened in, in bytes. Linux takes no longer path, others take less; and it is
/// kept as long as the session is open.
const LONGEST_CWD: usize = 4096;

/// The longest id that a session can be restored by, in bytes. Many times a UUID; it is kept several times.
const LONGEST_ID: usize = 1024;

/// The tasks of the open sessions. They end with the server.
type Sessions = Arc<Mutex<JoinSet<()>>>;

fn lock(sessions: &Sessions) -> MutexGuard<'_, JoinSet<()>> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A future to spawn. Boxed, the runtime's part of a task is compiled once for all of them.
fn task(future: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    Box::pin(future)
}

/// Serves until the client closes its end.
pub(super) async fn run(server: Arc<Serving>, options: Options, wire: Wire) -> Result<(), Error> {
    check_runtime()?;
    let router = AgentRouter::new(options.limits.clone());
    let decoder = server.decoder();
    let mut tasks = JoinSet::new();
    let (ended, end) = tokio::sync::oneshot::channel();
    let link = match wire {
        Wire::Bytes(reader, writer) => {
            let (link, driver) = Link::new(router, decoder, options, reader, writer);
            tasks.spawn(task(async move {
                let _ = ended.send(driver.await);
            }));
            link
        }
        Wire::Messages(transport) => {
            let (link, driver) = Link::over(router, decoder, options, transport);
            tasks.spawn(task(async move {
                let _ = ended.send(driver.await);
            }));
            link
        }
    };
    let sessions = Sessions::default();
    tasks.spawn(task(run_notices(server.clone(), link.clone())));
    run_jobs(&server, &link, &mut tasks, &sessions, Until::Closed).await;
    // Turns were cancelled when the client closed its end. What is owed is still answered, if somebody reads, and
    // sessions get to put their things away, also those that were just being opened.
    let last_words = link.limits().cancel_grace.saturating_add(LAST_WORDS);
    let _ = tokio::time::timeout(last_words, async {
        run_jobs(&server, &link, &mut tasks, &sessions, Until::Done).await;
        link.settled().await;
        while poll_fn(|cx| lock(&sessions).poll_join_next(cx)).await.is_some() {}
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

/// Serves notifications that something was registered for, one after the other in the order they came.
async fn run_notices(server: Arc<Serving>, link: Link<AgentRouter>) {
    let mut waiter = None;
    loop {
        let notice = poll_fn(|cx| {
            let next = link.with(|router, _| router.next_notice(&mut waiter, cx.waker()));
            next.map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        let Some(client) = link.with(|router, _| router.client.clone()) else { continue };
        let dialect = client.dialect;
        let context = make_context(&link, client, None, None, CancelToken::default());
        // The client is not to be told of what goes wrong: a notification has no answer.
        match notice {
            Notice::Extension(method, params) => {
                if let Some(extension) = server.extensions.get(&*method) {
                    // User code runs before there is a future, too.
                    let done = catch_panic(pin!(async { extension(params, context).await })).await;
                    if let Some(Err(error)) = done {
                        error.answer(&link, &method);
                    }
                }
            }
            Notice::Registered(method, params) => {
                if let Some(handler) = server.notice_handlers.get(&method) {
                    let done = catch_panic(pin!(async { handler(params.as_str(), dialect, context).await })).await;
                    if let Some(Err(error)) = done {
                        error.answer(&link, method.any_name());
                    }
                }
            }
        }
    }
}

/// Starts jobs as there is room for them.
async fn run_jobs(
    server: &Arc<Serving>,
    link: &Link<AgentRouter>,
    tasks: &mut JoinSet<()>,
    sessions: &Sessions,
    until: Until,
) {
    while let Some(job) = next_job(link, tasks, until).await {
        let (server, link, sessions) = (server.clone(), link.clone(), sessions.clone());
        tasks.spawn(task(async move { run_job(&server, &link, job, &sessions).await }));
    }
}

async fn next_job(link: &Link<AgentRouter>, tasks: &mut JoinSet<()>, until: Until) -> Option<Job> {
    let mut waiter = None;
    let job = poll_fn(|cx| {
        // Tasks that have ended are cleared away as they end.
        while let Poll::Ready(Some(_)) = tasks.poll_join_next(cx) {}
        let next = link.with(|router, port| {
            let is_full = port.is_full();
            let next = router.next_job(until, is_full, &mut waiter, cx.waker());
            if is_full && next.is_none() {
                port.wait_for_room();
            }
            next
        });
        next.map_or(Poll::Pending, Poll::Ready)
    })
    .await;
    link.with(|router, _| router.leave_jobs(&mut waiter));
    job
}

async fn run_job(server: &Serving, link: &Link<AgentRouter>, job: Job, sessions: &Sessions) {
    let Job { call, work, cancelled } = job;
    let _owed = OwedAnswer { link: link.clone(), call };
    let method = work.method();
    let work = pin!(do_work(server, link, call, work, cancelled.clone(), sessions));
    let work = pin!(catch_panic(work));
    let result = match unless_cancelled(work, &cancelled).await {
        Some(Some(result)) => result.map_err(|error| error.answer(link, &method)),
        Some(None) => Err(ErrorObject::internal("Internal error")),
        None => Err(ErrorObject::cancelled()),
    };
    let _ = match result {
        // Opening a session answers by itself: its answer and its first updates go out together.
        Ok(None) => Ok(()),
        Ok(Some(result)) => link.send(|_, port| port.answer(call, &result)).await,
        Err(error) => link.send(|_, port| port.refuse(call, &error)).await,
    };
}

async fn do_work(
    server: &Serving,
    link: &Link<AgentRouter>,
    call: Call,
    work: Work,
    cancelled: CancelToken,
    sessions: &Sessions,
) -> Result<Option<BoxedResponse>, HandlerError> {
    let client = link.with(|router, _| router.client.clone()).ok_or_else(internal)?;
    match work {
        Work::Extension(method, params) => {
            let extension = server.extensions.get(&*method).ok_or_else(internal)?;
            let context = make_context(link, client, Some(call), None, cancelled);
            Ok(Some(Box::new(Span::served(&method).around(extension(params, context)).await?)))
        }
        Work::Registered(method, session, params) => {
            if let (Method::DeleteSession, Some(session)) = (method, &session)
                // What is deleted must not be written to any more.
                && let Some(leaving) = link.with(|router, _| router.leave(session, true))
            {
                let _ = leaving.await;
            }
            let dialect = client.dialect;
            let context = make_context(link, client, Some(call), session, cancelled);
            let handler = server.handlers.get(&method).ok_or_else(internal)?;
            let span = Span::served(method.any_name());
            span.around(handler(params.as_str(), dialect, context)).await.map(Some)
        }
        Work::Open(method, opening) => {
            match &opening.kind {
                OpenKind::Restore { session, replay } if server.restorer.is_none() => {
                    resume_open(link, call, method, session, *replay, client).await?;
                }
                _ => open(server, link, call, method, opening, client, sessions).await?,
            }
            Ok(None)
        }
        Work::List(wanted) => {
            // Listing is part of version 2's baseline. Without a store, the open sessions are all there are.
            let open = link.with(|router, _| router.open_sessions()).into_iter();
            let open = open.filter(|(_, cwd)| wanted.as_ref().is_none_or(|wanted| wanted == cwd));
            let sessions: Vec<SessionInfo> = open.map(|(id, cwd)| SessionInfo::new(id, cwd)).collect();
            Ok(Some(Box::new(ListSessionsResponse::new(sessions))))
        }
    }
}

fn make_context(
    link: &Link<AgentRouter>,
    client: Arc<ClientInfo>,
    call: Option<Call>,
    session: Option<SessionId>,
    cancelled: CancelToken,
) -> Context {
    let (request_id, updates) = link.with(|router, port| {
        let updates = session.as_ref().and_then(|session| router.slot(session)).map(|slot| slot.updates.clone());
        (call.and_then(|call| port.peer.call_id(call).cloned()), updates)
    });
    let session = session.zip(updates);
    let session = session.map(|(id, updates)| SessionHandle::of_open(link.clone(), id, client.clone(), updates));
    Context(Arc::new(context::Inner { link: link.clone(), client, request_id, session, cancelled }))
}

fn wrong(why: &'static str) -> HandlerError {
    ErrorObject::wrong_params(why).into()
}

/// Resuming is part of version 2's baseline. Without a store, a session that is open is there, and no other.
async fn resume_open(
    link: &Link<AgentRouter>,
    call: Call,
    method: Method,
    id: &SessionId,
    replay: bool,
    client: Arc<ClientInfo>,
) -> Result<(), HandlerError> {
    let updates = link.with(|router, _| router.slot(id).map(|slot| slot.updates.clone()));
    let Some(updates) = updates.filter(|_| !replay) else { return Err(ErrorObject::session_not_found(id).into()) };
    let handle = SessionHandle::of_open(link.clone(), id.clone(), client, updates);
    link.send(|_, port| {
        let mut updates = handle.updates();
        let (options, commands) = updates.session.opened_with();
        let (options, commands) = (options.to_vec(), commands.to_vec());
        let (opened, _) = updates.session.open(options, commands, None);
        // Version 2 wants to hear the state before the answer, every time.
        updates.write_with(port, None, None, |session, emit| session.say_state(emit));
        port.peer.answer(call, |writer| opened.encode_as(method, id, writer), port.out);
    })
    .await?;
    Ok(())
}

/// Opens a session, answers, tells what an older version tells in updates, and starts the session's task.
async fn open(
    server: &Serving,
    link: &Link<AgentRouter>,
    call: Call,
    method: Method,
    opening: Opening,
    client: Arc<ClientInfo>,
    sessions: &Sessions,
) -> Result<(), HandlerError> {
    let id = match &opening.kind {
        OpenKind::Restore { session, .. } => session.clone(),
        OpenKind::New | OpenKind::Fork { .. } => SessionId::from(format!("sess_{}", crate::random::hex())),
    };
    if let OpenKind::Restore { session, .. } = &opening.kind
        && let Some(leaving) = link.with(|router, _| router.leave(session, false))
    {
        // A session that is open and at rest is opened anew.
        let _ = leaving.await;
    }
    let Opening { kind, cwd, additional_directories, mcp_servers, system_prompt, meta } = opening;
    let request = OpenRequest { cwd, directories: additional_directories, mcp_servers, system_prompt, meta };
    let handle = SessionHandle::new(link.clone(), id.clone(), client);
    let mut reservation = Reservation::reserve(&handle, &request)?;
    let is_restored = matches!(kind, OpenKind::Restore { .. });
    let opened = match kind {
        OpenKind::New => (server.opener)(request, handle.clone()).await?,
        OpenKind::Restore { session, replay } => {
            let restorer = server.restorer.as_ref().ok_or_else(internal)?;
            restorer(session, request, replay, handle.clone()).await?
        }
        OpenKind::Fork { from } => {
            let forker = server.forker.as_ref().ok_or_else(internal)?;
            forker(from, request, handle.clone()).await?
        }
    };
    let Opened { session, options, commands, meta } = opened;
    link.send(|_, port| {
        let mut updates = handle.updates();
        if is_restored {
            // Version 2 wants to hear the state after the history and before the answer.
            updates.write_with(port, None, None, |session, emit| session.say_state(emit));
        }
        let (opened, mut later) = updates.session.open(options, commands, meta);
        // A client that knows the session hears all of it before the answer; one that does not, can only afterwards.
        if let Some(update) = later.take_if(|_| is_restored) {
            updates.write(port, update, None);
        }
        port.peer.answer(call, |writer| opened.encode_as(method, handle.id(), writer), port.out);
        if let Some(update) = later {
            updates.write(port, update, None);
        }
    })
    .await?;
    reservation.is_open = true;
    let mut sessions = lock(sessions);
    while sessions.try_join_next().is_some() {}
    let span = Span::session(handle.id().as_str());
    sessions.spawn(task(async move { span.around(session::run(session, handle)).await }));
    Ok(())
}

/// A call that a job owes an answer to. Dropped, it is answered with an internal error if it was not answered before.
struct OwedAnswer {
    link: Link<AgentRouter>,
    call: Call,
}

impl Drop for OwedAnswer {
    fn drop(&mut self) {
        self.link.with(|router, port| {
            router.job_done(self.call);
            port.refuse(self.call, &ErrorObject::internal("Internal error"));
        });
    }
}

/// The reservation of a session that is being opened; given back if it is not opened after all.
struct Reservation {
    link: Link<AgentRouter>,
    id: SessionId,
    is_open: bool,
}

impl Reservation {
    fn reserve(handle: &SessionHandle, request: &OpenRequest) -> Result<Self, HandlerError> {
        let is_absolute = |path: &String| std::path::Path::new(path).is_absolute();
        if !is_absolute(&request.cwd) {
            return Err(wrong("cwd: not an absolute path"));
        }
        if !request.directories.iter().all(is_absolute) {
            return Err(wrong("additionalDirectories: not an absolute path"));
        }
        if request.cwd.len() > LONGEST_CWD {
            return Err(wrong("cwd: too long"));
        }
        let (link, id) = (handle.link().clone(), handle.id().clone());
        if id.as_str().len() > LONGEST_ID {
            // No session has such an id.
            return Err(ErrorObject::session_not_found(&id).into());
        }
        link.with(|router, _| router.reserve(&id, &request.cwd, handle.shared_updates()))?;
        Ok(Reservation { link, id, is_open: false })
    }
}

impl Drop for Reservation {
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
