//! Drives models that call tools badly or not at all: each answer is one JSON object, an action and its arguments.
//!
//! Where the server holds the model to a schema, there is one branch for each tool with that tool's own parameters. The
//! keys come in the order in which a model should think: what it does first, then what it does it with.

mod reader;
mod references;

use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::{Map, Value, json};

use super::remote::{Out, Trouble, spare_id};
use super::written::Told;
use super::{Call, End, EndReason, Finish, Message, Part, Piece, Request, ToolSpec};
use crate::toolbox::ANSWER;
use reader::{AnswerReader, Ending};

/// The tool whose text is asked for apart, and the argument for it, which the tool's schema does not have then.
const TEXT_TOOL: (&str, &str) = ("write_file", "content");

/// The action that ends the work, with what the person reads.
pub(super) const DONE: &str = "done";

/// The same request for a model without tools, and the schema that its answer should keep to.
pub(super) fn shape(request: &Request) -> (Request, Value) {
    let whole = |tool: &ToolSpec| ToolSpec { schema: references::inlined(&tool.schema), ..tool.clone() };
    let tools: &[ToolSpec] = &request.tools.iter().map(whole).collect::<Vec<_>>();
    let (may, must) = (request.finish != Finish::MayNot, request.finish == Finish::Must);
    let is_usable = |tool: &&ToolSpec| if tool.name == ANSWER { may } else { !must };
    let branches = tools.iter().filter(is_usable).map(|tool| (tool.name.as_str(), tool.schema.clone()));
    let branches = branches.chain((may && !is_asked(tools)).then(|| (DONE, done_schema())));
    let schema = json!({ "oneOf": branches.map(|(name, schema)| branch(name, schema)).collect::<Vec<_>>() });
    let is_apart = has_text_apart(tools);
    let messages = request.messages.iter().filter_map(|message| plain(message, is_apart));
    let messages = example(tools).into_iter().chain(messages).collect();
    let request = Request {
        system: format!("{}\n{}", request.system, instructions(tools)),
        messages,
        tools: Vec::new(),
        max_tokens: request.max_tokens,
        thought: request.thought,
        finish: request.finish,
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
    if !is_asked(tools) {
        text.push_str("- done {message}: Ends the work. `message` is what the person reads: what you did.\n");
    }
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

/// Whether the work ends with an answer that is asked for apart.
fn is_asked(tools: &[ToolSpec]) -> bool {
    tools.iter().any(|tool| tool.name == ANSWER)
}

/// Whether the text of a file is asked for apart.
fn has_text_apart(tools: &[ToolSpec]) -> bool {
    let has_text = |tool: &ToolSpec| tool.schema.pointer(&format!("/properties/{}", TEXT_TOOL.1)).is_some();
    tools.iter().any(|tool| tool.name == TEXT_TOOL.0 && !has_text(tool))
}

const EXAMPLE_TASK: &str = "The area is wrong in square.py. Mend it.";

/// A task from its beginning to its end. Models follow an example more surely than a rule.
fn example(tools: &[ToolSpec]) -> Vec<Message> {
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    let says = |action: &str, arguments: Value| assistant(answer(action, arguments));
    if is_asked(tools) && has("run_command") {
        return vec![
            Message::user("How many functions are in square.py?"),
            says("run_command", json!({ "command": "grep -c '^def' square.py" })),
            result("run_command", false, vec![Part::text("2")]),
            says(ANSWER, json!({})),
        ];
    }
    if !(has("read_file") && (has("edit_file") || has_text_apart(tools))) {
        return Vec::new();
    }
    let (before, after) = ("    return side + side", "    return side * side");
    let file = format!("def name():\n    return \"square\"\n\n\ndef area(side):\n{before}\n");
    let mut messages = vec![
        Message::user(EXAMPLE_TASK),
        says("read_file", json!({ "path": "square.py" })),
        result("read_file", false, vec![Part::text(file)]),
    ];
    if has_text_apart(tools) {
        let changed = format!("`square.py` is written. What has changed:\n-{before}\n+{after}");
        messages.extend([
            says(TEXT_TOOL.0, json!({ "path": "square.py" })),
            result(TEXT_TOOL.0, false, vec![Part::text(changed)]),
        ]);
    } else {
        let arguments = json!({ "path": "square.py", "old_text": before, "new_text": after });
        messages.extend([
            says("edit_file", arguments),
            result("edit_file", false, vec![Part::text("`square.py` is edited: replaced line 6")]),
        ]);
    }
    messages.push(says(DONE, json!({ "message": "area() in square.py multiplies the side by itself now." })));
    if has("run_command") {
        messages.extend([
            Message::user("Let the file notes.txt be called notes.md."),
            says("run_command", json!({ "command": "mv notes.txt notes.md" })),
            result("run_command", false, vec![Part::text("(no output)")]),
            says(DONE, json!({ "message": "notes.txt is called notes.md now." })),
        ]);
    }
    messages
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

/// A message in words that need no tools. `None` if it says nothing.
fn plain(message: &Message, is_apart: bool) -> Option<Message> {
    let said = |text: &String| Some(text.clone()).filter(|text| !text.trim().is_empty());
    match message {
        Message::User { .. } => Some(message.clone()),
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            Some(assistant(answer(DONE, json!({ "message": said(text)? }))))
        }
        Message::Assistant { text, calls, .. } => {
            // One that was said by a model with tools of its own may have words before its calls.
            let calls = calls.iter().map(|call| call_in_words(call, is_apart));
            Some(assistant(said(text).into_iter().chain(calls).collect::<Vec<_>>().join("\n")))
        }
        Message::Tool { name, parts, is_error, .. } => {
            let name = if is_apart && name == "edit_file" { TEXT_TOOL.0 } else { name };
            Some(result(name, *is_error, parts.clone()))
        }
    }
}

/// A call as a model writes it that has no tools.
fn call_in_words(call: &Call, is_apart: bool) -> String {
    // What was not JSON stays as it was written: the model is told what was wrong with it.
    let arguments = serde_json::from_str(&call.arguments);
    let mut arguments = arguments.unwrap_or_else(|_| Value::String(call.arguments.clone()));
    if is_apart && matches!(call.name.as_str(), "write_file" | "edit_file") {
        // It has not seen the rest: that was written apart.
        arguments = json!({ "path": arguments.get("path") });
        return answer(TEXT_TOOL.0, arguments);
    }
    answer(&call.name, arguments)
}

/// Reads one answer in JSON. Is fed the pieces of a model without tools, and makes those of one with tools.
pub(super) struct Constrained {
    out: Out,
    reader: AnswerReader,
}

impl Constrained {
    /// Reads the answer to a request.
    pub(super) fn new(request: &Request) -> Self {
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        Constrained { out: Out::new(&request.messages), reader: AnswerReader::new(names, Told::new(request)) }
    }

    fn handle(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => {
                let said = self.reader.handle(&text);
                if said.is_empty() {
                    self.out.push(Piece::Held);
                }
                self.out.text(&said);
            }
            Piece::End(end) => self.end(end),
            other => self.out.push(other),
        }
    }

    fn end(&mut self, mut end: End) {
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
