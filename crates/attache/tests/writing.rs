//! Who writes and when: the connection's task, or a sender that flushes. The wire must not show the difference.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use attache::model::content::{Annotations, ContentBlock, TextContent};
use attache::model::update::SessionUpdate;
use attache::{Client, Error, Event, Limits, Prompt, Protocol, Stop, Turn};
use attache_testkit::{Dribble, RawPeer};
use tokio::io::{AsyncWrite, AsyncWriteExt};

const SENDERS: usize = 16;
const MESSAGES: usize = 60;

/// Fails rather than hangs.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("nothing hangs")
}

/// Begins something, and drops it if it is not done at once.
async fn give_up_soon<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Says what it has to say, in order. Flushes and some pieces in between are begun and dropped.
async fn speak(turn: Turn, sender: usize) -> Result<(), Error> {
    for number in 0..MESSAGES {
        turn.text(format!("{sender} {number} {}", "x".repeat(number))).await?;
        match number % 4 {
            0 => turn.flush().await?,
            1 => drop(give_up_soon(turn.flush()).await),
            2 => drop(give_up_soon(turn.text("perhaps")).await),
            _ => {}
        }
    }
    Ok(())
}

async fn many_senders_on_a_narrow_pipe() {
    let agent = attache::agent_fn("many", "1", async |turn: Turn, _: Prompt| {
        let senders: Vec<_> = (0..SENDERS).map(|sender| tokio::spawn(speak(turn.clone(), sender))).collect();
        for sender in senders {
            sender.await.unwrap()?;
        }
        Ok(Stop::EndTurn)
    });
    let (near, far) = tokio::io::duplex(100);
    let (reader, writer) = tokio::io::split(far);
    let limits = Limits::default().outbox(1024);
    tokio::spawn(attache::serve(agent).limits(limits).connect(reader, Dribble::new(writer, 7)));
    let (reader, writer) = tokio::io::split(near);
    let agent = in_time(Client::new("test", "1").connect(reader, writer)).await.unwrap();
    let session = in_time(agent.session("/tmp").open()).await.unwrap();
    let mut turn = in_time(session.prompt("go")).await.unwrap();
    let mut next = [0; SENDERS];
    while let Some(event) = in_time(turn.next()).await.unwrap() {
        let Event::Update(update) = event else { panic!("{event:?}") };
        let SessionUpdate::AgentMessageChunk(chunk) = &update else { continue };
        let text = chunk.content.as_text().unwrap();
        if text == "perhaps" {
            continue;
        }
        let mut words = text.split(' ');
        let mut number = || words.next().unwrap().parse::<usize>().unwrap();
        let (sender, number) = (number(), number());
        assert_eq!(number, next[sender], "of sender {sender}");
        assert_eq!(words.next().unwrap().len(), number);
        next[sender] += 1;
    }
    assert_eq!(next, [MESSAGES; SENDERS]);
}

#[tokio::test]
async fn law_3_every_sender_gets_room_and_the_wire_stays_whole_in_one_thread() {
    many_senders_on_a_narrow_pipe().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_3_every_sender_gets_room_and_the_wire_stays_whole_in_several_threads() {
    many_senders_on_a_narrow_pipe().await;
}

#[tokio::test]
async fn pieces_of_a_message_differ_in_their_text_alone() {
    let speak = async |turn: Turn, _: Prompt| {
        for text in ["one", "two \"text\":\"\"", "", "vier\n\u{1}ü"] {
            turn.text(text).await?;
        }
        for text in ["hm", "hm", "hm"] {
            turn.thought(text).await?;
        }
        turn.text("five").await?;
        let noted = TextContent::new("six").annotations(Box::new(Annotations::new()));
        turn.content(ContentBlock::Text(noted)).await?;
        turn.text("seven").await?;
        turn.text("eight").await?;
        Ok(Stop::EndTurn)
    };
    for protocol in [Protocol::V1, Protocol::V2Draft, Protocol::V2] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(attache::serve(attache::agent_fn("pieces", "1", speak)).connect(reader, writer));
        let (reader, writer) = tokio::io::split(near);
        let client = Client::new("test", "1").protocol(protocol);
        let agent = in_time(client.connect(reader, writer)).await.unwrap();
        let session = in_time(agent.session("/tmp").open()).await.unwrap();
        let mut turn = in_time(session.prompt("go")).await.unwrap();
        let mut said = Vec::new();
        while let Some(event) = in_time(turn.next()).await.unwrap() {
            let (mark, chunk) = match event {
                Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => ("", chunk),
                Event::Update(SessionUpdate::AgentThoughtChunk(chunk)) => ("thought ", chunk),
                _ => continue,
            };
            let ContentBlock::Text(content) = &chunk.content else { panic!("{chunk:?}") };
            assert_eq!(content.annotations.is_some(), content.text == "six");
            let id = chunk.message_id.unwrap();
            let number = id.as_str().rsplit('_').next().unwrap().to_owned();
            said.push(format!("{mark}{number} {}", content.text));
        }
        // Version 2 counts the prompt too.
        let first = said[0].split(' ').next().unwrap().parse::<u32>().unwrap();
        let (second, third) = (first + 1, first + 2);
        let expected = [
            format!("{first} one"),
            format!("{first} two \"text\":\"\""),
            format!("{first} "),
            format!("{first} vier\n\u{1}ü"),
            format!("thought {second} hm"),
            format!("thought {second} hm"),
            format!("thought {second} hm"),
            format!("{third} five"),
            format!("{third} six"),
            format!("{third} seven"),
            format!("{third} eight"),
        ];
        assert_eq!(said, expected, "{protocol:?}");
    }
}

