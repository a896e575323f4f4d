//! `/undo` and `/diff` where somebody else changes files while the agent works: their work stays, unless it is asked for.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use attache_testkit::model_server::{Answer, ModelRequest, ModelServer};
use serde_json::json;

use crate::scripted;
use crate::support::{Chat, Person, World, check};
use crate::undo::picture;

/// A turn in which the person does something while a command runs: `started` is there then, and it waits for `go`.
async fn turn_with(world: &World, chat: &mut Chat, prompt: &str, person: impl Fn()) {
    let mut turn = chat.session().clone().prompt(prompt).await.unwrap();
    let mut transcript = Default::default();
    while let Some(event) = turn.next().await.unwrap() {
        // What the command prints is an event, and comes after that.
        if world.root.join("started").exists() && !world.root.join("go").exists() {
            person();
            world.put_at("go", "");
        }
        chat.handle(event, &mut transcript).await;
    }
    fs::remove_file(world.root.join("started")).unwrap();
    fs::remove_file(world.root.join("go")).unwrap();
}

const WAIT: &str = "> ../started; echo ready; until [ -e ../go ]; do sleep 0.01; done";

#[tokio::test]
async fn what_the_person_changes_while_a_command_runs_is_left_unless_it_is_asked_for() {
    for after_reload in [false, true] {
        let world = scripted().await;
        for name in ["mine.txt", "edited.txt", "formatted.txt", "made.txt"] {
            world.put(name, "before\n");
        }
        let mut chat = world.open(Person::new()).await;
        let edit = |name: &str| {
            format!(
                "call read_file {{\"path\":\"{name}\"}}\ncall edit_file {{\"path\":\"{name}\",\"old_text\":\"before\",\"new_text\":\"after\"}}"
            )
        };
        let command = format!("{WAIT}; echo made > made.txt; echo formatted > formatted.txt");
        let prompt = format!(
            "{}\n{}\ncall run_command {{\"command\":\"{command}\"}}",
            edit("edited.txt"),
            edit("formatted.txt")
        );
        turn_with(&world, &mut chat, &prompt, || world.put("mine.txt", "mine\n")).await;
        let diff = chat.turn("/diff").await;
        check(
            &diff,
            r#"
            text Changed by the agent:
              |
              | ```diff
              | --- a/edited.txt
              | +++ b/edited.txt
              | @@ -1 +1 @@
              | -before
              | +after
              | --- a/formatted.txt
              | +++ b/formatted.txt
              | @@ -1 +1 @@
              | -before
              | +after
              | ```
              |
              | Changed while a command or another program ran:
              |
              | ```diff
              | --- a/formatted.txt
              | +++ b/formatted.txt
              | @@ -1 +1 @@
              | -after
              | +formatted
              | --- a/made.txt
              | +++ b/made.txt
              | @@ -1 +1 @@
              | -before
              | +made
              | --- a/mine.txt
              | +++ b/mine.txt
              | @@ -1 +1 @@
              | -before
              | +mine
              | ```
            stop end_turn
            "#,
        );
        let reloaded = async |chat: Chat| {
            if !after_reload {
                return chat;
            }
            let id = chat.session().id().clone();
            drop(chat);
            let mut chat = world.connect(Person::new()).await;
            chat.session = Some(chat.connection.session(world.project()).load(id).await.unwrap());
            // What is told again comes before that.
            chat.turn("/status").await;
            chat
        };
        let mut chat = reloaded(chat).await;
        check(
            &chat.turn("/undo").await,
            r#"
            text Took back what the agent changed in its last turn with changes:
              |
              | - `edited.txt`: restored
              |
              | Changed while a command or another program ran, perhaps by you, and left as it is:
              |
              | - `formatted.txt`, with what the agent changed before that
              | - `made.txt`
              | - `mine.txt`
              |
              | Type `/undo all` to take this back.
              |
              | Commands ran in that turn. Not covered: files that git ignores, git's own data, and everything outside of the project.
            stop end_turn
            "#,
        );
        let left =
            "edited.txt \"before\\n\"\nformatted.txt \"formatted\\n\"\nmade.txt \"made\\n\"\nmine.txt \"mine\\n\"";
        assert_eq!(world.files(), left);
        // What was changed after that is nobody's but the person's.
        world.put("mine.txt", "mine, too\n");
        let mut chat = reloaded(chat).await;
        let seen = chat.turn("/undo all").await;
        assert!(seen.contains("`formatted.txt`: restored") && seen.contains("`made.txt`: restored"), "{seen}");
        assert!(seen.contains("`mine.txt`: it has changed since") && !seen.contains("edited.txt"), "{seen}");
        let left =
            "edited.txt \"before\\n\"\nformatted.txt \"before\\n\"\nmade.txt \"before\\n\"\nmine.txt \"mine, too\\n\"";
        assert_eq!(world.files(), left);
        assert!(chat.turn("/undo all").await.contains("nothing to undo: no turn"));
    }
}

