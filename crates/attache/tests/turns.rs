//! Turns, readers and questions in combinations that real programs make.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attache::agent::{Agent, Ask, HandlerError, OpenRequest, Opened, Session, SessionHandle};
use attache::model::Meta;
use attache::model::command::{AvailableCommand, Command};
use attache::model::config::{ConfigId, ConfigOption, ConfigSetting};
use attache::model::content::ContentBlock;
use attache::model::initialize::Implementation;
use attache::model::state::StateUpdate;
use attache::model::update::SessionUpdate;
use attache::{Client, Connection, Error, Event, Prompt, Protocol, Stop, Turn};
use attache_testkit::RawPeer;

const PROTOCOLS: [Protocol; 3] = [Protocol::V1, Protocol::V2Draft, Protocol::V2];

/// Fails rather than hangs.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("nothing hangs")
}

async fn meet<A: Agent>(protocol: Protocol, agent: A) -> Connection {
    let (near, far) = attache::pair();
    tokio::spawn(attache::serve(agent).over(far));
    Client::new("test", "1").protocol(protocol).over(near).await.unwrap()
}

/// A raw agent of version 1 that has opened session `s` for a client of ours.
async fn raw_agent(client: Client, initialized: &str, opened: &str) -> (Connection, attache::client::Session, RawPeer) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = tokio::spawn(client.connect(reader, writer));
    peer.play(&format!("<-- {{'id':'$init','method':'initialize'}}\n--> {{'id':'$init','result':{initialized}}}"))
        .await;
    let agent = in_time(client).await.unwrap().unwrap();
    let opening = agent.clone();
    let opening = tokio::spawn(async move { opening.session("/").open().await.unwrap() });
    peer.play(&format!("<-- {{'id':'$new','method':'session/new'}}\n--> {{'id':'$new','result':{opened}}}")).await;
    (agent, in_time(opening).await.unwrap(), peer)
}

#[tokio::test]
async fn every_turn_has_messages_of_its_own() {
    for protocol in PROTOCOLS {
        let echo = attache::agent_fn("echo", "1", async |turn: Turn, prompt: Prompt| {
            turn.text(prompt.text()).await?;
            turn.text("!").await?;
            Ok(Stop::EndTurn)
        });
        let agent = meet(protocol, echo).await;
        let session = agent.session("/").open().await.unwrap();
        let mut ids = Vec::new();
        for prompt in ["one", "two"] {
            let mut turn = session.prompt(prompt).await.unwrap();
            let mut of_turn = Vec::new();
            while let Some(event) = in_time(turn.next()).await.unwrap() {
                if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event {
                    of_turn.push(chunk.message_id.unwrap());
                }
            }
            assert_eq!(of_turn.len(), 2);
            assert_eq!(of_turn[0], of_turn[1], "one message");
            ids.push(of_turn.remove(0));
        }
        assert_ne!(ids[0], ids[1], "{protocol:?}");
    }
}

#[tokio::test]
async fn a_whole_message_replaces_its_pieces() {
    let agent = attache::agent_fn("upsert", "1", async |turn: Turn, _: Prompt| {
        let chunk = |text: &str| {
            let chunk = attache::model::update::MessageChunk::new(ContentBlock::text(text)).message_id("m");
            SessionUpdate::AgentMessageChunk(chunk)
        };
        turn.update(chunk("Hel")).await?;
        turn.update(chunk("lo")).await?;
        let whole = attache::model::update::MessageUpdate::new("m")
            .with(|update| update.content = attache::model::Patch::Set(vec![ContentBlock::text("Hello")]));
        turn.update(SessionUpdate::AgentMessage(whole)).await?;
        turn.update(chunk(", world")).await?;
        Ok(Stop::EndTurn)
    });
    let agent = meet(Protocol::V2, agent).await;
    let session = agent.session("/").open().await.unwrap();
    assert_eq!(in_time(session.prompt("go").await.unwrap().text()).await.unwrap(), "Hello, world");
}

