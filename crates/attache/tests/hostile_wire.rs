//! What a peer can do to a connection below the protocol: speak out of turn, not read, not answer, leave.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::client::Session;
use attache::draft::Batch;
use attache::model::error::ErrorObject;
use attache::model::fs::ReadTextFileResponse;
use attache::model::session::ListSessionsRequest;
use attache::relay::{Direction, Relay, Verdict};
use attache::{Client, Closed, Connection, Error, Event, Limits, Prompt, Protocol, Stop, Turn};
use attache_testkit::RawPeer;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex, split};
use tokio::time::{sleep, timeout};

/// How long something may take before it counts as hanging. Time stands still in most tests here while anybody can go on.
const PATIENCE: Duration = Duration::from_secs(10);

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("nothing hangs")
}

/// Lets everybody go on as far as they can, where time stands still.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

const V1: &str = "{'protocolVersion':1}";
const DRAFT: &str = "{'protocolVersion':2,'agentInfo':{'name':'a','version':'1'},'capabilities':{'session':{}}}";

fn client(protocol: Protocol) -> Client {
    Client::new("test", "1").protocol(protocol)
}

/// A client of an agent that is played, with session `s` open.
async fn connect(client: Client, initialized: &str) -> (Connection, Session, RawPeer) {
    let (near, far) = duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = split(near);
    let client = tokio::spawn(client.connect(reader, writer));
    peer.play(&format!("<-- {{'id':'$init','method':'initialize'}}\n--> {{'id':'$init','result':{initialized}}}"))
        .await;
    let agent = client.await.unwrap().unwrap();
    let opening = agent.clone();
    let opening = tokio::spawn(async move { opening.session("/").open().await.unwrap() });
    peer.play("<-- {'id':'$new','method':'session/new'}\n--> {'id':'$new','result':{'sessionId':'s'}}").await;
    (agent, opening.await.unwrap(), peer)
}

/// A piece of what an agent says in session `s`.
fn update(text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )
}

/// Serves something to a client that is played, with session `$session` open.
async fn serve(server: impl FnOnce(DuplexStream)) -> RawPeer {
    let (near, far) = duplex(64 * 1024);
    server(far);
    let mut peer = RawPeer::new(near);
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0,'result':{'protocolVersion':1}}
         --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':1,'result':{'sessionId':'$session'}}",
    )
    .await;
    peer
}

