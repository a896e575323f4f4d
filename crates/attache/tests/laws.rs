//! The laws of the library, each by its number. See ARCHITECTURE.md.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::agent::{Agent, Ask, OpenRequest, Opened, Session, SessionHandle};
use attache::model::content::ContentBlock;
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::tool::ToolCallStatus;
use attache::model::update::{MessageChunk, SessionUpdate};
use attache::{Client, Closed, Connection, Error, Event, Limits, Prompt, Protocol, Report, Stop, Turn};
use attache_testkit::{Dribble, RawPeer};

const PROTOCOLS: [Protocol; 3] = [Protocol::V1, Protocol::V2Draft, Protocol::V2];

/// Serves an agent at one end of a pipe; the other end comes back.
fn serve<A: Agent>(agent: A) -> tokio::io::DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    near
}

async fn connect(protocol: Protocol, stream: tokio::io::DuplexStream) -> Connection {
    let (reader, writer) = tokio::io::split(stream);
    Client::new("test", "1").protocol(protocol).connect(reader, writer).await.unwrap()
}

/// Fails rather than hangs.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("nothing hangs")
}

#[tokio::test]
async fn law_1_a_handler_may_ask_and_wait() {
    // The agent asks ten things inside a turn, and the client asks back inside its own loop, before it answers.
    let curious = attache::agent_fn("curious", "1", async |turn: Turn, _: Prompt| {
        for _ in 0..10 {
            let decision = turn.ask(Ask::new("May I?")).await?;
            assert!(decision.is_allowed());
            let answer: String = turn.call_extension("_test/echo", &["ping"]).await?;
            assert_eq!(answer, "ping");
        }
        Ok(Stop::EndTurn)
    });
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let server = attache::serve(curious).extension("_test/agent", async |(word,): (String,), _| Ok(word.len()));
    tokio::spawn(server.connect(reader, writer));
    let (reader, writer) = tokio::io::split(near);
    let client = Client::new("test", "1").extension("_test/echo");
    let agent = client.connect(reader, writer).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    // Extension requests that name no session wait at the connection.
    let connection = agent.clone();
    tokio::spawn(async move {
        while let Ok(Event::Extension(call)) = connection.next().await {
            let (word,): (String,) = call.params().unwrap();
            call.reply(&word).await.unwrap();
        }
    });
    let mut turn = session.prompt("go").await.unwrap();
    let mut asked = 0;
    while let Some(event) = in_time(turn.next()).await.unwrap() {
        match event {
            Event::Permission(ask) => {
                let length: usize = in_time(agent.call_extension("_test/agent", &["four"])).await.unwrap();
                assert_eq!(length, 4);
                ask.allow_once().await.unwrap();
                asked += 1;
            }
            Event::Update(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(asked, 10);
}

#[tokio::test]
async fn law_1_a_session_does_not_block_another() {
    let agent = attache::agent_fn("mixed", "1", async |turn: Turn, prompt: Prompt| {
        if prompt.text() == "hang" {
            turn.cancelled().await;
        }
        turn.text("done").await?;
        Ok(Stop::EndTurn)
    });
    let agent = connect(Protocol::V1, serve(agent)).await;
    let stuck = agent.session("/tmp").open().await.unwrap();
    let hanging = stuck.prompt("hang").await.unwrap();
    let other = agent.session("/tmp").open().await.unwrap();
    assert_eq!(in_time(other.prompt("go").await.unwrap().text()).await.unwrap(), "done");
    hanging.cancel().await.unwrap();
    assert_eq!(in_time(hanging.text()).await.unwrap(), "done");
}

#[tokio::test]
async fn law_2_updates_come_in_order_and_the_end_comes_last() {
    for protocol in PROTOCOLS {
        let counter = attache::agent_fn("counter", "1", async |turn: Turn, _: Prompt| {
            for number in 0..5000 {
                turn.text(format!("{number},")).await?;
            }
            Ok(Stop::EndTurn)
        });
        let agent = connect(protocol, serve(counter)).await;
        let session = agent.session("/tmp").open().await.unwrap();
        let text = in_time(session.prompt("go").await.unwrap().text()).await.unwrap();
        let expected: String = (0..5000).map(|number| format!("{number},")).collect();
        assert_eq!(text, expected, "{protocol:?}");
    }
}

#[tokio::test]
async fn law_2_updates_before_the_session_is_open_and_between_turns_are_kept() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let client = tokio::spawn(connect(Protocol::V1, near));
    peer.play(
        "<-- {'id':'$init','method':'initialize'}
         --> {'id':'$init','result':{'protocolVersion':1}}",
    )
    .await;
    let agent = client.await.unwrap();
    let opening = tokio::spawn(async move { agent.session("/tmp").open().await });
    peer.play(
        "<-- {'id':'$new','method':'session/new'}
         --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'available_commands_update','availableCommands':[]}}}
         --> {'id':'$new','result':{'sessionId':'s'}}
         --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'current_mode_update','modeId':'x'}}}",
    )
    .await;
    let session = opening.await.unwrap().unwrap();
    let mut tags = Vec::new();
    for _ in 0..2 {
        match in_time(session.next()).await.unwrap() {
            Event::Update(update) => tags.push(update.tag().to_string()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tags, ["available_commands_update", "current_mode_update"]);
}

#[tokio::test]
async fn law_3_a_slow_consumer_slows_its_producer() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let flood = attache::agent_fn("flood", "1", move |turn: Turn, _: Prompt| {
        let count = count.clone();
        async move {
            for _ in 0..20_000 {
                turn.text("x".repeat(1000)).await?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Stop::EndTurn)
        }
    });
    let limits = Limits::default().session(1024 * 1024).overdraft(1024 * 1024);
    let (reader, writer) = tokio::io::split(serve(flood));
    let agent = Client::new("test", "1").limits(limits).connect(reader, writer).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let turn = session.prompt("go").await.unwrap();
    // Nobody reads: the producer comes to a stop, long before it is through.
    let mut last = usize::MAX;
    while last != sent.load(Ordering::Relaxed) {
        last = sent.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!((1..5_000).contains(&last), "{last} of 20000 were sent");
    assert_eq!(in_time(turn.text()).await.unwrap().len(), 20_000_000, "nothing was lost");
}

#[tokio::test]
async fn law_11_a_session_that_is_not_read_fails_by_name_and_not_who_waits_behind_it() {
    let flood = attache::agent_fn("flood", "1", async |turn: Turn, _: Prompt| {
        for _ in 0..10_000 {
            turn.text("x".repeat(1000)).await?;
        }
        Ok(Stop::EndTurn)
    });
    let limits = Limits::default().session(64 * 1024).overdraft(256 * 1024);
    let (reader, writer) = tokio::io::split(serve(flood));
    let client = Client::new("test", "1").protocol(Protocol::V1).limits(limits);
    let agent = client.connect(reader, writer).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let turn = session.prompt("go").await.unwrap();
    // The answer to this stands behind the flood, because the agent is busy with its turn.
    let waited = in_time(session.set_option("some", attache::model::config::ConfigSetting::Boolean(true))).await;
    assert!(matches!(&waited, Err(Error::Refused(error)) if error.code == -32602), "the answer came: {waited:?}");
    let read = in_time(turn.text()).await;
    let Err(Error::SessionOverflow { session: Some(overflowed), discarded }) = read else { panic!("{read:?}") };
    assert_eq!(overflowed, *session.id());
    assert!((300..=10_000).contains(&discarded), "{discarded}");
    assert!(matches!(in_time(session.prompt("more")).await, Err(Error::SessionOverflow { .. })));
    // The connection lives on, and so does a session that is opened now.
    let other = agent.session("/tmp").open().await.unwrap();
    assert_eq!(in_time(other.prompt("go").await.unwrap().text()).await.unwrap().len(), 10_000_000);
}

#[tokio::test]
async fn law_4_what_is_dropped_is_answered() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = Client::new("test", "1").protocol(Protocol::V1).read_files();
    let client = tokio::spawn(client.connect(reader, writer));
    peer.play("<-- {'id':'$init','method':'initialize'}\n--> {'id':'$init','result':{'protocolVersion':1}}").await;
    let agent = client.await.unwrap().unwrap();
    let opening = tokio::spawn(async move { agent.session("/tmp").open().await });
    peer.play("<-- {'id':'$new','method':'session/new'}\n--> {'id':'$new','result':{'sessionId':'s'}}").await;
    let session = opening.await.unwrap().unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    peer.play(
        "<-- {'id':'$prompt','method':'session/prompt'}
         --> {'id':7,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/a'}}
         --> {'id':8,'method':'session/request_permission','params':{'sessionId':'s','toolCall':{'toolCallId':'c'},'options':[{'optionId':'y','name':'Yes','kind':'allow_once'}]}}",
    )
    .await;
    // A dropped reply is an internal error, a dropped permission is no permission, a dropped turn is a cancelled one.
    drop(turn.next().await.unwrap());
    peer.play("<-- {'id':7,'error':{'code':-32603}}").await;
    drop(turn.next().await.unwrap());
    peer.play("<-- {'id':8,'result':{'outcome':{'outcome':'cancelled'}}}").await;
    drop(turn);
    peer.play("<-- {'method':'session/cancel','params':{'sessionId':'s'}}").await;
    // A dropped call tells the peer.
    let call = session.set_option("some", attache::model::config::ConfigSetting::Boolean(true));
    let _ = tokio::time::timeout(Duration::from_millis(50), call).await;
    peer.play(
        "<-- {'id':'$set','method':'session/set_config_option'}
         <-- {'method':'$/cancel_request','params':{'requestId':'$set'}}",
    )
    .await;
    // A closed connection fails every waiter.
    let turn = session.prompt("again").await.unwrap();
    peer.play("<-- {'method':'session/prompt'}").await;
    drop(peer);
    assert!(matches!(in_time(turn.text()).await, Err(Error::Closed(Closed::ByPeer))));
}

#[tokio::test]
async fn law_4_a_handler_that_panics_is_an_internal_error_and_the_session_lives() {
    for protocol in PROTOCOLS {
        let fragile = attache::agent_fn("fragile", "1", async |turn: Turn, prompt: Prompt| {
            let _tool = turn.tool("Break").await?;
            assert_ne!(prompt.text(), "panic", "this panic is part of a test");
            Ok(Stop::EndTurn)
        });
        let agent = connect(protocol, serve(fragile)).await;
        let session = agent.session("/tmp").open().await.unwrap();
        match in_time(session.prompt("panic").await.unwrap().text()).await {
            Err(Error::Refused(error)) => assert_eq!(error.code, ErrorObject::INTERNAL_ERROR),
            other => panic!("{protocol:?} {other:?}"),
        }
        let mut turn = session.prompt("fine").await.unwrap();
        let mut last = None;
        while let Some(event) = in_time(turn.next()).await.unwrap() {
            if let Event::Update(SessionUpdate::ToolCallUpdate(update)) = event {
                last = update.status.set().cloned().or(last);
            }
        }
        assert_eq!(last, Some(ToolCallStatus::Failed), "{protocol:?}: the dropped tool call was ended");
    }
}

#[tokio::test]
async fn law_5_only_a_clear_yes_is_a_yes() {
    let decided = Arc::new(Mutex::new(Vec::new()));
    let seen = decided.clone();
    let asking = attache::agent_fn("asking", "1", move |turn: Turn, _: Prompt| {
        let seen = seen.clone();
        async move {
            let decision = turn.ask(Ask::new("May I?")).await.map(|decision| decision.is_allowed());
            seen.lock().unwrap().push(decision.unwrap_or(false));
            Ok(Stop::EndTurn)
        }
    });
    let mut peer = RawPeer::new(serve(asking));
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0}
         --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':1,'result':{'sessionId':'$s'}}",
    )
    .await;
    let answers = [
        ("'result':{'outcome':{'outcome':'selected','optionId':'allow_once'}}", true),
        ("'result':{'outcome':{'outcome':'selected','optionId':'reject_once'}}", false),
        ("'result':{'outcome':{'outcome':'selected','optionId':'allow_everything'}}", false),
        ("'result':{'outcome':{'outcome':'cancelled'}}", false),
        ("'result':{'outcome':{'outcome':'_granted','optionId':'allow_once'}}", false),
        ("'result':{'outcome':{'outcome':'selected'}}", false),
        ("'result':{}", false),
        ("'result':true", false),
        ("'error':{'code':-32603,'message':''}", false),
    ];
    for (answer, _) in answers {
        peer.send(
            "{'id':2,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'go'}]}}",
        )
        .await;
        let asked = peer.expect("{'method':'session/request_permission'}").await;
        peer.send(&format!("{{'id':{},{answer}}}", asked["id"])).await;
        peer.play("<-- {'id':2,'result':{'stopReason':'end_turn'}}").await;
    }
    let expected: Vec<bool> = answers.iter().map(|(_, allowed)| *allowed).collect();
    assert_eq!(*decided.lock().unwrap(), expected);
}

