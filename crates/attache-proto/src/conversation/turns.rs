//! The turns of a session, as a client sees them: when each ends, and how.

use std::collections::VecDeque;

use super::translator::is_memorable;
use crate::json::RawJson;
use crate::model::Meta;
use crate::model::content::MessageId;
use crate::model::error::ErrorObject;
use crate::model::prompt::{PromptResponse, StopReason};
use crate::model::state::{IdleState, StateUpdate};
use crate::model::unstable::Usage;

/// Echoes of prompts that are remembered until the agent says which prompt they are, at most. Each open prompt needs one.
const REMEMBERED_ECHOES: usize = 64;

/// The longest end of work that is remembered whole, in bytes of JSON.
const LONGEST_END: usize = 16 * 1024;

/// The number of a turn within its session, counted by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnId(u64);

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// Which turn.
    pub turn: TurnId,
    /// Why the agent stopped, or what went wrong.
    pub result: Result<StopReason, ErrorObject>,
    /// The tokens that it took, if the agent reported them.
    pub usage: Option<Usage>,
    /// Custom metadata (`_meta`) of the agent: of the prompt's answer, or of the last state.
    pub meta: Option<Meta>,
}

/// A prompt that was sent and whose turn has not ended.
#[derive(Debug)]
struct Prompt {
    turn: TurnId,
    /// The agent has taken it in (version 2).
    accepted: bool,
    /// The agent was seen working since the prompt was sent.
    worked: bool,
    /// The agent was seen idle after it had worked, before it said that it took the prompt in.
    ended: Option<TurnEnd>,
}

/// A message of the user that the agent has told about, and how the work on it ended if it has.
#[derive(Debug)]
struct Echo {
    message: MessageId,
    end: Option<TurnEnd>,
}

/// The open turns of a session.
#[derive(Debug, Default)]
pub(super) struct Turns {
    count: u64,
    open: Vec<Prompt>,
    /// Messages of the user since the oldest prompt was sent that is not accepted.
    echoes: VecDeque<Echo>,
    is_working: bool,
    /// Turns up to this one were cancelled.
    cancelled: Option<TurnId>,
}

impl Turns {
    pub(super) fn begin(&mut self) -> TurnId {
        self.count += 1;
        let turn = TurnId(self.count);
        self.open.push(Prompt { turn, accepted: false, worked: false, ended: None });
        turn
    }

    pub(super) fn is_open(&self, turn: TurnId) -> bool {
        self.open.iter().any(|prompt| prompt.turn == turn)
    }

    pub(super) fn oldest(&self) -> Option<TurnId> {
        self.open.first().map(|prompt| prompt.turn)
    }

    pub(super) fn take_all(&mut self) -> Vec<TurnId> {
        self.open.drain(..).map(|prompt| prompt.turn).collect()
    }

    /// Marks the turns up to `turn`, or all there are, as cancelled.
    pub(super) fn cancel(&mut self, turn: Option<TurnId>) {
        self.cancelled = self.cancelled.max(turn.or(Some(TurnId(self.count))));
    }

    pub(super) fn is_cancelled(&self, turn: TurnId) -> bool {
        Some(turn) <= self.cancelled
    }

    /// The agent has answered a prompt: at its end, or when it took it in.
    pub(super) fn answered(&mut self, turn: TurnId, answer: Result<PromptResponse, ErrorObject>) -> Option<TurnEnd> {
        let index = self.open.iter().position(|prompt| prompt.turn == turn)?;
        let end = |result| TurnEnd { turn, result, usage: None, meta: None };
        let end = match answer {
            // A prompt that was cancelled before it was taken in is an error in version 2, and what was asked for.
            Err(error) if error.code == ErrorObject::CANCELLED && self.is_cancelled(turn) => {
                end(Ok(StopReason::Cancelled))
            }
            Err(error) => end(Err(error)),
            Ok(PromptResponse { stop_reason: Some(stop), usage, meta, .. }) => TurnEnd { usage, meta, ..end(Ok(stop)) },
            Ok(PromptResponse { message_id, .. }) => {
                let echo = message_id.and_then(|id| self.echoes.iter().position(|echo| echo.message == id));
                let echo = echo.and_then(|echo| self.echoes.remove(echo));
                let is_working = self.is_working;
                let prompt = &mut self.open[index];
                prompt.accepted = true;
                let end = match echo {
                    // What the agent did before it repeated the message was about something else.
                    Some(echo) => {
                        prompt.worked = is_working;
                        echo.end
                    }
                    None => {
                        prompt.worked |= is_working;
                        prompt.ended.take()
                    }
                };
                TurnEnd { turn, ..end? }
            }
        };
        self.open.remove(index);
        self.forget_echoes();
        Some(end)
    }

