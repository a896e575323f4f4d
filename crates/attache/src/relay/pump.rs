//! The two directions of a relay, and what they share.

// What uses the bridge is `inline`: so both are compiled by the program that relays, and by no other.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use attache_proto::Dialect;
use attache_proto::bridge::Bridge;
use attache_proto::frame::{Frame, Framing, Junk, Piece, Splitter};
use attache_proto::json::{RawJson, Writer};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::request::RequestId;
use attache_proto::rpc::{PartialMessage, Violation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::trace::Tap;

use super::{Direction, Hook, Relay, RelayMessage, Relayed, Verdict};

/// The bytes that may wait for a writer before it is given them. Small messages that came together go together.
const TOGETHER: usize = 64 * 1024;

/// The bytes of a client that are read while its agent takes none, to see whether it leaves. Two pipes full: more than
/// clients send when nothing is answered.
const AHEAD: usize = 128 * 1024;

/// Reports that are kept. Each is named once, so more than a few dozen means a bug.
const REPORTS: usize = 256;

type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// What writes to a side; `None` once it is closed.
type Writing = tokio::sync::Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>;

/// What both directions change, never across an await.
struct State {
    hook: Option<Hook>,
    bridge: Option<Bridge>,
    tap: Option<Tap>,
    to_client: Vec<u8>,
    to_agent: Vec<u8>,
    client_framing: Framing,
    agent_framing: Framing,
    too_long: usize,
    reports: Vec<&'static str>,
}

/// Which side has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Client,
    Agent,
}

struct Shared {
    state: Mutex<State>,
    client: Writing,
    agent: Writing,
    grace: Duration,
    /// Counts what was written to either side.
    written: AtomicUsize,
}

pub(super) async fn run(relay: Relay) -> io::Result<Relayed> {
    let Relay { client, agent, hook, bridge, tap, limit, grace } = relay;
    let state = State {
        hook,
        bridge,
        tap,
        to_client: Vec::new(),
        to_agent: Vec::new(),
        client_framing: Framing::Lines,
        agent_framing: Framing::Lines,
        too_long: 0,
        reports: Vec::new(),
    };
    let shared = Shared {
        state: Mutex::new(state),
        client: Writing::new(Some(client.writer)),
        agent: Writing::new(Some(agent.writer)),
        grace,
        written: AtomicUsize::new(0),
    };
    let ended;
    {
        let mut forth = pin!(shared.pump(Direction::ClientToAgent, client.reader, limit));
        let mut back = pin!(shared.pump(Direction::AgentToClient, agent.reader, limit));
        let forth_ended;
        (forth_ended, ended) = first(forth.as_mut(), back.as_mut()).await;
        if forth_ended && ended.is_ok() {
            // The agent hears that nothing more will come, and may finish what it was saying. Both at once: the other
            // direction may be about to answer the agent, and has its writer until then.
            let mut closing = pin!(shared.shut_down(Direction::ClientToAgent));
            let mut is_closed = false;
            let rest = poll_fn(|context| {
                is_closed = is_closed || closing.as_mut().poll(context).is_ready();
                back.as_mut().poll(context)
            });
            let _ = timeout(grace, rest).await;
        }
    }
    if matches!(ended, Ok(Left::Agent)) {
        let last_words = {
            let mut state = shared.state();
            let State { bridge, to_client, .. } = &mut *state;
            bridge.iter_mut().for_each(|bridge| bridge.handle_agent_gone(to_client));
            !to_client.is_empty()
        };
        if last_words {
            let _ = timeout(grace, shared.flush(Direction::AgentToClient)).await;
        }
    }
    // One direction may have been left in the middle of a write; then its lock is free again, for its owner is gone.
    let _ = timeout(grace, shared.shut_down(Direction::AgentToClient)).await;
    let _ = timeout(grace, shared.shut_down(Direction::ClientToAgent)).await;
    let client_left = ended? == Left::Client;
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Relayed { client_left, too_long: state.too_long, reports: state.reports })
}

