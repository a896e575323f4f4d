//! Several messages in one array.

use attache::Protocol::{V1, V2, V2Draft};
use attache_testkit::defect::{Defect, Flow};
use serde_json::{Value, json};

use super::{Row, agent, client, error, first_sending, instead, is_begin, is_update, to_request};

pub(crate) fn rows() -> Vec<Row> {
    let is_empty = |message: &Value| *message == json!([]);
    let is_served = |message: &Value| is_array_of(message, |entries| entries.iter().all(Value::is_object));
    let is_mixed = |message: &Value| is_array_of(message, |entries| entries.iter().any(|entry| !entry.is_object()));
    vec![
        agent("batches/not-sent", V1, wrapping(|message| is_update(message, "available_commands_update"))),
        client("batches/not-sent", V2, wrapping(|message| message["method"] == "session/list")),
        agent("batches/not-empty", V1, first_sending(is_begin, |_| json!([]))),
        client("batches/not-empty", V2, first_sending(is_begin, |_| json!([]))),
        agent("batches/empty", V1, instead(is_empty, |_| Some(json!([error(-32600)])))),
        client("batches/empty", V2, instead(is_empty, |_| Some(json!([error(-32600)])))),
        agent("batches/answered", V2, instead(is_served, |_| None)),
        agent("batches/served", V2Draft, instead(is_served, |_| Some(error(-32600)))),
        agent(
            "batches/asked-for",
            V1,
            to_request(|asked| asked["method"] == "session/list", |answer| vec![Flow::from_peer(json!([answer]))]),
        ),
        agent("batches/invalid-entries", V2Draft, instead(is_mixed, refusing_what_is_asked)),
    ]
}

/// Whether a message is an array with a request in it, and something more is so.
fn is_array_of(message: &Value, is_meant: impl Fn(&[Value]) -> bool) -> bool {
    let is_request = |entry: &Value| entry["method"].is_string() && !entry["id"].is_null();
    message.as_array().is_some_and(|entries| entries.iter().any(is_request) && is_meant(entries))
}

/// Refuses the requests of an array, and says nothing to the rest.
fn refusing_what_is_asked(message: &Value) -> Option<Value> {
    let asked = message.as_array()?.iter().filter(|entry| entry["method"].is_string() && !entry["id"].is_null());
    let no = json!({"code": -32603, "message": "no"});
    Some(asked.map(|asked| json!({"jsonrpc": "2.0", "id": asked["id"], "error": no})).collect())
}

/// Sends some messages in arrays.
fn wrapping(is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Defect {
    Defect::altering(move |_, message| {
        if is_meant(message) {
            *message = json!([message]);
        }
    })
}
