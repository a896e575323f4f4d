//! OpenAI's chat completions, as the server of a scripted model speaks them.

use serde_json::{Value, json};

use super::answer::{Answer, Stop};
use super::request::{ModelRequest, Turn, text_of};
use super::tool::Tool;

/// What an answer is in this API, event by event.
pub(super) fn events(answer: &Answer, request: &ModelRequest) -> Vec<String> {
    let with_usage = request.body["stream_options"]["include_usage"] == true;
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = envelope(request, "chat.completion.chunk", choices);
        // Chunks say nothing of usage unless they are asked to, and then all do.
        if with_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, reason: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]), Value::Null)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}), Value::Null)];
    for piece in answer.pieces(&answer.thought) {
        events.push(delta(json!({"reasoning_content": piece}), Value::Null));
    }
    for piece in answer.pieces(&answer.text) {
        events.push(delta(json!({"content": piece}), Value::Null));
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let id = call_id(answer, request, index);
        let start = json!({"index": index, "id": id, "type": "function", "function": function});
        events.push(delta(json!({"tool_calls": [start]}), Value::Null));
        for piece in answer.pieces(&call.arguments) {
            let part = json!({"index": index, "function": {"arguments": piece}});
            events.push(delta(json!({"tool_calls": [part]}), Value::Null));
        }
    }
    events.push(delta(json!({}), finish_reason(answer).into()));
    if with_usage {
        events.push(chunk(json!([]), usage(answer)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// What an answer is in this API, in one piece.
pub(super) fn whole(answer: &Answer, request: &ModelRequest) -> Value {
    let text = if answer.text.is_empty() { Value::Null } else { answer.text.clone().into() };
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if !answer.thought.is_empty() {
        message["reasoning_content"] = answer.thought.clone().into();
    }
    let calls = answer.calls.iter().enumerate().map(|(index, call)| {
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": call_id(answer, request, index), "type": "function", "function": function})
    });
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer)});
    let mut whole = envelope(request, "chat.completion", json!([choice]));
    whole["usage"] = usage(answer);
    whole
}

/// An error's body.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

/// The event of an error in the middle of a stream.
pub(super) fn error_event(message: &str) -> String {
    format!("data: {}\n\n", error(503, message))
}

/// The system prompt of a request.
pub(super) fn system(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    let system = messages.filter(|message| message["role"] == "system" || message["role"] == "developer");
    system.map(|message| text_of(&message["content"])).collect::<Vec<_>>().join("\n")
}

/// The conversation of a request.
pub(super) fn turns(body: &Value) -> Vec<Turn> {
    let mut turns = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("user") => turns.push(Turn::User(text)),
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
                turns.push(Turn::Result { id, text });
            }
            Some("assistant") => {
                if !text.is_empty() {
                    turns.push(Turn::Assistant(text));
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let (name, arguments) = (part(&call["function"]["name"]), part(&call["function"]["arguments"]));
                    turns.push(Turn::Call { id: part(&call["id"]), name, arguments });
                }
            }
            _ => {}
        }
    }
    turns
}

/// A request's tools.
pub(super) fn tools(body: &Value) -> Vec<Tool> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| Tool::of(&tool["function"], &["parameters"])).collect()
}

/// The list of models.
pub(super) fn models(names: &[String]) -> Value {
    let models = names.iter().map(|name| json!({"id": name, "object": "model", "created": 0, "owned_by": "testkit"}));
    json!({"object": "list", "data": models.collect::<Vec<_>>()})
}

fn envelope(request: &ModelRequest, object: &str, choices: Value) -> Value {
    let id = format!("chatcmpl-{}", request.number);
    json!({"id": id, "object": object, "created": 0, "model": request.model(), "choices": choices})
}

fn call_id(answer: &Answer, request: &ModelRequest, index: usize) -> String {
    answer.calls[index].id.clone().unwrap_or_else(|| format!("call_{}_{index}", request.number))
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Done if answer.calls.is_empty() => "stop",
        Stop::Done => "tool_calls",
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
    }
}

fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": answer.thought_tokens()},
    })
}
