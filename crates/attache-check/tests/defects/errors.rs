//! Errors: what is answered with which, and what is survived.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{Row, agent, client, error, instead, leaving_at, refuse, refusing_some, to_request};

pub(crate) fn rows() -> Vec<Row> {
    let with_code = |id: Value, method: &'static str, code: i32| {
        refusing_some(move |asked| asked["id"] == id && asked["method"] == method, code)
    };
    let to_unknown_method = |alter: fn(&mut Value)| {
        to_request(is_unknown, move |mut answer| {
            alter(&mut answer);
            vec![Flow::from_peer(answer)]
        })
    };
    let wordless: fn(&mut Value) = |answer| answer["error"]["message"] = 7.into();
    let miscoded: fn(&mut Value) = |answer| refuse(answer, -32602);
    let is_number = |message: &Value| !message.is_object() && !message.is_array();
    // The request behind the number is not served any more.
    let is_behind_number = |message: &Value| message["id"] == "pulse-4";
    let is_old = |message: &Value| message["method"].is_string() && message["jsonrpc"] != "2.0";
    let has_fraction = |message: &Value| message["id"] == 1.5;
    let is_empty = |message: &Value| {
        message.is_object()
            && message["jsonrpc"] == "2.0"
            && !["method", "result", "error"].iter().any(|key| message.get(key).is_some())
    };
    let has_null = |message: &Value| message["method"].is_string() && message.get("id") == Some(&Value::Null);
    let is_bad_cancel = |message: &Value| message["method"] == "session/cancel" && message["params"]["sessionId"] == 7;
    let to_session = |method: &'static str| {
        to_request(
            move |asked| asked["method"] == method && asked["params"]["sessionId"] == "none",
            |mut answer| {
                refuse(&mut answer, -32602);
                vec![Flow::from_peer(answer)]
            },
        )
    };
    vec![
        agent("errors/shape", V1, to_unknown_method(wordless)),
        client("errors/shape", V2, to_unknown_method(wordless)),
        agent("errors/parse-error", V1, misnaming_parse_errors()),
        client("errors/parse-error", V2, misnaming_parse_errors()),
        agent("errors/not-an-object", V2, instead(is_number, |_| Some(error(-32700)))),
        client("errors/not-an-object", V1, instead(is_number, |_| Some(error(-32700)))),
        agent("errors/no-version", V1, instead(is_old, |_| Some(error(-32603)))),
        agent("errors/bad-id", V2, instead(has_fraction, |_| Some(error(-32603)))),
        agent(
            "errors/null-id",
            V2,
            instead(has_null, |asked| {
                let result = if asked["method"] == "session/list" { json!({"sessions": []}) } else { json!({}) };
                Some(json!({"jsonrpc": "2.0", "id": null, "result": result}))
            }),
        ),
        agent("errors/bad-request", V1, instead(is_empty, |_| Some(error(-32603)))),
        client("errors/bad-request", V2, instead(is_empty, |_| Some(error(-32603)))),
        agent("errors/connection-lives", V1, leaving_at(is_behind_number)),
        client("errors/connection-lives", V2, leaving_at(is_behind_number)),
        agent("errors/bad-notification", V2, leaving_at(is_bad_cancel)),
        agent("errors/before-initialize", V2, with_code(json!("early"), "session/new", -32603)),
        agent("errors/unknown-method", V2, to_unknown_method(miscoded)),
        client("errors/unknown-method", V2, to_unknown_method(miscoded)),
        agent("errors/unadvertised-method", V2, with_code(json!(13), "providers/list", -32602)),
        client("errors/unadvertised-method", V2, with_code(json!(40), "fs/read_text_file", -32602)),
        agent("errors/unknown-session", V2, to_session("session/prompt")),
    ]
}

/// Whether a request is of a method that no version has and that is nobody's own.
fn is_unknown(asked: &Value) -> bool {
    let method = asked["method"].as_str().unwrap_or_default();
    let known =
        ["session/", "fs/", "terminal/", "elicitation/", "auth", "logout", "initialize", "providers/", "tool_call/"];
    !method.starts_with(['_', '$']) && !known.iter().any(|known| method.starts_with(known))
}

fn misnaming_parse_errors() -> Defect {
    Defect::none().and_to_text(|_, way, text| {
        let is_meant = way == Way::ToPeer && !text.trim_ascii().is_empty();
        is_meant.then(|| vec![Flow::from_peer(error(-32600))])
    })
}
