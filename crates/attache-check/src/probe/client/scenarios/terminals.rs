//! Commands that the client runs.

use serde_json::{Value, json};

use super::DONE;
use crate::probe::client::scenario::Stop;
use crate::probe::client::{AgentDriver, Answer};

/// Starts a shell script. Returns the id of its terminal, if it has one.
async fn start(agent: &mut AgentDriver, script: &str, more: Value) -> Option<String> {
    if !agent.is_offered("terminal") {
        return None;
    }
    let mut params = json!({"sessionId": agent.session(), "command": "sh", "args": ["-c", script], "cwd": agent.cwd()});
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    let answer = agent.ask("terminal/create", params).await;
    answer.result()["terminalId"].as_str().map(str::to_owned)
}

fn named(agent: &AgentDriver, terminal: &str) -> Value {
    json!({"sessionId": agent.session(), "terminalId": terminal})
}

async fn about(agent: &mut AgentDriver, method: &str, terminal: &str) -> Answer {
    let params = named(agent, terminal);
    agent.ask(method, params).await
}

/// A terminal is released whatever has become of the turn.
async fn give_back(agent: &mut AgentDriver, terminal: &str) {
    let params = named(agent, terminal);
    agent.ask_always("terminal/release", params).await;
}

pub(in crate::probe::client) async fn usual(agent: &mut AgentDriver) -> Stop {
    let script = "printf 'one\\ntwo %s\\n' \"$ATTACHE_CHECK\"; exit 3";
    let environment = json!({"env": [{"name": "ATTACHE_CHECK", "value": "three"}], "outputByteLimit": 1 << 20});
    let Some(terminal) = start(agent, script, environment).await else { return DONE };
    let content = json!([{"type": "terminal", "terminalId": terminal}]);
    let call = agent.tool("A command", json!({"kind": "execute", "status": "in_progress", "content": content})).await;
    about(agent, "terminal/wait_for_exit", &terminal).await;
    about(agent, "terminal/output", &terminal).await;
    about(agent, "terminal/wait_for_exit", &terminal).await;
    agent.note("a command that has ended is killed");
    about(agent, "terminal/kill", &terminal).await;
    about(agent, "terminal/output", &terminal).await;
    give_back(agent, &terminal).await;
    agent.note("a terminal that was released");
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"] {
        about(agent, method, &terminal).await;
    }
    agent.tool_update(&call, json!({"status": "completed"})).await;
    DONE
}

pub(in crate::probe::client) async fn kill(agent: &mut AgentDriver) -> Stop {
    let Some(terminal) = start(agent, "echo begun; sleep 60", json!({})).await else { return DONE };
    about(agent, "terminal/output", &terminal).await;
    let params = named(agent, &terminal);
    let waits = [
        agent.request("terminal/wait_for_exit", params.clone()).await,
        agent.request("terminal/wait_for_exit", params.clone()).await,
    ];
    agent.note("other requests are served while somebody waits for a command");
    agent.ping().await;
    agent.ask_always("terminal/kill", params).await;
    agent.wait_for(&waits, agent.options.patience).await;
    agent.note("a command that was killed keeps its terminal");
    about(agent, "terminal/output", &terminal).await;
    about(agent, "terminal/wait_for_exit", &terminal).await;
    give_back(agent, &terminal).await;
    DONE
}

pub(in crate::probe::client) async fn release(agent: &mut AgentDriver) -> Stop {
    let first = start(agent, "sleep 60", json!({})).await;
    let second = start(agent, "sleep 60", json!({"args": ["-c", "sleep 60"]})).await;
    let (Some(first), Some(second)) = (first.clone(), second) else {
        // One that has begun is given back all the same.
        if let Some(first) = first {
            give_back(agent, &first).await;
        }
        return DONE;
    };
    let params = named(agent, &first);
    let wait = agent.request("terminal/wait_for_exit", params).await;
    give_back(agent, &first).await;
    agent.wait_for(&[wait], agent.options.patience).await;
    agent.note("the other terminal is still there");
    about(agent, "terminal/output", &second).await;
    give_back(agent, &second).await;
    agent.note("a terminal that was released");
    about(agent, "terminal/output", &first).await;
    DONE
}

pub(in crate::probe::client) async fn limit(agent: &mut AgentDriver) -> Stop {
    let script = "i=0; while [ $i -lt 40 ]; do printf '\u{e4}\u{1f980}'; i=$((i+1)); done";
    for bytes in [15, 16, 1, 0] {
        let Some(terminal) = start(agent, script, json!({"outputByteLimit": bytes})).await else { return DONE };
        about(agent, "terminal/wait_for_exit", &terminal).await;
        about(agent, "terminal/output", &terminal).await;
        give_back(agent, &terminal).await;
    }
    DONE
}

pub(in crate::probe::client) async fn unknown(agent: &mut AgentDriver) -> Stop {
    if !agent.is_offered("terminal") {
        return DONE;
    }
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"] {
        about(agent, method, "terminal-never-created").await;
    }
    agent.note("a program that does not exist");
    let params = json!({"sessionId": agent.session(), "command": "attache-check-no-such-program", "args": ["x"]});
    let answer = agent.ask("terminal/create", params).await;
    if let Some(terminal) = answer.result()["terminalId"].as_str().map(str::to_owned) {
        about(agent, "terminal/wait_for_exit", &terminal).await;
        give_back(agent, &terminal).await;
    }
    agent.note("params without a command");
    let session = agent.session().to_owned();
    agent.ask("terminal/create", json!({"sessionId": session})).await;
    DONE
}
