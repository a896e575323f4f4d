//! How much an agent can make its client hold.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache::client::Session;
use attache::{Client, Connection, Error, Protocol};
use attache_testkit::{CountingAllocator, RawPeer};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MIB: usize = 1 << 20;

/// One test runs at a time, because the allocator counts the whole process.
static ALONE: Mutex<()> = Mutex::const_new(());

/// What the documentation of `Limits` promises.
const PROMISED: usize = 64 * MIB;

const V1: &str = "{'protocolVersion':1}";
const V2: &str = "{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}}}";

/// A raw agent that has opened session `s`, and its client.
struct Played {
    connection: Connection,
    session: Session,
    agent: RawPeer,
    _alone: MutexGuard<'static, ()>,
}

impl Played {
    async fn new(protocol: Protocol, opened: &str) -> Self {
        let alone = ALONE.lock().await;
        let (near, far) = tokio::io::duplex(MIB);
        let mut agent = RawPeer::new(far);
        let (reader, writer) = tokio::io::split(near);
        let connecting = tokio::spawn(Client::new("test", "1").protocol(protocol).connect(reader, writer));
        let initialized = if protocol == Protocol::V1 { V1 } else { V2 };
        agent.play(&format!("<-- {{'id':'$i','method':'initialize'}}\n--> {{'id':'$i','result':{initialized}}}")).await;
        let connection = connecting.await.unwrap().unwrap();
        let opener = connection.clone();
        let opening = tokio::spawn(async move { opener.session("/").open().await.unwrap() });
        agent.play(&format!("<-- {{'id':'$n','method':'session/new'}}\n--> {{'id':'$n','result':{opened}}}")).await;
        Played { connection, session: opening.await.unwrap(), agent, _alone: alone }
    }

    /// Reads everything as it comes.
    fn read_all(&self) -> JoinHandle<Error> {
        let session = self.session.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = session.next().await {
                    return error;
                }
            }
        })
    }

    /// Waits for an answer that never comes: so reading goes on, however much is unread.
    fn wait(&self) -> JoinHandle<()> {
        let connection = self.connection.clone();
        tokio::spawn(async move { assert!(connection.call_extension::<()>("_wait", &["?"]).await.is_err()) })
    }

    async fn update(&mut self, update: &str) {
        let message =
            format!("{{'method':'session/update','params':{{'sessionId':'s','update':{update}}}}}").replace('\'', "\"");
        self.agent.send_bytes(message.replacen('{', "{\"jsonrpc\":\"2.0\",", 1).as_bytes()).await;
        self.agent.send_bytes(b"\n").await;
    }

    /// The bytes that are held once the client has taken in everything: it has when it reads an answer behind it.
    async fn held(&mut self) -> usize {
        let connection = self.connection.clone();
        let asking = tokio::spawn(async move { connection.call_extension::<()>("_x", &["?"]).await });
        loop {
            let message = self.agent.next().await.unwrap();
            if message["method"] == "_x" {
                let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":null}}\n", message["id"]);
                self.agent.send_bytes(answer.as_bytes()).await;
                break;
            }
        }
        asking.await.unwrap().unwrap();
        // Whoever reads gets to what is there.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        CountingAllocator::live()
    }
}

fn check(held: usize, most: usize) {
    assert!(held <= most, "{} KiB, more than {} KiB", held / 1024, most / 1024);
}

/// What can be cancelled is remembered by ids that the agent chooses.
#[tokio::test]
async fn ids_of_what_can_be_cancelled_are_short() {
    let mut played = Played::new(Protocol::V2, "{'sessionId':'s'}").await;
    let reader = played.read_all();
    let before = played.held().await;
    let long = "t".repeat(MIB / 4);
    for number in 0..32 {
        for call in [
            format!(
                "{{'sessionUpdate':'tool_call_update','toolCallId':'{number}{long}','capabilities':{{'cancel':{{}}}}}}"
            ),
            format!(
                "{{'sessionUpdate':'terminal_update','terminalId':'{number}{long}','capabilities':{{'cancel':{{}}}}}}"
            ),
        ] {
            played.update(&call).await;
        }
    }
    check(played.held().await.saturating_sub(before), 4 * MIB);
    reader.abort();
}

