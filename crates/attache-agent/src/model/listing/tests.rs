//! What servers list, and what is believed of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache_testkit::model_server::ModelServer;
use attache_testkit::{HttpFixture, Response};

use super::*;

fn source(provider: &str, api: Api, base_url: String, is_own: bool) -> Source {
    Source { provider: provider.into(), api, base_url, key: Some(Secret::from("k")), headers: vec![], is_own }
}

async fn list(provider: &str, api: Api, pages: Vec<(&str, Value)>) -> Result<Vec<Listed>, String> {
    let pages = pages.into_iter().map(|(path, body)| (path, Response::bytes("application/json", body.to_string())));
    let server = HttpFixture::start(pages.collect()).await;
    fetch(&source(provider, api, server.url("/v1"), true)).await
}

fn named(name: &str) -> Listed {
    Listed { name: name.into(), ..Listed::default() }
}

#[tokio::test]
async fn each_provider_is_asked_in_its_own_words() {
    let server = ModelServer::start(vec![]).await;
    server.list_models(&["one", "two"]);
    for (api, at) in [(Api::OpenAi, "/v1"), (Api::Anthropic, ""), (Api::Gemini, ""), (Api::Ollama, "/v1")] {
        let models = fetch(&source("acme", api, format!("{}{at}", server.url()), false)).await.unwrap();
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["one", "two"], "{api:?}");
    }
}

#[tokio::test]
async fn what_a_list_says_of_its_models_is_read() {
    let openrouter = json!({"data": [
        {
            "id": "acme/big", "context_length": 200_000, "top_provider": {"context_length": 100_000},
            "architecture": {"input_modalities": ["text", "image"]}, "supported_parameters": ["tools", "reasoning"],
            "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
        },
        {"id": "acme/odd", "context_length": 3, "pricing": {"prompt": "-1", "completion": "free"}},
        {"id": "text-embedding-3"}, {"id": "bad\u{1b}[31m"}, {"id": 7}, {},
    ]});
    let models = list("openrouter", Api::OpenAi, vec![("/v1/models", openrouter)]).await.unwrap();
    let big = Listed {
        context: Some(100_000),
        tools: Some(true),
        images: Some(true),
        thinks: Some(true),
        price: Price::per_million(3.0, 15.0, Some(0.3), None),
        ..named("acme/big")
    };
    assert_eq!(models, [big, named("acme/odd")]);

    let vllm = json!({"data": [{"id": "m", "max_model_len": 16_384}]});
    let models = list("vllm", Api::OpenAi, vec![("/v1/models", vllm)]).await.unwrap();
    assert_eq!(models[0].context, Some(16_384));

    let llama = json!({"data": [{"id": "m", "meta": {"n_ctx_train": 32_768}}]});
    let props = json!({"default_generation_settings": {"n_ctx": 8_192}, "modalities": {"vision": true}});
    let models = list("llamacpp", Api::OpenAi, vec![("/v1/models", llama), ("/props", props)]).await.unwrap();
    assert_eq!((models[0].context, models[0].images), (Some(8_192), Some(true)));

    let studio = json!({"data": [
        {"id": "m", "type": "vlm", "max_context_length": 131_072, "loaded_context_length": 4_096},
        {"id": "e", "type": "embeddings"},
    ]});
    let models = list("lmstudio", Api::OpenAi, vec![("/api/v0/models", studio)]).await.unwrap();
    assert_eq!(models, [Listed { context: Some(4_096), images: Some(true), ..named("m") }]);

    let tags = json!({"models": [{"name": "qwen3:8b"}]});
    let show = json!({
        "capabilities": ["completion", "tools", "thinking"],
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
        "parameters": "stop \"<|im_end|>\"\nnum_ctx    12288",
    });
    let models = list("ollama", Api::Ollama, vec![("/api/tags", tags), ("/api/show", show)]).await.unwrap();
    let (tools, images, thinks) = (Some(true), Some(false), Some(true));
    assert_eq!(models, [Listed { context: Some(12_288), tools, images, thinks, ..named("qwen3:8b") }]);

    let gemini = json!({"models": [
        {"name": "models/gemini-x", "inputTokenLimit": 1_048_576, "thinking": true,
         "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/other", "supportedGenerationMethods": ["embedContent"]},
    ]});
    let models = list("gemini", Api::Gemini, vec![("/v1/models", gemini)]).await.unwrap();
    assert_eq!(models, [Listed { context: Some(1_048_576), thinks: Some(true), ..named("gemini-x") }]);
}

#[tokio::test]
async fn what_is_no_list_is_none_and_nothing_is_endless() {
    for (page, why) in [
        (Response::html("<html>"), "its answer is no JSON"),
        (Response::status(401), "answered with status 401: is its key right?"),
        (Response::redirect("/v1/elsewhere"), "answered with status 302"),
        (Response::bytes("application/json", "{\"data\":[").endless(), "no whole answer within 10 s"),
        (Response::bytes("application/json", "{\"data\":[]}"), "its answer lists no model"),
        (Response::bytes("application/json", "[1,2"), "its answer is no JSON"),
    ] {
        let server = HttpFixture::start(vec![("/v1/models", page)]).await;
        assert_eq!(fetch(&source("acme", Api::OpenAi, server.url("/v1"), false)).await, Err(why.to_owned()));
    }
    let many: Vec<Value> = (0..2_000).map(|number| json!({"id": format!("m{number}")})).collect();
    let models = list("acme", Api::OpenAi, vec![("/v1/models", json!({ "data": many }))]).await.unwrap();
    assert_eq!(models.len(), MOST_MODELS);
    assert!(fetch(&source("acme", Api::OpenAi, "no address".into(), false)).await.is_err());
    let nobody = fetch(&source("acme", Api::OpenAi, "http://127.0.0.1:1/v1".into(), false)).await;
    assert_eq!(nobody, Err("cannot be reached".to_owned()));
}
