//! Messages.

use serde_json::{Value, json};

use super::{ANTHROPIC, answered, events, post, question};
use crate::model_server::{Answer, ModelServer, Stop};

fn named(data: Value) -> (String, Value) {
    (data["type"].as_str().unwrap().to_owned(), data)
}

fn start(index: usize, block: Value) -> (String, Value) {
    named(json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: usize, delta: Value) -> (String, Value) {
    named(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop(index: usize) -> (String, Value) {
    named(json!({"type": "content_block_stop", "index": index}))
}

#[tokio::test]
async fn thoughts_text_and_calls_are_blocks_of_their_own() {
    let answer = Answer::text("Hello, world")
        .thought("hm")
        .signature("c2ln")
        .call("read", json!({"a": 1}))
        .raw_call("write", "{no")
        .usage(50, 20, 8)
        .piece_size(7);
    let reply = answered(ANTHROPIC, answer).await;
    assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "text/event-stream"));
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": 30, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 20, "output_tokens": 1,
        },
    });
    let json_delta = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
    let expected = [
        named(json!({"type": "message_start", "message": message})),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        named(json!({"type": "ping"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Hello, "})),
        delta(1, json!({"type": "text_delta", "text": "world"})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "toolu_1_0", "name": "read", "input": {}})),
        delta(2, json_delta("")),
        delta(2, json_delta("{\"a\":1}")),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "toolu_1_1", "name": "write", "input": {}})),
        delta(3, json_delta("")),
        delta(3, json_delta("{no")),
        stop(3),
        named(json!({
            "type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 8},
        })),
        named(json!({"type": "message_stop"})),
    ];
    assert_eq!(events(&reply, "\n"), expected);
}

#[tokio::test]
async fn reasons_to_stop_have_their_names() {
    for (stop, name) in [(Stop::Done, "end_turn"), (Stop::Length, "max_tokens"), (Stop::Refusal, "refusal")] {
        let events = events(&answered(ANTHROPIC, Answer::text("x").stop(stop)).await, "\n");
        assert_eq!(events[events.len() - 2].1["delta"]["stop_reason"], name);
    }
}

#[tokio::test]
async fn without_a_stream_the_answer_is_one_object() {
    let answer = Answer::text("Hi").thought("hm").signature("c2ln").call("read", json!({"a": 1}));
    let server = ModelServer::start(vec![answer]).await;
    let mut body = question(ANTHROPIC);
    body["stream"] = json!(false);
    let expected = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "toolu_1_0", "name": "read", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {
            "input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10,
        },
    });
    assert_eq!(post(&server, ANTHROPIC, &body).await.json(), expected);
}
