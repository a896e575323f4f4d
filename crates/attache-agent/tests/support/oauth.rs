//! An MCP server that wants a login, with an authorization server beside it that checks every step, and a browser.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::Digest as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What is wrong with the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    #[default]
    None,
    /// Says nothing of how to log in.
    NoMetadata,
    /// Has no description of itself, as in MCP's first version with logins.
    Old,
    /// Wants tokens for another server.
    OtherResource,
    /// Describes itself on another server.
    MetadataElsewhere,
    /// The authorization server is another than the one that was asked for.
    OtherIssuer,
    NoPkce,
    NoRegistration,
    /// A token endpoint that is not encrypted, somewhere else.
    Insecure,
    /// The person refuses.
    Denied,
    /// The answer that describes the server has no end.
    Endless,
    /// The token endpoint sends us elsewhere.
    TokenElsewhere,
    /// Tokens end at once.
    ShortLived,
    /// The same, and a token to renew by that is used twice ends the login.
    EndsOnReuse,
    /// Sends who has a token elsewhere.
    Redirects,
}

#[derive(Default)]
struct Known {
    /// Everything that was asked, as `METHOD path`.
    seen: Vec<String>,
    /// Headers and bodies, to look for secrets.
    bodies: Vec<String>,
    clients: Vec<String>,
    /// By code: what it was asked for with.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    tokens: Vec<String>,
    refresh: Vec<String>,
    count: usize,
}

/// Both servers, on one port of 127.0.0.1.
pub(crate) struct OAuthSite {
    pub(crate) origin: String,
    known: Arc<Mutex<Known>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for OAuthSite {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl OAuthSite {
    pub(crate) async fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let known = Arc::new(Mutex::new(Known::default()));
        let serving = Serving { origin: origin.clone(), known: known.clone(), fault };
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serving.clone().serve(stream));
            }
        });
        OAuthSite { origin, known, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Everything that was asked, as `METHOD path`.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.known.lock().unwrap().seen.clone()
    }

    /// Every token there ever was.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let known = self.known.lock().unwrap();
        (0..=known.count).flat_map(|n| [format!("access-{n}-xyz"), format!("refresh-{n}-xyz")]).collect()
    }

    /// Ends all tokens; those to renew them by, too, if wanted.
    pub(crate) fn end_tokens(&self, refresh_too: bool) {
        let mut known = self.known.lock().unwrap();
        known.tokens.clear();
        if refresh_too {
            known.refresh.clear();
        }
    }
}

/// Visits an address as a browser does, and follows where it leads. Gives the last page.
pub(crate) async fn visit(address: &str) -> String {
    let mut address = address.to_owned();
    for _ in 0..5 {
        let url = Url::parse(&address).unwrap();
        let mut stream = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).await.unwrap();
        let path = &address[url.origin().ascii_serialization().len()..];
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        match page.lines().find_map(|line| line.strip_prefix("location: ")) {
            Some(next) => address = next.to_owned(),
            None => return page,
        }
    }
    panic!("it leads nowhere");
}

#[derive(Clone)]
struct Serving {
    origin: String,
    known: Arc<Mutex<Known>>,
    fault: Fault,
}

struct Asked {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    head: String,
    body: String,
}

