//! How requests go out and what comes back first: the client, the head of an answer, and errors.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::address::Address;
use super::failure::{Trouble, Who};
use crate::model::Failure;

/// How much of an error is read. What people are shown of it is far less.
const MOST_ERROR: usize = 64 << 10;

/// How long an error may take to come.
const ERROR_TIME: Duration = Duration::from_secs(10);

/// How long a connection to another machine may take. Whoever asks waits for no longer than they like.
const CONNECT: Duration = Duration::from_secs(60);

/// The clients there are, made when they are first needed: by whether the server is on this machine, and whether it is
/// spoken to through TLS. Models and lists share them, because each loads the system's certificates.
static CLIENTS: [[OnceCell<Client>; 2]; 2] = [const { [const { OnceCell::const_new() }; 2] }; 2];

/// The client for an address.
pub(crate) async fn client(address: &Address) -> Result<Client, Trouble> {
    let (is_local, is_secure) = (address.is_local, address.is_secure);
    let client = &CLIENTS[usize::from(is_local)][usize::from(is_secure)];
    // Hundreds of files are read for it.
    client.get_or_try_init(|| crate::off_thread(move || build(is_local, is_secure))).await.cloned()
}

fn build(is_local: bool, is_secure: bool) -> Result<Client, Trouble> {
    // Whoever came first has installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        // A redirect would take the key with it.
        .redirect(reqwest::redirect::Policy::none())
        // A small compressed answer can be a very large one.
        .no_gzip()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT)
        // Servers on this machine close connections as they please, and new ones cost nothing.
        .pool_max_idle_per_host(if is_local { 0 } else { 4 })
        .pool_idle_timeout(Duration::from_secs(60))
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")));
    if is_local {
        builder = builder.no_proxy();
    }
    if !is_secure {
        // Nothing will be checked against certificates, so none have to be there.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|_| {
        let hint = "hint: are the system's certificates installed?";
        Trouble::new(Failure::Request, format!("TLS does not work on this machine\n{hint}"))
    })
}

/// The headers of every request to a provider. `None` if there is something in them that cannot be sent.
pub(crate) fn headers<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Some(headers)
}

/// Sends a request, and waits for the head of the answer. What is no success is an error; what of the answer came with
/// the head is given with it.
pub(super) async fn post(
    client: &Client,
    url: &str,
    headers: HeaderMap,
    body: &Value,
    who: &Who,
    timeout: Duration,
) -> Result<(Response, Vec<u8>), Trouble> {
    let request = client.post(url).headers(headers).header(ACCEPT, "text/event-stream").body(body.to_string());
    let response = match tokio::time::timeout(timeout, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(who.transport(&error)),
        Err(_) => return Err(who.late()),
    };
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        let body = beginning(response, Vec::new()).await;
        return Err(who.status(status.as_u16(), &headers, &String::from_utf8_lossy(&body)));
    }
    let has = |kind: &str| {
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        content_type.to_ascii_lowercase().contains(kind)
    };
    if has("text/html") {
        let page = beginning(response, Vec::new()).await;
        return Err(who.page(&String::from_utf8_lossy(&page)));
    }
    if has("application/json") { whole(response, who, timeout).await } else { Ok((response, Vec::new())) }
}

/// An answer that calls itself JSON. Some servers say so of a stream; one that is JSON is an error, or of no use.
async fn whole(mut response: Response, who: &Who, timeout: Duration) -> Result<(Response, Vec<u8>), Trouble> {
    let mut first = Vec::new();
    while first.trim_ascii_start().is_empty() && first.len() < MOST_ERROR {
        match tokio::time::timeout(timeout, response.chunk()).await {
            Ok(Ok(Some(bytes))) => first.extend_from_slice(&bytes),
            Ok(Ok(None)) => break,
            Ok(Err(error)) => return Err(who.transport(&error)),
            Err(_) => return Err(who.silence()),
        }
    }
    if !matches!(first.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Ok((response, first));
    }
    let body = beginning(response, first).await;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let body = body.get(0).unwrap_or(&body);
    Err(match body.get("error").filter(|error| !error.is_null()) {
        Some(error) => who.event(error),
        None => Trouble::new(Failure::Request, format!("`{}` sent its answer without a stream", who.host)),
    })
}

/// The beginning of a body, with what has come of it already. However long the body is, no more is read.
async fn beginning(mut response: Response, mut body: Vec<u8>) -> Vec<u8> {
    let read = async {
        while body.len() < MOST_ERROR {
            let Ok(Some(bytes)) = response.chunk().await else { break };
            body.extend_from_slice(&bytes);
        }
    };
    let _ = tokio::time::timeout(ERROR_TIME, read).await;
    body.truncate(MOST_ERROR);
    body
}
