//! Reads streams of Gemini's `streamGenerateContent`.

use serde_json::{Map, Value, json};

use super::out::{Out, TooManyCalls};
use super::reader::{Ending, count, text};
use crate::model::{End, EndReason, Usage};

/// What ids begin with that we gave to calls which came without one. They are not sent back.
pub(super) const OWN_ID: &str = "call#";

#[derive(Debug, Default)]
pub(super) struct Reader {
    finish: Option<String>,
    /// The question itself was refused.
    blocked: bool,
    pub(super) usage: Usage,
    calls: u64,
    /// The signature of the text, and those of the calls by their ids.
    text_signature: Option<String>,
    call_signatures: Map<String, Value>,
}

impl Reader {
    pub(super) fn handle(&mut self, event: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        if let Some(usage) = event.get("usageMetadata") {
            self.count(usage);
        }
        if event.pointer("/promptFeedback/blockReason").is_some_and(Value::is_string) {
            self.blocked = true;
        }
        let parts = event.pointer("/candidates/0/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, out)?;
        }
        if let Some(finish) = event.pointer("/candidates/0/finishReason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        let signature = text(part, "/thoughtSignature");
        out.note(signature.len());
        if let Some(call) = part.get("functionCall") {
            let (name, number) = (text(call, "/name"), self.calls);
            self.calls += 1;
            let id = out.start(number, text(call, "/id"), name, |random| format!("{OWN_ID}{name}#{random}"))?;
            if let Some(arguments) = call.get("args").filter(|arguments| !arguments.is_null()) {
                out.grow(number, &arguments.to_string());
            }
            out.finish(number);
            if !signature.is_empty() {
                self.call_signatures.insert(id, json!(signature));
            }
            return Ok(());
        }
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            out.thought(text(part, "/text"));
            return Ok(());
        }
        out.text(text(part, "/text"));
        if !signature.is_empty() {
            self.text_signature = Some(signature.to_owned());
        }
        Ok(())
    }

    fn count(&mut self, usage: &Value) {
        let of = |key: &str| count(usage, key);
        let input = of("/promptTokenCount").unwrap_or(0).saturating_add(of("/toolUsePromptTokenCount").unwrap_or(0));
        let output = of("/candidatesTokenCount").unwrap_or(0).saturating_add(of("/thoughtsTokenCount").unwrap_or(0));
        self.usage = Usage { input, cached: of("/cachedContentTokenCount").unwrap_or(0), output, ..Usage::default() };
    }

    pub(super) fn end(&mut self, out: &Out) -> Option<Ending> {
        let reason = match self.finish.as_deref() {
            None if self.blocked => EndReason::Refusal,
            None => return None,
            Some("MAX_TOKENS") => EndReason::MaxTokens,
            Some(
                "SAFETY"
                | "RECITATION"
                | "LANGUAGE"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION",
            ) => EndReason::Refusal,
            // It tried to call a tool and failed, or stopped before it began. Asking again helps.
            Some("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS") => return None,
            // Nothing more to say, often after calls. Whether that is an answer, the turn knows.
            Some("STOP") => EndReason::Done,
            Some(_) if !out.spoke => return None,
            Some(_) => EndReason::Done,
        };
        let mut keep = Map::new();
        if let Some(signature) = self.text_signature.take() {
            keep.insert("text".into(), json!(signature));
        }
        if !self.call_signatures.is_empty() {
            keep.insert("calls".into(), Value::Object(std::mem::take(&mut self.call_signatures)));
        }
        let keep = (!keep.is_empty()).then_some(Value::Object(keep));
        Some(Ending { end: End { reason, usage: self.usage, opaque: None }, keep })
    }
}
