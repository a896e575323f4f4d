//! Slash commands over the wire: those that are built in, and the user's own.

use std::time::Duration;

use attache::Event;
use attache::model::command::AvailableCommand;
use attache::model::update::SessionUpdate;
use attache_host::trust::{Contents, Trust};

use crate::help::scripted;
use crate::support::{Chat, DIALECTS, Person, Says, World};

fn names(commands: &[AvailableCommand]) -> Vec<String> {
    let name = |command: &AvailableCommand| match command {
        AvailableCommand::Command(command) => command.name.clone(),
        other => format!("{other:?}"),
    };
    commands.iter().map(name).collect()
}

/// The commands that the client is told of next.
async fn told(chat: &Chat) -> Vec<String> {
    let next = async {
        loop {
            if let Event::Update(SessionUpdate::AvailableCommands(update)) = chat.session().next().await.unwrap() {
                return names(&update.available_commands);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), next).await.expect("the client is told in time")
}

const BUILT_IN: [&str; 10] =
    ["help", "plan", "compact", "init", "undo", "diff", "permissions", "model", "mcp", "status"];

#[tokio::test]
async fn every_built_in_command_is_offered_and_answers() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let mut chat = world.open(Person { says: Says::AllowAlways, ..Person::at(protocol) }).await;
        let offered = match &chat.session().commands()[..] {
            [] => told(&chat).await,
            commands => names(commands),
        };
        assert_eq!(offered, BUILT_IN, "{protocol:?}");

        let seen = chat.turn("/help").await;
        assert!(BUILT_IN.iter().all(|name| seen.contains(&format!("/{name}"))), "{seen}");
        let seen = chat.turn("/compact").await;
        assert!(seen.contains("nothing to compact"), "{seen}");
        assert!(world.model().requests().is_empty());

        chat.turn("call run_command {\"command\":\"echo hello\"}").await;
        let seen = chat.turn("/permissions").await;
        assert!(seen.contains("1. allow") && seen.contains("echo"), "{seen}");
        let seen = chat.turn("/permissions remove 1").await;
        assert!(seen.contains("Removed: allow"), "{seen}");
        let seen = chat.turn("/permissions").await;
        assert!(seen.contains("There are no rules"), "{seen}");
        let seen = chat.turn("/permissions remove x").await;
        assert!(seen.contains("by its number"), "{seen}");

        let seen = chat.turn("/status").await;
        let id = chat.session().id().as_str().to_owned();
        for part in [id.as_str(), "Mode: ask", "Model: `openai:scripted`", "Sandbox:", "Context:"] {
            assert!(seen.contains(part), "{part}: {seen}");
        }
        let seen = chat.turn("/model").await;
        assert!(seen.contains("`openai:scripted`") && seen.contains("`offline:rules`"), "{seen}");
        let seen = chat.turn("/model nothing").await;
        assert!(seen.contains("There is no model `nothing`"), "{seen}");

        let seen = chat.turn("/compact").await;
        assert!(seen.contains("summary"), "{seen}");
        let seen = chat.turn("/init").await;
        assert!(seen.ends_with("stop end_turn"), "{seen}");
        let texts = world.model().requests().last().unwrap().texts();
        assert!(texts.iter().any(|text| text.contains("write an AGENTS.md")), "{texts:?}");

        let seen = chat.turn("/plan").await;
        assert!(seen.contains("Say what to plan"), "{seen}");
        let seen = chat.turn("/plan make it faster").await;
        assert!(seen.contains("mode=architect") || seen.contains("mode architect"), "{seen}");
        let texts = world.model().requests().last().unwrap().texts();
        assert!(texts.iter().any(|text| text.contains("change nothing yet: make it faster")), "{texts:?}");
        let seen = chat.turn("/model offline:rules").await;
        assert!(seen.contains("The model is `offline:rules` now"), "{seen}");
        let count = world.model().requests().len();
        chat.turn("help").await;
        assert_eq!(world.model().requests().len(), count);
        let seen = chat.turn("/nothing of the kind").await;
        assert!(seen.ends_with("stop end_turn"), "{seen}");
    }
}

#[tokio::test]
async fn own_commands_are_offered_and_followed_when_they_change() {
    for protocol in DIALECTS {
        let world = scripted().await;
        world.put_at("config/commands/review.md", "# Review a file\n\nsay Reviewing $ARGUMENTS now.\n");
        let mut chat = world.open(Person::at(protocol)).await;
        let offered = match &chat.session().commands()[..] {
            [] => told(&chat).await,
            commands => names(commands),
        };
        assert_eq!(offered.last().unwrap(), "review");
        let seen = chat.turn("/review a.rs").await;
        assert!(seen.contains("text Reviewing a.rs now."), "{seen}");

        world.put_at("config/commands/greet.md", "say Good day.\n");
        let offered = told(&chat).await;
        assert!(offered.contains(&"greet".to_owned()), "{offered:?}");
        let seen = chat.turn("/greet").await;
        assert!(seen.contains("text Good day."), "{seen}");
        std::fs::remove_file(world.root.join("config/commands/greet.md")).unwrap();
        let offered = told(&chat).await;
        assert!(!offered.contains(&"greet".to_owned()), "{offered:?}");
        // A change right before a prompt holds for it.
        world.put_at("config/commands/review.md", "# Review a file\n\nsay Something else.\n");
        let seen = chat.turn("/review").await;
        assert!(seen.contains("text Something else."), "{seen}");
    }
}

#[tokio::test]
async fn own_commands_are_followed_also_where_nobody_tells_of_changes() {
    let mut world = scripted().await;
    world.config.watches_files = false;
    let chat = world.open(Person::new()).await;
    assert!(!told(&chat).await.contains(&"greet".to_owned()));
    world.put_at("config/commands/greet.md", "say Good day.\n");
    assert!(told(&chat).await.contains(&"greet".to_owned()));
}

#[tokio::test]
async fn commands_of_a_project_need_trust() {
    let world = scripted().await;
    world.put(".attache/commands/theirs.md", "say From the project.\n");
    let mut chat = world.open(Person::new()).await;
    assert!(!told(&chat).await.contains(&"theirs".to_owned()));
    let seen = chat.turn("/theirs").await;
    assert!(!seen.contains("From the project"), "{seen}");
    let trust = Trust::new(world.config.state_dir.join("trust.toml"));
    trust.trust(&Contents::read(&world.project()).unwrap()).unwrap();
    assert!(told(&chat).await.contains(&"theirs".to_owned()));
    let seen = chat.turn("/theirs").await;
    assert!(seen.contains("text From the project."), "{seen}");
    // What changes behind the person's back has no effect any more.
    world.put(".attache/commands/theirs.md", "say Something evil.\n");
    assert!(!told(&chat).await.contains(&"theirs".to_owned()));
    let seen = chat.turn("/theirs").await;
    assert!(seen.contains("There is no command `/theirs`."), "{seen}");
}

#[tokio::test]
async fn a_command_is_replayed_as_it_was_typed() {
    let world: World = scripted().await;
    world.put_at("config/commands/greet.md", "say Good day.\n");
    let mut chat = world.open(Person::new()).await;
    chat.turn("/greet").await;
    let id = chat.session().id().clone();
    chat.session().close().await.unwrap();
    let view = crate::help::load(&mut chat, &world.project(), &id).await;
    let shown = crate::help::picture(&view);
    assert_eq!(shown["timeline"][0]["content"][0]["text"], "/greet");
}
