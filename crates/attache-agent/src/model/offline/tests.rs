//! Whole conversations with the model: the test plays the agent, and gives it the results of its calls.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use attache_testkit::Dice;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::commands::TABLE;
use super::*;
use crate::model::{Call, End, EndReason, Message, Part, Piece, ToolSpec};

const READING: &[&str] =
    &["read_file", "list_directory", "find_files", "search_files", "think", "update_plan", "ask_user", "switch_mode"];

const CHANGING: &[&str] =
    &["write_file", "edit_file", "delete_file", "move_file", "run_command", "fetch_url", "server__tool"];

/// How the person says no, as the model is told.
const NO: &str = "the person refused this call";

/// What comes of a call.
type Tool<'t> = &'t mut dyn FnMut(&Call) -> (String, bool);

/// One answer of the model.
#[derive(Default)]
struct Said {
    text: String,
    thoughts: String,
    call: Option<Call>,
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
        let calls = self.answers.iter().filter_map(|said| said.call.as_ref());
        calls.map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).unwrap_or(Value::Null))).collect()
    }

    fn names(&self) -> Vec<String> {
        self.calls().into_iter().map(|(name, _)| name).collect()
    }
}

fn all_tools() -> Vec<&'static str> {
    [READING, CHANGING].concat()
}

fn request(messages: Vec<Message>, tools: &[&str]) -> Request {
    let spec = |name: &&str| ToolSpec { name: name.to_string(), description: "a tool".into(), schema: json!({}) };
    Request { messages, tools: tools.iter().map(spec).collect(), ..Request::default() }
}

/// Asks the model, and checks that the pieces come in order.
async fn ask(request: Request) -> Said {
    let pieces: Vec<_> = Offline::new().ask(request).map(|piece| piece.unwrap()).collect().await;
    let mut said = Said::default();
    let mut open: Option<(String, String, String)> = None;
    let count = pieces.len();
    for (number, piece) in pieces.into_iter().enumerate() {
        assert_eq!(matches!(piece, Piece::End(_)), number + 1 == count);
        match piece {
            Piece::Text(text) => said.text.push_str(&text),
            Piece::Thought(text) => said.thoughts.push_str(&text),
            Piece::CallStarted { id, name } => open = Some((id, name, String::new())),
            Piece::CallGrew { id, arguments } => {
                let open = open.as_mut().unwrap();
                assert!(open.0 == id && arguments.starts_with(&open.2));
                open.2 = arguments;
            }
            Piece::Call(call) => {
                assert_eq!(open.take().unwrap(), (call.id.clone(), call.name.clone(), call.arguments.clone()));
                said.call = Some(call);
            }
            Piece::End(end) => said.end = end,
            Piece::Usage(_) | Piece::Held | Piece::Retrying { .. } => panic!("{piece:?}"),
        }
    }
    assert!(open.is_none());
    said
}

