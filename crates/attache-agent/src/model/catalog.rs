//! Who serves models: a table of providers, and what is known of a model by its name alone.

use super::ModelError;

/// The shape of a provider's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's chat completions, which most servers speak.
    OpenAi,
    /// OpenAI's Responses, where thoughts are kept between calls.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// Ollama's own API, which can be told the size of the context.
    Ollama,
}

/// Someone who serves models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// What users write before the colon.
    pub name: &'static str,
    /// How it is spoken to.
    pub api: Api,
    /// Where it is, unless `--base-url` says otherwise.
    pub base_url: &'static str,
    /// The environment variables that may hold its key, the first one first.
    pub key_variables: &'static [&'static str],
    /// Whether it answers nobody without a key.
    pub needs_key: bool,
    /// The model to use when none is named. `None` where that depends on what is installed there.
    pub default_model: Option<&'static str>,
}

/// All providers, in the order in which their keys are looked for.
pub const PROVIDERS: &[Provider] = &[
    hosted("anthropic", Api::Anthropic, "https://api.anthropic.com/v1/", &["ANTHROPIC_API_KEY"], "claude-sonnet-4-6"),
    hosted("openai", Api::OpenAi, "https://api.openai.com/v1/", &["OPENAI_API_KEY"], "gpt-5.1"),
    hosted(
        "gemini",
        Api::Gemini,
        "https://generativelanguage.googleapis.com/v1beta/",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "gemini-2.5-pro",
    ),
    hosted("openrouter", Api::OpenAi, "https://openrouter.ai/api/v1/", &["OPENROUTER_API_KEY"], "openrouter/auto"),
    hosted("deepseek", Api::OpenAi, "https://api.deepseek.com/v1/", &["DEEPSEEK_API_KEY"], "deepseek-flash"),
    hosted("groq", Api::OpenAi, "https://api.groq.com/openai/v1/", &["GROQ_API_KEY"], "openai/gpt-oss-120b"),
    hosted("mistral", Api::OpenAi, "https://api.mistral.ai/v1/", &["MISTRAL_API_KEY"], "devstral-medium-latest"),
    hosted("xai", Api::OpenAi, "https://api.x.ai/v1/", &["XAI_API_KEY"], "grok-4.7"),
    hosted("moonshot", Api::OpenAi, "https://api.moonshot.ai/v1/", &["MOONSHOT_API_KEY"], "kimi-k3.1-pro"),
    hosted(
        "qwen",
        Api::OpenAi,
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/",
        &["DASHSCOPE_API_KEY"],
        "qwen3.8-max",
    ),
    Provider { api: Api::Ollama, ..local("ollama", "http://127.0.0.1:11434/v1/", &["OLLAMA_API_KEY"]) },
    local("lmstudio", "http://127.0.0.1:1234/v1/", &["LMSTUDIO_API_KEY"]),
    local("llamacpp", "http://127.0.0.1:8080/v1/", &["LLAMA_API_KEY"]),
    local("vllm", "http://127.0.0.1:8000/v1/", &["VLLM_API_KEY"]),
];

const fn hosted(
    name: &'static str,
    api: Api,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    default_model: &'static str,
) -> Provider {
    Provider { name, api, base_url, key_variables, needs_key: true, default_model: Some(default_model) }
}

const fn local(name: &'static str, base_url: &'static str, key_variables: &'static [&'static str]) -> Provider {
    Provider { name, api: Api::OpenAi, base_url, key_variables, needs_key: false, default_model: None }
}

/// The provider of this name.
pub fn provider(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// A model, as users write it: `provider:name`. The name may be left out where the provider has a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Who serves it.
    pub provider: &'static Provider,
    /// Its name there, colons and slashes included.
    pub name: &'a str,
}

