//! Before anything is measured: all agents put the same JSON on the wire.

use std::io;

use serde_json::{Value, json};

use crate::driver::Driver;

/// What an agent says to a few small prompts, without what may differ: ids of sessions, messages and tool calls.
pub fn said(agent: &[String]) -> io::Result<Vec<Value>> {
    let (mut driver, session) = Driver::open(agent)?;
    let mut said = vec![driver.call("session/set_mode", &json!({"sessionId": session, "modeId": "b"}))?];
    for words in ["w3 3 80", "w3p 2 80", "w3b 2 4096"] {
        let id = driver.prompt(&session, words)?;
        loop {
            let mut line: Value = serde_json::from_slice(&driver.line()?)?;
            if line["id"] == id {
                line["id"] = Value::Null;
                said.push(line);
                break;
            }
            said.extend(plain(line));
        }
    }
    Ok(said)
}

/// An update without its ids. The first and the last report of a tool call may be told or not.
fn plain(mut line: Value) -> Option<Value> {
    let update = line["params"]["update"].as_object_mut()?;
    let is_measured = match update["sessionUpdate"].as_str()? {
        "agent_message_chunk" => true,
        "tool_call_update" => update.contains_key("content"),
        _ => false,
    };
    update.remove("messageId");
    if update.contains_key("toolCallId") {
        update.insert("toolCallId".into(), Value::Null);
    }
    line["params"]["sessionId"] = Value::Null;
    is_measured.then_some(line)
}
