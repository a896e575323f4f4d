//! The client's end of a WebSocket.

use std::sync::Arc;

use http::header::{AUTHORIZATION, COOKIE, HOST, SET_COOKIE};
use http::{HeaderValue, Request};
use reqwest::cookie::CookieStore;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Error as SocketError;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::cookies::Cookies;
use super::tls::{self, Seen};
use super::{ANSWER, BackOff, CONNECT, Failure, LONGEST, Remote, RemoteError};
use crate::channel::{Channel, Ended};
use crate::intake::Metered;
use crate::server::{CONNECTION_ID, RECEIVED};
use crate::socket::{self, SocketEnd};

/// Any stream of bytes.
trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

type Socket = WebSocketStream<Metered<Box<dyn Bytes>>>;

/// Why a server closes a connection on which it has said nothing.
const NO_GREETING: &str = "the agent ended before it answered `initialize`; the log of the server says why";

struct Opened {
    socket: Socket,
    id: Option<String>,
    /// How many of our messages the server has.
    received: Option<u64>,
}

pub(super) async fn connect(
    remote: Remote,
    jar: Arc<Cookies>,
    channel: Arc<Channel>,
    failure: Failure,
) -> Result<(), RemoteError> {
    let opened = open(&remote, &jar, None).await?;
    tokio::spawn(run(remote, jar, channel, failure, opened));
    Ok(())
}

/// Moves messages until everything is said, or the server cannot be reached again.
async fn run(remote: Remote, jar: Arc<Cookies>, channel: Arc<Channel>, failure: Failure, first: Opened) {
    let mut opened = first;
    let mut id = opened.id.clone();
    let mut tries = 0;
    let (mut before, mut back_off) = (0, BackOff::new());
    let mut reader = channel.attach(&None, None);
    loop {
        let Ok(attached) = reader else {
            failure.set(RemoteError::Lost("the server lost messages".into()));
            return channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
        };
        let stopping = || remote.told.stopping();
        let end = socket::run(&mut opened.socket, &channel, attached, Some(&stopping)).await;
        channel.detach(&None, attached);
        if remote.told.is_stopping() && !channel.is_over() {
            failure.set(RemoteError::Stopping);
            return channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
        }
        if end == SocketEnd::Lost && tries < 3 && channel.greet_again() {
            tries += 1;
            match open(&remote, &jar, None).await {
                Ok(again) => (id, opened) = (again.id.clone(), again),
                Err(error) => {
                    failure.set(error);
                    return channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
                }
            }
            reader = channel.attach(&None, None);
            continue;
        }
        let id = id.as_deref().filter(|_| end == SocketEnd::Lost && channel.resumes());
        let Some(id) = id else {
            return match end {
                SocketEnd::Closed if !channel.is_over() && channel.received() == 0 => {
                    failure.set(RemoteError::Lost(NO_GREETING.into()));
                    channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
                }
                SocketEnd::Closed if !channel.is_over() => {
                    // The server has closed it, and we had not said that we are done.
                    failure.set(RemoteError::Ended);
                    channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
                }
                SocketEnd::Over | SocketEnd::Closed | SocketEnd::Replaced | SocketEnd::Protocol => {
                    channel.end(Ended::Closed);
                }
                SocketEnd::TooLong => {
                    failure.set(RemoteError::Lost("a message of the server is too long".into()));
                    channel.end(Ended::Lost(std::io::ErrorKind::InvalidData));
                }
                SocketEnd::Lost => {
                    failure.set(RemoteError::Lost("the server cannot take it up again".into()));
                    channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
                }
            };
        };
        if channel.received() > before {
            back_off.begin_anew();
        }
        before = channel.received();
        if !back_off.wait().await {
            failure.set(RemoteError::Lost("the server closes its sockets again and again".into()));
            return channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
        }
        opened = loop {
            match open(&remote, &jar, Some((id, channel.received()))).await {
                Ok(opened) => {
                    remote.told.back();
                    break opened;
                }
                Err(error) => {
                    if error.may_pass() {
                        remote.told.lost();
                        if back_off.wait().await {
                            continue;
                        }
                    }
                    failure.set(error);
                    return channel.end(Ended::Lost(std::io::ErrorKind::ConnectionReset));
                }
            }
        };
        reader = channel.attach(&None, Some(opened.received.unwrap_or(0)));
    }
}

