//! A client made with the official SDK.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, SessionId, SessionNotification, TextContent,
};
use agent_client_protocol::{Agent, ByteStreams, ConnectTo};
use agent_client_protocol_http::HttpClient;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::Error;
use crate::peer::{Client, Way};

pub struct Theirs {
    connection: ConnectionTo<Agent>,
    count: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Client for Theirs {
    type Session = SessionId;

    async fn connect(way: Way) -> Result<Self, Error> {
        match way {
            Way::Pipes(output, input) => Theirs::over(ByteStreams::new(input.compat_write(), output.compat())).await,
            Way::Url { url, .. } => {
                Theirs::over(HttpClient::builder(url).configure_http(|http| http.no_proxy()).build()?).await
            }
        }
    }

    async fn open(&self) -> Result<SessionId, Error> {
        Ok(self.connection.send_request(NewSessionRequest::new("/tmp")).block_task().await?.session_id)
    }

    async fn prompt(&self, session: &SessionId, text: &str) -> Result<usize, Error> {
        let before = self.count.load(Ordering::Relaxed);
        let prompt = vec![ContentBlock::Text(TextContent::new(text))];
        self.connection.send_request(PromptRequest::new(session.clone(), prompt)).block_task().await?;
        Ok(self.count.load(Ordering::Relaxed) - before)
    }
}

impl Theirs {
    async fn over(transport: impl ConnectTo<agent_client_protocol::Client> + 'static) -> Result<Self, Error> {
        let count = Arc::new(AtomicUsize::new(0));
        let seen = count.clone();
        let (ready, connection) = oneshot::channel();
        let client = agent_client_protocol::Client
            .v1()
            .on_receive_notification(
                async move |_: SessionNotification, _connection| {
                    seen.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .connect_with(transport, async move |connection: ConnectionTo<Agent>| {
                // If nobody waits for it any more, the measurement has failed and says so itself.
                let _ = ready.send(connection.clone());
                connection.incoming_closed().await;
                Ok(())
            });
        let task = tokio::spawn(client).abort_handle();
        let connection: ConnectionTo<Agent> = connection.await?;
        connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
        Ok(Theirs { connection, count, task })
    }
}
