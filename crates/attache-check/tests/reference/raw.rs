//! Odd things that a peer is sent, line by line: what no library sends, and every peer has to get along with.

use std::time::Duration;

use attache::Protocol;
use attache_check::probe::{Peer, Received, Wire};
use attache_check::record::Event;
use attache_check::{Record, Side};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, split};

const LIMIT: Duration = Duration::from_secs(2);

/// A wire to a peer on this side.
fn wire(side: Side, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Wire {
    let (reader, writer) = split(stream);
    Wire::new(side, Peer { reader: Box::new(reader), writer: Box::new(writer) })
}

/// Sends a line and reads what comes until nothing does. Returns all messages that came. Nothing is sent to a peer that has left.
async fn exchange(wire: &mut Wire, line: &str) -> Vec<Value> {
    if has_left(wire) {
        return Vec::new();
    }
    let _ = wire.send_text(line, LIMIT).await;
    rest(wire).await
}

/// Sends lines, and behind each a request that anybody can answer.
async fn exchange_all(wire: &mut Wire, lines: impl IntoIterator<Item = String>) {
    for (number, line) in lines.into_iter().enumerate() {
        exchange(wire, &line).await;
        exchange(wire, &request(format!("pulse-{number}"), "_attache.invalid/pulse", json!({}))).await;
    }
}

fn has_left(wire: &Wire) -> bool {
    wire.record().entries.iter().any(|entry| matches!(entry.event, Event::Closed { .. }))
}

async fn rest(wire: &mut Wire) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        match wire.receive(LIMIT).await {
            Received::Json(message) => messages.push(message),
            Received::Junk => {}
            Received::Closed | Received::Nothing => return messages,
        }
    }
}

fn hello(protocol: Protocol) -> Value {
    let info = json!({"name": "raw", "version": "1"});
    match protocol {
        Protocol::V1 => json!({"protocolVersion": 1, "clientInfo": info, "clientCapabilities": {}}),
        Protocol::V2Draft => json!({"protocolVersion": 2, "clientInfo": info, "capabilities": {}}),
        _ => json!({"protocolVersion": 2, "info": info, "capabilities": {}}),
    }
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string()
}

