//! Questions to the person.

use attache::Protocol::{V1, V2, V2Draft};
use attache_testkit::defect::Defect;
use serde_json::{Value, json};

use super::{Row, agent, client, first_sending, is_update, refusing_some, request};

pub(crate) fn rows() -> Vec<Row> {
    let asking = |mode: &'static str, alter: fn(&mut Value)| {
        Defect::in_params("elicitation/create", move |params| {
            if params["mode"] == mode {
                alter(params);
            }
        })
    };
    vec![
        agent("elicitation/offered", V1, asking_at_once()),
        agent("envelope/optional-parts", V1, asking("form", |params| params["toolCallId"] = 7.into())),
        agent("envelope/params", V2, asking("form", |params| params["requestId"] = 7.into())),
        agent("elicitation/form", V1, asking("form", |params| params["requestedSchema"]["required"] = json!(["none"]))),
        agent(
            "elicitation/no-secrets",
            V1,
            asking("form", |params| params["requestedSchema"]["properties"]["name"]["title"] = "Password".into()),
        ),
        agent("elicitation/id-unique", V1, calling_all_questions_the_same()),
        agent(
            "elicitation/completes-asked",
            V2,
            Defect::in_params("elicitation/complete", |params| params["elicitationId"] = "other".into()),
        ),
        agent(
            "elicitation/no-credentials",
            V1,
            asking("url", |params| params["url"] = "https://ada:secret@example.com/".into()),
        ),
        client("elicitation/unoffered-refused", V2Draft, refusing_some(|asked| asked["id"] == 44, -32603)),
        client(
            "elicitation/answer",
            V1,
            Defect::in_results("elicitation/create", |result| result["action"] = "decline".into()),
        ),
    ]
}

/// Asks before it says something, whoever the client is.
fn asking_at_once() -> Defect {
    first_sending(
        |message| is_update(message, "agent_message_chunk"),
        |message| {
            let schema = json!({"type": "object", "properties": {}});
            let session = &message["params"]["sessionId"];
            let params = json!({"sessionId": session, "mode": "form", "message": "Who?", "requestedSchema": schema});
            request("who", "elicitation/create", params)
        },
    )
}

fn calling_all_questions_the_same() -> Defect {
    Defect::altering(|_, message| {
        let is_meant = message["method"].as_str().is_some_and(|method| method.starts_with("elicitation/"));
        if is_meant && message["params"]["elicitationId"].is_string() {
            message["params"]["elicitationId"] = "the-question".into();
        }
    })
}
