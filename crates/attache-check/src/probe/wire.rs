//! A connection to a peer that is probed: whatever goes over it is recorded.
//!
//! It knows nothing of the protocol, sends what it is told, and never waits without a limit.

use std::io;
use std::time::Duration;

use attache_proto::frame::{Frame, Splitter};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use crate::record::{Event, Record, Side};

/// The longest line that is kept; longer ones are counted.
pub(crate) const LONGEST_FRAME: usize = 8 << 20;

/// How many bytes of a connection are recorded, at most. What comes after is read, and not kept.
pub(crate) const MOST_RECORDED: usize = 64 << 20;

/// What a line costs beside its text, here and when it is judged: a peer that floods sends short ones.
const ENTRY: usize = 1 << 10;

/// How many bytes of a peer are read, at most, unless told otherwise: one that never stops is left.
const MOST_READ: usize = 256 << 20;

/// A peer that is ready to be talked to: both directions of the connection to it.
pub struct Peer {
    /// What it sends.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What it is sent.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Peer {
    /// Both directions of one stream.
    pub fn from_stream(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Peer { reader: Box::new(reader), writer: Box::new(writer) }
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Peer")
    }
}

/// What came from a peer.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// JSON, a message or not.
    Json(Value),
    /// Anything else.
    Junk,
    /// The peer has closed its end.
    Closed,
    /// Nothing came in time.
    Nothing,
}

/// A recorded connection to a peer.
pub struct Wire {
    peer: Side,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    splitter: Splitter,
    started: Instant,
    record: Record,
    recorded: usize,
    read: usize,
    most_read: usize,
    is_closed: bool,
    is_close_noted: bool,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Wire {
    /// A connection to a peer on this side.
    pub fn new(peer: Side, ends: Peer) -> Self {
        Wire {
            peer,
            reader: ends.reader,
            writer: Some(ends.writer),
            splitter: Splitter::new(None, LONGEST_FRAME),
            started: Instant::now(),
            record: Record { started: Some(std::time::SystemTime::now()), entries: Vec::new() },
            recorded: 0,
            read: 0,
            most_read: MOST_READ,
            is_closed: false,
            is_close_noted: false,
        }
    }

    /// Reads no more than this from the peer; then it counts as closed.
    #[must_use]
    pub fn most_read(mut self, bytes: usize) -> Self {
        self.most_read = bytes;
        self
    }

    /// Goes on with a new connection to the peer, in the same record.
    pub fn reconnect(&mut self, ends: Peer) {
        self.note(Event::Restarted);
        self.reader = ends.reader;
        self.writer = Some(ends.writer);
        self.splitter = Splitter::new(None, LONGEST_FRAME);
        self.is_closed = false;
        self.is_close_noted = false;
    }

    /// What was recorded so far.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Ends the recording.
    pub fn into_record(self) -> Record {
        self.record
    }

    /// Writes down what happened now.
    pub fn note(&mut self, event: Event) {
        self.record.push(self.started.elapsed(), event);
    }

    /// Sends a message; `"jsonrpc":"2.0"` is added to an object that does not say it.
    pub async fn send(&mut self, mut message: Value, limit: Duration) -> io::Result<()> {
        if let Value::Object(members) = &mut message {
            members.entry("jsonrpc").or_insert_with(|| "2.0".into());
        }
        self.send_text(&message.to_string(), limit).await
    }

    /// Sends a line to the letter.
    pub async fn send_text(&mut self, line: &str, limit: Duration) -> io::Result<()> {
        let from = if self.peer == Side::Agent { Side::Client } else { Side::Agent };
        self.note_frame(Event::Frame { from, text: line.to_owned() }, line.len());
        self.send_bytes(format!("{line}\n").as_bytes(), limit).await
    }

    /// Sends what is no line of text, or too long to be kept. Its size is written down.
    pub async fn send_junk(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        let from = if self.peer == Side::Agent { Side::Client } else { Side::Agent };
        self.note(Event::Junk { from, bytes: bytes.len() });
        self.send_bytes(bytes, limit).await
    }

    /// Sends bytes to the letter, without writing them down.
    pub async fn send_bytes(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Err(io::ErrorKind::NotConnected.into()) };
        let sending = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        timeout(limit, sending).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Closes our end; what the peer still says can be read.
    pub async fn close(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            let from = if self.peer == Side::Agent { Side::Client } else { Side::Agent };
            self.note(Event::Closed { from });
            // A peer that does not read any more has closed its end, too.
            let _ = timeout(Duration::from_secs(1), writer.shutdown()).await;
        }
    }

