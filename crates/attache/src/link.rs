//! The connection: one task that reads and writes, and one state that everybody else leaves things in.
//!
//! The task never runs user code and never waits for it. What arrives is put into an inbox by a [`Router`], the only part
//! that differs between agent and client. What is sent is encoded straight into the outbox by whoever sends it.

pub(crate) mod answer;
mod driver;
mod outlet;
mod shared_api;

use std::future::poll_fn;
#[cfg(feature = "agent")]
use std::io::Write as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use attache_proto::frame::{Framing, Splitter};
use attache_proto::json::{DecodeError, RawJson, Writer};
use attache_proto::method::{Method, Notification, Request};
use attache_proto::model::error::ErrorObject;
use attache_proto::rpc::{Call, Peer, RequestKey, Side, Violation};
use attache_proto::{Dialect, Encode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use self::answer::{AnswerSender, PendingAnswer};
use self::driver::{Driver, Source};
use self::outlet::{Outlet, Sink};
pub(crate) use self::shared_api::{connection_settings, untyped_methods};
#[cfg(feature = "agent")]
use crate::error::without_controls;
use crate::spans::Span;
use crate::transport::Transport;
use crate::{Closed, Error, Limits, Report};

/// The parts of a connection's set-up that both sides share.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) limits: Limits,
    pub(crate) strict: bool,
    pub(crate) framing: Option<Framing>,
    pub(crate) refuse_batches: bool,
    pub(crate) report: Option<Arc<dyn Fn(Report) + Send + Sync>>,
    pub(crate) tap: Option<Arc<crate::trace::Tap>>,
}

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
    reports: &'a mut Vec<Report>,
    /// Bytes that are with the writer.
    writing: usize,
    is_closed: bool,
    is_crowded: &'a mut bool,
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

/// A handle to a connection. Cheap to clone; the connection lives as long as its task.
pub(crate) struct Link<R: Router>(Arc<Shared<R>>);

impl<R: Router> Clone for Link<R> {
    fn clone(&self) -> Self {
        Link(self.0.clone())
    }
}

struct Shared<R: Router> {
    state: Mutex<State<R>>,
    /// The writing end, until the connection's task is gone. Never locked while the state is.
    outlet: Mutex<Option<Outlet>>,
    /// The outbox has room again, or the connection ended. One waiter is told, and tells the next one.
    room: Notify,
    /// The outbox is empty, or the connection ended.
    flushed: Notify,
    /// The peer is owed no answer any more, or the connection ended.
    settled: Notify,
    /// The dialect as a number, so that asking for it takes no lock.
    dialect: AtomicU8,
    decoder: R::Decoder,
    options: Options,
}

pub(crate) struct State<R: Router> {
    pub(crate) router: R,
    peer: Peer<Waiter<R::Ticket>>,
    /// Encoded, and not yet with the writer.
    out: Vec<u8>,
    /// With the writer, and not yet written.
    writing: usize,
    /// How much of the outbox waited for room before it was put there.
    waited: usize,
    /// How much of what is with the writer did not.
    unwaited: usize,
    /// Somebody waits for room.
    is_crowded: bool,
    /// The connection's task, when it has nothing to do.
    driver: Option<Waker>,
    /// Reading has paused because too much is unread.
    paused: bool,
    /// The peer has sent at least one message that could be understood.
    is_met: bool,
    limits: Arc<Limits>,
    closing: bool,
    /// Nothing more will be read.
    ended: Option<Closed>,
    /// Nothing more will be written either.
    closed: Option<Closed>,
    /// What is known of the peer's end before the wire ends.
    cause: Option<Closed>,
    junk: usize,
    /// Junk that came before the first message has been reported.
    is_junk_reported: bool,
    /// The first junk of the conversation, for whoever started a wrong program.
    printed: String,
    reports: Vec<Report>,
}

/// How much of the first junk is kept, in bytes: a banner or an error message, not a file.
const PRINTED: usize = 2048;

