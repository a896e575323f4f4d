//! Whole turns over both profiles, in all dialects: the laws of the library hold over every transport.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use attache::{Event, Protocol};
use attache_http::ServerLimits;
use common::{PROTOCOLS, SCHEMES, connect, in_time, numbers, server, turn_with_permission};

#[tokio::test]
async fn turns_work_over_both_profiles_in_all_dialects() {
    let address = server(ServerLimits::default()).await;
    for scheme in SCHEMES {
        for protocol in PROTOCOLS {
            let agent = connect(scheme, address, protocol).await;
            let session = in_time(agent.session("/tmp").open()).await.unwrap();
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
        let (one, other) = (agent.session("/tmp").open().await.unwrap(), agent.session("/tmp").open().await.unwrap());
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
            let session = agent.session("/tmp").open().await.unwrap();
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
        let session = agent.session("/tmp").open().await.unwrap();
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
            let session = agent.session("/tmp").open().await.unwrap();
            let text = session.prompt("count 100").await.unwrap().text().await.unwrap();
            assert_eq!(text, numbers(100));
        });
    }
    while let Some(done) = in_time(tasks.join_next()).await {
        done.unwrap();
    }
}

#[tokio::test]
async fn more_sessions_than_streams_are_served() {
    let address = server(ServerLimits { streams: 3, early_streams: 1, ..ServerLimits::default() }).await;
    let agent = connect("http", address, Protocol::V1).await;
    for number in 0..10 {
        let session = in_time(agent.session("/tmp").open()).await.unwrap();
        let text = in_time(session.prompt("count 3").await.unwrap().text()).await;
        assert_eq!(text.unwrap(), numbers(3), "session {number}");
        in_time(session.close()).await.unwrap();
    }
}
