//! Cancelled while the model is at work: the answer is `cancelled`, nothing stays open, and the next prompt works.

use std::time::Duration;

use attache::Event;
use attache::model::update::SessionUpdate;
use attache::proto::view::Entry;
use attache::{Protocol, SessionView};
use attache_testkit::model_server::Answer;
use serde_json::json;

use crate::help::{cancelled, has_status, is_text, mcp_server, picture, said};
use crate::support::{Chat, DIALECTS, Person, World};

/// What the status of a call is that was cancelled.
pub(crate) fn cancelled_status(protocol: Protocol) -> &'static str {
    if protocol == Protocol::V2 { "cancelled" } else { "failed" }
}

/// Cancels the answer at a moment in every dialect. The next prompt works, and the model was left while it spoke.
async fn check(answer: Answer, when: impl Fn(&Event) -> bool, then: impl Fn(Protocol, &SessionView)) {
    for protocol in DIALECTS {
        let world = World::answering(vec![answer.clone(), Answer::text("fine")]).await;
        let mut chat = world.open(Person { news: true, ..Person::at(protocol) }).await;
        let view = cancelled(&mut chat, "begin", &when).await;
        then(protocol, &view);
        if !is_retry(&answer) {
            world.model().wait_for_closed(1).await;
        }
        let seen = chat.turn("go on").await;
        assert!(seen.contains("text fine") && seen.ends_with("stop end_turn"), "{protocol:?}: {seen}");
        let texts = world.model().requests().last().unwrap().texts().join("\n\n");
        assert!(texts.starts_with("begin\n\n") && texts.ends_with("\n\ngo on"), "{texts}");
    }
}

/// Whether an answer is one that the model is asked again for.
fn is_retry(answer: &Answer) -> bool {
    format!("{answer:?}").contains("retry-after")
}

/// Cancels a prompt once the model was asked so many times. Gives what was shown.
async fn cancelled_when_asked(world: &World, chat: &Chat, prompt: &str, requests: usize) -> SessionView {
    let session = chat.session().clone();
    let mut turn = session.prompt(prompt).await.unwrap();
    world.model().wait_for_requests(requests).await;
    turn.cancel().await.unwrap();
    let mut view = SessionView::new();
    while let Some(event) = turn.next().await.unwrap() {
        let Event::Update(update) = event else { panic!("{event:?}") };
        view.apply(&update);
    }
    assert_eq!(turn.stop(), Some(&attache::Stop::Cancelled));
    world.model().wait_for_closed(1).await;
    view
}

#[tokio::test]
async fn cancelled_before_the_model_says_a_word() {
    for protocol in DIALECTS {
        let world = World::answering(vec![Answer::hang(), Answer::text("fine")]).await;
        let mut chat = world.open(Person::at(protocol)).await;
        let view = cancelled_when_asked(&world, &chat, "begin", 1).await;
        assert_eq!(said(&view), "");
        let seen = chat.turn("go on").await;
        assert!(seen.contains("text fine"), "{seen}");
    }
}

#[tokio::test]
async fn cancelled_while_the_model_speaks() {
    let answer = Answer::text("these are some words that never end").hang_after(3);
    check(answer, is_text, |_, view| {
        assert!(said(view).starts_with("these"), "{}", said(view));
    })
    .await;
}

#[tokio::test]
async fn cancelled_while_the_model_thinks() {
    let answer = Answer::text("no").thought("a long thought that does not end").hang_after(3);
    let is_thought = |event: &Event| matches!(event, Event::Update(SessionUpdate::AgentThoughtChunk(_)));
    check(answer, is_thought, |_, view| assert_eq!(said(view), "")).await;
}