/// Reads `provider:name`.
///
/// ```
/// use attache_agent::model::catalog;
/// let choice = catalog::parse("ollama:qwen3:8b").unwrap();
/// assert_eq!((choice.provider.name, choice.name), ("ollama", "qwen3:8b"));
/// ```
pub fn parse(text: &str) -> Result<Choice<'_>, ModelError> {
    let text = text.trim();
    let (name, model) = text.split_once(':').unwrap_or((text, ""));
    let Some(provider) = provider(name) else {
        if name == "offline" {
            let message = "`offline` has one model only\nhint: write `offline:rules`";
            return Err(ModelError::new(super::Failure::Request, message));
        }
        let message = if text.contains(':') {
            format!("there is no provider `{}`", super::tidy(name, 60))
        } else {
            format!("`{}` names no provider", super::tidy(name, 60))
        };
        let hint = format!("hint: write `provider:model`; the providers are {}", names());
        return Err(ModelError::new(super::Failure::Request, format!("{message}\n{hint}")));
    };
    let model = model.trim();
    match (model.is_empty(), provider.default_model) {
        (false, _) => Ok(Choice { provider, name: model }),
        (true, Some(name)) => Ok(Choice { provider, name }),
        (true, None) => Err(ModelError::new(
            super::Failure::Request,
            format!("`{name}` has no model of its own\nhint: write `{name}:` and a model that is installed there"),
        )),
    }
}

/// The names of the providers, for people.
pub fn names() -> String {
    PROVIDERS.iter().map(|provider| provider.name).chain(["offline"]).collect::<Vec<_>>().join(", ")
}

/// What is known of a model by its name. A row counts for every name that starts with it, with or without a maker and
/// a slash before it; the longest one wins.
struct Known {
    prefix: &'static str,
    context: u64,
    images: bool,
    audio: bool,
    thinks: bool,
}

const fn known(prefix: &'static str, context: u64, senses: &str, thinks: bool) -> Known {
    let (images, audio) = match senses.as_bytes() {
        b"sees" => (true, false),
        b"sees and hears" => (true, true),
        _ => (false, false),
    };
    Known { prefix, context, images, audio, thinks }
}

/// The contexts are of 18 November 2026, from the same tables as the prices: what a model takes in, which may be less than
/// what it has room for with its answer.
const KNOWN: &[Known] = &[
    known("claude", 200_000, "sees", true),
    known("claude-3-5", 200_000, "sees", false),
    known("claude-3-haiku", 200_000, "sees", false),
    known("claude-opus-4-6", 1_000_000, "sees", true),
    known("claude-opus-4-7", 1_000_000, "sees", true),
    known("claude-opus-4-8", 1_000_000, "sees", true),
    known("claude-opus-5", 1_000_000, "sees", true),
    known("claude-sonnet-4-6", 1_000_000, "sees", true),
    known("claude-sonnet-5", 1_000_000, "sees", true),
    known("claude-haiku-5", 1_000_000, "sees", true),
    known("claude-fable", 1_000_000, "sees", true),
    known("claude-mythos", 1_000_000, "sees", true),
    known("gpt-6", 922_000, "sees", true),
    known("gpt-5.6", 922_000, "sees", true),
    known("gpt-5.5", 922_000, "sees", true),
    known("gpt-5.4", 922_000, "sees", true),
    known("gpt-5.4-mini", 272_000, "sees", true),
    known("gpt-5.4-nano", 272_000, "sees", true),
    known("gpt-5", 272_000, "sees", true),
    known("gpt-4.1", 1_000_000, "sees", false),
    known("gpt-4o", 128_000, "sees", false),
    known("gpt-4o-audio", 128_000, "sees and hears", false),
    known("gpt-oss", 128_000, "", true),
    known("o1", 200_000, "sees", true),
    known("o3", 200_000, "sees", true),
    known("o3-mini", 200_000, "", true),
    known("o4", 200_000, "sees", true),
    known("gemini", 1_000_000, "sees and hears", true),
    known("gemini-2.0", 1_000_000, "sees and hears", false),
    known("gemma-3", 128_000, "sees", false),
    known("gemma3", 128_000, "sees", false),
    known("gemma-4", 262_000, "sees", false),
    known("gemma4", 262_000, "sees", false),
    known("grok", 128_000, "sees", false),
    known("grok-4", 256_000, "sees", false),
    known("grok-4.20", 1_000_000, "sees", false),
    known("grok-4.3", 1_000_000, "sees", false),
    known("grok-4.5", 500_000, "sees", false),
    known("grok-4.6", 500_000, "sees", false),
    known("grok-4.7", 500_000, "sees", false),
    known("grok-build", 256_000, "", false),
    known("grok-code", 256_000, "", false),
    known("deepseek", 128_000, "", false),
    known("deepseek-flash", 1_000_000, "", false),
    known("deepseek-v4", 1_000_000, "", false),
    known("devstral", 256_000, "", false),
    known("mistral-medium", 262_000, "sees", false),
    known("mistral-large", 262_000, "sees", false),
    known("mistral-large-4", 1_000_000, "sees", false),
    known("pixtral", 128_000, "sees", false),
    known("kimi", 128_000, "", false),
    known("kimi-k2.5", 262_000, "sees", false),
    known("kimi-k2.6", 262_000, "sees", false),
    known("kimi-k2.7", 262_000, "sees", false),
    known("kimi-k3", 1_000_000, "sees", false),
    known("glm", 128_000, "", false),
    known("qwen3", 128_000, "", false),
    known("qwen3.7-max", 991_000, "", false),
    known("qwen3.8-max", 991_000, "sees", false),
    known("qwen3.8-flash", 991_000, "sees", false),
    known("qwen2.5vl", 128_000, "sees", false),
    known("qwen2.5-vl", 128_000, "sees", false),
    known("qwen3-vl", 128_000, "sees", false),
    known("llava", 32_000, "sees", false),
    known("llama3.2-vision", 128_000, "sees", false),
    known("llama4", 128_000, "sees", false),
    known("auto", 128_000, "sees", false),
];

