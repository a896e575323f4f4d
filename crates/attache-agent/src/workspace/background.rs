//! Work that blocks, on a thread of its own: it ends soon after nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::tools::Refusal;

/// How long a search may take. After that, what was found is better than what is still to be found.
const LONGEST: Duration = Duration::from_secs(10);

/// How much longer is waited for work that does not look at the time often enough.
const GRACE: Duration = Duration::from_secs(2);

/// Tells work that blocks when to end.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    is_raised: Arc<AtomicBool>,
    deadline: Instant,
}

impl Stop {
    pub(crate) fn after(duration: Duration) -> Self {
        Stop { is_raised: Arc::default(), deadline: Instant::now() + duration }
    }

    /// Whether nobody wants the result any more, or the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

/// Ends the work with the future that waits for it.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something short that blocks.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let result = crate::spawn_blocking(work).await;
    result.map_err(|_| Refusal("an internal error: the file system's thread has ended".into()))
}

/// Does something that blocks and may be long. It has to look at [`Stop`] again and again.
pub(crate) async fn bounded<T: Send + 'static>(work: impl FnOnce(&Stop) -> T + Send + 'static) -> Result<T, Refusal> {
    let stop = Stop::after(LONGEST);
    let _guard = Guard(stop.is_raised.clone());
    match tokio::time::timeout(LONGEST + GRACE, blocking(move || work(&stop))).await {
        Ok(result) => result,
        Err(_) => Err(Refusal(format!("it took longer than {} seconds", LONGEST.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test]
    async fn work_ends_when_nobody_waits_for_it() {
        let (ended, end) = std::sync::mpsc::channel();
        let (started, start) = tokio::sync::oneshot::channel();
        let work = bounded(move |stop| {
            started.send(()).unwrap();
            while !stop.is_over() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
        });
        tokio::select! {
            biased;
            _ = start => {}
            _ = work => panic!("it does not end by itself"),
        }
        end.recv_timeout(Duration::from_secs(5)).unwrap();
    }
}
