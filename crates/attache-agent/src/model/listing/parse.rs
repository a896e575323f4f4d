//! What lists of models say, each provider in its own words.

use serde_json::Value;

use super::Listed;
use crate::model::catalog::LOCAL_CONTEXT;
use crate::model::price::Price;

/// A context that is smaller than this, or larger, is a mistake.
const CONTEXTS: std::ops::RangeInclusive<u64> = 512..=20_000_000;

fn context(model: &Value, pointers: &[&str]) -> Option<u64> {
    let number = |pointer: &&str| model.pointer(pointer).and_then(Value::as_u64).filter(|size| CONTEXTS.contains(size));
    pointers.iter().find_map(number)
}

fn has(model: &Value, pointer: &str, word: &str) -> Option<bool> {
    let list = model.pointer(pointer)?.as_array()?;
    Some(list.iter().any(|item| item.as_str() == Some(word)))
}

fn flag(model: &Value, pointers: &[&str]) -> Option<bool> {
    pointers.iter().find_map(|pointer| model.pointer(pointer)?.as_bool())
}

fn list<'a>(body: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    body.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn name(model: &Value, key: &str) -> Option<String> {
    model.get(key)?.as_str().map(str::to_owned)
}

/// `{"data":[{"id":…}]}`, with the fields that OpenRouter, Groq, Mistral, vLLM and llama.cpp add to it.
pub(super) fn openai(body: &Value) -> Vec<Listed> {
    let model = |model: &Value| {
        Some(Listed {
            name: name(model, "id")?,
            context: context(
                model,
                &[
                    // What is served comes before what the model could do.
                    "/top_provider/context_length",
                    "/context_length",
                    "/context_window",
                    "/max_context_length",
                    "/max_model_len",
                    "/meta/n_ctx",
                ],
            ),
            tools: has(model, "/supported_parameters", "tools")
                .or_else(|| flag(model, &["/capabilities/function_calling"])),
            images: has(model, "/architecture/input_modalities", "image")
                .or_else(|| flag(model, &["/capabilities/vision"])),
            thinks: has(model, "/supported_parameters", "reasoning"),
            parameters: model.pointer("/meta/n_params").and_then(Value::as_u64),
            price: price(model),
        })
    };
    list(body, "data").filter_map(model).collect()
}

/// OpenRouter's prices: dollars for a token, as text.
fn price(model: &Value) -> Option<Price> {
    let million = |key: &str| {
        let text = model.pointer(&format!("/pricing/{key}"))?.as_str()?;
        text.parse::<f64>().ok().map(|token| token * 1e6)
    };
    let (cached, written) = (million("input_cache_read"), million("input_cache_write"));
    Price::per_million(million("prompt")?, million("completion")?, cached, written)
}

pub(super) fn anthropic(body: &Value) -> Vec<Listed> {
    let model = |model: &Value| {
        let context = context(model, &["/max_input_tokens"]);
        Some(Listed { name: name(model, "id")?, context, ..Listed::default() })
    };
    list(body, "data").filter_map(model).collect()
}

pub(super) fn gemini(body: &Value) -> Vec<Listed> {
    let model = |model: &Value| {
        if has(model, "/supportedGenerationMethods", "generateContent") != Some(true) {
            return None;
        }
        let full = name(model, "name")?;
        Some(Listed {
            name: full.strip_prefix("models/").unwrap_or(&full).to_owned(),
            context: context(model, &["/inputTokenLimit"]),
            thinks: flag(model, &["/thinking"]),
            ..Listed::default()
        })
    };
    list(body, "models").filter_map(model).collect()
}

/// LM Studio's own list, which says how much of the context is loaded.
pub(super) fn lmstudio(body: &Value) -> Vec<Listed> {
    let model = |model: &Value| {
        let kind = model.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "embeddings" {
            return None;
        }
        Some(Listed {
            name: name(model, "id")?,
            // One that is not loaded yet gets a part of what it could have.
            context: context(model, &["/loaded_context_length"]),
            images: Some(kind == "vlm"),
            tools: has(model, "/capabilities", "tool_use"),
            ..Listed::default()
        })
    };
    list(body, "data").filter_map(model).collect()
}

/// llama.cpp's settings.
pub(super) fn props(body: &Value) -> Listed {
    let context = context(body, &["/default_generation_settings/n_ctx", "/n_ctx"]);
    Listed { context, images: flag(body, &["/modalities/vision"]), ..Listed::default() }
}

/// Ollama's list.
pub(super) fn tags(body: &Value) -> Vec<Listed> {
    let model = |model: &Value| Some(Listed { name: name(model, "name")?, ..Listed::default() });
    list(body, "models").filter_map(model).collect()
}

/// What Ollama says of one model. The context is ours to choose: what its maker set, else what a machine has room for.
pub(super) fn show(name: &str, body: &Value) -> Listed {
    let info = body.get("model_info").and_then(Value::as_object);
    let trained = info
        .into_iter()
        .flatten()
        .find(|(key, _)| key.ends_with(".context_length"))
        .and_then(|(_, value)| value.as_u64())
        .filter(|size| CONTEXTS.contains(size));
    let parameters = body.get("parameters").and_then(Value::as_str).unwrap_or_default();
    let set = parameters
        .lines()
        .filter_map(|line| line.trim().strip_prefix("num_ctx"))
        .find_map(|value| value.trim().parse::<u64>().ok())
        .filter(|size| CONTEXTS.contains(size));
    Listed {
        name: name.to_owned(),
        context: set.or(trained.map(|size| size.min(LOCAL_CONTEXT))),
        tools: has(body, "/capabilities", "tools"),
        images: has(body, "/capabilities", "vision"),
        thinks: has(body, "/capabilities", "thinking"),
        parameters: info.and_then(|info| info.get("general.parameter_count")?.as_u64()),
        price: None,
    }
}

/// Whether a name is that of something one cannot talk to.
pub(super) fn is_no_chat(provider: &str, name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    is(&["embed", "whisper", "moderation"])
        || (provider == "openai"
            && is(&["tts", "dall-e", "realtime", "audio", "image", "transcribe", "sora", "babbage", "davinci"]))
        || (provider == "gemini" && is(&["imagen", "veo", "-tts", "-image", "aqa", "live"]))
}
