//! Reads streams of OpenAI's Responses API.

use serde_json::{Value, json};

use super::out::{Out, TooManyCalls, spare_id};
use super::reader::{Ending, count, text};
use crate::model::{End, EndReason, Usage};

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The response has ended, one way or another.
    pub(super) done: bool,
    /// Why it is not complete.
    incomplete: Option<String>,
    refused: bool,
    pub(super) usage: Usage,
    /// The calls whose arguments came, by the place of their item.
    grown: Vec<u64>,
    /// The ids of the calls, by the place of their item.
    calls: Vec<(u64, String)>,
    /// What was put out, in order: encrypted thoughts as they are, and the places of texts and calls between them.
    items: Vec<(u64, Value)>,
}

impl Reader {
    pub(super) fn handle(&mut self, event: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        let place = count(event, "/output_index").unwrap_or(0);
        match text(event, "/type") {
            "response.output_text.delta" => out.text(text(event, "/delta")),
            "response.refusal.delta" => {
                self.refused = true;
                out.text(text(event, "/delta"));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.thought(text(event, "/delta"));
            }
            // Parts of a summary are paragraphs.
            "response.reasoning_summary_part.added" if count(event, "/summary_index").unwrap_or(0) > 0 => {
                out.thought("\n\n");
            }
            "response.output_item.added" => self.start(place, &event["item"], out)?,
            "response.function_call_arguments.delta" => self.grow(place, text(event, "/delta"), out),
            "response.output_item.done" => self.finish(place, &event["item"], out)?,
            "response.completed" | "response.incomplete" => {
                self.count(&event["response"]["usage"]);
                let reason = text(event, "/response/incomplete_details/reason");
                if !reason.is_empty() {
                    self.incomplete = Some(reason.to_owned());
                }
                self.done = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, place: u64, item: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        if text(item, "/type") == "function_call" && !self.calls.iter().any(|(known, _)| *known == place) {
            let id = out.start(place, text(item, "/call_id"), text(item, "/name"), spare_id)?;
            self.calls.push((place, id));
        }
        Ok(())
    }

    fn grow(&mut self, place: u64, more: &str, out: &mut Out) {
        if !more.is_empty() {
            if !self.grown.contains(&place) {
                self.grown.push(place);
            }
            out.grow(place, more);
        }
    }

    /// An item is whole. Its order counts: a thought belongs to what comes after it.
    fn finish(&mut self, place: u64, item: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        let kept = match text(item, "/type") {
            "function_call" => {
                self.start(place, item, out)?;
                if !self.grown.contains(&place) {
                    self.grow(place, text(item, "/arguments"), out);
                }
                out.finish(place);
                self.calls.iter().find(|(known, _)| *known == place).map(|(_, id)| json!({ "call": id }))
            }
            "message" => Some(json!({ "text": true })),
            // Without its encrypted content a thought cannot be sent back: the server keeps nothing.
            "reasoning" if !text(item, "/encrypted_content").is_empty() => {
                let encrypted = text(item, "/encrypted_content");
                out.note(encrypted.len());
                let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
                Some(json!({ "reasoning": {
                    "type": "reasoning", "summary": summary, "encrypted_content": encrypted,
                } }))
            }
            _ => None,
        };
        self.items.extend(kept.map(|kept| (place, kept)));
        Ok(())
    }

    fn count(&mut self, usage: &Value) {
        self.usage = Usage {
            input: count(usage, "/input_tokens").unwrap_or(0),
            cached: count(usage, "/input_tokens_details/cached_tokens").unwrap_or(0),
            output: count(usage, "/output_tokens").unwrap_or(0),
            ..Usage::default()
        };
    }

    pub(super) fn end(&mut self) -> Option<Ending> {
        if !self.done {
            return None;
        }
        let reason = match self.incomplete.as_deref() {
            Some("content_filter") => EndReason::Refusal,
            Some(_) => EndReason::MaxTokens,
            None if self.refused => EndReason::Refusal,
            None => EndReason::Done,
        };
        self.items.sort_by_key(|(place, _)| *place);
        let items: Vec<Value> = std::mem::take(&mut self.items).into_iter().map(|(_, item)| item).collect();
        let has_thoughts = items.iter().any(|item| item.get("reasoning").is_some());
        let keep = has_thoughts.then(|| json!({ "items": items }));
        Some(Ending { end: End { reason, usage: self.usage, opaque: None }, keep })
    }
}
