//! The task of a connection: moves bytes, and nothing else.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use attache_proto::frame::{Frame, Splitter};
use attache_proto::model::ErrorObject;
use attache_proto::rpc::{AnswerError, Event, Events, Side, Violation};
use tokio::io::{AsyncRead, ReadBuf};

use super::outlet::Stays;
use super::{Link, PRINTED, Router, State, Waiter};
use crate::{Closed, Error};

/// The task: moves bytes, and nothing else.
pub(super) struct Driver<R: Router> {
    pub(super) link: Link<R>,
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) splitter: Splitter,
    pub(super) read_done: bool,
    pub(super) knows_framing: bool,
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
        if is_reading && let Err(reason) = self.poll_read(cx) {
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
                self.end(Closed::Io(error.kind()));
                let closed = self.link.closed().unwrap_or(Closed::ByUs);
                Poll::Ready(closed)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<(), Closed> {
        loop {
            {
                let mut state = self.link.lock();
                state.paused = self.link.must_pause(&mut state);
                if state.paused || self.read_done {
                    return Ok(());
                }
            }
            match poll_append(Pin::new(&mut self.reader), cx, self.splitter.buffer()) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Err(Closed::Io(error.kind())),
                Poll::Ready(Ok(count)) => {
                    if count == 0 {
                        self.read_done = true;
                        self.splitter.end();
                    }
                    self.handle_frames()?;
                    if count == 0 {
                        return Err(Closed::ByPeer);
                    }
                }
            }
        }
    }

    /// Hands every whole frame to the state, with one lock for all of them.
    fn handle_frames(&mut self) -> Result<(), Closed> {
        let mut state = self.link.lock();
        let before = state.out.len();
        let options = &self.link.0.options;
        loop {
            // A peer that frames its messages in another way than before is written to in that way, too.
            if options.framing.is_none()
                && let Some(framing) = self.splitter.framing()
            {
                state.peer.set_framing(framing);
            }
            let Some(frame) = self.splitter.next_frame() else { break };
            match frame {
                Frame::Message(text) => {
                    if let Some(tap) = &options.tap {
                        tap.received(text);
                    }
                    if self.knows_framing {
                        state.handle_message(text);
                    } else {
                        // The first message shows how the peer frames, and wants to be framed to.
                        let text = text.to_owned();
                        if let Some(framing) = self.splitter.framing() {
                            self.knows_framing = true;
                            state.peer.set_framing(framing);
                        }
                        state.handle_message(&text);
                    }
                }
                Frame::Junk(junk) => {
                    let State { peer, out, .. } = &mut *state;
                    let events = peer.handle_junk(junk, out);
                    state.handle_events(events, junk.start().len());
                    state.junk += 1;
                }
            }
            if state.junk > options.limits.junk {
                return Err(Closed::Junk);
            }
            // Answers that need no thought go out without waiting for room, so their sum needs a bound of its own.
            if state.unwritten() > options.limits.outbox + options.limits.overdraft {
                return Err(Closed::NotReading);
            }
        }
        self.link.after_change(state, before);
        Ok(())
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
        let mut state = self.link.lock();
        if state.closed.is_some() {
            return;
        }
        state.closed = Some(reason);
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

impl<R: Router> State<R> {
    fn handle_message(&mut self, text: &str) {
        let events = self.peer.handle_frame(text, &mut self.out);
        let is_junk = self.handle_events(events, text.len());
        self.junk = if is_junk { self.junk + 1 } else { 0 };
        if is_junk && self.printed.len() < PRINTED {
            let clean = text.chars().filter(|char| !char.is_control() || *char == '\t').take(PRINTED);
            self.printed.extend(clean);
            self.printed.push('\n');
        }
    }

    /// Passes on what followed from a frame of `size` bytes. Returns whether it was no message at all.
    fn handle_events(&mut self, events: Events<'_, Waiter<R::Ticket>>, size: usize) -> bool {
        let mut is_junk = false;
        for event in events {
            let (router, mut port) = self.split();
            match event {
                Event::Call { call, method, params } => {
                    router.call(&mut port, call, &method, params, size);
                }
                Event::Notification { method, params } => {
                    router.notification(&mut port, &method, params, size);
                }
                Event::Answer { waiter: Waiter::Call(asked), outcome: Err(AnswerError::Unreadable(violation)) } => {
                    asked.fail(Error::UnreadableAnswer(violation))
                }
                Event::Answer { waiter: Waiter::Call(asked), outcome } => {
                    let (method, tolerated) = asked.answer(outcome.map_err(ErrorObject::from), port.dialect());
                    for error in tolerated {
                        port.violation(Violation::Tolerated { method, error });
                    }
                }
                Event::Answer { waiter: Waiter::Ticket(ticket), outcome } => {
                    router.answer(&mut port, ticket, outcome.map_err(Error::from), size);
                }
                Event::Cancel(call) => router.cancel(&mut port, call),
                Event::Violation(violation) => {
                    is_junk |= matches!(violation, Violation::NotJson | Violation::NotAnObject);
                    port.violation(violation);
                }
            }
        }
        is_junk
    }
}

/// Reads as much as there is into the room behind the bytes of a buffer; returns how much that was.
fn poll_append(
    reader: Pin<&mut (dyn AsyncRead + Send + Unpin)>,
    cx: &mut Context<'_>,
    buffer: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    let mut room = ReadBuf::uninit(buffer.spare_capacity_mut());
    ready!(reader.poll_read(cx, &mut room))?;
    let count = room.filled().len();
    // SAFETY: `ReadBuf` counts as filled only bytes that were written, and these lie behind the buffer's own.
    unsafe { buffer.set_len(buffer.len() + count) };
    Poll::Ready(Ok(count))
}
