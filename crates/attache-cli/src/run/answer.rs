//! The agent's answer: its last message, for `--last-message`, and whether it is what `--output-schema` asks for.

use std::path::{Path, PathBuf};

use attache_host::files::read_named;
use boon::{CompileError, Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

use crate::connect::here;
use crate::event::{Event, Text};
use crate::exit::{Code, Failure};
use crate::paths;

/// How much is kept of a message. What is more is in no answer that anybody parses.
const LONGEST: usize = 8 << 20;

/// A schema is not longer than this: it goes into the prompt.
const LONGEST_SCHEMA: usize = 256 << 10;

/// How many mistakes the agent is told, and how much of each.
const MOST_MISTAKES: usize = 10;
const LONGEST_MISTAKE: usize = 300;

/// The last message of the agent, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct LastMessage {
    text: String,
    id: Option<String>,
    /// Something else came after it: text without an id begins another.
    is_over: bool,
    /// The agent was asked something.
    is_asked: bool,
}

impl LastMessage {
    /// Takes note of an event of the agent's turn.
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::Text(Text { text, message_id }) if !text.is_empty() => {
                let is_other = match (message_id, &self.id) {
                    (Some(id), Some(known)) => id != known,
                    _ => self.is_over,
                };
                if is_other {
                    self.text.clear();
                }
                self.id.clone_from(message_id);
                self.is_over = false;
                self.add(text);
            }
            Event::TextReplaced(Text { text, message_id }) => {
                self.text.clear();
                self.id.clone_from(message_id);
                self.is_over = false;
                self.add(text);
            }
            Event::Tool(_) | Event::Permission(_) | Event::Plan(_) | Event::Thought(_) => self.is_over = true,
            Event::User(_) => *self = LastMessage { is_asked: true, ..LastMessage::default() },
            _ => {}
        }
    }

    fn add(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether there was something to answer.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }
}

/// Writes the last message to the file that the person named: all at once, and for nobody else to read.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let whole = check_place(path)?;
    paths::write_private(&whole, text.as_bytes()).map_err(|error| unwritable(path, &error.to_string()))
}

/// Whether the last message can be written there: asked before a turn that costs something.
pub(super) fn check_place(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |what: &str| unwritable(path, what);
    let whole: PathBuf = here()?.join(path);
    // A file is replaced, and what is none would be gone.
    if whole.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(failed("it is no plain file"));
    }
    let Some(directory) = whole.parent().filter(|parent| parent.is_dir()) else {
        return Err(failed("its directory is not there"));
    };
    if !paths::is_writable(directory) {
        return Err(failed("its directory cannot be written to"));
    }
    Ok(whole)
}

fn unwritable(path: &Path, what: &str) -> Failure {
    Failure::usage(format!("--last-message `{}`: {what}", path.display()))
}

/// What a schema is called that has no name of its own.
const NAME: &str = "schema:/";

/// Where references outside of a schema lead.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err("a reference leads outside of the schema".into())
    }
}

/// The mistakes that have no other as their cause, one a line.
fn collect(wrong: &ValidationError<'_, '_>, mistakes: &mut Vec<String>) {
    if mistakes.len() >= MOST_MISTAKES {
        return;
    }
    if wrong.causes.is_empty() {
        let place = wrong.instance_location.to_string();
        let place = if place.is_empty() { String::new() } else { format!("`{}`: ", shortened(&place)) };
        mistakes.push(format!("- {place}{}", shortened(&wrong.kind.to_string())));
    }
    wrong.causes.iter().for_each(|cause| collect(cause, mistakes));
}

/// What the answer has to be.
pub(super) struct AnswerSchema {
    schemas: Schemas,
    root: SchemaIndex,
    text: String,
}

