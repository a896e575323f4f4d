//! Events: what follows from a message of the peer.

use std::borrow::Cow;

use super::Violation;
use crate::model::error::ErrorObject;
use crate::model::request::RequestId;

/// A request of the peer, which has to be answered exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call(pub(super) u64);

/// A request of ours that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestKey(pub(super) i64);

impl RequestKey {
    /// The id that the request carries, for messages that refer to it.
    pub fn id(self) -> RequestId {
        RequestId::Number(self.0)
    }
}

/// What follows from a message of the peer.
#[derive(Debug, PartialEq)]
pub enum Event<'a, W> {
    /// A request. Answer it with [`Peer::answer`](super::Peer::answer) or [`Peer::refuse`](super::Peer::refuse).
    Call {
        /// The call to answer.
        call: Call,
        /// The method.
        method: Cow<'a, str>,
        /// The params, an object or an array, if there are any.
        params: Option<&'a str>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The params, an object or an array, if there are any.
        params: Option<&'a str>,
    },
    /// The answer to a request of ours.
    Answer {
        /// What was passed to [`Peer::request`](super::Peer::request).
        waiter: W,
        /// The text of the result, or why there is none.
        outcome: Result<&'a str, AnswerError>,
    },
    /// The peer no longer needs the result of this call, which still has to be answered.
    Cancel(Call),
    /// The peer broke a rule. If that calls for an answer, it has been written.
    Violation(Violation),
}

/// Why a request of ours has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerError {
    /// The peer answered with an error.
    Refused(ErrorObject),
    /// The peer's answer broke this rule and could not be read.
    Unreadable(Violation),
}

impl From<AnswerError> for ErrorObject {
    /// The error for whoever the request was made for, when that is another peer.
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Refused(error) => error,
            AnswerError::Unreadable(violation) => ErrorObject::internal(violation.rule()),
        }
    }
}

/// What followed from one frame, in order.
#[derive(Debug)]
pub struct Events<'a, W> {
    first: Option<Event<'a, W>>,
    rest: std::vec::IntoIter<Event<'a, W>>,
}

impl<'a, W> Iterator for Events<'a, W> {
    type Item = Event<'a, W>;

    fn next(&mut self) -> Option<Event<'a, W>> {
        self.first.take().or_else(|| self.rest.next())
    }
}

/// Collects events; the usual single one needs no allocation.
pub(super) struct Collector<'a, W> {
    first: Option<Event<'a, W>>,
    rest: Vec<Event<'a, W>>,
}

impl<'a, W> Collector<'a, W> {
    pub(super) fn new() -> Self {
        Collector { first: None, rest: Vec::new() }
    }

    pub(super) fn push(&mut self, event: Event<'a, W>) {
        if self.first.is_none() { self.first = Some(event) } else { self.rest.push(event) }
    }

    pub(super) fn finish(self) -> Events<'a, W> {
        Events { first: self.first, rest: self.rest.into_iter() }
    }
}
