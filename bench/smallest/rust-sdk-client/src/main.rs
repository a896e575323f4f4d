//! A small client: runs one prompt on any agent, shows what it says, and allows what it asks, once.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, InitializeRequest, NewSessionRequest,
    PermissionOptionKind, PromptRequest, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification, TextContent,
};
use agent_client_protocol::{AcpAgent, AcpAgentConfig, Agent, Client, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let prompt = args.next().unwrap_or_default();
    eprintln!("{}", option_env!("BENCH_EDIT").unwrap_or("small client"));
    let agent = AcpAgent::new(AcpAgentConfig::new(args.next().unwrap_or_default()).args(args));
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                println!("{:?}", notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                let once = request.options.iter().find(|option| option.kind == PermissionOptionKind::AllowOnce);
                let outcome = once.map_or(RequestPermissionOutcome::Cancelled, |option| {
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
                });
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _connection| {
                let text = std::fs::read_to_string(&request.path).unwrap_or_default();
                responder.respond(ReadTextFileResponse::new(text))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, async move |connection: ConnectionTo<Agent>| {
            let files = FileSystemCapabilities::new().read_text_file(true);
            let initialize =
                InitializeRequest::new(ProtocolVersion::V1).client_capabilities(ClientCapabilities::new().fs(files));
            connection.send_request(initialize).block_task().await?;
            let session = connection.send_request(NewSessionRequest::new("/tmp")).block_task().await?.session_id;
            let prompt = vec![ContentBlock::Text(TextContent::new(prompt))];
            let ended = connection.send_request(PromptRequest::new(session, prompt)).block_task().await?;
            println!("ended: {:?}", ended.stop_reason);
            Ok(())
        })
        .await
}
