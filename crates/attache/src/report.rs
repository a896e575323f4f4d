//! What is worth telling, though nobody has to act on it.

use std::fmt;

use attache_proto::rpc::Violation;

/// Something that the conversation survived. Nothing of what the peer sent is repeated, unless a handler has it in its
/// error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// The peer violated the protocol.
    Violation(Violation),
    /// The agreed protocol version does not have this, so it was left out of what we sent.
    Lost(&'static str),
    /// A handler of the agent failed, and the client was not told why. Without
    /// [`on_report`](crate::agent::Server::on_report) this is written to stderr.
    #[cfg(feature = "agent")]
    HandlerFailed {
        /// The method, by its protocol name.
        method: String,
        /// The text of the error and of its sources.
        error: String,
    },
}

impl Report {
    /// Whether it only matters to somebody who looks for deviations.
    pub(crate) fn is_tolerated(&self) -> bool {
        matches!(self, Report::Violation(Violation::Tolerated { .. } | Violation::Batch | Violation::NullId))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Violation(violation) => write!(f, "protocol violation: {violation}"),
            Report::Lost(what) => write!(f, "`{what}` was not sent: the agreed protocol version does not have it"),
            #[cfg(feature = "agent")]
            Report::HandlerFailed { method, error } => write!(f, "handler of `{method}` failed: {error}"),
        }
    }
}
