//! Signals that ask us to stop.

use std::io;

use tokio::signal::unix::{self, SignalKind};

#[cfg(unix)]
mod restored;
#[cfg(unix)]
pub(crate) use restored::Restored;

/// A wish that we stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or a terminal that went away.
    Terminate,
}

/// The signals that ask us to stop, as they come.
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// None where whoever started us does not want us to end with the terminal, as `nohup` does.
    hangup: Option<unix::Signal>,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Signals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: if is_hangup_ignored() { None } else { Some(unix::signal(SignalKind::hangup())?) },
        })
    }

    /// The next one. It can be cancelled.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            () = received(&mut self.hangup) => Signal::Terminate,
        }
    }
}

async fn received(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether SIGHUP was ignored when we were started.
fn is_hangup_ignored() -> bool {
    // SAFETY: all zeros is a valid `sigaction`; without a new action the call only writes the old one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
