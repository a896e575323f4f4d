//! The person's terminal, wherever stdin and stdout lead.

use std::io::{self, BufRead, IsTerminal, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::exit::Failure;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as sys;
#[cfg(windows)]
use windows as sys;

pub(crate) use sys::open_ends;

/// The longest line that is taken for an answer.
const LONGEST_LINE: usize = 4096;

/// More than any key or token has.
const LONGEST_SECRET: u64 = 64 << 10;

/// How long nothing that is typed is an answer, when a question takes the place of another.
const SWAP_GRACE: Duration = Duration::from_secs(1);

/// The terminal. Reading from it does not block the program.
pub(crate) struct Tty {
    terminal: sys::Terminal,
    /// Whether a question stands that has no answer. If the next one finds it so, it was withdrawn.
    is_open: AtomicBool,
}

impl Tty {
    /// Opens it, if there is one.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Tty { terminal: sys::Terminal::open()?, is_open: AtomicBool::new(false) })
    }

    /// Asks for a secret, or reads a line of stdin where that is no terminal.
    pub(crate) async fn read_secret(question: &str, what: &'static str) -> Result<String, Failure> {
        let failed = |error: io::Error| Failure::usage(format!("no {what} was read: {error}"));
        if io::stdin().is_terminal() {
            let typed = Tty::open().map_err(failed)?.ask_hidden(question).await.map_err(failed)?;
            return Ok(typed.unwrap_or_default());
        }
        // A pipe may have nothing to say for long, and Ctrl-C is to be heard meanwhile.
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().take(LONGEST_SECRET).read_line(&mut line).map(|_| line)
        });
        read.await.map_err(|_| Failure::usage(format!("no {what} was read")))?.map_err(failed)
    }

    /// How many columns it has; 80 if it does not say.
    pub(crate) fn columns(&self) -> usize {
        self.terminal.size().map_or(80, |(columns, _)| columns.into())
    }

    /// How many rows it has; 24 if it does not say.
    pub(crate) fn rows(&self) -> usize {
        self.terminal.size().map_or(24, |(_, rows)| rows.into())
    }

    /// Shows a text.
    pub(crate) async fn show(&self, text: &str) -> io::Result<()> {
        self.terminal.write(text).await
    }

    /// Shows a text and waits for a line that is typed from then on. `None` at the end of input.
    pub(crate) async fn ask(&self, text: &str) -> io::Result<Option<String>> {
        let was_withdrawn = self.is_open.swap(true, Ordering::Relaxed);
        if was_withdrawn {
            self.terminal.write("\n(the question above is withdrawn)\n").await?;
        }
        // What was typed before the question was seen is no answer to it.
        self.terminal.forget_input();
        self.terminal.write(text).await?;
        if was_withdrawn {
            // Whoever was about to answer the other one has a moment to see that this is not it.
            tokio::time::sleep(SWAP_GRACE).await;
            self.terminal.forget_input();
        }
        let line = self.terminal.line().await;
        self.is_open.store(false, Ordering::Relaxed);
        line
    }

    /// The same for what nobody is to see: the terminal does not show what is typed.
    pub(crate) async fn ask_hidden(&self, text: &str) -> io::Result<Option<String>> {
        let shown = self.terminal.hide()?;
        let line = self.ask(text).await;
        drop(shown);
        self.terminal.write("\n").await?;
        line
    }
}

/// Whether the person says yes. `--yes` says it beforehand; where nobody can be asked, it is an error that names it.
pub(crate) async fn confirm(question: &str, yes: bool) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    // Who is asked has to see the question.
    let tty = Tty::open().ok().filter(|_| io::stderr().is_terminal());
    let Some(tty) = tty else {
        return Err(Failure::usage("nobody is there to ask\nhint: `--yes` says yes, after you have looked at it"));
    };
    let answer = tty.ask(question).await.map_err(|error| Failure::usage(format!("cannot ask: {error}")))?;
    Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")))
}
