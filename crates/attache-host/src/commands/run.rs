//! A command from its start to its end.

use std::{
    future::{Future as _, poll_fn},
    path::PathBuf,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use attache::{
    model::terminal::ExitStatus,
    process::{self, Output as Pipe, Process},
};
use tokio::{
    io::{AsyncRead as _, ReadBuf},
    sync::{Notify, watch},
};

use super::output::Output;

/// As much as a pipe holds, unless somebody made it larger.
const BUFFER: usize = 64 << 10;

/// How many bytes are read after a command's end, before its end is told. The largest pipe that an ordinary user can
/// make holds this much; what comes after it was written by others.
const MOST_AT_THE_END: usize = 16 * BUFFER;

/// A command that runs or has run, shared by those who ask and the task that reads.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) command: String,
    pub(super) cwd: PathBuf,
    output: Mutex<Output>,
    state: watch::Sender<State>,
    kill: Notify,
}

/// What changes in a command's life.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Where the output ends.
    pub(super) end: u64,
    /// How the command ended, when it has.
    pub(super) exit_status: Option<ExitStatus>,
    /// Nothing will change any more.
    pub(super) is_closed: bool,
}

impl Shared {
    pub(super) fn new(command: String, cwd: PathBuf, limit: usize) -> Self {
        Self {
            command,
            cwd,
            output: Mutex::new(Output::new(limit)),
            state: watch::Sender::default(),
            kill: Notify::new(),
        }
    }

    /// Tells the task to end the command and all it started.
    pub(super) fn kill(&self) {
        self.kill.notify_one();
    }

    pub(super) fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn exit_status(&self) -> Option<ExitStatus> {
        self.state.borrow().exit_status.clone()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    pub(super) async fn wait_for_exit(&self) -> ExitStatus {
        let mut state = self.subscribe();
        let ended = state.wait_for(|state| state.exit_status.is_some()).await;
        ended.ok().and_then(|state| state.exit_status.clone()).unwrap_or_default()
    }

    fn push(&self, bytes: &[u8]) {
        let end = {
            let mut output = self.output();
            output.push(bytes);
            output.end()
        };
        self.state.send_modify(|state| state.end = end);
    }

    fn close_output(&self) {
        let end = {
            let mut output = self.output();
            output.finish();
            output.end()
        };
        self.state.send_modify(|state| state.end = end);
    }

    fn set_exit_status(&self, status: process::ExitStatus) {
        let signal = |number| status.signal_name().map_or_else(|| format!("SIG{number}"), str::to_owned);
        let exit_status = ExitStatus::new().with(|ended| {
            ended.exit_code = status.code.map(i64::from);
            ended.signal = status.signal.map(signal);
        });
        self.state.send_modify(|state| state.exit_status = Some(exit_status));
    }
}

/// Tells everybody who waits that the task is gone, in whatever way: a runtime that ends drops its tasks.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close_output();
        self.0.state.send_modify(|state| {
            state.exit_status.get_or_insert_default();
            state.is_closed = true;
        });
    }
}

enum Event {
    Kill,
    Exit(process::ExitStatus),
    Output(usize),
}

/// Reads what the command writes until it is killed, and then ends it with all that it started.
///
/// The process is held until then although the command may have ended, because what it left in the background ends
/// with its `Run`.
pub(super) async fn run(shared: Arc<Shared>, mut process: Process, pipe: Pipe) {
    let closing = Closing(shared);
    let shared = &*closing.0;
    let mut buffer = vec![0; BUFFER];
    let mut pipe = Some(pipe);
    loop {
        let has_exited = shared.exit_status().is_some();
        if has_exited && pipe.is_none() {
            shared.state.send_if_modified(|state| !std::mem::replace(&mut state.is_closed, true));
        }
        match next_event(shared, &mut process, has_exited, &mut pipe, &mut buffer).await {
            Event::Kill => break,
            Event::Exit(status) => {
                // All that the command wrote is in the pipe by now, and is to be seen before its end is.
                read_what_is_there(shared, &mut pipe, &mut buffer).await;
                shared.set_exit_status(status);
            }
            Event::Output(0) => {
                pipe = None;
                buffer = Vec::new();
                shared.close_output();
            }
            Event::Output(length) => shared.push(&buffer[..length]),
        }
    }
    let status = process.shutdown(Duration::ZERO).await;
    read_what_is_there(shared, &mut pipe, &mut buffer).await;
    if shared.exit_status().is_none() {
        shared.set_exit_status(status);
    }
}

async fn next_event(
    shared: &Shared,
    process: &mut Process,
    has_exited: bool,
    pipe: &mut Option<Pipe>,
    buffer: &mut [u8],
) -> Event {
    let mut killed = pin!(shared.kill.notified());
    let mut exited = pin!(process.wait());
    // In this order, so that a flood of output keeps nobody from ending it.
    poll_fn(|context| {
        if killed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Event::Kill);
        }
        if !has_exited && let Poll::Ready(status) = exited.as_mut().poll(context) {
            return Poll::Ready(Event::Exit(status));
        }
        let Some(pipe) = pipe else { return Poll::Pending };
        let mut room = ReadBuf::new(buffer);
        // An error of a pipe is its end.
        Pin::new(pipe).poll_read(context, &mut room).map(|_| Event::Output(room.filled().len()))
    })
    .await
}

/// Reads without waiting for more than there is.
async fn read_what_is_there(shared: &Shared, pipe: &mut Option<Pipe>, buffer: &mut [u8]) {
    let Some(pipe) = pipe else { return };
    let mut left = MOST_AT_THE_END;
    while left > 0 {
        match pipe.read_available(buffer).await {
            0 => break,
            length => {
                shared.push(&buffer[..length]);
                left = left.saturating_sub(length);
            }
        }
    }
}
