//! Exact figures: allocations a message, and memory when nobody reads.
//!
//! All in one test, one after the other, because the counters count the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::{Client, Limits, Prompt, Protocol, Stop, Turn};
use attache_testkit::{CountingAllocator, RawPeer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MIB: usize = 1024 * 1024;
const MESSAGES: usize = 2000;

#[tokio::test]
async fn figures() {
    let (sending_text, sending_tools) = (sending("text").await, sending("tool").await);
    let (receiving_text, receiving_tools) = (receiving(&chunk()).await, receiving(&tool_call()).await);
    eprintln!("allocations to send a text chunk: {sending_text}, a 4 KiB tool call update: {sending_tools}");
    eprintln!("allocations to receive a text chunk: {receiving_text}, a 4 KiB tool call update: {receiving_tools}");
    assert_eq!((sending_text, sending_tools), (1, 3), "to send");
    assert_eq!((receiving_text, receiving_tools), (2, 4), "to receive");
    let unread = never_reads().await;
    eprintln!("memory with 1 GiB offered to a peer that never reads: {} KiB", unread / 1024);
    let stalled = stalled_consumer().await;
    eprintln!("memory with 1 GiB offered to a consumer that never reads: {} KiB", stalled / 1024);
    let limits = Limits::default();
    assert!(unread < limits.outbox + 4 * MIB, "{unread}");
    assert!(stalled < limits.session + 4 * MIB, "{stalled}");
}

/// Allocations an update on the sending side, the text itself included.
async fn sending(what: &'static str) -> usize {
    let counted = Arc::new(AtomicUsize::new(0));
    let count = counted.clone();
    let agent = attache::agent_fn("counted", "1", move |turn: Turn, _: Prompt| {
        let count = count.clone();
        async move {
            let tool = turn.tool("Work").await?;
            let text = "x".repeat(4096);
            turn.text("warm").await?;
            turn.flush().await?;
            let before = CountingAllocator::count();
            for _ in 0..MESSAGES {
                match what {
                    "text" => {
                        turn.text("eighty bytes of text or so, which is what a model sends at a time, in words.")
                            .await?
                    }
                    _ => {
                        let content = attache::model::tool::ToolCallContent::from(
                            attache::model::content::ContentBlock::text(text.clone()),
                        );
                        let content = attache::model::Patch::Set(vec![content]);
                        tool.update(tool.blank().with(|update| update.content = content)).await?;
                    }
                }
            }
            count.store(CountingAllocator::count() - before, Ordering::Relaxed);
            tool.complete().await?;
            Ok(Stop::EndTurn)
        }
    });
    let (mut near, far) = tokio::io::duplex(MIB);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#,
    ] {
        near.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("sess_") {
        let length = near.read(&mut buffer).await.unwrap();
        seen.extend_from_slice(&buffer[..length]);
    }
    let text = String::from_utf8(seen).unwrap();
    let start = text.find("sess_").unwrap();
    let id = &text[start..start + 21];
    let prompt = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"{id}\",\"prompt\":[]}}}}\n"
    );
    near.write_all(prompt.as_bytes()).await.unwrap();
    while counted.load(Ordering::Relaxed) == 0 {
        // The reader allocates nothing.
        let length = near.read(&mut buffer).await.unwrap();
        assert!(length > 0);
    }
    counted.load(Ordering::Relaxed) / MESSAGES
}

fn chunk() -> String {
    let text = "eighty bytes of text or so, which is what a model sends at a time, in words.";
    update(&format!(
        r#"{{"sessionUpdate":"agent_message_chunk","messageId":"msg_1","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

fn tool_call() -> String {
    let text = "x".repeat(4096);
    update(&format!(
        r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{{"type":"content","content":{{"type":"text","text":"{text}"}}}}]}}"#
    ))
}

fn update(update: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#) + "\n"
}

/// A client with an open session, and the raw agent at the other end.
async fn raw_agent(limits: Limits) -> (attache::client::Session, RawPeer) {
    let (near, far) = tokio::io::duplex(4 * MIB);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = Client::new("test", "1").protocol(Protocol::V1).limits(limits);
    let client = tokio::spawn(client.connect(reader, writer));
    peer.play("<-- {'id':'$init','method':'initialize'}\n--> {'id':'$init','result':{'protocolVersion':1}}").await;
    let agent = client.await.unwrap().unwrap();
    let opening = tokio::spawn(async move { agent.session("/tmp").open().await });
    peer.play("<-- {'id':'$new','method':'session/new'}\n--> {'id':'$new','result':{'sessionId':'s'}}").await;
    (opening.await.unwrap().unwrap(), peer)
}

/// Allocations an update on the receiving side, up to the session's inbox.
async fn receiving(message: &str) -> usize {
    let (session, mut peer) = raw_agent(Limits::default().session(64 * MIB)).await;
    let batch = message.repeat(50);
    peer.send_bytes(batch.as_bytes()).await;
    for _ in 0..50 {
        session.next().await.unwrap();
    }
    let before = CountingAllocator::count();
    for _ in 0..MESSAGES / 50 {
        peer.send_bytes(batch.as_bytes()).await;
        for _ in 0..50 {
            session.next().await.unwrap();
        }
    }
    (CountingAllocator::count() - before) / MESSAGES
}

/// The memory that an agent takes whose client never reads.
async fn never_reads() -> usize {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let agent = attache::agent_fn("flood", "1", move |turn: Turn, _: Prompt| {
        let count = count.clone();
        async move {
            for _ in 0..1024 * 1024 {
                turn.text("x".repeat(1024)).await?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Stop::EndTurn)
        }
    });
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0}
         --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':1,'result':{'sessionId':'$s'}}",
    )
    .await;
    let before = CountingAllocator::live();
    CountingAllocator::take_peak();
    peer.play("--> {'id':2,'method':'session/prompt','params':{'sessionId':'$s','prompt':[]}}").await;
    settle(&sent).await;
    CountingAllocator::take_peak() - before
}

/// The memory that a client takes whose own code never reads.
async fn stalled_consumer() -> usize {
    let (session, mut peer) = raw_agent(Limits::default()).await;
    let before = CountingAllocator::live();
    CountingAllocator::take_peak();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let message = update(&format!(
        r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{}"}}}}"#,
        "x".repeat(1024)
    ));
    let flood = tokio::spawn(async move {
        for _ in 0..1024 * 1024 {
            peer.send_bytes(message.as_bytes()).await;
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    settle(&sent).await;
    flood.abort();
    let peak = CountingAllocator::take_peak() - before;
    drop(session);
    // The pipe itself belongs to the test.
    peak.saturating_sub(4 * MIB)
}

/// Waits until the producer has come to a stop.
async fn settle(sent: &AtomicUsize) {
    let mut last = usize::MAX;
    while last != sent.load(Ordering::Relaxed) || last == 0 {
        last = sent.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(last < 100_000, "the producer was stopped, after {last} messages");
}
