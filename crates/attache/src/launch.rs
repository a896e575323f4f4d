//! How launched agents fail: before they answer `initialize`, and later.

mod agent;

use std::fmt;
use std::time::Duration;

pub(crate) use agent::{AgentProcess, pipes};

use crate::ExitStatus;
use crate::process::SpawnError;

/// How many lines of stderr an error message shows: a stack trace, not a log.
const SHOWN_LINES: usize = 20;

/// Why an agent could not be launched, with all it said that may help to find out.
///
/// Needs the feature `process`.
#[non_exhaustive]
pub struct LaunchError {
    /// The command, as one would type it.
    pub command: String,
    /// What went wrong.
    pub cause: LaunchCause,
    /// What it wrote to stdout that was not a message, without control characters.
    pub stdout: String,
    /// The last 8 KiB that it wrote to stderr, made harmless for a terminal.
    pub stderr_tail: String,
}

/// What went wrong with the launch of an agent.
///
/// Needs the feature `process`.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaunchCause {
    /// The program could not be started.
    NotStarted(SpawnError),
    /// It exited before it answered `initialize`.
    Exited(ExitStatus),
    /// It closed its stdout, wrote too much to it that was not a message, or does not know `initialize`.
    NotAnAgent,
    /// It did not answer `initialize` within [`Client::launch_timeout`](crate::Client::launch_timeout).
    TimedOut(Duration),
}

impl LaunchError {
    pub(crate) fn not_started(command: String, error: SpawnError) -> Self {
        let cause = LaunchCause::NotStarted(error);
        LaunchError { command, cause, stdout: String::new(), stderr_tail: String::new() }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = &self.command;
        match &self.cause {
            LaunchCause::NotStarted(error) => return error.fmt(f),
            LaunchCause::Exited(status) => {
                write!(f, "agent `{command}` {} before it answered `initialize`", Exited(*status))?;
            }
            LaunchCause::NotAnAgent => write!(
                f,
                "`{command}` does not speak the Agent Client Protocol\nhint: check that it is an agent, and that its \
                 arguments make it serve on stdin and stdout"
            )?,
            LaunchCause::TimedOut(limit) => {
                write!(f, "agent `{command}` did not answer `initialize`: timed out after {}", Rounded(*limit))?;
            }
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr_tail)] {
            if !text.trim().is_empty() {
                write!(f, "\n--- {name}\n{}", last_lines(text))?;
            }
        }
        Ok(())
    }
}

/// Shows the text, because that is what `main` prints of an error.
impl fmt::Debug for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            // Its text is ours.
            LaunchCause::NotStarted(error) => error.source(),
            _ => None,
        }
    }
}

/// How the process of a connected agent ended.
///
/// Needs the feature `process`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentExit {
    /// Its exit status.
    pub status: ExitStatus,
    /// The last 8 KiB that it wrote to stderr, made harmless for a terminal. Empty where stderr is not kept.
    pub stderr_tail: String,
}

impl fmt::Display for AgentExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent {}", Exited(self.status))?;
        if self.stderr_tail.trim().is_empty() {
            return Ok(());
        }
        write!(f, " (last stderr lines below)\n{}", last_lines(&self.stderr_tail))
    }
}

/// An exit status as the end of a sentence.
struct Exited(ExitStatus);

impl fmt::Display for Exited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ExitStatus { code: Some(code), .. } => write!(f, "exited with status {code}"),
            ExitStatus { signal: Some(_), .. } => write!(f, "was {}", self.0),
            _ => f.write_str("exited with an unknown status"),
        }
    }
}

/// A time limit in whole seconds where it has any.
struct Rounded(Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.subsec_millis() {
            0 => write!(f, "{} s", self.0.as_secs()),
            _ => write!(f, "{} ms", self.0.as_millis()),
        }
    }
}

/// The last lines of a text, without the empty ones at its end.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.rmatch_indices('\n').nth(SHOWN_LINES - 1).map_or(0, |(at, _)| at + 1);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_agent_is_told_in_a_sentence_with_its_last_lines() {
        let check = |code, signal, stderr_tail: &str, shown: &str| {
            let exit = AgentExit { status: ExitStatus { code, signal }, stderr_tail: stderr_tail.into() };
            assert_eq!(exit.to_string(), shown);
        };
        check(Some(1), None, "", "agent exited with status 1");
        check(Some(1), None, "\n \n", "agent exited with status 1");
        check(None, Some(9), "", "agent was killed by signal 9 (SIGKILL)");
        check(None, None, "", "agent exited with an unknown status");
        check(Some(1), None, "one\ntwo\n\n", "agent exited with status 1 (last stderr lines below)\none\ntwo");
        let long: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let exit = AgentExit { status: ExitStatus { code: Some(1), signal: None }, stderr_tail: long };
        let shown = exit.to_string();
        assert!(shown.contains("below)\nline 80\n") && shown.ends_with("line 99"), "{shown}");
    }

    #[test]
    fn a_failed_launch_is_told_with_what_was_printed() {
        let check = |cause, stdout: &str, shown: &str| {
            let error =
                LaunchError { command: "my-agent".into(), cause, stdout: stdout.into(), stderr_tail: "oops\n".into() };
            assert_eq!(error.to_string(), shown);
        };
        check(
            LaunchCause::Exited(ExitStatus { code: Some(2), signal: None }),
            "Welcome!\n",
            "agent `my-agent` exited with status 2 before it answered `initialize`\n--- stdout\nWelcome!\n--- stderr\noops",
        );
        check(
            LaunchCause::TimedOut(Duration::from_secs(10)),
            "",
            "agent `my-agent` did not answer `initialize`: timed out after 10 s\n--- stderr\noops",
        );
        check(
            LaunchCause::TimedOut(Duration::from_millis(1500)),
            "",
            "agent `my-agent` did not answer `initialize`: timed out after 1500 ms\n--- stderr\noops",
        );
    }
}
