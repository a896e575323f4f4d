//! Signals that ask us to stop.

#[cfg(unix)]
#[path = "signals/unix.rs"]
mod sys;
#[cfg(windows)]
#[path = "signals/windows.rs"]
mod sys;

pub(crate) use sys::{Pauses, Signals};

#[cfg(unix)]
mod restored;

#[cfg(unix)]
pub(crate) use restored::Restored;
#[cfg(windows)]
pub(crate) use sys::Restored;

/// A wish that we stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or a terminal that went away.
    Terminate,
}
