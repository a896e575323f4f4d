//! What the server remembers of what it was asked.

use serde_json::{Value, json};

use super::{ANTHROPIC, GEMINI, OPENAI, post};
use crate::model_server::{Answer, Api, ModelServer, Turn};
use crate::raw_client::send;

/// The same conversation in every API.
fn conversations() -> [(&'static str, Value); 3] {
    let openai = json!({
        "model": "m", "stream": true,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}],
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "text", "text": "here"}]},
            {"role": "assistant", "content": "so", "tool_calls": [
                {"id": "one", "type": "function", "function": {"name": "read", "arguments": "{\"a\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "one", "content": "empty"},
            {"role": "user", "content": "and?"},
        ],
    });
    let anthropic = json!({
        "model": "m", "stream": true, "max_tokens": 10,
        "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "read", "input_schema": {}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "text", "text": "here"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "one", "name": "read", "input": {"a": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "one", "content": [{"type": "text", "text": "empty"}]},
                {"type": "text", "text": "and?"},
            ]},
        ],
    });
    let gemini = json!({
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, {"text": "here"}]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"text": "so"},
                {"functionCall": {"id": "one", "name": "read", "args": {"a": 1}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "one", "name": "read", "response": {"content": "empty"}}},
                {"text": "and?"},
            ]},
        ],
    });
    [(OPENAI, openai), (ANTHROPIC, anthropic), ("/v1beta/models/m:streamGenerateContent?alt=sse", gemini)]
}

#[tokio::test]
async fn a_conversation_reads_the_same_in_every_api() {
    let server = ModelServer::with(|_| Answer::text("ok")).await;
    for (path, body) in conversations() {
        assert_eq!(post(&server, path, &body).await.status, 200, "{path}");
    }
    let requests = server.requests();
    assert_eq!([Api::OpenAi, Api::Anthropic, Api::Gemini], [requests[0].api, requests[1].api, requests[2].api]);
    for (number, request) in (1..).zip(requests) {
        assert_eq!(request.number, number);
        assert_eq!((request.model(), request.is_stream()), ("m", true));
        assert_eq!(request.system(), "be kind");
        assert_eq!(request.tool_names(), ["read"]);
        assert_eq!(request.texts(), ["look\nhere", "so", "and?"]);
        assert_eq!(request.tool_results(), ["empty"]);
        let turns = [
            Turn::User("look\nhere".into()),
            Turn::Assistant("so".into()),
            Turn::Call { id: "one".into(), name: "read".into(), arguments: "{\"a\":1}".into() },
            Turn::Result { id: "one".into(), text: "empty".into() },
            Turn::User("and?".into()),
        ];
        assert_eq!(request.turns(), turns);
    }
}

#[tokio::test]
async fn headers_are_kept_in_lower_case_and_the_path_with_its_query() {
    let server = ModelServer::start(vec![Answer::text("ok")]).await;
    let body = super::question(GEMINI).to_string();
    let head = format!("POST {GEMINI} HTTP/1.1\r\nX-Goog-Api-Key: k\r\nContent-Length: {}\r\n\r\n", body.len());
    send(&server.url(), &(head + &body)).await;
    let request = &server.requests()[0];
    assert_eq!((request.header("x-goog-api-key"), request.path.as_str()), (Some("k"), GEMINI));
}

#[tokio::test]
async fn a_body_in_chunks_is_put_together() {
    let server = ModelServer::start(vec![Answer::text("ok")]).await;
    let body = super::question(OPENAI).to_string();
    let (one, two) = body.split_at(10);
    let chunks = format!("{:x}\r\n{one}\r\n{:x};note\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    let reply =
        send(&server.url(), &format!("POST {OPENAI} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(server.requests()[0].body, super::question(OPENAI));
}

#[tokio::test]
async fn models_are_listed_in_the_words_of_the_one_who_asks() {
    let server = ModelServer::start(vec![]).await;
    server.list_models(&["a", "b"]);
    let rows = [
        ("/v1/models", "", "/data/1/id", "b"),
        ("/v1/models", "anthropic-version: 2023-06-01\r\n", "/last_id", "b"),
        ("/v1beta/models", "", "/models/1/name", "models/b"),
        ("/api/tags", "", "/models/1/name", "b"),
    ];
    for (path, header, place, expected) in rows {
        let reply = send(&server.url(), &format!("GET {path} HTTP/1.1\r\n{header}\r\n")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json().pointer(place).unwrap(), expected, "{path}");
    }
    assert!(server.requests().is_empty());
    assert_eq!(server.request_lines()[3], "GET /api/tags");
}
