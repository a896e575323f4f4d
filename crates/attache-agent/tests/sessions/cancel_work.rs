//! Cancelled while tools are at work: every call gets an end, no process is left, and the next prompt works.

use std::time::Duration;

use attache::model::tool::ToolCallContent;
use attache::model::update::SessionUpdate;
use attache::{Event, Protocol, SessionView};
use attache_testkit::model_server::Answer;
use serde_json::{Value, json};

use crate::cancel::cancelled_status;
use crate::help::{cancelled, has_status, is_alive, load, mcp_server, picture, said, same, until};
use crate::support::{Chat, DIALECTS, Person, World};

/// One call, then a further one that must not be made, and an answer to the next prompt.
async fn world(name: &str, arguments: Value) -> World {
    let calls = Answer::text("I do it.").call(name, arguments).call("write_file", json!({"path": "b", "content": ""}));
    let world = World::answering(vec![calls, Answer::text("fine")]).await;
    world.put("a.txt", "one\n");
    world
}

/// Cancels at a moment. What is shown and what the model is told is well-formed, and loaded as it was.
async fn check(world: &World, chat: &mut Chat, when: impl FnMut(&Event) -> bool) -> SessionView {
    let protocol = chat.person.protocol;
    let before = world.files();
    let mut view = cancelled(chat, "begin", when).await;
    let statuses: Vec<&str> = view.tool_calls().map(|call| call.status.as_str()).collect();
    assert_eq!(statuses, [cancelled_status(protocol); 2], "{protocol:?}");
    assert_eq!(world.files(), before);

    let seen = chat.turn("go on").await;
    assert!(seen.contains("text fine") && seen.ends_with("stop end_turn"), "{protocol:?}: {seen}");
    let results = world.results();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result.contains("cancelled by the person")), "{results:?}");
    if protocol == Protocol::V2 {
        for update in &chat.updates {
            view.apply(update);
        }
        let id = chat.session().id().clone();
        chat.session().close().await.unwrap();
        let loaded = load(chat, &world.project(), &id).await;
        same(&picture(&view), &picture(&loaded), "loaded after a cancel");
    }
    view
}

#[tokio::test]
async fn cancelled_while_permission_is_asked_for() {
    for protocol in DIALECTS {
        let world = world("write_file", json!({"path": "c.txt", "content": "x"})).await;
        let mut chat = world.open(Person::at(protocol)).await;
        check(&world, &mut chat, |event| matches!(event, Event::Permission(_))).await;
    }
}

#[tokio::test]
async fn cancelled_while_a_question_is_put() {
    // The draft has no words for questions.
    for protocol in [Protocol::V1, Protocol::V2] {
        let world = world("ask_user", json!({"question": "really?"})).await;
        let mut chat = world.open(Person { forms: Some(Some("yes")), ..Person::at(protocol) }).await;
        check(&world, &mut chat, |event| matches!(event, Event::Elicitation(_))).await;
    }
}

#[tokio::test]
async fn cancelled_while_the_client_reads_or_writes_a_file() {
    let person = Person { files: true, ..Person::new() };
    let reading = world("read_file", json!({"path": "a.txt"})).await;
    let mut chat = reading.open(person.clone()).await;
    check(&reading, &mut chat, |event| matches!(event, Event::ReadTextFile(_))).await;

    let writing = world("write_file", json!({"path": "c.txt", "content": "x"})).await;
    let mut chat = writing.open(person).await;
    check(&writing, &mut chat, |event| matches!(event, Event::WriteTextFile(_))).await;
}

/// A command that leaves processes in other sessions, and the files with their ids.
const TREE: &str = "setsid sh -c 'echo $$ >$0/x; sleep 1000' $HERE & (setsid sh -c 'echo $$ >$0/y; exec sleep 1000' $HERE &) ; \
    while ! [ -s $HERE/x ] || ! [ -s $HERE/y ]; do sleep 0.01; done; echo ready; sleep 1000";

/// Whether the output of a command is shown.
fn is_ready(event: &Event) -> bool {
    match event {
        Event::Update(SessionUpdate::TerminalOutputChunk(_)) => true,
        Event::Update(SessionUpdate::ToolCallUpdate(call)) => call.content.set().is_some_and(|content| {
            content.iter().any(|part| match part {
                ToolCallContent::Content(block) => block.content.as_text().is_some_and(|text| text.contains("\nready")),
                _ => false,
            })
        }),
        _ => false,
    }
}

