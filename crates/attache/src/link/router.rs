//! What a side of a connection has to do, and what it may do meanwhile.

use attache_proto::json::DecodeError;
use attache_proto::method::Method;
use attache_proto::model::error::ErrorObject;
use attache_proto::rpc::{Call, Peer, Side, Violation};
use attache_proto::{Dialect, Encode};

use super::answer::AnswerSender;
use crate::{Closed, Error, Limits, Report};

/// What one side does with what arrives.
///
/// What is read is decoded without the state, by [`decode`](Self::decode). The rest is called with the state locked: it
/// must be quick and must not block.
pub(crate) trait Router: Send + Sized + 'static {
    const SIDE: Side;
    /// What has to be known to decode.
    type Decoder: Send + Sync;
    /// A request or notification, decoded.
    type Message<'a>;
    /// What comes back with an answer that does not go to a waiting call.
    type Ticket: Send;
    /// Such an answer, decoded.
    type Answer;

    fn decode<'a>(decoder: &Self::Decoder, dialect: Dialect, arriving: Arriving<'_, 'a>) -> Self::Message<'a>;
    fn decode_answer(ticket: &Self::Ticket, dialect: Dialect, outcome: Result<&str, Error>) -> Self::Answer;

    fn call(&mut self, port: &mut Port<'_, Self>, call: Call, message: Self::Message<'_>, size: usize);
    fn notification(&mut self, port: &mut Port<'_, Self>, message: Self::Message<'_>, size: usize);
    fn answer(&mut self, port: &mut Port<'_, Self>, ticket: Self::Ticket, answer: Self::Answer, size: usize);
    fn cancel(&mut self, port: &mut Port<'_, Self>, call: Call);
    fn closed(&mut self, reason: &Closed);
    /// Whether more waits to be taken than the limits allow.
    fn is_over(&self) -> bool;
    /// Whether somebody waits for the next thing to arrive, with nothing there for them.
    fn is_awaited(&self) -> bool;
    /// Fails what is too far over the limits, so that those who wait get what they wait for.
    fn shed(&mut self, port: &mut Port<'_, Self>);
    /// There is room in the outbox again, or a call that was in hand is answered.
    fn room(&mut self);
}

/// A request or notification that has arrived.
pub(crate) struct Arriving<'m, 'a> {
    pub(crate) method: &'m str,
    pub(crate) params: Option<&'a str>,
    pub(crate) is_request: bool,
}

/// Who waits for an answer.
pub(crate) enum Waiter<T> {
    /// A call, somewhere in user code.
    Call(AnswerSender),
    /// The router.
    Ticket(T),
}

/// What a router may do while it handles something.
pub(crate) struct Port<'a, R: Router> {
    pub(crate) peer: &'a mut Peer<Waiter<R::Ticket>>,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) limits: &'a Limits,
    pub(super) reports: &'a mut Vec<Report>,
    /// Bytes that are with the writer.
    pub(super) writing: usize,
    pub(super) is_closed: bool,
    pub(super) is_crowded: &'a mut bool,
}

impl<R: Router> Port<'_, R> {
    pub(crate) fn dialect(&self) -> Dialect {
        self.peer.dialect().unwrap_or(Dialect::V1)
    }

    /// Whether senders have to wait for room in the outbox.
    pub(crate) fn is_full(&self) -> bool {
        !self.is_closed && self.out.len() + self.writing >= self.limits.outbox
    }

    /// Notes that somebody waits for room: [`Router::room`] is called when there is some.
    pub(crate) fn wait_for_room(&mut self) {
        *self.is_crowded = true;
    }

    pub(crate) fn violation(&mut self, violation: Violation) {
        self.reports.push(Report::Violation(violation));
    }

    pub(crate) fn lost(&mut self, what: &'static str) {
        self.reports.push(Report::Lost(what));
    }

    pub(crate) fn answer(&mut self, call: Call, result: &impl Encode) {
        self.peer.answer(call, |writer| result.encode(writer), self.out);
    }

    pub(crate) fn refuse(&mut self, call: Call, error: &ErrorObject) {
        self.peer.refuse(call, error, self.out);
    }

    /// Reports what decoding ignored.
    pub(crate) fn tolerated(&mut self, method: Method, errors: Vec<DecodeError>) {
        let method = method_name(method, self.dialect());
        for error in errors {
            self.violation(Violation::Tolerated { method, error });
        }
    }

    /// Answers a call whose params are wrong.
    pub(crate) fn invalid_params(&mut self, call: Call, method: Method, error: DecodeError) {
        self.refuse(call, &ErrorObject::invalid_params(&error));
        let method = method_name(method, self.dialect());
        self.violation(Violation::InvalidParams { method, error });
    }
}

/// The name of a method in this dialect, or in another where this one has none.
pub(crate) fn method_name(method: Method, dialect: Dialect) -> &'static str {
    method
        .name(dialect)
        .or_else(|| method.name(Dialect::V1))
        .or_else(|| method.name(Dialect::V2))
        .unwrap_or("an unknown method")
}
