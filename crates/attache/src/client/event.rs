//! What an agent sends to a session, and how to answer it.

use std::future::ready;
use std::ops::Deref;

use attache_proto::Encode;
use attache_proto::json::RawJson;
use attache_proto::method::{AgentNotification, Request};
use attache_proto::model::elicitation::{CreateElicitationRequest, CreateElicitationResponse};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::fs::{ReadTextFileRequest, WriteTextFileRequest};
use attache_proto::model::permission::{
    PermissionOptionId, PermissionOptionKind, PermissionOutcome, PermissionRequest, PermissionResponse,
};
use attache_proto::model::terminal::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalOutputRequest,
    WaitForTerminalExitRequest,
};
use attache_proto::model::unstable::{McpMessageRequest, ProxySuccessorRequest};
use attache_proto::model::update::SessionUpdate;
use attache_proto::rpc::Call;

use super::router::{ClientRouter, cancelled_permission};
use crate::link::{BoxFuture, Link};
use crate::{CancelToken, Error};

/// What an agent sends. What it asks is answered through the value itself.
///
/// An event that is dropped is answered, too: a permission request with `cancelled`, which is not a yes, and any other
/// request with an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Something to show.
    Update(SessionUpdate),
    /// The agent wants permission.
    Permission(PermissionAsk),
    /// The agent wants to read a file.
    ReadTextFile(Pending<ReadTextFileRequest>),
    /// The agent wants to write a file.
    WriteTextFile(Pending<WriteTextFileRequest>),
    /// The agent wants a command run.
    CreateTerminal(Pending<CreateTerminalRequest>),
    /// The agent wants the output of a command.
    TerminalOutput(Pending<TerminalOutputRequest>),
    /// The agent wants to know when a command has ended.
    WaitForTerminalExit(Pending<WaitForTerminalExitRequest>),
    /// The agent wants a command ended.
    KillTerminal(Pending<KillTerminalRequest>),
    /// The agent needs a terminal no longer.
    ReleaseTerminal(Pending<ReleaseTerminalRequest>),
    /// The agent has a question for the person.
    Elicitation(Pending<CreateElicitationRequest>),
    /// A message to an MCP server of the client's (unstable). Comes with [`Client::mcp`](super::Client::mcp).
    McpMessage(Pending<McpMessageRequest>),
    /// A request of a proxy to the agent behind it (unstable). Comes with [`Client::proxies`](super::Client::proxies).
    ProxySuccessor(Pending<ProxySuccessorRequest>),
    /// A request of a method that you registered with [`Client::extension`](super::Client::extension).
    Extension(ExtensionCall),
    /// A notification of such a method.
    ExtensionNotice(ExtensionNotice),
    /// Any other notification that is not about a session.
    Notification(AgentNotification),
}

impl Event {
    /// Says no to a request; anything else is ignored.
    pub async fn decline(self) -> Result<(), Error> {
        self.into_refusal().await
    }

    fn into_refusal(self) -> BoxFuture<'static, Result<(), Error>> {
        match self {
            Event::Permission(ask) => Box::pin(ask.reject()),
            Event::ReadTextFile(call) => call.responder.decline(),
            Event::WriteTextFile(call) => call.responder.decline(),
            Event::CreateTerminal(call) => call.responder.decline(),
            Event::TerminalOutput(call) => call.responder.decline(),
            Event::WaitForTerminalExit(call) => call.responder.decline(),
            Event::KillTerminal(call) => call.responder.decline(),
            Event::ReleaseTerminal(call) => call.responder.decline(),
            Event::Elicitation(call) => call.responder.reply(Ok(Box::new(CreateElicitationResponse::decline()))),
            Event::McpMessage(call) => call.responder.decline(),
            Event::ProxySuccessor(call) => call.responder.decline(),
            Event::Extension(call) => call.responder.reply(Err(ErrorObject::method_not_found(None))),
            Event::Update(_) | Event::ExtensionNotice(_) | Event::Notification(_) => Box::pin(ready(Ok(()))),
        }
    }
}

/// The debt of one answer. Dropped, it answers with an internal error.
pub(crate) struct Responder {
    pub(crate) link: Link<ClientRouter>,
    pub(crate) call: Option<Call>,
}

