//! Gemini's `streamGenerateContent`.

use serde_json::{Value, json};

use super::{EMPTY, Effort, Said, Seen, arguments, extend, grouped, result_text, seen, system, tools};
use crate::model::remote::Inner;
use crate::model::remote::gemini::OWN_ID;
use crate::model::{Message, Part, Request};

pub(super) fn body(model: &Inner, request: &Request) -> Value {
    let mut contents: Vec<Value> = Vec::new();
    for group in grouped(&request.messages) {
        match &group[0] {
            Message::User { parts } => contents.push(json!({ "role": "user", "parts": content(model, parts) })),
            Message::Assistant { text, calls, opaque } => {
                contents.extend(Said::new(model, text, calls, opaque.as_ref()).map(|said| assistant(&said)));
            }
            Message::Tool { .. } => results(model, group, &mut contents),
        }
    }
    let mut config = json!({});
    if model.info.thinks {
        extend(&mut config, [("thinkingConfig", thinking(&model.info.name, Effort::of(model, request)))]);
    }
    if let Some(limit) = request.max_tokens {
        extend(&mut config, [("maxOutputTokens", json!(limit))]);
    }
    if let Some(temperature) = model.temperature {
        extend(&mut config, [("temperature", json!(temperature))]);
    }
    let functions = tools(request, |tool| {
        // The other field for it knows a part of JSON Schema only.
        json!({ "name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema })
    });
    json!({
        "systemInstruction": system(request).map(|text| json!({ "parts": [{ "text": text }] })),
        "contents": contents,
        "tools": (!functions.is_null()).then(|| json!([{ "functionDeclarations": functions }])),
        "generationConfig": config.as_object().is_some_and(|config| !config.is_empty()).then_some(config),
    })
}

/// Thoughts are shown in any case; how long they are is a word for newer models, a number for older ones.
fn thinking(name: &str, effort: Option<Effort>) -> Value {
    let mut config = json!({ "includeThoughts": true });
    let Some(effort) = effort else { return config };
    if ["gemini-3", "gemini-4"].iter().any(|newer| name.contains(newer)) {
        // They think at least a little.
        let level = match effort {
            Effort::Off | Effort::Low => "LOW",
            Effort::Medium => "MEDIUM",
            Effort::High => "HIGH",
        };
        extend(&mut config, [("thinkingLevel", json!(level))]);
    } else {
        // So do the larger ones of the older.
        let least = if name.contains("flash") { effort } else { effort.at_least_low() };
        extend(&mut config, [("thinkingBudget", json!(least.tokens()))]);
    }
    config
}

impl Effort {
    fn at_least_low(self) -> Effort {
        if self == Effort::Off { Effort::Low } else { self }
    }
}

fn content(model: &Inner, parts: &[Part]) -> Vec<Value> {
    let mut content: Vec<Value> = seen(model, parts)
        .iter()
        .map(|part| match part {
            Seen::Text(text) => json!({ "text": text }),
            Seen::LeftOut(text) => json!({ "text": text }),
            Seen::Image { mime, data } | Seen::Audio { mime, data } => {
                json!({ "inlineData": { "mimeType": mime, "data": data } })
            }
        })
        .collect();
    if content.is_empty() {
        content.push(json!({ "text": EMPTY }));
    }
    content
}

fn assistant(said: &Said<'_>) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    let sign = |mut part: Value, signature: Option<&Value>| {
        extend(&mut part, signature.map(|signature| ("thoughtSignature", signature.clone())));
        part
    };
    if let Some(text) = said.text {
        parts.push(sign(json!({ "text": text }), said.kept.get("text")));
    }
    for call in said.calls {
        let mut function = json!({ "name": call.name, "args": arguments(&call.arguments) });
        extend(&mut function, own_id(&call.id));
        let signature = said.kept.get("calls").and_then(|calls| calls.get(&call.id));
        parts.push(sign(json!({ "functionCall": function }), signature));
    }
    json!({ "role": "model", "parts": parts })
}

/// The id of a call, if the provider gave it one.
fn own_id(id: &str) -> Option<(&'static str, Value)> {
    (!id.starts_with(OWN_ID)).then(|| ("id", json!(id)))
}

fn results(model: &Inner, group: &[Message], contents: &mut Vec<Value>) {
    let (mut parts, mut beside) = (Vec::new(), Vec::new());
    for result in group {
        let Message::Tool { id, name, parts: content, is_error } = result else { continue };
        let text = result_text(model, name, content, *is_error, &mut beside);
        let mut response = json!({ "name": name, "response": { "content": text } });
        extend(&mut response, own_id(id));
        parts.push(json!({ "functionResponse": response }));
    }
    contents.push(json!({ "role": "user", "parts": parts }));
    if !beside.is_empty() {
        contents.push(json!({ "role": "user", "parts": content(model, &beside) }));
    }
}
