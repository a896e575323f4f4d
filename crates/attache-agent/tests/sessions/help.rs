//! What the tests of sessions have in common: pictures of sessions, and turns that are cancelled at a moment.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use attache::model::mcp::{McpServer, McpServerStdio};
use attache::model::prompt::StopReason;
use attache::model::session::SessionId;
use attache::model::update::SessionUpdate;
use attache::proto::view::{Entry, MessageRole};
use attache::{Event, Protocol, SessionView, Stop};
use attache_testkit::model_server::ModelServer;
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::support::{Chat, LONGEST, World};

/// A world whose model does what the lines of a prompt say.
pub(crate) async fn scripted() -> World {
    World::new("openai:scripted", Some(ModelServer::scripted().await))
}

/// The dialects with words for forks and titles.
pub(crate) const STABLE: [Protocol; 2] = [Protocol::V1, Protocol::V2];

/// A turn, added to what a client shows of the session.
pub(crate) async fn show(chat: &mut Chat, view: &mut SessionView, prompt: &str) -> String {
    view.user_prompt(&[prompt.into()]);
    view.begin_turn();
    let seen = chat.turn(prompt).await;
    for update in &chat.updates {
        view.apply(update);
    }
    view.end_turn(&StopReason::EndTurn);
    seen
}

/// What has come for a session between turns.
pub(crate) fn waiting(chat: &Chat) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    while let Some(event) = chat.session().next().now_or_never() {
        match event.unwrap() {
            Event::Update(update) => updates.push(update),
            other => panic!("{other:?}"),
        }
    }
    updates
}

/// Loads a session, and shows what came of its history.
pub(crate) async fn load(chat: &mut Chat, cwd: &Path, id: &SessionId) -> SessionView {
    chat.session = Some(chat.connection.session(cwd).load(id.clone()).await.unwrap());
    let mut view = SessionView::new();
    for update in waiting(chat) {
        view.apply(&update);
    }
    view
}

/// What of a view has to be the same when a session is loaded. The person's messages have no id live in older versions.
pub(crate) fn picture(view: &SessionView) -> Value {
    let all: Value = serde_json::from_str(view.snapshot().as_str()).unwrap();
    let mut timeline = all["timeline"].clone();
    for entry in timeline.as_array_mut().unwrap() {
        if entry["role"] == "user" {
            entry.as_object_mut().unwrap().remove("messageId");
        }
    }
    json!({
        "timeline": timeline,
        "plans": all["plans"],
        "terminals": all["terminals"],
        "title": all["title"],
        "usage": all["usage"],
    })
}

/// Compares two pictures, and names what is different.
#[track_caller]
pub(crate) fn same(one: &Value, other: &Value, what: &str) {
    if one == other {
        return;
    }
    let (one, other) = (serde_json::to_string_pretty(one).unwrap(), serde_json::to_string_pretty(other).unwrap());
    let lines: Vec<String> = one
        .lines()
        .zip(other.lines())
        .filter(|(one, other)| one != other)
        .take(8)
        .map(|(one, other)| format!("{one}\n    {other}"))
        .collect();
    panic!("{what}:\n{}\n--- live ---\n{one}\n--- loaded ---\n{other}", lines.join("\n"));
}

/// Checks that nothing of a session is shown as running.
#[track_caller]
pub(crate) fn is_at_rest(view: &SessionView, what: &str) {
    for call in view.tool_calls() {
        assert!(call.status.is_final(), "{what}: {call:?}");
    }
    for terminal in view.terminals.values() {
        assert!(terminal.exit_status.is_some(), "{what}: {terminal:?}");
    }
    for entry in view.timeline() {
        if let Entry::Compaction(compaction) = entry {
            assert_ne!(compaction.status.as_str(), "in_progress", "{what}");
        }
    }
}

/// All that the agent said, in order.
pub(crate) fn said(view: &SessionView) -> String {
    let texts = view.timeline().iter().filter_map(|entry| match entry {
        Entry::Message(message) if message.role == MessageRole::Agent => Some(message.text()),
        _ => None,
    });
    texts.collect()
}

/// Runs a turn and cancels it when `when` says so; what is asked at that moment is never answered. Gives what is shown
/// then.
pub(crate) async fn cancelled(chat: &mut Chat, prompt: &str, mut when: impl FnMut(&Event) -> bool) -> SessionView {
    let session = chat.session().clone();
    let mut turn = session.prompt(prompt).await.unwrap();
    let (mut view, mut held, mut since) = (SessionView::new(), Vec::new(), None);
    let mut transcript = Default::default();
    loop {
        let next = tokio::time::timeout(LONGEST, turn.next()).await.expect("the turn ends in time");
        let Some(event) = next.unwrap() else { break };
        let is_now = since.is_none() && when(&event);
        if is_now {
            turn.cancel().await.unwrap();
            since = Some(Instant::now());
        }
        match event {
            Event::Update(update) => _ = view.apply(&update),
            other if is_now => held.push(other),
            other => chat.handle(other, &mut transcript).await,
        }
    }
    assert_eq!(turn.stop(), Some(&Stop::Cancelled));
    assert!(since.expect("the moment came").elapsed() < Duration::from_secs(4), "it took longer than a moment");
    is_at_rest(&view, prompt);
    view
}

/// Whether an event shows a piece of text of the agent.
pub(crate) fn is_text(event: &Event) -> bool {
    matches!(event, Event::Update(SessionUpdate::AgentMessageChunk(_)))
}

/// Whether an event shows the status of a call.
pub(crate) fn has_status(event: &Event, wanted: &str) -> bool {
    match event {
        Event::Update(SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call)) => {
            call.status.set().is_some_and(|status| status.as_str() == wanted)
        }
        _ => false,
    }
}

/// A program of this crate's examples. Cargo builds them together with all tests, and puts them beside each other; who
/// runs these tests alone builds them with `cargo build -p attache-agent --examples`.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(program.exists(), "run `cargo build -p attache-agent --examples` first");
    program
}

/// The MCP server of the examples.
pub(crate) fn mcp_server(name: &str, args: &[&str]) -> McpServer {
    let command = example("mcp_server").to_str().unwrap().to_owned();
    McpServer::Stdio(McpServerStdio::new(name, command).args(args.iter().copied()))
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
