//! The whole body of a request, for each API. `BLESS=1` takes what there is for right.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::*;

/// A conversation with all that there is: images, calls, results, failures, thoughts.
fn conversation(id: &str) -> Request {
    let image = || Part::Media { mime: "image/png".into(), data: "iVBORw0=".into() };
    let call = |id: &str, arguments: &str| Call { id: id.into(), name: "read".into(), arguments: arguments.into() };
    let result = |id: &str, parts, is_error| Message::Tool { id: id.into(), name: "read".into(), parts, is_error };
    let kept = json!({
        "blocks": [
            {"thought": {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}},
            {"text": 7},
            {"call": "one"},
            {"thought": {"type": "redacted_thinking", "data": "aGlkZGVu"}},
            {"call": "call#two"},
            {"thought": {"type": "thinking", "thinking": "So.", "signature": "bm90aGluZyBmb2xsb3dz"}},
        ],
        "reasoning_content": "Hm.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "c2VjcmV0"}],
        "text": "dGV4dA==",
        "calls": {"one": "Y2FsbA=="},
        "items": [
            {"reasoning": {"type": "reasoning", "summary": [], "encrypted_content": "Zmlyc3Q="}},
            {"text": true},
            {"call": "one"},
            {"reasoning": {"type": "reasoning", "summary": [], "encrypted_content": "c2Vjb25k"}},
            {"call": "call#two"},
            {"reasoning": {"type": "reasoning", "summary": [], "encrypted_content": "bm90aGluZyBmb2xsb3dz"}},
        ],
    });
    Request {
        messages: vec![
            Message::User { parts: vec![Part::text("What is in a and b?"), image(), Part::text("")] },
            Message::Assistant {
                text: "I look.".into(),
                calls: vec![call("one", r#"{"path":"a"}"#), call("call#two", "{not json")],
                opaque: Some(json!({ "model": id, "kept": kept })),
            },
            result("one", vec![Part::text("apples"), image()], false),
            result("call#two", vec![Part::text("arguments are not JSON")], true),
            Message::Assistant { text: " ".into(), calls: vec![], opaque: None },
            Message::User { parts: vec![] },
            Message::Assistant {
                text: "Said by another model.".into(),
                calls: vec![],
                opaque: Some(json!({ "model": "acme:other", "kept": kept })),
            },
            Message::user("And now?"),
        ],
        max_tokens: Some(30_000),
        thought: Thought::High,
        ..request("hi")
    }
}

#[tokio::test]
async fn whole_requests_are_as_they_were() {
    for (provider, name, snapshot) in [
        ("openai", "gpt-5.1", "chat"),
        ("openrouter", "anthropic/claude-sonnet-4", "chat-elsewhere"),
        ("responses", "gpt-5.1", "responses"),
        ("anthropic", "claude-sonnet-4-5", "anthropic"),
        ("anthropic", "claude-opus-4-7", "anthropic-adaptive"),
        ("gemini", "gemini-2.5-pro", "gemini"),
        ("gemini", "gemini-3-pro", "gemini-level"),
        ("ollama", "qwen3-vl:8b", "ollama"),
    ] {
        let server = ModelServer::with(|_| Says::text("ok")).await;
        let temperature = (provider != "responses").then_some(0.5);
        let set = Settings {
            name: name.into(),
            temperature,
            thinks: Some(true),
            images: Some(true),
            ..settings(provider, &server)
        };
        let model = Remote::new(set).unwrap();
        assert_eq!(story(&model, conversation(&model.info().id())).await, "say ok | end Done", "{snapshot}");
        let asked = server.requests().remove(0);
        let body = serde_json::to_string_pretty(&asked.body).unwrap();
        check(snapshot, &format!("{}\n{body}\n", asked.path));
    }
}

#[tokio::test]
async fn a_form_is_asked_for_where_there_is_a_word_for_it() {
    for (provider, pointer) in
        [("openai", "/response_format/json_schema/schema"), ("responses", "/text/format/schema"), ("ollama", "/format")]
    {
        let server = ModelServer::with(|_| Says::text(r#"{"action":"done","arguments":{"message":"ok"}}"#)).await;
        let model = Remote::new(Settings { native_tools: Some(false), ..settings(provider, &server) }).unwrap();
        assert_eq!(story(&model, request("hi")).await, "say ok | end Done", "{provider}");
        let body = server.requests().remove(0).body;
        assert!(body.pointer(pointer).is_some_and(|schema| schema["oneOf"].is_array()), "{provider}: {body}");
    }
}

fn check(name: &str, seen: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/model/remote/tests/requests/{name}.json"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, seen).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(seen == kept, "{name} is not as it was; look at it, then BLESS=1\n--- was\n{kept}\n--- is\n{seen}");
}
