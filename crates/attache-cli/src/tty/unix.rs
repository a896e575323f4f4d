//! The terminal as Unix has it: a file of its own, whatever stdin and stdout are.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use tokio::io::unix::AsyncFd;

use super::LONGEST_LINE;

/// The terminal, opened for reading and for writing, for a program that has it for a while.
pub(crate) fn open_ends() -> io::Result<(File, File)> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    Ok((terminal.try_clone()?, terminal))
}

pub(super) struct Terminal {
    file: AsyncFd<File>,
}

impl Terminal {
    pub(super) fn open() -> io::Result<Self> {
        // An opening of our own, so that no other program's reads become non-blocking with ours.
        let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/tty")?;
        // SAFETY: a `File` keeps to the one descriptor that it owns.
        Ok(Terminal { file: unsafe { AsyncFd::register(file) }? })
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> Option<(u16, u16)> {
        // SAFETY: all zeros is a valid `winsize`.
        let mut size: libc::winsize = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open as long as `self`; `size` lives through the call.
        let asked = unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
        (asked == 0 && size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
    }

    pub(super) fn forget_input(&self) {
        // SAFETY: the descriptor is open as long as `self`.
        unsafe { libc::tcflush(self.file.as_raw_fd(), libc::TCIFLUSH) };
    }

    /// Waits for a line. `None` at the end of input.
    pub(super) async fn line(&self) -> io::Result<Option<String>> {
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

    pub(super) async fn write(&self, text: &str) -> io::Result<()> {
        let mut bytes = text.as_bytes();
        while !bytes.is_empty() {
            let mut ready = self.file.writable().await?;
            if let Ok(length) = ready.try_io(|file| file.get_ref().write(bytes)) {
                bytes = &bytes[length?..];
            }
        }
        Ok(())
    }

    pub(super) fn hide(&self) -> io::Result<Hidden> {
        Hidden::begin(self.file.get_ref())
    }
}

/// A terminal that does not show what is typed, until this is dropped.
pub(super) struct Hidden {
    terminal: File,
    before: libc::termios,
}

impl Hidden {
    fn begin(terminal: &File) -> io::Result<Self> {
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
        Ok(Hidden { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open as long as `self`.
        unsafe { libc::tcsetattr(self.terminal.as_raw_fd(), libc::TCSANOW, &self.before) };
    }
}
