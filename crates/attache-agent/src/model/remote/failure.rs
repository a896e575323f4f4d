//! What went wrong between us and a provider, as a sentence for people without anything secret in it.

use std::time::{Duration, SystemTime};

use attache::model::Secret;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::reader::text;
use crate::model::{ASK_LATER, Failure, ModelError, catalog, tidy};

/// A failure, and whether it says that the model lacks something that we can do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) error: ModelError,
    pub(crate) lack: Option<Lack>,
}

/// What a model cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Call tools.
    Tools,
    /// Keep to a JSON Schema.
    Schema,
    /// Sum up its thoughts for people.
    Summaries,
    /// Speak Ollama's own API.
    OwnApi,
}

impl Trouble {
    pub(crate) fn new(kind: Failure, message: impl Into<String>) -> Self {
        Trouble { error: ModelError::new(kind, message), lack: None }
    }
}

/// Whom we talk to, for the sentences.
#[derive(Debug, Clone)]
pub(super) struct Who {
    pub(super) provider: String,
    pub(super) name: String,
    /// The host of the base URL, with its port. Never the whole URL: people put passwords into those.
    pub(super) host: String,
    pub(super) key: Option<Secret>,
    /// Other words that are not to be shown: the values of headers.
    pub(super) secrets: Vec<Secret>,
    /// Where a key is looked for.
    pub(super) key_variable: Option<String>,
}

impl Who {
    /// The server answered with a status that is not success.
    pub(super) fn status(&self, status: u16, headers: &HeaderMap, body: &str) -> Trouble {
        let page = is_page(headers, body).then(|| match title(body) {
            title if title.is_empty() => "it sent a web page".to_owned(),
            title => format!("it sent a web page: {title}"),
        });
        let said = || Value::String(page.clone().unwrap_or_else(|| body.to_owned()));
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| said());
        // Gemini puts its error into a list when it was asked for a stream.
        let body = body.get(0).unwrap_or(&body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let mut trouble = self.said(Some(status), error);
        let asked = asked_by_headers(headers, SystemTime::now());
        if trouble.error.kind.is_passing() && asked.is_some() {
            trouble.error.retry_after = asked;
        }
        trouble
    }

    /// The server sent an error in the middle of a stream.
    pub(super) fn event(&self, error: &Value) -> Trouble {
        let code = error.get("code").or_else(|| error.get("status_code")).and_then(Value::as_u64);
        self.said(code.and_then(|code| u16::try_from(code).ok()), error)
    }