#[tokio::test]
async fn law_6_nothing_unknown_is_lost() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let client = tokio::spawn(connect(Protocol::V2, near));
    peer.play(
        "<-- {'id':'$init','method':'initialize','params':{'protocolVersion':2,'info':{'name':'test'}}}
         --> {'id':'$init','result':{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}}}}",
    )
    .await;
    let agent = client.await.unwrap();
    let opening = tokio::spawn(async move { agent.session("/tmp").open().await });
    peer.play("<-- {'id':'$new','method':'session/new'}\n--> {'id':'$new','result':{'sessionId':'s'}}").await;
    let session = opening.await.unwrap().unwrap();
    let update = r#"{"sessionUpdate":"_glow","colour":{"r":1},"_meta":{"k":[1,2]}}"#;
    let message = format!("{{'method':'session/update','params':{{'sessionId':'s','update':{update}}}}}");
    peer.send(&message).await;
    let Event::Update(SessionUpdate::Other(unknown)) = in_time(session.next()).await.unwrap() else { panic!() };
    let (kept, sent): (serde_json::Value, serde_json::Value) =
        (unknown.raw().parse().unwrap(), serde_json::from_str(update).unwrap());
    assert_eq!((unknown.tag(), kept), ("_glow", sent));
}

#[tokio::test]
async fn law_7_bad_input_does_not_end_a_conversation() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let echo = attache::agent_fn("echo", "1", async |turn: Turn, prompt: Prompt| {
        turn.text(prompt.text()).await?;
        Ok(Stop::EndTurn)
    });
    let limits = Limits::default().message(10_000);
    let server = attache::serve(echo).limits(limits).strict().on_report(move |report| {
        seen.lock().unwrap().push(report);
    });
    tokio::spawn(server.connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.send_bytes(b"\xEF\xBB\xBF\r\n\n  \n").await;
    peer.play("--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}\n<-- {'id':0}").await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let junk: [&[u8]; 7] = [
        b"npm WARN deprecated\n",
        b"\x1b[31mred\x1b[0m\n",
        b"\xff\xfe\n",
        deep.as_bytes(),
        b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":7}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"secret-sauce\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"secret-id\",\"prompt\":[]}}\r\n",
    ];
    for bytes in junk {
        peer.send_bytes(bytes).await;
    }
    let codes = [-32700, -32700, -32700, -32600, -32602, -32601, -32002];
    for code in codes {
        let answer = peer.expect(&format!("{{'error':{{'code':{code}}}}}")).await;
        let message = answer["error"]["message"].to_string();
        assert!(!message.contains("secret") && !message.contains("npm"), "the input is not repeated: {message}");
    }
    peer.play(
        "--> {'id':5,'method':'session/new','params':{'cwd':'/tmp'}}
         <-- {'id':5,'result':{'sessionId':'$s'}}
         --> {'id':6,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'hi'}]}}
         <-- {'method':'session/update','params':{'update':{'content':{'text':'hi'}}}}
         <-- {'id':6,'result':{'stopReason':'end_turn'}}",
    )
    .await;
    let reports = format!("{:?}", reports.lock().unwrap());
    for name in ["NotJson", "NotUtf8", "TooLong", "InvalidParams", "UnknownMethod", "UnknownSession"] {
        assert!(reports.contains(name), "{name} was reported: {reports}");
    }
    assert!(!reports.contains("secret"), "the input is not repeated");
}

