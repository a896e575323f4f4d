//! Whether there is a stdout at all.
//!
//! The standard library opens `/dev/null` for a descriptor that is closed when the program starts, so everything could be
//! written and nobody would ever know: `attache run … >&-` would have done well. So it is looked at before that.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The error of writing to a stdout that was closed when we were started.
pub(crate) fn check() -> io::Result<()> {
    match WAS_CLOSED.load(Relaxed) {
        #[cfg(unix)]
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        #[cfg(not(unix))]
        true => Err(io::ErrorKind::NotConnected.into()),
        false => Ok(()),
    }
}

#[cfg(target_os = "linux")]
extern "C" fn look() {
    // SAFETY: asks about a number.
    WAS_CLOSED.store(unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1, Relaxed);
}

/// The loader calls what is listed here before it starts the program.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section holds pointers to functions without arguments that return nothing.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
