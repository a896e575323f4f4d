//! What is made of answers in JSON, good and bad.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures_util::FutureExt;

use super::*;
use crate::model::{Call, End, ToolSpec};

/// What comes of an answer in these parts: what is said, the call, and why it ended.
fn story(parts: &[&str], reason: EndReason) -> (String, Option<(String, String)>, EndReason) {
    story_of(&request(), parts, reason)
}

fn story_of(request: &Request, parts: &[&str], reason: EndReason) -> (String, Option<(String, String)>, EndReason) {
    let end = Piece::End(End { reason, ..End::default() });
    let parts = parts.iter().map(|part| Ok(Piece::Text((*part).to_owned()))).chain([Ok(end)]);
    let answer = stream::iter(parts.collect::<Vec<_>>()).boxed();
    let pieces = unwrap(answer, Constrained::new(request)).collect::<Vec<_>>().now_or_never().unwrap();
    let (mut text, mut call, mut last) = (String::new(), None, EndReason::NotUnderstood);
    for piece in pieces {
        match piece.unwrap() {
            Piece::Text(more) => text.push_str(&more),
            Piece::Call(Call { name, arguments, .. }) => call = Some((name, arguments)),
            Piece::End(end) => last = end.reason,
            _ => {}
        }
    }
    (text, call, last)
}

/// Checks an answer whole, and again sign by sign.
fn check(answer: &str, said: &str, call: Option<(&str, &str)>) {
    let call = call.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
    let signs: Vec<String> = answer.chars().map(String::from).collect();
    let signs: Vec<&str> = signs.iter().map(String::as_str).collect();
    for parts in [&[answer][..], &signs] {
        assert_eq!(story(parts, EndReason::Done), (said.to_owned(), call.clone(), EndReason::Done));
    }
}

fn request() -> Request {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "Does it.".into(),
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    };
    Request { tools: vec![tool("read_file"), tool("edit_file")], ..Request::default() }
}

