//! Anthropic's messages, as the server of a scripted model speaks them.

use serde_json::{Value, json};

use super::answer::{Answer, Stop};
use super::request::{ModelRequest, Turn, push_text, text_of};
use super::tool::Tool;

/// What an answer is in this API, event by event.
pub(super) fn events(answer: &Answer, request: &ModelRequest) -> Vec<String> {
    let mut message = envelope(request);
    let mut usage = usage(answer);
    usage["output_tokens"] = 1.into();
    message["usage"] = usage;
    let mut events = vec![event(json!({"type": "message_start", "message": message}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(event(json!({"type": "content_block_start", "index": index, "content_block": start})));
        if index == 0 {
            events.push(event(json!({"type": "ping"})));
        }
        for delta in deltas {
            events.push(event(json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        events.push(event(json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if !answer.thought.is_empty() || answer.signature.is_some() {
        let deltas = answer.pieces(&answer.thought).into_iter();
        let mut deltas: Vec<Value> = deltas.map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
        let signature = answer.signature.clone().unwrap_or_else(|| "unsigned".to_owned());
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !answer.text.is_empty() {
        let deltas = answer.pieces(&answer.text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let start = json!({"type": "tool_use", "id": call_id(answer, request, index), "name": call.name, "input": {}});
        let delta = |piece: String| json!({"type": "input_json_delta", "partial_json": piece});
        let mut deltas = vec![delta(String::new())];
        deltas.extend(answer.pieces(&call.arguments).into_iter().map(delta));
        block(start, deltas);
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    let usage = json!({"output_tokens": answer.usage.output});
    events.push(event(json!({"type": "message_delta", "delta": delta, "usage": usage})));
    events.push(event(json!({"type": "message_stop"})));
    events
}

/// What an answer is in this API, in one piece.
pub(super) fn whole(answer: &Answer, request: &ModelRequest) -> Value {
    let mut content = Vec::new();
    if !answer.thought.is_empty() || answer.signature.is_some() {
        let signature = answer.signature.as_deref().unwrap_or("unsigned");
        content.push(json!({"type": "thinking", "thinking": answer.thought, "signature": signature}));
    }
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text}));
    }
    for (index, call) in answer.calls.iter().enumerate() {
        // What is no JSON cannot be said here; text where an object belongs is the nearest thing.
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
        let id = call_id(answer, request, index);
        content.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}));
    }
    let mut whole = envelope(request);
    whole["content"] = content.into();
    whole["stop_reason"] = stop_reason(answer).into();
    whole["usage"] = usage(answer);
    whole
}

/// An error's body.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// The event of an error in the middle of a stream.
pub(super) fn error_event(message: &str) -> String {
    event(error(529, message))
}

/// The system prompt of a request.
pub(super) fn system(body: &Value) -> String {
    text_of(&body["system"])
}

/// The conversation of a request.
pub(super) fn turns(body: &Value) -> Vec<Turn> {
    let mut turns = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let is_user = message["role"] == "user";
        let mut text = String::new();
        let plain = [json!({"type": "text", "text": message["content"]})];
        for block in message["content"].as_array().map_or(&plain[..], Vec::as_slice) {
            let part = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
            let turn = match block["type"].as_str() {
                Some("text") => {
                    text.push_str(if text.is_empty() { "" } else { "\n" });
                    text.push_str(&part("text"));
                    continue;
                }
                Some("tool_use") => {
                    Turn::Call { id: part("id"), name: part("name"), arguments: block["input"].to_string() }
                }
                Some("tool_result") => Turn::Result { id: part("tool_use_id"), text: text_of(&block["content"]) },
                _ => continue,
            };
            push_text(&mut turns, is_user, &mut text);
            turns.push(turn);
        }
        push_text(&mut turns, is_user, &mut text);
    }
    turns
}

/// A request's tools.
pub(super) fn tools(body: &Value) -> Vec<Tool> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| Tool::of(tool, &["input_schema"])).collect()
}

/// The list of models.
pub(super) fn models(names: &[String]) -> Value {
    let model = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"});
    let models: Vec<Value> = names.iter().map(model).collect();
    json!({"data": models, "has_more": false, "first_id": names.first(), "last_id": names.last()})
}

fn event(data: Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn envelope(request: &ModelRequest) -> Value {
    json!({
        "id": format!("msg_{}", request.number),
        "type": "message",
        "role": "assistant",
        "model": request.model(),
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    })
}

fn call_id(answer: &Answer, request: &ModelRequest, index: usize) -> String {
    answer.calls[index].id.clone().unwrap_or_else(|| format!("toolu_{}_{index}", request.number))
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Done if answer.calls.is_empty() => "end_turn",
        Stop::Done => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
    }
}

/// What went in is without what came from the cache here.
fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    })
}
