//! Logging in to HTTP servers by OAuth 2.1, as MCP wants it: who the server trusts is asked of the server, a client is
//! registered, the person logs in with a browser, and the token is kept for this one server.

mod callback;
mod discover;
mod session;
mod tokens;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use attache::model::Secret;
use attache::model::mcp::McpServer;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::http;
use super::words::Trouble;
use callback::Callback;
use discover::{Plan, Target};
pub(super) use session::Session;
use tokens::{Kept, Tokens};

/// How long a person may take to log in.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long an answer about a login may be. None needs more than a few lines.
const MAX_ANSWER: usize = 256 << 10;

/// How long a request about a login may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a login did not come about. Says nothing of tokens, and of addresses no more than the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Not a server that one logs in to.
    #[error("it is not a server that one logs in to: only those with a `url` of Streamable HTTP are")]
    NotHttp,
    /// The person has configured a key of their own.
    #[error("`mcp.json` already sets an `Authorization` header for it; remove that to log in")]
    HasHeader,
    /// The server does not say how.
    #[error("it does not say how to log in")]
    NotOffered,
    /// Tokens would go over the network for all to see.
    #[error("its {0} is not an https address")]
    Insecure(&'static str),
    /// The server or its authorization server speaks for somebody else.
    #[error("its {0} belongs to another server")]
    Mismatch(&'static str),
    /// Something does not make sense.
    #[error("its {0} cannot be read")]
    Nonsense(&'static str),
    /// The proof that MCP wants is not supported.
    #[error("its authorization server does not support PKCE with S256")]
    NoPkce,
    /// Clients have to be registered by hand.
    #[error(
        "its authorization server registers no clients by itself\nhint: register one, and name it with `--client-id`"
    )]
    NoRegistration,
    /// The authorization server said no.
    #[error("its authorization server refuses: {0}")]
    Refused(String),
    /// Something failed on the way.
    #[error("{0}")]
    Failed(String),
    /// Nobody logged in.
    #[error("nobody logged in within {} minutes", PATIENCE.as_secs() / 60)]
    Late,
    /// The token cannot be kept.
    #[error("the login cannot be kept: {0}")]
    Kept(String),
}

impl From<Trouble> for LoginError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::TooLong => LoginError::Failed("its answer about the login is too long".into()),
            trouble => LoginError::Failed(trouble.to_string()),
        }
    }
}

/// A login that has begun: somebody has to visit its [address](Login::address).
pub struct Login {
    address: Url,
    callback: Callback,
    plan: Plan,
    client: Registered,
    target: Target,
    verifier: Secret,
    tokens: Tokens,
}

/// A client as the authorization server knows it.
struct Registered {
    id: String,
    secret: Option<Secret>,
    /// Whether the secret goes into a header, not among the parameters.
    is_basic: bool,
}

impl Login {
    /// Finds out how to log in to a server, and waits on a port of 127.0.0.1 for the person to come back. Without a
    /// client id, a client is registered.
    pub async fn begin(server: &McpServer, config_dir: &Path, client_id: Option<&str>) -> Result<Self, LoginError> {
        Login::begin_at(address_of(server)?, config_dir, client_id).await
    }

    pub(super) async fn begin_at(url: &str, config_dir: &Path, client_id: Option<&str>) -> Result<Self, LoginError> {
        let target = Target::new(url).await?;
        let plan = target.plan().await?;
        let callback = Callback::bind().await?;
        let client = match client_id {
            Some(id) => Registered { id: id.to_owned(), secret: None, is_basic: false },
            None => register(&target, &plan, &callback).await?,
        };
        let (verifier, state) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut address = plan.authorization_endpoint.clone();
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", callback.address())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", &state)
            .append_pair("resource", &plan.resource);
        if let Some(scope) = &plan.scope {
            address.query_pairs_mut().append_pair("scope", scope);
        }
        let callback = callback.expecting(state, plan.issuer.clone());
        let tokens = Tokens::new(config_dir);
        Ok(Login { address, callback, plan, client, target, verifier: verifier.into(), tokens })
    }

    /// Where the person logs in.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Waits until the person has logged in, and keeps the token.
    pub async fn finish(self) -> Result<(), LoginError> {
        let redirect_uri = self.callback.address().to_owned();
        let waiting = tokio::time::timeout(PATIENCE, self.callback.code());
        let code = waiting.await.map_err(|_| LoginError::Late)??;
        let mut kept = Kept {
            issuer: self.plan.issuer.clone(),
            token_endpoint: self.plan.token_endpoint.to_string(),
            client_id: self.client.id,
            client_secret: self.client.secret.map(|secret| secret.expose().to_owned()),
            is_basic: self.client.is_basic,
            resource: self.plan.resource.clone(),
            ..Kept::default()
        };
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", redirect_uri.as_str()),
            ("code_verifier", self.verifier.expose()),
        ];
        kept.take(&ask_token(&self.target.client, &kept, &form).await?)?;
        self.tokens.keep(self.target.url.as_str(), Some(kept)).await
    }
}

/// Where a server is, if one logs in to it.
fn address_of(server: &McpServer) -> Result<&str, LoginError> {
    let McpServer::Http(server) = server else { return Err(LoginError::NotHttp) };
    if server.headers.iter().any(|header| header.name.eq_ignore_ascii_case("authorization")) {
        return Err(LoginError::HasHeader);
    }
    Ok(&server.url)
}

