//! Sessions of clients on other machines: they stay where they were opened, and leave nothing behind when nothing was said.

use std::fs;
use std::os::unix::fs::symlink;

use attache::Error;
use attache::client::Session;
use attache_agent::{CodingAgent, SandboxMode};

use crate::support::{Chat, Person, World};

/// Why a turn cannot be had.
async fn refused(session: &Session, prompt: &str) -> Error {
    let mut turn = match session.prompt(prompt).await {
        Ok(turn) => turn,
        Err(error) => return error,
    };
    loop {
        match turn.next().await {
            Ok(Some(event)) => event.decline().await.unwrap(),
            Ok(None) => panic!("`{prompt}` was done"),
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_is_not_followed_while_the_session_is_open() {
    for is_confined in [false, true] {
        let mut world = World::offline();
        world.config.stays_inside = true;
        if is_confined && attache_host::sandbox::Sandbox::check().is_ok() {
            world.config.sandbox = SandboxMode::On;
        }
        world.put("sub/a.txt", "inside");
        world.put_at("outside/a.txt", "the cheese is old");
        let mut chat = world.connect(Person::new()).await;
        chat.open(&world.project().join("sub")).await;
        let seen = chat.turn("run touch made && echo it works").await;
        assert!(seen.contains("stop end_turn") && world.project().join("sub/made").exists(), "{seen}");
        fs::rename(world.project().join("sub"), world.project().join("old")).unwrap();
        symlink(world.root.join("outside"), world.project().join("sub")).unwrap();
        for prompt in ["run touch got-through", "run cat a.txt", "read a.txt", "list"] {
            let error = refused(chat.session(), prompt).await;
            assert!(error.to_string().contains("not where it was"), "{prompt}: {error}");
        }
        assert_eq!(fs::read_dir(world.root.join("outside")).unwrap().count(), 1);
    }
}

/// What a name leads to counts, whoever looked at the name before.
#[tokio::test]
async fn sessions_are_beneath_the_directories_that_they_may_have() {
    let mut world = World::offline();
    world.config.beneath = vec![world.project()];
    world.put("sub/a.txt", "");
    world.put_at("outside/a.txt", "");
    symlink(world.root.join("outside"), world.project().join("link")).unwrap();
    let chat = world.connect(Person::new()).await;
    for inside in [world.project(), world.project().join("sub")] {
        chat.connection.session(inside).open().await.unwrap();
    }
    for outside in [world.root.clone(), world.root.join("outside"), world.project().join("link")] {
        let refused = chat.connection.session(&outside).open().await.unwrap_err();
        assert!(refused.to_string().contains("cannot be opened"), "{refused}");
        let refused = chat.connection.session(world.project()).directory(&outside).open().await.unwrap_err();
        assert!(refused.to_string().contains("cannot be opened"), "{refused}");
    }
}

#[tokio::test]
async fn a_session_of_a_client_in_which_nothing_was_said_is_not_kept() {
    let world = World::offline();
    let agent = CodingAgent::new(world.config.clone()).await.unwrap();
    let logs = || {
        let names = fs::read_dir(world.config.sessions_dir()).unwrap().map(|file| file.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().ends_with(".log")).count()
    };
    for _ in 0..3 {
        let chat = Chat::connect(agent.for_owner("anna").server(), Person::new(), &world.root).await;
        for _ in 0..5 {
            let session = chat.connection.session(world.project()).open().await.unwrap();
            session.close().await.unwrap();
        }
        // Not closed, but left.
        chat.connection.session(world.project()).open().await.unwrap();
    }
    let mut chat = Chat::connect(agent.for_owner("anna").server(), Person::new(), &world.root).await;
    chat.open(&world.project()).await;
    chat.turn("help").await;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while logs() > 1 {
        assert!(std::time::Instant::now() < until, "{} are left", logs());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    chat.session().close().await.unwrap();
    assert_eq!(logs(), 1, "what something was said in is kept");
}