/// Waits for the first of both; `true` when it is the first one.
async fn first<T>(
    mut one: Pin<&mut impl Future<Output = T>>,
    mut other: Pin<&mut impl Future<Output = T>>,
) -> (bool, T) {
    poll_fn(|context| {
        if let Poll::Ready(value) = one.as_mut().poll(context) {
            return Poll::Ready((true, value));
        }
        other.as_mut().poll(context).map(|value| (false, value))
    })
    .await
}

impl Shared {
    #[inline]
    fn state(&self) -> MutexGuard<'_, State> {
        // A hook that panicked leaves the state as it was before its message.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads one side to its end.
    async fn pump(&self, direction: Direction, reader: Reader, limit: usize) -> io::Result<Left> {
        let splitter = Splitter::new(None, limit);
        let mut input = Input { reader, splitter, is_open: true, failed: None, is_new: false, ahead: 0 };
        let left = 'sides: loop {
            if !input.is_new {
                input.read().await;
            }
            (input.is_new, input.ahead) = (false, 0);
            while let Some(piece) = input.splitter.next_piece() {
                let waiting = self.state().handle(direction, piece);
                if waiting > TOGETHER
                    && let Some(left) = self.flush_watching(direction, &mut input).await
                {
                    break 'sides left;
                }
            }
            if let Some(left) = self.flush_watching(direction, &mut input).await {
                break left;
            }
            if !input.is_open && !input.is_new {
                break match direction {
                    Direction::ClientToAgent => Left::Client,
                    Direction::AgentToClient => Left::Agent,
                };
            }
        };
        input.failed.map_or(Ok(left), Err)
    }

    /// Writes what waits for either side. While an agent takes nothing, its client is watched: once that has left, no write
    /// may take longer than the grace.
    async fn flush_watching(&self, direction: Direction, input: &mut Input) -> Option<Left> {
        let mut flushing = pin!(self.flush_both(direction));
        if direction == Direction::AgentToClient {
            return flushing.await;
        }
        let flushed = poll_fn(|context| {
            if let Poll::Ready(left) = flushing.as_mut().poll(context) {
                return Poll::Ready(Some(left));
            }
            while input.is_open && input.ahead < AHEAD {
                ready!(pin!(input.read()).poll(context));
            }
            if input.is_open { Poll::Pending } else { Poll::Ready(None) }
        });
        if let Some(left) = flushed.await {
            return left;
        }
        loop {
            let written = self.written.load(Ordering::Relaxed);
            match timeout(self.grace, flushing.as_mut()).await {
                Ok(left) => return left,
                Err(_) if self.written.load(Ordering::Relaxed) == written => return Some(Left::Client),
                Err(_) => {}
            }
        }
    }

    /// Writes what waits for either side: messages go on, answers go back. A side that takes nothing any more has left.
    async fn flush_both(&self, direction: Direction) -> Option<Left> {
        let (forth, back) = match direction {
            Direction::ClientToAgent => (Left::Agent, Left::Client),
            Direction::AgentToClient => (Left::Client, Left::Agent),
        };
        if self.flush(direction).await.is_err() {
            return Some(forth);
        }
        self.flush(direction.reversed()).await.is_err().then_some(back)
    }

    async fn flush(&self, direction: Direction) -> io::Result<()> {
        if self.state().waiting(direction).is_empty() {
            return Ok(());
        }
        let mut writer = self.writer(direction).lock().await;
        // Taken with the lock of the writer held, so that all goes out in the order in which it was put.
        let bytes = std::mem::take(self.state().waiting(direction));
        // A side that was told that nothing more will come may go on talking; its answers are dropped.
        let Some(writer) = writer.as_mut() else { return Ok(()) };
        let mut left = &bytes[..];
        while !left.is_empty() {
            let count = writer.write(left).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = &left[count..];
            self.written.fetch_add(count, Ordering::Relaxed);
        }
        writer.flush().await
    }

    /// Closes the way to one side. The writer is dropped, too: the pipe to a child is closed by nothing else.
    async fn shut_down(&self, direction: Direction) {
        let mut writer = self.writer(direction).lock().await;
        if let Some(open) = writer.as_mut() {
            let _ = open.shutdown().await;
        }
        *writer = None;
    }

    /// What writes to the side that a direction leads to.
    fn writer(&self, direction: Direction) -> &Writing {
        match direction {
            Direction::ClientToAgent => &self.agent,
            Direction::AgentToClient => &self.client,
        }
    }
}

