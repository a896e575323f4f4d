//! Messages, thoughts and plans: what a client only shows.

use attache_proto::Dialect;
use serde_json::{Value, json};

use super::DONE;
use crate::probe::client::AgentDriver;
use crate::probe::client::scenario::Stop;

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// A sound of no length.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

pub(in crate::probe::client) async fn text(agent: &mut AgentDriver) -> Stop {
    let (one, other) = (format!("text-{}", agent.mint()), format!("text-{}", agent.mint()));
    for piece in ["A message", " in three", " pieces: `code`, *text*, \u{1f980} and \u{202e}turned\u{202c} text.\n"] {
        agent.chunk("agent_message_chunk", &one, piece).await;
    }
    for (id, piece) in
        [(&one, "One. "), (&other, "Other. "), (&one, "One again. "), (&other, "\u{1b}[31mOther\u{1b}[0m again.")]
    {
        agent.chunk("agent_message_chunk", id, piece).await;
    }
    let thought = format!("thought-{}", agent.mint());
    for piece in ["What would", " come next?", ""] {
        agent.chunk("agent_thought_chunk", &thought, piece).await;
    }
    agent.say("That was it.").await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn whole_messages(agent: &mut AgentDriver) -> Stop {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let (message, thought) = (format!("whole-{}", agent.mint()), format!("whole-{}", agent.mint()));
    agent.update(json!({"sessionUpdate": "agent_thought", "messageId": thought, "content": text("Thinking.")})).await;
    agent.chunk("agent_message_chunk", &message, "A beginning that").await;
    agent.update(json!({"sessionUpdate": "agent_message", "messageId": message, "content": text("A message")})).await;
    agent.chunk("agent_message_chunk", &message, ", continued").await;
    // Nothing changes.
    agent.update(json!({"sessionUpdate": "agent_message", "messageId": message})).await;
    agent.update(json!({"sessionUpdate": "agent_thought", "messageId": thought, "content": null})).await;
    agent.update(json!({"sessionUpdate": "agent_message", "messageId": message, "content": []})).await;
    agent.update(json!({"sessionUpdate": "agent_message", "messageId": message, "content": text("A new text.")})).await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn kinds(agent: &mut AgentDriver) -> Stop {
    let uri = "file:///check/notes.md";
    let blocks = [
        json!({"type": "text", "text": "For you: ", "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-11-01T12:00:00Z"}}),
        json!({"type": "image", "data": PIXEL, "mimeType": "image/png"}),
        json!({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}),
        json!({"type": "resource_link", "name": "notes.md", "uri": uri, "mimeType": "text/markdown", "size": 12}),
        json!({"type": "resource", "resource": {"uri": uri, "text": "# Notes\n", "mimeType": "text/markdown"}}),
        json!({"type": "resource", "resource": {"uri": uri, "blob": PIXEL, "mimeType": "image/png"}}),
    ];
    let id = format!("kinds-{}", agent.mint());
    for content in blocks {
        agent.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": content})).await;
    }
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn unknown(agent: &mut AgentDriver) -> Stop {
    let session = agent.session().to_owned();
    let id = format!("unknown-{}", agent.mint());
    let said = |content: Value| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": content});
    let updates = [
        json!({"sessionUpdate": "_attache_weather", "sun": true}),
        json!({"sessionUpdate": "weather", "sun": [1, {"two": null}]}),
        said(json!({"type": "_attache_smell", "data": "roses"})),
        said(json!({"type": "smell", "data": "roses"})),
        said(
            json!({"type": "text", "text": "Extended.", "_meta": {"check.example/more": 1}, "annotations": {"audience": ["_attache_robot"]}}),
        ),
        json!({"sessionUpdate": "agent_message_chunk", "messageId": 7, "content": "no object"}),
        json!({"sessionUpdate": 3}),
        json!("no object"),
        Value::Null,
    ];
    for update in updates {
        agent.update(update).await;
    }
    agent.notify("session/update", json!({"sessionId": session})).await;
    agent.notify("session/update", json!({"update": {"sessionUpdate": "agent_message_chunk"}})).await;
    agent.ping().await;
    agent.say("Still here.").await;
    DONE
}

pub(in crate::probe::client) async fn long(agent: &mut AgentDriver) -> Stop {
    let id = format!("long-{}", agent.mint());
    let line = "Forty characters of text that is a line.\n";
    agent.chunk("agent_message_chunk", &id, &line.repeat((4 << 20) / line.len() + 1)).await;
    agent.ping().await;
    for _ in 0..1000 {
        agent.chunk("agent_message_chunk", &id, "short ").await;
    }
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn plan(agent: &mut AgentDriver) -> Stop {
    let id = format!("plan-{}", agent.mint());
    let entry = |content: &str, priority: &str, status: &str| json!({"content": content, "priority": priority, "status": status});
    let plans = [
        vec![entry("Look", "high", "pending"), entry("Think", "medium", "pending"), entry("Act", "low", "pending")],
        vec![
            entry("Look", "high", "completed"),
            entry("Think", "medium", "in_progress"),
            entry("Act", "low", "pending"),
        ],
        vec![entry("Look", "high", "completed"), entry("Think", "medium", "completed")],
        Vec::new(),
    ];
    for entries in plans {
        let update = match agent.dialect() {
            Dialect::V1 => json!({"sessionUpdate": "plan", "entries": entries}),
            Dialect::V2Draft => {
                json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "id": id, "entries": entries}})
            }
            Dialect::V2 => {
                json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": id, "entries": entries}})
            }
        };
        agent.update(update).await;
    }
    agent.ping().await;
    DONE
}
