//! What goes beyond the protocol.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow};
use serde_json::{Value, json};

use super::{Row, accept, agent, client, first_sending, is_begin, notification, rename, to_request};

pub(crate) fn rows() -> Vec<Row> {
    let serving_all = || {
        to_request(
            |asked| asked["method"] == "_attache.invalid/method",
            |mut answer| {
                accept(&mut answer, json!({}));
                vec![Flow::from_peer(answer)]
            },
        )
    };
    let telling = || first_sending(is_begin, |_| notification("reference/news", json!({})));
    vec![
        agent("extensions/unknown-request", V1, serving_all()),
        client("extensions/unknown-request", V2, serving_all()),
        agent("extensions/method-names", V2, telling()),
        client("extensions/method-names", V1, telling()),
        agent("extensions/root-fields", V1, Defect::in_results("session/list", |result| result["total"] = 1.into())),
        client("extensions/root-fields", V2, Defect::in_params("session/list", |params| params["page"] = 1.into())),
        agent(
            "extensions/camel-case",
            V1,
            Defect::in_results("session/list", |result| {
                let sessions = result["sessions"].as_array_mut().into_iter().flatten();
                sessions.for_each(|session| rename(session, "updatedAt", "updated_at"));
            }),
        ),
        client(
            "extensions/values",
            V2,
            Defect::in_params("session/prompt", |params| {
                let blocks = params["prompt"].as_array_mut().into_iter().flatten();
                blocks.filter(|block| is_image(block)).for_each(|block| *block = json!({"type": "smell"}));
            }),
        ),
    ]
}

fn is_image(block: &Value) -> bool {
    block["type"] == "image"
}
