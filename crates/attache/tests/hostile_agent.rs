//! What an agent cannot do to its client, played by raw agents.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use attache::client::Session;
use attache::model::update::SessionUpdate;
use attache::{Client, Connection, Event, Protocol};
use attache_testkit::RawPeer;
use tokio::time::timeout;

/// Far longer than anything here takes, so that only a hang fails.
const PATIENCE: Duration = Duration::from_secs(10);

const V1: &str = "{'protocolVersion':1}";
const V2: &str = "{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}}}";

fn v1() -> Client {
    Client::new("test", "1").protocol(Protocol::V1)
}

/// A client, and a raw agent that has answered its `initialize`.
async fn connect(client: Client, initialized: &str) -> (Connection, RawPeer) {
    let (near, far) = tokio::io::duplex(1 << 20);
    let mut agent = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let connecting = tokio::spawn(client.connect(reader, writer));
    agent.play(&format!("<-- {{'id':'$i','method':'initialize'}}\n--> {{'id':'$i','result':{initialized}}}")).await;
    (connecting.await.unwrap().unwrap(), agent)
}

/// The same with an open session `s`.
async fn open(client: Client, initialized: &str) -> (Connection, Session, RawPeer) {
    let (connection, mut agent) = connect(client, initialized).await;
    let opener = connection.clone();
    let opening = tokio::spawn(async move { opener.session("/").open().await.unwrap() });
    agent.play("<-- {'id':'$n','method':'session/new'}\n--> {'id':'$n','result':{'sessionId':'s'}}").await;
    (connection, opening.await.unwrap(), agent)
}

/// An update of session `s`.
fn update(update: &str) -> String {
    format!("{{'method':'session/update','params':{{'sessionId':'s','update':{update}}}}}")
}

fn text(text: &str) -> String {
    update(&format!("{{'sessionUpdate':'agent_message_chunk','content':{{'type':'text','text':'{text}'}}}}"))
}

/// A connection that ends takes nothing along that has arrived: a turn ends behind it.
#[tokio::test]
async fn what_came_before_the_end_of_the_connection_is_read_before_it() {
    let (connection, session, mut agent) = open(v1().read_files(), V1).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.play("<-- {'id':'$p','method':'session/prompt'}").await;
    agent.send("{'id':1,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/a'}}").await;
    for _ in 0..5 {
        agent.send(&text("x")).await;
    }
    drop(agent);
    assert!(timeout(PATIENCE, connection.next()).await.unwrap().is_err(), "the connection has ended");
    assert!(matches!(turn.next().await.unwrap(), Some(Event::ReadTextFile(_))));
    let mut count = 0;
    while let Ok(Some(Event::Update(_))) = timeout(PATIENCE, turn.next()).await.unwrap() {
        count += 1;
    }
    assert_eq!(count, 5);
    assert!(turn.stop().is_some(), "the turn has ended");
}

/// An agent that refuses to resume an open session leaves it as it was.
#[tokio::test]
async fn a_resume_that_is_refused_does_not_deafen_the_open_session() {
    let initialized = "{'protocolVersion':1,'agentCapabilities':{'loadSession':true}}";
    let (connection, session, mut agent) = open(v1(), initialized).await;
    let resuming = tokio::spawn(async move { connection.session("/").resume("s").await.is_err() });
    agent
        .play("<-- {'id':'$l','method':'session/load'}\n--> {'id':'$l','error':{'code':-32602,'message':'open'}}")
        .await;
    assert!(resuming.await.unwrap());
    let turn = tokio::spawn(async move { session.prompt("go").await.unwrap().text().await.unwrap() });
    agent.play("<-- {'id':'$p','method':'session/prompt'}").await;
    agent.send(&text("hello")).await;
    agent.play("--> {'id':'$p','result':{'stopReason':'end_turn'}}").await;
    assert_eq!(timeout(PATIENCE, turn).await.unwrap().unwrap(), "hello");
}

