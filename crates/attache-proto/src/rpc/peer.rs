//! One side of a connection: which requests are open both ways, and what follows from each message.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use super::event::Collector;
use super::message_writer::{MessageWriter, Part, once, write_method, write_object};
use super::open_calls::OpenCall;
use super::{
    AnswerError, Call, Envelope, Event, Events, Incoming, IntMap, InvalidMessage, PartialMessage, RequestKey,
    Violation, parse,
};
use crate::Dialect;
use crate::codec::Encode;
use crate::frame::{Framing, Junk};
use crate::json::Writer;
use crate::model::error::ErrorObject;
use crate::model::request::{CancelRequestNotification, RequestId};

/// Which side of a connection we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The agent: answers prompts.
    Agent,
    /// The client: sends prompts.
    Client,
}

/// How many requests of the peer may be open at once, unless another number is set. Five times the most that a real peer was
/// seen to have.
const MAX_OPEN_CALLS: usize = 1024;

/// One side of a connection, without IO: it is given frames, and appends frames to a buffer.
///
/// `W` is whatever the caller wants back with the answer to a request.
#[derive(Debug)]
pub struct Peer<W> {
    side: Side,
    next_request: i64,
    waiting: IntMap<i64, W>,
    /// How many requests were abandoned and have not been answered.
    abandoned: usize,
    /// The requests of each batch of which none has been answered, the oldest first.
    batches: VecDeque<Range<i64>>,
    next_call: u64,
    max_open_calls: usize,
    accepts_batches: bool,
    strict: bool,
    writer: MessageWriter,
}

impl<W> Peer<W> {
    /// A connection on which nothing has been sent yet.
    pub fn new(side: Side) -> Self {
        Peer {
            side,
            next_request: 0,
            waiting: IntMap::default(),
            abandoned: 0,
            batches: VecDeque::new(),
            next_call: 0,
            max_open_calls: MAX_OPEN_CALLS,
            accepts_batches: true,
            strict: false,
            writer: MessageWriter::new(),
        }
    }

    /// Sets how messages are framed.
    pub fn set_framing(&mut self, framing: Framing) {
        self.writer.framing = framing;
    }

    /// Sets whether batches are accepted (the default) or refused, as the newest peers do.
    pub fn set_accepts_batches(&mut self, accepts: bool) {
        self.accepts_batches = accepts;
    }

    /// Sets how many requests of the peer may be open at once. More are refused.
    pub fn set_max_open_calls(&mut self, max: usize) {
        self.max_open_calls = max;
    }

