//! How the program ends: its exit codes, and what it says when it fails.

use std::fmt;

use attache::model::error::ErrorObject;

/// What is shown under `--help`.
pub(crate) const HELP: &str = "\
Settings are in $XDG_CONFIG_HOME/attache (agent.toml, agents.toml, permissions.toml), records in $XDG_STATE_HOME/attache.
`attache run --help` has examples and the exit codes.";

/// An exit code with a meaning that scripts can rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Code {
    /// Done.
    #[default]
    Done = 0,
    /// The agent answered with an error, or broke the protocol.
    Agent = 1,
    /// The command line or a file of settings is wrong.
    Usage = 2,
    /// It took too long.
    Timeout = 3,
    /// The agent wants a login first.
    Login = 4,
    /// Something was denied, and `--fail-on-denied` was given.
    Denied = 5,
    /// The model refused, or met a limit.
    Refused = 6,
    /// There is no such agent or session.
    NotFound = 8,
    /// The agent did not start, or died.
    Died = 9,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

/// Why a command failed: an exit code, and a sentence for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(Code::Usage, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<attache::Error> for Failure {
    fn from(error: attache::Error) -> Self {
        use attache::{Closed, Error, LaunchCause};
        match &error {
            Error::Launch(launch) => {
                // What it printed is its own, and is not to be taken for our words.
                let message = error.to_string();
                let ours = message.split("\n--- ").next().unwrap_or_default();
                let (what, hint) = ours.split_at(ours.find("\nhint: ").unwrap_or(ours.len()));
                let printed = quoted("stdout", &launch.stdout) + &quoted("stderr", &launch.stderr_tail);
                let message = format!("{what}{printed}{hint}");
                let is_late = matches!(launch.cause, LaunchCause::TimedOut(_));
                Failure::new(if is_late { Code::Timeout } else { Code::Died }, message)
            }
            Error::Closed(Closed::AgentExited(exit)) => {
                let message = exit.to_string();
                let ours = message.split(" (last stderr lines below)").next().unwrap_or_default();
                Failure::new(Code::Died, format!("{ours}{}", quoted("stderr", &exit.stderr_tail)))
            }
            Error::Closed(closed) => Failure::new(Code::Died, format!("lost the connection to the agent: {closed}")),
            Error::NotOffered(what) => Failure::usage(format!("the agent does not offer {what}")),
            Error::Invalid(what) => Failure::usage(what.as_str()),
            Error::Refused(refusal) => {
                let code = match refusal.code {
                    ErrorObject::AUTH_REQUIRED => Code::Login,
                    ErrorObject::NOT_FOUND => Code::NotFound,
                    _ => Code::Agent,
                };
                let details = details(refusal).map(|details| format!(": {details}")).unwrap_or_default();
                // The code is about the first line. What comes below is often a hint.
                let (what, below) =
                    refusal.message.split_at(refusal.message.find('\n').unwrap_or(refusal.message.len()));
                let what = ErrorObject::new(refusal.code, what);
                let is_session = refusal.message.to_lowercase().contains("session");
                let hint = match code == Code::NotFound && is_session {
                    true => "\nhint: `attache sessions list` has those that are known here",
                    false => "",
                };
                Failure::new(code, format!("the agent answered with an error: {what}{details}{below}{hint}"))
            }
            _ => Failure::new(Code::Agent, error.to_string()),
        }
    }
}

/// How many lines of what an agent printed are told.
const MOST_LINES: usize = 20;

/// The last lines of what an agent printed, each marked as not our own.
fn quoted(name: &str, text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    if lines.is_empty() {
        return String::new();
    }
    let last = lines[lines.len().saturating_sub(MOST_LINES)..].iter();
    let shown: String = last.map(|line| format!("\n  | {}", crate::visible::visible(line).trim_end())).collect();
    format!("\nits last lines on {name}:{shown}")
}

/// How much of an error's details is told.
const MOST_DETAILS: usize = 500;

/// What agents say of an error beside its message, such as the words of a model's server, on one line.
pub(crate) fn details(refusal: &ErrorObject) -> Option<String> {
    let data: serde_json::Value = refusal.data.as_ref()?.parse().ok()?;
    let text = data.as_str().or_else(|| data.get("details")?.as_str())?;
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" ").chars().take(MOST_DETAILS).collect()).filter(|text: &String| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use attache::model::RawJson;

    use super::*;

    #[test]
    fn the_details_of_an_error_are_told_on_one_line() {
        let rows = [
            ("null", "Internal error (code -32603)"),
            (r#"{"details":"no\nhint: such file"}"#, "Internal error (code -32603): no hint: such file"),
            (r#""no key""#, "Internal error (code -32603): no key"),
            (r#"{"details":7}"#, "Internal error (code -32603)"),
        ];
        let refusal = ErrorObject::internal("no answer\nhint: is it running?");
        let message = Failure::from(attache::Error::Refused(refusal)).message;
        assert_eq!(message, "the agent answered with an error: no answer (code -32603)\nhint: is it running?");
        for (data, expected) in rows {
            let data = Some(RawJson::new(data).unwrap());
            let refusal = ErrorObject::internal("Internal error").with(|object| object.data = data);
            let message = Failure::from(attache::Error::Refused(refusal)).message;
            assert_eq!(message, format!("the agent answered with an error: {expected}"));
        }
    }
}
