//! A child with its process group: what can be ended without a keeper.
//!
//! Descendants in other groups live on. On Linux the child itself also ends when our program does, in whatever way. On Windows
//! a job takes the place of the group, which nobody leaves and which ends with our program.

use std::{io, process::Command, time::Duration};

#[cfg(unix)]
use super::detach;
#[cfg(windows)]
use super::job::{self, Job};
use super::{ExitStatus, Hook, Pipes};

/// How often to look whether a process group is empty: nobody tells.
const LOOK: Duration = Duration::from_millis(10);

/// A child. Dropping it ends its group.
pub(super) struct Child {
    child: tokio::process::Child,
    /// Also means the child's group when the child is gone. `None` where the kernel or a sandbox has no pidfd, or we had
    /// no file descriptor left.
    #[cfg(target_os = "linux")]
    pidfd: Option<std::os::fd::OwnedFd>,
    #[cfg(target_os = "linux")]
    group: libc::pid_t,
    #[cfg(windows)]
    job: Job,
    exit: Option<ExitStatus>,
}

/// Starts a child, on Unix in a session of its own, and so in its own process group.
pub(super) fn spawn(command: Command, hook: Option<Hook>) -> io::Result<(Child, Pipes)> {
    #[cfg(unix)]
    let command = with_session_and_hook(command, hook);
    #[cfg(not(unix))]
    drop(hook);
    #[cfg(windows)]
    let command = job::suspended(command);
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    #[cfg(target_os = "linux")]
    let mut child = linux::spawn(command)?;
    #[cfg(not(target_os = "linux"))]
    let mut child = command.spawn()?;
    // Dropped on the way out if this fails, and so ended.
    #[cfg(windows)]
    let job = Job::with(&child)?;
    let pipes = Pipes::take(&mut child);
    #[cfg(target_os = "linux")]
    let group = child.id().unwrap_or_default() as libc::pid_t;
    let child = Child {
        child,
        #[cfg(target_os = "linux")]
        pidfd: super::tree::open_pidfd(group).ok(),
        #[cfg(target_os = "linux")]
        group,
        #[cfg(windows)]
        job,
        exit: None,
    };
    Ok((child, pipes))
}

#[cfg(unix)]
fn with_session_and_hook(mut command: Command, hook: Option<Hook>) -> Command {
    use std::os::unix::process::CommandExt as _;
    // SAFETY: the closure makes system calls only, as it must between fork and exec.
    unsafe {
        command.pre_exec(|| {
            detach::leave_session()?;
            detach::close_descriptors_on_exec();
            Ok(())
        });
    }
    #[cfg(target_os = "linux")]
    linux::end_with_us(&mut command);
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

    /// Waits until the child and its group have ended, as far as that can be known.
    pub(super) async fn wait_all(&mut self) {
        self.wait().await;
        while !self.is_gone() {
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.exit.is_some() && !self.is_anybody_left()
    }

    /// Whether anybody is left in the group. A zombie is nobody, and may stay for long where nobody reaps it.
    fn is_anybody_left(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.signal(0) && super::tree::is_group_alive(self.group);
        #[cfg(all(unix, not(target_os = "linux")))]
        return self.signal(0);
        #[cfg(windows)]
        return !self.job.is_empty();
        #[cfg(not(any(unix, windows)))]
        return false;
    }

    /// Asks the process group to end. On Windows nobody can be asked who has neither a window nor our console.
    pub(super) fn terminate(&mut self) {
        #[cfg(unix)]
        self.signal(libc::SIGTERM);
    }

    pub(super) async fn finish(&mut self) {
        #[cfg(unix)]
        self.signal(libc::SIGKILL);
        #[cfg(windows)]
        self.job.end();
        let _ = self.child.start_kill();
        self.wait_all().await;
    }

    /// Signals the process group; says whether there is one. Not known, and not tried, when the child has been reaped and
    /// there is no pidfd that can mean a group: the group's id may be somebody else's by then.
    #[cfg(unix)]
    fn signal(&self, signal: libc::c_int) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = &self.pidfd {
            match super::tree::signal_group(pidfd, signal) {
                Ok(()) => return true,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return false,
                Err(_) => {}
            }
        }
        // SAFETY: sends a signal, touches no memory.
        self.child.id().is_some_and(|id| unsafe { libc::kill(-(id as libc::pid_t), signal) } == 0)
    }
}

#[cfg(unix)]
impl Drop for Child {
    fn drop(&mut self) {
        // The child itself is ended and reaped by tokio, as `kill_on_drop` asks.
        self.signal(libc::SIGKILL);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        io,
        os::unix::process::CommandExt as _,
        panic::{AssertUnwindSafe, catch_unwind},
        process::Command,
        sync::{Mutex, PoisonError, mpsc},
        thread,
    };

    use libc::{c_ulong, pid_t};
    use tokio::runtime::Handle;

    /// Has the kernel end the child when our program ends.
    pub(super) fn end_with_us(command: &mut Command) {
        let parent = std::process::id() as pid_t;
        let die_with_parent = move || {
            // SAFETY: system calls on numbers.
            let parent_now = unsafe {
                // Where a sandbox forbids this, the program is started without it.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
                libc::getppid()
            };
            // If we ended before that call, no signal will come. In a new namespace our id cannot be seen and is 0.
            if parent_now == parent || parent_now == 0 {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        };
        // SAFETY: the closure makes system calls only, as it must between fork and exec.
        unsafe { command.pre_exec(die_with_parent) };
    }

    type Job = Box<dyn FnOnce() + Send>;

    /// Starts a child from a thread that lasts as long as our program: to the kernel, the parent that a child ends with
    /// is the thread that started it, and threads of a runtime come and go.
    pub(super) fn spawn(mut command: tokio::process::Command) -> io::Result<tokio::process::Child> {
        static THREAD: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);
        let runtime = Handle::current();
        let (done, result) = mpsc::sync_channel(1);
        let job: Job = Box::new(move || {
            let _in_runtime = runtime.enter();
            let _ = done.send(catch_unwind(AssertUnwindSafe(|| command.spawn())));
        });
        {
            let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
            let thread = match &mut *thread {
                Some(thread) => thread,
                none => {
                    let (sender, jobs) = mpsc::channel::<Job>();
                    thread::Builder::new()
                        .name("attache-launch".into())
                        .spawn(move || jobs.into_iter().for_each(|job| job()))?;
                    none.insert(sender)
                }
            };
            // If it could not be sent, it is dropped, and no result will come.
            let _ = thread.send(job);
        }
        match result.recv().map_err(io::Error::other)? {
            Ok(child) => child,
            // Nothing else makes tokio panic here. What it said is on stderr already.
            Err(_) => Err(io::Error::other(crate::error::NO_RUNTIME)),
        }
    }
}
