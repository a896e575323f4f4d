//! What is found on loopback, and what is not believed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const LIMIT: Duration = Duration::from_millis(400);

/// A server that answers every request with this, and closes; `None` accepts and says nothing.
async fn serve(answer: Option<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            match &answer {
                Some(answer) => {
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
                None => open.push(stream),
            }
        }
    });
    address
}

fn ok(body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{body}"))
}

async fn find(provider: &'static str, answer: Option<String>) -> Option<Found> {
    let address = serve(answer).await;
    among(&[Place { provider, address }], LIMIT).await
}

#[tokio::test]
async fn ollama_and_servers_like_openai_are_found() {
    let found = find("ollama", ok(r#"{"models":[{"name":"qwen3:8b"},{"name":"nomic-embed-text"}]}"#)).await.unwrap();
    assert_eq!(found.models, ["qwen3:8b"]);
    assert!(found.base_url.starts_with("http://127.0.0.1:") && found.base_url.ends_with("/v1/"));
    let found = find("llamacpp", ok(r#"{"models":[],"object":"list","data":[{"id":"gpt-oss-20b"}]}"#)).await.unwrap();
    assert_eq!((found.provider, found.models), ("llamacpp", vec!["gpt-oss-20b".to_owned()]));
}

#[tokio::test]
async fn chunks_are_put_together() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{\"data\":[\r\n0b;x=y\r\n{\"id\":\"a\"}]\r\n1\r\n}\r\n0\r\n\r\n";
    assert_eq!(find("lmstudio", Some(answer.into())).await.unwrap().models, ["a"]);
}

#[tokio::test]
async fn what_is_no_list_of_models_is_not_a_server() {
    for answer in [
        ok("<html>a web server</html>"),
        ok(r#"{"data":[]}"#),
        ok(r#"{"data":[{"id":7},{"id":""},{"id":"\u001b[31m"}]}"#),
        Some("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n".into()),
        Some("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{".into()),
        Some("SSH-2.0-OpenSSH\r\n".into()),
        Some(String::new()),
        None,
    ] {
        assert_eq!(find("lmstudio", answer.clone()).await, None, "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endless = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    };
    let place = Place { provider: "ollama", address };
    tokio::select! {
        found = among(std::slice::from_ref(&place), Duration::from_secs(10)) => assert_eq!(found, None),
        () = endless => {}
    }
}

#[tokio::test]
async fn a_silent_server_delays_nobody_beyond_the_limit() {
    let silent = serve(None).await;
    let good = serve(ok(r#"{"data":[{"id":"m"}]}"#)).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let places = [("ollama", silent), ("lmstudio", closed), ("llamacpp", good)]
        .map(|(provider, address)| Place { provider, address });
    let start = std::time::Instant::now();
    assert_eq!(among(&places, LIMIT).await.unwrap().provider, "llamacpp");
    assert!(start.elapsed() < LIMIT * 5);
}

#[tokio::test]
async fn places_elsewhere_are_not_looked_at() {
    let places = [Place { provider: "ollama", address: "192.0.2.1:11434".parse().unwrap() }];
    assert_eq!(among(&places, LIMIT).await, None);
}

#[test]
fn ollamas_host_counts_when_it_is_here() {
    for (text, address) in [
        ("", "127.0.0.1:11434"),
        ("127.0.0.1", "127.0.0.1:11434"),
        ("0.0.0.0", "127.0.0.1:11434"),
        ("http://localhost:8000/", "127.0.0.1:8000"),
        (":9000", "127.0.0.1:9000"),
        ("[::1]:7", "[::1]:7"),
        ("[::1]", "[::1]:11434"),
        ("example.com:80", "127.0.0.1:11434"),
        ("https://127.0.0.1:443", "127.0.0.1:11434"),
        ("10.0.0.1:11434", "127.0.0.1:11434"),
        ("localhost:99999", "127.0.0.1:11434"),
    ] {
        assert_eq!(usual_places(text)[0].address.to_string(), address, "{text}");
    }
}
