//! The disk is full: the prompt fails with an error that says so, nothing hangs, and nothing stays open.

use attache::{Protocol, SessionView};

use crate::help::{is_at_rest, load};
use crate::served::Served;
use crate::support::{DIALECTS, Person, World};

#[tokio::test]
async fn a_prompt_that_cannot_be_kept_fails_and_the_next_smaller_one_works() {
    for protocol in DIALECTS {
        let world = World::offline();
        // A process that may not write files of more than some blocks stands for a full disk.
        let mut served = Served::start_limited(&world, Person::at(protocol), 64).await;
        served.chat.open(&world.project()).await;
        let id = served.chat.session().id().clone();
        let large = format!("say {}", "x".repeat(100_000));
        let seen = served.chat.turn(large.as_str()).await;
        assert!(seen.contains("error -32603 the session could not be saved"), "{protocol:?}: {seen}");
        assert!(seen.contains("no space left") && !seen.contains("xxx"), "{seen}");
        let seen = served.chat.turn("list").await;
        assert!(seen.ends_with("stop end_turn"), "{protocol:?}: {seen}");
        served.kill().await;
        let mut chat = world.connect(Person::at(protocol)).await;
        load(&mut chat, &world.project(), &id).await;
        let seen = chat.turn("list").await;
        assert!(seen.ends_with("stop end_turn"), "{seen}");
    }
}

#[tokio::test]
async fn a_disk_that_fills_up_in_the_middle_of_a_turn_ends_it_with_every_call_closed() {
    for protocol in [Protocol::V1, Protocol::V2] {
        let world = World::offline();
        let mut served = Served::start_limited(&world, Person::at(protocol), 40).await;
        served.chat.open(&world.project()).await;
        let id = served.chat.session().id().clone();
        let mut view = SessionView::new();
        // In small pieces, so that not even the end of the call has room.
        let run = "run for i in $(seq 500); do echo some more words to fill the disk with: $i; sleep 0.005; done";
        let seen = served.chat.turn(run).await;
        for update in &served.chat.updates {
            view.apply(update);
        }
        assert_eq!(view.tool_calls().count(), 1);
        assert!(seen.contains("could not be saved") && seen.contains("no space left"), "{protocol:?}: {seen}");
        is_at_rest(&view, "the disk is full");
        // Sessions that do not fit are refused, others are listed.
        let listed =
            served.chat.connection.list_sessions(&attache::model::session::ListSessionsRequest::new()).await.unwrap();
        assert_eq!(listed.sessions.len(), 1);
        served.chat.session().close().await.unwrap();
        served.kill().await;

        // There is room again.
        let mut chat = world.connect(Person::at(protocol)).await;
        let loaded = load(&mut chat, &world.project(), &id).await;
        is_at_rest(&loaded, "loaded");
        let seen = chat.turn("list").await;
        assert!(seen.ends_with("stop end_turn"), "{seen}");
    }
}
