//! `initialize`: versions, names, and what comes before it.

use serde_json::{Value, json};

use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::words;
use crate::probe::agent::{Probe, probes::row};

pub(super) const GREETING: Probe =
    row("initialize/greeting", crate::rule::Dialects::ALL, "Greets the agent.", |driver| Box::pin(greeting(driver)));

pub(super) const PROBES: &[Probe] = &[
    probe!("initialize/version-0", ALL, "Asks for version 0.", |driver| version(driver, json!(0))),
    probe!("initialize/version-1", ALL, "Asks for version 1.", |driver| version(driver, json!(1))),
    probe!("initialize/version-2", ALL, "Asks for version 2.", |driver| version(driver, json!(2))),
    probe!("initialize/version-3", ALL, "Asks for version 3.", |driver| version(driver, json!(3))),
    probe!("initialize/version-65535", ALL, "Asks for version 65535.", |driver| version(driver, json!(65535))),
    probe!("initialize/version-65536", ALL, "Asks for version 65536, which is none.", |driver| {
        version(driver, json!(65536))
    }),
    probe!("initialize/version-text", ALL, "Asks for a version that is a string.", |driver| {
        version(driver, json!("1"))
    }),
    probe!("initialize/version-negative", ALL, "Asks for a negative version.", |driver| version(driver, json!(-1))),
    probe!("initialize/no-version", ALL, "Asks for no version.", no_version),
    probe!("initialize/no-params", ALL, "Greets without params.", no_params),
    probe!("initialize/no-info", V1_AND_DRAFT, "Greets without a name.", no_info),
    probe!("initialize/no-info-2", V2, "Greets in version 2 without a name.", no_info),
    probe!(
        "initialize/both-dialects",
        ANY_V2,
        "Greets with the name in the words of both version 2 and its draft.",
        both_names
    ),
    probe!("initialize/nothing-offered", ALL, "Offers nothing, and opens a session.", nothing_offered),
    probe!("initialize/odd-capabilities", ALL, "Offers what nobody knows, and what is malformed.", odd_capabilities),
    probe!("initialize/again", ALL, "Greets the agent twice.", again),
    probe!("initialize/again-later", ALL, "Greets the agent once more after a session was opened.", again_later),
    probe!("initialize/requests-before", ALL, "Sends requests before it greets the agent.", requests_before),
    probe!(
        "initialize/notifications-before",
        ALL,
        "Sends notifications before it greets the agent.",
        notifications_before
    ),
];

async fn greeting(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.settle().await
}

async fn version(driver: &mut Driver, version: Value) -> Flow {
    let mut params = words::hello(driver.dialect, &driver.offered);
    params["protocolVersion"] = version;
    greet(driver, params).await
}

/// Greets the agent with these params, and sees that it goes on after that.
async fn greet(driver: &mut Driver, params: Value) -> Flow {
    let id = driver.ask("initialize", params).await?;
    let startup = driver.options.startup;
    driver.answer(id, startup).await?;
    driver.settle().await
}

async fn no_version(driver: &mut Driver) -> Flow {
    let mut params = words::hello(driver.dialect, &driver.offered);
    remove(&mut params, "protocolVersion");
    greet(driver, params).await
}

async fn no_params(driver: &mut Driver) -> Flow {
    driver.send(json!({ "id": "no-params", "method": "initialize" })).await?;
    driver.answers_to(&[json!("no-params")]).await?;
    driver.settle().await
}

async fn no_info(driver: &mut Driver) -> Flow {
    let mut params = words::hello(driver.dialect, &driver.offered);
    remove(&mut params, "info");
    remove(&mut params, "clientInfo");
    greet(driver, params).await
}

async fn both_names(driver: &mut Driver) -> Flow {
    let mut params = words::hello(driver.dialect, &driver.offered);
    let name = if params["info"].is_null() { params["clientInfo"].clone() } else { params["info"].clone() };
    params["info"] = name.clone();
    params["clientInfo"] = name;
    greet(driver, params).await
}

fn remove(params: &mut Value, key: &str) {
    if let Some(members) = params.as_object_mut() {
        members.remove(key);
    }
}

async fn nothing_offered(driver: &mut Driver) -> Flow {
    driver.hello_offering(json!({})).await?;
    driver.open().await?;
    driver.settle().await
}

async fn odd_capabilities(driver: &mut Driver) -> Flow {
    let offered = json!({ "fs": "yes", "terminal": null, "elicitation": [1], "_meta": { "x": 1 }, "session": 7 });
    driver.hello_offering(offered).await?;
    driver.open().await?;
    driver.settle().await
}

async fn again(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let params = words::hello(driver.dialect, &driver.offered);
    driver.request("initialize", params).await?;
    driver.open().await?;
    driver.settle().await
}

async fn again_later(driver: &mut Driver) -> Flow {
    driver.begin().await?;
    let params = words::hello(driver.dialect, &driver.offered);
    driver.request("initialize", params).await?;
    driver.settle().await
}

async fn requests_before(driver: &mut Driver) -> Flow {
    let cwd = driver.cwd().to_owned();
    driver
        .send(json!({ "id": "early-1", "method": "session/new", "params": words::opening(driver.dialect, &cwd) }))
        .await?;
    driver.send(json!({ "id": "early-2", "method": "session/list", "params": {} })).await?;
    driver.send(json!({ "id": "early-3", "method": "_attache.check/ping", "params": {} })).await?;
    let limit = driver.options.startup;
    // The agent may still be starting.
    driver.answer_to(&json!("early-1"), limit).await?;
    driver.answers_to(&[json!("early-2"), json!("early-3")]).await?;
    driver.hello().await?;
    driver.open().await?;
    driver.settle().await
}

async fn notifications_before(driver: &mut Driver) -> Flow {
    driver.notify("session/cancel", json!({ "sessionId": "no-such-session" })).await?;
    driver.notify("$/cancel_request", json!({ "requestId": 7 })).await?;
    driver.notify("_attache.check/hint", json!({})).await?;
    driver.hello().await?;
    driver.open().await?;
    driver.settle().await
}
