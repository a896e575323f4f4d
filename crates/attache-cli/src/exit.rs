//! How the program ends: its exit codes, and what it says when it fails.

use std::fmt;

use attache::model::error::ErrorObject;
use attache_http::Remote;

use crate::visible::one_line;

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

    /// Why a session cannot be had, or not any more. One that another server has is gone on with there.
    pub(crate) fn of_session(error: attache::Error, id: &str) -> Self {
        let (server, directory) = match &error {
            attache::Error::Refused(refusal) => (server_of(refusal), directory_of(refusal)),
            _ => (None, None),
        };
        let Some(server) = server else { return error.into() };
        let there = match directory {
            None => format!("attache chat --agent {server} --resume {id}"),
            Some(directory) => format!("attache chat --resume {id} -- attache connect {server} --dir {directory}"),
        };
        let hint = match is_plain(id) {
            true => format!(
                "\nhint: close it there, or go on with it there: `{there}`, after `attache login {server}`\n\
                 hint: if that server has just been killed, try again in 20 s"
            ),
            false => String::new(),
        };
        Failure::new(Code::Agent, format!("session `{}` is open on {server}{hint}", one_line(id)))
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
                let hint = match server_of(refusal) {
                    Some(server) => format!("\nhint: the session is open on {server}"),
                    None if code == Code::NotFound && is_session => {
                        "\nhint: `attache sessions list` has those that are known here".to_owned()
                    }
                    None => String::new(),
                };
                Failure::new(code, format!("the agent answered with an error: {what}{details}{below}{hint}"))
            }
            _ => Failure::new(Code::Agent, error.to_string()),
        }
    }
}

/// The longest address that is shown of what an agent says.
const LONGEST_ADDRESS: usize = 200;

/// Where a session is that another server has, if an error says so (`data.server`). It is another's word, which goes into a command
/// that a person may copy: only an address is taken, and one that a shell reads as it is.
pub(crate) fn server_of(refusal: &ErrorObject) -> Option<String> {
    let data: serde_json::Value = refusal.data.as_ref()?.parse().ok()?;
    let server = data.get("server")?.as_str()?.trim_end_matches('/');
    let is_address = server.len() <= LONGEST_ADDRESS && is_plain(server) && Remote::new(server).is_ok();
    is_address.then(|| server.to_owned())
}

/// The directory that the client of that server works in, if it was told to ([`crate::remote`] adds it).
fn directory_of(refusal: &ErrorObject) -> Option<String> {
    let data: serde_json::Value = refusal.data.as_ref()?.parse().ok()?;
    let directory = data.get("directory")?.as_str()?;
    (directory.len() <= LONGEST_ADDRESS && is_plain(directory)).then(|| directory.to_owned())
}

/// Whether a text is one plain word for every shell, and no option.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '.' | '-' | '_');
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
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
    fn a_session_on_another_server_is_told_with_its_address_and_no_more_than_that() {
        let refusal = |server: &str| {
            let data = RawJson::new(&serde_json::json!({ "server": server }).to_string()).unwrap();
            ErrorObject::invalid_request("it is open").with(|object| object.data = Some(data))
        };
        let message =
            |server: &str, id: &str| Failure::of_session(attache::Error::Refused(refusal(server)), id).message;
        assert_eq!(
            message("https://two.example:7316/", "s-1"),
            "session `s-1` is open on https://two.example:7316\n\
             hint: close it there, or go on with it there: `attache chat --agent https://two.example:7316 --resume s-1`, after \
             `attache login https://two.example:7316`\n\
             hint: if that server has just been killed, try again in 20 s"
        );
        assert_eq!(message("wss://a.example", "s 1; x"), "session `s 1; x` is open on wss://a.example");
        let hint = Failure::from(attache::Error::Refused(refusal("wss://a.example"))).message;
        assert!(hint.ends_with("it is open (code -32600)\nhint: the session is open on wss://a.example"), "{hint}");
        let long = format!("https://{}.example", "a".repeat(LONGEST_ADDRESS));
        for wrong in
            ["https://a/$(x)", "https://a`x`", "https://a b", "https://u:p@a", "file:///x", "a", "\u{1b}[2J", &long]
        {
            let found = message(wrong, "s");
            assert_eq!(found, "the agent answered with an error: it is open (code -32600)", "{wrong}");
        }
    }

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
