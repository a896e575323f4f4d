//! Where a server listens: TCP, with or without TLS, and Unix sockets.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio_rustls::{Accept, TlsAcceptor};

/// Where a server listens.
pub struct Listener {
    kind: Kind,
    tls: Option<TlsAcceptor>,
}

enum Kind {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// A stream that somebody opened.
pub(crate) enum Stream {
    /// Plain bytes.
    Tcp(TcpStream),
    /// A handshake that is still to be made.
    Tls(Box<Accept<TcpStream>>),
    /// A Unix socket.
    #[cfg(unix)]
    Unix(UnixStream),
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Listener {
    /// Listens on a TCP port.
    pub fn tcp(listener: TcpListener) -> Self {
        Listener { kind: Kind::Tcp(listener), tls: None }
    }

    /// Listens on a TCP port, with TLS.
    pub fn tls(listener: TcpListener, mut config: ServerConfig) -> Self {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Listener { kind: Kind::Tcp(listener), tls: Some(TlsAcceptor::from(Arc::new(config))) }
    }

    /// Listens on a Unix socket.
    #[cfg(unix)]
    pub fn unix(listener: UnixListener) -> Self {
        Listener { kind: Kind::Unix(listener), tls: None }
    }

    pub(super) async fn accept(&self) -> io::Result<Stream> {
        loop {
            let accepted = match &self.kind {
                Kind::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                    // Small messages are to go at once; if not, they go a little later.
                    let _ = stream.set_nodelay(true);
                    match &self.tls {
                        Some(tls) => Stream::Tls(Box::new(tls.accept(stream))),
                        None => Stream::Tcp(stream),
                    }
                }),
                #[cfg(unix)]
                Kind::Unix(listener) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
            };
            match accepted {
                // Out of descriptors, or a peer that was gone before it was accepted: others are served.
                Err(error) if is_passing(&error) => tokio::time::sleep(Duration::from_millis(50)).await,
                accepted => return accepted,
            }
        }
    }
}

/// Whether accepting may succeed later.
fn is_passing(error: &io::Error) -> bool {
    let is_limit = |code: i32| matches!(code, 12 | 23 | 24 | 105);
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    ) || error.raw_os_error().is_some_and(is_limit)
}
