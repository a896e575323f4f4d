//! OpenAI's Responses API, as the server of a scripted model speaks it.

use serde_json::{Value, json};

use super::answer::{Answer, Stop};
use super::request::{ModelRequest, Turn, text_of};
use super::tool::Tool;

/// What an answer is in this API, event by event.
pub(super) fn events(answer: &Answer, request: &ModelRequest) -> Vec<String> {
    let start = response(answer, request, "in_progress", Vec::new());
    let mut events = vec![event("response.created", json!({"response": start}))];
    let items = items(answer, request);
    for (place, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        for (key, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
            if begun.get(key).is_some() {
                begun[key] = empty;
            }
        }
        events.push(event("response.output_item.added", json!({"output_index": place, "item": begun})));
        let (kind, deltas) = match item["type"].as_str() {
            Some("reasoning") => ("response.reasoning_summary_text.delta", answer.pieces(&answer.thought)),
            Some("message") if answer.stop == Stop::Refusal => ("response.refusal.delta", answer.pieces(&answer.text)),
            Some("message") => ("response.output_text.delta", answer.pieces(&answer.text)),
            _ => {
                let arguments = item["arguments"].as_str().unwrap_or_default();
                ("response.function_call_arguments.delta", answer.pieces(arguments))
            }
        };
        for delta in deltas {
            events.push(event(kind, json!({"output_index": place, "item_id": item["id"], "delta": delta})));
        }
        events.push(event("response.output_item.done", json!({"output_index": place, "item": item})));
    }
    let (kind, status) = match answer.stop {
        Stop::Length => ("response.incomplete", "incomplete"),
        Stop::Done | Stop::Refusal => ("response.completed", "completed"),
    };
    events.push(event(kind, json!({"response": response(answer, request, status, items)})));
    events
}

/// What an answer is in this API, in one piece.
pub(super) fn whole(answer: &Answer, request: &ModelRequest) -> Value {
    response(answer, request, "completed", items(answer, request))
}

/// The event of an error in the middle of a stream.
pub(super) fn error_event(message: &str) -> String {
    event("error", json!({"code": "server_error", "message": message, "param": null}))
}

/// The system prompt of a request.
pub(super) fn system(body: &Value) -> String {
    body["instructions"].as_str().unwrap_or_default().to_owned()
}

/// The conversation of a request.
pub(super) fn turns(body: &Value) -> Vec<Turn> {
    let turn = |item: &Value| {
        let part = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        Some(match (item["type"].as_str(), item["role"].as_str()) {
            (Some("function_call"), _) => {
                Turn::Call { id: part("call_id"), name: part("name"), arguments: part("arguments") }
            }
            (Some("function_call_output"), _) => Turn::Result { id: part("call_id"), text: text_of(&item["output"]) },
            (_, Some("user")) => Turn::User(text_of(&item["content"])),
            (_, Some("assistant")) => Turn::Assistant(text_of(&item["content"])),
            _ => return None,
        })
    };
    body["input"].as_array().into_iter().flatten().filter_map(turn).collect()
}

/// A request's tools.
pub(super) fn tools(body: &Value) -> Vec<Tool> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| Tool::of(tool, &["parameters"])).collect()
}

/// The items of an answer. A signature is the encrypted content of the thought.
fn items(answer: &Answer, request: &ModelRequest) -> Vec<Value> {
    let number = request.number;
    let mut items = Vec::new();
    if !answer.thought.is_empty() || answer.signature.is_some() {
        let mut item = json!({
            "id": format!("rs_{number}"), "type": "reasoning",
            "summary": [{"type": "summary_text", "text": answer.thought}],
        });
        // Only those who ask for it get it.
        let is_asked =
            request.body["include"].as_array().is_some_and(|list| list.contains(&json!("reasoning.encrypted_content")));
        if let (true, Some(signature)) = (is_asked, &answer.signature) {
            item["encrypted_content"] = signature.clone().into();
        }
        items.push(item);
    }
    if !answer.text.is_empty() {
        let content = match answer.stop {
            Stop::Refusal => json!([{"type": "refusal", "refusal": answer.text}]),
            Stop::Done | Stop::Length => json!([{"type": "output_text", "text": answer.text, "annotations": []}]),
        };
        items.push(json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "content": content,
        }));
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let call_id = call.id.clone().unwrap_or_else(|| format!("call_{number}_{index}"));
        items.push(json!({
            "id": format!("fc_{number}_{index}"), "type": "function_call", "call_id": call_id,
            "name": call.name, "arguments": call.arguments,
        }));
    }
    items
}

fn response(answer: &Answer, request: &ModelRequest, status: &str, output: Vec<Value>) -> Value {
    let usage = answer.usage;
    json!({
        "id": format!("resp_{}", request.number),
        "object": "response",
        "model": request.model(),
        "status": status,
        "error": null,
        "incomplete_details": (status == "incomplete").then(|| json!({"reason": "max_output_tokens"})),
        "output": output,
        "usage": (status != "in_progress").then(|| json!({
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": answer.thought_tokens()},
            "total_tokens": usage.input.saturating_add(usage.output),
        })),
    })
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}
