//! The protocol's terminals, for clients: [`commands`](crate::commands) by the names that the agent has for them.
//!
//! A terminal is a command's [`Run`]. It belongs to the session that created it, stays readable when its command has ended
//! or was killed, and is gone when it is released. Commands end with their terminals, and all of them when the
//! [`Terminals`] are dropped.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), attache_host::terminals::TerminalError> {
//! use std::path::Path;
//! use attache::model::terminal::{CreateTerminalRequest, TerminalOutputRequest, WaitForTerminalExitRequest};
//! use attache_host::terminals::{Limits, Terminals};
//!
//! let terminals = Terminals::new(Limits::default());
//! let terminal = terminals.create(&CreateTerminalRequest::new("s1", "echo hello; exit 3"), Path::new("/"))?.terminal_id;
//! let exit = terminals.wait_for_exit(&WaitForTerminalExitRequest::new("s1", terminal.clone())).await?;
//! assert_eq!(exit.exit_code, Some(3));
//! assert_eq!(terminals.output(&TerminalOutputRequest::new("s1", terminal.clone()))?.output, "hello\n");
//!
//! // Another session does not see it.
//! assert!(terminals.output(&TerminalOutputRequest::new("s2", terminal)).is_err());
//! # Ok(())
//! # }
//! ```
//!
//! A user interface takes a [`TerminalView`], which tells when there is more to show and outlives the terminal.

mod error;

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use attache::{
    model::{
        mcp::EnvVariable,
        session::SessionId,
        terminal::{
            CreateTerminalRequest, CreateTerminalResponse, ExitStatus, KillTerminalRequest, KillTerminalResponse,
            ReleaseTerminalRequest, ReleaseTerminalResponse, TerminalId, TerminalOutputRequest, TerminalOutputResponse,
            WaitForTerminalExitRequest,
        },
    },
    process,
};

use crate::commands::{Command, Invocation, Run, View};

pub use error::TerminalError;

/// How much of everything there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Commands that run at the same time. Default 32.
    pub running: usize,
    /// Terminals that are not released, their commands ended or not. Default 128.
    pub kept: usize,
    /// Bytes of output that are kept when the agent does not say. Default 1 MiB.
    pub output: usize,
    /// Bytes of output that are kept at most, whatever the agent says. Default 4 MiB.
    pub most_output: usize,
    /// Bytes of output that all terminals together may keep. Default 24 MiB. A terminal that is created when others have
    /// taken it up keeps [`least_output`](Limits::least_output) only.
    pub total_output: usize,
    /// Bytes of output that a terminal keeps whatever others have taken. Default 64 KiB.
    pub least_output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            running: 32,
            kept: 128,
            output: 1 << 20,
            most_output: 4 << 20,
            total_output: 24 << 20,
            least_output: 64 << 10,
        }
    }
}

/// Changes a command before it is started, to confine it.
type Confine = Box<dyn Fn(process::Command) -> process::Command + Send + Sync>;

/// The terminals of a connection. Dropping them ends their commands.
///
/// The example is in the [module documentation](self).
pub struct Terminals {
    limits: Limits,
    confine: Option<Confine>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    created: u64,
    terminals: BTreeMap<u64, Arc<Terminal>>,
}

struct Terminal {
    id: TerminalId,
    session_id: SessionId,
    run: Run,
}

/// A terminal to show: live, and also after it was released.
#[derive(Debug, Clone)]
pub struct TerminalView {
    id: TerminalId,
    session_id: SessionId,
    view: View,
}

impl TerminalView {
    /// The terminal's id.
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// The session that it belongs to.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }
}

impl Deref for TerminalView {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

impl DerefMut for TerminalView {
    fn deref_mut(&mut self) -> &mut View {
        &mut self.view
    }
}

impl Terminals {
    /// No terminals yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, confine: None, open: Mutex::default() }
    }

    /// Sets what is done to every command before it is started, for example to run it in a sandbox.
    #[must_use]
    pub fn confine(mut self, confine: impl Fn(process::Command) -> process::Command + Send + Sync + 'static) -> Self {
        self.confine = Some(Box::new(confine));
        self
    }

    /// Starts a command in a new terminal, in `session_cwd` unless the request names a directory.
    ///
    /// For callers who need no permission. Whoever does makes the [`invocation`], has it judged, and [starts](Self::start)
    /// the very same.
    pub fn create(
        &self,
        request: &CreateTerminalRequest,
        session_cwd: &Path,
    ) -> Result<CreateTerminalResponse, TerminalError> {
        self.start(&request.session_id, &invocation(request, session_cwd), request.output_byte_limit)
    }