#[tokio::test]
async fn two_turns_of_a_session_can_be_read_at_once() {
    for protocol in PROTOCOLS {
        let agent = attache::agent_fn("echo", "1", async |turn: Turn, prompt: Prompt| {
            for _ in 0..50 {
                turn.text("x").await?;
                tokio::task::yield_now().await;
            }
            turn.text(prompt.text()).await?;
            Ok(Stop::EndTurn)
        });
        let agent = meet(protocol, agent).await;
        let session = agent.session("/").open().await.unwrap();
        let (one, two) = (session.prompt("1").await.unwrap(), session.prompt("2").await.unwrap());
        let (one, two) = in_time(async { tokio::join!(one.text(), two.text()) }).await;
        let all = format!("{}{}", one.unwrap(), two.unwrap());
        assert_eq!(all.matches('x').count(), 100, "{protocol:?}: nothing is lost: {all}");

        // Read in another order than they were begun in.
        let (mut one, two) = (session.prompt("1").await.unwrap(), session.prompt("2").await.unwrap());
        in_time(two.text()).await.unwrap();
        while in_time(one.next()).await.unwrap().is_some() {}
        assert_eq!(one.stop(), Some(&Stop::EndTurn), "{protocol:?}");

        // Somebody who reads between turns takes nobody's end.
        let between = session.clone();
        let between = tokio::spawn(async move { while between.next().await.is_ok() {} });
        let mut turn = session.prompt("3").await.unwrap();
        while in_time(turn.next()).await.unwrap().is_some() {}
        assert_eq!(turn.stop(), Some(&Stop::EndTurn), "{protocol:?}");
        between.abort();
    }
}

#[tokio::test]
async fn a_reader_that_gave_up_takes_no_wake_up_along() {
    let agent = attache::agent_fn("slow", "1", async |turn: Turn, _: Prompt| {
        // A leftover wait for an option must not take the session's wake-up either.
        let _ = tokio::time::timeout(Duration::from_millis(5), turn.option_change()).await;
        turn.text("late").await?;
        Ok(Stop::EndTurn)
    });
    let agent = meet(Protocol::V1, agent).await;
    let session = agent.session("/").open().await.unwrap();
    for _ in 0..3 {
        let turn = session.prompt("go").await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(1), session.next()).await.is_err());
        assert_eq!(in_time(turn.text()).await.unwrap(), "late");
    }
}

#[tokio::test]
async fn a_prompt_in_mid_turn_is_taken_up_by_the_turn_that_asks_for_it() {
    for protocol in PROTOCOLS {
        let agent = attache::agent_fn("steered", "1", async |turn: Turn, prompt: Prompt| {
            turn.text(prompt.text()).await?;
            let more = turn.next_prompt().await?;
            turn.text(format!(", {}", more.text())).await?;
            Ok(Stop::EndTurn)
        });
        let agent = meet(protocol, agent).await;
        let session = agent.session("/").open().await.unwrap();
        let mut first = session.prompt("left").await.unwrap();
        let mut text = String::new();
        let mut second = None;
        while let Some(event) = in_time(first.next()).await.unwrap() {
            if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event {
                text.push_str(chunk.content.as_text().unwrap());
                if second.is_none() {
                    second = Some(session.prompt("right").await.unwrap());
                }
            }
        }
        assert_eq!(text, "left, right", "{protocol:?}");
        let mut second = second.unwrap();
        while in_time(second.next()).await.unwrap().is_some() {}
        assert_eq!((first.stop(), second.stop()), (Some(&Stop::EndTurn), Some(&Stop::EndTurn)), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_question_that_comes_to_nothing_leaves_no_session_waiting() {
    // Nobody answers permission requests here: the client refuses them.
    let agent = attache::agent_fn("asking", "1", async |turn: Turn, _: Prompt| {
        let refused = turn.ask(Ask::new("May I?")).await;
        turn.text(format!("{}", refused.is_err() || !refused.unwrap().is_allowed())).await?;
        turn.cancelled().await;
        Ok(Stop::EndTurn)
    });
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'}}}
         <-- {'id':0,'result':{'protocolVersion':2}}
         --> {'id':1,'method':'session/new','params':{'cwd':'/'}}
         <-- {'id':1,'result':{'sessionId':'$s'}}
         --> {'id':2,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'go'}]}}
         <-- {'id':2,'result':{'messageId':'*'}}
         <-- {'params':{'update':{'sessionUpdate':'user_message'}}}
         <-- {'params':{'update':{'sessionUpdate':'state_update','state':'running'}}}
         <-- {'params':{'update':{'sessionUpdate':'state_update','state':'requires_action'}}}
         <-- {'id':'$ask','method':'session/request_permission'}
         --> {'id':'$ask','error':{'code':-32601,'message':'no'}}
         <-- {'params':{'update':{'sessionUpdate':'state_update','state':'running'}}}
         <-- {'params':{'update':{'sessionUpdate':'agent_message_chunk','content':{'text':'true'}}}}
         --> {'method':'session/cancel','params':{'sessionId':'$s'}}
         <-- {'params':{'update':{'sessionUpdate':'state_update','state':'idle','stopReason':'cancelled'}}}",
    )
    .await;
}

