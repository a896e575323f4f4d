//! One connection of the protocol: opened by `initialize` or a WebSocket, named by its id in every request after that.

use std::sync::Arc;
use std::time::Duration;

use http::header::{
    ACCEPT, CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::answer::{Body, Events, Refusal, empty, json};
use super::metrics::Messages;
use super::{Accepted, Shared, body};
use crate::access::{Principal, one, random_hex};
use crate::channel::{AttachError, Channel, End, Ended, Number, Pushed, StreamId};
use crate::intake::{Held, Metered, Share};
use crate::message::{Kind, NotOne, STOPPING, parts, read_received};
use crate::socket::{self, SocketEnd};

/// The id of a connection.
pub(crate) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
/// The session that a request is about.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
/// The number of a message that a client posts: one that came before is not taken twice.
pub(crate) const MESSAGE: HeaderName = HeaderName::from_static("attache-message");
/// How many messages an end has received, when a WebSocket is opened again.
pub(crate) const RECEIVED: HeaderName = HeaderName::from_static("attache-received");
/// The last event that a client has of a stream.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// What is refused because it names no connection.
const NO_CONNECTION: Refusal = Refusal::new(StatusCode::BAD_REQUEST, "missing Acp-Connection-Id");

/// Messages that a client may post at the same time.
const MOST_POSTS: usize = 32;

/// Why there is no connection: the agent takes too long, or is gone.
const TOO_LATE: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the agent did not answer `initialize` in time"}}"#;
const NO_ANSWER: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the agent ended before it answered `initialize`; the log of the server says why"}}"#;

/// The longest id that is looked at.
const LONGEST_ID: usize = 1024;

/// Methods that are about a session.
const OF_SESSIONS: [&str; 10] = [
    "session/prompt",
    "session/cancel",
    "session/close",
    "session/delete",
    "session/fork",
    "session/load",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
];

/// A connection of the protocol.
pub(crate) struct Connection {
    id: String,
    principal: Principal,
    pub(crate) channel: Arc<Channel>,
    is_socket: bool,
    messages: Arc<Messages>,
    /// How many messages may be posted at once.
    posts: Arc<Semaphore>,
    /// Where the bytes of its messages count.
    share: Arc<Share>,
}

impl Connection {
    pub(crate) fn metrics(&self) -> &Messages {
        &self.messages
    }
}

/// Whether a request wants to become a WebSocket.
pub(super) fn is_upgrade<B>(request: &Request<B>) -> bool {
    let has = |name: HeaderName, word: &str| {
        let values = request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    has(UPGRADE, "websocket") && has(CONNECTION, "upgrade")
}

impl Shared {
    /// Opens a connection and gives it to the program.
    fn open(self: &Arc<Self>, principal: &Principal, end: End) -> Result<Arc<Connection>, Refusal> {
        if self.is_stopping() {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, STOPPING));
        }
        let id = random_hex::<16>().map_err(|_| Refusal::from(StatusCode::INTERNAL_SERVER_ERROR))?;
        let channel = Channel::new(end, self.limits.bounds());
        let connection = Arc::new(Connection {
            id: id.clone(),
            principal: principal.clone(),
            channel: channel.clone(),
            is_socket: end == End::Agent { streams: false },
            messages: self.metrics.messages.clone(),
            posts: Arc::new(Semaphore::new(MOST_POSTS)),
            share: self.intake.share(principal),
        });
        let number = {
            let connections = &mut *self.connections();
            let each = connections.each.entry(principal.clone()).or_default();
            if connections.open >= self.limits.connections || *each >= self.limits.connections_each {
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "there are too many connections already"));
            }
            *each += 1;
            connections.open += 1;
            connections.by_id.insert(id, connection.clone());
            connections.last += 1;
            connections.last
        };
        self.metrics.opened.add(1);
        let transport = channel.transport();
        let work = (self.accept)(Accepted { principal: principal.clone(), transport, number });
        let (shared, watched) = (self.clone(), connection.clone());
        tokio::spawn(async move {
            // Counted as long as it runs, also if it panics.
            let _ = tokio::spawn(work).await;
            shared.uncount(&watched.principal);
            // What the program said last is still to be read by the client, for as long as it may be away.
            let patience = shared.limits.stalled.min(shared.limits.away);
            let read = async {
                while !watched.channel.is_over() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let _ = tokio::time::timeout(patience, read).await;
            watched.channel.end(Ended::Lost(std::io::ErrorKind::ConnectionAborted));
            shared.forget(&watched);
        });
        Ok(connection)
    }

    /// Forgets a connection: its id means nothing any more. It counts until its agent has ended.
    pub(super) fn forget(&self, connection: &Connection) {
        self.connections().by_id.remove(&connection.id);
    }

    /// An agent has ended: its principal may have another connection.
    fn uncount(&self, principal: &Principal) {
        let connections = &mut *self.connections();
        connections.open -= 1;
        if let Some(each) = connections.each.get_mut(principal) {
            *each -= 1;
            if *each == 0 {
                connections.each.remove(principal);
            }
        }
    }

    /// The connection that a request names. One of somebody else is as unknown as any.
    fn named(&self, principal: &Principal, headers: &HeaderMap) -> Result<Option<Arc<Connection>>, Refusal> {
        let id = one(headers, CONNECTION_ID)?;
        let Some(id) = id else { return Ok(None) };
        let connection = self.connections().by_id.get(id).cloned();
        match connection.filter(|connection| connection.principal == *principal) {
            Some(connection) => {
                connection.channel.touch();
                Ok(Some(connection))
            }
            None => Err(Refusal::new(StatusCode::NOT_FOUND, "unknown connection")),
        }
    }

    /// Takes a message of a client.
    pub(super) async fn post(
        self: Arc<Self>,
        principal: &Principal,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        if !one(request.headers(), CONTENT_TYPE)?.is_some_and(is_json) {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the content type has to be application/json",
            ));
        }
        let connection = self.named(principal, request.headers())?.filter(|connection| !connection.is_socket);
        let session = one(request.headers(), SESSION_ID)?.map(str::to_owned);
        let number = one(request.headers(), MESSAGE)?;
        let number = match number.map(str::parse) {
            None => Number::None,
            // They are counted from 1: nothing is before the first.
            Some(Ok(number @ 1..)) => Number::Is(number),
            Some(_) => return Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid Attache-Message")),
        };
        // Each of them may be a long message that waits for room.
        let posting = connection.as_ref().map(|connection| connection.posts.clone().try_acquire_owned());
        let Ok(_posting) = posting.transpose() else {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many messages at once"));
        };
        let share = connection.as_ref().map_or_else(|| self.intake.share(principal), |found| found.share.clone());
        let mut held = share.hold();
        let body = body::read(request.into_body(), self.limits.message, &mut held);
        let body = match tokio::time::timeout(self.limits.request, body).await {
            Ok(body) => body.inspect_err(|why| self.metrics.crowded.add(u64::from(*why == body::CROWDED)))?,
            Err(_) => return Err(StatusCode::REQUEST_TIMEOUT.into()),
        };
        let Ok(text) = String::from_utf8(body) else {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, socket::refusal(NotOne::NotJson)));
        };
        let parts = parts(&text).map_err(|why| Refusal::new(StatusCode::BAD_REQUEST, socket::refusal(why)))?;
        self.metrics.messages.received(text.len());
        if parts.method == "initialize" && matches!(parts.kind, Kind::Request(_)) {
            return self.initialize(principal, connection, text, held).await;
        }
        let connection = connection.ok_or(NO_CONNECTION)?;
        // The Python SDK (0.12.1) names a session that it opens again in no header, and opens no stream for it.
        let has_no_stream = session.is_none() && matches!(parts.method.as_ref(), "session/load" | "session/resume");
        let stream = session_of(session, &parts)?;
        if has_no_stream {
            connection.channel.tell_on_connection(&stream);
        }
        if connection.channel.resumes()
            && let Some(count) = read_received(&text)
        {
            connection.channel.acknowledge(&stream, count);
            return Ok(empty(StatusCode::ACCEPTED));
        }
        let pushed = connection.channel.push(text, Some(held), number);
        match tokio::time::timeout(self.limits.stalled, pushed).await {
            Ok(Pushed::Taken | Pushed::Repeated) => Ok(empty(StatusCode::ACCEPTED)),
            Ok(Pushed::TooEarly) => Err(Refusal::new(StatusCode::BAD_REQUEST, "a message before this one is missing")),
            Ok(Pushed::Closed | Pushed::Replaced) => Err(Refusal::new(StatusCode::GONE, "the connection is closed")),
            Err(_) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the agent does not read")),
        }
    }

    /// `initialize`: opens a connection, unless the client has one, and waits for the agent's answer.
    async fn initialize(
        self: &Arc<Self>,
        principal: &Principal,
        connection: Option<Arc<Connection>>,
        text: String,
        held: Held,
    ) -> Result<Response<Body>, Refusal> {
        let is_new = connection.is_none();
        let connection = match connection {
            Some(connection) => connection,
            None => self.open(principal, End::Agent { streams: true })?,
        };
        let answer = connection.channel.expect_greeting();
        let asked = async {
            if connection.channel.push(text, Some(held), Number::None).await != Pushed::Taken {
                return None;
            }
            tokio::select! {
                answer = answer => answer.ok(),
                () = connection.channel.ended() => None,
            }
        };
        let answer = tokio::time::timeout(self.limits.initialize, asked).await;
        let Ok(Some(answer)) = answer else {
            connection.channel.end(Ended::Lost(std::io::ErrorKind::TimedOut));
            self.forget(&connection);
            let error = if answer.is_err() { TOO_LATE } else { NO_ANSWER };
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error));
        };
        connection.channel.touch();
        // An agent that refuses has no use for a connection.
        let is_refused = parts(&answer).is_ok_and(|parts| parts.body.is_none());
        let mut response = json(StatusCode::OK, bytes::Bytes::from(answer));
        if is_refused && is_new {
            connection.channel.end(Ended::Closed);
            self.forget(&connection);
        } else if let Ok(id) = HeaderValue::from_str(&connection.id) {
            response.headers_mut().insert(CONNECTION_ID, id);
        }
        Ok(response)
    }

    /// Opens a stream of events.
    pub(super) fn stream(&self, principal: &Principal, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let headers = request.headers();
        let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if !accepts.flat_map(|value| value.split(',')).any(|value| is_type(value, "text/event-stream")) {
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "Accept has to have text/event-stream in it"));
        }
        let connection =
            self.named(principal, headers)?.filter(|connection| !connection.is_socket).ok_or(NO_CONNECTION)?;
        let session = one(headers, SESSION_ID)?;
        if session.is_some_and(|session| session.is_empty() || session.len() > LONGEST_ID) {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid Acp-Session-Id"));
        }
        let stream: StreamId = session.map(Arc::from);
        let last = one(headers, LAST_EVENT)?.map(str::parse::<u64>).transpose();
        let last = last.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "invalid Last-Event-ID"))?;
        let reader = connection.channel.attach(&stream, last).map_err(|error| match error {
            AttachError::Taken => Refusal::new(StatusCode::CONFLICT, "somebody reads this stream"),
            AttachError::Unknown => Refusal::new(StatusCode::NOT_FOUND, "unknown session"),
            AttachError::Gone => Refusal::new(StatusCode::GONE, "what comes next is not kept any more"),
        })?;
        if last.is_some_and(|last| last > 0) {
            self.metrics.resumed.add(1);
        }
        let id = HeaderValue::from_str(&connection.id);
        let session = session.map(HeaderValue::from_str);
        let mut response = Events::response(connection, stream, reader);
        if let Ok(id) = id {
            response.headers_mut().insert(CONNECTION_ID, id);
        }
        if let Some(Ok(session)) = session {
            response.headers_mut().insert(SESSION_ID, session);
        }
        Ok(response)
    }

    /// Ends a connection.
    pub(super) fn delete(&self, principal: &Principal, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let connection = self.named(principal, request.headers())?.ok_or(NO_CONNECTION)?;
        connection.channel.end(Ended::Closed);
        self.forget(&connection);
        Ok(empty(StatusCode::ACCEPTED))
    }

    /// Makes a WebSocket of a request: of a new connection, or of one whose socket was lost.
    pub(super) fn upgrade(
        self: Arc<Self>,
        principal: &Principal,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let headers = request.headers();
        let key = match one(headers, SEC_WEBSOCKET_KEY) {
            Ok(Some(key)) if one(headers, SEC_WEBSOCKET_VERSION) == Ok(Some("13")) => derive_accept_key(key.as_bytes()),
            _ => {
                let mut response = empty(StatusCode::UPGRADE_REQUIRED);
                response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
                return Ok(response);
            }
        };
        let (connection, received) = self.socket_of(principal, headers)?;
        let reader = connection.channel.attach(&None, received);
        let reader = reader.map_err(|_| Refusal::new(StatusCode::GONE, "what comes next is not kept any more"))?;
        if received.is_some() {
            self.metrics.resumed.add(1);
        }
        let mut response = empty(StatusCode::SWITCHING_PROTOCOLS);
        let answer = response.headers_mut();
        answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
        answer.insert(RECEIVED, connection.channel.received().into());
        for (name, value) in [(SEC_WEBSOCKET_ACCEPT, &key), (CONNECTION_ID, &connection.id)] {
            if let Ok(value) = HeaderValue::from_str(value) {
                answer.insert(name, value);
            }
        }
        tokio::spawn(async move {
            let upgraded = tokio::time::timeout(self.limits.request, hyper::upgrade::on(request)).await;
            let end = match upgraded {
                Ok(Ok(upgraded)) => {
                    let config = socket::config(self.limits.message);
                    let io = Metered::new(TokioIo::new(upgraded), Some(connection.share.clone()));
                    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
                    socket::run(&mut socket, &connection.channel, reader, None).await
                }
                _ => SocketEnd::Lost,
            };
            connection.channel.detach(&None, reader);
            // A client that can come back may; one that left has left.
            let may_return = end == SocketEnd::Replaced || (end == SocketEnd::Lost && connection.channel.resumes());
            if !may_return {
                connection.channel.end(Ended::Closed);
                if !connection.channel.is_busy() {
                    self.forget(&connection);
                }
            }
        });
        Ok(response)
    }

    /// The connection of a new socket, and how many messages its client has of it, if it comes back.
    fn socket_of(
        self: &Arc<Self>,
        principal: &Principal,
        headers: &HeaderMap,
    ) -> Result<(Arc<Connection>, Option<u64>), Refusal> {
        let Some(connection) = self.named(principal, headers)? else {
            let connection = self.open(principal, End::Agent { streams: false })?;
            return Ok((connection, None));
        };
        let received = one(headers, RECEIVED)?.and_then(|count| count.parse().ok());
        match received {
            Some(received) if connection.is_socket && connection.channel.resumes() => Ok((connection, Some(received))),
            _ => Err(Refusal::new(StatusCode::CONFLICT, "this connection cannot be taken up again")),
        }
    }
}

/// The session that a message is about, by its header and its params, which have to agree.
fn session_of(header: Option<String>, parts: &crate::message::Parts<'_>) -> Result<StreamId, Refusal> {
    let named = match parts.kind {
        Kind::Response(_) => None,
        _ => parts.session(),
    };
    let session = match (header, named) {
        (Some(header), Some(named)) if header != named => {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "Acp-Session-Id and params.sessionId differ"));
        }
        (Some(session), _) | (None, Some(session)) => session,
        (None, None) if OF_SESSIONS.contains(&parts.method.as_ref()) => {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "missing Acp-Session-Id"));
        }
        (None, None) => return Ok(None),
    };
    if session.is_empty() || session.len() > LONGEST_ID {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid Acp-Session-Id"));
    }
    Ok(Some(session.into()))
}

fn is_json(content_type: &str) -> bool {
    is_type(content_type, "application/json")
}

fn is_type(value: &str, name: &str) -> bool {
    value.split(';').next().is_some_and(|value| value.trim().eq_ignore_ascii_case(name))
}
