//! A flag that is raised once: how a turn, a job or a tool call hears that it is cancelled.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Says once and for all that something is cancelled.
#[derive(Debug, Default)]
pub(crate) struct Flag {
    raised: AtomicBool,
    notify: Notify,
}

impl Flag {
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    pub(crate) async fn raised(&self) {
        let notified = self.notify.notified();
        if !self.is_raised() {
            notified.await;
        }
    }
}
