//! Commands of the agent, with real processes and with clients in memory.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod jobs;
mod own;
mod unasked;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_agent::cut::Spill;
use attache_agent::model::Part;
use attache_agent::tools::commands::{CommandWork, Commands, SandboxMode, Setup};
use attache_agent::tools::{Live, Outcome, Prepared, Shown};
use serde_json::Value;

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// A directory to work in, and the commands of a session there.
struct Place {
    directory: tempfile::TempDir,
    commands: Arc<Commands>,
}

impl Place {
    fn new(sandbox: SandboxMode) -> Self {
        Self::with(|setup| Setup { sandbox, ..setup })
    }

    fn with(change: impl FnOnce(Setup) -> Setup) -> Self {
        // As the programs do that this agent is part of.
        attache::process::use_keeper();
        // Not where temporary files usually are: those can be changed in the sandbox.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let cwd = directory.path().join("project");
        std::fs::create_dir(&cwd).unwrap();
        let spill = Arc::new(Spill::new(directory.path().join("spill")));
        let commands = Arc::new(Commands::new(change(Setup::new(cwd, spill))));
        Self { directory, commands }
    }

    fn cwd(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    async fn prepare(&self, name: &str, arguments: Value) -> Result<Prepared<CommandWork>, String> {
        self.commands.prepare(name, &arguments).await.unwrap().map_err(|refusal| refusal.0)
    }

    /// Does a call, and gives what came of it and what was shown meanwhile.
    async fn call(&self, name: &str, arguments: Value) -> (Outcome, Vec<Shown>) {
        let work = self.prepare(name, arguments).await.unwrap().work;
        tokio::time::timeout(LONG, perform(&self.commands, work)).await.unwrap()
    }

    /// The same, as text.
    async fn text(&self, name: &str, arguments: Value) -> (String, bool) {
        let (outcome, _) = self.call(name, arguments).await;
        (text(&outcome), outcome.is_error)
    }
}

async fn perform(commands: &Commands, work: CommandWork) -> (Outcome, Vec<Shown>) {
    let (live, mut shown) = Live::channel();
    let watching = async {
        let mut all = Vec::new();
        while let Some(next) = shown.recv().await {
            all.push(next);
        }
        all
    };
    let performing = async {
        let outcome = commands.perform(work, &live).await;
        drop(live);
        outcome
    };
    tokio::join!(performing, watching)
}

fn text(outcome: &Outcome) -> String {
    let part = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Media { .. } => panic!("media"),
    };
    outcome.parts.iter().map(part).collect()
}

/// A command that leaves processes in other sessions, and the files with their ids.
const TREE: &str = "setsid sh -c 'echo $$ >a; sleep 1000' & (setsid sh -c 'echo $$ >b; exec sleep 1000' &) ; \
    while ! [ -s a ] || ! [ -s b ]; do sleep 0.01; done; echo ready; sleep 1000";

/// The processes of [`TREE`], once they are there.
async fn pids(cwd: &Path) -> Vec<u32> {
    let deadline = Instant::now() + LONG;
    loop {
        let read = |name| std::fs::read_to_string(cwd.join(name)).ok()?.trim().parse().ok();
        if let (Some(a), Some(b)) = (read("a"), read("b")) {
            return vec![a, b];
        }
        assert!(Instant::now() < deadline, "the processes did not start");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

async fn are_gone(pids: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(Instant::now() < deadline, "processes are left: {pids:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
