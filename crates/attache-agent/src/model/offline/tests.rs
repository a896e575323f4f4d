//! Whole conversations with the model: the driver plays the agent, and gives it what came of its calls.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use attache_testkit::Dice;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::*;
use crate::model::{Call, End, EndReason, Message, Part, Piece, ToolSpec};

mod plays;
mod robust;

const TOOLS: &[&str] = &[
    "read_file",
    "write_file",
    "edit_file",
    "delete_file",
    "move_file",
    "list_directory",
    "find_files",
    "search_files",
    "run_command",
    "job_output",
    "stop_job",
    "fetch_url",
    "think",
    "update_plan",
    "ask_user",
    "switch_mode",
    "server__tool",
];

const READING: &[&str] =
    &["read_file", "list_directory", "find_files", "search_files", "think", "update_plan", "ask_user", "switch_mode"];

/// How the person says no, as the model is told.
const NO: &str = "the person refused this call";

/// What comes of a call.
type Tool<'t> = &'t mut dyn FnMut(&Call) -> (String, bool);

/// One answer of the model.
struct Said {
    text: String,
    thoughts: String,
    calls: Vec<Call>,
    end: End,
}

/// A whole turn.
struct Turn {
    answers: Vec<Said>,
    messages: Vec<Message>,
}

impl Turn {
    /// All that was said, an answer after the other.
    fn text(&self) -> String {
        self.answers.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n---\n")
    }

    /// All that was called: names and arguments.
    fn calls(&self) -> Vec<(String, Value)> {
        let calls = self.answers.iter().flat_map(|said| &said.calls);
        calls.map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).unwrap_or(Value::Null))).collect()
    }

    fn names(&self) -> Vec<String> {
        self.calls().into_iter().map(|(name, _)| name).collect()
    }
}

fn tools(names: &[&str]) -> Vec<ToolSpec> {
    let spec = |name: &&str| ToolSpec { name: name.to_string(), description: "a tool".into(), schema: json!({}) };
    names.iter().map(spec).collect()
}

/// Asks the model, and checks that the pieces come in order.
async fn ask(request: Request) -> Said {
    let pieces: Vec<_> = Offline::new().ask(request).map(|piece| piece.unwrap()).collect().await;
    let mut said = Said { text: String::new(), thoughts: String::new(), calls: Vec::new(), end: End::default() };
    let mut open: Option<(String, String, String)> = None;
    let count = pieces.len();
    for (number, piece) in pieces.into_iter().enumerate() {
        assert_eq!(matches!(piece, Piece::End(_)), number + 1 == count);
        match piece {
            Piece::Text(text) => said.text.push_str(&text),
            Piece::Thought(text) => said.thoughts.push_str(&text),
            Piece::CallStarted { id, name } => {
                assert!(open.is_none());
                open = Some((id, name, String::new()));
            }
            Piece::CallGrew { id, arguments } => {
                let open = open.as_mut().unwrap();
                assert!(open.0 == id && arguments.starts_with(&open.2));
                open.2 = arguments;
            }
            Piece::Usage(usage) => panic!("rules take nothing: {usage:?}"),
            Piece::Held => panic!("rules say what they have to say at once"),
            Piece::Call(call) => {
                assert_eq!(open.take().unwrap(), (call.id.clone(), call.name.clone(), call.arguments.clone()));
                said.calls.push(call);
            }
            Piece::Retrying { .. } => panic!("there is nothing to try again"),
            Piece::End(end) => said.end = end,
        }
    }
    assert!(open.is_none());
    said
}

/// Plays the agent until the model has nothing more to call.
async fn converse(mut messages: Vec<Message>, parts: Vec<Part>, names: &[&str], tool: Tool<'_>) -> Turn {
    messages.push(Message::User { parts });
    let mut answers = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..400 {
        let said = ask(Request { messages: messages.clone(), tools: tools(names), ..Request::default() }).await;
        let (text, calls) = (said.text.clone(), said.calls.clone());
        messages.push(Message::Assistant { text, calls: calls.clone(), opaque: None });
        for call in &calls {
            assert!(ids.insert(call.id.clone()), "`{}` occurs twice", call.id);
            assert!(names.contains(&call.name.as_str()), "`{}` is not offered", call.name);
            let (text, is_error) = tool(call);
            let (id, name) = (call.id.clone(), call.name.clone());
            messages.push(Message::Tool { id, name, parts: vec![Part::text(text)], is_error });
        }
        let is_over = calls.is_empty();
        assert!(!is_over || !said.text.trim().is_empty(), "an answer says something");
        answers.push(said);
        if is_over {
            return Turn { answers, messages };
        }
    }
    panic!("the turn does not end");
}

/// A turn in a conversation that has begun, so that nothing is introduced.
async fn turn(prompt: &str, tool: Tool<'_>) -> Turn {
    converse(begun(), vec![Part::text(prompt)], TOOLS, tool).await
}

fn begun() -> Vec<Message> {
    let hello = Message::Assistant { text: "hello".into(), calls: Vec::new(), opaque: None };
    vec![Message::user("say hello"), hello]
}

fn fine(_: &Call) -> (String, bool) {
    ("fine".into(), false)
}

fn broken(_: &Call) -> (String, bool) {
    ("it is broken".into(), true)
}

fn refused(_: &Call) -> (String, bool) {
    (NO.into(), true)
}
