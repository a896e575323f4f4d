//! Running commands: `run_command`, `job_output` and `stop_job`.
//!
//! Commands are processes of our own, in the sandbox where this machine can enforce it ([`Commands::sandbox_state`] tells),
//! without input, with a part of our environment only ([`environment`](attache_host::environment)). Only where the sandbox
//! is off, a v1 client that offers terminals runs them in those. They end with all that they started: when they are
//! cancelled, when their time is over, when the session ends, and when we do.

mod arguments;
mod client;
mod git;
mod hook;
mod jobs;
mod own;
mod report;
mod sandbox;
mod screen;
mod terms;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use attache::Error;
use attache::agent::SessionHandle;
use attache::model::error::ErrorObject;
use attache::model::terminal::TerminalId;
use attache::model::tool::ToolKind;
use attache_host::commands::{ShellKind, shell};
use attache_host::files::Files;
use attache_host::sandbox::LayerLimits;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::{Live, Outcome, Prepared, Refusal, fenced};
use crate::cut::Spill;
use crate::model::ToolSpec;
pub(crate) use git::{GIT_TIME, GitState};
pub(crate) use hook::HookEnd;
use jobs::Jobs;
pub use sandbox::{SandboxMode, SandboxState};
pub use terms::{Need, Terms};

/// How long a command may run when the model does not say, in seconds.
const DEFAULT_SECONDS: u64 = 120;
/// How long it may run at most.
const MOST_SECONDS: u64 = 600;
/// How long `job_output` waits at most.
const MOST_WAIT: u64 = 60;
/// How much output of a command is kept. More than a model can read; what came before it is gone, which it is told.
const OUTPUT: usize = 1 << 20;
/// How many jobs there may be at once.
const JOBS: usize = 8;

/// What the commands of a session need to know.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The directory of the session, absolute.
    pub cwd: PathBuf,
    /// The directories that commands may change in the sandbox.
    pub roots: Vec<PathBuf>,
    /// The line to the client, if there is one.
    pub client: Option<SessionHandle>,
    /// Where long output goes.
    pub spill: Arc<Spill>,
    /// Whether commands are confined.
    pub sandbox: SandboxMode,
    /// What commands cannot read in the sandbox, beside the user's other secrets: our own settings and records.
    pub hidden: Vec<PathBuf>,
    /// Variables that commands get besides those that every process does, by name.
    pub pass_env: Vec<String>,
    /// What commands may change in the sandbox besides the roots.
    pub writable: Vec<PathBuf>,
    /// Our records, where the private layers of projects are. Without it there are none, and no command runs unasked.
    pub state_dir: Option<PathBuf>,
    /// How much room private layers may take.
    pub layer_limits: LayerLimits,
    /// The roots as they were opened, which have to be where they are named still: nothing runs where a link took the place
    /// of one of them.
    pub fixed: Option<Files>,
}

impl Setup {
    /// A session in a directory, which is its only root; no client, and the sandbox where it can be enforced.
    pub fn new(cwd: impl Into<PathBuf>, spill: Arc<Spill>) -> Self {
        let cwd = cwd.into();
        let roots = vec![cwd.clone()];
        Setup {
            cwd,
            roots,
            client: None,
            spill,
            sandbox: SandboxMode::default(),
            hidden: Vec::new(),
            pass_env: Vec::new(),
            writable: Vec::new(),
            state_dir: None,
            layer_limits: LayerLimits::default(),
            fixed: None,
        }
    }
}

