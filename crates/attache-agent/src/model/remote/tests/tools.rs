//! Models that cannot call tools by themselves.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

use super::*;

fn refusal(message: &str) -> Says {
    Says::status(400).body(json!({"error": {"message": message, "type": "invalid_request_error"}}))
}

const ANSWER: &str = r#"{"action":"read","arguments":{"path":"a"}}"#;

#[tokio::test]
async fn a_model_without_tools_is_asked_for_json_from_then_on() {
    let server = ModelServer::with(|request| {
        if request.body.get("tools").is_some() {
            refusal("registry.ollama.ai/library/gemma:9b does not support tools")
        } else {
            Says::text(ANSWER).piece_size(3)
        }
    })
    .await;
    let model = Remote::new(Settings { base_url: Some(server.url()), ..Settings::new("ollama", "gemma:9b") }).unwrap();
    for _ in 0..2 {
        let expected = r#"name read | call read {"path":"a"} | end Done"#;
        assert_eq!(story(&model, request("hi")).await, expected);
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "it was asked with tools once");
    assert_eq!(requests[2].body["format"]["oneOf"][0]["required"], json!(["action", "arguments"]));
    assert!(requests[2].system().contains("- read {"));
    // A request without tools is nothing special.
    let plain = Request { tools: vec![], ..request("hi") };
    assert_eq!(story(&model, plain).await, format!("say {ANSWER} | end Done"));
}

#[tokio::test]
async fn a_server_without_schemas_is_asked_in_words() {
    let server = ModelServer::with(|request| {
        if request.body.get("response_format").is_some() {
            refusal("response_format is not supported by this model")
        } else {
            Says::text(ANSWER)
        }
    })
    .await;
    let native_tools = Some(false);
    let model = Remote::new(Settings { native_tools, ..settings("openai", &server) }).unwrap();
    assert!(story(&model, request("hi")).await.starts_with("name read | call read"));
    assert_eq!(server.requests().len(), 2);
    // The other APIs have no such field, and are asked in words at once.
    for provider in ["anthropic", "gemini"] {
        let model = Remote::new(Settings { native_tools, ..settings(provider, &server) }).unwrap();
        assert!(story(&model, request("hi")).await.starts_with("name read | call read"), "{provider}");
    }
}

#[tokio::test]
async fn a_model_that_must_have_tools_is_not_asked_otherwise() {
    let server = ModelServer::with(|_| refusal("this model does not support tools")).await;
    let model = Remote::new(Settings { native_tools: Some(true), ..settings("openai", &server) }).unwrap();
    let story = story(&model, request("hi")).await;
    assert!(story.starts_with("error Request: ") && story.contains("does not support tools"), "{story}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_is_said_comes_as_it_is_written() {
    let answer = Says::text(r#"{"action":"done","arguments":{"message":"one two three four"}}"#).piece_size(4);
    let server = ModelServer::start(vec![answer]).await;
    let model = Remote::new(Settings { native_tools: Some(false), ..settings("openai", &server) }).unwrap();
    let pieces = pieces(&model, request("hi")).await;
    assert!(pieces.iter().filter(|piece| matches!(piece, Ok(Piece::Text(_)))).count() > 3, "{pieces:?}");
}

#[tokio::test]
async fn two_questions_at_once_do_not_disturb_each_other() {
    let seen = Arc::new(Mutex::new(0));
    let server = ModelServer::with(move |request| {
        *seen.lock().unwrap() += 1;
        Says::text(request.texts().join(" ")).piece_size(1)
    })
    .await;
    let model = model("openai", &server);
    let (one, two) = tokio::join!(story(&model, request("first one")), story(&model, request("second one")));
    assert_eq!((one.as_str(), two.as_str()), ("say first one | end Done", "say second one | end Done"));
}
