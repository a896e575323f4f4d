//! Writing to stdout and stderr from one thread, so that a reader who does not read never keeps us from a signal.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use tokio::sync::{Notify, mpsc, oneshot};

use crate::visible::escaped;

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

    pub(crate) fn size(&self) -> usize {
        match self {
            Ink::Out(bytes) | Ink::Err(bytes) => bytes.len(),
        }
    }
}

/// What the thread that writes is given.
enum Piece {
    Ink(Ink),
    /// Tells that everything before it is written.
    Mark(oneshot::Sender<()>),
}

/// Why stdout cannot be written to any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputError {
    /// Nobody reads it: the reader of a pipe has left, or the terminal was closed.
    Closed,
    /// Writing failed, in the words of the system.
    Failed(String),
}

impl OutputError {
    /// What an error of writing means. `was_terminal` is from before: one that was closed is a terminal no longer.
    fn new(error: &io::Error, was_terminal: bool) -> Self {
        let is_hung_up = was_terminal && is_hung_up(error);
        match error.kind() {
            io::ErrorKind::BrokenPipe => OutputError::Closed,
            _ if is_hung_up => OutputError::Closed,
            _ => OutputError::Failed(without_number(error)),
        }
    }
}

#[cfg(unix)]
fn is_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// A console goes with its programs.
#[cfg(not(unix))]
fn is_hung_up(_: &io::Error) -> bool {
    false
}

/// The words of an error without the number that the standard library adds.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned()
}

/// Writes in order, one piece after the other.
pub(crate) struct Pen {
    sender: mpsc::Sender<Piece>,
    /// Why it stopped.
    error: Arc<OnceLock<OutputError>>,
}

impl Pen {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let error = Arc::new(OnceLock::new());
        let written = error.clone();
        thread::Builder::new().name("pen".into()).spawn(move || write_all(receiver, &written))?;
        Ok(Pen { sender, error })
    }

    fn error(&self) -> OutputError {
        self.error.get().cloned().unwrap_or(OutputError::Closed)
    }

    /// Waits until there is room for one piece. It can be cancelled.
    pub(crate) async fn room(&self) -> Result<Room<'_>, OutputError> {
        self.sender.reserve().await.map(Room).map_err(|_| self.error())
    }

    /// Waits until everything so far is written. It can be cancelled.
    pub(crate) async fn written(&self) -> Result<(), OutputError> {
        let (sender, receiver) = oneshot::channel();
        self.sender.send(Piece::Mark(sender)).await.map_err(|_| self.error())?;
        receiver.await.map_err(|_| self.error())
    }
}

/// Room for one piece.
pub(crate) struct Room<'a>(mpsc::Permit<'a, Piece>);

impl Room<'_> {
    pub(crate) fn send(self, ink: Option<Ink>) {
        if let Some(ink) = ink {
            self.0.send(Piece::Ink(ink));
        }
    }
}

/// How much of the messages may wait before nothing more is taken from the agent.
const WAITING_MESSAGES: usize = 1 << 20;

/// Writes messages to stdout where they pass, without waiting: that happens inside of the connection, which has to go on.
///
/// What waits is bounded all the same. Nothing is taken from the agent while there is much of it, so that the connection
/// stops reading.
#[derive(Clone)]
pub(crate) struct Messages(Arc<Waiting>);

struct Waiting {
    sender: std::sync::mpsc::Sender<Vec<u8>>,
    bytes: AtomicUsize,
    error: OnceLock<OutputError>,
    less: Notify,
    /// Whose turn it is to write to the terminal, if that is where they go.
    turn: Mutex<WritersTurn>,
    begins: Condvar,
}

#[derive(Default)]
struct WritersTurn {
    is_held: bool,
    is_writing: bool,
}

