//! Stderr of `attache trace`: what the agent writes there, and our own words.
//!
//! An editor may start agents and never read their stderr. A thread writes, so that a full pipe holds up the agent's stderr alone, as it
//! would without us, and nothing keeps us from ending.

use std::io::Write;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// How long the last words may take to be taken.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many lines may wait.
const WAITING: usize = 16;

/// Writes to stderr.
pub(super) struct Log {
    lines: mpsc::Sender<Vec<u8>>,
    done: oneshot::Receiver<()>,
}

impl Log {
    pub(super) fn new() -> std::io::Result<Self> {
        let (lines, mut waiting) = mpsc::channel::<Vec<u8>>(WAITING);
        let (finish, done) = oneshot::channel();
        std::thread::Builder::new().name("attache-stderr".into()).spawn(move || {
            while let Some(line) = waiting.blocking_recv() {
                // Nobody may be there to read it.
                let _ = std::io::stderr().write_all(&line);
            }
            drop(finish);
        })?;
        Ok(Log { lines, done })
    }

    /// Where lines go that others write.
    pub(super) fn lines(&self) -> mpsc::Sender<Vec<u8>> {
        self.lines.clone()
    }

    /// Says a line of ours, if there is somebody who reads.
    pub(super) async fn say(&self, line: &str) {
        let _ = tokio::time::timeout(PATIENCE, self.lines.send(format!("{line}\n").into_bytes())).await;
    }

    /// Waits until all is written, as long as there is somebody who reads.
    pub(super) async fn end(self) {
        drop(self.lines);
        let _ = tokio::time::timeout(PATIENCE, self.done).await;
    }
}
