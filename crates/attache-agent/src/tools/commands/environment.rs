//! The environment of what we start: no keys, and no programs that wait for somebody to press one.
//!
//! A process that we start for the model gets our environment without the variables that [`is_secret`] tells: it could
//! print them. Tokens of other services (`GITHUB_TOKEN`, `NPM_TOKEN`, …) stay, because the commands of a person who has
//! set them need them. Keys can also be read from files; that is for the sandbox.

use std::ffi::OsString;

use attache::model::Secret;
use attache::model::mcp::EnvVariable;
use attache::process::Command;

/// What is set for every command: no pager, no colours, no questions.
const ADDED: [(&str, &str); 5] =
    [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("NO_COLOR", "1")];

/// What a variable of a model's provider begins with. Behind it stands the name of the thing.
const PROVIDERS: [&str; 24] = [
    "ANTHROPIC_",
    "ATTACHE_",
    "AZURE_OPENAI_",
    "BEDROCK_",
    "CLAUDE_",
    "CODEX_",
    "COHERE_",
    "DEEPSEEK_",
    "FIREWORKS_",
    "GEMINI_",
    "GOOGLE_AI_",
    "GOOGLE_GENAI_",
    "GROQ_",
    "HF_",
    "HUGGINGFACE_",
    "HUGGING_FACE_",
    "LM_STUDIO_",
    "MISTRAL_",
    "OLLAMA_",
    "OPENAI_",
    "OPENROUTER_",
    "TOGETHER_",
    "VERTEX_",
    "XAI_",
];

/// What the name of a key ends with.
const KEYS: [&str; 5] = ["KEY", "KEYS", "TOKEN", "SECRET", "PASSWORD"];

/// Whether a variable holds a key of a model's provider: any `…_API_KEY`; a key, token, secret or password of one of the
/// providers that we know, or of our own; and `more` by name.
///
/// ```
/// use attache_agent::tools::commands::environment::is_secret;
///
/// assert!(is_secret("OPENAI_API_KEY", &[]) && is_secret("ANTHROPIC_AUTH_TOKEN", &[]));
/// assert!(!is_secret("GITHUB_TOKEN", &[]) && is_secret("GITHUB_TOKEN", &["GITHUB_TOKEN".into()]));
/// ```
pub fn is_secret(name: &str, more: &[String]) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_api_key = ["API_KEY", "API_KEYS", "APIKEY"].iter().any(|end| upper.ends_with(end));
    let is_of_provider = || PROVIDERS.iter().any(|provider| upper.starts_with(provider));
    let is_key = || KEYS.iter().any(|end| upper.ends_with(end));
    is_api_key || (is_of_provider() && is_key()) || more.iter().any(|secret| secret == name)
}

/// The command with our environment, but without keys. What is set for it afterwards wins over what is in ours.
#[must_use]
pub fn without_keys(command: Command, more: &[String]) -> Command {
    inherited(more).fold(command.clear_env(), |command, (name, value)| command.env(name, value))
}

/// The same, and with what every command of a model gets.
pub(super) fn for_command(command: Command, more: &[String]) -> Command {
    ADDED.iter().fold(without_keys(command, more), |command, (name, value)| command.env(*name, *value))
}

/// What is added for a command that runs at the client's, whose environment is not ours to choose.
pub(super) fn added() -> Vec<EnvVariable> {
    ADDED.iter().map(|(name, value)| EnvVariable::new(*name, Secret::from(*value))).collect()
}

fn inherited(more: &[String]) -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !is_secret(&name.to_string_lossy(), more))
}
