//! Who is measured: an implementation and what carries its messages.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Error;

/// An implementation, both as the client and as the server, and a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// As the results have it.
    pub id: &'static str,
    /// As the tables have it.
    pub name: &'static str,
    agent: &'static str,
    transport: Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    WebSocket,
    Http1,
    Http2,
}

/// All peers, in the order of the tables.
pub const PEERS: &[Peer] = &[
    peer("attache-stdio", "Attaché, stdio", "attache", Transport::Stdio),
    peer("attache-ws", "Attaché, WebSocket", "attache", Transport::WebSocket),
    peer("attache-h2", "Attaché, HTTP/2", "attache", Transport::Http2),
    peer("attache-h1", "Attaché, HTTP/1.1", "attache", Transport::Http1),
    peer("official-stdio", "official Rust SDK, stdio", "official", Transport::Stdio),
    peer("official-ws", "official Rust SDK, WebSocket", "official", Transport::WebSocket),
    peer("official-h1", "official Rust SDK, HTTP/1.1", "official", Transport::Http1),
];

const fn peer(id: &'static str, name: &'static str, agent: &'static str, transport: Transport) -> Peer {
    Peer { id, name, agent, transport }
}

/// The way to an agent.
pub enum Way {
    Pipes(ChildStdout, ChildStdin),
    Url { url: String, is_http2: bool },
}

/// An agent in a process of its own. It ends with this value.
pub struct Server {
    child: Child,
    address: Option<String>,
    peer: Peer,
}

impl Peer {
    pub fn named(id: &str) -> Result<Peer, Error> {
        Ok(*PEERS.iter().find(|peer| peer.id == id).ok_or_else(|| format!("there is no peer `{id}`"))?)
    }

    pub fn is_official(&self) -> bool {
        self.agent == "official"
    }

    /// Starts the agent.
    pub async fn start(self) -> Result<Server, Error> {
        let is_stdio = self.transport == Transport::Stdio;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([if is_stdio { "stdio" } else { "serve" }, self.agent]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut address = None;
        if !is_stdio {
            let output = child.stdout.take().ok_or("the server has no output")?;
            let line = BufReader::new(output).lines().next_line().await?;
            address = Some(line.ok_or("the server has ended")?);
        }
        Ok(Server { child, address, peer: self })
    }
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// The way to it. There is one if it is on stdin and stdout.
    pub fn way(&mut self) -> Result<Way, Error> {
        let Some(address) = &self.address else {
            let pipes = self.child.stdout.take().zip(self.child.stdin.take());
            return pipes.map(|(output, input)| Way::Pipes(output, input)).ok_or_else(|| "one client only".into());
        };
        let scheme = if self.peer.transport == Transport::WebSocket { "ws" } else { "http" };
        Ok(Way::Url { url: format!("{scheme}://{address}"), is_http2: self.peer.transport == Transport::Http2 })
    }
}

/// A client that is connected, of either implementation.
pub trait Client: Sized {
    type Session;

    /// Connects and greets.
    async fn connect(way: Way) -> Result<Self, Error>;

    async fn open(&self) -> Result<Self::Session, Error>;

    /// Has a turn, and returns how many updates there were.
    async fn prompt(&self, session: &Self::Session, text: &str) -> Result<usize, Error>;
}
