//! Commands that run for an agent.
//!
//! A terminal is a process with everything it starts, and the end of what it wrote. It belongs to the session that
//! created it, stays readable when its command has ended or was killed, and is gone when it is released. Commands end
//! with their terminals, and all of them when the [`Terminals`] are dropped. How far "everything" reaches is up to the
//! program: see [`use_keeper`](attache::process::use_keeper).
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
mod output;
mod run;
mod view;

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use attache::{
    model::{
        session::SessionId,
        terminal::{
            CreateTerminalRequest, CreateTerminalResponse, ExitStatus, KillTerminalRequest, KillTerminalResponse,
            ReleaseTerminalRequest, ReleaseTerminalResponse, TerminalId, TerminalOutputRequest, TerminalOutputResponse,
            WaitForTerminalExitRequest,
        },
    },
    process::Command,
};

pub use error::TerminalError;
use run::Terminal;
pub use view::{OutputPart, TerminalView};

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
type Confine = Box<dyn Fn(Command) -> Command + Send + Sync>;

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

impl Terminals {
    /// No terminals yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, confine: None, open: Mutex::default() }
    }

    /// Sets what is done to every command before it is started, for example to run it in a sandbox.
    #[must_use]
    pub fn confine(mut self, confine: impl Fn(Command) -> Command + Send + Sync + 'static) -> Self {
        self.confine = Some(Box::new(confine));
        self
    }

    /// Starts a command in a new terminal, in `session_cwd` unless the request names a directory.
    ///
    /// Stdin is empty; stdout and stderr are kept in the order in which they arrive. What is executed is told by
    /// [`words`]. Must be called in a tokio runtime with IO and time enabled.
    pub fn create(
        &self,
        request: &CreateTerminalRequest,
        session_cwd: &Path,
    ) -> Result<CreateTerminalResponse, TerminalError> {
        let cwd = working_directory(request, session_cwd);
        if !cwd.is_absolute() {
            return Err(TerminalError::RelativeDirectory { path: cwd });
        }
        let mut command = Command::from(words(request, session_cwd)).cwd(&cwd);
        for variable in &request.env {
            let value = variable.value.expose();
            if variable.name.is_empty() || variable.name.contains(['=', '\0']) || value.contains('\0') {
                return Err(TerminalError::BadVariable);
            }
            command = command.env(&variable.name, value);
        }
        let shown = command.to_string();
        if let Some(confine) = &self.confine {
            command = confine(command);
        }

        // Held while the command starts, so that two at once cannot both be the last one that is allowed.
        let mut open = self.open();
        if open.terminals.len() >= self.limits.kept {
            return Err(TerminalError::TooManyKept { limit: self.limits.kept });
        }
        if open.terminals.values().filter(|terminal| terminal.exit_status().is_none()).count() >= self.limits.running {
            return Err(TerminalError::TooManyRunning { limit: self.limits.running });
        }
        let (process, pipe) = command.spawn_merged().map_err(TerminalError::Launch)?;
        open.created += 1;
        let number = open.created;
        let id = TerminalId::from(format!("terminal-{number}"));
        let asked = request.output_byte_limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let taken: usize = open.terminals.values().map(|terminal| terminal.output().limit()).sum();
        let room = self.limits.total_output.saturating_sub(taken).max(self.limits.least_output);
        let limit = asked.unwrap_or(self.limits.output).min(self.limits.most_output).min(room);
        let terminal = Arc::new(Terminal::new(id.clone(), request.session_id.clone(), shown, cwd, limit));
        tokio::spawn(run::run(terminal.clone(), process, pipe));
        open.terminals.insert(number, terminal);
        Ok(CreateTerminalResponse::new(id))
    }

    /// What a command has written so far, or the end of it, and how it ended, when it has.
    pub fn output(&self, request: &TerminalOutputRequest) -> Result<TerminalOutputResponse, TerminalError> {
        let terminal = self.find(&request.session_id, &request.terminal_id)?;
        // First the status, then the output: if it has ended, the output is all of it.
        let exit_status = terminal.exit_status();
        let output = terminal.output();
        Ok(TerminalOutputResponse::new(output.text(), output.is_truncated())
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
        let found = self.find(&request.session_id, &request.terminal_id);
        async move { Ok(found?.wait_for_exit().await) }
    }

    /// Ends a command with everything it started, and waits until it has. Its terminal stays readable.
    ///
    /// It is told to end when this is called, not when the future is first polled.
    pub fn kill(
        &self,
        request: &KillTerminalRequest,
    ) -> impl Future<Output = Result<KillTerminalResponse, TerminalError>> + Send + use<> {
        let found = self.find(&request.session_id, &request.terminal_id);
        if let Ok(terminal) = &found {
            terminal.kill();
        }
        async move {
            found?.wait_for_exit().await;
            Ok(KillTerminalResponse::new())
        }
    }

    /// Ends a command with everything it started, and forgets its terminal.
    pub fn release(&self, request: &ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse, TerminalError> {
        let released = self.find(&request.session_id, &request.terminal_id)?;
        self.open().terminals.retain(|_, terminal| !Arc::ptr_eq(terminal, &released));
        released.kill();
        Ok(ReleaseTerminalResponse::new())
    }

    /// Releases all terminals of a session.
    pub fn end_session(&self, session_id: &SessionId) {
        self.open().terminals.retain(|_, terminal| {
            let stays = terminal.session_id != *session_id;
            if !stays {
                terminal.kill();
            }
            stays
        });
    }

    /// A terminal to show.
    pub fn view(&self, session_id: &SessionId, terminal_id: &TerminalId) -> Result<TerminalView, TerminalError> {
        self.find(session_id, terminal_id).map(TerminalView::new)
    }

    /// All terminals that are not released, to show: the oldest first.
    pub fn list(&self) -> Vec<TerminalView> {
        self.open().terminals.values().cloned().map(TerminalView::new).collect()
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

impl Drop for Terminals {
    fn drop(&mut self) {
        for terminal in self.open().terminals.values() {
            terminal.kill();
        }
    }
}

impl fmt::Debug for Terminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminals").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The program and arguments that a request stands for: what is executed, and what a permission is asked for.
///
/// They are those of the request, except that some agents send a whole shell line as the command. A command without
/// arguments that has blanks or a shell's special characters in it, and is not the path of a file, goes to `sh -c`.
///
/// ```
/// use std::path::Path;
/// use attache::model::terminal::CreateTerminalRequest;
/// use attache_host::terminals::words;
///
/// let line = CreateTerminalRequest::new("s1", "cargo test | tail");
/// assert_eq!(words(&line, Path::new("/")), ["sh", "-c", "cargo test | tail"]);
/// let plain = CreateTerminalRequest::new("s1", "echo").args(["a | b"]);
/// assert_eq!(words(&plain, Path::new("/")), ["echo", "a | b"]);
/// ```
pub fn words(request: &CreateTerminalRequest, session_cwd: &Path) -> Vec<String> {
    let is_special = |c: char| c.is_whitespace() || "|&;<>()$`\\\"'*?[]#~{}!".contains(c);
    let is_file =
        || request.command.contains('/') && working_directory(request, session_cwd).join(&request.command).is_file();
    if request.args.is_empty() && request.command.contains(is_special) && !is_file() {
        return vec!["sh".into(), "-c".into(), request.command.clone()];
    }
    std::iter::once(&request.command).chain(&request.args).cloned().collect()
}

fn working_directory(request: &CreateTerminalRequest, session_cwd: &Path) -> PathBuf {
    request.cwd.as_ref().map_or_else(|| session_cwd.to_owned(), PathBuf::from)
}