impl<R: Router> State<R> {
    fn split(&mut self) -> (&mut R, Port<'_, R>) {
        let State { router, peer, out, reports, limits, writing, closed, is_crowded, .. } = self;
        (router, Port { peer, out, reports, limits, writing: *writing, is_closed: closed.is_some(), is_crowded })
    }

    fn wake(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Somebody waits for room. Reading goes on if it has paused: the peer may have to write before it reads.
    fn wait_for_room(&mut self) {
        self.is_crowded = true;
        if self.paused {
            self.wake();
        }
    }

    fn unwritten(&self) -> usize {
        self.out.len() + self.writing
    }
}

impl<R: Router> Link<R> {
    /// A connection over two streams of bytes, and the future that drives it.
    pub(crate) fn new(
        router: R,
        decoder: R::Decoder,
        options: Options,
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> (Self, impl Future<Output = Closed> + Send) {
        let splitter = Splitter::new(options.framing, options.limits.message);
        let source = Source::Bytes { reader, splitter, framing: options.framing };
        Self::start(router, decoder, options, source, Sink::Bytes(writer))
    }

    /// A connection over a transport that carries whole messages.
    pub(crate) fn over(
        router: R,
        decoder: R::Decoder,
        options: Options,
        transport: Transport,
    ) -> (Self, impl Future<Output = Closed> + Send) {
        let options = Options { framing: None, ..options };
        let Transport { reader, writer } = transport;
        Self::start(router, decoder, options, Source::Messages(reader), Sink::Messages(writer))
    }

    fn start(
        router: R,
        decoder: R::Decoder,
        options: Options,
        source: Source,
        sink: Sink,
    ) -> (Self, impl Future<Output = Closed> + Send) {
        let mut peer = Peer::new(R::SIDE);
        peer.set_strict(options.strict);
        peer.set_accepts_batches(!options.refuse_batches);
        peer.set_max_open_calls(options.limits.requests);
        peer.set_framing(options.framing.unwrap_or_default());
        let state = State {
            router,
            peer,
            out: Vec::new(),
            writing: 0,
            waited: 0,
            unwaited: 0,
            is_crowded: false,
            driver: None,
            paused: false,
            is_met: false,
            limits: Arc::new(options.limits.clone()),
            closing: false,
            ended: None,
            closed: None,
            cause: None,
            junk: 0,
            is_junk_reported: false,
            printed: String::new(),
            reports: Vec::new(),
        };
        let link = Link(Arc::new(Shared {
            state: Mutex::new(state),
            outlet: Mutex::new(Some(Outlet::new(sink))),
            room: Notify::new(),
            flushed: Notify::new(),
            settled: Notify::new(),
            dialect: AtomicU8::new(0),
            decoder,
            options,
        }));
        let mut driver = Driver { link: link.clone(), source, read_done: false, write_failed: false };
        let side = if R::SIDE == Side::Agent { "agent" } else { "client" };
        let span = Span::connection(side);
        (link, async move { span.around(poll_fn(move |cx| driver.poll(cx))).await })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.options.limits
    }

    /// Looks at or changes the state. What was written meanwhile is sent.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut R, &mut Port<'_, R>) -> T) -> T {
        let mut state = self.lock();
        let before = state.out.len();
        let (router, mut port) = state.split();
        let result = change(router, &mut port);
        self.after_change(state, before);
        result
    }

    /// The first junk that the peer sent, without control characters.
    #[cfg(feature = "process")]
    pub(crate) fn junk(&self) -> String {
        self.lock().printed.clone()
    }

    /// Sets what to give as the reason when the wire ends or breaks, for who knows more than the wire.
    #[cfg(feature = "process")]
    pub(crate) fn set_cause(&self, cause: Closed) {
        self.lock().cause = Some(cause);
    }

