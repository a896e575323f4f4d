//! Long outputs, long conversations, and models that cannot call tools.

use attache::Protocol;
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
        result.starts_with("`long.txt`, lines 1-478 (of 2000, read on with line 479):\n1\t1 xxx"),
        "{}",
        &result[..100]
    );
    assert!(result.lines().last().unwrap().starts_with("478\t478 xxx"));
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

/// A model that is full after its first answer.
async fn full(answers: Vec<Answer>) -> World {
    let mut world = World::answering(answers).await;
    let facts = ModelFacts { context: Some(1000), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    world
}

fn said(text: &str) -> Answer {
    Answer::text(text).usage(850, 0, 50)
}

#[tokio::test]
async fn a_conversation_near_the_limit_is_compacted() {
    for (protocol, news) in
        [(Protocol::V1, false), (Protocol::V1, true), (Protocol::V2Draft, false), (Protocol::V2, false)]
    {
        let world =
            full(vec![said("It is blue."), Answer::text("They asked for the colour: blue."), Answer::text("Yes.")])
                .await;
        let mut chat = world.open(Person { news, ..Person::at(protocol) }).await;
        check(&chat.turn("which colour?").await, "text It is blue.\nusage\nstop end_turn");
        let seen = chat.turn("is that sure?").await;
        if news || protocol == Protocol::V2 {
            check(
                &seen,
                r#"
                compaction in_progress
                compaction completed
                text Yes.
                usage
                stop end_turn
                "#,
            );
        } else {
            check(
                &seen,
                r#"
                thought The conversation had become long; the model works with a summary of it from here on.
                text Yes.
                usage
                stop end_turn
                "#,
            );
        }
        let requests = world.model().requests();
        assert_eq!(requests.len(), 3);
        assert!(requests[1].tool_names().is_empty(), "a summary needs no tools");
        check(
            &requests[2].texts().join("\n"),
            r#"
            The conversation so far was replaced by this summary:

            They asked for the colour: blue.

            The last thing the person asked for:

            is that sure?
            "#,
        );
        assert!(!requests[2].tool_names().is_empty());
    }
}

#[tokio::test]
async fn a_command_compacts_at_once() {
    let world =
        World::answering(vec![Answer::text("Blue."), Answer::text("Colour: blue."), Answer::text("Yes.")]).await;
    let mut chat = world.open(Person::new()).await;
    check(
        &chat.turn("/compact").await,
        r#"
        text There is nothing to compact yet.
        stop end_turn
        "#,
    );
    chat.turn("which colour?").await;
    check(
        &chat.turn("/compact").await,
        r#"
        text The model works with a summary of the conversation from here on.
        stop end_turn
        "#,
    );
    chat.turn("sure?").await;
    check(
        &world.model().requests()[2].texts().join("\n---\n"),
        r#"
        The conversation so far was replaced by this summary:

        Colour: blue.

        The last thing the person asked for:

        which colour?
        ---
        sure?
        "#,
    );
}

#[tokio::test]
async fn a_request_that_was_too_long_is_compacted_and_asked_again() {
    let too_long = Answer::status(400)
        .body(json!({"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}));
    let world = World::answering(vec![
        Answer::new().call("list_directory", json!({})),
        too_long.clone(),
        Answer::text("They want the files listed: there are none."),
        Answer::text("There are none."),
    ])
    .await;
    check(
        &world.turn(Person::new(), "list them").await,
        r#"
        tool list_directory "List `.`" read: pending → in_progress → completed
          at ~
        usage
        thought The conversation had become long; the model works with a summary of it from here on.
        text There are none.
        usage
        stop end_turn
        "#,
    );
    // Once: what is still too long then, stays too long.
    let world = World::answering(vec![too_long.clone(), Answer::text("A summary."), too_long]).await;
    check(
        &world.turn(Person::new(), "list them").await,
        r#"
        thought The conversation had become long; the model works with a summary of it from here on.
        error -32603 the conversation is longer than `scripted` takes: maximum context length exceeded
        "#,
    );
}

#[tokio::test]
async fn a_summary_that_fails_ends_the_turn_and_loses_nothing() {
    for protocol in [Protocol::V1, Protocol::V2] {
        let world =
            full(vec![said("Blue."), Answer::status(400), Answer::text("A summary."), Answer::text("Yes.")]).await;
        let mut chat = world.open(Person { news: true, ..Person::at(protocol) }).await;
        chat.turn("which colour?").await;
        check(
            &chat.turn("sure?").await,
            r#"
            compaction in_progress
            compaction failed
            error -32603 `openai` did not take the request (400): the script wants this error
            "#,
        );
        let seen = chat.turn("so?").await;
        assert!(seen.ends_with("text Yes.\nusage\nstop end_turn"), "{seen}");
        let summary = &world.model().requests()[2];
        assert!(summary.texts().concat().contains("which colour?"), "{:?}", summary.texts());
    }
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
