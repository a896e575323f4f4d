//! Every call gets a result, whatever it was: the client sees an end of it, and the model is told.

use attache_testkit::model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{DIALECTS, Person, World, check};

/// Fails unless every tool call of the last turn has ended, and the model knows of as many as there were.
#[track_caller]
fn all_ended(seen: &str, world: &World, calls: usize) {
    let tools: Vec<&str> = seen.lines().filter(|line| line.starts_with("tool ")).collect();
    assert_eq!(tools.len(), calls, "{seen}");
    for tool in tools {
        let is_ended = ["completed", "failed", "cancelled"].iter().any(|end| tool.ends_with(end));
        assert!(is_ended, "{tool}");
    }
    assert_eq!(world.results().len(), calls, "{:#?}", world.results());
}

/// The results without the mark of those that are errors: one of the APIs has a place of its own for it.
fn results(world: &World) -> Vec<String> {
    world.results().iter().map(|result| result.trim_start_matches("error: ").to_owned()).collect()
}

#[tokio::test]
async fn calls_that_make_no_sense_have_results_like_all_others() {
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5"] {
        for protocol in DIALECTS {
            let answer = Answer::text("All at once.")
                .raw_call("read_file", "{\"path\": \"a.txt")
                .raw_call("read_file", "[1, 2]")
                .raw_call("read_file", "\"a.txt\"")
                .raw_call("read_file", "")
                .raw_call("read_file", "{\"path\": 7}")
                .raw_call("list_directory", "")
                .call("fly_away", json!({"to": "the moon"}))
                .call("read_file", json!({"path": "a.txt"}));
            let world = World::of(model, vec![answer, Answer::text("Done.")]).await;
            world.put("a.txt", "a\n");
            let seen = world.turn(Person::at(protocol), "try").await;
            check(
                &seen,
                r#"
                text All at once.
                tool read_file "Read a file" read: pending → failed
                  | the arguments are not JSON: EOF while parsing a string at line 1 column 15
                tool read_file "Read a file" read: pending → failed
                  | the arguments are not a JSON object
                tool read_file "Read a file" read: pending → failed
                  | the arguments are not a JSON object
                tool read_file "Read a file" read: pending → failed
                  | the argument `path` is missing
                tool read_file "Read `7`" read: pending → failed
                  at ~/7
                  | there is no file `7`
                tool list_directory "List `.`" read: pending → in_progress → completed
                  at ~
                  | ```
                  | a.txt (2 bytes)
                  | ```
                tool fly_away "fly_away" other: pending → failed
                  | there is no tool of that name
                tool read_file "Read `a.txt`" read: pending → in_progress → completed
                  at ~/a.txt
                  | ```txt
                  | a
                  | ```
                usage
                text Done.
                usage
                stop end_turn
                "#,
            );
            all_ended(&seen, &world, 8);
            check(
                &results(&world).join("\n---\n"),
                r#"
                the arguments are not JSON: EOF while parsing a string at line 1 column 15
                ---
                the arguments are not a JSON object
                ---
                the arguments are not a JSON object
                ---
                the argument `path` is missing
                ---
                there is no file `7`
                ---
                `.`:
                a.txt (2 bytes)
                ---
                there is no tool of that name
                ---
                `a.txt`, lines 1-1 (of 1):
                1	a
                "#,
            );
        }
    }
}

#[tokio::test]
async fn a_call_that_gemini_could_not_form_is_asked_for_again() {
    let world = World::of(
        "gemini:gemini-2.5-flash",
        vec![Answer::new().raw_call("read_file", "{\"path\": "), Answer::text("Done.")],
    )
    .await;
    let mut chat = world.open(Person::new()).await;
    check(
        &chat.turn("try").await,
        r#"
        thought the answer of `gemini-2.5-flash` was cut off before its end; trying again in 1 s (2 of 5, for 4 minutes at most)
        text Done.
        usage
        stop end_turn
        "#,
    );
}

#[tokio::test]
async fn calls_with_the_same_id_are_told_apart() {
    for model in ["openai:gpt-5.1", "gemini:gemini-2.5-flash"] {
        let answer = Answer::new()
            .call("read_file", json!({"path": "a.txt"}))
            .call_id("same")
            .call("read_file", json!({"path": "b.txt"}))
            .call_id("same");
        let world = World::of(model, vec![answer, Answer::text("Done.")]).await;
        world.put("a.txt", "a\n");
        world.put("b.txt", "b\n");
        let seen = world.turn(Person::new(), "read both").await;
        check(
            &seen,
            r#"
            tool read_file "Read `a.txt`" read: pending → in_progress → completed
              at ~/a.txt
              | ```txt
              | a
              | ```
            tool read_file "Read `b.txt`" read: pending → in_progress → completed
              at ~/b.txt
              | ```txt
              | b
              | ```
            usage
            text Done.
            usage
            stop end_turn
            "#,
        );
        all_ended(&seen, &world, 2);
        assert!(world.results()[0].ends_with("a\n") && world.results()[1].ends_with("b\n"), "{:?}", world.results());
    }
}

