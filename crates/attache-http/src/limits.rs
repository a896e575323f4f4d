//! What a server may take: every bound in one place, with the reason for its number.

use std::time::Duration;

use crate::channel::Bounds;

/// The bounds of a server. What would go past them is made to wait, refused or closed with a reason.
///
/// ```
/// let limits = attache_http::ServerLimits { connections: 10, ..Default::default() };
/// assert!(limits.connections_each <= attache_http::ServerLimits::default().connections);
/// ```
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Connections of the protocol, of all clients together. Default 4,096.
    pub connections: usize,
    /// Connections of one principal. Default 256.
    pub connections_each: usize,
    /// TCP connections, of the protocol or not. Default 8,192: a client over HTTP/1.1 takes one for each stream.
    pub sockets: usize,
    /// TCP connections over which nobody has shown a token yet. Default 1,024: when there are more, the oldest of them goes. None of
    /// them stays for longer than [`request`](Self::request).
    pub strangers: usize,
    /// Session streams of one connection. Default 1,024.
    pub streams: usize,
    /// Session streams that a client opens before the session has a name. Default 16.
    pub early_streams: usize,
    /// The longest message. Default 32 MiB, as other implementations.
    pub message: usize,
    /// Bytes of a connection that wait to be read by the agent. Default 1 MiB; one message may be longer.
    pub incoming: usize,
    /// Bytes of a connection that wait to be read by the client. Default 1 MiB; one message may be longer. Then the agent waits.
    pub outgoing: usize,
    /// Bytes of messages of all clients that have arrived, in whole or in part, and that no agent has taken. What would go past it
    /// is refused (status 503) or waits. Default 512 MiB.
    pub unread: usize,
    /// The same of one principal. Default 128 MiB: four messages of the greatest length at a time.
    pub unread_each: usize,
    /// How long an agent waits for a client that does not read before the connection is closed. Default one minute.
    pub stalled: Duration,
    /// How long a connection stays when its client is gone and may come back. Default two minutes.
    pub away: Duration,
    /// How long the headers of a request, its body or a TLS handshake may take. Default 15 seconds.
    pub request: Duration,
    /// How long an agent may take to answer `initialize`. Default 30 seconds.
    pub initialize: Duration,
    /// How long running turns may go on when the server is told to stop. Default 20 seconds.
    pub shutdown: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 4096,
            connections_each: 256,
            sockets: 8192,
            strangers: 1024,
            streams: 1024,
            early_streams: 16,
            message: 32 << 20,
            incoming: 1 << 20,
            outgoing: 1 << 20,
            unread: 512 << 20,
            unread_each: 128 << 20,
            stalled: Duration::from_secs(60),
            away: Duration::from_secs(120),
            request: Duration::from_secs(15),
            initialize: Duration::from_secs(30),
            shutdown: Duration::from_secs(20),
        }
    }
}

impl ServerLimits {
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { incoming: self.incoming, outgoing: self.outgoing, streams: self.streams, early: self.early_streams }
    }
}
