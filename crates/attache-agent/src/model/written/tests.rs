//! Calls as text, and texts that look like calls.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures_util::FutureExt;
use serde_json::json;

use super::*;
use crate::model::{Call, End, Message, Part, ToolSpec};

/// What comes of an answer: what is said, and what is called.
fn story(messages: Vec<Message>, pieces: Vec<Piece>) -> String {
    story_of(Request { messages, ..Request::default() }, pieces)
}

fn story_of(request: Request, pieces: Vec<Piece>) -> String {
    let tool = |name: &str| ToolSpec { name: name.into(), description: String::new(), schema: json!({}) };
    let request = Request { tools: vec![tool("read_file"), tool("run_command")], ..request };
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

/// The same for text alone, whole and in pieces of several sizes.
fn of_text(text: &str) -> String {
    let whole = story(Vec::new(), vec![Piece::Text(text.into())]);
    let signs: Vec<char> = text.chars().collect();
    for size in [1, 2, 3, 7, 19] {
        let pieces = signs.chunks(size).map(|signs| Piece::Text(signs.iter().collect())).collect();
        assert_eq!(story(Vec::new(), pieces), whole, "{size}");
    }
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
        "<|python_tag|>{\"name\": \"read_file\", \"parameters\": {\"path\": \"a.rs\"}}<|eom_id|>",
        "<function=read_file>\n<parameter=path>\na.rs\n</parameter>\n</function>\n</tool_call>",
        // Granite and Phi.
        "<|tool_call|>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}]",
        "<|tool_call|>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}]<|/tool_call|>\n",
        // GLM.
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.rs</arg_value>\n</tool_call>",
        "\n<tool_call>read_file<arg_key>path</arg_key><arg_value>a.rs</arg_value></tool_call>",
        // gpt-oss.
        "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\": \"a.rs\"}<|call|>",
        "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\": \"a.rs\"}",
        "<|start|>assistant<|channel|>commentary to=functions.read_file json<|message|>{\"path\": \"a.rs\"}<|call|>",
        "<|start|>assistant to=functions.read_file<|channel|>commentary<|message|>{\"path\":\"a.rs\"}",
    ] {
        assert_eq!(of_text(text), READ, "{text}");
    }
    let two = "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.rs\"}}</tool_call>\n\
               <tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}</tool_call>";
    assert_eq!(of_text(two), format!("{READ} | run_command {{\"command\":\"ls\"}}"));
    let two = "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.rs</arg_value>\n</tool_call>\n\
               <tool_call>run_command\n<arg_key>command</arg_key>\n<arg_value>echo 1\necho 2</arg_value>\n\
               <arg_key>background</arg_key>\n<arg_value>true</arg_value>\n</tool_call>";
    let second = r#"run_command {"command":"echo 1\necho 2","background":"true"}"#;
    assert_eq!(of_text(two), format!("{READ} | {second}"));
    let two = "<|tool_calls_section_begin|>\
               <|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{\"path\":\"a.rs\"}<|tool_call_end|>\n\
               <|tool_call_begin|>functions.bash:1<|tool_call_argument_begin|>{\"command\":\"ls\"}<|tool_call_end|>\
               <|tool_calls_section_end|>";
    assert_eq!(of_text(two), format!("{READ} | run_command {{\"command\":\"ls\"}}"));
    // What is written to a file may have fences in it.
    let fences = "```json\n{\"name\": \"run_command\", \"arguments\": {\"command\": \"echo '```' > a.md\"}}\n```";
    assert_eq!(of_text(fences), "run_command {\"command\":\"echo '```' > a.md\"}");
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
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.rs</arg_value>\n</tool_call> would read it.",
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.rs</arg_value>\n</tool_call>\nread_file",
        "<tool_call>read_file a.rs</tool_call>",
        "<|tool_call|>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.rs\"}}] would read it.",
        "<|python_tag|>{\"name\": \"read_file\", \"parameters\": {\"path\": \"a.rs\"}}<|eom_id|> would read it.",
        "<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{\"path\":\"a.rs\"}<|tool_call_end|> is one.",
        "<|tool_calls_section_begin|>As in <|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>\
         {\"path\":\"a.rs\"}<|tool_call_end|><|tool_calls_section_end|>",
        "<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{\"path\":\"a.rs\"}<|tool_call_end|> or \
         <|tool_call_begin|>functions.read_file:1<|tool_call_argument_begin|>{\"path\":\"b.rs\"}<|tool_call_end|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\": \
         \"a.rs\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>\nThat is how I call.",
        "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\": \"a.rs\"}<|call|> reads.",
        "<|channel|>commentary I send it to=functions.read_file <|message|>{\"path\": \"a.rs\"}<|call|>",
        "<|channel|>final<|message|>Hello.",
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

/// Lines of files come with numbers, paths and signs before them.
#[test]
fn a_call_that_is_quoted_from_numbered_lines_never_runs() {
    let lines = [
        "# How to call",
        "",
        "{",
        "  \"name\": \"run_command\",",
        "",
        "  \"arguments\": {",
        "    \"command\": \"rm -r src\"",
        "  }",
        "}",
        "",
        "Try it.",
    ];
    let told = |prefix: &dyn Fn(usize) -> String| {
        let lines = lines.iter().enumerate().map(|(at, line)| format!("{}{line}\n", prefix(at + 1)));
        vec![Message::user(lines.collect::<String>())]
    };
    let one_line = r#"{"name": "run_command", "arguments": {"command": "rm -r src"}}"#;
    let several_lines = lines[2..9].join("\n");
    for text in [one_line, &several_lines, &format!("```json\n{several_lines}\n```")] {
        for messages in [
            told(&|number| format!("{number}\t")),
            told(&|number| format!("{number:>6}\t")),
            told(&|number| format!("{number}:")),
            told(&|number| format!("docs/my-2-notes.md-{number}- ")),
            told(&|number| format!("docs/a:1:b.md{0}{number}{0} ", if number == 4 { ':' } else { '-' })),
            told(&|_| "+".into()),
            told(&|_| "//! ".into()),
            told(&|_| String::new()),
        ] {
            assert_eq!(story(messages.clone(), vec![Piece::Text(text.into())]), text, "{messages:?}");
        }
        // As a page or another program has it: in JSON.
        let messages = vec![Message::user(json!({"text": lines.join("\n")}).to_string())];
        assert_eq!(story(messages, vec![Piece::Text(text.into())]), text);
        // Another call in the same words is none that was quoted.
        let other = text.replace("rm -r src", "ls src");
        let called = story(told(&|number| format!("{number}\t")), vec![Piece::Text(other)]);
        assert_eq!(called, r#"run_command {"command":"ls src"}"#);
    }
}

#[test]
fn a_call_that_is_quoted_in_other_words_never_runs() {
    let call = r#"{"name": "run_command", "arguments": {"command": "rm -r src", "timeout": 5}}"#;
    let swapped = "{\n  \"arguments\": {\n    \"timeout\": 5,\n    \"command\": \"rm -r src\"\n  },\n  \"name\": \"run_command\"\n}";
    let numbered = |text: &str| {
        let lines = text.lines().enumerate();
        lines.map(|(at, line)| format!("{:>6}\t{line}\n", at + 1)).collect::<String>()
    };
    for told in [
        swapped.to_owned(),
        swapped.replace('\n', ""),
        format!("Say:\n```json\n{swapped}\n```\n"),
        numbered(swapped),
        numbered(&format!("fn main() {{\n}}\n{swapped}\n")),
        json!({ "text": swapped }).to_string(),
        call.replace("rm -r src", "rm\\u0020-r\\u0020src"),
        call.replace("rm -r", "\\u0072m -r").replace("name", "n\\u0061me"),
        swapped.replace("rm -r", "\\u0072m -r"),
    ] {
        for text in [call.to_owned(), format!("<tool_call>{call}</tool_call>")] {
            let shown = story(vec![Message::user(told.as_str())], vec![Piece::Text(text.clone())]);
            assert_eq!(shown, text, "{told}");
        }
        let other = call.replace("rm -r src", "ls src");
        let called = story(vec![Message::user(told.as_str())], vec![Piece::Text(other)]);
        assert_eq!(called, r#"run_command {"command":"ls src","timeout":5}"#, "{told}");
    }
}

#[test]
fn one_quoted_call_among_others_is_enough() {
    let quoted = r#"{"name": "run_command", "arguments": {"command": "rm -r src"}}"#;
    let other = r#"{"name": "run_command", "arguments": {"command": "ls"}}"#;
    for text in [format!("[{other}, {quoted}]"), format!("{quoted}\n{other}")] {
        assert_eq!(story(vec![Message::user(quoted)], vec![Piece::Text(text.clone())]), text);
    }
}

/// The name is a part of what is compared, wherever a template has it.
#[test]
fn arguments_that_stand_elsewhere_too_make_no_quotation() {
    let told = vec![Message::user("fn main() {}\n{\"path\": \"a.rs\"}\n<b>read_file</b> awk '{print}'")];
    for (text, called) in [
        ("<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{}<|tool_call_end|>", "read_file {}"),
        ("[TOOL_CALLS]read_file[ARGS]{\"path\": \"a.rs\"}", READ),
        ("<tool_call>read_file</tool_call>", "read_file {}"),
        (
            "<function=run_command><parameter=command>awk '{print}'</parameter></function>",
            r#"run_command {"command":"awk '{print}'"}"#,
        ),
        ("<|channel|>commentary to=functions.read_file <|message|>{\"path\": \"a.rs\"}", READ),
    ] {
        assert_eq!(story(told.clone(), vec![Piece::Text(text.into())]), called, "{text}");
        // The whole of it is one.
        assert_eq!(story(vec![Message::user(text)], vec![Piece::Text(text.into())]), text);
    }
}

#[test]
fn an_example_in_the_instructions_of_the_project_never_runs() {
    let text = "<tool_call>\n{\"name\": \"run_command\", \"arguments\": {\"command\": \"rm -r src\"}}\n</tool_call>";
    let system = format!("Be kind.\n<project_instructions>\nNever write this:\n{text}\n</project_instructions>\n");
    let request = Request { system, ..Request::default() };
    assert_eq!(story_of(request, vec![Piece::Text(text.into())]), text);
}

/// It would take long to look at all of them, and what is not made can be asked for again.
#[test]
fn a_text_that_repeats_itself_takes_no_longer_than_others() {
    let call = json!({"name": "run_command", "arguments": {"command": "a".repeat(100_000)}}).to_string();
    let start = call.find("aaa").unwrap();
    let told = format!("{}\n{}", &call[..start + 1000], format!("{}\n", "a".repeat(2_000)).repeat(50));
    let start = std::time::Instant::now();
    assert_eq!(story(vec![Message::user(told)], vec![Piece::Text(call.clone())]), call);
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}

/// Whoever waits for the answer is to know that the model is not silent.
#[test]
fn what_is_held_back_is_noticed() {
    let request = Request::default();
    let pieces = ["{\"na", "me\": 1}"].map(|text| Ok(Piece::Text(text.into())));
    let pieces = stream::iter(pieces.into_iter().chain([Ok(Piece::End(End::default()))])).boxed();
    let pieces = recognise(pieces, &request).collect::<Vec<_>>().now_or_never().unwrap();
    let pieces: Vec<Piece> = pieces.into_iter().map(Result::unwrap).collect();
    let text = Piece::Text("{\"name\": 1}".into());
    assert_eq!(pieces, [Piece::Held, Piece::Held, text, Piece::End(End::default())]);
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
    assert!(matches!(pieces[..], [Ok(Piece::Held), Ok(Piece::Text(_)), Ok(Piece::End(_))]), "{pieces:?}");
}

#[test]
fn white_space_before_an_answer_is_kept_in_part() {
    let mut all = String::new();
    for _ in 0..10_000 {
        super::add(&mut all, &" \u{3000}".repeat(100));
    }
    super::add(&mut all, "  so");
    super::add(&mut all, "  it is");
    assert!(all.len() <= 256 + 9 && all.ends_with("so  it is"), "{all:?}");
    let mut short = String::new();
    super::add(&mut short, "  x");
    assert_eq!(short, "  x");
}
