//! What is no message, or not a good one.

use serde_json::{Value, json};

use crate::probe::agent::Probe;
use crate::probe::agent::driver::{Driver, Flow};
use crate::record::Event;

pub(super) const PROBES: &[Probe] = &[
    probe!("malformed/not-json", ALL, "Sends lines that are not JSON.", |driver| {
        lines(driver, &["this is no JSON", "{\"jsonrpc\":\"2.0\",\"id\":1,", "{'id':1}"])
    }),
    probe!("malformed/scalars", ALL, "Sends JSON that is no object.", |driver| lines(
        driver,
        &["1", "\"text\"", "null", "true"]
    )),
    probe!("malformed/no-version", ALL, "Sends requests without `jsonrpc`, and with another version.", no_version),
    probe!("malformed/no-method", ALL, "Sends objects that are neither request nor response.", no_method),
    probe!("malformed/mixed", ALL, "Sends a request that is a response, too.", |driver| {
        lines(driver, &["{\"jsonrpc\":\"2.0\",\"id\":\"mixed\",\"method\":\"session/list\",\"result\":{}}"])
    }),
    probe!(
        "malformed/bad-responses",
        ALL,
        "Sends responses that are malformed, and some that nobody asked for.",
        bad_responses
    ),
    probe!("malformed/bad-params", ALL, "Sends requests whose params do not fit.", bad_params),
    probe!("malformed/scalar-params", ALL, "Sends requests whose params are no object.", scalar_params),
    probe!("malformed/bad-notifications", ALL, "Sends notifications whose params do not fit.", bad_notifications),
    probe!("malformed/not-utf-8", ALL, "Sends bytes that are not UTF-8.", not_utf_8),
    probe!("malformed/blank-lines", ALL, "Sends blank lines, and lines that end with CRLF.", blank_lines),
    probe!("malformed/deep", ALL, "Sends JSON of 10,000 levels.", deep),
    probe!("malformed/duplicate-keys", ALL, "Sends objects with the same key twice.", duplicate_keys),
    probe!("malformed/unicode", ALL, "Sends text with escapes, rare characters and half a surrogate pair.", unicode),
    probe!("malformed/unknown-fields", ALL, "Sends fields that nobody knows, and `_meta`.", unknown_fields),
];

/// Sends lines that are answered with an error that has no id, one after the other.
async fn lines(driver: &mut Driver, lines: &[&str]) -> Flow {
    driver.hello().await?;
    for line in lines {
        driver.send_line(line).await?;
        driver.answers_to(&[Value::Null]).await?;
    }
    driver.settle().await
}

async fn no_version(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    for (id, line) in [
        ("bare-1", "{\"id\":\"bare-1\",\"method\":\"_attache.check/ping\"}"),
        ("bare-2", "{\"jsonrpc\":\"1.0\",\"id\":\"bare-2\",\"method\":\"_attache.check/ping\"}"),
        ("bare-3", "{\"jsonrpc\":2.0,\"id\":\"bare-3\",\"method\":\"_attache.check/ping\"}"),
    ] {
        driver.send_line(line).await?;
        either(driver, id).await?;
    }
    driver.settle().await
}

/// Waits for an answer with this id, or with none: how much of a bad request can be read is the agent's to say.
async fn either(driver: &mut Driver, id: &str) -> Flow {
    let deadline = tokio::time::Instant::now() + driver.options.patience;
    let id = Value::from(id);
    let is_it = |message: &Value| {
        message["method"].is_null() && message.get("id").is_some_and(|given| given.is_null() || *given == id)
    };
    if !driver.pump(deadline, |_, message| is_it(message)).await? {
        let time = driver.options.patience;
        driver.wire.note(Event::Waited { time });
    }
    Ok(())
}

async fn no_method(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver.send_line("{\"jsonrpc\":\"2.0\"}").await?;
    driver.send_line("{\"jsonrpc\":\"2.0\",\"params\":{}}").await?;
    driver.settle().await?;
    driver.send_line("{\"jsonrpc\":\"2.0\",\"id\":\"odd\",\"method\":7}").await?;
    either(driver, "odd").await?;
    driver.settle().await
}

async fn bad_responses(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    for line in [
        "{\"jsonrpc\":\"2.0\",\"id\":12345,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"unknown\",\"error\":{\"code\":-32603,\"message\":\"no\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":12345,\"result\":{},\"error\":{\"code\":1,\"message\":\"both\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":12345,\"error\":\"text\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":12345}",
        "{\"jsonrpc\":\"2.0\",\"result\":{}}",
    ] {
        driver.send_line(line).await?;
    }
    driver.settle().await?;
    driver.open().await?;
    driver.settle().await
}

