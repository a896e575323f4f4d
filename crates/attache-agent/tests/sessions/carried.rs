//! MCP servers of the client's own, whose messages the client carries.

use attache::model::RawJson;
use attache::model::mcp::McpServer;
use attache::model::unstable::{McpMessageNotification, McpMessageRequest, McpMessageResponse, McpServerAcp};
use attache::{Client, Connection, Event};
use serde_json::{Value, json};

use crate::help::{STABLE, scripted};
use crate::support::Person;

/// What a server of MCP's version without a handshake says.
fn answer(request: &McpMessageRequest) -> Result<Value, Value> {
    let params: Value = serde_json::from_str(request.params.as_ref().unwrap().as_str()).unwrap();
    assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert!(params["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_object());
    assert_eq!(request.server_id.as_str(), "id-1");
    match request.method.as_str() {
        "server/discover" => Ok(
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "resultType": "complete" }),
        ),
        "tools/list" => Ok(json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })),
        "tools/call" if params["arguments"]["text"] == "fail" => Err(json!({ "code": -32000, "message": "not today" })),
        "tools/call" => Ok(
            json!({ "content": [{ "type": "text", "text": params["arguments"]["text"] }], "resultType": "complete" }),
        ),
        _ => Err(json!({ "code": -32601, "message": "no such method" })),
    }
}

async fn serve(connection: Connection) {
    while let Ok(event) = connection.next().await {
        let Event::McpMessage(call) = event else { continue };
        let params = call.params.as_ref().map(|raw| serde_json::from_str::<Value>(raw.as_str()).unwrap());
        let token = params.unwrap_or_default()["_meta"]["progressToken"].clone();
        if call.method == "tools/call" && !token.is_null() {
            let step = json!({ "progressToken": token, "progress": 1, "message": "half way" });
            let step = RawJson::from_value(&step).unwrap();
            let (server, id) = (call.server_id.clone(), call.request_id.clone());
            let step =
                McpMessageNotification::new(server, id, "notifications/progress").with(|m| m.params = Some(step));
            connection.send_mcp(&step).await.unwrap();
        }
        let response = match answer(call.request()) {
            Ok(result) => McpMessageResponse::Result { result: RawJson::from_value(&result).unwrap(), meta: None },
            Err(error) => McpMessageResponse::Error { error: RawJson::from_value(&error).unwrap(), meta: None },
        };
        call.reply(Ok(response)).await.unwrap();
    }
}

#[tokio::test]
async fn servers_of_the_client_are_used() {
    for protocol in STABLE {
        let world = scripted().await;
        let mut chat = world.connect(Person::new()).await;
        let agent = attache_agent::CodingAgent::new(world.config.clone()).await.unwrap();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(agent.server().connect(reader, writer));
        let (reader, writer) = tokio::io::split(ours);
        let client = Client::new("editor", "1").protocol(protocol).mcp();
        chat.connection = client.connect(reader, writer).await.unwrap();
        let serving = tokio::spawn(serve(chat.connection.clone()));
        let server = McpServer::Acp(McpServerAcp::new("mine", "id-1"));
        chat.session = Some(chat.connection.session(world.project()).mcp_server(server).open().await.unwrap());
        let seen = chat.turn("call mine__echo {\"text\":\"carried\"}").await;
        assert!(seen.contains("completed") && seen.contains("carried"), "{protocol:?}: {seen}");
        let seen = chat.turn("call mine__echo {\"text\":\"fail\"}").await;
        assert!(seen.contains("it refuses: not today (-32000)"), "{protocol:?}: {seen}");
        chat.session().close().await.unwrap();
        serving.abort();
    }
}
