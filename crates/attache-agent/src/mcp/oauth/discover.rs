//! How to log in to a server: asked of the server (RFC 9728), then of the authorization server that it names (RFC 8414 and
//! OpenID Connect).

use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{Client, Url};
use serde_json::{Value, json};

use super::{LoginError, MAX_ANSWER, client};
use crate::mcp::http::{self, is_loopback};
use crate::mcp::words::Trouble;

/// How long the scopes that are asked for may be.
const MAX_SCOPE: usize = 2000;

/// A server that is to be logged in to.
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) client: Client,
    /// On this machine: only then may others of this machine be asked, and without encryption.
    is_local: bool,
}

/// All that is needed to log in.
pub(super) struct Plan {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    /// What the token is to be good for, and nothing else.
    pub(super) resource: String,
    pub(super) scope: Option<String>,
}

/// What a server says of itself.
struct Resource {
    resource: String,
    issuer: Url,
    scope: Option<String>,
}

impl Target {
    pub(super) async fn new(url: &str) -> Result<Self, LoginError> {
        let url = http::address(url)?;
        let is_local = is_loopback(&url);
        if url.scheme() != "https" && !is_local {
            return Err(LoginError::Insecure("address"));
        }
        Ok(Target { client: client(is_local).await?, url, is_local })
    }

    pub(super) async fn plan(&self) -> Result<Plan, LoginError> {
        let challenge = self.challenge().await?;
        let resource = self.resource(&challenge).await?;
        let server = self.authorization_server(&resource.issuer).await?;
        let has_s256 =
            server["code_challenge_methods_supported"].as_array().is_some_and(|all| all.contains(&"S256".into()));
        if !has_s256 {
            return Err(LoginError::NoPkce);
        }
        let endpoint = |key: &str, what| match server[key].as_str() {
            Some(text) => self.secure(text, what).map(Some),
            None => Ok(None),
        };
        let missing = || LoginError::Nonsense("authorization server");
        Ok(Plan {
            issuer: server["issuer"].as_str().unwrap_or_default().to_owned(),
            authorization_endpoint: endpoint("authorization_endpoint", "authorization endpoint")?
                .ok_or_else(missing)?,
            token_endpoint: endpoint("token_endpoint", "token endpoint")?.ok_or_else(missing)?,
            registration_endpoint: endpoint("registration_endpoint", "registration endpoint")?,
            resource: resource.resource,
            scope: challenge.scope.or(resource.scope).filter(|scope| !scope.is_empty() && scope.len() <= MAX_SCOPE),
        })
    }

    /// An address that a token, or what leads to one, may be sent to.
    fn secure(&self, text: &str, what: &'static str) -> Result<Url, LoginError> {
        let url = http::address(text).map_err(|_| LoginError::Nonsense(what))?;
        let is_fine =
            url.scheme() == "https" && (self.is_local || !is_loopback(&url)) || self.is_local && is_loopback(&url);
        if !is_fine || !url.username().is_empty() || url.password().is_some() {
            return Err(LoginError::Insecure(what));
        }
        Ok(url)
    }

    /// Asks the server without a token, and reads how it refuses.
    async fn challenge(&self) -> Result<Challenge, LoginError> {
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "attache", "version": env!("CARGO_PKG_VERSION") },
            },
        });
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream").body(hello.to_string());
        let response = request.send().await.map_err(Trouble::of_http)?;
        if response.status().is_success() {
            return Err(LoginError::Failed("it lets us in without a login".into()));
        }
        let headers = response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        Ok(headers.map(Challenge::read).find(|challenge| challenge.metadata.is_some()).unwrap_or_default())
    }

    /// What the server says of itself: where its answer says, or where everybody's is.
    async fn resource(&self, challenge: &Challenge) -> Result<Resource, LoginError> {
        let named = challenge.metadata.as_deref().and_then(|text| self.url.join(text).ok());
        // Nobody else speaks for the server.
        let named = named.filter(|named| named.origin() == self.url.origin());
        let known = well_known(&self.url, "oauth-protected-resource");
        for place in named.into_iter().chain(known) {
            if let Some(json) = self.get(place).await? {
                return self.read_resource(&json);
            }
        }
        // Servers of MCP's first version with logins are their own authorization servers.
        let mut issuer = self.url.clone();
        issuer.set_path("");
        issuer.set_query(None);
        issuer.set_fragment(None);
        let mut resource = self.url.clone();
        resource.set_query(None);
        resource.set_fragment(None);
        Ok(Resource { resource: resource.to_string(), issuer, scope: None })
    }

    fn read_resource(&self, json: &Value) -> Result<Resource, LoginError> {
        let nonsense = || LoginError::Nonsense("description of itself");
        let resource = json["resource"].as_str().ok_or_else(nonsense)?;
        let url = Url::parse(resource).map_err(|_| nonsense())?;
        // A token for another server would be another server's to misuse.
        if url.origin() != self.url.origin() || !is_beneath(self.url.path(), url.path()) {
            return Err(LoginError::Mismatch("description of itself"));
        }
        let issuer = json["authorization_servers"].as_array().and_then(|all| all.first()?.as_str());
        let issuer = self.secure(issuer.ok_or_else(nonsense)?, "authorization server")?;
        let scopes = json["scopes_supported"].as_array().map(|all| {
            let words = all.iter().filter_map(Value::as_str).filter(|word| !word.contains(char::is_whitespace));
            words.collect::<Vec<_>>().join(" ")
        });
        Ok(Resource { resource: resource.to_owned(), issuer, scope: scopes })
    }

    /// What the authorization server says of itself.
    async fn authorization_server(&self, issuer: &Url) -> Result<Value, LoginError> {
        let mut places = well_known(issuer, "oauth-authorization-server");
        // Without its path, it would be another one's.
        places.truncate(1);
        places.extend(well_known(issuer, "openid-configuration").into_iter().next());
        let mut inside = issuer.clone();
        inside.set_path(&format!("{}/.well-known/openid-configuration", issuer.path().trim_end_matches('/')));
        if !places.contains(&inside) {
            places.push(inside);
        }
        for place in places {
            let Some(json) = self.get(place).await? else { continue };
            let said = json["issuer"].as_str().unwrap_or_default();
            if said.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
                return Err(LoginError::Mismatch("authorization server"));
            }
            return Ok(json);
        }
        Err(LoginError::NotOffered)
    }

    /// A page of JSON, if there is one.
    async fn get(&self, place: Url) -> Result<Option<Value>, LoginError> {
        let response = self.client.get(place).header(ACCEPT, "application/json").send().await;
        let response = response.map_err(Trouble::of_http)?;
        if !response.status().is_success() {
            return Ok(None);
        }
        let body = http::body(response, MAX_ANSWER).await?;
        Ok(serde_json::from_slice(&body).ok().filter(Value::is_object))
    }
}

