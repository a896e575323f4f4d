//! The program's own stdin and stdout as the wire of an agent.
//!
//! "Stdout is the wire": the real stdin and stdout are taken away from fd 0 and fd 1, so that neither a `println!`
//! nor a child process can read or write a byte of the conversation.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::io::{AsyncRead, AsyncWrite};

/// What the peer sends us.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// What we send the peer.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes stdin and stdout, once, in a tokio runtime with IO enabled.
///
/// On Unix fd 0 reads from `/dev/null` and fd 1 writes to stderr from then on; on Windows so do the standard handles. Elsewhere
/// they stay as they are, and it is up to the program not to print. Dropping the writer closes stdout, where it is a pipe or
/// a socket.
pub fn take() -> io::Result<(Reader, Writer)> {
    crate::error::check_runtime().map_err(io::Error::other)?;
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "stdin and stdout are already taken"));
    }
    sys::take()
}

#[cfg(not(any(unix, windows)))]
mod sys {
    use super::*;

    pub(super) fn take() -> io::Result<(Reader, Writer)> {
        Ok((Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())))
    }
}

#[cfg(any(unix, windows))]
mod blocking;
#[cfg(unix)]
#[path = "stdio/sys_unix.rs"]
mod sys;
#[cfg(windows)]
#[path = "stdio/sys_windows.rs"]
mod sys;
#[cfg(all(test, unix))]
mod tests;
