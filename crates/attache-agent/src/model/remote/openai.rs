//! Reads streams of chat completions, as OpenAI and many others send them.

use serde_json::{Value, json};

use super::out::{Out, TooManyCalls, spare_id};
use super::reader::{Ending, count, text};
use crate::model::{End, EndReason, Usage};

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The server has said `[DONE]`.
    pub(super) done: bool,
    finish: Option<String>,
    refused: bool,
    pub(super) usage: Usage,
    slots: Vec<Slot>,
    /// Thoughts under the name that wants them back.
    reasoning: String,
    /// OpenRouter's signed and encrypted thoughts.
    details: Vec<Value>,
}

/// A call at an index of the stream, and the number that it has among ours.
#[derive(Debug)]
struct Slot {
    index: u64,
    /// The provider's id.
    id: String,
    name: String,
    number: u64,
    /// What came before the name did.
    early: String,
}

impl Reader {
    pub(super) fn handle(&mut self, event: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.count(usage);
        }
        let Some(choice) = event.pointer("/choices/0") else { return Ok(()) };
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        self.think(delta, out);
        match delta.get("content") {
            Some(Value::String(content)) => out.text(content),
            // Mistral's models that think send a list of parts.
            Some(Value::Array(parts)) => {
                for part in parts {
                    match text(part, "/type") {
                        "thinking" => {
                            let thoughts = part.get("thinking").and_then(Value::as_array);
                            thoughts.into_iter().flatten().for_each(|thought| out.thought(text(thought, "/text")));
                        }
                        _ => out.text(text(part, "/text")),
                    }
                }
            }
            _ => {}
        }
        let refusal = text(delta, "/refusal");
        if !refusal.is_empty() {
            self.refused = true;
            out.text(refusal);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, out)?;
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn think(&mut self, delta: &Value, out: &mut Out) {
        let content = text(delta, "/reasoning_content");
        self.reasoning.push_str(content);
        // Those who send both send the same in both.
        out.thought(if content.is_empty() { text(delta, "/reasoning") } else { content });
        for detail in delta.get("reasoning_details").and_then(Value::as_array).into_iter().flatten() {
            out.note(["/data", "/text", "/summary", "/signature"].iter().map(|key| text(detail, key).len()).sum());
            join_detail(&mut self.details, detail);
        }
    }

    fn call(&mut self, call: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        let (id, name) = (text(call, "/id"), text(call, "/function/name"));
        let index = match count(call, "/index") {
            Some(index) => index,
            // Without an index, a new id is a new call; whatever has neither goes on with the last one.
            None => match self.slots.iter().rev().find(|slot| id.is_empty() || slot.id == id) {
                Some(slot) => slot.index,
                None => self.slots.iter().map(|slot| slot.index.saturating_add(1)).max().unwrap_or(0),
            },
        };
        // Some servers give every call the same index: another id with a name is another call.
        let known = self.slots.iter().rposition(|slot| {
            slot.index == index && (id.is_empty() || name.is_empty() || slot.id.is_empty() || slot.id == id)
        });
        let at = match known {
            Some(at) => at,
            None => {
                let number = self.slots.len() as u64;
                let slot = Slot { index, id: id.to_owned(), name: String::new(), number, early: String::new() };
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[at];
        if slot.name.is_empty() && !name.is_empty() {
            slot.name = name.to_owned();
            if slot.id.is_empty() {
                slot.id = id.to_owned();
            }
            out.start(slot.number, &slot.id, name, spare_id)?;
            let early = std::mem::take(&mut slot.early);
            if !early.is_empty() {
                out.grow(slot.number, &early);
            }
        }
        let more = match call.pointer("/function/arguments") {
            Some(Value::String(more)) => more.clone(),
            // Some servers send the arguments as the object that they are.
            Some(value @ Value::Object(_)) => value.to_string(),
            _ => String::new(),
        };
        if slot.name.is_empty() {
            out.note(more.len());
            slot.early.push_str(&more);
        } else if !more.is_empty() {
            out.grow(slot.number, &more);
        }
        if self.slots.len() > 1000 { Err(TooManyCalls) } else { Ok(()) }
    }

    fn count(&mut self, usage: &Value) {
        let cached =
            count(usage, "/prompt_tokens_details/cached_tokens").or_else(|| count(usage, "/prompt_cache_hit_tokens"));
        self.usage = Usage {
            input: count(usage, "/prompt_tokens").unwrap_or(0),
            cached: cached.unwrap_or(0),
            output: count(usage, "/completion_tokens").unwrap_or(0),
            ..Usage::default()
        };
    }

    pub(super) fn end(&mut self, out: &Out) -> Option<Ending> {
        // Some servers close the stream without `[DONE]`, others send it without a reason.
        if self.finish.is_none() && !(self.done && out.spoke) {
            return None;
        }
        let reason = match self.finish.as_deref() {
            Some("length" | "max_tokens") => EndReason::MaxTokens,
            Some("content_filter" | "refusal") => EndReason::Refusal,
            _ if self.refused => EndReason::Refusal,
            _ => EndReason::Done,
        };
        let mut keep = serde_json::Map::new();
        // Models that think between their calls want the thoughts back with them, and only with them.
        if !self.reasoning.is_empty() && !self.slots.is_empty() {
            keep.insert("reasoning_content".into(), json!(std::mem::take(&mut self.reasoning)));
        }
        if !self.details.is_empty() {
            keep.insert("reasoning_details".into(), json!(std::mem::take(&mut self.details)));
        }
        let keep = (!keep.is_empty()).then_some(Value::Object(keep));
        Some(Ending { end: End { reason, usage: self.usage, opaque: None }, keep })
    }
}

/// Puts a part of a thought to what came of it before: parts of one kind and index are one thought.
fn join_detail(details: &mut Vec<Value>, part: &Value) {
    let same = |a: &Value, key: &str| a.get(key) == part.get(key);
    let Some(last) = details.last_mut().filter(|last| same(last, "type") && same(last, "index")) else {
        details.push(part.clone());
        return;
    };
    let (Some(last), Some(part)) = (last.as_object_mut(), part.as_object()) else { return };
    for (key, value) in part {
        match (last.get_mut(key), value) {
            (Some(Value::String(so_far)), Value::String(more))
                if matches!(key.as_str(), "text" | "summary" | "data") =>
            {
                so_far.push_str(more);
            }
            (Some(so_far), value) if so_far.is_null() => *so_far = value.clone(),
            (None, value) => {
                last.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
}
