//! Recorded messages without what differs from one time to the next: ids are numbered, `_meta` and times are left out, text that came
//! in pieces is one text.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::exchange::{Body, Exchange, Message};
use crate::record::{Record, Side};

/// A message as it would be the next time.
#[derive(Debug, Clone, PartialEq)]
pub struct CanonicalMessage {
    /// The entry of the record that it began in.
    pub entry: usize,
    /// Who sent it.
    pub from: Side,
    /// What it is: `session/prompt`, `session/update agent_message_chunk`, `answer to session/new`.
    pub label: String,
    /// Its params, its result, or its error.
    pub body: Value,
}

/// The keys whose values are ids that somebody makes up.
pub(super) const IDS: [&str; 9] = [
    "sessionId",
    "toolCallId",
    "terminalId",
    "messageId",
    "planId",
    "elicitationId",
    "requestId",
    "cursor",
    "nextCursor",
];

/// The keys whose values are never the same.
const LEFT_OUT: [&str; 2] = ["_meta", "updatedAt"];

/// The messages of a record.
pub fn canonical(record: &Record) -> Vec<CanonicalMessage> {
    let mut names = Names::default();
    let mut messages: Vec<CanonicalMessage> = Vec::new();
    for (start, entries) in record.connections() {
        let exchange = Exchange::new(entries);
        for (index, message) in exchange.messages.iter().enumerate() {
            let (label, mut body) = label_and_body(&exchange, index, message);
            names.replace(&mut body);
            let next = CanonicalMessage { entry: start + message.entry, from: message.from, label, body };
            if !messages.iter_mut().rfind(|other| other.from == next.from).is_some_and(|last| append(last, &next)) {
                messages.push(next);
            }
        }
    }
    messages
}

/// What a message is, in a few words.
pub(crate) fn label_of(exchange: &Exchange<'_>, index: usize, message: &Message<'_>) -> String {
    match &message.body {
        Body::Request { method, .. } => method.clone(),
        Body::Notification { method, params } => match params["update"]["sessionUpdate"].as_str() {
            Some(kind) => format!("{method} {kind}"),
            None => method.clone(),
        },
        Body::Response { .. } => {
            let method = exchange.call_of(index).map_or("an unknown request", |call| &exchange.calls[call].method);
            format!("answer to {method}")
        }
        Body::Invalid { .. } => "an invalid message".to_owned(),
        Body::EmptyBatch => "an empty batch".to_owned(),
        Body::NotJson | Body::Junk => "a line that is no message".to_owned(),
    }
}

/// What a message is, and what it carries.
pub(super) fn label_and_body(exchange: &Exchange<'_>, index: usize, message: &Message<'_>) -> (String, Value) {
    let body = match &message.body {
        Body::Request { params, .. } | Body::Notification { params, .. } => params.clone(),
        Body::Response { outcome: Ok(result), .. } => serde_json::json!({ "result": result }),
        Body::Response { outcome: Err(error), .. } => {
            serde_json::json!({ "error": { "code": error.code, "message": error.message, "data": error.data } })
        }
        Body::Invalid { .. } | Body::EmptyBatch | Body::NotJson | Body::Junk => Value::Null,
    };
    (label_of(exchange, index, message), body)
}

/// Whether an update is a piece of a text that another one continues, and which text: of whom, in which session.
fn piece(message: &CanonicalMessage) -> Option<(&Value, &Value, &str)> {
    let update = &message.body["update"];
    let is_piece = message.label.ends_with("_chunk") && update["content"]["type"] == "text";
    is_piece.then(|| Some((&message.body["sessionId"], &update["messageId"], update["content"]["text"].as_str()?)))?
}

/// Adds a piece of a text to the one before, if it is of the same text.
fn append(last: &mut CanonicalMessage, next: &CanonicalMessage) -> bool {
    let Some((session, message, text)) = piece(next) else { return false };
    let is_same = last.label == next.label && piece(last).is_some_and(|(s, m, _)| (s, m) == (session, message));
    if is_same && let Some(Value::String(whole)) = last.body.pointer_mut("/update/content/text") {
        whole.push_str(text);
    }
    is_same
}

/// Numbers for ids, in the order in which they come.
#[derive(Default)]
struct Names(HashMap<(&'static str, String), usize>, HashMap<&'static str, usize>);

impl Names {
    fn replace(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(members) => self.replace_members(members),
            _ => {}
        }
    }

    fn replace_members(&mut self, members: &mut Map<String, Value>) {
        LEFT_OUT.iter().for_each(|key| drop(members.shift_remove(*key)));
        for (key, member) in members.iter_mut() {
            match (IDS.iter().find(|id| *id == key), &*member) {
                (Some(id), Value::String(_) | Value::Number(_)) => {
                    // A cursor is given as one and used as the other.
                    let kind = if *id == "nextCursor" { "cursor" } else { id };
                    let count = self.1.entry(kind).or_default();
                    let number = *self.0.entry((kind, member.to_string())).or_insert_with(|| {
                        *count += 1;
                        *count
                    });
                    *member = format!("{}-{number}", kind.trim_end_matches("Id")).into();
                }
                _ => self.replace(member),
            }
        }
    }
}
