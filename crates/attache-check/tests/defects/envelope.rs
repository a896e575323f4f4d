//! JSON-RPC: messages, ids, answers.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{Row, agent, client, first_sending, is_begin, is_prompt, leaving_at, remove, request, to_request};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = messages();
    rows.extend(answers());
    rows
}

fn messages() -> Vec<Row> {
    let sending = |message: Value| first_sending(is_begin, move |_| message.clone());
    let without_version = |method| Defect::in_answers(method, |message| remove(message, "jsonrpc"));
    let odd = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "_reference/odd", "params": {}});
    let path = json!({"sessionId": "s", "path": "/project/a.txt"});
    vec![
        agent("envelope/version", V1, without_version("authenticate")),
        client("envelope/version", V2, without_version("elicitation/create")),
        agent("envelope/shape", V1, sending(json!({"jsonrpc": "2.0", "params": {}}))),
        client("envelope/shape", V2, sending(json!({"jsonrpc": "2.0", "params": {}}))),
        agent("envelope/ids", V2, sending(odd(json!(1.5)))),
        client("envelope/ids", V1, sending(odd(json!(1.5)))),
        agent("envelope/ids-not-null", V2, sending(odd(Value::Null))),
        client("envelope/ids-not-null", V2, sending(odd(Value::Null))),
        agent("envelope/pending-ids", V2, asking_twice_with_one_id()),
        client("envelope/pending-ids", V2, asking_twice_with_one_id()),
        agent("envelope/method-kind", V1, sending(request("kind", "session/list", json!({})))),
        client("envelope/method-kind", V1, sending(request("kind", "fs/read_text_file", path))),
        agent(
            "envelope/params",
            V1,
            Defect::in_updates("current_mode_update", |update| remove(update, "currentModeId")),
        ),
        client("envelope/params", V1, Defect::in_params("session/list", |params| params["cwd"] = 7.into())),
        agent("envelope/results", V1, Defect::in_results("session/close", |result| *result = "closed".into())),
    ]
}

fn answers() -> Vec<Row> {
    let to_agent = |apply: fn(Value) -> Vec<Flow>| to_request(is_deletion_of_nothing, apply);
    let to_client = |apply: fn(Value) -> Vec<Flow>| {
        to_request(|asked| asked["id"] == 40 && asked["method"] == "fs/read_text_file", apply)
    };
    let never = |_: Value| Vec::new();
    let as_text: fn(Value) -> Vec<Flow> = |mut answer| {
        answer["id"] = answer["id"].to_string().into();
        vec![Flow::from_peer(answer)]
    };
    let as_null: fn(Value) -> Vec<Flow> = |mut answer| {
        answer["id"] = Value::Null;
        vec![Flow::from_peer(answer)]
    };
    let with_both: fn(Value) -> Vec<Flow> = |mut answer| {
        let missing = if answer["error"].is_null() { "error" } else { "result" };
        answer[missing] = Value::Null;
        vec![Flow::from_peer(answer)]
    };
    let is_cancelled = |id: u64| move |asked: &Value| asked["id"] == id;
    let is_unknown_notice = |message: &Value| message["method"] == "_unknown/notification";
    let is_stray = |message: &Value| message["id"] == "nobody asked";
    let is_odd_cancel =
        |message: &Value| message["method"] == "$/cancel_request" && message["params"]["requestId"] == "unknown";
    vec![
        agent("envelope/answered", V1, to_agent(never)),
        agent("envelope/answered", V1, leaving_at(|message| is_prompt(message, "fail"))),
        client("envelope/answered", V1, to_client(never)),
        agent("envelope/one-answer", V2, to_agent(twice)),
        client("envelope/one-answer", V1, to_client(twice)),
        agent("envelope/ids-echoed", V1, to_agent(as_text)),
        client("envelope/ids-echoed", V2, to_client(as_text)),
        agent("envelope/response-ids", V2, to_agent(as_null)),
        client("envelope/response-ids", V1, to_client(as_null)),
        agent("envelope/result-or-error", V1, to_agent(with_both)),
        client("envelope/result-or-error", V1, to_client(with_both)),
        agent("envelope/notifications-not-answered", V1, answering(is_unknown_notice)),
        client("envelope/notifications-not-answered", V2, answering(is_unknown_notice)),
        agent("envelope/responses-not-answered", V1, answering(is_stray)),
        client("envelope/responses-not-answered", V2, answering(is_stray)),
        agent("envelope/both-ways", V1, confusing_ids("session/list")),
        client("envelope/both-ways", V1, confusing_ids("_attache.invalid/method")),
        agent("envelope/cancel-unknown", V1, leaving_at(is_odd_cancel)),
        client("envelope/cancel-unknown", V1, leaving_at(is_odd_cancel)),
        agent("envelope/cancelled-once", V1, to_request(is_cancelled(50), twice)),
        client("envelope/cancelled-once", V1, to_request(is_cancelled(60), twice)),
    ]
}

fn is_deletion_of_nothing(asked: &Value) -> bool {
    asked["method"] == "session/delete" && asked["params"]["sessionId"] == "none"
}

fn twice(answer: Value) -> Vec<Flow> {
    vec![Flow::from_peer(answer.clone()), Flow::from_peer(answer)]
}

fn asking_twice_with_one_id() -> Defect {
    Defect::in_messages(|memory, message| {
        let mut flows = Vec::new();
        if is_begin(&message) && memory.is_first("asked") {
            flows.extend([0; 2].map(|_| Flow::from_peer(request("same", "_reference/odd", json!({})))));
        }
        flows.push(Flow::from_peer(message));
        flows
    })
}

/// Answers what needs no answer.
fn answering(is_meant: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Defect {
    Defect::new(move |_, way, message| {
        let mut flows = Vec::new();
        if way == Way::ToPeer && is_meant(&message) {
            let error = json!({"code": -32600, "message": "Invalid request"});
            flows.push(Flow::from_peer(json!({"jsonrpc": "2.0", "id": null, "error": error})));
        }
        flows.push(Flow::message(way, message));
        flows
    })
}

/// Does not answer requests of a method whose id is that of an open request of its own.
fn confusing_ids(method: &'static str) -> Defect {
    Defect::new(move |memory, way, message| {
        let id = message["id"].to_string();
        if way == Way::ToPeer {
            if message.get("method").is_none() {
                memory.take(&id);
            }
            return vec![Flow::to_peer(message)];
        }
        if message["method"].is_string() && !message["id"].is_null() {
            memory.keep(&id, true);
        }
        let is_meant = memory.answered_method(way, &message) == Some(method);
        if is_meant && memory.kept(&id) == true { Vec::new() } else { vec![Flow::from_peer(message)] }
    })
}
