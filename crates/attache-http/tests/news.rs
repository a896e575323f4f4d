//! What a client is told of its connection: that it is lost and back, that the server stops; and when a server learns of tokens,
//! readiness and what has arrived.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use attache::{Client, Connection, Event, Protocol};
use attache_http::{
    Failure, HttpServer, LinkNews, Listener, Principal, Remote, RemoteError, ServerLimits, TokenDigest, Tokens,
};
use common::{SCHEMES, TOKEN, agent, connect, in_time, numbers, tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};

/// A client that passes on what it is told of its connection.
async fn listening(url: &str) -> (Connection, Failure, mpsc::UnboundedReceiver<LinkNews>) {
    let (sender, news) = mpsc::unbounded_channel();
    let remote = Remote::new(url).unwrap().token(TOKEN).on_news(move |news| _ = sender.send(news));
    let connected = in_time(remote.connect()).await.unwrap();
    let client = Client::new("test", "1").protocol(Protocol::V1);
    let agent = in_time(client.over(connected.transport)).await.unwrap();
    (agent, connected.failure, news)
}

/// A wire that can be switched off: what goes through it breaks, and whoever comes is sent away.
async fn switch(server: SocketAddr) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, is_on) = watch::channel(true);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut is_on = is_on.clone();
            if !*is_on.borrow() {
                continue;
            }
            tokio::spawn(async move {
                let Ok(mut server) = TcpStream::connect(server).await else { return };
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = is_on.wait_for(|is| !is) => {}
                }
            });
        }
    });
    (address, sender)
}

/// Reads a turn to its end, and returns its text.
async fn text_of(turn: &mut attache::client::Turn) -> String {
    let mut text = String::new();
    while let Some(event) = in_time(turn.next()).await.unwrap() {
        if let Event::Update(attache::model::update::SessionUpdate::AgentMessageChunk(chunk)) = event {
            text.push_str(chunk.content.as_text().unwrap_or_default());
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_lost_and_back_is_told_of_once() {
    let server = common::server(ServerLimits::default()).await;
    for scheme in SCHEMES {
        let (address, wire) = switch(server).await;
        let (agent, _, mut news) = listening(&format!("{scheme}://{address}")).await;
        let session = in_time(agent.session(common::CWD).open()).await.unwrap();
        wire.send_replace(false);
        assert_eq!(in_time(news.recv()).await, Some(LinkNews::Lost), "{scheme}");
        wire.send_replace(true);
        assert_eq!(in_time(news.recv()).await, Some(LinkNews::Back), "{scheme}");
        let mut turn = in_time(session.prompt("count 5")).await.unwrap();
        assert_eq!(text_of(&mut turn).await, numbers(5));
        assert_eq!(news.try_recv(), Err(mpsc::error::TryRecvError::Empty), "{scheme}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_says_so_to_those_who_are_there_and_to_those_who_come() {
    for scheme in SCHEMES {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let limits = ServerLimits { shutdown: Duration::from_millis(600), ..ServerLimits::default() };
        let server = HttpServer::new(tokens()).limits(limits);
        let server = tokio::spawn(server.serve_until(Listener::tcp(listener), agent, async move {
            let _ = stopped.await;
        }));
        let (agent, failure, mut news) = listening(&url).await;
        let session = in_time(agent.session(common::CWD).open()).await.unwrap();
        let mut turn = in_time(session.prompt("hang")).await.unwrap();
        assert!(matches!(in_time(turn.next()).await.unwrap(), Some(Event::Update(_))));
        stop.send(()).unwrap();
        assert_eq!(in_time(news.recv()).await, Some(LinkNews::Stopping), "{scheme}");
        // The turn ends, one way or the other; then the connection does.
        while let Ok(Some(_)) = in_time(turn.next()).await {}
        in_time(server).await.unwrap().unwrap();
        in_time(async {
            while failure.get().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(failure.get(), Some(&RemoteError::Stopping), "{scheme}");
    }
}

#[tokio::test]
async fn the_words_of_a_refusal_are_told() {
    for (body, expected) in [
        ("the server is stopping", RemoteError::Stopping),
        (
            "there are too many connections already",
            RemoteError::RefusedBecause { status: 503, words: "there are too many connections already".into() },
        ),
        ("<html>a page of a proxy</html>", RemoteError::Refused(503)),
    ] {
        for scheme in SCHEMES {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("{scheme}://{}", listener.local_addr().unwrap());
            let answer = format!("HTTP/1.1 503 Busy\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            tokio::spawn(async move {
                while let Ok((mut client, _)) = listener.accept().await {
                    let mut request = [0; 4096];
                    let _ = client.read(&mut request).await;
                    let _ = client.write_all(answer.as_bytes()).await;
                }
            });
            let remote = Remote::new(&url).unwrap().token(TOKEN);
            let error = match in_time(remote.connect()).await {
                Err(error) => error,
                Ok(connected) => {
                    assert!(in_time(Client::new("test", "1").over(connected.transport)).await.is_err());
                    connected.failure.get().unwrap().clone()
                }
            };
            assert_eq!(error, expected, "{scheme}");
        }
    }
}

#[tokio::test]
async fn a_token_that_has_just_come_is_known_at_once_and_guessing_reads_seldom() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tokens, reads, is_ready) = (Tokens::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
    let (known, counted, ready) = (tokens.clone(), reads.clone(), is_ready.clone());
    let server = HttpServer::new(tokens)
        .refresh(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            known.replace([(Principal::new("anna"), TokenDigest::of(TOKEN))]);
        })
        .readiness(move || ready.load(Ordering::Relaxed));
    tokio::spawn(server.serve(Listener::tcp(listener), agent));
    for scheme in SCHEMES {
        drop(connect(scheme, address, Protocol::V1).await);
    }
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    let started = Instant::now();
    for _ in 0..50 {
        let remote = Remote::new(&format!("http://{address}")).unwrap().token("guessed");
        assert_eq!(in_time(remote.check()).await, Err(RemoteError::Unauthorized(401)));
    }
    let most = started.elapsed().as_millis() / 100 + 2;
    assert!(reads.load(Ordering::Relaxed) as u128 <= most, "{reads:?} {most}");
    in_time(Remote::new(&format!("ws://{address}")).unwrap().token(TOKEN).check()).await.unwrap();
    for (is, status) in [(true, "200"), (false, "503")] {
        is_ready.store(is, Ordering::Relaxed);
        let mut wire = TcpStream::connect(address).await.unwrap();
        wire.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        in_time(wire.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_little_room_is_told_soon_enough_what_has_arrived() {
    // Less than the messages after which a client tells at once.
    let limits = ServerLimits { outgoing: 2 << 10, stalled: Duration::from_secs(10), ..ServerLimits::default() };
    let server = common::server(limits).await;
    for scheme in SCHEMES {
        let agent = connect(scheme, server, Protocol::V1).await;
        let session = in_time(agent.session(common::CWD).open()).await.unwrap();
        let mut turn = in_time(session.prompt("count 40")).await.unwrap();
        assert_eq!(text_of(&mut turn).await, numbers(40), "{scheme}");
    }
}
