//! The client: connects to an agent on another machine, and comes back when the connection is lost.

mod cookies;
mod http;
mod news;
mod tls;
mod websocket;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use attache::transport::Transport;
use tokio::time::Instant;
use url::{Host, Url};

use crate::channel::{Bounds, Channel, End};
use crate::message::{STOPPING, raw_member, string_member};
use cookies::Cookies;

pub use news::LinkNews;
use news::Told;
pub use tls::Fingerprint;

/// How long a client tries to come back before it gives up. A little less than servers wait.
const WINDOW: Duration = Duration::from_secs(110);
/// The longest message that is read: as long as servers take.
const LONGEST: usize = 32 << 20;
/// Bytes of messages that have arrived, in whole or in part, and that the program has not read: of all streams together.
const UNREAD: usize = 2 * LONGEST;
/// How long it may take to reach a server.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server may take to answer a request that is not a stream.
const ANSWER: Duration = Duration::from_secs(60);

/// An agent on another machine, by its address.
///
/// `http://` and `https://` speak Streamable HTTP, `ws://` and `wss://` a WebSocket. `/acp` is added to a path that does not end in
/// it.
///
/// ```no_run
/// # async fn example(token: &str) -> Result<(), Box<dyn std::error::Error>> {
/// use attache_http::Remote;
///
/// let remote = Remote::new("wss://build.example.com")?.token(token).connect().await?;
/// let agent = attache::Client::new("my-editor", "1.0").over(remote.transport).await?;
/// let session = agent.session("/home/me/project").open().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Remote {
    url: Url,
    token: Option<String>,
    fingerprint: Option<Fingerprint>,
    http2: bool,
    told: Told,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// A connection to a remote agent.
#[derive(Debug)]
pub struct Connected {
    /// The connection, for [`Client::over`](attache::Client::over) or anything else that takes messages.
    pub transport: Transport,
    /// Why it ended, once it has.
    pub failure: Failure,
}

/// Why a connection ended, if not because everything was said.
#[derive(Debug, Clone, Default)]
pub struct Failure(Arc<OnceLock<RemoteError>>);

impl Failure {
    /// The reason, once there is one.
    pub fn get(&self) -> Option<&RemoteError> {
        self.0.get()
    }

    fn set(&self, error: RemoteError) {
        // The first reason is the cause of the others.
        let _ = self.0.set(error);
    }
}

/// Why a remote agent cannot be reached, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The address cannot be used.
    #[error("invalid address of an agent: {0}")]
    Address(&'static str),
    /// A token would travel in the clear.
    #[error(
        "refusing to send a token without TLS to another machine\nhint: use https:// or wss://, or an ssh tunnel to localhost"
    )]
    InTheClear,
    /// TLS cannot be set up on this machine.
    #[error("TLS is not available: {0}")]
    Tls(String),
    /// The server's certificate is not the one that was expected.
    #[error("the server's certificate is not trusted: {0}")]
    Certificate(String),
    /// The server has another certificate than the one that is trusted.
    #[error("the server's certificate is not the one with the fingerprint that was given: its own is {0}")]
    WrongFingerprint(Fingerprint),
    /// One end speaks TLS, and the other does not.
    #[error("the server does not speak {tried} at this address\nhint: try {other}")]
    OtherScheme {
        /// How it was called.
        tried: &'static str,
        /// What it may speak instead.
        other: &'static str,
    },
    /// Nobody answers.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The token is missing or wrong.
    #[error("the server did not accept the token (status {0})\nhint: `attache login URL`")]
    Unauthorized(u16),
    /// The server does not speak the protocol here.
    #[error("the server refused the connection with status {0}")]
    Refused(u16),
    /// The server refused, and said why in words.
    #[error("the server refused the connection: {words} (status {status})")]
    RefusedBecause {
        /// The status.
        status: u16,
        /// What it said, on one line, without control characters.
        words: String,
    },
    /// The server is being stopped.
    #[error("the server is stopping; sessions are kept, so try again when it is back")]
    Stopping,
    /// The server does not know this connection any more.
    #[error("the server has ended the connection")]
    Ended,
    /// The connection was lost, and could not be taken up again.
    #[error("the connection was lost: {0}")]
    Lost(String),
}