impl Waiting {
    fn turn(&self) -> MutexGuard<'_, WritersTurn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = std::sync::mpsc::channel::<Vec<u8>>();
        let messages = Messages(Arc::new(Waiting {
            sender,
            bytes: AtomicUsize::new(0),
            error: OnceLock::new(),
            less: Notify::new(),
            turn: Mutex::default(),
            begins: Condvar::new(),
        }));
        let waiting = messages.0.clone();
        thread::Builder::new().name("messages".into()).spawn(move || {
            let (mut out, was_terminal) = (raw(1), io::stdout().is_terminal());
            for bytes in receiver {
                let turn = waiting.begins.wait_while(waiting.turn(), |turn| turn.is_held);
                turn.unwrap_or_else(PoisonError::into_inner).is_writing = true;
                if waiting.error.get().is_none()
                    && let Err(error) = out.write_all(&bytes)
                {
                    let _ = waiting.error.set(OutputError::new(&error, was_terminal));
                }
                waiting.turn().is_writing = false;
                waiting.bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
                waiting.less.notify_one();
            }
        })?;
        Ok(messages)
    }

    /// Leaves the terminal to somebody else, if that is where the messages go: returns when nothing is being written.
    pub(crate) async fn hold(&self) {
        if !io::stdout().is_terminal() {
            return;
        }
        self.0.turn().is_held = true;
        while self.0.turn().is_writing {
            self.0.less.notified().await;
        }
    }

    /// Goes on writing.
    pub(crate) fn release(&self) {
        self.0.turn().is_held = false;
        self.0.begins.notify_all();
    }

    /// Whether much waits.
    pub(crate) fn is_full(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) > WAITING_MESSAGES
    }

    /// Waits until no more than this waits.
    pub(crate) async fn until(&self, most: usize) -> Result<(), OutputError> {
        loop {
            if let Some(error) = self.0.error.get() {
                return Err(error.clone());
            }
            if self.0.bytes.load(Ordering::Relaxed) <= most {
                return Ok(());
            }
            self.0.less.notified().await;
        }
    }

    /// Waits until not much waits.
    pub(crate) async fn room(&self) -> Result<(), OutputError> {
        self.until(WAITING_MESSAGES / 2).await
    }
}

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.error.get().is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Messages are JSON, and what acts upon a terminal can be written as escapes in it. Half a character at the end
        // of a piece is left as it is.
        let shown = match std::str::from_utf8(bytes) {
            Ok(text) => escaped(text).into_owned().into_bytes(),
            Err(_) => bytes.to_vec(),
        };
        self.0.bytes.fetch_add(shown.len(), Ordering::Relaxed);
        self.0.sender.send(shown).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(mut receiver: mpsc::Receiver<Piece>, failed: &OnceLock<OutputError>) {
    // Not `Stdout`, which looks for line ends: what comes here is to be written as it is, at once.
    let (mut out, mut err) = (raw(1), raw(2));
    let was_terminal = io::stdout().is_terminal();
    while let Some(piece) = receiver.blocking_recv() {
        let ink = match piece {
            Piece::Ink(ink) => ink,
            Piece::Mark(done) => {
                let _ = done.send(());
                continue;
            }
        };
        match ink {
            Ink::Out(bytes) => {
                if let Err(error) = crate::stdout::check().and_then(|()| out.write_all(&bytes)) {
                    let _ = failed.set(OutputError::new(&error, was_terminal));
                    return;
                }
            }
            // Talk that nobody hears is no reason to stop.
            Ink::Err(bytes) => drop(err.write_all(&bytes)),
        }
    }
}

/// A file of a standard descriptor that does not close it.
#[cfg(unix)]
fn raw(descriptor: i32) -> std::mem::ManuallyDrop<std::fs::File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the descriptor stays open for the whole program; `ManuallyDrop` keeps it from being closed here.
    std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(descriptor) })
}

/// A standard stream that is written to at once. Not as a file: a console takes no UTF-8.
#[cfg(windows)]
fn raw(descriptor: i32) -> impl Write {
    struct Stream(i32);

    impl Write for Stream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0 {
                1 => {
                    let mut out = io::stdout().lock();
                    out.write_all(bytes).and_then(|()| out.flush())?;
                }
                _ => io::stderr().write_all(bytes)?,
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    Stream(descriptor)
}