#[tokio::test]
async fn far_too_many_calls_are_a_fault_of_the_model() {
    let many =
        (0..65).fold(Answer::new(), |answer, number| answer.call("think", json!({"thought": number.to_string()})));
    let world = World::answering(vec![many, Answer::text("Sorry.")]).await;
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("go").await;
    assert!(seen.ends_with("error -32603 the model made more than 64 calls at once"), "{seen}");
    assert_eq!(seen.matches("pending → failed").count(), 64);
    check(&chat.turn("again").await, "text Sorry.\nusage\nstop end_turn");
}

/// The model's requests after a turn that was broken in some way have a result for every call: the server refuses
/// those that have not.
#[tokio::test]
async fn a_turn_that_broke_leaves_nothing_open() {
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"] {
        // So many events of an answer are in the middle of its only call. Gemini sends calls in one piece.
        let middle = if model.starts_with("gemini") { 1 } else { 8 };
        let look = || Answer::text("Hm.").call("list_directory", json!({}));
        let write = || Answer::text("Hm.").call("write_file", json!({"path": "a.txt", "content": "x".repeat(200)}));
        let talk = || Answer::text("talk ".repeat(20));
        for broken in [
            Answer::status(400),
            talk().cut_after(middle),
            talk().error_after(middle, "no more"),
            write().cut_after(middle),
            write().end_after(middle),
            write().error_after(middle, "no more"),
        ] {
            let world = World::of(model, vec![look(), broken.clone(), Answer::text("Here.")]).await;
            let mut chat = world.open(Person::new()).await;
            let seen = chat.turn("look").await;
            ended(&seen);
            // A server that is not there any more is asked again; one that does not want it is not.
            if seen.contains("\nerror -32603 ") {
                check(&chat.turn("again").await, "text Here.\nusage\nstop end_turn");
            } else {
                assert!(seen.ends_with("text Here.\nusage\nstop end_turn"), "{model}: {seen}");
            }
            assert_eq!(world.results().len(), 1, "{model} {broken:?}");
        }
    }
}

#[track_caller]
fn ended(seen: &str) {
    for tool in seen.lines().filter(|line| line.starts_with("tool ")) {
        assert!(!tool.ends_with("pending") && !tool.ends_with("in_progress"), "{seen}");
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_leaves_nothing_open() {
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"] {
        let world = World::of(
            model,
            vec![
                Answer::new()
                    .call("run_command", json!({"command": "touch ran.txt; sleep 60"}))
                    .call("write_file", json!({"path": "a.txt", "content": "x"})),
                Answer::text("Here."),
            ],
        )
        .await;
        let mut chat = world.open(Person::new()).await;
        let session = chat.session().clone();
        let ran = world.project().join("ran.txt");
        let cancel = async {
            while !ran.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            session.cancel().await.unwrap();
        };
        let (seen, ()) = tokio::join!(chat.turn("go"), cancel);
        check(
            &seen,
            r#"
            tool run_command "touch ran.txt; sleep 60" execute: pending → in_progress → failed
            tool write_file "Create `a.txt`" edit: pending → failed
              at ~/a.txt
            usage
            permission "touch ran.txt; sleep 60" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            stop cancelled
            "#,
        );
        check(&chat.turn("again").await, "text Here.\nusage\nstop end_turn");
        assert_eq!(results(&world), ["cancelled by the person"; 2]);
        check(&world.files(), "ran.txt \"\"");
    }
}

#[tokio::test]
async fn a_call_whose_arguments_never_come_is_ended() {
    let server = ModelServer::start(vec![
        Answer::text("Now.").call("write_file", json!({"path": "a.txt", "content": "long enough"})).end_after(6),
        Answer::text("Here."),
    ])
    .await;
    let world = World::new("openai:gpt-5.1", Some(server));
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("write").await;
    let call = "tool write_file \"Create `a.txt`\" edit: pending → failed\n  at ~/a.txt\n  | not done: the answer broke off \
                and begins anew";
    assert!(seen.contains(call), "{seen}");
    assert!(seen.contains("| *[The answer broke off here and begins anew.]*\n"), "{seen}");
    assert!(seen.ends_with("text Here.\nusage\nstop end_turn"), "{seen}");
    assert_eq!(world.files(), "");
}