/// Where something about an address is known to be: with its path behind, and without.
fn well_known(url: &Url, what: &str) -> Vec<Url> {
    let at = |path: &str| {
        let mut place = url.clone();
        place.set_path(&format!("/.well-known/{what}{path}"));
        place.set_query(None);
        place.set_fragment(None);
        place
    };
    let path = url.path().trim_end_matches('/');
    if path.is_empty() { vec![at("")] } else { vec![at(path), at("")] }
}

/// Whether a path is another or lies beneath it.
fn is_beneath(path: &str, other: &str) -> bool {
    let other = other.trim_end_matches('/');
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How a server refuses who has no token.
#[derive(Debug, Default, PartialEq, Eq)]
struct Challenge {
    metadata: Option<String>,
    scope: Option<String>,
}

impl Challenge {
    /// Reads `Bearer resource_metadata="…", scope="…"`.
    fn read(header: &str) -> Self {
        let mut challenge = Challenge::default();
        let mut rest = header;
        while let Some((before, after)) = rest.split_once('=') {
            let key = before.rsplit([' ', ',', '\t']).next().unwrap_or_default().to_ascii_lowercase();
            let value;
            (value, rest) = match after.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
                Some(quoted) => quoted,
                None => after.split_once(',').unwrap_or((after.trim(), "")),
            };
            match key.as_str() {
                "resource_metadata" => challenge.metadata = Some(value.to_owned()),
                "scope" => challenge.scope = Some(value.to_owned()),
                _ => {}
            }
        }
        challenge
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn challenges_are_read() {
        let check = |header: &str, metadata: Option<&str>, scope: Option<&str>| {
            let wanted = Challenge { metadata: metadata.map(Into::into), scope: scope.map(Into::into) };
            assert_eq!(Challenge::read(header), wanted, "{header}");
        };
        check("Bearer resource_metadata=\"https://h/m\", scope=\"a b\"", Some("https://h/m"), Some("a b"));
        check("Bearer realm=\"x, y=z\", Resource_Metadata=https://h/m,scope=a", Some("https://h/m"), Some("a"));
        check("Bearer error=\"invalid_token\"", None, None);
        for odd in ["", "Bearer", "=", "\"", "Bearer scope=\"", "a=\"b\"\"c=d"] {
            Challenge::read(odd);
        }
    }

    #[test]
    fn well_known_places_come_with_the_path_and_without() {
        let places = |url: &str| {
            let places = well_known(&Url::parse(url).unwrap(), "x");
            places.iter().map(Url::to_string).collect::<Vec<_>>()
        };
        assert_eq!(places("https://h/a/b?c#d"), ["https://h/.well-known/x/a/b", "https://h/.well-known/x"]);
        assert_eq!(places("https://h/"), ["https://h/.well-known/x"]);
    }

    #[test]
    fn a_path_lies_beneath_itself_and_its_parents() {
        for (path, other, wanted) in
            [("/a/b", "/a", true), ("/a", "/a/", true), ("/a", "/", true), ("/ab", "/a", false), ("/a", "/a/b", false)]
        {
            assert_eq!(is_beneath(path, other), wanted, "{path} {other}");
        }
    }

    #[tokio::test]
    async fn addresses_without_encryption_are_for_this_machine_alone() {
        assert_eq!(Target::new("http://example.com/mcp").await.err(), Some(LoginError::Insecure("address")));
        let remote = Target::new("https://example.com/mcp").await.unwrap();
        let local = Target::new("http://127.0.0.1:1/mcp").await.unwrap();
        for (text, is_remote_fine, is_local_fine) in [
            ("https://auth.example.com/x", true, true),
            ("http://auth.example.com/x", false, false),
            ("http://127.0.0.1:8080/x", false, true),
            ("https://localhost/x", false, true),
            ("http://[::1]/x", false, true),
            ("https://me:secret@auth.example.com/x", false, false),
            ("file:///etc/passwd", false, false),
        ] {
            assert_eq!(remote.secure(text, "x").is_ok(), is_remote_fine, "{text}");
            assert_eq!(local.secure(text, "x").is_ok(), is_local_fine, "{text}");
        }
    }
}
