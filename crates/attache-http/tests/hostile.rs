//! Clients that mean no good: limits hold, memory returns, and others are served.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::{Prompt, Protocol, Stop, Turn};
use attache_http::{Accepted, ServerLimits};
use common::{OTHER_TOKEN, TOKEN, connect, in_time, numbers, serve_with, server, turn_with_permission};
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

/// How many bytes of messages a server holds, as it says itself.
async fn unread_bytes(address: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let text = String::from_utf8(until_closed(&mut stream).await).unwrap();
    let line = text.lines().find(|line| line.starts_with("attache_unread_bytes ")).unwrap();
    line.split_once(' ').unwrap().1.parse().unwrap()
}

async fn until_unread(address: SocketAddr, is_enough: impl Fn(usize) -> bool) {
    let waiting = async {
        while !is_enough(unread_bytes(address).await) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(waiting).await;
}

#[tokio::test]
async fn what_one_client_posts_at_once_is_bounded_over_all_of_its_connections() {
    const ROOM: usize = 256 << 10;
    const PART: usize = 120 << 10;
    let limits = ServerLimits { unread_each: ROOM, unread: 4 * ROOM, ..ServerLimits::default() };
    let address = server(limits).await;
    // Each sends a part of a message that is to be longer.
    for is_socket in [false, true] {
        let mut streams = Vec::new();
        for number in 0..4 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let (head, part) = if is_socket {
                let whole = frame(0x81, &[b' '; 2 * PART]);
                (upgrade().replace(TOKEN, OTHER_TOKEN), whole[..PART].to_vec())
            } else {
                let head = format!(
                    "POST /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OTHER_TOKEN}\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    2 * PART
                );
                (head, vec![b' '; PART])
            };
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&part).await.unwrap();
            if number < 2 {
                until_unread(address, |bytes| bytes > (number + 1) * (PART - (24 << 10))).await;
                streams.push(stream);
            } else {
                let answer = until_closed(&mut stream).await;
                let answer = String::from_utf8_lossy(&answer);
                assert!(is_socket || answer.starts_with("HTTP/1.1 503 "), "{answer}");
            }
        }
        assert!(unread_bytes(address).await <= ROOM);
        // Others do not notice.
        is_well(address).await;
        drop(streams);
        until_unread(address, |bytes| bytes == 0).await;
    }
}

#[tokio::test]
async fn what_an_agent_does_not_take_counts_until_it_does() {
    let limits = ServerLimits { unread_each: 128 << 10, ..ServerLimits::default() };
    let (go_on, wait) = tokio::sync::watch::channel(false);
    let address = serve_with(limits, move |client: Accepted| {
        let mut wait = wait.clone();
        async move {
            let (mut reader, _writer) = client.transport.into_streams();
            let _ = wait.wait_for(|is| *is).await;
            let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        }
    })
    .await;
    let mut sockets = Vec::new();
    let long = [b" ".repeat(60 << 10), GREETING.to_vec()].concat();
    for _ in 0..3 {
        let mut socket = socket(address).await;
        socket.write_all(&frame(0x81, &long)).await.unwrap();
        sockets.push(socket);
        until_unread(address, |bytes| bytes >= (long.len() * sockets.len()).min(120 << 10)).await;
    }
    // Two are in; of the third, no more than there is room for.
    assert!(unread_bytes(address).await <= 128 << 10);
    go_on.send(true).unwrap();
    until_unread(address, |bytes| bytes == 0).await;
}

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
    let words = "there are too many connections already".to_owned();
    assert_eq!(refused.unwrap_err(), attache_http::RemoteError::RefusedBecause { status: 503, words });
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
    let new = if cfg!(windows) {
        &br#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"C:/tmp","mcpServers":[]}}"#[..]
    } else {
        &br#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#[..]
    };
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
    let (address, open) = common::counting_server(limits).await;
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
    let session = session.session(common::CWD).open().await.unwrap();
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

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A connection over which the answer to a question came that anybody may ask.
async fn stranger(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(HEALTH).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 200"));
    stream
}

