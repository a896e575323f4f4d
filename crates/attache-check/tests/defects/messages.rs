//! Messages of the agent and the user.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Way};
use serde_json::{Value, json};

use super::{Row, agent, client, is_update, remove};

pub(crate) fn rows() -> Vec<Row> {
    let in_thoughts = |alter: fn(&mut Value)| Defect::in_updates("agent_thought_chunk", alter);
    let in_prompts = |kind: &'static str, alter: fn(&mut Value)| {
        Defect::in_params("session/prompt", move |params| {
            let blocks = params["prompt"].as_array_mut().into_iter().flatten();
            blocks.filter(|block| block["type"] == kind).for_each(alter);
        })
    };
    let icon = || json!([{"src": "http://example.com/icon.png"}]);
    vec![
        agent(
            "extensions/values",
            V1,
            Defect::in_updates("usage_update", |update| update["sessionUpdate"] = "tokens_used".into()),
        ),
        agent("envelope/params", V2, in_thoughts(|update| update["content"] = "a thought".into())),
        agent("extensions/values", V1, in_thoughts(|update| update["content"] = json!({"type": "smell"}))),
        agent(
            "messages/base64",
            V2,
            in_thoughts(|update| {
                update["content"] =
                    json!({"type": "image", "data": "data:image/png;base64,AAAA", "mimeType": "image/png"});
            }),
        ),
        client("messages/base64", V1, in_prompts("image", |block| block["data"] = "not base64".into())),
        agent("messages/id-present", V2, in_thoughts(|update| remove(update, "messageId"))),
        agent("messages/id-new", V2, calling_all_prompts_the_same()),
        agent(
            "messages/icon-source",
            V2,
            Defect::in_updates("agent_thought_chunk", move |update| {
                update["content"] = json!({"type": "resource_link", "name": "a", "uri": "file:///a", "icons": icon()});
            }),
        ),
    ]
}

fn calling_all_prompts_the_same() -> Defect {
    Defect::altering(|memory, message| {
        if memory.answered_method(Way::FromPeer, message) == Some("session/prompt") && message["result"].is_object() {
            message["result"]["messageId"] = "the-prompt".into();
        }
        if is_update(message, "user_message") {
            message["params"]["update"]["messageId"] = "the-prompt".into();
        }
    })
}
