//! The smallest agent: repeats what it is told.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, SessionNotification, SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::{Agent, Client, Result, Stdio};

#[tokio::main]
async fn main() -> Result<()> {
    Agent
        .v1()
        .name("echo")
        .on_receive_request(
            async move |initialize: InitializeRequest, responder, _connection| {
                let capabilities = AgentCapabilities::new();
                responder.respond(InitializeResponse::new(initialize.protocol_version).agent_capabilities(capabilities))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _connection| responder.respond(NewSessionResponse::new("s1")),
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                for block in &request.prompt {
                    let ContentBlock::Text(text) = block else { continue };
                    let content = ContentBlock::Text(TextContent::new(text.text.as_str()));
                    let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(content));
                    connection.send_notification(SessionNotification::new(request.session_id.clone(), update))?;
                }
                responder.respond(PromptResponse::new(StopReason::EndTurn))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}