/// Where one logs in to a server, if one does.
pub(super) fn login_address(server: &McpServer) -> Option<String> {
    address_of(server).ok().map(str::to_owned)
}

/// Forgets the login to a server. Tells whether there was one.
pub async fn logout(server: &McpServer, config_dir: &Path) -> Result<bool, LoginError> {
    logout_at(address_of(server)?, config_dir).await
}

pub(super) async fn logout_at(url: &str, config_dir: &Path) -> Result<bool, LoginError> {
    let (tokens, url) = (Tokens::new(config_dir), http::address(url)?);
    let had = tokens.find(url.as_str()).await?.is_some();
    if had {
        tokens.keep(url.as_str(), None).await?;
    }
    Ok(had)
}

/// Registers a client that can come back to this port.
async fn register(target: &Target, plan: &Plan, callback: &Callback) -> Result<Registered, LoginError> {
    let endpoint = plan.registration_endpoint.clone().ok_or(LoginError::NoRegistration)?;
    let wanted = json!({
        "client_name": "Attaché",
        "redirect_uris": [callback.address()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let request = target.client.post(endpoint).header("content-type", "application/json").body(wanted.to_string());
    let answer = answer(request, "registration").await?;
    let word = |key: &str| answer[key].as_str().filter(|word| !word.is_empty()).map(str::to_owned);
    let id = word("client_id").ok_or(LoginError::Nonsense("registration"))?;
    let secret = word("client_secret").map(Secret::from);
    Ok(Registered {
        id,
        secret,
        is_basic: word("token_endpoint_auth_method").as_deref() == Some("client_secret_basic"),
    })
}

/// Asks the token endpoint for a token of the one server.
async fn ask_token(client: &Client, kept: &Kept, form: &[(&str, &str)]) -> Result<Value, LoginError> {
    let endpoint = Url::parse(&kept.token_endpoint).map_err(|_| LoginError::Nonsense("token endpoint"))?;
    let mut body = Url::parse("http://form/").map_err(|_| LoginError::Nonsense("token endpoint"))?;
    body.query_pairs_mut().extend_pairs(form).append_pair("resource", &kept.resource);
    let mut request = client.post(endpoint).header("content-type", "application/x-www-form-urlencoded");
    match &kept.client_secret {
        Some(secret) if kept.is_basic => request = request.basic_auth(&kept.client_id, Some(secret)),
        Some(secret) => {
            body.query_pairs_mut().append_pair("client_id", &kept.client_id).append_pair("client_secret", secret);
        }
        None => drop(body.query_pairs_mut().append_pair("client_id", &kept.client_id)),
    }
    let body = body.query().unwrap_or_default().to_owned();
    answer(request.header("accept", "application/json").body(body), "token").await
}

/// The JSON of an answer. An error in OAuth's words is told by its code, which is one of a few words.
async fn answer(request: reqwest::RequestBuilder, what: &'static str) -> Result<Value, LoginError> {
    let response = request.send().await.map_err(Trouble::of_http)?;
    let status = response.status();
    let body = http::body(response, MAX_ANSWER).await?;
    let json: Option<Value> = serde_json::from_slice(&body).ok();
    if !status.is_success() {
        let code = json.as_ref().and_then(|json| json["error"].as_str()).map(error_code);
        return Err(LoginError::Refused(code.unwrap_or_else(|| format!("HTTP status {}", status.as_u16()))));
    }
    json.ok_or(LoginError::Nonsense(what))
}

/// A code of an error, made harmless: `invalid_grant`.
fn error_code(code: &str) -> String {
    let plain: String = code.chars().filter(|c| c.is_ascii_alphanumeric() || "_-. ".contains(*c)).take(60).collect();
    if plain.is_empty() { "no reason given".into() } else { plain }
}

/// 256 bits that nobody can guess.
fn random() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map_err(|_| LoginError::Failed("the system gives no random numbers".into()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// An HTTP client for logins: it follows no redirect, and waits for nothing forever.
async fn client(is_local: bool) -> Result<Client, LoginError> {
    let built = crate::spawn_blocking(move || {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(LIMIT);
        let builder = builder.connect_timeout(LIMIT).pool_max_idle_per_host(0);
        if is_local { builder.no_proxy() } else { builder }.build()
    });
    Ok(built.await.map_err(|_| Trouble::Closed)?.map_err(Trouble::of_http)?)
}

/// What a session sends to a server that one logs in to.
pub(super) async fn session(url: &Url, config_dir: &Path) -> Result<Arc<Session>, LoginError> {
    Session::open(url, Tokens::new(config_dir)).await.map(Arc::new)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn no_two_secrets_are_alike() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one != other && one.len() == 43, "{one}");
    }

    #[test]
    fn codes_of_errors_are_made_harmless() {
        assert_eq!(error_code("invalid_grant"), "invalid_grant");
        assert_eq!(error_code("a\u{1b}[2J\n<b>"), "a2Jb");
        assert_eq!(error_code(&"x".repeat(1000)).len(), 60);
        assert_eq!(error_code("\n"), "no reason given");
    }
}