#[tokio::test]
async fn law_7_a_peer_that_only_sends_junk_is_left_by_name() {
    let echo = attache::agent_fn("echo", "1", async |_: Turn, _: Prompt| Ok(Stop::EndTurn));
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let limits = Limits::default().junk(20);
    let served = tokio::spawn(attache::serve(echo).limits(limits).connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.send_bytes("hello\n".repeat(30).as_bytes()).await;
    assert!(matches!(in_time(served).await.unwrap(), Err(Error::Closed(Closed::Junk))));
}

#[tokio::test]
async fn law_8_what_is_offered_is_what_is_registered() {
    struct Plain;
    struct Nothing;
    impl Session for Nothing {
        async fn prompt(&mut self, _: Turn, _: Prompt) -> Result<Stop, attache::agent::HandlerError> {
            Ok(Stop::EndTurn)
        }
    }
    impl Agent for Plain {
        type Session = Nothing;
        fn info(&self) -> Implementation {
            Implementation::new("plain", "1")
        }
        async fn open(
            &self,
            _: OpenRequest,
            _: SessionHandle,
        ) -> Result<Opened<Nothing>, attache::agent::HandlerError> {
            Ok(Nothing.into())
        }
    }
    impl attache::agent::Delete for Plain {
        async fn delete(&self, _: attache::model::session::SessionId) -> Result<(), attache::agent::HandlerError> {
            Ok(())
        }
    }
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(Plain).deletes().connect(reader, writer));
    let agent = connect(Protocol::V1, near).await;
    let session = agent.capabilities().session.clone().unwrap();
    assert!(session.delete.is_some() && session.load.is_none() && session.list.is_none());
    agent.delete_session("x").await.unwrap();
    let unasked = agent.call(&attache::model::session::LoadSessionRequest::new("x", "/tmp")).await;
    assert!(matches!(unasked, Err(Error::Refused(error)) if error.code == ErrorObject::METHOD_NOT_FOUND));
    assert!(matches!(agent.logout().await, Err(Error::NotOffered(_))));
}

