//! Questions for permission, and turns that are cancelled.

use serde_json::json;

use super::DONE;
use crate::probe::client::scenario::Stop;
use crate::probe::client::{AgentDriver, Answer};

const USUAL: [(&str, &str); 4] =
    [("yes", "allow_once"), ("always", "allow_always"), ("no", "reject_once"), ("never", "reject_always")];

async fn edit(agent: &mut AgentDriver, title: &str) -> String {
    agent.tool(title, json!({"kind": "edit", "status": "pending"})).await
}

/// Ends a call as the answer says.
async fn settle(agent: &mut AgentDriver, call: &str, answer: &Answer) {
    let option = answer.result()["outcome"]["optionId"].as_str().unwrap_or_default();
    let is_allowed = matches!(option, "yes" | "always");
    if is_allowed {
        agent.tool_update(call, json!({"status": "in_progress"})).await;
    }
    agent.tool_update(call, json!({"status": if is_allowed { "completed" } else { "failed" }})).await;
}

pub(in crate::probe::client) async fn usual(agent: &mut AgentDriver) -> Stop {
    for (title, options) in [("Change `notes.md`", &USUAL[..]), ("Change `more.md`", &USUAL[..1])] {
        let call = edit(agent, title).await;
        let answer = agent.permission(&call, title, options).await;
        settle(agent, &call, &answer).await;
    }
    DONE
}

pub(in crate::probe::client) async fn unknown_kinds(agent: &mut AgentDriver) -> Stop {
    let call = edit(agent, "Change `notes.md`, or so").await;
    let options = [("perhaps", "_attache_perhaps"), ("later", "_attache_later"), ("no", "reject_once")];
    let answer = agent.permission(&call, "Change `notes.md`, or so", &options).await;
    settle(agent, &call, &answer).await;
    let call = edit(agent, "Change `more.md`, or so").await;
    let answer = agent.permission(&call, "Change `more.md`, or so", &options[..2]).await;
    settle(agent, &call, &answer).await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn two_at_once(agent: &mut AgentDriver) -> Stop {
    let (one, other) = (edit(agent, "Change `one.md`").await, edit(agent, "Change `other.md`").await);
    agent.state("requires_action").await;
    let first = agent.ask_permission(&one, "Change `one.md`", &USUAL).await;
    let second = agent.ask_permission(&other, "Change `other.md`", &USUAL).await;
    agent.wait_for(&[first.clone(), second.clone()], agent.limit("session/request_permission")).await;
    if !agent.is_over() {
        agent.state("running").await;
    }
    for (call, id) in [(one, first), (other, second)] {
        let answer = agent.answer(&id);
        settle(agent, &call, &answer).await;
    }
    DONE
}

pub(in crate::probe::client) async fn withdrawn(agent: &mut AgentDriver) -> Stop {
    let call = edit(agent, "Change `notes.md`, or rather not").await;
    let id = agent.ask_permission(&call, "Change `notes.md`, or rather not", &USUAL).await;
    agent.notify("$/cancel_request", json!({"requestId": id})).await;
    agent.wait_for(std::slice::from_ref(&id), agent.limit("session/request_permission")).await;
    // It was answered, or nobody knows it.
    agent.notify("$/cancel_request", json!({"requestId": id})).await;
    agent.notify("$/cancel_request", json!({"requestId": "never-sent"})).await;
    agent.tool_update(&call, json!({"status": "failed"})).await;
    agent.ping().await;
    DONE
}

pub(in crate::probe::client) async fn until_cancelled(agent: &mut AgentDriver) -> Stop {
    let run = agent.tool("A call that takes long", json!({"kind": "execute", "status": "in_progress"})).await;
    let call = edit(agent, "Change `notes.md`, which can wait").await;
    agent.state("requires_action").await;
    let ids = [
        agent.ask_permission(&call, "Change `notes.md`, which can wait", &USUAL).await,
        agent.ask_permission(&call, "Change `notes.md`, really", &USUAL).await,
    ];
    agent.wait_for(&ids, agent.limit("session/request_permission")).await;
    if !agent.is_over() {
        agent.state("running").await;
    }
    agent.idle(agent.options.cancel).await;
    // A late word, which a client should still take.
    let end = if agent.is_over() { "failed" } else { "completed" };
    agent.tool_update(&run, json!({"status": end})).await;
    let answer = agent.answer(&ids[0]);
    settle(agent, &call, &answer).await;
    DONE
}