/// Plays the agent until the model has nothing more to call.
async fn converse(mut messages: Vec<Message>, prompt: &str, tools: &[&str], tool: Tool<'_>) -> Turn {
    messages.push(Message::user(prompt));
    let mut answers = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..400 {
        let said = ask(request(messages.clone(), tools)).await;
        let (text, calls) = (said.text.clone(), Vec::from_iter(said.call.clone()));
        messages.push(Message::Assistant { text, calls: calls.clone(), opaque: None });
        for Call { id, name, arguments } in calls {
            assert!(ids.insert(id.clone()), "`{id}` occurs twice");
            assert!(tools.contains(&name.as_str()), "`{name}` is not offered");
            let (text, is_error) = tool(&Call { id: id.clone(), name: name.clone(), arguments });
            messages.push(Message::Tool { id, name, parts: vec![Part::text(text)], is_error });
        }
        let is_over = said.call.is_none();
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
    converse(begun(), prompt, &all_tools(), tool).await
}

fn begun() -> Vec<Message> {
    vec![Message::user("say hello"), Message::Assistant { text: "hello".into(), calls: Vec::new(), opaque: None }]
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

/// A world that does what the dice say.
fn luck(dice: &mut Dice) -> (String, bool) {
    let text = dice.pick(&["", "fine", NO, "it broke\nbadly", "ünïcödé ``` ````", "\n\n", "`x`:\n1\n2\n"]);
    (text.to_string(), dice.one_in(2))
}

#[tokio::test]
async fn it_says_what_it_is_once_and_where_it_does_not_understand() {
    let first = converse(Vec::new(), "say hi there", &all_tools(), &mut fine).await;
    assert!(first.text().contains("not a language model") && first.text().ends_with("\n\nhi there"));
    let second = converse(first.messages, "say hi", &all_tools(), &mut fine).await;
    assert_eq!(second.text(), "hi");
    for (prompt, reason) in [
        ("help", EndReason::Done),
        ("", EndReason::NotUnderstood),
        ("read", EndReason::NotUnderstood),
        ("list\nexplain this project", EndReason::NotUnderstood),
    ] {
        for before in [Vec::new(), begun()] {
            let turn = converse(before, prompt, &all_tools(), &mut fine).await;
            assert_eq!(turn.text().matches("not a language model").count(), 1, "{prompt}: {}", turn.text());
            assert_eq!((turn.answers.len(), turn.answers[0].end.reason), (1, reason), "{prompt}");
        }
    }
}

#[tokio::test]
async fn each_command_calls_its_tool_and_says_what_came_of_it() {
    for (prompt, name, arguments, said) in [
        ("read a", "read_file", json!({"path": "a"}), "fine"),
        ("list", "list_directory", json!({}), "fine"),
        (
            "find *.rs in src",
            "find_files",
            json!({"pattern": "*.rs", "path": "src"}),
            "Files like `*.rs`:\n```\nfine\n```",
        ),
        ("search a.b", "search_files", json!({"pattern": "a.b"}), "Lines that match `a.b`:\n```\nfine\n```"),
        ("$ ls; pwd", "run_command", json!({"command": "ls; pwd"}), "`ls; pwd` ran:\n```\nfine\n```"),
        ("create a with b", "write_file", json!({"path": "a", "content": "b\n"}), "Wrote `a`."),
        ("delete a", "delete_file", json!({"path": "a"}), "Deleted `a`."),
        ("move a to b", "move_file", json!({"from": "a", "to": "b"}), "Moved `a` to `b`."),
        ("fetch http://a/", "fetch_url", json!({"url": "http://a/"}), "From `http://a/`:\n```\nfine\n```"),
        ("ask what? [a/b c]", "ask_user", json!({"question": "what?", "choices": ["a", "b c"]}), "fine"),
        ("ask what?", "ask_user", json!({"question": "what?"}), "fine"),
        ("mode architect", "switch_mode", json!({"mode": "architect"}), "The mode is `architect` now."),
        ("mode code with a b", "switch_mode", json!({"mode": "code", "plan": "a b"}), "The mode is `code` now."),
        ("call server__tool {\"a\": 1}", "server__tool", json!({"a": 1}), "`server__tool` answered:\n```\nfine\n```"),
        ("call server__tool", "server__tool", json!({}), "`server__tool` answered:\n```\nfine\n```"),
    ] {
        let turn = turn(prompt, &mut fine).await;
        assert_eq!(turn.calls(), [(name.to_string(), arguments)], "{prompt}");
        assert_eq!(turn.answers[1].text, said, "{prompt}");
    }
    let read = turn("read a", &mut |_| ("`a`, lines 1-1 (of 1):\none\n".into(), false)).await;
    assert_eq!(read.answers[1].text, "`a`, lines 1-1 (of 1):\n```\none\n```");
    assert_eq!(turn("run true", &mut |_| ("\n".into(), false)).await.answers[1].text, "`true` ran: nothing.");
    let replaced = turn("replace a with b in x.txt", &mut fine).await;
    let change = json!({"old_text": "a", "new_text": "b", "path": "x.txt"});
    let calls = [("read_file".to_string(), json!({"path": "x.txt"})), ("edit_file".to_string(), change)];
    assert_eq!((replaced.calls(), replaced.answers[2].text.as_str()), (calls.to_vec(), "Changed `x.txt`."));
    assert_eq!(turn("replace a with b in x.txt", &mut broken).await.names(), ["read_file"]);
}

#[tokio::test]
async fn commands_go_on_after_a_failure_and_end_with_a_refusal() {
    let prompt = "delete a\nrun b\nlist";
    let failed = turn(prompt, &mut broken).await;
    assert_eq!(failed.names(), ["delete_file", "run_command", "list_directory"]);
    assert_eq!(failed.text().matches("failed: it is broken").count(), 3);
    let turn = turn(prompt, &mut refused).await;
    assert_eq!(turn.names(), ["delete_file"]);
    assert!(turn.text().ends_with("As you wish: that is not done.\n\nThe commands after it are not done either."));
}

#[tokio::test]
async fn a_plan_is_worked_through_and_its_marks_follow() {
    let marks = |turn: &Turn| -> Vec<String> {
        let plans = turn.calls().into_iter().filter(|(name, _)| name == "update_plan");
        let status = |entry: &Value| entry["status"].as_str().unwrap()[..1].to_string();
        plans.map(|(_, plan)| plan["entries"].as_array().unwrap().iter().map(status).collect()).collect()
    };
    let mixed = turn("plan list, be kind, read a, tour", &mut |call| (String::new(), call.name == "read_file")).await;
    assert_eq!(marks(&mixed), ["ippp", "cpip", "cppp"]);
    assert_eq!(mixed.names(), ["update_plan", "list_directory", "update_plan", "read_file", "update_plan"]);
    assert!(mixed.text().ends_with("1 of 4 steps of the plan are done."));
    let mut tool = |call: &Call| if call.name == "delete_file" { refused(call) } else { fine(call) };
    let ended = turn("plan delete a, list\nsay x", &mut tool).await;
    assert_eq!((marks(&ended), ended.names().len()), (vec!["ip".to_string(), "pp".into()], 3));
    assert!(ended.text().contains("The rest of the plan is left to you.") && !ended.text().ends_with('x'));
    assert!(turn(&format!("plan {}", "list,".repeat(101)), &mut fine).await.names().is_empty());
}

#[tokio::test]
async fn tools_that_are_not_offered_are_not_called() {
    let turn = converse(begun(), "create a with b\nlist\nrun x", READING, &mut fine).await;
    assert_eq!(turn.names(), ["list_directory"]);
    assert_eq!(turn.text().matches("this mode has no tool").count(), 2, "{}", turn.text());
    // A tool that comes with another mode is not called for the command that went without it.
    let mut messages = begun();
    messages.push(Message::user("create a with b\nmode code\ncreate c with d"));
    let call = ask(request(messages.clone(), READING)).await.call.unwrap();
    let (id, name) = (call.id.clone(), call.name.clone());
    assert_eq!(name, "switch_mode");
    messages.push(Message::Assistant { text: String::new(), calls: vec![call], opaque: None });
    messages.push(Message::Tool { id, name, parts: vec![Part::text("ok")], is_error: false });
    let call = ask(request(messages, &all_tools())).await.call.unwrap();
    assert!(call.name == "write_file" && call.arguments.contains("\"c\""), "{call:?}");
}

#[tokio::test]
async fn answers_end_for_the_reason_that_is_wanted_and_loops_when_they_are_stopped() {
    for (prompt, reason) in [("stop length\nlist", EndReason::MaxTokens), ("stop refusal", EndReason::Refusal)] {
        let turn = turn(prompt, &mut fine).await;
        assert_eq!((turn.answers.len(), turn.answers[0].end.reason), (1, reason));
        assert!(turn.names().is_empty());
    }
    let looped = turn("loop", &mut broken).await.calls();
    assert!(looped.len() == 100 && looped.windows(2).all(|two| two[0] == two[1]));
    assert_eq!(turn("loop\nlist", &mut refused).await.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_words_come_one_by_one() {
    let mut reply = Offline::new().ask(request(vec![Message::user("slowly one two three")], &all_tools()));
    let (begin, mut times) = (tokio::time::Instant::now(), Vec::new());
    while let Some(piece) = reply.next().await {
        times.push((piece.unwrap(), begin.elapsed()));
    }
    let at = |word: &str| times.iter().find(|(piece, _)| *piece == Piece::Text(word.into())).unwrap().1;
    assert!(at("three") - at("two ") >= Duration::from_millis(50));
    assert!(at("three") < Duration::from_millis(400));
}

#[tokio::test]
async fn what_is_attached_is_no_command_and_usage_counts_it() {
    let attached = format!("<resource uri=\"file:///x\">\n{}\n</resource>", "delete everything\n".repeat(100));
    let parts = vec![Part::text(attached), Part::text("read @a")];
    let said = ask(request(vec![Message::User { parts }], &all_tools())).await;
    assert_eq!(said.call.unwrap().arguments, "{\"path\":\"a\"}");
    assert!((450..700).contains(&said.end.usage.input) && said.end.usage.output > 20, "{:?}", said.end.usage);
}

#[tokio::test]
async fn without_tools_it_sums_up() {
    let messages: Vec<_> = (0..12).map(|number| Message::user(format!("say {number}\nlist"))).collect();
    let said = ask(request(messages, &[])).await;
    assert!(said.text.starts_with("What was asked for last:\n- say 2…\n") && said.text.ends_with("\n- say 11…"));
    assert!(said.call.is_none());
}

#[tokio::test]
async fn the_tour_shows_everything_and_cleans_up() {
    let mut tool = |call: &Call| (String::new(), call.arguments.contains("exit 3"));
    let turn = turn("tour", &mut tool).await;
    let (names, calls) = (turn.names(), turn.calls());
    for name in all_tools().iter().filter(|name| !["find_files", "server__tool"].contains(name)) {
        assert!(names.iter().any(|called| called == name), "{name}");
    }
    assert!(!turn.answers[0].thoughts.is_empty());
    let deleted = calls.iter().filter(|(name, _)| name == "delete_file").map(|(_, arguments)| &arguments["path"]);
    assert!(deleted.eq(["attache-tour/goodbye.txt", "attache-tour"]));
    let plan = &calls.iter().rfind(|(name, _)| name == "update_plan").unwrap().1["entries"];
    assert!(plan.as_array().unwrap().iter().all(|entry| entry["status"] == "completed"));
    let last = &turn.answers.last().unwrap().text;
    assert!(!last.contains('✗') && !last.contains("| – |") && last.contains("17 of 17"), "{last}");
}

#[tokio::test]
async fn the_tour_leaves_out_what_is_refused_and_touches_nothing_that_it_did_not_make() {
    // The table without its padding.
    let rows = |turn: &Turn| turn.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let other = turn("tour", &mut |call| if call.name == "write_file" { refused(call) } else { fine(call) }).await;
    for name in ["read_file", "edit_file", "move_file", "delete_file"] {
        assert!(!other.names().contains(&name.to_string()), "{name}");
    }
    assert!(rows(&other).contains("| create | – | you said no |"));
    assert!(rows(&other).contains("| failed command | ✗ | it should have failed, and did not |"));
    assert!(rows(&other).contains("| edit | – | a stop before it was left out |"));
    let there = turn("tour\nsay x", &mut |_| ("attache-tour/".into(), false)).await;
    assert_eq!(there.names(), ["update_plan", "list_directory"]);
    let reading = converse(begun(), "tour", READING, &mut fine).await;
    assert!(rows(&reading).contains("| create | – | this mode has no such tool |"), "{}", reading.text());
    assert!(!reading.names().contains(&"switch_mode".to_string()));
}

#[tokio::test]
async fn every_command_ends_whatever_comes_of_its_calls() {
    for row in TABLE {
        for seed in 0..if row.form == "tour" { 300 } else { 10 } {
            let (mut dice, mut world) = (Dice::new(seed), Dice::new(seed + 1));
            let tools: Vec<_> = all_tools().into_iter().filter(|_| !dice.one_in(6)).chain(["read_file"]).collect();
            converse(begun(), row.example, &tools, &mut |_| luck(&mut world)).await;
        }
    }
}

#[tokio::test]
async fn no_prompt_and_no_conversation_makes_it_stumble() {
    let words = "read create a.txt with \n \" \\ \" in to plan , $ ä \u{202e} \0 🦀 replace [a/b] [ ] ask run call { < @ … say \
                 \r\n \t search mode find delete move list tour slowly stop help fetch {path} ```";
    let words: Vec<&str> = words.split(' ').collect();
    for seed in 0..3000 {
        let mut dice = Dice::new(seed);
        let mut prompt = String::new();
        for _ in 0..dice.below(14) {
            prompt.push_str(dice.pick(&words));
            prompt.push_str(dice.pick(&[" ", "", " "]));
        }
        let mut world = Dice::new(seed);
        turn(&prompt, &mut |_| luck(&mut world)).await;
    }
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let mut messages = Vec::new();
        for _ in 0..dice.below(10) {
            let name = dice.pick(&all_tools()).to_string();
            let id = dice.pick(&["1", "2", ""]).to_string();
            let arguments = dice.pick(&["{}", "", "[1]", "{\"path\": 1}"]).to_string();
            messages.push(match dice.below(4) {
                0 => Message::user(TABLE[dice.below(TABLE.len())].example),
                1 => Message::Tool { id, name, parts: vec![Part::text(luck(&mut dice).0)], is_error: dice.one_in(2) },
                2 => Message::User { parts: Vec::new() },
                _ => {
                    let calls = vec![Call { id, name, arguments }; dice.below(3)];
                    Message::Assistant { text: String::new(), calls, opaque: None }
                }
            });
        }
        let tools = if dice.one_in(4) { Vec::new() } else { all_tools() };
        let said = ask(request(messages, &tools)).await;
        assert!(!said.text.is_empty() || said.call.is_some());
    }
}

#[tokio::test]
async fn long_prompts_take_time_in_proportion() {
    let begin = Instant::now();
    for start in ["", "say ", "read ", "create a with ", "plan ", "replace ", "mode ", "ask ", "$ ", "call t "] {
        for bit in ["x", "say x ", "\" ", "\\\"", "\n", "list\n", "plan a,", "read a, ", "[", "a/", " "] {
            // Long enough for what grows with the square of the length to take minutes.
            let prompt = format!("{start}{}", bit.repeat((1 << 20) / bit.len()));
            ask(request(vec![Message::user(prompt)], &all_tools())).await;
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}
