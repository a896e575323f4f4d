//! What a client cannot do to an agent: lose what was said, keep it from ending, or get a yes that is none.
//!
//! The clock stands still while anybody has something to do, so sleeping is waiting until everything is at rest.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::agent::{Agent, HandlerError, OpenRequest, Opened, Server, Session, SessionHandle};
use attache::model::initialize::Implementation;
use attache::{Error, Limits, Prompt, Stop, Turn};
use attache_testkit::RawPeer;
use tokio::io::{duplex, split};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// More than fits into an outbox and a pipe: whoever sends after this has to wait until the client reads.
const MUCH: usize = 1 << 20;

/// Longer than anything but waiting for the client takes.
const A_WHILE: Duration = Duration::from_millis(100);

/// Serves an agent to a client that says what it likes.
fn serve<A: Agent>(server: Server<A>) -> (RawPeer, JoinHandle<Result<(), Error>>) {
    let (near, far) = duplex(64 * 1024);
    let (reader, writer) = split(far);
    (RawPeer::new(near), tokio::spawn(server.connect(reader, writer)))
}

/// The same, with a session open.
async fn open<A: Agent>(server: Server<A>) -> (RawPeer, JoinHandle<Result<(), Error>>) {
    let (mut client, server) = serve(server);
    client
        .play(
            "--> {'id':0,'method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{'terminal':true}}}
             <-- {'id':0,'result':{'protocolVersion':1}}
             --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
             <-- {'id':1,'result':{'sessionId':'$session'}}",
        )
        .await;
    (client, server)
}

fn quiet_agent() -> impl Agent {
    attache::agent_fn("quiet", "1", async |_: Turn, _: Prompt| Ok(Stop::EndTurn))
}

async fn prompt(client: &mut RawPeer, id: u32, text: &str) {
    let prompt = format!("{{'sessionId':'$session','prompt':[{{'type':'text','text':'{text}'}}]}}");
    client.send(&format!("{{'id':{id},'method':'session/prompt','params':{prompt}}}")).await;
}

/// What was done, in order.
type Log<T> = Arc<Mutex<Vec<T>>>;

/// An agent ends with its client, however many of its handlers hang.
#[tokio::test(start_paused = true)]
async fn an_agent_ends_when_its_client_is_gone() {
    let limits = Limits::default();
    for calls in [limits.in_hand, limits.in_hand + 1] {
        let server = attache::serve(quiet_agent()).extension("_hang", async |_: (), _| {
            std::future::pending::<()>().await;
            Ok(())
        });
        let (mut client, server) = open(server).await;
        for id in 0..calls {
            client.send(&format!("{{'id':'c{id}','method':'_hang'}}")).await;
        }
        drop(client);
        timeout(limits.cancel_grace * 4, server).await.expect("the agent ends").unwrap().unwrap();
    }
}

/// A request that waits for room does not keep an agent from ending.
#[tokio::test(start_paused = true)]
async fn an_agent_ends_when_its_client_has_closed_its_end_and_does_not_read() {
    let agent = attache::agent_fn("long", "1", async |turn: Turn, _: Prompt| {
        turn.text("x".repeat(MUCH)).await?;
        Ok(Stop::EndTurn)
    });
    let (mut client, server) = open(attache::serve(agent)).await;
    prompt(&mut client, 2, "go").await;
    sleep(A_WHILE).await;
    client.send("{'id':3,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}").await;
    client.close().await;
    timeout(Limits::default().cancel_grace * 4, server).await.expect("the agent ends").unwrap().unwrap();
}

/// A session that opens while the client leaves gets the time to close.
#[tokio::test(start_paused = true)]
async fn a_session_that_opens_while_the_client_leaves_is_closed() {
    struct SlowAgent(Log<&'static str>);
    struct SlowSession(Log<&'static str>);

    impl Agent for SlowAgent {
        type Session = SlowSession;

        fn info(&self) -> Implementation {
            Implementation::new("slow", "1")
        }

        async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<SlowSession>, HandlerError> {
            sleep(A_WHILE).await;
            self.0.lock().unwrap().push("opened");
            Ok(SlowSession(self.0.clone()).into())
        }
    }

    impl Session for SlowSession {
        async fn prompt(&mut self, _: Turn, _: Prompt) -> Result<Stop, HandlerError> {
            Ok(Stop::EndTurn)
        }

        async fn close(self) {
            sleep(A_WHILE).await;
            self.0.lock().unwrap().push("closed");
        }
    }

    let log = Log::default();
    let (mut client, server) = serve(attache::serve(SlowAgent(log.clone())));
    client
        .play(
            "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
             <-- {'id':0}
             --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}",
        )
        .await;
    client.close().await;
    server.await.unwrap().unwrap();
    assert_eq!(*log.lock().unwrap(), ["opened", "closed"]);
}

/// A grace may be as long as there is.
#[tokio::test(start_paused = true)]
async fn a_grace_may_be_for_ever() {
    let limits = Limits::default().cancel_grace(Duration::MAX);
    let (client, server) = serve(attache::serve(quiet_agent()).limits(limits));
    drop(client);
    server.await.expect("no panic").unwrap();
}

/// A handler of notifications that panics does so for one notification, also when it panics before it has a future.
#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_does_not_end_the_others() {
    let served = Log::default();
    let serving = served.clone();
    let server = attache::serve(quiet_agent()).extension("_divide", move |[divisor]: [u32; 1], _| {
        let quotient = 10 / divisor;
        serving.lock().unwrap().push(quotient);
        async move { Ok(quotient) }
    });
    let (mut client, _server) = open(server).await;
    for divisor in [5, 0, 2] {
        client.send(&format!("{{'method':'_divide','params':[{divisor}]}}")).await;
    }
    sleep(A_WHILE).await;
    assert_eq!(*served.lock().unwrap(), [2, 5]);
}
