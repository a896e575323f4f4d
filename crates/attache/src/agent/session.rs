//! The task of one session: takes its commands in order, and runs one turn at a time.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use attache_proto::method::Method;
use attache_proto::model::config::{ConfigOption, SetConfigOptionResponse};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::prompt::PromptRequest;
use attache_proto::model::session::{CloseSessionResponse, SessionId, SetModeResponse};
use attache_proto::rpc::Call;

use super::router::{AgentRouter, Command, OptionChange};
use super::turn::TurnState;
use super::{HandlerError, Session, SessionHandle, Turn};
use crate::link::{Link, Port};
use crate::spans::Span;
use crate::{CancelToken, Prompt, Stop};

/// Runs a session until it is closed or the connection ends.
pub(super) async fn run<S: Session>(mut session: S, handle: SessionHandle) {
    let released = ReleaseOnDrop { link: handle.link().clone(), id: handle.id().clone() };
    while let Some(command) = next_command(&handle).await {
        match command {
            Command::Prompt { call, request, cancelled } => {
                // A turn that could say nothing yet would only take up memory.
                handle.link().room().await;
                // Boxed, so that a session at rest takes no room for the turn that it may have some day.
                Box::pin(run_turn(&mut session, &handle, call, request, cancelled)).await;
            }
            Command::SetOption(change) => Box::pin(set_option(&mut session, &handle, change)).await,
            Command::Leave(left) => {
                catch_panic(pin!(session.close())).await;
                drop(released);
                let _ = left.send(());
                return;
            }
            Command::Close(call, cancelled) => {
                let closing = Closing { handle: &handle, call: Some(call) };
                let closed = unless_cancelled(pin!(catch_panic(pin!(session.close()))), &cancelled).await;
                // Once, and before there is room for the answer: from here on the client may open the session again.
                drop(released);
                return closing.end(closed.flatten().is_some(), cancelled.is_cancelled()).await;
            }
        }
    }
    catch_panic(pin!(session.close())).await;
    drop(released);
}

/// A `session/close` that is owed an answer, whatever becomes of the session.
struct Closing<'a> {
    handle: &'a SessionHandle,
    call: Option<Call>,
}

impl Closing<'_> {
    async fn end(mut self, is_closed: bool, is_cancelled: bool) {
        let _ = self
            .handle
            .link()
            .send(|_, port| {
                let Some(call) = self.call.take() else { return };
                match (is_closed, is_cancelled) {
                    (true, _) => port.answer(call, &CloseSessionResponse::new()),
                    (false, true) => port.refuse(call, &ErrorObject::cancelled()),
                    (false, false) => port.refuse(call, &ErrorObject::internal("Internal error")),
                }
            })
            .await;
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.handle.link().with(|_, port| port.refuse(call, &ErrorObject::internal("Internal error")));
        }
    }
}

async fn set_option<S: Session>(session: &mut S, handle: &SessionHandle, change: OptionChange) {
    let cancelled = change.cancelled.clone();
    let options = {
        let work = pin!(session.set_option(change.id.clone(), change.value.clone()));
        let work = pin!(catch_panic(work));
        unless_cancelled(work, &cancelled).await
    };
    let options = match options {
        Some(Some(options)) => options.map_err(|error| error.answer(handle.link(), Method::SetConfigOption.any_name())),
        Some(None) => Err(ErrorObject::internal("Internal error")),
        None => Err(ErrorObject::cancelled()),
    };
    let _ = handle.link().send(|_, port| answer_option_change(handle, port, &change, options)).await;
}

