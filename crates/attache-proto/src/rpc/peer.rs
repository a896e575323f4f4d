//! One side of a conversation: what we asked, what we were asked, and what follows from each message.

use std::borrow::Cow;

use super::event::Collector;
use super::message_writer::{Batch, MessageWriter, Owed, Part, once, write_method, write_object};
use super::{Call, Envelope, Event, Events, Fault, Incoming, IntMap, RequestKey, Violation, parse};
use crate::Dialect;
use crate::codec::Encode;
use crate::frame::Framing;
use crate::json::Writer;
use crate::model::{CancelRequestNotification, ErrorObject, RequestId};

/// Which end of the conversation we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The agent: answers prompts.
    Agent,
    /// The client: sends prompts.
    Client,
}

/// One side of a conversation. Plain data: it is fed frames, and appends frames to a buffer.
///
/// `W` is whatever the owner wants back with the answer to a request.
#[derive(Debug)]
pub struct Peer<W> {
    side: Side,
    next_request: i64,
    waiting: IntMap<i64, W>,
    next_call: u64,
    next_batch: u64,
    accepts_batches: bool,
    strict: bool,
    writer: MessageWriter,
}

impl<W> Peer<W> {
    /// A conversation that has not begun.
    pub fn new(side: Side) -> Self {
        Peer {
            side,
            next_request: 0,
            waiting: IntMap::default(),
            next_call: 0,
            next_batch: 0,
            accepts_batches: true,
            strict: false,
            writer: MessageWriter {
                dialect: None,
                framing: Framing::Lines,
                owed: IntMap::default(),
                batches: IntMap::default(),
                lost: Vec::new(),
            },
        }
    }

    /// Chooses how frames are written.
    pub fn set_framing(&mut self, framing: Framing) {
        self.writer.framing = framing;
    }

    /// Whether arrays of messages are served (the default) or refused, as the newest peers do.
    pub fn set_accepts_batches(&mut self, accepts: bool) {
        self.accepts_batches = accepts;
    }

