//! Whether a side goes on after something that could have upset it.

use super::Exchange;
use super::calls::Call;
use super::message::{Body, MessageIndex};
use crate::record::{Event, Side};

/// Requests whose answer may take as long as people and language models do.
const PATIENT: [&str; 9] = [
    "session/prompt",
    "session/request_permission",
    "elicitation/create",
    "terminal/wait_for_exit",
    "authenticate",
    "auth/login",
    "mcp/message",
    "proxy/initialize",
    "proxy/successor",
];

/// What is known of a side's life.
#[derive(Debug)]
pub struct Pulse {
    /// The last request that it answered, by where it was asked.
    served: Option<MessageIndex>,
    /// The last request that it left without an answer.
    ignored: Option<MessageIndex>,
    /// The last message that it sent without being asked.
    word: Option<MessageIndex>,
    /// Where it ended by itself: the messages before.
    ended: Option<MessageIndex>,
}

impl Pulse {
    /// Whether it went on after a message: yes if it answered something asked later, no if it ended or left that without an answer, and
    /// unknown if nobody asked.
    pub fn beats_after(&self, message: MessageIndex) -> Option<bool> {
        let is_later = |at: Option<MessageIndex>| at.is_some_and(|at| at > message);
        match () {
            () if is_later(self.served) => Some(true),
            () if is_later(self.ignored) => Some(false),
            () if is_later(self.ended) && !is_later(self.word) => Some(false),
            () => None,
        }
    }
}

impl Exchange<'_> {
    /// Whether a request was left without an answer, although there was time for one and it is of a kind that can be answered at once.
    /// Something that is meant as an answer is one here, and so is the refusal of the array that it came in.
    pub fn is_ignored(&self, call: &Call) -> bool {
        call.answers.is_empty()
            && call.botched.is_none()
            && !PATIENT.contains(&call.method.as_str())
            && self.had_time(call.to(), call.at)
            && self.batch_of(call.at).is_none_or(|batch| batch.refusal.is_none())
            && !self.strayed.contains(&call.at)
    }

    /// Whether a request of a session was begun before it was answered: something was asked for it. Its error may be that of what was
    /// asked then, handed on.
    pub fn was_begun(&self, call: &Call) -> bool {
        let Some((answered, session)) = call.answered_at().zip(call.session()) else { return false };
        let first = self.calls.partition_point(|asked| asked.at <= call.at);
        let asked = self.calls[first..].iter().take_while(|asked| asked.at < answered);
        asked.into_iter().any(|asked| asked.from == call.to() && asked.session() == Some(session))
    }

    /// What is known of a side's life.
    pub fn pulse(&self, side: Side) -> Pulse {
        let asked = |wanted: &dyn Fn(&Call) -> bool| {
            self.calls.iter().rev().find(|call| call.to() == side && wanted(call)).map(|call| call.at)
        };
        let is_word = |body: &Body| matches!(body, Body::Request { .. } | Body::Notification { .. });
        let ended =
            self.entries.iter().position(|entry| matches!(entry.event, Event::Closed { .. } | Event::Exited { .. }));
        // Who was left has every reason to end.
        let by_itself = ended.filter(|entry| self.entries[*entry].event != Event::Closed { from: super::other(side) });
        Pulse {
            served: asked(&|call| !call.answers.is_empty() || call.botched.is_some()),
            ignored: asked(&|call| self.is_ignored(call)),
            word: self.messages.iter().rposition(|message| message.from == side && is_word(&message.body)),
            ended: by_itself.map(|entry| self.messages.partition_point(|message| message.entry < entry)),
        }
    }
}