/// What nobody knows better is taken for this.
const COMMON_CONTEXT: u64 = 128_000;
/// Local servers cut contexts to what fits their memory, and rarely say so.
pub(crate) const LOCAL_CONTEXT: u64 = 32_000;

/// What a model can take in, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// How many tokens it can take in at once.
    pub context: u64,
    /// Whether it sees images.
    pub images: bool,
    /// Whether it hears audio.
    pub audio: bool,
    /// Whether it can be told how long to think.
    pub thinks: bool,
    /// Whether it has few parameters; see [`ModelInfo::is_small`](super::ModelInfo::is_small).
    pub is_small: bool,
}

/// A model with fewer billions of parameters is small.
const SMALL: f32 = 5.0;

/// Whether a model with so many parameters is small.
pub(crate) fn is_few(parameters: u64) -> bool {
    (parameters as f64) < f64::from(SMALL) * 1e9
}

/// Whether a name tells of few parameters: `qwen2.5-coder:1.5b`. Of several numbers the largest counts: `30b-a3b`.
fn is_small(name: &str) -> bool {
    let words = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    let billions = words.filter_map(|word| word.strip_suffix('b')?.parse::<f32>().ok());
    billions.reduce(f32::max).is_some_and(|billions| billions < SMALL)
}

/// Whether OpenAI wants a model to be asked by its Responses API: those that think.
pub(crate) fn has_responses(name: &str) -> bool {
    let digit = |text: Option<&str>| text.and_then(|text| text.chars().next()).and_then(|c| c.to_digit(10));
    digit(name.strip_prefix('o')).is_some() || digit(name.strip_prefix("gpt-")).is_some_and(|number| number >= 5)
}

