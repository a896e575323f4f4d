//! The model that does what the prompt says.

use serde_json::{Value, json};

use super::{OPENAI, post};
use crate::model_server::ModelServer;

/// What the model answers to a prompt after so many tool results: thought, text, calls, reason to stop.
async fn step(prompt: &str, results: usize) -> (Value, Value, Vec<String>, Value) {
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for number in 0..results {
        let function = json!({"name": "x", "arguments": "{}"});
        let call = json!({"id": number.to_string(), "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "content": "step", "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": number.to_string(), "content": "say nothing"}));
    }
    let tools = json!([{"type": "function", "function": {"name": "x"}}]);
    let body = json!({"model": "m", "tools": tools, "messages": messages});
    let server = ModelServer::scripted().await;
    let reply = post(&server, OPENAI, &body).await.json();
    let choice = &reply["choices"][0];
    let message = &choice["message"];
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]);
    let calls = calls.map(|call| format!("{} {}", call["name"].as_str().unwrap(), call["arguments"].as_str().unwrap()));
    let thought = message.get("reasoning_content").cloned().unwrap_or_default();
    (thought, message["content"].clone(), calls.collect(), choice["finish_reason"].clone())
}

#[tokio::test]
async fn calls_come_one_after_the_other_and_then_the_model_is_done() {
    let prompt = "Please:\n  call read {\"path\": \"a b\"}\n call srv__run-it {broken\nThank you.";
    let expected = |text: &str, calls: &[&str], reason: &str| {
        let calls: Vec<String> = calls.iter().map(|&call| call.to_owned()).collect();
        (Value::Null, json!(text), calls, json!(reason))
    };
    assert_eq!(step(prompt, 0).await, expected("step 1", &["read {\"path\": \"a b\"}"], "tool_calls"));
    assert_eq!(step(prompt, 1).await, expected("step 2", &["srv__run-it {broken"], "tool_calls"));
    assert_eq!(step(prompt, 2).await, expected("done", &[], "stop"));
    assert_eq!(step(prompt, 9).await, expected("done", &[], "stop"));
    assert_eq!(step("Hello", 0).await, expected("done", &[], "stop"));
}

#[tokio::test]
async fn calls_of_one_step_wait_for_all_their_results() {
    let prompt = "think of two\ncall a {}\nand b {}\nsay so\ncall c {}\nsay over";
    let (thought, text, calls, _) = step(prompt, 0).await;
    assert_eq!((thought, text, calls), (json!("of two"), json!("step 1"), vec!["a {}".to_owned(), "b {}".to_owned()]));
    let (thought, text, calls, _) = step(prompt, 2).await;
    assert_eq!((thought, text, calls), (Value::Null, json!("so"), vec!["c {}".to_owned()]));
    assert_eq!(step(prompt, 3).await.1, "over\ndone");
}

#[tokio::test]
async fn a_request_for_json_without_tools_gets_json() {
    let schema =
        json!({ "type": "OBJECT", "properties": { "score": { "type": "INTEGER" }, "why": { "type": "STRING" } } });
    let body = json!({
        "contents": [{ "role": "user", "parts": [{ "text": "use read {}" }] }],
        "generationConfig": { "responseMimeType": "application/json", "responseJsonSchema": schema },
    });
    let server = ModelServer::scripted().await;
    let reply = post(&server, "/v1beta/models/gemini-x:generateContent", &body).await.json();
    assert_eq!(reply["candidates"][0]["content"]["parts"][0]["text"], r#"{"score":1,"why":"to test"}"#);
}

#[tokio::test]
async fn the_model_stops_for_the_reason_it_is_told() {
    let (_, text, _, reason) = step("say half of it\nstop length", 0).await;
    assert_eq!((text, reason), (json!("half of it"), json!("length")));
    let (_, text, _, reason) = step("stop refusal", 0).await;
    assert_eq!((text, reason), (Value::Null, json!("content_filter")));
}

#[tokio::test]
async fn the_model_recalls_words_and_talks_at_length() {
    assert_eq!(step("remember rose and\nremember lily\nrecall", 0).await.1, "remembered rose lily\ndone");
    assert!(step("slowly", 0).await.1.as_str().unwrap().ends_with("word 149"));
}

#[tokio::test]
async fn only_the_last_script_counts_and_only_with_tools() {
    let server = ModelServer::scripted().await;
    let say = |role: &str, text: &str| json!({"role": role, "content": text});
    let messages =
        json!([say("user", "say one"), say("assistant", "one"), say("user", "say two"), say("user", "go on")]);
    let mut body = json!({"model": "m", "messages": messages});
    assert_eq!(post(&server, OPENAI, &body).await.json()["choices"][0]["message"]["content"], "done");
    body["tools"] = json!([{"type": "function", "function": {"name": "x"}}]);
    assert_eq!(post(&server, OPENAI, &body).await.json()["choices"][0]["message"]["content"], "two\ndone");
}
