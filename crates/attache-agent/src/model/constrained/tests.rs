//! What is made of answers in JSON, good and bad.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures_util::FutureExt;

use super::*;
use crate::model::{Call, End, ToolSpec};

/// What comes of an answer in these parts: what is said, the tool, and how it ended.
fn check(parts: &[&str], reason: EndReason, said: &str, tool: Option<(&str, &str)>, ending: &str) {
    let end = Piece::End(End { reason, ..End::default() });
    let parts = parts.iter().map(|part| Ok(Piece::Text((*part).to_owned()))).chain([Ok(end)]);
    let answer = stream::iter(parts.collect::<Vec<_>>()).boxed();
    let pieces = unwrap(answer, Constrained::new(&[])).collect::<Vec<_>>().now_or_never().unwrap();
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut last = "";
    for piece in &pieces {
        match piece {
            Ok(Piece::Text(more)) => text.push_str(more),
            Ok(Piece::Call(Call { name, arguments, .. })) => calls.push((name.as_str(), arguments.as_str())),
            Ok(Piece::End(_)) => last = "end",
            Err(_) => last = "error",
            Ok(_) => {}
        }
    }
    assert_eq!((text.as_str(), calls.first().copied(), last), (said, tool, ending), "{pieces:?}");
}

/// Checks an answer whole, and again sign by sign.
fn check_done(answer: &str, said: &str, tool: Option<(&str, &str)>, ending: &str) {
    check(&[answer], EndReason::Done, said, tool, ending);
    let signs: Vec<String> = answer.chars().map(String::from).collect();
    let signs: Vec<&str> = signs.iter().map(String::as_str).collect();
    check(&signs, EndReason::Done, said, tool, ending);
}

#[test]
fn what_is_said_and_the_tool_are_taken_apart() {
    let read = Some(("read", r#"{"path":"a"}"#));
    check_done(r#"{"say": "hello", "tool": null}"#, "hello", None, "end");
    check_done(r#"{"say":"I look.","tool":{"name":"read","parameters":{"path":"a"}}}"#, "I look.", read, "end");
    check_done(r#"{"tool":{"name":"read","parameters":{"path":"a"}},"say":"after"}"#, "after", read, "end");
    check_done(r#"{"say":"","tool":{"name":"list"}}"#, "", Some(("list", "{}")), "end");
    check_done("```json\n{\"say\":\"hi\",\"tool\":null}\n```", "hi", None, "end");
    check_done(r#" {"say":"one","tool":null} and more"#, "one", None, "end");
}

#[test]
fn escapes_are_read() {
    check_done(
        r#"{"say":"a\n\t\"b\"\\\/ \u00e9 \ud83d\ude00 é 😀","tool":null}"#,
        "a\n\t\"b\"\\/ é 😀 é 😀",
        None,
        "end",
    );
    check_done(
        "{\"say\":\"two\nlines\",\"tool\":{\"name\":\"w\",\"parameters\":{\"t\":\"a\tb\"}}}",
        "two\nlines",
        Some(("w", r#"{"t":"a\tb"}"#)),
        "end",
    );
}

#[test]
fn only_the_outer_say_is_said() {
    check_done(r#"{"x":{"say":"no"},"y":["say","no"],"say":"yes","tool":null}"#, "yes", None, "end");
}

#[test]
fn what_is_not_the_json_that_was_asked_for_is_said_as_it_is() {
    for answer in [
        "Just words.",
        "  [1, 2]",
        "{\"other\": 1}",
        "{broken",
        "`code` is plain too, and long\n{}",
        "```rust fn main\nx",
    ] {
        check_done(answer, answer, None, "end");
    }
}

#[test]
fn half_an_answer_is_an_error_unless_the_limit_cut_it() {
    let half = [r#"{"say":"I begin","tool":{"name":"read","para"#];
    check(&half, EndReason::Done, "I begin", None, "error");
    check(&half, EndReason::MaxTokens, "I begin", None, "end");
    check(&[r#"{"say":"a \ud83d"#], EndReason::MaxTokens, "a ", None, "end");
    check_done(r#"{"say":"a \uZZéé b","tool":null}"#, "a \u{fffd}ZZéé b", None, "error");
    check_done(r#"{"say":"a \ud83d b","tool":null}"#, "a \u{fffd} b", None, "error");
}

#[test]
fn a_request_is_put_without_tools() {
    let call = |name: &str| Call { id: "1".into(), name: name.into(), arguments: r#"{"path":"a"}"#.into() };
    let request = Request {
        system: "Be kind.".into(),
        messages: vec![
            Message::user("hi"),
            Message::Assistant { text: "I look.".into(), calls: vec![call("read"), call("list")], opaque: None },
            Message::Tool { id: "1".into(), name: "read".into(), parts: vec![Part::text("x")], is_error: true },
        ],
        tools: vec![ToolSpec { name: "read".into(), description: "Reads.".into(), schema: json!({"type":"object"}) }],
        ..Request::default()
    };
    let (shaped, schema) = shape(&request);
    assert!(shaped.tools.is_empty());
    assert!(shaped.system.starts_with("Be kind.") && shaped.system.contains("## read\n\nReads."));
    assert_eq!(schema.pointer("/properties/tool/anyOf/1/properties/name/enum/0"), Some(&json!("read")));
    let Message::Assistant { text, calls, .. } = &shaped.messages[1] else { panic!("not the assistant") };
    assert!(calls.is_empty() && text.lines().count() == 2 && text.contains(r#""say":"I look.""#), "{text}");
    let Message::User { parts } = &shaped.messages[2] else { panic!("not the user") };
    assert_eq!(parts[0], Part::text("What `read` failed:\n"));
}
