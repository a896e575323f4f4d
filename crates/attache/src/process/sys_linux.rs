//! Child processes on Linux: one thread a child, from its start to its end.
//!
//! That thread, the keeper, starts the child, waits for it, and reaps it once nobody may signal it any more. It has to
//! be the same thread all along, because the kernel ends the child when the *thread* that started it ends
//! (`PR_SET_PDEATHSIG`), and threads of a runtime come and go.

use std::{
    io, mem,
    os::unix::process::CommandExt as _,
    process::{Child as StdChild, Command},
    sync::mpsc,
    thread,
    time::Duration,
};

use libc::pid_t;
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::watch,
    time::sleep,
};

use super::{ExitStatus, tree::Tree};

/// A child and its tree. Dropping it ends them.
pub(super) struct Child {
    /// Taken when it is handed to the keeper.
    tree: Option<Tree>,
    keeper: mpsc::Sender<Tree>,
    /// How the root ended; closed when the whole tree is gone and reaped.
    exit: watch::Receiver<Option<ExitStatus>>,
}

/// Our ends of the child's pipes.
pub(super) struct Pipes {
    stdin: std::process::ChildStdin,
    stdout: std::process::ChildStdout,
    stderr: Option<std::process::ChildStderr>,
}

/// The same pipes for use in the runtime.
pub(super) struct AsyncPipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: Option<ChildStderr>,
}

impl Pipes {
    pub(super) fn into_async(self) -> io::Result<AsyncPipes> {
        Ok(AsyncPipes {
            stdin: ChildStdin::from_std(self.stdin)?,
            stdout: ChildStdout::from_std(self.stdout)?,
            stderr: self.stderr.map(ChildStderr::from_std).transpose()?,
        })
    }
}

/// Starts a child with stdin and stdout piped, in its own process group.
pub(super) fn spawn(mut command: Command) -> io::Result<(Child, Pipes)> {
    let owner = std::process::id();
    command.process_group(0);
    // SAFETY: the closure only makes two system calls and no allocation, as it must between fork and exec.
    unsafe {
        command.pre_exec(move || {
            // Where a sandbox forbids this, the child is started without it.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
            // If we ended before that call, no signal will come.
            if libc::getppid() as u32 != owner {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
    let (started, start) = mpsc::sync_channel(1);
    let (keeper, handover) = mpsc::channel();
    let (exited, exit) = watch::channel(None);
    thread::Builder::new().name("attache-keeper".into()).spawn(move || match command.spawn() {
        Ok(mut child) => {
            let root = child.id() as pid_t;
            let pipes = child.stdin.take().zip(child.stdout.take());
            let pipes = pipes.map(|(stdin, stdout)| Pipes { stdin, stdout, stderr: child.stderr.take() });
            let _ = started.send(Ok((root, pipes)));
            keep(child, exited, handover);
        }
        Err(error) => drop(started.send(Err(error))),
    })?;
    let (root, pipes) = start.recv().map_err(|_| io::Error::other("the thread that starts the process ended"))??;
    let child = Child { tree: Some(Tree::new(root)), keeper, exit };
    Ok((child, pipes.expect("the command was made with stdin and stdout piped")))
}

/// Waits for the child, then for the tree to be handed over, then for the end of the tree; reaps the child last.
fn keep(mut child: StdChild, exited: watch::Sender<Option<ExitStatus>>, handover: mpsc::Receiver<Tree>) {
    let status = wait_without_reaping(child.id() as pid_t);
    exited.send_replace(Some(status.unwrap_or(ExitStatus::UNKNOWN)));
    if let Ok(mut tree) = handover.recv() {
        tree.root_is_pinned &= status.is_some();
        tree.wait_until_dead();
    }
    let _ = child.wait();
}

/// Waits until the child has ended and leaves it a zombie, so that its id stays its own. `None` if somebody else reaped
/// it, or our program ignores SIGCHLD and there are no zombies.
fn wait_without_reaping(pid: pid_t) -> Option<ExitStatus> {
    loop {
        // SAFETY: all zeroes are a valid siginfo_t.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        // SAFETY: `info` is valid for writing during the call.
        let result = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT) };
        if result == 0 {
            // SAFETY: waitid filled in the fields of a SIGCHLD.
            let status = unsafe { info.si_status() };
            return Some(match info.si_code {
                libc::CLD_EXITED => ExitStatus { code: Some(status), signal: None },
                _ => ExitStatus { code: None, signal: Some(status) },
            });
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

impl Child {
    pub(super) fn id(&self) -> Option<u32> {
        self.tree.as_ref().map(|tree| tree.root() as u32)
    }

    /// Waits until the root has ended.
    pub(super) async fn wait(&mut self) -> ExitStatus {
        let exit = self.exit.wait_for(Option::is_some).await;
        exit.ok().and_then(|status| *status).unwrap_or(ExitStatus::UNKNOWN)
    }

    /// Waits until the root and all known descendants have ended.
    pub(super) async fn wait_all(&mut self) {
        self.wait().await;
        while !self.is_gone() {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether the root and all known descendants have ended.
    pub(super) fn is_gone(&self) -> bool {
        self.exit.borrow().is_some() && !self.tree.as_ref().is_some_and(Tree::has_descendants)
    }

    /// Remembers the descendants that live now, to find them again when their parents have ended.
    pub(super) fn note_descendants(&mut self) {
        if let Some(tree) = self.tree() {
            tree.note_descendants();
        }
    }

    /// Asks the tree to end.
    pub(super) fn terminate(&mut self) {
        if let Some(tree) = self.tree() {
            tree.terminate();
        }
    }

    /// Ends the tree and waits until it is gone.
    pub(super) async fn finish(self) -> ExitStatus {
        let mut exit = self.exit.clone();
        drop(self);
        // Ends with the error that says that the keeper is done.
        while exit.changed().await.is_ok() {}
        let status = *exit.borrow();
        status.unwrap_or(ExitStatus::UNKNOWN)
    }

    fn tree(&mut self) -> Option<&mut Tree> {
        let was_reaped = *self.exit.borrow() == Some(ExitStatus::UNKNOWN);
        let tree = self.tree.as_mut()?;
        tree.root_is_pinned &= !was_reaped;
        Some(tree)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The signals are sent here and not by the keeper, because our program may end right after this.
        if let Some(tree) = self.tree() {
            tree.kill();
        }
        if let Some(tree) = self.tree.take() {
            let _ = self.keeper.send(tree);
        }
    }
}
