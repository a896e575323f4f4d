//! Only the right requests reach an agent, and every other one gets the status that the specification has for it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::{Client, Protocol};
use attache_http::{HttpServer, Listener, Remote, RemoteError, ServerLimits};
use common::{OTHER_TOKEN, TOKEN, connect, in_time, server, tokens};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

#[tokio::test]
async fn the_matrix_of_requests() {
    let reached = Arc::new(AtomicUsize::new(0));
    let counted = reached.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ServerLimits { connections: 5000, connections_each: 5000, ..ServerLimits::default() };
    let server = HttpServer::new(tokens()).host("agents.example").origin("https://editor.example").limits(limits);
    tokio::spawn(server.serve(Listener::tcp(listener), move |client| {
        counted.fetch_add(1, Ordering::Relaxed);
        common::agent(client)
    }));
    let client = http();
    let hosts = [
        ("localhost", true),
        ("127.0.0.1:1", true),
        ("AGENTS.example:443", true),
        ("evil.example", false),
        ("localhost.evil.example", false),
    ];
    let origins = [
        (None, true),
        (Some("https://editor.example"), true),
        (Some("https://evil.example"), false),
        (Some("null"), false),
    ];
    let tokens = [
        (None, false),
        (Some(format!("Bearer {TOKEN}")), true),
        (Some(format!("bearer {OTHER_TOKEN}")), true),
        (Some(format!("Basic {TOKEN}")), false),
        (Some("Bearer wrong".to_owned()), false),
        (Some(format!("Bearer {}", &TOKEN[1..])), false),
    ];
    let types = [Some("application/json"), Some("application/json; charset=utf-8"), Some("text/plain"), None];
    let (mut requests, mut right) = (0, 0);
    for (host, host_fits) in hosts {
        for (origin, origin_fits) in origins {
            for (token, token_fits) in &tokens {
                for content_type in types {
                    for method in [Method::POST, Method::GET, Method::DELETE, Method::PUT] {
                        let mut request =
                            client.request(method.clone(), format!("http://{address}/acp")).header("host", host);
                        if let Some(origin) = origin {
                            request = request.header("origin", origin);
                        }
                        if let Some(token) = token {
                            request = request.header("authorization", token);
                        }
                        if let Some(content_type) = content_type {
                            request = request.header("content-type", content_type);
                        }
                        let before = reached.load(Ordering::Relaxed);
                        let response = in_time(request.body(INITIALIZE).send()).await.unwrap();
                        let is_json =
                            content_type.is_some_and(|content_type| content_type.starts_with("application/json"));
                        let expected = match (host_fits && origin_fits, token_fits, &method) {
                            (false, _, _) => 403,
                            (_, false, _) => 401,
                            (_, _, method) if *method == Method::PUT => 405,
                            (_, _, method) if *method == Method::GET => 406,
                            (_, _, method) if *method == Method::DELETE => 400,
                            _ if !is_json => 415,
                            _ => 200,
                        };
                        let what = format!("{method} {host} {origin:?} {token:?} {content_type:?}");
                        assert_eq!(response.status(), expected, "{what}");
                        assert_eq!(reached.load(Ordering::Relaxed) - before, usize::from(expected == 200), "{what}");
                        requests += 1;
                        right += usize::from(expected == 200);
                    }
                }
            }
        }
    }
    assert_eq!((requests, right), (1920, 24));
}

async fn initialized(client: &reqwest::Client, url: &str) -> String {
    let response = post(client, url).body(INITIALIZE).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.headers()["acp-connection-id"].to_str().unwrap().to_owned()
}

fn post(client: &reqwest::Client, url: &str) -> RequestBuilder {
    client.post(url).bearer_auth(TOKEN).header("content-type", "application/json")
}

async fn status(request: RequestBuilder) -> StatusCode {
    in_time(request.send()).await.unwrap().status()
}