/// Runs `work` to its end, unless it is cancelled before.
pub(super) async fn unless_cancelled<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
    cancelled: &CancelToken,
) -> Option<T> {
    let mut cancel = pin!(cancelled.cancelled());
    std::future::poll_fn(|cx| {
        if let Poll::Ready(value) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        cancel.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// When the task ends, however it ends, its session is gone and nobody waits for it.
struct ReleaseOnDrop {
    link: Link<AgentRouter>,
    id: SessionId,
}

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.link.with(|router, port| {
            for call in router.release(&self.id) {
                port.refuse(call, &ErrorObject::session_not_found(&self.id));
            }
        });
    }
}

async fn next_command(handle: &SessionHandle) -> Option<Command> {
    let mut waiter = None;
    std::future::poll_fn(|cx| {
        let next = handle.link().with(|router, _| router.next_command(handle.id(), &mut waiter, cx.waker()));
        next.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

async fn run_turn<S: Session>(
    session: &mut S,
    handle: &SessionHandle,
    call: Call,
    request: PromptRequest,
    cancelled: CancelToken,
) {
    // A turn that was cancelled before it began does not begin.
    if cancelled.is_cancelled() {
        let _ = handle
            .link()
            .send(|_, port| {
                handle.updates().write_with(port, Some(call), None, |session, emit| session.cancel_prompt(emit));
            })
            .await;
        return;
    }
    let state = TurnState::new(cancelled.clone());
    let answer = TurnAnswer { handle, state: &state, is_open: true };
    let prompt_id = state.begin(handle, call, &request).await;
    let prompt = Prompt::from(request.prompt).with_optional_meta(request.meta);
    let turn = Turn::new(handle.clone(), state.clone(), prompt_id);
    let span = Span::turn();
    let result = {
        let work = pin!(span.around(session.prompt(turn, prompt)));
        let work = pin!(catch_panic(work));
        until_cancelled(work, &cancelled, handle.link().limits().cancel_grace).await
    };
    let result = match result {
        _ if cancelled.is_cancelled() => Ok(Stop::Cancelled),
        Some(Some(result)) => result.map_err(|error| error.answer(handle.link(), Method::Prompt.any_name())),
        Some(None) => Err(ErrorObject::internal("Internal error")),
        None => Ok(Stop::Cancelled),
    };
    span.stopped(result.as_ref().map_or("error", |stop| stop.as_str()));
    answer.end(result).await;
}

/// Runs `work` to its end; once cancelled, for the grace at most. `None` when it was given up.
async fn until_cancelled<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
    cancelled: &CancelToken,
    grace: Duration,
) -> Option<T> {
    let mut deadline = pin!(async {
        cancelled.cancelled().await;
        tokio::time::sleep(grace).await;
    });
    std::future::poll_fn(|cx| {
        if let Poll::Ready(value) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        deadline.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// Runs user code; `None` when it panicked. The panic message is on stderr already. The code stays where it is: a future
/// that is moved into another takes its room twice.
pub(super) async fn catch_panic<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    })
    .await
}

pub(super) fn internal() -> HandlerError {
    HandlerError::from(ErrorObject::internal("Internal error"))
}

/// The answer that a prompt is owed. Dropped, it is an error, so that no client waits for ever.
struct TurnAnswer<'a> {
    handle: &'a SessionHandle,
    state: &'a TurnState,
    is_open: bool,
}

impl TurnAnswer<'_> {
    async fn end(mut self, result: Result<Stop, ErrorObject>) {
        let _ = self.handle.link().send(|router, port| self.write_end(router, port, &result)).await;
        self.is_open = false;
    }

    fn write_end(&self, router: &AgentRouter, port: &mut Port<'_, AgentRouter>, result: &Result<Stop, ErrorObject>) {
        let mut updates = self.handle.updates();
        updates.rest();
        let (calls, usage, meta) = self.state.take_end();
        for call in calls {
            updates.write_with(port, Some(call), None, |session, emit| {
                session.end_turn(result.clone(), usage.clone(), meta.clone(), emit);
            });
        }
        router.turn_ended(self.handle.id());
    }
}

impl Drop for TurnAnswer<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let failed = Err(ErrorObject::internal("Internal error"));
            self.handle.link().with(|router, port| self.write_end(router, port, &failed));
        }
    }
}

/// Answers a client that set an option, in the way that it asked.
pub(super) fn answer_option_change(
    handle: &SessionHandle,
    port: &mut Port<'_, AgentRouter>,
    change: &OptionChange,
    options: Result<Vec<ConfigOption>, ErrorObject>,
) {
    match options {
        Err(error) => port.refuse(change.call, &error),
        Ok(options) => {
            let mut updates = handle.updates();
            let shown = updates.session.set_options(options);
            updates.write_with(port, None, None, |session, emit| session.say_option_change(change.is_old_style, emit));
            drop(updates);
            if change.is_old_style {
                port.answer(change.call, &SetModeResponse::new());
            } else {
                port.answer(change.call, &SetConfigOptionResponse::new(shown));
            }
        }
    }
}