/// What comes from one side.
struct Input {
    reader: Reader,
    splitter: Splitter,
    is_open: bool,
    /// Why it could not be read to its end.
    failed: Option<io::Error>,
    /// Something was read, or its end, that is not looked at yet.
    is_new: bool,
    /// How many bytes of that there are.
    ahead: usize,
}

impl Input {
    async fn read(&mut self) {
        let read = self.reader.read_buf(self.splitter.buffer()).await;
        self.is_new = true;
        match read {
            Ok(0) => {
                self.is_open = false;
                self.splitter.end();
            }
            Ok(count) => self.ahead += count,
            Err(error) => {
                self.is_open = false;
                self.failed = Some(error);
            }
        }
    }
}

impl State {
    /// What waits to be written to the side that a direction leads to.
    #[inline]
    fn waiting(&mut self, direction: Direction) -> &mut Vec<u8> {
        match direction {
            Direction::ClientToAgent => &mut self.to_agent,
            Direction::AgentToClient => &mut self.to_client,
        }
    }

    /// Decides about a frame; returns how much waits to be written.
    #[inline]
    fn handle(&mut self, direction: Direction, piece: Piece<'_>) -> usize {
        let framing = piece.framing.unwrap_or_default();
        self.learn(direction, framing);
        match piece.frame {
            Some(Frame::Junk(junk @ Junk::TooLong(_))) => self.refuse_long(direction, junk),
            Some(frame) => {
                let message = RelayMessage::new(piece.bytes, frame);
                match (&self.tap, direction) {
                    (Some(tap), Direction::ClientToAgent) => tap.sent(message.bytes()),
                    // What is no text is no JSON either, and is only counted.
                    (Some(tap), Direction::AgentToClient) => tap.received(message.text().unwrap_or("?")),
                    (None, _) => {}
                }
                let verdict = self.hook.as_mut().map_or(Verdict::Pass, |hook| hook(direction, &message));
                self.carry_out(direction, &message, verdict, framing);
            }
            // Blank lines, and half a message at the end: a hook has not seen that, so it goes no further.
            None if self.bridge.is_none() && (self.hook.is_none() || piece.bytes.trim_ascii().is_empty()) => {
                self.waiting(direction).extend_from_slice(piece.bytes);
            }
            None => {}
        }
        self.take_reports();
        self.to_client.len() + self.to_agent.len()
    }

    /// Refuses a message that is too long: a request to its sender, a response to whoever waits for it.
    #[inline]
    fn refuse_long(&mut self, direction: Direction, junk: Junk<'_>) {
        self.too_long += 1;
        if self.bridge.is_some() {
            return self.translate_junk(direction, junk);
        }
        let rule = Violation::TooLong.rule();
        let partial = PartialMessage::parse(junk.start());
        let mut refused = if partial.messages.is_empty() { Some(&RequestId::Null) } else { None };
        for message in &partial.messages {
            match message.id() {
                Some(id) if message.is_response() => {
                    // It takes the place of the response, so it is framed as that was.
                    let framing = self.framing(direction);
                    write_response(self.waiting(direction), framing, id, &Err(ErrorObject::internal(rule)));
                }
                None if message.is_response() => {}
                Some(id) if !partial.is_batch => refused = Some(id),
                _ => refused = Some(&RequestId::Null),
            }
        }
        if let Some(id) = refused {
            self.answer(direction, id, &Err(ErrorObject::invalid_request(rule)));
        }
    }

