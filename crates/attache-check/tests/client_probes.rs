//! The agent that probes clients: a correct client breaks no rule in any scenario, and a hostile one is left in time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;

use std::time::Duration;

use attache::Protocol;
use attache_check::exchange::Exchange;
use attache_check::probe::Peer;
use attache_check::probe::client::{Kind, Options, Scenario, Selection, find, scenarios, serve};
use attache_check::record::Event;
use attache_check::{Choice, Level, Record, Side, judge};
use attache_testkit::defect::{Defect, Flow, Way};
use client::Behaviour;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

const PROTOCOLS: [Protocol; 3] = [Protocol::V1, Protocol::V2Draft, Protocol::V2];

/// The agent at one end of a wire, and the other end.
fn agent(selection: Selection, options: Options) -> (DuplexStream, JoinHandle<Record>) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(near);
    let peer = Peer { reader: Box::new(reader), writer: Box::new(writer) };
    (far, tokio::spawn(serve(peer, selection, options)))
}

fn usual(protocol: Protocol) -> Behaviour {
    Behaviour { protocol, offers: true, cancels: false, prompts: 1 }
}

async fn record_of(scenario: &'static Scenario, behaviour: Behaviour) -> Record {
    let cwd = tempfile::tempdir().unwrap();
    let (wire, serving) = agent(Selection::One(scenario), Options::unattended());
    let ran = client::run(wire, cwd.path(), behaviour).await;
    let ends_early = match scenario.name {
        "unknown-version" => true,
        // The client speaks one version only.
        "older-version" => behaviour.protocol != Protocol::V1,
        _ => scenario.kind == Kind::Last,
    };
    assert_eq!(ran.is_err(), ends_early, "{}, {behaviour:?}: {ran:?}", scenario.name);
    let record = serving.await.unwrap();
    assert_eq!(std::fs::read_dir(&cwd).unwrap().count(), 0, "{}: files are left", scenario.name);
    record
}

/// What the client broke, and what it left undone.
fn faults(record: &Record) -> Vec<String> {
    let choice = Choice { level: Some(Level::Must), ..Choice::default() };
    let judged = judge(record, Side::Client, &choice).into_iter();
    let mut faults: Vec<String> = judged
        .flat_map(|judged| judged.findings.into_iter().map(|found| format!("{}: {}", judged.rule.id, found.seen)))
        .collect();
    let waited = |event: &Event| matches!(event, Event::Waited { .. });
    faults.extend(record.entries.iter().filter(|entry| waited(&entry.event)).map(|entry| format!("{entry:?}")));
    faults
}

