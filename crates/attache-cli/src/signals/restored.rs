//! Signals that do again what they did before, when nobody listens to them any more.

use std::sync::{Mutex, PoisonError};

/// What the signals did before somebody listened to them. It is put back when this is dropped: the handlers that listen stay
/// behind otherwise, and swallow the signals.
pub(crate) struct Restored([libc::sigaction; 3]);

/// The signals that are restored.
const RESTORED: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The handlers that listen, once they were taken away: they are installed only once.
static LISTENING: Mutex<Option<[libc::sigaction; 3]>> = Mutex::new(None);

impl Restored {
    /// Notes what the signals do now.
    pub(crate) fn note() -> Self {
        Restored(RESTORED.map(action))
    }
}

/// Has the signals go to those who listen again, if they were taken away from them.
pub(super) fn listen_again() {
    if let Some(handlers) = LISTENING.lock().unwrap_or_else(PoisonError::into_inner).take() {
        RESTORED.iter().zip(&handlers).for_each(|(signal, handler)| set_action(*signal, handler));
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        *LISTENING.lock().unwrap_or_else(PoisonError::into_inner) = Some(RESTORED.map(action));
        RESTORED.iter().zip(&self.0).for_each(|(signal, before)| set_action(*signal, before));
    }
}

fn action(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid `sigaction`; without a new action the call only writes the old one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action
    }
}

fn set_action(signal: libc::c_int, action: &libc::sigaction) {
    // SAFETY: the action is one that was in force before, so its handler is still there.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::super::{Signal, Signals};
    use super::*;

    #[test]
    fn signals_do_again_what_they_did_before_somebody_listened() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handlers = || RESTORED.map(|signal| action(signal).sa_sigaction);
        let before = handlers();
        for _ in 0..2 {
            runtime.block_on(async {
                let _restored = Restored::note();
                let mut signals = Signals::new().unwrap();
                assert_ne!(handlers(), before);
                // SAFETY: sends a signal to this process, which listens.
                unsafe { libc::raise(libc::SIGINT) };
                assert_eq!(signals.next().await, Signal::Interrupt);
            });
            assert_eq!(handlers(), before);
        }
        // Whoever listens without giving the signals back does so also after somebody who did.
        runtime.block_on(async {
            let mut signals = Signals::new().unwrap();
            assert_ne!(handlers(), before);
            // SAFETY: sends a signal to this process, which listens.
            unsafe { libc::raise(libc::SIGTERM) };
            assert_eq!(signals.next().await, Signal::Terminate);
        });
    }
}
