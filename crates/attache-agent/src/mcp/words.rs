//! What people are told when a server fails: sentences without secrets, addresses or control characters.

use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock};

use attache::model::Secret;
use attache::model::mcp::McpServer;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::lock;

/// How long a message of a server may be.
pub(super) const MAX_MESSAGE: usize = 16 << 20;

/// How much of what a server says is shown in a sentence of ours.
const MAX_WORDS: usize = 1000;

/// What went wrong between a server and us. Never has an address in it: addresses have keys in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    #[error("{0}")]
    Launch(String),
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it answers with HTTP status {0}")]
    Status(u16),
    #[error("access denied (HTTP status {0})\nhint: check the headers that are configured for it")]
    Unauthorized(u16),
    #[error("it wants a login")]
    Login,
    #[error("{0}")]
    NoLogin(String),
    #[error("it sent a message of more than 16 MiB")]
    TooLong,
    #[error("it sends requests without reading the answers")]
    Flood,
    #[error("what it answers is not MCP")]
    Nonsense,
    #[error("it redirects to another origin than the configured one")]
    OtherOrigin,
    #[error("its address is not an HTTP address")]
    Address,
    #[error("the header `{0}` cannot be sent")]
    Header(String),
    #[error("it ended the connection")]
    Closed,
    #[error("it was stopped")]
    Unwanted,
    #[error("unsupported kind of server")]
    UnknownSort,
    #[error("it refuses: {0}")]
    Refused(String),
    #[error("it was not ready within {0} seconds")]
    Late(u64),
}

impl Trouble {
    pub(super) fn of_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::ConnectionClosed(_) => Trouble::Closed,
            ClientInitializeError::JsonRpcError(error) => Trouble::refused(error),
            ClientInitializeError::TransportError { error, .. } => Trouble::of_transport(error.error.as_ref()),
            _ => Trouble::Nonsense,
        }
    }

    pub(super) fn of_request(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Trouble::refused(error),
            ServiceError::TransportSend(error) => Trouble::of_transport(error.error.as_ref()),
            ServiceError::UnexpectedResponse => Trouble::Nonsense,
            _ => Trouble::Closed,
        }
    }

    /// A failed HTTP request, by the innermost of its errors, which is the one that says something.
    pub(super) fn of_http(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if let Some(status) = error.status() {
            return Trouble::of_status(status.as_u16());
        }
        let mut inner: &dyn Error = &error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        Trouble::Unreachable(plain(&inner.to_string()))
    }

    pub(super) fn of_status(status: u16) -> Self {
        if matches!(status, 401 | 403) { Trouble::Unauthorized(status) } else { Trouble::Status(status) }
    }

    /// Whether it may be better the next time, with nothing changed on our side.
    pub(super) fn may_pass(&self) -> bool {
        !matches!(
            self,
            Trouble::Unauthorized(_)
                | Trouble::Login
                | Trouble::NoLogin(_)
                | Trouble::OtherOrigin
                | Trouble::Address
                | Trouble::Header(_)
                | Trouble::UnknownSort
        )
    }

    fn of_transport(error: &(dyn Error + 'static)) -> Self {
        if let Some(trouble) = error.downcast_ref::<Trouble>() {
            return trouble.clone();
        }
        match error.downcast_ref::<StreamableHttpError<Trouble>>() {
            Some(StreamableHttpError::Client(trouble)) => trouble.clone(),
            Some(StreamableHttpError::HttpStatus(status)) => Trouble::of_status(status.status),
            Some(StreamableHttpError::SessionExpired) => Trouble::Status(404),
            Some(StreamableHttpError::ReservedHeaderConflict(name)) => Trouble::Header(plain(name)),
            Some(StreamableHttpError::Deserialize(_) | StreamableHttpError::UnexpectedContentType(_)) => {
                Trouble::Nonsense
            }
            _ => Trouble::Closed,
        }
    }

    fn refused(error: &rmcp::ErrorData) -> Self {
        Trouble::Refused(format!("{} ({})", plain(&error.message), error.code.0))
    }
}

/// Why a connection was ended from our side. The first reason counts.
pub(super) type Reason = Arc<OnceLock<Trouble>>;

/// The values that a server was given in confidence, to take them out of what it says.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    given: Arc<[String]>,
    /// Tokens that have been used, the newest last.
    tokens: Arc<Mutex<Vec<String>>>,
}

/// How many tokens are remembered. They are renewed once in a while; what was said of an old one was said before.
const MAX_TOKENS: usize = 8;