    /// Looks for deviations that cost time to find, such as an id that is used twice.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// The names of fields that were left out of what we wrote, because the dialect has no word for them.
    pub fn take_lost(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.writer.lost)
    }

    /// The dialect, once `initialize` has settled it.
    pub fn dialect(&self) -> Option<Dialect> {
        self.writer.dialect
    }

    /// Settles the dialect. Until then an agent refuses everything but `initialize`.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.writer.dialect = Some(dialect);
    }

    /// How many requests of the peer wait for our answer.
    pub fn owed(&self) -> usize {
        self.writer.owed.len()
    }

    /// How many requests of ours wait for an answer.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether this call still waits for our answer.
    pub fn is_owed(&self, call: Call) -> bool {
        self.writer.owed.contains_key(&call.0)
    }

    /// The id that the peer gave a call, for messages that refer to it.
    pub fn call_id(&self, call: Call) -> Option<&RequestId> {
        self.writer.owed.get(&call.0).map(|owed| &owed.id)
    }

    /// Parses one frame and handles what it holds, see [`Peer::handle`].
    pub fn handle_frame<'a>(&mut self, frame: &'a str, out: &mut Vec<u8>) -> Events<'a, W> {
        self.handle(parse(frame), out)
    }

    /// Handles one parsed frame. Replies that need no decision of the caller are appended to `out`.
    pub fn handle<'a>(&mut self, envelope: Envelope<'a>, out: &mut Vec<u8>) -> Events<'a, W> {
        let mut events = Collector { first: None, rest: Vec::new() };
        match envelope {
            Envelope::One(message) => self.handle_message(message, None, &mut events, out),
            Envelope::NotJson => {
                events.push(Event::Violation(Violation::NotJson));
                self.writer.write_error(&RequestId::Null, None, &ErrorObject::parse_error(), out);
            }
            Envelope::EmptyBatch => {
                self.refuse_message(Violation::EmptyBatch, &RequestId::Null, None, &mut events, out);
            }
            Envelope::HugeBatch => {
                self.refuse_message(Violation::HugeBatch, &RequestId::Null, None, &mut events, out);
            }
            Envelope::Batch(_) if !self.accepts_batches => {
                self.refuse_message(Violation::Batch, &RequestId::Null, None, &mut events, out);
            }
            Envelope::Batch(messages) => {
                if self.writer.dialect != Some(Dialect::V2Draft) {
                    events.push(Event::Violation(Violation::Batch));
                }
                let batch = self.next_batch;
                self.next_batch += 1;
                // The batch itself counts as open until all of it has been looked at.
                self.writer.batches.insert(batch, Batch { open: 1, answers: Vec::new() });
                for message in messages {
                    self.handle_message(message, Some(batch), &mut events, out);
                }
                self.writer.close_entry(batch, out);
            }
        }
        Events { first: events.first, rest: events.rest.into_iter() }
    }

    /// Takes note of bytes that could not be a message, and answers as the protocol says.
    pub fn handle_junk(&mut self, junk: crate::frame::Junk<'_>, out: &mut Vec<u8>) -> Violation {
        use crate::frame::Junk;
        let (violation, error) = match junk {
            Junk::NotUtf8(_) => (Violation::NotUtf8, ErrorObject::parse_error()),
            Junk::TooLong(_) => (Violation::TooLong, ErrorObject::invalid_request(Violation::TooLong.rule())),
        };
        self.writer.write_error(&RequestId::Null, None, &error, out);
        violation
    }

    /// Asks the peer; `params` writes the params. The waiter comes back with the answer.
    pub fn request(
        &mut self,
        method: &str,
        params: impl FnOnce(&mut Writer<'_>),
        waiter: W,
        out: &mut Vec<u8>,
    ) -> RequestKey {
        let id = self.next_request;
        self.next_request += 1;
        self.waiting.insert(id, waiter);
        let mut params = once(params);
        self.writer.write(out, &mut |writer| write_method(writer, Some(id), method, &mut params));
        RequestKey(id)
    }

    /// Tells the peer; `params` writes the params.
    pub fn notify(&mut self, method: &str, params: impl FnOnce(&mut Writer<'_>), out: &mut Vec<u8>) {
        let mut params = once(params);
        self.writer.write(out, &mut |writer| write_method(writer, None, method, &mut params));
    }

    /// Tells the peer something whose beginning is always the same: `start` is the message up to the last value, which
    /// `last` writes, and the brackets that are open then are closed by `end`.
    pub fn notify_prepared(&mut self, start: &[u8], last: impl FnOnce(&mut Writer<'_>), end: &str, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(start);
        let mut writer = Writer::new(out, self.writer.dialect.unwrap_or(Dialect::V1));
        last(&mut writer);
        writer.raw(end);
        let lost = writer.lost();
        self.writer.lost.extend(lost);
        self.writer.framing.finish(out, from);
    }

    /// Sends several requests and notifications as one array. Only the draft of version 2 has that.
    pub fn batch(&mut self, build: impl FnOnce(&mut BatchWriter<'_, W>), out: &mut Vec<u8>) {
        let mut batch = BatchWriter { peer: self, entries: Vec::new() };
        build(&mut batch);
        let entries = batch.entries;
        if !entries.is_empty() {
            let start = out.len();
            out.extend_from_slice(&entries);
            out.push(b']');
            self.writer.framing.finish(out, start);
        }
    }

    /// Gives up on a request: the peer is told, and its answer, if one still comes, is ignored.
    pub fn abandon(&mut self, request: RequestKey, out: &mut Vec<u8>) -> Option<W> {
        let waiter = self.waiting.remove(&request.0)?;
        let cancel = CancelRequestNotification::new(RequestId::Number(request.0));
        self.notify("$/cancel_request", |writer| cancel.encode(writer), out);
        Some(waiter)
    }

    /// Tells the peer that a request is no longer wanted, and goes on waiting for its answer.
    pub fn cancel(&mut self, request: RequestKey, out: &mut Vec<u8>) {
        if self.waiting.contains_key(&request.0) {
            let cancel = CancelRequestNotification::new(request.id());
            self.notify("$/cancel_request", |writer| cancel.encode(writer), out);
        }
    }

    /// Answers a call; `result` writes the result. Answering twice does nothing.
    pub fn answer(&mut self, call: Call, result: impl FnOnce(&mut Writer<'_>), out: &mut Vec<u8>) {
        self.writer.settle(call, out, "result", &mut once(result));
    }

    /// Answers a call with an error. Answering twice does nothing.
    pub fn refuse(&mut self, call: Call, error: &ErrorObject, out: &mut Vec<u8>) {
        self.writer.settle(call, out, "error", &mut |writer| error.encode(writer));
    }

    /// Whether somebody of a kind waits for an answer.
    pub fn any_waiting(&self, kind: impl Fn(&W) -> bool) -> bool {
        self.waiting.values().any(kind)
    }

    /// Gives up on every request whose waiter is of a kind, and returns the waiters.
    pub fn abandon_all(&mut self, kind: impl Fn(&W) -> bool, out: &mut Vec<u8>) -> Vec<W> {
        let requests = self.waiting.iter().filter(|(_, waiter)| kind(waiter)).map(|(request, _)| *request).collect();
        in_order(requests).into_iter().filter_map(|request| self.abandon(RequestKey(request), out)).collect()
    }

    /// No more answers will come: returns all who wait for one. What we owe can still be answered.
    pub fn close(&mut self) -> Vec<W> {
        let requests = in_order(self.waiting.keys().copied().collect());
        requests.into_iter().filter_map(|request| self.waiting.remove(&request)).collect()
    }

    fn handle_message<'a>(
        &mut self,
        message: Result<Incoming<'a>, Fault>,
        batch: Option<u64>,
        events: &mut Collector<'a, W>,
        out: &mut Vec<u8>,
    ) {
        match message {
            Ok(Incoming::Request { id, method, params }) => self.handle_request(id, method, params, batch, events, out),
            Ok(Incoming::Notification { method, params }) => {
                if method == "$/cancel_request" {
                    self.handle_cancel(params, events);
                } else if self.is_before_initialize(&method) {
                    events.push(Event::Violation(Violation::BeforeInitialize));
                } else {
                    events.push(Event::Notification { method, params });
                }
            }
            Ok(Incoming::Response { id, outcome }) => match self.take_waiter(&id) {
                Some(waiter) => events.push(Event::Answer { waiter, outcome }),
                None if id == RequestId::Null => events.push(Event::Violation(Violation::ErrorWithoutId)),
                None => events.push(Event::Violation(Violation::UnknownResponse)),
            },
            Err(Fault { violation, response_to: Some(id) }) => {
                events.push(Event::Violation(violation));
                if let Some(waiter) = id.and_then(|id| self.take_waiter(&id)) {
                    let outcome = Err(ErrorObject::internal("the answer was not understood"));
                    events.push(Event::Answer { waiter, outcome });
                }
            }
            Err(Fault { violation, response_to: None }) => {
                self.refuse_message(violation, &RequestId::Null, batch, events, out);
            }
        }
    }

    fn handle_request<'a>(
        &mut self,
        id: RequestId,
        method: Cow<'a, str>,
        params: Option<&'a str>,
        batch: Option<u64>,
        events: &mut Collector<'a, W>,
        out: &mut Vec<u8>,
    ) {
        let null_is_wrong = self.writer.dialect.is_some_and(|dialect| dialect == Dialect::V2);
        let violation = if id == RequestId::Null && null_is_wrong {
            Some(Violation::NullId)
        } else if self.is_before_initialize(&method) {
            Some(Violation::BeforeInitialize)
        } else {
            None
        };
        if let Some(violation) = violation {
            return self.refuse_message(violation, &id, batch, events, out);
        }
        if id == RequestId::Null {
            events.push(Event::Violation(Violation::NullId));
        } else if self.strict && self.writer.owed.values().any(|owed| owed.id == id) {
            // Both are served: each has its own call, so their answers cannot be mixed up by us.
            events.push(Event::Violation(Violation::DuplicateId));
        }
        if let Some(batch) = batch.and_then(|batch| self.writer.batches.get_mut(&batch)) {
            batch.open += 1;
        }
        let call = self.next_call;
        self.next_call += 1;
        self.writer.owed.insert(call, Owed { id, batch });
        events.push(Event::Call { call: Call(call), method, params });
    }

    fn handle_cancel<'a>(&mut self, params: Option<&str>, events: &mut Collector<'a, W>) {
        let Some(params) = params else { return };
        for call in self.writer.cancelled_by(params) {
            events.push(Event::Cancel(Call(call)));
        }
    }

    fn is_before_initialize(&self, method: &str) -> bool {
        self.side == Side::Agent && self.writer.dialect.is_none() && method != "initialize"
    }

    fn take_waiter(&mut self, id: &RequestId) -> Option<W> {
        match id {
            RequestId::Number(id) => self.waiting.remove(id),
            // We hand out numbers only. Some peers send them back as text; that is not the same id.
            RequestId::Text(_) | RequestId::Null => None,
        }
    }

    /// Answers a message that is no valid request, and tells our side.
    fn refuse_message<'a>(
        &mut self,
        violation: Violation,
        id: &RequestId,
        batch: Option<u64>,
        events: &mut Collector<'a, W>,
        out: &mut Vec<u8>,
    ) {
        let error = ErrorObject::invalid_request(violation.rule());
        events.push(Event::Violation(violation));
        self.writer.write_error(id, batch, &error, out);
    }
}

