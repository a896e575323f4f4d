//! Tests of the server with a scripted model: raw requests in, answers out as the providers document them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::{Answer, ModelServer};
use crate::raw_client::{Reply, send};

mod anthropic;
mod faults;
mod gemini;
mod openai;
mod questions;
mod responses;
mod script;

const OPENAI: &str = "/v1/chat/completions";
const ANTHROPIC: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";

/// A small request of an API, with a stream as its answer.
fn question(path: &str) -> Value {
    match path {
        OPENAI => json!({"model": "gpt-x", "stream": true, "messages": [{"role": "user", "content": "hi"}]}),
        ANTHROPIC => json!({
            "model": "claude-x", "max_tokens": 10, "stream": true, "messages": [{"role": "user", "content": "hi"}],
        }),
        _ => json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    }
}

/// Asks the small request of an API.
async fn ask(server: &ModelServer, path: &str) -> Reply {
    post(server, path, &question(path)).await
}

async fn post(server: &ModelServer, path: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let length = body.len();
    send(&server.url(), &format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")).await
}

/// Asks the small request of an API with one answer, and gives what it brings.
async fn answered(path: &str, answer: Answer) -> Reply {
    ask(&ModelServer::start(vec![answer]).await, path).await
}

/// The events of a stream, each with its name, and with its data as JSON unless it is none.
fn events(reply: &Reply, line_end: &str) -> Vec<(String, Value)> {
    let text = reply.text();
    let end = line_end.repeat(2);
    assert!(text.ends_with(&end), "{text:?}");
    let event = |event: &str| {
        let lines: Vec<&str> = event.split(line_end).collect();
        let (name, data) = match lines[..] {
            [data] => ("", data),
            [name, data] => (name.strip_prefix("event: ").unwrap(), data),
            _ => panic!("{event:?} is no event"),
        };
        let data = data.strip_prefix("data: ").unwrap();
        (name.to_owned(), serde_json::from_str(data).unwrap_or_else(|_| data.into()))
    };
    text.strip_suffix(&end).unwrap().split(&end).map(event).collect()
}

/// The data of events without names.
fn data(reply: &Reply, line_end: &str) -> Vec<Value> {
    let data = events(reply, line_end).into_iter().map(|(name, data)| {
        assert_eq!(name, "");
        data
    });
    data.collect()
}
