//! A small agent on the official Rust SDK, for `attache check agent --script brackets`: what its author decides keeps to the protocol, so
//! that what is found is mostly the SDK's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use agent_client_protocol::{Agent, ByteStreams, Client, ConnectionTo, Error, JsonRpcMessage, UntypedMessage, v1};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

type Sessions = Arc<Mutex<HashMap<String, watch::Sender<u64>>>>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let sessions = Sessions::default();
    let listener = sessions.clone();
    Agent
        .v1()
        .on_receive_request(
            async move |request: v1::schema::ClientRequest, responder: v1::Responder, cx: v1::ConnectionTo<Client>| {
                let (method, params) = request.to_untyped_message()?.into_parts();
                let (sessions, responder, cx) = (sessions.clone(), responder.into_raw(), cx.into_raw());
                tokio::spawn(async move {
                    match answer(&method, &params, &sessions, &cx).await {
                        Ok(answer) => responder.respond(answer),
                        Err(error) => responder.respond_with_error(error),
                    }
                });
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: v1::schema::ClientNotification, _| {
                let (method, params) = notification.to_untyped_message()?.into_parts();
                if method == "session/cancel"
                    && let Some(session) =
                        listener.lock().expect("sessions").get(params["sessionId"].as_str().unwrap_or(""))
                {
                    session.send_modify(|count| *count += 1);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(ByteStreams::new(tokio::io::stdout().compat_write(), tokio::io::stdin().compat()))
        .await
}

async fn answer(method: &str, params: &Value, sessions: &Sessions, cx: &ConnectionTo<Client>) -> Result<Value, Error> {
    match method {
        "initialize" => Ok(
            json!({"protocolVersion": 1, "agentInfo": {"name": "small-rust", "version": "5.0.0"}, "agentCapabilities": {}}),
        ),
        "session/new" => {
            let cwd = params["cwd"].as_str().unwrap_or("");
            if !cwd.starts_with('/') {
                return Err(Error::invalid_params());
            }
            let mut sessions = sessions.lock().expect("sessions");
            let id = format!("s-{}-{}", std::process::id(), sessions.len());
            sessions.insert(id.clone(), watch::Sender::new(0));
            Ok(json!({"sessionId": id}))
        }
        "session/prompt" => prompt(params, sessions, cx).await,
        _ => Err(Error::method_not_found()),
    }
}

async fn prompt(params: &Value, sessions: &Sessions, cx: &ConnectionTo<Client>) -> Result<Value, Error> {
    let id = params["sessionId"].as_str().unwrap_or("");
    let cancelled = sessions.lock().expect("sessions").get(id).map(watch::Sender::subscribe);
    let Some(mut cancelled) = cancelled else {
        return Err(Error::new(-32002, "There is no such session").data(json!({"sessionId": id})));
    };
    let say = |text: &str| {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        cx.send_notification(UntypedMessage::new("session/update", json!({"sessionId": id, "update": update}))?)
    };
    let text: String =
        params["prompt"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
    if text.contains("[[slow") {
        for word in 0..100 {
            say(&format!("word {word} "))?;
            let wait = tokio::time::sleep(std::time::Duration::from_millis(100));
            tokio::select! { () = wait => {}, _ = cancelled.changed() => return Ok(json!({"stopReason": "cancelled"})) }
        }
    }
    say("hello")?;
    let stop = match () {
        () if text.contains("[[refuse") => "refusal",
        () if text.contains("[[maxtokens") => "max_tokens",
        () => "end_turn",
    };
    Ok(json!({"stopReason": stop}))
}
