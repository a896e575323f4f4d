//! A launched agent: its process, and pipes that know when it has exited.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::AgentExit;
use crate::ExitStatus;
use crate::link::BoxFuture;
use crate::process::Process;

/// An agent that has exited is read from until nothing came for this long. All it wrote is in the pipe by then, so this
/// is used up only when a process that it left behind holds the pipe open.
const IDLE_LIMIT: Duration = Duration::from_millis(250);

/// An agent that has exited, or has closed its stdout, is waited for no longer than this.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// What is read of the pipe after that, in bytes, as long as it is there already: we may have had no room for it before. As
/// much as a pipe can be made to hold.
const LEFT_IN_PIPE: usize = 1024 * 1024;

/// How long a failed write is kept back, so that the reader can tell first what became of the agent. Longer than `DRAIN_LIMIT`.
const WRITE_ERROR_DELAY: Duration = Duration::from_secs(3);

/// How an agent ended, once it has.
type Exit = Option<Arc<AgentExit>>;

/// The process of an agent, with a task that waits for its exit. Dropping it ends the process and all it started.
pub(crate) struct AgentProcess {
    process: Arc<Mutex<Option<Process>>>,
    grace: Duration,
    watcher: JoinHandle<()>,
}

impl AgentProcess {
    /// Calls `on_exit` when the agent has exited, and then tells the pipes.
    pub(crate) fn watch(
        process: Process,
        grace: Duration,
        exit: watch::Sender<Exit>,
        on_exit: impl FnOnce(Arc<AgentExit>) + Send + 'static,
    ) -> Self {
        let mut tail = process.tail();
        let process = Arc::new(Mutex::new(Some(process)));
        let watched = process.clone();
        let watcher = tokio::spawn(async move {
            // The process stays where it can be taken away at any time, so the future is made anew for every look.
            let status = poll_fn(|cx| match &mut *watched.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(process) => pin!(process.exited()).poll(cx),
                None => Poll::Pending,
            })
            .await;
            tail.ended().await;
            let ended = Arc::new(AgentExit { status, stderr_tail: tail.text() });
            on_exit(ended.clone());
            exit.send_replace(Some(ended));
        });
        AgentProcess { process, grace, watcher }
    }

    /// The end of what it has written to stderr so far.
    pub(crate) fn stderr_tail(&self) -> String {
        self.lock().as_ref().map(Process::stderr_tail).unwrap_or_default()
    }

    /// How long it gets to leave.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// Ends the agent, politely at first. See [`Process::shutdown`].
    pub(crate) async fn shutdown(self) -> Option<ExitStatus> {
        let process = self.lock().take()?;
        Some(process.shutdown(self.grace).await)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.watcher.abort();
        // The task holds on to it until the runtime gets round to dropping that; the agent ends now.
        *self.lock() = None;
    }
}

/// Both pipes of an agent, made so that they end when it has exited.
pub(crate) fn pipes<R, W>(stdout: R, stdin: W, mut exit: watch::Receiver<Exit>) -> (Output<R>, Input<W>) {
    let has_ended = Arc::new(AtomicBool::new(false));
    let exited = Box::pin(async move {
        let _ = exit.wait_for(Option::is_some).await;
    });
    let output = Output {
        stdout,
        is_open: true,
        exited: Some(exited),
        deadline: None,
        left_in_pipe: LEFT_IN_PIPE,
        timer: None,
        has_ended: has_ended.clone(),
    };
    (output, Input { stdin, failed: None, has_reader_ended: has_ended })
}

/// The stdout of an agent. It ends when the agent has exited, although others may hold the pipe open, and its end waits
/// for the exit, so that whoever asks why it ended can be told.
pub(crate) struct Output<R> {
    stdout: R,
    /// The pipe has not ended.
    is_open: bool,
    /// Ready when the agent has exited; `None` afterwards.
    exited: Option<BoxFuture<'static, ()>>,
    /// When to wait no longer, whatever comes. Set when the agent has exited or the pipe has ended.
    deadline: Option<Instant>,
    /// How much may be read after that.
    left_in_pipe: usize,
    /// Until when something has to come.
    timer: Option<Pin<Box<Sleep>>>,
    has_ended: Arc<AtomicBool>,
}

impl<R: AsyncRead + Unpin> Output<R> {
    /// Reads; without bytes once there will be none.
    fn poll_stdout(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<()> {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if self.is_open && !(is_late && self.left_in_pipe == 0) {
            let before = buf.filled().len();
            if let Poll::Ready(result) = Pin::new(&mut self.stdout).poll_read(cx, buf) {
                let count = buf.filled().len() - before;
                if result.is_ok() && count > 0 {
                    if is_late {
                        self.left_in_pipe = self.left_in_pipe.saturating_sub(count);
                    }
                    self.timer = None;
                    return Poll::Ready(());
                }
                // An error of a pipe is its end.
                self.is_open = false;
            }
        }
        if self.exited.as_mut().is_some_and(|exited| exited.as_mut().poll(cx).is_ready()) {
            self.exited = None;
        }
        let has_exited = self.exited.is_none();
        match (self.is_open, has_exited) {
            (true, false) => return Poll::Pending,
            (false, true) => return Poll::Ready(()),
            _ => {}
        }
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + DRAIN_LIMIT);
        let next = if has_exited { deadline.min(Instant::now() + IDLE_LIMIT) } else { deadline };
        self.timer.get_or_insert_with(|| Box::pin(sleep_until(next))).as_mut().poll(cx)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Output<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.poll_stdout(cx, buf));
        if buf.filled().len() == before {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

/// The stdin of an agent. That it cannot be written to is told after the end of stdout, which can say why.
pub(crate) struct Input<W> {
    stdin: W,
    failed: Option<Pin<Box<Sleep>>>,
    has_reader_ended: Arc<AtomicBool>,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Input<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let error = match ready!(Pin::new(&mut self.stdin).poll_write(cx, bytes)) {
            Ok(count) => return Poll::Ready(Ok(count)),
            Err(error) => error,
        };
        if !self.has_reader_ended.load(Ordering::Relaxed) {
            ready!(self.failed.get_or_insert_with(|| Box::pin(sleep(WRITE_ERROR_DELAY))).as_mut().poll(cx));
        }
        Poll::Ready(Err(error))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
