//! Figures for Prometheus. Nothing that was said is in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A figure.
#[derive(Debug, Default)]
pub(crate) struct Figure(AtomicU64);

impl Figure {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, number: u64) {
        self.0.fetch_sub(number, Ordering::Relaxed);
    }
}

/// The messages of all connections.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) received: Figure,
    pub(crate) received_bytes: Figure,
    pub(crate) sent: Figure,
    pub(crate) sent_bytes: Figure,
}

impl Messages {
    pub(crate) fn received(&self, bytes: usize) {
        self.received.add(1);
        self.received_bytes.add(bytes as u64);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.add(1);
        self.sent_bytes.add(bytes as u64);
    }
}

/// The figures of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) sockets: Figure,
    pub(crate) opened: Figure,
    pub(crate) refused: Figure,
    pub(crate) crowded: Figure,
    pub(crate) stalled: Figure,
    pub(crate) abandoned: Figure,
    pub(crate) resumed: Figure,
    pub(crate) messages: Arc<Messages>,
}

impl Metrics {
    /// All figures, as Prometheus reads them.
    pub(crate) fn text(&self, connections: usize, unread: usize) -> String {
        let messages = &self.messages;
        let rows: [(&str, &str, &str, u64); 13] = [
            ("connections", "gauge", "Connections of the protocol that are open.", connections as u64),
            ("sockets", "gauge", "Network connections that are open.", self.sockets.read()),
            ("connections_total", "counter", "Connections of the protocol that were opened.", self.opened.read()),
            ("refused_total", "counter", "Requests without a valid token, host or origin.", self.refused.read()),
            ("unread_bytes", "gauge", "Bytes of messages that agents have not taken yet.", unread as u64),
            ("crowded_total", "counter", "Messages refused for want of room.", self.crowded.read()),
            ("stalled_total", "counter", "Connections closed because the client did not read.", self.stalled.read()),
            ("abandoned_total", "counter", "Connections closed because the client was gone.", self.abandoned.read()),
            ("resumed_total", "counter", "Streams that were taken up again.", self.resumed.read()),
            ("messages_received_total", "counter", "Messages of clients.", messages.received.read()),
            ("received_bytes_total", "counter", "Bytes of messages of clients.", messages.received_bytes.read()),
            ("messages_sent_total", "counter", "Messages to clients.", messages.sent.read()),
            ("sent_bytes_total", "counter", "Bytes of messages to clients.", messages.sent_bytes.read()),
        ];
        rows.iter()
            .map(|(name, kind, help, value)| {
                format!("# HELP attache_{name} {help}\n# TYPE attache_{name} {kind}\nattache_{name} {value}\n")
            })
            .collect()
    }
}

impl Figure {
    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
