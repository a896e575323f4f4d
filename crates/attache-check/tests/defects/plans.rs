//! Plans and slash commands.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::Defect;
use serde_json::{Value, json};

use super::{Row, agent, first_sending, is_update, notification, remove};

pub(crate) fn rows() -> Vec<Row> {
    let in_commands = |alter: fn(&mut Value)| {
        Defect::in_results("session/new", move |result| alter(&mut result["availableCommands"]))
    };
    vec![
        agent(
            "envelope/optional-parts",
            V1,
            Defect::in_updates("plan", |update| remove(&mut update["entries"][0], "priority")),
        ),
        agent(
            "extensions/values",
            V1,
            Defect::in_updates("plan", |update| update["entries"][0]["status"] = "cancelled".into()),
        ),
        agent("plans/id", V2, Defect::in_updates("plan_update", |update| remove(&mut update["plan"], "planId"))),
        agent("plans/offered", V1, updating_a_plan_with_an_id()),
        agent(
            "plans/command-shape",
            V1,
            Defect::in_updates("available_commands_update", |update| {
                remove(&mut update["availableCommands"][0], "description");
            }),
        ),
        agent("plans/command-name", V2, in_commands(|commands| commands[0]["name"] = "/help".into())),
        agent("plans/command-unique", V2, in_commands(|commands| commands[1] = commands[0].clone())),
    ]
}

fn updating_a_plan_with_an_id() -> Defect {
    first_sending(
        |message| is_update(message, "plan"),
        |message| {
            let plan = json!({"type": "items", "planId": "plan", "entries": []});
            let update = json!({"sessionUpdate": "plan_update", "plan": plan});
            notification("session/update", json!({"sessionId": message["params"]["sessionId"], "update": update}))
        },
    )
}
