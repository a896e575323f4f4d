//! Asks a model again when it could not be reached, was too busy, or broke off in the middle of its answer. Nothing is done
//! for an answer before it is whole, so that it can begin anew.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::Instant;

use super::{ASK_LATER, Failure, Model, ModelError, ModelInfo, Piece, Reply, Request};

/// How often and how patiently a model is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How many attempts there are, the first included.
    pub attempts: u32,
    /// About how long the first wait is. Each further one is twice as long.
    pub first: Duration,
    /// How long a wait of our own gets at most.
    pub longest: Duration,
    /// How long a server may make us wait. Whoever wants more is taken to have failed.
    pub bearable: Duration,
    /// How long is waited at most, all attempts together: for the next one, for an answer that does not begin, and for one
    /// that does not go on. The first attempt has the time that its server is given.
    pub total: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            attempts: 5,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            bearable: Duration::from_secs(120),
            // Who sits before it goes for a coffee, and not for lunch.
            total: Duration::from_secs(240),
        }
    }
}

impl Patience {
    /// How long to wait before attempt number `attempt`, which is at least 2. `dice` spreads those who failed together:
    /// between half of the wait and all of it.
    fn pause(&self, attempt: u32, dice: u64) -> Duration {
        let doubled = self.first.saturating_mul(1u32.checked_shl(attempt.saturating_sub(2)).unwrap_or(u32::MAX));
        let whole = doubled.min(self.longest);
        let half = whole / 2;
        let spread = u64::try_from(half.as_millis()).unwrap_or(u64::MAX);
        half + Duration::from_millis(dice % spread.saturating_add(1))
    }
}

/// A model that is asked again.
pub struct Retry<M: ?Sized> {
    patience: Patience,
    model: Arc<M>,
}

impl<M: Model + ?Sized> Retry<M> {
    /// Wraps a model.
    pub fn new(model: Arc<M>, patience: Patience) -> Self {
        Retry { patience, model }
    }
}

impl<M: Model + ?Sized> Model for Retry<M> {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn ask(&self, request: Request) -> Reply {
        let asking = Asking {
            model: self.model.clone(),
            patience: self.patience,
            request,
            attempt: 1,
            reply: None,
            wait: None,
            waited: Duration::ZERO,
            silent_since: None,
            over: false,
        };
        stream::unfold(asking, Asking::next).boxed()
    }
}

struct Asking<M: ?Sized> {
    model: Arc<M>,
    patience: Patience,
    request: Request,
    attempt: u32,
    /// The answer of the attempt that runs.
    reply: Option<Reply>,
    /// What has to be waited before the next attempt.
    wait: Option<Duration>,
    /// How long was waited so far.
    waited: Duration,
    /// Since when the attempt that runs has said nothing. What is counted on the way says nothing.
    silent_since: Option<Instant>,
    over: bool,
}

impl<M: Model + ?Sized> Asking<M> {
    async fn next(mut self) -> Option<(Result<Piece, ModelError>, Self)> {
        if self.over {
            return None;
        }
        if let Some(wait) = self.wait.take() {
            tokio::time::sleep(wait).await;
        }
        let reply = match &mut self.reply {
            Some(reply) => reply,
            empty => {
                self.silent_since = Some(Instant::now());
                empty.insert(self.model.ask(self.request.clone()))
            }
        };
        let left = self.patience.total.saturating_sub(self.waited);
        // Whoever was told how much longer it takes at most is not kept waiting beyond that.
        let deadline = self.silent_since.filter(|_| self.attempt > 1).and_then(|since| since.checked_add(left));
        let next = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, reply.next()).await,
            None => Ok(reply.next().await),
        };
        let piece = match next {
            Ok(Some(Ok(piece))) => {
                if !matches!(piece, Piece::Usage(_)) {
                    self.silent_since = Some(Instant::now());
                }
                self.over = matches!(piece, Piece::End(_));
                Ok(piece)
            }
            Ok(Some(Err(error))) => self.failed(error),
            Ok(None) => self.failed(ModelError::new(Failure::Server, "the answer of the model was cut off")),
            Err(_) => {
                let message = format!("`{}` did not answer in time\n{ASK_LATER}", self.model.info().id());
                self.failed(ModelError::new(Failure::Server, message))
            }
        };
        Some((piece, self))
    }

    /// What follows from a failure: one more attempt, or the end.
    fn failed(&mut self, mut error: ModelError) -> Result<Piece, ModelError> {
        self.reply = None;
        self.waited += self.silent_since.take().map(|since| since.elapsed()).unwrap_or_default();
        if !error.kind.is_passing() || self.attempt >= self.patience.attempts {
            return self.give_up(error);
        }
        let own = self.patience.pause(self.attempt + 1, fastrand::u64(..));
        let after = error.retry_after.unwrap_or(own);
        let left = self.patience.total.saturating_sub(self.waited);
        if after > self.patience.bearable || after > left {
            if error.retry_after.is_some() {
                error.message.push_str(&format!("\nhint: it can be asked again in {}", in_words(after)));
            }
            return self.give_up(error);
        }
        self.attempt += 1;
        self.waited += after;
        self.wait = Some(after);
        let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
        Ok(Piece::Retrying { after, reason, attempt: self.attempt, of: self.patience.attempts, left })
    }

    fn give_up(&mut self, mut error: ModelError) -> Result<Piece, ModelError> {
        if error.kind.is_passing() && self.attempt > 1 {
            error.message = note(&error.message, &format!(" (after {} attempts)", self.attempt));
        }
        self.over = true;
        Err(error)
    }
}

/// Puts a note at the end of the first line, before any hint.
fn note(message: &str, note: &str) -> String {
    match message.split_once('\n') {
        Some((first, rest)) => format!("{first}{note}\n{rest}"),
        None => format!("{message}{note}"),
    }
}

/// A time for people: `45 seconds`, `3 minutes`, `2 hours`. Rounded up, so that it is never too early.
pub(crate) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let (count, unit) = match seconds {
        0..=119 => (seconds, "second"),
        120..=7199 => (seconds.div_ceil(60), "minute"),
        _ => (seconds.div_ceil(3600), "hour"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
