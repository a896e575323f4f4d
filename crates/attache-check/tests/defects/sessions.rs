//! Sessions: opening, replaying, closing, listing and deleting them.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{
    Row, accept, agent, client, first_sending, is_update, notification, refusing, refusing_some, remove, request,
    to_request,
};

/// Says something in a session that nobody has opened.
fn telling_of_another_session() -> Defect {
    first_sending(
        |message| is_update(message, "agent_message_chunk"),
        |message| notification("session/update", json!({"sessionId": "nobody", "update": message["params"]["update"]})),
    )
}

pub(crate) fn rows() -> Vec<Row> {
    let is_prompt = |message: &Value| message["method"] == "session/prompt";
    let opening = |alter: fn(&mut Value)| Defect::in_params("session/new", alter);
    vec![
        agent("sessions/unique-id", V1, giving_an_id_again()),
        agent(
            "sessions/baseline",
            V2,
            refusing_some(|asked| asked["method"] == "session/list" && asked["id"].is_number(), -32601),
        ),
        agent("sessions/own-sessions", V1, telling_of_another_session()),
        agent("sessions/own-sessions", V2, telling_of_another_session()),
        agent("sessions/offers-kept", V1, refusing("session/delete", -32601)),
        client(
            "sessions/offered",
            V1,
            first_sending(is_prompt, |_| request("delete", "session/delete", json!({"sessionId": "none"}))),
        ),
        agent("sessions/absolute-cwd", V1, in_listed(|session| session["cwd"] = "project".into())),
        client(
            "sessions/absolute-cwd",
            V1,
            Defect::in_params("session/load", |params| params["cwd"] = "project".into()),
        ),
        agent(
            "sessions/absolute-directories",
            V2,
            in_listed(|session| session["additionalDirectories"] = json!(["library"])),
        ),
        client(
            "sessions/absolute-directories",
            V1,
            opening(|params| {
                if params["additionalDirectories"].is_array() {
                    params["additionalDirectories"] = json!(["library"]);
                }
            }),
        ),
        client(
            "sessions/directories-offered",
            V1,
            opening(|params| params["additionalDirectories"] = json!(["/library"])),
        ),
        client(
            "sessions/resume-cwd",
            V2,
            Defect::in_params("session/resume", |params| params["cwd"] = "/other".into()),
        ),
        agent(
            "sessions/lists-are-arrays",
            V2,
            Defect::in_results("session/new", |result| result["availableCommands"] = Value::Null),
        ),
        agent(
            "sessions/load-replays",
            V1,
            Defect::without(|_, message| super::is_update(message, "user_message_chunk")),
        ),
        agent("sessions/replay-then-answer", V1, answering_before_the_replay()),
        agent("sessions/resume-is-silent", V1, replaying_unasked()),
        agent("sessions/unknown-replay", V2, taking_any_replay()),
        agent(
            "sessions/close-cancels",
            V1,
            to_request(
                |asked| asked["id"] == 96,
                |mut answer| {
                    answer["result"]["stopReason"] = "end_turn".into();
                    vec![Flow::from_peer(answer)]
                },
            ),
        ),
        agent("sessions/silent-after-close", V2, talking_after_the_close()),
        agent("sessions/list-fields", V1, in_listed(|session| remove(session, "cwd"))),
        agent("sessions/list-pages", V1, leading_in_a_circle()),
        client(
            "sessions/cursor-as-given",
            V1,
            Defect::in_params("session/list", |params| {
                if params["cursor"].is_string() {
                    params["cursor"] = "made-up".into();
                }
            }),
        ),
        agent("sessions/deleted-gone", V1, keeping_what_was_deleted()),
        agent(
            "sessions/list-cwd",
            V2,
            to_request(
                |asked| asked["params"]["cwd"] == "/nowhere",
                |mut answer| {
                    answer["result"]["sessions"] = json!([{"sessionId": "elsewhere", "cwd": "/project"}]);
                    vec![Flow::from_peer(answer)]
                },
            ),
        ),
    ]
}

/// Gives the second session with MCP servers the id of the first.
fn giving_an_id_again() -> Defect {
    Defect::altering(|memory, message| {
        let asked = memory.answered(Way::FromPeer, message);
        let is_meant = asked.is_some_and(|asked| asked["params"]["mcpServers"][0]["command"].is_string());
        if !is_meant || message["result"].is_null() {
            return;
        }
        if memory.kept("first").is_string() {
            message["result"]["sessionId"] = memory.kept("first").clone();
        } else {
            memory.keep("first", message["result"]["sessionId"].clone());
        }
    })
}

