//! The task of one session: takes its commands in order, and runs one turn at a time.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use attache_proto::Dialect;
use attache_proto::model::{
    CloseSessionResponse, ConfigOption, ErrorObject, MessageId, MessageUpdate, Patch, PromptRequest, PromptResponse,
    SessionId, SessionUpdate, SetConfigOptionResponse, SetModeResponse, StateUpdate,
};
use attache_proto::rpc::Call;

use super::flag::Flag;
use super::router::{AgentRouter, Command, OptionChange};
use super::{Session, SessionHandle, Turn};
use crate::link::Link;
use crate::{Error, Prompt, Stop};

/// Runs a session until it is closed or the connection ends.
pub(super) async fn run<S: Session>(mut session: S, handle: SessionHandle) {
    let released = Released { link: handle.link().clone(), id: handle.id().clone() };
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
                session.close().await;
                drop(released);
                let _ = left.send(());
                return;
            }
            Command::Close(call) => {
                session.close().await;
                let calls = handle.link().with(|router, _| router.release(handle.id()));
                let _ = handle
                    .link()
                    .send(|_, port| {
                        for call in calls {
                            port.refuse(call, &ErrorObject::cancelled());
                        }
                        port.answer(call, &CloseSessionResponse::new());
                    })
                    .await;
                return;
            }
        }
    }
    session.close().await;
    drop(released);
}

async fn set_option<S: Session>(session: &mut S, handle: &SessionHandle, change: OptionChange) {
    let work = pin!(session.set_option(change.id.clone(), change.value.clone()));
    let options = catch_panic(work).await.unwrap_or_else(|| Err(internal()));
    let _ = answer_option_change(handle, change, options).await;
}

/// When the task ends, however it ends, its session is gone and nobody waits for it.
struct Released {
    link: Link<AgentRouter>,
    id: SessionId,
}

impl Drop for Released {
    fn drop(&mut self) {
        self.link.with(|router, port| {
            for call in router.release(&self.id) {
                port.refuse(call, &ErrorObject::session_not_found(&self.id));
            }
        });
    }
}

async fn next_command(handle: &SessionHandle) -> Option<Command> {
    std::future::poll_fn(|cx| {
        let next = handle.link().with(|router, _| router.next_command(handle.id(), cx.waker()));
        next.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

async fn run_turn<S: Session>(
    session: &mut S,
    handle: &SessionHandle,
    call: Call,
    request: PromptRequest,
    cancelled: Arc<Flag>,
) {
    let dialect = handle.client().dialect;
    // A turn that was cancelled before it began does not begin. Version 2 calls a prompt that was not taken in an error.
    if cancelled.is_raised() {
        let _ = match dialect {
            Dialect::V2 => handle.link().send(|_, port| port.refuse(call, &ErrorObject::cancelled())).await,
            _ => handle.link().send(|_, port| port.answer(call, &PromptResponse::ended(Stop::Cancelled))).await,
        };
        return;
    }
    let answer = TurnAnswer { handle: handle.clone(), call, dialect, is_open: true };
    let mut prompt_id = None;
    if dialect == Dialect::V2 {
        prompt_id = Some(answer.accept(&request).await);
    }
    let prompt = Prompt { blocks: request.prompt };
    let turn = Turn::new(handle.clone(), cancelled.clone(), prompt_id);
    let result = {
        let work = pin!(session.prompt(turn, prompt));
        let work = pin!(catch_panic(work));
        until_cancelled(work, &cancelled, handle.link().limits().cancel_grace).await
    };
    let result = match result {
        _ if cancelled.is_raised() => Ok(Stop::Cancelled),
        Some(Some(result)) => result,
        Some(None) => Err(internal()),
        None => Ok(Stop::Cancelled),
    };
    answer.end(result).await;
}

/// Runs `work` to its end; once cancelled, for the grace at most. `None` when it was given up.
async fn until_cancelled<T>(
    mut work: Pin<&mut impl Future<Output = T>>,
    cancelled: &Flag,
    grace: Duration,
) -> Option<T> {
    let mut deadline = pin!(async {
        cancelled.raised().await;
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

pub(super) fn internal() -> Error {
    Error::Refused(ErrorObject::internal("Internal error"))
}

/// The answer that a prompt is owed. Dropped, it is an error, so that no client waits for ever.
struct TurnAnswer {
    handle: SessionHandle,
    call: Call,
    dialect: Dialect,
    is_open: bool,
}

impl TurnAnswer {
    /// Says that the prompt has been taken in, as version 2 wants it: answer, echo, state. Tells its id.
    async fn accept(&self, request: &PromptRequest) -> MessageId {
        let id = self.handle.next_message_id();
        let answer = PromptResponse::inserted(id.clone());
        let echo = MessageUpdate { content: Patch::Set(request.prompt.clone()), ..MessageUpdate::new(id.clone()) };
        let _ = self
            .handle
            .link()
            .send(|_, port| {
                port.answer(self.call, &answer);
                self.handle.write_update(port, &SessionUpdate::UserMessage(echo));
                self.handle.write_update(port, &SessionUpdate::State(StateUpdate::running()));
            })
            .await;
        id
    }

    async fn end(mut self, result: Result<Stop, Error>) {
        let _ = self.handle.link().send(|_, port| self.write_end(port, result)).await;
        self.is_open = false;
    }

    fn write_end(&self, port: &mut crate::link::Port<'_, AgentRouter>, result: Result<Stop, Error>) {
        self.handle.settle(port);
        self.handle.rest();
        match (self.dialect, result) {
            (Dialect::V2, Ok(stop)) => {
                self.handle.write_update(port, &SessionUpdate::State(StateUpdate::idle(stop)));
            }
            (Dialect::V2, Err(error)) => {
                let state = StateUpdate::failed(error.to_peer());
                self.handle.write_update(port, &SessionUpdate::State(state));
            }
            (_, Ok(stop)) => port.answer(self.call, &PromptResponse::ended(stop)),
            (_, Err(error)) => port.refuse(self.call, &error.to_peer()),
        }
    }
}

impl Drop for TurnAnswer {
    fn drop(&mut self) {
        if self.is_open {
            self.handle.link().with(|_, port| self.write_end(port, Err(internal())));
        }
    }
}

/// Answers a client that set an option, in the way that it asked.
pub(super) async fn answer_option_change(
    handle: &SessionHandle,
    change: OptionChange,
    options: Result<Vec<ConfigOption>, Error>,
) -> Result<(), Error> {
    handle
        .link()
        .send(|router, port| match options {
            Err(error) => port.refuse(change.call, &error.to_peer()),
            Ok(options) => {
                if let Some(slot) = router.slot(handle.id()) {
                    slot.options.clone_from(&options);
                }
                if change.is_old_style {
                    port.answer(change.call, &SetModeResponse::new());
                } else {
                    let options = super::jobs::offered_options(options, handle.client());
                    port.answer(change.call, &SetConfigOptionResponse::new(options));
                }
            }
        })
        .await
}
