//! Chat completions.

use serde_json::{Value, json};

use super::{OPENAI, answered, ask, data, post, question};
use crate::model_server::{Answer, ModelServer, Stop};

fn chunk(delta: Value, reason: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "gpt-x",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}],
    })
}

#[tokio::test]
async fn text_comes_in_pieces_between_the_role_and_the_reason() {
    let reply = answered(OPENAI, Answer::text("Hello, world").piece_size(7)).await;
    assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "text/event-stream"));
    assert!(reply.is_whole);
    let expected = [
        chunk(json!({"role": "assistant", "content": ""}), json!(null)),
        chunk(json!({"content": "Hello, "}), json!(null)),
        chunk(json!({"content": "world"}), json!(null)),
        chunk(json!({}), json!("stop")),
        json!("[DONE]"),
    ];
    assert_eq!(data(&reply, "\n"), expected);
}

#[tokio::test]
async fn a_thought_is_reasoning_content() {
    let reply = answered(OPENAI, Answer::text("b").thought("a")).await;
    let data = data(&reply, "\n");
    assert_eq!(data[1], chunk(json!({"reasoning_content": "a"}), json!(null)));
    assert_eq!(data[2], chunk(json!({"content": "b"}), json!(null)));
}

#[tokio::test]
async fn calls_are_named_first_and_their_arguments_follow_in_pieces() {
    let answer = Answer::new().call("read", json!({"a": 1})).raw_call("write", "{no").call_id("mine").piece_size(4);
    let reply = answered(OPENAI, answer).await;
    let start = |index: usize, id: &str, name: &str| {
        let function = json!({"name": name, "arguments": ""});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        chunk(json!({"tool_calls": [call]}), json!(null))
    };
    let more = |index: usize, piece: &str| {
        let call = json!({"index": index, "function": {"arguments": piece}});
        chunk(json!({"tool_calls": [call]}), json!(null))
    };
    let expected = [
        start(0, "call_1_0", "read"),
        more(0, "{\"a\""),
        more(0, ":1}"),
        start(1, "mine", "write"),
        more(1, "{no"),
        chunk(json!({}), json!("tool_calls")),
        json!("[DONE]"),
    ];
    assert_eq!(data(&reply, "\n")[1..], expected);
}

#[tokio::test]
async fn usage_comes_last_and_only_if_it_is_wanted() {
    let answer = Answer::text("b").thought("a").usage(50, 20, 8);
    let server = ModelServer::start(vec![answer.clone(), answer]).await;
    let silent = data(&ask(&server, OPENAI).await, "\n");
    assert!(silent.iter().all(|chunk| chunk.get("usage").is_none()));
    let mut body = question(OPENAI);
    body["stream_options"] = json!({"include_usage": true});
    let told = data(&post(&server, OPENAI, &body).await, "\n");
    let (last, before) = told[..told.len() - 1].split_last().unwrap();
    assert!(before.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(last["choices"], json!([]));
    let usage = json!({
        "prompt_tokens": 50, "completion_tokens": 8, "total_tokens": 58,
        "prompt_tokens_details": {"cached_tokens": 20}, "completion_tokens_details": {"reasoning_tokens": 4},
    });
    assert_eq!(last["usage"], usage);
}

#[tokio::test]
async fn reasons_to_stop_have_their_names() {
    for (stop, name) in [(Stop::Done, "stop"), (Stop::Length, "length"), (Stop::Refusal, "content_filter")] {
        let reply = answered(OPENAI, Answer::text("x").stop(stop)).await;
        assert_eq!(data(&reply, "\n")[2], chunk(json!({}), json!(name)));
    }
}

#[tokio::test]
async fn without_a_stream_the_answer_is_one_object() {
    let answer = Answer::text("Hi").thought("hm").call("read", json!({"a": 1}));
    let server = ModelServer::start(vec![answer]).await;
    let mut body = question(OPENAI);
    body["stream"] = json!(false);
    let reply = post(&server, OPENAI, &body).await;
    assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "application/json"));
    let call = json!({"id": "call_1_0", "type": "function", "function": {"name": "read", "arguments": "{\"a\":1}"}});
    let message = json!({
        "role": "assistant", "content": "Hi", "refusal": null, "reasoning_content": "hm", "tool_calls": [call],
    });
    let expected = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "gpt-x",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls"}],
        "usage": {
            "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 5},
        },
    });
    assert_eq!(reply.json(), expected);
}
