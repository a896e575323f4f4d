//! Files and commands through a client that offers them: the editor's buffers and the editor's terminals.

use attache::Protocol;
use serde_json::json;

use crate::calling;
use crate::support::{Person, World, check};

#[tokio::test]
async fn files_are_read_and_written_through_the_client() {
    let world = World::answering(calling(vec![
        ("read_file", json!({"path": "a.txt"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "eins"})),
        ("write_file", json!({"path": "b.txt", "content": "new\n"})),
    ]))
    .await;
    world.put("a.txt", "one\n");
    let mut chat = world.open(Person { files: true, ..Person::new() }).await;
    let seen = chat.turn("change them").await;
    check(
        &seen,
        r#"
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | one
          | ```
        usage
        tool edit_file "Edit `a.txt`" edit: pending → in_progress → completed
          at ~/a.txt:1
          diff ~/a.txt: "one\n" → "eins\n"
        usage
        permission "Edit `a.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        tool write_file "Create `b.txt`" edit: pending → in_progress → completed
          at ~/b.txt
          diff ~/b.txt: nothing → "new\n"
        usage
        permission "Create `b.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        text Done.
        usage
        stop end_turn
        "#,
    );
    check(
        &chat.served.join("\n"),
        r#"
        read a.txt
        read a.txt
        read a.txt
        write a.txt
        write b.txt
        "#,
    );
    check(
        &world.files(),
        r#"
        a.txt "eins\n"
        b.txt "new\n"
        "#,
    );
}

#[tokio::test]
async fn commands_run_in_the_terminals_of_the_client() {
    let world = World::answering(calling(vec![
        ("run_command", json!({"command": "echo out > made.txt; cat made.txt"})),
        ("run_command", json!({"command": "exit 7"})),
        ("run_command", json!({"command": "sleep 60", "timeout_seconds": 1})),
    ]))
    .await;
    let mut chat = world.open(Person { terminals: true, ..Person::new() }).await;
    let seen = chat.turn("run them").await;
    check(
        &seen,
        r#"
        tool run_command "echo out > made.txt; cat made.txt" execute: pending → in_progress → completed
          in a terminal
        usage
        permission "echo out > made.txt; cat made.txt" [allow_once, reject_once] → allow_once
        tool run_command "exit 7" execute: pending → in_progress → failed
          in a terminal
        usage
        permission "exit 7" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        tool run_command "sleep 60" execute: pending → in_progress → failed
          in a terminal
        usage
        permission "sleep 60" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        text Done.
        usage
        stop end_turn
        "#,
    );
    check(
        &chat.served.join("\n"),
        r#"
        terminal echo out > made.txt; cat made.txt
        release
        terminal exit 7
        release
        terminal sleep 60
        kill
        release
        "#,
    );
    check(
        &world.results().join("\n"),
        r#"
        out

        error: exit code 7
        error: the command did not end within 1 seconds, and was ended with everything it started
        hint: `background` is for what runs long
        "#,
    );
    check(
        &world.files(),
        r#"
        made.txt "out\n"
        "#,
    );
}

/// Version 2 has no such requests: what a client of it offers there is not used.
#[tokio::test]
async fn nothing_goes_through_a_client_of_version_2() {
    for protocol in [Protocol::V2Draft, Protocol::V2] {
        let world = World::answering(calling(vec![
            ("write_file", json!({"path": "b.txt", "content": "new\n"})),
            ("run_command", json!({"command": "cat b.txt"})),
        ]))
        .await;
        let mut chat = world.open(Person { files: true, terminals: true, ..Person::at(protocol) }).await;
        chat.turn("change them").await;
        assert_eq!(chat.served, [""; 0], "{protocol:?}");
        assert_eq!(world.results()[1], "new\n");
    }
}

#[tokio::test]
async fn reads_of_one_answer_go_side_by_side() {
    let world = World::answering(vec![
        attache_testkit::model_server::Answer::new()
            .call("read_file", json!({"path": "a.txt"}))
            .call("read_file", json!({"path": "b.txt"})),
        attache_testkit::model_server::Answer::text("Done."),
    ])
    .await;
    world.put("a.txt", "a\n");
    world.put("b.txt", "b\n");
    // Neither is answered before both are asked for, and then the second first.
    let mut chat = world.open(Person { files: true, held_reads: 2, ..Person::new() }).await;
    let seen = chat.turn("read both").await;
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
    assert_eq!(world.results(), ["`a.txt`, lines 1-1 (of 1):\n1\ta\n", "`b.txt`, lines 1-1 (of 1):\n1\tb\n"]);
}
