//! What a session is doing, as version 2 tells it.

use attache::Protocol::V2;
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::Value;

use super::{Row, agent, is_prompt, is_update, remove};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        agent(
            "state/running",
            V2,
            Defect::without(|memory, message| is_state(message, "running") && memory.is_first("running")),
        ),
        agent("state/idle-when-done", V2, working_for_ever()),
        agent("state/goes-on", V2, going_on_in_silence()),
        agent("state/cancelled-if-asked", V2, cancelling_by_itself()),
        agent("state/after-resume", V2, saying_no_state_when_resumed()),
        agent("state/background-always", V2, forgetting_the_background()),
        agent(
            "state/background-announced",
            V2,
            Defect::in_updates("state_update", |update| {
                if update["background"][0].is_object() {
                    update["background"][0]["terminalId"] = "other".into();
                }
            }),
        ),
        agent("state/background-finished", V2, dropping_what_goes_on()),
    ]
}

fn is_state(message: &Value, state: &str) -> bool {
    is_update(message, "state_update") && message["params"]["update"]["state"] == state
}

/// Does not say when it is done with the prompt that says hello to whoever then waits for it.
fn working_for_ever() -> Defect {
    Defect::new(|memory, way, message| {
        if way == Way::ToPeer {
            memory.keep("is meant", is_prompt(&message, "say hello") && message["id"] == 2);
            return vec![Flow::to_peer(message)];
        }
        let is_left_out = is_state(&message, "idle") && memory.kept("is meant") == true;
        if is_left_out { Vec::new() } else { vec![Flow::from_peer(message)] }
    })
}

/// Does not say that it goes on when its question is answered.
fn going_on_in_silence() -> Defect {
    Defect::without(|memory, message| {
        if is_state(message, "requires_action") {
            memory.keep("waits", true);
        }
        let is_left_out = is_state(message, "running") && memory.take("waits") == true;
        is_left_out && memory.is_first("left out")
    })
}

fn cancelling_by_itself() -> Defect {
    Defect::altering(|memory, message| {
        if is_state(message, "idle") && memory.is_first("idle") {
            message["params"]["update"]["stopReason"] = "cancelled".into();
        }
    })
}

fn saying_no_state_when_resumed() -> Defect {
    Defect::new(|memory, way, message| {
        if message["method"] == "session/resume" {
            memory.keep("resuming", true);
        }
        if way == Way::FromPeer && memory.answered_method(way, &message) == Some("session/resume") {
            memory.keep("resuming", false);
        }
        let is_left_out = is_update(&message, "state_update") && memory.kept("resuming") == true;
        if is_left_out { Vec::new() } else { vec![Flow::message(way, message)] }
    })
}

fn forgetting_the_background() -> Defect {
    Defect::altering(|_, message| {
        if is_state(message, "idle") {
            remove(&mut message["params"]["update"], "background");
        }
    })
}

/// Drops a command from the background without a word of its end.
fn dropping_what_goes_on() -> Defect {
    Defect::without(|memory, message| {
        let update = &message["params"]["update"];
        if is_update(message, "state_update") && update["background"][0].is_object() {
            memory.keep("background", update["background"][0]["terminalId"].clone());
        }
        let is_exit = is_update(message, "terminal_update") && update["exitStatus"].is_object();
        is_exit && update["terminalId"] == *memory.kept("background")
    })
}
