//! Prompts, and how they are answered.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{
    Row, agent, client, first_sending, is_prompt, is_update, refuse, refusing_some, remove, request, to_request,
};

pub(crate) fn rows() -> Vec<Row> {
    let has_link_only = |asked: &Value| {
        asked["params"]["prompt"][1]["type"] == "resource_link" && asked["params"]["prompt"][2].is_null()
    };
    let has_audio = |asked: &Value| asked["params"]["prompt"][0]["type"] == "audio";
    let is_prompting = |message: &Value| message["method"] == "session/prompt";
    let to_hello = |alter: fn(&mut Value)| {
        to_request(
            |asked| is_prompt(asked, "hello"),
            move |mut answer| {
                alter(&mut answer);
                vec![Flow::from_peer(answer)]
            },
        )
    };
    vec![
        client(
            "prompt/after-setup",
            V1,
            first_sending(is_prompting, |message| {
                let prompt = &message["params"]["prompt"];
                request("lost", "session/prompt", json!({"sessionId": "none", "prompt": prompt}))
            }),
        ),
        client(
            "prompt/content-offered",
            V1,
            Defect::in_params("session/prompt", |params| {
                let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
                params["prompt"].as_array_mut().unwrap().push(image);
            }),
        ),
        client(
            "prompt/not-empty",
            V2,
            Defect::in_params("session/prompt", |params| {
                if params["prompt"][0]["text"] == "hello" {
                    params["prompt"] = json!([]);
                }
            }),
        ),
        agent("prompt/baseline-content", V1, refusing_some(has_link_only, -32602)),
        agent("prompt/unsupported-content", V2, refusing_some(has_audio, -32603)),
        agent("prompt/stop-reason", V1, to_hello(|answer| remove(&mut answer["result"], "stopReason"))),
        agent("prompt/answer-is-last", V1, saying_the_last_word_later()),
        agent("prompt/message-id", V2, to_hello(|answer| answer["result"] = json!({}))),
        agent(
            "prompt/echo",
            V2,
            Defect::without(|_, message| is_update(message, "user_message") && says_hello(message)),
        ),
        agent("prompt/not-held-back", V2, answering_when_idle()),
        agent("prompt/no-error-once-taken-in", V2, failing_what_was_taken_in()),
    ]
}

fn says_hello(message: &Value) -> bool {
    message["params"]["update"]["content"][0]["text"] == "hello"
}

/// Holds a piece of its answer back until the prompt was answered.
fn saying_the_last_word_later() -> Defect {
    Defect::in_messages(|memory, message| {
        if is_update(&message, "agent_message_chunk") && memory.is_first("word") {
            memory.keep("held", message);
            return Vec::new();
        }
        let is_end = memory.answered_method(Way::FromPeer, &message) == Some("session/prompt");
        let held = if is_end { memory.take("held") } else { Value::Null };
        [message, held].into_iter().filter(|message| !message.is_null()).map(Flow::from_peer).collect()
    })
}

/// Answers a prompt when the work is done.
fn answering_when_idle() -> Defect {
    Defect::in_messages(|memory, message| {
        if memory.answered(Way::FromPeer, &message).is_some_and(|asked| is_prompt(asked, "wait 1")) {
            memory.keep("held", message);
            return Vec::new();
        }
        let is_end = is_update(&message, "state_update") && message["params"]["update"]["state"] == "idle";
        let held = if is_end { memory.take("held") } else { Value::Null };
        [message, held].into_iter().filter(|message| !message.is_null()).map(Flow::from_peer).collect()
    })
}

/// Answers with an error what it has reported as a message.
fn failing_what_was_taken_in() -> Defect {
    Defect::in_messages(|memory, mut message| {
        if memory.answered(Way::FromPeer, &message).is_some_and(|asked| is_prompt(asked, "hello")) {
            refuse(&mut message, -32603);
            memory.keep("held", message);
            return Vec::new();
        }
        let is_echo = is_update(&message, "user_message") && says_hello(&message);
        let held = if is_echo { memory.take("held") } else { Value::Null };
        [message, held].into_iter().filter(|message| !message.is_null()).map(Flow::from_peer).collect()
    })
}
