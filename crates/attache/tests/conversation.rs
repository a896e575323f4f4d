//! Both ends in memory: whole turns in every dialect.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::agent::{Ask, Decision, HandlerError, OpenRequest, Opened, SessionHandle};
use attache::model::content::ContentBlock;
use attache::model::tool::ToolKind;
use attache::model::update::SessionUpdate;
use attache::{Client, Connection, Dialect, Error, Event, Prompt, Protocol, Stop, Turn};

const DIALECTS: [(Protocol, Dialect); 4] = [
    (Protocol::Auto, Dialect::V2),
    (Protocol::V1, Dialect::V1),
    (Protocol::V2Draft, Dialect::V2Draft),
    (Protocol::V2, Dialect::V2),
];

/// A client and an agent at two ends of a pipe of `capacity` bytes.
async fn connect<A: attache::agent::Agent>(client: Client, agent: A, capacity: usize) -> Result<Connection, Error> {
    let (near, far) = tokio::io::duplex(capacity);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    let (reader, writer) = tokio::io::split(near);
    client.connect(reader, writer).await
}

fn client(protocol: Protocol) -> Client {
    Client::new("test", "1").protocol(protocol)
}

#[tokio::test]
async fn an_echo_agent_echoes_in_every_dialect() {
    for (protocol, dialect) in DIALECTS {
        let echo = attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
            turn.text(prompt.text()).await?;
            Ok(Stop::EndTurn)
        });
        let agent = connect(client(protocol), echo, 64 * 1024).await.unwrap();
        assert_eq!(agent.dialect(), dialect);
        assert_eq!(agent.info().unwrap().name, "echo");
        let session = agent.session("/tmp").open().await.unwrap();
        for word in ["one", "two"] {
            let turn = session.prompt(word).await.unwrap();
            assert_eq!(turn.text().await.unwrap(), word, "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn a_tool_call_with_permission_goes_through_in_every_dialect() {
    for (protocol, dialect) in DIALECTS {
        let decisions = Arc::new(Mutex::new(Vec::new()));
        let seen = decisions.clone();
        let asking = attache::agent_fn("asking", "1.0", move |turn: Turn, _: Prompt| {
            let seen = seen.clone();
            async move {
                let tool = turn.tool("Delete everything").await?;
                tool.kind(ToolKind::Delete).await?;
                let decision = turn.ask(Ask::new("Really?").about(&tool)).await?;
                let allowed = decision.is_allowed();
                seen.lock().unwrap().push(decision);
                if !allowed {
                    tool.fail().await?;
                    return Ok(Stop::Refusal);
                }
                tool.in_progress().await?;
                tool.push_text("done").await?;
                tool.complete().await?;
                Ok(Stop::EndTurn)
            }
        });
        let agent = connect(client(protocol), asking, 64 * 1024).await.unwrap();
        let session = agent.session("/tmp").open().await.unwrap();
        for (allow, stop) in [(true, Stop::EndTurn), (false, Stop::Refusal)] {
            let mut turn = session.prompt("go").await.unwrap();
            let mut tags = Vec::new();
            while let Some(event) = turn.next().await.unwrap() {
                match event {
                    Event::Update(update) => tags.push(update.tag().to_string()),
                    Event::Permission(ask) if allow => ask.allow_once().await.unwrap(),
                    Event::Permission(ask) => ask.reject().await.unwrap(),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(turn.stop(), Some(&stop), "{dialect:?}");
            assert!(tags.iter().any(|tag| tag.starts_with("tool_call")), "{dialect:?} {tags:?}");
        }
        let decisions = decisions.lock().unwrap();
        assert!(matches!(decisions[..], [Decision::Allowed(_), Decision::Rejected(_)]), "{decisions:?}");
    }
}

#[tokio::test]
async fn law_9_cancel_ends_the_turn_it_was_meant_for() {
    for (protocol, dialect) in DIALECTS {
        let patient = attache::agent_fn("patient", "1.0", async |turn: Turn, prompt: Prompt| {
            if prompt.text() == "wait" {
                turn.text("waiting").await?;
                turn.cancelled().await;
                turn.text("stopped").await?;
                return Err(Error::Invalid("an abort error, which must not be seen".into()).into());
            }
            turn.text("quick").await?;
            Ok(Stop::EndTurn)
        });
        let agent = connect(client(protocol), patient, 64 * 1024).await.unwrap();
        let session = agent.session("/tmp").open().await.unwrap();
        // Nothing runs: nothing is cancelled, now or later.
        session.cancel().await.unwrap();
        assert_eq!(session.prompt("go").await.unwrap().text().await.unwrap(), "quick");
        let mut turn = session.prompt("wait").await.unwrap();
        let mut text = String::new();
        while let Some(event) = turn.next().await.unwrap() {
            if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event {
                text.push_str(chunk.content.as_text().unwrap());
                if text == "waiting" {
                    turn.cancel().await.unwrap();
                }
            }
        }
        assert_eq!(text, "waitingstopped", "{dialect:?}: the last update comes before the end");
        assert_eq!(turn.stop(), Some(&Stop::Cancelled), "{dialect:?}");
        assert_eq!(session.prompt("go").await.unwrap().text().await.unwrap(), "quick");
    }
}

#[tokio::test]
async fn law_9_a_turn_that_is_cancelled_before_it_begins_has_been_cancelled() {
    for (protocol, dialect) in DIALECTS {
        let agent = attache::agent_fn("never", "1.0", async |turn: Turn, _: Prompt| {
            turn.cancelled().await;
            Ok(Stop::EndTurn)
        });
        let agent = connect(client(protocol), agent, 64 * 1024).await.unwrap();
        let session = agent.session("/tmp").open().await.unwrap();
        let mut first = session.prompt("one").await.unwrap();
        let mut second = session.prompt("two").await.unwrap();
        session.cancel().await.unwrap();
        while first.next().await.unwrap().is_some() {}
        assert_eq!(first.stop(), Some(&Stop::Cancelled), "{dialect:?}");
        drop(first);
        while second.next().await.unwrap().is_some() {}
        assert_eq!(second.stop(), Some(&Stop::Cancelled), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn law_9_a_tool_that_hangs_cannot_hold_a_cancelled_turn() {
    let hanging = attache::agent_fn("hanging", "1.0", async |turn: Turn, _: Prompt| {
        let _tool = turn.tool("Hang").await?;
        std::future::pending::<()>().await;
        Ok(Stop::EndTurn)
    });
    let agent = connect(client(Protocol::V1), hanging, 64 * 1024).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    turn.next().await.unwrap();
    turn.cancel().await.unwrap();
    let started = tokio::time::Instant::now();
    let mut last = None;
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::Update(SessionUpdate::ToolCallUpdate(update)) = event {
            last = update.status.set().cloned();
        }
    }
    assert_eq!(turn.stop(), Some(&Stop::Cancelled));
    assert_eq!(last.unwrap().as_str(), "failed", "the tool call was closed before the end of the turn");
    assert!(started.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn what_is_not_offered_never_reaches_the_wire() {
    let agent = attache::agent_fn("plain", "1.0", async |turn: Turn, _: Prompt| {
        assert!(matches!(turn.read_text_file("/tmp/a").await, Err(Error::NotOffered(_))));
        assert!(matches!(turn.terminal("ls", [""; 0]).await, Err(Error::NotOffered(_))));
        Ok(Stop::EndTurn)
    });
    let agent = connect(client(Protocol::V1), agent, 64 * 1024).await.unwrap();
    assert!(matches!(agent.session("/tmp").load("old").await, Err(Error::NotOffered(_))));
    assert!(matches!(agent.delete_session("old").await, Err(Error::NotOffered(_))));
    // A path that is wrong is named, also where the directory would not be offered anyway.
    let relative = agent.session("tmp").open().await.unwrap_err().to_string();
    assert_eq!(relative, "the session's directory `tmp` must be an absolute path");
    let relative = agent.session("/tmp").directory("more").open().await.unwrap_err().to_string();
    assert_eq!(relative, "the additional directory `more` must be an absolute path");
    let session = agent.session("/tmp").open().await.unwrap();
    let image = ContentBlock::from(attache::model::content::ImageContent::new("", "image/png"));
    assert!(matches!(session.prompt(image).await, Err(Error::NotOffered(_))));
    session.prompt("go").await.unwrap().text().await.unwrap();
}

#[tokio::test]
async fn a_client_serves_files_and_commands_to_a_version_1_agent() {
    let client = client(Protocol::Auto).read_files().write_files().terminals();
    let worker = attache::agent_fn("worker", "1.0", async |turn: Turn, _: Prompt| {
        let text = turn.read_text_file("/tmp/in").await?;
        turn.write_text_file("/tmp/out", text.to_uppercase()).await?;
        let request = attache::model::terminal::CreateTerminalRequest::new("ignored", "true").args(["x"]).cwd("/srv");
        let terminal = turn.create_terminal(request).await?;
        let status = terminal.wait().await?;
        let output = terminal.output().await?.output;
        drop(terminal);
        turn.text(format!("{output} {:?}", status.exit_code)).await?;
        Ok(Stop::EndTurn)
    });
    let agent = connect(client.protocol(Protocol::V1), worker, 64 * 1024).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let mut log = Vec::new();
    while let Some(event) = turn.next().await.unwrap() {
        use attache::model::fs::{ReadTextFileResponse, WriteTextFileResponse};

        use attache::model::terminal::{
            CreateTerminalResponse, ExitStatus, ReleaseTerminalResponse, TerminalOutputResponse,
        };

        use attache::model::update::SessionUpdate;
        match event {
            Event::ReadTextFile(call) => {
                log.push(format!("read {}", call.path));
                call.reply(Ok(ReadTextFileResponse::new("text"))).await.unwrap();
            }
            Event::WriteTextFile(call) => {
                log.push(format!("write {} {}", call.path, call.content));
                call.reply(Ok(WriteTextFileResponse::new())).await.unwrap();
            }
            Event::CreateTerminal(call) => {
                log.push(format!("run {} {:?} {:?}", call.command, call.args, call.cwd));
                call.reply(Ok(CreateTerminalResponse::new("t1"))).await.unwrap();
            }
            Event::WaitForTerminalExit(call) => {
                let status = ExitStatus::new().exit_code(3);
                call.reply(Ok(status)).await.unwrap();
            }
            Event::TerminalOutput(call) => {
                call.reply(Ok(TerminalOutputResponse::new("out", false))).await.unwrap();
            }
            Event::ReleaseTerminal(call) => {
                log.push(format!("release {}", call.terminal_id));
                call.reply(Ok(ReleaseTerminalResponse::new())).await.unwrap();
            }
            Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                log.push(chunk.content.as_text().unwrap().to_string());
            }
            other => panic!("{other:?}"),
        }
    }
    let expected =
        ["read /tmp/in", "write /tmp/out TEXT", "run true [\"x\"] Some(\"/srv\")", "release t1", "out Some(3)"];
    assert_eq!(log, expected, "law 4: the dropped terminal was released");
}

/// An agent whose sessions can be opened again under their ids.
struct Lasting;

struct Repeating;

impl attache::agent::Agent for Lasting {
    type Session = Repeating;

    fn info(&self) -> attache::model::initialize::Implementation {
        attache::model::initialize::Implementation::new("lasting", "1.0")
    }

    async fn open(&self, _: OpenRequest, _: SessionHandle) -> Result<Opened<Repeating>, HandlerError> {
        Ok(Repeating.into())
    }
}

impl attache::agent::Restore for Lasting {
    async fn restore(
        &self,
        _: attache::model::session::SessionId,
        _: OpenRequest,
        _: bool,
        _: SessionHandle,
    ) -> Result<Opened<Repeating>, HandlerError> {
        Ok(Repeating.into())
    }
}

impl attache::agent::Session for Repeating {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        let decision = turn.ask(Ask::new("Really?")).await?;
        turn.text(format!("{} {}", prompt.text(), decision.is_allowed())).await?;
        Ok(Stop::EndTurn)
    }
}

#[tokio::test]
async fn a_session_that_is_opened_again_outlives_its_older_handles() {
    for (protocol, dialect) in DIALECTS {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(attache::serve(Lasting).restores().connect(reader, writer));
        let (reader, writer) = tokio::io::split(near);
        let agent = client(protocol).connect(reader, writer).await.unwrap();
        let first = agent.session("/tmp").resume("old").await.unwrap();
        let mut turn = first.prompt("one").await.unwrap();
        let asked = loop {
            if let Some(Event::Permission(ask)) = turn.next().await.unwrap() {
                break ask;
            }
        };
        // A session that is at work is not opened again, and goes on as it was.
        assert!(agent.session("/tmp").resume("old").await.is_err(), "{dialect:?}");
        turn.cancel().await.unwrap();
        drop(asked);
        while turn.next().await.unwrap().is_some() {}
        let second = agent.session("/tmp").resume("old").await.unwrap();
        drop(first);
        // The turn of the older handle was cancelled; this one was not.
        let mut turn = second.prompt("two").await.unwrap();
        let mut text = String::new();
        while let Some(event) = turn.next().await.unwrap() {
            match event {
                Event::Permission(ask) => ask.allow_once().await.unwrap(),
                Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => text += chunk.content.as_text().unwrap(),
                _ => {}
            }
        }
        assert_eq!(text, "two true", "{dialect:?}");
    }
}

#[tokio::test]
async fn version_2_hears_the_state_before_a_resumed_session_is_answered() {
    let agent = attache::agent_fn("plain", "1.0", async |turn: Turn, _: Prompt| {
        turn.cancelled().await;
        Ok(Stop::EndTurn)
    });
    let agent = connect(client(Protocol::V2), agent, 64 * 1024).await.unwrap();
    let session = agent.session("/tmp").open().await.unwrap();
    let again = agent.session("/tmp").resume(session.id().clone()).await.unwrap();
    let Event::Update(SessionUpdate::State(state)) = again.next().await.unwrap() else { panic!("no state") };
    assert_eq!(state.tag(), "idle");
    let mut turn = session.prompt("go").await.unwrap();
    let busy = |event: &Event| matches!(event, Event::Update(SessionUpdate::State(state)) if state.tag() == "running");
    while !busy(&turn.next().await.unwrap().unwrap()) {}
    agent.session("/tmp").resume(session.id().clone()).await.unwrap();
    assert!(busy(&turn.next().await.unwrap().unwrap()), "the turn goes on");
    turn.cancel().await.unwrap();
    while turn.next().await.unwrap().is_some() {}
    assert_eq!(turn.stop(), Some(&Stop::Cancelled));
}
#[tokio::test]
async fn what_only_version_1_can_offer_is_no_loss_to_report() {
    for (protocol, _) in DIALECTS {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let seen = reports.clone();
        let client = client(protocol).read_files().write_files().terminals();
        let client = client.on_report(move |report| seen.lock().unwrap().push(report));
        let echo = attache::agent_fn("echo", "1.0", async |_: Turn, _: Prompt| Ok(Stop::EndTurn));
        connect(client, echo, 64 * 1024).await.unwrap();
        assert_eq!(*reports.lock().unwrap(), [], "{protocol:?}");
    }
}
