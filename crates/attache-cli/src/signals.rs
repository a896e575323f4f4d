//! Signals that ask us to stop.

#[cfg(unix)]
#[path = "signals/unix.rs"]
mod sys;
#[cfg(windows)]
#[path = "signals/windows.rs"]
mod sys;

pub(crate) use sys::{Pauses, Signals};

/// A wish that we stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or a terminal that went away.
    Terminate,
}
