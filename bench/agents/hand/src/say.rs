//! Messages as bytes: everything that does not change is written out here, strings are escaped.

/// The answer to `initialize` of an agent.
pub fn say_hello(out: &mut Vec<u8>, id: &str) {
    say_result(
        out,
        id,
        r#"{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"embeddedContext":true}},"authMethods":[]}"#,
    );
}

/// The answer to `session/new`.
pub fn say_session(out: &mut Vec<u8>, id: &str, session: &str) {
    let modes = r#"{"currentModeId":"a","availableModes":[{"id":"a","name":"a"},{"id":"b","name":"b"}]}"#;
    say_result(out, id, &format!(r#"{{"sessionId":"{session}","modes":{modes}}}"#));
}

/// The answer to `session/prompt`.
pub fn say_end(out: &mut Vec<u8>, id: &str) {
    say_result(out, id, r#"{"stopReason":"end_turn"}"#);
}

/// A result that is JSON already.
pub fn say_result(out: &mut Vec<u8>, id: &str, result: &str) {
    say_all(out, &[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}\n"]);
}

/// The answer to what is not known.
pub fn say_unknown(out: &mut Vec<u8>, id: &str) {
    let error = r#","error":{"code":-32601,"message":"Method not found"}}"#;
    say_all(out, &[r#"{"jsonrpc":"2.0","id":"#, id, error, "\n"]);
}

/// An `agent_message_chunk`.
pub fn say_chunk(out: &mut Vec<u8>, session: &str, text: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#);
    say_string(out, session);
    out.extend_from_slice(br#","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#);
    say_string(out, text);
    out.extend_from_slice(b"}}}}\n");
}

/// A `tool_call`, the first that is said of it.
pub fn say_tool(out: &mut Vec<u8>, session: &str, call: &str, title: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#);
    say_string(out, session);
    out.extend_from_slice(br#","update":{"sessionUpdate":"tool_call","toolCallId":"#);
    say_string(out, call);
    out.extend_from_slice(br#","title":"#);
    say_string(out, title);
    out.extend_from_slice(b"}}}\n");
}

/// A `tool_call_update` with one text.
pub fn say_tool_update(out: &mut Vec<u8>, session: &str, call: &str, text: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#);
    say_string(out, session);
    out.extend_from_slice(br#","update":{"sessionUpdate":"tool_call_update","toolCallId":"#);
    say_string(out, call);
    out.extend_from_slice(br#","content":[{"type":"content","content":{"type":"text","text":"#);
    say_string(out, text);
    out.extend_from_slice(b"}}]}}}\n");
}

/// A request for a file.
pub fn say_read(out: &mut Vec<u8>, id: u64, session: &str, path: &str) {
    say_all(
        out,
        &[r#"{"jsonrpc":"2.0","id":"#, &id.to_string(), r#","method":"fs/read_text_file","params":{"sessionId":"#],
    );
    say_string(out, session);
    out.extend_from_slice(br#","path":"#);
    say_string(out, path);
    out.extend_from_slice(b"}}\n");
}

/// A string of JSON.
pub fn say_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string can be written to memory");
}

fn say_all(out: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}