/// What the name of a model tells. Without a provider of the catalog it is one of the person's own.
pub fn traits(provider: Option<&Provider>, api: Api, name: &str) -> Traits {
    let lower = name.to_ascii_lowercase();
    let bare = lower.rsplit('/').next().unwrap_or(&lower);
    let row = KNOWN.iter().filter(|row| bare.starts_with(row.prefix)).max_by_key(|row| row.prefix.len());
    let is_small = is_small(bare);
    let mut traits = match row {
        Some(row) => {
            Traits { context: row.context, images: row.images, audio: row.audio, thinks: row.thinks, is_small }
        }
        None => Traits { context: COMMON_CONTEXT, images: false, audio: false, thinks: false, is_small },
    };
    // Chat completions of hosts that pass them on carry images, but not everybody's audio; Anthropic's carry none.
    traits.audio &=
        api == Api::Gemini || (api == Api::OpenAi && provider.is_some_and(|provider| provider.name == "openai"));
    // Ollama takes as much memory as it is told to, wherever it is.
    if api == Api::Ollama || provider.is_some_and(|provider| !provider.needs_key) {
        traits.context = traits.context.min(LOCAL_CONTEXT);
    }
    traits
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_choice_is_a_provider_and_a_name() {
        for (text, expected) in [
            ("openai:gpt-5.1", ("openai", "gpt-5.1")),
            (" ollama:qwen3:8b ", ("ollama", "qwen3:8b")),
            ("openrouter:anthropic/claude-sonnet-4", ("openrouter", "anthropic/claude-sonnet-4")),
            ("anthropic", ("anthropic", "claude-sonnet-4-6")),
            ("gemini:", ("gemini", "gemini-2.5-pro")),
        ] {
            let choice = parse(text).unwrap();
            assert_eq!((choice.provider.name, choice.name), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_choice_names_the_providers() {
        for text in ["gpt-5.1", "acme:x", "", "ollama:", "\u{1b}[31m:x"] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("\nhint: "), "{message}");
            assert!(!message.contains('\u{1b}'), "{message}");
        }
        assert!(parse("acme:x").unwrap_err().to_string().contains("openrouter"));
    }

    #[test]
    fn the_longest_prefix_tells_most() {
        let of = |text: &str| {
            let choice = parse(text).unwrap();
            traits(Some(choice.provider), choice.provider.api, choice.name)
        };
        assert_eq!(of("openai:gpt-4.1-mini").context, 1_000_000);
        assert_eq!((of("openai:gpt-5.1").context, of("openai:gpt-5.4").context), (272_000, 922_000));
        assert_eq!(of("openai:gpt-5.4-nano").context, 272_000);
        assert_eq!((of("anthropic").context, of("anthropic:claude-haiku-4-5").context), (1_000_000, 200_000));
        assert!(of("openai:gpt-4o-audio-preview").audio);
        assert!(!of("openai:gpt-4o").audio);
        assert!(of("openrouter:anthropic/claude-sonnet-4").images);
        assert!(!of("openrouter:google/gemini-2.5-pro").audio);
        assert!(of("gemini:gemini-2.5-pro").audio);
        assert_eq!(of("ollama:qwen3:8b").context, 32_000);
        for (name, is_small) in [
            ("ollama:qwen2.5-coder:1.5b", true),
            ("llamacpp:Qwen2.5-Coder-3B-Instruct", true),
            ("ollama:qwen3:30b-a3b", false),
            ("ollama:qwen3:8b", false),
            ("openai:gpt-5.1", false),
            ("ollama:b", false),
        ] {
            assert_eq!(of(name).is_small, is_small, "{name}");
        }
        assert_eq!(of("openai:something-new").context, 128_000);
        // A provider of one's own.
        assert_eq!(traits(None, Api::OpenAi, "qwen3:8b").context, 128_000);
        assert_eq!(traits(None, Api::Ollama, "qwen3:8b").context, 32_000);
    }

    #[test]
    fn models_that_think_at_openai_have_an_api_of_their_own() {
        for name in ["o3", "o4-mini", "gpt-5", "gpt-5.1-codex", "gpt-6"] {
            assert!(has_responses(name), "{name}");
        }
        for name in ["gpt-4.1", "gpt-4o", "gpt-oss-20b", "omni-moderation", "gpt-", "claude"] {
            assert!(!has_responses(name), "{name}");
        }
    }

    #[test]
    fn every_provider_has_a_whole_address() {
        for provider in PROVIDERS {
            assert!(provider.base_url.ends_with('/'), "{}", provider.name);
            assert!(reqwest::Url::parse(provider.base_url).is_ok(), "{}", provider.name);
        }
    }
}
