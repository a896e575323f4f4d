//! Modes and configuration options.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};
use serde_json::{Value, json};

use super::{Row, accept, agent, client, first_sending, notification, remove, request, to_request};

pub(crate) fn rows() -> Vec<Row> {
    let opening = |alter: fn(&mut Value)| Defect::in_results("session/new", alter);
    let model = |alter: fn(&mut Value)| {
        Defect::in_results("session/new", move |result| alter(option(&mut result["configOptions"], "model")))
    };
    let is_prompt = |message: &Value| message["method"] == "session/prompt";
    vec![
        agent(
            "envelope/optional-parts",
            V1,
            opening(|result| remove(&mut result["modes"]["availableModes"][1], "name")),
        ),
        agent(
            "options/mode-available",
            V1,
            opening(|result| {
                result["modes"]["currentModeId"] = "none".into();
                option(&mut result["configOptions"], "mode")["currentValue"] = "none".into();
            }),
        ),
        agent(
            "options/mode-ids-unique",
            V1,
            opening(|result| {
                let modes = &mut result["modes"]["availableModes"];
                let first = modes[0].clone();
                modes.as_array_mut().unwrap().push(first);
            }),
        ),
        client(
            "options/sets-available-mode",
            V1,
            first_sending(is_prompt, |message| {
                let session = &message["params"]["sessionId"];
                request("mode", "session/set_mode", json!({"sessionId": session, "modeId": "none"}))
            }),
        ),
        agent("options/shape", V2, model(|option| remove(option, "name"))),
        agent("options/value-listed", V2, model(|option| option["currentValue"] = "none".into())),
        agent(
            "options/values-unique",
            V2,
            model(|option| {
                let first = option["options"][0].clone();
                option["options"].as_array_mut().unwrap().push(first);
            }),
        ),
        agent(
            "options/boolean-offered",
            V1,
            opening(|result| {
                let switch = json!({"id": "loud", "name": "Loud", "type": "boolean", "currentValue": true});
                result["configOptions"].as_array_mut().unwrap().push(switch);
            }),
        ),
        agent("options/whole-list", V2, answering_with_one_option()),
        agent(
            "options/unknown-refused",
            V1,
            to_request(
                |asked| asked["method"] == "session/set_config_option" && asked["params"]["sessionId"] != "none",
                |mut answer| {
                    if answer["error"].is_object() {
                        accept(&mut answer, json!({"configOptions": []}));
                    }
                    vec![Flow::from_peer(answer)]
                },
            ),
        ),
        agent("options/refused-unchanged", V2, changing_what_it_refuses()),
        client(
            "options/sets-listed",
            V2,
            Defect::in_params("session/set_config_option", |params| params["configId"] = "none".into()),
        ),
    ]
}

/// An option of a list, by its id.
fn option<'a>(options: &'a mut Value, id: &str) -> &'a mut Value {
    let mut options = options.as_array_mut().unwrap().iter_mut();
    options.find(|option| option["id"] == id || option["configId"] == id).unwrap()
}

fn answering_with_one_option() -> Defect {
    Defect::altering(|memory, message| {
        let asked = memory.answered(Way::FromPeer, message);
        if asked.is_some_and(|asked| asked["params"]["configId"] == "brief") {
            let options = message["result"]["configOptions"].as_array_mut().into_iter();
            options.for_each(|options| options.retain(|option| option["configId"] == "brief"));
        }
    })
}

/// Refuses a value, and then says that it is the current one.
fn changing_what_it_refuses() -> Defect {
    Defect::in_messages(|memory, message| {
        let asked = memory.answered(Way::FromPeer, &message).cloned().unwrap_or_default();
        let is_refused = asked["method"] == "session/set_config_option" && message["error"].is_object();
        let mut flows = vec![Flow::from_peer(message)];
        if is_refused && asked["params"]["value"] == "none" {
            let value = json!({"value": "none", "name": "None"});
            let mode = json!({"configId": "mode", "name": "Mode", "type": "select", "currentValue": "none", "options": [value]});
            let update = json!({"sessionUpdate": "config_option_update", "configOptions": [mode]});
            let params = json!({"sessionId": asked["params"]["sessionId"], "update": update});
            flows.push(Flow::from_peer(notification("session/update", params)));
        }
        flows
    })
}
