//! A child with its tree, on Linux: our side of a keeper, which is the real parent of the program.

use std::{
    future::poll_fn,
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    pin::{Pin, pin},
    process::Command,
    task::Poll,
    time::Duration,
};

use libc::pid_t;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    sync::oneshot::{self, error::TryRecvError},
};

use super::{
    ExitStatus, Hook, Pipes,
    keeper::{self, Report},
    orphans, tree,
};

/// How long a keeper that was stopped while its tree is to end may stay so, before it is woken.
const STOPPED: Duration = Duration::from_millis(20);

/// How often a stopped keeper is woken. If it is stopped again and again, it is killed: its tree is ours then.
const WAKE_UPS: u32 = 5;

/// A child and its tree. Dropping it ends them, because that closes the link to the keeper.
pub(super) struct Child {
    program: pid_t,
    /// `None` where the kernel or a sandbox has no pidfd, or we had no file descriptor left.
    pidfd: Option<OwnedFd>,
    /// Brings the report of the program's end, and ends itself when the whole tree is gone.
    link: UnixStream,
    keeper: pid_t,
    /// Tells whether the keeper's id is still its own. `None` where the kernel or a sandbox has no pidfd.
    keeper_pidfd: Option<OwnedFd>,
    /// Said, or dropped, when the tree is to end.
    closing: Option<oneshot::Sender<()>>,
    /// Heard when the keeper has ended, and all that it left behind. `None` when it was heard.
    ended: Option<oneshot::Receiver<()>>,
    exit: Option<ExitStatus>,
    is_gone: bool,
}

/// Starts a child in a session of its own.
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
    let mut keeper = orphans::start_keeper(|| tokio::process::Command::from(command).spawn())?;
    let pipes = Pipes::take(&mut keeper);
    let keeper_id = keeper.id().unwrap_or_default() as pid_t;
    let keeper_pidfd = tree::open_pidfd(keeper_id).ok();
    let (closing, is_closing) = oneshot::channel();
    let (has_ended, ended) = oneshot::channel();
    tokio::spawn(async move {
        watch(keeper, keeper_id, is_closing).await;
        let _ = has_ended.send(());
    });
    drop(keeper_end);
    let (program, pidfd) = keeper::receive_pid(&link)?;
    link.set_nonblocking(true)?;
    let link = UnixStream::from_std(link)?;
    let child = Child {
        program,
        pidfd,
        link,
        keeper: keeper_id,
        keeper_pidfd,
        closing: Some(closing),
        ended: Some(ended),
        exit: None,
        is_gone: false,
    };
    Ok((child, pipes))
}

/// Waits for the end of a keeper, and ends its tree if it was killed, whether or not somebody waits for that.
async fn watch(mut keeper: tokio::process::Child, id: pid_t, mut is_closing: oneshot::Receiver<()>) {
    let mut ended = pin!(keeper.wait());
    let early = poll_fn(|context| match ended.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => Pin::new(&mut is_closing).poll(context).map(|_| None),
    });
    let ended = match early.await {
        Some(ended) => ended,
        None => {
            let mut pause = STOPPED;
            let mut wake_ups = 0;
            loop {
                if tree::is_stopped(id) {
                    let signal = if wake_ups < WAKE_UPS { libc::SIGCONT } else { libc::SIGKILL };
                    wake_ups += 1;
                    // SAFETY: sends a signal to a child that has not been reaped: its id is its own.
                    unsafe { libc::kill(id, signal) };
                }
                if let Ok(ended) = tokio::time::timeout(pause, ended.as_mut()).await {
                    break ended;
                }
                // What cannot be killed is waited for, without a hurry.
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    };
    orphans::forget_keeper(id);
    // It ends by itself only when it has nothing left to keep.
    if !ended.is_ok_and(|status| status.success()) {
        orphans::end_all().await;
    }
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
        self.keeper_ended().await;
    }

    /// Waits until the keeper has ended, and what it left behind if it was killed.
    async fn keeper_ended(&mut self) {
        if let Some(ended) = &mut self.ended {
            // An error is the end of the runtime, with which nobody waits any more.
            let _ = ended.await;
            self.ended = None;
        }
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
                self.keeper_ended().await;
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
        let descendants = tree::descendants(self.keeper);
        // If it has been reaped by now, they may be somebody else's.
        let is_there = match &self.keeper_pidfd {
            Some(pidfd) => tree::signal_process(pidfd, 0).is_ok(),
            None => self.ended.as_mut().is_some_and(|ended| ended.try_recv() == Err(TryRecvError::Empty)),
        };
        if !is_there {
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
        self.closing = None;
        self.wait_all().await;
    }
}
