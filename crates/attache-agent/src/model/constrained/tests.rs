//! What is made of answers in JSON, good and bad.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures_util::FutureExt;

use super::*;
use crate::model::{Call, End, ToolSpec};

/// What comes of an answer in these parts: what is said, the call, and why it ended.
fn story(parts: &[&str], reason: EndReason) -> (String, Option<(String, String)>, EndReason) {
    let end = Piece::End(End { reason, ..End::default() });
    let parts = parts.iter().map(|part| Ok(Piece::Text((*part).to_owned()))).chain([Ok(end)]);
    let answer = stream::iter(parts.collect::<Vec<_>>()).boxed();
    let pieces = unwrap(answer, constrained(&request())).collect::<Vec<_>>().now_or_never().unwrap();
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

/// A reader that gets by without asking a second time.
fn constrained(request: &Request) -> Constrained {
    Constrained::new(request, request.clone(), Box::new(|_| panic!("nothing is asked for")))
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
    check(" {\n \"action\" : \"read_file\" , \"arguments\" : {\"path\":\"a\"} } and more", "", read);
    check(r#"{"name":"read_file","parameters":{"path":"a"}}"#, "", read);
    check("```json\n{\"action\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```", "", read);
    check("```json\n{\"action\":\"done\",\"arguments\":{\"message\":\"hi\"}}\n```", "hi", None);
    check(r#"{"action":"done","arguments":{}}"#, "Done.", None);
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

/// What comes of a file that is asked for apart: the request for it, and the call.
fn written(text: &str, reason: EndReason) -> (Vec<Message>, String) {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let spec = |name: &str| ToolSpec { name: name.into(), description: String::new(), schema: schema.clone() };
    let tools = vec![spec("read_file"), spec("write_file")];
    let request = Request { tools, messages: vec![Message::user("mend it")], ..Request::default() };
    let (shaped, _) = shape(&request);
    let usage = Usage { input: 10, cached: 5, output: 1, ..Usage::default() };
    let end = move |reason| Ok(Piece::End(End { reason, usage, ..End::default() }));
    let first = r#"{"action":"write_file","arguments":{"path":"a.py"}}"#;
    let first = stream::iter([Ok(Piece::Text(first.into())), end(EndReason::Done)]).boxed();
    let (sender, asked) = std::sync::mpsc::channel();
    let second = stream::iter([Ok(Piece::Text(text.into())), end(reason)]).boxed();
    let ask = Box::new(move |request: Request| {
        sender.send(request.messages).unwrap();
        futures_util::future::ready(second).boxed()
    });
    let pieces = unwrap(first, Constrained::new(&request, shaped, ask)).collect::<Vec<_>>().now_or_never().unwrap();
    let call = pieces.iter().find_map(|piece| match piece {
        Ok(Piece::Call(call)) => Some(call.arguments.clone()),
        _ => None,
    });
    let Some(Ok(Piece::End(last))) = pieces.last() else { panic!("no end: {pieces:?}") };
    assert_eq!((last.usage.input, last.reason), (20, EndReason::Done));
    (asked.recv().unwrap(), call.unwrap())
}

#[test]
fn the_text_of_a_file_is_asked_for_apart() {
    let (asked, call) = written("```python\nprint(\"hi\")\n```", EndReason::Done);
    assert_eq!(call, r#"{"path":"a.py","content":"print(\"hi\")\n"}"#);
    let [.., action, wanted] = asked.as_slice() else { panic!("too few") };
    assert_eq!(*action, assistant(r#"{"action":"write_file","arguments":{"path":"a.py"}}"#.into()));
    assert_eq!(*wanted, Message::user(text_wanted("a.py", "mend it")));
    for (text, content) in [
        ("Here:\n\n```\na\n```\nThat is it.", "a\n"),
        ("no block\n", "no block\n"),
        ("```md\n# A\n```sh\nls\n```\n```", "# A\n```sh\nls\n```\n"),
        ("```\n```", ""),
    ] {
        assert_eq!(written(text, EndReason::Done).1, json!({"path": "a.py", "content": content}).to_string(), "{text}");
    }
    // What was cut off is not written.
    for (text, reason) in [("```\na\n", EndReason::Done), ("```\na\n```", EndReason::MaxTokens)] {
        assert!(serde_json::from_str::<Value>(&written(text, reason).1).is_err(), "{text}");
    }
    // The conversation reads the same when it goes on.
    let call =
        Call { id: "1".into(), name: "write_file".into(), arguments: r#"{"path":"a.py","content":"a\n"}"#.into() };
    let said = plain(&Message::Assistant { text: String::new(), calls: vec![call], opaque: None }, Some("mend it"));
    assert_eq!(said, [action.clone(), wanted.clone(), assistant("```\na\n```".into())]);
}
