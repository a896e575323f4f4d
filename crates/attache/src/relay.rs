//! A relay between a client and an agent: forwards every byte, and lets a program look at each message.
//!
//! ```
//! use attache::relay::{Direction, Relay, Verdict};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (client, near_client) = duplex(1024);
//! let (agent, near_agent) = duplex(1024);
//! let (client_reader, client_writer) = split(near_client);
//! let (agent_reader, agent_writer) = split(near_agent);
//! let relay = Relay::new(client_reader, client_writer, agent_reader, agent_writer).on_message(|direction, message| {
//!     match message.method() {
//!         Some("session/cancel") if direction == Direction::ClientToAgent => Verdict::Drop,
//!         _ => Verdict::Pass,
//!     }
//! });
//! let relay = tokio::spawn(relay.run());
//! let (mut client, mut agent) = (client, agent);
//! client.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\"}\n{ \"any\" : \"bytes\" }\n").await?;
//! client.shutdown().await?;
//! let mut heard = String::new();
//! agent.read_to_string(&mut heard).await?;
//! assert_eq!(heard, "{ \"any\" : \"bytes\" }\n");
//! # drop(agent);
//! # relay.await.unwrap()?;
//! # Ok(())
//! # }
//! ```

mod message;
mod pump;

#[cfg(test)]
mod tests;

use std::{fmt, io, time::Duration};

use attache_proto::bridge::Bridge;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::trace::Tap;

pub use message::{Direction, RelayMessage, Verdict};

pub(crate) type Hook = Box<dyn FnMut(Direction, &RelayMessage<'_>) -> Verdict + Send>;

/// The longest message that is relayed unless another limit is set. Larger than any prompt with pictures in it.
const LIMIT: usize = 64 * 1024 * 1024;

/// How long an agent may go on sending when its client is gone. Enough for the answers that are under way.
const GRACE: Duration = Duration::from_secs(2);

/// Forwards messages between a client and an agent.
///
/// What the hook passes is forwarded byte for byte, also what is not a message at all. A side is read only when the other
/// has taken what came before, so a slow side slows the other, and the memory is that of one message each way. Of a client a
/// little more is read meanwhile: that is how the relay notices that it leaves an agent that hangs. Only a
/// message longer than the limit is dropped and counted: a request is refused to its sender, and in place of a response the
/// other side gets an error.
///
/// The example is in the [module documentation](self).
pub struct Relay {
    client: Wire,
    agent: Wire,
    hook: Option<Hook>,
    bridge: Option<Bridge>,
    tap: Option<Tap>,
    limit: usize,
    grace: Duration,
}

/// Both directions of the connection to one side.
struct Wire {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// How a relay ended, and what it noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Relayed {
    /// Whether the client closed its end first; otherwise the agent did.
    pub client_left: bool,
    /// How many messages were dropped because they were longer than the limit.
    pub too_long: usize,
    /// What a bridge could not translate, and the rules that were broken, each once.
    pub reports: Vec<&'static str>,
}

impl Relay {
    /// A relay between these four streams. It reads from the readers and writes to the writers.
    pub fn new(
        client_reader: impl AsyncRead + Send + Unpin + 'static,
        client_writer: impl AsyncWrite + Send + Unpin + 'static,
        agent_reader: impl AsyncRead + Send + Unpin + 'static,
        agent_writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Relay {
            client: Wire { reader: Box::new(client_reader), writer: Box::new(client_writer) },
            agent: Wire { reader: Box::new(agent_reader), writer: Box::new(agent_writer) },
            hook: None,
            bridge: None,
            tap: None,
            limit: LIMIT,
            grace: GRACE,
        }
    }

    /// A relay between the client at this process's own stdin and stdout and the agent behind these two streams: a proxy.
    ///
    /// Needs a tokio runtime with IO and time enabled. The real stdout is kept for the wire alone: whatever else this
    /// process prints goes to stderr. Unlike with `tokio::io::stdin`, the process can end while its client says nothing.
    ///
    /// ```no_run
    /// use attache::relay::Relay;
    /// # use tokio::io::DuplexStream;
    ///
    /// # async fn example(stdin: DuplexStream, stdout: DuplexStream) -> std::io::Result<()> {
    /// // The stdout and the stdin of the agent, from `attache::process::Command::spawn`.
    /// Relay::stdio(stdout, stdin)?.run().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stdio(
        agent_reader: impl AsyncRead + Send + Unpin + 'static,
        agent_writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> io::Result<Self> {
        let (client_reader, client_writer) = crate::stdio::take()?;
        Ok(Relay::new(client_reader, client_writer, agent_reader, agent_writer))
    }

    /// Shows every message to `hook`, which decides what becomes of it. Both directions wait while it decides.
    ///
    /// Blank lines are forwarded without asking.
    pub fn on_message(mut self, hook: impl FnMut(Direction, &RelayMessage<'_>) -> Verdict + Send + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Translates messages on their way, for sides that speak different versions. The hook sees them as they come.
    ///
    /// ```no_run
    /// use attache::relay::Relay;
    /// use attache_proto::{Dialect, bridge::Bridge};
    /// # async fn run(relay: Relay) -> std::io::Result<()> {
    /// // The agent speaks version 1 only, whatever the client speaks.
    /// let relayed = relay.bridged(Bridge::new(Dialect::V1)).run().await?;
    /// eprintln!("could not be said: {:?}", relayed.reports);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bridged(mut self, mut bridge: Bridge) -> Self {
        // Sessions outlive relays: ids that the bridge makes up must not come again in the next one.
        bridge.set_id_prefix(crate::random::hex());
        self.bridge = Some(bridge);
        self
    }

    /// Records messages as they come: those of the client as `out`, those of the agent as `in`.
    pub fn tap(mut self, tap: Tap) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Sets the longest message in bytes; 64 MiB unless set.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Sets how long an agent may go on sending when its client is gone, and how long it may take no input; two seconds
    /// unless set.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Relays until one side closes. The writers are shut down and dropped then, so that the other side hears of it.
    ///
    /// A side that can no longer be written to counts as closed. Errors of reading are returned.
    pub async fn run(self) -> io::Result<Relayed> {
        pump::run(self).await
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("limit", &self.limit).field("grace", &self.grace).finish_non_exhaustive()
    }
}