fn notification(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// What everybody may ask for: a session.
fn opening() -> Value {
    json!({"cwd": "/project", "mcpServers": []})
}

/// Asks an agent for things before it is greeted, and then greets it.
pub(crate) async fn too_early(
    agent: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    protocol: Protocol,
) -> Record {
    let mut wire = wire(Side::Agent, agent);
    exchange(&mut wire, &request("early", "session/new", opening())).await;
    exchange(&mut wire, &notification("session/cancel", json!({"sessionId": "none"}))).await;
    exchange(&mut wire, &request(0, "initialize", hello(protocol))).await;
    let answers = exchange(&mut wire, &request(1, "session/new", opening())).await;
    if let Some(session) = answers.iter().find_map(|answer| answer["result"]["sessionId"].as_str()) {
        let prompt = json!([{"type": "text", "text": "say hello"}]);
        exchange(&mut wire, &request(2, "session/prompt", json!({"sessionId": session, "prompt": prompt}))).await;
    }
    rest(&mut wire).await;
    wire.close().await;
    rest(&mut wire).await;
    wire.into_record()
}

/// Sends odd things to an agent.
pub(crate) async fn to_agent(
    agent: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    protocol: Protocol,
) -> Record {
    let mut wire = wire(Side::Agent, agent);
    for (id, version) in [("string", json!("1")), ("oldest", json!(0)), ("newest", json!(65535))] {
        let mut hello = hello(protocol);
        hello["protocolVersion"] = version;
        // Once greeted, an agent of version 1 need not be greeted again.
        if protocol != Protocol::V1 || id == "string" {
            exchange(&mut wire, &request(id, "initialize", hello)).await;
        }
    }
    exchange(&mut wire, &request(0, "initialize", hello(protocol))).await;
    if protocol == Protocol::V2 {
        exchange(&mut wire, &request("again", "initialize", hello(protocol))).await;
    }
    let answers = exchange(&mut wire, &request(1, "session/new", opening())).await;
    let session = answers.iter().find_map(|answer| answer["result"]["sessionId"].as_str()).unwrap_or("none").to_owned();
    exchange_all(&mut wire, ENVELOPES.iter().map(|line| (*line).to_owned())).await;
    exchange_all(&mut wire, requests(&session)).await;
    requests_that_meet(&mut wire, &session).await;
    wire.note(Event::Junk { from: Side::Client, bytes: 2 });
    let _ = wire.send_bytes(b"\xff\xfe\n", LIMIT).await;
    rest(&mut wire).await;
    let prompt = json!([{"type": "text", "text": "wait 60"}]);
    exchange(&mut wire, &request(96, "session/prompt", json!({"sessionId": session, "prompt": prompt}))).await;
    exchange(&mut wire, &request(97, "session/close", json!({"sessionId": session}))).await;
    let prompt = json!([{"type": "text", "text": "say hello"}]);
    exchange(&mut wire, &request(98, "session/prompt", json!({"sessionId": session, "prompt": prompt}))).await;
    exchange(&mut wire, &request(99, "session/list", json!({}))).await;
    wire.close().await;
    rest(&mut wire).await;
    wire.into_record()
}

/// Cancels a request, and uses the id of a request of the agent.
async fn requests_that_meet(wire: &mut Wire, session: &str) {
    let prompt = |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let _ = wire.send_text(&request(50, "session/prompt", prompt("wait 60")), LIMIT).await;
    exchange(wire, &notification("$/cancel_request", json!({"requestId": 50}))).await;
    // A permission that is granted when it is too late.
    let late = "call write_file {\"path\":\"late.txt\",\"content\":\"\"}";
    let messages = exchange(wire, &request(54, "session/prompt", prompt(late))).await;
    exchange(wire, &notification("session/cancel", json!({"sessionId": session}))).await;
    if let Some(asked) = messages.iter().find(|message| message["method"] == "session/request_permission") {
        let result = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        exchange(wire, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()).await;
    }
    let script = "call write_file {\"path\":\"d.txt\",\"content\":\"\"}";
    let messages = exchange(wire, &request(51, "session/prompt", prompt(script))).await;
    if let Some(asked) = messages.iter().find(|message| message["method"] == "session/request_permission") {
        exchange(wire, &request(asked["id"].clone(), "session/list", json!({}))).await;
        let result = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
        exchange(wire, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()).await;
    }
}

/// Lines that are no proper messages, or of the kind that have to be ignored.
const ENVELOPES: &[&str] = &[
    "this is not JSON",
    "",
    "[]",
    "[1,2]",
    "1",
    "{\"jsonrpc\":\"2.0\"}",
    "{\"id\":\"old\",\"method\":\"session/list\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"session/list\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"scalar\",\"method\":\"session/list\",\"params\":7}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"a string\",\"method\":\"session/list\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"session/list\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"nobody asked\",\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"Invalid request\"}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"unknown/notification\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"_unknown/notification\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"$/unknown\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"unknown\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"unknown/method\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"session/list\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":7}}",
    "{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"_attache.invalid/method\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"$/unknown\",\"params\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":13,\"method\":\"providers/list\",\"params\":{}}",
    "[{\"jsonrpc\":\"2.0\",\"id\":14,\"method\":\"session/list\",\"params\":{}},{\"jsonrpc\":\"2.0\",\"id\":15,\"method\":\"session/list\",\"params\":{}},{\"jsonrpc\":\"2.0\",\"method\":\"unknown/notification\"}]",
    "[{\"jsonrpc\":\"2.0\",\"id\":16,\"method\":\"session/list\",\"params\":{}},3]",
    "[{\"jsonrpc\":\"2.0\",\"method\":\"unknown/notification\"}]",
];

/// Requests that an agent has to refuse, or to get along with.
fn requests(session: &str) -> Vec<String> {
    let text = json!([{"type": "text", "text": "say hello"}]);
    let audio = json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
    let sse = json!([{"type": "sse", "name": "old", "url": "https://example.com/sse", "headers": []}]);
    vec![
        request(20, "session/new", json!({})),
        request(21, "session/new", json!({"cwd": 7, "mcpServers": []})),
        request(22, "session/new", json!({"cwd": "relative", "mcpServers": []})),
        request(23, "session/new", json!({"cwd": "/project", "mcpServers": sse})),
        request(24, "session/prompt", json!({"sessionId": "none", "prompt": text})),
        request(25, "session/prompt", json!({"sessionId": session, "prompt": "no blocks"})),
        request(26, "session/prompt", json!({"sessionId": session, "prompt": audio})),
        request(
            27,
            "session/set_config_option",
            json!({"sessionId": session, "configId": "none", "type": "id", "value": "x"}),
        ),
        request(
            28,
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode", "type": "id", "value": "none"}),
        ),
        request(
            29,
            "session/set_config_option",
            json!({"sessionId": "none", "configId": "mode", "type": "id", "value": "ask"}),
        ),
        request(30, "session/resume", json!({"sessionId": "none", "cwd": "/project"})),
        request(31, "session/list", json!({"cursor": "no such cursor"})),
        request(32, "session/list", json!({"cwd": "/nowhere"})),
        request(38, "session/resume", json!({"sessionId": session, "cwd": "/project", "replayFrom": {"type": "end"}})),
        request(33, "session/delete", json!({"sessionId": "none"})),
        request(34, "session/prompt", json!({"sessionId": session, "prompt": text, "_meta": {"example.com/x": 1}})),
        request(35, "tool_call/cancel", json!({"sessionId": session, "toolCallId": "none"})),
    ]
}