/// Fails in every way that a session can when it is closed or set.
struct Clumsy;
struct ClumsySession;

impl Agent for Clumsy {
    type Session = ClumsySession;

    fn info(&self) -> Implementation {
        Implementation::new("clumsy", "1")
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<ClumsySession>, HandlerError> {
        Ok(ClumsySession.into())
    }
}

static HANGS: AtomicBool = AtomicBool::new(false);

impl Session for ClumsySession {
    async fn prompt(&mut self, _: Turn, _: Prompt) -> Result<Stop, HandlerError> {
        Ok(Stop::EndTurn)
    }

    async fn set_option(&mut self, _: ConfigId, _: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        std::future::pending().await
    }

    async fn close(self) {
        if HANGS.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        panic!("on purpose");
    }
}

#[tokio::test]
async fn what_a_session_does_wrong_is_answered_all_the_same() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(Clumsy).connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0,'result':{'protocolVersion':1}}
         --> {'id':1,'method':'session/new','params':{'cwd':'/','mcpServers':[]}}
         <-- {'id':1,'result':{'sessionId':'$s'}}
         --> {'id':2,'method':'session/set_config_option','params':{'sessionId':'$s','configId':'a','value':'b'}}
         --> {'method':'$/cancel_request','params':{'requestId':2}}
         <-- {'id':2,'error':{'code':-32800}}
         --> {'id':3,'method':'session/close','params':{'sessionId':'$s'}}
         <-- {'id':3,'error':{'code':-32603}}
         --> {'id':4,'method':'session/prompt','params':{'sessionId':'$s','prompt':[]}}
         <-- {'id':4,'error':{'code':-32002}}",
    )
    .await;
    HANGS.store(true, Ordering::Relaxed);
    peer.play(
        "--> {'id':5,'method':'session/new','params':{'cwd':'/','mcpServers':[]}}
         <-- {'id':5,'result':{'sessionId':'$t'}}
         --> {'id':6,'method':'session/close','params':{'sessionId':'$t'}}
         --> {'method':'$/cancel_request','params':{'requestId':6}}
         <-- {'id':6,'error':{'code':-32800}}",
    )
    .await;
}

#[tokio::test]
async fn what_is_not_offered_does_not_exist_however_wrong_its_params_are() {
    let echo = attache::agent_fn("echo", "1", async |_: Turn, _: Prompt| Ok(Stop::EndTurn));
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(echo).connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0,'result':{'protocolVersion':1}}
         --> {'id':1,'method':'session/delete','params':{'sessionId':7}}
         <-- {'id':1,'error':{'code':-32601}}
         --> {'id':2,'method':'session/new','params':{'cwd':'/','mcpServers':[]}}
         <-- {'id':2,'result':{'sessionId':'$s'}}
         --> {'id':3,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'image','data':'','mimeType':'image/png'}]}}
         <-- {'id':3,'error':{'code':-32602}}
         --> {'id':4,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'hologram'}]}}
         <-- {'id':4,'error':{'code':-32602}}
         --> {'id':5,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'hi'}]}}
         <-- {'id':5,'result':{'stopReason':'end_turn'}}",
    )
    .await;
}

