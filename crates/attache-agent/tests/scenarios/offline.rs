//! The built-in model: plain commands drive the real tools, and its tour shows all there is.

use std::collections::BTreeSet;

use attache::Protocol;

use crate::support::{DIALECTS, Person, Says, World, check};

fn project(world: &World) {
    world.put("a.txt", "one\ntwo\n");
    world.put("src/main.rs", "fn main() {}\n");
}

#[tokio::test]
async fn plain_commands_drive_the_tools() {
    for protocol in [Protocol::V1, Protocol::V2Draft] {
        let world = World::offline();
        project(&world);
        let mut chat = world.open(Person::at(protocol)).await;
        check(
            &chat.turn("read a.txt").await,
            r#"
            text _This is the built-in `offline` model: a few fixed rules, not a language model; `attache setup` gives the agent one. Say `help` for what it knows._
            tool read_file "Read `a.txt`" read: pending → in_progress → completed
              at ~/a.txt
              | ```txt
              | one
              | two
              | ```
            usage
            text `a.txt`, lines 1-2 (of 2):
              | ```
              | one
              | two
              | ```
            usage
            stop end_turn
            "#,
        );
        check(
            &chat.turn("replace two with zwei in a.txt").await,
            r#"
            tool read_file "Read `a.txt`" read: pending → in_progress → completed
              at ~/a.txt
              | ```txt
              | one
              | two
              | ```
            usage
            tool edit_file "Edit `a.txt`" edit: pending → in_progress → completed
              at ~/a.txt:2
              diff ~/a.txt: "one\ntwo\n" → "one\nzwei\n"
            usage
            permission "Edit `a.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            text Changed `a.txt`.
            usage
            stop end_turn
            "#,
        );
        check(
            &chat.turn("run echo hello").await,
            r#"
            tool run_command "echo hello" execute: pending → in_progress → completed
              | ```console
              | hello
              | ```
            usage
            permission "echo hello" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
            text `echo hello` ran:
              | ```
              | hello
              | ```
            usage
            stop end_turn
            "#,
        );
        check(
            &chat.turn("search main").await,
            r#"
            tool search_files "Search for `main` in `.`" search: pending → in_progress → completed
              at ~/src/main.rs:1
              | 1 line
              | ```
              | src/main.rs:1: fn main() {}
              | ```
            usage
            text Lines that match `main`:
              | ```
              | src/main.rs:1: fn main() {}
              | ```
            usage
            stop end_turn
            "#,
        );
        check(
            &world.files(),
            r#"
            a.txt "one\nzwei\n"
            src/main.rs "fn main() {}\n"
            "#,
        );
    }
}

#[tokio::test]
async fn what_is_refused_is_not_done_and_said() {
    let world = World::offline();
    project(&world);
    let mut chat = world.open(Person::saying(Says::RejectOnce)).await;
    check(
        &chat.turn("run touch made.txt").await,
        r#"
        text _This is the built-in `offline` model: a few fixed rules, not a language model; `attache setup` gives the agent one. Say `help` for what it knows._
        tool run_command "touch made.txt" execute: pending → failed
          | the person refused this call
        usage
        permission "touch made.txt" [allow_once, allow_always, allow_always, reject_once, reject_always] → reject_once
        text As you wish: that is not done.
        usage
        stop end_turn
        "#,
    );
    assert!(!world.project().join("made.txt").exists());
}

#[tokio::test]
async fn the_tour_shows_every_kind_of_tool_and_ends_well() {
    for protocol in DIALECTS {
        for says in [Says::AllowOnce, Says::RejectOnce, Says::Nothing] {
            let world = World::offline();
            project(&world);
            let before = world.files();
            let person = Person { says, forms: Some(Some("yes")), ..Person::at(protocol) };
            let seen = world.turn(person, "tour").await;
            assert!(seen.ends_with("stop end_turn"), "{protocol:?} {says:?}: {seen}");
            let tools = seen.lines().filter(|line| line.starts_with("tool "));
            let kinds: BTreeSet<&str> =
                tools.clone().map(|line| line.rsplit_once(": ").unwrap().0.rsplit_once(' ').unwrap().1).collect();
            let all = ["delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"];
            if says == Says::AllowOnce {
                assert_eq!(kinds, BTreeSet::from(all), "{protocol:?}");
            }
            for tool in tools {
                assert!(tool.ends_with("completed") || tool.ends_with("failed"), "{tool}");
            }
            // It tidies up after itself.
            if says != Says::AllowOnce {
                assert_eq!(world.files(), before, "{protocol:?} {says:?}");
            }
        }
    }
}
