//! Streams that misbehave: bytes that come in drops, and ends in the middle of things.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Lets at most so many bytes through at a time, in both directions.
#[derive(Debug)]
pub struct Dribble<S> {
    stream: S,
    drop: usize,
}

impl<S> Dribble<S> {
    /// A stream that moves `drop` bytes at a time.
    pub fn new(stream: S, drop: usize) -> Self {
        Dribble { stream, drop: drop.max(1) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Dribble<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = buf.remaining().min(self.drop);
        let mut part = vec![0; count];
        let mut part = ReadBuf::new(&mut part);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut part);
        buf.put_slice(part.filled());
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Dribble<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = bytes.len().min(self.drop);
        Pin::new(&mut self.stream).poll_write(cx, &bytes[..count])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Ends for its reader after so many bytes.
#[derive(Debug)]
pub struct Cut<S> {
    stream: S,
    left: usize,
}

impl<S> Cut<S> {
    /// A stream that ends after `left` bytes were read from it.
    pub fn new(stream: S, left: usize) -> Self {
        Cut { stream, left }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cut<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Ok(()));
        }
        let count = buf.remaining().min(self.left);
        let mut part = vec![0; count];
        let mut part = ReadBuf::new(&mut part);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut part);
        self.left -= part.filled().len();
        buf.put_slice(part.filled());
        polled
    }
}
