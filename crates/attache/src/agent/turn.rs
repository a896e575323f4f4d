//! One turn of an agent: what depends on the prompt that it answers.

use std::future::{pending, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use attache_proto::model::Meta;
use attache_proto::model::config::{ConfigId, ConfigOption, ConfigSetting};
use attache_proto::model::content::{ContentBlock, MessageId};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::prompt::PromptRequest;
use attache_proto::model::unstable::Usage;
use attache_proto::rpc::Call;

use super::router::{AgentRouter, OptionChange};
use super::session::{answer_option_change, unless_cancelled};
use super::{Ask, Decision, SessionHandle, ToolCallBuilder};
use crate::link::{Expects, Port};
use crate::{CancelToken, Error, Prompt};

/// One turn: everything a [`SessionHandle`] can do, and what depends on the prompt. Cheap to clone.
///
/// This is the agent's end of a turn, and not to be confused with `client::Turn`: what `client::Session::prompt` returns to a
/// client, which reads events from it.
#[derive(Clone, Debug)]
pub struct Turn {
    handle: SessionHandle,
    state: TurnState,
    prompt_id: Option<MessageId>,
}

impl Turn {
    pub(super) fn new(handle: SessionHandle, state: TurnState, prompt_id: Option<MessageId>) -> Self {
        Turn { handle, state, prompt_id }
    }

    /// The id of the message that the prompt is, where the version has one: whoever replays the session later should
    /// give the message the same id.
    pub fn prompt_id(&self) -> Option<&MessageId> {
        self.prompt_id.as_ref()
    }

    /// Whether the client has cancelled the turn.
    pub fn is_cancelled(&self) -> bool {
        self.state.cancelled.is_cancelled()
    }

    /// Waits until the client cancels the turn.
    pub async fn cancelled(&self) {
        self.state.cancelled.cancelled().await;
    }

    /// A token that is cancelled with the turn, to pass on.
    pub fn cancel_token(&self) -> CancelToken {
        self.state.cancelled.clone()
    }

    /// Does `work` unless the turn is cancelled first; then the work is dropped.
    pub async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        unless_cancelled(pin!(work), &self.state.cancelled).await.ok_or(Error::Cancelled)
    }

    /// Prepares a tool call with a title. It is shown when it is started, and as cancelled if it is dropped after the turn
    /// was cancelled.
    pub fn tool(&self, title: impl Into<String>) -> ToolCallBuilder {
        self.handle.tool(title).of_turn(self.state.cancelled.clone())
    }

    /// Asks for permission. Only a clear yes is [`Decision::Allowed`]; a turn that is cancelled meanwhile is a no.
    pub async fn ask(&self, ask: Ask) -> Result<Decision, Error> {
        let question = self.handle.open_question().await?;
        let decision = self.unless_cancelled(ask.put(&self.handle)).await;
        drop(question);
        // Asked last: a yes may have come right behind the cancel.
        if self.is_cancelled() {
            return Ok(Decision::Cancelled);
        }
        decision?
    }

    /// Says how many tokens the turn took; reported to the client at its end (unstable).
    pub fn end_usage(&self, usage: Usage) {
        self.state.lock().usage = Some(usage);
    }

    /// Adds custom metadata (`_meta`) to the end of the turn.
    pub fn end_meta(&self, meta: Meta) {
        self.state.lock().meta = Some(meta);
    }

    /// Waits for a prompt that the client sends while the turn runs, and takes it up in this turn. Without this, it begins
    /// a turn of its own after this one. Fails when the turn is cancelled or has ended: what comes after that is not for it.
    ///
    /// Dropping the future loses no prompt.
    ///
    /// ```
    /// # use attache::{Stop, Turn, agent::HandlerError};
    /// # async fn example(turn: Turn) -> Result<Stop, HandlerError> {
    /// tokio::select! {
    ///     () = tokio::time::sleep(std::time::Duration::from_secs(1)) => turn.text("done").await?,
    ///     prompt = turn.next_prompt() => turn.text(format!("You added: {}", prompt?.text())).await?,
    /// }
    /// # Ok(Stop::EndTurn)
    /// # }
    /// ```
    pub async fn next_prompt(&self) -> Result<Prompt, Error> {
        loop {
            let waiting = self.wait(|router, waiter, waker| router.has_prompt(self.id(), waiter, waker).then_some(()));
            self.unless_cancelled(waiting).await?;
            // Taken and begun in one go, once there is room: whoever stops waiting before that has taken nothing.
            let taken = self.handle.link().send(|router, port| self.begin_prompt(router, port, &|_| true)).await??;
            if let Some((prompt, _)) = taken {
                return Ok(prompt);
            }
        }
    }

    /// Takes up a prompt that waits, with its id, if `wants` says so: what [`next_prompt`](Self::next_prompt) does,
    /// without waiting. `None` when there is none, or the first one is not wanted: then it begins a turn of its own.
    ///
    /// ```
    /// # use attache::{Stop, Turn, agent::HandlerError};
    /// # async fn example(turn: Turn) -> Result<Stop, HandlerError> {
    /// // Between two steps of the work: what did the person say meanwhile?
    /// while let Some((prompt, _)) = turn.take_prompt(|content| !content.is_empty())? {
    ///     turn.text(format!("You added: {}", prompt.text())).await?;
    /// }
    /// # Ok(Stop::EndTurn)
    /// # }
    /// ```
    pub fn take_prompt(
        &self,
        wants: impl Fn(&[ContentBlock]) -> bool + Sync,
    ) -> Result<Option<(Prompt, Option<MessageId>)>, Error> {
        let mut taken = Ok(None);
        let mut take = |router: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
            taken = self.begin_prompt(router, port, &wants);
        };
        // Without room it waits, like everything else that is to be said.
        self.handle.link().try_send(Expects::Nothing, &mut take)?;
        taken
    }

    fn begin_prompt(
        &self,
        router: &mut AgentRouter,
        port: &mut Port<'_, AgentRouter>,
        wants: &dyn Fn(&[ContentBlock]) -> bool,
    ) -> Result<Option<(Prompt, Option<MessageId>)>, Error> {
        if self.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if self.state.has_ended() {
            return Err(Error::Invalid("the turn has ended".into()));
        }
        let Some((call, request)) = router.take_prompt(self.id(), wants) else { return Ok(None) };
        self.state.owe(call);
        let id = write_begin(&self.handle, port, call, &request);
        Ok(Some((Prompt::from(request.prompt).with_optional_meta(request.meta), id)))
    }

    /// Waits for a configuration option that the client sets while the turn runs. Without this, it is set after the turn.
    /// When the turn has ended, none comes any more.
    pub async fn option_change(&self) -> PendingOption {
        let change = self.wait(|router, waiter, waker| router.next_option_change(self.id(), waiter, waker)).await;
        let Some(change) = change else { return pending().await };
        PendingOption { handle: self.handle.clone(), change: Some(change) }
    }

    /// Waits until the router has something for this turn; `None` when the turn has ended. A guard among those who wait is
    /// given up on drop.
    async fn wait<T>(&self, take: impl Fn(&mut AgentRouter, &mut Option<u64>, &Waker) -> Option<T>) -> Option<T> {
        struct WaiterGuard<'a> {
            handle: &'a SessionHandle,
            waiter: Option<u64>,
        }
        impl Drop for WaiterGuard<'_> {
            fn drop(&mut self) {
                if self.waiter.is_some() {
                    self.handle.link().with(|router, _| router.leave_session(self.handle.id(), &mut self.waiter));
                }
            }
        }
        let mut guard = WaiterGuard { handle: &self.handle, waiter: None };
        poll_fn(|cx| {
            self.handle.link().with(|router, _| {
                if self.state.has_ended() {
                    return Poll::Ready(None);
                }
                let next = take(router, &mut guard.waiter, cx.waker());
                next.map_or(Poll::Pending, |next| Poll::Ready(Some(next)))
            })
        })
        .await
    }
}

