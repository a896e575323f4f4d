use std::time::Duration;

use attache_proto::Dialect;
use attache_proto::bridge::Bridge;
use attache_proto::json::RawJson;
use attache_proto::model::error::ErrorObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};

use super::*;

/// A relay with pipes of this size, and the far ends of its client and its agent.
fn relay(size: usize) -> (DuplexStream, DuplexStream, Relay) {
    let (client, near_client) = duplex(size);
    let (agent, near_agent) = duplex(size);
    let (client_reader, client_writer) = split(near_client);
    let (agent_reader, agent_writer) = split(near_agent);
    (client, agent, Relay::new(client_reader, client_writer, agent_reader, agent_writer))
}

/// Has the client say something and leave; returns what the agent and the client heard.
async fn check(relay_of: impl FnOnce(Relay) -> Relay, said: &[u8]) -> (Vec<u8>, Vec<u8>, Relayed) {
    let (mut client, mut agent, relay) = relay(1 << 20);
    let running = tokio::spawn(relay_of(relay).run());
    client.write_all(said).await.unwrap();
    client.shutdown().await.unwrap();
    let (mut heard, mut answers) = (Vec::new(), Vec::new());
    agent.read_to_end(&mut heard).await.unwrap();
    drop(agent);
    client.read_to_end(&mut answers).await.unwrap();
    (heard, answers, running.await.unwrap().unwrap())
}

#[tokio::test]
async fn law_6_a_relay_forwards_the_original_bytes() {
    let streams: [&[u8]; 6] = [
        b"{\"jsonrpc\":\"2.0\", \"id\" : 1.50e0 }\n",
        b"\xEF\xBB\xBF{\"a\":1}\r\n\r\n  \n[1, 2]\nhello \x1b[31m\n",
        b"not \xff utf-8\n{}\n",
        b"{\"no\":\"line end\"}",
        b"Content-Length: 7\r\nContent-Type: x\r\n\r\n{\"a\":\n1Content-Length: 2\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n{}\n",
    ];
    for stream in streams {
        let (heard, answers, relayed) = check(|relay| relay.on_message(|_, _| Verdict::Pass), stream).await;
        assert_eq!(heard.escape_ascii().to_string(), stream.escape_ascii().to_string());
        assert!(answers.is_empty());
        assert!(relayed.client_left);
    }
}

#[tokio::test]
async fn frames_are_the_same_however_the_bytes_arrive() {
    let stream = b"{\"a\":1}\n\n{\"b\":2}\r\nx\n";
    let (mut client, mut agent, relay) = relay(1024);
    let (seen, mut texts) = tokio::sync::mpsc::unbounded_channel();
    let running = tokio::spawn(
        relay
            .on_message(move |_, message| {
                seen.send(message.text().unwrap().to_owned()).unwrap();
                Verdict::Pass
            })
            .run(),
    );
    for byte in stream {
        client.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    drop(client);
    let mut heard = Vec::new();
    agent.read_to_end(&mut heard).await.unwrap();
    drop(agent);
    running.await.unwrap().unwrap();
    assert_eq!(heard, stream);
    let mut all = Vec::new();
    while let Some(text) = texts.recv().await {
        all.push(text);
    }
    assert_eq!(all, ["{\"a\":1}", "{\"b\":2}", "x"]);
}

#[tokio::test]
async fn a_hook_decides() {
    let hook = |direction, message: &RelayMessage<'_>| {
        assert_eq!(direction, Direction::ClientToAgent);
        match message.method() {
            Some("drop") => Verdict::Drop,
            Some("other params") => message.with_params(&RawJson::new("[7]").unwrap()),
            Some("change") => Verdict::Change(RawJson::new("{\"changed\":true}").unwrap()),
            Some("answer") => Verdict::Answer(Ok(RawJson::new(message.params().unwrap_or("null")).unwrap())),
            Some("refuse") => Verdict::Answer(Err(ErrorObject::new(7, "no"))),
            None if message.is_junk() => Verdict::Drop,
            _ => Verdict::Pass,
        }
    };
    let said = b"junk\n\
        {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"drop\"}\n\
        {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"change\"}\n\
        {\"jsonrpc\":\"2.0\",\"id\":\"y\",\"method\":\"other params\",\"params\":[1]}\n\
        {\"jsonrpc\":\"2.0\",\"method\":\"other params\"}\n\
        {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"answer\",\"params\":[1]}\n\
        {\"jsonrpc\":\"2.0\",\"method\":\"answer\"}\n\
        {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"refuse\"}\n\
        {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n";
    let (heard, answers, _) = check(|relay| relay.on_message(hook), said).await;
    assert_eq!(
        String::from_utf8(heard).unwrap(),
        "{\"changed\":true}\n\
         {\"jsonrpc\":\"2.0\",\"id\":\"y\",\"method\":\"other params\",\"params\":[7]}\n\
         {\"jsonrpc\":\"2.0\",\"method\":\"other params\",\"params\":[7]}\n\
         {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n"
    );
    assert_eq!(
        String::from_utf8(answers).unwrap(),
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":[1]}\n\
         {\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":7,\"message\":\"no\"}}\n"
    );
}