impl Serving {
    async fn serve(self, mut stream: TcpStream) -> Option<()> {
        let asked = read(&mut stream).await?;
        if self.fault == Fault::Endless && asked.path.contains("well-known") {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[").await.ok()?;
            while stream.write_all(&[b' '; 1 << 16]).await.is_ok() {}
            return None;
        }
        let (status, headers, body) = self.answer(&asked);
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
        stream.shutdown().await.ok()
    }

    fn answer(&self, asked: &Asked) -> (&'static str, String, String) {
        let mut known = self.known.lock().unwrap();
        known.seen.push(format!("{} {}", asked.method, asked.path));
        known.bodies.push(format!("{}\n{}", asked.head, asked.body));
        let origin = &self.origin;
        let json = |value: Value| ("200 OK", "content-type: application/json\r\n".to_owned(), value.to_string());
        let none = || ("404 Not Found", String::new(), String::new());
        let has_metadata = !matches!(self.fault, Fault::NoMetadata | Fault::Old);
        match (asked.method.as_str(), asked.path.as_str()) {
            ("POST", "/mcp") => self.mcp(&known, asked),
            ("GET", "/.well-known/oauth-protected-resource/mcp") if has_metadata => {
                let resource = if self.fault == Fault::OtherResource {
                    "https://other.example/mcp".into()
                } else {
                    format!("{origin}/mcp")
                };
                json(json!({ "resource": resource, "authorization_servers": [format!("{origin}/auth")] }))
            }
            ("GET", "/.well-known/oauth-authorization-server/auth") if has_metadata => json(self.metadata("/auth")),
            ("GET", "/.well-known/oauth-authorization-server") if self.fault == Fault::Old => json(self.metadata("")),
            ("POST", "/auth/register") => {
                let wanted: Value = serde_json::from_str(&asked.body).unwrap();
                assert_eq!(wanted["token_endpoint_auth_method"], "none");
                let redirect = wanted["redirect_uris"][0].as_str().unwrap();
                assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
                let id = format!("client-{}", known.clients.len());
                known.clients.push(id.clone());
                json(json!({ "client_id": id }))
            }
            ("GET", "/auth/authorize") => self.authorize(&mut known, asked),
            ("POST", "/auth/token") => self.token(&mut known, asked),
            _ => none(),
        }
    }

    fn metadata(&self, path: &str) -> Value {
        let origin = &self.origin;
        let issuer =
            if self.fault == Fault::OtherIssuer { "https://other.example".into() } else { format!("{origin}{path}") };
        let token =
            if self.fault == Fault::Insecure { "http://token.example/".into() } else { format!("{origin}/auth/token") };
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{origin}/auth/authorize"),
            "token_endpoint": token,
            "registration_endpoint": format!("{origin}/auth/register"),
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        match self.fault {
            Fault::NoPkce => _ = metadata.as_object_mut().unwrap().remove("code_challenge_methods_supported"),
            Fault::NoRegistration => _ = metadata.as_object_mut().unwrap().remove("registration_endpoint"),
            _ => {}
        }
        metadata
    }

    fn mcp(&self, known: &Known, asked: &Asked) -> (&'static str, String, String) {
        let token = asked.head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
        if !token.is_some_and(|token| known.tokens.iter().any(|good| good == token)) {
            let place = match self.fault {
                Fault::MetadataElsewhere => "https://evil.example/metadata".to_owned(),
                Fault::NoMetadata | Fault::Old => return ("401 No", String::new(), String::new()),
                _ => format!("{}/.well-known/oauth-protected-resource/mcp", self.origin),
            };
            let header = format!("www-authenticate: Bearer resource_metadata=\"{place}\", scope=\"tools read\"\r\n");
            return ("401 No", header, format!("not with {}", token.unwrap_or_default()));
        }
        if self.fault == Fault::Redirects {
            return ("307 There", format!("location: {}/elsewhere\r\n", self.origin), String::new());
        }
        let message: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
            "tools/call" if message["params"]["arguments"]["text"] == "leak" => {
                let error = json!({ "code": -32000, "message": format!("your token is {}", token.unwrap()) });
                let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string();
                return ("200 OK", "content-type: application/json\r\n".into(), body);
            }
            "tools/call" => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] }),
            _ => return ("202 Accepted", String::new(), String::new()),
        };
        let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        ("200 OK", "content-type: application/json\r\n".into(), body)
    }

    fn authorize(&self, known: &mut Known, asked: &Asked) -> (&'static str, String, String) {
        let query = &asked.query;
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["code_challenge_method"], "S256");
        assert_eq!(query["resource"], format!("{}/mcp", self.origin));
        if self.fault != Fault::Old {
            assert_eq!(query["scope"], "tools read");
        }
        assert!(query["state"].len() >= 32 && query["redirect_uri"].starts_with("http://127.0.0.1:"));
        let mut back = Url::parse(&query["redirect_uri"]).unwrap();
        if self.fault == Fault::Denied {
            back.query_pairs_mut().append_pair("error", "access_denied").append_pair("state", &query["state"]);
        } else {
            let code = format!("code-{}", known.codes.len());
            back.query_pairs_mut().append_pair("code", &code).append_pair("state", &query["state"]);
            known.codes.insert(code, query.clone());
        }
        ("302 Found", format!("location: {back}\r\n"), String::new())
    }

    fn token(&self, known: &mut Known, asked: &Asked) -> (&'static str, String, String) {
        if self.fault == Fault::TokenElsewhere {
            return ("307 There", format!("location: {}/elsewhere\r\n", self.origin), String::new());
        }
        let form: BTreeMap<String, String> = pairs(&asked.body);
        let refused = |error: &str| ("400 No", String::new(), json!({ "error": error }).to_string());
        if form["resource"] != format!("{}/mcp", self.origin) {
            return refused("invalid_target");
        }
        let is_good = match form["grant_type"].as_str() {
            "authorization_code" => known.codes.remove(&form["code"]).is_some_and(|query| {
                let challenge = URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(form["code_verifier"].as_bytes()));
                query["code_challenge"] == challenge
                    && query["redirect_uri"] == form["redirect_uri"]
                    && query["client_id"] == form["client_id"]
            }),
            _ => {
                let before = known.refresh.len();
                known.refresh.retain(|token| *token != form["refresh_token"]);
                let is_known = known.refresh.len() < before;
                if !is_known && self.fault == Fault::EndsOnReuse {
                    known.refresh.clear();
                    known.tokens.clear();
                }
                is_known
            }
        };
        if !is_good {
            return refused("invalid_grant");
        }
        known.count += 1;
        let n = known.count;
        let (access, refresh) = (format!("access-{n}-xyz"), format!("refresh-{n}-xyz"));
        known.tokens = vec![access.clone()];
        known.refresh.push(refresh.clone());
        let is_short = matches!(self.fault, Fault::ShortLived | Fault::EndsOnReuse);
        let expires = if is_short { 1 } else { 3600 };
        let answer = json!({
            "access_token": access, "refresh_token": refresh, "token_type": "bearer", "expires_in": expires,
        });
        ("200 OK", "content-type: application/json\r\n".into(), answer.to_string())
    }
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    Url::parse(&format!("http://x/?{text}")).unwrap().query_pairs().into_owned().collect()
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    while bytes.len() < end + length.unwrap_or(0) {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8_lossy(&bytes[end..]).into_owned();
    let mut words = head.lines().next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Asked { method, path: path.to_owned(), query: pairs(query), head, body })
}
