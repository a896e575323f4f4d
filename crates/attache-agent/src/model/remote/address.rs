//! Where a provider is: the base URL as people write it, and what requests are sent to.

use reqwest::Url;

use crate::model::catalog::Api;
use crate::model::{Failure, ModelError};

/// A base URL that requests can be appended to.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// Ends with a slash.
    base: Url,
    /// Host and port, for people.
    pub(crate) host: String,
    /// Whether it is this machine.
    pub(crate) is_local: bool,
    /// Whether it is spoken to through TLS.
    pub(crate) is_secure: bool,
}

impl Address {
    pub(crate) fn new(api: Api, text: &str) -> Result<Address, ModelError> {
        // The text is not repeated: it may have a password in it.
        let wrong = |why: &str| {
            let hint = "hint: write it like `http://127.0.0.1:8080/v1`";
            ModelError::new(Failure::Request, format!("the base URL {why}\n{hint}"))
        };
        let mut base = Url::parse(text.trim()).map_err(|_| wrong("is not a URL"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("is neither `http` nor `https`"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("has a user or a password in it"));
        }
        let Some(host) = base.host_str().map(str::to_owned) else { return Err(wrong("has no host")) };
        base.set_fragment(None);
        let path = base.path().trim_end_matches('/').to_owned();
        let ends = ["/chat/completions", "/responses", "/messages", "/api/chat"];
        let path = ends.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(&path);
        let is_version = |part: &str| part.starts_with('v') && part[1..].starts_with(|c: char| c.is_ascii_digit());
        let path = match api {
            // Here the version is a part of what people write, unless they write nothing.
            Api::OpenAi | Api::Responses | Api::Ollama if path.is_empty() => "/v1/".to_owned(),
            Api::OpenAi | Api::Responses | Api::Ollama => format!("{path}/"),
            // Here it is not, by the custom of their own libraries.
            Api::Anthropic if !path.rsplit('/').next().is_some_and(is_version) => format!("{path}/v1/"),
            // In Google's cloud it comes first, before the project.
            Api::Gemini if !path.split('/').any(is_version) => format!("{path}/v1beta/"),
            Api::Anthropic | Api::Gemini => format!("{path}/"),
        };
        base.set_path(&path);
        let is_local = match base.host() {
            Some(url_host) => {
                let text = url_host.to_string();
                let ip = text.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
                ip.map_or_else(|_| text == "localhost" || text.ends_with(".localhost"), |ip| ip.is_loopback())
            }
            None => false,
        };
        let host = match base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        };
        let is_secure = base.scheme() == "https";
        Ok(Address { base, host, is_local, is_secure })
    }

    /// What requests are sent to. What the base URL asks for, such as a version, is asked for here as well.
    pub(crate) fn request_url(&self, api: Api, name: &str) -> String {
        let mut url = match api {
            Api::OpenAi => self.join("chat/completions"),
            Api::Responses => self.join("responses"),
            Api::Anthropic => self.join("messages"),
            Api::Gemini => self.join(&format!("models/{name}:streamGenerateContent")),
            Api::Ollama => self.beside("api/chat"),
        };
        if api == Api::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        url.into()
    }

    /// A path of the API.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url
    }

    /// A path of the same server that is beside its `v1`.
    pub(crate) fn beside(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let base = self.base.path().strip_suffix("v1/").unwrap_or(self.base.path());
        url.set_path(&format!("{base}{path}"));
        url
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn base_urls_are_taken_as_people_write_them() {
        for (api, text, url) in [
            (Api::OpenAi, "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
            (Api::OpenAi, "http://h/v1", "http://h/v1/chat/completions"),
            (Api::OpenAi, "http://h/v1/chat/completions", "http://h/v1/chat/completions"),
            (Api::OpenAi, "https://h/openai/?api-version=1", "https://h/openai/chat/completions?api-version=1"),
            (Api::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Api::Anthropic, "https://h/anthropic/", "https://h/anthropic/v1/messages"),
            (Api::Anthropic, "https://h/v1/messages", "https://h/v1/messages"),
            (Api::Gemini, "http://h", "http://h/v1beta/models/m:streamGenerateContent?alt=sse"),
            (Api::Gemini, "http://h/v1alpha", "http://h/v1alpha/models/m:streamGenerateContent?alt=sse"),
            (
                Api::Gemini,
                "https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google",
                "https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse",
            ),
            (
                Api::Responses,
                "https://h/openai/v1/responses?api-version=1",
                "https://h/openai/v1/responses?api-version=1",
            ),
            (Api::Ollama, "http://h", "http://h/api/chat"),
            (Api::Ollama, "http://h/v1/", "http://h/api/chat"),
            (Api::Ollama, "http://h/at/v1", "http://h/at/api/chat"),
        ] {
            assert_eq!(Address::new(api, text).unwrap().request_url(api, "m"), url);
        }
    }

    #[test]
    fn bad_base_urls_are_refused_and_not_repeated() {
        for text in ["", "h/v1", "ftp://h", "https://me:hunter2@h/v1", "file:///etc/passwd"] {
            let message = Address::new(Api::OpenAi, text).unwrap_err().to_string();
            assert!(message.contains("hint:") && !message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn this_machine_is_known() {
        for (text, is_local) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://127.0.0.1.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Address::new(Api::OpenAi, text).unwrap().is_local, is_local, "{text}");
        }
    }
}
