//! The writing end of a connection: whoever holds it writes, the driver or a sender that waits for its own bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::{Link, Router};
use crate::transport::MessageWriter;

/// Where messages go.
pub(super) enum Sink {
    /// A stream of bytes, as they are framed.
    Bytes(Box<dyn AsyncWrite + Send + Unpin>),
    /// Something that carries whole messages. In the outbox each ends with a line end, which stands nowhere within one.
    Messages(Box<dyn MessageWriter>),
}

impl Sink {
    /// Writes some of the bytes; returns how many.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Sink::Bytes(writer) => Pin::new(writer).poll_write(cx, bytes),
            Sink::Messages(writer) => {
                let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
                let message = std::str::from_utf8(&bytes[..end]).map_err(|_| io::ErrorKind::InvalidData)?;
                ready!(writer.poll_write(cx, message))?;
                Poll::Ready(Ok((end + 1).min(bytes.len())))
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Sink::Bytes(writer) => Pin::new(writer).poll_flush(cx),
            Sink::Messages(writer) => writer.poll_flush(cx),
        }
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Sink::Bytes(writer) => Pin::new(writer).poll_shutdown(cx),
            Sink::Messages(writer) => writer.poll_shutdown(cx),
        }
    }
}

/// What is on its way out. It outlives whoever began to write it, so that the wire stays whole when that is dropped.
pub(super) struct Outlet {
    sink: Sink,
    /// What was taken from the outbox.
    bytes: Vec<u8>,
    /// How much of that is written.
    written: usize,
    needs_flush: bool,
    /// Why a sender could not write; the driver ends the connection for it.
    failed: Option<io::Error>,
}

/// Whether a connection whose outbox is empty goes on.
pub(super) enum Stays {
    Open,
    Closing,
}

impl Outlet {
    pub(super) fn new(sink: Sink) -> Self {
        Outlet { sink, bytes: Vec::new(), written: 0, needs_flush: false, failed: None }
    }

    /// Writes all there is; then tells whether there may be more.
    pub(super) fn poll_write<R: Router>(&mut self, link: &Link<R>, cx: &mut Context<'_>) -> Poll<io::Result<Stays>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        let stays = loop {
            if self.written == self.bytes.len() {
                self.bytes.clear();
                self.written = 0;
                let mut state = link.lock();
                std::mem::swap(&mut self.bytes, &mut state.out);
                state.writing = self.bytes.len();
                state.unwaited = self.bytes.len().saturating_sub(std::mem::take(&mut state.waited));
                if state.out.capacity() > link.limits().outbox.saturating_mul(4) {
                    // A large message is through: its space is given back.
                    state.out = Vec::new();
                }
                let stays = if state.closed.is_some() || state.closing { Stays::Closing } else { Stays::Open };
                link.give_room(state);
                if self.bytes.is_empty() {
                    break stays;
                }
                // Written down here, in the order of the wire, and with the state free for others.
                if let Some(tap) = &link.0.options.tap {
                    tap.sent(&self.bytes);
                }
            }
            let count = ready!(self.sink.poll_write(cx, &self.bytes[self.written..]))?;
            if count == 0 || count > self.bytes.len() - self.written {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.needs_flush = true;
            self.written += count;
            if self.written < self.bytes.len() {
                let mut state = link.lock();
                state.writing = self.bytes.len() - self.written;
                link.give_room(state);
            }
        };
        if self.needs_flush {
            ready!(self.sink.poll_flush(cx))?;
            self.needs_flush = false;
        }
        link.0.flushed.notify_waiters();
        Poll::Ready(Ok(stays))
    }

    /// Writes what can be written at once, for a sender. True when all of it is; what is left is for the driver.
    pub(super) fn write_now<R: Router>(&mut self, link: &Link<R>, cx: &mut Context<'_>) -> bool {
        match self.poll_write(link, cx) {
            Poll::Ready(Ok(_)) => return true,
            Poll::Ready(Err(error)) => self.failed = Some(error),
            Poll::Pending => {}
        }
        false
    }

    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sink.poll_shutdown(cx)
    }
}