    /// Why the connection ended, if it has.
    pub(crate) fn closed(&self) -> Option<Closed> {
        self.lock().closed.clone()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.0.dialect.load(Ordering::Relaxed) {
            0 => Dialect::V1,
            1 => Dialect::V2Draft,
            _ => Dialect::V2,
        }
    }

    /// Waits for room in the outbox, then does `send` with the state locked.
    pub(crate) async fn send<T: Send>(
        &self,
        send: impl FnOnce(&mut R, &mut Port<'_, R>) -> T + Send,
    ) -> Result<T, Error> {
        self.send_to(Expects::Nothing, send).await
    }

    pub(crate) async fn send_to<T: Send>(
        &self,
        expects: Expects,
        send: impl FnOnce(&mut R, &mut Port<'_, R>) -> T + Send,
    ) -> Result<T, Error> {
        let (mut send, mut sent) = (Some(send), None);
        let mut once = |router: &mut R, port: &mut Port<'_, R>| sent = send.take().map(|send| send(router, port));
        // There nearly always is room, and then nothing has to be set up for waiting.
        if !self.try_send(expects, &mut once)? {
            self.send_later(expects, &mut once).await?;
        }
        sent.ok_or(Error::Closed(Closed::ByUs))
    }

    /// Sends when there is room. Compiled once for all kinds of messages.
    pub(crate) async fn send_later(&self, expects: Expects, send: SendOnce<'_, R>) -> Result<(), Error> {
        loop {
            let room = self.0.room.notified();
            // Room may have come before we listened for it.
            let sent = self.try_send(expects, send);
            if !matches!(sent, Ok(false)) {
                self.pass_room_on();
                return sent.map(|_| ());
            }
            room.await;
        }
    }

    /// Waits for room in the outbox, or for the end of the connection.
    pub(crate) async fn room(&self) {
        if self.has_room() {
            return;
        }
        loop {
            let room = self.0.room.notified();
            if self.has_room() {
                return self.pass_room_on();
            }
            room.await;
        }
    }

    fn has_room(&self) -> bool {
        let mut state = self.lock();
        let has_room = state.unwritten() < self.limits().outbox || state.closed.is_some();
        if !has_room {
            state.wait_for_room();
        }
        has_room
    }

    /// Tells the first who waits for room, if there is enough to make it worth while.
    fn give_room(&self, mut state: MutexGuard<'_, State<R>>) {
        if state.is_crowded && state.unwritten() <= self.limits().outbox / 2 {
            state.is_crowded = false;
            state.router.room();
            drop(state);
            self.0.room.notify_one();
        }
    }

    /// Somebody has waited for room and goes on: there may be others behind, and room for them.
    fn pass_room_on(&self) {
        let mut state = self.lock();
        let was_crowded = state.is_crowded;
        state.is_crowded = state.unwritten() >= self.limits().outbox;
        if !state.is_crowded {
            if was_crowded {
                state.router.room();
            }
            drop(state);
            self.0.room.notify_one();
        }
    }

    /// Sends if there is room, and says whether there was.
    pub(crate) fn try_send(&self, expects: Expects, send: SendOnce<'_, R>) -> Result<bool, Error> {
        let Some(mut state) = self.lock_for_sending(expects)? else { return Ok(false) };
        let before = state.out.len();
        let (router, mut port) = state.split();
        send(router, &mut port);
        state.waited += state.out.len() - before;
        self.after_change(state, before);
        Ok(true)
    }

    /// Locks the state if there is room to send something.
    fn lock_for_sending(&self, expects: Expects) -> Result<Option<MutexGuard<'_, State<R>>>, Error> {
        let mut state = self.lock();
        let closed = match expects {
            Expects::Nothing => &state.closed,
            Expects::Answer if state.closed.is_none() => &state.ended,
            Expects::Answer => &state.closed,
        };
        if let Some(closed) = closed {
            return Err(Error::Closed(closed.clone()));
        }
        if state.unwritten() >= self.limits().outbox {
            state.wait_for_room();
            return Ok(None);
        }
        Ok(Some(state))
    }

    /// Sends a typed notification.
    pub(crate) async fn notify<N: Notification>(&self, params: &N) -> Result<(), Error> {
        self.send(|_, port| {
            let method = method_name(N::METHOD, port.dialect());
            port.peer.notify(method, |writer| params.encode(writer), port.out);
        })
        .await
    }

    /// Sends a typed request and waits for its answer. Dropping the future tells the peer that nobody waits any more.
    pub(crate) async fn call<Q: Request>(&self, params: &Q) -> Result<Q::Response, Error> {
        let method = self.offered(Q::METHOD)?;
        self.ask(method, &mut |writer| params.encode(writer), answer::channel(method), false).await
    }

    /// The same for an answer that has to be put away: dropping the future tells the peer, but if an answer comes all the
    /// same, `make` makes of it what is then dropped.
    #[cfg(feature = "agent")]
    pub(crate) async fn call_for<Q: Request, T: Send + 'static>(
        &self,
        params: &Q,
        make: impl Fn(Q::Response) -> T + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let method = self.offered(Q::METHOD)?;
        self.ask(method, &mut |writer| params.encode(writer), answer::channel_for(method, make), true).await
    }

