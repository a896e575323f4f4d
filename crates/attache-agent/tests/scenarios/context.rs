//! Long outputs, long conversations, and models that cannot call tools.

use attache_agent::ModelFacts;
use attache_testkit::model_server::{Answer, ModelRequest, ModelServer};
use serde_json::{Value, json};

use crate::calling;
use crate::support::{DIALECTS, Person, Says, World, check};

#[tokio::test]
async fn long_output_is_cut_and_the_rest_can_be_read_without_asking() {
    let server = ModelServer::with(|request: &ModelRequest| match request.tool_results().as_slice() {
        [] => Answer::new().call("run_command", json!({"command": "seq 1 30000"})),
        [cut] => {
            let path = cut.split("the whole text is in `").nth(1).unwrap().split('`').next().unwrap();
            Answer::new().call("read_file", json!({"path": path, "line": 15000, "limit": 2}))
        }
        _ => Answer::text("Done."),
    })
    .await;
    let world = World::new("openai:scripted", Some(server));
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("count").await;
    assert!(seen.ends_with("stop end_turn"), "{seen}");
    assert_eq!(chat.asked.len(), 1, "for the command only");
    let results = world.results();
    assert!(results[0].len() < 40_000, "{}", results[0].len());
    assert!(results[0].starts_with("1\n2\n") && results[0].ends_with("29999\n30000\n"));
    assert!(results[0].contains(" lines, ") && results[0].contains("$WORLD/state/agent/outputs/"), "{}", results[0]);
    assert!(results[1].contains("15000\t15000\n15001\t15001\n"), "{}", results[1]);
}

#[tokio::test]
async fn a_long_file_is_read_on_with_and_not_cut_in_the_middle() {
    let world = World::answering(calling(vec![("read_file", json!({"path": "long.txt"}))])).await;
    let lines: Vec<String> = (1..=2000).map(|number| format!("{number} {}", "x".repeat(60))).collect();
    world.put("long.txt", &lines.join("\n"));
    world.turn(Person::new(), "read it").await;
    let result = &world.results()[0];
    assert!(
        result.starts_with("`long.txt`, lines 1-505 (of 2000, read on with line 506):\n1\t1 xxx"),
        "{}",
        &result[..100]
    );
    assert!(result.lines().last().unwrap().starts_with("505\t505 xxx"));
}

/// Only the outputs of this session, and only to read.
#[tokio::test]
async fn other_files_of_the_state_are_asked_for() {
    let world = World::new("offline:rules", None);
    let secret = world.root.join("state/agent/outputs/other-session/output.txt");
    std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
    std::fs::write(&secret, "secret\n").unwrap();
    let mut chat = world.open(Person::saying(Says::RejectOnce)).await;
    chat.turn(format!("read {}", secret.display())).await;
    assert_eq!(chat.asked.len(), 1);
}

#[tokio::test]
async fn a_model_without_tools_is_driven_by_json() {
    for protocol in DIALECTS {
        let step = |action: &str, arguments: Value| {
            Answer::text(json!({"action": action, "arguments": arguments}).to_string())
        };
        let mut world = World::answering(vec![
            step("read_file", json!({"path": "a.txt"})),
            step("write_file", json!({"path": "b.txt", "content": "b\n"})),
            step("done", json!({"message": "It is done."})),
        ])
        .await;
        let facts = ModelFacts { tools: Some(false), ..ModelFacts::default() };
        world.config.models.insert("openai:scripted".into(), facts);
        world.put("a.txt", "a\n");
        let seen = world.turn(Person::at(protocol), "read and write").await;
        check(
            &seen,
            r#"
            tool read_file "Read `a.txt`" read: pending → in_progress → completed
              at ~/a.txt
              | ```txt
              | a
              | ```
            usage
            tool write_file "Create `b.txt`" edit: pending → in_progress → completed
              at ~/b.txt
              diff ~/b.txt: nothing → "b\n"
            usage
            permission "Create `b.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            text It is done.
            usage
            stop end_turn
            "#,
        );
        check(&world.files(), "a.txt \"a\\n\"\nb.txt \"b\\n\"");
        let requests = world.model().requests();
        assert_eq!(requests.len(), 3);
        for request in &requests {
            assert!(request.tool_names().is_empty());
            assert_eq!(request.body["response_format"]["type"], "json_schema");
        }
        assert!(requests[2].texts().concat().contains("`b.txt` is created"), "{:?}", requests[2].texts());
    }
}
