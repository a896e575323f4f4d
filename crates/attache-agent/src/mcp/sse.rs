//! Servers that speak the HTTP of MCP's first version: one stream of events to us, and an address to post to, which its
//! first event names. rmcp has no client for it any more.

use attache::model::mcp::HttpHeader;
use futures_util::stream::{self, StreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;

use super::http::{address, client, events, header_map};
use super::words::{MAX_MESSAGE, Reason, Trouble};

/// How many events may come before the one that says where to post. Comments are no events.
const MAX_BEFORE_ENDPOINT: usize = 16;

/// A transport to such a server.
pub(super) struct Sse {
    client: Client,
    headers: HeaderMap,
    endpoint: Url,
    events: BoxedSseResponse,
    reason: Reason,
}

impl Sse {
    pub(super) async fn open(url: &str, headers: &[HttpHeader], reason: Reason) -> Result<Self, Trouble> {
        let url = address(url)?;
        let headers = header_map(headers)?;
        let client = client(&url, true).await?;
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let response = request.send().await.map_err(Trouble::of_http)?;
        if !response.status().is_success() {
            return Err(Trouble::of_status(response.status().as_u16()));
        }
        let mut events = events(response, MAX_MESSAGE);
        for _ in 0..MAX_BEFORE_ENDPOINT {
            let event = events.next().await.ok_or(Trouble::Closed)?.map_err(|_| Trouble::Nonsense)?;
            if event.event.as_deref() == Some("endpoint") {
                let endpoint = event.data.and_then(|data| url.join(data.trim()).ok()).ok_or(Trouble::Nonsense)?;
                // Else the server could have us send our headers to anybody.
                if endpoint.origin() != url.origin() {
                    return Err(Trouble::OtherOrigin);
                }
                return Ok(Sse { client, headers, endpoint, events, reason });
            }
        }
        Err(Trouble::Nonsense)
    }
}

impl Transport<RoleClient> for Sse {
    type Error = Trouble;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Trouble>> + Send + 'static {
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json");
        async move {
            let text = serde_json::to_vec(&item).map_err(|_| Trouble::Nonsense)?;
            let response = request.body(text).send().await.map_err(Trouble::of_http)?;
            let status = response.status();
            if status.is_success() { Ok(()) } else { Err(Trouble::of_status(status.as_u16())) }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(sse_stream::Error::Body(error)) => {
                    if let Some(trouble) = trouble_in(error.as_ref()) {
                        let _ = self.reason.set(trouble);
                    }
                    return None;
                }
                Err(_) => return None,
            };
            if !matches!(event.event.as_deref(), None | Some("" | "message")) {
                continue;
            }
            // What is no message is passed over, as on a program's stdout.
            if let Some(message) = event.data.and_then(|data| serde_json::from_str(&data).ok()) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Trouble> {
        self.events = stream::empty().boxed();
        Ok(())
    }
}

fn trouble_in(error: &(dyn std::error::Error + 'static)) -> Option<Trouble> {
    let mut inner = Some(error);
    while let Some(error) = inner {
        if let Some(trouble) = error.downcast_ref::<Trouble>() {
            return Some(trouble.clone());
        }
        inner = error.source();
    }
    None
}