async fn bad_params(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    for (method, params) in [
        ("session/new", json!({})),
        ("session/new", json!({ "cwd": 7, "mcpServers": [] })),
        ("session/new", json!({ "cwd": driver.cwd(), "mcpServers": "none" })),
        ("session/prompt", json!({ "sessionId": session })),
        ("session/prompt", json!({ "sessionId": session, "prompt": "hello" })),
        ("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text" }] })),
        ("session/prompt", json!({ "sessionId": 7, "prompt": [{ "type": "text", "text": "hello" }] })),
        ("session/prompt", json!({})),
    ] {
        driver.request(method, params).await?;
    }
    driver.settle().await
}

async fn scalar_params(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    for (id, params) in [("scalar-1", "7"), ("scalar-2", "\"text\""), ("scalar-3", "true")] {
        driver
            .send_line(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"session/new\",\"params\":{params}}}"
            ))
            .await?;
        either(driver, id).await?;
    }
    for (id, params) in [("list", "[]"), ("nothing", "null")] {
        driver
            .send_line(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"session/new\",\"params\":{params}}}"
            ))
            .await?;
        driver.answers_to(&[id.into()]).await?;
    }
    driver.settle().await
}

async fn bad_notifications(driver: &mut Driver) -> Flow {
    driver.begin().await?;
    driver.notify("session/cancel", json!({})).await?;
    driver.notify("session/cancel", json!({ "sessionId": 7 })).await?;
    driver.notify("session/cancel", json!([])).await?;
    driver.notify("$/cancel_request", json!({})).await?;
    driver.notify("$/cancel_request", json!({ "requestId": { "a": 1 } })).await?;
    driver.send_line("{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\"}").await?;
    driver.settle().await
}

async fn not_utf_8(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    for bytes in
        [&b"\xff\xfe\xfd\n"[..], b"{\"jsonrpc\":\"2.0\",\"id\":\"bytes\",\"method\":\"_attache.check/\xc3\x28\"}\n"]
    {
        driver.send_junk(bytes).await?;
        either(driver, "bytes").await?;
    }
    driver.settle().await
}

async fn blank_lines(driver: &mut Driver) -> Flow {
    driver.send_line("").await?;
    driver.hello().await?;
    for line in ["", "\r", "  ", "\t"] {
        driver.send_line(line).await?;
    }
    driver.settle().await?;
    driver
        .send_line("{\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"_attache.check/ping\",\"params\":{}}\r")
        .await?;
    driver.answers_to(&[json!("crlf")]).await?;
    driver
        .send_line("  { \"jsonrpc\" : \"2.0\" ,\t\"id\" : \"spaces\" , \"method\" : \"_attache.check/ping\" }  ")
        .await?;
    driver.answers_to(&[json!("spaces")]).await?;
    driver.settle().await
}

async fn deep(driver: &mut Driver) -> Flow {
    const LEVELS: usize = 10_000;
    driver.hello().await?;
    let nest = format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS));
    driver
        .send_line(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"_attache.check/ping\",\"params\":{{\"deep\":{nest}}}}}"
        ))
        .await?;
    either(driver, "deep").await?;
    driver.settle().await
}

async fn duplicate_keys(driver: &mut Driver) -> Flow {
    let session = driver.begin().await?;
    driver
        .send_line("{\"jsonrpc\":\"2.0\",\"id\":\"twice\",\"method\":\"_attache.check/one\",\"method\":\"_attache.check/two\"}")
        .await?;
    either(driver, "twice").await?;
    let session = Value::from(session);
    driver
        .send_line(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"two-sessions\",\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"no-such\",\
             \"sessionId\":{session},\"prompt\":[]}}}}"
        ))
        .await?;
    either(driver, "two-sessions").await?;
    driver.settle().await
}

async fn unicode(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    driver
        .send_line("{\"jsonrpc\":\"2.0\",\"id\":\"\\u00e9\\ud83d\\ude00\",\"method\":\"_attache.check\\/ping\",\"params\":{\"a\":\"\u{2028}\u{202e}\u{7f}\"}}")
        .await?;
    driver.answers_to(&[json!("é😀")]).await?;
    driver
        .send_line(
            "{\"jsonrpc\":\"2.0\",\"id\":\"half\",\"method\":\"_attache.check/ping\",\"params\":{\"a\":\"\\ud83d\"}}",
        )
        .await?;
    either(driver, "half").await?;
    driver.settle().await
}

async fn unknown_fields(driver: &mut Driver) -> Flow {
    driver.hello().await?;
    let mut params = crate::probe::agent::words::opening(driver.dialect, driver.cwd());
    params["_meta"] = json!({ "attache.check/note": { "deep": [1, 2, 3] }, "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" });
    params["attacheCheck"] = json!(true);
    driver.request("session/new", params).await?;
    driver.settle().await
}