#[tokio::test]
async fn statuses_are_those_of_the_specification() {
    let address = server(ServerLimits { message: 10_000, ..ServerLimits::default() }).await;
    let (client, url) = (http(), format!("http://{address}/acp"));
    let id = initialized(&client, &url).await;
    let new = if cfg!(windows) {
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"C:/tmp","mcpServers":[]}}"#
    } else {
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#
    };
    let prompt = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;
    let bare = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"prompt":[]}}"#;
    let known = |body: &'static str| post(&client, &url).header("acp-connection-id", &id).body(body);
    assert_eq!(status(known(new)).await, 202);
    assert_eq!(status(post(&client, &url).body(new)).await, 400);
    assert_eq!(status(post(&client, &url).header("acp-connection-id", "nobody").body(new)).await, 404);
    assert_eq!(status(known(bare)).await, 400);
    assert_eq!(status(known(prompt).header("acp-session-id", "other")).await, 400);
    assert_eq!(status(known("[]")).await, 400);
    assert_eq!(status(known("[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]")).await, 400);
    assert_eq!(status(known("{")).await, 400);
    let long: &'static str =
        Box::leak(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}", "x".repeat(10_000)).into_boxed_str());
    assert_eq!(status(known(long)).await, 413);
    let junk = post(&client, &url).header("acp-connection-id", &id).body(b"\xff\xfe".to_vec());
    assert_eq!(status(junk).await, 400);

    let get = || client.get(&url).bearer_auth(TOKEN).header("accept", "text/event-stream");
    assert_eq!(status(get()).await, 400);
    assert_eq!(status(get().header("acp-connection-id", "nobody")).await, 404);
    assert_eq!(status(client.get(&url).bearer_auth(TOKEN).header("acp-connection-id", &id)).await, 406);
    let stream = get().header("acp-connection-id", &id).send().await.unwrap();
    assert_eq!(
        (stream.status(), stream.headers()["content-type"].to_str().unwrap()),
        (StatusCode::OK, "text/event-stream")
    );
    assert_eq!(status(get().header("acp-connection-id", &id)).await, 409);
    // Some streams may be opened before their session has a name.
    let mut early: Vec<Response> = Vec::new();
    for index in 0..16 {
        early.push(
            get().header("acp-connection-id", &id).header("acp-session-id", format!("e{index}")).send().await.unwrap(),
        );
    }
    assert!(early.iter().all(|response| response.status() == 200));
    assert_eq!(status(get().header("acp-connection-id", &id).header("acp-session-id", "one-more")).await, 404);

    let delete = |id: &str| client.delete(&url).bearer_auth(TOKEN).header("acp-connection-id", id);
    assert_eq!(status(client.delete(&url).bearer_auth(TOKEN)).await, 400);
    assert_eq!(status(delete("nobody")).await, 404);
    assert_eq!(status(delete(&id)).await, 202);
    assert_eq!(status(delete(&id)).await, 404);
    assert_eq!(status(known(new)).await, 404);
    assert_eq!(status(client.get(format!("http://{address}/other")).bearer_auth(TOKEN)).await, 404);
}

#[tokio::test]
async fn what_one_has_opened_another_cannot_reach() {
    let address = server(ServerLimits::default()).await;
    let (client, url) = (http(), format!("http://{address}/acp"));
    let id = initialized(&client, &url).await;
    let other = |method: Method| {
        client
            .request(method, &url)
            .bearer_auth(OTHER_TOKEN)
            .header("acp-connection-id", &id)
            .header("accept", "text/event-stream")
            .header("content-type", "application/json")
            .body(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#)
    };
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(status(other(method)).await, 404);
    }
    let upgrade = other(Method::GET)
        .header("upgrade", "websocket")
        .header("connection", "upgrade")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("attache-received", "0");
    assert_eq!(status(upgrade).await, 404);
}

#[tokio::test]
async fn a_message_that_is_posted_twice_is_taken_once() {
    let address = server(ServerLimits::default()).await;
    let (client, url) = (http(), format!("http://{address}/acp"));
    let greeting = INITIALIZE.replace("\"params\":{", "\"params\":{\"_meta\":{\"attache/resume\":true},");
    let response = post(&client, &url).body(greeting).send().await.unwrap();
    let id = response.headers()["acp-connection-id"].to_str().unwrap().to_owned();
    assert!(response.text().await.unwrap().contains("\"attache/resume\":true"));
    let stream =
        client.get(&url).bearer_auth(TOKEN).header("accept", "text/event-stream").header("acp-connection-id", &id);
    let mut stream = stream.send().await.unwrap();
    let new = |number: u64, id_of_request: u64| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id_of_request},"method":"session/new","params":{{"cwd":"{cwd}","mcpServers":[]}}}}"#,
            cwd = common::CWD
        );
        post(&client, &url).header("acp-connection-id", &id).header("attache-message", number).body(body)
    };
    assert_eq!(status(new(1, 11)).await, 202);
    assert_eq!(status(new(1, 11)).await, 202);
    assert_eq!(status(new(3, 13)).await, 400);
    assert_eq!(status(new(2, 12)).await, 202);
    let mut text = String::new();
    while !text.contains("\"id\":12") {
        text.push_str(std::str::from_utf8(&in_time(stream.chunk()).await.unwrap().unwrap()).unwrap());
    }
    // Numbers that nobody has are refused, and nothing breaks.
    for last in [u64::MAX, u64::MAX - 1, 1000] {
        let get =
            client.get(&url).bearer_auth(TOKEN).header("accept", "text/event-stream").header("acp-connection-id", &id);
        assert_eq!(status(get.header("last-event-id", last)).await, 410);
    }
    for count in [u64::MAX, 0] {
        let told = format!(r#"{{"jsonrpc":"2.0","method":"_attache/received","params":{{"count":{count}}}}}"#);
        assert_eq!(status(post(&client, &url).header("acp-connection-id", &id).body(told)).await, 202);
    }
    assert_eq!(status(new(u64::MAX, 99)).await, 400);
    assert_eq!(text.matches("\"result\"").count(), 2, "{text}");
    // A sign of life comes first where there is nothing else yet.
    assert!(text.trim_start_matches(":\n\n").starts_with("id: 1\ndata: "), "{text}");
}

