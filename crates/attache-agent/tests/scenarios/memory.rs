//! What "always" is remembered for: the project, every session of it, and no other; and how it is taken back.

use serde_json::json;

use crate::calling;
use crate::support::{DIALECTS, Person, Says, World, check};
use attache_testkit::model_server::Answer;

/// A world whose model runs the same command in every turn.
async fn running(line: &str, turns: usize) -> World {
    let answers = (0..turns).flat_map(|_| calling(vec![("run_command", json!({"command": line}))]));
    World::answering(answers.collect()).await
}

#[tokio::test]
async fn always_holds_for_the_project_and_for_no_other() {
    for protocol in DIALECTS {
        let world = running("touch ran.txt", 5).await;
        let mut chat = world.open(Person { says: Says::AllowAlways, ..Person::at(protocol) }).await;
        chat.turn("run it").await;
        assert_eq!(chat.asked.len(), 1);
        std::fs::remove_file(world.project().join("ran.txt")).unwrap();
        chat.turn("again").await;
        assert_eq!(chat.asked.len(), 1, "the same session knows");
        check(&world.files(), "ran.txt \"\"");

        // Another process, another session.
        let mut later = world.open(Person { says: Says::RejectOnce, ..Person::at(protocol) }).await;
        later.turn("again").await;
        assert_eq!(later.asked.len(), 0, "another session of the project knows");
        std::fs::create_dir(world.project().join("inner")).unwrap();
        std::fs::create_dir(world.root.join("other")).unwrap();
        later.open(&world.root.join("other")).await;
        later.turn("there").await;
        assert_eq!(later.asked.len(), 1, "another project does not");
        assert!(!world.root.join("other/ran.txt").exists());
    }
}

#[tokio::test]
async fn never_holds_as_well() {
    let world = running("touch ran.txt", 3).await;
    let mut chat = world.open(Person::saying(Says::RejectAlways)).await;
    chat.turn("run it").await;
    assert_eq!(chat.asked.len(), 1);
    chat.says(Says::AllowOnce);
    let seen = chat.turn("again").await;
    check(
        &seen.replace(&rules_file(&world), "RULES"),
        r#"
        tool run_command "touch ran.txt" execute: pending → failed
          | refused: `RULES:3` says: deny the command `touch ran.txt …` for the agent `attache`
        usage
        text Done.
        usage
        stop end_turn
        "#,
    );
    let mut later = world.open(Person::new()).await;
    later.turn("again").await;
    assert!(later.asked.is_empty());
    assert_eq!(world.files(), "");
}

/// The name of the one file of rules for a project that there is.
fn rules_file(world: &World) -> String {
    let files = std::fs::read_dir(world.root.join("state/permissions")).unwrap();
    let path = files.map(|file| file.unwrap().path()).find(|path| path.extension().unwrap() == "toml").unwrap();
    format!("$WORLD/state/permissions/{}", path.file_name().unwrap().to_str().unwrap())
}

#[tokio::test]
async fn what_is_remembered_is_listed_and_taken_back() {
    let world = running("touch ran.txt", 2).await;
    let mut chat = world.open(Person::saying(Says::AllowAlways)).await;
    check(
        &chat.turn("/permissions").await,
        r#"
        text There are no rules. Choose "Always" when you are asked, and one is kept for this project.
        stop end_turn
        "#,
    );
    chat.turn("run it").await;
    check(
        &chat.turn("/permissions").await.replace(&rules_file(&world), "RULES"),
        r#"
        text 1. allow the command `touch ran.txt` for the agent `attache` (RULES:3)
          |
          | `/permissions remove NUMBER` takes back what was kept for this project.
        stop end_turn
        "#,
    );
    check(
        &chat.turn("/permissions remove 2").await,
        r#"
        text Say which, by its number: `/permissions remove 1`
        stop end_turn
        "#,
    );
    check(
        &chat.turn("/permissions remove").await,
        r#"
        text Say which, by its number: `/permissions remove 1`
        stop end_turn
        "#,
    );
    check(
        &chat.turn("/permissions remove 1").await,
        r#"
        text Removed: allow the command `touch ran.txt` for the agent `attache`
        stop end_turn
        "#,
    );
    check(
        &chat.turn("/permissions").await,
        r#"
        text There are no rules. Choose "Always" when you are asked, and one is kept for this project.
        stop end_turn
        "#,
    );
    chat.says(Says::RejectOnce);
    chat.turn("run it again").await;
    assert_eq!(chat.asked.len(), 2, "asked again");
    assert_eq!(world.model().requests().len(), 4, "none of the commands asked the model");
}

