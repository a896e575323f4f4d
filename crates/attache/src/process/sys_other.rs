//! Child processes where we have no means to follow a whole tree.
//!
//! Only the child is ended, on Unix with its process group. Descendants elsewhere live on, and so does the child when
//! our program is killed.

use std::{io, process::Command};

use super::{ExitStatus, Hook, Pipes};

/// A child. Dropping it ends it.
pub(super) struct Child {
    child: tokio::process::Child,
    exit: Option<ExitStatus>,
}

/// Starts a child, on Unix in its own process group.
pub(super) fn spawn(command: Command, hook: Option<Hook>) -> io::Result<(Child, Pipes)> {
    #[cfg(unix)]
    let command = with_group_and_hook(command, hook);
    #[cfg(not(unix))]
    drop(hook);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    let pipes = Pipes::take(&mut child);
    Ok((Child { child, exit: None }, pipes))
}

#[cfg(unix)]
fn with_group_and_hook(mut command: Command, hook: Option<Hook>) -> Command {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
    if let Some(hook) = hook {
        // SAFETY: whoever gave us the hook answers for what it does between fork and exec.
        unsafe { command.pre_exec(move || hook()) };
    }
    command
}

impl Child {
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(super) async fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().await.map_or(ExitStatus::UNKNOWN, Into::into);
        self.exit = Some(status);
        status
    }

    pub(super) fn status(&self) -> ExitStatus {
        self.exit.unwrap_or(ExitStatus::UNKNOWN)
    }

    pub(super) async fn wait_all(&mut self) {
        self.wait().await;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.id().is_none()
    }

    /// Asks the process group to end. Windows has no polite way, so nothing is asked there.
    pub(super) fn terminate(&mut self) {
        #[cfg(unix)]
        self.signal(libc::SIGTERM);
    }

    pub(super) async fn finish(&mut self) {
        #[cfg(unix)]
        self.signal(libc::SIGKILL);
        let _ = self.child.start_kill();
        self.wait().await;
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
