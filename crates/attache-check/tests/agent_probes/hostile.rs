//! Agents that do not play along. Every probe ends in time, and never by a panic.

use std::time::Duration;

use attache_check::probe::Peer;
use attache_check::probe::agent::{Options, ProbeRun, Start, probes, run};
use attache_check::record::Event;
use attache_check::{Choice, Dialects, Side, judge};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::time::Instant;

/// What such an agent does with the lines that it reads.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    SaysNothing,
    DoesNotRead,
    EndsAtOnce,
    AnswersGarbage,
    AnswersEverything,
    Floods,
    FloodsWithoutLineEnds,
    ClosesInMidLine,
}

const MANNERS: [Manner; 8] = [
    Manner::SaysNothing,
    Manner::DoesNotRead,
    Manner::EndsAtOnce,
    Manner::AnswersGarbage,
    Manner::AnswersEverything,
    Manner::Floods,
    Manner::FloodsWithoutLineEnds,
    Manner::ClosesInMidLine,
];

/// An agent that greets and opens sessions as it should, if it is polite, and is what it is after that.
fn start(manner: Manner, is_polite: bool) -> Start {
    Start::connect(move || async move {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(far, manner, is_polite));
        Ok(Peer::from_stream(near))
    })
}

async fn serve(stream: DuplexStream, manner: Manner, is_polite: bool) -> std::io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let message: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let id = &message["id"];
        let polite = match message["method"].as_str() {
            Some("initialize") if is_polite && message["params"]["protocolVersion"] == 1 => Some(
                "{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,\"sessionCapabilities\":{\"list\":{},\"close\":{},\"delete\":{},\"resume\":{}}}}",
            ),
            Some("session/new") if is_polite => Some(
                "{\"sessionId\":\"s\",\"configOptions\":[7,{\"id\":\"a\",\"options\":[1,{}]}],\"modes\":{\"availableModes\":[3]}}",
            ),
            _ => None,
        };
        if let Some(result) = polite {
            writer.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").as_bytes()).await?;
            continue;
        }
        match manner {
            Manner::SaysNothing => {}
            Manner::DoesNotRead => std::future::pending().await,
            Manner::EndsAtOnce => return Ok(()),
            Manner::AnswersGarbage => writer.write_all(b"\xff\xfe{]\n[[],7,{\"id\":{}}]\n\"x\"\n").await?,
            Manner::AnswersEverything => {
                for id in [id.to_string(), "null".to_owned(), "true".to_owned()] {
                    let odd = format!(
                        "{{\"id\":{id},\"method\":\"terminal/create\",\"params\":{{\"command\":7}}}}\n{{\"id\":{id},\"result\":[]}}\n"
                    );
                    writer.write_all(odd.as_bytes()).await?;
                }
            }
            Manner::Floods => loop {
                writer.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}}\n").await?;
            },
            Manner::FloodsWithoutLineEnds => loop {
                writer.write_all(&[b'x'; 16 << 10]).await?;
            },
            Manner::ClosesInMidLine => {
                writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id").await?;
                return Ok(());
            }
        }
    }
    Ok(())
}

fn options() -> Options {
    Options::default().with(|options| options.most_read = 64 << 10)
}

async fn probed(manner: Manner, is_polite: bool) -> Vec<ProbeRun> {
    let began = Instant::now();
    let runs = run(&start(manner, is_polite), Dialects::V1, &options()).await.unwrap();
    let limit = options().probe + Duration::from_secs(10);
    assert!(began.elapsed() < limit * u32::try_from(runs.len()).unwrap(), "{manner:?}: {:?}", began.elapsed());
    for run in &runs {
        let took = run.record.entries.last().map(|entry| entry.at).unwrap_or_default();
        assert!(took < limit, "{manner:?}, {}: {took:?}", run.name);
        // Whatever it sent, the rules can judge it.
        judge(&run.record, Side::Agent, &Choice::default());
    }
    runs
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_greeted_is_asked_nothing_else() {
    for manner in MANNERS {
        let runs = probed(manner, false).await;
        assert_eq!(runs.len(), 1, "{manner:?}");
        let events: Vec<_> = runs[0].record.entries.iter().map(|entry| &entry.event).collect();
        if manner == Manner::AnswersEverything {
            // It answered, although with nothing of use.
            continue;
        }
        let is_reason = |event: &&&Event| matches!(event, Event::Waited { .. } | Event::Closed { from: Side::Agent });
        let is_left = |event: &&&Event| matches!(event, Event::Note { text } if text.contains("the rest is left"));
        assert!(events.iter().any(|event| is_reason(&event) || is_left(&event)), "{manner:?}: {events:?}");
    }
}

/// The rules that an agent breaks, each with what was seen.
fn broken(runs: &[ProbeRun]) -> Vec<(&'static str, String)> {
    let judged = runs.iter().flat_map(|run| judge(&run.record, Side::Agent, &Choice::default()));
    judged.filter_map(|judged| Some((judged.rule.id, judged.findings.first()?.seen.clone()))).collect()
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_answer_prompts_is_found() {
    for (manner, how) in [(Manner::SaysNothing, "after 10 s"), (Manner::EndsAtOnce, "the agent closed the connection")]
    {
        let options = options().with(|options| options.only = vec!["prompt/text".to_owned()]);
        let runs = run(&start(manner, true), Dialects::V1, &options).await.unwrap();
        let found = broken(&runs);
        let is_it = |(rule, seen): &(&str, String)| *rule == "envelope/answered" && seen.contains(how);
        assert!(found.iter().any(is_it), "{manner:?}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_probe_ends_in_time() {
    for manner in MANNERS {
        let runs = probed(manner, true).await;
        let all = probes().filter(|probe| probe.dialects.includes(attache_proto::Dialect::V1)).count();
        assert_eq!(runs.len(), all + 1, "{manner:?}");
    }
}
