//! How whoever does something for a peer hears that it is no longer wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Says whether something was cancelled. Clones share one state.
///
/// ```
/// # async fn example(token: attache::CancelToken) {
/// tokio::select! {
///     () = token.cancelled() => println!("nobody wants it any more"),
///     () = tokio::time::sleep(std::time::Duration::from_secs(60)) => println!("done"),
/// }
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    raised: AtomicBool,
    notify: Notify,
}

impl CancelToken {
    pub(crate) fn cancel(&self) {
        self.0.raised.store(true, Ordering::Release);
        self.0.notify.notify_waiters();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    /// Waits until it is cancelled.
    pub async fn cancelled(&self) {
        let notified = self.0.notify.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}
