//! The task of a connection: reads, decodes, routes and writes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use attache_proto::frame::{Frame, Framing, Junk, Splitter};
use attache_proto::model::error::ErrorObject;
use attache_proto::rpc::{AnswerError, Envelope, Event, Events, Incoming, Side, Violation, parse};
use tokio::io::{AsyncRead, ReadBuf};

use super::outlet::Stays;
use super::{Arriving, Link, PRINTED, Router, State, Waiter};
use crate::transport::MessageReader;
use crate::{Closed, Error, Report};

/// Where messages come from.
pub(super) enum Source {
    /// A stream of bytes, to be cut into messages.
    Bytes {
        reader: Box<dyn AsyncRead + Send + Unpin>,
        splitter: Splitter,
        /// How messages are framed to the peer, once that is settled.
        framing: Option<Framing>,
    },
    /// Something that carries whole messages.
    Messages(Box<dyn MessageReader>),
}

/// The task of a connection. It never runs user code and never waits for it.
pub(super) struct Driver<R: Router> {
    pub(super) link: Link<R>,
    pub(super) source: Source,
    pub(super) read_done: bool,
    pub(super) write_failed: bool,
}

impl<R: Router> Driver<R> {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Closed> {
        let is_reading = {
            let mut state = self.link.lock();
            // Registered first: whatever changes from here on wakes us.
            if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(cx.waker())) {
                state.driver = Some(cx.waker().clone());
            }
            state.ended.is_none()
        };
        if self.write_failed {
            return self.poll_last_words(cx);
        }
        if is_reading && let Err(reason) = self.poll_read(cx) {
            let reason = self.cause_of(reason);
            // An agent whose client has said all it had to say still answers; a client has nobody left to talk to.
            let half = R::SIDE == Side::Agent && reason == Closed::ByPeer;
            self.end_reading(&reason);
            if !half {
                self.end(reason);
            }
        }
        match self.poll_write(cx) {
            Poll::Ready(Ok(Stays::Open)) => Poll::Pending,
            Poll::Ready(Ok(Stays::Closing)) => {
                let closed = self.link.closed();
                self.end(Closed::ByUs);
                ready!(self.poll_shutdown(cx));
                Poll::Ready(closed.unwrap_or(Closed::ByUs))
            }
            Poll::Ready(Err(error)) => {
                let reason = self.cause_of(Closed::Io(error.kind()));
                self.end_writing(reason);
                self.write_failed = true;
                self.poll_last_words(cx)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Reads what a peer said before it stopped listening, also if our own code has yet to make room for it. Ends the
    /// connection when nothing more is there.
    fn poll_last_words(&mut self, cx: &mut Context<'_>) -> Poll<Closed> {
        let is_reading = {
            let state = self.link.lock();
            state.ended.is_none() && !state.closing
        };
        if is_reading && self.poll_read(cx).is_ok() {
            if self.link.lock().paused {
                return Poll::Pending;
            }
            // The stream may have more to say and be made to wait for the sake of other tasks.
            if !tokio::task::coop::has_budget_remaining() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let closed = self.link.closed().unwrap_or(Closed::ByUs);
        self.end(closed.clone());
        Poll::Ready(closed)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<(), Closed> {
        loop {
            {
                let mut state = self.link.lock();
                let before = state.out.len();
                state.paused = self.link.must_pause(&mut state);
                let is_paused = state.paused;
                self.link.after_change(state, before);
                if is_paused || self.read_done {
                    return Ok(());
                }
            }
            let link = &self.link;
            match &mut self.source {
                Source::Bytes { reader, splitter, framing } => {
                    match poll_append(Pin::new(reader), cx, splitter.buffer()) {
                        Poll::Pending => return Ok(()),
                        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                        Poll::Ready(Err(error)) => return Err(Closed::Io(error.kind())),
                        Poll::Ready(Ok(0)) => {
                            self.read_done = true;
                            splitter.end();
                        }
                        Poll::Ready(Ok(_)) => {}
                    }
                    handle_frames(link, splitter, framing)?;
                }
                Source::Messages(reader) => match reader.poll_read(cx) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Err(error)) => return Err(Closed::Io(error.kind())),
                    Poll::Ready(Ok(None)) => self.read_done = true,
                    Poll::Ready(Ok(Some(message))) if message.len() > link.limits().message => {
                        link.handle_junk(Junk::TooLong(start_of(&message)))?;
                    }
                    Poll::Ready(Ok(Some(message))) => link.handle_message(&message)?,
                },
            }
            if self.read_done {
                return Err(Closed::ByPeer);
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Stays>> {
        match &mut *self.link.outlet() {
            Some(outlet) => outlet.poll_write(&self.link, cx),
            None => Poll::Ready(Ok(Stays::Closing)),
        }
    }

    /// The peer sees the end of our stream only when the writer is shut down.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self.link.outlet() {
            Some(outlet) => outlet.poll_shutdown(cx).map(|_| ()),
            None => Poll::Ready(()),
        }
    }

    /// What made the wire end, where somebody has told.
    fn cause_of(&self, reason: Closed) -> Closed {
        match reason {
            Closed::ByPeer | Closed::Io(_) => self.link.lock().cause.take().unwrap_or(reason),
            other => other,
        }
    }

    /// No more answers will come: everybody who waits for one is told why.
    fn end_reading(&mut self, reason: &Closed) {
        let mut state = self.link.lock();
        if state.ended.is_some() {
            return;
        }
        state.ended = Some(reason.clone());
        let waiting = state.peer.close();
        state.router.closed(reason);
        drop(state);
        for waiter in waiting {
            if let Waiter::Call(asked) = waiter {
                asked.fail(Error::Closed(reason.clone()));
            }
        }
    }

    /// Ends the connection: everybody who waits is told why.
    fn end(&mut self, reason: Closed) {
        self.end_reading(&reason);
        self.end_writing(reason);
    }

    /// Nothing more will be written: everybody who waits for room is told why.
    fn end_writing(&mut self, reason: Closed) {
        let mut state = self.link.lock();
        if state.closed.is_some() {
            return;
        }
        state.closed = Some(reason);
        state.router.room();
        drop(state);
        self.link.0.room.notify_waiters();
        self.link.0.flushed.notify_waiters();
        self.link.0.settled.notify_waiters();
    }
}

/// When the task is dropped, nobody may be left waiting.
impl<R: Router> Drop for Driver<R> {
    fn drop(&mut self) {
        self.end(Closed::ByUs);
        // Handles may outlive the task; the stream must not.
        *self.link.outlet() = None;
    }
}

/// Handles every whole frame that was read.
fn handle_frames<R: Router>(
    link: &Link<R>,
    splitter: &mut Splitter,
    framing: &mut Option<Framing>,
) -> Result<(), Closed> {
    loop {
        // A peer is written to in the way that it frames its own messages, unless another was asked for.
        let found = splitter.framing();
        if link.0.options.framing.is_none() && found.is_some() && found != *framing {
            *framing = found;
            link.lock().peer.set_framing(found.unwrap_or_default());
        }
        match splitter.next_frame() {
            None => return Ok(()),
            Some(Frame::Message(text)) if framing.is_some() => link.handle_message(text)?,
            Some(Frame::Message(text)) => {
                // The first message shows how the peer frames: that has to be known before it is answered.
                let text = text.to_owned();
                if let Some(found) = splitter.framing() {
                    *framing = Some(found);
                    link.lock().peer.set_framing(found);
                }
                link.handle_message(&text)?;
            }
            Some(Frame::Junk(junk)) => link.handle_junk(junk)?,
        }
    }
}

/// How much of a message that is too long is looked at, in bytes: its id stands at its beginning or is not found.
const LOOKED_AT: usize = 4096;

fn start_of(message: &str) -> &str {
    let end = (0..=LOOKED_AT.min(message.len())).rev().find(|end| message.is_char_boundary(*end));
    &message[..end.unwrap_or(0)]
}

impl<R: Router> Link<R> {
    /// Takes in a message. It is parsed and decoded before the state is locked; only what depends on the state, such as
    /// which answer it is, is looked up first.
    fn handle_message(&self, text: &str) -> Result<(), Closed> {
        if let Some(tap) = &self.0.options.tap {
            tap.received(text);
        }
        let envelope = parse(text);
        let mut decoded = match &envelope {
            Envelope::One(Ok(Incoming::Request { method, params, .. })) => Some(self.decode(method, *params, true)),
            Envelope::One(Ok(Incoming::Notification { method, params })) => Some(self.decode(method, *params, false)),
            _ => None,
        };
        let mut guard = self.lock();
        let state = &mut *guard;
        let before = state.out.len();
        let events = state.peer.handle(envelope, &mut state.out);
        let mut is_junk = false;
        // What has to be decoded once it is known what it is: answers, and the entries of a batch.
        let (mut late, mut later) = (None, Vec::new());
        for event in events {
            match (event, decoded.take()) {
                (Event::Call { call, .. }, Some(message)) => state.route_call(call, message, text.len()),
                (Event::Notification { .. }, Some(message)) => {
                    let (router, mut port) = state.split();
                    router.notification(&mut port, message, text.len());
                }
                // Behind other entries of a batch it may mean one of them.
                (Event::Cancel(call), _) if late.is_none() => {
                    let (router, mut port) = state.split();
                    router.cancel(&mut port, call);
                }
                (Event::Violation(violation), message) => {
                    // A deviation that is ignored is reported before the message itself.
                    decoded = message;
                    is_junk |= matches!(violation, Violation::NotJson | Violation::NotAnObject);
                    state.report(violation);
                }
                (event, _) if late.is_none() => late = Some(event),
                (event, _) => later.push(event),
            }
        }
        state.note_message(text, is_junk);
        let verdict = self.check(state);
        self.after_change(guard, before);
        verdict?;
        for event in late.into_iter().chain(later) {
            self.handle_late(event);
        }
        Ok(())
    }

    /// Handles what could not be decoded before.
    fn handle_late(&self, event: Event<'_, Waiter<R::Ticket>>) {
        let size = size_of_event(&event);
        match event {
            Event::Call { call, method, params } => {
                let message = self.decode(&method, params, true);
                let mut state = self.lock();
                let before = state.out.len();
                state.route_call(call, message, size);
                self.after_change(state, before);
            }
            Event::Notification { method, params } => {
                let message = self.decode(&method, params, false);
                self.with(|router, port| router.notification(port, message, size));
            }
            Event::Answer { waiter: Waiter::Call(sender), outcome: Err(AnswerError::Unreadable(violation)) } => {
                sender.fail(Error::UnreadableAnswer(violation));
            }
            Event::Answer { waiter: Waiter::Call(sender), outcome } => {
                let (method, tolerated) = sender.answer(outcome.map_err(ErrorObject::from), self.dialect());
                if !tolerated.is_empty() {
                    let report = |error| Report::Violation(Violation::Tolerated { method, error });
                    let mut state = self.lock();
                    let before = state.out.len();
                    state.reports.extend(tolerated.into_iter().map(report));
                    self.after_change(state, before);
                }
            }
            Event::Answer { waiter: Waiter::Ticket(ticket), outcome } => {
                let answer = R::decode_answer(&ticket, self.dialect(), outcome.map_err(Error::from));
                self.with(|router, port| router.answer(port, ticket, answer, size));
            }
            Event::Cancel(call) => self.with(|router, port| router.cancel(port, call)),
            Event::Violation(violation) => {
                let mut state = self.lock();
                let before = state.out.len();
                state.report(violation);
                self.after_change(state, before);
            }
        }
    }

    /// Takes note of bytes that are no message.
    fn handle_junk(&self, junk: Junk<'_>) -> Result<(), Closed> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let before = state.out.len();
        let events: Events<'_, _> = state.peer.handle_junk(junk, &mut state.out);
        state.junk += 1;
        let verdict = self.check(state);
        self.after_change(guard, before);
        verdict?;
        for event in events {
            self.handle_late(event);
        }
        Ok(())
    }

    /// Whether the peer is still worth listening to.
    fn check(&self, state: &State<R>) -> Result<(), Closed> {
        let limits = self.limits();
        // Once it has spoken, a peer that prints something else in between is still a peer.
        if state.junk > limits.junk && !state.is_met {
            return Err(Closed::Junk);
        }
        // Answers that need no thought go out without waiting for room, so their sum needs a bound of its own. What did wait
        // does not count, however long it is: the peer has no part in it.
        let unwaited = state.out.len().saturating_sub(state.waited) + state.unwaited.min(state.writing);
        if unwaited > limits.outbox.saturating_add(limits.overdraft) {
            return Err(Closed::NotReading);
        }
        Ok(())
    }

    fn decode<'a>(&self, method: &str, params: Option<&'a str>, is_request: bool) -> R::Message<'a> {
        R::decode(&self.0.decoder, self.dialect(), Arriving { method, params, is_request })
    }
}

/// How long the part of a message is that may be kept: of a batch, that of one entry.
fn size_of_event<W>(event: &Event<'_, W>) -> usize {
    match event {
        Event::Call { method, params, .. } | Event::Notification { method, params } => {
            method.len() + params.map_or(0, str::len)
        }
        Event::Answer { outcome: Ok(result), .. } => result.len(),
        Event::Answer { outcome: Err(AnswerError::Refused(error)), .. } => {
            error.message.len() + error.data.as_ref().map_or(0, |data| data.as_str().len())
        }
        Event::Answer { .. } | Event::Cancel(_) | Event::Violation(_) => 0,
    }
}

impl<R: Router> State<R> {
    fn route_call(&mut self, call: attache_proto::rpc::Call, message: R::Message<'_>, size: usize) {
        let (router, mut port) = self.split();
        if port.peer.open_calls() > 1 && port.peer.held_bytes() > port.limits.open_requests {
            port.violation(Violation::TooManyRequests);
            return port.refuse(call, &ErrorObject::rate_limited(1));
        }
        router.call(&mut port, call, message, size);
    }