    #[inline]
    fn carry_out(&mut self, direction: Direction, message: &RelayMessage<'_>, verdict: Verdict, framing: Framing) {
        match verdict {
            Verdict::Drop => {}
            Verdict::Answer(answer) => {
                if let Some(id) = message.id_to_answer() {
                    self.answer(direction, id, &answer);
                }
            }
            Verdict::Pass if self.bridge.is_none() => {
                self.waiting(direction).extend_from_slice(message.bytes());
            }
            Verdict::Change(json) if self.bridge.is_none() => {
                let out = self.waiting(direction);
                let start = out.len();
                out.extend_from_slice(json.as_str().as_bytes());
                framing.finish(out, start);
            }
            Verdict::Pass => match message.frame() {
                Frame::Message(text) => self.translate(direction, text),
                Frame::Junk(junk) => self.translate_junk(direction, junk),
            },
            Verdict::Change(json) => self.translate(direction, json.as_str()),
        }
    }

    #[inline]
    fn translate(&mut self, direction: Direction, text: &str) {
        let Some(bridge) = &mut self.bridge else { return };
        match direction {
            Direction::ClientToAgent => bridge.handle_client(text, &mut self.to_agent, &mut self.to_client),
            Direction::AgentToClient => bridge.handle_agent(text, &mut self.to_agent, &mut self.to_client),
        }
    }

    #[inline]
    fn translate_junk(&mut self, direction: Direction, junk: Junk<'_>) {
        let Some(bridge) = &mut self.bridge else { return };
        match direction {
            Direction::ClientToAgent => bridge.handle_client_junk(junk, &mut self.to_agent, &mut self.to_client),
            Direction::AgentToClient => bridge.handle_agent_junk(junk, &mut self.to_agent, &mut self.to_client),
        }
    }

    /// Answers the sender of a message.
    #[inline]
    fn answer(&mut self, direction: Direction, id: &RequestId, answer: &Result<RawJson, ErrorObject>) {
        let framing = self.framing(direction);
        write_response(self.waiting(direction.reversed()), framing, id, answer);
    }

    /// How the messages that go this way are framed.
    #[inline]
    fn framing(&self, direction: Direction) -> Framing {
        match direction {
            Direction::ClientToAgent => self.client_framing,
            Direction::AgentToClient => self.agent_framing,
        }
    }

    /// Takes note of how a side frames its messages: it is answered in the same way.
    #[inline]
    fn learn(&mut self, direction: Direction, framing: Framing) {
        let known = match direction {
            Direction::ClientToAgent => &mut self.client_framing,
            Direction::AgentToClient => &mut self.agent_framing,
        };
        if *known != framing {
            *known = framing;
            if let Some(bridge) = &mut self.bridge {
                bridge.set_framing(self.client_framing, self.agent_framing);
            }
        }
    }

    #[inline]
    fn take_reports(&mut self) {
        let Some(bridge) = &mut self.bridge else { return };
        for report in bridge.take_reports() {
            if !self.reports.contains(&report) && self.reports.len() < REPORTS {
                self.reports.push(report);
            }
        }
    }
}

fn write_response(out: &mut Vec<u8>, framing: Framing, id: &RequestId, answer: &Result<RawJson, ErrorObject>) {
    let start = out.len();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    let mut writer = Writer::new(out, Dialect::V1);
    writer.key("id");
    writer.value(id);
    match answer {
        Ok(result) => {
            writer.key("result");
            writer.value(result);
        }
        Err(error) => {
            writer.key("error");
            writer.value(error);
        }
    }
    writer.end_object();
    framing.finish(out, start);
}