#[tokio::test]
async fn a_tap_writes_down_what_passes() {
    let path = std::env::temp_dir().join(format!("attache-relay-{}.jsonl", std::process::id()));
    let tap = Tap::file(&path).unwrap();
    check(|relay| relay.tap(tap), b"{\"token\":\"x\"}\n\nhello\n").await;
    let trace = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<_> = trace.lines().map(|line| line.split_once(",\"dir\"").unwrap().1).collect();
    assert_eq!(lines, [":\"out\",\"message\":{\"token\":\"…\"}}", ":\"out\",\"junk\":5}"]);
}

#[tokio::test]
async fn what_is_too_long_is_refused_and_nothing_else_is_lost() {
    let long = "x".repeat(500_000);
    let said = format!(
        "{{\"a\":\"{long}\"}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"m\",\"params\":[\"{long}\"]}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{long}\"}}\n\
         {{}}\n"
    );
    let refusal = |id, code| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":\"message is longer than the limit\"}}}}\n"
        )
    };
    let (heard, answers, relayed) = check(|relay| relay.limit(1000), said.as_bytes()).await;
    // Whoever waits for the response gets an error in its place.
    assert_eq!(String::from_utf8(heard).unwrap(), refusal("7", -32603) + "{}\n");
    assert_eq!(String::from_utf8(answers).unwrap(), refusal("null", -32600) + &refusal("\"x\"", -32600));
    assert_eq!(relayed.too_long, 3);

    let first = "Content-Length: 2\r\n\r\n{}";
    let said = format!("{first}Content-Length: 200000\r\n\r\n{}{first}", &long[..200_000]);
    let (heard, answers, _) = check(|relay| relay.limit(1000), said.as_bytes()).await;
    assert_eq!(String::from_utf8(heard).unwrap(), first.repeat(2));
    assert!(answers.starts_with(b"Content-Length: "));
}

#[tokio::test]
async fn a_slow_side_slows_the_other() {
    let (mut client, agent, relay) = relay(1024);
    let running = tokio::spawn(relay.run());
    let line = format!("{}\n", "x".repeat(1023));
    // The agent reads nothing: what the relay takes is bounded.
    let mut taken = 0;
    while tokio::time::timeout(Duration::from_millis(50), client.write_all(line.as_bytes())).await.is_ok() {
        taken += line.len();
        assert!(taken < 300_000, "the relay takes everything");
    }
    drop(agent);
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_end_of_either_side_ends_both() {
    let (mut client, agent, relay) = relay(1024);
    let running = tokio::spawn(relay.run());
    drop(agent);
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.unwrap();
    assert!(!running.await.unwrap().unwrap().client_left);

    // The agent goes on talking when the client has said all it wants to say.
    let (mut client, mut agent, relay) = self::relay(1024);
    let running = tokio::spawn(relay.run());
    client.shutdown().await.unwrap();
    agent.read_to_end(&mut heard).await.unwrap();
    agent.write_all(b"{\"last\":1}\n").await.unwrap();
    drop(agent);
    client.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"{\"last\":1}\n");
    assert!(running.await.unwrap().unwrap().client_left);
}

#[tokio::test]
async fn a_bridge_translates_on_the_way() {
    let (client, agent, relay) = relay(4096);
    let running = tokio::spawn(relay.bridged(Bridge::new(Dialect::V1)).run());
    let (client_reader, mut client_writer) = split(client);
    let (agent_reader, mut agent_writer) = split(agent);
    let mut client_lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(client_reader));
    let mut agent_lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(agent_reader));
    client_writer
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"initialize\",\"params\":{\"protocolVersion\":2,\"info\":{\"name\":\"c\",\"version\":\"1\"}}}\n")
        .await
        .unwrap();
    let asked = agent_lines.next_line().await.unwrap().unwrap();
    assert!(asked.contains("\"protocolVersion\":1,\"clientInfo\""), "{asked}");
    agent_writer
        .write_all(b"a banner\n{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}\n")
        .await
        .unwrap();
    let answer = client_lines.next_line().await.unwrap().unwrap();
    assert!(answer.starts_with("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"protocolVersion\":2,\"info\""), "{answer}");
    // A request is under way when the agent dies: it fails, it does not hang.
    client_writer
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"session/new\",\"params\":{\"cwd\":\"/p\"}}\n")
        .await
        .unwrap();
    agent_lines.next_line().await.unwrap().unwrap();
    drop((agent_lines, agent_writer));
    let answer = client_lines.next_line().await.unwrap().unwrap();
    assert!(answer.contains("\"id\":6,\"error\""), "{answer}");
    let relayed = running.await.unwrap().unwrap();
    assert!(!relayed.client_left);
    assert_eq!(relayed.reports, ["message is not JSON"]);
}

#[tokio::test]
async fn an_agent_that_asks_when_its_client_has_left_is_heard_to_its_end() {
    let (mut client, mut agent, relay) = relay(1024);
    let (noted, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let hook = move |_, message: &RelayMessage<'_>| match message.method() {
        Some("ask") => {
            noted.send(()).unwrap();
            Verdict::Answer(Ok(RawJson::empty_object()))
        }
        _ => Verdict::Pass,
    };
    let running = tokio::spawn(relay.on_message(hook).run());
    client.shutdown().await.unwrap();
    let mut heard = String::new();
    agent.read_to_string(&mut heard).await.unwrap();
    agent.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ask\"}\n").await.unwrap();
    asked.recv().await.unwrap();
    let _ = agent.write_all(b"{\"last\":\"words\"}\n").await;
    drop(agent);
    client.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "{\"last\":\"words\"}\n");
    running.await.unwrap().unwrap();
}
