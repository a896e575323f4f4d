//! What the time of messages tells: who was quiet for how long, and what may have crossed on the wire.

use std::time::Duration;

use super::{Body, ENOUGH_TIME, Exchange, MessageIndex, other};
use crate::record::{Entry, Event, Side};

/// No message is longer under way. One that comes later was sent by somebody who had seen what was sent to him before.
const LONGEST_TRIP: Duration = Duration::from_secs(1);

impl Exchange<'_> {
    /// When a message was sent or came, counted from the beginning of the record.
    pub fn time_of(&self, message: MessageIndex) -> Duration {
        let entry = self.messages.get(message).and_then(|message| self.entries.get(message.entry));
        entry.map_or(Duration::ZERO, |entry| entry.at)
    }

    /// Whether `later` may have been sent by somebody who had not seen `earlier` of the other side yet. That is not so if much time
    /// lies between them, if he answered something that was asked after `earlier`, or if he had been quiet before `earlier` for so
    /// long that it would be a coincidence.
    pub fn may_have_crossed(&self, earlier: MessageIndex, later: MessageIndex) -> bool {
        let Some(sender) = self.messages.get(later).map(|message| message.from) else { return true };
        self.is_soon(earlier, later)
            && !self.has_seen(sender, earlier, later)
            && !self.was_quiet_before(sender, earlier)
    }

    /// Whether a message came so soon after another that its sender may not have had that one yet.
    pub fn is_soon(&self, earlier: MessageIndex, later: MessageIndex) -> bool {
        self.time_of(later).saturating_sub(self.time_of(earlier)) < LONGEST_TRIP
    }

    /// Whether a side answered, up to a message of its own, something that was asked after `earlier`.
    fn has_seen(&self, side: Side, earlier: MessageIndex, until: MessageIndex) -> bool {
        let asked_since = self.calls.partition_point(|call| call.at < earlier);
        let asked = self.calls[asked_since..].iter().take_while(|call| call.at < until);
        asked.filter(|call| call.from == other(side)).any(|call| call.answered_at().is_some_and(|at| at <= until))
    }

    /// Whether a side had said nothing for a while when a message was sent to it, and whoever recorded it waited.
    fn was_quiet_before(&self, side: Side, message: MessageIndex) -> bool {
        let Some(end) = self.messages.get(message).map(|message| message.entry) else { return false };
        let before = self.entries[..end].iter().rev();
        let quiet = before.take_while(|entry| !matches!(&entry.event, Event::Frame { from, .. } if *from == side));
        quiet.into_iter().any(|entry| matches!(entry.event, Event::Waited { time } if time >= ENOUGH_TIME))
    }

    /// For how long whoever recorded it waited for a side after its last message; zero if it said something after the last wait. What
    /// comes after the other side closed its end does not count: nothing is owed to who has gone.
    pub fn quiet_at_the_end(&self, side: Side) -> Duration {
        let rest = self.entries[..self.closed_at(other(side)).unwrap_or(self.entries.len())].iter().rev();
        let rest = rest.take_while(|entry| !matches!(&entry.event, Event::Frame { from, .. } if *from == side));
        waited(rest)
    }

    /// For how long whoever recorded it waited for a side after a message, until the side said something or the recording ended.
    pub fn quiet_after(&self, side: Side, message: MessageIndex) -> Duration {
        let Some(start) = self.messages.get(message).map(|message| message.entry + 1) else { return Duration::ZERO };
        let rest = self.entries[start..].iter();
        let rest = rest.take_while(|entry| !matches!(&entry.event, Event::Frame { from, .. } if *from == side));
        waited(rest)
    }

    /// The session that a request or notification is about.
    pub fn session_of(&self, message: MessageIndex) -> Option<&str> {
        match &self.messages.get(message)?.body {
            Body::Request { params, .. } | Body::Notification { params, .. } => params["sessionId"].as_str(),
            _ => None,
        }
    }
}

/// For how long whoever recorded it waited in all.
fn waited<'a>(entries: impl Iterator<Item = &'a Entry>) -> Duration {
    let waits = entries.filter_map(|entry| if let Event::Waited { time } = entry.event { Some(time) } else { None });
    waits.fold(Duration::ZERO, Duration::saturating_add)
}