#[tokio::test]
async fn law_9_a_cancelled_turn_cancels_its_permission_requests() {
    for protocol in PROTOCOLS {
        let asking = attache::agent_fn("asking", "1", async |turn: Turn, _: Prompt| {
            let allowed = turn.ask(Ask::new("May I?")).await?.is_allowed();
            turn.text(if allowed { "yes" } else { "no" }).await?;
            Ok(Stop::EndTurn)
        });
        let agent = connect(protocol, serve(asking)).await;
        let session = agent.session("/tmp").open().await.unwrap();
        let mut turn = session.prompt("go").await.unwrap();
        let mut text = String::new();
        while let Some(event) = in_time(turn.next()).await.unwrap() {
            match event {
                Event::Permission(ask) => {
                    turn.cancel().await.unwrap();
                    assert!(matches!(ask.allow_once().await, Err(Error::Cancelled)), "too late for a yes");
                }
                Event::Update(SessionUpdate::AgentMessageChunk(MessageChunk { content, .. })) => {
                    text.push_str(content.as_text().unwrap());
                }
                Event::Update(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((text.as_str(), turn.stop()), ("no", Some(&Stop::Cancelled)), "{protocol:?}");
    }
}

#[tokio::test]
async fn no_deadlock_with_one_byte_pipes_and_tiny_bounds_both_ways_flooded() {
    let chatty = attache::agent_fn("chatty", "1", async |turn: Turn, _: Prompt| {
        for number in 0..50 {
            turn.text("some words").await?;
            if number % 10 == 0 {
                assert!(turn.ask(Ask::new("May I?")).await?.is_allowed());
            }
        }
        Ok(Stop::EndTurn)
    });
    let tiny = Limits::default().outbox(1).session(1);
    let (near, far) = tokio::io::duplex(1);
    let (reader, writer) = tokio::io::split(Dribble::new(far, 1));
    let server =
        attache::serve(chatty).limits(tiny.clone()).extension("_test/echo", async |(word,): (String,), _| Ok(word));
    tokio::spawn(server.connect(reader, writer));
    let (reader, writer) = tokio::io::split(Dribble::new(near, 1));
    let agent = Client::new("test", "1").limits(tiny).connect(reader, writer).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let mut turns = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (agent, session) = (agent.clone(), agent.session("/tmp").open().await.unwrap_or_else(|_| session.clone()));
        turns.spawn(async move {
            let mut turn = session.prompt("go").await.unwrap();
            let mut texts = 0;
            while let Some(event) = turn.next().await.unwrap() {
                match event {
                    Event::Update(SessionUpdate::AgentMessageChunk(_)) => {
                        texts += 1;
                        // A call from inside the loop, while the agent floods.
                        let word: String = agent.call_extension("_test/echo", &["word"]).await.unwrap();
                        assert_eq!(word, "word");
                    }
                    Event::Permission(ask) => ask.allow_once().await.unwrap(),
                    _ => {}
                }
            }
            texts
        });
    }
    let counts = in_time(turns.join_all()).await;
    assert_eq!(counts, [50; 4]);
}

#[tokio::test]
async fn client_futures_need_not_be_send() {
    let echo = attache::agent_fn("echo", "1", async |turn: Turn, prompt: Prompt| {
        turn.content(ContentBlock::text(prompt.text())).await?;
        Ok(Stop::EndTurn)
    });
    let stream = serve(echo);
    let local = std::rc::Rc::new(std::cell::Cell::new(0));
    let agent = connect(Protocol::Auto, stream).await;
    let session = agent.session("/tmp").open().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    while turn.next().await.unwrap().is_some() {
        local.set(local.get() + 1);
    }
    assert!(local.get() > 0);
}

#[tokio::test]
async fn what_a_version_cannot_say_is_reported() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    let noting = attache::agent_fn("noting", "1", async |turn: Turn, _: Prompt| {
        turn.notice(attache::model::notice::NoticeSeverity::Info, "heard").await?;
        Ok(Stop::EndTurn)
    });
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(
        attache::serve(noting).on_report(move |report| seen.lock().unwrap().push(report)).connect(reader, writer),
    );
    let agent = connect(Protocol::V1, near).await;
    let session = agent.session("/tmp").open().await.unwrap();
    in_time(session.prompt("go").await.unwrap().text()).await.unwrap();
    let reports = reports.lock().unwrap();
    assert!(matches!(reports[..], [Report::Lost(_)]), "{reports:?}");
}

#[tokio::test]
async fn a_late_word_about_a_session_that_was_let_go_is_no_violation() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = Client::new("test", "1").protocol(Protocol::V1).strict();
    let client = client.on_report(move |report| seen.lock().unwrap().push(report));
    let client = tokio::spawn(client.connect(reader, writer));
    peer.play("<-- {'id':'$init','method':'initialize'}\n--> {'id':'$init','result':{'protocolVersion':1}}").await;
    let agent = client.await.unwrap().unwrap();
    let connection = agent.clone();
    let opening = tokio::spawn(async move { connection.session("/tmp").open().await });
    peer.play("<-- {'id':'$new','method':'session/new'}\n--> {'id':'$new','result':{'sessionId':'s'}}").await;
    drop(opening.await.unwrap().unwrap());
    for session in ["s", "never-opened"] {
        let update = "'update':{'sessionUpdate':'usage_update','used':1,'size':2}";
        peer.send(&format!("{{'method':'session/update','params':{{'sessionId':'{session}',{update}}}}}")).await;
    }
    // Both are through once this is answered.
    let call = tokio::spawn(async move { agent.call_extension::<bool>("_test/ping", &[0]).await });
    let asked = peer.expect("{'method':'_test/ping'}").await;
    peer.send(&format!("{{'id':{},'result':true}}", asked["id"])).await;
    assert!(in_time(call).await.unwrap().unwrap());
    let reports = reports.lock().unwrap();
    assert_eq!(reports.len(), 1, "only the session that was never open is reported: {reports:?}");
}
