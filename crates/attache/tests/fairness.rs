//! Law 11: every session has its own room. All in one test, one after the other, because the counters of memory count
//! the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use attache::{Client, Error, Event, Limits, Prompt, Protocol, Stop, Turn};
use attache_testkit::{CountingAllocator, RawPeer};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Fails rather than hangs.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("nothing hangs")
}

#[tokio::test]
async fn law_11_every_session_has_its_own_room() {
    one_of_two_hundred_is_never_read().await;
    a_client_that_opens_everything_and_reads_nothing().await;
    an_agent_that_asks_for_everything_and_reads_nothing().await;
    questions_that_wait_take_no_more_than_they_may().await;
}

/// 200 sessions: one is never read and is sent ten times its quota, the others stream to their end.
async fn one_of_two_hundred_is_never_read() {
    const QUOTA: usize = 64 * KIB;
    let agent = attache::agent_fn("streaming", "1", async |turn: Turn, prompt: Prompt| {
        let size = if prompt.text() == "flood" { 10 * QUOTA } else { 32 * KIB };
        for _ in 0..size / KIB {
            turn.text("x".repeat(KIB)).await?;
            tokio::task::yield_now().await;
        }
        Ok(Stop::EndTurn)
    });
    let (near, far) = attache::pair();
    tokio::spawn(attache::serve(agent).over(far));
    let limits = Limits::default().session(QUOTA).overdraft(QUOTA);
    let agent = Client::new("test", "1").limits(limits).over(near).await.unwrap();
    let unread = agent.session("/").open().await.unwrap();
    let flooded = unread.prompt("flood").await.unwrap();
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..199 {
        let session = agent.session("/").open().await.unwrap();
        streams.spawn(async move { session.prompt("stream").await.unwrap().text().await.unwrap().len() });
    }
    while let Some(length) = in_time(streams.join_next()).await {
        assert_eq!(length.unwrap(), 32 * KIB, "all of it came");
    }
    let read = in_time(flooded.text()).await;
    assert!(matches!(&read, Err(Error::SessionOverflow { session: Some(id), .. }) if id == unread.id()), "{read:?}");
    assert!(agent.session("/").open().await.is_ok(), "the connection lives on");
}

/// A client that opens as many sessions, prompts and lists as it may, with fat params, and reads nothing.
async fn a_client_that_opens_everything_and_reads_nothing() {
    let agent = attache::agent_fn("patient", "1", async |turn: Turn, _: Prompt| {
        turn.text("x".repeat(64 * KIB)).await?;
        turn.cancelled().await;
        Ok(Stop::EndTurn)
    });
    let limits = Limits::default().open_requests(2 * MIB).outbox(64 * KIB);
    let bound = limits.open_requests + limits.outbox;
    let (near, far) = tokio::io::duplex(64 * KIB);
    let (reader, writer) = tokio::io::split(far);
    let server = tokio::spawn(attache::serve(agent).limits(limits).connect(reader, writer));
    let (mut reader, mut writer) = tokio::io::split(near);
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let fat = "y".repeat(8 * KIB);
    let initialize = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#;
    writer.write_all(format!("{initialize}\n").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    assert!(in_time(reader.read(&mut answer)).await.unwrap() > 0);
    let before = CountingAllocator::live();
    CountingAllocator::take_peak();
    for id in 0..3000 {
        let message = match id % 3 {
            0 => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"session/new","params":{{"cwd":"/","_meta":{{"fat":"{fat}"}}}}}}"#
            ),
            1 => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list","params":{{"_meta":{{"fat":"{fat}"}}}}}}"#
            ),
            _ => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"no","prompt":[{{"type":"text","text":"{fat}"}}]}}}}"#
            ),
        };
        // The agent stops reading when nobody reads what it has to answer.
        let message = format!("{message}\n");
        let written = writer.write_all(message.as_bytes());
        let is_slow = tokio::time::timeout(Duration::from_millis(200), written).await.is_err();
        if is_slow {
            break;
        }
    }
    let most = CountingAllocator::take_peak() - before;
    eprintln!("agent whose client opens everything and reads nothing: {} KiB", most / KIB);
    assert!(most < bound + 2 * MIB, "{most}");
    drop((reader, writer));
    let _ = in_time(server).await;
}

