//! Writing to stdout and stderr from one thread, so that a reader who does not read never keeps us from a signal.

use std::io::{self, Write};
use std::thread;

use tokio::sync::{mpsc, oneshot};

/// How many pieces wait to be written. Small: a slow reader is to slow the agent, not to fill our memory.
const WAITING: usize = 32;

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Data.
    Out(Vec<u8>),
    /// Talk.
    Err(Vec<u8>),
}

impl Ink {
    pub(crate) fn out(text: impl Into<Vec<u8>>) -> Self {
        Ink::Out(text.into())
    }

    pub(crate) fn err(text: impl Into<Vec<u8>>) -> Self {
        Ink::Err(text.into())
    }
}

/// Nobody reads stdout any more.
#[derive(Debug)]
pub(crate) struct PipeClosed;

/// Writes in order, one piece after the other.
pub(crate) struct Pen {
    sender: mpsc::Sender<Ink>,
    done: oneshot::Receiver<()>,
}

impl Pen {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let (finished, done) = oneshot::channel();
        thread::Builder::new().name("pen".into()).spawn(move || {
            write_all(receiver);
            let _ = finished.send(());
        })?;
        Ok(Pen { sender, done })
    }

    /// Waits until there is room, then leaves it to be written.
    pub(crate) async fn write(&self, ink: Vec<Ink>) -> Result<(), PipeClosed> {
        for piece in ink {
            self.sender.send(piece).await.map_err(|_| PipeClosed)?;
        }
        Ok(())
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) {
        drop(self.sender);
        let _ = self.done.await;
    }
}

fn write_all(mut receiver: mpsc::Receiver<Ink>) {
    // Not `Stdout`, which looks for line ends: what comes here is to be written as it is, at once.
    let (mut out, mut err) = (raw(1), raw(2));
    while let Some(ink) = receiver.blocking_recv() {
        match ink {
            Ink::Out(bytes) if out.write_all(&bytes).is_err() => return,
            Ink::Out(_) => {}
            // Talk that nobody hears is no reason to stop.
            Ink::Err(bytes) => drop(err.write_all(&bytes)),
        }
    }
}

/// A file of a standard descriptor that does not close it.
fn raw(descriptor: i32) -> std::mem::ManuallyDrop<std::fs::File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the descriptor stays open for the whole program; `ManuallyDrop` keeps it from being closed here.
    std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(descriptor) })
}
