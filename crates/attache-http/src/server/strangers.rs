//! Connections over which nobody has shown a token yet: few, and not for long, so that they take no room from clients.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The connections of strangers, the oldest first.
#[derive(Debug)]
pub(super) struct Strangers {
    waiting: Mutex<VecDeque<Arc<Stranger>>>,
    most: usize,
    patience: Duration,
}

/// A connection that may still turn out to be a client's.
#[derive(Debug, Default)]
pub(super) struct Stranger {
    is_known: AtomicBool,
    changed: Notify,
    is_sent_away: AtomicBool,
}

/// A connection's place among them, given back when this is dropped.
pub(super) struct Place {
    strangers: Arc<Strangers>,
    pub(super) stranger: Arc<Stranger>,
}

impl Strangers {
    pub(super) fn new(most: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Strangers { waiting: Mutex::default(), most: most.max(1), patience })
    }

    /// A place for one more. Where there are too many, the one that has been there for longest has had its time.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let stranger = Arc::new(Stranger::default());
        let waiting = &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that became clients have left by themselves.
        if waiting.len() >= self.most
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.is_sent_away.store(true, Ordering::Release);
            oldest.changed.notify_one();
        }
        waiting.push_back(stranger.clone());
        Place { strangers: self.clone(), stranger }
    }

    fn leave(&self, stranger: &Arc<Stranger>) {
        let waiting = &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|other| !Arc::ptr_eq(other, stranger));
    }
}

impl Stranger {
    /// Somebody has shown a token.
    pub(super) fn is_a_client(&self) {
        if !self.is_known.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        }
    }
}

impl Place {
    /// Waits until the connection has to go: its time is over, or others need the place. For ever once it is a client's.
    pub(super) async fn over(self) {
        let changed = async {
            loop {
                if self.stranger.is_sent_away.load(Ordering::Acquire) || self.stranger.is_known.load(Ordering::Acquire)
                {
                    return;
                }
                self.stranger.changed.notified().await;
            }
        };
        // Whether it was the time or a change is told by what it is now.
        let _ = tokio::time::timeout(self.strangers.patience, changed).await;
        if self.stranger.is_known.load(Ordering::Acquire) && !self.stranger.is_sent_away.load(Ordering::Acquire) {
            drop(self);
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.leave(&self.stranger);
    }
}
