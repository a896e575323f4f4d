//! What handlers fail with: any error, of which a client hears no more than is meant for it.

use std::error::Error as StdError;
use std::fmt;

use attache_proto::model::error::ErrorObject;

use super::router::AgentRouter;
use crate::link::Link;
use crate::{Error, Report};

/// Why a handler failed. Made by `?` from any [`std::error::Error`]; of anything else, such as text or an `anyhow::Error`, by
/// `.map_err(HandlerError::new)`.
///
/// A client is told "Internal error" and nothing of the text, unless that is asked for with
/// [`shown`](Self::shown). An [`ErrorObject`] is meant for the client and reaches it as it is; so does the cancelling of a
/// turn. What the client is not told is reported as [`Report::HandlerFailed`](crate::Report::HandlerFailed): to
/// [`on_report`](super::Server::on_report), else to stderr.
///
/// ```
/// use attache::agent::HandlerError;
///
/// fn read(path: &str) -> Result<String, HandlerError> {
///     Ok(std::fs::read_to_string(path)?)
/// }
/// let error = read("/no/such/file").unwrap_err();
/// assert_eq!(error.to_peer().message, "Internal error");
/// assert!(error.shown().to_peer().message.contains("No such file"));
///
/// fn find(name: Option<&str>) -> Result<&str, HandlerError> {
///     name.ok_or("no file is open").map_err(HandlerError::new)
/// }
/// assert_eq!(find(None).unwrap_err().to_string(), "no file is open");
/// ```
pub struct HandlerError {
    source: Box<dyn StdError + Send + Sync>,
    is_shown: bool,
}

impl HandlerError {
    /// A failure with any error or text as its cause.
    pub fn new(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        HandlerError { source: source.into(), is_shown: false }
    }

    /// Lets the client have the text of the error and of its sources.
    #[must_use]
    pub fn shown(mut self) -> Self {
        self.is_shown = true;
        self
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// What the client is told.
    pub fn to_peer(&self) -> ErrorObject {
        self.told().unwrap_or_else(|| ErrorObject::internal("Internal error"))
    }

    /// What the client is told, if that says what went wrong.
    fn told(&self) -> Option<ErrorObject> {
        if let Some(error) = self.source.downcast_ref::<ErrorObject>() {
            return Some(error.clone());
        }
        match self.source.downcast_ref::<Error>() {
            Some(error @ (Error::Refused(_) | Error::Cancelled)) => Some(error.to_peer()),
            _ => self.is_shown.then(|| ErrorObject::internal(self.to_string())),
        }
    }

    /// What the client is told. If that does not say what went wrong, it is reported.
    pub(super) fn answer(&self, link: &Link<AgentRouter>, method: &str) -> ErrorObject {
        let told = self.told();
        // A client that has left is no news. An agent can have other connections, whose end is.
        let is_end = matches!(self.source.downcast_ref(), Some(Error::Closed(_))) && link.closed().is_some();
        if told.is_none() && !is_end {
            link.report(Report::HandlerFailed { method: method.to_owned(), error: self.to_string() });
        }
        told.unwrap_or_else(|| self.to_peer())
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        HandlerError::new(error)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.source.to_string();
        let mut source = self.source.source();
        while let Some(error) = source {
            // Many errors repeat what they were caused by.
            let cause = error.to_string();
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
            source = error.source();
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