#[tokio::test]
async fn a_connection_without_a_token_goes_when_its_time_is_over_and_one_with_it_stays() {
    let limits = ServerLimits { request: Duration::from_millis(300), ..ServerLimits::default() };
    let address = server(limits).await;
    let mut strangers = Vec::new();
    for _ in 0..3 {
        strangers.push(stranger(address).await);
    }
    let mut client = socket(address).await;
    for stranger in &mut strangers {
        in_time(until_closed(stranger)).await;
    }
    client.write_all(&frame(0x81, GREETING)).await.unwrap();
    in_time(client.read_u8()).await.unwrap();
    is_well(address).await;
}

#[tokio::test]
async fn connections_without_a_token_are_few_and_the_oldest_makes_room() {
    let limits = ServerLimits { strangers: 3, request: Duration::from_secs(600), ..ServerLimits::default() };
    let address = server(limits).await;
    // Clients are none of them.
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(socket(address).await);
    }
    let mut oldest = stranger(address).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(stranger(address).await);
    }
    in_time(until_closed(&mut oldest)).await;
    for other in &mut others {
        other.write_all(HEALTH).await.unwrap();
        in_time(other.read_u8()).await.unwrap();
    }
    for client in &mut clients {
        client.write_all(&frame(0x81, GREETING)).await.unwrap();
        in_time(client.read_u8()).await.unwrap();
    }
    is_well(address).await;
}

#[tokio::test]
async fn messages_are_numbered_from_one() {
    let address = server(ServerLimits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAttache-Message: 0\r\nContent-Length: {}\r\n\r\n",
        GREETING.len()
    );
    stream.write_all(&[head.as_bytes(), GREETING].concat()).await.unwrap();
    let answer = String::from_utf8(until_closed(&mut stream).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("Attache-Message"), "{answer}");
}

/// A server that greets, and then sends this on every stream, again and again.
async fn evil_server(event: Vec<u8>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, streams) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (counted, event) = (streams.clone(), Arc::new(event));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (counted, event) = (counted.clone(), event.clone());
            tokio::spawn(async move {
                let mut head = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    head.push(byte);
                    if head.ends_with(b"\r\n\r\n") {
                        break;
                    }
                }
                let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"_meta":{"attache/resume":true}}}"#;
                if head.starts_with(b"POST") {
                    let text = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nAcp-Connection-Id: c\r\n\
                         Connection: close\r\nContent-Length: {}\r\n\r\n{answer}",
                        answer.len()
                    );
                    return drop(stream.write_all(text.as_bytes()).await);
                }
                let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nid: {number}\n"
                );
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&event).await;
            });
        }
    });
    (address, streams)
}

async fn connect_to_evil(address: SocketAddr) -> attache_http::Connected {
    let mut connected = attache_http::Remote::new(&format!("http://{address}")).unwrap().connect().await.unwrap();
    let transport = std::mem::replace(&mut connected.transport, attache::pair().0);
    let (mut reader, mut writer) = transport.into_streams();
    writer.write_all(&[GREETING, b"\n"].concat()).await.unwrap();
    writer.flush().await.unwrap();
    tokio::spawn(async move {
        // As a program does that reads all there is.
        let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        drop(writer);
    });
    connected
}

#[tokio::test]
async fn a_server_whose_message_never_ends_is_left() {
    let mut event = b"data: ".to_vec();
    event.resize(33 << 20, b'x');
    let (address, _) = evil_server(event).await;
    let connected = connect_to_evil(address).await;
    let failed = async {
        while connected.failure.get().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    in_time(failed).await;
    assert!(matches!(connected.failure.get(), Some(attache_http::RemoteError::Lost(_))), "{:?}", connected.failure);
}

#[tokio::test]
async fn a_server_that_says_a_word_and_is_gone_is_not_followed_at_once_for_ever() {
    let event = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{}}\n\n".to_vec();
    let (address, streams) = evil_server(event).await;
    let connected = connect_to_evil(address).await;
    // Time enough for a hundred, were each followed at once.
    tokio::time::sleep(Duration::from_secs(8)).await;
    let followed = streams.load(Ordering::Relaxed);
    assert!((2..40).contains(&followed), "{followed}: {:?}", connected.failure);
}
