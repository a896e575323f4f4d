//! A client of one version and an agent of another, with a bridge between them: whole turns through real ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache::agent::Ask;
use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::update::SessionUpdate;
use attache::proto::bridge::Bridge;
use attache::relay::Relay;
use attache::{Client, Connection, Dialect, Event, Prompt, Protocol, Report, SessionView, Stop, Turn};

/// What a version has no word for may be left out. No rule may be broken.
fn no_violation(who: &str, report: &Report) {
    assert!(matches!(report, Report::Lost(_)), "the {who} reports: {report}");
}

/// A client that speaks one version with an agent that is spoken to in another.
async fn meet(protocol: Protocol, agent_speaks: Dialect) -> Connection {
    let agent = attache::agent_fn("worker", "1", async |turn: Turn, prompt: Prompt| {
        if prompt.text() == "wait" {
            turn.text("waiting").await?;
            turn.cancelled().await;
            return Ok(Stop::EndTurn);
        }
        turn.thought("hm").await?;
        turn.plan(vec![PlanEntry::new("work", PlanPriority::High, PlanStatus::InProgress)]).await?;
        let tool = turn.tool("Work").await?;
        let allowed = turn.ask(Ask::new("May I?").about(&tool)).await?.is_allowed();
        tool.push_text("one").await?;
        tool.push_text("two").await?;
        tool.complete().await?;
        turn.text(format!("{} {allowed}", prompt.text())).await?;
        Ok(Stop::EndTurn)
    });
    let (client_near, client_far) = tokio::io::duplex(64 * 1024);
    let (agent_near, agent_far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(agent_far);
    tokio::spawn(
        attache::serve(agent).strict().on_report(|report| no_violation("agent", &report)).connect(reader, writer),
    );
    let (from_client, to_client) = tokio::io::split(client_far);
    let (from_agent, to_agent) = tokio::io::split(agent_near);
    let relay = Relay::new(from_client, to_client, from_agent, to_agent).bridged(Bridge::new(agent_speaks));
    tokio::spawn(relay.run());
    let (reader, writer) = tokio::io::split(client_near);
    let client =
        Client::new("test", "1").protocol(protocol).strict().on_report(|report| no_violation("client", &report));
    client.connect(reader, writer).await.unwrap()
}

#[tokio::test]
async fn versions_meet_over_a_bridge() {
    let pairs = [
        (Protocol::V2, Dialect::V1),
        (Protocol::V1, Dialect::V2),
        (Protocol::V2Draft, Dialect::V1),
        (Protocol::V1, Dialect::V2Draft),
        (Protocol::V2Draft, Dialect::V2),
        (Protocol::V2, Dialect::V2Draft),
    ];
    for (protocol, agent_speaks) in pairs {
        let agent = meet(protocol, agent_speaks).await;
        let session = agent.session("/tmp").open().await.unwrap();
        let mut view = SessionView::new();
        let mut turn = session.prompt("go").await.unwrap();
        while let Some(event) = turn.next().await.unwrap() {
            match event {
                Event::Update(update) => {
                    view.apply(&update);
                }
                Event::Permission(ask) => {
                    assert!(ask.title.is_some() || ask.tool_call().is_some(), "{protocol:?}");
                    ask.allow_once().await.unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(turn.stop(), Some(&Stop::EndTurn), "{protocol:?} {agent_speaks:?}");
        let snapshot = view.snapshot().as_str().to_owned();
        // Where all content is sent again, adjacent text is one block.
        for part in ["go true", "\"hm\"", "\"one", "two\"", "\"completed\"", "\"work\""] {
            assert!(snapshot.contains(part), "{protocol:?} {agent_speaks:?}: {part} in {snapshot}");
        }
        let mut turn = session.prompt("wait").await.unwrap();
        while let Some(event) = turn.next().await.unwrap() {
            if matches!(event, Event::Update(SessionUpdate::AgentMessageChunk(_))) {
                turn.cancel().await.unwrap();
            }
        }
        assert_eq!(turn.stop(), Some(&Stop::Cancelled), "{protocol:?} {agent_speaks:?}");
        session.close().await.unwrap();
    }
}