#[tokio::test]
async fn rules_of_the_user_cannot_be_taken_back_here() {
    let world = running("touch ran.txt", 1).await;
    world.put_at("config/permissions.toml", "[[rule]]\nverdict = 'allow'\ncommand = ['touch']\n");
    let mut chat = world.open(Person::saying(Says::RejectOnce)).await;
    chat.turn("run it").await;
    assert!(chat.asked.is_empty());
    check(&world.files(), "ran.txt \"\"");
    check(
        &chat.turn("/permissions").await,
        r#"
        text 1. allow the command `touch …` ($WORLD/config/permissions.toml:1)
          |
          | `/permissions remove NUMBER` takes back what was kept for this project.
        stop end_turn
        "#,
    );
    check(
        &chat.turn("/permissions remove 1").await,
        r#"
        text `allow the command `touch …`` is not kept for this project; it stands in $WORLD/config/permissions.toml:1. `attache permissions remove 1` in a terminal removes it.
        stop end_turn
        "#,
    );
}

/// The rules of a project hold as long as it is trusted as it is, also in a session that was open before.
#[tokio::test]
async fn rules_of_a_project_follow_its_trust_while_a_session_is_open() {
    const RULE: &str = "[[rule]]\nverdict = 'VERDICT'\ncommand = ['touch']\n";
    let world = running("touch ran.txt", 5).await;
    let rule = |verdict: &str| world.put(".attache/permissions.toml", &RULE.replace("VERDICT", verdict));
    rule("allow");
    world.trust();
    let mut chat = world.open(Person::saying(Says::RejectOnce)).await;
    chat.turn("run it").await;
    assert_eq!(chat.asked.len(), 0, "trusted");
    rule("deny");
    chat.turn("again").await;
    assert_eq!(chat.asked.len(), 1, "changed, and not trusted again");
    world.trust();
    let seen = chat.turn("again").await;
    assert_eq!(chat.asked.len(), 1, "trusted again");
    let denied = "refused: `~/.attache/permissions.toml:1` says: deny the command `touch …`";
    assert!(seen.contains(denied), "{seen}");
    rule("allow");
    world.trust();
    chat.turn("again").await;
    assert_eq!(chat.asked.len(), 1, "allowed again");
    let trust = attache_host::trust::Trust::new(world.config.state_dir.join("trust.toml"));
    trust.revoke(&world.project()).unwrap();
    chat.turn("again").await;
    assert_eq!(chat.asked.len(), 2, "not trusted any more");
}

#[tokio::test]
async fn one_yes_is_for_one_call_only() {
    let world = World::answering(vec![
        Answer::new()
            .call("run_command", json!({"command": "touch a.txt"}))
            .call("run_command", json!({"command": "touch a.txt"})),
        Answer::text("Done."),
    ])
    .await;
    let mut chat = world.open(Person::new()).await;
    chat.turn("twice").await;
    assert_eq!(chat.asked.len(), 2);
}

#[tokio::test]
async fn an_always_in_the_first_call_of_an_answer_holds_for_the_second() {
    let world = World::answering(vec![
        Answer::new()
            .call("run_command", json!({"command": "touch a.txt"}))
            .call("run_command", json!({"command": "touch a.txt"})),
        Answer::text("Done."),
    ])
    .await;
    let mut chat = world.open(Person::saying(Says::AllowAlways)).await;
    chat.turn("twice").await;
    assert_eq!(chat.asked.len(), 1);
}
