//! MCP servers.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow};
use serde_json::{Value, json};

use super::{Row, accept, agent, client, refusing_some, remove, to_request};

pub(crate) fn rows() -> Vec<Row> {
    let has_stdio = |asked: &Value| {
        asked["params"]["mcpServers"][0]["command"].is_string() && asked["params"]["mcpServers"][1].is_null()
    };
    let has_sse = |asked: &Value| asked["params"]["mcpServers"][0]["type"] == "sse";
    vec![
        client(
            "mcp/offered",
            V1,
            Defect::in_params("session/new", |params| {
                let web = json!({"type": "http", "name": "more", "url": "https://example.com/mcp", "headers": []});
                params["mcpServers"].as_array_mut().unwrap().push(web);
            }),
        ),
        client(
            "mcp/server-fields",
            V1,
            Defect::in_params("session/new", |params| {
                if params["mcpServers"][0].is_object() {
                    remove(&mut params["mcpServers"][0], "command");
                }
            }),
        ),
        agent("mcp/stdio", V1, refusing_some(has_stdio, -32602)),
        agent(
            "mcp/unsupported",
            V2,
            to_request(has_sse, |mut answer| {
                accept(&mut answer, json!({"sessionId": "with-sse"}));
                vec![Flow::from_peer(answer)]
            }),
        ),
    ]
}
