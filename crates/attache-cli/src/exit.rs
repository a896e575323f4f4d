//! How the program ends: its exit codes, and what it says when it fails.

use std::fmt;

use attache::model::ErrorObject;

/// What is shown under `--help`.
pub(crate) const HELP: &str = "\
Settings are in $XDG_CONFIG_HOME/attache (agents.toml, permissions.toml), records of runs in $XDG_STATE_HOME/attache.
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
        use attache::Error;
        match &error {
            Error::Launch(_) => Failure::new(Code::Died, error.to_string()),
            Error::Closed(closed) => Failure::new(Code::Died, format!("the agent is gone: {closed}")),
            Error::NotOffered(what) => Failure::usage(format!("the agent does not offer {what}")),
            Error::Invalid(what) => Failure::usage(what.as_str()),
            Error::Refused(refusal) => {
                let code = match refusal.code {
                    ErrorObject::AUTH_REQUIRED => Code::Login,
                    ErrorObject::NOT_FOUND => Code::NotFound,
                    _ => Code::Agent,
                };
                Failure::new(code, format!("the agent answered: {refusal}"))
            }
            _ => Failure::new(Code::Agent, error.to_string()),
        }
    }
}
