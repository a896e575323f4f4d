//! JSON-RPC: methods that nobody has, ids of all kinds, lines that are no messages, answers that nobody waits for.

use attache_proto::Dialect;
use serde_json::{Value, json};

use super::DONE;
use crate::probe::client::AgentDriver;
use crate::probe::client::batch::unknown_request;
use crate::probe::client::scenario::Stop;

pub(in crate::probe::client) async fn unknown_methods(agent: &mut AgentDriver) -> Stop {
    for method in ["_attache.check/unknown", "attache/unknown", "$/attache/unknown", "session/unknown", ""] {
        agent.ask(method, json!({"value": 1})).await;
    }
    for method in ["_attache.check/told", "attache/told", "$/attache/told", "session/told"] {
        agent.notify(method, json!({"value": 1})).await;
    }
    agent.ping().await;
    agent.note("params are left out, null or a list");
    for message in [
        json!({"id": "check-none", "method": "_attache.check/unknown"}),
        json!({"id": "check-null", "method": "_attache.check/unknown", "params": null}),
        json!({"id": "check-list", "method": "_attache.check/unknown", "params": [1, 2]}),
        json!({"method": "_attache.check/told"}),
    ] {
        agent.send(message).await;
    }
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn not_offered(agent: &mut AgentDriver) -> Stop {
    let session = agent.session().to_owned();
    let file = format!("{}/.attache-check-never-there", agent.cwd().trim_end_matches('/'));
    let is_v1 = agent.dialect() == Dialect::V1;
    let calls = [
        ("fs.readTextFile", "fs/read_text_file", json!({"sessionId": session, "path": file})),
        ("fs.writeTextFile", "fs/write_text_file", json!({"sessionId": session, "path": file, "content": ""})),
        ("terminal", "terminal/create", json!({"sessionId": session, "command": "true"})),
        ("terminal", "terminal/output", json!({"sessionId": session, "terminalId": "none"})),
    ];
    for (capability, method, params) in calls {
        // Since version 2 there are no such methods, whatever is offered.
        if !is_v1 || !agent.is_offered(capability) {
            agent.ask(method, params).await;
        }
    }
    let schema = json!({"type": "object", "properties": {}});
    let form = json!({"sessionId": session, "mode": "form", "message": "Well?", "requestedSchema": schema});
    let page = json!({"sessionId": session, "mode": "url", "message": "Look.", "elicitationId": "page-not-offered", "url": "https://localhost:9/"});
    for (capability, params) in [("elicitation.form", form), ("elicitation.url", page)] {
        if agent.dialect() == Dialect::V2Draft || !agent.is_offered(capability) {
            agent.ask("elicitation/create", params).await;
        }
    }
    DONE
}

pub(in crate::probe::client) async fn ids(agent: &mut AgentDriver) -> Stop {
    let prompt = agent.turn.as_ref().map_or(Value::Null, |turn| turn.prompt.clone());
    let ids = [
        json!("check-text"),
        json!(""),
        json!("7"),
        json!("\u{e4}\u{1f980} \"quoted\" \\ \n"),
        // A limit is nobody's fault, and a thousand characters is where some have it.
        json!("x".repeat(200)),
        json!(-1),
        json!(i64::from(i32::MAX) + 1),
        json!((1_i64 << 53) - 1),
        json!(i64::MAX),
        json!(i64::MIN),
        prompt,
    ];
    for id in ids.into_iter().filter(|id| !id.is_null()) {
        if agent.is_over() {
            break;
        }
        agent.request_as(id.clone(), "_attache.check/ping", json!({})).await;
        agent.wait_for(&[id], agent.limit("_attache.check/ping")).await;
    }
    DONE
}

pub(in crate::probe::client) async fn malformed(agent: &mut AgentDriver) -> Stop {
    let lines = [
        "this is no JSON",
        "{\"jsonrpc\":\"2.0\",\"method\":",
        "",
        "   ",
        "42",
        "\"text\"",
        "null",
        "[]",
        "[1]",
        "{}",
        r#"{"jsonrpc":"2.0","id":"check-empty"}"#,
        r#"{"id":"check-no-version","method":"_attache.check/ping"}"#,
        r#"{"jsonrpc":"1.0","id":"check-old-version","method":"_attache.check/ping"}"#,
        r#"{"jsonrpc":"2.0","id":"check-scalar","method":"_attache.check/ping","params":1}"#,
        r#"{"jsonrpc":"2.0","id":{"a":1},"method":"_attache.check/ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"_attache.check/ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"_attache.check/ping"}"#,
        r#"{"jsonrpc":"2.0","id":"check-number","method":5}"#,
        r#"{"jsonrpc":"2.0","id":"check-both","method":"_attache.check/ping","result":{}}"#,
    ];
    for line in lines {
        if agent.is_over() {
            return DONE;
        }
        agent.send_line(line).await;
        agent.ping().await;
    }
    agent.send_bytes(b"\xff\xfe no UTF-8 \xc3\x28\n").await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn batches(agent: &mut AgentDriver) -> Stop {
    let told = json!({"method": "_attache.check/told", "params": {}});
    agent.batch(vec![unknown_request("check-alone")]).await;
    agent.batch(vec![unknown_request("check-one"), told.clone(), unknown_request("check-two")]).await;
    agent.batch(vec![told.clone(), told]).await;
    agent.batch(vec![json!(1), unknown_request("check-beside-one"), json!({})]).await;
    agent.batch(vec![json!({"id": "check-never-asked", "result": {}})]).await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn stray_answers(agent: &mut AgentDriver) -> Stop {
    let known = agent.last_answer.clone();
    for message in [
        json!({"id": 987_654_321, "result": {}}),
        json!({"id": "never-asked", "result": {"stopReason": "end_turn"}}),
        json!({"id": "never-asked", "error": {"code": -32603, "message": "Internal error"}}),
        json!({"id": null, "error": {"code": -32700, "message": "Parse error"}}),
        json!({"id": null, "result": {}}),
    ] {
        agent.send(message).await;
    }
    agent.ping().await;
    if let Some(known) = known {
        agent.note("the answer to `session/new` once more");
        agent.send(known).await;
        agent.ping().await;
    }
    DONE
}