#[tokio::test]
async fn the_rest_of_a_turn_is_the_time_of_a_job_but_what_the_agent_edits_meanwhile_is_its_own() {
    let world = scripted().await;
    world.put("a.txt", "before\n");
    world.put("mine.txt", "before\n");
    let mut chat = world.open(Person::new()).await;
    let prompt = format!(
        "call run_command {{\"command\":\"sleep 60\",\"background\":true}}\n\
         call read_file {{\"path\":\"a.txt\"}}\n\
         call edit_file {{\"path\":\"a.txt\",\"old_text\":\"before\",\"new_text\":\"after\"}}\n\
         call run_command {{\"command\":\"{WAIT}\"}}"
    );
    turn_with(&world, &mut chat, &prompt, || world.put("mine.txt", "mine\n")).await;
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("- `a.txt`: restored") && seen.contains("- `mine.txt`\n"), "{seen}");
    assert_eq!(world.files(), "a.txt \"before\\n\"\nmine.txt \"mine\\n\"");
}

#[tokio::test]
async fn turns_that_were_left_in_part_are_taken_back_in_order() {
    let world = scripted().await;
    world.put("a.txt", "0\n");
    let before = picture(&world);
    let mut chat = world.open(Person::new()).await;
    chat.turn(
        "call read_file {\"path\":\"a.txt\"}\ncall write_file {\"path\":\"a.txt\",\"content\":\"1\\n\"}\n\
         call write_file {\"path\":\"old/b.txt\",\"content\":\"b\\n\"}\ncall move_file {\"from\":\"old\",\"to\":\"new\"}",
    )
    .await;
    chat.turn("call run_command {\"command\":\"echo 2 > a.txt; echo c > new/c.txt\"}").await;
    let after = picture(&world);
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("- `a.txt`\n") && seen.contains("- `new/c.txt`\n"), "{seen}");
    // The turn before that is in the way of what was left.
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("- `a.txt`, with what the agent changed before that"), "{seen}");
    assert_eq!(picture(&world), after, "{seen}");
    chat.turn("/undo all").await;
    let seen = chat.turn("/undo all").await;
    assert_eq!(picture(&world), before, "{seen}");
}

/// The agent edits a file twice in one turn, and somebody does something to it in between.
async fn edited_twice(between: impl Fn(&PathBuf) + Send + 'static) -> (World, Chat) {
    let path = Arc::new(OnceLock::new());
    let edited = path.clone();
    let edit = |old: &str, new: &str| {
        Answer::new().call("edit_file", json!({"path": "a.txt", "old_text": old, "new_text": new}))
    };
    let read = || Answer::new().call("read_file", json!({"path": "a.txt"}));
    let server = ModelServer::with(move |request: &ModelRequest| match request.tool_results().len() {
        0 => read(),
        1 => edit("one", "ONE"),
        2 => {
            between(edited.get().unwrap());
            read()
        }
        3 => edit("two", "TWO"),
        _ => Answer::text("Done."),
    });
    let world = World::new("openai:scripted", Some(server.await));
    path.set(world.project().join("a.txt")).unwrap();
    world.put("a.txt", "one\ntwo\n");
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("edit it").await;
    assert!(seen.ends_with("stop end_turn") && !seen.contains("failed"), "{seen}");
    (world, chat)
}

#[tokio::test]
async fn what_somebody_adds_between_two_edits_of_the_agent_stays() {
    let (world, mut chat) = edited_twice(|path| fs::write(path, "ONE\ntwo\nmine\n").unwrap()).await;
    assert_eq!(world.files(), r#"a.txt "ONE\nTWO\nmine\n""#);
    check(
        &chat.turn("/undo").await,
        r#"
        text Took back what the agent changed in its last turn with changes:
          |
          | - `a.txt`: restored
          |
          | Left alone:
          |
          | - `a.txt`: the agent's earlier change of it stays, because somebody else changed it in between
        stop end_turn
        "#,
    );
    assert_eq!(world.files(), r#"a.txt "ONE\ntwo\nmine\n""#);
    // Where nobody came in between, it is one change.
    let (world, mut chat) = edited_twice(|_| {}).await;
    let seen = chat.turn("/undo").await;
    assert!(!seen.contains("Left alone"), "{seen}");
    assert_eq!(world.files(), r#"a.txt "one\ntwo\n""#);
}