impl Responder {
    fn new(link: Link<ClientRouter>, call: Call) -> Self {
        Responder { link, call: Some(call) }
    }

    fn reply(self, result: Result<Box<dyn Encode + Send>, ErrorObject>) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let mut responder = self;
            let Some(call) = responder.call else { return Ok(()) };
            let sent = responder
                .link
                .send(|router, port| {
                    router.answered(None, call);
                    if !port.peer.is_open(call) {
                        return Err(Error::Cancelled);
                    }
                    match result {
                        Ok(result) => port.peer.answer(call, |writer| result.encode(writer), port.out),
                        Err(error) => port.refuse(call, &error),
                    }
                    Ok(())
                })
                .await;
            responder.call = None;
            sent?
        })
    }

    fn decline(self) -> BoxFuture<'static, Result<(), Error>> {
        self.reply(Err(ErrorObject::permission_denied("declined")))
    }

    fn token(&self) -> CancelToken {
        match self.call {
            Some(call) => self.link.with(|router, port| router.cancel_token(call, port.peer.is_open(call))),
            None => CancelToken::default(),
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.link.with(|router, port| {
                router.answered(None, call);
                port.refuse(call, &ErrorObject::internal("nobody answered"));
            });
        }
    }
}

/// A request of the agent that waits for your answer. It reads like the request itself. Dropped, it is answered with an
/// error.
pub struct Pending<Q: Request> {
    request: Q,
    responder: Responder,
}

impl<Q: Request> Pending<Q> {
    pub(crate) fn new(request: Q, link: Link<ClientRouter>, call: Call) -> Self {
        Pending { request, responder: Responder::new(link, call) }
    }

    /// Answers with a result, or with an error for the agent.
    pub async fn reply(self, result: Result<Q::Response, ErrorObject>) -> Result<(), Error> {
        self.responder.reply(result.map(|response| Box::new(response) as Box<dyn Encode + Send>)).await
    }

    /// Answers that this is not done here.
    pub async fn decline(self) -> Result<(), Error> {
        self.responder.decline().await
    }

    /// The request itself.
    pub fn request(&self) -> &Q {
        &self.request
    }

    /// Tells when the agent needs the answer no longer, so that a form can be taken off the screen or a read be stopped.
    /// You still have to answer.
    pub fn cancel_token(&self) -> CancelToken {
        self.responder.token()
    }
}

impl<Q: Request> Deref for Pending<Q> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.request
    }
}

impl<Q: Request + std::fmt::Debug> std::fmt::Debug for Pending<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pending").field(&self.request).finish()
    }
}

/// A permission request that waits for your answer. Dropped, it is answered `cancelled`, which is not a yes.
pub struct PermissionAsk {
    request: PermissionRequest,
    link: Link<ClientRouter>,
    call: Option<Call>,
}

impl PermissionAsk {
    pub(crate) fn new(request: PermissionRequest, link: Link<ClientRouter>, call: Call) -> Self {
        PermissionAsk { request, link, call: Some(call) }
    }

    /// Allows this once. Fails when the agent offers no such choice; then the answer is `cancelled`.
    pub async fn allow_once(self) -> Result<(), Error> {
        self.choose(&[PermissionOptionKind::AllowOnce]).await
    }

    /// Allows this and all that the agent takes to be like it. Fails when the agent offers no such choice; then the answer
    /// is `cancelled`.
    pub async fn allow_always(self) -> Result<(), Error> {
        self.choose(&[PermissionOptionKind::AllowAlways]).await
    }

    /// Says no: by the agent's own choice for that, or with `cancelled` when it offers none.
    pub async fn reject(self) -> Result<(), Error> {
        match self.choice(&[PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]) {
            Some(option) => self.select(option).await,
            None => self.cancel().await,
        }
    }

    /// Takes one of the choices that the agent offers. Fails when it does not offer this one; then the answer is
    /// `cancelled`.
    pub async fn select(self, option: PermissionOptionId) -> Result<(), Error> {
        if !self.request.options.iter().any(|offered| offered.option_id == option) {
            return Err(Error::NotOffered("this permission option"));
        }
        self.settle(PermissionOutcome::selected(option)).await
    }

    /// Answers `cancelled`.
    pub async fn cancel(self) -> Result<(), Error> {
        self.settle(PermissionOutcome::cancelled()).await
    }

