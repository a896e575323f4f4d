//! Drives models that call tools badly or not at all: each answer is one JSON object, an action and its arguments.
//!
//! Where the server holds the model to a schema, there is one branch for each tool with that tool's own parameters. The
//! keys come in the order in which a model should think: what it does first, then what it does it with.

mod reader;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::{Map, Value, json};

use super::remote::{Out, Trouble, spare_id};
use super::{Call, End, EndReason, Finish, Message, Part, Piece, Request, ToolSpec, Usage};
use reader::{AnswerReader, Ending};

/// The tool whose text is asked for apart, and the argument that the text becomes, where the tool's schema does not have it:
/// models that get the escapes of JSON wrong write a text in a code block well.
const TEXT_TOOL: (&str, &str) = ("write_file", "content");

/// How much of such a text is taken.
const LONGEST_TEXT: usize = 1 << 20;

/// How many tokens it may have.
const TEXT_TOKENS: u32 = 4096;

/// The action that ends the work, with what the person reads.
pub(super) const DONE: &str = "done";

/// The same request for a model without tools, and the schema that its answer should keep to.
pub(super) fn shape(request: &Request) -> (Request, Value) {
    let tools = request.tools.as_slice();
    let can_finish = request.finish != Finish::MayNot;
    let usable = if request.finish == Finish::Must { &[] } else { tools };
    let branches = usable.iter().map(|tool| (tool.name.as_str(), tool.schema.clone()));
    let branches = branches.chain(can_finish.then(|| (DONE, done_schema())));
    let schema = json!({ "oneOf": branches.map(|(name, schema)| branch(name, schema)).collect::<Vec<_>>() });
    let asks = asks_for_text(tools);
    let mut messages = example(tools);
    for (at, message) in request.messages.iter().enumerate() {
        let task = asks.then(|| task_of(&request.messages[..at]));
        messages.extend(plain(message, task.as_deref()));
    }
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

/// Whether the text of a file is asked for apart.
fn asks_for_text(tools: &[ToolSpec]) -> bool {
    let has_text = |tool: &ToolSpec| tool.schema.pointer(&format!("/properties/{}", TEXT_TOOL.1)).is_some();
    tools.iter().any(|tool| tool.name == TEXT_TOOL.0 && !has_text(tool))
}

/// What a model is told to write the text of a file. It copies the file as it is unless it is told the task once more, and
/// thinks about it first.
fn text_wanted(path: &str, task: &str) -> String {
    format!(
        "The task is: {task}\n\nSay in one sentence what has to change in {path}. Then write the whole of it, from its first \
         line to its last, in a code block."
    )
}

/// What the person asked for last.
fn task_of(messages: &[Message]) -> String {
    let prompt = messages.iter().rev().find_map(|message| match message {
        Message::User { parts } => Some(parts),
        _ => None,
    });
    let text = |part: &Part| match part {
        Part::Text { text } if !text.starts_with("<environment>") => Some(text.clone()),
        _ => None,
    };
    prompt.into_iter().flatten().filter_map(text).collect::<Vec<_>>().join("\n")
}

const EXAMPLE_TASK: &str = "The area is wrong in square.py. Mend it.";

/// A task from its beginning to its end. Models follow an example more surely than a rule.
fn example(tools: &[ToolSpec]) -> Vec<Message> {
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    if !(has("read_file") && (has("edit_file") || asks_for_text(tools))) {
        return Vec::new();
    }
    let says = |action: &str, arguments: Value| assistant(answer(action, arguments));
    let (before, after) = ("    return side + side", "    return side * side");
    let file = |line: &str| format!("def name():\n    return \"square\"\n\n\ndef area(side):\n{line}\n");
    let mut messages = vec![
        Message::user(EXAMPLE_TASK),
        says("read_file", json!({ "path": "square.py" })),
        result("read_file", false, vec![Part::text(file(before))]),
    ];
    if asks_for_text(tools) {
        messages.extend([
            says(TEXT_TOOL.0, json!({ "path": "square.py" })),
            Message::user(text_wanted("square.py", EXAMPLE_TASK)),
            assistant(format!(
                "The area is the side times itself: `+` has to become `*`.\n\n```python\n{}```",
                file(after)
            )),
            result(
                TEXT_TOOL.0,
                false,
                vec![Part::text(format!("`square.py` is written. What has changed:\n-{before}\n+{after}"))],
            ),
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
            Message::user("How many functions are in square.py?"),
            says("run_command", json!({ "command": "grep -c '^def' square.py" })),
            result("run_command", false, vec![Part::text("2")]),
            says(DONE, json!({ "message": "2" })),
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

/// A message in words that need no tools.
fn plain(message: &Message, task: Option<&str>) -> Vec<Message> {
    match message {
        Message::User { .. } => vec![message.clone()],
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            let text = Some(text).filter(|text| !text.trim().is_empty());
            text.map(|text| assistant(answer(DONE, json!({ "message": text })))).into_iter().collect()
        }
        Message::Assistant { text, calls, .. } => {
            if let Some(task) = task
                && let [call] = calls.as_slice()
                && let Some((path, content)) = text_call(call)
            {
                return vec![
                    assistant(answer(TEXT_TOOL.0, json!({ "path": path }))),
                    Message::user(text_wanted(&path, task)),
                    assistant(format!("```\n{}\n```", content.trim_end_matches('\n'))),
                ];
            }
            let calls = calls.iter().map(|call| {
                // What was not JSON stays as it was written: the model is told what was wrong with it.
                let arguments = serde_json::from_str(&call.arguments);
                answer(&call.name, arguments.unwrap_or_else(|_| Value::String(call.arguments.clone())))
            });
            // One that was said by a model with tools of its own may have words before its calls.
            let lines = Some(text.clone()).filter(|text| !text.trim().is_empty()).into_iter().chain(calls);
            vec![assistant(lines.collect::<Vec<_>>().join("\n"))]
        }
        Message::Tool { name, parts, is_error, .. } => vec![result(name, *is_error, parts.clone())],
    }
}

/// The path and the text of a call that writes a file.
fn text_call(call: &Call) -> Option<(String, String)> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let text = |name: &str| Some(arguments.get(name)?.as_str()?.to_owned());
    (call.name == TEXT_TOOL.0).then(|| text("path").zip(text(TEXT_TOOL.1)))?
}

/// Asks the model once more, without a form.
pub(super) type Ask = Box<dyn FnOnce(Request) -> BoxFuture<'static, BoxStream<'static, Result<Piece, Trouble>>> + Send>;

/// Reads one answer in JSON. Is fed the pieces of a model without tools, and makes those of one with tools.
pub(super) struct Constrained {
    out: Out,
    reader: AnswerReader,
    /// How to ask for the text of a file, and the request that that goes on with.
    ask: Option<(Ask, Request)>,
    /// The file whose text is being written, and what has come of it.
    writing: Option<Writing>,
    task: String,
    /// Files of which the model was shown a part.
    long: Vec<String>,
    spent: Usage,
}

#[derive(Default)]
struct Writing {
    path: String,
    text: String,
}

impl Constrained {
    /// Reads the answer to a request, which was put as `shaped`.
    pub(super) fn new(request: &Request, shaped: Request, ask: Ask) -> Self {
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        Constrained {
            out: Out::new(&request.messages),
            reader: AnswerReader::new(names),
            ask: asks_for_text(&request.tools).then_some((ask, shaped)),
            writing: None,
            task: task_of(&request.messages),
            long: long_files(&request.messages),
            spent: Usage::default(),
        }
    }

    /// Takes in a piece. Gives the request that has to be made before the answer is whole.
    fn handle(&mut self, piece: Piece) -> Option<(Ask, Request)> {
        match (piece, &mut self.writing) {
            (Piece::Text(text), Some(writing)) => {
                if writing.text.len() + text.len() <= LONGEST_TEXT {
                    writing.text.push_str(&text);
                }
            }
            (Piece::Text(text), None) => {
                let said = self.reader.handle(&text);
                self.out.text(&said);
            }
            (Piece::End(end), None) => return self.end(end),
            (Piece::End(mut end), Some(writing)) => {
                let Writing { path, text } = std::mem::take(writing);
                let is_whole = end.reason == EndReason::Done;
                let arguments = match in_block(&text) {
                    Some(content) if is_whole => json!({ "path": path, TEXT_TOOL.1: content }).to_string(),
                    // The model is told that this is no JSON, which is as much as to say that it was cut off.
                    _ => format!("{} …", json!({ "path": path, TEXT_TOOL.1: text })),
                };
                self.out.grow(0, &arguments);
                self.out.finish(0);
                end.reason = EndReason::Done;
                self.finish(end);
            }
            (other, _) => self.out.push(other),
        }
        None
    }

    /// The answer is complete, or wants a text besides.
    fn end(&mut self, mut end: End) -> Option<(Ask, Request)> {
        let (said, ending) = self.reader.finish();
        match ending {
            Ending::Text(text) => self.out.text(&text),
            Ending::Call { name, arguments } => {
                // One that was cut off is made all the same: its arguments are no JSON, and the model is told.
                end.reason = EndReason::Done;
                if let Ok(id) = self.out.start(0, "", &name, spare_id) {
                    let path = (name == TEXT_TOOL.0).then(|| path_of(&arguments)).flatten();
                    // One that it could not read as a whole, it cannot write as a whole: it is told.
                    let path = path.filter(|path| !self.long.contains(path));
                    if let (Some(path), Some((ask, mut request))) = (path, self.ask.take()) {
                        // It can be seen what it writes to while it does.
                        self.out.push(Piece::CallGrew { id, arguments: json!({ "path": path }).to_string() });
                        self.spent = end.usage;
                        request.messages.extend([assistant(said), Message::user(text_wanted(&path, &self.task))]);
                        request.max_tokens = Some(TEXT_TOKENS);
                        self.writing = Some(Writing { path, text: String::new() });
                        return Some((ask, request));
                    }
                    self.out.grow(0, &arguments);
                    self.out.finish(0);
                }
            }
        }
        self.finish(end);
        None
    }

    fn finish(&mut self, mut end: End) {
        end.usage.input += self.spent.input;
        end.usage.cached += self.spent.cached;
        end.usage.output += self.spent.output;
        end.usage.written += self.spent.written;
        self.out.push(Piece::End(end));
    }
}

/// The files that were shown in part, by what `read_file` says of them.
fn long_files(messages: &[Message]) -> Vec<String> {
    let long = |message: &Message| {
        let Message::Tool { name, parts, is_error: false, .. } = message else { return None };
        let Some(Part::Text { text }) = parts.first().filter(|_| name == "read_file") else { return None };
        let (first, _) = text.split_once('\n')?;
        let (path, notes) = first.strip_prefix('`')?.split_once('`')?;
        notes.contains("read on with line").then(|| path.to_owned())
    };
    messages.iter().filter_map(long).collect()
}

/// The path of a call that has no text yet.
fn path_of(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let has_text = arguments.get(TEXT_TOOL.1).is_some();
    arguments.get("path").filter(|_| !has_text)?.as_str().map(str::to_owned)
}

/// What is in the code block that an answer is, or all of it where there is none. `None` if the block has no end.
fn in_block(text: &str) -> Option<String> {
    let Some((before, rest)) = text.split_once("```") else { return Some(format!("{}\n", text.trim_end())) };
    // Something like a fence in the middle of a line is none.
    if !before.is_empty() && !before.ends_with('\n') {
        return Some(format!("{}\n", text.trim_end()));
    }
    let (_, body) = rest.split_once('\n')?;
    let end = if body.starts_with("```") { 0 } else { body.rfind("\n```")? + 1 };
    Some(body[..end].to_owned())
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
                Ok(piece) => {
                    if let Some((ask, request)) = constrained.handle(piece) {
                        answer = ask(request).await;
                    }
                }
                Err(trouble) => return Some((Err(trouble), (answer, constrained))),
            }
        }
    });
    pieces.boxed()
}

#[cfg(test)]
mod tests;
