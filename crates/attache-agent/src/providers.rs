//! Providers of one's own: `[providers.NAME]` in `agent.toml`.

use std::collections::BTreeMap;
use std::fmt;

use attache::model::Secret;
use serde::Deserialize;

use crate::model::catalog::{self, Api};
use crate::model::remote::Address;
use crate::model::{Failure, ModelError};

/// A provider of one's own, used as `NAME:model`.
///
/// ```
/// use attache_agent::Config;
///
/// let directory = tempfile::tempdir()?;
/// let toml = r#"
/// [providers.azure]
/// api = "openai"
/// base_url = "https://acme.openai.azure.com/openai/v1?api-version=preview"
/// headers = { api-key = "${AZURE_OPENAI_API_KEY}" }
/// "#;
/// std::fs::write(directory.path().join("agent.toml"), toml)?;
/// let config = Config::load(directory.path(), directory.path().join("state"))?;
/// assert_eq!(config.model_id("azure:gpt-4.1")?, "azure:gpt-4.1");
/// // What headers say is shown to nobody.
/// assert!(!format!("{:?}", config.providers).contains("AZURE_OPENAI_API_KEY"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnProvider {
    /// How it is spoken to.
    #[serde(deserialize_with = "api")]
    pub api: Api,
    /// Where it is. A query in it goes along with every request.
    pub base_url: String,
    /// The variable that has its key; `attache login NAME` keeps one as well.
    pub key_env: Option<String>,
    /// Headers that go along with every request; `${VAR}` in a value stands for a variable.
    #[serde(default, deserialize_with = "headers")]
    pub headers: BTreeMap<String, Secret>,
}

impl fmt::Debug for OwnProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        let mut debug = f.debug_struct("OwnProvider");
        debug.field("api", &self.api).field("key_env", &self.key_env).field("headers", &headers);
        debug.finish_non_exhaustive()
    }
}

const APIS: &[(&str, Api)] = &[
    ("openai", Api::OpenAi),
    ("responses", Api::Responses),
    ("anthropic", Api::Anthropic),
    ("gemini", Api::Gemini),
    ("ollama", Api::Ollama),
];

fn api<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Api, D::Error> {
    let word = String::deserialize(deserializer)?;
    APIS.iter().find(|(name, _)| *name == word).map(|(_, api)| *api).ok_or_else(|| {
        let names: Vec<String> = APIS.iter().map(|(name, _)| format!("`{name}`")).collect();
        serde::de::Error::custom(format!("`api` is one of {}", names.join(", ")))
    })
}

fn headers<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Secret>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|(name, value)| (name, Secret::from(value))).collect())
}

impl OwnProvider {
    /// What is wrong with it.
    pub(crate) fn fault(&self, name: &str) -> Option<String> {
        let is_name = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
        if name.is_empty() || name.len() > 40 || !name.bytes().all(is_name) {
            return Some("a name has small letters, digits, `-` and `_`".into());
        }
        if name == "offline" || catalog::provider(name).is_some() {
            return Some(format!("`{name}` is built in; choose another name"));
        }
        let is_header = |name: &String| reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !self.headers.keys().all(is_header) {
            return Some("`headers` has a name that is none".into());
        }
        // The address may have a password in it; its error does not repeat it.
        Address::new(self.api, &self.base_url).err().map(|error| error.message)
    }

    /// The headers, with the variables that they name.
    pub(crate) fn filled_headers(&self, name: &str) -> Result<Vec<(String, Secret)>, ModelError> {
        let fill = |(header, value): (&String, &Secret)| {
            let value = fill(value.expose(), |variable| std::env::var(variable).ok()).map_err(|variable| {
                let what = format!("header `{header}` of provider `{name}` needs ${variable}, which is not set");
                ModelError::new(Failure::Key, what)
            })?;
            Ok((header.clone(), Secret::from(value.trim())))
        };
        self.headers.iter().map(fill).collect()
    }

    /// A variable that a header needs and that is not set, if there is one.
    pub fn missing_variable(&self) -> Option<String> {
        let filled = self.headers.values().map(|value| fill(value.expose(), |name| std::env::var(name).ok()));
        filled.filter_map(Result::err).next()
    }

    /// The variables that its key may be in.
    pub(crate) fn variables(&self) -> Vec<&str> {
        self.key_env.as_deref().into_iter().collect()
    }
}

/// A text with its `${VAR}`s filled in; the name of one that is not set, if there is one.
fn fill(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        filled.push_str(before);
        filled.push_str(&variable(name).filter(|value| !value.is_empty()).ok_or_else(|| crate::model::tidy(name, 40))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let variable = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expected) in [
            ("x", Ok("x")),
            ("Bearer ${A}", Ok("Bearer 1")),
            ("${A}${A}-$A", Ok("11-$A")),
            ("${A", Ok("${A")),
            ("${B}", Err("B")),
        ] {
            assert_eq!(fill(text, variable).as_deref().map_err(String::as_str), expected, "{text}");
        }
    }
}
