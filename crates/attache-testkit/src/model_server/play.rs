//! Sends an answer the way the test wants it sent: whole, in pieces, late, or not to the end.

use serde_json::Value;

use super::answer::{Answer, Ending};
use super::request::{Api, ModelRequest};
use super::{anthropic, gemini, ollama, openai, responses};
use crate::http::{Connection, Gone};

/// Sends an answer.
pub(super) async fn play(connection: Connection, answer: &Answer, request: &ModelRequest) -> Result<(), Gone> {
    if let Some(body) = &answer.body {
        return send_whole(connection, answer, body).await;
    }
    if answer.status != 200 {
        let body = error(request.api, answer.status, "the script wants this error");
        return send_whole(connection, answer, &body).await;
    }
    if request.is_stream() {
        return send_stream(connection, answer, request).await;
    }
    let whole = match request.api {
        Api::OpenAi => openai::whole(answer, request),
        Api::Responses => responses::whole(answer, request),
        Api::Ollama => ollama::whole(answer, request),
        Api::Anthropic => anthropic::whole(answer, request),
        Api::Gemini => gemini::whole(answer, request),
    };
    send_whole(connection, answer, &whole).await
}

/// An error's body in the words of an API.
pub(super) fn error(api: Api, status: u16, message: &str) -> Value {
    match api {
        Api::OpenAi | Api::Responses => openai::error(status, message),
        Api::Ollama => ollama::error(message),
        Api::Anthropic => anthropic::error(status, message),
        Api::Gemini => gemini::error(status, message),
    }
}

async fn send_whole(mut connection: Connection, answer: &Answer, body: &Value) -> Result<(), Gone> {
    let body = body.to_string().into_bytes();
    let mut headers = headers(answer, "application/json");
    match &answer.ending {
        Ending::Complete => connection.respond(answer.status, &headers, &body).await,
        Ending::Hang(_) | Ending::Cut(_) | Ending::Early(_) | Ending::Error(..) => {
            headers.push(("content-length".to_owned(), body.len().to_string()));
            connection.head(answer.status, &headers).await?;
            if let Ending::Hang(_) = answer.ending {
                return Err(connection.until_gone().await);
            }
            connection.write(&body[..body.len() / 2]).await
        }
    }
}

async fn send_stream(mut connection: Connection, answer: &Answer, request: &ModelRequest) -> Result<(), Gone> {
    let mut events = match request.api {
        Api::OpenAi => openai::events(answer, request),
        Api::Responses => responses::events(answer, request),
        Api::Ollama => ollama::events(answer, request),
        Api::Anthropic => anthropic::events(answer, request),
        Api::Gemini => gemini::events(answer, request),
    };
    let sent = match answer.ending {
        Ending::Complete => events.len(),
        Ending::Cut(count) | Ending::Early(count) | Ending::Hang(count) | Ending::Error(count, _) => {
            count.min(events.len())
        }
    };
    let rest = events.split_off(sent);
    let kind = if request.api == Api::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    connection.chunked_head(200, &headers(answer, kind)).await?;
    for (index, event) in events.iter().enumerate() {
        send_raw(&mut connection, answer, |after| after == index).await?;
        if index > 0 && !answer.delay.is_zero() {
            connection.pause(answer.delay).await?;
        }
        send_bytes(&mut connection, answer, event.as_bytes()).await?;
    }
    send_raw(&mut connection, answer, |after| after >= sent).await?;
    match &answer.ending {
        Ending::Complete | Ending::Early(_) => connection.finish_chunks().await,
        Ending::Hang(_) => Err(connection.until_gone().await),
        Ending::Cut(_) => {
            let half = rest.first().map_or(&[][..], |event| &event.as_bytes()[..event.len() / 2]);
            send_bytes(&mut connection, answer, half).await
        }
        Ending::Error(_, message) => {
            let event = match request.api {
                Api::OpenAi => openai::error_event(message),
                Api::Responses => responses::error_event(message),
                Api::Ollama => ollama::error_event(message),
                Api::Anthropic => anthropic::error_event(message),
                Api::Gemini => gemini::error_event(message),
            };
            send_bytes(&mut connection, answer, event.as_bytes()).await?;
            connection.finish_chunks().await
        }
    }
}

async fn send_raw(connection: &mut Connection, answer: &Answer, is_due: impl Fn(usize) -> bool) -> Result<(), Gone> {
    for (after, bytes) in &answer.raw {
        if is_due(*after) {
            send_bytes(connection, answer, bytes.as_bytes()).await?;
        }
    }
    Ok(())
}

/// Sends an event in one or more writes. Each is a chunk of its own in HTTP, which most clients hand on one by one.
async fn send_bytes(connection: &mut Connection, answer: &Answer, bytes: &[u8]) -> Result<(), Gone> {
    if let Some(size) = answer.write_size {
        for part in bytes.chunks(size) {
            connection.chunk(part).await?;
        }
        return Ok(());
    }
    let inside = bytes.iter().position(|byte| !byte.is_ascii()).map_or(bytes.len(), |first| first + 1);
    let (before, after) = bytes.split_at(inside);
    connection.chunk(before).await?;
    connection.chunk(after).await
}

/// The headers of an answer; the test's own come first.
fn headers(answer: &Answer, content_type: &str) -> Vec<(String, String)> {
    let mut headers = answer.headers.clone();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(("content-type".to_owned(), content_type.to_owned()));
    }
    headers
}
