//! Requests and their answers.

use std::collections::{HashMap, HashSet, VecDeque};

use attache_proto::model::request::RequestId;
use attache_proto::rpc::{Envelope, parse};
use serde_json::Value;

use super::message::{Body, Message, MessageIndex, RpcError};
use super::mishaps::{self, Tracker};
use crate::record::Side;

/// The place of a call in the order in which they were made.
pub type CallIndex = usize;

/// A request, and what came of it.
#[derive(Debug)]
pub struct Call {
    /// Who asked.
    pub from: Side,
    /// The request.
    pub at: MessageIndex,
    /// Its id.
    pub id: RequestId,
    /// The method.
    pub method: String,
    /// The params, null if there are none.
    pub params: Value,
    /// The answers, in order. There should be one.
    pub answers: Vec<Answer>,
    /// Where something was sent that is meant as an answer to it and cannot be read.
    pub botched: Option<MessageIndex>,
    /// Where `$/cancel_request` was sent for it.
    pub cancelled_at: Option<MessageIndex>,
}

/// The answer to a call.
#[derive(Debug)]
pub struct Answer {
    /// Where it was sent.
    pub at: MessageIndex,
    /// The result or the error.
    pub outcome: Result<Value, RpcError>,
}

impl Call {
    /// The session that it is about.
    pub fn session(&self) -> Option<&str> {
        self.params["sessionId"].as_str()
    }

    /// The result of its first answer.
    pub fn result(&self) -> Option<&Value> {
        self.answers.first()?.outcome.as_ref().ok()
    }

    /// The error of its first answer.
    pub fn error(&self) -> Option<&RpcError> {
        self.answers.first()?.outcome.as_ref().err()
    }

    /// Where it was answered first.
    pub fn answered_at(&self) -> Option<MessageIndex> {
        self.answers.first().map(|answer| answer.at)
    }

    /// Who owes the answer.
    pub fn to(&self) -> Side {
        other(self.from)
    }

    /// Whether it was open when a message was sent: asked before it, not answered before it.
    pub fn is_open_at(&self, message: MessageIndex) -> bool {
        self.at < message && self.answered_at().is_none_or(|answered| answered > message)
    }
}

/// The other side.
pub fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Agent,
        Side::Agent => Side::Client,
    }
}

/// The requests of one id.
#[derive(Default)]
struct Asked {
    /// Those without an answer, the oldest first.
    open: VecDeque<CallIndex>,
    last: CallIndex,
}

/// Finds the answers of all requests: the oldest request of that id that has none, else the last one of that id.
pub(super) fn pair(messages: &[Message<'_>]) -> (Vec<Call>, Tracker) {
    let mut calls: Vec<Call> = Vec::new();
    let mut tracker = Tracker::default();
    let mut by_id: HashMap<(Side, RequestId), Asked> = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        if message.in_batch == Some(0) {
            tracker.begin_batch(messages, at);
        }
        match &message.body {
            Body::Request { id, method, params } => {
                let asked = by_id.entry((message.from, id.clone())).or_default();
                asked.open.push_back(calls.len());
                asked.last = calls.len();
                calls.push(Call {
                    from: message.from,
                    at,
                    id: id.clone(),
                    method: method.clone(),
                    params: params.clone(),
                    answers: Vec::new(),
                    botched: None,
                    cancelled_at: None,
                });
            }
            Body::Response { id, outcome } => {
                let asked = by_id.get_mut(&(other(message.from), id.clone()));
                let answer = Answer { at, outcome: outcome.clone() };
                let asked_at = |asked: &Asked| asked.open.front().map(|call| calls[*call].at);
                let (is_open, place) = (asked.as_deref().and_then(asked_at), message.in_batch.is_some());
                let rest = match (id, is_open) {
                    (RequestId::Null, _) => tracker.answer_without_id(other(message.from), place, is_open, answer),
                    (_, Some(_)) => Err(answer),
                    (_, None) => {
                        let (to, is_new) = (other(message.from), asked.is_none());
                        let rest = tracker.answer_by_id(to, mishaps::json_of(id), answer);
                        rest.or_else(|answer| if is_new { tracker.answer_to_junk(to, answer) } else { Err(answer) })
                    }
                };
                let Err(answer) = rest else { continue };
                // What has no id does not say that it answers something twice.
                match asked.filter(|asked| *id != RequestId::Null || !asked.open.is_empty()) {
                    Some(asked) => {
                        let call = asked.open.pop_front().unwrap_or(asked.last);
                        calls[call].answers.push(answer);
                        tracker.serve(calls[call].at);
                    }
                    None => {
                        tracker.stray(message.from, at, id.clone());
                        tracker.note(message, at);
                    }
                }
            }
            Body::Notification { method, params } if method == "$/cancel_request" => {
                let id = match &params["requestId"] {
                    Value::Number(number) => number.as_i64().map(RequestId::Number),
                    Value::String(text) => Some(RequestId::from(text.as_str())),
                    _ => None,
                };
                if let Some(asked) = id.and_then(|id| by_id.get(&(message.from, id))) {
                    calls[asked.last].cancelled_at.get_or_insert(at);
                }
            }
            Body::Notification { .. } => {}
            Body::Invalid { is_response: true, id, .. } => {
                let asked = id.clone().and_then(|id| by_id.get(&(other(message.from), id)));
                if let Some(asked) = asked {
                    let call = asked.open.front().copied().unwrap_or(asked.last);
                    calls[call].botched.get_or_insert(at);
                }
                let answer = || Answer { at, outcome: mishaps::outcome_of(message) };
                let id = mishaps::id_of(message).filter(|_| asked.is_none() && message.in_batch.is_none());
                if id.is_none_or(|id| tracker.answer_by_id(other(message.from), id, answer()).is_err()) {
                    tracker.note(message, at);
                }
            }
            Body::NotJson => {
                tracker.note(message, at);
                let Envelope::NotJson { response_to } = parse(message.text) else { continue };
                for asked in response_to.into_iter().filter_map(|id| by_id.get(&(other(message.from), id))) {
                    calls[asked.open.front().copied().unwrap_or(asked.last)].botched.get_or_insert(at);
                }
            }
            Body::Invalid { .. } | Body::EmptyBatch | Body::Junk => tracker.note(message, at),
        }
    }
    let open: HashSet<MessageIndex> = calls.iter().filter(|call| call.answers.is_empty()).map(|call| call.at).collect();
    tracker.explain(messages, |at| open.contains(&at));
    (calls, tracker)
}
