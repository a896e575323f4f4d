//! A tool call that cannot be forgotten: it is ended by whoever holds it, or when it is dropped.

use std::future::IntoFuture;
use std::pin::Pin;

use attache_proto::json::RawJson;
use attache_proto::model::capability::{Capability, ToolCallCapabilities};
use attache_proto::model::content::ContentBlock;
use attache_proto::model::tool::{
    Location, ToolCallContent, ToolCallContentChunk, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use attache_proto::model::update::SessionUpdate;
use attache_proto::model::{Meta, Patch};

use super::SessionHandle;
use crate::{CancelToken, Error};

/// A tool call that is about to be shown: all that is known of it is sent at once. Awaiting it starts it.
///
/// ```
/// # use attache::{Turn, agent::HandlerError, model::tool::{Location, ToolKind}};
/// use attache::model::RawJson;
/// use serde_json::json;
///
/// # async fn example(turn: Turn) -> Result<(), HandlerError> {
/// let call = turn
///     .tool("Read src/main.rs")
///     .name("read_file")
///     .kind(ToolKind::Read)
///     .location(Location::new("/project/src/main.rs"))
///     .input(RawJson::from_value(&json!({ "path": "src/main.rs" }))?)
///     .await?;
/// call.push_text("fn main() {}").await?;
/// call.complete().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a tool call is shown when it is awaited"]
pub struct ToolCallBuilder {
    handle: SessionHandle,
    title: String,
    update: ToolCallUpdate,
    has_id: bool,
    locations: Vec<Location>,
    content: Vec<ToolCallContent>,
    cancelled: Option<CancelToken>,
}

impl ToolCallBuilder {
    pub(super) fn new(handle: SessionHandle, title: String) -> Self {
        let update = ToolCallUpdate::new("").title(title.clone()).status(ToolCallStatus::Pending);
        let (locations, content) = (Vec::new(), Vec::new());
        ToolCallBuilder { handle, title, update, has_id: false, locations, content, cancelled: None }
    }

    pub(super) fn of_turn(mut self, cancelled: CancelToken) -> Self {
        self.cancelled = Some(cancelled);
        self
    }

    /// Gives the call an id of your own, which no other call of the session may have.
    pub fn id(mut self, id: impl Into<ToolCallId>) -> Self {
        self.update.tool_call_id = id.into();
        self.has_id = true;
        self
    }

    /// Says what the tool is called, for programs.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.update.name = Patch::Set(name.into());
        self
    }

    /// Says what kind of tool it is.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.update.kind = Patch::Set(kind);
        self
    }

    /// Says which status it starts with, instead of pending.
    pub fn status(mut self, status: ToolCallStatus) -> Self {
        self.update.status = Patch::Set(status);
        self
    }

    /// Adds a file that it works on.
    pub fn location(mut self, location: Location) -> Self {
        self.locations.push(location);
        self
    }

    /// Adds content.
    pub fn content(mut self, content: impl Into<ToolCallContent>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Says what the tool was called with. [`RawJson::from_value`] makes it of any value that serde knows.
    pub fn input(mut self, input: RawJson) -> Self {
        self.update.raw_input = Patch::Set(input);
        self
    }

    /// Says what the tool has returned. [`RawJson::from_value`] makes it of any value that serde knows.
    pub fn output(mut self, output: RawJson) -> Self {
        self.update.raw_output = Patch::Set(output);
        self
    }

    /// Adds custom metadata (`_meta`).
    pub fn meta(mut self, meta: Meta) -> Self {
        self.update.meta = Patch::Set(meta);
        self
    }

    /// Shows the call. The guard that comes back ends it.
    pub async fn start(self) -> Result<ToolCall, Error> {
        let ToolCallBuilder { handle, title, mut update, has_id, locations, content, cancelled } = self;
        if !has_id {
            update.tool_call_id = handle.updates().session.next_tool_call_id().into();
        }
        if !locations.is_empty() {
            update.locations = Patch::Set(locations);
        }
        if !content.is_empty() {
            update.content = Patch::Set(content);
        }
        let id = update.tool_call_id.clone();
        handle.update(SessionUpdate::ToolCallUpdate(update.into())).await?;
        Ok(ToolCall { handle, id, title, cancelled, is_open: true })
    }
}

impl IntoFuture for ToolCallBuilder {
    type Output = Result<ToolCall, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

/// A tool call that is shown to the person. Dropped before it is completed, it is shown as failed, or as cancelled when
/// its turn was.
#[derive(Debug)]
#[must_use = "a tool call that is dropped is shown as failed"]
pub struct ToolCall {
    handle: SessionHandle,
    id: ToolCallId,
    title: String,
    /// Whether its turn is cancelled, when it is of one.
    cancelled: Option<CancelToken>,
    is_open: bool,
}

impl ToolCall {
    /// The id of the call.
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Says what kind of tool it is.
    pub async fn kind(&self, kind: ToolKind) -> Result<(), Error> {
        self.update(self.blank().kind(kind)).await
    }

