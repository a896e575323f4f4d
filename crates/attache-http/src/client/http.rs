//! The client's end of Streamable HTTP: messages are posted one after the other, and come back on streams of events.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache::model::request::RequestId;
use attache::proto::json::Writer;
use attache::{Dialect, proto::Encode};
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::cookies::Cookies;
use super::tls::{self, Seen};
use super::{ANSWER, BackOff, CONNECT, Failure, LONGEST, Remote, RemoteError, UNREAD};
use crate::access::Principal;
use crate::channel::{Channel, Ended, Next, Number};
use crate::intake::{Held, Intake, Share};
use crate::message::{Kind, STOPPING_NOTICE, parts, received, updated_session};
use crate::server::{CONNECTION_ID, LAST_EVENT, MESSAGE, SESSION_ID};
use crate::socket::{TELL_BYTES, bad_message};
use crate::sse::EventReader;

/// How long a stream of a server that sends signs of life may be silent.
const SILENCE: Duration = Duration::from_secs(45);

/// Streams of sessions that are opened at most.
const MOST_STREAMS: usize = 4096;

/// Requests whose answers name a session.
const OPENING: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

/// Requests of an agent that are remembered until they are answered. The library answers more than these with an error.
const MOST_ASKED: usize = 4096;

/// The longest body of an answer that says nothing.
const LONGEST_NOTHING: usize = 64 << 10;

/// After so many messages, or so many bytes, a server is told that they have arrived. That is a request, so it is not done for a
/// few small ones.
const TELL_MESSAGES: u64 = 1024;

/// How long the streams of sessions may take to end when the connection's has.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How soon a server is told what has arrived.
const TELL_AFTER: Duration = Duration::from_secs(1);

struct Link {
    remote: Remote,
    client: Client,
    channel: Arc<Channel>,
    failure: Failure,
    state: Mutex<State>,
    /// What has arrived on all streams.
    intake: Arc<Share>,
    /// The certificate that the server showed, if it was not the right one.
    seen: Seen,
}

#[derive(Default)]
struct State {
    /// The id that the server gave.
    id: Option<HeaderValue>,
    /// Streams of sessions, open or about to be.
    streams: HashMap<String, Arc<OnceCell<()>>>,
    /// Requests of the agent that are about a session: their answers name it.
    asked: HashMap<RequestId, String>,
    /// Our own requests that wait for an answer on a session's stream.
    waiting: HashMap<RequestId, String>,
    /// Our own requests that open a session.
    opening: HashSet<RequestId>,
    /// Those of them that close their session.
    closing: HashSet<RequestId>,
    /// Sessions that are closed. Some servers forget their streams with them, without a word.
    closed: HashSet<String>,
}

pub(super) fn connect(
    remote: Remote,
    jar: Arc<Cookies>,
    channel: Arc<Channel>,
    failure: Failure,
) -> Result<(), RemoteError> {
    let seen = Seen::default();
    let client = client(&remote, jar, &seen)?;
    let intake = Intake::new(UNREAD, UNREAD).share(&Principal::new("server"));
    let link = Arc::new(Link { remote, client, channel, failure, state: Mutex::default(), intake, seen });
    tokio::spawn(link.run());
    Ok(())
}

fn client(remote: &Remote, jar: Arc<Cookies>, seen: &Seen) -> Result<Client, RemoteError> {
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .cookie_provider(jar)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT)
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")));
    if remote.is_local() {
        builder = builder.no_proxy();
    }
    if remote.is_secure() {
        builder = builder.tls_backend_preconfigured(tls::config(remote.fingerprint, &["h2", "http/1.1"], seen)?);
    } else {
        // Nothing will be checked against certificates.
        builder = builder.tls_backend_preconfigured(tls::config(Some(super::Fingerprint::of(&[])), &[], seen)?);
        if remote.http2 {
            builder = builder.http2_prior_knowledge();
        }
    }
    builder.build().map_err(|error| RemoteError::Tls(error.to_string()))
}

/// Asks the server whether it lets us in: a request that it refuses for what it lacks, and not for who sends it.
pub(super) async fn check(remote: Remote) -> Result<(), RemoteError> {
    let seen = Seen::default();
    let client = client(&remote, Arc::default(), &seen)?;
    let mut get = client.get(remote.url.clone());
    if let Some(token) = &remote.token {
        get = get.bearer_auth(token);
    }
    match timeout(CONNECT, get.send()).await {
        Ok(Ok(response)) => match response.status().as_u16() {
            status @ (401 | 403) => Err(RemoteError::of_status(status)),
            status @ (404 | 502..) => Err(RemoteError::Refused(status)),
            _ => Ok(()),
        },
        Ok(Err(error)) => Err(unreachable(&error, &remote, &seen)),
        Err(_) => Err(RemoteError::Unreachable("timed out".into())),
    }
}