#[tokio::test]
async fn health_is_open_and_empty_and_figures_need_a_token() {
    let address = server(ServerLimits::default()).await;
    let client = http();
    for path in ["health", "ready"] {
        let response = client.get(format!("http://{address}/{path}")).send().await.unwrap();
        assert_eq!((response.status(), response.text().await.unwrap().as_str()), (StatusCode::OK, ""));
    }
    let metrics = format!("http://{address}/metrics");
    assert_eq!(status(client.get(&metrics)).await, 401);
    let _agent = connect("ws", address, Protocol::V1).await;
    let text = client.get(&metrics).bearer_auth(TOKEN).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("\nattache_connections 1\n"), "{text}");
    assert!(text.contains("\nattache_refused_total 1\n"), "{text}");
}

#[tokio::test]
async fn a_client_is_told_why_it_was_refused() {
    let address = server(ServerLimits::default()).await;
    let failed = async |url: String, token: &str| {
        let remote = Remote::new(&url).unwrap().token(token);
        let connected = match in_time(remote.connect()).await {
            Ok(connected) => connected,
            Err(error) => return error,
        };
        in_time(Client::new("test", "1").over(connected.transport)).await.unwrap_err();
        connected.failure.get().unwrap().clone()
    };
    for scheme in common::SCHEMES {
        assert_eq!(failed(format!("{scheme}://{address}"), "wrong").await, RemoteError::Unauthorized(401));
        let path = failed(format!("{scheme}://{address}/elsewhere"), TOKEN).await;
        assert_eq!(path, RemoteError::Ended, "{scheme}");
        assert!(matches!(failed(format!("{scheme}://127.0.0.1:9"), TOKEN).await, RemoteError::Unreachable(_)));
        assert_eq!(failed(format!("{scheme}://192.0.2.1"), TOKEN).await, RemoteError::InTheClear);
    }
    for wrong in ["", "localhost", "ftp://localhost", "http://user:pw@localhost", "http://localhost/?token=x"] {
        assert!(matches!(Remote::new(wrong), Err(RemoteError::Address(_))), "{wrong}");
    }
    assert!(!format!("{:?}", Remote::new("http://localhost").unwrap().token("secret")).contains("secret"));
}

#[tokio::test]
async fn a_certificate_of_ones_own_is_trusted_by_its_fingerprint_alone() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = signed.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(HttpServer::new(tokens()).serve(Listener::tls(listener, config), common::agent));
    let fingerprint = attache_http::Fingerprint::of(&certificate);
    let other = attache_http::Fingerprint::of(b"another");
    for scheme in ["https", "wss"] {
        let url = format!("{scheme}://localhost:{}", address.port());
        for (pin, is_trusted) in [(Some(fingerprint), true), (Some(other), false), (None, false)] {
            let mut remote = Remote::new(&url).unwrap().token(TOKEN);
            if let Some(pin) = pin {
                remote = remote.fingerprint(pin);
            }
            let failure = match in_time(remote.connect()).await {
                Ok(connected) => match in_time(Client::new("test", "1").over(connected.transport)).await {
                    Ok(agent) => {
                        common::turn_with_permission(&agent).await;
                        None
                    }
                    Err(_) => connected.failure.get().cloned(),
                },
                Err(error) => Some(error),
            };
            match failure {
                None => assert!(is_trusted, "{scheme} {pin:?}"),
                Some(RemoteError::Certificate(_)) => assert_eq!(pin, None, "{scheme}"),
                Some(RemoteError::WrongFingerprint(its_own)) => assert_eq!((pin, its_own), (Some(other), fingerprint)),
                Some(other) => panic!("{scheme} {pin:?}: {other:?}"),
            }
        }
    }
}

/// A request as its bytes, and what comes back until the server closes or says no more.
async fn raw(address: std::net::SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut buffer)).await {
        answer.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn headers_that_stand_twice_are_refused() {
    let address = server(ServerLimits::default()).await;
    let head = format!(
        "GET /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAccept: text/event-stream\r\n"
    );
    for (twice, expected) in [
        ("Host: evil.example\r\n", "400"),
        ("Origin: https://a.example\r\nOrigin: https://b.example\r\n", "400"),
        ("Authorization: Bearer wrong\r\n", "401"),
        ("Acp-Connection-Id: a\r\nAcp-Connection-Id: b\r\n", "400"),
    ] {
        let answer = raw(address, format!("{head}{twice}\r\n").as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{twice}: {answer}");
        assert!(!answer.contains("evil"), "{answer}");
    }
}
