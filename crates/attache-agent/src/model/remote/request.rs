//! Puts what we ask into `genai`'s words, with what each API wants differently.

use std::hash::{DefaultHasher, Hash, Hasher};

use genai::chat::{
    Binary, CacheControl, ChatMessage, ChatOptions, ChatRequest, ContentPart, CustomPart, MessageContent,
    MessageOptions, ReasoningEffort, Tool, ToolCall, ToolResponse,
};
use serde_json::{Map, Value, json};

use super::Inner;
use crate::model::catalog::Api;
use crate::model::{Call, Message, Part, Request, Thought};

/// A request for `genai`.
pub(super) fn chat(model: &Inner, request: Request) -> ChatRequest {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(ChatMessage::system(request.system));
    }
    let mut rest = request.messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        match message {
            Message::User { parts } => messages.push(ChatMessage::user(contents(model, parts))),
            Message::Assistant { text, calls, opaque } => messages.extend(assistant(model, text, calls, opaque)),
            Message::Tool { .. } => {
                // All results of one answer go back together.
                let mut results = vec![message];
                while let Some(next) = rest.next_if(|next| matches!(next, Message::Tool { .. })) {
                    results.push(next);
                }
                tool_results(model, results, &mut messages);
            }
        }
    }
    if model.api == Api::Anthropic {
        mark_cached(&mut messages);
    }
    let mut chat = ChatRequest::from_messages(messages);
    if !request.tools.is_empty() {
        let tools = request.tools.into_iter();
        chat = chat.with_tools(
            tools.map(|tool| Tool::new(tool.name).with_description(tool.description).with_schema(tool.schema)),
        );
    }
    chat
}

/// The settings that go with a request.
pub(super) fn options(model: &Inner, request: &Request, schema: Option<Value>) -> ChatOptions {
    let mut options = ChatOptions {
        max_tokens: request.max_tokens,
        temperature: request.temperature.map(f64::from),
        stream_header_timeout: Some(model.header_timeout),
        stream_read_timeout: Some(model.read_timeout),
        // Gemini and Anthropic only send thoughts to those who want to keep them.
        capture_reasoning_content: Some(model.api != Api::OpenAi),
        reasoning_effort: effort(model, request),
        ..ChatOptions::default()
    };
    let mut extra = Map::new();
    match model.api {
        Api::OpenAi => {
            extra.insert("model".into(), json!(model.info.name));
            extra.insert("stream_options".into(), json!({ "include_usage": true }));
            if model.info.provider == "openai" {
                options.prompt_cache_key = Some(cache_key(request));
            }
            if let Some(schema) = schema {
                let schema = json!({ "name": "answer", "schema": schema });
                extra.insert("response_format".into(), json!({ "type": "json_schema", "json_schema": schema }));
            }
        }
        Api::Anthropic => {
            extra.insert("model".into(), json!(model.info.name));
        }
        Api::Gemini => {}
    }
    if !extra.is_empty() {
        options.extra_body = Some(Value::Object(extra));
    }
    options
}

/// How hard the model should think. `genai` takes `-high` and the like off the end of a model's name unless it is told
/// an effort; so for such a name it is told one that each API takes for none.
fn effort(model: &Inner, request: &Request) -> Option<ReasoningEffort> {
    let is_odd = ReasoningEffort::from_model_name(&model.info.name).0.is_some();
    let thought = if model.info.thinks { request.thought } else { Thought::Default };
    match (thought, model.api) {
        (Thought::Default, Api::OpenAi) => is_odd.then_some(ReasoningEffort::Budget(0)),
        (Thought::Default, _) => is_odd.then_some(ReasoningEffort::Zero),
        (Thought::Off, Api::Gemini) if model.info.name.contains("flash") => Some(ReasoningEffort::Budget(0)),
        // Gemini's larger models think at least a little.
        (Thought::Off, Api::Gemini) => Some(ReasoningEffort::Low),
        // Of OpenAI's models, only newer ones can do without.
        (Thought::Off, Api::OpenAi) if !model.info.name.starts_with("gpt-5.") => Some(ReasoningEffort::Low),
        (Thought::Off, _) => Some(ReasoningEffort::Zero),
        (Thought::Low, _) => Some(ReasoningEffort::Low),
        (Thought::Medium, api) => Some(fitting(api, request, ReasoningEffort::Medium)),
        (Thought::High, api) => Some(fitting(api, request, ReasoningEffort::High)),
    }
}

/// Anthropic counts thoughts as part of the answer, and refuses to think longer than that may be.
fn fitting(api: Api, request: &Request, wanted: ReasoningEffort) -> ReasoningEffort {
    match (api, request.max_tokens) {
        (Api::Anthropic, Some(limit)) if limit <= 9_000 => ReasoningEffort::Low,
        (Api::Anthropic, Some(limit)) if limit <= 25_000 => ReasoningEffort::Medium,
        _ => wanted,
    }
}

/// What requests of one conversation have in common, so that they come to the same cache.
fn cache_key(request: &Request) -> String {
    let mut hasher = DefaultHasher::new();
    request.system.hash(&mut hasher);
    if let Some(Message::User { parts }) = request.messages.first() {
        for part in parts {
            match part {
                Part::Text { text } => text.hash(&mut hasher),
                Part::Media { data, .. } => data.hash(&mut hasher),
            }
        }
    }
    format!("attache-{:016x}", hasher.finish())
}

/// Marks what to cache: the system prompt, which tools come before, and the end of the last two messages, so that the
/// next request finds what this one wrote.
fn mark_cached(messages: &mut [ChatMessage]) {
    let count = messages.len();
    for (at, message) in messages.iter_mut().enumerate() {
        let is_system = at == 0 && message.role == genai::chat::ChatRole::System;
        if is_system || at + 2 >= count {
            message.options = Some(MessageOptions { cache_control: Some(CacheControl::Ephemeral) });
        }
    }
}

