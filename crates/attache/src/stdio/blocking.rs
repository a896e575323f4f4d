//! Byte streams over files that can only be read and written by blocking: one thread each.
//!
//! The threads are not joined: one that hangs in a read must not keep the program from ending.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    thread,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
};

/// As much as a pipe holds.
const BUFFER: usize = 64 * 1024;

/// Reads ahead in a thread.
pub(super) struct ThreadReader {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// The chunk that is being given out, and how much of it was.
    current: Vec<u8>,
    given: usize,
}

impl ThreadReader {
    pub(super) fn new(mut file: File) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(2);
        thread::Builder::new().name("attache-stdin".into()).spawn(move || {
            let mut buffer = vec![0; BUFFER];
            loop {
                let chunk = match file.read(&mut buffer) {
                    Ok(0) => return,
                    // The end of a pipe, as Windows says it.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return,
                    Ok(length) => Ok(buffer[..length].to_vec()),
                    Err(error) if can_retry(&error, &file, Waiting::ToRead) => continue,
                    Err(error) => Err(error),
                };
                let is_last = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, current: Vec::new(), given: 0 })
    }
}

impl AsyncRead for ThreadReader {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.given == self.current.len() {
            match ready!(self.chunks.poll_recv(context)).transpose()? {
                Some(chunk) => (self.current, self.given) = (chunk, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let rest = &self.current[self.given..];
        let length = rest.len().min(out.remaining());
        out.put_slice(&rest[..length]);
        self.given += length;
        Poll::Ready(Ok(()))
    }
}

/// Writes behind in a thread. Flushed means written to the file.
pub(super) struct ThreadWriter {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Told when there is something to write, or nothing more will come.
    work: Condvar,
}

#[derive(Default)]
struct State {
    buffer: Vec<u8>,
    /// The thread has bytes in hand that are not in the file yet.
    is_writing: bool,
    is_closed: bool,
    error: Option<(io::ErrorKind, Option<i32>)>,
    waiting: Option<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The error that ended the writing. It stays, however often it is asked for.
    fn check(&self) -> io::Result<()> {
        match self.error {
            Some((_, Some(code))) => Err(io::Error::from_raw_os_error(code)),
            Some((kind, None)) => Err(kind.into()),
            None => Ok(()),
        }
    }

    fn wait(&mut self, context: &Context<'_>) {
        self.waiting = Some(context.waker().clone());
    }
}

impl ThreadWriter {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        thread::Builder::new().name("attache-stdout".into()).spawn(move || write_behind(&theirs, &file))?;
        Ok(Self { shared })
    }
}

fn write_behind(shared: &Shared, file: &File) {
    let mut chunk = Vec::new();
    loop {
        let mut state = shared.lock();
        while state.buffer.is_empty() && !state.is_closed {
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.buffer.is_empty() {
            return;
        }
        std::mem::swap(&mut chunk, &mut state.buffer);
        state.is_writing = true;
        // There is room again while this chunk is written.
        wake(state);

        let result = write_all(file, &chunk);
        chunk.clear();

        let mut state = shared.lock();
        state.is_writing = false;
        let failed = result.is_err();
        state.error = result.err().map(|error| (error.kind(), error.raw_os_error()));
        wake(state);
        if failed {
            return;
        }
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let waiting = state.waiting.take();
    drop(state);
    if let Some(waker) = waiting {
        waker.wake();
    }
}

fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if can_retry(&error, file, Waiting::ToWrite) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a file is waited for.
#[derive(Clone, Copy)]
enum Waiting {
    ToRead,
    ToWrite,
}

/// Whether reading or writing can go on after this error. Waits, if somebody who shares the terminal with us made it
/// non-blocking.
#[cfg(unix)]
fn can_retry(error: &io::Error, file: &File, what: Waiting) -> bool {
    use std::os::fd::AsRawFd as _;
    match error.kind() {
        io::ErrorKind::Interrupted => true,
        io::ErrorKind::WouldBlock => {
            let events = match what {
                Waiting::ToRead => libc::POLLIN,
                Waiting::ToWrite => libc::POLLOUT,
            };
            let mut poll = libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 };
            // SAFETY: `poll` is one valid pollfd, and lives during the call.
            unsafe { libc::poll(&mut poll, 1, -1) };
            true
        }
        _ => false,
    }
}

/// Whether reading or writing can go on after this error.
#[cfg(not(unix))]
fn can_retry(error: &io::Error, _: &File, _: Waiting) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

impl AsyncWrite for ThreadWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.lock();
        state.check()?;
        if state.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let length = bytes.len().min(BUFFER.saturating_sub(state.buffer.len()));
        if length == 0 && !bytes.is_empty() {
            state.wait(context);
            return Poll::Pending;
        }
        state.buffer.extend_from_slice(&bytes[..length]);
        self.shared.work.notify_one();
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        state.check()?;
        if state.buffer.is_empty() && !state.is_writing {
            return Poll::Ready(Ok(()));
        }
        state.wait(context);
        Poll::Pending
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(context))?;
        self.shared.lock().is_closed = true;
        self.shared.work.notify_one();
        Poll::Ready(Ok(()))
    }
}

impl Drop for ThreadWriter {
    fn drop(&mut self) {
        // The thread writes what is left, and ends.
        self.shared.lock().is_closed = true;
        self.shared.work.notify_one();
    }
}