    /// Starts a command in a new terminal of a session. Of its output, as many bytes are kept as the agent wants, within
    /// the limits. Must be called in a tokio runtime with IO and time enabled.
    pub fn start(
        &self,
        session_id: &SessionId,
        invocation: &Invocation,
        kept: Option<u64>,
    ) -> Result<CreateTerminalResponse, TerminalError> {
        // Held while the command starts, so that two at once cannot both be the last one that is allowed.
        let mut open = self.open();
        if open.terminals.len() >= self.limits.kept {
            return Err(TerminalError::TooManyKept { limit: self.limits.kept });
        }
        let running = open.terminals.values().filter(|terminal| terminal.run.exit_status().is_none()).count();
        if running >= self.limits.running {
            return Err(TerminalError::TooManyRunning { limit: self.limits.running });
        }
        let kept = kept.map(|kept| usize::try_from(kept).unwrap_or(usize::MAX));
        let taken: usize = open.terminals.values().map(|terminal| terminal.run.kept()).sum();
        let room = self.limits.total_output.saturating_sub(taken).max(self.limits.least_output);
        let kept = kept.unwrap_or(self.limits.output).min(self.limits.most_output).min(room);
        let run = invocation.start(kept, |command| match &self.confine {
            Some(confine) => confine(command),
            None => command,
        })?;
        open.created += 1;
        let number = open.created;
        let id = TerminalId::from(format!("terminal-{number}"));
        open.terminals.insert(number, Arc::new(Terminal { id: id.clone(), session_id: session_id.clone(), run }));
        Ok(CreateTerminalResponse::new(id))
    }

    /// What a command has written so far, or the end of it, and how it ended, when it has.
    pub fn output(&self, request: &TerminalOutputRequest) -> Result<TerminalOutputResponse, TerminalError> {
        let terminal = self.find(&request.session_id, &request.terminal_id)?;
        // First the status, then the output: if it has ended, the output is all of it.
        let exit_status = terminal.run.exit_status();
        let output = terminal.run.output();
        Ok(TerminalOutputResponse::new(output.text, output.is_truncated)
            .with(|response| response.exit_status = exit_status))
    }

    /// Waits until a command has ended. All that it wrote itself can be read by then.
    ///
    /// What it left running in the background lives on, until the terminal is killed or released. A terminal that is
    /// released meanwhile ends, and so does this wait.
    pub fn wait_for_exit(
        &self,
        request: &WaitForTerminalExitRequest,
    ) -> impl Future<Output = Result<ExitStatus, TerminalError>> + Send + use<> {
        let found = self.find(&request.session_id, &request.terminal_id).map(|terminal| terminal.run.wait());
        async move { Ok(found?.await) }
    }

    /// Ends a command with everything it started, and waits until it has. Its terminal stays readable.
    ///
    /// It is told to end when this is called, not when the future is first polled.
    pub fn kill(
        &self,
        request: &KillTerminalRequest,
    ) -> impl Future<Output = Result<KillTerminalResponse, TerminalError>> + Send + use<> {
        let found = self.find(&request.session_id, &request.terminal_id).map(|terminal| terminal.run.kill());
        async move {
            found?.await;
            Ok(KillTerminalResponse::new())
        }
    }

    /// Ends a command with everything it started, and forgets its terminal.
    pub fn release(&self, request: &ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse, TerminalError> {
        let released = self.find(&request.session_id, &request.terminal_id)?;
        self.open().terminals.retain(|_, terminal| !Arc::ptr_eq(terminal, &released));
        Ok(ReleaseTerminalResponse::new())
    }

    /// Releases all terminals of a session.
    pub fn end_session(&self, session_id: &SessionId) {
        self.open().terminals.retain(|_, terminal| terminal.session_id != *session_id);
    }

    /// A terminal to show.
    pub fn view(&self, session_id: &SessionId, terminal_id: &TerminalId) -> Result<TerminalView, TerminalError> {
        self.find(session_id, terminal_id).map(|terminal| terminal.view())
    }

    /// All terminals that are not released, to show: the oldest first.
    pub fn list(&self) -> Vec<TerminalView> {
        self.open().terminals.values().map(|terminal| terminal.view()).collect()
    }

    fn find(&self, session_id: &SessionId, terminal_id: &TerminalId) -> Result<Arc<Terminal>, TerminalError> {
        let open = self.open();
        let mut terminals = open.terminals.values();
        let is_it = |terminal: &&Arc<Terminal>| terminal.id == *terminal_id && terminal.session_id == *session_id;
        terminals.find(is_it).cloned().ok_or(TerminalError::NotFound)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    fn view(&self) -> TerminalView {
        TerminalView { id: self.id.clone(), session_id: self.session_id.clone(), view: self.run.view() }
    }
}

impl fmt::Debug for Terminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminals").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The command that a request stands for: what a permission is asked for, and what is executed.
///
/// Some agents send a whole shell line as the command: see [`Command::from_text`].
///
/// ```
/// use std::path::Path;
/// use attache::model::terminal::CreateTerminalRequest;
/// use attache_host::commands::{Command, Invocation};
/// use attache_host::terminals::invocation;
///
/// let line = CreateTerminalRequest::new("s1", "cargo test | tail");
/// assert_eq!(invocation(&line, Path::new("/")), Invocation::new(Command::Line("cargo test | tail".into()), "/"));
/// let plain = CreateTerminalRequest::new("s1", "echo").args(["a | b"]);
/// let words = Command::Words(vec!["echo".into(), "a | b".into()]);
/// assert_eq!(invocation(&plain, Path::new("/")), Invocation::new(words, "/"));
/// ```
pub fn invocation(request: &CreateTerminalRequest, session_cwd: &Path) -> Invocation {
    let command = match request.args.is_empty() {
        true => Command::from_text(&request.command),
        false => Command::from_words([&request.command].into_iter().chain(&request.args).cloned().collect()),
    };
    let cwd = request.cwd.as_ref().map_or_else(|| session_cwd.to_owned(), PathBuf::from);
    let variable = |variable: &EnvVariable| (variable.name.clone(), variable.value.clone());
    Invocation::new(command, cwd).env(request.env.iter().map(variable))
}
