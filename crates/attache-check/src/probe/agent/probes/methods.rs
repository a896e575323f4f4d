//! Methods that nobody knows, and methods that were not offered.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::words::Feature;

pub(super) const PROBES: &[Probe] = &[
    probe!("methods/unknown-requests", ALL, "Asks for methods that nobody knows.", unknown_requests),
    probe!("methods/unknown-notifications", ALL, "Sends notifications that nobody knows.", unknown_notifications),
    probe!("methods/client-methods", ALL, "Asks the agent for what clients do.", client_methods),
    probe!("methods/not-offered", ALL, "Asks for methods that the agent does not offer.", not_offered),
    probe!("methods/retired", ALL, "Asks for methods of former and other versions.", retired),
    probe!("methods/unknown-sessions", ALL, "Uses sessions that do not exist.", unknown_sessions),
    probe!("methods/tool-cancel", V2, "Cancels tool calls and terminals that do not exist.", tool_cancel),
];

async fn unknown_requests(driver: &mut Driver) -> Flow {
    driver.begin().await?;
    for method in ["_attache.check/unknown", "_", "attache/unknown", "session/unknown", "", "$/attache", "Initialize"] {
        driver.request(method, json!({})).await?;
    }
    driver.send(json!({ "id": "no-params", "method": "_attache.check/unknown" })).await?;
    driver.answers_to(&[json!("no-params")]).await?;
    driver.settle().await
}

async fn unknown_notifications(driver: &mut Driver) -> Flow {
    driver.begin().await?;
    for method in ["_attache.check/hint", "attache/hint", "session/hint", "$/attache", "$/progress", ""] {
        driver.notify(method, json!({ "sessionId": "no-such-session" })).await?;
    }
    // Known ones as notifications, which nobody can answer.
    driver.notify("session/list", json!({})).await?;
    driver.notify("_attache.check/ping", json!({})).await?;
    driver.settle().await
}

async fn client_methods(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for method in ["fs/read_text_file", "terminal/create", "session/request_permission", "session/update"] {
        driver.request(method, json!({ "sessionId": session })).await?;
    }
    driver.settle().await
}

async fn not_offered(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    let cwd = driver.cwd().to_owned();
    let old_session = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
    let by_id = json!({ "sessionId": session });
    let greeting = driver.greeting.to_string();
    let methods = [
        (driver.offers(Feature::Load), "session/load", old_session.clone()),
        (driver.offers(Feature::Resume), "session/resume", old_session.clone()),
        (driver.offers(Feature::List), "session/list", json!({})),
        (driver.offers(Feature::Delete), "session/delete", json!({ "sessionId": "no-such-session" })),
        (greeting.contains("\"providers\""), "providers/list", json!({})),
        (greeting.contains("\"acp\""), "mcp/message", by_id.clone()),
        // What ends the session comes last.
        (driver.offers(Feature::Close), "session/close", by_id),
    ];
    for (is_offered, method, params) in methods {
        if !is_offered {
            driver.request(method, params).await?;
        }
    }
    driver.settle().await
}

async fn retired(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for method in ["session/stop", "nes/start", "mcp/connect", "session/set_model"] {
        driver.request(method, json!({ "sessionId": session })).await?;
    }
    let is_new = driver.dialect == attache_proto::Dialect::V2;
    let of_other: &[&str] = if is_new {
        &["authenticate", "session/set_mode", "session/load"]
    } else {
        &["auth/login", "tool_call/cancel"]
    };
    for method in of_other {
        driver.request(method, json!({ "sessionId": session, "methodId": "x", "modeId": "x" })).await?;
    }
    driver.settle().await
}

async fn unknown_sessions(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let unknown = "no-such-session";
    let prompt = json!({ "sessionId": unknown, "prompt": [{ "type": "text", "text": "hello" }] });
    driver.request("session/prompt", prompt).await?;
    let setting = json!({ "sessionId": unknown, "configId": "mode", "type": "id", "value": "x" });
    driver.request("session/set_config_option", setting).await?;
    driver.notify("session/cancel", json!({ "sessionId": unknown })).await?;
    if driver.offers(Feature::Close) {
        driver.request("session/close", json!({ "sessionId": unknown })).await?;
    }
    if driver.offers(Feature::Delete) {
        driver.request("session/delete", json!({ "sessionId": unknown })).await?;
    }
    for (feature, replay) in [(Feature::Load, true), (Feature::Resume, false)] {
        if driver.offers(feature) {
            let (method, params) = crate::probe::agent::words::reopening(driver.dialect, driver.cwd(), unknown, replay);
            driver.request(method, params).await?;
        }
    }
    driver.settle().await
}

async fn tool_cancel(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver.request("tool_call/cancel", json!({ "sessionId": session, "toolCallId": "no-such-call" })).await?;
    driver.request("terminal/cancel", json!({ "sessionId": session, "terminalId": "no-such-terminal" })).await?;
    driver.request("tool_call/cancel", json!({ "sessionId": Value::Null })).await?;
    driver.settle().await
}