/// Echoes are remembered with the end of their work until a prompt is answered.
#[tokio::test]
async fn echoes_of_a_prompt_are_remembered_in_short() {
    let mut played = Played::new(Protocol::V2, "{'sessionId':'s'}").await;
    let turn = played.session.prompt("go").await.unwrap();
    played.agent.play("<-- {'id':'$p','method':'session/prompt'}").await;
    let reader = played.read_all();
    let before = played.held().await;
    let long = "x".repeat(MIB / 4);
    for state in [
        format!("{{'sessionUpdate':'state_update','state':'idle','_meta':{{'long':'{long}'}}}}"),
        format!(
            "{{'sessionUpdate':'state_update','state':'idle','stopReason':'error','error':{{'code':1,'message':'{long}','data':'{long}'}}}}"
        ),
        format!("{{'sessionUpdate':'state_update','state':'idle','stopReason':'_{long}'}}"),
    ] {
        for number in 0..20 {
            let id = format!("{}{number}", state.len());
            played
                .update(&format!(
                    "{{'sessionUpdate':'user_message_chunk','messageId':'{id}','content':{{'type':'text','text':'x'}}}}"
                ))
                .await;
            played.update(&format!("{{'sessionUpdate':'user_message','messageId':'{long}{number}'}}")).await;
            played.update(&state).await;
        }
    }
    check(played.held().await.saturating_sub(before), 4 * MIB);
    reader.abort();
    drop(turn);
}

/// A list takes many times its length on the wire.
#[tokio::test]
async fn unread_lists_count_as_they_are_held() {
    let mut played = Played::new(Protocol::V2, "{'sessionId':'s'}").await;
    let _waiting = played.wait();
    let before = played.held().await;
    let list = vec!["{'type':''}"; 80_000].join(",");
    for _ in 0..8 {
        played.update(&format!("{{'sessionUpdate':'tool_call_update','toolCallId':'t','content':[{list}]}}")).await;
    }
    check(played.held().await.saturating_sub(before), PROMISED);
}

/// A change of mode is read as all options: a hundred bytes on the wire, a megabyte in the inbox.
#[tokio::test]
async fn unread_changes_of_mode_count_as_they_are_held() {
    let long = "n".repeat(MIB);
    let modes = format!(
        "{{'sessionId':'s','modes':{{'currentModeId':'a','availableModes':[{{'id':'a','name':'{long}'}},{{'id':'b','name':'B'}}]}}}}"
    );
    let mut played = Played::new(Protocol::V1, &modes).await;
    let _waiting = played.wait();
    let before = played.held().await;
    for number in 0..40 {
        let mode = ["b", "a"][number % 2];
        played.update(&format!("{{'sessionUpdate':'current_mode_update','currentModeId':'{mode}'}}")).await;
        played.update("{'sessionUpdate':'config_option_update','configOptions':[]}").await;
    }
    check(played.held().await.saturating_sub(before), PROMISED);
}

/// Questions of a session that has overflowed are answered `cancelled`, and that is all.
#[tokio::test]
async fn questions_of_an_overflowed_session_are_not_kept() {
    let mut played = Played::new(Protocol::V1, "{'sessionId':'s'}").await;
    let _waiting = played.wait();
    let long = "x".repeat(MIB);
    for _ in 0..30 {
        played
            .update(&format!("{{'sessionUpdate':'agent_message_chunk','content':{{'type':'text','text':'{long}'}}}}"))
            .await;
    }
    assert!(matches!(played.read_all().await.unwrap(), Error::SessionOverflow { .. }));
    let mut before = 0;
    for round in 0..2 {
        for id in 0..4000 {
            played.agent.send(&format!("{{'id':{id},'method':'session/request_permission','params':{{'sessionId':'s','toolCall':{{'toolCallId':'t'}},'options':[]}}}}")).await;
            while played.agent.next().await.unwrap()["id"] != id {}
        }
        let held = played.held().await;
        match round {
            0 => before = held,
            _ => check(held.saturating_sub(before), 16 * 1024),
        }
    }
}
