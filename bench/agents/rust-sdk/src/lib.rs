//! The agent of the benchmark, written with the official Rust SDK as its documentation shows: what waits for the client
//! or takes long runs in a task of the connection, everything else is answered in its handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, ContentBlock, ContentChunk, EmbeddedResourceResource, InitializeRequest, InitializeResponse,
    NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse, ReadTextFileRequest,
    SessionMode, SessionModeState, SessionNotification, SessionUpdate, SetSessionModeRequest, SetSessionModeResponse,
    StopReason, TextContent, ToolCall, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{Agent, Client, ConnectTo, Result};
use script::Script;

/// Serves until the client closes its end.
pub async fn serve(transport: impl ConnectTo<Agent> + 'static) -> Result<()> {
    agent().connect_to(transport).await
}

/// The agent, ready to be served.
pub fn agent() -> impl ConnectTo<Client> {
    let sessions = Arc::new(AtomicU64::new(0));
    Agent
        .v1()
        .name("bench")
        .on_receive_request(
            async move |initialize: InitializeRequest, responder, _connection| {
                let prompts = PromptCapabilities::new().embedded_context(true);
                let capabilities = AgentCapabilities::new().prompt_capabilities(prompts);
                responder.respond(InitializeResponse::new(initialize.protocol_version).agent_capabilities(capabilities))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _connection| {
                let id = format!("s{}", sessions.fetch_add(1, Ordering::Relaxed) + 1);
                let modes = vec![SessionMode::new("a", "a"), SessionMode::new("b", "b")];
                responder.respond(NewSessionResponse::new(id).modes(SessionModeState::new("a", modes)))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_: SetSessionModeRequest, responder, _connection| {
                responder.respond(SetSessionModeResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let turn = connection.clone();
                connection.spawn(async move {
                    play(&request, &turn).await?;
                    responder.respond(PromptResponse::new(StopReason::EndTurn))
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
}

async fn play(request: &PromptRequest, connection: &ConnectionTo<Client>) -> Result<()> {
    let session = &request.session_id;
    let tell = |update| connection.send_notification(SessionNotification::new(session.clone(), update));
    let say = |text: &str| {
        let content = ContentBlock::Text(TextContent::new(text));
        tell(SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
    };
    let text = request.prompt.iter().find_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    match text.and_then(Script::parse) {
        Some(Script::Chunks { count, size, is_flushed }) => {
            let text = script::text(size);
            for _ in 0..count {
                say(&text)?;
                // There is no flush; this lets the connection write.
                if is_flushed {
                    tokio::task::yield_now().await;
                }
            }
        }
        Some(Script::ToolUpdates { count, size }) => {
            tell(SessionUpdate::ToolCall(ToolCall::new("call_1", script::TOOL)))?;
            let text = script::text(size);
            for _ in 0..count {
                let content = ContentBlock::Text(TextContent::new(text.as_str()));
                let fields = ToolCallUpdateFields::new().content(vec![content.into()]);
                tell(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("call_1", fields)))?;
            }
        }
        Some(Script::Reads { outstanding, rounds }) => {
            for _ in 0..rounds {
                let send =
                    |_| connection.send_request(ReadTextFileRequest::new(session.clone(), script::PATH)).block_task();
                for answer in (0..outstanding).map(send).collect::<Vec<_>>() {
                    answer.await?;
                }
            }
        }
        Some(Script::Size) => {
            let length = request.prompt.iter().find_map(|block| match block {
                ContentBlock::Resource(resource) => match &resource.resource {
                    EmbeddedResourceResource::TextResourceContents(text) => Some(text.text.len()),
                    _ => None,
                },
                _ => None,
            });
            say(&length.unwrap_or(0).to_string())?;
        }
        None => {}
    }
    Ok(())
}
