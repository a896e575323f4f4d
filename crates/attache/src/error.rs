//! What can go wrong between two peers, in words for our own code and for people.

use std::fmt;
#[cfg(feature = "process")]
use std::sync::Arc;

use attache_proto::json::DecodeError;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::session::SessionId;
use attache_proto::rpc::{AnswerError, Violation};

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closed {
    /// The peer closed its end.
    ByPeer,
    /// We closed our end.
    ByUs,
    /// Reading or writing failed.
    Io(std::io::ErrorKind),
    /// The peer sent more junk in a row than [`Limits::junk`](crate::Limits::junk).
    Junk,
    /// The peer makes us answer but does not read the answers.
    NotReading,
    /// The agent that was launched has exited. Needs the feature `process`.
    #[cfg(feature = "process")]
    AgentExited(Arc<crate::AgentExit>),
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Closed::ByPeer => f.write_str("the peer closed the connection"),
            Closed::ByUs => f.write_str("the connection was closed"),
            Closed::Io(kind) => write!(f, "the connection broke: {kind}"),
            Closed::Junk => f.write_str("the peer does not speak the protocol: too many lines that are not messages"),
            Closed::NotReading => f.write_str("the peer sends requests but does not read the answers"),
            #[cfg(feature = "process")]
            Closed::AgentExited(exit) => exit.fmt(f),
        }
    }
}

/// What can go wrong between two peers.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// The connection has ended.
    Closed(Closed),
    /// The peer answered with an error.
    Refused(ErrorObject),
    /// The peer does not offer this; nothing was sent.
    NotOffered(&'static str),
    /// The peer's answer to this method was not understood.
    BadAnswer {
        /// The method, by its protocol name.
        method: &'static str,
        /// What was wrong.
        error: DecodeError,
    },
    /// The peer's answer broke a rule of the transport and could not be read: it is too long, for example.
    UnreadableAnswer(Violation),
    /// A session was not read while others waited, until it held more than [`Limits::session`](crate::Limits::session)
    /// and [`Limits::overdraft`](crate::Limits::overdraft) allow. It was cancelled, and what it held was discarded.
    SessionOverflow {
        /// The session; `None` for what belongs to no session ([`Connection::next`](crate::Connection::next)).
        session: Option<SessionId>,
        /// How many updates and requests were discarded so far.
        discarded: u64,
    },
    /// An answer did not come within [`Limits::request_timeout`](crate::Limits::request_timeout), or an agent did not
    /// start in time.
    TimedOut(std::time::Duration),
    /// The turn or the request was cancelled.
    Cancelled,
    /// A call was given something that can be seen to be wrong before it is sent.
    Invalid(String),
    /// The agent could not be launched. Needs the feature `process`.
    #[cfg(feature = "process")]
    Launch(Arc<crate::LaunchError>),
    /// The peer speaks no version of the protocol that we speak.
    Version {
        /// The version it wants.
        peer: u16,
    },
}

impl Error {
    /// The error that tells a peer what went wrong here, without its particulars.
    pub fn to_peer(&self) -> ErrorObject {
        match self {
            Error::Refused(error) => error.clone(),
            Error::Cancelled => ErrorObject::cancelled(),
            _ => ErrorObject::internal("Internal error"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Closed(closed) => closed.fmt(f),
            Error::Refused(error) => write!(f, "answered with an error: {error}"),
            Error::NotOffered(what) => write!(f, "the peer does not offer {what}"),
            Error::BadAnswer { method, error } => write!(f, "the answer to `{method}` was not understood: {error}"),
            Error::UnreadableAnswer(violation) => write!(f, "the answer could not be read: {violation}"),
            Error::SessionOverflow { session: Some(session), discarded } => {
                // The agent chose the id: it is cut short and made harmless.
                let session: String = session.as_str().chars().filter(|char| !char.is_control()).take(64).collect();
                write!(f, "session `{session}` was not read in time: discarded {discarded} messages")
            }
            Error::SessionOverflow { session: None, discarded } => {
                write!(f, "the connection was not read in time: discarded {discarded} messages")
            }
            Error::TimedOut(time) => write!(f, "timed out after {} s", time.as_secs_f64()),
            Error::Cancelled => f.write_str("cancelled"),
            Error::Invalid(what) => f.write_str(what),
            #[cfg(feature = "process")]
            Error::Launch(error) => error.fmt(f),
            Error::Version { peer } => write!(f, "the peer wants protocol version {peer}, which is not supported here"),
        }
    }
}

/// Shows the text, because that is what `main` prints of an error. What a peer said in it can do no harm to a terminal.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_controls(&self.to_string()))
    }
}

/// The text without control characters, except tabs and line ends.
pub(crate) fn without_controls(text: &str) -> String {
    text.replace(|char: char| char.is_control() && !matches!(char, '\n' | '\t'), "")
}

/// What is missing where tokio would panic.
pub(crate) const NO_RUNTIME: &str = "needs a tokio runtime with IO and time enabled";

/// Fails outside of a tokio runtime.
pub(crate) fn check_runtime() -> Result<(), Error> {
    tokio::runtime::Handle::try_current().map(|_| ()).map_err(|_| Error::Invalid(NO_RUNTIME.into()))
}

impl std::error::Error for Closed {}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Closed(closed) => Some(closed),
            Error::Refused(error) => Some(error),
            Error::BadAnswer { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<ErrorObject> for Error {
    fn from(error: ErrorObject) -> Self {
        Error::Refused(error)
    }
}

impl From<AnswerError> for Error {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Refused(error) => Error::Refused(error),
            AnswerError::Unreadable(violation) => Error::UnreadableAnswer(violation),
        }
    }
}
