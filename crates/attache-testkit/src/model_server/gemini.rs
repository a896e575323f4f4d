//! Google's Gemini API, as the server of a scripted model speaks it.

use serde_json::{Value, json};

use super::answer::{Answer, Stop};
use super::request::{ModelRequest, Turn, push_text};
use super::tool::Tool;

/// What an answer is in this API, event by event.
pub(super) fn events(answer: &Answer, request: &ModelRequest) -> Vec<String> {
    let mut parts: Vec<Vec<Value>> = Vec::new();
    parts.extend(answer.pieces(&answer.thought).into_iter().map(|piece| vec![json!({"text": piece, "thought": true})]));
    parts.extend(answer.pieces(&answer.text).into_iter().map(|piece| vec![json!({"text": piece})]));
    // Calls come whole, and all at once.
    let calls = calls(answer);
    if !calls.is_empty() {
        parts.push(calls);
    } else if let Some(signature) = &answer.signature {
        parts.push(vec![json!({"text": "", "thoughtSignature": signature})]);
    } else if parts.is_empty() {
        parts.push(vec![json!({"text": ""})]);
    }
    let last = parts.len() - 1;
    let event = |(index, parts)| {
        let mut chunk = chunk(answer, request, parts);
        if index == last {
            finish(&mut chunk, answer);
        }
        // This provider ends lines in its own way.
        format!("data: {chunk}\r\n\r\n")
    };
    parts.into_iter().enumerate().map(event).collect()
}

/// What an answer is in this API, in one piece.
pub(super) fn whole(answer: &Answer, request: &ModelRequest) -> Value {
    let mut parts = Vec::new();
    if !answer.thought.is_empty() {
        parts.push(json!({"text": answer.thought, "thought": true}));
    }
    if !answer.text.is_empty() {
        parts.push(json!({"text": answer.text}));
    }
    let calls = calls(answer);
    if let (true, Some(signature)) = (calls.is_empty(), &answer.signature) {
        parts.push(json!({"text": "", "thoughtSignature": signature}));
    }
    parts.extend(calls);
    let mut whole = chunk(answer, request, parts);
    finish(&mut whole, answer);
    whole
}

/// An error's body.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}

/// The event of an error in the middle of a stream.
pub(super) fn error_event(message: &str) -> String {
    format!("data: {}\r\n\r\n", error(503, message))
}

/// The system prompt of a request.
pub(super) fn system(body: &Value) -> String {
    let parts = body["systemInstruction"]["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The conversation of a request.
pub(super) fn turns(body: &Value) -> Vec<Turn> {
    let mut turns = Vec::new();
    for content in body["contents"].as_array().into_iter().flatten() {
        let is_user = content["role"] != "model";
        let mut text = String::new();
        for part in content["parts"].as_array().into_iter().flatten() {
            let turn = if let Some(call) = part.get("functionCall") {
                let name = call["name"].as_str().unwrap_or_default().to_owned();
                Turn::Call { id: id_of(call), name, arguments: call["args"].to_string() }
            } else if let Some(response) = part.get("functionResponse") {
                Turn::Result { id: id_of(response), text: response_text(&response["response"]) }
            } else {
                if let (Some(more), true) = (part["text"].as_str(), part["thought"] != true) {
                    text.push_str(if text.is_empty() { "" } else { "\n" });
                    text.push_str(more);
                }
                continue;
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
    let functions = tools.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
    functions.filter_map(|function| Tool::of(function, &["parametersJsonSchema", "parameters"])).collect()
}

/// The list of models.
pub(super) fn models(names: &[String]) -> Value {
    let model = |name: &String| {
        json!({
            "name": format!("models/{name}"),
            "displayName": name,
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent"],
        })
    };
    json!({"models": names.iter().map(model).collect::<Vec<_>>()})
}

/// The parts of the calls. Those whose arguments are no JSON cannot be said in this API and are left out.
fn calls(answer: &Answer) -> Vec<Value> {
    let mut parts = Vec::new();
    for call in &answer.calls {
        let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { continue };
        let mut function = json!({"name": call.name, "args": arguments});
        if let Some(id) = &call.id {
            function["id"] = id.clone().into();
        }
        let mut part = json!({"functionCall": function});
        // Of parallel calls, only the first is signed.
        if let (true, Some(signature)) = (parts.is_empty(), &answer.signature) {
            part["thoughtSignature"] = signature.clone().into();
        }
        parts.push(part);
    }
    parts
}

fn chunk(answer: &Answer, request: &ModelRequest, parts: Vec<Value>) -> Value {
    let usage = answer.usage;
    let thoughts = answer.thought_tokens();
    let mut counts = json!({
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - thoughts,
        "totalTokenCount": usage.input.saturating_add(usage.output),
    });
    // Zeros are left out in this API.
    if usage.cached > 0 {
        counts["cachedContentTokenCount"] = usage.cached.into();
    }
    if thoughts > 0 {
        counts["thoughtsTokenCount"] = thoughts.into();
    }
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "usageMetadata": counts,
        "modelVersion": request.model(),
        "responseId": format!("response_{}", request.number),
    })
}

fn finish(chunk: &mut Value, answer: &Answer) {
    let is_malformed = answer.calls.iter().any(|call| serde_json::from_str::<Value>(&call.arguments).is_err());
    let reason = match answer.stop {
        Stop::Length => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::Done if is_malformed => "MALFORMED_FUNCTION_CALL",
        Stop::Done => "STOP",
    };
    chunk["candidates"][0]["finishReason"] = reason.into();
}

/// The id of a call or of its response. Where there is none, the two have the same name.
fn id_of(value: &Value) -> String {
    value["id"].as_str().or(value["name"].as_str()).unwrap_or_default().to_owned()
}

/// What a function brought. The API wants an object and does not say what in; these are the usual names.
fn response_text(response: &Value) -> String {
    let inner = ["content", "result", "output", "error"].iter().find_map(|name| response.get(name));
    match inner.unwrap_or(response) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