impl Link {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts what the program says, one message after the other, until it says no more.
    async fn run(self: Arc<Self>) {
        let Ok(reader) = self.channel.attach(&None, None) else { return };
        // How many messages were taken before the first that the server counts.
        let mut uncounted = 0;
        let next = async || std::future::poll_fn(|cx| self.channel.poll_next(cx, &None, reader)).await;
        while let Next::Message(number, text) = next().await {
            let is_greeting = parts(&text).is_ok_and(|parts| parts.method == "initialize");
            let done = if is_greeting {
                self.greet(&text).await.map(|()| false)
            } else {
                self.post(&text, number - uncounted).await
            };
            match done {
                Ok(is_counted) => {
                    uncounted += u64::from(!is_counted);
                    self.channel.acknowledge(&None, number);
                }
                Err(error) => return self.fail(error),
            }
        }
        let id = self.state().id.clone();
        if let (Some(id), false) = (id, self.failure.get().is_some()) {
            let leave = self.client.delete(self.remote.url.clone()).headers(self.headers()).header(CONNECTION_ID, id);
            // If it does not hear, it notices by itself.
            let _ = timeout(Duration::from_secs(2), leave.send()).await;
        }
        self.channel.end(Ended::Closed);
    }

    fn fail(&self, error: RemoteError) {
        self.failure.set(if self.remote.told.is_stopping() { RemoteError::Stopping } else { error });
        self.channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let token = self.remote.token.as_ref().and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        if let Some(mut token) = token {
            token.set_sensitive(true);
            headers.insert(AUTHORIZATION, token);
        }
        headers
    }