    /// The agent repeats a message of the user, which is one of the prompts that it has not answered yet.
    pub(super) fn echoed(&mut self, message: &MessageId) {
        let is_awaited = self.open.iter().any(|prompt| !prompt.accepted) && is_memorable(message.as_str());
        if !is_awaited || self.echoes.iter().any(|echo| echo.message == *message) {
            return;
        }
        if self.echoes.len() == REMEMBERED_ECHOES {
            self.echoes.pop_front();
        }
        self.echoes.push_back(Echo { message: message.clone(), end: None });
    }

    /// The agent says what it is doing; returns the turns that have ended by it.
    pub(super) fn state_changed(&mut self, state: &StateUpdate) -> Vec<TurnEnd> {
        let idle = match state {
            StateUpdate::Idle(idle) => idle,
            // An unknown state is busy, not idle.
            _ => {
                self.is_working = true;
                // A prompt behind another may be waiting for its turn: it has not worked until it is accepted.
                let first = self.open.first().map(|prompt| prompt.turn);
                for prompt in self.open.iter_mut().filter(|prompt| prompt.accepted || Some(prompt.turn) == first) {
                    prompt.worked = true;
                }
                return Vec::new();
            }
        };
        self.is_working = false;
        let mut ended = Vec::new();
        self.open.retain_mut(|prompt| {
            if prompt.accepted && (prompt.worked || idle.stop_reason.is_some()) {
                ended.push(end_of(prompt.turn, idle));
                return false;
            }
            // An idle from before the agent took the prompt in says nothing about it.
            if prompt.worked && prompt.ended.is_none() {
                prompt.ended = Some(remembered_end(idle));
            }
            true
        });
        for echo in self.echoes.iter_mut().filter(|echo| echo.end.is_none()) {
            echo.end = Some(remembered_end(idle));
        }
        self.forget_echoes();
        ended
    }

    fn forget_echoes(&mut self) {
        if self.open.iter().all(|prompt| prompt.accepted) {
            self.echoes.clear();
        }
    }
}

/// How a turn ended, by the state that the agent went into.
fn end_of(turn: TurnId, idle: &IdleState) -> TurnEnd {
    let result = match (idle.stop_reason.clone().unwrap_or(StopReason::EndTurn), &idle.error) {
        (StopReason::Error, Some(error)) => Err(error.clone()),
        (StopReason::Error, None) => Err(ErrorObject::internal("the agent failed")),
        (stop, _) => Ok(stop),
    };
    TurnEnd { turn, result, usage: idle.usage.clone(), meta: idle.meta.clone() }
}

/// What is remembered of an end until its prompt is answered: all of it, unless it is long. There may be many.
fn remembered_end(idle: &IdleState) -> TurnEnd {
    let end = end_of(TurnId(0), idle);
    if RawJson::from_model(idle).as_str().len() <= LONGEST_END {
        return end;
    }
    let result = match end.result {
        Ok(StopReason::Other(_)) => Ok(StopReason::EndTurn),
        Ok(stop) => Ok(stop),
        Err(error) => Err(ErrorObject::new(error.code, "the agent failed")),
    };
    TurnEnd { result, usage: end.usage.map(|usage| Usage { meta: None, ..usage }), meta: None, ..end }
}