/// The commands of one session. Dropping them ends all that run.
#[derive(Debug)]
pub struct Commands {
    setup: Setup,
    mode: Mutex<SandboxMode>,
    jobs: Mutex<Jobs>,
    /// What was told last of a sandbox that is not as it should be.
    warned: Mutex<Option<String>>,
    /// Whether the person was told why commands are asked about.
    has_told_why: AtomicBool,
    /// Makes the names of terminals different from those of all other runs of this session.
    nonce: u64,
    shown: AtomicU64,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandWork {
    /// Run a command and wait for it.
    Run {
        /// The line, for a shell.
        line: String,
        /// Where.
        cwd: PathBuf,
        /// What it needs, and what it was allowed.
        terms: Terms,
        /// How long at most.
        limit: Duration,
    },
    /// Start a command and leave it running.
    Start {
        /// The line, for a shell.
        line: String,
        /// Where.
        cwd: PathBuf,
        /// What it needs, and what it was allowed.
        terms: Terms,
    },
    /// Look at what a job has written since the last look.
    Look {
        /// The job.
        job: String,
        /// How long to wait for something new.
        wait: Duration,
    },
    /// End a job.
    Stop {
        /// The job.
        job: String,
    },
}

/// The tools that are here.
pub fn specs() -> Vec<ToolSpec> {
    let run = json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": format!("The line for the shell, {}.", shell().kind.name())},
            "cwd": {"type": "string", "description": "Directory to run it in. Default: the session's."},
            "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": MOST_SECONDS, "description": "Time limit. Default 120."},
            "background": {"type": "boolean", "description": "Start it as a job and return at once. For servers and watchers."},
            "needs": {"type": "array", "items": {"enum": ["network", "unsandboxed"]}, "description": "Only what the sandbox would withhold: the user is asked."},
            "reason": {"type": "string", "description": "Why, for the user. Required with `needs`."},
        },
        "required": ["command"],
    });
    let look = json!({
        "type": "object",
        "properties": {
            "job": {"type": "string", "description": "The job's id."},
            "wait_seconds": {"type": "integer", "minimum": 0, "maximum": MOST_WAIT, "description": "How long to wait for new output or the end. Default 0."},
        },
        "required": ["job"],
    });
    let stop = json!({
        "type": "object",
        "properties": {"job": {"type": "string", "description": "The job's id."}},
        "required": ["job"],
    });
    [
        (
            "run_command",
            "Runs a shell command and gives its output, stdout and stderr together. It has no input and no terminal, so \
             it cannot ask anything. What it leaves running ends with it; use `background` for what has to go on.",
            run,
        ),
        ("job_output", "Gives what a background job has printed since the last look, and whether it has ended.", look),
        ("stop_job", "Ends a background job with everything it started.", stop),
    ]
    .map(|(name, description, schema)| ToolSpec { name: name.into(), description: description.into(), schema })
    .into()
}

/// What editors call the language that lines are in.
fn language() -> &'static str {
    match shell().kind {
        ShellKind::Posix => "sh",
        ShellKind::PowerShell => "powershell",
        ShellKind::Cmd => "bat",
    }
}

impl Commands {
    /// No commands yet. Starts nothing and asks the machine nothing.
    pub fn new(setup: Setup) -> Self {
        Commands {
            mode: Mutex::new(setup.sandbox),
            jobs: Mutex::default(),
            warned: Mutex::default(),
            has_told_why: AtomicBool::new(false),
            nonce: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
            shown: AtomicU64::new(0),
            setup,
        }
    }

    /// Sets how the commands that are started from now on are confined.
    pub fn set_sandbox(&self, mode: SandboxMode) {
        *crate::lock(&self.mode) = mode;
    }

    /// Whether commands are confined now, and if not, why.
    pub fn sandbox_state(&self) -> SandboxState {
        SandboxState::with(self.mode(), &self.setup)
    }

    /// The same without keeping the runtime waiting: a sandbox is made to see whether it can be.
    pub(crate) async fn sandbox_state_now(&self) -> SandboxState {
        let (mode, setup) = (self.mode(), self.setup.clone());
        crate::off_thread(move || SandboxState::with(mode, &setup)).await
    }

    /// Fails if a directory of the session is not where it was when it was opened, where that matters. Not on the runtime's
    /// thread: it asks the disk.
    pub(crate) async fn check_roots(&self) -> Result<(), Error> {
        let Some(files) = self.setup.fixed.clone() else { return Ok(()) };
        match crate::off_thread(move || files.are_roots_in_place()).await {
            true => Ok(()),
            false => Err(Error::Refused(ErrorObject::invalid_request(
                "a directory of the session is not where it was when the session was opened",
            ))),
        }
    }

