//! How an agent is started, anew for each probe.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use attache::process::{Command, Process};

use crate::probe::Peer;

/// How an agent is started. Every probe starts its own.
#[derive(Clone)]
pub struct Start(Kind);

#[derive(Clone)]
enum Kind {
    Process(Command),
    Connect(Arc<dyn Fn() -> Connecting + Send + Sync>),
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<Peer>> + Send>>;

impl Start {
    /// A program that speaks on stdin and stdout. It ends with all that it started when its probe is over.
    pub fn process(command: Command) -> Self {
        Start(Kind::Process(command))
    }

    /// Whatever this connects to: another part of the program, or another machine.
    ///
    /// ```
    /// use attache_check::probe::{Peer, agent::Start};
    ///
    /// let start = Start::connect(async || {
    ///     let (near, far) = tokio::io::duplex(64 * 1024);
    ///     let (reader, writer) = tokio::io::split(far);
    ///     let echo = attache::agent_fn("echo", "1.0", async |_, _| Ok(attache::Stop::EndTurn));
    ///     tokio::spawn(attache::serve(echo).connect(reader, writer));
    ///     Ok(Peer::from_stream(near))
    /// });
    /// # let _ = start;
    /// ```
    pub fn connect<W>(connect: impl Fn() -> W + Send + Sync + 'static) -> Self
    where
        W: Future<Output = io::Result<Peer>> + Send + 'static,
    {
        Start(Kind::Connect(Arc::new(move || Box::pin(connect()))))
    }

    /// Starts it.
    pub(super) async fn start(&self) -> io::Result<(Peer, Option<Process>)> {
        match &self.0 {
            Kind::Process(command) => {
                let (process, stdin, stdout) = command.clone().spawn().map_err(io::Error::other)?;
                Ok((Peer { reader: Box::new(stdout), writer: Box::new(stdin) }, Some(process)))
            }
            Kind::Connect(connect) => Ok((connect().await?, None)),
        }
    }
}

impl From<Command> for Start {
    fn from(command: Command) -> Self {
        Start::process(command)
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Process(command) => f.debug_tuple("Start").field(command).finish(),
            Kind::Connect(_) => f.write_str("Start"),
        }
    }
}
