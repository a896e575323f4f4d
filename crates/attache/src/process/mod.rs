//! Child processes that end together with everything they started.
//!
//! One implementation for agents, terminals and MCP servers. On Linux a [`Process`] is a tree: the child and all its
//! descendants, also those in other process groups and sessions and those whose parents have ended. It ends as a whole
//! when it is shut down or dropped, and also when this program ends in whatever way, SIGKILL included.
//!
//! To that end the child's parent is not this program but a small process in between, `attache-keeper`, which needs a
//! mounted `/proc`. Three things are out of its reach: programs that run as another user (setuid), until they end by
//! themselves; processes that were not started by the tree but by others on its behalf (`systemd-run`, `docker`, `at`);
//! and if the keeper itself is killed, only the child ends with it.
//!
//! Elsewhere only the child (on Unix, its process group) is ended, and nothing is promised for the case that this
//! program is killed.
//!
//! ```no_run
//! use std::time::Duration;
//! use attache::process::Command;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let (process, stdin, stdout) = Command::new("gemini").args(["--acp"]).cwd("/home/me/project").spawn()?;
//! // ... talk over stdin and stdout, then close stdin to say goodbye ...
//! drop((stdin, stdout));
//! let status = process.shutdown(Duration::from_secs(2)).await;
//! if !status.success() {
//!     eprintln!("the agent ended with {status}");
//! }
//! # Ok(())
//! # }
//! ```

mod command;
mod exit;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod keeper_proc;
#[cfg_attr(target_os = "linux", path = "sys_linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "sys_other.rs")]
mod sys;
mod tail;
#[cfg(target_os = "linux")]
mod tree;

use std::{fmt, io, sync::Arc, time::Duration};

use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

pub use command::{Command, SpawnError, Stderr};
pub use exit::ExitStatus;
pub(crate) use tail::Tail;

/// How long [`Process::shutdown`] waits for a process that was sent SIGKILL. Longer than any ordinary end; only a
/// process stuck in the kernel (a dead network file system) takes more.
const BURIAL: Duration = Duration::from_secs(5);

/// A running child with all its descendants.
///
/// Dropping it ends them all at once with SIGKILL, without blocking; [`shutdown`](Process::shutdown) is the polite way.
/// The example is in the [module documentation](self).
pub struct Process {
    child: sys::Child,
    tail: Tail,
}

impl Process {
    /// The child's process id, as long as it is sure to mean this child.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The last 8 KiB that the tree wrote to stderr, made harmless for a terminal.
    ///
    /// Invalid UTF-8 is replaced, escape sequences and control characters are removed. Empty with [`Stderr::Inherit`].
    pub fn stderr_tail(&self) -> String {
        self.tail.text()
    }

    /// Waits until the child ends by itself. It can be cancelled and called again.
    ///
    /// Descendants may live on until the process is dropped or shut down. What the child wrote to stderr is in
    /// [`stderr_tail`](Process::stderr_tail) afterwards.
    pub async fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().await;
        self.tail.ended().await;
        status
    }

    /// Waits until the child has ended, and not for what it wrote. Nothing is lost if it is dropped and made anew.
    pub(crate) async fn exited(&mut self) -> ExitStatus {
        self.child.wait().await
    }

    /// What is kept of stderr, also after the process is gone.
    pub(crate) fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// Ends the tree: politely first, then for certain.
    ///
    /// The caller has closed the child's stdin, which is how an agent is told to leave. A child that does not end
    /// within `grace` gets SIGTERM, together with its descendants; what is left after another `grace` gets SIGKILL.
    /// A child that leaves in time gets no signal, only the descendants it left behind do. If the future is dropped,
    /// the tree is ended at once.
    pub async fn shutdown(mut self, grace: Duration) -> ExitStatus {
        let _ = timeout(grace, self.child.wait()).await;
        if !self.child.is_gone() {
            self.child.terminate();
            let _ = timeout(grace, self.child.wait_all()).await;
        }
        let _ = timeout(BURIAL, self.child.finish()).await;
        self.child.status()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// What runs in a child between fork and exec.
type Hook = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Our ends of a child's pipes, as far as it was given some.
struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Pipes {
    fn take(child: &mut tokio::process::Child) -> Self {
        Self { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() }
    }
}

/// Starts the command and the task that drains its stderr.
fn start(command: std::process::Command, hook: Option<Hook>) -> io::Result<(Process, Pipes)> {
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let (child, mut pipes) = sys::spawn(command, hook)?;
    let tail = Tail::of(pipes.stderr.take(), &runtime);
    Ok((Process { child, tail }, pipes))
}
