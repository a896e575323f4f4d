//! What lies between a program and the network: messages that came in and were not read yet, and messages that go out and have
//! not arrived yet, as far as that is known.
//!
//! A message that goes out belongs to a stream and has a number there, from 1. If the peer tells what has arrived
//! (`resumes`), a message is kept until then, and whoever reads the stream next begins where the last one ended.
//! Otherwise it is forgotten when it is handed to the network.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use attache::model::request::RequestId;
use attache::transport::{MessageReader, MessageWriter, Transport};
use tokio::sync::{Notify, oneshot};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::intake::Held;
use crate::message::{Kind, Parts, parts, raw_member, string_member, updated_session, with_resume};

/// A stream of messages that go out: of a session, or of the connection.
pub(crate) type StreamId = Option<Arc<str>>;

/// How much a channel holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes that came in and were not read.
    pub(crate) incoming: usize,
    /// Bytes that go out and have not arrived.
    pub(crate) outgoing: usize,
    /// Streams of sessions.
    pub(crate) streams: usize,
    /// Streams that were opened for sessions that nobody has heard of yet.
    pub(crate) early: usize,
}

/// Which end of the connection the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The agent's, with one stream for each session (Streamable HTTP), or with one for all.
    Agent { streams: bool },
    /// The client's.
    Client,
}

/// Why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The peer left, or was asked to.
    Closed,
    /// The connection is lost, for this reason.
    Lost(io::ErrorKind),
}

/// Requests of a client that an agent may leave unanswered before no more are taken.
const MOST_REQUESTS: usize = 4096;

/// The longest `initialize` that is recognised as such. A longer one is sent as it is, and its connection is not taken up again.
const LONGEST_GREETING: usize = 64 << 10;

/// The longest message that tells the state of a session.
const LONGEST_STATE: usize = 4096;

/// How a text begins that is no answer.
const NO_ANSWER: &str = r#"{"jsonrpc":"2.0","method""#;

/// Messages between a program and the network.
pub(crate) struct Channel {
    state: Mutex<State>,
    /// Something has ended.
    changed: Notify,
    bounds: Bounds,
    end: End,
}

struct State {
    incoming: VecDeque<(String, Option<Held>)>,
    incoming_bytes: usize,
    incoming_end: Option<Ended>,
    program_reads: Option<Waker>,
    /// Those of the network who wait for room.
    room: Vec<Waker>,
    /// How many messages came in that are counted.
    received: u64,

    streams: HashMap<StreamId, Outgoing>,
    outgoing_bytes: usize,
    /// The program said its last word.
    outgoing_over: bool,
    program_writes: Option<Waker>,
    /// When something went out, or nothing waited to.
    progress: Instant,

    /// Sessions whose messages go out on the connection's stream, because the client opens none for them.
    without_stream: HashSet<StreamId>,
    /// Requests of the client that the agent has not answered, with the stream that the answer belongs to.
    requests: HashMap<RequestId, StreamId>,
    /// Sessions of version 2 that have a turn: there a prompt is answered before its turn has ended.
    running: HashSet<String>,
    greeting: Greeting,
    /// The session that was updated last.
    updated: StreamId,
    resumes: bool,
    /// When the network had the connection in its hands last, and how often it has it now.
    attached: usize,
    away_since: Instant,
}

/// Where `initialize` is.
#[derive(Default)]
struct Greeting {
    id: Option<RequestId>,
    /// What the client said, until it is answered.
    text: Option<Utf8Bytes>,
    wants_resume: bool,
    /// Who gets the answer, instead of a stream.
    answer: Option<oneshot::Sender<Utf8Bytes>>,
}

/// Messages of one stream, those first that were sent first.
struct Outgoing {
    kept: VecDeque<Utf8Bytes>,
    /// The number of the first that is kept.
    first: u64,
    /// The number of the next to be handed out.
    next: u64,
    /// Whoever reads has this number; an older one is told to stop.
    reader: u64,
    is_read: bool,
    is_known: bool,
    waker: Option<Waker>,
}

impl Outgoing {
    fn new(is_known: bool) -> Self {
        Outgoing { kept: VecDeque::new(), first: 1, next: 1, reader: 0, is_read: false, is_known, waker: None }
    }

