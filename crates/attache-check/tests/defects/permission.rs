//! Questions for permission.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::Defect;
use serde_json::{Value, json};

use super::{Row, agent, client, refusing_some, remove};

pub(crate) fn rows() -> Vec<Row> {
    let asking = |alter: fn(&mut Value)| Defect::in_params("session/request_permission", alter);
    vec![
        agent("envelope/optional-parts", V2, asking(|params| params["description"] = 7.into())),
        agent("envelope/params", V2, asking(|params| remove(params, "title"))),
        agent("permission/has-options", V2, asking(|params| params["options"] = json!([]))),
        agent(
            "permission/option-ids-unique",
            V1,
            asking(|params| {
                let first = params["options"][0].clone();
                params["options"].as_array_mut().unwrap().push(first);
            }),
        ),
        agent(
            "extensions/values",
            V1,
            asking(|params| {
                let odd = json!({"optionId": "odd", "name": "Perhaps", "kind": "perhaps"});
                params["options"].as_array_mut().unwrap().push(odd);
            }),
        ),
        agent(
            "permission/command-cwd",
            V2,
            asking(|params| params["subject"] = json!({"type": "command", "command": "true", "cwd": "project"})),
        ),
        client(
            "permission/supported",
            V1,
            refusing_some(|asked| asked["params"]["toolCall"]["title"] == "Write /project/a.txt", -32601),
        ),
        client(
            "permission/answers-offered",
            V2,
            Defect::in_results("session/request_permission", |result| {
                if result["outcome"]["outcome"] == "selected" {
                    result["outcome"]["optionId"] = "other".into();
                }
            }),
        ),
    ]
}