#[tokio::test]
async fn cancelled_while_arguments_come() {
    let answer = Answer::text("I write").call("write_file", json!({"path": "a.txt", "content": "a".repeat(400)}));
    let answer = answer.piece_size(40).hang_after(6);
    check(
        answer,
        |event| has_status(event, "pending"),
        |protocol, view| {
            let statuses: Vec<&str> = view.tool_calls().map(|call| call.status.as_str()).collect();
            assert_eq!(statuses, [cancelled_status(protocol)], "{protocol:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn cancelled_while_the_second_of_two_calls_comes() {
    let (first, second) =
        (json!({"path": "b.txt", "content": "b"}), json!({"path": "a.txt", "content": "a".repeat(400)}));
    let answer = Answer::new().call("write_file", first).call("write_file", second).piece_size(40).hang_after(6);
    let is_write = |event: &Event| match event {
        Event::Update(SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call)) => {
            call.title.set().is_some_and(|title| title == "Create `a.txt`")
        }
        _ => false,
    };
    check(answer, is_write, |protocol, view| {
        let statuses: Vec<&str> = view.tool_calls().map(|call| call.status.as_str()).collect();
        assert_eq!(statuses, [cancelled_status(protocol); 2], "{protocol:?}");
    })
    .await;
}

#[tokio::test]
async fn cancelled_while_the_agent_waits_to_ask_the_model_again() {
    let busy = Answer::status(429).header("retry-after", "60");
    let is_told = |event: &Event| match event {
        Event::Update(SessionUpdate::Notice(notice)) => notice.title.contains("trying again"),
        Event::Update(SessionUpdate::AgentThoughtChunk(chunk)) => {
            chunk.content.as_text().is_some_and(|text| text.contains("trying again"))
        }
        _ => false,
    };
    check(busy, is_told, |_, view| assert_eq!(said(view), "")).await;
}

#[tokio::test]
async fn cancelled_while_the_conversation_is_compacted() {
    for protocol in DIALECTS {
        let hang = Answer::text("a summary that takes long").hang_after(2);
        let world = World::answering(vec![Answer::text("one"), hang, Answer::text("two")]).await;
        let mut chat = world.open(Person { news: true, ..Person::at(protocol) }).await;
        chat.turn("begin").await;
        let view = cancelled_when_asked(&world, &chat, "/compact", 2).await;
        let statuses: Vec<&str> = view
            .timeline()
            .iter()
            .filter_map(|entry| match entry {
                Entry::Compaction(compaction) => Some(compaction.status.as_str()),
                _ => None,
            })
            .collect();
        // The draft has no words for it.
        let wanted: &[&str] = if protocol == Protocol::V2Draft { &[] } else { &["cancelled"] };
        assert_eq!(statuses, wanted, "{protocol:?}");
        let seen = chat.turn("go on").await;
        assert!(seen.contains("text two"), "{seen}");
        assert_eq!(world.model().requests().last().unwrap().texts(), ["begin", "one", "go on"]);
    }
}

#[tokio::test]
async fn cancelled_while_mcp_servers_are_waited_for() {
    for protocol in DIALECTS {
        let world = World::answering(vec![Answer::text("fine")]).await;
        let mut chat = world.connect(Person::at(protocol)).await;
        let session = chat.connection.session(world.project()).mcp_server(mcp_server("mute", &["--silent"]));
        chat.session = Some(session.open().await.unwrap());
        let is_titled = |event: &Event| matches!(event, Event::Update(SessionUpdate::SessionInfo(_)));
        let view = cancelled(&mut chat, "begin", is_titled).await;
        assert_eq!(said(&view), "");
        assert!(world.model().requests().is_empty(), "{}", picture(&view));
        tokio::time::timeout(Duration::from_secs(3), chat.session().close()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_prompt_that_was_cancelled_in_the_queue_is_not_begun() {
    for protocol in DIALECTS {
        let world = World::answering(vec![Answer::text("some words").hang_after(2), Answer::text("fine")]).await;
        let mut chat = world.open(Person::at(protocol)).await;
        let session = chat.session().clone();
        let mut first = session.prompt("begin").await.unwrap();
        while !first.next().await.unwrap().is_some_and(|event| is_text(&event)) {}
        let mut second = session.prompt("second").await.unwrap();
        session.cancel().await.unwrap();
        while first.next().await.unwrap().is_some() {}
        assert_eq!(first.stop(), Some(&attache::Stop::Cancelled));
        match second.next().await {
            // Version 2 has no turn for a prompt that was never taken in.
            Err(error) => assert!(protocol == Protocol::V2, "{error}"),
            Ok(event) => assert!(event.is_none() && second.stop() == Some(&attache::Stop::Cancelled), "{event:?}"),
        }
        drop(second);
        let seen = chat.turn("go on").await;
        assert!(seen.contains("text fine"), "{seen}");
        let texts = world.model().requests().last().unwrap().texts();
        assert!(!texts.contains(&"second".to_owned()), "{texts:?}");
    }
}
