//! What the tests share: a server with an agent that does a bit of everything, and a wire that can be cut.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "every test uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::agent::Ask;
use attache::{Client, Connection, Event, Prompt, Protocol, Stop, Turn};
use attache_http::{Accepted, HttpServer, Listener, Principal, Remote, ServerLimits, TokenDigest, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const TOKEN: &str = "the-token-of-anna";
pub(crate) const OTHER_TOKEN: &str = "the-token-of-bert";
pub(crate) const PROTOCOLS: [Protocol; 3] = [Protocol::V1, Protocol::V2Draft, Protocol::V2];
/// A directory that is absolute here. No agent of these tests looks at it.
pub(crate) const CWD: &str = if cfg!(windows) { "C:/tmp" } else { "/tmp" };
pub(crate) const SCHEMES: [&str; 2] = ["http", "ws"];

/// Fails rather than hangs.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("nothing hangs")
}

pub(crate) fn tokens() -> Tokens {
    Tokens::new([
        (Principal::new("anna"), TokenDigest::of(TOKEN)),
        (Principal::new("bert"), TokenDigest::of(OTHER_TOKEN)),
    ])
}

/// A server on loopback; ends with the test's runtime.
pub(crate) async fn server(limits: ServerLimits) -> SocketAddr {
    serve_with(limits, agent).await
}

pub(crate) async fn serve_with<F, W>(limits: ServerLimits, accept: F) -> SocketAddr
where
    F: Fn(Accepted) -> W + Send + Sync + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(HttpServer::new(tokens()).limits(limits).serve(Listener::tcp(listener), accept));
    address
}

/// A server that counts the agents that run.
pub(crate) async fn counting_server(limits: ServerLimits) -> (SocketAddr, Arc<AtomicUsize>) {
    let running = Arc::new(AtomicUsize::new(0));
    let counted = running.clone();
    let address = serve_with(limits, move |client| {
        let running = counted.clone();
        async move {
            running.fetch_add(1, Ordering::Relaxed);
            agent(client).await;
            running.fetch_sub(1, Ordering::Relaxed);
        }
    });
    (address.await, running)
}

/// Does what its prompt says: `count N` sends N numbers, `ask` asks for permission and reads a file, `hang` waits for a cancel.
pub(crate) async fn agent(client: Accepted) {
    let agent = attache::agent_fn("tester", "1", async |turn: Turn, prompt: Prompt| {
        let text = prompt.text().to_owned();
        if let Some(count) = text.strip_prefix("count ") {
            for number in 0..count.parse::<usize>()? {
                turn.text(format!("{number},")).await?;
            }
        } else if text == "ask" {
            let allowed = turn.ask(Ask::new("May I?")).await?.is_allowed();
            turn.text(if allowed { "yes" } else { "no" }).await?;
        } else if text == "hang" {
            turn.text("waiting").await?;
            turn.cancelled().await;
        } else {
            turn.text(text).await?;
        }
        Ok(Stop::EndTurn)
    });
    let _ = attache::serve(agent).over(client.transport).await;
}

pub(crate) async fn connect(scheme: &str, address: SocketAddr, protocol: Protocol) -> Connection {
    let remote = Remote::new(&format!("{scheme}://{address}")).unwrap().token(TOKEN);
    let connected = in_time(remote.connect()).await.unwrap();
    let client = Client::new("test", "1").protocol(protocol);
    match in_time(client.over(connected.transport)).await {
        Ok(connection) => connection,
        Err(error) => panic!("{error:?}: {:?}", connected.failure.get()),
    }
}

/// A turn with permission, answered by yes.
pub(crate) async fn turn_with_permission(agent: &Connection) {
    let session = in_time(agent.session(CWD).open()).await.unwrap();
    let mut turn = in_time(session.prompt("ask")).await.unwrap();
    let mut text = String::new();
    while let Some(event) = in_time(turn.next()).await.unwrap() {
        match event {
            Event::Permission(ask) => ask.allow_once().await.unwrap(),
            Event::Update(update) => {
                if let attache::model::update::SessionUpdate::AgentMessageChunk(chunk) = update {
                    text.push_str(chunk.content.as_text().unwrap_or_default());
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text, "yes");
}

pub(crate) fn numbers(count: usize) -> String {
    (0..count).map(|number| format!("{number},")).collect()
}

/// A wire between a client and a server that is cut when so many bytes have passed one way.
pub(crate) struct Cutter {
    pub(crate) address: SocketAddr,
    /// Connections that were made, and how many were cut.
    pub(crate) made: Arc<AtomicUsize>,
    pub(crate) cut: Arc<AtomicUsize>,
}

/// Which way the bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// A wire to `server` that is cut, once, after `after` bytes of all connections together.
pub(crate) async fn cutter(server: SocketAddr, way: Way, after: usize) -> Cutter {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (made, cut) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (made_here, cut_here) = (made.clone(), cut.clone());
    let passed = Arc::new(AtomicUsize::new(0));
    let (broken, _) = tokio::sync::watch::channel(false);
    let broken = Arc::new(broken);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            made_here.fetch_add(1, Ordering::Relaxed);
            let (passed, cut, broken) = (passed.clone(), cut_here.clone(), broken.clone());
            tokio::spawn(async move {
                let Ok(server) = TcpStream::connect(server).await else { return };
                let is_new = cut.load(Ordering::Relaxed) > 0;
                let mut breaking = broken.subscribe();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let up =
                    pass(&mut from_client, &mut to_server, (way == Way::ToServer).then_some((&passed, &cut, after)));
                let down =
                    pass(&mut from_server, &mut to_client, (way == Way::ToClient).then_some((&passed, &cut, after)));
                let lost = async {
                    if is_new {
                        std::future::pending::<()>().await;
                    }
                    let _ = breaking.wait_for(|is| *is).await;
                };
                tokio::select! {
                    was_cut = up => if was_cut { broken.send_replace(true); },
                    was_cut = down => if was_cut { broken.send_replace(true); },
                    () = lost => {}
                }
            });
        }
    });
    Cutter { address, made, cut }
}

/// Passes bytes on; `true` when this was the place to cut.
async fn pass(
    from: &mut tokio::net::tcp::OwnedReadHalf,
    to: &mut tokio::net::tcp::OwnedWriteHalf,
    cut: Option<(&AtomicUsize, &AtomicUsize, usize)>,
) -> bool {
    let mut buffer = vec![0; 4096];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else {
            // One end has closed: so does the other, in time.
            let _ = to.shutdown().await;
            return std::future::pending().await;
        };
        let mut length = read;
        if let Some((passed, cut, after)) = cut
            && cut.load(Ordering::Relaxed) == 0
        {
            let before = passed.fetch_add(read, Ordering::Relaxed);
            if before + read > after {
                length = after.saturating_sub(before);
                if cut.fetch_add(1, Ordering::Relaxed) == 0 {
                    let _ = to.write_all(&buffer[..length]).await;
                    return true;
                }
            }
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return false;
        }
    }
}