    /// The next line of the peer. That nothing came is written down.
    pub async fn receive(&mut self, limit: Duration) -> Received {
        let deadline = Instant::now() + limit;
        let received = self.receive_until(deadline).await;
        if received == Received::Nothing {
            self.note(Event::Waited { time: limit });
        }
        received
    }

    /// The next line of the peer until a deadline. That nothing came is for the caller to write down.
    pub async fn receive_until(&mut self, deadline: Instant) -> Received {
        loop {
            if let Some(received) = self.take_frame() {
                return received;
            }
            if self.is_closed {
                if !self.is_close_noted {
                    self.is_close_noted = true;
                    self.note(Event::Closed { from: self.peer });
                }
                return Received::Closed;
            }
            if self.read >= self.most_read {
                self.is_closed = true;
                self.is_close_noted = true;
                self.note(Event::Note { text: format!("Read {} bytes; the rest is left.", self.read) });
                return Received::Closed;
            }
            let mut buffer = [0; 16 << 10];
            match timeout_at(deadline, self.reader.read(&mut buffer)).await {
                Err(_) => return Received::Nothing,
                Ok(Ok(count)) if count > 0 => {
                    self.read += count;
                    self.splitter.feed(&buffer[..count]);
                    // A peer that always has something to say must not keep the deadline from coming.
                    if Instant::now() >= deadline {
                        return self.take_frame().unwrap_or(Received::Nothing);
                    }
                }
                Ok(_) => {
                    self.splitter.end();
                    self.is_closed = true;
                }
            }
        }
    }

    fn take_frame(&mut self) -> Option<Received> {
        loop {
            let piece = self.splitter.next_piece()?;
            let size = piece.bytes.len();
            let (event, received) = match piece.frame {
                Some(Frame::Message(text)) => {
                    let received = serde_json::from_str(text).map_or(Received::Junk, Received::Json);
                    (Event::Frame { from: self.peer, text: text.to_owned() }, received)
                }
                // What is longer than the limit is counted as that much.
                Some(Frame::Junk(_)) => {
                    let bytes = if size == 0 { LONGEST_FRAME } else { size };
                    (Event::Junk { from: self.peer, bytes }, Received::Junk)
                }
                None => continue,
            };
            self.note_frame(event, size);
            return Some(received);
        }
    }

    /// Writes down a line of one side, unless there is too much already: what we answer counts as well, because a peer can ask for much.
    fn note_frame(&mut self, event: Event, size: usize) {
        self.recorded = self.recorded.saturating_add(size + ENTRY);
        if self.recorded <= MOST_RECORDED {
            self.note(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_goes_over_the_wire_is_recorded() {
        let (near, mut far) = tokio::io::duplex(4096);
        let (reader, writer) = tokio::io::split(near);
        let mut wire = Wire::new(Side::Agent, Peer { reader: Box::new(reader), writer: Box::new(writer) });
        let second = Duration::from_secs(1);
        wire.send(json!({"id": 1, "method": "m"}), second).await.unwrap();
        far.write_all(b"hello\n\n{\"id\":1}\n\xff\xff\nlast").await.unwrap();
        assert_eq!(wire.receive(second).await, Received::Junk);
        assert_eq!(wire.receive(second).await, Received::Json(json!({"id": 1})));
        assert_eq!(wire.receive(second).await, Received::Junk);
        assert_eq!(wire.receive(second).await, Received::Nothing);
        far.shutdown().await.unwrap();
        assert_eq!(wire.receive(second).await, Received::Junk);
        assert_eq!(wire.receive(second).await, Received::Closed);
        wire.close().await;
        let transcript = wire.into_record().to_transcript();
        assert_eq!(
            transcript,
            "--> {'id':1,'method':'m','jsonrpc':'2.0'}\n<== hello\n<== {\"id\":1}\n(junk from agent, 3 bytes)\n(waited 1000 ms)\n\
             <== last\n(closed by agent)\n(closed by client)\n"
        );
    }
}
