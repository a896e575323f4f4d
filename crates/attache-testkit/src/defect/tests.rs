//! What defects do to the messages of a peer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

use super::*;

/// A peer, and whoever talks to it through a defect.
struct Ends {
    peer: BufReader<DuplexStream>,
    other: BufReader<DuplexStream>,
}

fn ends(defect: &Defect) -> Ends {
    let (peer, theirs) = duplex(4096);
    Ends { peer: BufReader::new(peer), other: BufReader::new(defect.before(theirs)) }
}

async fn send(end: &mut BufReader<DuplexStream>, line: &str) {
    end.write_all(format!("{line}\n").as_bytes()).await.unwrap();
}

async fn line(end: &mut BufReader<DuplexStream>) -> String {
    let mut line = String::new();
    end.read_line(&mut line).await.unwrap();
    line.trim_end().to_owned()
}

#[tokio::test]
async fn without_a_defect_nothing_changes() {
    let mut ends = ends(&Defect::none());
    send(&mut ends.other, r#"{"id":1,"method":"m"}"#).await;
    send(&mut ends.other, "no JSON").await;
    assert_eq!(line(&mut ends.peer).await, r#"{"id":1,"method":"m"}"#);
    assert_eq!(line(&mut ends.peer).await, "no JSON");
    ends.other.shutdown().await.unwrap();
    assert_eq!(line(&mut ends.peer).await, "");
    send(&mut ends.peer, r#"{"id":1,"result":{}}"#).await;
    assert_eq!(line(&mut ends.other).await, r#"{"id":1,"result":{}}"#);
    drop(ends.peer);
    assert_eq!(ends.other.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn answers_are_told_apart_by_the_method_that_was_asked() {
    let mut ends = ends(&Defect::in_results("a", |result| *result = json!("altered")));
    for (id, method) in [(1, "a"), (2, "b"), (3, "a")] {
        send(&mut ends.other, &json!({"id": id, "method": method}).to_string()).await;
        line(&mut ends.peer).await;
    }
    // The peer's own request has the same id, and is not what is answered.
    send(&mut ends.peer, r#"{"id":2,"method":"a"}"#).await;
    send(&mut ends.peer, r#"{"id":2,"result":0}"#).await;
    send(&mut ends.peer, r#"{"id":1,"result":0}"#).await;
    send(&mut ends.peer, r#"{"error":{},"id":3}"#).await;
    for expected in [
        r#"{"id":2,"method":"a"}"#,
        r#"{"id":2,"result":0}"#,
        r#"{"id":1,"result":"altered"}"#,
        r#"{"error":{},"id":3}"#,
    ] {
        assert_eq!(line(&mut ends.other).await, expected);
    }
}

#[tokio::test]
async fn messages_are_altered_left_out_doubled_and_put_off() {
    let defect = Defect::in_messages(|memory, message| match message["n"].as_u64() {
        Some(0) => Vec::new(),
        Some(1) => vec![Flow::from_peer(message.clone()), Flow::from_peer(message)],
        Some(2) => {
            memory.keep("two", message);
            Vec::new()
        }
        Some(3) => vec![Flow::from_peer(message), Flow::from_peer(memory.take("two"))],
        _ => vec![Flow::line(Way::FromPeer, "oops"), Flow::close(Way::FromPeer)],
    });
    let mut ends = ends(&defect);
    for n in 0..5 {
        send(&mut ends.peer, &json!({"n": n}).to_string()).await;
    }
    let mut all = String::new();
    ends.other.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "{\"n\":1}\n{\"n\":1}\n{\"n\":3}\n{\"n\":2}\noops\n");
}

#[tokio::test(start_paused = true)]
async fn what_is_late_keeps_nothing_waiting() {
    let defect = Defect::in_messages(|memory, message| {
        let flow = Flow::from_peer(message);
        vec![if memory.is_first("late") { flow.after(Duration::from_secs(9)) } else { flow }]
    });
    let mut ends = ends(&defect);
    send(&mut ends.peer, "1").await;
    send(&mut ends.peer, "2").await;
    assert_eq!(line(&mut ends.other).await, "2");
    assert_eq!(line(&mut ends.other).await, "1");
}

#[tokio::test]
async fn a_defect_answers_in_place_of_its_peer_and_sees_text() {
    let defect = Defect::answering("m", |memory, request| json!([memory.count("m"), request["params"]]))
        .and_to_text(|_, way, text| (text == b"ping\n").then(|| vec![Flow::line(way.back(), "pong")]));
    let mut ends = ends(&defect);
    send(&mut ends.other, r#"{"id":"a","method":"m","params":{}}"#).await;
    assert_eq!(line(&mut ends.other).await, r#"{"jsonrpc":"2.0","id":"a","result":[0,{}]}"#);
    send(&mut ends.other, "ping").await;
    assert_eq!(line(&mut ends.other).await, "pong");
    send(&mut ends.other, "other").await;
    assert_eq!(line(&mut ends.peer).await, "other");
}
