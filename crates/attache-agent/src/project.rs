//! What a project brings along in `.attache`, if the user trusts it, and the slash commands that follow.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use attache::Error;
use attache::agent::SessionHandle;
use attache::model::command::AvailableCommand;
use attache_host::trust::{Contents, FOLDER, Trust, project_of};
use tokio::task::JoinHandle;

use crate::lock;
use crate::mcp::Offered;
use crate::slash::Commands;

/// How often it is looked whether commands have changed. Nobody waits for it.
const LOOK: Duration = Duration::from_secs(2);

/// How long commands that come one after the other are waited for, to be told together.
const TOGETHER: Duration = Duration::from_millis(100);

/// Where a project's things and the list of trusted projects are.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    trust: PathBuf,
}

impl Project {
    pub(crate) fn of(cwd: &Path, state_dir: &Path) -> Self {
        Project { root: project_of(cwd), trust: state_dir.join("trust.toml") }
    }

    /// What is trusted, and what the user should know about it.
    pub(crate) fn contents(&self) -> (Option<Contents>, Option<String>) {
        Trust::new(&self.trust).contents(&self.root)
    }
}

/// The slash commands of a session, kept up to date while it is open.
pub(crate) struct Watched {
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    directory: PathBuf,
    project: Project,
    /// The prompts of MCP servers, which are commands too.
    offered: Offered,
    now: Mutex<Commands>,
    /// What the client was told last.
    told: Mutex<Vec<AvailableCommand>>,
    /// What the directories looked like when they were last read.
    seen: Mutex<Vec<(PathBuf, SystemTime, u64)>>,
}

impl Watched {
    pub(crate) fn start(directory: PathBuf, project: Project, offered: Offered, handle: SessionHandle) -> Self {
        let mut changes = offered.changes();
        let state = State {
            directory,
            project,
            offered,
            now: Mutex::default(),
            told: Mutex::default(),
            seen: Mutex::default(),
        };
        let state = Arc::new(state);
        *lock(&state.seen) = state.signature();
        *lock(&state.now) = state.read();
        *lock(&state.told) = state.available();
        let watched = state.clone();
        let task = tokio::spawn(async move {
            loop {
                // Servers come one by one; the client is told of several at once.
                tokio::time::sleep(TOGETHER).await;
                let _ = tokio::time::timeout(LOOK, changes.changed()).await;
                if watched.look(&handle).await.is_err() {
                    return;
                }
            }
        });
        Watched { state, task }
    }

    pub(crate) fn now(&self) -> Commands {
        lock(&self.state.now).clone()
    }

    /// All commands, as the client was told of them.
    pub(crate) fn available(&self) -> Vec<AvailableCommand> {
        lock(&self.state.told).clone()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.state.directory
    }

    /// Reads the commands again if they have changed, and tells the client.
    pub(crate) async fn look(&self, handle: &SessionHandle) -> Result<(), Error> {
        self.state.look(handle).await
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn read(&self) -> Commands {
        Commands::read(&self.directory, self.project.contents().0.as_ref())
    }

    async fn look(&self, handle: &SessionHandle) -> Result<(), Error> {
        let signature = self.signature();
        if std::mem::replace(&mut *lock(&self.seen), signature.clone()) != signature {
            let commands = self.read();
            *lock(&self.now) = commands;
        }
        let available = self.available();
        if std::mem::replace(&mut *lock(&self.told), available.clone()) == available {
            return Ok(());
        }
        handle.commands(available).await
    }

    /// All commands that there are now.
    fn available(&self) -> Vec<AvailableCommand> {
        let mut available = lock(&self.now).available();
        available.extend(self.offered.commands());
        available
    }

    /// Names, times and sizes of everything that commands follow from.
    fn signature(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let folder = self.project.root.join(FOLDER);
        let directories = [self.directory.clone(), folder.join("commands"), folder];
        let listed = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
        let paths = listed.map(|entry| entry.path()).take(1000).chain([self.project.trust.clone()]);
        let stat = |path: PathBuf| {
            let file = std::fs::symlink_metadata(&path).ok()?;
            Some((path, file.modified().ok()?, file.len()))
        };
        let mut signature: Vec<_> = paths.filter_map(stat).collect();
        signature.sort();
        signature
    }
}
