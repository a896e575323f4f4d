//! Sending: waiting for room, requests and their answers.

use std::sync::MutexGuard;

use attache_proto::json::{RawJson, Writer};
use attache_proto::method::{Method, Notification, Request};
use attache_proto::rpc::RequestKey;

use super::answer::{self, AnswerSender, PendingAnswer};
use super::{Link, Port, Router, State, Waiter, method_name};
use crate::spans::Span;
use crate::{Closed, Error};

/// What sends something with the state locked, once.
pub(crate) type SendOnce<'a, R> = &'a mut (dyn FnMut(&mut R, &mut Port<'_, R>) + Send);

/// What writes the params of a request, once.
pub(crate) type WriteParams<'a> = dyn FnMut(&mut Writer<'_>) + Send + 'a;

impl<R: Router> Link<R> {
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
    pub(super) fn give_room(&self, mut state: MutexGuard<'_, State<R>>) {
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

    /// Sends a request whose answer nobody waits for, at once: for guards that are dropped.
    pub(crate) fn request_now(&self, method: &str, params: impl FnOnce(&mut Writer<'_>)) {
        self.with(|_, port| port.peer.request(method, params, Waiter::Call(AnswerSender::nobody()), port.out));
    }
}

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
