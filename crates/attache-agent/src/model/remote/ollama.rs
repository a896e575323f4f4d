//! Reads streams of Ollama's own `/api/chat`: a JSON object on each line.

use serde_json::Value;

use super::out::{Out, TooManyCalls, spare_id};
use super::reader::{Ending, count, text};
use crate::model::{End, EndReason, Usage};

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The server has said that it is done.
    pub(super) done: bool,
    reason: String,
    pub(super) usage: Usage,
    calls: u64,
}

impl Reader {
    pub(super) fn handle(&mut self, event: &Value, out: &mut Out) -> Result<(), TooManyCalls> {
        out.thought(text(event, "/message/thinking"));
        out.text(text(event, "/message/content"));
        let calls = event.pointer("/message/tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            let number = self.calls;
            self.calls += 1;
            out.start(number, text(call, "/id"), text(call, "/function/name"), spare_id)?;
            match call.pointer("/function/arguments") {
                Some(Value::String(arguments)) => out.grow(number, arguments),
                Some(arguments) if !arguments.is_null() => out.grow(number, &arguments.to_string()),
                _ => {}
            }
            out.finish(number);
        }
        if event.get("done").and_then(Value::as_bool) == Some(true) {
            self.done = true;
            self.reason = text(event, "/done_reason").to_owned();
            self.usage = Usage {
                input: count(event, "/prompt_eval_count").unwrap_or(0),
                output: count(event, "/eval_count").unwrap_or(0),
                ..Usage::default()
            };
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Option<Ending> {
        if !self.done {
            return None;
        }
        let reason = if self.reason == "length" { EndReason::MaxTokens } else { EndReason::Done };
        Some(Ending { end: End { reason, usage: self.usage, opaque: None }, keep: None })
    }
}
