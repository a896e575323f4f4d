//! A command as a user interface sees it.

use std::{path::Path, sync::Arc};

use attache::model::terminal::ExitStatus;
use tokio::sync::watch;

use super::run::{Shared, State};

/// A command to show: live, and also after its [`Run`](super::Run) is gone.
///
/// Nothing is queued. A view that is slow misses what was cut off meanwhile, and sees from the offset that it did.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), attache_host::commands::CommandError> {
/// use attache_host::commands::{Command, Invocation};
///
/// let run = Invocation::new(Command::Line("echo one; echo two".into()), "/").start(1 << 20, |command| command)?;
/// let mut view = run.view();
/// let (mut shown, mut text) = (0, String::new());
/// loop {
///     let part = view.output_since(shown);
///     shown = part.end();
///     text.push_str(&part.text);
///     if !view.changed().await {
///         break;
///     }
/// }
/// assert_eq!(text, "one\ntwo\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct View {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
}

/// A part of a command's output. Offsets count the bytes of all its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    /// Where the text begins: where it was asked for, or later if that is no longer kept.
    pub start: u64,
    /// The text.
    pub text: String,
}

impl OutputPart {
    /// Where the text ends, and the next part begins.
    pub fn end(&self) -> u64 {
        self.start + self.text.len() as u64
    }
}

impl View {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let state = shared.subscribe();
        Self { shared, state }
    }

    /// The command, as one would type it into a shell, harmless to show.
    pub fn command(&self) -> &str {
        &self.shared.command
    }

    /// The directory that the command was started in.
    pub fn cwd(&self) -> &Path {
        &self.shared.cwd
    }

    /// How the command ended, when it has.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.shared.exit_status()
    }

    /// The output from an offset on, or from the first byte after it that is kept.
    ///
    /// It is what the command wrote, escape sequences included.
    pub fn output_since(&self, offset: u64) -> OutputPart {
        let (start, text) = self.shared.output().since(offset);
        OutputPart { start, text }
    }

    /// Waits until there is more output, or the command has ended, since this was last called. False when nothing will
    /// change any more; what there is has been announced by then.
    pub async fn changed(&mut self) -> bool {
        let is_final = {
            let state = self.state.borrow();
            state.is_closed && !state.has_changed()
        };
        !is_final && self.state.changed().await.is_ok()
    }
}
