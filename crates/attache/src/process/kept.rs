//! A child with its tree, on Linux: our side of a keeper, which is the real parent of the program.

use std::{
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    process::Command,
};

use libc::pid_t;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use super::{
    ExitStatus, Hook, Pipes,
    keeper::{self, Report},
    tree,
};

/// A child and its tree. Dropping it ends them, because that closes the link to the keeper.
pub(super) struct Child {
    program: pid_t,
    /// `None` where the kernel or a sandbox has no pidfd, or we had no file descriptor left.
    pidfd: Option<OwnedFd>,
    /// Brings the report of the program's end, and ends itself when the whole tree is gone.
    link: UnixStream,
    /// Not waited for before it has nothing left to keep, so its id is its own until then. What is dropped before is
    /// reaped by the runtime.
    keeper: tokio::process::Child,
    exit: Option<ExitStatus>,
    is_gone: bool,
}

/// Starts a child in its own process group.
pub(super) fn spawn(mut command: Command, hook: Option<Hook>) -> io::Result<(Child, Pipes)> {
    let (link, keeper_end) = StdUnixStream::pair()?;
    // A copy is never one of the first three descriptors, which become the program's own.
    let keeper_end = if keeper_end.as_raw_fd() > 2 { keeper_end } else { keeper_end.try_clone()? };
    let keeper_fd = keeper_end.as_raw_fd();
    // Valgrind keeps its own memory among that of the program it runs.
    let is_ours_alone = std::env::var_os("LD_PRELOAD").is_none_or(|list| !list.to_string_lossy().contains("vgpreload"));
    // SAFETY: the closure makes system calls only, as it must between fork and exec; whoever gave us the hook answers
    // for that. The socket stays open until the program has been started.
    unsafe {
        command.pre_exec(move || {
            keeper::fork_program(keeper_fd, is_ours_alone)?;
            hook.as_ref().map_or(Ok(()), |hook| hook())
        });
    }
    let mut keeper = tokio::process::Command::from(command).spawn()?;
    drop(keeper_end);
    let (program, pidfd) = keeper::receive_pid(&link)?;
    link.set_nonblocking(true)?;
    let link = UnixStream::from_std(link)?;
    let pipes = Pipes::take(&mut keeper);
    Ok((Child { program, pidfd, link, keeper, exit: None, is_gone: false }, pipes))
}

impl Child {
    pub(super) fn id(&self) -> Option<u32> {
        // The id is the program's until the keeper has reaped it.
        let is_own =
            self.exit.is_none() && self.pidfd.as_ref().is_none_or(|pidfd| tree::signal_process(pidfd, 0).is_ok());
        is_own.then_some(self.program as u32)
    }

    /// How the program ended, as far as that is known.
    pub(super) fn status(&self) -> ExitStatus {
        self.exit.unwrap_or(ExitStatus::UNKNOWN)
    }

    /// Waits until the program has ended.
    pub(super) async fn wait(&mut self) -> ExitStatus {
        while self.exit.is_none() {
            self.listen().await;
        }
        self.status()
    }

    /// Waits until the program and all descendants have ended.
    pub(super) async fn wait_all(&mut self) {
        while !self.is_gone {
            self.listen().await;
        }
        let _ = self.keeper.wait().await;
    }

    /// Takes one message from the keeper. If it is cancelled, nothing is lost.
    async fn listen(&mut self) {
        let mut report = [0; Report::LENGTH];
        match self.link.read(&mut report).await {
            // A message this short comes as a whole.
            Ok(Report::LENGTH) => {
                let report = Report::from_bytes(report);
                self.exit = Some(std::process::ExitStatus::from_raw(report.status).into());
                self.is_gone = !report.is_anything_left;
            }
            // The keeper has ended; without a report only if it was killed.
            _ => {
                self.exit.get_or_insert(ExitStatus::UNKNOWN);
                self.is_gone = true;
            }
        }
    }

    /// Whether the program and all descendants are known to have ended.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Asks the tree to end. Nobody is asked twice, because many programs take a second SIGTERM as "leave at once".
    pub(super) fn terminate(&mut self) {
        let Some(keeper) = self.keeper.id() else { return };
        let descendants = tree::descendants(keeper as pid_t);
        // Somebody else in our program may have reaped it.
        if !matches!(self.keeper.try_wait(), Ok(None)) {
            return;
        }
        // The group at one stroke where the kernel can do that without a doubt whose it is, so that no shell takes the
        // end of one command for the time to start the next. Otherwise parents come first.
        let ask_group = |pidfd: &OwnedFd| tree::signal_group(pidfd, libc::SIGTERM).is_ok();
        let was_group_asked = self.pidfd.as_ref().is_some_and(ask_group);
        for descendant in descendants {
            if !(was_group_asked && descendant.group() == self.program) {
                descendant.signal(libc::SIGTERM);
            }
        }
    }

    /// Ends the tree and waits until it is gone.
    pub(super) async fn finish(&mut self) {
        let _ = self.link.shutdown().await;
        self.wait_all().await;
    }
}