#[tokio::test]
async fn files_and_commands_are_not_served_to_agents_of_version_2() {
    let client = Client::new("test", "1").protocol(Protocol::V2).read_files().write_files().terminals();
    let (_agent, _session, mut peer) = raw_agent(
        client,
        "{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}}}",
        "{'sessionId':'s'}",
    )
    .await;
    for (id, method) in ["fs/read_text_file", "fs/write_text_file", "terminal/create"].into_iter().enumerate() {
        peer.send(&format!("{{'id':{id},'method':'{method}','params':{{'sessionId':'s','path':'/a','command':'x'}}}}"))
            .await;
        peer.expect(&format!("{{'id':{id},'error':{{'code':-32601}}}}")).await;
    }
}

#[tokio::test]
async fn lines_that_are_no_messages_do_not_end_a_turn() {
    let client = Client::new("test", "1").protocol(Protocol::V1);
    let (_agent, session, mut peer) = raw_agent(client, "{'protocolVersion':1}", "{'sessionId':'s'}").await;
    let turn = session.prompt("go").await.unwrap();
    peer.expect("{'id':'$p','method':'session/prompt'}").await;
    let reading = tokio::spawn(turn.text());
    for _ in 0..20 {
        peer.send_bytes("DEBUG something that is printed\n".repeat(100).as_bytes()).await;
        for _ in 0..100 {
            peer.expect("{'id':null,'error':{'code':-32700}}").await;
        }
    }
    peer.play(
        "--> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'done'}}}}
         --> {'id':'$p','result':{'stopReason':'end_turn'}}",
    )
    .await;
    assert_eq!(in_time(reading).await.unwrap().unwrap(), "done");
}

#[tokio::test]
async fn an_agent_that_repeats_the_version_it_was_asked_for_is_version_1() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = tokio::spawn(Client::new("test", "1").read_files().connect(reader, writer));
    peer.play(
        "<-- {'id':0,'method':'initialize','params':{'protocolVersion':2}}
         --> {'id':0,'result':{'protocolVersion':2,'agentCapabilities':{'loadSession':true}}}
         <-- {'id':1,'method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{'fs':{'readTextFile':true}}}}
         --> {'id':1,'result':{'protocolVersion':1,'agentCapabilities':{'loadSession':true}}}",
    )
    .await;
    let agent = in_time(client).await.unwrap().unwrap();
    assert_eq!(agent.dialect(), attache::Dialect::V1);
}

#[tokio::test]
async fn an_agent_that_will_not_be_greeted_twice_is_taken_as_it_is() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = tokio::spawn(Client::new("test", "1").read_files().connect(reader, writer));
    peer.play(
        "<-- {'id':0,'method':'initialize','params':{'protocolVersion':2}}
         --> {'id':0,'result':{'protocolVersion':1,'agentInfo':{'name':'old','version':'1'}}}
         <-- {'id':1,'method':'initialize','params':{'protocolVersion':1}}
         --> {'id':1,'error':{'code':-32600,'message':'again?'}}",
    )
    .await;
    let agent = in_time(client).await.unwrap().unwrap();
    assert_eq!((agent.dialect(), agent.info().unwrap().name.as_str()), (attache::Dialect::V1, "old"));
}

