//! The tools for files, in every dialect and through every provider's API.

use attache::Protocol;
use serde_json::{Value, json};

use crate::calling;
use crate::support::{DIALECTS, Person, World, check};

fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "a.txt", "line": 2, "limit": 1})),
        ("edit_file", json!({"path": "a.txt", "old_text": "two", "new_text": "zwei"})),
        ("write_file", json!({"path": "new/b.txt", "content": "fresh\n"})),
        ("move_file", json!({"from": "new/b.txt", "to": "c.txt"})),
        ("delete_file", json!({"path": "old.txt"})),
        ("list_directory", json!({})),
        ("find_files", json!({"pattern": "**/*.rs"})),
        ("search_files", json!({"pattern": "fn (main|other)"})),
    ]
}

fn project(world: &World) {
    world.put("a.txt", "one\ntwo\nthree\n");
    world.put("old.txt", "old\n");
    world.put("src/main.rs", "// Starts.\nfn main() {}\n");
}

#[tokio::test]
async fn every_tool_for_files_is_shown_and_done_in_every_dialect() {
    for protocol in DIALECTS {
        let world = World::answering(calling(calls())).await;
        project(&world);
        let seen = world.turn(Person::at(protocol), "go through the tools").await;
        check(
            &seen,
            r#"
            tool read_file "Read `a.txt`" read: pending → in_progress → completed
              at ~/a.txt
              | ```txt
              | one
              | two
              | three
              | ```
            usage
            tool read_file "Read `a.txt`, lines 2-2" read: pending → in_progress → completed
              at ~/a.txt:2
              | ```txt
              | two
              | [… 1 more line]
              | ```
            usage
            tool edit_file "Edit `a.txt`" edit: pending → in_progress → completed
              at ~/a.txt:2
              diff ~/a.txt: "one\ntwo\nthree\n" → "one\nzwei\nthree\n"
            usage
            permission "Edit `a.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool write_file "Create `new/b.txt`" edit: pending → in_progress → completed
              at ~/new/b.txt
              diff ~/new/b.txt: nothing → "fresh\n"
            usage
            permission "Create `new/b.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool move_file "Move `new/b.txt` to `c.txt`" move: pending → in_progress → completed
              at ~/c.txt
            usage
            permission "Move `new/b.txt` to `c.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool delete_file "Delete `old.txt`" delete: pending → in_progress → completed
              at ~/old.txt
            usage
            permission "Delete `old.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            tool list_directory "List `.`" read: pending → in_progress → completed
              at ~
              | ```
              | a.txt (15 bytes)
              | c.txt (6 bytes)
              | new/
              | src/
              | ```
            usage
            tool find_files "Find `**/*.rs` in `.`" search: pending → in_progress → completed
              at ~
              | 1 file
              | ```
              | src/main.rs
              | ```
            usage
            tool search_files "Search for `fn (main|other)` in `.`" search: pending → in_progress → completed
              at ~/src/main.rs:2
              | 1 line
              | ```
              | src/main.rs:2: fn main() {}
              | ```
            usage
            text Done.
            usage
            stop end_turn
            "#,
        );
        check(
            &world.files(),
            r#"
            a.txt "one\nzwei\nthree\n"
            c.txt "fresh\n"
            src/main.rs "// Starts.\nfn main() {}\n"
            "#,
        );
        check(
            &world.results().join("\n"),
            r#"
            `a.txt`, lines 1-3 (of 3):
            1	one
            2	two
            3	three

            `a.txt`, lines 2-2 (of 3, read on with line 3):
            2	two

            `a.txt` is edited: replaced line 2
            `new/b.txt` is created with 1 lines
            `new/b.txt` is moved to `c.txt`
            `old.txt` is deleted
            `.`:
            a.txt (15 bytes)
            c.txt (6 bytes)
            new/
            src/
            src/main.rs
            src/main.rs:2: fn main() {}
            "#,
        );
    }
}

#[tokio::test]
async fn every_provider_drives_them_alike() {
    let mut transcripts = Vec::new();
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"] {
        let world = World::of(model, calling(calls())).await;
        project(&world);
        let seen = world.turn(Person::at(Protocol::V2), "go through the tools").await;
        transcripts.push((seen, world.files(), world.results()));
    }
    assert_eq!(transcripts[0], transcripts[1]);
    assert_eq!(transcripts[0], transcripts[2]);
    assert_eq!(transcripts[0].2.len(), calls().len());
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_changes_nothing() {
    let world = World::answering(calling(vec![
        ("read_file", json!({"path": "none.txt"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "nowhere", "new_text": "x"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "e", "new_text": "x"})),
        ("read_file", json!({"path": "a.txt"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "e", "new_text": "x"})),
        ("delete_file", json!({"path": "none.txt"})),
        ("move_file", json!({"from": "a.txt", "to": "old.txt"})),
        ("search_files", json!({"pattern": "("})),
    ]))
    .await;
    project(&world);
    let before = world.files();
    let seen = world.turn(Person::new(), "try").await;
    check(
        &seen,
        r#"
        tool read_file "Read `none.txt`" read: pending → failed
          at ~/none.txt
          | there is no file `none.txt`
          | hint: there is `a.txt`, `old.txt` in that directory
        usage
        tool edit_file "Edit `a.txt`" edit: pending → failed
          at ~/a.txt
          | `a.txt` exists and has not been read in this session: read it before changing it
        usage
        tool edit_file "Edit `a.txt`" edit: pending → failed
          at ~/a.txt
          | `a.txt` exists and has not been read in this session: read it before changing it
        usage
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | one
          | two
          | three
          | ```
        usage
        tool edit_file "Edit `a.txt`" edit: pending → failed
          at ~/a.txt
          | `a.txt`: the old text is there more than once, at lines 1, 3, 3
          | hint: give more of the lines around it, or set `replace_all`
        usage
        tool delete_file "Delete `none.txt`" delete: pending → failed
          at ~/none.txt
          | there is no `none.txt`
        usage
        tool move_file "Move `a.txt` to `old.txt`" move: pending → failed
          at ~/a.txt
          at ~/old.txt
          | there is already a `old.txt`, and it is not replaced
        usage
        tool search_files "Search for `(` in `.`" search: pending → failed
          at ~
          | the regular expression is not understood: regex parse error:
          |     (?:()
          |     ^
          | error: unclosed group
        usage
        text Done.
        usage
        stop end_turn
        "#,
    );
    assert_eq!(world.files(), before);
}
