//! Drives models that call tools badly or not at all: each answer is one JSON object, an action and its arguments.
//!
//! Where the server holds the model to a schema, there is one branch for each tool with that tool's own parameters. The
//! keys come in the order in which a model should think: what it does first, then what it does it with.

mod reader;

use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::{Map, Value, json};

use super::remote::{Out, Trouble, spare_id};
use super::{EndReason, Message, Part, Piece, Request, ToolSpec};
use reader::{AnswerReader, Ending};

/// The action that ends the work, with what the person reads.
pub(super) const DONE: &str = "done";

/// The same request for a model without tools, and the schema that its answer should keep to.
pub(super) fn shape(request: &Request) -> (Request, Value) {
    let tools: &[ToolSpec] = if request.answer_only { &[] } else { &request.tools };
    let branches = tools.iter().map(|tool| (tool.name.as_str(), tool.schema.clone())).chain([(DONE, done_schema())]);
    let schema = json!({ "oneOf": branches.map(|(name, schema)| branch(name, schema)).collect::<Vec<_>>() });
    let messages = example(tools).into_iter().chain(request.messages.iter().filter_map(plain)).collect();
    let request = Request {
        system: format!("{}\n{}", request.system, instructions(tools)),
        messages,
        tools: Vec::new(),
        max_tokens: request.max_tokens,
        thought: request.thought,
        temperature: request.temperature,
        answer_only: request.answer_only,
    };
    (request, schema)
}

/// An answer that does one thing.
fn branch(name: &str, mut schema: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("additionalProperties".into(), false.into());
    }
    json!({
        "type": "object",
        "properties": { "action": { "const": name }, "arguments": schema },
        "required": ["action", "arguments"],
        "additionalProperties": false,
    })
}

fn done_schema() -> Value {
    json!({ "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] })
}

/// Tells the model how to answer, and which actions there are.
fn instructions(tools: &[ToolSpec]) -> String {
    let mut text = String::from(
        "# How to answer\n\n\
         Answer with exactly one JSON object: {\"action\": ACTION, \"arguments\": {…}}. One action at a time; what comes \
         of it is told to you in the next message.\n\n\
         # Actions\n\n",
    );
    for tool in tools {
        let (names, about) = parameters(&tool.schema);
        text.push_str(&format!("- {} {{{names}}}: {}\n{about}", tool.name, tool.description.trim()));
    }
    text.push_str(
        "- done {message}: Ends the work. `message` is what the person reads: the answer, or what you did.\n",
    );
    text
}

/// The names of a tool's parameters, and a line about each that needs one.
fn parameters(schema: &Value) -> (String, String) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let name = |name: &String| {
        let is_required = required.iter().any(|required| required.as_str() == Some(name));
        format!("{name}{}", if is_required { "" } else { "?" })
    };
    let names: Vec<String> = properties.keys().map(name).collect();
    let about = properties.iter().filter_map(|(name, property)| {
        let about = property.get("description")?.as_str()?;
        Some(format!("  - {name}: {about}\n"))
    });
    (names.join(", "), about.collect())
}

/// A task from its beginning to its end. Models follow an example more surely than a rule.
fn example(tools: &[ToolSpec]) -> Vec<Message> {
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    if !(has("read_file") && has("edit_file")) {
        return Vec::new();
    }
    let says = |action: &str, arguments: Value| assistant(answer(action, arguments));
    let before = "    return side + side";
    vec![
        Message::user("The area of a square is wrong in area.py. Mend it."),
        says("read_file", json!({ "path": "area.py" })),
        result("read_file", false, vec![Part::text(format!("def square(side):\n{before}\n"))]),
        says("edit_file", json!({ "path": "area.py", "old_text": before, "new_text": "    return side * side" })),
        result("edit_file", false, vec![Part::text("`area.py` is edited: replaced line 2")]),
        says(DONE, json!({ "message": "square() in area.py multiplies the side by itself now." })),
    ]
}

fn answer(action: &str, arguments: Value) -> String {
    json!({ "action": action, "arguments": arguments }).to_string()
}

fn assistant(text: String) -> Message {
    Message::Assistant { text, calls: Vec::new(), opaque: None }
}

fn result(name: &str, is_error: bool, parts: Vec<Part>) -> Message {
    let what = if is_error { "ERROR of" } else { "RESULT of" };
    Message::User { parts: std::iter::once(Part::text(format!("{what} {name}:\n"))).chain(parts).collect() }
}

/// A message in words that need no tools.
fn plain(message: &Message) -> Option<Message> {
    match message {
        Message::User { .. } => Some(message.clone()),
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            (!text.trim().is_empty()).then(|| assistant(answer(DONE, json!({ "message": text }))))
        }
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| {
                // What was not JSON stays as it was written: the model is told what was wrong with it.
                let arguments = serde_json::from_str(&call.arguments);
                answer(&call.name, arguments.unwrap_or_else(|_| Value::String(call.arguments.clone())))
            });
            // One that was said by a model with tools of its own may have words before its calls.
            let lines = Some(text.clone()).filter(|text| !text.trim().is_empty()).into_iter().chain(calls);
            Some(assistant(lines.collect::<Vec<_>>().join("\n")))
        }
        Message::Tool { name, parts, is_error, .. } => Some(result(name, *is_error, parts.clone())),
    }
}

/// Reads one answer in JSON. Is fed the pieces of a model without tools, and makes those of one with tools.
pub(super) struct Constrained {
    out: Out,
    reader: AnswerReader,
}

impl Constrained {
    pub(super) fn new(request: &Request) -> Self {
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        Constrained { out: Out::new(&request.messages), reader: AnswerReader::new(names) }
    }

    fn handle(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => {
                let said = self.reader.handle(&text);
                self.out.text(&said);
            }
            Piece::End(mut end) => {
                match self.reader.finish() {
                    Ending::Text(text) => self.out.text(&text),
                    Ending::Call { name, arguments } => {
                        // One that was cut off is made all the same: its arguments are no JSON, and the model is told.
                        end.reason = EndReason::Done;
                        if self.out.start(0, "", &name, spare_id).is_ok() {
                            self.out.grow(0, &arguments);
                            self.out.finish(0);
                        }
                    }
                }
                self.out.push(Piece::End(end));
            }
            other => self.out.push(other),
        }
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
            match answer.next().await? {
                Ok(piece) => constrained.handle(piece),
                Err(trouble) => return Some((Err(trouble), (answer, constrained))),
            }
        }
    });
    pieces.boxed()
}

#[cfg(test)]
mod tests;