    /// What an error says. `status` is the server's own, or what it wrote into the error.
    fn said(&self, status: Option<u16>, error: &Value) -> Trouble {
        let said = [text(error, "/message"), text(error, "/detail"), text(error, ""), text(error, "/error")]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        let kinds = [text(error, "/type"), text(error, "/code"), text(error, "/status")];
        let is = |names: &[&str]| kinds.iter().any(|kind| names.contains(kind));
        // OpenRouter passes on what the maker of the model said in here.
        let raw = text(error, "/metadata/raw");
        let lower = format!("{said} {raw}").chars().take(4000).collect::<String>().to_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));

        let provider = &self.provider;
        let mut trouble = if is(&["authentication_error", "permission_error", "invalid_api_key", "UNAUTHENTICATED"])
            || matches!(status, Some(401 | 403))
            || has(&["api key not valid", "api_key_invalid"])
        {
            let what = match (self.key.is_some() || !self.secrets.is_empty(), status) {
                (true, Some(403)) => "refused the request",
                (true, _) => "rejected the API key",
                (false, _) => "wants a key",
            };
            Trouble::new(Failure::Key, format!("`{provider}` {what}{}{}", number(status), self.key_hint()))
        } else if is(&["insufficient_quota", "billing_error"]) || status == Some(402) {
            Trouble::new(Failure::Request, format!("the account at `{provider}` has no credit left"))
        } else if is(&["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"]) || status == Some(429) {
            Trouble::new(Failure::RateLimit, format!("`{provider}` is rate limiting requests\n{ASK_LATER}"))
        } else if is(&["context_length_exceeded", "exceed_context_size_error", "request_too_large"])
            || status == Some(413)
            || (status.is_none_or(|status| status < 500) && has(TOO_LONG))
        {
            Trouble::new(Failure::TooLong, format!("the conversation is longer than `{}` takes", self.name))
        } else if is(&["not_found_error", "model_not_found", "NOT_FOUND"]) || status == Some(404) {
            let hint = "hint: look at the name of the model and at the base URL";
            Trouble::new(Failure::Request, format!("`{provider}` has no model `{}`\n{hint}", self.name))
        } else if is(&["overloaded_error", "UNAVAILABLE"]) || matches!(status, Some(503 | 529)) {
            Trouble::new(Failure::Server, format!("`{provider}` is overloaded\n{ASK_LATER}"))
        } else if is(&["api_error", "server_error", "INTERNAL"]) || matches!(status, Some(408 | 409 | 425 | 500..)) {
            self.broken(&format!("`{provider}` returned a server error{}", number(status)))
        } else if matches!(status, Some(300..=399)) {
            let hint = "hint: give the address that it leads to as the base URL";
            Trouble::new(
                Failure::Request,
                format!("`{}` answered with a redirect{}\n{hint}", self.host, number(status)),
            )
        } else if status.is_some() || is(&["invalid_request_error", "INVALID_ARGUMENT", "FAILED_PRECONDITION"]) {
            Trouble::new(Failure::Request, format!("`{provider}` rejected the request{}", number(status)))
        } else {
            self.broken(&format!("`{provider}` ended its response with an error"))
        };
        // What a server says of a key that it does not know often has a part of the key in it.
        let is_about_key = trouble.error.kind == Failure::Key && status != Some(403);
        trouble.error.details = self.details(said).filter(|_| !is_about_key);
        if trouble.error.kind.is_passing() {
            trouble.error.retry_after = asked_by_body(error);
        }
        if !matches!(trouble.error.kind, Failure::Key | Failure::RateLimit | Failure::TooLong) {
            trouble.lack = lack(&lower);
        }
        // Ollama says which model it does not have; a server without its API does not.
        if trouble.lack.is_none() && matches!(status, Some(404 | 405 | 501)) && !lower.contains("model") {
            trouble.lack = Some(Lack::OwnApi);
        }
        trouble
    }

    /// The server sent a web page in the place of an answer.
    pub(super) fn page(&self, page: &str) -> Trouble {
        let hint = "hint: is the base URL right, and does nothing stand between here and there?";
        let message = format!("`{}` sent a web page in place of an answer\n{hint}", self.host);
        let mut trouble = Trouble::new(Failure::Request, message);
        trouble.error.details = self.details(&title(page));
        trouble
    }

    /// The key, or what else is sent along, cannot be sent.
    pub(super) fn bad_key(&self) -> Trouble {
        Trouble::new(
            Failure::Request,
            format!("the API key or base URL of `{}` contains invalid characters", self.provider),
        )
    }

    /// No head of an answer came.
    pub(super) fn late(&self) -> Trouble {
        self.broken(&format!("`{}` did not answer in time", self.host))
    }

    /// The request or its answer did not come through.
    pub(super) fn transport(&self, error: &reqwest::Error) -> Trouble {
        let host = &self.host;
        if error.is_builder() {
            return self.bad_key();
        }
        let why = root(error);
        if error.is_timeout() {
            return self.late();
        }
        if error.is_connect() && why.contains("InvalidContentType") {
            let hint = "hint: if it does not speak TLS there, write `http://` in the base URL";
            let why = format!("`{host}` cannot be reached: its answer is not TLS\n{hint}");
            return Trouble::new(Failure::Server, why);
        }
        if why.contains("invalid HTTP") || why.contains("invalid header") {
            let hint = "hint: if it speaks TLS there, write `https://` in the base URL";
            return Trouble::new(Failure::Server, format!("`{host}` does not answer in HTTP\n{hint}"));
        }
        if error.is_connect() {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let hint = if is_local(host) {
                // One that is usually elsewhere was sent here by its address.
                match catalog::provider(&self.provider).filter(|provider| !provider.needs_key) {
                    Some(provider) => format!("\nhint: is `{}` running?", provider.name),
                    None => format!("\nhint: does a server run at `{host}`, and is the base URL right?"),
                }
            } else {
                "\nhint: is there a network, and is the base URL right?".to_owned()
            };
            let kind = if is_local(host) && is_refused(error) { Failure::NotRunning } else { Failure::Server };
            return Trouble::new(kind, format!("`{host}` cannot be reached{why}{hint}"));
        }
        self.broken(&format!("the connection to `{host}` was lost"))
    }

    /// The server went quiet in the middle of an answer.
    pub(super) fn silence(&self) -> Trouble {
        self.broken(&format!("`{}` stopped in the middle of its answer", self.host))
    }

    /// The server does not do what it should. One of this machine tells in its log why.
    pub(super) fn broken(&self, what: &str) -> Trouble {
        let hint = if is_local(&self.host) {
            "hint: look at the log of the server, or choose another model"
        } else {
            ASK_LATER
        };
        Trouble::new(Failure::Server, format!("{what}\n{hint}"))
    }

    /// What the server said, on one line.
    fn details(&self, said: &str) -> Option<String> {
        Some(tidy(&self.without_keys(said), 300)).filter(|said| !said.is_empty())
    }

    /// Takes out words that are the key, begin like it or look like one.
    fn without_keys(&self, said: &str) -> String {
        // Only the beginning is shown, so only that is looked at.
        let said: String = said.chars().take(2000).collect();
        let key = self.key.as_ref().map(Secret::expose).unwrap_or_default();
        let secrets = self.secrets.iter().map(Secret::expose).chain([key]).filter(|secret| !secret.is_empty());
        let said = secrets.fold(said, |said, secret| said.replace(secret, "…"));
        let start: String = key.chars().take(8).collect();
        said.split_inclusive(char::is_whitespace)
            .map(|word| {
                let like_ours = start.chars().count() == 8 && word.contains(&start);
                let like_any = ["sk-", "AIza", "gsk_", "xai-", "Bearer"].iter().any(|mark| word.contains(mark));
                if like_ours || like_any { "… " } else { word }
            })
            .collect()
    }

    fn key_hint(&self) -> String {
        match &self.key_variable {
            Some(variable) => format!("\nhint: set {variable}, or run `attache login {}`", self.provider),
            None => format!("\nhint: run `attache login {}`", self.provider),
        }
    }

    /// There is no key, and no use in asking without one.
    pub(super) fn no_key(&self) -> ModelError {
        ModelError::new(Failure::Key, format!("no API key for `{}`{}", self.provider, self.key_hint()))
    }
}

