//! A connection that is cut, anywhere, is taken up again: nothing is lost, and nothing is done twice.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::model::update::SessionUpdate;
use attache::{Client, Event, Prompt, Protocol, Stop, Turn};
use attache_http::{Accepted, Remote, ServerLimits};
use common::{SCHEMES, TOKEN, Way, cutter, in_time, numbers, serve_with};

/// How often prompts were taken.
type Prompts = Arc<AtomicUsize>;

/// Counts its prompts, asks for permission and counts to forty.
async fn agent(client: Accepted, prompts: Prompts) {
    let agent = attache::agent_fn("tester", "1", move |turn: Turn, prompt: Prompt| {
        let prompts = prompts.clone();
        async move {
            prompts.fetch_add(1, Ordering::Relaxed);
            let allowed = turn.ask(attache::agent::Ask::new("May I?")).await?.is_allowed();
            assert!(allowed);
            for number in 0..40 {
                turn.text(format!("{number},")).await?;
            }
            turn.text(prompt.text().to_owned()).await?;
            Ok(Stop::EndTurn)
        }
    });
    let _ = attache::serve(agent).over(client.transport).await;
}

/// Opens a session and has three turns, each with a question and forty pieces of text.
async fn converse(url: &str) -> Result<(), String> {
    let remote = Remote::new(url).unwrap().token(TOKEN);
    let connected = in_time(remote.connect()).await.map_err(|error| format!("connect: {error}"))?;
    let failure = connected.failure.clone();
    let said = |what: &str, error: String| format!("{what}: {error}, {:?}", failure.get());
    let client = Client::new("test", "1").protocol(Protocol::V1);
    let agent = in_time(client.over(connected.transport)).await.map_err(|error| said("greet", format!("{error:?}")))?;
    let session =
        in_time(agent.session(common::CWD).open()).await.map_err(|error| said("open", format!("{error:?}")))?;
    for round in 0..3 {
        let prompt = format!("round {round}");
        let turn = in_time(session.prompt(prompt.as_str())).await;
        let mut turn = turn.map_err(|error| said("prompt", format!("{error:?}")))?;
        let mut text = String::new();
        let mut asked = 0;
        while let Some(event) = in_time(turn.next()).await.map_err(|error| said("turn", format!("{error:?}")))? {
            match event {
                Event::Permission(ask) => {
                    asked += 1;
                    ask.allow_once().await.map_err(|error| said("answer", format!("{error:?}")))?;
                }
                Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                    text.push_str(chunk.content.as_text().unwrap_or_default());
                }
                _ => {}
            }
        }
        assert_eq!((asked, text), (1, format!("{}{prompt}", numbers(40))), "{url}");
    }
    Ok(())
}

/// Cuts the wire after every so many bytes, one way, and has the same conversation each time.
async fn cut_everywhere(scheme: &str, way: Way, start: usize, step: usize) -> usize {
    let prompts = Prompts::default();
    let counted = prompts.clone();
    let server = serve_with(ServerLimits::default(), move |client| agent(client, counted.clone())).await;
    let (mut after, mut cuts) = (start, 0);
    loop {
        let wire = cutter(server, way, after).await;
        prompts.store(0, Ordering::Relaxed);
        let result = converse(&format!("{scheme}://{}", wire.address)).await;
        if wire.cut.load(Ordering::Relaxed) == 0 {
            result.unwrap();
            return cuts;
        }
        cuts += 1;
        result.unwrap_or_else(|error| panic!("{scheme}, cut {way:?} after {after} bytes: {error}"));
        assert_eq!(prompts.load(Ordering::Relaxed), 3, "{scheme}, cut {way:?} after {after} bytes");
        after += step;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_that_is_cut_anywhere_loses_and_repeats_nothing() {
    // After the handshake: a server that was never reached is not tried again.
    let up = cut_everywhere("ws", Way::ToServer, 260, 17).await;
    let down = cut_everywhere("ws", Way::ToClient, 260, 211).await;
    assert!(up > 40 && down > 60, "{up} {down}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streamable_http_that_is_cut_anywhere_loses_and_repeats_nothing() {
    let up = cut_everywhere("http", Way::ToServer, 0, 61).await;
    let down = cut_everywhere("http", Way::ToClient, 0, 211).await;
    assert!(up > 40 && down > 60, "{up} {down}");
}

#[tokio::test]
async fn a_client_that_never_comes_back_is_let_go() {
    let limits = ServerLimits { away: Duration::from_millis(300), ..ServerLimits::default() };
    let (server, open) = common::counting_server(limits).await;
    for scheme in SCHEMES {
        // The wire is cut, and nobody can come back by it.
        let wire = cutter(server, Way::ToServer, usize::MAX).await;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = format!("{scheme}://{}", wire.address);
        runtime.spawn(async move {
            let connected = Remote::new(&url).unwrap().token(TOKEN).connect().await.unwrap();
            let agent = Client::new("test", "1").over(connected.transport).await.unwrap();
            let session = agent.session(common::CWD).open().await.unwrap();
            let turn = session.prompt("hang").await.unwrap();
            std::future::pending::<()>().await;
            drop((turn, agent));
        });
        while open.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        // As if the machine was gone: no task runs, no goodbye.
        runtime.shutdown_background();
        in_time(async {
            while open.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}
