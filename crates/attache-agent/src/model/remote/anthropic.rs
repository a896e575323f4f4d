//! Reads streams of Anthropic's messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::out::{Out, TooManyCalls, spare_id};
use super::reader::{Ending, count, text};
use crate::model::{End, EndReason, Usage};

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The message has stopped.
    pub(super) done: bool,
    stop: Option<String>,
    pub(super) usage: Usage,
    /// What was put out, by its index. It goes back in that order.
    blocks: BTreeMap<u64, Block>,
    /// What a call was started with. Only used if nothing follows.
    inputs: BTreeMap<u64, Value>,
}

/// A part of the answer. Texts and calls are kept elsewhere: of these only the place counts.
#[derive(Debug)]
enum Block {
    /// As it came.
    Thought(Value),
    /// How many bytes it has.
    Text(usize),
    /// Its id.
    Call(String),
}

impl Reader {
    pub(super) fn handle(&mut self, mut event: Value, out: &mut Out) -> Result<(), TooManyCalls> {
        let index = count(&event, "/index").unwrap_or(0);
        match text(&event, "/type") {
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" => self.start(index, event["content_block"].take(), out)?,
            "content_block_delta" => self.delta(index, &event["delta"], out),
            "content_block_stop" => self.stop(index, out),
            "message_delta" => {
                if let Some(reason) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(reason.to_owned());
                }
                self.count(&event["usage"]);
            }
            "message_stop" => self.done = true,
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, index: u64, block: Value, out: &mut Out) -> Result<(), TooManyCalls> {
        match text(&block, "/type") {
            "text" => self.text(index, text(&block, "/text"), out),
            "tool_use" => {
                let id = out.start(index, text(&block, "/id"), text(&block, "/name"), spare_id)?;
                self.blocks.insert(index, Block::Call(id));
                if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    self.inputs.insert(index, block["input"].clone());
                }
            }
            "thinking" => {
                out.thought(text(&block, "/thinking"));
                self.blocks.insert(index, Block::Thought(block));
            }
            "redacted_thinking" => {
                out.note(text(&block, "/data").len());
                self.blocks.insert(index, Block::Thought(block));
            }
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Out) {
        match text(delta, "/type") {
            "text_delta" => self.text(index, text(delta, "/text"), out),
            "input_json_delta" => {
                let more = text(delta, "/partial_json");
                if !more.is_empty() {
                    self.inputs.remove(&index);
                    out.grow(index, more);
                }
            }
            "thinking_delta" => {
                let more = text(delta, "/thinking");
                out.thought(more);
                self.append(index, "thinking", more);
            }
            "signature_delta" => {
                let more = text(delta, "/signature");
                out.note(more.len());
                self.append(index, "signature", more);
            }
            _ => {}
        }
    }

    fn text(&mut self, index: u64, more: &str, out: &mut Out) {
        out.text(more);
        if let Block::Text(length) = self.blocks.entry(index).or_insert(Block::Text(0)) {
            *length += more.len();
        }
    }

    fn append(&mut self, index: u64, key: &str, more: &str) {
        let Some(Block::Thought(Value::Object(block))) = self.blocks.get_mut(&index) else { return };
        match block.get_mut(key) {
            Some(Value::String(text)) => text.push_str(more),
            _ => {
                block.insert(key.to_owned(), json!(more));
            }
        }
    }

    fn stop(&mut self, index: u64, out: &mut Out) {
        if let Some(input) = self.inputs.remove(&index) {
            out.grow(index, &input.to_string());
        }
        if out.is_open(index) {
            out.finish(index);
        }
    }

    /// Later counts are of the whole message, and stand in for earlier ones.
    fn count(&mut self, usage: &Value) {
        if let Some(fresh) = count(usage, "/input_tokens") {
            let read = count(usage, "/cache_read_input_tokens").unwrap_or(0);
            let written = count(usage, "/cache_creation_input_tokens").unwrap_or(0);
            // The last event of some servers counts no input, though the first did.
            let input = fresh.saturating_add(read).saturating_add(written);
            if input > 0 {
                self.usage.input = input;
                self.usage.cached = read;
                self.usage.written = written;
            }
        }
        if let Some(output) = count(usage, "/output_tokens") {
            self.usage.output = output;
        }
    }

    pub(super) fn end(&mut self) -> Option<Ending> {
        if !self.done && self.stop.is_none() {
            return None;
        }
        let reason = match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => EndReason::MaxTokens,
            Some("refusal") => EndReason::Refusal,
            _ => EndReason::Done,
        };
        let blocks: Vec<Value> = std::mem::take(&mut self.blocks).into_values().filter_map(Block::kept).collect();
        let has_thoughts = blocks.iter().any(|block| block.get("thought").is_some());
        let keep = has_thoughts.then(|| json!({ "blocks": blocks }));
        Some(Ending { end: End { reason, usage: self.usage, opaque: None }, keep })
    }
}

impl Block {
    fn kept(self) -> Option<Value> {
        match self {
            // A thought without its signature would be refused when it comes back.
            Block::Thought(block) if text(&block, "/type") == "thinking" && text(&block, "/signature").is_empty() => {
                None
            }
            Block::Thought(block) => Some(json!({ "thought": block })),
            Block::Text(length) => Some(json!({ "text": length })),
            Block::Call(id) => Some(json!({ "call": id })),
        }
    }
}