    /// Reports a violation. A wrong program, or one that prints before it speaks, has many lines of junk: the first is told.
    fn report(&mut self, violation: Violation) {
        if !self.is_met && matches!(violation, Violation::NotJson | Violation::NotUtf8 | Violation::NotAnObject) {
            if self.is_junk_reported {
                return;
            }
            self.is_junk_reported = true;
        }
        self.reports.push(Report::Violation(violation));
    }

    /// Counts what is no message, and keeps the first of it for whoever started a wrong program.
    fn note_message(&mut self, text: &str, is_junk: bool) {
        if !is_junk {
            self.junk = 0;
            self.is_met = true;
            return;
        }
        self.junk += 1;
        if self.printed.len() < PRINTED {
            let clean = text.chars().filter(|char| !char.is_control() || *char == '\t').take(PRINTED);
            self.printed.extend(clean);
            self.printed.push('\n');
        }
    }
}

/// Reads as much as there is into the room behind the bytes of a buffer; returns how much that was.
fn poll_append(
    reader: Pin<&mut (dyn AsyncRead + Send + Unpin)>,
    cx: &mut Context<'_>,
    buffer: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    let mut room = ReadBuf::uninit(buffer.spare_capacity_mut());
    let start = room.filled().as_ptr();
    ready!(reader.poll_read(cx, &mut room))?;
    let count = room.filled().len();
    // A reader is handed the buffer and could put another in its place.
    if room.filled().as_ptr() != start || count > buffer.capacity() - buffer.len() {
        return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
    }
    // SAFETY: `ReadBuf` counts as filled only bytes that were written, they lie in the buffer that it was made of, and
    // that one begins behind the buffer's own bytes.
    unsafe { buffer.set_len(buffer.len() + count) };
    Poll::Ready(Ok(count))
}
