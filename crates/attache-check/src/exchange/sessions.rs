//! Sessions: how they were opened and closed, and their turns.

use std::collections::{BTreeMap, HashMap};

use attache_proto::conversation::ClientSession;
use attache_proto::json::RawJson;
use attache_proto::method::decode_result;
use attache_proto::model::error::ErrorObject;
use attache_proto::model::prompt::PromptResponse;
use attache_proto::model::update::SessionNotification;
use serde_json::Value;

use super::calls::CallIndex;
use super::message::{Body, MessageIndex};
use super::{Exchange, RpcError};
use crate::record::Side;

/// A session of a connection.
#[derive(Debug, Default)]
pub struct Session {
    /// The requests that opened it (`session/new`, `session/load`, `session/resume`, `session/fork`) with success, in order.
    pub openings: Vec<CallIndex>,
    /// Where the first of them was asked; updates may come from there on.
    pub opened_at: MessageIndex,
    /// Where closing or deleting it was answered with success, if it was.
    pub closed_at: Option<MessageIndex>,
    /// Its updates, in order.
    pub updates: Vec<MessageIndex>,
    /// Its turns, in order.
    pub turns: Vec<Turn>,
    /// Where `session/cancel` was sent.
    pub cancels: Vec<MessageIndex>,
    /// For each turn, where the last of the turns up to it ended; at the end of time, if one of them did not.
    ended_by: Vec<MessageIndex>,
}

/// A turn: a prompt, and what came of it.
#[derive(Debug)]
pub struct Turn {
    /// The request `session/prompt`.
    pub call: CallIndex,
    /// Where the prompt was sent.
    pub begins: MessageIndex,
    /// Where it ended, if it did.
    pub ends: Option<MessageIndex>,
    /// Why it ended: `stopReason` to the letter.
    pub stop: Option<String>,
    /// Where `session/cancel` was sent for it, if it was.
    pub cancelled: Option<MessageIndex>,
}

impl Session {
    /// The turn that was running when a message was sent, if one was.
    pub fn turn_at(&self, message: MessageIndex) -> Option<&Turn> {
        let first = self.ended_by.partition_point(|ended| *ended < message);
        self.turns.get(first).filter(|turn| turn.begins < message)
    }
}

const OPENING: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

/// Reads the sessions of a connection.
pub(super) fn read(exchange: &Exchange<'_>) -> BTreeMap<String, Session> {
    let mut sessions = opened(exchange);
    let mut known: BTreeMap<&str, ClientSession> = BTreeMap::new();
    // By the call of their prompt: session, number of the turn, its place.
    let mut turns = BTreeMap::new();
    let mut places = HashMap::new();
    // The turns that nobody has cancelled, by their place.
    let mut not_cancelled: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, message) in exchange.messages.iter().enumerate() {
        match &message.body {
            Body::Request { method, params, .. } if message.from == Side::Client && method == "session/prompt" => {
                let (Some(id), Some(call)) = (params["sessionId"].as_str(), exchange.call_of(index)) else { continue };
                let Some(session) = sessions.get_mut(id) else { continue };
                let turn = known.entry(id).or_default().begin_turn();
                turns.insert(call, (id, turn, session.turns.len()));
                places.insert((id, turn), session.turns.len());
                not_cancelled.entry(id).or_default().push(session.turns.len());
                session.turns.push(Turn { call, begins: index, ends: None, stop: None, cancelled: None });
            }
            Body::Response { outcome, .. } if message.from == Side::Agent => {
                let answered =
                    exchange.call_of(index).filter(|call| exchange.calls[*call].answered_at() == Some(index));
                let Some((id, turn, place)) = answered.and_then(|call| turns.get(&call)) else { continue };
                let end = known.entry(id).or_default().prompt_answered(*turn, response(exchange, outcome));
                if let (Some(_), Some(session)) = (end, sessions.get_mut(*id)) {
                    let stop = outcome.as_ref().ok().and_then(|result| result["stopReason"].as_str());
                    end_turn(&mut session.turns[*place], index, stop);
                }
            }
            Body::Notification { method, params } if message.from == Side::Agent && method == "session/update" => {
                let Some((id, session)) = params["sessionId"].as_str().and_then(|id| Some((id, sessions.get_mut(id)?)))
                else {
                    continue;
                };
                session.updates.push(index);
                let update = &params["update"];
                let Ok(mut notification) =
                    decode_result::<SessionNotification>(&params.to_string(), exchange.dialect, &mut Vec::new())
                else {
                    continue;
                };
                for end in known.entry(id).or_default().handle_update(&mut notification.update) {
                    if let Some(place) = places.get(&(id, end.turn)) {
                        end_turn(&mut session.turns[*place], index, update["stopReason"].as_str());
                    }
                }
            }
            Body::Notification { method, params } if message.from == Side::Client && method == "session/cancel" => {
                let Some((id, session)) = params["sessionId"].as_str().and_then(|id| Some((id, sessions.get_mut(id)?)))
                else {
                    continue;
                };
                session.cancels.push(index);
                for place in not_cancelled.remove(id).unwrap_or_default() {
                    let turn = &mut session.turns[place];
                    turn.cancelled = turn.ends.is_none().then_some(index);
                }
            }
            _ => {}
        }
    }
    for session in sessions.values_mut() {
        let mut latest = 0;
        session.ended_by.extend(session.turns.iter().map(|turn| {
            latest = turn.ends.unwrap_or(MessageIndex::MAX).max(latest);
            latest
        }));
    }
    sessions
}

fn end_turn(turn: &mut Turn, at: MessageIndex, stop: Option<&str>) {
    if turn.ends.is_none() {
        turn.ends = Some(at);
        turn.stop = stop.map(str::to_owned);
    }
}

fn response(exchange: &Exchange<'_>, outcome: &Result<Value, RpcError>) -> Result<PromptResponse, ErrorObject> {
    match outcome {
        Ok(result) => {
            let read = decode_result(&result.to_string(), exchange.dialect, &mut Vec::new());
            read.map_err(|_| ErrorObject::internal("not a result of `session/prompt`"))
        }
        Err(error) => {
            let mut object = ErrorObject::new(error.code, error.message.clone());
            object.data = (!error.data.is_null()).then(|| RawJson::from_value(&error.data).ok()).flatten();
            Err(object)
        }
    }
}

/// The sessions that were opened, and where they were closed.
fn opened(exchange: &Exchange<'_>) -> BTreeMap<String, Session> {
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    for (index, call) in exchange.calls.iter().enumerate().filter(|(_, call)| call.from == Side::Client) {
        let Some(result) = call.result() else { continue };
        if OPENING.contains(&call.method.as_str()) {
            let is_new = matches!(call.method.as_str(), "session/new" | "session/fork");
            let id = if is_new { result["sessionId"].as_str() } else { call.session() };
            let Some(id) = id else { continue };
            let session =
                sessions.entry(id.to_owned()).or_insert_with(|| Session { opened_at: call.at, ..Session::default() });
            session.openings.push(index);
            session.closed_at = None;
        } else if matches!(call.method.as_str(), "session/close" | "session/delete")
            && let Some(session) = call.session().and_then(|id| sessions.get_mut(id))
        {
            session.closed_at = call.answered_at();
        }
    }
    sessions
}
