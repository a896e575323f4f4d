//! The agent that cannot work, because something is wrong with its settings: it says so to whoever wants a session or a list
//! of them. The sessions that it kept are still there, so it never says that there are none.

use attache::agent::{
    Agent, Delete, Fork, HandlerError, List, OpenRequest, Opened, Restore, Server, Session, SessionHandle, Turn,
};
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId};
use attache::{Prompt, Stop};

/// An agent without sessions.
pub(super) struct Unready {
    /// What is wrong.
    pub(super) why: String,
}

/// A session that there never is.
pub(super) enum Never {}

impl Unready {
    /// Prepares to serve it. It offers what the agent does that works.
    pub(super) fn server(self) -> Server<Self> {
        attache::serve(self).restores().lists().deletes().forks()
    }

    fn refuse<T>(&self) -> Result<T, HandlerError> {
        Err(ErrorObject::internal(self.why.as_str()).into())
    }
}

impl Agent for Unready {
    type Session = Never;

    fn info(&self) -> Implementation {
        Implementation::new("attache", env!("CARGO_PKG_VERSION")).title("Attaché")
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<Never>, HandlerError> {
        self.refuse()
    }
}

impl Restore for Unready {
    async fn restore(
        &self,
        _: SessionId,
        _: OpenRequest,
        _: bool,
        _: SessionHandle,
    ) -> Result<Opened<Never>, HandlerError> {
        self.refuse()
    }
}

impl Fork for Unready {
    async fn fork(&self, _: SessionId, _: OpenRequest, _: SessionHandle) -> Result<Opened<Never>, HandlerError> {
        self.refuse()
    }
}

impl List for Unready {
    async fn list(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        self.refuse()
    }
}

impl Delete for Unready {
    async fn delete(&self, _: SessionId) -> Result<(), HandlerError> {
        self.refuse()
    }
}

impl Session for Never {
    async fn prompt(&mut self, _: Turn, _: Prompt) -> Result<Stop, HandlerError> {
        match *self {}
    }
}
