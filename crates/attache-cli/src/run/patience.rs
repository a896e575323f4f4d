//! How long an agent may be silent, in time that this process was awake.

use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often it is looked at the most seldom.
const SELDOM: Duration = Duration::from_secs(1);

/// And the most often.
const OFTEN: Duration = Duration::from_millis(20);

/// Counts how long nothing was heard of an agent.
///
/// It counts ticks. One that comes much too late tells that this process was stopped, or the machine asleep, and counts
/// as one all the same: the agent may have been awake for no longer than we were.
pub(super) struct Patience {
    limit: Option<Duration>,
    period: Duration,
    tick: Interval,
    last: Instant,
    /// How long nothing was heard, for people.
    silent: Duration,
    /// How much of that the agent has to answer for.
    counted: Duration,
}

impl Patience {
    /// Begins to count. Without a limit it never ends.
    pub(super) fn new(limit: Option<Duration>) -> Self {
        let period = limit.map_or(SELDOM, |limit| (limit / 10).clamp(OFTEN, SELDOM));
        let mut tick = interval(period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Patience { limit, period, tick, last: Instant::now(), silent: Duration::ZERO, counted: Duration::ZERO }
    }

    /// The agent was heard.
    pub(super) fn heard(&mut self) {
        (self.silent, self.counted) = (Duration::ZERO, Duration::ZERO);
        self.last = Instant::now();
    }

    /// It was not, and had no reason to say anything.
    pub(super) fn excuse(&mut self) {
        self.counted = Duration::ZERO;
    }

    /// For how long it was not.
    pub(super) fn silent(&self) -> Duration {
        self.silent
    }

    /// Waits for the next look. It can be cancelled.
    pub(super) async fn tick(&mut self) {
        self.tick.tick().await;
        self.count(Instant::now());
    }

    fn count(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.last).min(2 * self.period);
        self.silent += passed;
        self.counted += passed;
        self.last = now;
    }

    /// Whether it was silent for too long.
    pub(super) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.counted >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn time_that_this_process_was_stopped_is_no_silence() {
        let mut patience = Patience::new(Some(Duration::from_secs(3)));
        let began = patience.last;
        let at = |ms| began + Duration::from_millis(ms);
        patience.count(at(300));
        patience.count(at(600));
        assert_eq!(patience.silent(), Duration::from_millis(600));
        // An hour with the lid closed.
        patience.count(at(3_600_600));
        assert_eq!(patience.silent(), Duration::from_millis(1200));
        assert!(!patience.is_over());
        for tick in 1..=6 {
            patience.count(at(3_600_600 + tick * 300));
        }
        assert!(patience.is_over());
        patience.heard();
        assert!(!patience.is_over());
    }
}
