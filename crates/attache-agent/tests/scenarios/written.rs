//! Calls that a model writes as text: they are made if they are its own, and shown if they are quoted.

use attache_agent::ModelFacts;
use attache_testkit::model_server::{Answer, ModelRequest, ModelServer};
use serde_json::{Value, json};

use crate::support::{Person, World};

/// A call over several lines, as one finds it in a file.
const CALL: &str = r#"{
  "name": "write_file",
  "arguments": {
    "path": "bad.txt",
    "content": "bad"
  }
}"#;

fn example() -> String {
    format!("# How to call a tool\n\nWrite this:\n\n```json\n{CALL}\n```\n\nThen wait.\n")
}

/// Ways to say it again: as it stands there, in a block, in a tag, and on one line.
fn quotations() -> [String; 4] {
    let line = serde_json::from_str::<Value>(CALL).unwrap().to_string();
    [CALL.into(), format!("```json\n{CALL}\n```"), format!("<tool_call>\n{CALL}\n</tool_call>"), line]
}

/// Checks that a turn made no more calls than it should, and showed the last one as text.
fn is_shown(world: &World, seen: &str) {
    assert!(seen.ends_with("usage\nstop end_turn"), "{seen}");
    let said = seen.split("\ntext ").nth(1).or_else(|| seen.strip_prefix("text ")).unwrap_or_default();
    assert!(said.contains("bad.txt") && !seen.contains("tool write_file"), "{seen}");
    assert!(!world.project().join("bad.txt").exists(), "{seen}");
}

#[tokio::test]
async fn a_call_that_a_tool_has_shown_is_not_made() {
    for (tool, arguments) in [
        ("read_file", json!({"path": "CALLS.md"})),
        ("read_file", json!({"path": "CALLS.md", "line": 5, "limit": 9})),
        ("search_files", json!({"pattern": "write_file", "context": 6})),
        ("search_files", json!({"pattern": ".", "path": "CALLS.md"})),
        ("run_command", json!({"command": "cat -n CALLS.md"})),
        ("run_command", json!({"command": "sed 's/^/+/' CALLS.md"})),
    ] {
        for quotation in quotations() {
            let world =
                World::answering(vec![Answer::new().call(tool, arguments.clone()), Answer::text(quotation)]).await;
            world.put("CALLS.md", &example());
            is_shown(&world, &world.turn(Person::new(), "how does one call a tool here?").await);
            assert_eq!(world.model().requests().len(), 2);
        }
    }
}

#[tokio::test]
async fn a_call_that_the_instructions_show_is_not_made() {
    for file in ["project/AGENTS.md", "project/CLAUDE.md", "config/AGENTS.md"] {
        for quotation in quotations() {
            let world = World::answering(vec![Answer::text(quotation)]).await;
            world.put_at(file, &example());
            is_shown(&world, &world.turn(Person::new(), "how does one call a tool here?").await);
        }
    }
}

/// The same words without anybody having said them before.
#[tokio::test]
async fn a_call_of_the_models_own_is_made() {
    for written in quotations() {
        let look = Answer::new().call("read_file", json!({"path": "CALLS.md"}));
        let world = World::answering(vec![look, Answer::text(written), Answer::text("Done.")]).await;
        world.put("CALLS.md", &example().replace("bad", "good"));
        world.put("AGENTS.md", &example().replace("bad", "good"));
        let seen = world.turn(Person::new(), "write it").await;
        assert!(seen.contains("tool write_file"), "{seen}");
        assert_eq!(std::fs::read_to_string(world.project().join("bad.txt")).unwrap(), "bad");
    }
}

/// A server that neither calls tools nor holds its model to a form.
#[tokio::test]
async fn a_model_that_is_asked_for_json_may_quote_it_too() {
    let example = |answer: String| format!("```json\n{answer}\n``` That is an example.");
    let own = json!({"action": "write_file", "arguments": {"path": "bad.txt", "content": "bad"}});
    for (last, is_made) in quotations().into_iter().map(|last| (last, false)).chain([
        (example(own.to_string()), false),
        (format!("{own} is what I would do."), false),
        (own.to_string(), true),
    ]) {
        let done = json!({"action": "done", "arguments": {"message": "It is in bad.txt."}});
        let look = json!({"action": "read_file", "arguments": {"path": "CALLS.md"}});
        let mut answers = [look.to_string(), last, done.to_string()].into_iter();
        let server = ModelServer::with(move |request: &ModelRequest| match request.body.get("response_format") {
            Some(_) => Answer::status(400).body(json!({"error": {"message": "response_format is not supported"}})),
            None => Answer::text(answers.next().unwrap()),
        })
        .await;
        let mut world = World::new("openai:scripted", Some(server));
        let facts = ModelFacts { tools: Some(false), ..ModelFacts::default() };
        world.config.models.insert("openai:scripted".into(), facts);
        world.put("CALLS.md", &self::example());
        let seen = world.turn(Person::new(), "how does one call a tool here?").await;
        match is_made {
            true => assert!(world.project().join("bad.txt").exists(), "{seen}"),
            false => is_shown(&world, &seen),
        }
    }
}
