//! What a client cannot do to an agent: lose what was said, keep it from ending, or get a yes that is none.
//!
//! The clock stands still while anybody has something to do, so sleeping is waiting until everything is at rest.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::agent::{
    Agent, Ask, Decision, HandlerError, OpenRequest, Opened, Restore, Server, Session, SessionHandle,
};
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::session::SessionId;
use attache::model::terminal::ExitStatus;
use attache::{Error, Limits, Prompt, Stop, Turn};
use attache_testkit::RawPeer;
use serde_json::Value;
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

/// Reads until these prompts are answered; returns why their turns stopped.
async fn stops<const N: usize>(client: &mut RawPeer, ids: [u32; N]) -> [String; N] {
    let mut stops = ids.map(|_| None);
    while stops.iter().any(Option::is_none) {
        let message = client.next().await.expect("the agent answers");
        if let Some(place) = ids.iter().position(|id| message["id"] == *id) {
            stops[place] = message["result"]["stopReason"].as_str().map(String::from);
        }
    }
    stops.map(Option::unwrap)
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

/// An agent that notes what it is told. Its turn about `first` says `length` bytes, waits, and takes up one more prompt.
async fn taking_up(length: usize, wait: Duration) -> (RawPeer, Log<String>) {
    let told = Log::default();
    let telling = told.clone();
    let agent = attache::agent_fn("listening", "1", move |turn: Turn, prompt: Prompt| {
        let told = telling.clone();
        async move {
            told.lock().unwrap().push(prompt.text());
            if prompt.text() != "first" {
                return Ok(Stop::EndTurn);
            }
            turn.text("x".repeat(length)).await?;
            sleep(wait).await;
            tokio::select! {
                prompt = turn.next_prompt() => told.lock().unwrap().push(format!("{} too", prompt?.text())),
                () = sleep(A_WHILE) => {}
            }
            Ok(Stop::EndTurn)
        }
    });
    let (mut client, _) = open(attache::serve(agent)).await;
    prompt(&mut client, 2, "first").await;
    (client, told)
}

/// Whoever stops waiting for a prompt because there is no room loses none.
#[tokio::test(start_paused = true)]
async fn a_prompt_is_not_taken_by_who_stops_waiting_for_it() {
    let (mut client, told) = taking_up(MUCH, Duration::ZERO).await;
    sleep(A_WHILE / 2).await;
    prompt(&mut client, 3, "second").await;
    sleep(A_WHILE).await;
    assert_eq!(stops(&mut client, [2, 3]).await, ["end_turn", "end_turn"]);
    assert_eq!(*told.lock().unwrap(), ["first", "second"]);
}

/// A prompt that was sent after `session/cancel` is not cancelled by it.
#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_reach_the_next_prompt() {
    let (mut client, told) = taking_up(1, A_WHILE).await;
    client.expect("{'method':'session/update'}").await;
    client.send("{'method':'session/cancel','params':{'sessionId':'$session'}}").await;
    prompt(&mut client, 3, "second").await;
    assert_eq!(stops(&mut client, [2, 3]).await, ["cancelled", "end_turn"]);
    assert_eq!(*told.lock().unwrap(), ["first", "second"]);
}

/// A prompt that waits and is cancelled is not taken up by the turn that runs.
#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_cancelled_is_not_taken_up() {
    let (mut client, told) = taking_up(1, A_WHILE).await;
    client.expect("{'method':'session/update'}").await;
    prompt(&mut client, 3, "second").await;
    client.send("{'method':'$/cancel_request','params':{'requestId':3}}").await;
    assert_eq!(stops(&mut client, [2, 3]).await, ["end_turn", "cancelled"]);
    assert_eq!(*told.lock().unwrap(), ["first"]);
}