#[test]
fn an_answer_is_an_action_and_its_arguments() {
    let read = Some(("read_file", r#"{"path":"a"}"#));
    check(r#"{"action": "done", "arguments": {"message": "hello"}}"#, "hello", None);
    check(r#"{"action":"read_file","arguments":{"path":"a"}}"#, "", read);
    check(" {\n \"action\" : \"read_file\" , \"arguments\" : {\"path\":\"a\"} }\n", "", read);
    check(r#"{"name":"read_file","parameters":{"path":"a"}}"#, "", read);
    check("```json\n{\"action\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```", "", read);
    check("```json\n{\"action\":\"done\",\"arguments\":{\"message\":\"hi\"}}\n```", "hi", None);
    check(r#"{"action":"done","arguments":{}}"#, "Done.", None);
    // Of several, the first: what comes of it is told before the next.
    check(
        "{\"action\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n{\"action\":\"edit_file\",\"arguments\":{}}",
        "",
        read,
    );
    // Some keep to what they were taught.
    check("<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>", "", read);
    check("<|tool_call|>[{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}]", "", read);
    check(r#"{"arguments":{"message":"turned round"},"action":"done"}"#, "turned round", None);
}

#[test]
fn escapes_are_read() {
    check(
        r#"{"action":"done","arguments":{"message":"a\n\t\"b\"\\\/ \u00e9 \ud83d\ude00 é 😀"}}"#,
        "a\n\t\"b\"\\/ é 😀 é 😀",
        None,
    );
    check(r#"{"action":"done","arguments":{"message":"a \uZZéé b"}}"#, "a \u{fffd}ZZéé b", None);
    check(r#"{"action":"done","arguments":{"message":"a \ud83d b"}}"#, "a \u{fffd} b", None);
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
        "{\"action\":\"read_file\",\"arguments\":{\"path\":\"a\"}} and more",
        "```json\n{\"action\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```\nThat is an example.",
        "```json {\"action\":\"read_file\",\"arguments\":{\"path\":\"a\"}} ``` That is an example.",
        "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}</tool_call> would read it.",
        "<b>bold</b>",
    ] {
        check(answer, answer, None);
    }
}

#[test]
fn half_an_answer_is_told_to_the_model_and_not_done() {
    for reason in [EndReason::MaxTokens, EndReason::Done] {
        for half in
            [r#"{"action":"read_file","arguments":{"path":"a"#, r#"{"action":"read_file","arguments":{"path":"a"}"#]
        {
            let (said, call, reason) = story(&[half], reason);
            let (name, arguments) = call.unwrap();
            assert_eq!((said.as_str(), name.as_str(), reason), ("", "read_file", EndReason::Done));
            assert!(serde_json::from_str::<Value>(&arguments).is_err(), "{arguments}");
        }
    }
    // What was said of an end that was cut off stays said.
    let (said, call, reason) = story(&[r#"{"action":"done","arguments":{"message":"It is bl"#], EndReason::MaxTokens);
    assert_eq!((said.as_str(), call, reason), ("It is bl", None, EndReason::MaxTokens));
}

#[test]
fn a_request_is_put_without_tools() {
    let call = |name: &str| Call { id: "1".into(), name: name.into(), arguments: r#"{"path":"a"}"#.into() };
    let request = Request {
        system: "Be kind.".into(),
        messages: vec![
            Message::user("hi"),
            Message::Assistant { text: "I look.".into(), calls: vec![call("read_file"), call("x")], opaque: None },
            Message::Tool { id: "1".into(), name: "read_file".into(), parts: vec![Part::text("x")], is_error: true },
            Message::Assistant { text: "It is x.".into(), calls: Vec::new(), opaque: None },
        ],
        ..request()
    };
    let (shaped, schema) = shape(&request);
    assert!(shaped.tools.is_empty());
    assert!(shaped.system.starts_with("Be kind.\n# How") && shaped.system.contains("- read_file {path}: Does it.\n"));
    let names: Vec<&Value> =
        schema["oneOf"].as_array().unwrap().iter().map(|one| &one["properties"]["action"]["const"]).collect();
    assert_eq!(names, ["read_file", "edit_file", "done"]);
    assert_eq!(schema["oneOf"][0]["properties"]["arguments"]["required"], json!(["path"]));
    // An example comes first, and the action before its arguments.
    let [.., prompt, calls, result, answer] = shaped.messages.as_slice() else { panic!("too few") };
    assert_eq!((shaped.messages.len(), prompt), (6 + 4, &Message::user("hi")));
    assert_eq!(
        *calls,
        assistant(
            "I look.\n{\"action\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n\
             {\"action\":\"x\",\"arguments\":{\"path\":\"a\"}}"
                .into()
        )
    );
    assert_eq!(*result, Message::User { parts: vec![Part::text("ERROR of read_file:\n"), Part::text("x")] });
    assert_eq!(*answer, assistant("{\"action\":\"done\",\"arguments\":{\"message\":\"It is x.\"}}".into()));
    // Who has to finish can do nothing else.
    let (_, schema) = shape(&Request { finish: Finish::Must, ..request.clone() });
    assert_eq!(schema["oneOf"].as_array().unwrap().len(), 1);
    let (_, schema) = shape(&Request { finish: Finish::MayNot, ..request });
    assert!(!schema.to_string().contains("done"));
}

#[test]
fn a_quoted_call_is_said_and_not_done() {
    let call = r#"{"action":"read_file","arguments":{"path":"a"}}"#;
    let file = Message::Tool {
        id: "1".into(),
        name: "read_file".into(),
        parts: vec![Part::text("1\t{\n2\t  \"action\": \"read_file\",\n3\t  \"arguments\": {\"path\": \"a\"}\n4\t}\n")],
        is_error: false,
    };
    let instructions = Request { system: format!("Never answer {call}."), ..request() };
    for request in [Request { messages: vec![file], ..request() }, instructions] {
        for text in [call.to_owned(), format!("```json\n{call}\n```")] {
            assert_eq!(story_of(&request, &[&text], EndReason::Done), (text, None, EndReason::Done));
        }
    }
}

/// Nobody quotes our worked examples: whoever does what is done there means it.
#[test]
fn a_call_that_is_one_of_our_examples_is_done() {
    let mut request = request();
    request.tools.push(ToolSpec { name: "run_command".into(), description: String::new(), schema: json!({}) });
    let (shaped, _) = shape(&request);
    for (name, arguments) in
        [("read_file", r#"{"path":"square.py"}"#), ("run_command", r#"{"command":"mv notes.txt notes.md"}"#)]
    {
        let text = format!(r#"{{"action":"{name}","arguments":{arguments}}}"#);
        assert!(shaped.messages.contains(&assistant(text.clone())), "{text}");
        let call = Some((name.to_owned(), arguments.to_owned()));
        assert_eq!(story_of(&request, &[&text], EndReason::Done), (String::new(), call, EndReason::Done));
    }
}

#[test]
fn a_schema_with_references_is_whole_within_the_schema_of_the_answer() {
    let schema = json!({
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place"}},
        "$defs": {"Place": {"type": "object", "properties": {"line": {"type": "integer"}}}},
    });
    let tools = vec![ToolSpec { name: "look".into(), description: String::new(), schema }];
    let (_, schema) = shape(&Request { tools, ..Request::default() });
    let arguments = json!({
        "type": "object",
        "properties": {"at": {"type": "object", "properties": {"line": {"type": "integer"}}}},
        "additionalProperties": false,
    });
    assert_eq!(schema["oneOf"][0]["properties"]["arguments"], arguments);
}

#[test]
fn a_text_that_was_written_apart_is_not_told_again() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let spec = |name: &str| ToolSpec { name: name.into(), description: String::new(), schema: schema.clone() };
    let tools = vec![spec("read_file"), spec("write_file")];
    for (name, arguments) in [
        ("write_file", r#"{"path":"a.py","content":"a\n"}"#),
        ("edit_file", r#"{"path":"a.py","old_text":"a","new_text":"b"}"#),
    ] {
        let call = Call { id: "1".into(), name: name.into(), arguments: arguments.into() };
        let messages = vec![
            Message::Assistant { text: String::new(), calls: vec![call], opaque: None },
            Message::Tool { id: "1".into(), name: name.into(), parts: vec![Part::text("done")], is_error: false },
        ];
        let (shaped, _) = shape(&Request { tools: tools.clone(), messages, ..Request::default() });
        let [.., said, result] = shaped.messages.as_slice() else { panic!("too few") };
        assert_eq!(*said, assistant(r#"{"action":"write_file","arguments":{"path":"a.py"}}"#.into()));
        assert_eq!(*result, Message::User { parts: vec![Part::text("RESULT of write_file:\n"), Part::text("done")] });
    }
}