impl RemoteError {
    /// What a status means that is no success.
    fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => RemoteError::Unauthorized(status),
            404 | 410 => RemoteError::Ended,
            status => RemoteError::Refused(status),
        }
    }

    /// The same, with what the server said in the body.
    fn of_answer(status: u16, body: &[u8]) -> Self {
        let error = RemoteError::of_status(status);
        if error != RemoteError::Refused(status) {
            return error;
        }
        match words_of(body) {
            Some(words) if status == 503 && words == STOPPING => RemoteError::Stopping,
            Some(words) => RemoteError::RefusedBecause { status, words },
            None => error,
        }
    }

    /// Whether the same may be tried again on a connection that was lost.
    fn may_pass(&self) -> bool {
        match self {
            RemoteError::Unreachable(_) | RemoteError::Refused(502..=504) => true,
            RemoteError::RefusedBecause { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }
}

/// How much of a server's words is told.
const MOST_WORDS: usize = 300;

/// What a body says: a line of text, or the message of an error. A page of a proxy says nothing.
fn words_of(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let message = match text.starts_with('{') {
        true => string_member(raw_member(text, "error")?, "message")?,
        false => text.to_owned(),
    };
    let is_line = !message.is_empty() && !message.starts_with('<') && !message.contains(char::is_control);
    is_line.then(|| message.chars().take(MOST_WORDS).collect())
}

impl Remote {
    /// The agent at this address.
    pub fn new(url: &str) -> Result<Self, RemoteError> {
        let mut url = Url::parse(url).map_err(|_| RemoteError::Address("not a URL"))?;
        if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") {
            return Err(RemoteError::Address("it has to begin with http://, https://, ws:// or wss://"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(RemoteError::Address("missing host"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(RemoteError::Address("a token does not belong in an address; use `attache login URL`"));
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = if path.ends_with("/acp") { path.to_owned() } else { format!("{path}/acp") };
        url.set_path(&path);
        Ok(Remote { url, token: None, fingerprint: None, http2: false, told: Told::default() })
    }

    /// Shows this token with every request.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.trim().to_owned()).filter(|token| !token.is_empty());
        self
    }

    /// Trusts the server with this certificate, and no other.
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }

    /// Speaks HTTP/2 without asking, to a server without TLS. With TLS both ends agree on it by themselves.
    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// Calls `hear` when the connection is lost for longer than a moment, when it is back, and when the server stops.
    pub fn on_news(mut self, hear: impl Fn(LinkNews) + Send + Sync + 'static) -> Self {
        self.told = Told::new(hear);
        self
    }

    /// Whether the server is this machine.
    fn is_local(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    fn is_secure(&self) -> bool {
        matches!(self.url.scheme(), "https" | "wss")
    }

    /// The other of two addresses: with TLS, or without it.
    fn other_scheme(&self) -> RemoteError {
        let (tried, other) = match self.url.scheme() {
            "http" => ("http://", "https://"),
            "https" => ("https://", "http://"),
            "ws" => ("ws://", "wss://"),
            _ => ("wss://", "ws://"),
        };
        RemoteError::OtherScheme { tried, other }
    }

    /// Whether a token would travel in the clear: without TLS, to another machine. [`connect`](Self::connect) refuses to.
    pub fn is_in_the_clear(&self) -> bool {
        !self.is_secure() && !self.is_local()
    }

    /// Asks the server whether it lets us in, without opening a connection of the protocol.
    pub async fn check(mut self) -> Result<(), RemoteError> {
        if self.token.is_some() && self.is_in_the_clear() {
            return Err(RemoteError::InTheClear);
        }
        let scheme = if self.is_secure() { "https" } else { "http" };
        // Both are special schemes, so one can be set in place of the other.
        let _ = self.url.set_scheme(scheme);
        http::check(self).await
    }

    /// Connects. Over a WebSocket this waits for the server; over HTTP the first message does.
    pub async fn connect(self) -> Result<Connected, RemoteError> {
        if self.token.is_some() && self.is_in_the_clear() {
            return Err(RemoteError::InTheClear);
        }
        let bounds = Bounds { incoming: 1 << 20, outgoing: 1 << 20, streams: 0, early: 0 };
        let channel = Channel::new(End::Client, bounds);
        let failure = Failure::default();
        let connected = Connected { transport: channel.transport(), failure: failure.clone() };
        let jar = Arc::new(Cookies::default());
        if matches!(self.url.scheme(), "ws" | "wss") {
            websocket::connect(self, jar, channel, failure).await?;
        } else {
            http::connect(self, jar, channel, failure)?;
        }
        Ok(connected)
    }
}

/// Waits longer from try to try.
struct BackOff {
    until: Instant,
    next: Duration,
    /// How often it began anew since then.
    begun: (u32, Instant),
}

/// How often a minute it begins anew. A server that says a word and is gone again is not followed at once for ever.
const MOST_BEGUN: u32 = 20;

impl BackOff {
    fn new() -> Self {
        BackOff { until: Instant::now() + WINDOW, next: Duration::from_millis(50), begun: (0, Instant::now()) }
    }

    /// The server was there, and said something.
    fn begin_anew(&mut self) {
        let now = Instant::now();
        self.until = now + WINDOW;
        if now.duration_since(self.begun.1) > Duration::from_secs(60) {
            self.begun = (0, now);
        }
        self.begun.0 += 1;
        if self.begun.0 <= MOST_BEGUN {
            self.next = Duration::from_millis(50);
        }
    }

    /// Waits before the next try; `false` when it is time to give up.
    async fn wait(&mut self) -> bool {
        if Instant::now() + self.next > self.until {
            return false;
        }
        // Clients that lost the same server do not come back all at once.
        let mut byte = [0];
        let _ = getrandom::fill(&mut byte);
        let spread = self.next.mul_f64(f64::from(byte[0]) / 512.0);
        tokio::time::sleep(self.next / 2 + spread).await;
        self.next = (self.next * 2).min(Duration::from_secs(5));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_a_word_and_is_gone_is_not_followed_for_ever_at_once() {
        let (started, mut back_off) = (Instant::now(), BackOff::new());
        let mut tries = 0;
        while started.elapsed() < Duration::from_secs(600) {
            assert!(back_off.wait().await, "it said something, so it is not given up");
            back_off.begin_anew();
            tries += 1;
        }
        assert!((100..500).contains(&tries), "{tries}");
    }
}
