//! What a message of the peer means for us.

use std::borrow::Cow;

use super::Violation;
use crate::model::{ErrorObject, RequestId};

/// A request of the peer that is owed exactly one answer.
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

/// What a message means for us.
#[derive(Debug, PartialEq)]
pub enum Event<'a, W> {
    /// The peer asks. Answer with [`Peer::answer`] or [`Peer::refuse`].
    Call {
        /// The debt.
        call: Call,
        /// What is asked.
        method: Cow<'a, str>,
        /// An object or array, when there is one.
        params: Option<&'a str>,
    },
    /// The peer tells.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// An object or array, when there is one.
        params: Option<&'a str>,
    },
    /// The peer has answered a request of ours.
    Answer {
        /// What was given to [`Peer::request`].
        waiter: W,
        /// The text of the result, or why there is none.
        outcome: Result<&'a str, AnswerError>,
    },
    /// The peer no longer needs the answer to this call. It is owed all the same.
    Cancel(Call),
    /// The peer broke a rule. What had to be answered is answered.
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
