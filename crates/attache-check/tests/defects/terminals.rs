//! Terminals of the client, and those that an agent shows.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{Row, accept, agent, client, first_sending, is_update, refuse, remove, request};

pub(crate) fn rows() -> Vec<Row> {
    let creating = |alter: fn(&mut Value)| Defect::in_params("terminal/create", alter);
    let output = |alter: fn(&mut Value)| Defect::in_results("terminal/output", alter);
    vec![
        agent("terminals/offered", V2, creating_one_at_once()),
        agent("envelope/params", V1, creating(|params| params["args"] = "all".into())),
        agent("terminals/cwd-absolute", V1, creating(|params| params["cwd"] = "project".into())),
        client("envelope/results", V1, output(|result| remove(result, "truncated"))),
        client("terminals/id-new", V1, calling_all_terminals_the_same()),
        client(
            "terminals/unknown-refused",
            V1,
            Defect::in_answers("terminal/output", |message| {
                accept(message, json!({"output": "", "truncated": false}));
            }),
        ),
        client("terminals/kill-keeps", V1, forgetting_killed_terminals()),
        client("terminals/kill-ends", V1, waiting_for_ever_after_a_kill()),
        client("terminals/limit", V1, output(|result| result["output"] = "x".repeat(2000).into())),
        client(
            "terminals/character-boundary",
            V1,
            output(|result| {
                result["output"] = "\u{fffd}t ran\n".into();
                result["truncated"] = true.into();
            }),
        ),
        agent("terminals/released", V1, never_releasing()),
        agent("terminals/shown-alive", V1, showing_another_terminal()),
        agent(
            "terminals/base64",
            V2,
            Defect::in_updates("terminal_output_chunk", |update| update["data"] = "not base64".into()),
        ),
        agent("terminals/id-not-reused", V2, running_again()),
    ]
}

/// Asks for a terminal before it says something, whoever the client is.
fn creating_one_at_once() -> Defect {
    first_sending(
        |message| is_update(message, "agent_message_chunk"),
        |message| {
            let session = &message["params"]["sessionId"];
            request("create", "terminal/create", json!({"sessionId": session, "command": "true"}))
        },
    )
}

/// Gives a second terminal the id of the first, which it asks the library not to release.
fn calling_all_terminals_the_same() -> Defect {
    Defect::in_results("terminal/create", |result| result["terminalId"] = "the-terminal".into())
}

fn was_killed(request: &Value, killed: &Value) -> bool {
    request["params"]["terminalId"] == *killed && !killed.is_null()
}

fn forgetting_killed_terminals() -> Defect {
    Defect::altering(|memory, message| {
        let Some(asked) = memory.answered(Way::FromPeer, message).cloned() else { return };
        match asked["method"].as_str() {
            Some("terminal/kill") => memory.keep("killed", asked["params"]["terminalId"].clone()),
            Some("terminal/output") if was_killed(&asked, memory.kept("killed")) => refuse(message, -32002),
            _ => {}
        }
    })
}

fn waiting_for_ever_after_a_kill() -> Defect {
    Defect::without(|memory, message| {
        let Some(asked) = memory.answered(Way::FromPeer, message).cloned() else { return false };
        match asked["method"].as_str() {
            Some("terminal/kill") => memory.keep("killed", asked["params"]["terminalId"].clone()),
            Some("terminal/wait_for_exit") => return was_killed(&asked, memory.kept("killed")),
            _ => {}
        }
        false
    })
}

/// Takes the agent's releases for the client's answer.
fn never_releasing() -> Defect {
    Defect::in_messages(|_, message| {
        if message["method"] == "terminal/release" {
            return vec![Flow::to_peer(json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}))];
        }
        vec![Flow::from_peer(message)]
    })
}

fn showing_another_terminal() -> Defect {
    Defect::in_updates("tool_call_update", |update| {
        let content = update["content"].as_array_mut().into_iter().flatten();
        content.filter(|item| item["type"] == "terminal").for_each(|item| item["terminalId"] = "other".into());
    })
}

/// Says of a terminal whose command has exited that it runs another one.
fn running_again() -> Defect {
    Defect::in_messages(|memory, message| {
        let mut flows = vec![Flow::from_peer(message.clone())];
        let is_exit = is_update(&message, "terminal_update") && message["params"]["update"]["exitStatus"].is_object();
        if is_exit && memory.is_first("exit") {
            let mut again = message;
            again["params"]["update"]["command"] = "another".into();
            flows.push(Flow::from_peer(again));
        }
        flows
    })
}
