//! Several calls in one answer: what only looks goes side by side, what changes goes in order.

use attache_testkit::model_server::Answer;
use serde_json::json;

use crate::support::{DIALECTS, Person, World, check};

#[tokio::test]
async fn changes_of_one_answer_are_made_in_order() {
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"] {
        let world = World::of(
            model,
            vec![
                Answer::new()
                    .call("write_file", json!({"path": "a.txt", "content": "1"}))
                    .call("run_command", json!({"command": "cat a.txt > b.txt"}))
                    .call("move_file", json!({"from": "a.txt", "to": "c.txt"}))
                    .call("read_file", json!({"path": "b.txt"}))
                    .call("read_file", json!({"path": "c.txt"}))
                    .call("delete_file", json!({"path": "c.txt"}))
                    .call("read_file", json!({"path": "c.txt"})),
                Answer::text("Done."),
            ],
        )
        .await;
        let seen = world.turn(Person::new(), "in order").await;
        check(
            &seen,
            r#"
            tool write_file "Create `a.txt`" edit: pending → in_progress → completed
              at ~/a.txt
              diff ~/a.txt: nothing → "1"
            tool run_command "cat a.txt > b.txt" execute: pending → in_progress → completed
              | ```console
              | (no output)
              | ```
            tool move_file "Move `a.txt` to `c.txt`" move: pending → in_progress → completed
              at ~/c.txt
            tool read_file "Read `b.txt`" read: pending → in_progress → completed
              at ~/b.txt
              | ```txt
              | 1
              | ```
            tool read_file "Read `c.txt`" read: pending → in_progress → completed
              at ~/c.txt
              | ```txt
              | 1
              | ```
            tool delete_file "Delete `c.txt`" delete: pending → in_progress → completed
              at ~/c.txt
            tool read_file "Read `c.txt`" read: pending → failed
              at ~/c.txt
              | there is no file `c.txt`
              | hint: there is `b.txt` in that directory
            usage
            permission "Create `a.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            permission "cat a.txt > b.txt" [allow_once, reject_once] → allow_once
            permission "Move `a.txt` to `c.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            permission "Delete `c.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            text Done.
            usage
            stop end_turn
            "#,
        );
        check(&world.files(), "b.txt \"1\"");
        assert_eq!(world.results().len(), 7, "{model}");
    }
}

#[tokio::test]
async fn every_call_is_shown_before_the_first_is_done() {
    for protocol in DIALECTS {
        let world = World::answering(vec![
            Answer::text("Both.").call("list_directory", json!({})).call("find_files", json!({"pattern": "*"})),
            Answer::text("Done."),
        ])
        .await;
        let seen = world.turn(Person::at(protocol), "look").await;
        check(
            &seen,
            r#"
            text Both.
            tool list_directory "List `.`" read: pending → in_progress → completed
              at ~
              | `.` is empty
            tool find_files "Find `*` in `.`" search: pending → in_progress → completed
              at ~
              | no file beneath `.` fits the pattern
            usage
            text Done.
            usage
            stop end_turn
            "#,
        );
    }
}