/// What a turn's handles and its task share.
#[derive(Clone, Debug)]
pub(super) struct TurnState {
    cancelled: CancelToken,
    end: Arc<Mutex<End>>,
}

/// What is known of the end of a turn before it comes.
#[derive(Debug, Default)]
struct End {
    /// The prompts that the turn is about, and owes an answer.
    calls: Vec<Call>,
    usage: Option<Usage>,
    meta: Option<Meta>,
    /// It has come.
    has_ended: bool,
}

impl TurnState {
    pub(super) fn new(cancelled: CancelToken) -> Self {
        TurnState { cancelled, end: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a prompt. Tells its id, where the version has one.
    pub(super) async fn begin(&self, handle: &SessionHandle, call: Call, request: &PromptRequest) -> Option<MessageId> {
        // Owed from now on, whatever becomes of us.
        self.owe(call);
        handle.link().send(|_, port| write_begin(handle, port, call, request)).await.ok().flatten()
    }

    fn owe(&self, call: Call) {
        self.lock().calls.push(call);
    }

    /// The prompts that are to be answered now, and what the answer says beside the reason. No more can be taken up.
    pub(super) fn take_end(&self) -> (Vec<Call>, Option<Usage>, Option<Meta>) {
        let end = std::mem::replace(&mut *self.lock(), End { has_ended: true, ..End::default() });
        (end.calls, end.usage, end.meta)
    }

    fn has_ended(&self) -> bool {
        self.lock().has_ended
    }
}

/// Says that a prompt is taken up. Returns its id, where the version has one.
fn write_begin(
    handle: &SessionHandle,
    port: &mut Port<'_, AgentRouter>,
    call: Call,
    request: &PromptRequest,
) -> Option<MessageId> {
    let mut id = None;
    handle.updates().write_with(port, Some(call), None, |session, emit| {
        id = session.begin_turn(&request.prompt, None, emit);
    });
    id
}

impl Deref for Turn {
    type Target = SessionHandle;

    fn deref(&self) -> &SessionHandle {
        &self.handle
    }
}

/// A configuration option that the client has set, to be answered. Dropped, it is refused.
pub struct PendingOption {
    handle: SessionHandle,
    change: Option<OptionChange>,
}

impl PendingOption {
    /// Which option.
    pub fn option(&self) -> Option<&ConfigId> {
        self.change.as_ref().map(|change| &change.id)
    }

    /// To which value.
    pub fn value(&self) -> Option<&ConfigSetting> {
        self.change.as_ref().map(|change| &change.value)
    }

    /// Answers with all options as they are now, or with an error.
    pub async fn reply(mut self, options: Result<Vec<ConfigOption>, ErrorObject>) -> Result<(), Error> {
        let handle = self.handle.clone();
        // Taken where it is answered: whoever stops waiting for room before that leaves it to be refused.
        let answer = |_: &mut AgentRouter, port: &mut Port<'_, AgentRouter>| {
            if let Some(change) = self.change.take() {
                answer_option_change(&handle, port, &change, options);
            }
        };
        handle.link().send(answer).await
    }
}

impl Drop for PendingOption {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            let error = ErrorObject::internal("nobody answered");
            self.handle.link().with(|_, port| port.refuse(change.call, &error));
        }
    }
}
