//! The connection: one task that reads and writes, and one state that everybody else leaves things in.
//!
//! The task never runs user code and never waits for it. What arrives is put into an inbox by a [`Router`], the only part
//! that differs between agent and client. What is sent is encoded straight into the outbox by whoever sends it.

pub(crate) mod answer;
mod driver;
mod outlet;
mod router;
mod send;
mod shared_api;

use std::future::poll_fn;
#[cfg(feature = "agent")]
use std::io::Write as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use attache_proto::Dialect;
use attache_proto::frame::{Framing, Splitter};
use attache_proto::rpc::{Peer, Side};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use self::driver::{Driver, Source};
use self::outlet::{Outlet, Sink};
pub(crate) use self::router::{Arriving, Port, Router, Waiter, method_name};
pub(crate) use self::send::{Abandon, Expects};
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
