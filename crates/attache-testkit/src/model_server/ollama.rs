//! Ollama's own `/api/chat`, as the server of a scripted model speaks it: a JSON object on each line.

use serde_json::{Value, json};

use super::answer::{Answer, Stop};
use super::request::{ModelRequest, Turn};

/// What an answer is in this API, line by line.
pub(super) fn events(answer: &Answer, request: &ModelRequest) -> Vec<String> {
    let mut lines: Vec<Value> = Vec::new();
    let line = |message: Value| json!({"model": request.model(), "message": message, "done": false});
    for piece in answer.pieces(&answer.thought) {
        lines.push(line(json!({"role": "assistant", "content": "", "thinking": piece})));
    }
    for piece in answer.pieces(&answer.text) {
        lines.push(line(json!({"role": "assistant", "content": piece})));
    }
    let calls = calls(answer);
    if !calls.is_empty() {
        lines.push(line(json!({"role": "assistant", "content": "", "tool_calls": calls})));
    }
    let mut last = whole(answer, request);
    last["message"] = json!({"role": "assistant", "content": ""});
    lines.push(last);
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// What an answer is in this API, in one piece.
pub(super) fn whole(answer: &Answer, request: &ModelRequest) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if !answer.thought.is_empty() {
        message["thinking"] = answer.thought.clone().into();
    }
    let calls = calls(answer);
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "model": request.model(),
        "message": message,
        "done": true,
        "done_reason": if answer.stop == Stop::Length { "length" } else { "stop" },
        "prompt_eval_count": answer.usage.input,
        "eval_count": answer.usage.output,
    })
}

/// An error's body.
pub(super) fn error(message: &str) -> Value {
    json!({"error": message})
}

/// The line of an error in the middle of a stream.
pub(super) fn error_event(message: &str) -> String {
    format!("{}\n", error(message))
}

/// The conversation of a request. A result without an id has the name of its tool.
pub(super) fn turns(body: &Value) -> Vec<Turn> {
    let mut turns = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let part = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let text = part(message, "content");
        match message["role"].as_str() {
            Some("user") => turns.push(Turn::User(text)),
            Some("tool") => turns.push(Turn::Result { id: part(message, "tool_call_id"), text }),
            Some("assistant") => {
                if !text.is_empty() {
                    turns.push(Turn::Assistant(text));
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let arguments = call["function"]["arguments"].to_string();
                    turns.push(Turn::Call { id: part(call, "id"), name: part(&call["function"], "name"), arguments });
                }
            }
            _ => {}
        }
    }
    turns
}

/// The calls. Arguments that are no JSON cannot be said in this API, and are left out.
fn calls(answer: &Answer) -> Vec<Value> {
    let call = |call: &super::answer::Call| {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let mut value = json!({"function": {"name": call.name, "arguments": arguments}});
        if let Some(id) = &call.id {
            value["id"] = id.clone().into();
        }
        Some(value)
    };
    answer.calls.iter().filter_map(call).collect()
}