#[tokio::test(start_paused = true)]
async fn a_correct_client_breaks_no_rule_in_any_scenario() {
    let mut wrong = Vec::new();
    for scenario in scenarios() {
        for (protocol, offers) in PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, true), (protocol, false)]) {
            let record = record_of(scenario, Behaviour { offers, ..usual(protocol) }).await;
            let mut found = faults(&record);
            let exchange = Exchange::new(&record.entries);
            let open: Vec<_> = exchange.calls_of(Side::Agent).filter(|call| call.answers.is_empty()).collect();
            // Who has left is answered no more.
            if !open.is_empty() && scenario.kind != Kind::Last {
                found.push(format!("not answered: {open:?}"));
            }
            let is_refused = scenario.kind == Kind::Refusal || scenario.name.ends_with("-version");
            let turns: Vec<_> = exchange.sessions.values().flat_map(|session| &session.turns).collect();
            let has_ended = turns.len() == 1 && turns[0].ends.is_some();
            if !is_refused && has_ended == (scenario.kind == Kind::Last) {
                found.push(format!("turns: {turns:?}"));
            }
            wrong.extend(found.into_iter().map(|found| format!("{}, {protocol:?}, {offers}: {found}", scenario.name)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn scenarios_make_a_client_do_things() {
    // How many requests a client that offers everything has to answer with a result.
    for (name, method, results) in [
        ("read-files", "fs/read_text_file", 11),
        ("write-files", "fs/write_text_file", 5),
        ("write-files", "fs/read_text_file", 5),
        ("terminal", "terminal/wait_for_exit", 2),
        ("terminal-kill", "terminal/wait_for_exit", 3),
        ("terminal-release", "terminal/release", 2),
        ("terminal-limit", "terminal/output", 4),
        ("permission", "session/request_permission", 2),
        ("permission-twice", "session/request_permission", 2),
        ("form", "elicitation/create", 2),
        ("url", "elicitation/create", 1),
    ] {
        let record = record_of(find(name).unwrap(), usual(Protocol::V1)).await;
        let exchange = Exchange::new(&record.entries);
        let found = exchange.calls_to(method).filter(|call| call.result().is_some()).count();
        assert_eq!(found, results, "{name}: {method}\n{}", record.to_transcript());
    }
}

/// Files are real here, so what a client overlooks of a request can be seen in what it returns.
#[tokio::test(start_paused = true)]
async fn a_client_that_overlooks_the_line_is_found() {
    let overlooking = Defect::new(|_, way, mut message| {
        if way == Way::ToPeer && message["method"] == "fs/read_text_file" {
            message["params"].as_object_mut().unwrap().remove("line");
        }
        vec![Flow::message(way, message)]
    });
    for name in ["read-files", "write-files"] {
        let cwd = tempfile::tempdir().unwrap();
        let (near, far) = tokio::io::duplex(64 << 10);
        let peer = Peer::from_stream(overlooking.before(near));
        let serving = tokio::spawn(serve(peer, Selection::One(find(name).unwrap()), Options::unattended()));
        client::run(far, cwd.path(), usual(Protocol::V1)).await.unwrap();
        let found = faults(&serving.await.unwrap());
        assert!(found.iter().all(|fault| fault.starts_with("files/line: ")) && !found.is_empty(), "{name}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cancels_is_served() {
    for name in ["cancel", "permission", "permission-twice"] {
        for protocol in PROTOCOLS {
            let record = record_of(find(name).unwrap(), Behaviour { cancels: true, ..usual(protocol) }).await;
            assert_eq!(faults(&record), Vec::<String>::new(), "{name}, {protocol:?}");
            let exchange = Exchange::new(&record.entries);
            let turn = exchange.sessions.values().flat_map(|session| &session.turns).next().unwrap();
            assert_eq!(turn.stop.as_deref(), Some("cancelled"), "{name}, {protocol:?}");
            assert!(turn.cancelled.is_some());
            let asked = exchange.calls_to("session/request_permission");
            let outcomes: Vec<_> = asked.filter_map(|call| call.result()).collect();
            assert!(!outcomes.is_empty());
            assert!(outcomes.into_iter().all(|result| result["outcome"]["outcome"] == "cancelled"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_are_listed_loaded_set_closed_and_deleted() {
    for protocol in PROTOCOLS {
        let (wire, serving) = agent(Selection::All, Options::unattended());
        let listed = client::manage(wire, std::path::Path::new("/tmp"), usual(protocol)).await.unwrap();
        assert_eq!(listed.len(), 2, "{protocol:?}: {listed:?}");
        let record = serving.await.unwrap();
        assert_eq!(faults(&record), Vec::<String>::new(), "{protocol:?}");
        let exchange = Exchange::new(&record.entries);
        let refused: Vec<_> = exchange.calls_of(Side::Client).filter(|call| call.error().is_some()).collect();
        assert!(refused.is_empty(), "{protocol:?}: {refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_editor_gets_all_scenarios_one_after_the_other() {
    let cwd = tempfile::tempdir().unwrap();
    let options = Options { limit: None, ..Options::unattended() };
    let (wire, serving) = agent(Selection::All, options);
    let behaviour = Behaviour { prompts: 100, ..usual(Protocol::V1) };
    // The last scenario is the agent's leaving.
    assert!(client::run(wire, cwd.path(), behaviour).await.is_err());
    let record = serving.await.unwrap();
    assert_eq!(faults(&record), Vec::<String>::new());
    let notes = record.entries.iter().filter_map(|entry| match &entry.event {
        Event::Note { text } => text.strip_prefix("scenario "),
        _ => None,
    });
    let played: Vec<&str> = notes.collect();
    let of_turns = scenarios().iter().filter(|scenario| matches!(scenario.kind, Kind::Turn | Kind::Refusal));
    let v1 = of_turns.filter(|scenario| scenario.dialects.includes(attache::Dialect::V1));
    let expected: Vec<&str> = v1.map(|scenario| scenario.name).chain(["leave"]).collect();
    assert_eq!(played, expected);
    let said = record.to_transcript();
    assert!(said.contains(&format!("1 of {}: Scenario `text`.", expected.len())));
    assert!(said.contains("Next: `content-kinds`."));
}

#[tokio::test(start_paused = true)]
async fn the_agent_insists_on_a_dialect() {
    let record = |asked, dialect| async move {
        let options = Options { dialect: Some(dialect), ..Options::unattended() };
        let (wire, serving) = agent(Selection::One(find("text").unwrap()), options);
        let ran = client::run(wire, std::path::Path::new("/tmp"), usual(asked)).await;
        (ran.is_ok(), Exchange::new(&serving.await.unwrap().entries).dialect)
    };
    for (asked, dialect, expected) in [
        (Protocol::Auto, attache::Dialect::V1, true),
        (Protocol::Auto, attache::Dialect::V2Draft, true),
        (Protocol::Auto, attache::Dialect::V2, true),
        (Protocol::V1, attache::Dialect::V2, false),
    ] {
        let (is_served, spoken) = record(asked, dialect).await;
        assert_eq!(is_served, expected, "{asked:?}, {dialect:?}");
        assert!(!is_served || spoken == dialect, "{spoken:?}");
    }
}

/// Connects a client that says this and nothing else, and gives the record when the agent has left.
async fn hostile(said: &[u8], leaves: bool) -> (Record, Duration) {
    let (mut wire, serving) = agent(Selection::All, Options::unattended());
    let begin = tokio::time::Instant::now();
    let (mut reader, mut writer) = tokio::io::split(&mut wire);
    // It reads, or the agent's answers would fill the wire.
    let mut heard = Vec::new();
    let talking = async {
        writer.write_all(said).await.unwrap();
        if leaves {
            writer.shutdown().await.unwrap();
        }
    };
    let (record, (), heard) = tokio::join!(serving, talking, reader.read_to_end(&mut heard));
    heard.unwrap();
    let record = record.unwrap();
    (record, begin.elapsed())
}

const GREETING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#,
    "\n"
);

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_left_in_time() {
    let (_, took) = hostile(b"", false).await;
    assert!(took < Duration::from_secs(60), "{took:?}");
    let (record, took) = hostile(GREETING.as_bytes(), false).await;
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(Exchange::new(&record.entries).sessions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn garbage_is_answered_and_recorded() {
    let garbage = b"garbage\n\xff\xfe\n[]\n[1,{}]\n{}\n42\n{\"method\":5,\"id\":1}\n{\"id\":{},\"method\":\"x\"}\n{\"id\":3,\"method\":\"session/new\"}\n";
    let (record, took) = hostile(garbage, false).await;
    assert!(took < Duration::from_secs(60), "{took:?}");
    let codes: Vec<i64> = record
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Frame { from: Side::Agent, text } => serde_json::from_str::<serde_json::Value>(text).ok(),
            _ => None,
        })
        .map(|answer| answer["error"]["code"].as_i64().or(answer[0]["error"]["code"].as_i64()).unwrap())
        .collect();
    assert_eq!(codes, [-32700, -32700, -32600, -32600, -32600, -32600, -32600, -32600, -32600]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_or_falls_silent_in_the_middle_is_left_in_time() {
    // The session's id has the number of this process and the first number that was minted.
    let prompt = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"check-{}-1\",\"prompt\":[]}}}}\n",
        std::process::id()
    );
    let said = format!("{GREETING}{prompt}");
    for leaves in [true, false] {
        let (record, took) = hostile(said.as_bytes(), leaves).await;
        assert!(took < Duration::from_secs(60), "{leaves}: {took:?}");
        let exchange = Exchange::new(&record.entries);
        let waited = record.entries.iter().any(|entry| matches!(entry.event, Event::Waited { .. }));
        assert_eq!(waited, !leaves, "{}", record.to_transcript());
        assert_eq!(exchange.closed_at(Side::Client).is_some(), leaves);
        assert!(exchange.calls_to("session/prompt").count() == 1, "{}", record.to_transcript());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_left_in_time() {
    let (near, mut far) = tokio::io::duplex(256);
    let (reader, writer) = tokio::io::split(near);
    let peer = Peer { reader: Box::new(reader), writer: Box::new(writer) };
    let serving = tokio::spawn(serve(peer, Selection::All, Options::unattended()));
    far.write_all(GREETING.as_bytes()).await.unwrap();
    let begin = tokio::time::Instant::now();
    let record = serving.await.unwrap();
    assert!(begin.elapsed() < Duration::from_secs(60));
    let transcript = record.to_transcript();
    assert!(transcript.contains("the client takes nothing more"), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn records_are_written_while_they_grow() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { records: Some(directory.path().join("records")), ..Options::unattended() };
    let (wire, serving) = agent(Selection::One(find("text").unwrap()), options);
    client::run(wire, directory.path(), usual(Protocol::V2)).await.unwrap();
    let record = serving.await.unwrap();
    let files: Vec<_> =
        std::fs::read_dir(directory.path().join("records")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let read = Record::from_trace(&std::fs::read_to_string(&files[0]).unwrap()).unwrap();
    assert_eq!(read.to_transcript(), record.to_transcript());
}
