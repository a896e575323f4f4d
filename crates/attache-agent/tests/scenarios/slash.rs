//! Slash commands: what each of them says, without asking the model where that is not needed.

use attache::model::content::{ContentBlock, ResourceLink};
use attache_testkit::model_server::Answer;

use crate::support::{DIALECTS, Person, World, check};

#[tokio::test]
async fn help_status_and_model_say_how_things_stand() {
    for protocol in DIALECTS {
        let world = World::answering(vec![]).await;
        world.put_at("config/commands/review.md", "# Review a file\n\nLook closely at $ARGUMENTS.\n");
        let mut chat = world.open(Person::at(protocol)).await;
        check(
            &chat.turn("/help").await,
            r#"
            text Commands:
              |
              | - `/help`: List the commands
              | - `/plan [what to plan]`: Read and plan, without changing anything
              | - `/compact`: Put a summary in the place of the conversation
              | - `/init`: Write an AGENTS.md for this project
              | - `/undo [all]`: Take back what the agent changed in its last turn with changes; `all`: also what changed while its commands ran
              | - `/diff [last]`: Show what the agent has changed in this session
              | - `/permissions [remove NUMBER]`: List what is always allowed or refused
              | - `/model [provider:name]`: Show or change the model
              | - `/mcp [login, logout or restart NAME]`: List MCP servers with their tools, prompts and resources
              | - `/status`: Show the status of the session
              | - `/review`: Review a file
              |
              | Own commands are Markdown files in `$WORLD/config/commands`, or in `.attache/commands` of a project that you trust.
            stop end_turn
            "#,
        );
        let status = chat.turn("/status").await.replace(chat.session().id().as_str(), "SESSION");
        check(
            &status,
            r#"
            text - Session: `SESSION`
              | - Directory: `~`
              | - Mode: ask
              | - Model: `openai:scripted`
              | - Context: 0 of 128000 tokens, 0 messages
              | - Sandbox: commands are not confined
            stop end_turn
            "#,
        );
        // Keys in the environment of whoever runs this add models.
        let models = chat.turn("/model").await;
        assert!(models.starts_with("text The model is `openai:scripted`. To choose from:\n"), "{models}");
        assert!(models.contains("- `offline:rules` no language model: follows plain commands\n"), "{models}");
        check(
            &chat.turn("/model nothing:such").await,
            r#"
            text There is no model `nothing:such` to choose. `/model` lists those that there are.
            stop end_turn
            "#,
        );
        let seen = chat.turn("/model offline:rules").await.replace("\nmode ask\n", "\n");
        check(
            &seen,
            r#"
            options mode=ask model=offline:rules
            text The model is `offline:rules` now.
            stop end_turn
            "#,
        );
        assert!(world.model().requests().is_empty());
    }
}

#[tokio::test]
async fn commands_of_the_users_own_and_init_are_prompts() {
    let world = World::answering(vec![Answer::text("Fine."), Answer::text("Written.")]).await;
    world.put_at("config/commands/review.md", "# Review a file\n\nLook closely at $ARGUMENTS.\n");
    let mut chat = world.open(Person::new()).await;
    let attached = ResourceLink::new("notes", "file:///notes.md").into();
    check(
        &chat.turn(vec![ContentBlock::text("/review src/main.rs"), attached]).await,
        "text Fine.\nusage\nstop end_turn",
    );
    check(&chat.turn("/init").await, "text Written.\nusage\nstop end_turn");
    let texts = world.model().requests()[1].texts();
    let link = "<link>/notes.md</link> (the person points to it; read it if you need it)";
    assert_eq!(texts[0], format!("Look closely at src/main.rs.\n\n{link}"), "what is attached stays");
    assert!(texts[2].contains("write an AGENTS.md"), "{texts:?}");
}
