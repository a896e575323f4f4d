//! Tool calls and diffs.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{Row, accept, agent, client, first_sending, is_update, remove, repeating, request};

pub(crate) fn rows() -> Vec<Row> {
    let in_calls = |alter: fn(&mut Value)| Defect::in_updates("tool_call", alter);
    let in_locations = |alter: fn(&mut Value)| {
        Defect::in_updates("tool_call", move |update| {
            update["locations"].as_array_mut().into_iter().flatten().for_each(alter);
        })
    };
    let in_diffs = |kind: &'static str, alter: fn(&mut Value)| {
        Defect::in_updates(kind, move |update| {
            let content = update["content"].as_array_mut().into_iter().flatten();
            content.filter(|item| item["type"] == "diff").for_each(alter);
        })
    };
    vec![
        agent("envelope/optional-parts", V1, in_calls(|update| update["locations"] = "everywhere".into())),
        agent("extensions/values", V1, in_calls(|update| update["kind"] = "juggle".into())),
        agent("tools/call-first", V1, in_calls(|update| update["sessionUpdate"] = "tool_call_update".into())),
        agent("tools/id-unique", V1, repeating(|message| is_update(message, "tool_call"))),
        agent("tools/final-stays", V2, beginning_again()),
        agent("tools/absolute-paths", V1, in_locations(|location| location["path"] = "a.txt".into())),
        agent("tools/line-positive", V1, in_locations(|location| location["line"] = 0.into())),
        agent("tools/diff-form", V1, in_diffs("tool_call", |diff| remove(diff, "newText"))),
        agent(
            "tools/patch-agrees",
            V2,
            in_diffs("tool_call_update", |diff| diff["changes"][0]["path"] = "/project/other.txt".into()),
        ),
        agent(
            "tools/patch-plain",
            V2,
            in_diffs("tool_call_update", |diff| {
                let text = diff["patch"]["text"].as_str().unwrap().replace("diff --git /", "diff --git a/");
                diff["patch"]["text"] = text.into();
            }),
        ),
        client("tools/cancel-offered", V2, cancelling_an_unknown_call()),
        agent("tools/cancel-refused", V2, Defect::in_answers("tool_call/cancel", |message| accept(message, json!({})))),
    ]
}

/// Says that a call runs again when it is completed.
fn beginning_again() -> Defect {
    Defect::new(|_, way, message| {
        let is_end = is_update(&message, "tool_call_update") && message["params"]["update"]["status"] == "completed";
        if way == Way::ToPeer || !is_end {
            return vec![Flow::message(way, message)];
        }
        let mut again = message.clone();
        let id = message["params"]["update"]["toolCallId"].clone();
        again["params"]["update"] =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"});
        [message.clone(), again, message].map(Flow::from_peer).into()
    })
}

fn cancelling_an_unknown_call() -> Defect {
    first_sending(
        |message| message["method"] == "session/prompt",
        |message| {
            let session = &message["params"]["sessionId"];
            request("cancel", "tool_call/cancel", json!({"sessionId": session, "toolCallId": "none"}))
        },
    )
}
