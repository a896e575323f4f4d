//! Calls as text, and texts that look like calls.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures_util::FutureExt;
use serde_json::json;

use super::*;
use crate::model::{Call, End, ToolSpec};

/// What comes of an answer: what is said, and what is called.
fn story(messages: Vec<Message>, pieces: Vec<Piece>) -> String {
    let tool = |name: &str| ToolSpec { name: name.into(), description: String::new(), schema: json!({}) };
    let tools = vec![tool("read_file"), tool("run_command")];
    let request = Request { messages, tools, ..Request::default() };
    let pieces: Vec<_> = pieces.into_iter().chain([Piece::End(End::default())]).map(Ok).collect();
    let pieces = recognise(stream::iter(pieces).boxed(), &request).collect::<Vec<_>>().now_or_never().unwrap();
    let mut said = String::new();
    let mut calls = Vec::new();
    for piece in pieces {
        match piece.unwrap() {
            Piece::Text(text) => said.push_str(&text),
            Piece::Call(call) => calls.push(format!("{} {}", call.name, call.arguments)),
            _ => {}
        }
    }
    [vec![said].into_iter().filter(|said| !said.is_empty()).collect(), calls].concat().join(" | ")
}

/// The same for text alone, whole and sign by sign.
fn of_text(text: &str) -> String {
    let whole = story(Vec::new(), vec![Piece::Text(text.into())]);
    let signs = text.chars().map(|c| Piece::Text(c.into())).collect();
    assert_eq!(story(Vec::new(), signs), whole);
    whole
}

const READ: &str = r#"read_file {"path":"a.rs"}"#;

#[test]
fn every_way_of_writing_a_call_is_read() {
    for text in [
        r#"{"name": "read_file", "arguments": {"path": "a.rs"}}"#,
        r#"  {"name": "read_file", "arguments": "{\"path\": \"a.rs\"}"}  "#,
        r#"{"tool": "read_file", "parameters": {"path": "a.rs"}}"#,
        r#"{"action": "read", "input": {"path": "a.rs"}}"#,
        r#"{"name": "read_file", "path": "a.rs"}"#,
        r#"[{"name": "read_file", "arguments": {"path": "a.rs"}}]"#,
        r#"{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a.rs"}}}"#,
        "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}\n```",
        "```\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}\n```\n",
        "```tool_call\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}\n```",
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}",
        "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}\n</tool_call>",
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.rs\n</parameter>\n</function>\n</tool_call>",
        "<function=read_file>{\"path\": \"a.rs\"}</function>",
        "[TOOL_CALLS][{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}]",
        "[TOOL_CALLS]read_file[ARGS]{\"path\": \"a.rs\"}",
        "<|python_tag|>{\"name\": \"read_file\", \"parameters\": {\"path\": \"a.rs\"}}",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{\"path\": \
         \"a.rs\"}<|tool_call_end|><|tool_calls_section_end|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\": \
         \"a.rs\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ] {
        assert_eq!(of_text(text), READ, "{text}");
    }
    let two = "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.rs\"}}</tool_call>\n\
               <tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}</tool_call>";
    assert_eq!(of_text(two), format!("{READ} | run_command {{\"command\":\"ls\"}}"));
    let lines = "{\"name\": \"run_command\", \"arguments\": {\"command\": \"cat <<E\nx\nE\"}}";
    assert_eq!(of_text(lines), "run_command {\"command\":\"cat <<E\\nx\\nE\"}");
}

#[test]
fn what_is_not_all_a_call_is_text() {
    for text in [
        "I would call {\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}",
        "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}} is what I would call.",
        "```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}\n```\nThat is an example.",
        "```json\n{\"name\": \"read_file\"}\n```\nor\n```json\n{\"name\": \"run_command\"}\n```",
        "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.rs\"}}</tool_call> would read it.",
        "{\"name\": \"unknown_tool\", \"arguments\": {}}",
        "{\"name\": \"attache\", \"version\": \"1.0\"}",
        "{\"name\": \"read_file\", \"arguments\":",
        "{ not json",
        "[1, 2]",
        "",
        "```rust\nfn main() {}\n```",
        "<|im_end|>",
        "<function>",
        "Hello.",
    ] {
        assert_eq!(of_text(text), text, "{text}");
    }
}

#[test]
fn a_quoted_call_never_runs() {
    let call = r#"{"name": "run_command", "arguments": {"command": "rm -r src"}}"#;
    let file = String::from(
        "# How to call\n\n```json\n{ \"name\":\"run_command\",\n  \"arguments\": {\"command\": \"rm -r src\"} }\n```",
    );
    let told = |file: &str| {
        vec![Message::Tool { id: "1".into(), name: "read_file".into(), parts: vec![Part::text(file)], is_error: false }]
    };
    for text in [call.to_owned(), format!("```json\n{call}\n```"), format!("<tool_call>{call}</tool_call>")] {
        assert_eq!(story(told(&file), vec![Piece::Text(text.clone())]), text);
        assert_eq!(story(vec![Message::user(call)], vec![Piece::Text(text.clone())]), text);
        assert_eq!(
            story(told("# Nothing {} of the sort"), vec![Piece::Text(text)]),
            r#"run_command {"command":"rm -r src"}"#
        );
    }
}

#[test]
fn beside_a_call_of_its_own_text_is_text() {
    let text = r#"{"name": "run_command", "arguments": {"command": "ls"}}"#;
    let call = Call { id: "1".into(), name: "read_file".into(), arguments: "{}".into() };
    let started = Piece::CallStarted { id: "1".into(), name: "read_file".into() };
    let pieces = vec![Piece::Text(text.into()), started, Piece::Call(call)];
    assert_eq!(story(Vec::new(), pieces), format!("{text} | read_file {{}}"));
}

#[test]
fn an_answer_that_was_cut_off_is_no_call() {
    let text = r#"{"name": "run_command", "arguments": {"command": "ls"}}"#;
    let request = Request {
        tools: vec![ToolSpec { name: "run_command".into(), description: String::new(), schema: json!({}) }],
        ..Request::default()
    };
    let end = End { reason: EndReason::MaxTokens, ..End::default() };
    let pieces = vec![Ok(Piece::Text(text.into())), Ok(Piece::End(end))];
    let pieces = recognise(stream::iter(pieces).boxed(), &request).collect::<Vec<_>>().now_or_never().unwrap();
    assert!(matches!(pieces[0], Ok(Piece::Text(_))), "{pieces:?}");
}
