//! The agent that cannot work, because something is wrong with its settings: it says so when a session is opened.

use attache::agent::{Agent, HandlerError, OpenRequest, Opened, Session, SessionHandle, Turn};
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::{Prompt, Stop};

/// An agent without sessions.
pub(super) struct Unready {
    /// What is wrong.
    pub(super) why: String,
}

/// A session that there never is.
pub(super) enum Never {}

impl Agent for Unready {
    type Session = Never;

    fn info(&self) -> Implementation {
        Implementation::new("attache", env!("CARGO_PKG_VERSION")).title("Attaché")
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<Never>, HandlerError> {
        Err(ErrorObject::internal(self.why.as_str()).into())
    }
}

impl Session for Never {
    async fn prompt(&mut self, _: Turn, _: Prompt) -> Result<Stop, HandlerError> {
        match *self {}
    }
}
