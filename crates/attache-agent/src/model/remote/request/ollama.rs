//! Ollama's own `/api/chat`. Its chat completions have no word for the size of the context, and cut what is longer than
//! a few thousand tokens without saying so; this one is told the size that we count on.

use serde_json::{Value, json};

use super::{EMPTY, Effort, Said, Seen, arguments, call_id, extend, grouped, result_text, seen, system, tools};
use crate::model::remote::Inner;
use crate::model::{Message, Part, Request};

pub(super) fn body(model: &Inner, request: &Request, schema: Option<Value>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    messages.extend(system(request).map(|text| json!({ "role": "system", "content": text })));
    for group in grouped(&request.messages) {
        match &group[0] {
            Message::User { parts } => messages.push(user(model, parts)),
            Message::Assistant { text, calls, opaque } => {
                messages.extend(Said::new(model, text, calls, opaque.as_ref()).map(|said| assistant(model, &said)));
            }
            Message::Tool { .. } => results(model, group, &mut messages),
        }
    }
    let mut options = json!({ "num_ctx": model.info.context });
    if let Some(limit) = request.max_tokens {
        extend(&mut options, [("num_predict", json!(limit))]);
    }
    if let Some(temperature) = model.temperature {
        extend(&mut options, [("temperature", json!(temperature))]);
    }
    json!({
        "model": model.info.name,
        "messages": messages,
        "stream": true,
        "tools": tools(request, |tool| json!({
            "type": "function",
            "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
        })),
        "think": Effort::of(model, request).map(|effort| think(&model.info.name, effort)),
        "format": schema,
        "options": options,
    })
}

/// Whether to think. One family of models is told how long.
fn think(name: &str, effort: Effort) -> Value {
    if name.contains("gpt-oss") { json!(effort.word(name)) } else { json!(effort != Effort::Off) }
}

fn user(model: &Inner, parts: &[Part]) -> Value {
    let (mut texts, mut images): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for part in seen(model, parts) {
        match part {
            Seen::Text(text) => texts.push(text.to_owned()),
            Seen::LeftOut(text) => texts.push(text),
            Seen::Image { data, .. } => images.push(data),
            // There is no word for it here.
            Seen::Audio { mime, .. } => texts.push(super::left_out(mime)),
        }
    }
    if texts.is_empty() && images.is_empty() {
        texts.push(EMPTY.to_owned());
    }
    let mut message = json!({ "role": "user", "content": texts.join("\n\n") });
    if !images.is_empty() {
        extend(&mut message, [("images", json!(images))]);
    }
    message
}

fn assistant(model: &Inner, said: &Said<'_>) -> Value {
    let mut message = json!({ "role": "assistant", "content": said.text.unwrap_or_default() });
    if !said.calls.is_empty() {
        let calls = said.calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": arguments(&call.arguments) });
            json!({ "id": call_id(model, &call.id), "function": function })
        });
        extend(&mut message, [("tool_calls", calls.collect())]);
    }
    message
}

fn results(model: &Inner, group: &[Message], messages: &mut Vec<Value>) {
    let mut beside = Vec::new();
    for result in group {
        let Message::Tool { id, name, parts, is_error } = result else { continue };
        let text = result_text(model, name, parts, *is_error, &mut beside);
        messages
            .push(json!({ "role": "tool", "tool_name": name, "tool_call_id": call_id(model, id), "content": text }));
    }
    if !beside.is_empty() {
        messages.push(user(model, &beside));
    }
}