/// A call that waits for room in the outbox is handed out when there is room.
#[tokio::test(start_paused = true)]
async fn a_call_behind_a_long_answer_is_handed_out() {
    let (_agent, session, mut peer) = connect(client(Protocol::V1).read_files(), V1).await;
    let mut turn = session.prompt("go").await.unwrap();
    peer.play(
        "<-- {'id':'$p','method':'session/prompt'}
         --> {'id':100,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/a'}}
         --> {'id':101,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/b'}}",
    )
    .await;
    let Some(Event::ReadTextFile(first)) = turn.next().await.unwrap() else { panic!() };
    first.reply(Ok(ReadTextFileResponse::new("x".repeat(1 << 20)))).await.unwrap();
    // Spawned, because a timeout looks once more when its time is up: only a wake-up counts.
    let second = tokio::spawn(async move { turn.next().await.unwrap() });
    settle().await;
    peer.expect("{'id':100}").await;
    let second = in_time(second).await.unwrap();
    assert!(matches!(second, Some(Event::ReadTextFile(_))), "{second:?}");
}

/// A request that comes while the outbox is full is served when there is room.
#[tokio::test(start_paused = true)]
async fn a_job_behind_a_long_message_is_run() {
    let agent = attache::agent_fn("long", "1", async |turn: Turn, _: Prompt| {
        turn.text("x".repeat(1 << 20)).await?;
        turn.cancelled().await;
        Ok(Stop::EndTurn)
    });
    let mut client = serve(|wire| {
        let (reader, writer) = split(wire);
        tokio::spawn(attache::serve(agent).connect(reader, writer));
    })
    .await;
    client.play("--> {'id':2,'method':'session/prompt','params':{'sessionId':'$session','prompt':[]}}").await;
    settle().await;
    client.play("--> {'id':3,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}").await;
    settle().await;
    in_time(client.play("<-- {'method':'session/update'}\n<-- {'id':3,'result':{}}")).await;
}

/// However long our own messages are, a peer that reads them may speak meanwhile.
#[tokio::test(start_paused = true)]
async fn an_agent_may_speak_while_a_long_prompt_is_written() {
    let (_agent, session, mut peer) = connect(client(Protocol::V1), V1).await;
    let text = tokio::spawn(async move { session.prompt("y".repeat(20 << 20)).await.unwrap().text().await });
    settle().await;
    peer.send_bytes(format!("{}\n", update("busy")).as_bytes()).await;
    settle().await;
    in_time(peer.play("<-- {'id':'$p','method':'session/prompt'}\n--> {'id':'$p','result':{'stopReason':'end_turn'}}"))
        .await;
    assert_eq!(in_time(text).await.unwrap().unwrap(), "busy");
}

/// A peer that makes us answer and does not read is left, whether it asks one by one or in batches.
#[tokio::test(start_paused = true)]
async fn law_3_a_peer_that_asks_and_does_not_read_is_left() {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
    for message in [request.to_owned(), format!("[{}]", vec![request; 500].join(",")), "[1]".to_owned()] {
        let limits = Limits::default().outbox(4096).overdraft(64 * 1024);
        let (agent, _session, peer) = connect(client(Protocol::V1).limits(limits), V1).await;
        let flood = tokio::spawn(async move {
            let mut peer = peer;
            // Until nobody reads it any more.
            loop {
                peer.send_bytes(format!("{message}\n").as_bytes()).await;
            }
        });
        let closed = in_time(agent.next()).await;
        assert!(matches!(closed, Err(Error::Closed(Closed::NotReading))), "{closed:?}");
        flood.abort();
    }
}

/// An agent's last words are delivered, even if they wait in the pipe while something is sent to it in vain.
#[tokio::test]
async fn what_an_agent_wrote_before_it_exited_is_delivered() {
    // Fills the quota of the session, and a part of the pipe.
    let script = format!(
        r#"read line; echo '{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":1}}}}'
        read line; echo '{{"jsonrpc":"2.0","id":1,"result":{{"sessionId":"s"}}}}'
        read line
        i=0; while [ $i -lt 200 ]; do echo '{}'; i=$((i+1)); done
        echo '{{"jsonrpc":"2.0","id":2,"result":{{"stopReason":"end_turn"}}}}'"#,
        update(&"x".repeat(150))
    );
    let limits = Limits::default().session(16 * 1024);
    let agent = client(Protocol::V1).limits(limits).launch(["sh", "-c", &script]).await.unwrap();
    let session = agent.session("/").open().await.unwrap();
    let turn = session.prompt("go").await.unwrap();
    // Sends until the agent's end of the pipe is closed and that is known.
    let failed = timeout(2 * PATIENCE, async {
        while agent.notify_extension("_hello", &["?"]).await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    failed.await.expect("the agent exits");
    let mut count = 0;
    while let Ok(Event::Update(_)) = in_time(session.next()).await {
        count += 1;
    }
    drop(turn);
    assert_eq!(count, 200);
}

/// A relay whose agent does not read what it is answered ends when its client leaves.
#[tokio::test(start_paused = true)]
async fn a_relay_ends_when_its_client_is_gone() {
    let (client, near_client) = duplex(1024);
    let (agent, near_agent) = duplex(1024);
    let (client_reader, client_writer) = split(near_client);
    let (agent_reader, agent_writer) = split(near_agent);
    let relay =
        Relay::new(client_reader, client_writer, agent_reader, agent_writer).on_message(|direction, message| {
            match direction {
                Direction::AgentToClient if message.is_request() => {
                    Verdict::Answer(Err(ErrorObject::method_not_found(None)))
                }
                _ => Verdict::Pass,
            }
        });
    let relay = tokio::spawn(relay.run());
    let (_unread, mut asking) = split(agent);
    tokio::spawn(async move {
        while asking.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n").await.is_ok() {}
    });
    settle().await;
    drop(client);
    let relayed = in_time(relay).await.unwrap().unwrap();
    assert!(relayed.client_left);
}

/// A relay that cannot write to its agent still sees its client leave.
#[tokio::test(start_paused = true)]
async fn a_relay_to_an_agent_that_hangs_ends_with_its_client() {
    for later in [0, 3] {
        let (mut client, near_client) = duplex(1024);
        let (_agent, near_agent) = duplex(1024);
        let (client_reader, client_writer) = split(near_client);
        let (agent_reader, agent_writer) = split(near_agent);
        let relay = tokio::spawn(Relay::new(client_reader, client_writer, agent_reader, agent_writer).run());
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[\"{}\"]}}\n", "y".repeat(2000));
        in_time(client.write_all(line.as_bytes())).await.unwrap();
        // More comes when the relay already waits for the agent.
        for _ in 0..later {
            settle().await;
            in_time(client.write_all(line.as_bytes())).await.unwrap();
        }
        settle().await;
        drop(client);
        let relayed = in_time(relay).await.unwrap().unwrap();
        assert!(relayed.client_left);
    }
}

/// An agent that is slow to read gets all that its client said, although the client has left meanwhile.
#[tokio::test(start_paused = true)]
async fn a_relay_to_a_slow_agent_delivers_what_its_client_said() {
    let (mut client, near_client) = duplex(1024);
    let (mut agent, near_agent) = duplex(1024);
    let (client_reader, client_writer) = split(near_client);
    let (agent_reader, agent_writer) = split(near_agent);
    let relay = tokio::spawn(Relay::new(client_reader, client_writer, agent_reader, agent_writer).run());
    let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[\"{}\"]}}\n", "y".repeat(20_000));
    in_time(client.write_all(line.as_bytes())).await.unwrap();
    drop(client);
    let mut heard = Vec::new();
    let mut bytes = [0; 1000];
    loop {
        sleep(Duration::from_millis(500)).await;
        match tokio::io::AsyncReadExt::read(&mut agent, &mut bytes).await.unwrap() {
            0 => break,
            count => heard.extend_from_slice(&bytes[..count]),
        }
    }
    assert_eq!(heard.len(), line.len());
    drop(agent);
    in_time(relay).await.unwrap().unwrap();
}

/// Reading goes on while somebody waits for room: the agent may have to write all it has before it reads.
#[tokio::test(start_paused = true)]
async fn law_1_waiting_for_room_is_waiting_too() {
    for is_paused_before in [false, true] {
        let limits = Limits::default().session(256 * 1024);
        let (agent, session, mut peer) = connect(client(Protocol::V1).limits(limits), V1).await;
        let _turn = session.prompt("go").await.unwrap();
        peer.play("<-- {'id':'$p','method':'session/prompt'}").await;
        // It writes 1 MiB, and only then reads. Nobody takes what it writes.
        let writing = tokio::spawn(async move {
            let line = format!("{}\n", update(&"x".repeat(1000)));
            for _ in 0..1000 {
                peer.send_bytes(line.as_bytes()).await;
            }
            while peer.next().await.is_some() {}
        });
        if is_paused_before {
            settle().await;
        }
        let long = vec!["y".repeat(512 * 1024)];
        for method in ["_one", "_two", "_three"] {
            in_time(agent.notify_extension(method, &long)).await.unwrap();
        }
        writing.abort();
    }
}

/// An entry of a batch takes the room of an entry, not of the whole batch.
#[tokio::test(start_paused = true)]
async fn law_3_a_batch_counts_as_much_as_it_is_long() {
    let (agent, session, mut peer) = connect(client(Protocol::V1), V1).await;
    // Somebody waits for something else, so reading does not pause.
    let waiting = tokio::spawn(async move { agent.call_extension::<()>("_x", &["?"]).await });
    peer.play("<-- {'id':'$x','method':'_x'}").await;
    let batch = format!("[{}]\n", vec![update(&"x".repeat(10_000)); 100].join(","));
    peer.send_bytes(batch.as_bytes()).await;
    settle().await;
    peer.play("--> {'id':'$x','result':null}").await;
    in_time(waiting).await.unwrap().unwrap();
    for _ in 0..100 {
        in_time(session.next()).await.unwrap();
    }
}

/// Requests of a batch that is refused as a whole, or is too long to be sent, are answered.
#[tokio::test(start_paused = true)]
async fn law_4_a_batch_that_is_refused_is_answered() {
    for (refuses, length) in [(true, 1), (true, 3), (false, 1001)] {
        let echo = attache::agent_fn("echo", "1", async |_: Turn, _: Prompt| Ok(Stop::EndTurn));
        let (near, far) = attache::pair();
        let server = attache::serve(echo);
        tokio::spawn(if refuses { server.refuse_batches() } else { server }.over(far));
        let agent = client(Protocol::V2Draft).over(near).await.unwrap();
        let mut batch = Batch::new();
        let answers: Vec<_> = (0..length).map(|_| batch.call(&ListSessionsRequest::new())).collect();
        let sent = agent.send_batch(batch).await;
        assert_eq!(sent.is_ok(), refuses, "{sent:?}");
        for answer in answers {
            let answer = in_time(answer).await;
            assert_eq!(matches!(answer, Err(Error::Refused(_))), refuses, "{answer:?}");
        }
    }
}

/// The answer to a request of a batch is waited for as long as any other.
#[tokio::test(start_paused = true)]
async fn a_request_of_a_batch_times_out() {
    let limits = Limits::default().request_timeout(Some(Duration::from_secs(1)));
    let (agent, _session, mut peer) = connect(client(Protocol::V2Draft).limits(limits), DRAFT).await;
    let mut batch = Batch::new();
    let answer = batch.call(&ListSessionsRequest::new());
    agent.send_batch(batch).await.unwrap();
    let sent = peer.next().await.unwrap();
    let answer = in_time(answer).await;
    assert!(matches!(answer, Err(Error::TimedOut(_))), "{answer:?}");
    let told = in_time(peer.expect("{'method':'$/cancel_request'}")).await;
    assert_eq!(told["params"]["requestId"], sent[0]["id"]);
}

/// The agent is told when the answer to a request of a batch is not waited for any more, or never was.
#[tokio::test(start_paused = true)]
async fn law_4_a_dropped_answer_of_a_batch_is_cancelled() {
    let (agent, _session, mut peer) = connect(client(Protocol::V2Draft), DRAFT).await;
    let mut batch = Batch::new();
    let kept = batch.call(&ListSessionsRequest::new());
    let dropped = batch.call(&ListSessionsRequest::new());
    drop(batch.call(&ListSessionsRequest::new()));
    agent.send_batch(batch).await.unwrap();
    drop(dropped);
    let sent = peer.next().await.unwrap();
    for number in [2, 1] {
        let told = in_time(peer.expect("{'method':'$/cancel_request'}")).await;
        assert_eq!(told["params"]["requestId"], sent[number]["id"]);
    }
    let answer = format!(r#"[{{"jsonrpc":"2.0","id":{},"result":{{"sessions":[]}}}}]"#, sent[0]["id"]);
    peer.send_bytes(format!("{answer}\n").as_bytes()).await;
    assert!(in_time(kept).await.unwrap().sessions.is_empty());
}

/// A cancel comes after its request, also within a batch.
#[tokio::test(start_paused = true)]
async fn law_9_a_cancel_behind_its_request_in_a_batch_counts() {
    let agent = attache::agent_fn("slow", "1", async |_: Turn, _: Prompt| Ok(Stop::EndTurn));
    let mut client = serve(|wire| {
        let (reader, writer) = split(wire);
        let server = attache::serve(agent).extension("_slow", async |_: (), _| {
            std::future::pending::<()>().await;
            Ok(())
        });
        tokio::spawn(server.connect(reader, writer));
    })
    .await;
    client.play("--> [{'jsonrpc':'2.0','id':5,'method':'_slow'},{'jsonrpc':'2.0','method':'$/cancel_request','params':{'requestId':5}}]").await;
    let answer = in_time(client.next()).await.unwrap();
    assert_eq!(answer[0]["error"]["code"], -32800, "{answer}");
}

/// Where a trace is written in tests.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is called a key is left out of a trace, and so is a variable that happens to be called `name`.
#[tokio::test(start_paused = true)]
async fn a_trace_leaves_out_what_is_called_a_key() {
    let written = Written::default();
    let client = client(Protocol::V1).trace(attache::trace::Tap::new(written.clone()));
    let (agent, _session, mut peer) = connect(client, V1).await;
    let login = serde_json::json!({
        "key": "sk-1", "openai_key": "sk-2", "apiKeys": ["sk-3"], "env": {"name": "sk-4"},
        "tokens": ["sk-5"], "secrets": {"a": "sk-6"}, "headers": [{"name": {"a": "sk-7"}}],
    });
    agent.notify_extension("_login", &login).await.unwrap();
    peer.play("<-- {'method':'_login'}").await;
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("_login") && !text.contains("sk-"), "{text}");
}
