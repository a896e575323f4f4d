//! Cancelling.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{Row, agent, client, is_update, notification, refuse, refusing_some};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        agent("cancel/ends-the-turn", V1, ending_what_was_cancelled(|_| Vec::new())),
        agent(
            "cancel/says-cancelled",
            V1,
            ending_what_was_cancelled(|mut answer| {
                answer["result"]["stopReason"] = "end_turn".into();
                vec![Flow::from_peer(answer)]
            }),
        ),
        agent(
            "cancel/no-error",
            V1,
            ending_what_was_cancelled(|mut answer| {
                refuse(&mut answer, -32603);
                vec![Flow::from_peer(answer)]
            }),
        ),
        agent("cancel/updates-first", V2, talking_after_the_end()),
        client("cancel/permissions-cancelled", V1, allowing_what_it_cancelled()),
        agent("cancel/late-approval", V2, acting_on_a_late_yes()),
        client("cancel/withdrawn-permission", V2, allowing_what_was_withdrawn()),
        agent("cancel/prompt-request", V1, refusing_some(|asked| asked["id"] == 50, -32603)),
    ]
}

/// Does something to the answers to prompts that `session/cancel` was sent for.
fn ending_what_was_cancelled(apply: impl Fn(Value) -> Vec<Flow> + Send + Sync + 'static) -> Defect {
    Defect::new(move |memory, way, message| {
        if way == Way::ToPeer {
            match message["method"].as_str() {
                Some("session/cancel") => memory.keep("cancelled", true),
                Some("session/prompt") => memory.keep("cancelled", false),
                _ => {}
            }
            return vec![Flow::to_peer(message)];
        }
        let is_end = memory.answered_method(way, &message) == Some("session/prompt");
        match is_end && message["result"]["stopReason"] == "cancelled" && memory.kept("cancelled") == true {
            true => apply(message),
            false => vec![Flow::from_peer(message)],
        }
    })
}

fn talking_after_the_end() -> Defect {
    Defect::in_messages(|_, message| {
        let update = &message["params"]["update"];
        let is_end = is_update(&message, "state_update") && update["stopReason"] == "cancelled";
        let session = message["params"]["sessionId"].clone();
        let mut flows = vec![Flow::from_peer(message)];
        if is_end {
            let content = json!({"type": "text", "text": "one more thing"});
            let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "late", "content": content});
            flows
                .push(Flow::from_peer(notification("session/update", json!({"sessionId": session, "update": update}))));
        }
        flows
    })
}

fn allowing_what_it_cancelled() -> Defect {
    Defect::altering(|memory, message| {
        let asked = memory.answered(Way::FromPeer, message).cloned().unwrap_or_default();
        if message["result"]["outcome"]["outcome"] == "cancelled" {
            let option = &asked["params"]["options"][0]["optionId"];
            message["result"] = json!({"outcome": {"outcome": "selected", "optionId": option}});
        }
    })
}

fn allowing_what_was_withdrawn() -> Defect {
    Defect::altering(|memory, message| {
        if memory.answered(Way::FromPeer, message).is_some_and(|asked| asked["id"] == 60) {
            message["result"] = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
        }
    })
}

/// Does what it was allowed to do too late.
fn acting_on_a_late_yes() -> Defect {
    Defect::new(|memory, way, message| {
        if message["method"] == "session/request_permission" {
            memory.keep("asked", message.clone());
        }
        let asked = memory.kept("asked").clone();
        let is_late = way == Way::ToPeer && memory.kept("cancelled") == true && message["id"] == asked["id"];
        if way == Way::ToPeer && message["method"] == "session/cancel" {
            memory.keep("cancelled", true);
        }
        let update = &message["params"]["update"];
        let is_end = update["toolCallId"] == asked["params"]["subject"]["toolCall"]["toolCallId"];
        if is_end && update["status"] == "cancelled" && memory.kept("cancelled") == true {
            return Vec::new();
        }
        let is_yes = message["result"]["outcome"]["optionId"] == "allow_once";
        let mut flows = vec![Flow::message(way, message)];
        if is_late && is_yes {
            let id = &asked["params"]["subject"]["toolCall"]["toolCallId"];
            let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"});
            let params = json!({"sessionId": asked["params"]["sessionId"], "update": update});
            flows.push(Flow::from_peer(notification("session/update", params)));
        }
        flows
    })
}
