//! What a handler of a registered method may need beside its request.

use std::sync::Arc;

use attache_proto::model::RawJson;
use attache_proto::model::elicitation::{
    CompleteElicitationNotification, CreateElicitationRequest, CreateElicitationResponse, ElicitationId,
    ElicitationMode,
};
use attache_proto::model::request::RequestId;
use attache_proto::model::unstable::{AuthStatusNotification, ProxySuccessorNotification, ProxySuccessorRequest};

use super::router::AgentRouter;
use super::{ClientInfo, SessionHandle};
use crate::link::Link;
use crate::{CancelToken, Error};

/// What a handler of a registered method may need beside its request: the client, the session that the request names, and
/// whether it is still wanted. Cheap to clone.
#[derive(Clone)]
pub struct Context(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) link: Link<AgentRouter>,
    pub(super) client: Arc<ClientInfo>,
    pub(super) request_id: Option<RequestId>,
    pub(super) session: Option<SessionHandle>,
    pub(super) cancelled: CancelToken,
}

impl Context {
    /// What the client said of itself.
    pub fn client(&self) -> &ClientInfo {
        &self.0.client
    }

    /// The open session that the request names.
    pub fn session(&self) -> Option<&SessionHandle> {
        self.0.session.as_ref()
    }

    /// The id that the client gave the request, for questions that belong to it
    /// ([`RequestScope`](crate::model::elicitation::RequestScope)). Notifications have none.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.0.request_id.as_ref()
    }

    /// Tells when the client no longer wants the answer. The handler is dropped then.
    pub fn cancel_token(&self) -> CancelToken {
        self.0.cancelled.clone()
    }

    /// Puts a question to the person, such as one that belongs to this request.
    pub async fn elicit(&self, request: CreateElicitationRequest) -> Result<CreateElicitationResponse, Error> {
        check_elicitation(&self.0.client, &request)?;
        self.call(&request).await
    }

    /// Says that a question which sent the person to a web page is answered.
    pub async fn complete_elicitation(&self, id: impl Into<ElicitationId>) -> Result<(), Error> {
        self.notify(&CompleteElicitationNotification::new(id)).await
    }

    /// Sends a request to the agent behind this proxy, through the conductor of the chain (unstable).
    pub async fn call_successor(&self, request: &ProxySuccessorRequest) -> Result<RawJson, Error> {
        self.call(request).await
    }

    /// Tells something to the agent behind this proxy, through the conductor of the chain (unstable).
    pub async fn notify_successor(&self, notification: &ProxySuccessorNotification) -> Result<(), Error> {
        self.notify(notification).await
    }

    /// Tells the client that who is logged in has changed (unstable).
    pub async fn auth_status_changed(&self, status: &AuthStatusNotification) -> Result<(), Error> {
        self.notify(status).await
    }

    crate::link::untyped_methods!();
}

/// Whether a client takes questions of this kind.
pub(super) fn check_elicitation(client: &ClientInfo, request: &CreateElicitationRequest) -> Result<(), Error> {
    let offered = client.capabilities.elicitation.as_ref();
    let is_offered = match &request.mode {
        ElicitationMode::Form(_) => offered.is_some_and(|offered| offered.form.is_some()),
        ElicitationMode::Url(_) => offered.is_some_and(|offered| offered.url.is_some()),
        _ => false,
    };
    if is_offered { Ok(()) } else { Err(Error::NotOffered("questions of this kind")) }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("session", &self.0.session).finish_non_exhaustive()
    }
}