/// Collects the messages of a batch.
#[derive(Debug)]
pub struct BatchWriter<'p, W> {
    peer: &'p mut Peer<W>,
    entries: Vec<u8>,
}

impl<W> BatchWriter<'_, W> {
    /// Asks the peer; `params` writes the params.
    pub fn request(&mut self, method: &str, params: impl FnOnce(&mut Writer<'_>), waiter: W) -> RequestKey {
        let id = self.peer.next_request;
        self.peer.next_request += 1;
        self.peer.waiting.insert(id, waiter);
        self.entry(Some(id), method, &mut once(params));
        RequestKey(id)
    }

    /// Tells the peer; `params` writes the params.
    pub fn notify(&mut self, method: &str, params: impl FnOnce(&mut Writer<'_>)) {
        self.entry(None, method, &mut once(params));
    }

    fn entry(&mut self, id: Option<i64>, method: &str, params: Part<'_>) {
        self.entries.push(if self.entries.is_empty() { b'[' } else { b',' });
        let messages = &mut self.peer.writer;
        let dialect = messages.dialect.unwrap_or(Dialect::V1);
        let lost = write_object(&mut self.entries, dialect, &mut |writer| write_method(writer, id, method, params));
        messages.lost.extend(lost);
    }
}

/// Requests in the order they were made.
fn in_order(mut requests: Vec<i64>) -> Vec<i64> {
    requests.sort_unstable();
    requests
}
