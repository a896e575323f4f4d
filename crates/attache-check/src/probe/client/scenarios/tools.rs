//! Tool calls, and the terminals that an agent shows.

use attache_proto::Dialect;
use serde_json::{Value, json};

use super::DONE;
use crate::probe::client::AgentDriver;
use crate::probe::client::scenario::Stop;

const KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];

pub(in crate::probe::client) async fn statuses(agent: &mut AgentDriver) -> Stop {
    let path = format!("{}/notes.md", agent.cwd().trim_end_matches('/'));
    for kind in KINDS {
        let fields =
            json!({"kind": kind, "status": "pending", "name": format!("{kind}_tool"), "rawInput": {"path": path}});
        let call = agent.tool(&format!("A call to {kind}"), fields).await;
        let places = json!([{"path": path}, {"path": path, "line": 2}]);
        agent.tool_update(&call, json!({"status": "in_progress", "locations": places})).await;
        let content = match kind {
            "edit" => json!([diff(agent.dialect(), &path)]),
            _ => json!([said("Some output."), said("More of it.")]),
        };
        let end = if kind == "delete" { "failed" } else { "completed" };
        agent.tool_update(&call, json!({"status": end, "content": content, "rawOutput": {"count": 2}})).await;
    }
    if agent.dialect() != Dialect::V1 {
        let call = agent.tool("A call whose content comes in pieces", json!({"status": "in_progress"})).await;
        for text in ["one", "two"] {
            let chunk = json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": call, "content": said(text)});
            agent.update(chunk).await;
        }
        agent.tool_update(&call, json!({"status": "completed"})).await;
    }
    if agent.dialect() == Dialect::V2 {
        let call = agent.tool("A call that is paused and cancelled", json!({"status": "paused"})).await;
        agent.tool_update(&call, json!({"status": "cancelled"})).await;
    }
    agent.ping().await;
    DONE
}

fn said(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn diff(dialect: Dialect, path: &str) -> Value {
    if dialect != Dialect::V2 {
        return json!({"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"});
    }
    let patch = format!("diff --git {path} {path}\n--- {path}\n+++ {path}\n@@ -1 +1 @@\n-old\n+new\n");
    let change = json!({"operation": "modify", "path": path, "fileType": "text"});
    json!({"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": patch}})
}

pub(in crate::probe::client) async fn changes(agent: &mut AgentDriver) -> Stop {
    let call = agent.tool("A call that ends early", json!({"status": "completed"})).await;
    agent.tool_update(&call, json!({"content": [said("A late word.")]})).await;
    agent.tool_update(&call, json!({"title": "A call with a new title"})).await;
    agent
        .tool_update(&call, json!({"title": null, "kind": null, "status": null, "content": [], "locations": []}))
        .await;
    let other =
        agent.tool("A call of an unknown kind", json!({"kind": "_attache_dance", "status": "in_progress"})).await;
    agent.tool_update(&other, json!({"status": "_attache_dizzy"})).await;
    agent.tool_update(&other, json!({"content": [{"type": "_attache_steps", "count": 3}]})).await;
    agent.tool_update(&other, json!({"status": "completed", "content": "no list"})).await;
    agent.tool_update("call-never-reported", json!({"status": "completed"})).await;
    agent.ping().await;
    agent.tool_update(&other, json!({"status": "completed"})).await;
    DONE
}

pub(in crate::probe::client) async fn cancellable(agent: &mut AgentDriver) -> Stop {
    let marker = json!({"cancel": {}});
    let call =
        agent.tool("A call that can be cancelled", json!({"status": "in_progress", "capabilities": marker})).await;
    let terminal = format!("terminal-{}", agent.mint());
    let cwd = agent.cwd().to_owned();
    agent.update(json!({"sessionUpdate": "terminal_update", "terminalId": terminal, "command": "sleep 60", "cwd": cwd, "capabilities": marker})).await;
    agent.cancellable.insert(call.clone(), false);
    agent.cancellable.insert(terminal.clone(), false);
    agent.idle(agent.options.cancel).await;
    let is_cancelled = agent.cancellable.remove(&call).unwrap_or_default();
    agent.cancellable.remove(&terminal);
    let status = if is_cancelled || agent.is_over() { "cancelled" } else { "completed" };
    agent.tool_update(&call, json!({"status": status, "capabilities": null})).await;
    let ended = json!({"sessionUpdate": "terminal_update", "terminalId": terminal, "exitStatus": {"signal": "SIGTERM"}, "capabilities": null});
    agent.update(ended).await;
    DONE
}

pub(in crate::probe::client) async fn shown_terminal(agent: &mut AgentDriver) -> Stop {
    let terminal = format!("terminal-{}", agent.mint());
    let cwd = agent.cwd().to_owned();
    let update = |mut fields: Value| {
        fields["sessionUpdate"] = "terminal_update".into();
        fields["terminalId"] = terminal.clone().into();
        fields
    };
    let chunk = |data: &str| json!({"sessionUpdate": "terminal_output_chunk", "terminalId": terminal, "data": data});
    agent.update(update(json!({"command": "cargo test", "cwd": cwd, "size": {"cols": 80, "rows": 24}}))).await;
    let content = json!([{"type": "terminal", "terminalId": terminal}]);
    let call = agent.tool("cargo test", json!({"kind": "execute", "status": "in_progress", "content": content})).await;
    agent.update(update(json!({"output": {"data": "cnVubmluZw=="}}))).await;
    // A character in two pieces, an escape sequence in two pieces, and what is no base64.
    for data in ["w7", "w6", "w==", "tg==", "G1s=", "MzFtcmVkChtbMG0=", "***"] {
        agent.update(chunk(data)).await;
    }
    agent.update(update(json!({"exitStatus": {"exitCode": 0}}))).await;
    agent.tool_update(&call, json!({"status": "completed"})).await;
    agent.ping().await;
    DONE
}