#[tokio::test]
async fn cancelled_while_a_command_runs_no_process_of_it_is_left() {
    for protocol in DIALECTS {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().to_str().unwrap();
        let world = world("run_command", json!({"command": TREE.replace("$HERE", here)})).await;
        let mut chat = world.open(Person::at(protocol)).await;
        let view = check(&world, &mut chat, is_ready).await;
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap().trim().parse().unwrap();
        let pids: Vec<u32> = ["x", "y"].into_iter().map(read).collect();
        until("processes are left", || !pids.iter().any(|pid| is_alive(*pid))).await;
        if protocol == Protocol::V2 {
            let terminals: Vec<_> = view.terminals.values().collect();
            let [terminal] = terminals.as_slice() else { panic!("{terminals:?}") };
            assert!(terminal.exit_status.as_ref().is_some_and(|status| status.signal.is_some()), "{terminal:?}");
        }
    }
}

#[tokio::test]
async fn cancelled_while_a_command_runs_in_the_clients_terminal_it_is_released() {
    let world = world("run_command", json!({"command": "echo ready; sleep 1000"})).await;
    let mut chat = world.open(Person { terminals: true, ..Person::new() }).await;
    check(&world, &mut chat, has_terminal).await;
    assert!(chat.served.iter().any(|served| served == "release"), "{:?}", chat.served);
}

fn has_terminal(event: &Event) -> bool {
    let is_terminal = |part: &ToolCallContent| matches!(part, ToolCallContent::Terminal(_));
    match event {
        Event::Update(SessionUpdate::ToolCallUpdate(call)) => {
            call.content.set().is_some_and(|content| content.iter().any(is_terminal))
        }
        _ => false,
    }
}

#[tokio::test]
async fn cancelled_while_an_mcp_server_works() {
    for protocol in DIALECTS {
        let world = world("tiny__park", json!({})).await;
        let mut chat = world.connect(Person::at(protocol)).await;
        let session = chat.connection.session(world.project()).mcp_server(mcp_server("tiny", &[]));
        chat.session = Some(session.open().await.unwrap());
        let view = cancelled(&mut chat, "begin", |event| has_status(event, "in_progress")).await;
        let statuses: Vec<&str> = view.tool_calls().map(|call| call.status.as_str()).collect();
        assert_eq!(statuses, [cancelled_status(protocol); 2], "{protocol:?}");
        let seen = chat.turn("go on").await;
        assert!(seen.contains("text fine"), "{seen}");
    }
}

#[tokio::test]
async fn a_job_goes_on_when_the_turn_that_looks_at_it_is_cancelled_and_ends_with_the_session() {
    for protocol in DIALECTS {
        let start = json!({"command": "echo $$ >pid; exec sleep 1000", "background": true});
        let world = World::answering(vec![
            Answer::new().call("run_command", start),
            Answer::text("started"),
            Answer::new().call("job_output", json!({"job": "job-1", "wait_seconds": 60})),
            Answer::new().call("job_output", json!({"job": "job-1"})),
            Answer::text("fine"),
        ])
        .await;
        let mut chat = world.open(Person::at(protocol)).await;
        let seen = chat.turn("start it").await;
        assert!(seen.contains("text started"), "{seen}");
        let pid = || std::fs::read_to_string(world.project().join("pid")).ok()?.trim().parse::<u32>().ok();
        until("the job starts", || pid().is_some()).await;
        cancelled(&mut chat, "look", |event| has_status(event, "in_progress")).await;
        assert!(is_alive(pid().unwrap()));
        let seen = chat.turn("look again").await;
        assert!(seen.contains("text fine"), "{seen}");
        assert!(world.results().last().unwrap().contains("`job-1` is running"), "{:?}", world.results());
        tokio::time::timeout(Duration::from_secs(5), chat.session().close()).await.unwrap().unwrap();
        until("the job ends", || !is_alive(pid().unwrap())).await;
    }
}

#[tokio::test]
async fn what_was_done_before_the_cancel_stays_done() {
    let calls = Answer::text("I do both.")
        .call("write_file", json!({"path": "c.txt", "content": "first"}))
        .call("run_command", json!({"command": "echo ready; sleep 1000"}));
    let world = World::answering(vec![calls, Answer::text("fine")]).await;
    let mut chat = world.open(Person::at(Protocol::V2)).await;
    let view = cancelled(&mut chat, "begin", is_ready).await;
    let statuses: Vec<&str> = view.tool_calls().map(|call| call.status.as_str()).collect();
    assert_eq!(statuses, ["completed", "cancelled"]);
    assert_eq!(said(&view), "I do both.");
    assert_eq!(world.files(), "c.txt \"first\"");
    chat.turn("go on").await;
    let results = world.results();
    assert!(!results[0].contains("cancelled") && results[1].contains("cancelled"), "{results:?}");
}
