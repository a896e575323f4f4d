//! Connections that carry whole messages: HTTP, WebSocket, another part of the same program.
//!
//! A connection over stdin and stdout is a stream of bytes, which is cut into messages. A transport that has messages of
//! its own implements [`MessageReader`] and [`MessageWriter`] instead and is given to
//! [`Client::over`](crate::Client::over) or [`Server::over`](crate::agent::Server::over). [`pair`] connects two ends in one
//! program:
//!
//! ```
//! use attache::{Client, Prompt, Stop, Turn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), attache::Error> {
//! let (near, far) = attache::pair();
//! tokio::spawn(
//!     attache::serve(attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
//!         turn.text(prompt.text()).await?;
//!         Ok(Stop::EndTurn)
//!     }))
//!     .over(far),
//! );
//! let agent = Client::new("test", "1.0").over(near).await?;
//! let session = agent.session("/").open().await?;
//! assert_eq!(session.prompt("hello").await?.text().await?, "hello");
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "relay")]
mod streams;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[cfg(feature = "relay")]
pub use streams::{TransportReader, TransportWriter};

/// The reading half of a transport that carries whole messages.
pub trait MessageReader: Send {
    /// Reads the next message; `None` when the peer has closed its end. A message that is not JSON is handed on as it is.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<String>>>;
}

/// The writing half of a transport that carries whole messages.
pub trait MessageWriter: Send {
    /// Takes a message, whole, or none of it. Pending until there is room for it.
    fn poll_write(&mut self, cx: &mut Context<'_>, message: &str) -> Poll<io::Result<()>>;

    /// Waits until every message that was taken is on its way.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Closes this end: the peer will read `None`.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// A transport that carries whole messages: its two halves.
pub struct Transport {
    pub(crate) reader: Box<dyn MessageReader>,
    pub(crate) writer: Box<dyn MessageWriter>,
}

impl Transport {
    /// A transport made of two halves.
    pub fn new(reader: impl MessageReader + 'static, writer: impl MessageWriter + 'static) -> Self {
        Transport { reader: Box::new(reader), writer: Box::new(writer) }
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transport")
    }
}

/// Bytes that a direction of a [`pair`] holds before its writer has to wait. As much as a pipe.
const PAIR_BYTES: usize = 64 * 1024;

/// Two ends of one connection within a program. What one writes the other reads.
pub fn pair() -> (Transport, Transport) {
    let (one, other) = (Arc::<Mutex<Channel>>::default(), Arc::<Mutex<Channel>>::default());
    let end = |read: &Arc<Mutex<Channel>>, write: &Arc<Mutex<Channel>>| {
        Transport::new(PairReader(read.clone()), PairWriter(write.clone()))
    };
    (end(&one, &other), end(&other, &one))
}

/// One direction of a pair.
#[derive(Default)]
struct Channel {
    messages: VecDeque<String>,
    bytes: usize,
    is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Channel {
    fn close(&mut self) {
        self.is_closed = true;
        for waker in [self.reader.take(), self.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

fn lock(channel: &Mutex<Channel>) -> MutexGuard<'_, Channel> {
    channel.lock().unwrap_or_else(PoisonError::into_inner)
}

struct PairReader(Arc<Mutex<Channel>>);

impl MessageReader for PairReader {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<String>>> {
        let mut channel = lock(&self.0);
        let Some(message) = channel.messages.pop_front() else {
            if channel.is_closed {
                return Poll::Ready(Ok(None));
            }
            channel.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        channel.bytes -= message.len();
        if let Some(writer) = channel.writer.take() {
            writer.wake();
        }
        Poll::Ready(Ok(Some(message)))
    }
}

impl Drop for PairReader {
    fn drop(&mut self) {
        let mut channel = lock(&self.0);
        channel.messages.clear();
        channel.close();
    }
}

struct PairWriter(Arc<Mutex<Channel>>);

impl MessageWriter for PairWriter {
    fn poll_write(&mut self, cx: &mut Context<'_>, message: &str) -> Poll<io::Result<()>> {
        let mut channel = lock(&self.0);
        if channel.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if channel.bytes >= PAIR_BYTES {
            channel.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        channel.bytes += message.len();
        channel.messages.push_back(message.to_owned());
        if let Some(reader) = channel.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for PairWriter {
    fn drop(&mut self) {
        lock(&self.0).close();
    }
}
