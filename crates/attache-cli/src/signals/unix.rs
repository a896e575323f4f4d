//! Signals as Unix has them.

use std::io;

use tokio::signal::unix::{self, SignalKind};

use super::Signal;

/// The signals that ask us to stop, as they come.
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// None where whoever started us does not want us to end with the terminal, as `nohup` does.
    hangup: Option<unix::Signal>,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let signals = Signals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: if is_hangup_ignored() { None } else { Some(unix::signal(SignalKind::hangup())?) },
        };
        // The runtime installs its handlers only once.
        super::restored::listen_again();
        Ok(signals)
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

/// Wishes that we pause until the shell lets us go on, as Ctrl-Z is one.
pub(crate) struct Pauses(unix::Signal);

impl Pauses {
    pub(crate) fn new() -> io::Result<Self> {
        unix::signal(SignalKind::from_raw(libc::SIGTSTP)).map(Pauses)
    }

    /// The next one. It can be cancelled.
    pub(crate) async fn next(&mut self) {
        let _ = self.0.recv().await;
    }
}
