//! A recorder in the middle of a connection.

use std::sync::{Arc, Mutex};

use attache_check::record::Event;
use attache_check::{Record, Side};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, split};
use tokio::time::Instant;

/// What is recorded of connections, one after the other.
#[derive(Clone)]
pub(crate) struct Tape {
    started: Instant,
    record: Arc<Mutex<Record>>,
}

impl Tape {
    pub(crate) fn new() -> Self {
        Tape { started: Instant::now(), record: Arc::default() }
    }

    /// Writes down what happens now.
    pub(crate) fn note(&self, event: Event) {
        self.record.lock().unwrap().push(self.started.elapsed(), event);
    }

    pub(crate) fn record(&self) -> Record {
        self.record.lock().unwrap().clone()
    }

    /// Records all that goes to and from an agent, whose end this is; what is returned is for its client.
    pub(crate) fn before(&self, agent: impl AsyncRead + AsyncWrite + Send + 'static) -> DuplexStream {
        let (outer, inner) = tokio::io::duplex(1 << 20);
        let (agent_reader, agent_writer) = split(Box::pin(agent));
        let (client_reader, client_writer) = split(inner);
        tokio::spawn(self.clone().pass(Side::Agent, agent_reader, client_writer));
        tokio::spawn(self.clone().pass(Side::Client, client_reader, agent_writer));
        outer
    }

    async fn pass(self, from: Side, reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
            let text = String::from_utf8(line.strip_suffix(b"\n").unwrap_or(&line).to_vec());
            self.note(match text {
                Ok(text) => Event::Frame { from, text },
                Err(bytes) => Event::Junk { from, bytes: bytes.as_bytes().len() },
            });
            if writer.write_all(&line).await.is_err() {
                return;
            }
            line.clear();
        }
        self.note(Event::Closed { from });
        let _ = writer.shutdown().await;
    }
}
