//! Counts of what clients did, for tests that wait for it.

use std::time::Duration;

use tokio::sync::watch;

/// How long something that is waited for may take: far longer than it should, so that only a hang fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many requests there were, and how many clients left before they had the whole answer.
#[derive(Debug, Default)]
pub(crate) struct Tally(watch::Sender<Counts>);

#[derive(Debug, Default)]
struct Counts {
    requests: usize,
    closed: usize,
}

impl Tally {
    pub(crate) fn count_request(&self) {
        self.0.send_modify(|counts| counts.requests += 1);
    }

    pub(crate) fn count_closed(&self) {
        self.0.send_modify(|counts| counts.closed += 1);
    }

    pub(crate) fn closed(&self) -> usize {
        self.0.borrow().closed
    }

    /// Waits until there were so many requests in all, and panics if that takes too long.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        self.wait(&format!("{count} requests"), |counts| counts.requests >= count).await;
    }

    /// Waits until so many clients in all have left, and panics if that takes too long.
    pub(crate) async fn wait_for_closed(&self, count: usize) {
        self.wait(&format!("{count} clients that leave"), |counts| counts.closed >= count).await;
    }

    async fn wait(&self, what: &str, is_there: impl FnMut(&Counts) -> bool) {
        let mut counts = self.0.subscribe();
        let waited = tokio::time::timeout(PATIENCE, counts.wait_for(is_there)).await;
        drop(waited.unwrap_or_else(|_| panic!("waited in vain for {what}: {:?}", self.0.borrow())));
    }
}
