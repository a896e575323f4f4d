//! Calls of servers' tools.

use std::time::Duration;

use attache::model::tool::{ToolCallContent, ToolKind};
use attache_host::permission::Action;
use rmcp::RoleClient;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Servers;
use super::content::outcome;
use super::handler::Progress;
use super::server::{Slot, Up};
use super::words::Trouble;
use crate::tools::{Live, Outcome, Prepared, Refusal, Shown};

/// How long we wait to hear why a connection ended.
const OBITUARY: Duration = Duration::from_secs(1);

/// How long a server may take to be told that a call is over.
const CANCEL: Duration = Duration::from_secs(5);

/// A call of a server's tool, ready to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct McpWork {
    /// The tool's name for the model: `server__tool`.
    pub name: String,
    server: usize,
    tool: String,
    arguments: Map<String, Value>,
}

impl Servers {
    /// Looks at a call. `None` if the name is not one of a server's tools.
    pub fn prepare(&self, name: &str, arguments: &Value) -> Option<Result<Prepared<McpWork>, Refusal>> {
        let (label, _) = name.split_once("__")?;
        let server = self.shared.slots.iter().position(|slot| slot.label == label)?;
        Some(self.prepare_for(server, name, arguments))
    }

    fn prepare_for(&self, server: usize, name: &str, arguments: &Value) -> Result<Prepared<McpWork>, Refusal> {
        let slot = &self.shared.slots[server];
        let offers = slot.offers().map_err(Refusal)?;
        let tool = offers.tools.iter().find(|tool| tool.spec.name == name);
        let tool = tool.ok_or_else(|| Refusal(format!("the MCP server `{}` has no tool `{name}`", slot.name)))?;
        let arguments = match arguments {
            Value::Object(arguments) => arguments.clone(),
            Value::Null => Map::new(),
            _ => return Err(Refusal(format!("the arguments of `{name}` have to be a JSON object"))),
        };
        // What a server says of its tools, such as that they only read, is its own word: every call is asked about.
        let kind = ToolKind::Generic;
        Ok(Prepared {
            title: format!("{}: {}", slot.name, tool.title),
            kind: kind.clone(),
            locations: Vec::new(),
            content: Vec::new(),
            actions: vec![Action::Other { kind, paths: Vec::new(), name: Some(name.to_owned()) }],
            work: McpWork { name: name.to_owned(), server, tool: tool.name.clone(), arguments },
        })
    }

    /// Makes a call. If the future is dropped, the server is told that nobody wants the answer any more.
    pub async fn perform(&self, work: McpWork, live: &Live) -> Outcome {
        let Some(slot) = self.shared.slots.get(work.server) else {
            return Outcome::failed(format!("there is no tool `{}`", work.name));
        };
        let up = match slot.back(&self.shared).await {
            Ok(up) => up,
            Err(why) => return Outcome::failed(why),
        };
        let result = match self.call(&up, work, live).await {
            Ok(result) => {
                // Megabytes are read, cut and written down here.
                let spill = self.shared.setup.spill.clone();
                let read =
                    move || serde_json::to_value(result).ok().and_then(|result| outcome(result, spill.as_deref()));
                crate::spawn_blocking(read).await.ok().flatten()
            }
            Err(Ended::Late) => {
                let limit = self.shared.setup.call_limit.as_secs();
                return Outcome::failed(format!(
                    "the MCP server `{}` did not answer within {limit} seconds",
                    slot.name
                ));
            }
            Err(Ended::Failed(error)) => return Outcome::failed(self.explain(slot, &up, &error).await),
        };
        result.unwrap_or_else(|| {
            Outcome::failed(format!("what the MCP server `{}` answers is not the result of a tool", slot.name))
        })
    }

    async fn call(&self, up: &Up, work: McpWork, live: &Live) -> Result<ServerResult, Ended> {
        let params = CallToolRequestParams::new(work.tool).with_arguments(work.arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (sender, mut steps) = watch::channel(None);
        let mut open = {
            let mut waiting = up.progress.lock().await;
            let handle = up.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
            waiting.insert(handle.progress_token.clone(), sender);
            Open { handle: Some(handle), progress: up.progress.clone() }
        };
        let showing = async {
            while steps.changed().await.is_ok() {
                let step = steps.borrow_and_update().clone();
                if let Some(step) = step {
                    live.show(Shown::Content(vec![ToolCallContent::text(step.text)])).await;
                }
            }
            std::future::pending::<()>().await;
        };
        let Some(handle) = &mut open.handle else { return Err(ServiceError::TransportClosed.into()) };
        // Nobody who looks on too slowly can hold up the answer or the end.
        tokio::select! {
            biased;
            answer = &mut handle.rx => {
                open.answered().await;
                Ok(answer.map_err(|_| ServiceError::TransportClosed)??)
            }
            () = sleep(self.shared.setup.call_limit) => Err(Ended::Late),
            () = showing => Err(Ended::Late),
        }
    }

    pub(super) async fn explain(&self, slot: &Slot, up: &Up, error: &ServiceError) -> String {
        let trouble = Trouble::of_request(error);
        if trouble == Trouble::Closed {
            // The one who watches the server knows more in a moment.
            let mut changes = self.changes();
            let gone = async {
                loop {
                    if let Some(why) = up.ended.get() {
                        return why.clone();
                    }
                    if changes.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            if let Ok(why) = timeout(OBITUARY, gone).await {
                return why;
            }
        }
        up.secrets.hide(&format!("the call of the MCP server `{}` failed: {trouble}", slot.name))
    }
}

/// Why a call has no answer.
enum Ended {
    Late,
    Failed(ServiceError),
}

impl From<ServiceError> for Ended {
    fn from(error: ServiceError) -> Self {
        Ended::Failed(error)
    }
}

/// A call that has no answer yet. When it is dropped, the server is told.
struct Open {
    handle: Option<RequestHandle<RoleClient>>,
    progress: Progress,
}

impl Open {
    async fn answered(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.progress.lock().await.remove(&handle.progress_token);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) = (self.handle.take(), Handle::try_current()) else { return };
        let progress = self.progress.clone();
        runtime.spawn(async move {
            progress.lock().await.remove(&handle.progress_token);
            let _ = timeout(CANCEL, handle.cancel(Some("the call was cancelled".to_owned()))).await;
        });
    }
}
