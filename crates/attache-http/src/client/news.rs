//! What a client is told of its connection, besides the messages.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Something happened to a connection that goes on, or is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkNews {
    /// It is lost, and is tried to be taken up again.
    Lost,
    /// It is back, and nothing was lost.
    Back,
    /// The server is being stopped: turns that run end, and the connection with them.
    Stopping,
}

/// Whom the news are told, and what was told last.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Inner>);

#[derive(Default)]
struct Inner {
    hear: Option<Box<dyn Fn(LinkNews) + Send + Sync>>,
    is_lost: AtomicBool,
    is_stopping: AtomicBool,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Told")
    }
}

impl Told {
    pub(super) fn new(hear: impl Fn(LinkNews) + Send + Sync + 'static) -> Self {
        Told(Arc::new(Inner { hear: Some(Box::new(hear)), ..Inner::default() }))
    }

    fn tell(&self, news: LinkNews) {
        if let Some(hear) = &self.0.hear {
            hear(news);
        }
    }

    /// A try to take the connection up again has failed.
    pub(super) fn lost(&self) {
        if !self.0.is_lost.swap(true, Ordering::Relaxed) {
            self.tell(LinkNews::Lost);
        }
    }

    /// The server has answered.
    pub(super) fn back(&self) {
        if self.0.is_lost.load(Ordering::Relaxed) && self.0.is_lost.swap(false, Ordering::Relaxed) {
            self.tell(LinkNews::Back);
        }
    }

    /// The server has said that it stops.
    pub(super) fn stopping(&self) {
        if !self.0.is_stopping.swap(true, Ordering::Relaxed) {
            self.tell(LinkNews::Stopping);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.0.is_stopping.load(Ordering::Relaxed)
    }
}
