//! A defect for each rule that is a must.

pub(crate) mod auth;
pub(crate) mod batches;
pub(crate) mod cancel;
pub(crate) mod elicitation;
pub(crate) mod envelope;
pub(crate) mod errors;
pub(crate) mod extensions;
pub(crate) mod files;
mod found_by;
pub(crate) mod initialize;
pub(crate) mod mcp;
pub(crate) mod messages;
pub(crate) mod notices;
pub(crate) mod options;
pub(crate) mod permission;
pub(crate) mod plans;
pub(crate) mod prompt;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod terminals;
pub(crate) mod tools;
pub(crate) mod transport;

use attache::Protocol;
use attache_check::Side;
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

pub(crate) use found_by::found_by;

/// A rule, and a peer that breaks it.
pub(crate) struct Row {
    /// The rule.
    pub(crate) rule: &'static str,
    /// Who has the defect.
    pub(crate) side: Side,
    /// What is spoken.
    pub(crate) protocol: Protocol,
    /// What is wrong with the peer.
    pub(crate) defect: Defect,
}

/// An agent that breaks a rule.
fn agent(rule: &'static str, protocol: Protocol, defect: Defect) -> Row {
    Row { rule, side: Side::Agent, protocol, defect }
}

/// A client that breaks a rule.
fn client(rule: &'static str, protocol: Protocol, defect: Defect) -> Row {
    Row { rule, side: Side::Client, protocol, defect }
}

/// Answers a method with an error instead.
fn refusing(method: &'static str, code: i32) -> Defect {
    Defect::in_answers(method, move |message| refuse(message, code))
}

/// Makes an answer an error.
fn refuse(message: &mut Value, code: i32) {
    remove(message, "result");
    message["error"] = json!({"code": code, "message": "no"});
}

/// Makes an answer a result.
fn accept(message: &mut Value, result: Value) {
    remove(message, "error");
    message["result"] = result;
}

/// Removes a member.
fn remove(value: &mut Value, key: &str) {
    if let Some(members) = value.as_object_mut() {
        members.remove(key);
    }
}

/// Renames a member.
fn rename(value: &mut Value, from: &str, to: &str) {
    if let Some(member) = value.as_object_mut().and_then(|members| members.remove(from)) {
        value[to] = member;
    }
}

/// Sends something besides, before the first message of the peer for which this is so.
fn first_sending(
    is_place: impl Fn(&Value) -> bool + Send + Sync + 'static,
    more: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> Defect {
    Defect::in_messages(move |memory, message| {
        let mut flows = Vec::new();
        if is_place(&message) && memory.is_first("sent") {
            flows.push(Flow::from_peer(more(&message)));
        }
        flows.push(Flow::from_peer(message));
        flows
    })
}

/// A request of the peer that its library knows nothing of.
fn request(id: &str, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A notification of the peer that its library knows nothing of.
fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Whether a message is an update of this kind.
fn is_update(message: &Value, kind: &str) -> bool {
    message["method"] == "session/update" && message["params"]["update"]["sessionUpdate"] == kind
}

/// Does something to the answers to some requests.
fn to_request(
    is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static,
    apply: impl Fn(Value) -> Vec<Flow> + Send + Sync + 'static,
) -> Defect {
    Defect::in_messages(move |memory, message| match memory.answered(Way::FromPeer, &message) {
        Some(asked) if is_meant(asked) => apply(message),
        _ => vec![Flow::from_peer(message)],
    })
}

/// Takes some messages that the peer would get, and answers them in its place.
fn instead(
    is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static,
    answer: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
) -> Defect {
    Defect::new(move |_, way, message| match way == Way::ToPeer && is_meant(&message) {
        true => answer(&message).into_iter().map(Flow::from_peer).collect(),
        false => vec![Flow::message(way, message)],
    })
}

/// Whether a request is a prompt with this text.
fn is_prompt(asked: &Value, text: &str) -> bool {
    asked["method"] == "session/prompt" && asked["params"]["prompt"][0]["text"] == text
}

/// Refuses some requests in place of the answers that the peer gives.
fn refusing_some(is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static, code: i32) -> Defect {
    to_request(is_meant, move |mut answer| {
        refuse(&mut answer, code);
        vec![Flow::from_peer(answer)]
    })
}

/// An error without an id.
fn error(code: i32) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": "no"}})
}

/// Leaves when it is sent something.
fn leaving_at(is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Defect {
    Defect::new(move |_, way, message| match way == Way::ToPeer && is_meant(&message) {
        true => vec![Flow::close(Way::FromPeer), Flow::close(Way::ToPeer)],
        false => vec![Flow::message(way, message)],
    })
}

/// Where a peer says something besides: before its first prompt, or before the first words of an answer.
fn is_begin(message: &Value) -> bool {
    message["method"] == "session/prompt" || is_update(message, "agent_message_chunk")
}

/// The same messages more than once, where this is so.
fn repeating(is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Defect {
    Defect::in_messages(move |_, message| {
        vec![Flow::from_peer(message.clone()); if is_meant(&message) { 2 } else { 1 }]
    })
}