    /// Tells when the question needs no answer any more: the turn was cancelled, or the agent no longer asks.
    pub fn cancel_token(&self) -> CancelToken {
        match self.call {
            Some(call) => self.link.with(|router, port| router.cancel_token(call, port.peer.is_open(call))),
            None => CancelToken::default(),
        }
    }

    async fn choose(self, kinds: &[PermissionOptionKind]) -> Result<(), Error> {
        match self.choice(kinds) {
            Some(option) => self.select(option).await,
            None => Err(Error::NotOffered("such a choice")),
        }
    }

    /// The first choice of the first of these kinds that there is.
    fn choice(&self, kinds: &[PermissionOptionKind]) -> Option<PermissionOptionId> {
        kinds.iter().find_map(|kind| {
            self.request.options.iter().find(|option| option.kind == *kind).map(|option| option.option_id.clone())
        })
    }

    fn settle(self, outcome: PermissionOutcome) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let mut ask = self;
            let Some(call) = ask.call else { return Ok(()) };
            let response = PermissionResponse::new(outcome);
            let session = ask.request.session_id.clone();
            let sent = ask
                .link
                .send(|router, port| {
                    router.answered(Some(&session), call);
                    // The turn was cancelled meanwhile, and this with it.
                    if !port.peer.is_open(call) {
                        return Err(Error::Cancelled);
                    }
                    port.answer(call, &response);
                    Ok(())
                })
                .await;
            ask.call = None;
            sent?
        })
    }
}

impl Deref for PermissionAsk {
    type Target = PermissionRequest;

    fn deref(&self) -> &PermissionRequest {
        &self.request
    }
}

impl std::fmt::Debug for PermissionAsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PermissionAsk").field(&self.request).finish()
    }
}

impl Drop for PermissionAsk {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.link.with(|router, port| {
                router.answered(Some(&self.request.session_id), call);
                port.answer(call, &cancelled_permission());
            });
        }
    }
}

/// A request of an extension method that waits for your answer. Dropped, it is answered with an error.
pub struct ExtensionCall {
    method: Box<str>,
    params: Option<RawJson>,
    responder: Responder,
}

impl ExtensionCall {
    pub(crate) fn new(method: Box<str>, params: Option<RawJson>, link: Link<ClientRouter>, call: Call) -> Self {
        ExtensionCall { method, params, responder: Responder::new(link, call) }
    }

    /// The method, with its underscore.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The params as they came.
    pub fn raw_params(&self) -> Option<&RawJson> {
        self.params.as_ref()
    }

    /// Reads the params into a type of your own. Needs the feature `serde`.
    #[cfg(feature = "serde")]
    pub fn params<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        parse_extension(self.params.as_ref())
    }

    /// Answers with a value of your own. Needs the feature `serde`.
    #[cfg(feature = "serde")]
    pub async fn reply<T: serde::Serialize + ?Sized>(self, result: &T) -> Result<(), Error> {
        let result = RawJson::from_value(result).map_err(|error| Error::Invalid(error.to_string()))?;
        self.responder.reply(Ok(Box::new(result))).await
    }

    /// Answers with an error.
    pub async fn refuse(self, error: ErrorObject) -> Result<(), Error> {
        self.responder.reply(Err(error)).await
    }
}

impl std::fmt::Debug for ExtensionCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtensionCall").field("method", &self.method).field("params", &self.params).finish()
    }
}

/// A notification of an extension method.
#[derive(Debug)]
pub struct ExtensionNotice {
    pub(crate) method: Box<str>,
    pub(crate) params: Option<RawJson>,
}

impl ExtensionNotice {
    /// The method, with its underscore.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The params as they came.
    pub fn raw_params(&self) -> Option<&RawJson> {
        self.params.as_ref()
    }

    /// Reads the params into a type of your own. Needs the feature `serde`.
    #[cfg(feature = "serde")]
    pub fn params<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        parse_extension(self.params.as_ref())
    }
}

#[cfg(feature = "serde")]
fn parse_extension<T: serde::de::DeserializeOwned>(params: Option<&RawJson>) -> Result<T, Error> {
    let text = params.map_or("null", RawJson::as_str);
    serde_json::from_str(text).map_err(|_| Error::Invalid("the params of the extension are not as expected".into()))
}