/// Greets a client as an agent, sends it odd things when it prompts, and then ends the turn.
pub(crate) async fn to_client(
    client: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    protocol: Protocol,
) -> Record {
    let mut wire = wire(Side::Client, client);
    loop {
        let message = match wire.receive(LIMIT).await {
            Received::Json(message) => message,
            Received::Junk => continue,
            Received::Closed | Received::Nothing => break,
        };
        let result = match message["method"].as_str() {
            Some("initialize") => greeting(protocol),
            Some("session/new") => json!({"sessionId": "raw-session"}),
            Some("session/prompt") => {
                let lines = ENVELOPES.iter().filter(|line| !line.contains("session/"));
                exchange_all(&mut wire, lines.map(|line| (*line).to_owned())).await;
                exchange_all(&mut wire, questions()).await;
                // With the id of the client's own request, and withdrawn before there is an answer.
                exchange(&mut wire, &request(message["id"].clone(), "_attache.invalid/method", json!({}))).await;
                let _ = wire.send_text(&request(60, "session/request_permission", may_i()), LIMIT).await;
                exchange(&mut wire, &notification("$/cancel_request", json!({"requestId": 60}))).await;
                if protocol == Protocol::V2 {
                    json!({"messageId": "prompt"})
                } else {
                    json!({"stopReason": "end_turn"})
                }
            }
            _ => continue,
        };
        let _ = wire.send(json!({"id": message["id"], "result": result}), LIMIT).await;
        if protocol == Protocol::V2 && message["method"] == "session/prompt" {
            for update in [
                json!({"sessionUpdate": "user_message", "messageId": "prompt", "content": message["params"]["prompt"]}),
                json!({"sessionUpdate": "state_update", "state": "running"}),
                json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}),
            ] {
                let params = json!({"sessionId": "raw-session", "update": update});
                let _ = wire.send(json!({"method": "session/update", "params": params}), LIMIT).await;
            }
        }
    }
    wire.close().await;
    rest(&mut wire).await;
    wire.into_record()
}

fn greeting(protocol: Protocol) -> Value {
    let info = json!({"name": "raw", "version": "1"});
    match protocol {
        Protocol::V1 => json!({"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {"loadSession": false}}),
        Protocol::V2Draft => {
            json!({"protocolVersion": 2, "agentInfo": info, "capabilities": {"session": {"load": {}}}})
        }
        _ => json!({"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}),
    }
}

/// A question for permission.
fn may_i() -> Value {
    let options = json!([
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"}
    ]);
    let call = json!({"toolCallId": "t", "title": "May I?"});
    let subject = json!({"type": "tool_call", "toolCall": call});
    json!({"sessionId": "raw-session", "title": "May I?", "toolCall": call, "subject": subject, "options": options})
}

/// Requests that a client has to answer, whatever they are.
fn questions() -> Vec<String> {
    let session = "raw-session";
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    vec![
        request(40, "fs/read_text_file", json!({"sessionId": session, "path": "/none.txt"})),
        request(41, "fs/read_text_file", json!({"sessionId": session})),
        request(42, "terminal/output", json!({"sessionId": session, "terminalId": "none"})),
        request(43, "session/request_permission", may_i()),
        request(
            44,
            "elicitation/create",
            json!({"sessionId": session, "mode": "form", "message": "Who?", "requestedSchema": form}),
        ),
        notification("session/update", json!({"sessionId": session, "update": {"sessionUpdate": "_unknown"}})),
    ]
}