fn taking_any_replay() -> Defect {
    Defect::in_messages(|memory, mut message| {
        let asked = memory.answered(Way::FromPeer, &message).cloned().unwrap_or_default();
        if asked["params"]["replayFrom"]["type"] != "end" {
            return vec![Flow::from_peer(message)];
        }
        accept(&mut message, json!({}));
        let update = json!({"sessionUpdate": "state_update", "state": "idle"});
        let state = json!({"sessionId": asked["params"]["sessionId"], "update": update});
        vec![Flow::from_peer(notification("session/update", state)), Flow::from_peer(message)]
    })
}

/// Alters each session of a list.
fn in_listed(alter: fn(&mut Value)) -> Defect {
    Defect::in_results("session/list", move |result| {
        result["sessions"].as_array_mut().into_iter().flatten().for_each(alter);
    })
}

/// Holds back what it replays until the request is answered.
fn answering_before_the_replay() -> Defect {
    Defect::new(|memory, way, message| {
        if way == Way::ToPeer {
            if message["method"] == "session/load" {
                memory.keep("held", json!([]));
            }
            return vec![Flow::to_peer(message)];
        }
        if memory.answered_method(way, &message) == Some("session/load") {
            let held = memory.take("held");
            let held = held.as_array().cloned().unwrap_or_default();
            return std::iter::once(message).chain(held).map(Flow::from_peer).collect();
        }
        if message["method"] == "session/update" && memory.kept("held").is_array() {
            let mut held = memory.take("held");
            held.as_array_mut().unwrap().push(message);
            memory.keep("held", held);
            return Vec::new();
        }
        vec![Flow::from_peer(message)]
    })
}

/// Says again what it has said when a session is resumed.
fn replaying_unasked() -> Defect {
    Defect::in_messages(|memory, message| {
        if message["method"] == "session/update"
            && message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
        {
            let mut said = memory.take("said").as_array().cloned().unwrap_or_default();
            said.push(message.clone());
            memory.keep("said", said);
        }
        let asked = memory.answered(Way::FromPeer, &message).cloned().unwrap_or_default();
        if asked["method"] != "session/resume" || message["result"].is_null() {
            return vec![Flow::from_peer(message)];
        }
        let said = memory.take("said").as_array().cloned().unwrap_or_default();
        let said = said.into_iter().filter(|said| said["params"]["sessionId"] == asked["params"]["sessionId"]);
        said.chain([message]).map(Flow::from_peer).collect()
    })
}

fn talking_after_the_close() -> Defect {
    Defect::in_messages(|memory, message| {
        let asked = memory.answered(Way::FromPeer, &message).cloned().unwrap_or_default();
        let mut flows = vec![Flow::from_peer(message)];
        if asked["method"] == "session/close" {
            let update = json!({"sessionUpdate": "session_info_update", "title": "Closed"});
            let params = json!({"sessionId": asked["params"]["sessionId"], "update": update});
            flows.push(Flow::from_peer(notification("session/update", params)));
        }
        flows
    })
}

/// Gives the second page as the one behind the second page.
fn leading_in_a_circle() -> Defect {
    Defect::altering(|memory, message| {
        let asked = memory.answered(Way::FromPeer, message).cloned().unwrap_or_default();
        if asked["method"] == "session/list" && asked["params"]["cursor"] == "2" && message["result"].is_object() {
            message["result"]["nextCursor"] = "2".into();
        }
    })
}

fn keeping_what_was_deleted() -> Defect {
    Defect::altering(|memory, message| {
        let asked = memory.answered(Way::FromPeer, message).cloned().unwrap_or_default();
        match asked["method"].as_str() {
            Some("session/delete") => memory.keep("deleted", asked["params"]["sessionId"].clone()),
            Some("session/list") if memory.kept("deleted").is_string() && message["result"].is_object() => {
                let session = json!({"sessionId": memory.kept("deleted"), "cwd": "/project"});
                message["result"]["sessions"].as_array_mut().unwrap().push(session);
            }
            _ => {}
        }
    })
}
