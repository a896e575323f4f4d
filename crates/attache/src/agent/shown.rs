//! What an agent shows beside messages and tool calls: commands that it runs itself, and compactions.

use attache_proto::model::Patch;
use attache_proto::model::capability::{Capability, TerminalCapabilities};
use attache_proto::model::content::ContentBlock;
use attache_proto::model::notice::{CompactionId, CompactionStatus, CompactionSummaryChunk, CompactionUpdate};
use attache_proto::model::terminal::{ExitStatus, TerminalId, TerminalOutputChunk, TerminalUpdate};
use attache_proto::model::update::SessionUpdate;

use super::SessionHandle;
use crate::{CancelToken, Error};

/// A command that the agent runs itself and shows in a terminal. Dropped before it has exited, it is shown as exited.
///
/// Version 2 has such terminals. A client of version 1 sees the output as text of the tool calls that show the terminal
/// ([`ToolCallContent::Terminal`](crate::model::tool::ToolCallContent)).
///
/// ```
/// # use attache::{Turn, agent::HandlerError, model::{terminal::ExitStatus, tool::{ToolCallTerminal, ToolKind}}};
/// # async fn example(turn: Turn) -> Result<(), HandlerError> {
/// let terminal = turn.show_terminal("cargo test", "/project").await?;
/// let shown = ToolCallTerminal::new(terminal.id().clone());
/// let call = turn.tool("Run tests").kind(ToolKind::Execute).content(shown).await?;
/// terminal.output(b"running 12 tests\r\n").await?;
/// terminal.exit(ExitStatus::new().exit_code(0)).await?;
/// call.complete().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a terminal that is dropped is shown as exited"]
pub struct ShownTerminal {
    handle: SessionHandle,
    id: TerminalId,
    is_open: bool,
}

impl ShownTerminal {
    pub(super) async fn show(handle: SessionHandle, command: String, cwd: String) -> Result<Self, Error> {
        let id = TerminalId::from(handle.updates().session.next_terminal_id());
        let update = TerminalUpdate::new(id.clone()).command(command).cwd(cwd);
        handle.update(SessionUpdate::TerminalUpdate(update.into())).await?;
        Ok(ShownTerminal { handle, id, is_open: true })
    }

    /// The terminal's id, to show it in a tool call.
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// Shows more of what the command writes, control sequences and all.
    pub async fn output(&self, bytes: &[u8]) -> Result<(), Error> {
        let data = attache_proto::base64::encode(bytes);
        self.handle.update(SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new(self.id.clone(), data))).await
    }

    /// Says that the person may cancel this command alone; the returned token is cancelled when they do. Only version 2
    /// has that: elsewhere it is never cancelled.
    pub async fn cancellable(&self) -> Result<CancelToken, Error> {
        let token = CancelToken::default();
        self.handle.link().with(|router, _| {
            if let Some(slot) = router.slot(self.handle.id()) {
                slot.terminals.insert(self.id.clone(), token.clone());
            }
        });
        let capabilities = TerminalCapabilities::new().cancel(Capability::new());
        self.update(self.blank().capabilities(capabilities)).await?;
        Ok(token)
    }

    /// Changes anything about the terminal.
    pub async fn update(&self, update: TerminalUpdate) -> Result<(), Error> {
        self.handle.update(SessionUpdate::TerminalUpdate(update.into())).await
    }

    /// An update of this terminal that changes nothing yet.
    pub fn blank(&self) -> TerminalUpdate {
        TerminalUpdate::new(self.id.clone())
    }

    /// Says how the command has exited.
    pub async fn exit(mut self, status: ExitStatus) -> Result<(), Error> {
        self.update(self.exited(status)).await?;
        self.is_open = false;
        Ok(())
    }

    /// The last update: what could be cancelled cannot be any more.
    fn exited(&self, status: ExitStatus) -> TerminalUpdate {
        let was_cancellable = self.handle.link().with(|router, _| {
            router.slot(self.handle.id()).is_some_and(|slot| slot.terminals.remove(&self.id).is_some())
        });
        let capabilities = if was_cancellable { Patch::Clear } else { Patch::Keep };
        self.blank().exit_status(status).with(|update| update.capabilities = capabilities)
    }
}

impl Drop for ShownTerminal {
    fn drop(&mut self) {
        if self.is_open {
            let update = self.exited(ExitStatus::new());
            self.handle.update_now(&SessionUpdate::TerminalUpdate(update.into()));
        }
    }
}

/// A compaction of the conversation that is shown to the person. Dropped before it is completed, it is shown as cancelled.
#[derive(Debug)]
#[must_use = "a compaction that is dropped is shown as cancelled"]
pub struct Compaction {
    handle: SessionHandle,
    id: CompactionId,
    is_open: bool,
}

impl Compaction {
    pub(super) async fn start(handle: SessionHandle) -> Result<Self, Error> {
        let id = CompactionId::from(handle.updates().session.next_compaction_id());
        let compaction = Compaction { handle, id, is_open: true };
        compaction.update(compaction.with_status(CompactionStatus::InProgress)).await?;
        Ok(compaction)
    }

    /// The compaction's id.
    pub fn id(&self) -> &CompactionId {
        &self.id
    }

    /// Shows a piece of the summary as it is written.
    pub async fn push(&self, content: impl Into<ContentBlock>) -> Result<(), Error> {
        let chunk = CompactionSummaryChunk::new(self.id.clone(), content.into());
        self.handle.update(SessionUpdate::CompactionSummaryChunk(chunk)).await
    }

    /// Ends the compaction with its summary, if there is more to it than was shown.
    pub async fn complete(mut self, summary: Option<Vec<ContentBlock>>) -> Result<(), Error> {
        let summary = summary.map_or(Patch::Keep, Patch::Set);
        self.update(self.with_status(CompactionStatus::Completed).with(|update| update.summary = summary)).await?;
        self.is_open = false;
        Ok(())
    }

    /// Ends the compaction: it failed for this reason.
    pub async fn fail(mut self, error: impl Into<String>) -> Result<(), Error> {
        let error = Patch::Set(error.into());
        self.update(self.with_status(CompactionStatus::Failed).with(|update| update.error = error)).await?;
        self.is_open = false;
        Ok(())
    }

    async fn update(&self, update: CompactionUpdate) -> Result<(), Error> {
        self.handle.update(SessionUpdate::Compaction(update)).await
    }

    fn with_status(&self, status: CompactionStatus) -> CompactionUpdate {
        CompactionUpdate::new(self.id.clone(), status)
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        if self.is_open {
            let update = self.with_status(CompactionStatus::Cancelled);
            self.handle.update_now(&SessionUpdate::Compaction(update));
        }
    }
}
