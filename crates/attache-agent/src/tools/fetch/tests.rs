//! Fetching from a server on loopback, with names that lead wherever a test wants.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::proxy::Proxies;
use super::*;
use crate::model::Part;

/// A server that answers every path in its own way, and remembers what it was asked.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, answer) = (heads.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (seen.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    seen.lock().unwrap().push(head);
                    let _ = stream.write_all(&answer(&path)).await;
                    if path.contains("hang") {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Server { port, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn page(content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &format!("Content-Type: {content_type}\r\n"), body.as_ref())
}

fn redirect(location: &str) -> Vec<u8> {
    answer("302 Found", &format!("Location: {location}\r\n"), b"")
}

/// Names for the tests. All others do not exist.
fn names(name: &str) -> Vec<IpAddr> {
    let addresses: &[&str] = match name {
        "site.test" | "other.test" => &["127.0.0.1"],
        "inside.test" => &["10.0.0.1"],
        "both.test" => &["127.0.0.1", "192.168.0.1"],
        "metadata.test" => &["169.254.169.254"],
        _ => &[],
    };
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

fn fetch(allows_loopback: bool) -> (tempfile::TempDir, Fetch) {
    let directory = tempfile::tempdir().unwrap();
    let mut fetch = Fetch::new(Arc::new(Spill::new(directory.path())));
    fetch.getter.allows_loopback = allows_loopback;
    fetch.getter.proxies = || Proxies::read(|_| None);
    fetch.getter.lookup = Arc::new(|name| {
        Box::pin(async move {
            let found = names(&name);
            if found.is_empty() { Err(std::io::Error::other("no such name")) } else { Ok(found) }
        })
    });
    (directory, fetch)
}

/// The text for the model, or why the call was refused, and whether it failed.
async fn run(fetch: &Fetch, url: &str) -> (String, bool) {
    let prepared = match fetch.prepare("fetch_url", &json!({"url": url})).unwrap() {
        Ok(prepared) => prepared,
        Err(refusal) => return (refusal.0, true),
    };
    let (live, _shown) = Live::channel();
    let work = fetch.perform(prepared.work, &live);
    let outcome = tokio::time::timeout(Duration::from_secs(60), work).await.unwrap();
    let [Part::Text { text }] = &outcome.parts[..] else { panic!("{outcome:?}") };
    (text.clone(), outcome.is_error)
}

#[tokio::test]
async fn pages_come_as_text() {
    let server = Server::start(|path| match path {
        "/html" => page("text/html; charset=utf-8", "<title>T</title><p>caf&eacute;</p><a href='/x'>x</a>"),
        "/latin" => page("text/html", b"<meta charset='iso-8859-1'><p>caf\xe9</p>"),
        "/header" => page("text/plain; charset=\"windows-1252\"", b"\x80 5"),
        "/json" => page("application/json", "{\"a\": \"<b>\"}"),
        "/none" => answer("200 OK", "", b"<!DOCTYPE html><p>sniffed"),
        "/missing" => answer("404 Not Found", "Content-Type: text/plain\r\n", b"nothing here"),
        "/image" => page("image/png", [0u8; 64]),
        "/octets" => page("application/octet-stream", b"\x00\x01\x02"),
        "/zip" => answer("200 OK", "", b"PK\x03\x04\xff\xfe"),
        _ => panic!("{path}"),
    })
    .await;
    let (_directory, fetch) = fetch(true);
    let at = format!("http://site.test:{}", server.port);
    let link = format!("Title: T\n\ncafé\n\n[x]({at}/x)");
    let rows = [
        ("/html#part", link.as_str(), false),
        ("/latin", "café", false),
        ("/header", "€ 5", false),
        ("/json", "{\"a\": \"<b>\"}", false),
        ("/none", "sniffed", false),
        ("/missing", "nothing here", true),
        ("/image", "it is no text: image/png, 64 bytes", true),
        ("/octets", "it is no text: application/octet-stream, 3 bytes", true),
        ("/zip", "it is no text: of unknown type, 6 bytes", true),
    ];
    for (path, expected, is_error) in rows {
        let (text, failed) = run(&fetch, &format!("{at}{path}")).await;
        assert!(text.contains(expected) && failed == is_error, "{path}: {text}");
    }
    let (text, _) = run(&fetch, &format!("{at}/missing")).await;
    assert_eq!(text, format!("{at}/missing: HTTP 404, text/plain, 12 bytes\n\nnothing here"));
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.contains(concat!("user-agent: attache/", env!("CARGO_PKG_VERSION"))), "{head}");
    assert!(!head.contains("cookie") && !head.contains("referer") && !head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn a_fetch_is_looked_at_before_anything_is_sent() {
    let (_directory, fetch) = fetch(false);
    let prepared = fetch.prepare("fetch_url", &json!({"url": " https://Docs.RS/serde#x "})).unwrap().unwrap();
    assert_eq!(prepared.title, "Fetch https://docs.rs/serde");
    assert_eq!(prepared.work.name(), "fetch:docs.rs");
    assert_eq!((prepared.kind, prepared.content.len()), (ToolKind::Fetch, 0));
    assert_eq!(
        prepared.actions,
        [Action::Other { kind: ToolKind::Fetch, paths: vec![], name: Some("fetch:docs.rs".into()) }]
    );
    let long = format!("https://docs.rs/?q={}", "x".repeat(500));
    let prepared = fetch.prepare("fetch_url", &json!({"url": long})).unwrap().unwrap();
    assert_eq!(prepared.content, [ToolCallContent::text(format!("`{long}`"))], "nothing of it is hidden");
    assert!(fetch.prepare("read_file", &json!({})).is_none());

    let rows = [
        (json!({}), "`url` is missing"),
        (json!({"url": {"a": 1}}), "`url` has to be text"),
        (json!({"url": "docs.rs"}), "`url` is not an address"),
        (json!({"url": "x".repeat(10_000)}), "`url` is too long"),
        (json!({"url": "file:///etc/passwd"}), "`file` is not fetched"),
        (json!({"url": "ftp://host/"}), "`ftp` is not fetched"),
        (json!({"url": "https://me:hunter2@host.example/"}), "with a user or a password"),
        (json!({"url": "https://me@host.example/"}), "with a user or a password"),
    ];
    for (arguments, expected) in rows {
        let refusal = fetch.prepare("fetch_url", &arguments).unwrap().unwrap_err().0;
        assert!(refusal.contains(expected) && !refusal.contains("hunter2"), "{refusal}");
    }
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_in_every_form() {
    let (_directory, fetch) = fetch(false);
    let hosts = [
        "localhost",
        "LOCALHOST.",
        "app.localhost",
        "metadata.google.internal",
        "printer.local",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0",
        "10.1.2.3",
        "169.254.169.254",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ];
    for host in hosts {
        let refusal =
            fetch.prepare("fetch_url", &json!({"url": format!("http://{host}:80/x")})).unwrap().unwrap_err().0;
        assert!(refusal.contains("is not on the public internet"), "{host}: {refusal}");
    }
}

#[tokio::test]
async fn a_name_is_refused_for_where_it_leads() {
    let server = Server::start(|_| page("text/plain", "secret")).await;
    let (_directory, fetch) = fetch(false);
    for name in ["site.test", "inside.test", "metadata.test"] {
        let (text, failed) = run(&fetch, &format!("http://{name}:{}/", server.port)).await;
        assert!(failed && text.starts_with(&format!("`{name}` is not on the public internet")), "{text}");
    }
    let (text, _) = run(&fetch, "http://unknown.test/").await;
    assert_eq!(text, "`unknown.test` cannot be reached: no such name");
    assert_eq!(server.heads().len(), 0);
    let (_directory, lenient) = super::tests::fetch(true);
    let (text, _) = run(&lenient, &format!("http://both.test:{}/", server.port)).await;
    assert!(text.contains("is not on the public internet"), "one bad address spoils all: {text}");
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only() {
    let server = Server::start(|path| match path {
        "/start" => redirect("/second?x#y"),
        "/second?x" => redirect("third"),
        "/third" => page("text/plain", "arrived"),
        "/loop" => redirect("/loop"),
        "/out" => redirect("http://me:hunter2@other.test/x"),
        "/metadata" => redirect("http://169.254.169.254/latest"),
        "/file" => redirect("file:///etc/passwd"),
        "/bad" => redirect("http://[bad"),
        "/bare" => answer("302 Found", "Content-Type: text/plain\r\n", b"no location"),
        _ => panic!("{path}"),
    })
    .await;
    let (_directory, fetch) = fetch(true);
    let at = format!("http://site.test:{}", server.port);
    let rows = [
        ("/start", "arrived"),
        ("/loop", "there were more than 5 redirects"),
        ("/out", "redirects to another host: http://other.test/x\nhint: "),
        ("/metadata", "redirects to another host: http://169.254.169.254/latest"),
        ("/file", "redirects to another host: file:///etc/passwd"),
        ("/bad", "redirects to something that is no address"),
        ("/bare", "HTTP 302"),
    ];
    for (path, expected) in rows {
        let (text, _) = run(&fetch, &format!("{at}{path}")).await;
        assert!(text.contains(expected) && !text.contains("hunter2"), "{path}: {text}");
    }
    assert_eq!(server.heads().iter().filter(|head| head.starts_with("GET /loop ")).count(), 6);
    // And the way that the hint shows is closed.
    assert!(fetch.prepare("fetch_url", &json!({"url": "http://169.254.169.254/latest"})).unwrap().is_err());
}

#[test]
fn encryption_is_not_given_up_on_the_way() {
    let from = Url::parse("https://host.example/a").unwrap();
    assert_eq!(get::next(&from, "/b").unwrap().as_str(), "https://host.example/b");
    assert!(get::next(&from, "http://host.example/b").unwrap_err().0.contains("without encryption"));
    let plain = Url::parse("http://host.example/a").unwrap();
    assert_eq!(get::next(&plain, "https://host.example/b").unwrap().as_str(), "https://host.example/b");
}

#[tokio::test]
async fn a_page_without_end_is_cut_off_and_one_that_does_not_come_is_given_up() {
    let server = Server::start(|path| match path {
        "/long" => page("text/plain", "0123456789abcde\n".repeat(1 << 18)),
        "/hang" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nsome".to_vec(),
        "/hang-early" => Vec::new(),
        "/torn" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nsome".to_vec(),
        "/junk" => b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(),
        "/gzip" => {
            answer("200 OK", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", b"no gzip at all, only text")
        }
        _ => panic!("{path}"),
    })
    .await;
    let (directory, mut fetch) = fetch(true);
    let at = format!("http://site.test:{}", server.port);
    let (text, failed) = run(&fetch, &format!("{at}/long")).await;
    assert!(!failed && text.contains(", 2097152 bytes, cut off there\n\n") && text.len() < 40 << 10, "{text:.200}");
    let kept = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap();
    assert_eq!(kept.metadata().unwrap().len(), 2 << 20);

    let rows = [
        ("/torn", "what `site.test` sent is broken"),
        ("/junk", "`site.test` gave no answer that can be understood"),
        ("/gzip", "what `site.test` sent is broken"),
        ("/hang", "`site.test` did not answer within 1 seconds"),
        ("/hang-early", "`site.test` did not answer within 1 seconds"),
    ];
    for (path, expected) in rows {
        if path.contains("hang") {
            fetch.getter.time = Duration::from_secs(1);
        }
        assert_eq!(run(&fetch, &format!("{at}{path}")).await, (expected.into(), true), "{path}");
    }
}

#[tokio::test]
async fn a_proxy_is_used_and_its_password_is_told_to_nobody() {
    static PORT: Mutex<u16> = Mutex::new(0);
    let server = Server::start(|path| match path {
        "http://site.test/refused" => answer("407 Proxy Authentication Required", "", b"who?"),
        _ => page("text/plain", "through the proxy"),
    })
    .await;
    *PORT.lock().unwrap() = server.port;
    let (_directory, mut fetch) = fetch(false);
    fetch.getter.proxies = || {
        let proxy = format!("me:hunter2@127.0.0.1:{}", PORT.lock().unwrap());
        Proxies::read(|name| match name {
            "HTTP_PROXY" => Some(proxy.clone()),
            "no_proxy" => Some("inside.test".into()),
            _ => None,
        })
    };
    // A name that only the proxy knows.
    let (text, failed) = run(&fetch, "http://far.test/x").await;
    assert!(!failed && text.ends_with("through the proxy"), "{text}");
    let head = &server.heads()[0];
    assert!(head.starts_with("GET http://far.test/x ") && head.to_ascii_lowercase().contains("proxy-authorization"));
    for url in ["http://site.test/", "http://inside.test/", "http://metadata.test/", "http://10.0.0.1/"] {
        let (text, failed) = run(&fetch, url).await;
        assert!(failed && text.contains("is not on the public internet"), "{text}");
    }
    assert_eq!(server.heads().len(), 1);
    *PORT.lock().unwrap() = 1;
    let (text, failed) = run(&fetch, "http://far.test/x").await;
    assert!(failed && !text.contains("hunter2"), "{text}");
    assert!(!format!("{fetch:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_fetch_that_is_dropped_is_gone() {
    let server = Server::start(|_| Vec::new()).await;
    let (_directory, fetch) = fetch(true);
    let url = format!("http://site.test:{}/hang", server.port);
    let work = tokio::time::timeout(Duration::from_millis(300), run(&fetch, &url));
    assert!(work.await.is_err());
}
