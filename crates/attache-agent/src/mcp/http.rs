//! Servers that speak Streamable HTTP: rmcp's transport on an HTTP client that reads only so much.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use attache::model::mcp::{HttpHeader, McpServerHttp};
use futures_util::stream::{Stream, StreamExt as _};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url, redirect};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use super::oauth;
use super::words::{MAX_MESSAGE, Secrets, Trouble};

type Failed = StreamableHttpError<Trouble>;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(20);

/// How often a broken stream of events is asked for again, before the server is taken for silent.
const ATTEMPTS: usize = 6;

/// A transport to a server that speaks Streamable HTTP. One that no key is configured for can be logged in to; logins are
/// kept in `config_dir`.
pub(super) async fn open(
    server: &McpServerHttp,
    config_dir: Option<&Path>,
    secrets: Secrets,
) -> Result<StreamableHttpClientTransport<Http>, Trouble> {
    let (url, headers) = (address(&server.url)?, &server.headers);
    let has_key = headers.iter().any(|header| header.name.eq_ignore_ascii_case("authorization"));
    let login = match config_dir.filter(|_| !has_key) {
        Some(config_dir) => {
            Some(oauth::session(&url, config_dir).await.map_err(|error| Trouble::NoLogin(error.to_string()))?)
        }
        None => None,
    };
    // A token is for this address and no other, not even of the same server.
    let follows = match &login {
        Some(login) => !login.is_logged_in().await,
        None => true,
    };
    let custom: HashMap<_, _> =
        header_map(headers)?.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(ATTEMPTS);
    retries.max_delay = Some(Duration::from_secs(10));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(custom)
        .max_sse_event_size(MAX_MESSAGE);
    config.retry_config = Arc::new(retries);
    let http = Http { client: client(&url, follows).await?, login, secrets };
    Ok(StreamableHttpClientTransport::with_client(http, config))
}

