//! Whole turns over both profiles, in all dialects: the laws of the library hold over every transport.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use attache::{Client, Event, Prompt, Protocol, Stop, Turn};
use attache_http::{ConnectError, ConnectRemote, HttpServer, Listener, Remote, RemoteError, ServeHttp, ServerLimits};
use common::{PROTOCOLS, SCHEMES, connect, in_time, numbers, server, turn_with_permission};

#[tokio::test]
async fn turns_work_over_both_profiles_in_all_dialects() {
    let address = server(ServerLimits::default()).await;
    for scheme in SCHEMES {
        for protocol in PROTOCOLS {
            let agent = connect(scheme, address, protocol).await;
            let session = in_time(agent.session(common::CWD).open()).await.unwrap();
            let text = in_time(session.prompt("count 3000").await.unwrap().text()).await.unwrap();
            assert_eq!(text, numbers(3000), "{scheme} {protocol:?}");
            turn_with_permission(&agent).await;
            in_time(agent.shutdown()).await;
        }
    }
}

#[tokio::test]
async fn law_9_a_cancel_ends_its_turn_and_no_other() {
    let address = server(ServerLimits::default()).await;
    for scheme in SCHEMES {
        let agent = connect(scheme, address, Protocol::V1).await;
        let (one, other) =
            (agent.session(common::CWD).open().await.unwrap(), agent.session(common::CWD).open().await.unwrap());
        let mut hanging = one.prompt("hang").await.unwrap();
        let also_hanging = other.prompt("hang").await.unwrap();
        assert!(matches!(in_time(hanging.next()).await.unwrap(), Some(Event::Update(_))));
        hanging.cancel().await.unwrap();
        while in_time(hanging.next()).await.unwrap().is_some() {}
        assert_eq!(hanging.stop().map(|stop| format!("{stop:?}")), Some("Cancelled".into()), "{scheme}");
        also_hanging.cancel().await.unwrap();
        in_time(also_hanging.text()).await.unwrap();
    }
}

#[tokio::test]
async fn law_1_and_11_sessions_do_not_block_each_other() {
    let address = server(ServerLimits::default()).await;
    for scheme in SCHEMES {
        let agent = connect(scheme, address, Protocol::V2).await;
        let mut turns = Vec::new();
        for _ in 0..20 {
            let session = agent.session(common::CWD).open().await.unwrap();
            turns.push((session.prompt("count 200").await.unwrap(), session));
        }
        // Read from the last to the first.
        for (turn, _session) in turns.into_iter().rev() {
            assert_eq!(in_time(turn.text()).await.unwrap(), numbers(200), "{scheme}");
        }
    }
}

#[tokio::test]
async fn law_3_a_slow_reader_slows_the_agent_and_loses_nothing() {
    let limits = ServerLimits { outgoing: 64 << 10, ..ServerLimits::default() };
    let address = server(limits).await;
    for scheme in SCHEMES {
        let agent = connect(scheme, address, Protocol::V1).await;
        let session = agent.session(common::CWD).open().await.unwrap();
        let turn = session.prompt("count 60000").await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(in_time(turn.text()).await.unwrap(), numbers(60000), "{scheme}");
    }
}

#[tokio::test]
async fn many_clients_at_once_are_served() {
    let address = server(ServerLimits::default()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..60 {
        tasks.spawn(async move {
            let agent = connect(SCHEMES[index % 2], address, Protocol::V1).await;
            let session = agent.session(common::CWD).open().await.unwrap();
            let text = session.prompt("count 100").await.unwrap().text().await.unwrap();
            assert_eq!(text, numbers(100));
        });
    }
    while let Some(done) = in_time(tasks.join_next()).await {
        done.unwrap();
    }
}

#[tokio::test]
async fn an_agent_serves_and_a_client_connects_in_one_call() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let agent = attache::agent_fn("echo", "1", async |turn: Turn, prompt: Prompt| {
        turn.text(prompt.text()).await?;
        Ok(Stop::EndTurn)
    });
    tokio::spawn(attache::serve(agent).http(HttpServer::new(common::tokens()), Listener::tcp(listener)));
    let remote = |token: &str| Remote::new(&format!("http://{address}")).unwrap().token(token);
    let agent = in_time(Client::new("test", "1").connect_remote(remote(common::TOKEN))).await.unwrap();
    let session = agent.session(common::CWD).open().await.unwrap();
    assert_eq!(in_time(session.prompt("hello").await.unwrap().text()).await.unwrap(), "hello");
    let refused = in_time(Client::new("test", "1").connect_remote(remote("wrong"))).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Remote(RemoteError::Unauthorized(401))), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_lets_running_turns_end() {
    for (scheme, protocol) in
        SCHEMES.into_iter().flat_map(|scheme| common::PROTOCOLS.map(|protocol| (scheme, protocol)))
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let accept = |client: attache_http::Accepted| async {
            let agent = attache::agent_fn("slow", "1", async |turn: Turn, _: Prompt| {
                turn.text("begun, ").await?;
                turn.unless_cancelled(tokio::time::sleep(Duration::from_millis(400))).await?;
                turn.text("done").await?;
                Ok(Stop::EndTurn)
            });
            let _ = attache::serve(agent).over(client.transport).await;
        };
        let server = HttpServer::new(common::tokens()).serve_until(Listener::tcp(listener), accept, async {
            let _ = stopped.await;
        });
        let server = tokio::spawn(server);
        let agent = connect(scheme, address, protocol).await;
        let session = agent.session(common::CWD).open().await.unwrap();
        let turn = session.prompt("go").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        stop.send(()).unwrap();
        assert_eq!(in_time(turn.text()).await.unwrap(), "begun, done", "{scheme} {protocol:?}");
        in_time(server).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn more_sessions_than_streams_are_served() {
    let address = server(ServerLimits { streams: 3, early_streams: 1, ..ServerLimits::default() }).await;
    let agent = connect("http", address, Protocol::V1).await;
    for number in 0..10 {
        let session = in_time(agent.session(common::CWD).open()).await.unwrap();
        let text = in_time(session.prompt("count 3").await.unwrap().text()).await;
        assert_eq!(text.unwrap(), numbers(3), "session {number}");
        in_time(session.close()).await.unwrap();
    }
}