impl AnswerSchema {
    /// Reads a schema. References lead nowhere outside of it.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::usage(format!("--output-schema `{}`: {what}", path.display()));
        let content =
            read_named(&here()?.join(path), None, LONGEST_SCHEMA).map_err(|error| wrong(&error.to_string()))?;
        let schema: Value = serde_json::from_slice(&content).map_err(|error| wrong(&format!("no JSON: {error}")))?;
        let text = schema.to_string();
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Nowhere));
        let no_schema = |error: CompileError| {
            wrong(&format!("no JSON Schema: {}", shortened(&error.to_string().replace(NAME, ""))))
        };
        compiler.add_resource(NAME, schema).map_err(no_schema)?;
        let root = compiler.compile(NAME, &mut schemas).map_err(no_schema)?;
        Ok(AnswerSchema { schemas, root, text })
    }

    /// What the agent is told with the prompt.
    pub(super) fn instruction(&self) -> String {
        format!(
            "Your last message has to be one JSON value and nothing else, without a code fence. It has to be valid by \
             this JSON Schema:\n\n{}",
            self.text
        )
    }

    /// Whether an answer is what it has to be; if not, its mistakes, one a line.
    pub(super) fn check(&self, answer: &str) -> Result<(), String> {
        let value: Value =
            serde_json::from_str(answer.trim()).map_err(|error| format!("- the message is no JSON: {error}"))?;
        let Err(wrong) = self.schemas.validate(&value, self.root) else { return Ok(()) };
        let mut mistakes = Vec::new();
        collect(&wrong, &mut mistakes);
        Err(mistakes.join("\n"))
    }

    /// What the agent is asked once more.
    pub(super) fn ask_again(&self, mistakes: &str) -> String {
        format!("Your last message is not what was asked for:\n\n{mistakes}\n\n{}", self.instruction())
    }
}

/// What is said when the second answer is no better.
pub(super) fn not_valid(mistakes: &str) -> Failure {
    Failure::new(Code::Agent, format!("the answer is not what --output-schema asks for:\n{mistakes}"))
}

fn shortened(text: &str) -> String {
    let one_line: Vec<&str> = text.split_whitespace().collect();
    one_line.join(" ").chars().take(LONGEST_MISTAKE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Tool;

    fn text(text: &str, id: Option<&str>) -> Event {
        Event::Text(Text { text: text.into(), message_id: id.map(Into::into) })
    }

    #[test]
    fn the_last_message_begins_after_what_is_none() {
        let tool = || Event::Tool(Tool::default());
        let rows: [(Vec<Event>, &str); 5] = [
            (vec![text("a", None), text("b", None)], "ab"),
            (vec![text("a", None), tool(), text("b", None), text("c", None)], "bc"),
            (vec![text("a", Some("1")), text("b", Some("2"))], "b"),
            // One that goes on after a tool call says so by its id.
            (vec![text("a", Some("1")), tool(), text("b", Some("1"))], "ab"),
            (vec![text("a", None), tool()], "a"),
        ];
        for (events, expected) in rows {
            let mut last = LastMessage::default();
            events.iter().for_each(|event| last.note(event));
            assert_eq!(last.text(), expected);
        }
    }

    #[test]
    fn an_answer_is_checked_by_the_schema() {
        let directory = tempfile::tempdir().unwrap();
        let schema = |text: &str| {
            let path = directory.path().join("schema.json");
            std::fs::write(&path, text).unwrap();
            AnswerSchema::read(&path).map_err(|failure| failure.message)
        };
        let number =
            schema(r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#).unwrap();
        assert_eq!(number.check(" {\"n\": 1}\n"), Ok(()));
        assert!(number.check("```json\n{\"n\": 1}\n```").unwrap_err().contains("no JSON"));
        assert!(number.check(r#"{"n": "x"}"#).unwrap_err().starts_with("- `/n`: "));
        assert!(number.check("{}").unwrap_err().contains("missing properties 'n'"));
        for wrong in ["", "{", r#"{"type": 7}"#, r#"{"$ref": "https://example.com/schema"}"#] {
            assert!(schema(wrong).is_err_and(|message| message.starts_with("--output-schema `")), "{wrong}");
        }
    }
}