impl Secrets {
    pub(super) fn of(server: &McpServer, more: &[Secret]) -> Self {
        let values: Vec<&Secret> = match server {
            McpServer::Stdio(server) => server.env.iter().map(|variable| &variable.value).collect(),
            McpServer::Http(server) => server.headers.iter().map(|header| &header.value).collect(),
            McpServer::Sse(server) => server.headers.iter().map(|header| &header.value).collect(),
            _ => Vec::new(),
        };
        let mut hidden = match server {
            McpServer::Http(server) => address_secrets(&server.url),
            McpServer::Sse(server) => address_secrets(&server.url),
            _ => Vec::new(),
        };
        for value in values {
            hidden.push(value.expose().to_owned());
            // `Bearer TOKEN`: the token alone is as much of a secret.
            hidden.extend(value.expose().split_whitespace().map(str::to_owned));
        }
        // Values such as `1` and `true` are no secrets, and taking them out would garble every text.
        hidden.retain(|value| value.len() >= 6 && !value.eq_ignore_ascii_case("bearer"));
        // Of what stood in a variable, somebody thought that it should not be written down.
        hidden.extend(more.iter().map(|value| value.expose().to_owned()).filter(|value| value.len() >= 3));
        // The longest first, so that no rest of one is left.
        hidden.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Secrets { given: hidden.into(), tokens: Arc::default() }
    }

    /// Adds a token that is used from now on.
    pub(super) fn add(&self, token: &str) {
        let mut tokens = lock(&self.tokens);
        if tokens.last().is_none_or(|last| last != token) {
            tokens.push(token.to_owned());
            let excess = tokens.len().saturating_sub(MAX_TOKENS);
            tokens.drain(..excess);
        }
    }

    pub(super) fn hide(&self, text: &str) -> String {
        let tokens = lock(&self.tokens);
        let values = self.given.iter().chain(tokens.iter());
        values.fold(text.to_owned(), |text, value| text.replace(value.as_str(), "…"))
    }
}

/// The parts of an address that may be keys: all of it but the scheme, the host and the names of parameters.
fn address_secrets(address: &str) -> Vec<String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let user = host.rsplit_once('@').map(|(user, _)| user).unwrap_or_default();
    let values = query.split(['?', '&', '#', ';']).map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    // Words of a path that are as long as keys.
    let segments = path.split('/').filter(|segment| segment.len() >= 16);
    let parts = [address, user].into_iter().chain(user.split(':')).chain(values).chain(segments);
    parts.map(str::to_owned).collect()
}

/// The last lines of what a program said on stderr.
pub(super) fn last_words(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(5)..].join("\n");
    let skipped = last.chars().count().saturating_sub(MAX_WORDS);
    plain(&last.chars().skip(skipped).collect::<String>())
}

/// Text of a server made harmless and short. Line ends stay.
pub(super) fn plain(text: &str) -> String {
    let is_harmless = |c: &char| {
        *c == '\n'
            || !(c.is_control()
                || matches!(*c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    let mut short: String = text.chars().filter(is_harmless).take(MAX_WORDS).collect();
    if text.chars().filter(is_harmless).nth(MAX_WORDS).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use attache::model::mcp::{EnvVariable, McpServerStdio};

    use super::*;

    #[test]
    fn secrets_are_taken_out_of_what_a_server_says() {
        let server = McpServer::Stdio(McpServerStdio::new("s", "c").env([
            EnvVariable::new("AUTH", Secret::from("Bearer sk-12345678")),
            EnvVariable::new("DEBUG", Secret::from("1")),
        ]));
        let secrets = Secrets::of(&server, &[]);
        assert_eq!(secrets.hide("1 with sk-12345678 or Bearer sk-12345678"), "1 with … or …");
    }

    #[test]
    fn keys_in_an_address_are_taken_out_of_what_a_server_says() {
        use attache::model::mcp::McpServerHttp;
        let address = "https://user-name:pass-word@host/mcp/0123456789abcdef?token=sk-1234567&x=1#frag-ment";
        let secrets = Secrets::of(&McpServer::Http(McpServerHttp::new("s", address)), &[]);
        for said in [address, "user-name", "pass-word", "user-name:pass-word", "0123456789abcdef", "sk-1234567"] {
            assert_eq!(secrets.hide(said), "…", "{said}");
        }
        assert_eq!(secrets.hide("no token for host in frag-ment"), "no token for host in …");
    }

    #[test]
    fn text_of_a_server_is_made_harmless_and_short() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{202e}"), "a[2Jb\nc");
        assert_eq!(plain(&"ä".repeat(5000)).chars().count(), MAX_WORDS + 1);
        assert_eq!(last_words("1\n2\n\n3\n4\n5\n6\n"), "2\n3\n4\n5\n6");
        assert!(last_words(&format!("{}end", "x".repeat(9000))).ends_with("xend"));
    }
}
