//! What is about sessions as a whole: their options, titles and states, and what comes at the wrong time.

use std::time::Duration;

use attache_proto::Dialect;
use serde_json::json;

use super::DONE;
use crate::probe::client::AgentDriver;
use crate::probe::client::scenario::Stop;
use crate::probe::client::turn::commands;

/// A turn in which nothing is remarkable.
pub(in crate::probe::client) async fn plain(agent: &mut AgentDriver) -> Stop {
    agent.ping().await;
    DONE
}

/// A prompt that is refused, and nothing else.
pub(in crate::probe::client) async fn refused(agent: &mut AgentDriver) -> Stop {
    ping_later(agent).await;
    DONE
}

/// Asks something of a client that does not leave at the end of its turn. A question that it crosses on its way out would be
/// unfair.
async fn ping_later(agent: &mut AgentDriver) {
    agent.idle(Duration::from_millis(500)).await;
    agent.ping().await;
}

pub(in crate::probe::client) async fn unknown(agent: &mut AgentDriver) -> Stop {
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": "nobody-1", "content": {"type": "text", "text": "Nobody reads this."}});
    agent.update_of("check-nobody", chunk).await;
    agent.ping().await;
    let options = json!([{"optionId": "no", "name": "No", "kind": "reject_once"}]);
    let call = json!({"toolCallId": "nobody-call", "title": "Nobody's call"});
    let params = if agent.dialect() == Dialect::V2 {
        json!({"sessionId": "check-nobody", "title": "Nobody's call", "subject": {"type": "tool_call", "toolCall": call}, "options": options})
    } else {
        json!({"sessionId": "check-nobody", "toolCall": call, "options": options})
    };
    agent.ask("session/request_permission", params).await;
    agent.note("params without a session");
    agent.ask("session/request_permission", json!({"options": options})).await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn updates(agent: &mut AgentDriver) -> Stop {
    let dialect = agent.dialect();
    agent.update(commands(dialect)).await;
    let session = agent.session().to_owned();
    if let Some(session) = agent.sessions.get_mut(&session) {
        session.set("mode", "code");
        let options = session.options(dialect);
        if dialect == Dialect::V1 {
            agent.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"})).await;
        }
        agent.update(json!({"sessionUpdate": "config_option_update", "configOptions": options})).await;
    }
    for fields in [json!({"title": "A check", "updatedAt": "2026-11-01T12:00:00Z"}), json!({"title": null})] {
        let mut update = fields;
        update["sessionUpdate"] = "session_info_update".into();
        agent.update(update).await;
    }
    agent.update(json!({"sessionUpdate": "usage_update", "used": 0, "size": 200_000})).await;
    let cost = json!({"amount": 0.25, "currency": "USD"});
    agent.update(json!({"sessionUpdate": "usage_update", "used": 53_000, "size": 200_000, "cost": cost})).await;
    if dialect == Dialect::V2 || (dialect == Dialect::V1 && agent.is_offered("session.notices")) {
        for severity in ["info", "warning", "error", "_attache_joke"] {
            agent.update(json!({"sessionUpdate": "notice", "severity": severity, "title": "A notice", "description": "Only for the check."})).await;
        }
    }
    if dialect == Dialect::V2 || (dialect == Dialect::V1 && agent.is_offered("session.compaction")) {
        compaction(agent).await;
    }
    agent.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []})).await;
    agent.ping().await;
    DONE
}

async fn compaction(agent: &mut AgentDriver) {
    let id = format!("compaction-{}", agent.mint());
    let update = |status: &str| json!({"sessionUpdate": "compaction_update", "compactionId": id, "status": status});
    agent.update(update("in_progress")).await;
    let content = json!({"type": "text", "text": "What was said so far."});
    agent.update(json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": id, "content": content})).await;
    agent.update(update("completed")).await;
}

pub(in crate::probe::client) async fn states(agent: &mut AgentDriver) -> Stop {
    for state in ["running", "running", "requires_action", "running", "_attache_dreaming", "running"] {
        agent.state(state).await;
    }
    agent.ping().await;
    agent.end_turn(DONE).await;
    agent.note("the same state again, then work that nobody asked for");
    for state in ["idle", "idle", "running", "idle"] {
        agent.state(state).await;
    }
    ping_later(agent).await;
    DONE
}

pub(in crate::probe::client) async fn between_turns(agent: &mut AgentDriver) -> Stop {
    let call = agent.tool("A call that goes on", json!({"kind": "execute", "status": "in_progress"})).await;
    agent.end_turn(DONE).await;
    agent.note("the turn has ended");
    agent.say("A word after the end.").await;
    agent.tool_update(&call, json!({"status": "completed"})).await;
    agent.update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2})).await;
    ping_later(agent).await;
    DONE
}

pub(in crate::probe::client) async fn slow(agent: &mut AgentDriver) -> Stop {
    agent.idle(Duration::from_secs(3)).await;
    agent.say("Here I am again.").await;
    DONE
}
