//! Authentication.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::Defect;
use serde_json::{Value, json};

use super::{Row, agent, client, first_sending, refusing, remove, request};

pub(crate) fn rows() -> Vec<Row> {
    let in_methods =
        |alter: fn(&mut Value)| Defect::in_results("initialize", move |result| alter(&mut result["authMethods"]));
    vec![
        agent("auth/method-fields", V2, in_methods(|methods| remove(&mut methods[0], "name"))),
        agent(
            "auth/terminal-offered",
            V1,
            in_methods(|methods| {
                let console = json!({"type": "terminal", "id": "other-console", "name": "Console"});
                methods.as_array_mut().unwrap().push(console);
            }),
        ),
        agent(
            "auth/terminal-env",
            V2,
            in_methods(|methods| {
                let console = methods.as_array_mut().unwrap().iter_mut().find(|method| method["type"] == "terminal");
                let variable = json!({"name": "A", "value": "1"});
                if let Some(console) = console {
                    console["env"] = json!([variable, variable]);
                }
            }),
        ),
        agent("auth/served", V1, refusing("authenticate", -32601)),
        client("auth/advertised", V1, logging_in_with("other")),
        client("auth/terminal-not-called", V1, logging_in_with("console")),
        client("auth/logout-offered", V1, logging_out_at_once()),
    ]
}

/// Logs out before its first prompt, whoever the agent is.
fn logging_out_at_once() -> Defect {
    first_sending(|message| message["method"] == "session/prompt", |_| request("out", "logout", json!({})))
}

/// Logs in with this method, unless it was told to log in.
fn logging_in_with(id: &'static str) -> Defect {
    Defect::altering(move |memory, message| match message["method"].as_str() {
        Some("session/new") => memory.keep("has begun", true),
        Some("authenticate") if memory.kept("has begun").is_null() => message["params"]["methodId"] = id.into(),
        _ => {}
    })
}