    fn forget_until(&mut self, count: u64) -> usize {
        let mut bytes = 0;
        while self.first <= count && self.first < self.next {
            let Some(message) = self.kept.pop_front() else { break };
            bytes += message.len();
            self.first += 1;
        }
        bytes
    }
}

/// What a reader of a stream gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message, with its number.
    Message(u64, Utf8Bytes),
    /// There will be no more.
    Over,
    /// Somebody else reads this stream now.
    Replaced,
}

/// Why a stream cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachError {
    /// Somebody reads it.
    Taken,
    /// There are too many, or nobody knows its session.
    Unknown,
    /// What comes next is not kept any more, or was never sent.
    Gone,
}

/// Which message of the client this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// The client does not count.
    None,
    /// The one after the last, by the reader with this number.
    Next(u64),
    /// The client says that it is this one.
    Is(u64),
}

/// What became of a message that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The program will read it.
    Taken,
    /// It came before.
    Repeated,
    /// One before it is missing.
    TooEarly,
    /// Nobody reads any more.
    Closed,
    /// Somebody else has the connection now.
    Replaced,
}

impl Channel {
    pub(crate) fn new(end: End, bounds: Bounds) -> Arc<Self> {
        let state = State {
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            incoming_end: None,
            program_reads: None,
            room: Vec::new(),
            received: 0,
            streams: HashMap::from([(None, Outgoing::new(true))]),
            outgoing_bytes: 0,
            outgoing_over: false,
            program_writes: None,
            progress: Instant::now(),
            without_stream: HashSet::new(),
            requests: HashMap::new(),
            running: HashSet::new(),
            greeting: Greeting::default(),
            updated: None,
            resumes: false,
            attached: 0,
            away_since: Instant::now(),
        };
        Arc::new(Channel { state: Mutex::new(state), changed: Notify::new(), bounds, end })
    }