    fn offered(&self, method: Method) -> Result<&'static str, Error> {
        method.name(self.dialect()).ok_or(Error::NotOffered("this method in the agreed version"))
    }

    /// Sends a request of any name and waits for the text of its answer.
    pub(crate) async fn call_raw(&self, method: &str, params: &mut WriteParams<'_>) -> Result<RawJson, Error> {
        self.ask(method, params, answer::raw(), false).await
    }

    async fn ask<T>(
        &self,
        method: &str,
        params: &mut WriteParams<'_>,
        (sender, answer): (AnswerSender, PendingAnswer<T>),
        reads_late: bool,
    ) -> Result<T, Error> {
        let key = self.send_request(method, params, sender).await?;
        let mut guard = Abandon { link: self.clone(), key: Some(key), reads_late };
        let span = Span::request(method);
        let answer = match self.limits().request_timeout {
            None => span.around(answer).await,
            Some(time) => match span.around(tokio::time::timeout(time, answer)).await {
                Ok(answer) => answer,
                // The guard tells the peer that nobody waits any more.
                Err(_) => return Err(Error::TimedOut(time)),
            },
        };
        guard.key = None;
        answer
    }

    async fn send_request(
        &self,
        method: &str,
        params: &mut WriteParams<'_>,
        sender: AnswerSender,
    ) -> Result<RequestKey, Error> {
        self.send_to(Expects::Answer, |_, port| port.peer.request(method, params, Waiter::Call(sender), port.out)).await
    }

