//! The server: takes requests, checks who sends them, and gives every connection of the protocol to a program.

mod answer;
mod body;
mod connection;
mod listen;
mod metrics;
mod strangers;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache::transport::Transport;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::access::{Access, Principal, Tokens};
use crate::channel::Ended;
use crate::intake::Intake;
use crate::limits::ServerLimits;
use crate::message::STOPPING_NOTICE;
use answer::{Body, Refusal, empty};
use connection::Connection;
pub(crate) use connection::{CONNECTION_ID, LAST_EVENT, MESSAGE, RECEIVED, SESSION_ID};
pub use listen::Listener;
use listen::Stream;
use metrics::Metrics;
use strangers::{Place, Stranger, Strangers};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Accept = Arc<dyn Fn(Accepted) -> BoxFuture<()> + Send + Sync>;

/// A client that has connected.
#[derive(Debug)]
pub struct Accepted {
    /// Whom its token stands for.
    pub principal: Principal,
    /// The connection, for [`Server::over`](attache::agent::Server::over) or anything else that takes messages.
    pub transport: Transport,
    /// A number that no other connection of this server has; for logs.
    pub number: u64,
}

/// A server of the protocol over HTTP and WebSocket.
///
/// Every request needs a token. Without [`host`](Self::host) it is only reached by the names of this machine, and without
/// [`origin`](Self::origin) not from web pages.
///
/// ```no_run
/// use attache::{Prompt, Stop, Turn};
/// use attache_http::{HttpServer, Listener, Principal, TokenDigest, Tokens};
///
/// # async fn example(token: &str) -> std::io::Result<()> {
/// let listener = Listener::tcp(tokio::net::TcpListener::bind("127.0.0.1:7316").await?);
/// let tokens = Tokens::new([(Principal::new("me"), TokenDigest::of(token))]);
/// HttpServer::new(tokens)
///     .serve(listener, |client| async move {
///         let agent = attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
///             turn.text(prompt.text()).await?;
///             Ok(Stop::EndTurn)
///         });
///         // How a connection ended is for logs.
///         let _ = attache::serve(agent).over(client.transport).await;
///     })
///     .await
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing is served until `serve`"]
pub struct HttpServer {
    access: Access,
    limits: ServerLimits,
    path: String,
    refresh: Option<Arc<dyn Fn() + Send + Sync>>,
    readiness: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("access", &self.access).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl HttpServer {
    /// A server that knows these tokens.
    pub fn new(tokens: Tokens) -> Self {
        let access = Access { tokens, ..Access::default() };
        HttpServer { access, limits: ServerLimits::default(), path: "/acp".into(), refresh: None, readiness: None }
    }

    /// Answers requests to this name, too: the name of the machine as clients see it, without a port.
    pub fn host(mut self, name: &str) -> Self {
        self.access.hosts.push(name.trim_matches(['[', ']']).to_ascii_lowercase());
        self
    }

    /// Answers requests of web pages of this origin, such as `https://example.com`.
    pub fn origin(mut self, origin: &str) -> Self {
        self.access.origins.push(origin.trim_end_matches('/').to_owned());
        self
    }

    /// Calls `refresh`, which may replace the [`Tokens`], before a request with a token that is not known is refused; every 100 ms
    /// at most. It may block for a moment.
    pub fn refresh(mut self, refresh: impl Fn() + Send + Sync + 'static) -> Self {
        self.refresh = Some(Arc::new(refresh));
        self
    }

    /// Has `/ready` answer 503 as long as this says no.
    pub fn readiness(mut self, is_ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.readiness = Some(Arc::new(is_ready));
        self
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves until the listener fails. Every connection of the protocol is given to `accept`.
    pub async fn serve<F, W>(self, listener: Listener, accept: F) -> std::io::Result<()>
    where
        F: Fn(Accepted) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        self.serve_until(listener, accept, std::future::pending()).await
    }

    /// Serves until `stop` is done; then takes no more requests that begin something, lets running turns end as far as
    /// [`ServerLimits::shutdown`] allows, and closes all connections.
    pub async fn serve_until<F, W>(
        self,
        listener: Listener,
        accept: F,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()>
    where
        F: Fn(Accepted) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let accept: Accept = Arc::new(move |accepted| Box::pin(accept(accepted)));
        let (stopping, _) = watch::channel(false);
        let shared = Arc::new(Shared {
            access: self.access,
            sockets: Arc::new(Semaphore::new(self.limits.sockets)),
            strangers: Strangers::new(self.limits.strangers, self.limits.request),
            intake: Intake::new(self.limits.unread, self.limits.unread_each),
            limits: self.limits,
            path: self.path,
            refresh: self.refresh,
            refreshed: tokio::sync::Mutex::default(),
            readiness: self.readiness,
            accept,
            connections: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            stopping,
            metrics: Metrics::default(),
        });
        let reaper = tokio::spawn(shared.clone().reap());
        let mut tasks = JoinSet::new();
        let served = {
            let mut stop = std::pin::pin!(stop);
            loop {
                let accepted = async {
                    let room = shared.sockets.clone().acquire_owned().await;
                    (listener.accept().await, room)
                };
                tokio::select! {
                    (stream, room) = accepted => match stream {
                        Ok(stream) => {
                            let shared = shared.clone();
                            tasks.spawn(async move {
                                shared.serve_stream(stream).await;
                                drop(room);
                            });
                        }
                        Err(error) => break Err(error),
                    },
                    () = &mut stop => break Ok(()),
                    Some(_) = tasks.join_next() => {}
                }
            }
        };
        drop(listener);
        shared.clone().wind_up().await;
        reaper.abort();
        tasks.abort_all();
        served
    }
}

/// What all requests share.
pub(crate) struct Shared {
    access: Access,
    limits: ServerLimits,
    path: String,
    refresh: Option<Arc<dyn Fn() + Send + Sync>>,
    /// When tokens were read again last.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
    readiness: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    accept: Accept,
    connections: Mutex<Connections>,
    sockets: Arc<Semaphore>,
    strangers: Arc<Strangers>,
    intake: Arc<Intake>,
    is_stopping: AtomicBool,
    stopping: watch::Sender<bool>,
    metrics: Metrics,
}

#[derive(Default)]
struct Connections {
    by_id: HashMap<String, Arc<Connection>>,
    /// Agents that run, in all and for each principal.
    open: usize,
    each: HashMap<Principal, usize>,
    last: u64,
}

/// How often tokens are read again because somebody shows one that is not known: guessing costs no more than that.
const REFRESH: Duration = Duration::from_millis(100);

/// How often connections are looked at that nobody holds.
const REAP: Duration = Duration::from_secs(1);

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Speaks HTTP on one stream of bytes.
    async fn serve_stream(self: Arc<Self>, stream: Stream) {
        self.metrics.sockets.add(1);
        let place = self.strangers.enter();
        match stream {
            Stream::Tls(handshake) => match tokio::time::timeout(self.limits.request, *handshake).await {
                Ok(Ok(stream)) => self.clone().serve_io(stream, place).await,
                // Somebody who does not speak TLS, or takes too long for it.
                _ => self.metrics.refused.add(1),
            },
            Stream::Tcp(stream) => self.clone().serve_io(stream, place).await,
            #[cfg(unix)]
            Stream::Unix(stream) => self.clone().serve_io(stream, place).await,
        }
        self.metrics.sockets.subtract(1);
    }