    /// The program's end.
    pub(crate) fn transport(self: &Arc<Self>) -> Transport {
        Transport::new(ProgramReader { channel: self.clone(), held: None }, ProgramWriter(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the peer tells what has arrived.
    pub(crate) fn resumes(&self) -> bool {
        self.lock().resumes
    }

    /// Hands a message to the program, when there is room.
    ///
    /// `held` is what counts for the message until the program has read it and comes for the next one.
    pub(crate) fn poll_push(
        &self,
        cx: &mut Context<'_>,
        message: &mut String,
        held: &mut Option<Held>,
        number: Number,
    ) -> Poll<Pushed> {
        let state = &mut *self.lock();
        if state.incoming_end.is_some() {
            return Poll::Ready(Pushed::Closed);
        }
        if let Number::Next(reader) = number
            && state.streams.get(&None).is_none_or(|stream| stream.reader != reader)
        {
            return Poll::Ready(Pushed::Replaced);
        }
        if let Number::Is(number) = number {
            if number <= state.received {
                return Poll::Ready(Pushed::Repeated);
            }
            if number > state.received + 1 {
                return Poll::Ready(Pushed::TooEarly);
            }
        }
        // Answers and cancels may be what an agent with too many requests waits for.
        let is_one_too_many = || {
            state.requests.len() >= MOST_REQUESTS && matches!(parts(message), Ok(Parts { kind: Kind::Request(_), .. }))
        };
        if state.incoming_bytes >= self.bounds.incoming || is_one_too_many() {
            if !state.room.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.room.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        self.note_incoming(state, message);
        state.received += u64::from(number != Number::None);
        state.incoming_bytes += message.len();
        state.incoming.push_back((std::mem::take(message), held.take()));
        wake(&mut state.program_reads);
        Poll::Ready(Pushed::Taken)
    }

    /// Hands a message to the program as soon as there is room.
    pub(crate) async fn push(&self, mut message: String, mut held: Option<Held>, number: Number) -> Pushed {
        std::future::poll_fn(|cx| self.poll_push(cx, &mut message, &mut held, number)).await
    }

    /// How many messages came in that are counted.
    pub(crate) fn received(&self) -> u64 {
        self.lock().received
    }

    /// What has to be remembered of a message that comes in.
    fn note_incoming(&self, state: &mut State, message: &str) {
        if self.end == End::Client {
            if state.greeting.id.is_some()
                && let Ok(parts) = parts(message)
                && matches!(&parts.kind, Kind::Response(id) if Some(id) == state.greeting.id.as_ref())
            {
                state.greeting.id = None;
                state.greeting.text = None;
                state.resumes |= state.greeting.wants_resume && parts.wants_resume();
            }
            return;
        }
        let Ok(parts) = parts(message) else { return };
        let Kind::Request(id) = &parts.kind else { return };
        if parts.method == "initialize" {
            state.greeting.id = Some(id.clone());
            state.greeting.wants_resume = parts.wants_resume();
        }
        let session = if self.end == (End::Agent { streams: true }) { parts.session() } else { None };
        let stream = session.map(Arc::from);
        // The client has named the session: messages about it have a stream from now on.
        if stream.is_some() && !state.streams.contains_key(&stream) && state.streams.len() <= self.bounds.streams {
            state.streams.insert(stream.clone(), Outgoing::new(true));
        }
        // A session that is opened anew is answered on its own stream only if that is read: then the answer comes after
        // what belongs before it.
        let opens = matches!(parts.method.as_ref(), "session/load" | "session/resume" | "session/fork");
        let is_read = state.streams.get(&stream).is_some_and(|stream| stream.is_read);
        let stream = if opens && !is_read { None } else { stream };
        state.requests.insert(id.clone(), stream);
    }

    /// The client has named this session as those do that open no stream for it. Unless it has one, what is about it goes out on the
    /// connection's stream from now on, and stays there: nothing overtakes anything.
    pub(crate) fn tell_on_connection(&self, session: &StreamId) {
        let state = &mut *self.lock();
        let is_read = state.streams.get(session).is_some_and(|stream| stream.is_read);
        if !is_read && state.without_stream.len() < self.bounds.streams {
            state.without_stream.insert(session.clone());
        }
    }

    /// Who gets the answer to the `initialize` that is pushed next.
    pub(crate) fn expect_greeting(&self) -> oneshot::Receiver<Utf8Bytes> {
        let (sender, receiver) = oneshot::channel();
        self.lock().greeting.answer = Some(sender);
        receiver
    }

    /// Sends `initialize` again, if it was sent and not answered: nothing follows from it, so it can be repeated.
    pub(crate) fn greet_again(&self) -> bool {
        let state = &mut *self.lock();
        let (Some(text), false) = (state.greeting.text.clone(), state.resumes) else { return false };
        let Some(outgoing) = state.streams.get_mut(&None).filter(|outgoing| outgoing.next == 2) else { return false };
        state.outgoing_bytes += text.len();
        outgoing.kept.push_front(text);
        (outgoing.first, outgoing.next) = (1, 1);
        true
    }

    /// The stream that a message of the agent belongs to.
    fn stream_of(&self, state: &mut State, parts: &Parts<'_>) -> StreamId {
        let stream = match &parts.kind {
            Kind::Response(id) => {
                if state.requests.len() >= MOST_REQUESTS {
                    state.room.drain(..).for_each(Waker::wake);
                }
                state.requests.remove(id).flatten()
            }
            _ if self.end == (End::Agent { streams: true }) => parts.session().map(Arc::from),
            _ => None,
        };
        // An answer that names a session makes it known: its stream may be opened.
        if matches!(parts.kind, Kind::Response(_)) && self.end == (End::Agent { streams: true }) {
            let named: StreamId = parts.session().map(Arc::from);
            if named.is_some() && state.streams.len() <= self.bounds.streams {
                state.streams.entry(named).or_insert_with(|| Outgoing::new(true)).is_known = true;
            }
        }
        stream
    }

    /// Takes a message of the program, when there is room.
    fn poll_write(&self, cx: &mut Context<'_>, message: &str) -> Poll<io::Result<()>> {
        let state = &mut *self.lock();
        if state.outgoing_over || matches!(state.incoming_end, Some(Ended::Lost(_))) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if state.outgoing_bytes >= self.bounds.outgoing {
            state.program_writes = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if state.outgoing_bytes == 0 {
            state.progress = Instant::now();
        }
        let mut text = Utf8Bytes::from(message);
        let mut stream = None;
        match self.end {
            End::Client => {
                // A prompt with pictures in it is not looked through.
                let may_greet = message.len() <= LONGEST_GREETING && message.contains("\"initialize\"");
                if let Some(Parts { kind: Kind::Request(id), method, .. }) =
                    may_greet.then(|| parts(message).ok()).flatten()
                    && method == "initialize"
                {
                    text = with_resume(message).into();
                    state.greeting =
                        Greeting { id: Some(id), text: Some(text.clone()), wants_resume: true, answer: None };
                }
            }
            End::Agent { streams } => {
                note_state(state, message);
                // On one stream for all, only answers matter, and a text that begins like this is none.
                let updated = if streams { updated_session(message) } else { None };
                let is_plain = updated.is_some() || (!streams && message.starts_with(NO_ANSWER));
                let parts = if is_plain { None } else { parts(message).ok() };
                let answered = match parts.as_ref().map(|parts| &parts.kind) {
                    Some(Kind::Response(id)) => Some(id),
                    _ => None,
                };
                let is_greeting = answered.is_some() && answered == state.greeting.id.as_ref();
                stream = match updated {
                    // One update follows the other.
                    Some(session) if state.updated.as_deref() == Some(session) => state.updated.clone(),
                    Some(session) => {
                        state.updated = Some(session.into());
                        state.updated.clone()
                    }
                    None => parts.as_ref().and_then(|parts| self.stream_of(state, parts)),
                };
                if is_greeting {
                    state.greeting.id = None;
                    if state.greeting.wants_resume {
                        state.resumes = true;
                        text = with_resume(message).into();
                    }
                    if let Some(answer) = state.greeting.answer.take() {
                        // If nobody waits any more, the connection is about to be given up.
                        drop(answer.send(text));
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
        state.outgoing_bytes += text.len();
        let is_full = state.streams.len() > self.bounds.streams;
        if (is_full && !state.streams.contains_key(&stream)) || state.without_stream.contains(&stream) {
            stream = None;
        }
        let outgoing = state.streams.entry(stream).or_insert_with(|| Outgoing::new(true));
        outgoing.is_known = true;
        outgoing.kept.push_back(text);
        wake(&mut outgoing.waker);
        Poll::Ready(Ok(()))
    }

    /// Begins to read a stream. `received` is how many messages of it the peer has, if it says so; then whoever read it before is
    /// told to stop.
    pub(crate) fn attach(&self, stream: &StreamId, received: Option<u64>) -> Result<u64, AttachError> {
        let state = &mut *self.lock();
        if !state.streams.contains_key(stream) {
            let early = state.streams.values().filter(|stream| !stream.is_known).count();
            if early >= self.bounds.early || state.streams.len() > self.bounds.streams {
                return Err(AttachError::Unknown);
            }
            state.streams.insert(stream.clone(), Outgoing::new(false));
        }
        let resumes = state.resumes;
        let Some(outgoing) = state.streams.get_mut(stream) else { return Err(AttachError::Unknown) };
        if let Some(received) = received.filter(|_| resumes) {
            if received >= outgoing.first + outgoing.kept.len() as u64 || received + 1 < outgoing.first {
                return Err(AttachError::Gone);
            }
            outgoing.next = received + 1;
            let freed = outgoing.forget_until(received);
            state.outgoing_bytes -= freed;
            wake(&mut state.program_writes);
        } else if outgoing.is_read {
            return Err(AttachError::Taken);
        }
        outgoing.reader += 1;
        outgoing.is_read = true;
        wake(&mut outgoing.waker);
        let reader = outgoing.reader;
        state.attached += 1;
        state.progress = Instant::now();
        Ok(reader)
    }

    /// Ends what [`attach`](Self::attach) began.
    pub(crate) fn detach(&self, stream: &StreamId, reader: u64) {
        let state = &mut *self.lock();
        state.attached -= 1;
        state.away_since = Instant::now();
        if let Some(outgoing) = state.streams.get_mut(stream).filter(|outgoing| outgoing.reader == reader) {
            outgoing.is_read = false;
            outgoing.waker = None;
        }
    }

    /// The next message of a stream.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>, stream: &StreamId, reader: u64) -> Poll<Next> {
        let state = &mut *self.lock();
        let Some(outgoing) = state.streams.get_mut(stream) else { return Poll::Ready(Next::Over) };
        if outgoing.reader != reader {
            return Poll::Ready(Next::Replaced);
        }
        let at = (outgoing.next - outgoing.first) as usize;
        let Some(message) = outgoing.kept.get(at).cloned() else {
            if state.outgoing_over || matches!(state.incoming_end, Some(Ended::Lost(_))) {
                return Poll::Ready(Next::Over);
            }
            if !outgoing.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                outgoing.waker = Some(cx.waker().clone());
            }
            return Poll::Pending;
        };
        let number = outgoing.next;
        outgoing.next += 1;
        state.progress = Instant::now();
        if !state.resumes {
            let freed = outgoing.forget_until(number);
            state.outgoing_bytes -= freed;
            wake(&mut state.program_writes);
        }
        Poll::Ready(Next::Message(number, message))
    }

    /// The peer has this many messages of a stream.
    pub(crate) fn acknowledge(&self, stream: &StreamId, count: u64) {
        let state = &mut *self.lock();
        if let Some(outgoing) = state.streams.get_mut(stream) {
            let freed = outgoing.forget_until(count);
            state.outgoing_bytes -= freed;
            if freed > 0 {
                state.progress = Instant::now();
                wake(&mut state.program_writes);
            }
        }
    }

    /// Says something on the connection's stream in the transport's own name, to a peer that understands it.
    pub(crate) fn announce(&self, text: &'static str) {
        let state = &mut *self.lock();
        if !state.resumes || state.outgoing_over || state.incoming_end.is_some() {
            return;
        }
        if let Some(outgoing) = state.streams.get_mut(&None) {
            outgoing.kept.push_back(Utf8Bytes::from_static(text));
            state.outgoing_bytes += text.len();
            wake(&mut outgoing.waker);
        }
    }

    /// Nothing more will come from the peer. With [`Ended::Lost`] nothing more is sent either.
    pub(crate) fn end(&self, ended: Ended) {
        let state = &mut *self.lock();
        // A loss is the stronger word.
        if state.incoming_end.is_none()
            || (matches!(ended, Ended::Lost(_)) && state.incoming_end == Some(Ended::Closed))
        {
            state.incoming_end = Some(ended);
        }
        state.wake_all();
        self.changed.notify_waiters();
    }

    /// Whether both directions are over.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        match state.incoming_end {
            Some(Ended::Lost(_)) => true,
            Some(Ended::Closed) => state.outgoing_over && state.streams.values().all(|stream| stream.kept.is_empty()),
            None => state.outgoing_over && state.outgoing_bytes == 0,
        }
    }

    /// Waits until nothing more comes from the peer, or the program is done.
    pub(crate) async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.lock();
                if state.incoming_end.is_some() || state.outgoing_over {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Whether the agent has something to answer or a turn to end.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        !state.requests.is_empty() || !state.running.is_empty()
    }

    /// How long the peer has not read what waits for it, if the program has to wait for that.
    pub(crate) fn stalled_for(&self) -> Option<Duration> {
        let state = self.lock();
        (state.outgoing_bytes >= self.bounds.outgoing).then(|| state.progress.elapsed())
    }

    /// How long nobody has held this connection.
    pub(crate) fn away_for(&self) -> Option<Duration> {
        let state = self.lock();
        (state.attached == 0).then(|| state.away_since.elapsed())
    }

    /// The peer has shown itself.
    pub(crate) fn touch(&self) {
        self.lock().away_since = Instant::now();
    }
}

/// Takes note of a turn that begins or ends, as version 2 tells it.
fn note_state(state: &mut State, message: &str) {
    if message.len() > LONGEST_STATE || !message.contains("\"state_update\"") {
        return;
    }
    let Ok(parts) = parts(message) else { return };
    let (Some(session), Some(update)) = (parts.session(), parts.body.and_then(|body| raw_member(body, "update")))
    else {
        return;
    };
    match string_member(update, "state").as_deref() {
        Some("idle") => drop(state.running.remove(&session)),
        Some(_) if state.running.len() < MOST_REQUESTS => drop(state.running.insert(session)),
        _ => {}
    }
}

impl State {
    fn wake_all(&mut self) {
        wake(&mut self.program_reads);
        wake(&mut self.program_writes);
        for outgoing in self.streams.values_mut() {
            wake(&mut outgoing.waker);
        }
        self.room.drain(..).for_each(Waker::wake);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

struct ProgramReader {
    channel: Arc<Channel>,
    /// Of the message that was read last: it is in memory until the program comes for the next one.
    held: Option<Held>,
}

impl MessageReader for ProgramReader {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<String>>> {
        self.held = None;
        let state = &mut *self.channel.lock();
        if let Some((message, held)) = state.incoming.pop_front() {
            self.held = held;
            let was_full = state.incoming_bytes >= self.channel.bounds.incoming;
            state.incoming_bytes -= message.len();
            if was_full {
                state.room.drain(..).for_each(Waker::wake);
            }
            return Poll::Ready(Ok(Some(message)));
        }
        match state.incoming_end {
            Some(Ended::Closed) => Poll::Ready(Ok(None)),
            Some(Ended::Lost(kind)) => Poll::Ready(Err(kind.into())),
            None => {
                state.program_reads = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for ProgramReader {
    fn drop(&mut self) {
        let state = &mut *self.channel.lock();
        state.incoming.clear();
        state.incoming_bytes = 0;
        state.incoming_end.get_or_insert(Ended::Closed);
        state.wake_all();
        self.channel.changed.notify_waiters();
    }
}

struct ProgramWriter(Arc<Channel>);

impl MessageWriter for ProgramWriter {
    fn poll_write(&mut self, cx: &mut Context<'_>, message: &str) -> Poll<io::Result<()>> {
        self.0.poll_write(cx, message)
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.0.lock();
        state.outgoing_over = true;
        state.wake_all();
        self.0.changed.notify_waiters();
        Poll::Ready(Ok(()))
    }
}

impl Drop for ProgramWriter {
    fn drop(&mut self) {
        let state = &mut *self.0.lock();
        state.outgoing_over = true;
        state.wake_all();
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What can be read of a stream now.
    fn read(channel: &Channel, stream: &StreamId, reader: u64) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut texts = Vec::new();
        while let Poll::Ready(Next::Message(_, text)) = channel.poll_next(&mut cx, stream, reader) {
            texts.push(text.to_string());
        }
        texts
    }

    #[test]
    fn a_session_without_a_stream_is_told_of_on_the_connections() {
        const LOAD: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s"}}"#;
        const PROMPT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}"#;
        const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}"#;
        const LOADED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        const PROMPTED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        let mut cx = Context::from_waker(Waker::noop());
        for is_read in [false, true] {
            let bounds = Bounds { incoming: 1 << 10, outgoing: 1 << 10, streams: 4, early: 4 };
            let channel = Channel::new(End::Agent { streams: true }, bounds);
            let session: StreamId = Some("s".into());
            let own = if is_read { channel.attach(&session, None).ok() } else { None };
            channel.tell_on_connection(&session);
            let mut say = |text: &str| assert!(channel.poll_write(&mut cx, text).is_ready());
            let hear = |text: &str| {
                let mut cx = Context::from_waker(Waker::noop());
                assert_eq!(
                    channel.poll_push(&mut cx, &mut text.to_owned(), &mut None, Number::None),
                    Poll::Ready(Pushed::Taken)
                );
            };
            hear(LOAD);
            say(UPDATE);
            say(LOADED);
            // Some open it when they hear of the session, but what comes next must not overtake what came before.
            let own = own.unwrap_or_else(|| channel.attach(&session, None).unwrap());
            hear(PROMPT);
            say(UPDATE);
            say(PROMPTED);
            let connection = channel.attach(&None, None).unwrap();
            let all = [UPDATE, LOADED, UPDATE, PROMPTED].map(str::to_owned).to_vec();
            let (on_connection, on_session) = if is_read { (vec![], all) } else { (all, vec![]) };
            assert_eq!(read(&channel, &None, connection), on_connection);
            assert_eq!(read(&channel, &session, own), on_session);
        }
    }
}
