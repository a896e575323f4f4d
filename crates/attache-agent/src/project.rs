//! What a project brings along in `.attache`, if the user trusts it, and the slash commands that follow.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use attache::Error;
use attache::agent::SessionHandle;
use attache::model::command::AvailableCommand;
use attache_host::trust::{Contents, FOLDER, Trust, project_of};
use tokio::task::JoinHandle;

use crate::mcp::Offered;
use crate::slash::Commands;
use crate::watch::Watches;
use crate::{lock, off_thread};

/// How often it is looked whether commands have changed, where nobody tells. Nobody waits for it.
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
        self.trust().contents(&self.root)
    }

    /// The list of what is trusted.
    pub(crate) fn trust(&self) -> Trust {
        Trust::new(&self.trust)
    }
}

/// The slash commands that come from files.
pub(crate) struct CommandFiles {
    directory: PathBuf,
    project: Project,
    commands: Commands,
    seen: Signature,
}

/// Names, times and sizes of everything that commands follow from.
type Signature = Vec<(PathBuf, SystemTime, u64)>;

impl CommandFiles {
    /// Reads those of a directory of the user's and of a project that they trust.
    pub(crate) fn read(directory: PathBuf, project: Project) -> Self {
        let seen = signature(&directory, &project);
        let commands = Commands::read(&directory, project.contents().0.as_ref());
        CommandFiles { directory, project, commands, seen }
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
    /// What the directories looked like when they were last read. Locked while they are, so never on the runtime's thread.
    seen: Mutex<Signature>,
}

impl Watched {
    pub(crate) fn start(files: CommandFiles, offered: Offered, handle: SessionHandle, watches: &Watches) -> Self {
        let mut changes = offered.changes();
        let folder = files.project.root.join(FOLDER);
        let trust = files.project.trust.clone();
        let mut watch = watches.watch(vec![files.directory.clone(), folder.join("commands"), folder, trust]);
        let state = State {
            directory: files.directory,
            project: files.project,
            offered,
            now: Mutex::new(files.commands),
            told: Mutex::default(),
            seen: Mutex::new(files.seen),
        };
        let state = Arc::new(state);
        *lock(&state.told) = state.available();
        let watched = state.clone();
        let task = tokio::spawn(async move {
            loop {
                // Servers come one by one; the client is told of several at once.
                tokio::time::sleep(TOGETHER).await;
                let is_told;
                (watch, is_told) = off_thread(move || {
                    let is_told = watch.arm();
                    (watch, is_told)
                })
                .await;
                if watched.look(&handle).await.is_err() {
                    return;
                }
                tokio::select! {
                    Ok(()) = changes.changed() => {}
                    () = watch.changed() => {}
                    () = tokio::time::sleep(LOOK), if !is_told => {}
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
    async fn look(self: &Arc<Self>, handle: &SessionHandle) -> Result<(), Error> {
        let state = self.clone();
        off_thread(move || state.read()).await;
        let available = self.available();
        if std::mem::replace(&mut *lock(&self.told), available.clone()) == available {
            return Ok(());
        }
        handle.commands(available).await
    }

    /// Reads the files again if they have changed.
    fn read(&self) {
        let mut seen = lock(&self.seen);
        let signature = signature(&self.directory, &self.project);
        if *seen != signature {
            *seen = signature;
            let commands = Commands::read(&self.directory, self.project.contents().0.as_ref());
            *lock(&self.now) = commands;
        }
    }

    /// All commands that there are now.
    fn available(&self) -> Vec<AvailableCommand> {
        let mut available = lock(&self.now).available();
        available.extend(self.offered.commands());
        available
    }
}

fn signature(directory: &Path, project: &Project) -> Signature {
    let folder = project.root.join(FOLDER);
    let directories = [directory.to_owned(), folder.join("commands"), folder];
    let listed = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    let paths = listed.map(|entry| entry.path()).take(1000).chain([project.trust.clone()]);
    let stat = |path: PathBuf| {
        let file = std::fs::symlink_metadata(&path).ok()?;
        Some((path, file.modified().ok()?, file.len()))
    };
    let mut signature: Vec<_> = paths.filter_map(stat).collect();
    signature.sort();
    signature
}