/// A turn ends also while the same session is resumed without its history.
#[tokio::test]
async fn a_turn_ends_while_its_session_is_resumed() {
    let resumable =
        "{'protocolVersion':2,'agentInfo':{'name':'a','version':'1'},'capabilities':{'session':{'load':{}}}}";
    let client = Client::new("test", "1").protocol(Protocol::V2Draft);
    let (connection, session, mut agent) = open(client, resumable).await;
    let turn = tokio::spawn(async move { session.prompt("go").await.unwrap().text().await });
    agent.play("<-- {'id':'$p','method':'session/prompt'}\n--> {'id':'$p','result':{'messageId':'m'}}").await;
    agent.send(&update("{'sessionUpdate':'state_update','state':'running'}")).await;
    let _resuming = tokio::spawn(async move { connection.session("/").resume("s").await.is_ok() });
    agent.play("<-- {'id':'$l'}").await;
    agent.send(&update("{'sessionUpdate':'state_update','state':'idle','stopReason':'end_turn'}")).await;
    assert!(timeout(PATIENCE, turn).await.is_ok(), "the turn never ends");
}

/// However many sessions are opened at once, the first updates of each are delivered.
#[tokio::test]
async fn what_comes_with_the_hundredth_session_is_delivered() {
    let (connection, mut agent) = connect(v1(), V1).await;
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let connection = connection.clone();
        opening.spawn(async move { connection.session("/").open().await.unwrap() });
    }
    let mut answers = String::new();
    for number in 0..100 {
        let id = agent.next().await.unwrap()["id"].clone();
        answers += &format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"sessionId":"s{number}"}}}}
{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s{number}","update":{{"sessionUpdate":"available_commands_update","availableCommands":[]}}}}}}
"#
        );
    }
    // All at once, before any of the sessions is claimed.
    agent.send_bytes(answers.as_bytes()).await;
    while let Some(session) = opening.join_next().await {
        let event = timeout(PATIENCE, session.unwrap().next()).await.expect("the first update came").unwrap();
        assert!(matches!(event, Event::Update(SessionUpdate::AvailableCommands(_))), "{event:?}");
    }
}

/// A state that only the agent knows is work, and the end of the work is the end of the turn.
#[tokio::test]
async fn a_turn_with_a_state_of_the_agents_own_ends() {
    let (_connection, session, mut agent) = open(Client::new("test", "1").protocol(Protocol::V2), V2).await;
    let turn = tokio::spawn(async move { session.prompt("go").await.unwrap().text().await });
    agent.play("<-- {'id':'$p','method':'session/prompt'}\n--> {'id':'$p','result':{'messageId':'m'}}").await;
    agent.send(&update("{'sessionUpdate':'state_update','state':'_planning'}")).await;
    agent.send(&update("{'sessionUpdate':'state_update','state':'idle'}")).await;
    assert!(timeout(PATIENCE, turn).await.is_ok(), "the turn never ends");
}

/// How long a client takes for many cancels, with so many updates unread.
async fn time_of_cancels(unread: usize) -> Duration {
    let (connection, session, mut agent) = open(v1().read_files(), V1).await;
    agent.send("{'id':'x','method':'fs/read_text_file','params':{'sessionId':'s','path':'/a'}}").await;
    let _in_hand = session.next().await.unwrap();
    for _ in 0..unread {
        agent.send(&text("")).await;
    }
    let asking = tokio::spawn(async move { connection.call_extension::<()>("_x", &["?"]).await });
    agent.play("<-- {'id':'$x','method':'_x'}").await;
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"x\"}}\n";
    let begun = Instant::now();
    agent.send_bytes(cancel.repeat(2000).as_bytes()).await;
    agent.play("--> {'id':'$x','result':null}").await;
    asking.await.unwrap().unwrap();
    begun.elapsed()
}

/// A cancel takes as long as it takes, however much is unread.
#[tokio::test]
async fn a_cancel_costs_the_same_however_much_is_unread() {
    let (few, many) = (time_of_cancels(0).await, time_of_cancels(10_000).await);
    assert!(many < few * 10, "{few:?} with nothing unread, {many:?} with 10,000 updates");
}

/// A call that is cancelled before anybody has read it is answered at once, and nobody gets to see it.
#[tokio::test]
async fn a_call_that_is_cancelled_unread_is_not_handed_out() {
    let (_connection, session, mut agent) = open(v1().read_files(), V1).await;
    for number in [1, 2] {
        agent
            .send(&format!(
                "{{'id':{number},'method':'fs/read_text_file','params':{{'sessionId':'s','path':'/{number}'}}}}"
            ))
            .await;
    }
    agent
        .play("--> {'method':'$/cancel_request','params':{'requestId':1}}\n<-- {'id':1,'error':{'code':-32800}}")
        .await;
    let Event::ReadTextFile(call) = session.next().await.unwrap() else { panic!() };
    assert_eq!(call.path, "/2");
}
