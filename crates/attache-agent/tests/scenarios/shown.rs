//! What a client sees of calls: what they are from the first message on, what they found, and what they were given.

use std::fs;

use attache::Protocol;
use attache::model::Patch;
use attache::model::tool::{ToolCallContent, ToolCallUpdate};
use attache::model::update::SessionUpdate;
use attache_agent::ModelFacts;
use attache_testkit::model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::calling;
use crate::support::{Chat, DIALECTS, Person, World};

/// What came of each call, in the order in which they were seen first.
fn calls(chat: &Chat) -> Vec<Vec<ToolCallUpdate>> {
    let mut calls: Vec<Vec<ToolCallUpdate>> = Vec::new();
    for update in &chat.updates {
        let (SessionUpdate::ToolCall(update) | SessionUpdate::ToolCallUpdate(update)) = update else { continue };
        match calls.iter_mut().find(|call| call[0].tool_call_id == update.tool_call_id) {
            Some(call) => call.push((**update).clone()),
            None => calls.push(vec![(**update).clone()]),
        }
    }
    calls
}

/// Fails unless the first message of each call has the title and the kind that all others have. Gives the titles, with the
/// first place where there is one.
#[track_caller]
fn first_titles(world: &World, chat: &Chat) -> Vec<String> {
    let title = |call: Vec<ToolCallUpdate>| {
        let first = &call[0];
        for later in &call[1..] {
            assert!(later.title.set().is_none_or(|title| Some(title) == first.title.set()), "{call:#?}");
            assert!(later.kind.set().is_none_or(|kind| Some(kind) == first.kind.set()), "{call:#?}");
        }
        let place = first.locations.set().and_then(|locations| locations.first()).map(|location| {
            let path = location.path.replace(world.project().to_str().unwrap(), "~");
            format!(" {path}{}", location.line.map(|line| format!(":{line}")).unwrap_or_default())
        });
        format!("{}{}", first.title.set().unwrap(), place.unwrap_or_default())
    };
    calls(chat).into_iter().map(title).collect()
}

fn content(call: &[ToolCallUpdate]) -> String {
    let last = call.iter().rev().find_map(|update| update.content.set()).cloned().unwrap_or_default();
    let text = |part: &ToolCallContent| match part {
        ToolCallContent::Content(block) => block.content.as_text().unwrap_or_default().to_owned(),
        other => format!("{other:?}"),
    };
    last.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn raw(call: &[ToolCallUpdate], of: fn(&ToolCallUpdate) -> &Patch<attache::model::RawJson>) -> Value {
    let raw = call.iter().rev().find_map(|update| of(update).set()).map(|raw| raw.as_str());
    raw.map_or(Value::Null, |raw| serde_json::from_str(raw).unwrap())
}

#[tokio::test]
async fn a_call_is_what_it_is_from_its_first_message_on() {
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"] {
        for protocol in DIALECTS {
            let answer = Answer::text("All at once.")
                .call("read_file", json!({"path": "src/main.rs", "line": 2}))
                .call("cat", json!({"file": "src/main.rs"}))
                .call("list_directory", json!({}))
                .call("find_files", json!({"pattern": "*.rs"}))
                .call("search_files", json!({"pattern": "main", "path": "src"}))
                .call("write_file", json!({"path": "new.txt", "content": "long ".repeat(2_000)}))
                .call("edit_file", json!({"path": "src/main.rs", "old_text": "main", "new_text": "other"}))
                .call("move_file", json!({"from": "old.txt", "to": "older.txt"}))
                .call("delete_file", json!({"path": "gone.txt"}))
                .call("run_command", json!({"command": "true\nfalse"}))
                .call("update_plan", json!({"entries": [{"content": "a", "status": "pending"}]}))
                .call("think", json!({"thought": "hm"}));
            let world = World::of(model, vec![answer, Answer::text("Done.")]).await;
            world.put("src/main.rs", "\nfn main() {}\n");
            world.put("old.txt", "");
            world.put("gone.txt", "");
            let mut chat = world.open(Person::at(protocol)).await;
            chat.turn("go").await;
            assert_eq!(
                first_titles(&world, &chat),
                [
                    "Read `src/main.rs` from line 2 ~/src/main.rs:2",
                    "Read `src/main.rs` ~/src/main.rs",
                    "List `.` ~",
                    "Find `*.rs` in `.` ~",
                    "Search for `main` in `src` ~/src",
                    "Create `new.txt` ~/new.txt",
                    "Edit `src/main.rs` ~/src/main.rs",
                    "Move `old.txt` to `older.txt` ~/old.txt",
                    "Delete `gone.txt` ~/gone.txt",
                    "true…",
                    "Plan with 1 entries",
                    "Think",
                ],
                "{model} {protocol:?}"
            );
        }
    }
}