#[tokio::test]
async fn options_are_told_as_they_are_now() {
    let modes = "{'sessionId':'s','modes':{'currentModeId':'a','availableModes':[{'id':'a','name':'A'},{'id':'b','name':'B'}]}}";
    let client = Client::new("test", "1").protocol(Protocol::V1);
    let (_agent, session, mut peer) = raw_agent(client, "{'protocolVersion':1}", modes).await;
    let current = |options: &[ConfigOption]| match &options[0].kind {
        attache::model::config::ConfigKind::Select(select) => select.current.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(current(&session.options()), "a");
    let setting = session.clone();
    let setting = tokio::spawn(async move { setting.set_option("mode", ConfigSetting::Id("b".into())).await });
    peer.play("<-- {'id':'$m','method':'session/set_mode','params':{'modeId':'b'}}\n--> {'id':'$m','result':{}}").await;
    assert_eq!(current(&in_time(setting).await.unwrap().unwrap()), "b");
    peer.send("{'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'current_mode_update','currentModeId':'a'}}}").await;
    let event = in_time(session.next()).await.unwrap();
    assert!(matches!(event, Event::Update(SessionUpdate::ConfigOptions(_))), "{event:?}");
    assert_eq!(current(&session.options()), "a");
}

#[tokio::test]
async fn free_data_passes_both_ways() {
    let seen: Arc<std::sync::Mutex<Option<Meta>>> = Arc::default();
    let heard = seen.clone();
    let agent = attache::agent_fn("tracing", "1", move |turn: Turn, prompt: Prompt| {
        let heard = heard.clone();
        async move {
            *heard.lock().unwrap() = prompt.meta.clone();
            let update = SessionUpdate::State(StateUpdate::running());
            let _ = update;
            let notice = attache::model::update::UsageUpdate::new(1, 2);
            turn.update_with_meta(SessionUpdate::Usage(notice), Meta::new(r#"{"n":1}"#)?).await?;
            turn.end_meta(Meta::new(r#"{"end":1}"#)?);
            Ok(Stop::EndTurn)
        }
    });
    let agent = meet(Protocol::V2, agent).await;
    let session = agent.session("/").open().await.unwrap();
    let trace = Meta::new(r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#).unwrap();
    let mut turn = session.prompt(Prompt::from("go").meta(trace.clone())).await.unwrap();
    let mut metas = Vec::new();
    while let Some((event, meta)) = in_time(turn.next_with_meta()).await.unwrap() {
        if let Event::Update(SessionUpdate::Usage(_)) = event {
            metas.push(meta.unwrap());
        }
    }
    assert_eq!(metas, [Meta::new(r#"{"n":1}"#).unwrap()]);
    assert_eq!(seen.lock().unwrap().as_ref(), Some(&trace));
    assert_eq!(turn.meta(), Some(&Meta::new(r#"{"end":1}"#).unwrap()));
}

#[tokio::test]
async fn a_request_that_is_no_longer_wanted_is_heard_of() {
    let client = Client::new("test", "1").protocol(Protocol::V1).forms();
    let (_agent, session, mut peer) = raw_agent(client, "{'protocolVersion':1}", "{'sessionId':'s'}").await;
    peer.send("{'id':9,'method':'elicitation/create','params':{'sessionId':'s','message':'?','mode':'form','requestedSchema':{'type':'object','properties':{}}}}").await;
    let Event::Elicitation(form) = in_time(session.next()).await.unwrap() else { panic!() };
    let token = form.cancel_token();
    assert!(!token.is_cancelled());
    peer.send("{'method':'$/cancel_request','params':{'requestId':9}}").await;
    in_time(token.cancelled()).await;
    form.reply(Ok(attache::model::elicitation::CreateElicitationResponse::cancel())).await.unwrap();
    peer.expect("{'id':9,'result':{'action':'cancel'}}").await;
}

#[tokio::test]
async fn a_request_that_takes_too_long_fails_by_name() {
    let limits = attache::Limits::default().request_timeout(Some(Duration::from_millis(20)));
    let client = Client::new("test", "1").protocol(Protocol::V1).limits(limits);
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = tokio::spawn(client.connect(reader, writer));
    peer.expect("{'id':0,'method':'initialize'}").await;
    let failed = in_time(client).await.unwrap().unwrap_err();
    assert!(matches!(failed, Error::TimedOut(_)), "{failed:?}");
    assert_eq!(failed.to_string(), "timed out after 0.02 s");
}

#[tokio::test]
async fn what_is_left_of_a_dropped_turn_is_not_the_next_ones() {
    for protocol in PROTOCOLS {
        let agent = attache::agent_fn("slow", "1", async |turn: Turn, prompt: Prompt| {
            turn.text(prompt.text()).await?;
            if prompt.text() == "first" {
                turn.text(", more").await?;
                turn.cancelled().await;
                turn.text(", late").await?;
                return Ok(Stop::Cancelled);
            }
            Ok(Stop::EndTurn)
        });
        let agent = meet(protocol, agent).await;
        let session = agent.session("/").open().await.unwrap();
        let mut turn = session.prompt("first").await.unwrap();
        while !matches!(in_time(turn.next()).await.unwrap(), Some(Event::Update(SessionUpdate::AgentMessageChunk(_)))) {
        }
        drop(turn);
        for prompt in ["second", "third"] {
            let text = in_time(session.prompt(prompt).await.unwrap().text()).await.unwrap();
            assert_eq!(text, prompt, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn what_a_dropped_turn_asks_is_refused() {
    let (_agent, session, mut peer) = raw_agent(
        Client::new("t", "1").protocol(Protocol::V1).read_files(),
        "{'protocolVersion':1}",
        "{'sessionId':'s'}",
    )
    .await;
    let turn = session.prompt("go").await.unwrap();
    peer.play(
        "<-- {'id':'$p','method':'session/prompt'}
         --> {'id':7,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/a'}}",
    )
    .await;
    // It arrives, and stays unread.
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(turn);
    peer.play(
        "<-- {'method':'session/cancel'}
         <-- {'id':7,'error':{'code':-32603}}
         --> {'id':8,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/b'}}
         <-- {'id':8,'error':{'code':-32603}}
         --> {'id':'$p','result':{'stopReason':'cancelled'}}",
    )
    .await;
}

#[tokio::test]
async fn a_turn_that_ends_with_an_error_has_failed_in_every_version() {
    for protocol in PROTOCOLS {
        let agent = meet(protocol, attache::agent_fn("bad", "1", async |_: Turn, _: Prompt| Ok(Stop::Error))).await;
        let session = agent.session("/").open().await.unwrap();
        let ended = in_time(session.prompt("go").await.unwrap().text()).await;
        assert!(matches!(&ended, Err(Error::Refused(_))), "{protocol:?}: {ended:?}");
    }
}

#[tokio::test]
async fn the_commands_of_a_session_are_those_of_the_last_update() {
    for protocol in PROTOCOLS {
        let agent = attache::agent_fn("commands", "1", async |turn: Turn, prompt: Prompt| {
            turn.commands(vec![Command::new(prompt.text(), "Does it").into()]).await?;
            Ok(Stop::EndTurn)
        });
        let agent = meet(protocol, agent).await;
        let session = agent.session("/").open().await.unwrap();
        for name in ["one", "two"] {
            in_time(session.prompt(name).await.unwrap().text()).await.unwrap();
            let commands = session.commands();
            assert!(
                matches!(&commands[..], [AvailableCommand::Command(command)] if command.name == name),
                "{commands:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_question_says_what_it_is_about() {
    let client = Client::new("t", "1").protocol(Protocol::V1);
    let (_agent, session, mut peer) = raw_agent(client, "{'protocolVersion':1}", "{'sessionId':'s'}").await;
    let mut turn = session.prompt("go").await.unwrap();
    peer.play(
        "<-- {'id':'$p','method':'session/prompt'}
         --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call','toolCallId':'c','title':'Delete a.txt'}}}
         --> {'id':7,'method':'session/request_permission','params':{'sessionId':'s','toolCall':{'toolCallId':'c'},'options':[]}}",
    )
    .await;
    in_time(turn.next()).await.unwrap();
    let Some(Event::Permission(question)) = in_time(turn.next()).await.unwrap() else { panic!("no question") };
    assert_eq!(question.title.as_deref(), Some("Delete a.txt"));
    assert_eq!(question.tool_call().unwrap().title.set().map(String::as_str), Some("Delete a.txt"));
}

#[tokio::test]
async fn a_closed_session_takes_no_prompt() {
    let client = Client::new("t", "1").protocol(Protocol::V1);
    let initialized = "{'protocolVersion':1,'agentCapabilities':{'sessionCapabilities':{'close':{}}}}";
    let (_agent, session, mut peer) = raw_agent(client, initialized, "{'sessionId':'s'}").await;
    let closing = session.clone();
    let closing = tokio::spawn(async move { closing.close().await });
    peer.play("<-- {'id':'$c','method':'session/close'}\n--> {'id':'$c','result':{}}").await;
    in_time(closing).await.unwrap().unwrap();
    let refused = session.prompt("go").await.unwrap_err();
    assert_eq!(refused.to_string(), "the session is closed");
}
