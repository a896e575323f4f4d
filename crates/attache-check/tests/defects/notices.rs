//! Notices, compaction and usage.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow};
use serde_json::{Value, json};

use super::{Row, agent, first_sending, is_update, notification, remove};

pub(crate) fn rows() -> Vec<Row> {
    let notice = |alter: fn(&mut Value)| Defect::in_updates("notice", alter);
    let warning = || json!({"sessionUpdate": "notice", "severity": "info", "title": "News"});
    let compaction = || json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"});
    vec![
        agent("notices/title", V2, notice(|update| update["title"] = "".into())),
        agent("notices/offered", V1, telling_at_once(warning())),
        agent("extensions/values", V2, notice(|update| update["severity"] = "grave".into())),
        agent("notices/compaction-offered", V1, telling_at_once(compaction())),
        agent(
            "envelope/params",
            V2,
            Defect::in_updates("compaction_summary_chunk", |update| remove(update, "content")),
        ),
        agent(
            "notices/compaction-order",
            V2,
            Defect::without(|_, message| {
                let update = &message["params"]["update"];
                is_update(message, "compaction_update") && update["status"] == "in_progress"
            }),
        ),
        agent("notices/compaction-ends-once", V2, failing_what_is_completed()),
        agent(
            "notices/compaction-fields",
            V2,
            Defect::in_updates("compaction_update", |update| {
                if update["status"] == "completed" {
                    update["error"] = "it did not fail".into();
                }
            }),
        ),
        agent("envelope/params", V2, Defect::in_updates("usage_update", |update| update["used"] = "many".into())),
    ]
}

/// Tells an update before it says something, whoever the client is.
fn telling_at_once(update: Value) -> Defect {
    first_sending(
        |message| is_update(message, "agent_message_chunk"),
        move |message| {
            notification("session/update", json!({"sessionId": message["params"]["sessionId"], "update": update}))
        },
    )
}

fn failing_what_is_completed() -> Defect {
    Defect::in_messages(|_, message| {
        let mut flows = vec![Flow::from_peer(message.clone())];
        if is_update(&message, "compaction_update") && message["params"]["update"]["status"] == "completed" {
            let mut again = message;
            again["params"]["update"]["status"] = "failed".into();
            flows.push(Flow::from_peer(again));
        }
        flows
    })
}
