//! A transport of whole messages as two streams of bytes, for whoever passes bytes on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use attache_proto::frame::{Frame, Splitter};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{MessageReader, MessageWriter, Transport};

/// The longest message that is cut out of a stream of bytes.
const LIMIT: usize = 64 << 20;

impl Transport {
    /// The transport as two streams of bytes, a message a line: for a [`Relay`](crate::relay::Relay).
    ///
    /// What is written and is no message is passed over.
    ///
    /// ```
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let (near, far) = attache::pair();
    /// let (_, mut writer) = near.into_streams();
    /// let (mut reader, _) = far.into_streams();
    /// writer.write_all(b"{\"a\":1}\n{\"b\":2}\n").await?;
    /// writer.shutdown().await?;
    /// let mut heard = String::new();
    /// reader.read_to_string(&mut heard).await?;
    /// assert_eq!(heard, "{\"a\":1}\n{\"b\":2}\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_streams(self) -> (TransportReader, TransportWriter) {
        let reader = TransportReader { reader: self.reader, line: Vec::new(), at: 0 };
        let writer = TransportWriter { writer: self.writer, splitter: Splitter::new(None, LIMIT), pending: None };
        (reader, writer)
    }
}

/// The messages of a transport as bytes. Made by [`Transport::into_streams`].
pub struct TransportReader {
    reader: Box<dyn MessageReader>,
    line: Vec<u8>,
    at: usize,
}

impl AsyncRead for TransportReader {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.at == this.line.len() {
            let Some(message) = ready!(this.reader.poll_read(cx))? else { return Poll::Ready(Ok(())) };
            this.line = message.into_bytes();
            this.at = 0;
            // Line ends stand between the parts of JSON, never in its strings.
            this.line.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
            this.line.push(b'\n');
        }
        let length = buffer.remaining().min(this.line.len() - this.at);
        buffer.put_slice(&this.line[this.at..this.at + length]);
        this.at += length;
        Poll::Ready(Ok(()))
    }
}

/// Bytes as the messages of a transport. Made by [`Transport::into_streams`].
pub struct TransportWriter {
    writer: Box<dyn MessageWriter>,
    splitter: Splitter,
    /// A message that has no room yet.
    pending: Option<String>,
}

impl TransportWriter {
    /// Hands on what is whole.
    fn poll_messages(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if let Some(message) = &self.pending {
                ready!(self.writer.poll_write(cx, message))?;
                self.pending = None;
            }
            match self.splitter.next_frame() {
                Some(Frame::Message(text)) if !text.trim().is_empty() => self.pending = Some(text.to_owned()),
                Some(_) => {}
                None => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl AsyncWrite for TransportWriter {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_messages(cx))?;
        self.splitter.feed(bytes);
        // What has no room waits for the next call, which waits for room.
        if let Poll::Ready(Err(error)) = self.poll_messages(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_messages(cx))?;
        self.writer.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.splitter.end();
        ready!(self.poll_messages(cx))?;
        self.writer.poll_shutdown(cx)
    }
}

impl std::fmt::Debug for TransportReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TransportReader")
    }
}

impl std::fmt::Debug for TransportWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TransportWriter")
    }
}