    /// Waits until everything is written. If nobody else writes, this task does, and spares waking the driver.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        // However fast the wire is, others get their turn.
        tokio::task::consume_budget().await;
        if self.write_now() {
            return Ok(());
        }
        loop {
            let flushed = self.0.flushed.notified();
            {
                let state = self.lock();
                if state.unwritten() == 0 {
                    return Ok(());
                }
                if let Some(closed) = &state.closed {
                    return Err(Error::Closed(closed.clone()));
                }
            }
            flushed.await;
        }
    }

    /// Writes what can be written without waiting, unless somebody else writes. True when all of it is written.
    fn write_now(&self) -> bool {
        let Ok(mut outlet) = self.0.outlet.try_lock() else { return false };
        let is_written = match &mut *outlet {
            Some(outlet) => outlet.write_now(self, &mut Context::from_waker(Waker::noop())),
            None => false,
        };
        drop(outlet);
        if !is_written {
            // The driver goes on where we stopped, and hears from the writer when it can.
            self.lock().wake();
        }
        is_written
    }

    /// Sends a request whose answer nobody waits for, at once: for guards that are dropped.
    pub(crate) fn request_now(&self, method: &str, params: impl FnOnce(&mut Writer<'_>)) {
        self.with(|_, port| port.peer.request(method, params, Waiter::Call(AnswerSender::nobody()), port.out));
    }

    /// Waits until the peer is owed no answer, or the connection has ended.
    pub(crate) async fn settled(&self) {
        loop {
            let changed = self.0.settled.notified();
            {
                let state = self.lock();
                if state.peer.open_calls() == 0 || state.closed.is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Ends the connection once the outbox is written.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        state.wake();
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        // A panic while the state was locked is a bug here, but it must not take every other session with it.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outlet(&self) -> MutexGuard<'_, Option<Outlet>> {
        self.0.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the driver if there is something to write or room to read, and hands out reports.
    fn after_change(&self, mut state: MutexGuard<'_, State<R>>, before: usize) {
        let dialect = state.peer.dialect().unwrap_or(Dialect::V1);
        self.0.dialect.store(dialect as u8, Ordering::Relaxed);
        if state.out.len() > before || (state.paused && !self.must_pause(&mut state)) {
            state.wake();
        }
        if state.ended.is_some() && state.peer.open_calls() == 0 {
            self.0.settled.notify_waiters();
        }
        let lost = state.peer.take_lost();
        state.reports.extend(lost.into_iter().map(Report::Lost));
        if state.reports.is_empty() {
            return;
        }
        let mut reports = std::mem::take(&mut state.reports);
        drop(state);
        if let Some(report) = &self.0.options.report {
            let strict = self.0.options.strict;
            reports.drain(..).filter(|entry| strict || !entry.is_tolerated()).for_each(|entry| report(entry));
        }
    }

    /// Reports what went wrong here. It goes to stderr where nobody wants to be told: stdout is the wire.
    #[cfg(feature = "agent")]
    pub(crate) fn report(&self, report: Report) {
        match &self.0.options.report {
            Some(tell) => tell(report),
            // Not by `eprintln!`, which panics when stderr is closed.
            None => drop(writeln!(std::io::stderr(), "{}", without_controls(&report.to_string()))),
        }
    }

    /// Whether reading has to wait because too much is unread. It does as long as nobody waits for what comes next. When
    /// somebody does, reading goes on, and what is unread fails by name once it is too much.
    fn must_pause(&self, state: &mut State<R>) -> bool {
        if !state.router.is_over() {
            return false;
        }
        let is_call = |waiter: &Waiter<R::Ticket>| matches!(waiter, Waiter::Call(_));
        if !state.is_crowded && !state.peer.any_waiting(is_call) && !state.router.is_awaited() {
            return true;
        }
        let (router, mut port) = state.split();
        router.shed(&mut port);
        false
    }
}

/// A future of any kind. What is boxed here is compiled here, and not again in every program that awaits it.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What sends something with the state locked, once.
pub(crate) type SendOnce<'a, R> = &'a mut (dyn FnMut(&mut R, &mut Port<'_, R>) + Send);

/// What writes the params of a request, once.
pub(crate) type WriteParams<'a> = dyn FnMut(&mut Writer<'_>) + Send + 'a;

/// Whether a message is worth sending to a peer that will not say anything more.
#[derive(Clone, Copy)]
pub(crate) enum Expects {
    Nothing,
    Answer,
}

/// Tells the peer when the answer to a request is no longer waited for.
pub(crate) struct Abandon<R: Router> {
    pub(crate) link: Link<R>,
    pub(crate) key: Option<RequestKey>,
    /// Whether an answer that still comes is read, and dropped, instead of ignored.
    pub(crate) reads_late: bool,
}

impl<R: Router> Drop for Abandon<R> {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        if self.reads_late {
            self.link.with(|_, port| port.peer.cancel(key, port.out));
        } else {
            self.link.with(|_, port| port.peer.abandon(key, port.out));
        }
    }
}
