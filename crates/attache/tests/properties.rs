//! What must hold for any order of events: checked with many orders from repeatable dice.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::time::Duration;

use attache::model::update::SessionUpdate;
use attache::{Client, Connection, Error, Event, Prompt, Protocol, Stop, Turn};
use attache_testkit::{Cut, Dice, Dribble, RawPeer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Fails rather than hangs.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("nothing hangs")
}

/// A client that has been greeted by a raw agent of version 1, and has some sessions open.
async fn raw_agent(sessions: usize) -> (Connection, Vec<attache::client::Session>, RawPeer) {
    let (near, far) = tokio::io::duplex(256 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = tokio::spawn(Client::new("test", "1").protocol(Protocol::V1).connect(reader, writer));
    peer.play("<-- {'id':'$init','method':'initialize'}\n--> {'id':'$init','result':{'protocolVersion':1}}").await;
    let agent = client.await.unwrap().unwrap();
    let mut open = Vec::new();
    for number in 0..sessions {
        let connection = agent.clone();
        let opening = tokio::spawn(async move { connection.session("/tmp").open().await });
        let asked = peer.expect("{'method':'session/new'}").await;
        peer.send(&format!("{{'id':{},'result':{{'sessionId':'s{number}'}}}}", asked["id"])).await;
        open.push(opening.await.unwrap().unwrap());
    }
    (agent, open, peer)
}

#[tokio::test]
async fn any_interleaving_of_sessions_keeps_each_in_order_with_the_stop_last() {
    for seed in 0..40 {
        let dice = &mut Dice::new(seed);
        let count = 1 + dice.below(5);
        let (_agent, sessions, mut peer) = raw_agent(count).await;
        let mut turns = Vec::new();
        let mut prompts = HashMap::new();
        for (number, session) in sessions.iter().enumerate() {
            turns.push(session.prompt("go").await.unwrap());
            let asked = peer.expect("{'method':'session/prompt'}").await;
            prompts.insert(number, asked["id"].clone());
        }
        let readers: Vec<_> = turns
            .into_iter()
            .map(|mut turn| {
                tokio::spawn(async move {
                    let mut words = Vec::new();
                    while let Some(event) = turn.next().await.unwrap() {
                        if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event {
                            words.push(chunk.content.as_text().unwrap().to_string());
                        }
                    }
                    (words, turn.stop().cloned())
                })
            })
            .collect();
        let mut said = vec![0; count];
        while !prompts.is_empty() {
            let number = dice.below(count);
            let Some(id) = prompts.get(&number) else { continue };
            if dice.one_in(12) {
                peer.send(&format!("{{'id':{id},'result':{{'stopReason':'end_turn'}}}}")).await;
                prompts.remove(&number);
            } else {
                let text = said[number];
                said[number] += 1;
                peer.send(&format!(
                    "{{'method':'session/update','params':{{'sessionId':'s{number}','update':{{'sessionUpdate':'agent_message_chunk','content':{{'type':'text','text':'{text}'}}}}}}}}"
                ))
                .await;
            }
        }
        for (number, reader) in readers.into_iter().enumerate() {
            let (words, stop) = in_time(reader).await.unwrap();
            let expected: Vec<String> = (0..said[number]).map(|word: usize| word.to_string()).collect();
            assert_eq!(words, expected, "seed {seed}, session {number}");
            assert_eq!(stop, Some(Stop::EndTurn), "seed {seed}, session {number}");
        }
    }
}

/// What an agent and a client say to each other in one turn, as bytes.
async fn recorded() -> (Vec<u8>, Vec<u8>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (middle_near, middle_far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent()).connect(reader, writer));
    let (mut from_agent, mut to_agent) = tokio::io::split(near);
    let (mut from_client, mut to_client) = tokio::io::split(middle_far);
    let down = tokio::spawn(async move {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            bytes.extend_from_slice(&buffer[..count]);
            to_agent.write_all(&buffer[..count]).await.unwrap();
        }
        to_agent.shutdown().await.unwrap();
        bytes
    });
    let up = tokio::spawn(async move {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from_agent.read(&mut buffer).await {
            bytes.extend_from_slice(&buffer[..count]);
            let _ = to_client.write_all(&buffer[..count]).await;
        }
        bytes
    });
    let (reader, writer) = tokio::io::split(middle_near);
    let client = Client::new("test", "1").connect(reader, writer).await.unwrap();
    converse(&client).await.unwrap();
    client.shutdown().await;
    (in_time(down).await.unwrap(), in_time(up).await.unwrap())
}

fn agent() -> impl attache::agent::Agent {
    attache::agent_fn("recorded", "1", async |turn: Turn, prompt: Prompt| {
        turn.thought("hm").await?;
        let tool = turn.tool("Work").await?;
        if turn.ask(attache::agent::Ask::new("May I?").about(&tool)).await?.is_allowed() {
            tool.complete().await?;
        }
        turn.text(prompt.text()).await?;
        Ok(Stop::EndTurn)
    })
}

async fn converse(agent: &Connection) -> Result<(), Error> {
    let session = agent.session("/tmp").open().await?;
    let mut turn = session.prompt("some words").await?;
    while let Some(event) = turn.next().await? {
        match event {
            Event::Permission(ask) => ask.allow_once().await?,
            Event::Update(_) => {}
            other => other.decline().await?,
        }
    }
    session.close().await
}

#[tokio::test]
async fn an_end_at_any_byte_ends_the_client_with_an_error_and_no_hang() {
    let (_, from_agent) = recorded().await;
    // The last byte is a line end, without which the last message is still whole.
    for length in 0..from_agent.len() - 1 {
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        // A new agent answers; what it says is cut off after `length` bytes.
        let (agent_near, agent_far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(agent_far);
        tokio::spawn(attache::serve(agent()).connect(reader, writer));
        let (from_agent, mut to_agent) = tokio::io::split(agent_near);
        let mut from_agent = Cut::new(from_agent, length);
        let relay = tokio::spawn(async move {
            let (mut from_client, mut to_client) = tokio::io::split(&mut far);
            let up = async {
                let _ = tokio::io::copy(&mut from_agent, &mut to_client).await;
                let _ = to_client.shutdown().await;
            };
            let down = async {
                let _ = tokio::io::copy(&mut from_client, &mut to_agent).await;
            };
            tokio::join!(up, down);
        });
        let (reader, writer) = tokio::io::split(near);
        let outcome = in_time(async {
            let client = Client::new("test", "1").connect(reader, writer).await?;
            converse(&client).await
        })
        .await;
        assert!(matches!(outcome, Err(Error::Closed(_))), "cut after {length} bytes: {outcome:?}");
        relay.abort();
    }
}

#[tokio::test]
async fn an_end_at_any_byte_ends_the_agent_and_no_hang() {
    let (from_client, _) = recorded().await;
    for length in 0..from_client.len() {
        let (mut near, far) = tokio::io::duplex(256 * 1024);
        let (reader, writer) = tokio::io::split(Dribble::new(far, 7));
        let served = tokio::spawn(attache::serve(agent()).connect(reader, writer));
        near.write_all(&from_client[..length]).await.unwrap();
        near.shutdown().await.unwrap();
        in_time(served).await.unwrap().unwrap();
        // Every whole request was answered, and what was written is whole messages.
        let mut said = String::new();
        near.read_to_string(&mut said).await.unwrap();
        for line in said.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
}
