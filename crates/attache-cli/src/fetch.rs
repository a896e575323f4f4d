//! Asking a server for a document, bounded in time and size. What is not encrypted is only taken from this machine.

use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use url::Url;

/// How long it may take altogether.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a server may send us elsewhere.
const MOST_REDIRECTS: usize = 5;

/// Fetches a document; one byte more than this at most, so that who asks can tell that it is longer.
pub(crate) async fn document(address: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
    let asking = Asking::new(address)?;
    // A document of this machine is not to send us elsewhere.
    let policy = if asking.is_local { Policy::none() } else { Policy::limited(MOST_REDIRECTS) };
    let answer = asking.send(policy).await?;
    if !answer.status().is_success() {
        return Err(format!("the server answered {}", answer.status()));
    }
    read(answer, most_bytes).await
}

/// What is at an address.
pub(crate) enum Answer {
    /// A document.
    Document(Vec<u8>),
    /// Another address.
    Elsewhere(String),
}

/// Asks for a document and follows nothing: where a server points may be all that one wants to know.
pub(crate) async fn answer(address: &str, most_bytes: u64) -> Result<Answer, String> {
    let asking = Asking::new(address)?;
    let url = asking.url.clone();
    let answer = asking.send(Policy::none()).await?;
    let status = answer.status();
    if status.is_redirection() {
        let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.and_then(|location| url.join(location).ok());
        return location.map(|url| Answer::Elsewhere(url.into())).ok_or_else(|| "the server points nowhere".into());
    }
    match status.is_success() {
        true => read(answer, most_bytes).await.map(Answer::Document),
        false => Err(format!("the server answered {status}")),
    }
}

struct Asking {
    url: Url,
    is_local: bool,
}

impl Asking {
    fn new(address: &str) -> Result<Self, String> {
        let url = Url::parse(address).map_err(|_| "it is no URL".to_owned())?;
        let is_local = match (url.scheme(), url.host_str()) {
            ("https", Some(_)) => false,
            ("http", Some("localhost" | "127.0.0.1" | "[::1]")) => true,
            _ => return Err("only https is fetched, and http from this machine".into()),
        };
        Ok(Asking { url, is_local })
    }

    async fn send(self, policy: Policy) -> Result<Response, String> {
        // Whoever came first has installed one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
            .timeout(PATIENCE)
            .no_gzip()
            .https_only(!self.is_local)
            .redirect(policy);
        // What is on this machine is not to be asked of a proxy.
        let builder = if self.is_local { builder.no_proxy().tls_certs_only([]) } else { builder };
        let client = builder.build().map_err(|error| reason(&error))?;
        client.get(self.url).send().await.map_err(|error| reason(&error))
    }
}

async fn read(mut answer: Response, most_bytes: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| reason(&error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > most_bytes {
            break;
        }
    }
    Ok(bytes)
}

/// Why a document could not be fetched: what is at the bottom of it, not which layers it came through.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("timed out after {} s", PATIENCE.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_safe_addresses_are_fetched() {
        for address in ["http://example.com/r.json", "ftp://127.0.0.1/r", "file:///etc/passwd", "http://", "https://"] {
            assert!(document(address, 1).await.is_err(), "{address}");
            assert!(answer(address, 1).await.is_err(), "{address}");
        }
    }
}
