//! Child processes that end together with what they started.
//!
//! One implementation for agents, terminals and MCP servers. A [`Process`] ends with its process group when it is shut
//! down or dropped. On Linux the child itself also ends when this program does, in whatever way, SIGKILL included.
//!
//! # What takes a keeper
//!
//! A program that calls [`use_keeper`] at its start gets more than that on Linux: a [`Process`] is a tree then, the child
//! and all its descendants, and ends as a whole. Without it, there is no guarantee that these end:
//!
//! - descendants that have left the process group, as daemons do, and shells with job control;
//! - descendants of any kind when this program is killed, or ends without dropping the [`Process`];
//! - where the kernel is older than 6.9, descendants that are left when the child has exited.
//!
//! It is not done unasked, because it means to fork this program: the child's parent is then a small process in between,
//! `attache-keeper`, which is a copy of this program that gives its memory back. It needs a mounted `/proc`. Two things
//! are out of its reach, too: programs that run as another user (setuid), until they end by themselves; and processes that
//! were not started by the tree but by others on its behalf (`systemd-run`, `docker`, `at`).
//!
//! A tree that means harm can do to its keeper what any program of the same user can, unless a sandbox forbids it. If the
//! keeper is killed, or stopped for good, this program becomes the parent of what it kept, and ends that. If this program
//! is killed, the keeper ends the tree. Only if both are killed, and nobody above them is a keeper, what the child has
//! started may live on; the child itself ends.
//!
//! # Away from us
//!
//! On Unix every child has a session of its own, without a controlling terminal: it cannot open `/dev/tty`, nor type into
//! the terminal of this program (`TIOCSTI`). It inherits no descriptors but stdin, stdout and stderr.
//!
//! # Elsewhere
//!
//! On Windows every child is in a job of its own, with everything it starts: none of them can leave it, and the system ends
//! them all when the [`Process`] is dropped or this program ends, in whatever way. There is no polite way to end them:
//! [`Process::shutdown`] waits for the child to leave, and then ends what is left. Children have no console window, and
//! inherit no handles but stdin, stdout and stderr, unless this program was itself started with others that can be inherited.
//!
//! On other systems the child's process group is ended. Nothing is promised for the case that this program is killed.
//!
//! # Threads
//!
//! Without a keeper, Linux programs are started by a thread of their own, `attache-launch`, which is made for the first of
//! them: the kernel ends a child with the thread that started it. What a program changes for single threads afterwards,
//! such as Landlock rules, does not reach the children. [`Command::before_exec`] does.
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

mod child;
mod command;
#[cfg(unix)]
mod detach;
mod group;
#[cfg(windows)]
mod job;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod keeper_proc;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod orphans;
mod output;
#[cfg(windows)]
mod program;
mod tail;
#[cfg(target_os = "linux")]
mod tree;

use std::{fmt, io, sync::Arc, time::Duration};

use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

pub use crate::ExitStatus;
use crate::error::NO_RUNTIME;
use child::Child;
pub use child::use_keeper;
pub use command::{Command, SpawnError, Stderr};
pub use output::Output;
pub(crate) use tail::Tail;

/// How long [`Process::shutdown`] waits for a process that was sent SIGKILL. Longer than any ordinary end; only a
/// process stuck in the kernel (a dead network file system) takes more.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A running child with what it started: its process group, or all its descendants under a [keeper](use_keeper) and on
/// Windows.
///
/// Dropping it ends them at once with SIGKILL, without blocking; [`shutdown`](Process::shutdown) is the polite way.
/// The example is in the [module documentation](self).
pub struct Process {
    child: Child,
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

    /// Reads stderr, and keeps its tail.
    fn keep_tail(&mut self, stderr: Option<ChildStderr>) {
        self.tail = Tail::of(stderr);
    }

    /// What is kept of stderr, also after the process is gone.
    pub(crate) fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// Ends the tree: politely first, then for certain.
    ///
    /// The caller has closed the child's stdin, which is how an agent is asked to leave. A child that does not end
    /// within `grace` gets SIGTERM, together with its descendants; what is left after another `grace` gets SIGKILL.
    /// A child that leaves in time gets no signal, only the descendants it left behind do. If the future is dropped,
    /// the tree is ended at once.
    pub async fn shutdown(mut self, grace: Duration) -> ExitStatus {
        let _ = timeout(grace, self.child.wait()).await;
        // Nobody can be asked on Windows, so there is nothing to wait for.
        if cfg!(unix) && !self.child.is_gone() {
            self.child.terminate();
            let _ = timeout(grace, self.child.wait_all()).await;
        }
        let _ = timeout(KILL_TIMEOUT, self.child.finish()).await;
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

/// Starts the command. Nobody reads its stderr yet.
fn start(command: std::process::Command, hook: Option<Hook>) -> io::Result<(Process, Pipes)> {
    tokio::runtime::Handle::try_current().map_err(|_| io::Error::other(NO_RUNTIME))?;
    let (child, pipes) = Child::spawn(command, hook)?;
    Ok((Process { child, tail: Tail::none() }, pipes))
}