/// How servers say that a conversation is too long.
const TOO_LONG: &[&str] = &[
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "input token count",
    "exceeds the maximum number of tokens",
    "reduce the length",
];

/// How servers say that a model cannot call tools.
const NO_TOOLS: &[&str] = &[
    "not support tool",
    "not support function",
    "support tool use",
    "support tools",
    "tools param requires",
    "tool choice requires",
    "tools are not supported",
    "tools is not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "function calling is not supported",
    "function calling is not enabled",
];

/// What a model lacks, by what its server says.
fn lack(said: &str) -> Option<Lack> {
    let has = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if has(&["reasoning summar", "reasoning.summary"]) {
        return Some(Lack::Summaries);
    }
    if has(NO_TOOLS) {
        return Some(Lack::Tools);
    }
    let schema = has(&["response_format", "json_schema", "structured output"]);
    (schema && has(&["support", "unknown", "unrecognized", "not permitted", "not allowed", "invalid", "must be"]))
        .then_some(Lack::Schema)
}

/// Whether a body is a web page.
fn is_page(headers: &HeaderMap, body: &str) -> bool {
    let kind = headers.get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let start = body.trim_start().get(..14).unwrap_or(body).to_ascii_lowercase();
    kind.to_ascii_lowercase().contains("html") || start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// The title of a web page; empty if it has none.
fn title(page: &str) -> String {
    let page: String = page.chars().take(8_000).collect();
    let start = page.to_ascii_lowercase().find("<title>").map(|at| at + "<title>".len());
    start.and_then(|start| page[start..].split('<').next()).map(|title| tidy(title, 80)).unwrap_or_default()
}

fn number(status: Option<u16>) -> String {
    status.map(|status| format!(" ({status})")).unwrap_or_default()
}

fn is_local(host: &str) -> bool {
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

/// The causes of an error, from the outside in. The last ones are of the system and of TLS, and name neither a URL nor a header.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |error| error.source())
}

/// The innermost cause of an error.
fn root(error: &reqwest::Error) -> String {
    causes(error).last().map(|error| tidy(&error.to_string(), 120)).unwrap_or_default()
}

/// Whether nobody listens there.
fn is_refused(error: &reqwest::Error) -> bool {
    let kind = |error: &(dyn std::error::Error + 'static)| Some(error.downcast_ref::<std::io::Error>()?.kind());
    causes(error).filter_map(kind).any(|kind| kind == std::io::ErrorKind::ConnectionRefused)
}

/// How long the headers want us to wait.
fn asked_by_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(Ok(milliseconds)) = value("retry-after-ms").map(str::parse::<f64>) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let after = value("retry-after")?;
    match after.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => Some(httpdate::parse_http_date(after).ok()?.duration_since(now).unwrap_or_default()),
    }
}

/// How long Gemini wants us to wait, which it says in the body: `"retryDelay": "34s"`.
fn asked_by_body(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests;