    /// Posts `initialize`, whose answer is the body of the response. It can be repeated: nothing follows from it.
    async fn greet(self: &Arc<Self>, text: &str) -> Result<(), RemoteError> {
        let mut tries = 0;
        let response = loop {
            let id = self.state().id.clone();
            let mut post = self
                .client
                .post(self.remote.url.clone())
                .headers(self.headers())
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
                .body(text.to_owned());
            if let Some(id) = &id {
                post = post.header(CONNECTION_ID, id.clone());
            }
            let sent = async {
                let response = post.send().await?;
                let head = (response.status().as_u16(), response.headers().clone());
                Ok::<_, reqwest::Error>((head, body(response, LONGEST).await?))
            };
            match timeout(ANSWER, sent).await {
                Err(_) => return Err(RemoteError::Unreachable("timed out".into())),
                // Some servers take `initialize` once for each connection.
                Ok(Ok(((400, _), _))) if id.is_some() => self.forget(),
                Ok(Ok(response)) => break response,
                Ok(Err(error)) if error.is_connect() || tries >= 3 => return Err(self.unreachable(&error)),
                Ok(Err(_)) => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(100 * tries)).await;
                }
            }
        };
        let ((status, headers), body) = response;
        if status != 200 {
            return Err(RemoteError::of_answer(status, &body));
        }
        let Ok(answer) = String::from_utf8(body) else { return Err(RemoteError::Refused(status)) };
        if parts(&answer).is_err() {
            return Err(RemoteError::Refused(status));
        }
        let id = headers.get(CONNECTION_ID).cloned();
        let is_new = {
            let mut state = self.state();
            let is_new = id.is_some() && state.id != id;
            if is_new {
                *state = State { id, ..State::default() };
            }
            is_new
        };
        self.channel.push(answer, None, Number::None).await;
        if is_new {
            self.clone().open_stream(None).await?;
        }
        Ok(())
    }

    fn forget(&self) {
        *self.state() = State::default();
    }

    /// Posts a message; `false` if the server did not take it. What it may have got already has the same number again.
    async fn post(self: &Arc<Self>, text: &str, number: u64) -> Result<bool, RemoteError> {
        let Ok(parts) = parts(text) else {
            // The server would refuse it. Whoever sent it is told as by an agent on the same machine.
            if let Some(answer) = bad_message(text) {
                self.channel.push(answer, None, Number::None).await;
            }
            return Ok(false);
        };
        let session = match &parts.kind {
            Kind::Response(id) => self.state().asked.remove(id),
            _ => parts.session(),
        };
        if session.as_deref().is_some_and(|session| HeaderValue::from_str(session).is_err()) {
            // No header can say it, so no server can have it.
            return match &parts.kind {
                Kind::Request(id) => {
                    self.answer(id, 400).await;
                    Ok(false)
                }
                Kind::Notification => Ok(false),
                Kind::Response(_) => Err(RemoteError::Lost("the server named a session that no header can".into())),
            };
        }
        if let Kind::Request(id) = &parts.kind
            && OPENING.contains(&parts.method.as_ref())
        {
            self.state().opening.insert(id.clone());
        }
        if let Some(session) = &session
            && !matches!(parts.kind, Kind::Response(_))
        {
            self.clone().open_session_stream(session).await;
            if let Kind::Request(id) = &parts.kind {
                let state = &mut *self.state();
                state.waiting.insert(id.clone(), session.clone());
                if matches!(parts.method.as_ref(), "session/close" | "session/delete") {
                    state.closing.insert(id.clone());
                }
            }
        }
        let resumes = self.channel.resumes();
        let mut back_off = BackOff::new();
        loop {
            let failed = match timeout(ANSWER, self.send(text, session.as_deref(), resumes.then_some(number))).await {
                Ok(Ok(200 | 202 | 204)) => {
                    self.remote.told.back();
                    return Ok(true);
                }
                Ok(Ok(status @ (502..=504))) if resumes => RemoteError::Refused(status),
                Ok(Ok(status @ (401 | 403 | 404 | 410))) => return Err(RemoteError::of_status(status)),
                Ok(Ok(status)) => {
                    return match &parts.kind {
                        Kind::Request(id) => {
                            self.answer(id, status).await;
                            Ok(false)
                        }
                        _ => Err(RemoteError::of_status(status)),
                    };
                }
                Ok(Err(error)) => self.unreachable(&error),
                Err(_) => RemoteError::Unreachable("timed out".into()),
            };
            if resumes {
                self.remote.told.lost();
            }
            if !resumes || self.channel.is_over() || !back_off.wait().await {
                return Err(failed);
            }
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> RemoteError {
        unreachable(error, &self.remote, &self.seen)
    }

    async fn send(&self, text: &str, session: Option<&str>, number: Option<u64>) -> Result<u16, reqwest::Error> {
        let mut post = self
            .client
            .post(self.remote.url.clone())
            .headers(self.headers())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(text.to_owned());
        if let Some(id) = self.state().id.clone() {
            post = post.header(CONNECTION_ID, id);
        }
        if let Some(session) = session {
            post = post.header(SESSION_ID, session);
        }
        if let Some(number) = number {
            post = post.header(MESSAGE, number);
        }
        let response = post.send().await?;
        let status = response.status().as_u16();
        // The connection can be used again when the body was read.
        body(response, LONGEST_NOTHING).await?;
        Ok(status)
    }

    /// Answers a request in the server's place.
    async fn answer(&self, id: &RequestId, status: u16) {
        let mut text = Vec::from(&b"{\"jsonrpc\":\"2.0\",\"id\":"[..]);
        id.encode(&mut Writer::new(&mut text, Dialect::V1));
        let error = format!(
            ",\"error\":{{\"code\":-32603,\"message\":\"the server refused the message\",\"data\":{{\"status\":{status}}}}}}}"
        );
        text.extend_from_slice(error.as_bytes());
        self.answered(id, false);
        if let Ok(text) = String::from_utf8(text) {
            self.channel.push(text, None, Number::None).await;
        }
    }

    /// Opens the stream of a session, unless it is open.
    async fn open_session_stream(self: Arc<Self>, session: &str) {
        let was_closed = self.state().closed.remove(session);
        if was_closed && let Ok(response) = self.open(Some(session), None).await {
            // The server gave the session a new stream; nothing comes on the old one any more.
            self.state().streams.insert(session.to_owned(), Arc::new(OnceCell::new_with(Some(()))));
            return self.start_reading(Some(session.to_owned()), response);
        }
        let cell = {
            let state = &mut *self.state();
            // A server that names more sessions than anybody has is not followed.
            if state.streams.len() >= MOST_STREAMS && !state.streams.contains_key(session) {
                return;
            }
            state.streams.entry(session.to_owned()).or_default().clone()
        };
        let link = self.clone();
        let session = session.to_owned();
        let of = session.clone();
        let opened = cell.get_or_try_init(|| link.open_stream(Some(of))).await;
        if opened.is_err() {
            // A server that has none yet may have one the next time; if not, it says so when the message is posted.
            self.state().streams.remove(&session);
        }
    }

    fn open_stream(self: Arc<Self>, session: Option<String>) -> BoxFuture<'static, Result<(), RemoteError>> {
        Box::pin(self.try_open_stream(session))
    }

    async fn try_open_stream(self: Arc<Self>, session: Option<String>) -> Result<(), RemoteError> {
        let response = self.open(session.as_deref(), None).await?;
        self.start_reading(session, response);
        Ok(())
    }

    fn start_reading(self: Arc<Self>, session: Option<String>, response: Response) {
        // Boxed: reading a stream opens others.
        let reading: BoxFuture<'static, ()> = Box::pin(self.read_stream(session, response));
        tokio::spawn(reading);
    }

    async fn get(&self, session: Option<&str>, last: Option<u64>) -> Result<Response, RemoteError> {
        let mut get = self
            .client
            .get(self.remote.url.clone())
            .headers(self.headers())
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = self.state().id.clone() {
            get = get.header(CONNECTION_ID, id);
        }
        if let Some(session) = session {
            get = get.header(SESSION_ID, session);
        }
        if let Some(last) = last {
            get = get.header(LAST_EVENT, last);
        }
        match timeout(ANSWER, get.send()).await {
            Ok(Ok(response)) if response.status() == 200 => {
                self.remote.told.back();
                Ok(response)
            }
            Ok(Ok(response)) => Err(RemoteError::of_status(response.status().as_u16())),
            Ok(Err(error)) => Err(self.unreachable(&error)),
            Err(_) => Err(RemoteError::Unreachable("timed out".into())),
        }
    }

    /// Hands the messages of a stream to the program; takes it up again where it was lost, if the server can.
    async fn read_stream(self: Arc<Self>, session: Option<String>, mut response: Response) {
        let id = self.state().id.clone();
        let this = session.as_ref().and_then(|session| self.state().streams.get(session).cloned());
        let (mut count, mut back_off) = (0, BackOff::new());
        loop {
            let before = count;
            self.read_events(session.as_deref(), &mut response, &mut count).await;
            if count > before {
                back_off.begin_anew();
            }
            if self.channel.is_over() || self.state().id != id || self.failure.get().is_some() {
                return;
            }
            if let (Some(session), Some(this)) = (&session, &this) {
                let state = &mut *self.state();
                if !state.streams.get(session).is_some_and(|stream| Arc::ptr_eq(stream, this)) {
                    return;
                }
                if state.closed.remove(session) {
                    // It ended with its session.
                    state.streams.remove(session);
                    return;
                }
            }
            if let Some(session) = session.as_deref().filter(|_| !self.channel.resumes()) {
                // What was on its way is lost; the stream is opened again when it is needed.
                return self.lose(session).await;
            }
            if !back_off.wait().await {
                return self.fail(RemoteError::Lost("the server closes its streams again and again".into()));
            }
            if self.remote.told.is_stopping() {
                // What the agent said last is read on the streams of sessions, which end at the same time.
                tokio::time::sleep(LAST_WORDS).await;
                return self.fail(RemoteError::Stopping);
            }
            match self.open(session.as_deref(), Some(count)).await {
                Ok(again) => response = again,
                Err(error) => {
                    return match session {
                        // We have left meanwhile, and were let go.
                        None if self.channel.is_over() => {}
                        None => self.fail(error),
                        Some(session) => self.lose(&session).await,
                    };
                }
            }
        }
    }

    /// Opens a stream, or opens it again after so many messages.
    async fn open(&self, session: Option<&str>, count: Option<u64>) -> Result<Response, RemoteError> {
        if !self.channel.resumes() {
            // What was sent meanwhile is lost, but a session can be loaded again.
            return match count {
                None => self.get(session, None).await,
                Some(_) if session.is_some() => self.get(session, None).await,
                Some(_) => Err(RemoteError::Ended),
            };
        }
        let mut back_off = BackOff::new();
        loop {
            match self.get(session, Some(count.unwrap_or(0))).await {
                Err(error) if error.may_pass() && !self.channel.is_over() => {
                    self.remote.told.lost();
                    if self.remote.told.is_stopping() || !back_off.wait().await {
                        return Err(error);
                    }
                }
                result => return result,
            }
        }
    }

    /// The stream of a session is gone: what waits for an answer on it gets none.
    async fn lose(&self, session: &str) {
        let waiting: Vec<RequestId> = {
            let state = &mut *self.state();
            state.streams.remove(session);
            let ids = state.waiting.iter().filter(|(_, of)| *of == session).map(|(id, _)| id.clone());
            ids.collect()
        };
        for id in waiting {
            self.answer(&id, 410).await;
        }
    }

    async fn read_events(self: &Arc<Self>, session: Option<&str>, response: &mut Response, count: &mut u64) {
        let mut reader = EventReader::new(LONGEST);
        let mut untold = (0, 0);
        // Of what is not whole yet.
        let mut held = self.intake.hold();
        loop {
            let patience = if untold.0 > 0 { TELL_AFTER } else { SILENCE };
            let chunk = match timeout(patience, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None) | Err(_)) => return,
                Err(_) if untold.0 > 0 => {
                    untold = (0, 0);
                    self.tell(session, *count).await;
                    continue;
                }
                // Servers that cannot take a stream up again may be silent for as long as they like.
                Err(_) if self.channel.resumes() => return,
                Err(_) => continue,
            };
            if !held.resize(reader.held() + chunk.len()) {
                return self.fail(RemoteError::Lost("the server sent more at once than there is room for".into()));
            }
            reader.feed(&chunk);
            drop(chunk);
            loop {
                let event = match reader.next() {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(_) => {
                        return self.fail(RemoteError::Lost("the server sent what is no stream of events".into()));
                    }
                };
                if self.channel.resumes() {
                    let number = event.id.unwrap_or(count.saturating_add(1));
                    if number <= *count {
                        continue;
                    }
                    *count = number;
                }
                if event.data == STOPPING_NOTICE && self.channel.resumes() {
                    self.remote.told.stopping();
                    continue;
                }
                untold = (untold.0 + 1, untold.1 + event.data.len());
                // It counts as long as the program has not read it.
                held.resize(reader.held());
                let mut of_event = self.intake.hold();
                if !of_event.resize(event.data.len()) {
                    return self.fail(RemoteError::Lost("the server sent more at once than there is room for".into()));
                }
                self.take(event.data, of_event).await;
                if untold.0 >= TELL_MESSAGES || untold.1 >= TELL_BYTES {
                    untold = (0, 0);
                    self.tell(session, *count).await;
                }
            }
        }
    }

    /// A message of the server.
    async fn take(self: &Arc<Self>, text: String, held: Held) {
        if updated_session(&text).is_some() {
            self.channel.push(text, Some(held), Number::None).await;
            return;
        }
        let Ok(parts) = parts(&text) else { return };
        match &parts.kind {
            Kind::Request(id) => {
                if let Some(session) = parts.session() {
                    let state = &mut *self.state();
                    if state.asked.len() < MOST_ASKED {
                        state.asked.insert(id.clone(), session);
                    }
                }
            }
            Kind::Response(id) => {
                self.answered(id, parts.body.is_some());
                // An answer that names a session: its messages come on a stream of their own.
                let is_opening = self.state().opening.remove(id);
                if let Some(session) = parts.session().filter(|_| is_opening) {
                    let link = self.clone();
                    tokio::spawn(async move { link.open_session_stream(&session).await });
                }
            }
            Kind::Notification => {}
        }
        self.channel.push(text, Some(held), Number::None).await;
    }

    /// A request of ours has its answer.
    fn answered(&self, id: &RequestId, is_result: bool) {
        // Streams of a server that takes them up again stay what they are.
        let resumes = self.channel.resumes();
        let state = &mut *self.state();
        let session = state.waiting.remove(id);
        if let Some(session) = session.filter(|_| state.closing.remove(id) && is_result && !resumes) {
            state.closed.insert(session);
        }
    }

    /// Tells the server what has arrived, so that it need not keep it.
    async fn tell(&self, session: Option<&str>, count: u64) {
        if self.channel.resumes() {
            // What is not told now is told later.
            let _ = timeout(ANSWER, self.send(&received(count), session, None)).await;
        }
    }
}

/// The body of an answer, as far as it may go.
async fn body(mut response: Response, longest: usize) -> Result<Vec<u8>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = longest - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            break;
        }
    }
    Ok(bytes)
}

fn unreachable(error: &reqwest::Error, remote: &Remote, seen: &Seen) -> RemoteError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let is_not_http = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
    let text = cause.to_string();
    match seen.wrong() {
        Some(fingerprint) => RemoteError::WrongFingerprint(fingerprint),
        // What TLS says about certificates is for the person; anything else is for another try.
        None if text.contains("certificate") => RemoteError::Certificate(text),
        None if is_not_http || text.contains("corrupt message") => remote.other_scheme(),
        None => RemoteError::Unreachable(text),
    }
}
