//! Drives models that cannot call tools: they answer in JSON, with something to say and perhaps a tool to use.
//!
//! The keys are in the order of the alphabet on purpose. Servers that hold a model to a schema make it write them in
//! that order, and it should speak before it acts, and choose a tool before what it gives to it.

mod say;

use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};

use super::remote::{Out, Trouble, spare_id};
use super::{EndReason, Failure, Message, Part, Piece, Request};
use say::Say;

/// The same request for a model without tools, and the schema that its answer should keep to.
pub(super) fn shape(request: &Request) -> (Request, Value) {
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    let tool = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "enum": names },
            "parameters": { "type": "object" },
        },
        "required": ["name", "parameters"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": { "say": { "type": "string" }, "tool": { "anyOf": [{ "type": "null" }, tool] } },
        "required": ["say", "tool"],
        "additionalProperties": false,
    });
    let messages = request.messages.iter().filter_map(plain).collect();
    let request = Request {
        system: format!("{}\n\n{}", request.system, instructions(request)),
        messages,
        tools: Vec::new(),
        max_tokens: request.max_tokens,
        thought: request.thought,
    };
    (request, schema)
}

/// Tells the model how to answer, and which tools there are.
fn instructions(request: &Request) -> String {
    let mut text = String::from(
        "# How to answer\n\n\
         Answer with one JSON object and nothing around it:\n\n\
         {\"say\": \"what the person reads\", \"tool\": {\"name\": \"a tool\", \"parameters\": {}}}\n\n\
         Use one tool at a time; what comes of it is told to you in the next message. \
         When nothing is left to do, say so and set \"tool\" to null. \
         \"say\" may be an empty string when a tool speaks for itself.\n\n\
         # Tools\n",
    );
    for tool in &request.tools {
        text.push_str(&format!("\n## {}\n\n{}\n\nParameters: {}\n", tool.name, tool.description.trim(), tool.schema));
    }
    text
}

/// A message in words that need no tools.
fn plain(message: &Message) -> Option<Message> {
    match message {
        Message::User { .. } => Some(message.clone()),
        Message::Assistant { text, calls, .. } => {
            if text.trim().is_empty() && calls.is_empty() {
                return None;
            }
            let one = |say: &str, tool: Value| json!({ "say": say, "tool": tool }).to_string();
            let lines: Vec<String> = if calls.is_empty() {
                vec![one(text, Value::Null)]
            } else {
                let calls = calls.iter().enumerate().map(|(at, call)| {
                    let parameters: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                    one(if at == 0 { text } else { "" }, json!({ "name": call.name, "parameters": parameters }))
                });
                calls.collect()
            };
            Some(Message::Assistant { text: lines.join("\n"), calls: Vec::new(), opaque: None })
        }
        Message::Tool { name, parts, is_error, .. } => {
            let how = if *is_error { "failed" } else { "brought" };
            let mut all = vec![Part::text(format!("What `{name}` {how}:\n"))];
            all.extend(parts.iter().cloned());
            Some(Message::User { parts: all })
        }
    }
}

/// Reads one answer in JSON. Is fed the pieces of a model without tools, and makes those of one with tools.
pub(super) struct Constrained {
    out: Out,
    say: Say,
}

impl Constrained {
    pub(super) fn new(conversation: &[Message]) -> Self {
        Constrained { out: Out::new(conversation), say: Say::default() }
    }

    fn handle(&mut self, piece: Piece) -> Result<(), Trouble> {
        match piece {
            Piece::Text(text) => {
                let said = self.say.handle(&text);
                self.out.text(&said);
            }
            Piece::End(end) => {
                let finish = self.say.finish();
                // What was cut off at the limit cannot be whole.
                if finish.is_broken && end.reason == EndReason::Done {
                    let message = "the model did not keep to the form in which it has to call tools";
                    return Err(Trouble::new(Failure::Server, message));
                }
                self.out.text(&finish.text);
                if let Some((name, parameters)) = finish.tool
                    && self.out.start(0, "", &name, spare_id).is_ok()
                {
                    self.out.grow(0, &parameters);
                    self.out.finish(0);
                }
                self.out.push(Piece::End(end));
            }
            other => self.out.push(other),
        }
        Ok(())
    }
}

/// The pieces of an answer in JSON.
pub(super) fn unwrap(
    answer: BoxStream<'static, Result<Piece, Trouble>>,
    constrained: Constrained,
) -> BoxStream<'static, Result<Piece, Trouble>> {
    let pieces = stream::unfold((answer, constrained), |(mut answer, mut constrained)| async move {
        loop {
            if let Some(piece) = constrained.out.pop() {
                return Some((Ok(piece), (answer, constrained)));
            }
            let piece = answer.next().await?;
            if let Err(trouble) = piece.and_then(|piece| constrained.handle(piece)) {
                return Some((Err(trouble), (answer, constrained)));
            }
        }
    });
    pieces.boxed()
}

#[cfg(test)]
mod tests;
