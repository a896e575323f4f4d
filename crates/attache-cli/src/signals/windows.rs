//! What Windows has for signals: events of the console.

use std::io;

use tokio::signal::windows::{self, CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown};

use super::Signal;

/// The events that ask us to stop, as they come. After the last three the system ends us in a few seconds, whatever we do.
pub(crate) struct Signals {
    interrupt: CtrlC,
    stop: CtrlBreak,
    close: CtrlClose,
    log_off: CtrlLogoff,
    shut_down: CtrlShutdown,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Signals {
            interrupt: windows::ctrl_c()?,
            stop: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            log_off: windows::ctrl_logoff()?,
            shut_down: windows::ctrl_shutdown()?,
        })
    }

    /// The next one. It can be cancelled.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            // The one that another program can send: what SIGTERM is elsewhere.
            _ = self.stop.recv() => Signal::Terminate,
            _ = self.close.recv() => Signal::Terminate,
            _ = self.log_off.recv() => Signal::Terminate,
            _ = self.shut_down.recv() => Signal::Terminate,
        }
    }
}

/// Wishes that we pause. There are none: no shell of Windows would let us go on.
pub(crate) struct Pauses;

impl Pauses {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Pauses)
    }

    pub(crate) async fn next(&mut self) {
        std::future::pending().await
    }
}

/// Gives events back to whom they went to before. Nothing has to be given back here: the system ends programs that do not listen.
pub(crate) struct Restored;

impl Restored {
    pub(crate) fn note() -> Self {
        Restored
    }
}
