//! What to tell a person whose agent did not start.

use std::fmt;

use crate::process::{ExitStatus, LaunchError};

/// Why an agent could not be started, or ended before it spoke: everything that helps to find out.
#[derive(Debug)]
pub struct LaunchFailure {
    /// The command, as one would type it.
    pub command: String,
    /// Why it could not be started, when it could not.
    pub error: Option<LaunchError>,
    /// How it ended, when it did.
    pub status: Option<ExitStatus>,
    /// What it printed that was no message, made harmless for a terminal.
    pub printed: String,
    /// The end of what it wrote to stderr, made harmless for a terminal.
    pub stderr: String,
}

impl LaunchFailure {
    pub(crate) fn not_started(command: String, error: LaunchError) -> Self {
        LaunchFailure { command, error: Some(error), status: None, printed: String::new(), stderr: String::new() }
    }

    pub(crate) fn ended(command: String, status: Option<ExitStatus>, printed: String, stderr: String) -> Self {
        LaunchFailure { command, error: None, status, printed, stderr }
    }
}

impl fmt::Display for LaunchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.error {
            return error.fmt(f);
        }
        write!(f, "`{}` did not start a conversation", self.command)?;
        if let Some(status) = &self.status {
            write!(f, ": {status}")?;
        }
        for (name, text) in [("it printed", &self.printed), ("on stderr", &self.stderr)] {
            if !text.trim().is_empty() {
                write!(f, "\n{name}:\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}