#[tokio::test]
async fn calls_as_text_and_calls_of_small_models_are_what_they_are_at_once() {
    let world = World::answering(vec![
        Answer::text(json!({"name": "read_file", "arguments": {"path": "a.txt"}}).to_string()),
        Answer::text("Done."),
    ])
    .await;
    world.put("a.txt", "a\n");
    let mut chat = world.open(Person::new()).await;
    chat.turn("go").await;
    assert_eq!(first_titles(&world, &chat), ["Read `a.txt` ~/a.txt"]);

    let mut world = World::answering(vec![
        Answer::text(json!({"action": "write_file", "arguments": {"path": "b.txt"}}).to_string()),
        Answer::text("```\nb\n```"),
        Answer::text(json!({"action": "done", "arguments": {"message": "Done."}}).to_string()),
    ])
    .await;
    let facts = ModelFacts { small: Some(true), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    chat.turn("make it").await;
    assert_eq!(first_titles(&world, &chat), ["Create `b.txt` ~/b.txt"]);
}

/// Sub-agents call tools by other names, get files as they are, and show what they change as it is.
#[tokio::test]
async fn calls_of_sub_agents_are_read_and_shown_like_all_others() {
    let server = ModelServer::with(|request| {
        let results = request.tool_results().len();
        if !request.system().contains("You are a sub-agent") {
            return match results {
                0 => Answer::new().call("task", json!({"task": "go", "title": "work", "allow_changes": "true"})),
                _ => Answer::text("Done."),
            };
        }
        match results {
            0 => Answer::new().call("cat", json!({"file": "a.txt"})),
            1 => Answer::new().call("create_file", json!({"file_path": "b.txt", "text": "b"})),
            _ => Answer::text("It is done."),
        }
    })
    .await;
    let world = World::new("openai:scripted", Some(server));
    world.put("a.txt", "\u{1b}[31mred\u{1b}[0m\n");
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("go").await;
    assert!(seen.contains("- Read `a.txt`\n") && seen.contains("- Create `b.txt`\n"), "{seen}");
    let titles: Vec<String> = calls(&chat).iter().map(|call| call[0].title.set().unwrap().clone()).collect();
    assert_eq!(titles, ["Task: work", "Create `b.txt`"]);
    assert!(world.files().contains("b.txt \"b\""), "{}", world.files());
    let requests = world.model().requests();
    assert!(requests[2].tool_results()[0].contains("\u{1b}[31mred"), "{:?}", requests[2].tool_results());
}

#[tokio::test]
async fn what_was_found_is_shown_and_bounded() {
    for protocol in DIALECTS {
        let world = World::answering(calling(vec![
            ("read_file", json!({"path": "long.rs"})),
            ("read_file", json!({"path": "wide.txt"})),
            ("list_directory", json!({"path": "many"})),
            ("find_files", json!({"pattern": "many/*"})),
            ("search_files", json!({"pattern": "needle"})),
        ]))
        .await;
        let long: String = (1..=5_000).map(|number| format!("let needle{number} = 1;\n")).collect();
        world.put("long.rs", &long);
        world.put("wide.txt", &"x".repeat(100_000));
        world.put(".env", "needle=hunter2\n");
        for number in 0..500 {
            world.put(&format!("many/{}-{number}", "y".repeat(100)), "");
        }
        let mut chat = world.open(Person::at(protocol)).await;
        let seen = chat.turn("look").await;
        assert!(!seen.contains("hunter2"), "{seen}");
        let calls = calls(&chat);
        let found: Vec<(String, Value)> =
            calls.iter().map(|call| (content(call), raw(call, |update| &update.raw_output))).collect();
        for (shown, raw) in &found {
            assert!(shown.len() < 5_000 && raw.to_string().len() < 12_000, "{} {raw}", shown.len());
            assert!(shown.ends_with("]\n```") && raw["truncated"].is_boolean() || shown.contains('x'), "{shown} {raw}");
            assert!(!raw.to_string().contains("hunter2"), "{raw}");
        }
        assert!(found[0].0.starts_with("```rs\nlet needle1 = 1;\n"), "{}", found[0].0);
        assert!(found[0].0.ends_with("\nlet needle60 = 1;\n[… 4940 more lines]\n```"), "{}", found[0].0);
        assert_eq!((&found[0].1["totalLines"], &found[0].1["truncated"]), (&json!(5_000), &json!(true)));
        assert_eq!(found[0].1["path"], json!(world.project().join("long.rs")));
        assert_eq!((&found[2].1["total"], &found[2].1["truncated"]), (&json!(500), &json!(false)));
        assert_eq!(found[3].1["total"], 500);
        assert!(found[4].0.contains("long.rs:1: let needle1 = 1;"), "{}", found[4].0);
        assert_eq!((&found[4].1["files"], &found[4].1["truncated"]), (&json!(1), &json!(true)));
        assert_eq!(found[4].1["first"][0], json!({"path": world.project().join("long.rs"), "line": 1}));
    }
}

/// The names and types of arguments are forgiven for all tools, and what is shown is what is done.
#[tokio::test]
async fn arguments_of_all_tools_are_read_alike() {
    let world = World::answering(calling(vec![
        ("bash", json!({"cmd": "echo hi", "timeout": "5", "background": "false", "needs": null, "description": "x"})),
        ("todo_write", json!({"todos": "[{\"content\": \"a\", \"status\": \"pending\"}]"})),
        ("think", json!({"arguments": {"content": "hm"}})),
        ("switch_mode", json!({"mode_slug": "code"})),
        ("job_output", json!({"id": 7})),
        ("run_command", json!({"command": ["rm", "-rf", "."]})),
    ]))
    .await;
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("go").await;
    let results = world.results();
    for (number, part) in [
        (0, "hi\n"),
        (1, "the plan is shown"),
        (2, "noted"),
        (3, "the mode is `code`"),
        (4, "there is no job `7`"),
        (5, "the argument `command` has to be text"),
    ] {
        assert!(results[number].contains(part), "{number}: {results:?}");
    }
    assert!(seen.contains("plan medium pending \"a\""), "{seen}");
    let inputs: Vec<Value> = calls(&chat).iter().map(|call| raw(call, |update| &update.raw_input)).collect();
    assert_eq!(inputs[0], json!({"command": "echo hi", "timeout_seconds": 5, "background": false}));
    assert_eq!(inputs[2], json!({"thought": "hm"}));
    assert_eq!(inputs[4], json!({"job": "7"}));
}

/// What was too long is searched and read without a question, but only what is this session's own.
#[tokio::test]
async fn a_long_output_can_be_searched_and_read_on() {
    let path = |result: &str| Some(result.split("the whole text is in `").nth(1)?.split('`').next()?.to_owned());
    let server = ModelServer::with(move |request| {
        let results = request.tool_results();
        let Some(path) = results.first().and_then(|result| path(result)) else {
            return Answer::new().call("run_command", json!({"command": "seq 1 20000"}));
        };
        let directory = path.rsplit_once('/').unwrap().0.to_owned();
        let other = format!("{}/other/output-1.txt", directory.rsplit_once('/').unwrap().0);
        match results.len() {
            1 => Answer::new().call("search_files", json!({"pattern": "^12345$", "path": path})),
            2 => Answer::new().call("search_files", json!({"pattern": "^12346$", "path": directory})),
            3 => Answer::new().call("read_file", json!({"path": path, "line": 12347, "limit": 1})),
            4 => Answer::new().call("search_files", json!({"pattern": "secret", "path": other})),
            _ => Answer::text("Done."),
        }
    })
    .await;
    let world = World::new("openai:scripted", Some(server));
    world.put_at("state/agent/outputs/other/output-1.txt", "secret of another session\n");
    let mut chat = world.open(Person::new()).await;
    chat.set("mode", "code").await;
    // The command is asked about, because it cannot be confined here.
    let seen = chat.turn("count").await;
    let results = world.results();
    assert!(results[0].contains("use `search_files` or `grep -n` on it, or `read_file` with `line`"), "{}", results[0]);
    assert!(results[1].contains("12345: 12345"), "{}", results[1]);
    assert!(results[2].contains("12346: 12346"), "{}", results[2]);
    assert!(results[3].contains("12347\t12347"), "{}", results[3]);
    assert_eq!(seen.matches("permission ").count(), 2, "the command, and what is not its own: {seen}");
    assert!(fs::read_dir(world.root.join("state/agent/outputs")).unwrap().count() == 2);
}
