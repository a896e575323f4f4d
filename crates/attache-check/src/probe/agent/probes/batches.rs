//! Several messages in one.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::probe::agent::words;

pub(super) const PROBES: &[Probe] = &[
    probe!("batches/empty", ALL, "Sends an empty array.", empty),
    probe!("batches/requests", ALL, "Sends several requests as one.", requests),
    probe!("batches/mixed", ALL, "Sends requests, notifications and what is neither as one.", mixed),
    probe!("batches/invalid", ALL, "Sends an array of what is no message.", invalid),
    probe!("batches/notifications", ALL, "Sends notifications as one.", notifications),
    probe!("batches/responses", ALL, "Sends responses as one.", responses),
    probe!("batches/not-json", ALL, "Sends half an array.", not_json),
    probe!("batches/initialize", ALL, "Sends `initialize` in an array.", initialize),
    probe!("batches/session", ALL, "Opens a session in an array.", session),
];

fn ping(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "_attache.check/ping", "params": {} })
}

fn hint() -> Value {
    json!({ "jsonrpc": "2.0", "method": "_attache.check/hint", "params": {} })
}

/// Sends a batch and waits for an answer: one array, or one error.
async fn answered(driver: &mut Driver, batch: Value) -> Flow {
    driver.send(batch).await?;
    let deadline = tokio::time::Instant::now() + driver.options.patience;
    let is_answer = |message: &Value| message.is_array() || message["id"].is_null() && message["error"].is_object();
    if !driver.pump(deadline, |_, message| is_answer(message)).await? {
        let time = driver.options.patience;
        driver.wire.note(crate::record::Event::Waited { time });
    }
    driver.settle().await
}

async fn empty(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    answered(driver, json!([])).await
}

async fn requests(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    answered(driver, json!([ping("a"), ping("b"), ping("c")])).await?;
    answered(driver, json!([ping("d")])).await
}

async fn mixed(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    answered(driver, json!([ping("a"), hint(), 7, ping("b"), { "jsonrpc": "2.0", "id": "c" }, hint()])).await
}

async fn invalid(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    answered(driver, json!([1, 2])).await?;
    answered(driver, json!([[]])).await
}

async fn notifications(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.send(json!([hint(), hint()])).await?;
    driver.settle().await
}

async fn responses(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver
        .send(json!([
            { "jsonrpc": "2.0", "id": "nobody-asked-1", "result": {} },
            { "jsonrpc": "2.0", "id": "nobody-asked-2", "error": { "code": -32603, "message": "no" } },
        ]))
        .await?;
    driver.settle().await
}

async fn not_json(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.send_line("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_attache.check/ping\"},{\"jsonrpc\"").await?;
    driver.answers_to(&[Value::Null]).await?;
    driver.settle().await
}

async fn initialize(driver: &mut Driver) -> Flow {
    let params = words::hello(driver.dialect, &driver.offered);
    answered(driver, json!([{ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }])).await
}

async fn session(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let params = words::opening(driver.dialect, driver.cwd());
    answered(driver, json!([{ "jsonrpc": "2.0", "id": "open", "method": "session/new", "params": params }, ping("a")]))
        .await
}