    /// Says that the tool is at work.
    pub async fn in_progress(&self) -> Result<(), Error> {
        self.update(self.blank().status(ToolCallStatus::InProgress)).await
    }

    /// Says which files it works on.
    pub async fn locations(&self, locations: Vec<Location>) -> Result<(), Error> {
        self.update(self.blank().locations(locations)).await
    }

    /// Says what the tool was called with. [`RawJson::from_value`] makes it of any value that serde knows.
    pub async fn input(&self, input: RawJson) -> Result<(), Error> {
        self.update(self.blank().raw_input(input)).await
    }

    /// Says what the tool has returned. [`RawJson::from_value`] makes it of any value that serde knows.
    pub async fn output(&self, output: RawJson) -> Result<(), Error> {
        self.update(self.blank().raw_output(output)).await
    }

    /// Adds a piece to what the tool has produced.
    pub async fn push(&self, content: impl Into<ToolCallContent>) -> Result<(), Error> {
        let chunk = ToolCallContentChunk::new(self.id.clone(), content);
        self.handle.update(SessionUpdate::ToolCallContentChunk(chunk)).await
    }

    /// Adds text to what the tool has produced.
    pub async fn push_text(&self, text: impl Into<String>) -> Result<(), Error> {
        self.push(ToolCallContent::from(ContentBlock::text(text))).await
    }

    /// Says that the person may cancel this call alone; the returned token is cancelled when they do. Only version 2 has
    /// that: elsewhere it is never cancelled.
    pub async fn cancellable(&self) -> Result<CancelToken, Error> {
        let token = CancelToken::default();
        self.handle.link().with(|router, _| {
            if let Some(slot) = router.slot(self.handle.id()) {
                slot.tool_calls.insert(self.id.clone(), token.clone());
            }
        });
        // Other versions have no words for it, which is no loss to report.
        if self.handle.client().can_cancel_parts() {
            let capabilities = ToolCallCapabilities::new().cancel(Capability::new());
            self.update(self.blank().capabilities(capabilities)).await?;
        }
        Ok(token)
    }

    /// Changes anything about the call.
    pub fn update(&self, update: ToolCallUpdate) -> impl Future<Output = Result<(), Error>> + Send {
        self.handle.update(SessionUpdate::ToolCallUpdate(update.into()))
    }

    /// An update of this call that changes nothing yet.
    pub fn blank(&self) -> ToolCallUpdate {
        ToolCallUpdate::new(self.id.clone())
    }

    /// An update of this call that says again what it is called.
    pub(super) fn described(&self) -> ToolCallUpdate {
        self.blank().title(self.title.clone())
    }

    /// Ends the call: the tool has done its work.
    pub async fn complete(self) -> Result<(), Error> {
        self.end(ToolCallStatus::Completed).await
    }

    /// Ends the call: the tool has failed.
    pub async fn fail(self) -> Result<(), Error> {
        self.end(ToolCallStatus::Failed).await
    }

    /// Ends the call: it was cancelled.
    pub async fn cancel(self) -> Result<(), Error> {
        self.end(ToolCallStatus::Cancelled).await
    }

    async fn end(mut self, status: ToolCallStatus) -> Result<(), Error> {
        self.update(self.ended(status)).await?;
        self.is_open = false;
        Ok(())
    }

    /// The last update: what could be cancelled cannot be any more.
    fn ended(&self, status: ToolCallStatus) -> ToolCallUpdate {
        let was_cancellable = self.handle.link().with(|router, _| {
            router.slot(self.handle.id()).is_some_and(|slot| slot.tool_calls.remove(&self.id).is_some())
        });
        let tells = was_cancellable && self.handle.client().can_cancel_parts();
        let capabilities = if tells { Patch::Clear } else { Patch::Keep };
        self.blank().status(status).with(|update| update.capabilities = capabilities)
    }
}

impl Drop for ToolCall {
    fn drop(&mut self) {
        if self.is_open {
            let is_cancelled = self.cancelled.as_ref().is_some_and(CancelToken::is_cancelled);
            let status = if is_cancelled { ToolCallStatus::Cancelled } else { ToolCallStatus::Failed };
            let update = self.ended(status);
            self.handle.update_now(&SessionUpdate::ToolCallUpdate(update.into()));
        }
    }
}
