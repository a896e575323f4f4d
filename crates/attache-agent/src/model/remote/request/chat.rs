//! OpenAI's chat completions, which most servers speak.

use serde_json::{Value, json};

use super::{
    EMPTY, Effort, Said, Seen, arguments, cache_key, call_id, extend, grouped, result_text, seen, system, tools,
};
use crate::model::remote::Inner;
use crate::model::{Message, Part, Request};

pub(super) fn body(model: &Inner, request: &Request, schema: Option<Value>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    messages.extend(system(request).map(|text| json!({ "role": "system", "content": text })));
    for group in grouped(&request.messages) {
        match &group[0] {
            Message::User { parts } => push_user(&mut messages, content(model, parts)),
            Message::Assistant { text, calls, opaque } => {
                messages.extend(Said::new(model, text, calls, opaque.as_ref()).map(|said| assistant(model, &said)));
            }
            Message::Tool { .. } => results(model, group, &mut messages),
        }
    }
    let response_format =
        schema.map(|schema| json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } }));
    let mut body = json!({
        "model": model.info.name,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": tools(request, |tool| json!({
            "type": "function",
            "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
        })),
        "reasoning_effort": Effort::of(model, request).map(|effort| effort.word(&model.info.name)),
        "response_format": response_format,
        "temperature": model.temperature,
    });
    if model.info.provider == "openai" {
        extend(&mut body, [("prompt_cache_key", json!(cache_key(request)))]);
    }
    // OpenAI's models that think know the limit under another name only.
    let is_newer = model.info.provider == "openai" && crate::model::catalog::has_responses(&model.info.name);
    let limit = if is_newer { "max_completion_tokens" } else { "max_tokens" };
    extend(&mut body, [(limit, json!(request.max_tokens))]);
    body
}

/// Adds what the person says. Many templates want the roles by turns, so neighbours become one message: what was sent
/// before is its beginning, which caches need.
fn push_user(messages: &mut Vec<Value>, content: Value) {
    match messages.last_mut().filter(|last| last["role"] == "user") {
        Some(last) => {
            let before = last["content"].take();
            last["content"] = match (before, content) {
                (Value::String(before), Value::String(content)) => json!(format!("{before}\n\n{content}")),
                (before, content) => parts_of(before).into_iter().chain(parts_of(content)).collect(),
            };
        }
        None => messages.push(json!({ "role": "user", "content": content })),
    }
}

fn parts_of(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        text => vec![json!({ "type": "text", "text": text })],
    }
}

/// The content of a person's message: text where that is all, because not every server takes parts.
fn content(model: &Inner, parts: &[Part]) -> Value {
    let seen = seen(model, parts);
    let texts: Option<Vec<&str>> = seen
        .iter()
        .map(|part| match part {
            Seen::Text(text) => Some(*text),
            Seen::LeftOut(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    match texts {
        Some(texts) if texts.is_empty() => json!(EMPTY),
        Some(texts) => json!(texts.join("\n\n")),
        None => seen.iter().map(part).collect(),
    }
}

fn part(part: &Seen<'_>) -> Value {
    match part {
        Seen::Text(text) => json!({ "type": "text", "text": text }),
        Seen::LeftOut(text) => json!({ "type": "text", "text": text }),
        Seen::Image { mime, data } => {
            json!({ "type": "image_url", "image_url": { "url": format!("data:{mime};base64,{data}") } })
        }
        Seen::Audio { mime, data } => {
            let format = match mime.strip_prefix("audio/") {
                Some("mpeg") => "mp3",
                Some(format) => format,
                None => "wav",
            };
            json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
        }
    }
}

fn assistant(model: &Inner, said: &Said<'_>) -> Value {
    let mut message = json!({ "role": "assistant", "content": said.text });
    if !said.calls.is_empty() {
        let calls = said.calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": arguments(&call.arguments).to_string() });
            json!({ "id": call_id(model, &call.id), "type": "function", "function": function })
        });
        extend(&mut message, [("tool_calls", calls.collect())]);
    }
    let details: Vec<&Value> = said.list("reasoning_details").collect();
    if !details.is_empty() {
        extend(&mut message, [("reasoning_details", json!(details))]);
    }
    if let Some(thoughts) = said.kept.get("reasoning_content") {
        extend(&mut message, [("reasoning_content", thoughts.clone())]);
    }
    message
}

fn results(model: &Inner, group: &[Message], messages: &mut Vec<Value>) {
    let mut beside = Vec::new();
    for result in group {
        let Message::Tool { id, name, parts, is_error } = result else { continue };
        let text = result_text(model, name, parts, *is_error, &mut beside);
        messages.push(json!({ "role": "tool", "tool_call_id": call_id(model, id), "content": text }));
    }
    if !beside.is_empty() {
        push_user(messages, content(model, &beside));
    }
}
