//! Tests of the server with fixed pages.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{HttpFixture, Response};
use crate::raw_client::{Reply, connect, send};

async fn get(server: &HttpFixture, path: &str) -> Reply {
    send(&server.url(""), &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await
}

#[tokio::test]
async fn pages_are_served_by_their_path() {
    let pages = vec![
        ("/", Response::html("<p>Grüße</p>")),
        ("/old", Response::redirect("/?new").header("x-more", "yes")),
        ("/long", Response::bytes("application/octet-stream", vec![b'x'; 300_000]).chunked()),
        ("/cut", Response::text("abcdef").cut()),
    ];
    let server = HttpFixture::start(pages).await;
    let page = get(&server, "/?query").await;
    assert_eq!((page.status, page.text().as_str(), page.is_whole), (200, "<p>Grüße</p>", true));
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let old = get(&server, "/old").await;
    assert_eq!((old.status, old.headers["location"].as_str(), old.headers["x-more"].as_str()), (302, "/?new", "yes"));
    let long = get(&server, "/long").await;
    assert!(long.is_whole && long.text().len() == 300_000);
    let cut = get(&server, "/cut").await;
    assert_eq!((cut.text().as_str(), cut.is_whole), ("abc", false));
    assert_eq!(get(&server, "/none").await.status, 404);
    let asked = &server.requests()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str(), asked.headers["host"].as_str()), ("GET", "/?query", "x"));
    assert_eq!(server.connections_closed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_page_takes_its_time() {
    let page = Response::text("abcdef").slow(2, Duration::from_secs(1));
    let server = HttpFixture::start(vec![("/", page)]).await;
    let start = tokio::time::Instant::now();
    assert_eq!(get(&server, "/").await.text(), "abcdef");
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn endless_and_hanging_pages_end_when_the_client_leaves() {
    let pages = vec![
        ("/flood", Response::text("water").endless()),
        ("/desert", Response::text("").endless()),
        ("/wait", Response::text("never").hang()),
    ];
    let server = HttpFixture::start(pages).await;
    for (number, path) in (1..).zip(["/flood", "/desert", "/wait"]) {
        let mut client = connect(&server.url("")).await;
        client.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        client.read_exact(&mut [0; 15]).await.unwrap();
        drop(client);
        server.wait_for_closed(number).await;
    }
    server.wait_for_requests(3).await;
}

#[tokio::test]
async fn head_brings_no_body() {
    let server = HttpFixture::start(vec![("/", Response::text("abc"))]).await;
    let reply = send(&server.url(""), "HEAD / HTTP/1.1\r\n\r\n").await;
    assert_eq!((reply.headers["content-length"].as_str(), reply.text().as_str()), ("3", ""));
}
