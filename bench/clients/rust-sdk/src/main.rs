//! The client of the benchmark, written with the official Rust SDK as its documentation shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, InitializeRequest, NewSessionRequest, PromptRequest,
    ReadTextFileRequest, ReadTextFileResponse, SessionNotification, TextContent,
};
use agent_client_protocol::{AcpAgent, AcpAgentConfig, Agent, Client, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let agent = AcpAgent::new(AcpAgentConfig::new(args.next().unwrap_or_default()).args(args));
    let is_stalled = std::env::var_os("BENCH_STALL").is_some();
    let count = Arc::new(AtomicU64::new(0));
    let seen = count.clone();
    Client
        .v1()
        .on_receive_notification(
            async move |_: SessionNotification, _connection| {
                seen.fetch_add(1, Ordering::Relaxed);
                if is_stalled {
                    std::future::pending::<()>().await;
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |_: ReadTextFileRequest, responder, _connection| {
                responder.respond(ReadTextFileResponse::new("x"))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, async move |connection: ConnectionTo<Agent>| {
            let files = FileSystemCapabilities::new().read_text_file(true);
            let initialize =
                InitializeRequest::new(ProtocolVersion::V1).client_capabilities(ClientCapabilities::new().fs(files));
            connection.send_request(initialize).block_task().await?;
            let session = connection.send_request(NewSessionRequest::new("/tmp")).block_task().await?.session_id;
            let text = std::env::var("BENCH_PROMPT").unwrap_or_default();
            let prompt = vec![ContentBlock::Text(TextContent::new(text))];
            connection.send_request(PromptRequest::new(session, prompt)).block_task().await?;
            Ok(())
        })
        .await?;
    println!("count {}", count.load(Ordering::Relaxed));
    Ok(())
}
