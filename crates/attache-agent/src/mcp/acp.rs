//! Servers that the client carries messages to (MCP over ACP, unstable). They speak MCP's version without a handshake: the
//! handshake that rmcp wants is answered here, from what the server says when it is asked what it offers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use attache::Error;
use attache::agent::SessionHandle;
use attache::model::RawJson;
use attache::model::unstable::{
    McpMessageNotification, McpMessageRequest, McpMessageResponse, McpServerAcp, McpServerId,
};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::words::Trouble;
use crate::lock;

/// How many messages of a server may wait for us. Notifications beyond are dropped, answers wait.
const MAX_WAITING: usize = 256;

/// Where messages go that a client carries for its servers, by server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes(Arc<Mutex<HashMap<McpServerId, mpsc::Sender<Value>>>>);

impl Routes {
    /// Passes on what a server says between its answers. What nobody waits for is dropped.
    pub(crate) fn take(&self, message: &McpMessageNotification) {
        let params: Value =
            message.params.as_ref().and_then(|raw| serde_json::from_str(raw.as_str()).ok()).unwrap_or_default();
        let route = lock(&self.0).get(&message.server_id).cloned();
        if let Some(route) = route {
            let _ = route.try_send(json!({ "jsonrpc": "2.0", "method": message.method, "params": params }));
        }
    }
}

/// The client's connection, which carries messages to its servers.
#[derive(Clone)]
pub struct Carrier {
    handle: SessionHandle,
    routes: Routes,
}

impl Carrier {
    pub(crate) fn new(handle: SessionHandle, routes: Routes) -> Self {
        Carrier { handle, routes }
    }
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Carrier")
    }
}

/// A transport to such a server.
pub(super) struct Acp {
    carrier: Carrier,
    server: McpServerId,
    sender: mpsc::Sender<Value>,
    incoming: mpsc::Receiver<Value>,
    /// The requests that have no answer yet, by id. Ending one tells the client.
    open: Arc<Mutex<HashMap<String, AbortHandle>>>,
}

impl Acp {
    pub(super) fn open(server: &McpServerAcp, carrier: Option<&Carrier>) -> Result<Self, Trouble> {
        let carrier = carrier.ok_or(Trouble::UnknownSort)?.clone();
        let (sender, incoming) = mpsc::channel(MAX_WAITING);
        lock(&carrier.routes.0).insert(server.server_id.clone(), sender.clone());
        Ok(Acp { carrier, server: server.server_id.clone(), sender, incoming, open: Arc::default() })
    }

    /// Has the client carry a request, and puts the answer where messages are received.
    fn request(&self, id: Value, method: String, params: Value) {
        let (handle, server, sender) = (self.carrier.handle.clone(), self.server.clone(), self.sender.clone());
        let (key, open) = (id.to_string(), self.open.clone());
        let ended = key.clone();
        // Not answered before it is among those that are open.
        let mut all = lock(&self.open);
        let task = tokio::spawn(async move {
            let answer = if method == "initialize" {
                hello(&handle, &server, &ended, &params).await
            } else {
                call(&handle, &server, &ended, &method, params).await
            };
            let message = match answer {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            };
            lock(&open).remove(&ended);
            let _ = sender.send(message).await;
        });
        all.insert(key, task.abort_handle());
    }
}

/// Answers the handshake from what the server says that it offers.
async fn hello(handle: &SessionHandle, server: &McpServerId, id: &str, params: &Value) -> Result<Value, Value> {
    let offered = call(handle, server, id, "server/discover", json!({})).await?;
    Ok(json!({
        "protocolVersion": params["protocolVersion"],
        "capabilities": offered.get("capabilities").filter(|all| all.is_object()).cloned().unwrap_or_else(|| json!({})),
        "serverInfo": { "name": "acp", "version": "" },
    }))
}

/// One request and its answer. An error is an object in JSON-RPC's words.
async fn call(
    handle: &SessionHandle,
    server: &McpServerId,
    id: &str,
    method: &str,
    mut params: Value,
) -> Result<Value, Value> {
    if !params.is_object() {
        params = json!({});
    }
    // Every request says what a handshake would.
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = ProtocolVersion::LATEST.as_str().into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({ "name": "attache", "version": env!("CARGO_PKG_VERSION") });
    let failed = |message: &str| json!({ "code": -32603, "message": message });
    let params = RawJson::from_value(&params).map_err(|_| failed("the request cannot be written"))?;
    let request = McpMessageRequest::new(server.clone(), id, method).with(|request| request.params = Some(params));
    let read =
        |raw: &RawJson| serde_json::from_str::<Value>(raw.as_str()).map_err(|_| failed("the answer cannot be read"));
    match handle.call_mcp(&request).await {
        Ok(McpMessageResponse::Result { result, .. }) => read(&result),
        Ok(McpMessageResponse::Error { error, .. }) => Err(read(&error)?),
        Err(Error::Refused(error)) => Err(json!({ "code": error.code, "message": error.message })),
        Err(_) => Err(failed("the client does not carry messages to it")),
    }
}

impl Transport<RoleClient> for Acp {
    type Error = Trouble;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Trouble>> + Send + 'static {
        let mut message = serde_json::to_value(item).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let (id, params) = (message["id"].take(), message["params"].take());
        match method.as_str() {
            // An answer: nothing is asked of us this way.
            "" => {}
            "notifications/cancelled" => {
                if let Some(open) = lock(&self.open).remove(&params["requestId"].to_string()) {
                    open.abort();
                }
            }
            // Other notifications have no way there, and there is nothing that needs one.
            _ if id.is_null() => {}
            _ => self.request(id, method, params),
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.incoming.recv().await?;
            // What is no message is passed over, as on a program's stdout.
            if let Ok(message) = serde_json::from_value(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Trouble> {
        self.incoming.close();
        Ok(())
    }
}

impl Drop for Acp {
    fn drop(&mut self) {
        for (_, open) in lock(&self.open).drain() {
            open.abort();
        }
        // A new connection to the same server may have taken its place.
        let mut routes = lock(&self.carrier.routes.0);
        if routes.get(&self.server).is_some_and(|route| route.same_channel(&self.sender)) {
            routes.remove(&self.server);
        }
    }
}