/// An agent that has the most file reads open that it may, of 1 MiB each, and reads nothing.
async fn an_agent_that_asks_for_everything_and_reads_nothing() {
    let (near, far) = tokio::io::duplex(64 * KIB);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let limits = Limits::default().in_hand(4);
    let client = Client::new("test", "1").protocol(Protocol::V1).read_files().limits(limits.clone());
    let client = tokio::spawn(client.connect(reader, writer));
    peer.play("<-- {'id':'$init','method':'initialize'}\n--> {'id':'$init','result':{'protocolVersion':1}}").await;
    let agent = client.await.unwrap().unwrap();
    let opening = tokio::spawn(async move { (agent.session("/").open().await.unwrap(), agent) });
    peer.play("<-- {'id':'$new','method':'session/new'}\n--> {'id':'$new','result':{'sessionId':'s'}}").await;
    let (session, _agent) = opening.await.unwrap();
    // Each read is answered by a task of its own, which has the whole file in memory.
    let answering = tokio::spawn(async move {
        while let Ok(event) = session.next().await {
            let Event::ReadTextFile(call) = event else { continue };
            tokio::spawn(async move {
                let content = "z".repeat(MIB);
                let _ = call.reply(Ok(attache::model::fs::ReadTextFileResponse::new(content))).await;
            });
        }
    });
    let before = CountingAllocator::live();
    CountingAllocator::take_peak();
    for id in 0..1000 {
        peer.send(&format!("{{'id':{id},'method':'fs/read_text_file','params':{{'sessionId':'s','path':'/f'}}}}"))
            .await;
    }
    // The client is at rest once it has handed out what it may.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let most = CountingAllocator::take_peak() - before;
    eprintln!("client whose agent asks for everything and reads nothing: {} KiB", most / KIB);
    // Those in hand hold a file each, and the first answer is in the outbox twice while it grows.
    assert!(most < limits.in_hand * MIB + 4 * MIB + limits.outbox + 2 * MIB, "{most}");
    answering.abort();
}

/// Permission requests with fat titles that queue behind the first one.
async fn questions_that_wait_take_no_more_than_they_may() {
    let (near, far) = tokio::io::duplex(64 * KIB);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let limits = Limits::default().open_requests(MIB);
    let client = Client::new("test", "1").protocol(Protocol::V1).limits(limits.clone());
    let client = tokio::spawn(client.connect(reader, writer));
    peer.play("<-- {'id':'$init','method':'initialize'}\n--> {'id':'$init','result':{'protocolVersion':1}}").await;
    let agent = client.await.unwrap().unwrap();
    let opening = tokio::spawn(async move { (agent.session("/").open().await.unwrap(), agent) });
    peer.play("<-- {'id':'$new','method':'session/new'}\n--> {'id':'$new','result':{'sessionId':'s'}}").await;
    let (session, _agent) = opening.await.unwrap();
    let waiting = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = waiting.clone();
    let asking = tokio::spawn(async move {
        while let Ok(event) = session.next().await {
            kept.lock().unwrap().push(event);
        }
    });
    let before = CountingAllocator::live();
    let title = "t".repeat(32 * KIB);
    let mut refused = 0;
    for id in 0..200 {
        peer.send(&format!("{{'id':{id},'method':'session/request_permission','params':{{'sessionId':'s','toolCall':{{'toolCallId':'c','title':'{title}'}},'options':[{{'optionId':'y','name':'Yes','kind':'allow_once'}}]}}}}")).await;
        if id >= 40 {
            let answer = peer.next().await.unwrap();
            refused += usize::from(answer["error"]["code"] == -32029);
        }
    }
    let most = CountingAllocator::live().saturating_sub(before);
    eprintln!("client with questions that wait: {} KiB, {refused} refused", most / KIB);
    assert!(refused > 100, "{refused}");
    assert!(most < limits.open_requests + 2 * MIB, "{most}");
    asking.abort();
    waiting.lock().unwrap().clear();
}