pub(super) fn address(url: &str) -> Result<Url, Trouble> {
    Url::parse(url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or(Trouble::Address)
}

/// Headers that are ours to set, whatever is configured.
const OURS: &[&str] = &["accept", "content-length", "content-type", "last-event-id", "mcp-session-id"];

pub(super) fn header_map(headers: &[HttpHeader]) -> Result<HeaderMap, Trouble> {
    let mut map = HeaderMap::new();
    for header in headers.iter().filter(|header| !OURS.iter().any(|ours| header.name.eq_ignore_ascii_case(ours))) {
        let wrong = || Trouble::Header(super::words::plain(&header.name));
        let name = HeaderName::try_from(&header.name).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(header.value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// An HTTP client for one server. Reading the system's certificates takes a while, so it is made off the runtime's
/// threads.
pub(super) async fn client(url: &Url, follows: bool) -> Result<Client, Trouble> {
    let is_local = is_loopback(url);
    let built = crate::spawn_blocking(move || {
        // Another part of the program may have been first, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Idle connections are not kept: one whose last answer was not read to its end stalls the next request.
        let redirects = if follows { same_origin() } else { redirect::Policy::none() };
        let builder = Client::builder().connect_timeout(CONNECT).pool_max_idle_per_host(0).redirect(redirects);
        if is_local { builder.no_proxy() } else { builder }.build()
    });
    built.await.map_err(|_| Trouble::Closed)?.map_err(Trouble::of_http)
}

/// Whether an address is one of this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        host == "localhost"
            || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

/// Follows where the message stays whole and the headers, which have keys in them, stay with the same server.
fn same_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if is_same && matches!(attempt.status().as_u16(), 307 | 308) && attempt.previous().len() <= 5 {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// The events of an answer. One that is too long is an error.
pub(super) fn events(response: Response, max: usize) -> BoxedSseResponse {
    SseStream::from_bytes_stream(bounded(response.bytes_stream().map(|chunk| chunk.map_err(Trouble::of_http)), max))
        .boxed()
}

/// Ends with an error when more than `max` bytes come between two empty lines.
fn bounded<B: AsRef<[u8]>>(
    chunks: impl Stream<Item = Result<B, Trouble>>,
    max: usize,
) -> impl Stream<Item = Result<B, Trouble>> {
    let mut event = 0;
    let mut is_line_empty = true;
    let mut last = 0;
    chunks.map(move |chunk| {
        let chunk = chunk?;
        for byte in chunk.as_ref() {
            match (last, byte) {
                // One end of a line, in two bytes.
                (b'\r', b'\n') => {}
                (_, b'\n' | b'\r') if is_line_empty => event = 0,
                (_, b'\n' | b'\r') => is_line_empty = true,
                _ => is_line_empty = false,
            }
            last = *byte;
            event += 1;
            if event > max {
                return Err(Trouble::TooLong);
            }
        }
        Ok(chunk)
    })
}

pub(super) async fn body(response: Response, max: usize) -> Result<Vec<u8>, Trouble> {
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(Trouble::of_http)?;
        if body.len() + chunk.len() > max {
            return Err(Trouble::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn is_of_type(response: &Response, mime: &str) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(mime.as_bytes()))
}

/// The HTTP client under rmcp's transport. rmcp's own reads JSON bodies of any length.
#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    /// The login to the server, if it is one that can be logged in to.
    login: Option<Arc<oauth::Session>>,
    secrets: Secrets,
}

impl Http {
    /// Sends a request, with the token of whoever has logged in. One that has ended is renewed, once.
    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, Failed> {
        let sent = async |request: reqwest::RequestBuilder| {
            request.send().await.map_err(Trouble::of_http).map_err(Failed::Client)
        };
        let Some(login) = &self.login else { return sent(request).await };
        // Bodies are bytes, so every request can be sent twice.
        let again = request.try_clone();
        let bearer = login.bearer(&self.secrets).await;
        let response = sent(with_token(request, bearer.as_ref())).await?;
        if response.status().as_u16() != 401 {
            return Ok(response);
        }
        if let (Some(bearer), Some(again)) = (bearer, again)
            && login.renew(&bearer).await
        {
            let bearer = login.bearer(&self.secrets).await;
            let response = sent(with_token(again, bearer.as_ref())).await?;
            if response.status().as_u16() != 401 {
                return Ok(response);
            }
        }
        Err(Failed::Client(Trouble::Login))
    }

    fn with_headers(
        request: reqwest::RequestBuilder,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> reqwest::RequestBuilder {
        let request = request.headers(headers.into_iter().collect());
        match session {
            Some(session) => request.header(HEADER_SESSION_ID, session),
            None => request,
        }
    }
}

fn with_token(request: reqwest::RequestBuilder, bearer: Option<&HeaderValue>) -> reqwest::RequestBuilder {
    match bearer {
        Some(bearer) => request.header(AUTHORIZATION, bearer.clone()),
        None => request,
    }
}

impl StreamableHttpClient for Http {
    type Error = Trouble;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let text = serde_json::to_vec(&message)?;
        let request = Http::with_headers(self.client.post(uri.as_ref()), session_id.as_deref(), custom_headers)
            .header(ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"))
            .header(CONTENT_TYPE, JSON_MIME_TYPE)
            .body(text);
        let response = self.send(request).await?;
        let status = response.status();
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let is_json = is_of_type(&response, JSON_MIME_TYPE);
        let new_session = response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if matches!(status.as_u16(), 202 | 204) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.as_u16() == 404 && session_id.is_some() {
            return Err(Failed::SessionExpired);
        }
        if !status.is_success() {
            let trouble = Trouble::of_status(status.as_u16());
            // A server that was started anew does not know the session. It should say 404; many say 400, and to which
            // message they say it only if that is about the message.
            let may_be_lost = status.as_u16() == 400 && session_id.is_some();
            // An answer in MCP's words says more than a status. It must not hide that we are not let in.
            if is_json && !matches!(trouble, Trouble::Unauthorized(_)) {
                let body = body(response, 1 << 16).await.map_err(Failed::Client)?;
                let is_about_message =
                    || serde_json::from_slice::<serde_json::Value>(&body).is_ok_and(|error| !error["id"].is_null());
                if let Ok(error @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
                    && (!may_be_lost || is_about_message())
                {
                    return Ok(StreamableHttpPostResponse::Json(error, new_session));
                }
            }
            if may_be_lost {
                return Err(Failed::SessionExpired);
            }
            return Err(Failed::Client(trouble));
        }
        if is_of_type(&response, EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, MAX_MESSAGE), new_session));
        }
        if !is_request {
            // Nothing is expected, so whatever came is fine.
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_json {
            return Err(Failed::Client(Trouble::Nonsense));
        }
        let body = body(response, MAX_MESSAGE).await.map_err(Failed::Client)?;
        let message = serde_json::from_slice(&body).map_err(|_| Failed::Client(Trouble::Nonsense))?;
        Ok(StreamableHttpPostResponse::Json(message, new_session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = Http::with_headers(self.client.delete(uri.as_ref()), Some(&session_id), custom_headers);
        // A server need not take part in the goodbye.
        self.send(request).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, Failed> {
        let mut request = Http::with_headers(self.client.get(uri.as_ref()), session_id.as_deref(), custom_headers)
            .header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        if let Some(last) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, last);
        }
        let response = self.send(request).await?;
        match response.status() {
            status if status.as_u16() == 405 => Err(Failed::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(Failed::Client(Trouble::of_status(status.as_u16()))),
            _ if !is_of_type(&response, EVENT_STREAM_MIME_TYPE) => Err(Failed::Client(Trouble::Nonsense)),
            _ => Ok(events(response, MAX_MESSAGE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use attache::model::Secret;

    use super::*;

    #[tokio::test]
    async fn events_that_are_too_long_are_an_error() {
        let check = async |chunks: &[&'static str], is_fine: bool| {
            let chunks: Vec<Result<&str, Trouble>> = chunks.iter().map(|chunk| Ok(*chunk)).collect();
            let kept = bounded(futures_util::stream::iter(chunks), 10).collect::<Vec<_>>().await;
            assert_eq!(kept.iter().all(Result::is_ok), is_fine);
        };
        check(&["data: 1\n", "\ndata: 2\r\n\r\n", ": ping\n\n"], true).await;
        check(&["data: 1\n", "data: 2\n\n"], false).await;
        check(&["data: ", "123456"], false).await;
        check(&["data: 1\r\n", "data: 2\r\n"], false).await;
    }

    #[test]
    fn headers_that_cannot_be_sent_are_named_without_their_values() {
        let wrong = header_map(&[HttpHeader::new("X-Key", Secret::from("hidden\nvalue"))]);
        assert_eq!(wrong, Err(Trouble::Header("X-Key".into())));
        let fine = header_map(&[HttpHeader::new("X-Key", Secret::from("hidden"))]);
        assert!(!format!("{fine:?}").contains("hidden"));
        assert_eq!(header_map(&[HttpHeader::new("ACCEPT", Secret::from("text/html"))]), Ok(HeaderMap::new()));
    }

    #[test]
    fn an_address_has_to_be_one_of_http() {
        for wrong in ["", "file:///etc/passwd", "localhost:80", "http://", "/mcp"] {
            assert_eq!(address(wrong), Err(Trouble::Address), "{wrong}");
        }
        assert!(address("https://example.com/mcp?key=1").is_ok());
    }
}