    /// Sets whether to look for violations that take time to find, such as an id that is used twice.
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// Takes the names of the fields that were left out of what we wrote, because the dialect does not have them.
    pub fn take_lost(&mut self) -> Vec<&'static str> {
        self.writer.take_lost()
    }

    /// The dialect, once `initialize` has been answered.
    pub fn dialect(&self) -> Option<Dialect> {
        self.writer.dialect
    }

    /// Sets the dialect. Until then an agent refuses everything but `initialize`.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.writer.dialect = Some(dialect);
    }

    /// How many requests of the peer we have not answered.
    pub fn open_calls(&self) -> usize {
        self.writer.open_calls.len()
    }

    /// How many bytes we hold for the peer: its open requests, and answers that wait for the rest of their batch.
    pub fn held_bytes(&self) -> usize {
        self.writer.open_calls.bytes() + self.writer.unsent
    }

    /// How many requests of ours the peer has not answered.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether this call has not been answered.
    pub fn is_open(&self, call: Call) -> bool {
        self.writer.open_calls.get(call.0).is_some()
    }

    /// The id that the peer gave a call, for messages that refer to it.
    pub fn call_id(&self, call: Call) -> Option<&RequestId> {
        self.writer.open_calls.get(call.0).map(|call| &call.id)
    }

    /// Parses and handles one frame, see [`Peer::handle`].
    pub fn handle_frame<'a>(&mut self, frame: &'a str, out: &mut Vec<u8>) -> Events<'a, W> {
        self.handle(parse(frame), out)
    }

    /// Handles one parsed frame. What can be answered without the caller is appended to `out`.
    pub fn handle<'a>(&mut self, envelope: Envelope<'a>, out: &mut Vec<u8>) -> Events<'a, W> {
        let mut events = Collector::new();
        match envelope {
            Envelope::One(message) => self.handle_message(message, None, &mut events, out),
            Envelope::NotJson { response_to } => {
                events.push(Event::Violation(Violation::NotJson));
                if response_to.is_empty() {
                    self.writer.write_error(&RequestId::Null, None, &ErrorObject::parse_error(), out);
                }
                for id in response_to {
                    self.fail_waiter(&id, Violation::NotJson, &mut events);
                }
            }
            Envelope::EmptyBatch => self.refuse_batch(Violation::EmptyBatch, Vec::new(), &mut events, out),
            Envelope::HugeBatch(messages) => self.refuse_batch(Violation::HugeBatch, messages, &mut events, out),
            Envelope::Batch(messages) if !self.accepts_batches => {
                self.refuse_batch(Violation::Batch, messages, &mut events, out);
            }
            Envelope::Batch(messages) => {
                if !self.writer.dialect.is_some_and(Dialect::has_batches) {
                    events.push(Event::Violation(Violation::Batch));
                }
                let batch = self.writer.open_batch();
                for message in messages {
                    self.handle_message(message, Some(batch), &mut events, out);
                }
                self.writer.close_entry(batch, out);
            }
        }
        events.finish()
    }

    /// Handles bytes that cannot be a message. As far as their beginning shows it, a request that is too long is refused under
    /// its own id, and for a response the waiter is returned.
    pub fn handle_junk(&mut self, junk: Junk<'_>, out: &mut Vec<u8>) -> Events<'static, W> {
        let (violation, error) = match junk {
            Junk::NotUtf8(_) => (Violation::NotUtf8, ErrorObject::parse_error()),
            Junk::TooLong(_) => (Violation::TooLong, ErrorObject::invalid_request(Violation::TooLong.rule())),
        };
        let mut events = Collector::new();
        events.push(Event::Violation(violation.clone()));
        let partial = PartialMessage::parse(junk.start());
        let mut refused = if partial.messages.is_empty() { Some(RequestId::Null) } else { None };
        for message in partial.messages {
            let id = message.id().cloned().or_else(|| self.only_waiting(&message)).unwrap_or(RequestId::Null);
            // What shows nothing but an id that we wait for is the answer.
            let is_response = message.is_response() || !message.has_method() && self.waits_for(&id);
            if is_response {
                self.fail_waiter(&id, violation.clone(), &mut events);
            } else if partial.is_batch || violation == Violation::NotUtf8 {
                refused = Some(RequestId::Null);
            } else {
                refused = Some(id);
            }
        }
        if let Some(id) = refused {
            self.writer.write_error(&id, None, &error, out);
        }
        events.finish()
    }

    /// Sends a request, whose params `params` writes. The waiter is returned with the answer.
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

    /// Sends a notification, whose params `params` writes.
    pub fn notify(&mut self, method: &str, params: impl FnOnce(&mut Writer<'_>), out: &mut Vec<u8>) {
        let mut params = once(params);
        self.writer.write(out, &mut |writer| write_method(writer, None, method, &mut params));
    }

    /// Sends a notification whose beginning is always the same: `start` is all of it up to the last value, which `last` writes,
    /// and `end` closes the brackets that are open then.
    pub fn notify_prepared(&mut self, start: &[u8], last: impl FnOnce(&mut Writer<'_>), end: &str, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(start);
        let mut writer = Writer::new(out, self.writer.dialect.unwrap_or(Dialect::V1));
        last(&mut writer);
        writer.raw(end);
        let lost = writer.lost();
        self.writer.note_lost(&lost);
        self.writer.framing.finish(out, from);
    }

    /// Sends several requests and notifications as one batch. Only the draft of version 2 has batches.
    pub fn batch(&mut self, build: impl FnOnce(&mut BatchWriter<'_, W>), out: &mut Vec<u8>) {
        let first = self.next_request;
        let mut batch = BatchWriter { peer: self, entries: Vec::new() };
        build(&mut batch);
        let entries = batch.entries;
        self.batches.retain(|requests| requests.clone().any(|request| self.waiting.contains_key(&request)));
        if self.next_request > first {
            self.batches.push_back(first..self.next_request);
        }
        if !entries.is_empty() {
            let start = out.len();
            out.extend_from_slice(&entries);
            out.push(b']');
            self.writer.framing.finish(out, start);
        }
    }

    /// Cancels a request and stops waiting for it: an answer that still comes is ignored.
    pub fn abandon(&mut self, request: RequestKey, out: &mut Vec<u8>) -> Option<W> {
        let waiter = self.waiting.remove(&request.0)?;
        self.abandoned += 1;
        let cancel = CancelRequestNotification::new(RequestId::Number(request.0));
        self.notify("$/cancel_request", |writer| cancel.encode(writer), out);
        Some(waiter)
    }

    /// Cancels a request and goes on waiting for its answer.
    pub fn cancel(&mut self, request: RequestKey, out: &mut Vec<u8>) {
        if self.waiting.contains_key(&request.0) {
            let cancel = CancelRequestNotification::new(request.id());
            self.notify("$/cancel_request", |writer| cancel.encode(writer), out);
        }
    }

    /// Answers a call with a result, which `result` writes. A call that has been answered is left alone.
    pub fn answer(&mut self, call: Call, result: impl FnOnce(&mut Writer<'_>), out: &mut Vec<u8>) {
        self.writer.settle(call, out, "result", &mut once(result));
    }

    /// Answers a call with an error. A call that has been answered is left alone.
    pub fn refuse(&mut self, call: Call, error: &ErrorObject, out: &mut Vec<u8>) {
        self.writer.settle(call, out, "error", &mut |writer| error.encode(writer));
    }

    /// Whether a request with a waiter of this kind is open.
    pub fn any_waiting(&self, kind: impl Fn(&W) -> bool) -> bool {
        self.waiting.values().any(kind)
    }

    /// Abandons every request with a waiter of this kind, and returns the waiters.
    pub fn abandon_all(&mut self, kind: impl Fn(&W) -> bool, out: &mut Vec<u8>) -> Vec<W> {
        let requests = self.waiting.iter().filter(|(_, waiter)| kind(waiter)).map(|(request, _)| *request).collect();
        in_order(requests).into_iter().filter_map(|request| self.abandon(RequestKey(request), out)).collect()
    }

    /// Notes that no more answers will come, and returns all waiters. Calls of the peer can still be answered.
    pub fn close(&mut self) -> Vec<W> {
        let requests = in_order(self.waiting.keys().copied().collect());
        requests.into_iter().filter_map(|request| self.waiting.remove(&request)).collect()
    }

    fn handle_message<'a>(
        &mut self,
        message: Result<Incoming<'a>, InvalidMessage>,
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
                Some(waiter) => {
                    events.push(Event::Answer { waiter, outcome: outcome.map_err(AnswerError::Refused) });
                }
                None if id == RequestId::Null => {
                    let refused = if batch.is_none() && outcome.is_err() { self.take_batch() } else { Vec::new() };
                    if refused.is_empty() {
                        events.push(Event::Violation(Violation::ErrorWithoutId));
                    }
                    for waiter in refused {
                        events.push(Event::Answer { waiter, outcome: outcome.clone().map_err(AnswerError::Refused) });
                    }
                }
                None => events.push(Event::Violation(Violation::UnknownResponse)),
            },
            Err(InvalidMessage { violation, is_response: true, id }) => {
                events.push(Event::Violation(violation.clone()));
                if let Some(id) = id {
                    self.fail_waiter(&id, violation, events);
                }
            }
            Err(InvalidMessage { violation, is_response: false, id }) => {
                // What may not be meant as a request at all is answered as if it had no id, as JSON-RPC has it.
                let is_request = !matches!(violation, Violation::NoVersion | Violation::Mixed);
                let id = id.filter(|_| is_request).unwrap_or(RequestId::Null);
                let error = ErrorObject::invalid_request(violation.rule());
                self.refuse_message(violation, &id, &error, batch, events, out);
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
        let refusal = if id == RequestId::Null && self.writer.dialect.is_some_and(Dialect::forbids_null_ids) {
            Some((Violation::NullId, ErrorObject::invalid_request(Violation::NullId.rule())))
        } else if self.is_before_initialize(&method) {
            Some((Violation::BeforeInitialize, ErrorObject::invalid_request(Violation::BeforeInitialize.rule())))
        } else if self.open_calls() >= self.max_open_calls {
            Some((Violation::TooManyRequests, ErrorObject::rate_limited(1)))
        } else {
            None
        };
        if let Some((violation, error)) = refusal {
            return self.refuse_message(violation, &id, &error, batch, events, out);
        }
        if id == RequestId::Null {
            events.push(Event::Violation(Violation::NullId));
        } else if self.strict && self.writer.open_calls.with_id(&id).next().is_some() {
            // Both are served: each has its own call, so their answers cannot be mixed up by us.
            events.push(Event::Violation(Violation::DuplicateId));
        }
        let call = self.next_call;
        self.next_call += 1;
        self.writer.open_entry(batch);
        self.writer.open_calls.insert(call, OpenCall { id, batch, size: params.map_or(0, str::len) + method.len() });
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
            RequestId::Number(id) => {
                let waiter = self.waiting.remove(id);
                if !self.batches.is_empty() {
                    self.batches.retain(|requests| !requests.contains(id));
                }
                if waiter.is_none() && (0..self.next_request).contains(id) {
                    self.abandoned = self.abandoned.saturating_sub(1);
                }
                waiter
            }
            // We hand out numbers only. Some peers send them back as text; that is not the same id.
            RequestId::Text(_) | RequestId::Null => None,
        }
    }

    /// The waiters of the batch that an error without an id refuses: nothing else of ours has no id of its own. It is the
    /// oldest of which nothing has been answered.
    fn take_batch(&mut self) -> Vec<W> {
        while let Some(requests) = self.batches.pop_front() {
            let waiters: Vec<_> = requests.filter_map(|request| self.waiting.remove(&request)).collect();
            if !waiters.is_empty() {
                return waiters;
            }
        }
        Vec::new()
    }

    fn waits_for(&self, id: &RequestId) -> bool {
        matches!(id, RequestId::Number(id) if self.waiting.contains_key(id))
    }

    /// The request that a response answers whose id was not read, because it comes last: clear when only one is open, and
    /// none that was abandoned may still be answered.
    fn only_waiting(&self, message: &PartialMessage) -> Option<RequestId> {
        let mut ids = self.waiting.keys();
        match (ids.next(), ids.next()) {
            (Some(id), None) if message.is_response() && self.abandoned == 0 => Some(RequestId::Number(*id)),
            _ => None,
        }
    }

    /// Tells whoever waits for this answer that it came and could not be read.
    fn fail_waiter(&mut self, id: &RequestId, violation: Violation, events: &mut Collector<'_, W>) {
        if let Some(waiter) = self.take_waiter(id) {
            events.push(Event::Answer { waiter, outcome: Err(AnswerError::Unreadable(violation)) });
        }
    }

    /// Answers a message with an error, and tells our side.
    fn refuse_message(
        &mut self,
        violation: Violation,
        id: &RequestId,
        error: &ErrorObject,
        batch: Option<u64>,
        events: &mut Collector<'_, W>,
        out: &mut Vec<u8>,
    ) {
        events.push(Event::Violation(violation));
        self.writer.write_error(id, batch, error, out);
    }

    /// Answers a batch with one error. Nothing in it is done; whoever waits for a response in it is told.
    fn refuse_batch(
        &mut self,
        violation: Violation,
        messages: Vec<Result<Incoming<'_>, InvalidMessage>>,
        events: &mut Collector<'_, W>,
        out: &mut Vec<u8>,
    ) {
        let error = ErrorObject::invalid_request(violation.rule());
        self.refuse_message(violation.clone(), &RequestId::Null, &error, None, events, out);
        for message in messages {
            match message {
                Ok(Incoming::Response { id, .. }) | Err(InvalidMessage { is_response: true, id: Some(id), .. }) => {
                    self.fail_waiter(&id, violation.clone(), events);
                }
                _ => {}
            }
        }
    }
}

/// Writes the messages of a batch.
#[derive(Debug)]
pub struct BatchWriter<'p, W> {
    peer: &'p mut Peer<W>,
    entries: Vec<u8>,
}

impl<W> BatchWriter<'_, W> {
    /// Adds a request, whose params `params` writes.
    pub fn request(&mut self, method: &str, params: impl FnOnce(&mut Writer<'_>), waiter: W) -> RequestKey {
        let id = self.peer.next_request;
        self.peer.next_request += 1;
        self.peer.waiting.insert(id, waiter);
        self.entry(Some(id), method, &mut once(params));
        RequestKey(id)
    }

    /// Adds a notification, whose params `params` writes.
    pub fn notify(&mut self, method: &str, params: impl FnOnce(&mut Writer<'_>)) {
        self.entry(None, method, &mut once(params));
    }

    fn entry(&mut self, id: Option<i64>, method: &str, params: Part<'_>) {
        self.entries.push(if self.entries.is_empty() { b'[' } else { b',' });
        let messages = &mut self.peer.writer;
        let dialect = messages.dialect.unwrap_or(Dialect::V1);
        let lost = write_object(&mut self.entries, dialect, &mut |writer| write_method(writer, id, method, params));
        messages.note_lost(&lost);
    }
}

/// Requests in the order they were made.
fn in_order(mut requests: Vec<i64>) -> Vec<i64> {
    requests.sort_unstable();
    requests
}