    /// Ends all jobs. Other commands end with whoever waits for them.
    pub fn close(&self) {
        self.jobs().clear();
    }

    /// Looks at a call. `None` if it is for another tool.
    pub async fn prepare(&self, name: &str, arguments: &Value) -> Option<Result<Prepared<CommandWork>, Refusal>> {
        let work = match name {
            "run_command" => {
                let (arguments, cwd) = (arguments.clone(), self.setup.cwd.clone());
                crate::off_thread(move || arguments::run(Arguments::new(&arguments), &cwd)).await
            }
            "job_output" => arguments::look(Arguments::new(arguments)),
            "stop_job" => arguments::stop(Arguments::new(arguments)),
            _ => return None,
        };
        Some(work.and_then(|work| self.settle(work)).and_then(|work| self.describe(work)))
    }

    /// Does it. Whoever drops the future ends the command.
    pub async fn perform(&self, work: CommandWork, live: &Live) -> Outcome {
        let ended = match work {
            CommandWork::Run { line, cwd, terms, limit } => match self.client_terminals(&terms) {
                Some(client) if cwd.to_str().is_some() => client::run(self, client, line, &cwd, limit, live).await,
                _ => self.run(line, &cwd, &terms, limit, live).await,
            },
            CommandWork::Start { line, cwd, terms } => self.start_job(line, &cwd, &terms, live).await,
            CommandWork::Look { job, wait } => self.look(&job, wait, live).await,
            CommandWork::Stop { job } => self.stop_job(&job, live).await,
        };
        ended.unwrap_or_else(|Refusal(why)| Outcome::failed(why))
    }

    fn describe(&self, work: CommandWork) -> Result<Prepared<CommandWork>, Refusal> {
        let (title, kind) = match &work {
            CommandWork::Run { line, terms, .. } | CommandWork::Start { line, terms, .. } => {
                (terms.title(report::title(line)), ToolKind::Execute)
            }
            CommandWork::Look { job, .. } => (format!("Look at {}", self.find_job(job)?.name), ToolKind::Read),
            CommandWork::Stop { job } => (format!("Stop {}", self.find_job(job)?.name), ToolKind::Execute),
        };
        let (actions, content) = match &work {
            CommandWork::Run { line, cwd, terms, .. } | CommandWork::Start { line, cwd, terms } => {
                let action = own::invocation(line, cwd).action();
                // All of it, for whoever has to allow it.
                let command = (title != *line).then(|| fenced(language(), line));
                (vec![action], terms.content().into_iter().chain(command).collect())
            }
            CommandWork::Look { .. } | CommandWork::Stop { .. } => (Vec::new(), Vec::new()),
        };
        Ok(Prepared { title, kind, locations: Vec::new(), content, actions, work })
    }

    /// The client, if it runs commands for us. It cannot confine them, so it does only where they need not be; and it gets
    /// words to start a program with, which cannot carry a line for every shell.
    fn client_terminals(&self, terms: &Terms) -> Option<&SessionHandle> {
        let client = self.setup.client.as_ref()?;
        let is_free = self.mode() == SandboxMode::Off && !terms.is_unasked;
        (client.client().capabilities.terminal && is_free && shell().kind == ShellKind::Posix).then_some(client)
    }

    /// Whether the client shows terminals that are ours.
    fn shows_terminals(&self) -> bool {
        self.setup.client.as_ref().is_some_and(|client| client.client().dialect.shows_terminals())
    }

    /// A name that no terminal of this session had, also not before it was opened again.
    fn terminal_id(&self) -> TerminalId {
        format!("command-{:016x}-{}", self.nonce, self.shown.fetch_add(1, Relaxed) + 1).into()
    }

    fn mode(&self) -> SandboxMode {
        *crate::lock(&self.mode)
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        crate::lock(&self.jobs)
    }
}