/// Takes everything at once, and keeps answers.
#[derive(Clone, Default)]
struct FastWriter(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for FastWriter {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if String::from_utf8_lossy(bytes).contains("result") {
            self.0.lock().unwrap().extend_from_slice(bytes);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl FastWriter {
    /// Waits for something to be written, and returns what there is.
    async fn wait_for(&self, what: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
            if text.contains(what) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn law_9_a_turn_that_flushes_into_a_fast_pipe_hears_of_its_cancel() {
    // Nothing but fairness makes the sender stop for the reader, which has only this thread.
    let agent = attache::agent_fn("fast", "1", async |turn: Turn, _: Prompt| {
        while !turn.is_cancelled() {
            turn.text("x").await?;
            turn.flush().await?;
        }
        Ok(Stop::EndTurn)
    });
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let writer = FastWriter::default();
    tokio::spawn(attache::serve(agent).connect(far, writer.clone()));
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let new = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#;
    near.write_all(format!("{initialize}\n{new}\n").as_bytes()).await.unwrap();
    let opened = in_time(writer.wait_for("sess_")).await;
    let id = &opened[opened.find("sess_").unwrap()..][.."sess_".len() + 16];
    let params = format!(r#""params":{{"sessionId":"{id}","prompt":[]}}"#);
    let prompt = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"session/prompt",{params}}}"#);
    near.write_all(format!("{prompt}\n").as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let cancel = format!(r#"{{"jsonrpc":"2.0","method":"session/cancel",{params}}}"#);
    near.write_all(format!("{cancel}\n").as_bytes()).await.unwrap();
    in_time(writer.wait_for("cancelled")).await;
}

/// How a conversation begins, up to a prompt.
const PROMPTED: &str = r#"
    --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
    <-- {'id':0,'result':{}}
    --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
    <-- {'id':1,'result':{'sessionId':'$session'}}
    --> {'id':2,'method':'session/prompt','params':{'sessionId':'$session','prompt':[]}}
"#;

#[tokio::test]
async fn a_flush_to_a_peer_that_is_gone_fails() {
    let (told, mut tell) = tokio::sync::mpsc::unbounded_channel();
    let agent = attache::agent_fn("left", "1", move |turn: Turn, _: Prompt| {
        let told = told.clone();
        async move {
            loop {
                turn.text("still there?").await?;
                if let Err(error) = turn.flush().await {
                    told.send(error.clone()).unwrap();
                    return Err(error.into());
                }
            }
        }
    });
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.play(PROMPTED).await;
    peer.next().await.unwrap();
    drop(peer);
    assert!(matches!(in_time(tell.recv()).await.unwrap(), Error::Closed(_)));
}

#[cfg(unix)]
#[tokio::test]
async fn the_stream_ends_although_a_handle_is_kept() {
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let agent = attache::agent_fn("keeper", "1", move |turn: Turn, _: Prompt| {
        *keep.lock().unwrap() = Some(turn);
        async { Ok(Stop::EndTurn) }
    });
    // A pipe knows no shutdown: nothing but closing the descriptor ends it.
    let (writer, output) = tokio::net::unix::pipe::pipe().unwrap();
    let (reader, input) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(attache::serve(agent).connect(reader, writer));
    let mut peer = RawPeer::new(tokio::io::join(output, input));
    peer.play(PROMPTED).await;
    peer.expect(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#).await;
    peer.close().await;
    in_time(server).await.unwrap().unwrap();
    assert!(in_time(peer.next()).await.is_none());
    let turn = kept.lock().unwrap().take().unwrap();
    assert!(matches!(turn.text("too late").await, Err(Error::Closed(_))));
    assert!(matches!(turn.flush().await, Ok(()) | Err(Error::Closed(_))));
}
