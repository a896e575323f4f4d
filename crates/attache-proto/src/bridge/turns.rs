//! Prompts: one side answers them at the end of the turn, the other as soon as they are taken.

use super::{Asked, Bridge, Out, answers_at_the_end};
use crate::method::Method;
use crate::method::decode_result;
use crate::model::{
    ErrorObject, IdleState, MessageUpdate, Patch, PromptRequest, PromptResponse, SessionId, SessionUpdate, StateUpdate,
    StopReason,
};
use crate::rpc::{Call, Outcome};

/// Prompts of a session that wait for their turn. Nobody types so many.
const QUEUED_PROMPTS: usize = 256;

/// A prompt whose client waits for the end of the turn, which the agent tells by a state update.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) call: Call,
    /// Whether the agent has taken the prompt.
    is_inserted: bool,
    /// Whether the agent was seen at work since the prompt was sent. An idle before that is old news.
    has_run: bool,
    /// The end of the turn, when it was told before the agent said that it took the prompt.
    end: Option<IdleState>,
}

impl Bridge {
    #[inline]
    pub(super) fn prompt(&mut self, call: Call, prompt: PromptRequest, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let id = prompt.session_id.clone();
        match (answers_at_the_end(client), answers_at_the_end(agent)) {
            (true, false) => {
                let turn = Turn { call, is_inserted: false, has_run: false, end: None };
                self.session(&id).turns.push(turn);
                self.forward(call, &prompt.into(), Asked::Insert(call, id), out);
            }
            (false, true) if prompt.prompt.is_empty() => {
                let error = ErrorObject::new(ErrorObject::INVALID_PARAMS, "Invalid params: the prompt is empty");
                self.settle_error(call, &error, out);
            }
            (false, true) if self.session(&id).queue.len() >= QUEUED_PROMPTS => {
                self.settle_error(call, &ErrorObject::invalid_request("too many prompts wait"), out);
            }
            (false, true) if self.session(&id).is_busy => self.session(&id).queue.push_back((call, prompt)),
            (false, true) => self.begin_turn(call, prompt, out),
            _ => self.forward(call, &prompt.into(), Asked::Recode(call, Method::Prompt), out),
        }
    }

    /// Hands a prompt to an agent that answers at the end, and tells the client that it was taken.
    #[inline]
    fn begin_turn(&mut self, call: Call, prompt: PromptRequest, out: &mut Out<'_>) {
        self.messages += 1;
        let message = format!("user-{}", self.messages);
        let id = prompt.session_id.clone();
        self.session(&id).is_busy = true;
        let content = Patch::Set(prompt.prompt.clone());
        let request = prompt.into();
        self.forward(call, &request, Asked::Turn(id.clone()), out);
        self.settle(call, |writer| writer.value(&PromptResponse::inserted(message.as_str())), out);
        let echo = MessageUpdate { content, ..MessageUpdate::new(message.as_str()) };
        self.say(&id, &SessionUpdate::UserMessage(echo), None, out);
        self.say(&id, &SessionUpdate::State(StateUpdate::running()), None, out);
    }

    /// An agent that answers at the end has answered.
    #[inline]
    pub(super) fn turn_ended(&mut self, id: &SessionId, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let (_, agent) = self.both();
        let idle = match outcome.map(|result| decode_result::<PromptResponse>(result, agent, &mut Vec::new())) {
            Ok(Ok(response)) => {
                IdleState { stop_reason: response.stop_reason, usage: response.usage, ..IdleState::new() }
            }
            Ok(Err(_)) => failed(ErrorObject::internal("the agent's answer was not understood")),
            Err(error) if error.code == ErrorObject::CANCELLED => {
                IdleState { stop_reason: Some(StopReason::Cancelled), ..IdleState::new() }
            }
            Err(error) => failed(error),
        };
        let session = self.session(id);
        session.is_busy = false;
        session.questions = 0;
        if !session.is_muted {
            self.say(id, &SessionUpdate::State(idle.into()), None, out);
        }
        if let Some((call, prompt)) = self.session(id).queue.pop_front() {
            self.begin_turn(call, prompt, out);
        }
    }

    /// An agent that tells the end later has taken a prompt, or not.
    #[inline]
    pub(super) fn inserted(&mut self, call: Call, id: &SessionId, outcome: Outcome<'_>, out: &mut Out<'_>) {
        self.client_calls.remove(&call);
        let (_, agent) = self.both();
        let response = outcome.and_then(|result| {
            decode_result::<PromptResponse>(result, agent, &mut Vec::new())
                .map_err(|_| ErrorObject::internal("the agent's answer was not understood"))
        });
        let session = self.session(id);
        let Some(at) = session.turns.iter().position(|turn| turn.call == call) else { return };
        match response {
            Err(error) => {
                session.turns.remove(at);
                self.settle_error(call, &error, out);
            }
            // An agent of the draft after all: this is the end of the turn.
            Ok(PromptResponse { stop_reason: Some(stop_reason), usage, .. }) => {
                session.turns.remove(at);
                let idle = IdleState { stop_reason: Some(stop_reason), usage, ..IdleState::new() };
                self.end_turn(call, &idle, out);
            }
            Ok(_) => match session.turns[at].end.take() {
                Some(idle) => {
                    session.turns.remove(at);
                    self.end_turn(call, &idle, out);
                }
                None => session.turns[at].is_inserted = true,
            },
        }
    }

    /// The agent tells what a session is doing, and the client waits for it to be done.
    #[inline]
    pub(super) fn handle_state(&mut self, id: &SessionId, state: StateUpdate, out: &mut Out<'_>) {
        let session = self.session(id);
        let idle = match state {
            StateUpdate::Idle(idle) => idle,
            StateUpdate::Running(_) | StateUpdate::RequiresAction(_) => {
                return session.turns.iter_mut().for_each(|turn| turn.has_run = true);
            }
            _ => return,
        };
        let mut ended = Vec::new();
        session.turns.retain_mut(|turn| {
            if !turn.has_run && idle.stop_reason.is_none() {
                return true;
            }
            if turn.is_inserted {
                ended.push(turn.call);
            } else if turn.has_run {
                turn.end = Some((*idle).clone());
            }
            !turn.is_inserted
        });
        for call in ended {
            self.end_turn(call, &idle, out);
        }
    }

    /// Answers a prompt whose client waits for the end.
    #[inline]
    fn end_turn(&mut self, call: Call, idle: &IdleState, out: &mut Out<'_>) {
        let stop_reason = match &idle.stop_reason {
            None => StopReason::EndTurn,
            Some(StopReason::Error) => {
                let error = idle.error.clone().unwrap_or_else(|| ErrorObject::internal("the turn failed"));
                return self.settle_error(call, &error, out);
            }
            Some(StopReason::Other(_)) => {
                self.report("stopReason");
                StopReason::EndTurn
            }
            Some(stop_reason) => stop_reason.clone(),
        };
        let response = PromptResponse { usage: idle.usage.clone(), ..PromptResponse::ended(stop_reason) };
        self.settle(call, |writer| writer.value(&response), out);
    }
}

#[inline]
fn failed(error: ErrorObject) -> IdleState {
    IdleState { stop_reason: Some(StopReason::Error), error: Some(error), ..IdleState::new() }
}
