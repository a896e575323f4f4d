//! `initialize`: versions, capabilities, names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Way};
use serde_json::{Value, json};

use super::{Row, accept, agent, client, first_sending, refuse, remove, rename, request};

pub(crate) fn rows() -> Vec<Row> {
    let early =
        || first_sending(|message| message["method"] == "initialize", |_| request("early", "session/list", json!({})));
    let version_as_text = |value: &mut Value| value["protocolVersion"] = "1".into();
    vec![
        client("initialize/first", V1, early()),
        agent("initialize/version-is-an-integer", V1, Defect::in_results("initialize", version_as_text)),
        client("initialize/version-is-an-integer", V1, Defect::in_params("initialize", version_as_text)),
        agent(
            "initialize/words-of-its-version",
            V2,
            to_greeting(65535, |message| rename(&mut message["result"], "capabilities", "agentCapabilities")),
        ),
        client("initialize/methods-of-the-version", V2, setting_a_mode()),
        agent("initialize/same-version", V2, answering_version_1_the_second_time()),
        agent(
            "initialize/newest-version",
            V2,
            to_greeting(65535, |message| message["result"]["protocolVersion"] = 65535.into()),
        ),
        agent(
            "initialize/not-above-the-request",
            V2,
            to_greeting(0, |message| {
                let info = json!({"name": "reference-agent", "version": "1.0"});
                accept(message, json!({"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}));
            }),
        ),
        agent(
            "initialize/unsupported-version",
            V2,
            to_greeting(0, |message| message["error"]["data"]["requested"] = "0".into()),
        ),
        agent("initialize/info", V2, Defect::in_results("initialize", |result| remove(&mut result["info"], "version"))),
        client("initialize/info", V2, Defect::in_params("initialize", |params| remove(&mut params["info"], "version"))),
        agent(
            "initialize/capability-types",
            V1,
            Defect::in_results("initialize", |result| result["agentCapabilities"]["loadSession"] = json!({})),
        ),
        client(
            "initialize/capability-types",
            V2,
            Defect::in_params("initialize", |params| params["capabilities"]["auth"] = true.into()),
        ),
        agent("initialize/may-be-repeated", V2, refusing_to_be_greeted_again()),
    ]
}

/// Sets a mode before its first prompt, as in version 1.
fn setting_a_mode() -> Defect {
    first_sending(
        |message| message["method"] == "session/prompt",
        |message| {
            let session = &message["params"]["sessionId"];
            request("mode", "session/set_mode", json!({"sessionId": session, "modeId": "ask"}))
        },
    )
}

/// Alters the answer to a greeting that asks for one version.
fn to_greeting(version: u64, alter: impl Fn(&mut Value) + Send + Sync + 'static) -> Defect {
    Defect::altering(move |memory, message| {
        let asked = memory.answered(Way::FromPeer, message);
        if asked.is_some_and(|asked| asked["method"] == "initialize" && asked["params"]["protocolVersion"] == version) {
            alter(message);
        }
    })
}

/// Forgets on its second connection that it speaks version 2.
fn answering_version_1_the_second_time() -> Defect {
    let greetings = Arc::new(AtomicUsize::new(0));
    Defect::in_results("initialize", move |result| {
        if greetings.fetch_add(1, Ordering::Relaxed) == 1 {
            let info = json!({"name": "reference-agent", "version": "1.0"});
            *result = json!({"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {"mcpCapabilities": {"http": true}}});
        }
    })
}

fn refusing_to_be_greeted_again() -> Defect {
    Defect::altering(|memory, message| {
        let asked = memory.answered(Way::FromPeer, message);
        if asked.is_some_and(|asked| asked["method"] == "initialize" && asked["id"] == "again") {
            refuse(message, -32600);
        }
    })
}
