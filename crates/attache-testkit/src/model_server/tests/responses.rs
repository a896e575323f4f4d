//! What OpenAI's Responses and Ollama's own API look like.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

use super::*;

#[tokio::test]
async fn responses_are_items_and_their_parts() {
    let server = ModelServer::start(vec![
        Answer::text("Hello").thought("Hm").signature("c2ln").call("read", json!({"path": "a"})).piece_size(100),
    ])
    .await;
    let body = json!({
        "model": "o9", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
        "instructions": "Be kind.", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    });
    let reply = post(&server, "/v1/responses", &body).await;
    let kinds: Vec<String> = events(&reply, "\n").into_iter().map(|(name, _)| name).collect();
    let item = ["response.output_item.added", "", "response.output_item.done"];
    let deltas = [
        "response.reasoning_summary_text.delta",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
    ];
    let mut expected = vec!["response.created".to_owned()];
    for delta in deltas {
        expected.extend(item.iter().map(|kind| if kind.is_empty() { delta.to_owned() } else { (*kind).to_owned() }));
    }
    expected.push("response.completed".to_owned());
    assert_eq!(kinds, expected);
    let last = events(&reply, "\n").pop().unwrap().1;
    assert_eq!(last["response"]["output"][0]["encrypted_content"], "c2ln");
    assert_eq!(last["response"]["usage"]["input_tokens"], 100);
    assert_eq!(server.requests()[0].system(), "Be kind.");
    assert_eq!(server.requests()[0].texts(), ["hi"]);
}

#[tokio::test]
async fn ollama_sends_lines() {
    let answer = Answer::text("Hello").call("read", json!({"path": "a"})).piece_size(100);
    let server = ModelServer::start(vec![answer]).await;
    let body = json!({"model": "qwen3", "messages": [{"role": "user", "content": "hi"}]});
    let reply = post(&server, "/api/chat", &body).await;
    let text = reply.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["message"]["content"], "Hello");
    assert_eq!(lines[1]["message"]["tool_calls"][0]["function"]["arguments"]["path"], "a");
    assert_eq!((&lines[2]["done"], &lines[2]["prompt_eval_count"]), (&json!(true), &json!(100)));
}
