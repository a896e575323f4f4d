//! The person's terminal, wherever stdin and stdout lead.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::unix::AsyncFd;

use crate::exit::Failure;

/// The longest line that is taken for an answer.
const LONGEST_LINE: usize = 4096;

/// More than any key or token has.
const LONGEST_SECRET: u64 = 64 << 10;

/// How long nothing that is typed is an answer, when a question takes the place of another.
const SWAP_GRACE: Duration = Duration::from_secs(1);

/// The terminal. Reading from it does not block the program.
pub(crate) struct Tty {
    file: AsyncFd<File>,
    /// Whether a question stands that has no answer. If the next one finds it so, it was withdrawn.
    is_open: AtomicBool,
}

impl Tty {
    /// Opens it, if there is one.
    pub(crate) fn open() -> io::Result<Self> {
        // An opening of our own, so that no other program's reads become non-blocking with ours.
        let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/tty")?;
        // SAFETY: a `File` keeps to the one descriptor that it owns.
        Ok(Tty { file: unsafe { AsyncFd::register(file) }?, is_open: AtomicBool::new(false) })
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
        self.size().map_or(80, |size| size.ws_col.into())
    }

    /// How many rows it has; 24 if it does not say.
    pub(crate) fn rows(&self) -> usize {
        self.size().map_or(24, |size| size.ws_row.into())
    }

    fn size(&self) -> Option<libc::winsize> {
        // SAFETY: all zeros is a valid `winsize`.
        let mut size: libc::winsize = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open as long as `self`; `size` lives through the call.
        let asked = unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
        (asked == 0 && size.ws_col > 0 && size.ws_row > 0).then_some(size)
    }

    /// Shows a text.
    pub(crate) async fn show(&self, text: &str) -> io::Result<()> {
        self.write(text).await
    }

    /// Shows a text and waits for a line that is typed from then on. `None` at the end of input.
    pub(crate) async fn ask(&self, text: &str) -> io::Result<Option<String>> {
        let was_withdrawn = self.is_open.swap(true, Ordering::Relaxed);
        if was_withdrawn {
            self.write("\n(the question above is withdrawn)\n").await?;
        }
        // What was typed before the question was seen is no answer to it.
        self.forget_input();
        self.write(text).await?;
        if was_withdrawn {
            // Whoever was about to answer the other one has a moment to see that this is not it.
            tokio::time::sleep(SWAP_GRACE).await;
            self.forget_input();
        }
        let line = self.line().await;
        self.is_open.store(false, Ordering::Relaxed);
        line
    }

    fn forget_input(&self) {
        // SAFETY: the descriptor is open as long as `self`.
        unsafe { libc::tcflush(self.file.as_raw_fd(), libc::TCIFLUSH) };
    }

    async fn line(&self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let mut buffer = [0; 512];
            let mut ready = self.file.readable().await?;
            match ready.try_io(|file| file.get_ref().read(&mut buffer)) {
                Ok(Ok(0)) => return Ok(None),
                Ok(length) => line.extend_from_slice(&buffer[..length?]),
                Err(_would_block) => {}
            }
            if line.ends_with(b"\n") {
                return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()));
            }
            line.truncate(LONGEST_LINE);
        }
    }

    /// The same for what nobody is to see: the terminal does not show what is typed.
    pub(crate) async fn ask_hidden(&self, text: &str) -> io::Result<Option<String>> {
        let shown = Shown::hide(self.file.get_ref())?;
        let line = self.ask(text).await;
        drop(shown);
        self.write("\n").await?;
        line
    }

    async fn write(&self, text: &str) -> io::Result<()> {
        let mut bytes = text.as_bytes();
        while !bytes.is_empty() {
            let mut ready = self.file.writable().await?;
            if let Ok(length) = ready.try_io(|file| file.get_ref().write(bytes)) {
                bytes = &bytes[length?..];
            }
        }
        Ok(())
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

/// A terminal that does not show what is typed, until this is dropped.
struct Shown {
    terminal: File,
    before: libc::termios,
}

impl Shown {
    fn hide(terminal: &File) -> io::Result<Self> {
        let terminal = terminal.try_clone()?;
        // SAFETY: all zeros is a valid `termios`, and the descriptor is open.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: as above; `before` lives through the call.
        if unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut hidden = before;
        hidden.c_lflag &= !libc::ECHO;
        // SAFETY: the descriptor is open, and `hidden` lives through the call.
        if unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &hidden) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Shown { terminal, before })
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open as long as `self`.
        unsafe { libc::tcsetattr(self.terminal.as_raw_fd(), libc::TCSANOW, &self.before) };
    }
}
