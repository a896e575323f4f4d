//! Child processes where we have no means to follow a whole tree.
//!
//! Only the child is ended, on Unix with its process group. Descendants elsewhere live on, and so does the child when
//! our program is killed.

use std::{io, process::Command};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::ExitStatus;

/// A child. Dropping it ends it.
pub(super) struct Child {
    child: tokio::process::Child,
}

/// Our ends of the child's pipes.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: Option<ChildStderr>,
}

impl Pipes {
    pub(super) fn into_async(self) -> io::Result<Self> {
        Ok(self)
    }
}

/// Starts a child with stdin and stdout piped.
pub(super) fn spawn(command: Command) -> io::Result<(Child, Pipes)> {
    let mut command = tokio::process::Command::from(command);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.kill_on_drop(true).spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (stdin, stdout) = pipes.expect("the command was made with stdin and stdout piped");
    let stderr = child.stderr.take();
    Ok((Child { child }, Pipes { stdin, stdout, stderr }))
}

impl Child {
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(super) async fn wait(&mut self) -> ExitStatus {
        self.child.wait().await.map_or(ExitStatus::UNKNOWN, exit_status)
    }

    pub(super) async fn wait_all(&mut self) {
        self.wait().await;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.id().is_none()
    }

    /// Descendants are not followed here.
    pub(super) fn note_descendants(&mut self) {}

    /// Asks the process group to end. Windows has no polite way, so nothing is asked there.
    pub(super) fn terminate(&mut self) {
        #[cfg(unix)]
        self.signal(libc::SIGTERM);
    }

    pub(super) async fn finish(mut self) -> ExitStatus {
        #[cfg(unix)]
        self.signal(libc::SIGKILL);
        let _ = self.child.start_kill();
        self.wait().await
    }

    /// Signals the process group, while its leader has not been reaped and its id is therefore its own.
    #[cfg(unix)]
    fn signal(&self, signal: libc::c_int) {
        if let Some(id) = self.child.id() {
            // SAFETY: sends a signal, touches no memory.
            unsafe { libc::kill(-(id as libc::pid_t), signal) };
        }
    }
}

#[cfg(unix)]
impl Drop for Child {
    fn drop(&mut self) {
        // The child itself is ended and reaped by tokio, as `kill_on_drop` asks.
        self.signal(libc::SIGKILL);
    }
}

fn exit_status(status: std::process::ExitStatus) -> ExitStatus {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    ExitStatus { code: status.code(), signal }
}