/// A turn that has ended takes up no prompt, and whoever waits for one is told.
#[tokio::test(start_paused = true)]
async fn a_turn_that_has_ended_takes_no_prompt() {
    let ended = Log::default();
    let ending = ended.clone();
    let agent = attache::agent_fn("listening", "1", move |turn: Turn, _: Prompt| {
        let ended = ending.clone();
        tokio::spawn(async move {
            while turn.next_prompt().await.is_ok() {}
            ended.lock().unwrap().push(());
        });
        async {
            tokio::task::yield_now().await;
            Ok(Stop::EndTurn)
        }
    });
    let (mut client, _server) = open(attache::serve(agent)).await;
    for id in 2..6 {
        prompt(&mut client, id, "go").await;
        client.expect(&format!("{{'id':{id},'result':{{'stopReason':'end_turn'}}}}")).await;
    }
    sleep(A_WHILE).await;
    assert_eq!(ended.lock().unwrap().len(), 4, "listeners that were told");
}

/// When the turn is cancelled and the answer is yes, in one breath, that is a no.
#[tokio::test(start_paused = true)]
async fn a_yes_to_a_cancelled_turn_is_a_no() {
    let decided = Log::default();
    let deciding = decided.clone();
    let agent = attache::agent_fn("asking", "1", move |turn: Turn, _: Prompt| {
        let decided = deciding.clone();
        async move {
            let decision = turn.ask(Ask::new("Delete everything?")).await?;
            decided.lock().unwrap().push(decision);
            Ok(Stop::EndTurn)
        }
    });
    let (mut client, _server) = open(attache::serve(agent)).await;
    prompt(&mut client, 2, "go").await;
    client
        .play(
            "<-- {'id':'$ask','method':'session/request_permission'}
             --> {'method':'session/cancel','params':{'sessionId':'$session'}}
             --> {'id':'$ask','result':{'outcome':{'outcome':'selected','optionId':'allow_once'}}}
             <-- {'id':2,'result':{'stopReason':'cancelled'}}",
        )
        .await;
    assert_eq!(*decided.lock().unwrap(), [Decision::Cancelled]);
}

/// A terminal whose creation is given up is released if the client creates it all the same.
#[tokio::test(start_paused = true)]
async fn a_terminal_that_nobody_waits_for_is_released() {
    let agent = attache::agent_fn("hasty", "1", async |turn: Turn, _: Prompt| {
        let _ = timeout(A_WHILE, turn.terminal("sleep", ["1000"])).await;
        turn.cancelled().await;
        Ok(Stop::EndTurn)
    });
    let (mut client, _server) = open(attache::serve(agent)).await;
    prompt(&mut client, 2, "go").await;
    client
        .play(
            "<-- {'id':'$create','method':'terminal/create'}
             <-- {'method':'$/cancel_request','params':{'requestId':'$create'}}
             --> {'id':'$create','result':{'terminalId':'term'}}
             <-- {'method':'terminal/release','params':{'sessionId':'$session','terminalId':'term'}}",
        )
        .await;
}

/// The same when the answer has come and is not looked at any more.
#[tokio::test(start_paused = true)]
async fn a_terminal_that_nobody_takes_is_released() {
    let agent = attache::agent_fn("hasty", "1", async |turn: Turn, _: Prompt| {
        let mut work = std::pin::pin!(turn.terminal("sleep", ["1000"]));
        // Polled once, so that it is asked for, and then never again.
        let _ = timeout(Duration::ZERO, work.as_mut()).await;
        sleep(A_WHILE).await;
        Ok(Stop::EndTurn)
    });
    let (mut client, _server) = open(attache::serve(agent)).await;
    prompt(&mut client, 2, "go").await;
    client
        .play(
            "<-- {'id':'$create','method':'terminal/create'}
             --> {'id':'$create','result':{'terminalId':'term'}}
             <-- {'method':'terminal/release','params':{'sessionId':'$session','terminalId':'term'}}",
        )
        .await;
}

