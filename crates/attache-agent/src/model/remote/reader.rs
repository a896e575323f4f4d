//! Reads what a provider streams, event by event. One reader an API; each is fed events and asked for pieces.
//!
//! They keep what an agent has to know: which call an argument belongs to, whether an answer ended or was cut, why it
//! ended, and which signature belongs to what.

use serde_json::Value;

use super::failure::{Trouble, Who};
use super::out::{Out, TooManyCalls};
use super::sse::Framing;
use super::{anthropic, gemini, ollama, openai, responses};
use crate::model::catalog::Api;
use crate::model::{End, Failure, Piece, Usage};

/// A reader of one answer.
#[derive(Debug)]
pub(super) enum Reader {
    OpenAi(openai::Reader),
    Responses(responses::Reader),
    Anthropic(anthropic::Reader),
    Gemini(gemini::Reader),
    Ollama(ollama::Reader),
}

impl Reader {
    pub(super) fn new(api: Api) -> Self {
        match api {
            Api::OpenAi => Reader::OpenAi(openai::Reader::default()),
            Api::Responses => Reader::Responses(responses::Reader::default()),
            Api::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
            Api::Gemini => Reader::Gemini(gemini::Reader::default()),
            Api::Ollama => Reader::Ollama(ollama::Reader::default()),
        }
    }

    /// How its events are told apart.
    pub(super) fn framing(&self) -> Framing {
        match self {
            Reader::Ollama(_) => Framing::Lines,
            _ => Framing::Events,
        }
    }

    /// Takes in one event.
    pub(super) fn handle(&mut self, data: &str, out: &mut Out, who: &Who) -> Result<(), Trouble> {
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            if let Reader::OpenAi(reader) = self {
                reader.done = true;
            }
            return Ok(());
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            let message = format!("`{}` sent something that is not JSON", who.provider);
            return Err(Trouble::new(Failure::Server, message));
        };
        let inner = ["/error", "/response/error"].iter().find_map(|pointer| event.pointer(pointer));
        let error = inner.filter(|error| !error.is_null());
        if let Some(error) = error.or_else(|| (text(&event, "/type") == "error").then_some(&event)) {
            return Err(who.event(error));
        }
        let result = match self {
            Reader::OpenAi(reader) => reader.handle(&event, out),
            Reader::Responses(reader) => reader.handle(&event, out),
            Reader::Ollama(reader) => reader.handle(&event, out),
            Reader::Anthropic(reader) => reader.handle(event, out),
            Reader::Gemini(reader) => reader.handle(&event, out),
        };
        result.map_err(|TooManyCalls| {
            let message = format!("`{}` called more tools at once than anyone can", who.name);
            Trouble::new(Failure::Server, message)
        })
    }

    /// Whether the provider has said that there is nothing more to come.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Reader::OpenAi(reader) => reader.done,
            Reader::Responses(reader) => reader.done,
            Reader::Ollama(reader) => reader.done,
            Reader::Anthropic(reader) => reader.done,
            // What is counted comes with the reason or after it; the stream itself is the end.
            Reader::Gemini(_) => false,
        }
    }

    /// What the provider has counted so far.
    pub(super) fn usage(&self) -> Usage {
        match self {
            Reader::OpenAi(reader) => reader.usage,
            Reader::Responses(reader) => reader.usage,
            Reader::Ollama(reader) => reader.usage,
            Reader::Anthropic(reader) => reader.usage,
            Reader::Gemini(reader) => reader.usage,
        }
    }

    /// Ends the answer after its last event. Fails if that was not meant to be the last.
    pub(super) fn finish(&mut self, out: &mut Out, id: &str, who: &Who) -> Result<(), Trouble> {
        let end = match self {
            Reader::OpenAi(reader) => reader.end(out),
            Reader::Responses(reader) => reader.end(),
            Reader::Ollama(reader) => reader.end(),
            Reader::Anthropic(reader) => reader.end(),
            Reader::Gemini(reader) => reader.end(out),
        };
        match end {
            Some(Ending { end, keep }) => {
                out.finish_all();
                // What a model wants back means nothing to another one.
                let opaque = keep.map(|kept| serde_json::json!({ "model": id, "kept": kept }));
                out.push(Piece::End(End { opaque, ..end }));
                Ok(())
            }
            None => Err(who.broken(&format!("the answer of `{}` was cut off before its end", who.name))),
        }
    }
}

/// How an answer ended, and what its provider wants back.
pub(super) struct Ending {
    pub(super) end: End,
    pub(super) keep: Option<Value>,
}

/// A string in an event, empty if there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A count in an event. Some servers write counts as fractions.
pub(super) fn count(value: &Value, pointer: &str) -> Option<u64> {
    let number = value.pointer(pointer)?;
    number.as_u64().or_else(|| number.as_f64().map(|number| number as u64))
}
