//! What servers are asked: models, keys, conversations, images, caches, thoughts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache_testkit::model_server::{ModelRequest, Turn};

use super::*;

/// What the server is asked when the model is asked this.
async fn asked(settings: impl FnOnce(Settings) -> Settings, provider: &str, request: Request) -> ModelRequest {
    let server = ModelServer::with(|_| Says::text("ok")).await;
    let model = Remote::new(settings(super::settings(provider, &server))).unwrap();
    let story = story(&model, request).await;
    assert_eq!(story, "say ok | end Done", "{provider}");
    server.requests().remove(0)
}

fn conversation() -> Request {
    let call = |id: &str, arguments: &str| Call { id: id.into(), name: "read".into(), arguments: arguments.into() };
    let result = |id: &str, text: &str, is_error| Message::Tool {
        id: id.into(),
        name: "read".into(),
        parts: vec![Part::text(text)],
        is_error,
    };
    let mut request = request("What is in a and b?");
    request.messages.extend([
        Message::Assistant {
            text: "I look.".into(),
            calls: vec![call("one", r#"{"path":"a"}"#), call("two", "{not json")],
            opaque: None,
        },
        result("one", "apples", false),
        result("two", "arguments are not JSON", true),
        Message::Assistant { text: String::new(), calls: vec![], opaque: None },
        Message::user("And now?"),
    ]);
    request
}

#[tokio::test]
async fn the_conversation_is_told_whole() {
    for provider in PROVIDERS {
        let asked = asked(|settings| settings, provider, conversation()).await;
        assert_eq!(asked.system(), "Be kind.");
        assert_eq!(asked.tool_names(), ["read"]);
        assert!(asked.is_stream());
        let malformed = r#"{"malformed":"{not json"}"#;
        let expected = [
            Turn::User("What is in a and b?".into()),
            Turn::Assistant("I look.".into()),
            Turn::Call { id: "one".into(), name: "read".into(), arguments: r#"{"path":"a"}"#.into() },
            Turn::Call { id: "two".into(), name: "read".into(), arguments: malformed.into() },
            Turn::Result { id: "one".into(), text: "apples".into() },
            Turn::Result {
                id: "two".into(),
                text: if provider == "anthropic" { "arguments are not JSON" } else { "error: arguments are not JSON" }
                    .into(),
            },
            Turn::User("And now?".into()),
        ];
        assert_eq!(asked.turns(), expected, "{provider}");
        if provider == "anthropic" {
            // One message for all results, and the failed one is marked.
            let results = asked.body["messages"][2]["content"].as_array().unwrap();
            assert_eq!(results.len(), 2);
            assert_eq!(results[1]["is_error"], true);
        }
    }
}

/// Templates of chat completions want the roles by turns; the other APIs put neighbours together themselves.
#[tokio::test]
async fn neighbouring_prompts_are_one_message_that_begins_as_it_was() {
    let image = || Part::Media { mime: "image/png".into(), data: "iVBORw0=".into() };
    let mut request = request("first");
    let mut before: Option<String> = None;
    for (added, expected) in [
        (None, json!("first")),
        (Some(Message::user("a summary")), json!("first\n\na summary")),
        (Some(Message::user("second")), json!("first\n\na summary\n\nsecond")),
        // An empty answer is not sent, and parts nobody.
        (
            Some(Message::Assistant { text: String::new(), calls: vec![], opaque: None }),
            json!("first\n\na summary\n\nsecond"),
        ),
        (Some(Message::user("third")), json!("first\n\na summary\n\nsecond\n\nthird")),
    ] {
        request.messages.extend(added);
        let asked = asked(|settings| settings, "openai", request.clone()).await;
        let messages = asked.body["messages"].as_array().unwrap();
        assert_eq!(messages[1..], [json!({"role": "user", "content": expected})]);
        let text = json!(messages).to_string();
        // The end of a message is three signs: its text, itself and the list.
        if let Some(before) = before.replace(text.clone()) {
            assert_eq!(text[..before.len() - 3], before[..before.len() - 3]);
        }
    }
    let parts = vec![Part::text("look"), image()];
    request.messages.extend([Message::User { parts }, Message::user("and?")]);
    let set = |settings| Settings { images: Some(true), ..settings };
    let asked = asked(set, "openai", request).await;
    let content = asked.body["messages"][1]["content"].as_array().unwrap();
    let texts: Vec<&str> = content.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(texts, ["first\n\na summary\n\nsecond\n\nthird", "look", "and?"]);
    assert_eq!((content.len(), &content[2]["type"]), (4, &json!("image_url")));
}

#[tokio::test]
async fn the_key_goes_where_it_belongs_and_nowhere_else() {
    for (provider, header, value) in [
        ("openai", "authorization", format!("Bearer {KEY}")),
        ("anthropic", "x-api-key", KEY.to_owned()),
        ("gemini", "x-goog-api-key", KEY.to_owned()),
    ] {
        let asked_with = asked(|settings| settings, provider, request("hi")).await;
        assert_eq!(asked_with.header(header), Some(value.as_str()));
        assert!(!asked_with.path.contains("sk-") && !asked_with.body.to_string().contains("sk-"));
        // Without a key none is sent, and none is looked for.
        let asked_without = asked(|settings| Settings { key: None, ..settings }, provider, request("hi")).await;
        for name in ["authorization", "x-api-key", "x-goog-api-key"] {
            assert_eq!(asked_without.header(name), None, "{provider}");
        }
    }
}

#[tokio::test]
async fn names_of_models_are_sent_as_they_are() {
    for provider in PROVIDERS {
        for name in ["qwen3-max", "gpt-5.1", "claude-opus-4-5", "a/b:c", "deepseek-r1-high", "x::y", "kimi-none"] {
            if provider == "gemini" && name.contains("::") {
                continue;
            }
            for key in [Some(Secret::from(KEY)), None] {
                let set = |settings| Settings { name: name.into(), key, ..settings };
                let asked = asked(set, provider, request("hi")).await;
                match provider {
                    "gemini" => {
                        let path = asked.path.replace("%3A", ":");
                        assert!(path.ends_with(&format!("/models/{name}:streamGenerateContent?alt=sse")), "{path}");
                    }
                    _ => assert_eq!(asked.model(), name, "{provider}"),
                }
                let body = asked.body.to_string();
                assert!(!body.contains("effort") && !body.contains("budget"), "{provider} {name}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn images_are_sent_to_those_who_see() {
    let image = || Part::Media { mime: "image/png".into(), data: "iVBORw0=".into() };
    let sound = || Part::Media { mime: "audio/x-wav".into(), data: "UklGRg==".into() };
    let mut request = request("Look:");
    request.messages[0] = Message::User { parts: vec![Part::text("Look:"), image(), sound()] };
    let call = Call { id: "one".into(), name: "read".into(), arguments: "{}".into() };
    request.messages.extend([
        Message::Assistant { text: String::new(), calls: vec![call], opaque: None },
        Message::Tool {
            id: "one".into(),
            name: "read".into(),
            parts: vec![Part::text("seen"), image()],
            is_error: false,
        },
    ]);
    for provider in PROVIDERS {
        let can = |can| move |settings| Settings { images: Some(can), audio: Some(can), ..settings };
        let body = asked(can(true), provider, request.clone()).await.body.to_string();
        assert_eq!(body.matches("iVBORw0=").count(), 2, "{provider}: {body}");
        let heard = usize::from(matches!(provider, "openai" | "gemini"));
        assert!(body.matches("UklGRg==").count() >= heard, "{provider}: {body}");
        let body = asked(can(false), provider, request.clone()).await.body.to_string();
        assert!(!body.contains("iVBORw0=") && !body.contains("UklGRg=="), "{provider}: {body}");
        assert_eq!(body.matches("image/png left out").count(), 2, "{provider}: {body}");
    }
}

#[tokio::test]
async fn what_stays_the_same_is_cached() {
    let body = asked(|settings| settings, "anthropic", conversation()).await.body;
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"][0]["cache_control"], mark);
    let messages = body["messages"].as_array().unwrap();
    let marked: Vec<bool> = messages
        .iter()
        .map(|message| {
            message["content"]
                .as_array()
                .and_then(|parts| parts.last())
                .is_some_and(|part| part["cache_control"] == mark)
        })
        .collect();
    assert_eq!(marked, [false, false, true, true]);

    let first = asked(|settings| settings, "openai", request("hi")).await.body;
    let mut longer = request("hi");
    longer.messages.push(Message::user("more"));
    let second = asked(|settings| settings, "openai", longer).await.body;
    assert!(first["prompt_cache_key"].as_str().unwrap().starts_with("attache-"));
    assert_eq!(first["prompt_cache_key"], second["prompt_cache_key"]);
}

#[tokio::test]
async fn effort_is_only_asked_for_when_someone_wants_it() {
    for (provider, name, thought, pointer, expected) in [
        ("openai", "gpt-5.1", Thought::High, "/reasoning_effort", json!("high")),
        ("openai", "gpt-5.1", Thought::Off, "/reasoning_effort", json!("none")),
        ("anthropic", "claude-sonnet-4-5", Thought::Medium, "/thinking/budget_tokens", json!(8000)),
        ("gemini", "gemini-2.5-flash", Thought::Off, "/generationConfig/thinkingConfig/thinkingBudget", json!(0)),
        ("gemini", "gemini-3-pro", Thought::Low, "/generationConfig/thinkingConfig/thinkingLevel", json!("LOW")),
    ] {
        let set = |settings| Settings { name: name.into(), ..settings };
        let ask = |thought| Request { thought, ..request("hi") };
        let body = asked(set, provider, ask(thought)).await.body;
        assert_eq!(body.pointer(pointer), Some(&expected), "{provider} {thought:?}: {body}");
        let body = asked(set, provider, ask(Thought::Default)).await.body;
        assert_eq!(body.pointer(pointer), None, "{provider}: {body}");
    }
    let set = |settings| Settings { name: "qwen3".into(), ..settings };
    let body = asked(set, "openai", Request { thought: Thought::High, ..request("hi") }).await.body;
    assert_eq!(body.get("reasoning_effort"), None, "this one cannot be told");
}

#[tokio::test]
async fn limits_are_passed_on() {
    for (provider, pointer) in
        [("openai", "/max_tokens"), ("anthropic", "/max_tokens"), ("gemini", "/generationConfig/maxOutputTokens")]
    {
        let body = asked(|settings| settings, provider, Request { max_tokens: Some(77), ..request("hi") }).await.body;
        assert_eq!(body.pointer(pointer), Some(&json!(77)), "{provider}");
    }
}

/// Asks, then asks again with what came of it in the conversation, and gives the second request.
async fn sent_back(provider: &str, answer: Says, with: impl Fn(Settings) -> Settings) -> Value {
    let server = ModelServer::start(vec![answer, Says::text("ok")]).await;
    let first = Remote::new(settings(provider, &server)).unwrap();
    let second = Remote::new(with(settings(provider, &server))).unwrap();
    let mut request = request("hi");
    let (mut text, mut calls, mut opaque) = (String::new(), Vec::new(), None);
    for piece in pieces(&first, request.clone()).await {
        match piece.unwrap() {
            Piece::Text(more) => text.push_str(&more),
            Piece::Call(call) => calls.push(call),
            Piece::End(end) => opaque = end.opaque,
            _ => {}
        }
    }
    let results: Vec<Message> = calls
        .iter()
        .map(|call| Message::Tool {
            id: call.id.clone(),
            name: call.name.clone(),
            parts: vec![Part::text("fine")],
            is_error: false,
        })
        .collect();
    // Through the session's log and back.
    let message = serde_json::to_string(&Message::Assistant { text, calls, opaque }).unwrap();
    request.messages.push(serde_json::from_str(&message).unwrap());
    request.messages.extend(results);
    assert_eq!(story(&second, request).await, "say ok | end Done");
    server.requests().remove(1).body
}

#[tokio::test]
async fn signatures_go_back_to_the_model_that_made_them() {
    let answer = || {
        let thinking = Says::text("I look.").thought("Hm, let me see.").signature("c2lnbmVk");
        thinking.call("read", json!({"path": "a"})).call("read", json!({"path": "b"}))
    };
    let same = |settings: Settings| settings;
    let other = |settings| Settings { name: "another-model".into(), ..settings };

    let body = sent_back("anthropic", answer(), same).await;
    let block = &body["messages"][1]["content"][0];
    assert_eq!(*block, json!({"type": "thinking", "thinking": "Hm, let me see.", "signature": "c2lnbmVk"}));
    assert_eq!(body["messages"][1]["content"][1]["text"], "I look.");
    let body = sent_back("anthropic", answer(), other).await;
    assert!(!body.to_string().contains("c2lnbmVk"));

    let body = sent_back("gemini", answer(), same).await;
    let parts = &body["contents"][1]["parts"];
    assert_eq!(parts[1]["thoughtSignature"], "c2lnbmVk", "{parts}");
    assert_eq!(parts[2].get("thoughtSignature"), None);
    assert_eq!(parts[1]["functionCall"].get("id"), None, "an id of ours is not sent");
    let body = sent_back("gemini", Says::text("Done.").signature("c2lnbmVk"), same).await;
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "c2lnbmVk");

    let body = sent_back("openai", answer(), same).await;
    assert_eq!(body["messages"][2]["reasoning_content"], "Hm, let me see.");
    let body = sent_back("openai", Says::text("Done.").thought("Hm."), same).await;
    assert_eq!(body["messages"][2].get("reasoning_content"), None, "only calls want their thoughts back");
}

/// An answer of Anthropic's with these blocks, each sent whole.
fn blocks(blocks: &[Value]) -> Says {
    let events = blocks.iter().enumerate().flat_map(|(index, block)| {
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    });
    Says::new().raw_after(1, events.map(|event| format!("data: {event}\n\n")).collect::<String>())
}

#[tokio::test]
async fn thoughts_of_anthropic_go_back_where_they_were() {
    let thought = |text: &str| json!({"type": "thinking", "thinking": text, "signature": format!("{text} signed")});
    let hidden = || json!({"type": "redacted_thinking", "data": "aGlkZGVu"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": id}});
    let unsigned = || json!({"type": "thinking", "thinking": "x", "signature": ""});
    for (answer, expected) in [
        (
            vec![
                thought("one"),
                text("Größe: "),
                hidden(),
                thought("two"),
                text("I look."),
                call("a"),
                thought("three"),
                call("b"),
            ],
            vec![
                thought("one"),
                text("Größe: "),
                hidden(),
                thought("two"),
                text("I look."),
                call("a"),
                thought("three"),
                call("b"),
            ],
        ),
        (
            vec![thought("one"), call("a"), text("And b."), call("b")],
            vec![thought("one"), call("a"), text("And b."), call("b")],
        ),
        // What would be refused does not go back: blank texts, thoughts without a signature, and those that nothing follows.
        (
            vec![thought("one"), text("\n\n"), unsigned(), text("I look."), call("a"), thought("two"), hidden()],
            vec![thought("one"), text("I look."), call("a")],
        ),
    ] {
        let body = sent_back("anthropic", blocks(&answer), |settings| settings).await;
        let results = expected.iter().filter(|block| block["type"] == "tool_use");
        let mut results: Vec<Value> = results
            .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": [text("fine")]}))
            .collect();
        let mark = json!({"type": "ephemeral"});
        let mut said = expected;
        said.last_mut().unwrap()["cache_control"] = mark.clone();
        results.last_mut().unwrap()["cache_control"] = mark;
        let messages = json!([
            {"role": "user", "content": [text("hi")]},
            {"role": "assistant", "content": said},
            {"role": "user", "content": results},
        ]);
        assert_eq!(body["messages"], messages);
    }
}

#[tokio::test]
async fn thoughts_of_openai_go_back_encrypted_with_what_they_belong_to() {
    let answer = || Says::text("I look.").thought("Hm.").signature("c2VjcmV0").call("read", json!({"path": "a"}));
    let body = sent_back("responses", answer(), |settings| settings).await;
    let kinds: Vec<&str> = body["input"].as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["message", "reasoning", "message", "function_call", "function_call_output"]);
    assert_eq!(body["input"][1]["encrypted_content"], "c2VjcmV0");
    assert_eq!((&body["store"], &body["include"][0]), (&json!(false), &json!("reasoning.encrypted_content")));
    assert_eq!(body["input"][1].get("id"), None, "nothing is stored under it");
    let other = |settings| Settings { name: "gpt-5.1-mini".into(), ..settings };
    let body = sent_back("responses", answer(), other).await;
    assert!(!body.to_string().contains("c2VjcmV0"));
}

#[tokio::test]
async fn a_server_that_sums_up_no_thoughts_is_not_asked_to() {
    let server = ModelServer::with(|request| match request.body["reasoning"].get("summary") {
        Some(_) => Says::status(400).body(json!({"error": {
            "message": "Your organization must be verified to generate reasoning summaries.", "param": "reasoning.summary",
        }})),
        None => Says::text("ok"),
    })
    .await;
    let model = model("responses", &server);
    for _ in 0..2 {
        assert_eq!(story(&model, request("hi")).await, "say ok | end Done");
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn requests_that_fail_together_are_all_made_again() {
    let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n";
    let page = attache_testkit::Response::bytes("text/event-stream", chunk);
    let plain = attache_testkit::HttpFixture::start(vec![("/v1/chat/completions", page)]).await;
    let ollama = Settings { base_url: Some(plain.url("/v1")), ..Settings::new("ollama", "m") };
    let server = ModelServer::with(|request| match request.body["reasoning"].get("summary") {
        Some(_) => Says::status(400).body(json!({"error": {
            "message": "Your organization must be verified to generate reasoning summaries.", "param": "reasoning.summary",
        }})),
        None => Says::text("ok"),
    })
    .await;
    for settings in [ollama, settings("responses", &server)] {
        let model = Remote::new(settings).unwrap();
        let (one, other) = tokio::join!(story(&model, request("hi")), story(&model, request("hi")));
        assert_eq!((one.as_str(), other.as_str()), ("say ok | end Done", "say ok | end Done"), "{model:?}");
    }
    // Both of each were made before anything was known.
    assert_eq!((plain.requests().len(), server.requests().len()), (4, 4));
}

#[tokio::test]
async fn openai_itself_has_another_api_for_models_that_think() {
    let api = |name: &str, base_url: Option<&str>| {
        let key = Some(Secret::from(KEY));
        let base_url = base_url.map(str::to_owned);
        Remote::new(Settings { key, base_url, ..Settings::new("openai", name) }).unwrap().inner.api
    };
    assert_eq!(api("gpt-5.1", None), Api::Responses);
    assert_eq!(api("o3", Some("https://api.openai.com/v1")), Api::Responses);
    assert_eq!(api("gpt-4.1", None), Api::OpenAi);
    assert_eq!(api("gpt-5.1", Some("http://127.0.0.1:8080/v1")), Api::OpenAi);
}

#[tokio::test]
async fn a_server_that_is_not_ollama_is_asked_by_chat_completions() {
    // A server without `/api/chat`.
    let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let page = attache_testkit::Response::bytes("text/event-stream", chunk);
    let server = attache_testkit::HttpFixture::start(vec![("/v1/chat/completions", page)]).await;
    let model = Remote::new(Settings { base_url: Some(server.url("/v1")), ..Settings::new("ollama", "m") }).unwrap();
    for _ in 0..2 {
        assert_eq!(story(&model, request("hi")).await, "say hi | end Done");
    }
    let paths: Vec<String> = server.requests().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["/api/chat", "/v1/chat/completions", "/v1/chat/completions"]);
    // A model that is not there is not looked for elsewhere.
    let missing = json!({"error": "model 'm' not found"});
    let server = ModelServer::with(move |_| Says::status(404).body(missing.clone())).await;
    let story = story(&super::model("ollama", &server), request("hi")).await;
    assert!(story.contains("`ollama` has no model") && server.requests().len() == 1, "{story}");
}

#[tokio::test]
async fn ids_of_other_models_are_taken_along_in_a_form_that_is_taken() {
    let mut request = request("hi");
    let id = "call#read#12345678901234567890";
    let call = Call { id: id.into(), name: "read".into(), arguments: "{}".into() };
    request.messages.push(Message::Assistant { text: String::new(), calls: vec![call], opaque: None });
    request.messages.push(Message::Tool { id: id.into(), name: "read".into(), parts: vec![], is_error: false });
    for provider in ["openai", "responses", "anthropic", "ollama", "mistral"] {
        let asked = asked(|settings| settings, provider, request.clone()).await;
        let ids: Vec<String> = asked
            .turns()
            .into_iter()
            .filter_map(|turn| match turn {
                Turn::Call { id, .. } | Turn::Result { id, .. } => Some(id),
                _ => None,
            })
            .collect();
        assert!(ids.len() == 2 && ids[0] == ids[1], "{provider}: {ids:?}");
        assert!(ids[0].len() == 9 && ids[0].bytes().all(|c| c.is_ascii_alphanumeric()), "{provider}: {ids:?}");
    }
}

#[tokio::test]
async fn headers_of_ones_own_go_along_and_come_first() {
    let set = |settings| Settings {
        provider: "azure".into(),
        api: Some(Api::OpenAi),
        headers: vec![("api-key".into(), Secret::from("azure-secret")), ("X-Team".into(), Secret::from("blue"))],
        key: None,
        ..settings
    };
    let asked_with = asked(set, "openai", request("hi")).await;
    assert_eq!((asked_with.header("api-key"), asked_with.header("x-team")), (Some("azure-secret"), Some("blue")));
    assert_eq!(asked_with.header("authorization"), None);
    let set = |settings| Settings { headers: vec![("Authorization".into(), Secret::from("Basic x"))], ..settings };
    let asked_with = asked(set, "openai", request("hi")).await;
    assert_eq!(asked_with.header("authorization"), Some("Basic x"));
    let settings = Settings { headers: vec![("a".into(), Secret::from("azure-secret"))], ..Settings::new("x", "y") };
    assert!(!format!("{settings:?}").contains("azure-secret"));
}