/// Has an agent do something that it gives up because there is no room; returns what a client hears that reads after that.
async fn given_up<W: Future<Output = ()> + Send + 'static>(
    before: &str,
    work: impl Fn(Turn) -> W + Clone + Send + Sync + 'static,
) -> Vec<Value> {
    let agent = attache::agent_fn("hasty", "1", move |turn: Turn, _: Prompt| {
        let work = work(turn.clone());
        async move {
            work.await;
            turn.text("the end").await?;
            Ok(Stop::EndTurn)
        }
    });
    let (mut client, _server) = open(attache::serve(agent)).await;
    prompt(&mut client, 2, "go").await;
    client.play(before).await;
    sleep(2 * A_WHILE).await;
    let mut heard = Vec::new();
    while heard.last().is_none_or(|message: &Value| message["id"] != 2) {
        heard.push(client.next().await.expect("the turn ends"));
    }
    heard
}

/// The release of a terminal that is given up is sent.
#[tokio::test(start_paused = true)]
async fn a_release_that_was_given_up_is_sent() {
    let before = "<-- {'id':'$t','method':'terminal/create'}\n--> {'id':'$t','result':{'terminalId':'term'}}";
    let heard = given_up(before, async |turn: Turn| {
        let terminal = turn.terminal("sleep", ["1000"]).await.unwrap();
        turn.text("x".repeat(MUCH)).await.unwrap();
        assert!(timeout(A_WHILE, terminal.release()).await.is_err());
    })
    .await;
    assert_eq!(heard.iter().filter(|message| message["method"] == "terminal/release").count(), 1);
}

/// A client that set an option is answered, also by an answer that is given up.
#[tokio::test(start_paused = true)]
async fn an_option_whose_answer_was_given_up_is_answered() {
    let set = "{'sessionId':'$session','configId':'c','value':'v'}";
    let before = format!("--> {{'id':'set','method':'session/set_config_option','params':{set}}}");
    let heard = given_up(&before, async |turn: Turn| {
        let change = turn.option_change().await;
        turn.text("x".repeat(MUCH)).await.unwrap();
        assert!(timeout(A_WHILE, change.reply(Ok(Vec::new()))).await.is_err());
    })
    .await;
    assert_eq!(heard.iter().filter(|message| message["id"] == "set").count(), 1);
}

/// A compaction and a command whose end was given up are shown as ended.
#[tokio::test(start_paused = true)]
async fn what_is_shown_ends_when_its_end_was_given_up() {
    let server = attache::agent_fn("hasty", "1", async |turn: Turn, _: Prompt| {
        let terminal = turn.show_terminal("sleep 1000", "/tmp").await?;
        let (done, failed) = (turn.compact().await?, turn.compact().await?);
        turn.text("x".repeat(MUCH)).await?;
        assert!(timeout(A_WHILE, terminal.exit(ExitStatus::new().exit_code(0))).await.is_err());
        assert!(timeout(A_WHILE, done.complete(None)).await.is_err());
        assert!(timeout(A_WHILE, failed.fail("no")).await.is_err());
        Ok(Stop::EndTurn)
    });
    let (mut client, _server) = serve(attache::serve(server));
    client
        .play(
            "--> {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'},\
             'capabilities':{'session':{'compaction':{}}}}}
             <-- {'id':0,'result':{'protocolVersion':2}}
             --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
             <-- {'id':1,'result':{'sessionId':'$session'}}",
        )
        .await;
    prompt(&mut client, 2, "go").await;
    sleep(4 * A_WHILE).await;
    let (mut cancelled, mut exited) = (0, 0);
    loop {
        let message = client.next().await.expect("the turn ends");
        let update = &message["params"]["update"];
        cancelled += usize::from(update["sessionUpdate"] == "compaction_update" && update["status"] == "cancelled");
        exited += usize::from(update["exitStatus"].is_object());
        if update["state"] == "idle" && cancelled + exited > 0 {
            break;
        }
    }
    assert_eq!((cancelled, exited), (2, 1));
}

/// An agent that restores any session, and says as many long things as a prompt has letters.
struct Keeper;
struct Long;

impl Agent for Keeper {
    type Session = Long;

