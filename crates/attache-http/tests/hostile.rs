//! Clients that mean no good: limits hold, memory returns, and others are served.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::{Prompt, Protocol, Stop, Turn};
use attache_http::{Accepted, ServerLimits};
use common::{TOKEN, connect, in_time, numbers, serve_with, server, turn_with_permission};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn is_well(address: SocketAddr) {
    for scheme in common::SCHEMES {
        turn_with_permission(&connect(scheme, address, Protocol::V1).await).await;
    }
}

/// Reads until the server closes the stream; fails if it does not.
async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            all.extend_from_slice(&buffer[..read]);
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the server closes it");
    all
}

fn upgrade() -> String {
    format!(
        "GET /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// A WebSocket whose handshake is done.
async fn socket(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(upgrade().as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    stream
}

/// A frame of a client: masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ ..126 => bytes.push(0x80 | length as u8),
        length @ ..65536 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}

const GREETING: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

#[tokio::test]
async fn requests_that_never_end_are_ended() {
    let limits = ServerLimits { request: Duration::from_millis(500), ..ServerLimits::default() };
    let address = server(limits).await;
    let post = format!(
        "POST /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n{{"
    );
    let mut slow = Vec::new();
    for start in ["", "G", "GET /acp HTTP/1.1\r\nHost: localhost\r\nX: ", &post] {
        for _ in 0..50 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(start.as_bytes()).await.unwrap();
            slow.push((start.to_owned(), stream));
        }
    }
    is_well(address).await;
    for (start, stream) in &mut slow {
        // What was never begun may stay a little longer; it holds nothing.
        if !start.is_empty() {
            until_closed(stream).await;
        }
    }
}

#[tokio::test]
async fn frames_that_break_the_rules_end_their_socket_alone() {
    let address = server(ServerLimits { message: 100_000, ..ServerLimits::default() }).await;
    let unmasked = [&[0x81, 2][..], b"{}"].concat();
    let huge_length = [&[0x81, 0x80 | 127][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat();
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("unmasked", unmasked),
        ("reserved bits", frame(0xf1, b"{}")),
        ("unknown opcode", frame(0x83, b"{}")),
        ("a continuation of nothing", frame(0x80, b"{}")),
        ("a long ping", frame(0x89, &[0; 200])),
        ("not UTF-8", frame(0x81, b"\xff\xff")),
        ("a frame that is too long", frame(0x81, &vec![b' '; 100_001])),
        ("a length that nobody has", huge_length),
        ("a message in too many parts", {
            let mut bytes = frame(0x01, &[b' '; 60_000]);
            bytes.extend(frame(0x80, &[b' '; 60_000]));
            bytes
        }),
        ("no initialize", frame(0x81, br#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#)),
    ];
    for (what, bytes) in rows {
        let mut stream = socket(address).await;
        // The server may close before it has read all of it.
        let _ = stream.write_all(&bytes).await;
        until_closed(&mut stream).await;
        eprintln!("{what}: closed");
    }
    is_well(address).await;
}

#[tokio::test]
async fn fragments_pings_and_binary_frames_are_understood() {
    let address = server(ServerLimits::default()).await;
    let mut stream = socket(address).await;
    let mut bytes = frame(0x82, b"binary is ignored");
    bytes.extend(frame(0x81, b"[]"));
    bytes.extend(frame(0x01, &GREETING[..10]));
    bytes.extend(frame(0x89, b"ping"));
    bytes.extend(frame(0x00, &GREETING[10..20]));
    bytes.extend(frame(0x80, &GREETING[20..]));
    stream.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    in_time(async {
        while !String::from_utf8_lossy(&answer).contains("protocolVersion") {
            answer.push(stream.read_u8().await.unwrap());
        }
    })
    .await;
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("-32600") && text.contains("ping"), "{text}");
}

/// A frame of HTTP/2.
fn h2(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The beginning of a connection of HTTP/2.
fn preface() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(h2(4, 0, 0, &[]));
    bytes
}

/// Headers of `GET /`, by the static table of HPACK.
const HEADERS: &[u8] = &[0x82, 0x84, 0x86];

#[tokio::test]
async fn floods_of_http2_end_their_connection_alone() {
    let address = server(ServerLimits::default()).await;
    let mut resets = preface();
    for index in 0..20_000_u32 {
        resets.extend(h2(1, 0x05, 2 * index + 1, HEADERS));
        resets.extend(h2(3, 0, 2 * index + 1, &8_u32.to_be_bytes()));
    }
    let mut continuations = preface();
    continuations.extend(h2(1, 0x01, 1, HEADERS));
    for _ in 0..20_000 {
        continuations.extend(h2(9, 0, 1, &[0x00, 0x01, b'x', 0x01, b'y']));
    }
    let mut pings = preface();
    let mut settings = preface();
    for _ in 0..20_000 {
        pings.extend(h2(6, 0, 0, &[0; 8]));
        settings.extend(h2(4, 0, 0, &[0, 3, 0, 0, 0, 1]));
    }
    for (what, bytes, has_to_close) in [
        ("resets", resets, true),
        ("continuations", continuations, true),
        ("pings", pings, false),
        ("settings", settings, false),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Nobody reads what the server answers.
        let written = tokio::time::timeout(Duration::from_secs(10), stream.write_all(&bytes)).await;
        is_well(address).await;
        if has_to_close && matches!(written, Ok(Ok(()))) {
            until_closed(&mut stream).await;
        }
        eprintln!("{what}: {written:?}");
    }
}

#[tokio::test]
async fn connections_are_limited_in_all_and_for_each() {
    let limits = ServerLimits { connections: 6, connections_each: 4, ..ServerLimits::default() };
    let address = server(limits).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(connect("ws", address, Protocol::V1).await);
    }
    let refused = attache_http::Remote::new(&format!("ws://{address}")).unwrap().token(TOKEN).connect().await;
    assert_eq!(refused.unwrap_err(), attache_http::RemoteError::Refused(503));
    let other =
        attache_http::Remote::new(&format!("ws://{address}")).unwrap().token(common::OTHER_TOKEN).connect().await;
    assert!(other.is_ok());
    in_time(held.pop().unwrap().shutdown()).await;
    in_time(async {
        while attache_http::Remote::new(&format!("ws://{address}")).unwrap().token(TOKEN).connect().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed_and_its_agent_ends() {
    let open = Arc::new(AtomicUsize::new(0));
    let counted = open.clone();
    let limits = ServerLimits {
        outgoing: 32 << 10,
        stalled: Duration::from_millis(500),
        away: Duration::from_secs(5),
        ..ServerLimits::default()
    };
    let address = serve_with(limits, move |client: Accepted| {
        let open = counted.clone();
        async move {
            open.fetch_add(1, Ordering::Relaxed);
            let agent = attache::agent_fn("talker", "1", async |turn: Turn, _: Prompt| {
                loop {
                    turn.text("x".repeat(1000)).await?;
                }
                #[allow(unreachable_code, reason = "says what it would return")]
                Ok(Stop::EndTurn)
            });
            let _ = attache::serve(agent).over(client.transport).await;
            open.fetch_sub(1, Ordering::Relaxed);
        }
    })
    .await;
    let mut stream = socket(address).await;
    stream.write_all(&frame(0x81, GREETING)).await.unwrap();
    let new = br#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#;
    stream.write_all(&frame(0x81, new)).await.unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("\"sessionId\":\"") {
        answer.push(in_time(stream.read_u8()).await.unwrap());
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let mut id = text.split("\"sessionId\":\"").nth(1).unwrap().to_owned();
    while !id.contains('"') {
        id.push(char::from(in_time(stream.read_u8()).await.unwrap()));
    }
    let id = id.split('"').next().unwrap();
    let prompt = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{{"sessionId":"{id}","prompt":[{{"type":"text","text":"go"}}]}}}}"#
    );
    stream.write_all(&frame(0x81, prompt.as_bytes())).await.unwrap();
    // Nothing is read from here on.
    in_time(async {
        while open.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    drop(stream);
}

/// The memory of this process, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn five_thousand_abandoned_connections_leave_nothing_behind() {
    let limits = ServerLimits {
        connections: 10_000,
        connections_each: 10_000,
        away: Duration::from_millis(500),
        ..ServerLimits::default()
    };
    let open = Arc::new(AtomicUsize::new(0));
    let counted = open.clone();
    let address = serve_with(limits, move |client| {
        let open = counted.clone();
        async move {
            open.fetch_add(1, Ordering::Relaxed);
            common::agent(client).await;
            open.fetch_sub(1, Ordering::Relaxed);
        }
    })
    .await;
    is_well(address).await;
    let before = resident();
    let body = String::from_utf8_lossy(GREETING);
    let post = format!(
        "POST /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for round in 0..50 {
        let mut streams = Vec::new();
        for index in 0..100 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let bytes = if (round + index) % 2 == 0 { post.as_bytes().to_vec() } else { upgrade().into_bytes() };
            stream.write_all(&bytes).await.unwrap();
            streams.push(stream);
        }
        for stream in &mut streams {
            in_time(stream.read_u8()).await.unwrap();
        }
    }
    let session = connect("ws", address, Protocol::V1).await;
    let session = session.session("/tmp").open().await.unwrap();
    assert_eq!(in_time(session.prompt("count 10").await.unwrap().text()).await.unwrap(), numbers(10));
    drop(session);
    in_time(async {
        while open.load(Ordering::Relaxed) > 1 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let after = resident();
    eprintln!("{before} KiB before, {after} KiB after");
    assert!(after < before + 64 * 1024, "{before} KiB before, {after} KiB after");
}
