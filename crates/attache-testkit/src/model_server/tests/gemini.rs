//! Gemini.

use serde_json::{Value, json};

use super::{GEMINI, answered, data, post, question};
use crate::model_server::{Answer, ModelServer, Stop};

/// One chunk of an answer that takes what answers take if nothing is said of it.
fn chunk(parts: Value, reason: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
        "modelVersion": "gemini-x",
        "responseId": "response_1",
    })
}

#[tokio::test]
async fn text_comes_in_pieces_and_calls_come_whole() {
    let answer = Answer::text("Hello, world").call("read", json!({"a": 1})).call("write", json!({})).call_id("mine");
    let reply = answered(GEMINI, answer.signature("c2ln").piece_size(7)).await;
    assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "text/event-stream"));
    let calls = json!([
        {"functionCall": {"name": "read", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "write", "args": {}, "id": "mine"}},
    ]);
    let expected = [
        chunk(json!([{"text": "Hello, "}]), None),
        chunk(json!([{"text": "world"}]), None),
        chunk(calls, Some("STOP")),
    ];
    assert_eq!(data(&reply, "\r\n"), expected);
}

#[tokio::test]
async fn thoughts_are_marked_counted_and_signed_at_the_end() {
    let answer = Answer::text("b").thought("a").signature("c2ln").usage(50, 20, 9);
    let data = data(&answered(GEMINI, answer).await, "\r\n");
    let parts: Vec<&Value> = data.iter().map(|chunk| &chunk["candidates"][0]["content"]["parts"]).collect();
    let expected = [
        &json!([{"text": "a", "thought": true}]),
        &json!([{"text": "b"}]),
        &json!([{"text": "", "thoughtSignature": "c2ln"}]),
    ];
    assert_eq!(parts, expected);
    let usage = json!({
        "promptTokenCount": 50, "candidatesTokenCount": 5, "totalTokenCount": 59, "cachedContentTokenCount": 20,
        "thoughtsTokenCount": 4,
    });
    assert_eq!(data[2]["usageMetadata"], usage);
}

#[tokio::test]
async fn reasons_to_stop_have_their_names() {
    for (stop, name) in [(Stop::Done, "STOP"), (Stop::Length, "MAX_TOKENS"), (Stop::Refusal, "SAFETY")] {
        let reply = answered(GEMINI, Answer::text("x").stop(stop)).await;
        assert_eq!(data(&reply, "\r\n"), [chunk(json!([{"text": "x"}]), Some(name))]);
    }
}

#[tokio::test]
async fn a_call_that_is_no_json_is_a_malformed_call() {
    let reply = answered(GEMINI, Answer::new().raw_call("read", "{no")).await;
    assert_eq!(data(&reply, "\r\n"), [chunk(json!([{"text": ""}]), Some("MALFORMED_FUNCTION_CALL"))]);
}

#[tokio::test]
async fn without_a_stream_the_answer_is_one_object() {
    let server = ModelServer::start(vec![Answer::text("Hi").call("read", json!({"a": 1}))]).await;
    let reply = post(&server, "/v1beta/models/gemini-x:generateContent", &question(GEMINI)).await;
    let parts = json!([{"text": "Hi"}, {"functionCall": {"name": "read", "args": {"a": 1}}}]);
    assert_eq!(reply.json(), chunk(parts, Some("STOP")));
}
