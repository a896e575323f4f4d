//! OpenAI's Responses API. Nothing is stored there: thoughts come back encrypted, and go along with the next request.

use serde_json::{Value, json};

use super::{EMPTY, Effort, Said, Seen, arguments, cache_key, call_id, grouped, result_text, seen, system, tools};
use crate::model::remote::Inner;
use crate::model::{Call, Message, Part, Request};

pub(super) fn body(model: &Inner, request: &Request, schema: Option<Value>) -> Value {
    let mut input: Vec<Value> = Vec::new();
    for group in grouped(&request.messages) {
        match &group[0] {
            Message::User { parts } => input.push(user(model, parts)),
            Message::Assistant { text, calls, opaque } => {
                if let Some(said) = Said::new(model, text, calls, opaque.as_ref()) {
                    assistant(model, &said, &mut input);
                }
            }
            Message::Tool { .. } => results(model, group, &mut input),
        }
    }
    let thinks = model.info.thinks;
    let effort = Effort::of(model, request).map(|effort| effort.word(&model.info.name));
    let mut reasoning = serde_json::Map::new();
    if thinks && model.shows_summaries() {
        reasoning.insert("summary".into(), json!("auto"));
    }
    if let Some(effort) = effort {
        reasoning.insert("effort".into(), json!(effort));
    }
    let format = schema.map(
        |schema| json!({ "format": { "type": "json_schema", "name": "answer", "schema": schema, "strict": false } }),
    );
    json!({
        "model": model.info.name,
        "instructions": system(request),
        "input": input,
        "stream": true,
        "store": false,
        "include": thinks.then(|| json!(["reasoning.encrypted_content"])),
        "reasoning": (!reasoning.is_empty()).then_some(reasoning),
        "tools": tools(request, |tool| json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": false,
        })),
        "max_output_tokens": request.max_tokens,
        "prompt_cache_key": cache_key(request),
        "text": format,
        "temperature": model.temperature,
    })
}

fn user(model: &Inner, parts: &[Part]) -> Value {
    let mut content: Vec<Value> = seen(model, parts)
        .iter()
        .map(|part| match part {
            Seen::Text(text) => json!({ "type": "input_text", "text": text }),
            Seen::LeftOut(text) => json!({ "type": "input_text", "text": text }),
            Seen::Image { mime, data } => {
                json!({ "type": "input_image", "image_url": format!("data:{mime};base64,{data}") })
            }
            // There is no word for it here.
            Seen::Audio { mime, .. } => json!({ "type": "input_text", "text": super::left_out(mime) }),
        })
        .collect();
    if content.is_empty() {
        content.push(json!({ "type": "input_text", "text": EMPTY }));
    }
    json!({ "type": "message", "role": "user", "content": content })
}

/// What the model said, in the order in which it said it as far as that is known: a thought belongs to what follows it.
fn assistant(model: &Inner, said: &Said<'_>, input: &mut Vec<Value>) {
    let begin = input.len();
    let mut text = said.text;
    let mut calls: Vec<&Call> = said.calls.iter().collect();
    for item in said.list("items") {
        if let Some(thought) = item.get("reasoning") {
            input.push(thought.clone());
        } else if item.get("text").is_some() {
            input.extend(text.take().map(message));
        } else if let Some(id) = item.get("call").and_then(Value::as_str) {
            let place = calls.iter().position(|call| call.id == id);
            input.extend(place.map(|place| function_call(model, calls.remove(place))));
        }
    }
    input.extend(text.map(message));
    input.extend(calls.into_iter().map(|call| function_call(model, call)));
    // A thought that nothing follows is refused.
    while input.len() > begin && input.last().is_some_and(|item| item["type"] == "reasoning") {
        input.pop();
    }
}

fn message(text: &str) -> Value {
    json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

fn function_call(model: &Inner, call: &Call) -> Value {
    let arguments = arguments(&call.arguments).to_string();
    json!({ "type": "function_call", "call_id": call_id(model, &call.id), "name": call.name, "arguments": arguments })
}

fn results(model: &Inner, group: &[Message], input: &mut Vec<Value>) {
    let mut beside = Vec::new();
    for result in group {
        let Message::Tool { id, name, parts, is_error } = result else { continue };
        let output = result_text(model, name, parts, *is_error, &mut beside);
        input.push(json!({ "type": "function_call_output", "call_id": call_id(model, id), "output": output }));
    }
    if !beside.is_empty() {
        input.push(user(model, &beside));
    }
}
