//! A tool call that cannot be forgotten: it is ended by whoever holds it, or when it is dropped.

use std::sync::Arc;

use attache_proto::Dialect;
use attache_proto::json::RawJson;
use attache_proto::model::{
    Capability, ContentBlock, Location, Patch, SessionUpdate, ToolCallCapabilities, ToolCallContent,
    ToolCallContentChunk, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind,
};

use super::SessionHandle;
use super::flag::Flag;
use crate::Error;

/// A tool call that is shown to the person. Dropped before it is completed, it is shown as failed.
#[derive(Debug)]
#[must_use = "a tool call that is dropped is shown as failed"]
pub struct ToolCall {
    handle: SessionHandle,
    id: ToolCallId,
    title: String,
    is_open: bool,
}

impl ToolCall {
    pub(super) async fn start(handle: SessionHandle, title: String, id: Option<ToolCallId>) -> Result<Self, Error> {
        let id = id.unwrap_or_else(|| ToolCallId::from(handle.next_tool_id()));
        let update = ToolCallUpdate {
            title: Patch::Set(title.clone()),
            status: Patch::Set(ToolCallStatus::Pending),
            ..ToolCallUpdate::new(id.clone())
        };
        handle.update(SessionUpdate::ToolCallUpdate(update.into())).await?;
        Ok(ToolCall { handle, id, title, is_open: true })
    }

    /// The id of the call.
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Says what kind of tool it is.
    pub async fn kind(&self, kind: ToolKind) -> Result<(), Error> {
        self.update(ToolCallUpdate { kind: Patch::Set(kind), ..self.blank() }).await
    }

    /// Says that the tool is at work.
    pub async fn in_progress(&self) -> Result<(), Error> {
        self.update(ToolCallUpdate { status: Patch::Set(ToolCallStatus::InProgress), ..self.blank() }).await
    }

    /// Says which files it works on.
    pub async fn locations(&self, locations: Vec<Location>) -> Result<(), Error> {
        self.update(ToolCallUpdate { locations: Patch::Set(locations), ..self.blank() }).await
    }

    /// Says what the tool was called with.
    pub async fn input(&self, input: RawJson) -> Result<(), Error> {
        self.update(ToolCallUpdate { raw_input: Patch::Set(input), ..self.blank() }).await
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

    /// Says that the person may cancel this call alone; the future that comes back is done when they do. Only version 2
    /// has that: elsewhere it is never done.
    pub async fn cancellable(&mut self) -> Result<impl Future<Output = ()> + Send + 'static, Error> {
        let flag: Arc<Flag> = Arc::default();
        let watched = flag.clone();
        self.handle.link().with(|router, _| {
            if let Some(slot) = router.slot(self.handle.id()) {
                slot.cancellable.insert(self.id.as_str().into(), flag);
            }
        });
        if self.handle.client().dialect == Dialect::V2 {
            let capabilities = ToolCallCapabilities { cancel: Some(Capability::new()), ..ToolCallCapabilities::new() };
            self.update(ToolCallUpdate { capabilities: Patch::Set(capabilities), ..self.blank() }).await?;
        }
        Ok(async move { watched.raised().await })
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
        ToolCallUpdate { title: Patch::Set(self.title.clone()), ..self.blank() }
    }

    /// The tool has done its work.
    pub async fn complete(mut self) -> Result<(), Error> {
        self.end(ToolCallStatus::Completed).await
    }

    /// The tool has failed.
    pub async fn fail(mut self) -> Result<(), Error> {
        self.end(ToolCallStatus::Failed).await
    }

    async fn end(&mut self, status: ToolCallStatus) -> Result<(), Error> {
        self.update(self.ended(status)).await?;
        self.is_open = false;
        Ok(())
    }
}

impl ToolCall {
    /// The last update: what could be cancelled cannot be any more.
    fn ended(&self, status: ToolCallStatus) -> ToolCallUpdate {
        let was_cancellable = self.handle.link().with(|router, _| {
            router.slot(self.handle.id()).is_some_and(|slot| slot.cancellable.remove(self.id.as_str()).is_some())
        });
        let capabilities = if was_cancellable { Patch::Clear } else { Patch::Keep };
        ToolCallUpdate { status: Patch::Set(status), capabilities, ..self.blank() }
    }
}

impl Drop for ToolCall {
    fn drop(&mut self) {
        if self.is_open {
            let update = self.ended(ToolCallStatus::Failed);
            self.handle.update_now(&SessionUpdate::ToolCallUpdate(update.into()));
        }
    }
}