/// Opens a socket: of a new connection, or of one that has an id and so many messages.
async fn open(remote: &Remote, jar: &Cookies, known: Option<(&str, u64)>) -> Result<Opened, RemoteError> {
    let opening = async {
        let io = connect_io(remote).await?;
        handshake(remote, jar, known, io).await
    };
    let limit = if known.is_some() { CONNECT } else { ANSWER };
    tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| Err(RemoteError::Unreachable("timed out".into())))
}

async fn connect_io(remote: &Remote) -> Result<Box<dyn Bytes>, RemoteError> {
    let unreachable = |error: std::io::Error| RemoteError::Unreachable(error.kind().to_string());
    let host = remote.url.host_str().unwrap_or_default();
    let port = remote.url.port_or_known_default().unwrap_or(443);
    let bare = host.trim_matches(['[', ']']);
    let tcp = tokio::time::timeout(CONNECT, TcpStream::connect((bare, port))).await;
    let tcp = tcp.map_err(|_| RemoteError::Unreachable("timed out".into()))?.map_err(unreachable)?;
    // Small messages are to go at once; if not, they go a little later.
    let _ = tcp.set_nodelay(true);
    if !remote.is_secure() {
        return Ok(Box::new(tcp));
    }
    let fingerprint = remote.fingerprint;
    let seen = Seen::default();
    let noted = seen.clone();
    let config = tokio::task::spawn_blocking(move || tls::config(fingerprint, &["http/1.1"], &noted)).await;
    let config = config.map_err(|_| RemoteError::Tls("not available".into()))??;
    let name = rustls::pki_types::ServerName::try_from(bare.to_owned());
    let name = name.map_err(|_| RemoteError::Address("invalid host"))?;
    match TlsConnector::from(Arc::new(config)).connect(name, tcp).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
            Err(match (seen.wrong(), cause) {
                (Some(fingerprint), _) => RemoteError::WrongFingerprint(fingerprint),
                (None, Some(rustls::Error::InvalidMessage(_))) => remote.other_scheme(),
                _ => RemoteError::Certificate(error.to_string()),
            })
        }
        Err(error) => Err(unreachable(error)),
    }
}

async fn handshake(
    remote: &Remote,
    jar: &Cookies,
    known: Option<(&str, u64)>,
    io: Box<dyn Bytes>,
) -> Result<Opened, RemoteError> {
    let request = request(remote, jar, known)?;
    let io = Metered::new(io, None);
    let (socket, response) = match client_async_with_config(request, io, Some(socket::config(LONGEST))).await {
        Ok(done) => done,
        Err(SocketError::Http(response)) => {
            let body = response.body().as_deref().unwrap_or_default();
            return Err(RemoteError::of_answer(response.status().as_u16(), body));
        }
        Err(SocketError::Io(error)) => return Err(RemoteError::Unreachable(error.kind().to_string())),
        // An ssh tunnel whose other end is gone takes the connection and closes it.
        Err(SocketError::Protocol(ProtocolError::HandshakeIncomplete)) => {
            return Err(RemoteError::Unreachable("it closed the connection without an answer".into()));
        }
        Err(SocketError::Protocol(_) | SocketError::HttpFormat(_)) => return Err(remote.other_scheme()),
        Err(_) => return Err(RemoteError::Unreachable("the WebSocket was not opened".into())),
    };
    let headers = response.headers();
    jar.set_cookies(&mut headers.get_all(SET_COOKIE).iter(), &cookie_url(remote));
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let id = text(CONNECTION_ID).map(str::to_owned);
    let received = text(RECEIVED).and_then(|count| count.parse().ok());
    Ok(Opened { socket, id, received })
}

fn request(remote: &Remote, jar: &Cookies, known: Option<(&str, u64)>) -> Result<Request<()>, RemoteError> {
    let invalid = |_| RemoteError::Address("invalid characters");
    let mut request =
        remote.url.as_str().into_client_request().map_err(|_| RemoteError::Address("not a URL of a WebSocket"))?;
    let headers = request.headers_mut();
    debug_assert!(headers.contains_key(HOST));
    if let Some(token) = &remote.token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(invalid)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(cookies) = jar.cookies(&cookie_url(remote)) {
        headers.insert(COOKIE, cookies);
    }
    if let Some((id, received)) = known {
        headers.insert(CONNECTION_ID, HeaderValue::from_str(id).map_err(invalid)?);
        headers.insert(RECEIVED, received.into());
    }
    Ok(request)
}

/// The address as cookies know it.
fn cookie_url(remote: &Remote) -> url::Url {
    let mut url = remote.url.clone();
    // Both are special schemes, so one can be set in place of the other.
    let _ = url.set_scheme(if remote.is_secure() { "https" } else { "http" });
    url
}
