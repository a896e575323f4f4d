//! A command's output while it runs, for people.

use std::path::Path;
use std::time::Duration;

use attache::model::terminal::{ExitStatus, TerminalId, TerminalOutput, TerminalOutputChunk, TerminalUpdate};
use attache::model::tool::{ToolCallContent, ToolCallTerminal};
use attache::model::update::SessionUpdate;
use attache::proto::base64;
use attache_host::commands::{OutputPart, View};

use crate::cut::clean;
use crate::tools::{Live, Shown, fenced};

/// How often something new is shown. Faster than a person reads, slow enough for a flood.
const OFTEN: Duration = Duration::from_millis(100);
/// The same for a command that has shown a lot: all of it is kept with the session.
const SELDOM: Duration = Duration::from_secs(5);
const A_LOT: usize = 1 << 20;

/// How much of the output is shown as text: a screen or two.
const TEXT: usize = 8 << 10;
/// How much output is sent to a terminal at once. If there is more, its end is shown in place of all.
const CHUNK: usize = 64 << 10;

/// Where a command's output is shown.
#[derive(Debug)]
pub(super) struct Screen {
    /// The terminal, for a client that shows those; else it is text.
    terminal: Option<TerminalId>,
    /// Up to where the output was shown.
    end: u64,
    /// How many bytes were sent for that.
    sent: usize,
}

impl Screen {
    pub(super) fn new(terminal: Option<TerminalId>) -> Self {
        Screen { terminal, end: 0, sent: 0 }
    }

    pub(super) fn terminal(&self) -> Option<&TerminalId> {
        self.terminal.as_ref()
    }

    /// Shows that the command runs.
    pub(super) async fn begin(&self, live: &Live, line: &str, cwd: &Path) {
        let Some(id) = &self.terminal else { return };
        let update = TerminalUpdate::new(id.clone()).command(line.to_owned()).cwd(cwd.to_string_lossy().into_owned());
        live.show(Shown::Update(SessionUpdate::TerminalUpdate(update.into()))).await;
        self.embed(live).await;
    }

    /// Shows the terminal in the call. Text is shown when there is some.
    pub(super) async fn embed(&self, live: &Live) {
        if let Some(id) = &self.terminal {
            live.show(Shown::Content(vec![terminal_content(id)])).await;
        }
    }

    /// Shows what comes, for ever.
    pub(super) async fn follow(&mut self, live: &Live, view: &mut View) -> ! {
        loop {
            // What came before somebody looked, too.
            self.show(live, view).await;
            tokio::time::sleep(if self.sent < A_LOT { OFTEN } else { SELDOM }).await;
            if !view.changed().await {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Shows what is new.
    pub(super) async fn show(&mut self, live: &Live, view: &View) {
        let part = view.output_since(self.end);
        if part.text.is_empty() {
            return;
        }
        let end = part.end();
        let shown = match &self.terminal {
            None => Shown::Content(vec![fenced(
                "console",
                &clean(&view.output_since(end.saturating_sub(TEXT as u64)).text),
            )]),
            Some(id) => Shown::Update(output(id, self.end, &part)),
        };
        // Counted once it is on its way: whoever drops this shows it again.
        live.show(shown).await;
        self.end = end;
        self.sent += part.text.len().min(if self.terminal.is_some() { CHUNK } else { TEXT });
    }

    /// Shows how it ended.
    pub(super) async fn end(&mut self, live: &Live, view: &View, status: &ExitStatus) {
        if let Some(id) = self.terminal.clone() {
            self.show(live, view).await;
            live.show(Shown::Update(ended(&id, status))).await;
        }
    }
}

/// That a terminal's command has ended.
pub(super) fn ended(id: &TerminalId, status: &ExitStatus) -> SessionUpdate {
    let update = TerminalUpdate::new(id.clone()).exit_status(status.clone());
    SessionUpdate::TerminalUpdate(update.into())
}

pub(super) fn terminal_content(id: &TerminalId) -> ToolCallContent {
    ToolCallContent::Terminal(ToolCallTerminal::new(id.clone()))
}

/// The new output of a terminal; or its end in place of all, if something between was missed or it is too much.
fn output(id: &TerminalId, shown: u64, part: &OutputPart) -> SessionUpdate {
    if part.start == shown && part.text.len() <= CHUNK {
        let data = base64::encode(part.text.as_bytes());
        return SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new(id.clone(), data));
    }
    let data = base64::encode(last(&part.text, CHUNK).as_bytes());
    let update = TerminalUpdate::new(id.clone()).output(TerminalOutput::new(data));
    SessionUpdate::TerminalUpdate(update.into())
}

fn last(text: &str, length: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(length))..]
}