    async fn serve_io(self: Arc<Self>, io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, place: Place) {
        let limits = &self.limits;
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.request)
            .max_buf_size(64 << 10)
            .max_headers(64)
            .pipeline_flush(false);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams((limits.streams as u32).saturating_add(64).min(1200))
            .max_header_list_size(16 << 10)
            .max_send_buf_size(64 << 10)
            .initial_stream_window_size(256 << 10)
            .initial_connection_window_size(1 << 20)
            .keep_alive_interval(Some(Duration::from_secs(20)))
            .keep_alive_timeout(Duration::from_secs(20));
        let shared = self.clone();
        let stranger = place.stranger.clone();
        let service = service_fn(move |request| {
            let (shared, stranger) = (shared.clone(), stranger.clone());
            async move { Ok::<_, std::convert::Infallible>(shared.answer(request, &stranger).await) }
        });
        // Whoever shows no token within the time has no business here, whatever else was asked and answered.
        let silent = place.over();
        let mut stopping = self.stopping.subscribe();
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(io), service);
        let mut connection = std::pin::pin!(connection);
        let stopped = async move {
            // The sender lives as long as the server.
            let _ = stopping.wait_for(|is| *is).await;
        };
        tokio::select! {
            _ = connection.as_mut() => {}
            () = silent => self.metrics.refused.add(1),
            () = stopped => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(Duration::from_secs(2), connection).await;
            }
        }
    }

    /// Answers one request. Nothing of it is read before it is known who sends it, and from where.
    async fn answer(self: Arc<Self>, request: Request<Incoming>, stranger: &Stranger) -> Response<Body> {
        let path = request.uri().path();
        if matches!(path, "/health" | "/ready") {
            let is_well = path == "/health" || (!self.is_stopping() && self.readiness.as_ref().is_none_or(|is| is()));
            return empty(if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE });
        }
        if let Err(refused) = self.access.check_place(&request) {
            self.metrics.refused.add(1);
            return empty(refused);
        }
        let principal = match self.principal(&request).await {
            Ok(principal) => principal,
            Err(refused) => {
                self.metrics.refused.add(1);
                let mut response = empty(refused);
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return response;
            }
        };
        stranger.is_a_client();
        if path == "/metrics" && request.method() == Method::GET {
            let text = self.metrics.text(self.connections().by_id.len(), self.intake.bytes());
            let mut response = Response::new(Body::full(Bytes::from(text)));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"));
            return response;
        }
        if path != self.path {
            return Refusal::new(StatusCode::NOT_FOUND, "the protocol is served at /acp").response();
        }
        let answer = match *request.method() {
            Method::POST => self.post(&principal, request).await,
            Method::GET if connection::is_upgrade(&request) => self.upgrade(&principal, request),
            Method::GET => self.stream(&principal, &request),
            Method::DELETE => self.delete(&principal, &request),
            _ => {
                let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                Ok(response)
            }
        };
        answer.unwrap_or_else(Refusal::response)
    }

    /// Whom a request comes from. Of a token that is not known it is asked whether it has come since.
    async fn principal(&self, request: &Request<Incoming>) -> Result<Principal, StatusCode> {
        let known = self.access.principal(request);
        let (Err(_), Some(refresh)) = (&known, &self.refresh) else { return known };
        if !self.access.has_token(request) {
            return known;
        }
        let arrived = Instant::now();
        let mut refreshed = self.refreshed.lock().await;
        // Whoever waited meanwhile has had it done.
        if refreshed.is_none_or(|last| last < arrived) {
            if let Some(last) = *refreshed {
                tokio::time::sleep_until(last + REFRESH).await;
            }
            *refreshed = Some(Instant::now());
            let refresh = refresh.clone();
            // It reads a file.
            let _ = tokio::task::spawn_blocking(move || refresh()).await;
        }
        drop(refreshed);
        self.access.principal(request)
    }

    /// Ends connections whose client is gone for good, or does not read.
    async fn reap(self: Arc<Self>) {
        let mut interval = tokio::time::interval(REAP.min(self.limits.away / 4).max(Duration::from_millis(10)));
        loop {
            interval.tick().await;
            let all: Vec<Arc<Connection>> = self.connections().by_id.values().cloned().collect();
            for connection in all {
                let channel = &connection.channel;
                if channel.stalled_for().is_some_and(|time| time >= self.limits.stalled) {
                    self.metrics.stalled.add(1);
                    channel.end(Ended::Lost(std::io::ErrorKind::TimedOut));
                } else if channel.away_for().is_some_and(|time| time >= self.limits.away) {
                    self.metrics.abandoned.add(1);
                    channel.end(Ended::Lost(std::io::ErrorKind::ConnectionAborted));
                }
                if channel.is_over() {
                    self.forget(&connection);
                }
            }
        }
    }

    /// Waits for running turns, then ends all connections.
    async fn wind_up(self: Arc<Self>) {
        self.is_stopping.store(true, Ordering::Relaxed);
        let all: Vec<Arc<Connection>> = self.connections().by_id.values().cloned().collect();
        all.iter().for_each(|connection| connection.channel.announce(STOPPING_NOTICE));
        let until = Instant::now() + self.limits.shutdown;
        let is_busy = || self.connections().by_id.values().any(|connection| connection.channel.is_busy());
        while is_busy() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // The agents hear that nobody is there any more, end their turns, and say what they owe.
        let all: Vec<Arc<Connection>> = self.connections().by_id.values().cloned().collect();
        all.iter().for_each(|connection| connection.channel.end(Ended::Closed));
        let until = Instant::now() + Duration::from_secs(5);
        while !self.connections().by_id.is_empty() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Receivers may be gone already.
        self.stopping.send_replace(true);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