    fn info(&self) -> Implementation {
        Implementation::new("keeper", "1")
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<Long>, HandlerError> {
        Ok(Long.into())
    }
}

impl Restore for Keeper {
    async fn restore(
        &self,
        _: SessionId,
        _: OpenRequest,
        _: bool,
        _: SessionHandle,
    ) -> Result<Opened<Long>, HandlerError> {
        Ok(Long.into())
    }
}

impl Session for Long {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        for _ in 0..prompt.text().len() {
            turn.text("x".repeat(2000)).await?;
        }
        Ok(Stop::EndTurn)
    }
}

/// A session that is closed and loaded again is open, however late the old one hears that it has closed.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_closed_and_loaded_again_is_open() {
    let (near, far) = duplex(256);
    let (reader, writer) = split(far);
    let server = attache::serve(Keeper).restores().limits(Limits::default().outbox(1024));
    tokio::spawn(server.connect(reader, writer));
    let mut client = RawPeer::new(near);
    client.play("--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}\n<-- {'id':0}").await;
    let load = |id: &str, session: &str| {
        let params = format!("{{'sessionId':'{session}','cwd':'/','mcpServers':[]}}");
        format!("{{'id':'{id}','method':'session/load','params':{params}}}")
    };
    let say = |id: &str, session: &str, text: &str| {
        let params = format!("{{'sessionId':'{session}','prompt':[{{'type':'text','text':'{text}'}}]}}");
        format!("{{'id':'{id}','method':'session/prompt','params':{params}}}")
    };
    for session in ["A", "B", "S"] {
        client.send(&load(session, session)).await;
        client.expect(&format!("{{'id':'{session}'}}")).await;
    }
    // Two sessions wait for room before the one that is closed does.
    for session in ["A", "B"] {
        client.send(&say(session, session, "123456")).await;
        sleep(A_WHILE).await;
    }
    client.send("{'id':'close','method':'session/close','params':{'sessionId':'S'}}").await;
    sleep(A_WHILE).await;
    client.send(&load("load", "S")).await;
    sleep(A_WHILE).await;
    let mut answered = 0;
    loop {
        let message = client.next().await.expect("the agent answers");
        if message["id"] == "load" || message["id"] == "close" {
            assert!(message["result"].is_object(), "{message}");
            answered += 1;
            if answered == 2 {
                sleep(A_WHILE).await;
                client.send(&say("hello", "S", "")).await;
            }
        }
        if message["id"] == "hello" {
            assert!(message["result"].is_object(), "the session was loaded, and is gone: {message}");
            break;
        }
    }
}

/// However long the id of a session is that there is not, it ends no connection and is not sent back.
#[tokio::test(start_paused = true)]
async fn a_long_session_id_does_not_end_the_connection() {
    let limits = Limits::default();
    let (mut client, _server) = open(attache::serve(quiet_agent())).await;
    let id = "z".repeat(limits.outbox + limits.overdraft + 1);
    client.send(&format!("{{'id':2,'method':'session/prompt','params':{{'sessionId':'{id}','prompt':[]}}}}")).await;
    let refused = client.expect(&format!("{{'id':2,'error':{{'code':{}}}}}", ErrorObject::NOT_FOUND)).await;
    assert!(refused.to_string().len() < 1000);
    prompt(&mut client, 3, "still there?").await;
    client.play("<-- {'id':3,'result':{'stopReason':'end_turn'}}").await;
}

/// What an agent keeps of a session for as long as it is open is not as long as a client likes.
#[tokio::test(start_paused = true)]
async fn a_session_with_a_long_directory_or_id_is_refused() {
    let (mut client, _server) = open(attache::serve(Keeper).restores()).await;
    for (cwd, id, is_fine) in [(4000, 1000, true), (MUCH, 1, false), (1, MUCH, false)] {
        let (cwd, id) = (format!("/{}", "c".repeat(cwd)), "s".repeat(id));
        let params = format!("{{'sessionId':'{id}','cwd':'{cwd}','mcpServers':[]}}");
        client.send(&format!("{{'id':2,'method':'session/load','params':{params}}}")).await;
        let answer = client.expect("{'id':2}").await;
        assert_eq!(answer["result"].is_object(), is_fine, "{} {}", cwd.len(), id.len());
    }
}