/// The parts of a user's message. What the model cannot take in is mentioned.
fn contents(model: &Inner, parts: Vec<Part>) -> MessageContent {
    let mut contents: Vec<ContentPart> = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => contents.push(ContentPart::Text(text)),
            Part::Media { mime, data } => contents.push(match media(model, &mime, &data) {
                Some(part) => part,
                None => ContentPart::Text(left_out(&mime)),
            }),
        }
    }
    if contents.is_empty() {
        // Some APIs refuse messages without content.
        contents.push(ContentPart::Text("(empty)".to_owned()));
    }
    MessageContent::from_parts(contents)
}

fn left_out(mime: &str) -> String {
    format!("[{} left out: the model does not take it]", crate::model::tidy(mime, 40))
}

fn media(model: &Inner, mime: &str, data: &str) -> Option<ContentPart> {
    let mime = match mime {
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        other => other,
    };
    let taken = (mime.starts_with("image/") && model.info.images) || (mime.starts_with("audio/") && model.info.audio);
    taken.then(|| ContentPart::Binary(Binary::from_base64(mime, data, None)))
}

/// What the model said. `None` if that was nothing.
fn assistant(model: &Inner, text: String, calls: Vec<Call>, opaque: Option<Value>) -> Option<ChatMessage> {
    let kept = opaque
        .filter(|opaque| opaque.get("model").and_then(Value::as_str) == Some(&model.info.id()))
        .and_then(|mut opaque| opaque.get_mut("kept").map(Value::take))
        .unwrap_or_default();
    let mut parts = Vec::new();
    let custom = |data: &Value| ContentPart::Custom(CustomPart { model_iden: None, data: data.clone() });
    let list = |key: &str| kept.get(key).and_then(Value::as_array).into_iter().flatten();
    let is_said = !text.trim().is_empty();
    if !is_said && calls.is_empty() {
        return None;
    }
    match model.api {
        Api::OpenAi => {
            parts.extend(list("reasoning_details").map(custom));
            if let Some(thoughts) = kept.get("reasoning_content").and_then(Value::as_str) {
                parts.push(ContentPart::ReasoningContent(thoughts.to_owned()));
            }
        }
        Api::Anthropic => parts.extend(list("thinking").map(custom)),
        Api::Gemini => {
            if let Some(signature) = kept.get("text").and_then(Value::as_str).filter(|_| is_said) {
                parts.push(ContentPart::ThoughtSignature(signature.to_owned()));
            }
        }
    }
    if is_said {
        parts.push(ContentPart::Text(text));
    }
    for call in calls {
        let signature = kept.pointer("/calls").and_then(|calls| calls.get(&call.id)).and_then(Value::as_str);
        parts.push(ContentPart::ToolCall(ToolCall {
            thought_signatures: signature.map(|signature| vec![signature.to_owned()]),
            fn_arguments: arguments(&call.arguments),
            call_id: call.id,
            fn_name: call.name,
        }));
    }
    Some(ChatMessage::assistant(MessageContent::from_parts(parts)))
}

/// Arguments as the object that all APIs want. What was none when the model wrote it is put into one.
fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => json!({ "malformed": text }),
    }
}

/// What came of the calls of one answer.
fn tool_results(model: &Inner, results: Vec<Message>, messages: &mut Vec<ChatMessage>) {
    let mut parts = Vec::new();
    // Images cannot be in the results themselves everywhere; then they follow as if the person had sent them.
    let mut beside = Vec::new();
    for result in results {
        let Message::Tool { id, name, parts: content, is_error } = result else { continue };
        if model.api == Api::Anthropic {
            parts.push(anthropic_result(model, &id, content, is_error));
            continue;
        }
        let mut text = String::new();
        for part in content {
            let line = match part {
                Part::Text { text } => text,
                Part::Media { mime, data } => match media(model, &mime, &data) {
                    Some(part) => {
                        beside.push(ContentPart::Text(format!("What `{name}` brought:")));
                        beside.push(part);
                        format!("[{mime}, shown below]")
                    }
                    None => left_out(&mime),
                },
            };
            if !text.is_empty() && !line.is_empty() {
                text.push('\n');
            }
            text.push_str(&line);
        }
        if is_error && !text.to_ascii_lowercase().starts_with("error") {
            text.insert_str(0, "error: ");
        }
        parts.push(ContentPart::ToolResponse(ToolResponse::new(id, text).with_fn_name(name)));
    }
    messages.push(ChatMessage::tool(MessageContent::from_parts(parts)));
    if !beside.is_empty() {
        messages.push(ChatMessage::user(MessageContent::from_parts(beside)));
    }
}

/// A result with images in it and a mark if it failed, which `genai` has no words for.
fn anthropic_result(model: &Inner, id: &str, parts: Vec<Part>, is_error: bool) -> ContentPart {
    let content: Vec<Value> = parts
        .into_iter()
        .filter_map(|part| match part {
            Part::Text { text } => (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text })),
            Part::Media { mime, data } if mime.starts_with("image/") && model.info.images => {
                let source = json!({ "type": "base64", "media_type": mime, "data": data });
                Some(json!({ "type": "image", "source": source }))
            }
            Part::Media { mime, .. } => Some(json!({ "type": "text", "text": left_out(&mime) })),
        })
        .collect();
    let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    if is_error {
        result["is_error"] = json!(true);
    }
    ContentPart::Custom(CustomPart { model_iden: None, data: result })
}
