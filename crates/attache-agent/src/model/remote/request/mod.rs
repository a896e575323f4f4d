//! What is asked, in the words of each API.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::Inner;
use crate::model::catalog::Api;
use crate::model::{Call, Message, Part, Request, Thought};

/// The body of a request. A schema is for answers that have to keep to it.
pub(super) fn body(model: &Inner, request: &Request, schema: Option<Value>) -> Value {
    let mut body = match model.api() {
        Api::OpenAi => chat::body(model, request, schema),
        Api::Responses => responses::body(model, request, schema),
        // These are asked for a form in words alone.
        Api::Anthropic => anthropic::body(model, request),
        Api::Gemini => gemini::body(model, request),
        Api::Ollama => ollama::body(model, request, schema),
    };
    if let Value::Object(members) = &mut body {
        members.retain(|_, value| !value.is_null());
    }
    body
}

/// What a model should think, in three steps that all APIs have a word for; `None` leaves it to its maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Off,
    Low,
    Medium,
    High,
}

impl Effort {
    fn of(model: &Inner, request: &Request) -> Option<Effort> {
        let thought = if model.info.thinks { request.thought } else { Thought::Default };
        match thought {
            Thought::Default => None,
            Thought::Off => Some(Effort::Off),
            Thought::Low => Some(Effort::Low),
            Thought::Medium => Some(Effort::Medium),
            Thought::High => Some(Effort::High),
        }
    }

    /// OpenAI's word for it. Of its models, only newer ones can do without.
    fn word(self, name: &str) -> &'static str {
        match self {
            Effort::Off if name.starts_with("gpt-5.") => "none",
            Effort::Off | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }

    /// How many tokens that is for models which want a number.
    fn tokens(self) -> u32 {
        match self {
            Effort::Off => 0,
            Effort::Low => 1_024,
            Effort::Medium => 8_000,
            Effort::High => 24_000,
        }
    }
}

/// What the model said, with what its provider wants back. `None` if that was nothing.
struct Said<'a> {
    text: Option<&'a str>,
    calls: &'a [Call],
    /// What the same model gave us to keep; null if it was another.
    kept: &'a Value,
}

impl<'a> Said<'a> {
    fn new(model: &Inner, text: &'a str, calls: &'a [Call], opaque: Option<&'a Value>) -> Option<Self> {
        const NOTHING: &Value = &Value::Null;
        let text = Some(text).filter(|text| !text.trim().is_empty());
        if text.is_none() && calls.is_empty() {
            return None;
        }
        // What a model wants back means nothing to another one.
        let is_ours = |opaque: &&Value| opaque.get("model").and_then(Value::as_str) == Some(&model.info.id());
        let kept = opaque.filter(is_ours).and_then(|opaque| opaque.get("kept")).unwrap_or(NOTHING);
        Some(Said { text, calls, kept })
    }

    /// A list among what was kept.
    fn list(&self, key: &str) -> impl Iterator<Item = &'a Value> {
        self.kept.get(key).and_then(Value::as_array).into_iter().flatten()
    }
}

/// Arguments as the object that all APIs want. What was none when the model wrote it is put into one.
fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => json!({ "malformed": text }),
    }
}

/// The id of a call as the server takes it: a session that changes its model brings along ids of another's form.
fn call_id<'a>(model: &Inner, id: &'a str) -> Cow<'a, str> {
    // OpenAI's limit is the lowest; Mistral's form is the strictest.
    let is_mistral = model.info.provider == "mistral";
    let is_plain = id.bytes().all(|c| c.is_ascii_alphanumeric() || (matches!(c, b'_' | b'-') && !is_mistral));
    let is_short = if is_mistral { id.len() == 9 } else { (1..=40).contains(&id.len()) };
    if is_plain && is_short {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    Cow::Owned(super::spare_id(hasher.finish()))
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

/// A part of a message as the model can take it in.
enum Seen<'a> {
    Text(&'a str),
    Image {
        mime: &'a str,
        data: &'a str,
    },
    Audio {
        mime: &'a str,
        data: &'a str,
    },
    /// It cannot take it in, and is told so.
    LeftOut(String),
}

/// The parts of a message that have something in them.
fn seen<'a>(model: &Inner, parts: &'a [Part]) -> Vec<Seen<'a>> {
    let seen = |part: &'a Part| match part {
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(Seen::Text(text)),
        Part::Media { mime, data } if mime.starts_with("image/") && model.info.images => {
            Some(Seen::Image { mime, data })
        }
        Part::Media { mime, data } if mime.starts_with("audio/") && model.info.audio => {
            let mime = match mime.as_str() {
                "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
                other => other,
            };
            Some(Seen::Audio { mime, data })
        }
        Part::Media { mime, .. } => Some(Seen::LeftOut(left_out(mime))),
    };
    parts.iter().filter_map(seen).collect()
}

fn left_out(mime: &str) -> String {
    format!("[{} left out: the model does not take it]", crate::model::tidy(mime, 40))
}

/// What stands for a message without content, which some APIs refuse.
const EMPTY: &str = "(empty)";

/// The result of a tool for an API whose results are text. Images follow as if the person had sent them.
fn result_text(model: &Inner, name: &str, parts: &[Part], is_error: bool, beside: &mut Vec<Part>) -> String {
    let mut text = String::new();
    for (part, seen) in parts.iter().filter(|part| !is_empty(part)).zip(seen(model, parts)) {
        let line = match seen {
            Seen::Text(text) => text.to_owned(),
            Seen::LeftOut(text) => text,
            Seen::Image { mime, .. } | Seen::Audio { mime, .. } => {
                beside.push(Part::text(format!("What `{name}` brought:")));
                beside.push(part.clone());
                format!("[{mime}, shown below]")
            }
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
    if is_error && !text.to_ascii_lowercase().starts_with("error") {
        text.insert_str(0, "error: ");
    }
    text
}

fn is_empty(part: &Part) -> bool {
    matches!(part, Part::Text { text } if text.is_empty())
}

/// The messages, with all results of one answer together.
fn grouped(messages: &[Message]) -> Vec<&[Message]> {
    let is_result = |message: &Message| matches!(message, Message::Tool { .. });
    messages.chunk_by(|one, next| is_result(one) && is_result(next)).collect()
}

/// The system prompt, if there is one.
fn system(request: &Request) -> Option<&str> {
    Some(request.system.as_str()).filter(|text| !text.trim().is_empty())
}

/// The tools, each made by a function; null if there are none.
fn tools(request: &Request, tool: impl Fn(&crate::model::ToolSpec) -> Value) -> Value {
    if request.tools.is_empty() { Value::Null } else { request.tools.iter().map(tool).collect() }
}

/// Adds members to an object.
fn extend(object: &mut Value, members: impl IntoIterator<Item = (&'static str, Value)>) {
    let members: Map<String, Value> = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if let Value::Object(object) = object {
        object.extend(members);
    }
}
