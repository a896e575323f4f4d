//! The wire between a client and an agent, with somebody listening.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};

/// What went over a wire, a line each: `<` from the agent, `>` from the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Vec<String>>>);

impl Wire {
    /// A wire with two ends: the agent's, and the client's. What the client says goes through `change`.
    pub(crate) fn new(change: impl Fn(String) -> String + Send + 'static) -> (Self, DuplexStream, DuplexStream) {
        let wire = Wire::default();
        let (agent, agent_end) = tokio::io::duplex(64 << 10);
        let (client, client_end) = tokio::io::duplex(64 << 10);
        let (from_agent, to_agent) = tokio::io::split(agent_end);
        let (from_client, to_client) = tokio::io::split(client_end);
        tokio::spawn(pass(from_agent, to_client, wire.clone(), '<', |line| line));
        tokio::spawn(pass(from_client, to_agent, wire.clone(), '>', change));
        (wire, agent, client)
    }

    /// All that went over it so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

async fn pass(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    wire: Wire,
    mark: char,
    change: impl Fn(String) -> String,
) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = change(line);
        wire.0.lock().unwrap().push(format!("{mark} {line}"));
        if to.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
