//! A command that is judged and then run.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache::model::Secret;
use attache::model::terminal::ExitStatus;
use attache::process;

use super::run::{self, Shared};
use super::{Command, CommandError, View};
use crate::paths;
use crate::permission::Action;

/// A command with all that decides what it does: made once, then judged, then executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    command: Command,
    cwd: PathBuf,
    env: Vec<(String, Secret)>,
    input: Option<Vec<u8>>,
}

impl Invocation {
    /// A command in a directory.
    pub fn new(command: Command, cwd: impl Into<PathBuf>) -> Self {
        Invocation { command, cwd: cwd.into(), env: Vec::new(), input: None }
    }

    /// Sets variables for it, beside those that every command gets.
    #[must_use]
    pub fn env(mut self, variables: impl IntoIterator<Item = (String, Secret)>) -> Self {
        self.env.extend(variables);
        self
    }

    /// Sets what it reads on stdin.
    #[must_use]
    pub fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// What is to be decided.
    pub fn action(&self) -> Action {
        Action::Execute {
            command: self.command.clone(),
            cwd: Some(self.cwd.to_string_lossy().into_owned()),
            env: self.env.clone(),
            paths: Vec::new(),
        }
    }

    /// Starts it. Keeps as many bytes of output as `kept`; `confine` may change the command, to put it into a sandbox.
    ///
    /// Stdin is empty, unless [`input`](Invocation::input) has something for it; stdout and stderr are kept in the order in which they arrive. Must be called in a tokio runtime with
    /// IO and time enabled.
    pub fn start(
        &self,
        kept: usize,
        confine: impl FnOnce(process::Command) -> process::Command,
    ) -> Result<Run, CommandError> {
        if !self.cwd.is_absolute() || self.cwd.to_str().is_none() {
            return Err(CommandError::Directory { path: self.cwd.clone() });
        }
        let mut command = self.command.process().cwd(paths::without_verbatim(self.cwd.clone()));
        let shown = command.to_string();
        // First the environment that `confine` begins with, then what was asked for.
        command = confine(command);
        for (name, value) in &self.env {
            let value = value.expose();
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(CommandError::BadVariable);
            }
            command = command.env(name, value);
        }
        if let Some(input) = &self.input {
            command = command.input(input.clone());
        }
        let (process, pipe) = command.spawn_merged().map_err(CommandError::Launch)?;
        let shared = Arc::new(Shared::new(shown, self.cwd.clone(), kept));
        tokio::spawn(run::run(shared.clone(), process, pipe));
        Ok(Run { shared })
    }
}

/// A command that was started. Dropping it ends the command with everything it started.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
}

/// What a command has written, or the end of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Whether there was more before it.
    pub is_truncated: bool,
}

impl Run {
    /// The directory that it was started in.
    pub fn cwd(&self) -> &Path {
        &self.shared.cwd
    }

    /// How many bytes of its output are kept at most.
    pub fn kept(&self) -> usize {
        self.shared.output().limit()
    }

    /// How it ended, when it has.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.shared.exit_status()
    }

    /// What it has written so far, or the end of it.
    pub fn output(&self) -> Written {
        let output = self.shared.output();
        Written { text: output.text(), is_truncated: output.is_truncated() }
    }

    /// Waits until it has ended. All that it wrote itself can be read by then. What it left running in the background
    /// lives on, until it is killed or dropped.
    pub fn wait(&self) -> impl Future<Output = ExitStatus> + Send + use<> {
        let shared = self.shared.clone();
        async move { shared.wait_for_exit().await }
    }

    /// Ends it with everything it started, and waits until it has. It is told so when this is called, not when the future
    /// is first polled.
    pub fn kill(&self) -> impl Future<Output = ExitStatus> + Send + use<> {
        self.shared.kill();
        self.wait()
    }

    /// It, to show.
    pub fn view(&self) -> View {
        View::new(self.shared.clone())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.shared.kill();
    }
}
